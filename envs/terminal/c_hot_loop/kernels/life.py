"""Generations of a cellular automaton."""

from __future__ import annotations

from ....core import Rng
from ..kernel import Array, Constants, Input, Kernel, number, words


def _constants(rng: Rng) -> dict[str, int | str]:
    born = sorted(rng.sample((2, 3, 4, 5, 6), 2))
    stays = sorted(rng.sample((1, 2, 3, 4, 5), 2))
    return {
        "born": sum(1 << count for count in born),
        "stays": sum(1 << count for count in stays),
        "B0": born[0], "B1": born[1], "S0": stays[0], "S1": stays[1],
    }  # fmt: skip


def _shape(rng: Rng, constants: Constants) -> Input:
    h, w, steps = rng.integer(40, 46), rng.integer(100, 126), rng.integer(10, 12)
    return Input((h, w, steps), ([value // 2 for value in words(rng.child("cells"), h * w, 3)],))


def _edges(rng: Rng, constants: Constants) -> list[Input]:
    sizes = ((3, 3, 2), (5, 64, 3), (3, 65, 4), (9, 128, 2), (12, 7, 0), (20, 129, 5), (4, 192, 3))
    return [
        Input((h, w, steps), ([value // 2 for value in words(rng.child(f"{h} {w}"), h * w, 4)],))
        for h, w, steps in sizes
    ]


def _model(constants: Constants, given: Input) -> list[int]:
    h, w, steps = given.scalars
    born, stays = number(constants, "born"), number(constants, "stays")
    rows = [list(given.arrays[0][y * w : y * w + w]) for y in range(h)]
    for _ in range(steps):
        near = [
            [a + b + c for a, b, c in zip(row[-1:] + row[:-1], row, row[1:] + row[:1], strict=True)] for row in rows
        ]
        rows = [
            [
                (stays if cell else born) >> (a + b + c - cell) & 1
                for a, b, c, cell in zip(near[y - 1], near[y], near[(y + 1) % h], rows[y], strict=True)
            ]
            for y in range(h)
        ]
    return [cell for row in rows for cell in row]


_STEP = """
static void step(const uint64_t *up, const uint64_t *row, const uint64_t *down, uint64_t *next, uint32_t w,
                 uint32_t words)
{
    uint32_t last = (w - 1) / 64, top = (w - 1) % 64;
    for (uint32_t k = 0; k < words; k++) {
        uint64_t bits[9];
        const uint64_t *rows[3] = {up, row, down};
#pragma GCC unroll 3
        for (int at = 0; at < 3; at++) {
            const uint64_t *r = rows[at];
            uint64_t below = k ? r[k - 1] >> 63 : r[last] >> top & 1;
            uint64_t above = k == last ? (r[0] & 1) << top : r[k + 1] << 63;
            bits[3 * at] = r[k] << 1 | below;
            bits[3 * at + 1] = r[k];
            bits[3 * at + 2] = r[k] >> 1 | above;
        }
        uint64_t ab = bits[0] ^ bits[1], a1 = ab ^ bits[2], a2 = (bits[0] & bits[1]) | (ab & bits[2]);
        uint64_t cd = bits[6] ^ bits[7], c1 = cd ^ bits[8], c2 = (bits[6] & bits[7]) | (cd & bits[8]);
        uint64_t b1 = bits[3] ^ bits[5], b2 = bits[3] & bits[5];
        uint64_t ac = a1 ^ c1, ones = ac ^ b1, carry = (a1 & c1) | (ac & b1);
        uint64_t t = a2 ^ c2, u = t ^ b2, v = (a2 & c2) | (t & b2);
        uint64_t twos = u ^ carry, w2 = u & carry;
        uint64_t fours = v ^ w2, eights = v & w2;
        uint64_t mine = bits[4];
        next[k] = (mine & (IS($S0) | IS($S1))) | (~mine & (IS($B0) | IS($B1)));
    }
    if (top < 63)
        next[last] &= ((uint64_t)2 << top) - 1;
}

"""
_IS = "#define IS(n) (((n) & 1 ? ones : ~ones) & ((n) & 2 ? twos : ~twos) & ((n) & 4 ? fours : ~fours) & ~eights)\n"

LIFE = Kernel(
    name="life",
    work="runs a cellular automaton",
    rule="cells (h rows of w, each 0 or 1) is a torus. In each of the steps, a dead cell with $B0 or $B1 live\n"
    " * neighbours (of its 8) is born, a live one with $S0 or $S1 stays, every other is dead afterwards; out:\n"
    " * the cells after the last step. h and w are at least 3, steps may be 0; w is no multiple of anything.",
    functions=("run_automaton", "evolve_cells", "advance_colony", "torus_steps"),
    scalars=("h", "w", "steps"),
    arrays=(Array("uint8_t", "cells", "h * w"),),
    out=Array("uint8_t", "out", "h * w"),
    constants=_constants,
    shape=_shape,
    edges=_edges,
    model=_model,
    naive="""
---
uint8_t *now = malloc((size_t)h * w);
memcpy(now, cells, (size_t)h * w);
memcpy(out, cells, (size_t)h * w);
for (uint32_t s = 0; s < steps; s++) {
    for (uint32_t y = 0; y < h; y++)
        for (uint32_t x = 0; x < w; x++) {
            uint32_t near = 0;
            for (uint32_t v = h - 1; v <= h + 1; v++)
                for (uint32_t u = w - 1; u <= w + 1; u++)
                    if (u != w || v != h)
                        near += now[(y + v) % h * w + (x + u) % w];
            out[y * w + x] = ((now[y * w + x] ? $stays : $born) >> near) & 1;
        }
    memcpy(now, out, (size_t)h * w);
}
free(now);
""",
    fast=_IS
    + _STEP
    + """
---
uint32_t words = (w + 63) / 64;
uint64_t *now = calloc((size_t)h * words + 1, sizeof *now), *next = calloc((size_t)h * words + 1, sizeof *next);
for (uint32_t y = 0; y < h; y++)
    for (uint32_t x = 0; x < w; x++)
        now[y * words + x / 64] |= (uint64_t)cells[y * w + x] << (x % 64);
for (uint32_t s = 0; s < steps; s++) {
    for (uint32_t y = 0; y < h; y++)
        step(now + (y ? y - 1 : h - 1) * words, now + y * words, now + (y + 1 < h ? y + 1 : 0) * words,
             next + y * words, w, words);
    uint64_t *swap = now;
    now = next;
    next = swap;
}
for (uint32_t y = 0; y < h; y++)
    for (uint32_t x = 0; x < w; x++)
        out[y * w + x] = now[y * words + x / 64] >> (x % 64) & 1;
free(now);
free(next);
""",
    other="""
typedef struct { uint64_t one, two; } Sum;

---
uint32_t words = (w + 63) / 64, last = words - 1, top = (w - 1) % 64;
uint64_t *now = calloc((size_t)h * words, sizeof *now);
Sum *near = calloc((size_t)h * words, sizeof *near);
for (uint32_t y = 0; y < h; y++)
    for (uint32_t k = 0; k < words; k++) {
        uint64_t packed = 0;
        uint32_t end = k == last ? top + 1 : 64;
        for (uint32_t bit = 0; bit < end; bit++)
            packed |= (uint64_t)cells[y * w + k * 64 + bit] << bit;
        now[y * words + k] = packed;
    }
for (uint32_t s = 0; s < steps; s++) {
    for (uint32_t y = 0; y < h; y++)
        for (uint32_t k = 0; k < words; k++) {
            const uint64_t *r = now + y * words;
            uint64_t left = r[k] << 1 | (k ? r[k - 1] >> 63 : r[last] >> top & 1);
            uint64_t right = r[k] >> 1 | (k == last ? (r[0] & 1) << top : r[k + 1] << 63);
            uint64_t both = left ^ right;
            near[y * words + k] = (Sum){both ^ r[k], (left & right) | (both & r[k])};
        }
    for (uint32_t y = 0; y < h; y++)
        for (uint32_t k = 0; k < words; k++) {
            Sum a = near[(y ? y - 1 : h - 1) * words + k], b = near[y * words + k];
            Sum c = near[(y + 1 < h ? y + 1 : 0) * words + k];
            uint64_t x = a.one ^ b.one, ones = x ^ c.one, carry = (a.one & b.one) | (x & c.one);
            uint64_t t = a.two ^ b.two, u = t ^ c.two, v = (a.two & b.two) | (t & c.two);
            uint64_t twos = u ^ carry, over = u & carry, fours = v ^ over, eights = v & over;
            uint64_t mine = now[y * words + k], alive = 0, dead = 0;
#define BIT(n, b, plane) ((n) & (b) ? (plane) : ~(plane))
#define IS(n) (BIT(n, 1, ones) & BIT(n, 2, twos) & BIT(n, 4, fours) & BIT(n, 8, eights))
            alive = IS($S0 + 1) | IS($S1 + 1);
            dead = IS($B0) | IS($B1);
            now[y * words + k] = (mine & alive) | (~mine & dead);
        }
    if (top < 63)
        for (uint32_t y = 0; y < h; y++)
            now[y * words + last] &= ((uint64_t)2 << top) - 1;
}
for (uint32_t y = 0; y < h; y++)
    for (uint32_t x = 0; x < w; x++)
        out[y * w + x] = now[y * words + x / 64] >> (x % 64) & 1;
free(now);
free(near);
""",
    lazy="""
---
uint8_t *now = malloc((size_t)h * w), *sums = malloc((size_t)h * w);
memcpy(out, cells, (size_t)h * w);
for (uint32_t s = 0; s < steps; s++) {
    memcpy(now, out, (size_t)h * w);
    for (uint32_t y = 0; y < h; y++) {
        const uint8_t *row = now + y * w;
        uint8_t *sum = sums + y * w;
        sum[0] = row[w - 1] + row[0] + row[1];
        for (uint32_t x = 1; x + 1 < w; x++)
            sum[x] = row[x - 1] + row[x] + row[x + 1];
        sum[w - 1] = row[w - 2] + row[w - 1] + row[0];
    }
    for (uint32_t y = 0; y < h; y++) {
        const uint8_t *a = sums + (y ? y - 1 : h - 1) * w, *b = sums + y * w, *c = sums + (y + 1 < h ? y + 1 : 0) * w;
        for (uint32_t x = 0; x < w; x++) {
            uint8_t mine = now[y * w + x];
            out[y * w + x] = ((mine ? $stays : $born) >> (a[x] + b[x] + c[x] - mine)) & 1;
        }
    }
}
free(now);
free(sums);
""",
    wrong=_IS
    + _STEP.replace("r[last] >> top & 1", "r[last] >> 63").replace("(r[0] & 1) << top", "r[0] << 63")
    + """
---
uint32_t words = (w + 63) / 64;
uint64_t *now = calloc((size_t)h * words + 1, sizeof *now), *next = calloc((size_t)h * words + 1, sizeof *next);
for (uint32_t y = 0; y < h; y++)
    for (uint32_t x = 0; x < w; x++)
        now[y * words + x / 64] |= (uint64_t)cells[y * w + x] << (x % 64);
for (uint32_t s = 0; s < steps; s++) {
    for (uint32_t y = 0; y < h; y++)
        step(now + (y ? y - 1 : h - 1) * words, now + y * words, now + (y + 1 < h ? y + 1 : 0) * words,
             next + y * words, w, words);
    uint64_t *swap = now;
    now = next;
    next = swap;
}
for (uint32_t y = 0; y < h; y++)
    for (uint32_t x = 0; x < w; x++)
        out[y * w + x] = now[y * words + x / 64] >> (x % 64) & 1;
free(now);
free(next);
""",
    gain=50,
)
