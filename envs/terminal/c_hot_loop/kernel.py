"""What a kernel is: its C in several versions, how its inputs are drawn, and the host's model of what it must give.

All numbers are unsigned and wrap at the width of their C type, so a result is exact or wrong. The C texts are
`string.Template`s over the drawn constants and `$fn`; the model is Python of its own and never a translation of the
C at run time.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from string import Template
from typing import NamedTuple

from ...core import Rng

Constants = Mapping[str, int | str]
_CODES = {"uint8_t": "B", "uint16_t": "H", "uint32_t": "I", "uint64_t": "Q"}


class Array(NamedTuple):
    """A parameter or the result: `length` is C over the scalars."""

    ctype: str
    name: str
    length: str


class Input(NamedTuple):
    """One call: the scalars in order, then the arrays."""

    scalars: tuple[int, ...]
    arrays: tuple[Sequence[int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """One kind of kernel."""

    name: str
    work: str
    """What it is for, in the brief."""
    rule: str
    """What it must give; the comment in its header."""
    functions: tuple[str, ...]
    """Names to draw from."""
    scalars: tuple[str, ...]
    arrays: tuple[Array, ...]
    out: Array
    constants: Callable[[Rng], dict[str, int | str]]
    shape: Callable[[Rng, Constants], Input]
    """A large input, as the kernel meets them."""
    edges: Callable[[Rng, Constants], list[Input]]
    """Small ones, of every awkward form that the rule allows."""
    model: Callable[[Constants, Input], list[int]]
    naive: str
    fast: str
    other: str
    """Right, fast enough, and built otherwise."""
    lazy: str
    """Right, better than the naive one, and not fast enough."""
    wrong: str
    """Fast, and wrong on some input."""
    gain: int
    """About how many times fewer instructions `fast` needs than `naive` on a large input."""

    def prototype(self, constants: Constants) -> str:
        """The C function's head."""
        scalars = [f"uint32_t {name}" for name in self.scalars]
        arrays = [f"const {array.ctype} *{array.name}" for array in self.arrays]
        return f"void {constants['fn']}({', '.join([*scalars, *arrays, f'{self.out.ctype} *{self.out.name}'])})"

    def source(self, text: str, constants: Constants) -> str:
        """A whole kernel.c from one of the versions: what stands before the line `---` goes above the function."""
        above, _, body = Template(text).substitute(constants).rpartition("---\n")
        lines = "".join(
            f"    {line}\n" if line and not line.startswith("#") else f"{line}\n" for line in body.splitlines()
        )
        above = f"{above.strip()}\n\n" if above.strip() else ""
        includes = "".join(f"#include <{name}>\n" for name in ("stdlib.h", "string.h") if _uses(name, above + body))
        return f'#include "kernel.h"\n{includes}\n{above}{self.prototype(constants)}\n{{\n{lines}}}\n'

    def encode(self, given: Input) -> bytes:
        """What the driver reads: the scalars and then the arrays, little-endian."""
        parts = [struct.pack(f"<{len(given.scalars)}I", *given.scalars)]
        for array, values in zip(self.arrays, given.arrays, strict=True):
            parts.append(struct.pack(f"<{len(values)}{_CODES[array.ctype]}", *values))
        return b"".join(parts)

    def expected(self, constants: Constants, given: Input) -> bytes:
        """What the driver must write."""
        values = self.model(constants, given)
        code = _CODES[self.out.ctype]
        limit = 1 << 8 * struct.calcsize(code)
        return struct.pack(f"<{len(values)}{code}", *(value % limit for value in values))


def _uses(header: str, text: str) -> bool:
    names = {"stdlib.h": ("malloc(", "calloc(", "free("), "string.h": ("memset(", "memcpy(", "memchr(")}
    return any(name in text for name in names[header])


def number(constants: Constants, name: str) -> int:
    """A constant that is a number."""
    return int(constants[name])


def words(rng: Rng, count: int, below: int) -> list[int]:
    """`count` values below `below` from one drawn seed (a 64-bit congruential stream, top bits)."""
    state = rng.integer(1, (1 << 63) - 1)
    values = []
    for _ in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) & 0xFFFFFFFFFFFFFFFF
        values.append((state >> 24) % below)
    return values
