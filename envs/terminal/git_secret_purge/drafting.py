"""Draws a project: the main branch with its leaks, branches and merges, tags, notes, stashes, and what was lost."""

from __future__ import annotations

from collections.abc import Sequence

from ...core import Rng
from .history import History, Tag
from .project import (
    LEVELS,
    ORGS,
    PEOPLE,
    SERVICES,
    Files,
    Level,
    Project,
    Writer,
    draw_leak,
    events,
    first_files,
    first_lines,
    tweak,
)
from .secret import Leak


def draw_project(level_number: int, rng: Rng) -> Project:
    """A pure function of its arguments."""
    level = LEVELS[level_number]
    service, org = rng.child("service").choice(SERVICES), rng.child("org").choice(ORGS)
    leak = draw_leak(level, rng.child("leak"), service)
    people = tuple(name.format(org=org) for name in rng.child("people").sample(PEOPLE, 3))
    history = _Draft(level, leak, Writer(rng.child("writer"), people), rng.child("draft")).drawn(service)
    return Project(
        history=history,
        leak=leak,
        findings=first_lines(history, leak),
        packed=level_number >= 2 and rng.child("packed").integer(0, 1) == 1,
    )


class _Draft:
    """One drawing."""

    def __init__(self, level: Level, leak: Leak, writer: Writer, rng: Rng) -> None:
        self.level, self.leak, self.writer, self.rng = level, leak, writer, rng
        self.lost: list[int] = []
        self.heads: dict[str, int] = {}
        self.leaky: list[int] = []
        """Commits of the main branch that let something leak, or took it out again."""
        self.line: list[int] = []
        """Commits of the main branch, without those of side branches."""
        self.num_sides = 0
        self.trees: dict[int, Files] = {}

    def drawn(self, service: str) -> History:
        head = self.rng.choice(("main", "master", "trunk"))
        tip = self._main(service)
        self.heads[head] = tip
        stashes = self._stashes(tip, head)
        notes = self._notes()
        return History(
            contents=tuple(self.writer.contents),
            commits=tuple(self.writer.commits),
            heads=self.heads,
            head=head,
            tags=tuple(self._tags()),
            notes=notes,
            stashes=tuple(stashes),
            lost=tuple(self.lost),
            reflog=tuple(self.writer.reflog),
        )

    def _main(self, service: str) -> int:
        """The main branch, its side branches on the way; the newest commit."""
        files = first_files(service, self.leak, self.level, self.rng.child("first"))
        tip = self._next(files, (), "Start\n", -1)
        planned = events(self.level, self.leak, self.rng.child("events"))
        changes = self.rng.child("order")
        slots = ["event"] * len(planned) + ["change"] * self.level.changes
        order = ["change", *changes.shuffled(slots), "change"]
        forks = set(changes.sample(range(3, len(order)), self.level.branches)) if self.level.branches else set[int]()
        waiting = iter(planned)
        for step, slot in enumerate(order):
            if step in forks:
                tip = self._side(files, tip)
            if slot == "change":
                tip = self._next(files, (tip,), self._cites(tweak(files, self.rng)), tip)
                continue
            message, change = next(waiting)
            change(files)
            tip = self._next(files, (tip,), message, tip)
            self.leaky.append(tip)
        return tip

    def _next(self, files: Files, parents: Sequence[int], message: str, old: int, encoding: str = "") -> int:
        number = self.writer.commit(files, tuple(parents), message, encoding)
        self.trees[number] = dict(files)
        self.line.append(number)
        self.writer.logged(old, number, "commit" if parents else "commit (initial)")
        if message.startswith("Authenticate"):
            self._amended(files, parents, message, number)
        return number

    def _cites(self, message: str) -> str:
        if not self.level.coded or self.rng.integer(0, 3):
            return message
        # an ancestor, for a purge can only cite what is rewritten by then
        return message + f"\nFollows up on @{self.rng.choice(self.line)}@.\n"

    def _amended(self, files: Files, parents: Sequence[int], message: str, kept: int) -> None:
        """What the commit was before it was amended: no ref reaches it."""
        token = self.leak.secrets["token"]
        text = files["src/client.py"] + f'HEADERS = {{"X-Auth": "{token}"}}\n'
        number = self.writer.commit({**files, "src/client.py": text}, tuple(parents), message)
        self.lost.append(number)
        self.writer.logged(parents[0], number, "commit")
        self.writer.logged(number, kept, "commit (amend)")

    def _side(self, files: Files, tip: int) -> int:
        """A side branch of two commits: merged, open, or dropped; the main branch's tip after it."""
        index, self.num_sides = self.num_sides, self.num_sides + 1
        name = ("exports", "retries", "audit-log", "bulk-load")[index]
        token = list(self.leak.secrets.values())[index % len(self.leak.secrets)]
        path = f"src/{name.replace('-', '_')}.py"
        side = {**files, path: f'"""{name}."""\n\nSECRET = "{token}"  # for a first try\n'}
        first = self.writer.commit(side, (tip,), f"Begin {name}\n")
        side[path] = side[path].replace(token, "") + "\n\ndef run():\n    return None\n"
        encoding = "ISO-8859-1" if self.level.coded else ""
        second = self.writer.commit(
            side, (first,), f"Finish {name}, à la carte\n" if encoding else f"Finish {name}\n", encoding
        )
        if index % 2 == 0:
            self.heads[f"feature/{name}"] = second
            if self.level.hard and index == 2:
                extra = self.writer.commit({**files, "docs/paging.md": "Pages of 50.\n"}, (tip,), "Describe paging\n")
                files |= {path: side[path], "docs/paging.md": "Pages of 50.\n"}
                return self._next(files, (tip, second, extra), f"Merge {name} and its pages\n", tip)
            return tip
        if index == 3:
            self.lost += [first, second]
            return tip
        files[path] = side[path]
        self.heads[f"done/{name}"] = second
        return self._next(files, (tip, second), f"Merge {name}\n", tip)

    def _tags(self) -> list[Tag]:
        """One plain tag; from level 1 on an annotated one that quotes a secret."""
        rng, tags = self.rng.child("tags"), [Tag(name="v0.1", commit=self.leaky[0])]
        if self.level.branches:
            last = self.writer.commits[-1]
            key = self.leak.secrets["signing key"]
            text = f"Release 1.0\n\nSigned off; smoke-tested with {key}.\n"
            who = f"{last.author} {last.committed}"
            tags.append(Tag(name="v1.0", commit=rng.choice(self.leaky[1:]), message=text, tagger=who))
            clean = Tag(name="v1.1", commit=self.leaky[-1], message="Release 1.1\n\nNothing to add.\n", tagger=who)
            tags.append(clean)
        return tags

    def _notes(self) -> dict[str, str]:
        if not self.level.notes:
            return {}
        rng, key = self.rng.child("notes"), self.leak.secrets["signing key"]
        chosen = rng.sample(self.leaky, self.level.notes)
        texts = [f"Reviewed; tested with {key}\n", *(f"Reviewed in {rng.integer(5, 90)} minutes\n" for _ in chosen)]
        return {str(number): text for number, text in zip(sorted(chosen), texts, strict=False)}

    def _stashes(self, tip: int, head: str) -> list[tuple[int, str]]:
        found: list[tuple[int, str]] = []
        for number in range(self.level.stashes):
            base = self.leaky[-1 - number]
            files = self.trees[base]
            secret = list(self.leak.secrets.values())[(3 + 2 * number) % len(self.leak.secrets)]
            index = self.writer.commit(files, (base,), f"index on {head}: {'0' * 7} stash base\n")
            words = f"On {head}: try {('the pool', 'a cache', 'less logging')[number]}"
            changed = {**files, "src/report.py": files["src/report.py"] + f"\nTRIAL = '{secret}'\n"}
            found.append((self.writer.commit(changed, (base, index), words + "\n"), words))
        return found
