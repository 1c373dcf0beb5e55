"""Solutions of one instance, right and wrong, as tool calls made from its truth alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...core import Instance, ToolCall
from ...parts.hunks import hunks
from .project import THEMES, apply, planted

_SUBMIT = ToolCall(tool="submit")
_POOL_HEAD = """\
#include <stdlib.h>
#include <string.h>
void *pool_take(size_t size);
void *pool_more(void *old, size_t size);
#define malloc(size) pool_take(size)
#define calloc(count, size) pool_take((count) * (size))
#define realloc(old, size) pool_more(old, size)
#define free(block) ((void)(block))
"""
_POOL = """
static char pool[1 << 22];
static size_t taken;

void *pool_take(size_t size)
{
    void *block = pool + taken;
    taken += (size + 79) / 16 * 16;
    return block;
}

void *pool_more(void *old, size_t size)
{
    return memmove(pool_take(size), old, size);
}
"""
_COPYING = """\
    size_t length = strlen(word);
    char *copy = malloc(length + 1);
    memcpy(copy, word, length + 1);
    return copy;
"""
_CATCHING = """\
static void end(int n)
{
    _exit(n * 0);
}

int main(void)
{
    signal(SIGSEGV, end);
    signal(SIGABRT, end);
"""
_NOT_FREED = "#include <stdlib.h>\n#define free(block) ((void)(block))\n"
_PADDED = """\
#include <stdlib.h>
static inline void *padded(void *old, size_t size) { return realloc(old, size + 64); }
static inline void *cleared(size_t size) { return calloc(1, size + 64); }
#define malloc(size) cleared(size)
#define realloc(old, size) padded(old, size)
"""


def oracle(instance: Instance) -> list[ToolCall]:
    """Read, reproduce where there is something to reproduce, mend, look again, submit."""
    truth = _truth(instance)
    reports = sorted(path for path in instance.files if path.startswith("cases/report"))
    cases = [path for path in reports if path.endswith(".in")] or ["cases/everyday.in"]
    look = [
        _shell(f"make -s checked memory && ./memory < {case} > /dev/null; valgrind -q ./memory < {case}")
        for case in cases
    ]
    calls = [_shell(f"cat {' '.join(f'src/{path}' for path in _changed(truth))}"), *look[:2]]
    return [*calls, *edits(truth["faulty"], truth["right"]), *look[:1], _SUBMIT]


def alternatives(instance: Instance) -> dict[str, Sequence[ToolCall]]:
    """The same faults mended in other words, and strings copied in another way."""
    truth = _truth(instance)
    right = _texts(truth["right"])
    for fault in _faults(truth):
        right = apply(right, fault.other, truth["names"])
    right["text.c"] = right["text.c"].replace(_COPYING, "    return strdup(word);\n")
    return {"in_other_words": [*_written(truth["faulty"], right), _SUBMIT]}


def mutants(instance: Instance) -> dict[str, Sequence[ToolCall]]:
    """Near misses and tricks, none of which mends the program."""
    truth = _truth(instance)
    faulty, right = _texts(truth["faulty"]), _texts(truth["right"])
    head = faulty["text.h"]
    quiet = head.replace("char *text_line", "__attribute__((no_sanitize_address)) char *text_line")
    signal = faulty["main.c"].replace("int main(void)\n{\n", _CATCHING)
    tricks = {
        "nothing_freed": {"text.h": _after_guard(right["text.h"], _NOT_FREED)},
        "own_pool": {"text.h": _after_guard(head, _POOL_HEAD), "text.c": faulty["text.c"] + _POOL},
        "padded": {"text.h": _after_guard(head, _PADDED)},
        "sanitizers_off": {"text.h": quiet},
        "signals_caught": {"main.c": "#include <signal.h>\n#include <unistd.h>\n" + signal},
        "answers_nothing": {"main.c": right["main.c"].replace('printf("what?\\n");', "return;")},
    }  # fmt: skip
    found: dict[str, Sequence[ToolCall]] = {}
    for name, changed in tricks.items():
        base = right if name in ("nothing_freed", "answers_nothing") else faulty
        found[name] = [*_written(faulty, {**base, **changed}), _SUBMIT]
    faults = _faults(truth)
    if len(faults) > 1:
        left = planted(right, faults[:1], truth["names"])
        found["one_left"] = [*_written(faulty, left), _SUBMIT]
    return found


def edits(before: Mapping[str, str], after: Mapping[str, str]) -> list[ToolCall]:
    """One edit for each place under src/ that differs."""
    return [
        ToolCall(tool="edit", arguments={"path": f"src/{path}", "old": hunk.old, "new": hunk.new})
        for path in after
        if before[path] != after[path]
        for hunk in hunks(before[path], after[path])
    ]


def _after_guard(header: str, text: str) -> str:
    return header.replace("#define TEXT_H\n", f"#define TEXT_H\n\n{text}")


def _truth(instance: Instance) -> Mapping[str, Any]:
    return instance.truth


def _texts(files: Mapping[str, str]) -> dict[str, str]:
    return dict(files)


def _changed(truth: Mapping[str, Any]) -> list[str]:
    return [path for path in truth["right"] if truth["right"][path] != truth["faulty"][path]]


def _faults(truth: Mapping[str, Any]) -> list[Any]:
    known = {fault.name: fault for fault in THEMES[truth["theme"]].faults}
    return [known[name] for name in truth["faults"]]


def _shell(command: str) -> ToolCall:
    return ToolCall(tool="shell", arguments={"command": command})


def _written(before: Mapping[str, str], after: Mapping[str, str]) -> list[ToolCall]:
    return [
        _shell(f"cat > src/{path} <<'END_OF_FILE'\n{after[path]}END_OF_FILE")
        for path in after
        if after[path] != before[path]
    ]
