"""Hidden trees: plain ones, and ones full of the names that a category of faults takes for something else.

A name that a faulty script would split or expand stands beside the files that it would then hit by mistake.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ...core import Rng
from .model import Tree, World, parent
from .script import Plan

PLAIN = ("north", "harbour", "batch-17", "week_04", "summary", "ledger2", "annex")
STEMS: Mapping[str, tuple[bytes, ...]] = {
    "plain": (),
    "spaces": (b"%a %b", b"%b  %a", b"%a %b %c", b"final %c"),
    "globs": (b"%a[1]", b"*", b"%b?", b"[%a-z]*", b"%c*", b"?"),
    "dashes": (b"-%a", b"--%b", b"-rf", b"-n", b"--help", b"-", b"-e %c"),
    "quoting": (
        b"%a's",
        b'"%b"',
        b"%a\\n%b",
        b"back\\\\%c",
        b"$HOME",
        b"`id`",
        b"%a;%b",
        b"&%c",
        b"#%a",
        b"%b]",
        b"100%",
    ),
    "edges": (b" %a", b"%b ", b"\t%c", b"%a\t", b"  ", b"~%b"),
    "newlines": (b"%a\n%b", b"\n%c", b"%b\n", b"%a \n%c\n", b"\n"),
    "hidden": (b".%a", b"..%b", b"...", b".%c d"),
}
"""Category → stems, with `%a`, `%b`, `%c` for plain words."""
BESIDE: Mapping[str, tuple[bytes, ...]] = {
    "spaces": (b"%a", b"%b", b"%c", b"final"),
    "globs": (b"%a1", b"%bx", b"%c", b"q"),
    "quoting": (b"%a", b"%b", b"%anb"),
    "edges": (b"%a", b"%b", b"%c"),
    "newlines": (b"%a", b"%b", b"%c"),
    "hidden": (b"%a", b"%b"),
}
LEVELS: tuple[tuple[str, ...], ...] = (
    ("plain", "spaces", "globs"),
    ("plain", "spaces", "globs", "dashes", "quoting", "edges"),
    ("plain", "spaces", "globs", "dashes", "quoting", "edges", "newlines", "hidden", "missing"),
    ("plain", "spaces", "globs", "dashes", "quoting", "edges", "newlines", "hidden", "missing", "paths", "failure"),
    (
        *("plain", "spaces", "globs", "dashes", "quoting", "edges", "newlines", "hidden", "missing"),
        *("paths", "failure", "signal", "locked"),
    ),
)
"""What is tried at each level; a category is one check."""
_SIGNALS = (1, 2, 15)
_MOST = 5
"""Further hostile stems in one tree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One run: the trees it begins with and how the script is called."""

    category: str
    world: World
    home: Tree = field(default_factory=dict[bytes, bytes])
    """What else lies in the directory where the script is started, and must not change."""
    source: bytes = b"in"
    target: bytes = b"out"
    """Names of the two folders in that directory."""
    relative: bool = False
    """Whether the script gets them as relative paths."""
    temporary: bytes = b"tmp"
    """Name of the folder that TMPDIR names."""


def draw(plan: Plan, category: str, rng: Rng) -> Case:
    """A case of a category."""
    a, b, c = (word.encode() for word in rng.sample(PLAIN, 3))

    def stems(texts: Sequence[bytes]) -> list[bytes]:
        return [text.replace(b"%a", a).replace(b"%b", b).replace(b"%c", c) for text in texts]

    names = category if category in STEMS else rng.choice(("plain", "spaces", "globs"))
    first, rest = stems(STEMS[names])[:1], stems(STEMS[names])[1:]
    hostile = [*first, *rng.sample(rest, min(_MOST, len(rest)))]
    world = World(tool_lines=_lines(rng.child("tool")))
    world.target[plan.words["FEED"].encode()] = b"as of last time\n"
    if category == "missing":
        _fill_sparsely(plan, world, rng)
    else:
        _fill(plan, world, rng, hostile, [*stems(BESIDE.get(names, ())), a, b, c])
    home: Tree = {b"notes.txt": b"mine\n"}
    if category != "plain":
        home |= {b"stray." + plan.words[word].encode(): b"mine\n" for word in ("EXT", "OLD")}
        home |= {plan.words["SPOOL"].encode() + b"-of-mine": b"mine\n", a: b"mine\n"}
    world.locked = category == "locked"
    world.tool_status = rng.integer(2, 60) if category == "failure" else 0
    world.signal = rng.choice(_SIGNALS) if category == "signal" else 0
    if category != "paths":
        return Case(category=category, world=world, home=home)
    dash = b"-" if plan.locks else b""
    return Case(
        category=category,
        world=world,
        home=home,
        source=dash + rng.choice((b"%s drop" % a, b"[%s]" % a, b"in *")),
        target=dash + rng.choice((b"%s out" % b, b"out [ab]", b"what?")),
        relative=bool(dash),
        temporary=b"tmp of %s" % c,
    )


def _lines(rng: Rng) -> tuple[bytes, ...]:
    texts = (b"%s %d" % (word.encode(), rng.integer(1, 99)) for word in (*PLAIN, "Zeta", "alpha", "* *", "-n x"))
    return tuple(rng.shuffled([*texts, b"north 7", b"north 7", b"  spaced  out", b"back\\slash\\t"]))


def _fill_sparsely(plan: Plan, world: World, rng: Rng) -> None:
    """Nothing to do anywhere."""
    for word in ("LIST", "KEEP"):
        world.source[plan.words[word].encode()] = b""
    world.source[b"readme"] = b"x" * rng.integer(1, 50)


def _fill(plan: Plan, world: World, rng: Rng, hostile: Sequence[bytes], plain: Sequence[bytes]) -> None:
    words = {name: word.encode() for name, word in plan.words.items()}
    ext, old, new = (b"." + words[name] for name in ("EXT", "OLD", "NEW"))

    def add(path: bytes) -> None:
        folders = _above(path)
        if path not in world.folders and path not in world.source and not any(one in world.source for one in folders):
            world.source[path] = b"%d\n" % rng.integer(0, 10**9) if rng.integer(0, 4) else b""
            world.folders.update(folders)

    folders = [b"", plain[0] + b".d", b"set" + old + b".d" if hostile else b"set", *(hostile[:2] or [b"sub"])]
    folders.append(folders[3] + b"/" + (hostile[-1] if hostile else b"deep"))
    for index, stem in enumerate(hostile):
        beside = plain[index % len(plain)]
        for suffix in (ext, old, b""):
            folder = rng.choice(folders) if suffix else b""
            add(_below(folder, stem + suffix))
            add(_below(folder, beside + suffix))
    for folder in folders:
        for suffix in (ext, old):
            add(_below(folder, rng.choice(plain) + suffix))
    for stem in hostile:
        add(_below(b"fetched", stem + b"/" + plain[0] + ext))  # a folder that collecting leaves empty
    add(plain[0] + old)
    add(plain[0] + new)  # taken: the file with the old ending must stay
    for word in ("FOLDER", "SPOOL"):
        for stem in [*hostile, *plain]:
            add(_below(words[word], stem))
        add(_below(words[word], b"nested/" + plain[0]))
    world.target[_below(words["SUB"], plain[0] + ext)] = b"from last time\n"

    own = [path for path in world.source if b"\n" not in path and parent(path) not in (words["FOLDER"], words["SPOOL"])]
    risky = [path for path in own if any(path == stem or path.endswith(b"/" + stem) for stem in hostile)]
    chosen = [*rng.sample(own, min(6, len(own))), *risky[:6], b"gone/" + plain[1], *([] if not hostile else [b""])]
    names = [path[len(words["FOLDER"]) + 1 :] for path in world.source if parent(path) == words["FOLDER"]]
    kept = [name for name in names if b"\n" not in name and (name in hostile or rng.integer(0, 2) == 0)]
    if all(name in kept for name in plain):
        kept.remove(plain[0])
    end = b"\n" if not hostile or rng.integer(0, 1) else b""
    world.source[words["LIST"]] = b"\n".join(rng.shuffled(list(dict.fromkeys(chosen)))) + end
    world.source[words["KEEP"]] = b"\n".join([*kept, b"not-there"]) + b"\n"


def _below(folder: bytes, name: bytes) -> bytes:
    return folder + b"/" + name if folder else name


def _above(path: bytes) -> list[bytes]:
    parts = path.split(b"/")
    return [b"/".join(parts[:count]) for count in range(1, len(parts))]
