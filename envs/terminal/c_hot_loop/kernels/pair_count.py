"""Pairs whose sum has a remainder."""

from __future__ import annotations

from collections import Counter

from ....core import Rng
from ..kernel import Array, Constants, Input, Kernel, number, words


def _constants(rng: Rng) -> dict[str, int | str]:
    modulus = rng.integer(150, 260)
    return {"M": modulus, "R": 2 * rng.integer(1, modulus // 2 - 1)}


def _shape(rng: Rng, constants: Constants) -> Input:
    n = rng.integer(760, 840)
    return Input((n,), (words(rng.child("x"), n, 1 << 31),))


def _edges(rng: Rng, constants: Constants) -> list[Input]:
    return [Input((n,), (words(rng.child(f"x {n}"), n, 1 << 31),)) for n in (0, 1, 2, 30, 333)]


def _model(constants: Constants, given: Input) -> list[int]:
    modulus, rest = number(constants, "M"), number(constants, "R")
    seen: Counter[int] = Counter()
    pairs = near = 0
    for value in given.arrays[0]:
        pairs += seen[(rest - value) % modulus]
        near += seen[value % modulus]
        seen[value % modulus] += 1
    return [pairs, near]


PAIR_COUNT = Kernel(
    name="pair count",
    work="counts matching pairs of tokens",
    rule="out[0]: the number of pairs i < j with (x[i] + x[j]) % $M == $R; out[1]: those with x[i] % $M == x[j] % $M.\n"
    " * All x[i] are below 2^31.",
    functions=("count_pairs", "pair_matches", "match_tokens", "congruent_pairs"),
    scalars=("n",),
    arrays=(Array("uint32_t", "x", "n"),),
    out=Array("uint64_t", "out", "2"),
    constants=_constants,
    shape=_shape,
    edges=_edges,
    model=_model,
    naive="""
---
out[0] = out[1] = 0;
for (uint32_t i = 0; i < n; i++)
    for (uint32_t j = i + 1; j < n; j++) {
        out[0] += (x[i] + x[j]) % $M == $R;
        out[1] += x[i] % $M == x[j] % $M;
    }
""",
    fast="""
---
uint32_t seen[$M] = {0};
uint64_t pairs = 0, alike = 0;
for (uint32_t i = 0; i < n; i++) {
    uint32_t rest = x[i] % $M;
    uint32_t wanted = rest <= $R ? $R - rest : $R + $M - rest;
    pairs += seen[wanted];
    alike += seen[rest]++;
}
out[0] = pairs;
out[1] = alike;
""",
    other="""
---
uint32_t count[$M] = {0};
for (uint32_t i = 0; i < n; i++)
    count[x[i] % $M]++;
uint64_t twice = 0, alike = 0;
for (uint32_t rest = 0; rest < $M; rest++) {
    uint64_t c = count[rest];
    uint32_t wanted = rest <= $R ? $R - rest : $R + $M - rest;
    twice += c * (wanted == rest ? c - 1 : count[wanted]);
    alike += c * (c - 1) / 2;
}
out[0] = twice / 2;
out[1] = alike;
""",
    lazy="""
---
uint32_t *rest = malloc((n + 1) * sizeof *rest);
for (uint32_t i = 0; i < n; i++)
    rest[i] = x[i] % $M;
uint64_t pairs = 0, alike = 0;
for (uint32_t i = 0; i < n; i++) {
    uint32_t wanted = ($R + $M - rest[i]) % $M;
    for (uint32_t j = i + 1; j < n; j++) {
        pairs += rest[j] == wanted;
        alike += rest[j] == rest[i];
    }
}
free(rest);
out[0] = pairs;
out[1] = alike;
""",
    wrong="""
---
uint32_t count[$M] = {0};
for (uint32_t i = 0; i < n; i++)
    count[x[i] % $M]++;
uint64_t twice = 0, alike = 0;
for (uint32_t rest = 0; rest < $M; rest++) {
    uint64_t c = count[rest];
    uint32_t wanted = rest <= $R ? $R - rest : $R + $M - rest;
    twice += c * count[wanted];
    alike += c * (c - 1) / 2;
}
out[0] = twice / 2;
out[1] = alike;
""",
    gain=450,
)
