"""A polynomial of each row."""

from __future__ import annotations

from ....core import Rng
from ..kernel import Array, Constants, Input, Kernel, number, words


def _constants(rng: Rng) -> dict[str, int | str]:
    return {"B": rng.integer(1000, 60000) * 2 + 1, "C": rng.integer(3, 999)}


def _shape(rng: Rng, constants: Constants) -> Input:
    rows, k = rng.integer(8, 10), rng.integer(560, 640)
    return Input((rows, k), (words(rng.child("x"), rows * k, 1 << 32),))


def _edges(rng: Rng, constants: Constants) -> list[Input]:
    sizes = ((0, 5), (3, 0), (1, 1), (2, 33), (7, 40))
    return [Input((r, k), (words(rng.child(f"x {r} {k}"), r * k, 1 << 32),)) for r, k in sizes]


def _model(constants: Constants, given: Input) -> list[int]:
    rows, k = given.scalars
    base, start, mask = number(constants, "B"), number(constants, "C"), (1 << 32) - 1
    powers = [1]
    for _ in range(k):
        powers.append(powers[-1] * base & mask)
    x = given.arrays[0]
    return [start + sum(x[r * k + i] * powers[i] for i in range(k)) for r in range(rows)]


ROW_HASH = Kernel(
    name="row hash",
    work="hashes the rows of a table",
    rule="out[r] = $C + the sum over i of x[r * k + i] * $B^i modulo 2^32, for each of the rows r of k words\n"
    " * ($B^i being the i-th power, $B^0 = 1).",
    functions=("hash_rows", "row_digest", "fingerprint_rows", "row_signature"),
    scalars=("rows", "k"),
    arrays=(Array("uint32_t", "x", "rows * k"),),
    out=Array("uint32_t", "out", "rows"),
    constants=_constants,
    shape=_shape,
    edges=_edges,
    model=_model,
    naive="""
static uint32_t power(uint32_t base, uint32_t exponent)
{
    uint32_t result = 1;
    while (exponent--)
        result *= base;
    return result;
}
---
for (uint32_t r = 0; r < rows; r++) {
    uint32_t sum = $C;
    for (uint32_t i = 0; i < k; i++)
        sum += x[r * k + i] * power($B, i);
    out[r] = sum;
}
""",
    fast="""
---
for (uint32_t r = 0; r < rows; r++) {
    const uint32_t *row = x + r * k;
    uint32_t sum = $C, power = 1;
    for (uint32_t i = 0; i < k; i++) {
        sum += row[i] * power;
        power *= ${B}u;
    }
    out[r] = sum;
}
""",
    other="""
---
for (uint32_t r = 0; r < rows; r++) {
    uint32_t sum = 0;
    for (uint32_t i = k; i-- > 0;)
        sum = sum * ${B}u + x[r * k + i];
    out[r] = sum + $C;
}
""",
    lazy="""
static uint32_t power(uint32_t base, uint32_t exponent)
{
    uint32_t result = 1;
    for (; exponent; exponent >>= 1, base *= base)
        if (exponent & 1)
            result *= base;
    return result;
}
---
for (uint32_t r = 0; r < rows; r++) {
    uint32_t sum = $C;
    for (uint32_t i = 0; i < k; i++)
        sum += x[r * k + i] * power($B, i);
    out[r] = sum;
}
""",
    wrong="""
---
for (uint32_t r = 0; r < rows; r++) {
    uint32_t sum = x[r * k];
    for (uint32_t i = 1; i < k; i++)
        sum = sum * ${B}u + x[r * k + i];
    out[r] = sum + $C;
}
""",
    gain=120,
)
