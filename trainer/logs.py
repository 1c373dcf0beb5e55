"""The run's record: one JSON object a line, and the same numbers as TensorBoard scalars."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from metier.harness.telemetry import names, signals


class RunLog:
    """Appends to `metrics.jsonl` and to TensorBoard event files in one folder.

    Example:
        with RunLog(Path("runs/demo")) as log:
            log.write("grpo", 3, {"reward": 0.4, "seconds/train": 11.0})
    """

    def __init__(self, folder: Path) -> None:
        """Makes the folder; an earlier run's lines in it are kept and appended to."""
        from torch.utils.tensorboard.writer import SummaryWriter

        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "metrics.jsonl"
        self._lines = self.path.open("a", encoding="utf-8")
        self._board = SummaryWriter(str(folder), flush_secs=10)

    def write(self, phase: str, step: int, metrics: Mapping[str, float]) -> None:
        """One step's metrics; a number that is not finite is null in JSON."""
        finite = {name: value if math.isfinite(value) else None for name, value in metrics.items()}
        line = {"phase": phase, "step": step, "time": round(time.time(), 3), **finite}
        self._lines.write(json.dumps(line) + "\n")
        self._lines.flush()
        for name, value in metrics.items():
            self._board.add_scalar(f"{phase}/{name}", value, step)
        _signal(metrics)

    def close(self) -> None:
        """Idempotent."""
        self._lines.close()
        self._board.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _signal(metrics: Mapping[str, float]) -> None:
    """A step to whoever watches metrics: while the learner learns and hands over its weights, the engine idles."""
    spent = [metrics.get(f"seconds/{part}") for part in ("generate", "train", "update")]
    if None not in spent and (whole_s := sum(one or 0.0 for one in spent)) > 0:
        signals.put(names.ENGINE_IDLE, 1.0 - (spent[0] or 0.0) / whole_s)
    if math.isfinite(reward := metrics.get("reward", math.nan)):
        signals.put(names.TRAIN_REWARD, reward)
