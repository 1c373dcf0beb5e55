"""A program that keeps named entries with tags: a hash table, chains and owned lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...core import Rng
from .fault import Change, Fault, Names, Theme
from .shared import SHARED_FAULTS, word

_VERBS = {
    "add": ("add", "new", "enter", "open"),
    "drop": ("drop", "remove", "close", "forget"),
    "show": ("show", "print", "get", "view"),
    "rename": ("rename", "call", "retitle"),
    "merge": ("merge", "fold", "absorb"),
    "list": ("list", "names", "all"),
}


def _names(rng: Rng) -> dict[str, str]:
    p, entry, tag = rng.choice(
        (("reg", "entry", "tag"), ("shelf", "item", "label"), ("depot", "crate", "mark"), ("desk", "folder", "note"))
    )
    drawn = {key: rng.choice(words) for key, words in _VERBS.items()}
    numbers = {"seed": rng.integer(1, 9999), "factor": rng.choice((31, 33, 131, 65599)), "buckets": rng.integer(3, 7)}
    rooms = {"room0": rng.choice((8, 12, 16)), "room1": rng.choice((16, 24, 32))}
    return {
        "p": p,
        "entry": entry,
        "tag": tag,
        **drawn,
        **{key: str(value) for key, value in {**numbers, **rooms}.items()},
    }


def _some(rng: Rng, count: int, longest: int = 7) -> list[str]:
    """So many different names."""
    found: dict[str, None] = {}
    while len(found) < count:
        found[word(rng, rng.integer(3, longest))] = None
    return list(found)


def _filled(rng: Rng, names: Names, count: int = 4) -> tuple[list[str], list[str]]:
    """Commands that add so many entries with two or three tags each, and the names."""
    made = _some(rng, count)
    lines = [f"{names['add']} {name}" for name in made]
    lines += [f"{names['tag']} {name} {word(rng, 4)}" for name in made for _ in range(rng.integer(2, 3))]
    return lines, made


def _drops(rng: Rng, names: Names) -> list[str]:
    lines, made = _filled(rng, names)
    return [*lines, f"{names['drop']} {made[1]}", f"{names['drop']} {made[2]}", names["list"]]


def _merges(rng: Rng, names: Names) -> list[str]:
    lines, made = _filled(rng, names)
    shown = [f"{names['show']} {made[1]}", f"{names['tag']} {made[1]} {word(rng, 5)}", f"{names['show']} {made[1]}"]
    return [*lines, f"{names['merge']} {made[0]} {made[1]}", *shown]


def _empty_merges(rng: Rng, names: Names) -> list[str]:
    into, *others = _some(rng, 4)
    lines = [f"{names['add']} {name}" for name in (into, *others)]
    for name in others:
        tags = [word(rng, 4) for _ in range(2)]
        lines += [f"{names['tag']} {name} {tag}" for tag in tags] + [f"{names['merge']} {name} {into}"]
        lines += [f"un{names['tag']} {into} {tag}" for tag in tags]
    return [*lines, f"{names['tag']} {into} {word(rng, 5)}", f"{names['show']} {into}"]


def _longer(rng: Rng, names: Names) -> list[str]:
    short, other = _some(rng, 2, 4)
    lines = [f"{names['add']} {short}", f"{names['add']} {other}"]
    return [*lines, f"{names['rename']} {short} {word(rng, rng.integer(24, 40))}", names["list"]]


def _many(rng: Rng, names: Names) -> list[str]:
    made = _some(rng, 40)
    return [
        *(f"{names['add']} {name}" for name in made),
        names["list"],
        *(f"{names['show']} {name}" for name in made[:5]),
    ]


def _tails(rng: Rng, names: Names) -> list[str]:
    lines = []
    for name in _some(rng, 2):
        tags = _some(rng, 3)
        lines += [f"{names['add']} {name}", *(f"{names['tag']} {name} {tag}" for tag in tags)]
        lines += [
            f"un{names['tag']} {name} {tags[2]}",
            f"{names['tag']} {name} {word(rng, 5)}",
            f"{names['show']} {name}",
        ]
    return lines


def _lasts(rng: Rng, names: Names) -> list[str]:
    lines, made = _filled(rng, names)
    told = [f"{names['show']} {made[0]}", "last", f"{names['show']} {made[1]}", "last"]
    return [
        *lines,
        *told,
        f"{names['drop']} {made[1]}",
        "last",
        *(f"{names['add']} {name}" for name in _some(rng, 2)),
        "last",
    ]


def _lists(rng: Rng, names: Names) -> list[str]:
    lines, _ = _filled(rng, names, 5)
    return [names["list"], *lines, names["list"]]


def _measures(rng: Rng, names: Names) -> list[str]:
    lines, made = _filled(rng, names)
    return ["stats", *lines, "stats", f"{names['drop']} {made[0]}", "stats"]


def _wordy(rng: Rng, names: Names) -> list[str]:
    lines, made = _filled(rng, names)
    return [*lines, f"{names['tag']} {made[0]} a b c d e f", " ".join(word(rng, 3) for _ in range(9)), names["list"]]


def _full(rng: Rng, names: Names) -> list[str]:
    room = int(names["room0"])
    made = [word(rng, size) for size in (room - 1, room, 2 * room - 1, 2 * room, 3)]
    return [line for name in made for line in (f"{names['add']} {name}", f"{names['show']} {name}")]


FAULTS = (
    Fault(
        name="chain read after free",
        kind="a read of freed memory",
        function="${p}_drop",
        symptom="dropping a $entry sometimes corrupts the others",
        changes=(
            Change(
                "store.c",
                "    unlink_from(s, e);\n    discard(e);\n    s->count--;",
                "    discard(e);\n    unlink_from(s, e);\n    s->count--;",
            ),
        ),
        lines=_drops,
        clues=0,
        other=(
            Change(
                "store.c",
                "    unlink_from(s, e);\n    discard(e);\n    s->count--;",
                "    s->count--;\n    unlink_from(s, e);\n    ${tag}_clear(&e->${tag}s);\n"
                "    free(e->name);\n    free(e);",
            ),
        ),
    ),
    Fault(
        name="list not cleared",
        kind="a leak",
        function="discard",
        symptom="memory grows while ${entry}s come and go",
        changes=(Change("store.c", "    ${tag}_clear(&e->${tag}s);\n    free(e->name);", "    free(e->name);"),),
        lines=_drops,
        clues=0,
    ),
    Fault(
        name="moved list still owned",
        kind="memory freed while still in use",
        function="${tag}_move",
        symptom="after `$merge` the ${tag}s of the $entry that stays are rubbish",
        changes=(
            Change(
                "lists.c",
                "    into->tail = from->tail;\n    from->head = NULL;\n    from->tail = NULL;\n",
                "    into->tail = from->tail;\n",
            ),
        ),
        lines=_merges,
        clues=2,
    ),
    Fault(
        name="tail of an emptied list",
        kind="a write to freed memory",
        function="${tag}_remove",
        symptom="`$tag` after `un$tag` goes wrong now and then",
        changes=(
            Change(
                "lists.c",
                "        if (list->tail == t)\n            list->tail = before;\n",
                "        if (list->tail == t && before)\n            list->tail = before;\n",
            ),
        ),
        lines=_empty_merges,
        clues=2,
        other=(
            Change(
                "lists.c",
                "        if (list->tail == t)\n            list->tail = before;\n",
                "        if (!t->next)\n            list->tail = before;\n",
            ),
        ),
    ),
    Fault(
        name="tail not moved back",
        kind="a write to freed memory",
        function="${tag}_remove",
        symptom="`$tag` after `un$tag` goes wrong now and then",
        changes=(Change("lists.c", "        if (list->tail == t)\n            list->tail = before;\n", ""),),
        lines=_tails,
        clues=1,
        other=(
            Change(
                "lists.c",
                "        if (list->tail == t)\n            list->tail = before;\n",
                "        if (!t->next)\n            list->tail = before;\n",
            ),
        ),
    ),
    Fault(
        name="renamed in place",
        kind="a write past the end of a heap block",
        function="${p}_rename",
        symptom="`$rename` to a long name crashes later, somewhere else",
        changes=(
            Change(
                "store.c",
                "    free(e->name);\n    e->name = text_copy(name);\n    link_in(s, e);",
                "    strcpy(e->name, name);\n    link_in(s, e);",
            ),
        ),
        lines=_longer,
        clues=0,
        other=(
            Change(
                "store.c",
                "    free(e->name);\n    e->name = text_copy(name);\n    link_in(s, e);",
                "    e->name = realloc(e->name, strlen(name) + 1);\n    strcpy(e->name, name);\n    link_in(s, e);",
            ),
        ),
    ),
    Fault(
        name="buckets not cleared",
        kind="a use of uninitialised memory",
        function="grow",
        symptom="with many ${entry}s it crashes on some machines",
        changes=(
            Change(
                "store.c",
                "    s->num_buckets *= 2;\n    s->buckets = calloc(s->num_buckets, sizeof *s->buckets);",
                "    s->num_buckets *= 2;\n    s->buckets = malloc(s->num_buckets * sizeof *s->buckets);",
            ),
        ),
        lines=_many,
        clues=1,
        other=(
            Change(
                "store.c",
                "    s->num_buckets *= 2;\n    s->buckets = calloc(s->num_buckets, sizeof *s->buckets);",
                "    s->num_buckets *= 2;\n    s->buckets = malloc(s->num_buckets * sizeof *s->buckets);\n"
                "    memset(s->buckets, 0, s->num_buckets * sizeof *s->buckets);",
            ),
        ),
    ),
    Fault(
        name="borrowed last name",
        kind="a read of freed memory",
        function="${p}_remember",
        symptom="`last` prints rubbish once in a while",
        changes=(
            Change(
                "store.c",
                "    char *copy = text_copy(name);\n    free(s->last);\n    s->last = copy;",
                "    const struct ${entry} *e = ${p}_find(s, name);\n    s->last = e->name;",
            ),
            Change("store.c", "    free(s->buckets);\n    free(s->last);\n", "    free(s->buckets);\n"),
        ),
        lines=_lasts,
        clues=2,
        other=(
            Change(
                "store.c",
                "    char *copy = text_copy(name);\n    free(s->last);\n    s->last = copy;",
                "    s->last = realloc(s->last, strlen(name) + 1);\n    strcpy(s->last, name);",
            ),
        ),
    ),
    Fault(
        name="last name leaks",
        kind="a leak",
        function="${p}_remember",
        symptom="memory grows with every `$show`",
        changes=(
            Change(
                "store.c",
                "    char *copy = text_copy(name);\n    free(s->last);\n    s->last = copy;",
                "    s->last = text_copy(name);",
            ),
        ),
        lines=_lasts,
        clues=0,
    ),
    Fault(
        name="no room for the end",
        kind="a write past the end of a heap block",
        function="${p}_names",
        symptom="`$list` crashes on some machines",
        changes=(Change("store.c", "malloc((s->count + 1) * sizeof *names)", "malloc(s->count * sizeof *names)"),),
        lines=_lists,
        clues=0,
    ),
    Fault(
        name="statistics not started",
        kind="a use of uninitialised memory",
        function="${p}_measure",
        symptom="`stats` prints numbers that cannot be",
        changes=(
            Change(
                "store.c",
                "    struct ${p}_stats found = {0, 0, 0};\n",
                "    struct ${p}_stats found;\n    found.entries = found.${tag}s = 0;\n",
            ),
        ),
        lines=_measures,
        clues=0,
        other=(
            Change(
                "store.c",
                "    struct ${p}_stats found = {0, 0, 0};\n",
                "    struct ${p}_stats found;\n    memset(&found, 0, sizeof found);\n",
            ),
        ),
    ),
    Fault(
        name="one word too many",
        kind="a write past the end of an array on the stack",
        function="cut",
        symptom="lines of many words crash it",
        changes=(Change("main.c", "    while (count < MOST_WORDS) {", "    while (count <= MOST_WORDS) {"),),
        lines=_wordy,
        clues=1,
    ),
    Fault(
        name="text exactly full",
        kind="a write past the end of a heap block",
        function="text_add",
        symptom="`$show` goes wrong for ${entry}s of certain lengths",
        changes=(
            Change(
                "text.c",
                "    if (t->size + length + 1 > t->room) {\n        while (t->size + length + 1 > t->room)",
                "    if (t->size + length > t->room) {\n        while (t->size + length > t->room)",
            ),
        ),
        lines=_full,
        clues=1,
        other=(
            Change(
                "text.c",
                "    if (t->size + length + 1 > t->room) {\n        while (t->size + length + 1 > t->room)",
                "    if (t->size + length >= t->room) {\n        while (t->room <= t->size + length)",
            ),
        ),
    ),
    *SHARED_FAULTS,
)


def _talk(rng: Rng, names: Names, count: int) -> list[str]:
    made = _some(rng, 9)
    lines = [f"{names['add']} {name}" for name in made[:4]]
    kinds: list[Callable[[], str]] = [
        lambda: f"{names['add']} {rng.choice(made)}",
        lambda: f"{names['tag']} {rng.choice(made)} {word(rng, 3)}",
        lambda: f"{names['tag']} {rng.choice(made)} {rng.choice(made)}",
        lambda: f"un{names['tag']} {rng.choice(made)} {rng.choice(made)}",
        lambda: f"{names['show']} {rng.choice(made)}",
        lambda: f"{names['drop']} {rng.choice(made)}",
        lambda: f"{names['rename']} {rng.choice(made)} {rng.choice(made)}",
        lambda: f"{names['merge']} {rng.choice(made)} {rng.choice(made)}",
        lambda: names["list"],
        lambda: "last",
        lambda: "stats",
        lambda: "hm",
    ]
    return [*lines, *(rng.choice(kinds)() for _ in range(count))]


def _quiet(rng: Rng, names: Names) -> list[str]:
    made = _some(rng, 2)
    return [
        *(f"{names['add']} {name}" for name in made),
        "hm",
        f"un{names['tag']} {made[0]} none",
        f"{names['rename']} x {made[0]}",
    ]


def _answer(lines: Sequence[str], names: Names) -> str:
    return "".join(f"{line}\n" for line in _Model(names).run(lines))


class _Model:
    """The right program in Python."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._entries: dict[str, list[str]] = {}
        self._last = ""

    def run(self, lines: Sequence[str]) -> list[str]:
        return [said for line in lines if (words := line.split()[:4]) for said in self._obey(words)]

    def _obey(self, words: list[str]) -> list[str]:
        entries, names = self._entries, self._names
        match words:
            case [verb, name] if verb == names["add"]:
                known = name in entries
                entries.setdefault(name, [])
                return [f"{'exists' if known else 'added'} {name}"]
            case [verb, name] if verb == names["drop"]:
                return [f"{'no' if entries.pop(name, None) is None else 'dropped'} {name}"]
            case [verb, name] if verb == names["show"]:
                if name not in entries:
                    return [f"no {name}"]
                self._last = name
                return [" ".join([f"{name}:", *entries[name]])]
            case [verb, old, new] if verb == names["rename"]:
                if old not in entries:
                    return [f"no {old}"]
                if new in entries:
                    return [f"exists {new}"]
                entries[new] = entries.pop(old)
                return [f"renamed {new}"]
            case [verb, old, into] if verb == names["merge"]:
                return [self._merge(old, into)]
            case [verb, name, tag] if verb == names["tag"]:
                if name in entries:
                    entries[name].append(tag)
                return [f"{'ok' if name in entries else 'no'} {name}"]
            case [verb, name, tag] if verb == "un" + names["tag"]:
                if tag not in entries.get(name, []):
                    return [f"none {tag}"]
                entries[name].remove(tag)
                return [f"ok {tag}"]
            case [verb] if verb == names["list"]:
                return [" ".join(["names:", *sorted(entries)])]
            case ["last"]:
                return [f"last {self._last or '-'}"]
            case ["stats"]:
                return [f"stats {len(entries)} {sum(map(len, entries.values()))} {max(map(len, entries), default=0)}"]
            case _:
                return ["what?"]

    def _merge(self, old: str, into: str) -> str:
        entries = self._entries
        if old not in entries or into not in entries:
            return f"no {into if old in entries else old}"
        if old == into:
            return f"same {into}"
        entries[into] += entries.pop(old)
        return f"merged {into}"


REGISTRY = Theme(
    name="registry",
    what="keeps named ${entry}s with ${tag}s",
    manual="""\
# ${p}

Reads commands, one a line, words apart by blanks (words after the fourth are ignored), and prints one line for each;
an empty line says nothing.

    $add NAME           a new $entry: `added NAME`, or `exists NAME`
    $drop NAME          `dropped NAME`, or `no NAME`
    $tag NAME WORD      puts a $tag at the end: `ok NAME`, or `no NAME`
    un$tag NAME WORD    takes the first such $tag away: `ok WORD`, or `none WORD`
    $show NAME          `NAME: WORD WORD…`, or `no NAME`
    $rename OLD NEW     `renamed NEW`, `no OLD`, or `exists NEW`
    $merge FROM INTO    moves all ${tag}s to the end of INTO's and drops FROM: `merged INTO`, `same INTO`, or `no` and
                        the name that is missing (FROM first)
    $list               `names:` and every name, in the order of their bytes
    last                `last NAME`: the name that `$show` last found, as it was then; `last -` before
    stats               `stats ENTRIES ${tag}s LONGEST`: how many of each, and the length of the longest name
    anything else       `what?`
""",
    assets={
        "text.h": "text.h",
        "text.c": "text.c",
        "store.h": "registry/store.h",
        "store.c": "registry/store.c",
        "lists.c": "registry/lists.c",
        "main.c": "registry/main.c",
    },
    names=_names,
    faults=FAULTS,
    talk=_talk,
    quiet=_quiet,
    answer=_answer,
)
