"""What this server ranks: splits of suites, with the environments that it has today; a submitter chooses among them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from metier.envs import registry
from metier.envs.core import ConfigError

from ..evaluate.plan import PlannedEnvironment, canonical
from ..evaluate.selection import Asked, Split, select
from .contract import GroupEnvironment, Offered
from .faults import Reason, Refusal


class Demanded:
    """One board: a suite's split, resolved on this server."""

    def __init__(self, suite: str, split: Split) -> None:
        self.suite = suite
        self.split = split

    @cached_property
    def environments(self) -> dict[bytes, PlannedEnvironment]:
        """By id and options. Raises ConfigError."""
        selected = select(Asked(names=[self.suite], split=self.split))
        return {named(one): one for one in selected.environments}

    @cached_property
    def offered(self) -> Offered:
        """What submitters are told."""
        environments = list(self.environments.values())
        return Offered(
            suite=self.suite,
            split=self.split,
            summary=registry.suite(self.suite).summary,
            environments=tuple(map(shown, environments)),
            trials=sum(one.seeds.total * len(one.levels) for one in environments),
        )


class Boards:
    """Every board of a server. Digests are computed once: a server that changes is started again."""

    def __init__(self, named: Sequence[str] = ()) -> None:
        """
        Args:
            named: `SUITE` or `SUITE/SPLIT`; by default, the held-out split of every suite that has one.

        Raises:
            ConfigError: no such suite or split.
        """
        chosen = named or [name for name in registry.suites() if registry.suite(name).held_out_seeds is not None]
        self._boards: dict[tuple[str, Split], Demanded] = {}
        for one in chosen:
            suite, _, split = one.partition("/")
            if (split or Split.HELD_OUT) not in list(Split):
                raise ConfigError(f"--board {one!r}: a split is {' or '.join(Split)}")
            board = Demanded(suite, Split(split or Split.HELD_OUT))
            board.environments  # noqa: B018 - a board that cannot be is refused now
            self._boards[suite, board.split] = board

    def __iter__(self):
        return iter(self._boards.values())

    def get(self, suite: str, split: Split) -> Demanded:
        """Raises Refusal."""
        found = self._boards.get((suite, split))
        if found is None:
            there = ", ".join(f"{name} ({split})" for name, split in self._boards)
            raise Refusal(Reason.UNKNOWN_BOARD, f"this server ranks {there or 'nothing'}, and not {suite} ({split})")
        return found

    def current(self, suite: str, split: Split, environments: Sequence[GroupEnvironment]) -> bool:
        """Whether these are the environments of a board of today."""
        board = self._boards.get((suite, split))
        return board is not None and {one.model_dump_json() for one in environments} == {
            one.model_dump_json() for one in board.offered.environments
        }


def named(one: PlannedEnvironment) -> bytes:
    """An environment with its options, within a plan."""
    return canonical({"id": one.id, "options": one.options})


def shown(one: PlannedEnvironment) -> GroupEnvironment:
    """As a group names it."""
    return GroupEnvironment(
        id=one.id,
        options=one.options,
        levels=tuple(sorted(one.levels)),
        seeds=one.seeds,
        digest=one.digest,
        image=one.image,
        image_digest=one.image_digest,
    )
