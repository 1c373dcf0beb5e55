"""What a main job found: a table, a plot and a record, all from the same numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from metier.harness.evaluate import Rate


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One evaluation: after which stage, what was found, and the training compute spent until then."""

    name: str
    rates: Mapping[str, Rate]
    """Environment → pass rate on the held-out seeds, of the policy as GRPO trains it (sampled)."""
    train_s: float
    """Wall seconds of training (generation included) that led to this model, after the base model."""
    train_tokens: int
    grpo_step: int | None = None

    @property
    def total(self) -> Rate:
        """All environments together."""
        rates = self.rates.values()
        return Rate(
            passed=sum(rate.passed for rate in rates),
            valid=sum(rate.valid for rate in rates),
            requested=sum(rate.requested for rate in rates),
        )


@dataclass(slots=True, kw_only=True)
class Report:
    """Grows while the job runs; saved after each stage, so a killed job leaves what it had found."""

    plan: Mapping[str, Any]
    versions: Mapping[str, str]
    stages: list[Stage] = field(default_factory=list[Stage])
    steps: list[Mapping[str, float]] = field(default_factory=list[Mapping[str, float]])
    """Metrics of each GRPO step."""
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    """Wall time of each phase."""

    def stage(self, name: str) -> Stage:
        """The stage of that name."""
        return next(stage for stage in self.stages if stage.name == name)

    def table(self) -> str:
        """Markdown: a line a stage, a column an environment, 95% Wilson intervals."""
        names = sorted({name for stage in self.stages for name in stage.rates})
        short = [name.partition("/")[2].rpartition("-v")[0] for name in names]
        lines = [
            f"| held-out pass rate, sampled | all | {' | '.join(short)} | training s | trained tokens |",
            f"|---|---|{'---|' * len(names)}---|---|",
        ]
        for stage in self.stages:
            cells = [str(stage.rates[name]) if name in stage.rates else "–" for name in names]
            cells += [f"{stage.train_s:.0f}", str(stage.train_tokens)]
            lines.append(f"| {stage.name} | **{stage.total}** | {' | '.join(cells)} |")
        return "\n".join(lines)

    def conclusion(self) -> str:
        """Whether the intervals before and after GRPO are apart, and how the control compares, in words."""
        warm, trained = self.stage("SFT"), self.stage("SFT + GRPO")
        before, after = warm.total, trained.total
        said = {"above": "apart: it rose", "below": "apart: it FELL", "not apart from": "OVERLAPPING: nothing is shown"}
        apart = said[_place(after, before)]
        words = [f"GRPO moved the held-out pass rate from {before} to {after}: the 95% intervals are {apart}."]
        control = [stage for stage in self.stages if stage.name.startswith("SFT only")]
        if control:
            other = control[0].total
            words.append(
                f"SFT alone with equal compute reached {other}: its interval is {_place(other, after)} GRPO's."
            )
        return " ".join(words)

    def save(self, folder: Path) -> None:
        """Write record.json and table.md."""
        folder.mkdir(parents=True, exist_ok=True)
        record = {
            "plan": self.plan,
            "versions": self.versions,
            "seconds": self.seconds,
            "stages": [asdict(stage) for stage in self.stages],
            "steps": self.steps,
        }
        (folder / "record.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        (folder / "table.md").write_text(self.table() + "\n", encoding="utf-8")

    def plot(self, path: Path) -> Path:
        """The curve: reward of each GRPO step on the left, held-out pass rates with intervals on the right."""
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt

        figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), width_ratios=(3, 2))
        _rewards(left, self.steps)
        _rates(right, self.stages)
        figure.tight_layout()
        figure.savefig(path, dpi=120)
        plt.close(figure)
        return path


def _place(rate: Rate, other: Rate) -> str:
    """Where the 95% interval of a rate lies as against another's."""
    if rate.interval.low > other.interval.high:
        return "above"
    return "below" if rate.interval.high < other.interval.low else "not apart from"


def _rewards(axes: Any, steps: Sequence[Mapping[str, float]]) -> None:
    numbers = list(range(1, len(steps) + 1))
    rewards = [step["reward"] for step in steps]
    axes.plot(numbers, rewards, "o", color="#9bb8d3", label="mean reward of a step's rollouts")
    window = 4
    means = [sum(rewards[max(0, i - window + 1) : i + 1]) / min(window, i + 1) for i in range(len(rewards))]
    axes.plot(numbers, means, "-", color="#1f5a94", linewidth=2, label=f"mean of the last {window} steps")
    axes.set(xlabel="GRPO step", ylabel="reward", ylim=(0, 1), title="Training (sampled)")
    axes.legend(loc="upper left", frameon=False)


def _rates(axes: Any, stages: Sequence[Stage]) -> None:
    colours = ["#8a8a8a", "#d9a441", "#1f5a94", "#b5534a", "#5a9367"]
    for place, stage in enumerate(stages):
        rate, (low, high) = stage.total.rate, stage.total.interval
        axes.bar(place, rate, color=colours[place % len(colours)], width=0.6)
        axes.errorbar(place, rate, yerr=[[rate - low], [high - rate]], color="black", capsize=5)
        axes.text(place, min(high + 0.02, 0.97), f"{100 * rate:.0f}%", ha="center")
    names = [stage.name.replace(", ", ",\n") + f"\nn={stage.total.valid}" for stage in stages]
    axes.set_xticks(range(len(stages)), names, fontsize=8)
    axes.set(ylim=(0, 1), ylabel="pass rate, 95% Wilson", title="Held-out seeds (sampled)")
