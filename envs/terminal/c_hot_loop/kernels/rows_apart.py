"""Differences between all pairs of rows."""

from __future__ import annotations

from collections import Counter

from ....core import Rng
from ..kernel import Array, Constants, Input, Kernel, number, words


def _constants(rng: Rng) -> dict[str, int | str]:
    return {"A": rng.integer(2, 99), "B": rng.integer(100, 999)}


def _shape(rng: Rng, constants: Constants) -> Input:
    rows, k = rng.integer(106, 116), rng.integer(100, 110)
    symbols = rng.choice((4, 20, 60))
    return Input((rows, k), (words(rng.child("cells"), rows * k, symbols),))


def _edges(rng: Rng, constants: Constants) -> list[Input]:
    sizes = ((0, 4, 9), (1, 7, 9), (2, 0, 9), (30, 11, 256), (300, 3, 256), (9, 40, 2))
    return [Input((r, k), (words(rng.child(f"{r} {k}"), r * k, symbols),)) for r, k, symbols in sizes]


def _model(constants: Constants, given: Input) -> list[int]:
    rows, k = given.scalars
    plain, weighted = 0, 0
    for column in range(k):
        counts = Counter(given.arrays[0][column::k][:rows])
        apart = (rows * (rows - 1) - sum(count * (count - 1) for count in counts.values())) // 2
        plain += apart
        weighted += apart * (number(constants, "A") * column + number(constants, "B"))
    return [plain, weighted]


ROWS_APART = Kernel(
    name="rows apart",
    work="measures how far apart the rows of an alignment are",
    rule="out[0]: over all pairs of the rows (k bytes each), the number of columns in which the two differ, added up;\n"
    " * out[1]: the same with each differing column c (from 0) counted $A * c + $B times; both modulo 2^64.",
    functions=("rows_apart", "alignment_diversity", "pairwise_differences", "total_hamming"),
    scalars=("rows", "k"),
    arrays=(Array("uint8_t", "cells", "rows * k"),),
    out=Array("uint64_t", "out", "2"),
    constants=_constants,
    shape=_shape,
    edges=_edges,
    model=_model,
    naive="""
---
out[0] = out[1] = 0;
for (uint32_t a = 0; a < rows; a++)
    for (uint32_t b = a + 1; b < rows; b++)
        for (uint32_t c = 0; c < k; c++)
            if (cells[a * k + c] != cells[b * k + c]) {
                out[0]++;
                out[1] += (uint64_t)$A * c + $B;
            }
""",
    fast="""
---
uint64_t plain = 0, weighted = 0;
for (uint32_t c = 0; c < k; c++) {
    uint32_t seen[256] = {0};
    uint32_t same = 0;
    for (uint32_t a = 0; a < rows; a++)
        same += seen[cells[a * k + c]]++;
    uint64_t apart = (rows ? (uint64_t)rows * (rows - 1) / 2 : 0) - same;
    plain += apart;
    weighted += apart * ((uint64_t)$A * c + $B);
}
out[0] = plain;
out[1] = weighted;
""",
    other="""
---
uint32_t seen[256] = {0};
uint64_t plain = 0, weighted = 0, pairs = rows ? (uint64_t)rows * (rows - 1) / 2 : 0;
for (uint32_t c = 0; c < k; c++) {
    const uint8_t *end = cells + (size_t)rows * k + c;
    uint32_t same = 0;
    for (const uint8_t *cell = cells + c; cell < end; cell += k)
        same += seen[*cell]++;
    for (const uint8_t *cell = cells + c; cell < end; cell += k)
        seen[*cell] = 0;
    plain += pairs - same;
    weighted += (pairs - same) * ((uint64_t)$A * c + $B);
}
out[0] = plain;
out[1] = weighted;
""",
    lazy="""
---
uint64_t plain = 0, weighted = 0;
for (uint32_t c = 0; c < k; c++) {
    uint64_t apart = 0;
    for (uint32_t a = 0; a < rows; a++) {
        uint8_t mine = cells[a * k + c];
        for (uint32_t b = a + 1; b < rows; b++)
            apart += cells[b * k + c] != mine;
    }
    plain += apart;
    weighted += apart * ((uint64_t)$A * c + $B);
}
out[0] = plain;
out[1] = weighted;
""",
    wrong="""
---
uint64_t plain = 0, weighted = 0;
for (uint32_t c = 0; c < k; c++) {
    uint32_t seen[64] = {0};
    uint32_t same = 0;
    for (uint32_t a = 0; a < rows; a++)
        same += seen[cells[a * k + c] & 63]++;
    uint64_t apart = (rows ? (uint64_t)rows * (rows - 1) / 2 : 0) - same;
    plain += apart;
    weighted += apart * ((uint64_t)$A * c + $B);
}
out[0] = plain;
out[1] = weighted;
""",
    gain=60,
)
