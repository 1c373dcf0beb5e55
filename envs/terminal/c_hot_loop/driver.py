"""The files round a kernel: its header, the driver that feeds it, the Makefile, and the stub that measures the driver.

The driver reads one whole input from standard input and writes the result to standard output with plain system calls,
so that next to nothing but the kernel is counted.
"""

from __future__ import annotations

from string import Template

from .kernel import Constants, Kernel

FLAGS = ("-std=c11", "-O2", "-g", "-no-pie", "-Wall", "-Wextra")

_HEADER = """\
#ifndef KERNEL_H
#define KERNEL_H

#include <stddef.h>
#include <stdint.h>

/* @RULE@
 */
@PROTOTYPE@;

#endif
"""
_MAIN = """\
/* Reads one input from standard input, calls the kernel once, writes its result to standard output. */
#include "kernel.h"
#include <stdlib.h>
#include <unistd.h>

static void take(void *to, size_t size)
{
    char *at = to;
    while (size > 0) {
        ssize_t got = read(0, at, size);
        if (got <= 0)
            _exit(3);
        at += got;
        size -= (size_t)got;
    }
}

int main(void)
{
@BODY@
    const char *from = (const char *)@OUT@;
    while (size > 0) {
        ssize_t put = write(1, from, size);
        if (put <= 0)
            _exit(4);
        from += put;
        size -= (size_t)put;
    }
    return 0;
}
"""

MAKEFILE = """\
CFLAGS = {flags}

bench: main.c kernel.c kernel.h
\tgcc $(CFLAGS) main.c kernel.c -o bench

check: bench
\t@for name in data/*.in; do ./bench < $$name | cmp - $${{name%.in}}.out && echo "$$name right"; done

count: bench
\t@valgrind --tool=callgrind --callgrind-out-file=callgrind.out ./bench \\
\t\t< data/large.in 2>&1 > /dev/null | grep Collected

.PHONY: check count
"""


def makefile() -> str:
    """`make check` compares with the known results, `make count` counts."""
    return MAKEFILE.format(flags=" ".join(FLAGS))


def header(kernel: Kernel, constants: Constants) -> str:
    """kernel.h: the rule and the prototype."""
    rule = Template(kernel.rule).substitute(constants)
    return _HEADER.replace("@RULE@", rule).replace("@PROTOTYPE@", kernel.prototype(constants))


def main(kernel: Kernel, constants: Constants) -> str:
    """main.c."""
    lines = [f"uint32_t {name};\n    take(&{name}, sizeof {name});" for name in kernel.scalars]
    for array in kernel.arrays:
        lines.append(f"size_t {array.name}_size = (size_t)({array.length}) * sizeof({array.ctype});")
        lines.append(f"{array.ctype} *{array.name} = malloc({array.name}_size + 1);")
        lines.append(f"take({array.name}, {array.name}_size);")
    out = kernel.out
    lines.append(f"size_t size = (size_t)({out.length}) * sizeof({out.ctype});")
    lines.append(f"{out.ctype} *{out.name} = malloc(size + 1);")
    names = [*kernel.scalars, *(array.name for array in kernel.arrays), out.name]
    lines.append(f"{constants['fn']}({', '.join(names)});")
    body = "\n".join(f"    {line}" for line in lines)
    return _MAIN.replace("@BODY@", body).replace("@OUT@", out.name)


def stub(kernel: Kernel, constants: Constants) -> str:
    """A kernel that does nothing: what the rest of the process costs."""
    used = "".join(
        f"    (void){name};\n" for name in [*kernel.scalars, *(array.name for array in kernel.arrays), kernel.out.name]
    )
    return f'#include "kernel.h"\n\n{kernel.prototype(constants)}\n{{\n{used}}}\n'
