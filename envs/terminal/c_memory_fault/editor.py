"""A line editor: an array of owned strings, a clipboard and an undo list."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...core import Rng
from .fault import Change, Fault, Names, Theme
from .shared import SHARED_FAULTS, word

_VERBS = {
    "append": ("append", "write", "say", "end"),
    "insert": ("insert", "before", "at"),
    "delete": ("delete", "cut", "strike"),
    "join": ("join", "glue", "weld"),
    "split": ("split", "break", "part"),
    "find": ("find", "search", "seek"),
    "print": ("print", "show", "dump"),
}


def _names(rng: Rng) -> dict[str, str]:
    p, line = rng.choice((("sheet", "line"), ("script", "verse"), ("log", "record"), ("memo", "row")))
    clip, undo = rng.choice((("clip", "undo"), ("buffer", "history"), ("tray", "journal")))
    drawn = {key: rng.choice(words) for key, words in _VERBS.items()}
    numbers = {"room0": 16, "room1": rng.choice((16, 24, 32)), "room2": rng.choice((4, 6, 8))}
    return {
        "p": p,
        "line": line,
        "clip": clip,
        "undo": undo,
        **drawn,
        **{key: str(value) for key, value in numbers.items()},
    }


def _text(rng: Rng, longest: int = 3) -> str:
    return " ".join(word(rng, rng.integer(1, 4)) for _ in range(rng.integer(1, longest)))


def _filled(rng: Rng, names: Names, count: int) -> list[str]:
    return [f"{names['append']} {_text(rng)}" for _ in range(count)]


def _grows(rng: Rng, names: Names) -> list[str]:
    count = 2 * int(names["room2"]) + 3
    return [*_filled(rng, names, count), f"{names['insert']} 1 {_text(rng)}", names["print"]]


def _deletes(rng: Rng, names: Names) -> list[str]:
    return [*_filled(rng, names, 4), f"{names['delete']} 2 3", names["print"], f"{names['delete']} 1 2", names["print"]]


def _joins(rng: Rng, names: Names) -> list[str]:
    return [*_filled(rng, names, 4), f"{names['join']} 1", f"{names['join']} 2", names["print"]]


def _splits(rng: Rng, names: Names) -> list[str]:
    lines = [f"{names['append']} {word(rng, 9)}", f"{names['append']} {word(rng, 6)}"]
    return [
        *lines,
        f"{names['split']} 1 4",
        f"{names['split']} 3 30",
        names["print"],
        f"{names['delete']} 2 2",
        names["print"],
    ]


def _pastes(rng: Rng, names: Names) -> list[str]:
    lines = [*_filled(rng, names, 3), "copy 1 2", f"{names['delete']} 1 1", "paste 1", names["print"]]
    return [*lines, "copy 2 4", "paste 2", names["print"]]


def _finds(rng: Rng, names: Names) -> list[str]:
    lines = _filled(rng, names, 3)
    return [*lines, f"{names['find']} {lines[1].split()[1].upper()}", f"{names['find']} zz"]


def _trims(rng: Rng, names: Names) -> list[str]:
    lines = [f"{names['append']} {text}" for text in (f"{word(rng, 4)}...", ".", "......", word(rng, 3))]
    return [*lines, "trim", names["print"]]


def _undoes(rng: Rng, names: Names) -> list[str]:
    lines = [*_filled(rng, names, 3), f"set 2 {_text(rng)}", f"set 2 {_text(rng)}", "undo", names["print"]]
    return [*lines, f"set 1 {_text(rng)}", "undo", "undo", "undo", names["print"]]


def _kept(rng: Rng, names: Names) -> list[str]:
    lines = [*_filled(rng, names, 4), f"set 2 {_text(rng)}", f"set 3 {_text(rng)}", f"{names['delete']} 2 4", "undo"]
    return [*lines, names["print"], f"set 1 {_text(rng)}"]


def _widths(rng: Rng, names: Names) -> list[str]:
    return ["widest", *_filled(rng, names, 3), "widest"]


_FIRST = "    ${clip}_free(c);\n    c->count = last - first + 1;"
FAULTS = (
    Fault(
        name="array full",
        kind="a write past the end of a heap block",
        function="put",
        symptom="a text of a certain number of ${line}s crashes it",
        changes=(Change("sheet.c", "    if (s->count == s->room) {", "    if (s->count > s->room) {"),),
        lines=_grows,
        clues=0,
        other=(Change("sheet.c", "    if (s->count == s->room) {", "    if (s->count + 1 > s->room) {"),),
    ),
    Fault(
        name="one moved too many",
        kind="a read and write past the end of a heap block",
        function="put",
        symptom="a text of a certain number of ${line}s crashes it",
        changes=(
            Change(
                "sheet.c",
                "(s->count - at) * sizeof *s->${line}s);\n    s->${line}s[at] = words;",
                "(s->count - at + 1) * sizeof *s->${line}s);\n    s->${line}s[at] = words;",
            ),
        ),
        lines=_grows,
        clues=1,
    ),
    Fault(
        name="last one not freed",
        kind="a leak",
        function="${p}_delete",
        symptom="memory grows while ${line}s come and go",
        changes=(
            Change(
                "sheet.c",
                "    for (size_t i = first; i <= last; i++)\n        free(",
                "    for (size_t i = first; i < last; i++)\n        free(",
            ),
        ),
        lines=_deletes,
        clues=0,
    ),
    Fault(
        name="one read too many",
        kind="a read past the end of a heap block",
        function="${p}_delete",
        symptom="`$delete` at the end of a text is unsafe",
        changes=(Change("sheet.c", "(s->count - last - 1) * sizeof", "(s->count - last) * sizeof"),),
        lines=lambda rng, names: [
            *_filled(rng, names, int(names["room2"])),
            f"{names['delete']} 2 2",
            names["print"],
        ],
        clues=1,
    ),
    Fault(
        name="no room for the blank",
        kind="a write past the end of a heap block",
        function="${p}_join",
        symptom="`$join` crashes some time later",
        changes=(Change("sheet.c", "length + strlen(second) + 2);", "length + strlen(second) + 1);"),),
        lines=_joins,
        clues=0,
    ),
    Fault(
        name="joined twice freed",
        kind="memory freed twice",
        function="${p}_join",
        symptom="`$join` crashes at once or later",
        changes=(
            Change(
                "sheet.c",
                "    s->${line}s[at] = joined;\n    ${p}_delete(",
                "    free(s->${line}s[at]);\n    s->${line}s[at] = joined;\n    ${p}_delete(",
            ),
        ),
        lines=_joins,
        clues=0,
    ),
    Fault(
        name="split shares its text",
        kind="a free of what was never allocated",
        function="${p}_split",
        symptom="after `$split` it crashes at the end",
        changes=(
            Change(
                "sheet.c",
                "    char *rest = text_copy(words + column);\n    words[column] = '\\0';\n",
                "    char *rest = words + column;\n    if (*rest)\n        *rest++ = '\\0';\n",
            ),
        ),
        lines=_splits,
        clues=1,
    ),
    Fault(
        name="clipboard shares its texts",
        kind="memory freed while still in use",
        function="${clip}_copy",
        symptom="what `paste` puts in is rubbish at times",
        changes=(
            Change(
                "keep.c",
                "c->${line}s[i] = text_copy(s->${line}s[first + i]);",
                "c->${line}s[i] = s->${line}s[first + i];",
            ),
        ),
        lines=_pastes,
        clues=2,
    ),
    Fault(
        name="old clipboard lost",
        kind="a leak",
        function="${clip}_copy",
        symptom="memory grows with every `copy`",
        changes=(Change("keep.c", _FIRST, "    c->count = last - first + 1;"),),
        lines=_pastes,
        clues=0,
    ),
    Fault(
        name="not terminated",
        kind="a use of uninitialised memory",
        function="lowered",
        symptom="`$find` finds too much or too little on some machines",
        changes=(Change("sheet.c", "    low[length] = '\\0';\n", ""),),
        lines=_finds,
        clues=0,
        other=(
            Change(
                "sheet.c",
                "    for (size_t i = 0; i < length; i++)\n        low[i]",
                "    for (size_t i = 0; i <= length; i++)\n        low[i]",
            ),
            Change("sheet.c", "    low[length] = '\\0';\n", ""),
        ),
    ),
    Fault(
        name="lowered not freed",
        kind="a leak",
        function="${p}_has",
        symptom="memory grows with every `$find`",
        changes=(Change("sheet.c", "    free(in);\n    free(wanted);", "    free(wanted);"),),
        lines=_finds,
        clues=0,
    ),
    Fault(
        name="trimmed past the start",
        kind="a read before the start of a heap block",
        function="${p}_trim",
        symptom="`trim` is unsafe for some ${line}s",
        changes=(
            Change(
                "sheet.c",
                "        while (length > 0 && words[length - 1] == '.')",
                "        while (words[length - 1] == '.')",
            ),
        ),
        lines=_trims,
        clues=1,
    ),
    Fault(
        name="undo loses what it replaces",
        kind="a leak",
        function="${undo}_back",
        symptom="memory grows with every `undo`",
        changes=(
            Change(
                "keep.c",
                "    free(s->${line}s[step->at]);\n    s->${line}s[step->at] = step->before;",
                "    s->${line}s[step->at] = step->before;",
            ),
        ),
        lines=_undoes,
        clues=0,
    ),
    Fault(
        name="undo outlives its place",
        kind="a use of freed memory",
        function="range",
        symptom="`undo` after `$delete` goes wrong",
        changes=(Change("main.c", "        ${undo}_clear(&e->undo);\n        ${p}_delete(", "        ${p}_delete("),),
        lines=_kept,
        clues=2,
    ),
    Fault(
        name="step read after free",
        kind="a read of freed memory",
        function="${undo}_clear",
        symptom="ending with changes to undo crashes on some machines",
        changes=(
            Change(
                "keep.c",
                "        *u = step->older;\n        free(step->before);\n        free(step);",
                "        free(step->before);\n        free(step);\n        *u = step->older;",
            ),
        ),
        lines=_kept,
        clues=1,
        other=(
            Change(
                "keep.c",
                "        *u = step->older;\n        free(step->before);\n        free(step);",
                "        free(step->before);\n        *u = step->older;\n        free(step);",
            ),
        ),
    ),
    Fault(
        name="widest not started",
        kind="a use of uninitialised memory",
        function="${p}_widest",
        symptom="`widest` prints numbers that cannot be",
        changes=(Change("sheet.c", "    size_t widest = 0;", "    size_t widest;"),),
        lines=_widths,
        clues=0,
    ),
    *SHARED_FAULTS,
)


def _talk(rng: Rng, names: Names, count: int) -> list[str]:
    def at() -> str:
        return str(rng.integer(1, 5))

    def pair() -> str:
        first = rng.integer(1, 4)
        return f"{first} {first + rng.integer(0, 1)}"

    kinds: list[Callable[[], str]] = [
        lambda: f"{names['append']} {_text(rng)}",
        lambda: f"{names['append']} {_text(rng)}..",
        lambda: f"{names['insert']} {at()} {_text(rng)}",
        lambda: f"{names['delete']} {pair()}",
        lambda: f"{names['join']} {at()}",
        lambda: f"{names['split']} {at()} {at()}",
        lambda: f"swap {at()} {at()}",
        lambda: f"copy {pair()}",
        lambda: f"paste {at()}",
        lambda: f"set {at()} {_text(rng)}",
        lambda: "undo",
        lambda: "trim",
        lambda: "widest",
        lambda: f"{names['find']} {word(rng, 1)}",
        lambda: names["print"],
        lambda: "hm",
    ]
    return [*_filled(rng, names, 3), *(rng.choice(kinds)() for _ in range(count)), names["print"]]


def _quiet(rng: Rng, names: Names) -> list[str]:
    return [*_filled(rng, names, 2), "hm", "swap 1 2", "swap 1 7", "undo", names["print"]]


def _answer(lines: Sequence[str], names: Names) -> str:
    return "".join(f"{line}\n" for line in _Model(names).run(lines))


class _Model:
    """The right program in Python."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._text: list[str] = []
        self._clip: list[str] = []
        self._undo: list[tuple[int, str]] = []

    def run(self, lines: Sequence[str]) -> list[str]:
        return [said for line in lines for said in self._obey(*line.partition(" ")[::2])]

    def _obey(self, verb: str, rest: str) -> list[str]:
        text, names = self._text, self._names
        numbers = [int(part) for part in rest.split()[:2] if part.isdigit()]
        if verb == names["print"]:
            return [f"{number}|{words}" for number, words in enumerate(text, start=1)]
        if verb == names["find"]:
            return [
                " ".join(["found", *(str(n) for n, words in enumerate(text, start=1) if rest.lower() in words.lower())])
            ]
        if verb == "widest":
            return [f"widest {max(map(len, text), default=0)}"]
        if verb == "undo":
            if not self._undo:
                return ["nothing"]
            at, before = self._undo.pop()
            text[at] = before
            return ["undone"]
        if verb == names["append"]:
            text.append(rest)
        elif verb == "trim":
            text[:] = [words.rstrip(".") for words in text]
        elif verb in ("copy", names["delete"]):
            if not (1 <= numbers[0] <= numbers[1] <= len(text)):
                return ["range"]
            self._range(verb, numbers[0] - 1, numbers[1])
        elif verb == "set":
            if not 1 <= numbers[0] <= len(text):
                return ["range"]
            self._undo.append((numbers[0] - 1, text[numbers[0] - 1]))
            text[numbers[0] - 1] = rest.partition(" ")[2]
        elif verb in (names["insert"], names["join"], names["split"], "swap", "paste"):
            if not self._move(verb, numbers, rest):
                return ["range"]
            self._undo.clear()
        else:
            return ["what?"]
        return [f"ok {len(text)}"]

    def _range(self, verb: str, first: int, end: int) -> None:
        if verb == "copy":
            self._clip = self._text[first:end]
        else:
            self._undo.clear()
            del self._text[first:end]

    def _move(self, verb: str, numbers: Sequence[int], rest: str) -> bool:
        """Whether it could be done."""
        text, names, at = self._text, self._names, numbers[0] - 1
        most = len(text) + {names["insert"]: 1, "paste": 1, names["join"]: -1}.get(verb, 0)
        if not 0 <= at < most:
            return False
        if verb == names["insert"]:
            text.insert(at, rest.partition(" ")[2])
        elif verb == "paste":
            text[at:at] = self._clip
        elif verb == names["join"]:
            text[at : at + 2] = [f"{text[at]} {text[at + 1]}"]
        elif verb == names["split"]:
            text[at : at + 1] = [text[at][: numbers[1] - 1], text[at][numbers[1] - 1 :]]
        else:
            if not 1 <= numbers[1] <= len(text):
                return False
            other = numbers[1] - 1
            text[at], text[other] = text[other], text[at]
        return True


EDITOR = Theme(
    name="editor",
    what="edits the ${line}s of a text, with a clipboard and undo",
    manual="""\
# ${p}

Reads commands, one a line, and prints one line for each. The first blank ends the command, single blanks end numbers,
the rest is text. ${line}s count from 1; a number that is out of range is answered by `range`, and nothing is done.
What changes something answers `ok COUNT`, COUNT being the number of ${line}s afterwards.

    $append TEXT        a new last $line
    $insert N TEXT      a new $line before the N-th (N may be one more than there are)
    $delete A B         takes ${line}s A to B out
    $join N             the N-th and the next become one, with a blank between them
    $split N C          what stands in the N-th from its C-th character on becomes a $line of its own
    swap A B            exchanges two
    copy A B            keeps copies of ${line}s A to B on the clipboard, instead of what was there
    paste N             puts the clipboard before the N-th (N may be one more than there are)
    set N TEXT          replaces the text of the N-th
    undo                takes the latest `set` back: `undone`, or `nothing`; all commands above but $append, copy
                        and set make an end of what can be undone
    trim                takes the dots at the end of every $line away
    $find WORD          `found` and the numbers of the ${line}s that hold WORD, upper and lower case being the same
    widest              `widest LENGTH`, of the longest $line
    $print              every $line: its number, `|`, its text
    anything else       `what?`
""",
    assets={
        "text.h": "text.h",
        "text.c": "text.c",
        "sheet.h": "editor/sheet.h",
        "sheet.c": "editor/sheet.c",
        "keep.c": "editor/keep.c",
        "main.c": "editor/main.c",
    },
    names=_names,
    faults=FAULTS,
    talk=_talk,
    quiet=_quiet,
    answer=_answer,
)
