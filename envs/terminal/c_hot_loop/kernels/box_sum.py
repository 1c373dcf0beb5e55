"""Sums over squares of an image."""

from __future__ import annotations

from ....core import Rng
from ..kernel import Array, Constants, Input, Kernel, number, words


def _constants(rng: Rng) -> dict[str, int | str]:
    return {"D": rng.integer(100, 9000), "A": rng.integer(2, 9)}


def _shape(rng: Rng, constants: Constants) -> Input:
    h, w, r = rng.integer(56, 62), rng.integer(56, 62), rng.integer(7, 8)
    return Input((h, w, r), (words(rng.child("pixels"), h * w, 1 << 16),))


def _edges(rng: Rng, constants: Constants) -> list[Input]:
    sizes = ((1, 1, 0), (3, 40, 5), (40, 3, 1), (17, 9, 30), (12, 12, 0), (31, 33, 4))
    return [Input((h, w, r), (words(rng.child(f"{h} {w}"), h * w, 1 << 16),)) for h, w, r in sizes]


def _model(constants: Constants, given: Input) -> list[int]:
    h, w, r = given.scalars
    dark, weight = number(constants, "D"), number(constants, "A")
    worth = [value * weight if value < dark else value for value in given.arrays[0]]
    above = [[0] * (w + 1)]
    for y in range(h):
        running, row = 0, [0]
        for x in range(w):
            running += worth[y * w + x]
            row.append(above[-1][x + 1] + running)
        above.append(row)
    out: list[int] = []
    for y in range(h):
        top, bottom = above[max(0, y - r)], above[min(h, y + r + 1)]
        for x in range(w):
            left, right = max(0, x - r), min(w, x + r + 1)
            out.append(bottom[right] - bottom[left] - top[right] + top[left])
    return out


BOX_SUM = Kernel(
    name="box sum",
    work="sums the neighbourhood of every pixel",
    rule="out[y * w + x] = the sum over the pixels at most r rows and r columns away that lie in the image\n"
    " * (h rows of w), those below $D times $A, modulo 2^32. h and w are at least 1; r may be 0 and may exceed both.",
    functions=("box_sum", "neighbourhood_sum", "blur_sums", "local_energy"),
    scalars=("h", "w", "r"),
    arrays=(Array("uint16_t", "pixels", "h * w"),),
    out=Array("uint32_t", "out", "h * w"),
    constants=_constants,
    shape=_shape,
    edges=_edges,
    model=_model,
    naive="""
---
for (uint32_t y = 0; y < h; y++)
    for (uint32_t x = 0; x < w; x++) {
        uint32_t sum = 0;
        for (uint32_t v = y < r ? 0 : y - r; v < h && v <= y + r; v++)
            for (uint32_t u = x < r ? 0 : x - r; u < w && u <= x + r; u++)
                sum += pixels[v * w + u] < $D ? pixels[v * w + u] * $A : pixels[v * w + u];
        out[y * w + x] = sum;
    }
""",
    fast="""
static uint32_t worth(uint16_t pixel)
{
    return pixel < $D ? (uint32_t)pixel * $A : pixel;
}

---
uint32_t *column = calloc(w, sizeof *column);
uint32_t reach = r < h ? r : h, across = r < w ? r : w;
for (uint32_t y = 0; y < reach; y++)
    for (uint32_t x = 0; x < w; x++)
        column[x] += worth(pixels[y * w + x]);
for (uint32_t y = 0; y < h; y++) {
    if (y + r < h)
        for (uint32_t x = 0; x < w; x++)
            column[x] += worth(pixels[(y + r) * w + x]);
    if (y > r)
        for (uint32_t x = 0; x < w; x++)
            column[x] -= worth(pixels[(y - r - 1) * w + x]);
    uint32_t sum = 0;
    for (uint32_t x = 0; x < across; x++)
        sum += column[x];
    for (uint32_t x = 0; x < w; x++) {
        if (x + r < w)
            sum += column[x + r];
        if (x > r)
            sum -= column[x - r - 1];
        out[y * w + x] = sum;
    }
}
free(column);
""",
    other="""
---
uint32_t stride = w + 1;
uint32_t *table = calloc((size_t)(h + 1) * stride, sizeof *table);
for (uint32_t y = 0; y < h; y++) {
    uint32_t running = 0;
    for (uint32_t x = 0; x < w; x++) {
        uint32_t pixel = pixels[y * w + x];
        running += pixel < $D ? pixel * $A : pixel;
        table[(y + 1) * stride + x + 1] = table[y * stride + x + 1] + running;
    }
}
for (uint32_t y = 0; y < h; y++) {
    const uint32_t *top = table + (y > r ? y - r : 0) * stride;
    const uint32_t *bottom = table + (r < h - y ? y + r + 1 : h) * stride;
    for (uint32_t x = 0; x < w; x++) {
        uint32_t left = x > r ? x - r : 0, right = r < w - x ? x + r + 1 : w;
        out[y * w + x] = bottom[right] - bottom[left] - top[right] + top[left];
    }
}
free(table);
""",
    lazy="""
---
uint32_t *across = malloc((size_t)h * w * sizeof *across);
for (uint32_t y = 0; y < h; y++)
    for (uint32_t x = 0; x < w; x++) {
        uint32_t sum = 0;
        for (uint32_t u = x < r ? 0 : x - r; u < w && u <= x + r; u++)
            sum += pixels[y * w + u] < $D ? pixels[y * w + u] * $A : pixels[y * w + u];
        across[y * w + x] = sum;
    }
for (uint32_t y = 0; y < h; y++)
    for (uint32_t x = 0; x < w; x++) {
        uint32_t sum = 0;
        for (uint32_t v = y < r ? 0 : y - r; v < h && v <= y + r; v++)
            sum += across[v * w + x];
        out[y * w + x] = sum;
    }
free(across);
""",
    wrong="""
---
uint32_t *table = calloc((size_t)(h + 1) * (w + 1), sizeof *table);
for (uint32_t y = 0; y < h; y++) {
    uint32_t running = 0;
    for (uint32_t x = 0; x < w; x++) {
        uint32_t pixel = pixels[y * w + x];
        running += pixel < $D ? pixel * $A : pixel;
        table[(y + 1) * (w + 1) + x + 1] = table[y * (w + 1) + x + 1] + running;
    }
}
for (uint32_t y = 0; y < h; y++)
    for (uint32_t x = 0; x < w; x++) {
        uint32_t y0 = y > r ? y - r : 0, y1 = y + r < h ? y + r : h;
        uint32_t x0 = x > r ? x - r : 0, x1 = x + r < w ? x + r : w;
        out[y * w + x] = table[y1 * (w + 1) + x1] - table[y1 * (w + 1) + x0]
            - table[y0 * (w + 1) + x1] + table[y0 * (w + 1) + x0];
    }
free(table);
""",
    gain=80,
)
