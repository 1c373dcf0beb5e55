"""Sums over a moving window."""

from __future__ import annotations

from itertools import accumulate

from ....core import Rng
from ..kernel import Array, Constants, Input, Kernel, number, words


def _constants(rng: Rng) -> dict[str, int | str]:
    return {"X": rng.integer(1, 0xFFFF), "A": rng.integer(3, 99) * 2 + 1}


def _shape(rng: Rng, constants: Constants) -> Input:
    n, w = rng.integer(5000, 5600), rng.integer(140, 165)
    return Input((n, w), (words(rng.child("x"), n, 1 << 32),))


def _edges(rng: Rng, constants: Constants) -> list[Input]:
    sizes = ((0, 4), (1, 1), (5, 9), (64, 64), (300, 1), (257, 16))
    return [Input((n, w), (words(rng.child(f"x {n}"), n, 1 << 32),)) for n, w in sizes]


def _model(constants: Constants, given: Input) -> list[int]:
    n, w = given.scalars
    flip, scale = number(constants, "X"), number(constants, "A")
    sums = [0, *accumulate((value ^ flip) * scale for value in given.arrays[0])]
    return [sums[i + 1] - sums[max(0, i + 1 - w)] for i in range(n)]


MOVING_SUM = Kernel(
    name="moving sum",
    work="smooths a signal over a trailing window",
    rule="out[i] = the sum of (x[j] ^ $X) * $A over the last w positions j up to and including i (fewer at the\n"
    " * start), modulo 2^32, for i in [0, n). w is at least 1 and may exceed n.",
    functions=("moving_sum", "trailing_sum", "window_energy", "smooth_trailing"),
    scalars=("n", "w"),
    arrays=(Array("uint32_t", "x", "n"),),
    out=Array("uint32_t", "out", "n"),
    constants=_constants,
    shape=_shape,
    edges=_edges,
    model=_model,
    naive="""
---
for (uint32_t i = 0; i < n; i++) {
    uint32_t first = i + 1 < w ? 0 : i + 1 - w;
    out[i] = 0;
    for (uint32_t j = first; j <= i; j++)
        out[i] += (x[j] ^ $X) * $A;
}
""",
    fast="""
---
uint32_t sum = 0;
uint32_t head = w < n ? w : n;
for (uint32_t i = 0; i < head; i++) {
    sum += x[i] ^ $X;
    out[i] = sum * $A;
}
for (uint32_t i = head; i < n; i++) {
    sum += (x[i] ^ $X) - (x[i - w] ^ $X);
    out[i] = sum * $A;
}
""",
    other="""
---
uint32_t sum = 0;
for (uint32_t i = 0; i < n; i++) {
    sum += (x[i] ^ $X) * $A;
    out[i] = sum;
}
for (uint32_t i = n; i-- > w;)
    out[i] -= out[i - w];
""",
    lazy="""
---
for (uint32_t i = 0; i < n; i++) {
    uint32_t j = i + 1 < w ? 0 : i + 1 - w, a = 0, b = 0;
    for (; j + 1 <= i; j += 2) {
        a += x[j] ^ $X;
        b += x[j + 1] ^ $X;
    }
    if (j <= i)
        a += x[j] ^ $X;
    out[i] = (a + b) * $A;
}
""",
    wrong="""
---
uint32_t sum = 0;
for (uint32_t i = 0; i < n; i++) {
    sum += x[i] ^ $X;
    if (i > w)
        sum -= x[i - w] ^ $X;
    out[i] = sum * $A;
}
""",
    gain=110,
)
