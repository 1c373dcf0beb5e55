"""The largest value of a moving window."""

from __future__ import annotations

from collections import deque

from ....core import Rng
from ..kernel import Array, Constants, Input, Kernel, number, words


def _constants(rng: Rng) -> dict[str, int | str]:
    return {"X": rng.integer(1, 0xFFFFFF)}


def _falling(rng: Rng, n: int, steps: int, flip: int) -> list[int]:
    """Long falling runs with a little noise, as the kernel sees them."""
    noise = words(rng, n, 900)
    return [(4_000_000_000 - (i % steps) * 1000 - noise[i]) ^ flip for i in range(n)]


def _shape(rng: Rng, constants: Constants) -> Input:
    n, w = rng.integer(5600, 6400), rng.integer(170, 210)
    return Input((n, w), (_falling(rng.child("x"), n, rng.integer(1500, 2500), number(constants, "X")),))


def _edges(rng: Rng, constants: Constants) -> list[Input]:
    sizes = ((0, 3), (1, 1), (6, 20), (200, 1), (333, 17), (64, 64))
    return [Input((n, w), (words(rng.child(f"x {n}"), n, 1 << 32),)) for n, w in sizes]


def _model(constants: Constants, given: Input) -> list[int]:
    n, w = given.scalars
    x = [value ^ number(constants, "X") for value in given.arrays[0]]
    waiting: deque[int] = deque()
    out: list[int] = []
    for i in range(n):
        while waiting and x[waiting[-1]] <= x[i]:
            waiting.pop()
        waiting.append(i)
        if waiting[0] + w <= i:
            waiting.popleft()
        out.append(x[waiting[0]])
    return out


WINDOW_MAX = Kernel(
    name="window max",
    work="tracks the peak of a signal over a trailing window",
    rule="out[i] = the largest x[j] ^ $X over the last w positions j up to and including i (fewer at the start),\n"
    " * for i in [0, n). w is at least 1 and may exceed n. Long falling runs are common.",
    functions=("trailing_peak", "window_max", "peak_hold", "rolling_max"),
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
    uint32_t first = i + 1 < w ? 0 : i + 1 - w, best = 0;
    for (uint32_t j = first; j <= i; j++)
        if ((x[j] ^ $X) > best)
            best = x[j] ^ $X;
    out[i] = best;
}
""",
    fast="""
---
uint32_t *at = malloc((n + 1) * sizeof *at), *value = malloc((n + 1) * sizeof *value);
uint32_t first = 0, end = 0;
for (uint32_t i = 0; i < n; i++) {
    uint32_t v = x[i] ^ $X;
    while (end > first && value[end - 1] <= v)
        end--;
    at[end] = i;
    value[end++] = v;
    if (at[first] + w <= i)
        first++;
    out[i] = value[first];
}
free(at);
free(value);
""",
    other="""
---
uint32_t *before = malloc((n + 1) * sizeof *before);
for (uint32_t from = 0; from < n; from += w < n ? w : n) {
    uint32_t end = n - from < w ? n : from + w, best = 0;
    for (uint32_t i = end; i-- > from;) {
        uint32_t v = x[i] ^ $X;
        best = v > best ? v : best;
        before[i] = best;
    }
    uint32_t running = 0;
    for (uint32_t i = from; i < end; i++) {
        uint32_t v = x[i] ^ $X;
        running = v > running ? v : running;
        uint32_t left = i + 1 > w && i + 1 - w < from ? before[i + 1 - w] : 0;
        out[i] = left > running ? left : running;
    }
}
free(before);
""",
    lazy="""
---
uint32_t best = 0, where = 0;
for (uint32_t i = 0; i < n; i++) {
    uint32_t v = x[i] ^ $X;
    if (i == 0 || v >= best) {
        best = v;
        where = i;
    } else if (where + w <= i) {
        best = 0;
        for (uint32_t j = i + 1 - w; j <= i; j++)
            if ((x[j] ^ $X) >= best) {
                best = x[j] ^ $X;
                where = j;
            }
    }
    out[i] = best;
}
""",
    wrong="""
---
uint32_t *at = malloc((n + 1) * sizeof *at), *value = malloc((n + 1) * sizeof *value);
uint32_t first = 0, end = 0;
for (uint32_t i = 0; i < n; i++) {
    uint32_t v = x[i] ^ $X;
    while (end > first && value[end - 1] <= v)
        end--;
    at[end] = i;
    value[end++] = v;
    if (at[first] + w < i)
        first++;
    out[i] = value[first];
}
free(at);
free(value);
""",
    gain=50,
)
