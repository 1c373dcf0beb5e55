"""Solutions of one instance, right and wrong, as tool calls made from its truth alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...core import Instance, ToolCall
from .grading import KERNELS
from .kernel import Kernel

_SUBMIT = ToolCall(tool="submit")
PATH = "kernel.c"


def oracle(instance: Instance) -> list[ToolCall]:
    """Read, count, write the fast kernel, check and count again."""
    kernel, constants = _kernel(instance)
    look = ToolCall(tool="shell", arguments={"command": "cat kernel.h kernel.c && make -s check count"})
    again = ToolCall(tool="shell", arguments={"command": "make -s check count"})
    return [look, _write(kernel.source(kernel.fast, constants)), again, _SUBMIT]


def alternatives(instance: Instance) -> dict[str, Sequence[ToolCall]]:
    """Another fast kernel."""
    kernel, constants = _kernel(instance)
    return {"built_otherwise": [_write(kernel.source(kernel.other, constants)), _SUBMIT]}


def mutants(instance: Instance) -> dict[str, Sequence[ToolCall]]:
    """Too slow, not exact, or not work at all."""
    kernel, constants = _kernel(instance)
    naive = kernel.source(kernel.naive, constants)
    texts = {
        "better_but_slow": kernel.source(kernel.lazy, constants),
        "wrong_at_an_edge": kernel.source(kernel.wrong, constants),
        "does_nothing": _emptied(kernel, constants),
        "answers_remembered": _remembered(kernel, constants),
        "work_before_main": _BEFORE + naive,
        "work_in_a_child": _forked(naive, str(constants["fn"]), kernel),
        "sees_the_counter": naive + _WATCH,
        "flags_of_its_own": '#pragma GCC optimize("O3,unroll-loops")\n#pragma GCC target("avx2")\n' + naive,
    }
    return {name: [_write(text), _SUBMIT] for name, text in texts.items()}


_BEFORE = """\
#include <stdlib.h>
static void *early;
__attribute__((constructor)) static void begin(void)
{
    early = malloc(1 << 20);
    free(early);
}
"""
_WATCH = """
int watched(void);
int watched(void)
{
    uint64_t arguments[6] = {0x1001}, result = 0;
    __asm__ volatile("rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi; xchgq %%rbx, %%rbx"
                     : "=d"(result) : "a"(arguments), "0"(result) : "cc", "memory");
    return (int)result;
}
"""


def _emptied(kernel: Kernel, constants: Mapping[str, int | str]) -> str:
    names = [*kernel.scalars, *(array.name for array in kernel.arrays), kernel.out.name]
    used = "".join(f"    (void){name};\n" for name in names)
    return f'#include "kernel.h"\n\n{kernel.prototype(constants)}\n{{\n{used}}}\n'


def _remembered(kernel: Kernel, constants: Mapping[str, int | str]) -> str:
    """Keeps the first answer and gives it again for a call of the same size; the next process remembers nothing."""
    text = kernel.source(kernel.naive, constants)
    size = f"(size_t)({kernel.out.length}) * sizeof({kernel.out.ctype})"
    head = kernel.prototype(constants)
    slow = text.replace(head, head.replace(f"void {constants['fn']}(", "static void first_time("))
    names = ", ".join([*kernel.scalars, *(array.name for array in kernel.arrays), kernel.out.name])
    return f"""{slow}
#include <string.h>
#include <stdlib.h>
static void *kept;
static size_t kept_size;

{head}
{{
    size_t size = {size};
    if (kept && kept_size == size) {{
        memcpy({kernel.out.name}, kept, size);
        return;
    }}
    first_time({names});
    free(kept);
    kept_size = size;
    kept = malloc(size + 1);
    memcpy(kept, {kernel.out.name}, size);
}}
"""


def _forked(naive: str, function: str, kernel: Kernel) -> str:
    return naive.replace(
        '#include "kernel.h"\n', '#include "kernel.h"\n#include <sys/wait.h>\n#include <unistd.h>\n', 1
    ) + (
        "\nint apart(void);\nint apart(void)\n{\n    int state = 0;\n    if (fork() == 0)\n        _exit(0);\n"
        "    return wait(&state);\n}\n"
    )


def _kernel(instance: Instance) -> tuple[Kernel, Mapping[str, Any]]:
    truth: Mapping[str, Any] = instance.truth
    return KERNELS[truth["kernel"]], truth["constants"]


def _write(text: str) -> ToolCall:
    return ToolCall(tool="shell", arguments={"command": f"cat > {PATH} <<'END_OF_FILE'\n{text}END_OF_FILE"})
