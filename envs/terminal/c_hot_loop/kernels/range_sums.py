"""Sums over asked ranges."""

from __future__ import annotations

from itertools import accumulate

from ....core import Rng
from ..kernel import Array, Constants, Input, Kernel, number, words


def _constants(rng: Rng) -> dict[str, int | str]:
    return {"T": rng.integer(1 << 29, 3 << 30), "A": rng.integer(2, 9)}


def _asked(rng: Rng, n: int, q: int) -> list[int]:
    ends = words(rng, 2 * q, n + 1)
    return [end for at in range(q) for end in sorted(ends[2 * at : 2 * at + 2])]


def _shape(rng: Rng, constants: Constants) -> Input:
    n, q = rng.integer(3300, 3700), rng.integer(780, 860)
    return Input((n, q), (words(rng.child("x"), n, 1 << 32), _asked(rng.child("asked"), n, q)))


def _edges(rng: Rng, constants: Constants) -> list[Input]:
    sizes = ((0, 2), (1, 3), (40, 0), (97, 60))
    return [Input((n, q), (words(rng.child(f"x {n}"), n, 1 << 32), _asked(rng, n, q))) for n, q in sizes]


def _model(constants: Constants, given: Input) -> list[int]:
    _, q = given.scalars
    limit, scale = number(constants, "T"), number(constants, "A")
    x, asked = given.arrays
    sums = [0, *accumulate(value * (scale if value >= limit else 1) for value in x)]
    return [sums[asked[2 * at + 1]] - sums[asked[2 * at]] for at in range(q)]


RANGE_SUMS = Kernel(
    name="range sums",
    work="answers range queries over a ledger",
    rule="out[q] = the sum over i in [asked[2q], asked[2q + 1]) of x[i], those of at least $T times $A, as 64 bits,\n"
    " * for each of the queries q; asked[2q] <= asked[2q + 1] <= n.",
    functions=("range_totals", "answer_ranges", "ledger_sums", "interval_totals"),
    scalars=("n", "queries"),
    arrays=(Array("uint32_t", "x", "n"), Array("uint32_t", "asked", "2 * queries")),
    out=Array("uint64_t", "out", "queries"),
    constants=_constants,
    shape=_shape,
    edges=_edges,
    model=_model,
    naive="""
---
for (uint32_t q = 0; q < queries; q++) {
    uint64_t sum = 0;
    for (uint32_t i = asked[2 * q]; i < asked[2 * q + 1]; i++)
        sum += x[i] >= ${T}u ? (uint64_t)x[i] * $A : x[i];
    out[q] = sum;
}
(void)n;
""",
    fast="""
---
uint64_t *sums = malloc((n + 1) * sizeof *sums);
sums[0] = 0;
for (uint32_t i = 0; i < n; i++)
    sums[i + 1] = sums[i] + (x[i] >= ${T}u ? (uint64_t)x[i] * $A : x[i]);
for (uint32_t q = 0; q < queries; q++)
    out[q] = sums[asked[2 * q + 1]] - sums[asked[2 * q]];
free(sums);
""",
    other="""
---
uint64_t *after = malloc((n + 1) * sizeof *after);
uint64_t sum = after[n] = 0;
for (uint32_t i = n; i-- > 0;) {
    sum += x[i];
    if (x[i] >= ${T}u)
        sum += (uint64_t)x[i] * ($A - 1);
    after[i] = sum;
}
for (uint32_t q = 0; q < queries; q++)
    out[q] = after[asked[2 * q]] - after[asked[2 * q + 1]];
free(after);
""",
    lazy="""
static uint64_t worth(uint32_t value)
{
    return value >= ${T}u ? (uint64_t)value * $A : value;
}

---
uint64_t *blocks = calloc(n / 64 + 1, sizeof *blocks);
for (uint32_t i = 0; i < n; i++)
    blocks[i / 64] += worth(x[i]);
for (uint32_t q = 0; q < queries; q++) {
    uint32_t i = asked[2 * q], end = asked[2 * q + 1];
    uint64_t sum = 0;
    while (i < end)
        if (i % 64 == 0 && i + 64 <= end) {
            sum += blocks[i / 64];
            i += 64;
        } else
            sum += worth(x[i++]);
    out[q] = sum;
}
free(blocks);
""",
    wrong="""
---
uint32_t *sums = malloc((n + 1) * sizeof *sums);
sums[0] = 0;
for (uint32_t i = 0; i < n; i++)
    sums[i + 1] = sums[i] + (x[i] >= ${T}u ? x[i] * $A : x[i]);
for (uint32_t q = 0; q < queries; q++)
    out[q] = sums[asked[2 * q + 1]] - sums[asked[2 * q]];
free(sums);
""",
    gain=190,
)
