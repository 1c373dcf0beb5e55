"""The longest common subsequence."""

from __future__ import annotations

from ....core import Rng
from ..kernel import Array, Constants, Input, Kernel, number, words


def _constants(rng: Rng) -> dict[str, int | str]:
    return {"X": rng.integer(1, 31), "G": rng.integer(2, 9)}


def _shape(rng: Rng, constants: Constants) -> Input:
    n, m = rng.integer(640, 760), rng.integer(640, 760)
    symbols = rng.choice((4, 20, 120))
    return Input((n, m), (words(rng.child("a"), n, symbols), words(rng.child("b"), m, symbols)))


def _edges(rng: Rng, constants: Constants) -> list[Input]:
    sizes = ((0, 5), (5, 0), (1, 1), (64, 64), (65, 130), (63, 200), (200, 127))
    return [
        Input(
            (n, m),
            (words(rng.child(f"a {n}"), n, 5), words(rng.child(f"b {m}"), m, 256 if n == 200 else 5)),
        )
        for n, m in sizes
    ]


def _model(constants: Constants, given: Input) -> list[int]:
    a, b = given.arrays
    flip = number(constants, "X")
    where: dict[int, int] = {}
    for index, symbol in enumerate(a):
        where[symbol] = where.get(symbol, 0) | 1 << index
    full = (1 << len(a)) - 1
    rows = full
    for symbol in b:
        match = rows & where.get(symbol ^ flip, 0)
        rows = ((rows + match) | (rows - match)) & full
    length = len(a) - rows.bit_count()
    return [length, number(constants, "G") * (len(a) + len(b) - 2 * length)]


COMMON_SUBSEQUENCE = Kernel(
    name="common subsequence",
    work="compares two recordings",
    rule="out[0]: the length of the longest common subsequence of a[0..n) and b[0..m), where a byte u of a and a byte\n"
    " * v of b are the same when u == (v ^ $X); out[1]: $G * (n + m - 2 * out[0]).",
    functions=("common_length", "compare_tracks", "sequence_overlap", "shared_steps"),
    scalars=("n", "m"),
    arrays=(Array("uint8_t", "a", "n"), Array("uint8_t", "b", "m")),
    out=Array("uint32_t", "out", "2"),
    constants=_constants,
    shape=_shape,
    edges=_edges,
    model=_model,
    naive="""
---
uint32_t *table = calloc((size_t)(n + 1) * (m + 1), sizeof *table);
for (uint32_t i = 1; i <= n; i++)
    for (uint32_t j = 1; j <= m; j++) {
        uint32_t up = table[(i - 1) * (m + 1) + j], left = table[i * (m + 1) + j - 1];
        table[i * (m + 1) + j] = a[i - 1] == (b[j - 1] ^ $X) ? table[(i - 1) * (m + 1) + j - 1] + 1
                                 : up > left               ? up
                                                           : left;
    }
out[0] = table[n * (m + 1) + m];
out[1] = $G * (n + m - 2 * out[0]);
free(table);
""",
    fast="""
---
uint32_t words = n / 64 + 1;
uint64_t *where = calloc((size_t)256 * words, sizeof *where);
uint64_t *rows = malloc(words * sizeof *rows);
for (uint32_t i = 0; i < n; i++)
    where[(a[i] ^ $X) * words + i / 64] |= (uint64_t)1 << (i % 64);
for (uint32_t k = 0; k < words; k++)
    rows[k] = ~(uint64_t)0;
for (uint32_t j = 0; j < m; j++) {
    const uint64_t *hits = where + b[j] * words;
    uint64_t carry = 0;
    for (uint32_t k = 0; k < words; k++) {
        uint64_t old = rows[k], match = old & hits[k];
        uint64_t sum = old + carry;
        carry = sum < carry;
        sum += match;
        carry |= sum < match;
        rows[k] = sum | (old - match);
    }
}
uint32_t length = 0;
for (uint32_t i = 0; i < n; i++)
    length += !(rows[i / 64] >> (i % 64) & 1);
out[0] = length;
out[1] = $G * (n + m - 2 * length);
free(where);
free(rows);
""",
    other="""
---
enum { LIMB = 63 };
const uint64_t low = ((uint64_t)1 << LIMB) - 1;
uint32_t limbs = n / LIMB + 1;
uint64_t *where = calloc((size_t)256 * limbs, sizeof *where);
uint64_t *rows = malloc(limbs * sizeof *rows);
for (uint32_t i = 0; i < n; i++)
    where[a[i] * limbs + i / LIMB] |= (uint64_t)1 << (i % LIMB);
for (uint32_t k = 0; k < limbs; k++)
    rows[k] = low;
for (uint32_t j = 0; j < m; j++) {
    const uint64_t *hits = where + (b[j] ^ $X) * limbs;
    uint64_t carry = 0;
    for (uint32_t k = 0; k < limbs; k++) {
        uint64_t match = rows[k] & hits[k];
        uint64_t sum = rows[k] + match + carry;
        carry = sum >> LIMB;
        rows[k] = (sum & low) | (rows[k] ^ match);
    }
}
uint32_t length = 0;
for (uint32_t i = 0; i < n; i++)
    length += (~rows[i / LIMB] >> (i % LIMB)) & 1;
out[0] = length;
out[1] = $G * (n + m - 2 * length);
free(where);
free(rows);
""",
    lazy="""
---
uint32_t *row = calloc(m + 1, sizeof *row);
for (uint32_t i = 0; i < n; i++) {
    uint32_t corner = 0, left = 0, wanted = a[i] ^ $X;
    for (uint32_t j = 1; j <= m; j++) {
        uint32_t up = row[j];
        left = b[j - 1] == wanted ? corner + 1 : up > left ? up : left;
        row[j] = left;
        corner = up;
    }
}
out[0] = row[m];
out[1] = $G * (n + m - 2 * out[0]);
free(row);
""",
    wrong="""
---
uint32_t words = n / 64 + 1;
uint64_t *where = calloc((size_t)256 * words, sizeof *where);
uint64_t *rows = malloc(words * sizeof *rows);
for (uint32_t i = 0; i < n; i++)
    where[(a[i] ^ $X) * words + i / 64] |= (uint64_t)1 << (i % 64);
for (uint32_t k = 0; k < words; k++)
    rows[k] = ~(uint64_t)0;
for (uint32_t j = 0; j < m; j++) {
    const uint64_t *hits = where + b[j] * words;
    for (uint32_t k = 0; k < words; k++) {
        uint64_t match = rows[k] & hits[k];
        rows[k] = (rows[k] + match) | (rows[k] - match);
    }
}
uint32_t length = 0;
for (uint32_t i = 0; i < n; i++)
    length += !(rows[i / 64] >> (i % 64) & 1);
out[0] = length;
out[1] = $G * (n + m - 2 * length);
free(where);
free(rows);
""",
    gain=42,
)
