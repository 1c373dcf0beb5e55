"""Bytes of a text that are in a set."""

from __future__ import annotations

from ....core import Rng
from ..kernel import Array, Constants, Input, Kernel, number, words


def _constants(rng: Rng) -> dict[str, int | str]:
    return {"K": rng.integer(3, 29), "B": rng.integer(2, 9) * 2 + 1}


def _shape(rng: Rng, constants: Constants) -> Input:
    n, m = rng.integer(14000, 17000), rng.integer(44, 56)
    marks = rng.child("set").sample(range(256), m)
    return Input((n, m), (words(rng.child("text"), n, 256), marks))


def _edges(rng: Rng, constants: Constants) -> list[Input]:
    sizes = ((0, 3), (9, 0), (1, 1), (700, 256), (500, 7))
    return [Input((n, m), (words(rng.child(f"text {n}"), n, 256), rng.sample(range(256), m))) for n, m in sizes]


def _model(constants: Constants, given: Input) -> list[int]:
    text, marks = given.arrays
    wanted = set(marks)
    found = [index for index, byte in enumerate(text) if byte in wanted]
    k, b = number(constants, "K"), number(constants, "B")
    return [len(found), sum(index % k for index in found), sum(index * b + 1 for index in found)]


IN_SET = Kernel(
    name="in set",
    work="scans a text for the bytes of a set",
    rule="out[0]: how many of text[0..n) are equal to one of marks[0..m), which are distinct; out[1]: the sum of\n"
    " * (i % $K) over their positions i; out[2]: the sum of (i * $B + 1) over their positions, all modulo 2^32.",
    functions=("scan_marks", "tally_bytes", "count_marked", "mark_profile"),
    scalars=("n", "m"),
    arrays=(Array("uint8_t", "text", "n"), Array("uint8_t", "marks", "m")),
    out=Array("uint32_t", "out", "3"),
    constants=_constants,
    shape=_shape,
    edges=_edges,
    model=_model,
    naive="""
---
out[0] = out[1] = out[2] = 0;
for (uint32_t i = 0; i < n; i++)
    for (uint32_t j = 0; j < m; j++)
        if (text[i] == marks[j]) {
            out[0] += 1;
            out[1] += i % $K;
            out[2] += i * $B + 1;
        }
""",
    fast="""
---
uint8_t in[256] = {0};
for (uint32_t j = 0; j < m; j++)
    in[marks[j]] = 1;
uint32_t count = 0, folded = 0, places = 0;
for (uint32_t i = 0; i < n; i++)
    if (in[text[i]]) {
        count++;
        folded += i % $K;
        places += i;
    }
out[0] = count;
out[1] = folded;
out[2] = places * $B + count;
""",
    other="""
---
char marked[256];
memset(marked, 0, sizeof marked);
const uint8_t *end = marks + m, *at = text + n;
while (end > marks)
    marked[*--end] = 1;
uint32_t count = 0, folded = 0, weighted = 0;
while (at > text)
    if (marked[*--at]) {
        uint32_t i = (uint32_t)(at - text);
        count++;
        folded += i % $K;
        weighted += i * $B + 1;
    }
out[0] = count;
out[1] = folded;
out[2] = weighted;
""",
    lazy="""
---
uint32_t count = 0, folded = 0, places = 0;
for (uint32_t i = 0; i < n; i++)
    for (uint32_t j = 0; j < m; j++)
        if (text[i] == marks[j]) {
            count++;
            folded += i % $K;
            places += i * $B + 1;
            break;
        }
out[0] = count;
out[1] = folded;
out[2] = places;
""",
    wrong="""
---
uint8_t in[128] = {0};
for (uint32_t j = 0; j < m; j++)
    in[marks[j] & 127] = 1;
uint32_t count = 0, folded = 0, places = 0;
for (uint32_t i = 0; i < n; i++)
    if (in[text[i] & 127]) {
        count++;
        folded += i % $K;
        places += i;
    }
out[0] = count;
out[1] = folded;
out[2] = places * $B + count;
""",
    gain=35,
)
