"""Kernels over tables, strings and grids: the work has to be turned round, or packed into machine words."""

from __future__ import annotations

from collections import Counter

from ...core import Rng
from .kernel import Array, Constants, Input, Kernel, words


def _number(constants: Constants, name: str) -> int:
    return int(constants[name])


# --- sums over squares of an image -----------------------------------------------------------------------------------


def _box_constants(rng: Rng) -> dict[str, int | str]:
    return {"D": rng.integer(100, 9000), "A": rng.integer(2, 9)}


def _box_shape(rng: Rng, constants: Constants) -> Input:
    h, w, r = rng.integer(56, 62), rng.integer(56, 62), rng.integer(7, 8)
    return Input((h, w, r), (words(rng.child("pixels"), h * w, 1 << 16),))


def _box_edges(rng: Rng, constants: Constants) -> list[Input]:
    sizes = ((1, 1, 0), (3, 40, 5), (40, 3, 1), (17, 9, 30), (12, 12, 0), (31, 33, 4))
    return [Input((h, w, r), (words(rng.child(f"{h} {w}"), h * w, 1 << 16),)) for h, w, r in sizes]


def _box_model(constants: Constants, given: Input) -> list[int]:
    h, w, r = given.scalars
    dark, weight = _number(constants, "D"), _number(constants, "A")
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
    constants=_box_constants,
    shape=_box_shape,
    edges=_box_edges,
    model=_box_model,
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

# --- differences between all pairs of rows ---------------------------------------------------------------------------


def _apart_constants(rng: Rng) -> dict[str, int | str]:
    return {"A": rng.integer(2, 99), "B": rng.integer(100, 999)}


def _apart_shape(rng: Rng, constants: Constants) -> Input:
    rows, k = rng.integer(106, 116), rng.integer(100, 110)
    symbols = rng.choice((4, 20, 60))
    return Input((rows, k), (words(rng.child("cells"), rows * k, symbols),))


def _apart_edges(rng: Rng, constants: Constants) -> list[Input]:
    sizes = ((0, 4, 9), (1, 7, 9), (2, 0, 9), (30, 11, 256), (300, 3, 256), (9, 40, 2))
    return [Input((r, k), (words(rng.child(f"{r} {k}"), r * k, symbols),)) for r, k, symbols in sizes]


def _apart_model(constants: Constants, given: Input) -> list[int]:
    rows, k = given.scalars
    plain, weighted = 0, 0
    for column in range(k):
        counts = Counter(given.arrays[0][column::k][:rows])
        apart = (rows * (rows - 1) - sum(count * (count - 1) for count in counts.values())) // 2
        plain += apart
        weighted += apart * (_number(constants, "A") * column + _number(constants, "B"))
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
    constants=_apart_constants,
    shape=_apart_shape,
    edges=_apart_edges,
    model=_apart_model,
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

# --- the longest common subsequence ----------------------------------------------------------------------------------


def _common_constants(rng: Rng) -> dict[str, int | str]:
    return {"X": rng.integer(1, 31), "G": rng.integer(2, 9)}


def _common_shape(rng: Rng, constants: Constants) -> Input:
    n, m = rng.integer(640, 760), rng.integer(640, 760)
    symbols = rng.choice((4, 20, 120))
    return Input((n, m), (words(rng.child("a"), n, symbols), words(rng.child("b"), m, symbols)))


def _common_edges(rng: Rng, constants: Constants) -> list[Input]:
    sizes = ((0, 5), (5, 0), (1, 1), (64, 64), (65, 130), (63, 200), (200, 127))
    return [
        Input(
            (n, m),
            (words(rng.child(f"a {n}"), n, 5), words(rng.child(f"b {m}"), m, 256 if n == 200 else 5)),
        )
        for n, m in sizes
    ]


def _common_model(constants: Constants, given: Input) -> list[int]:
    a, b = given.arrays
    flip = _number(constants, "X")
    where: dict[int, int] = {}
    for index, symbol in enumerate(a):
        where[symbol] = where.get(symbol, 0) | 1 << index
    full = (1 << len(a)) - 1
    rows = full
    for symbol in b:
        match = rows & where.get(symbol ^ flip, 0)
        rows = ((rows + match) | (rows - match)) & full
    length = len(a) - rows.bit_count()
    return [length, _number(constants, "G") * (len(a) + len(b) - 2 * length)]


COMMON = Kernel(
    name="common subsequence",
    work="compares two recordings",
    rule="out[0]: the length of the longest common subsequence of a[0..n) and b[0..m), where a byte u of a and a byte\n"
    " * v of b are the same when u == (v ^ $X); out[1]: $G * (n + m - 2 * out[0]).",
    functions=("common_length", "compare_tracks", "sequence_overlap", "shared_steps"),
    scalars=("n", "m"),
    arrays=(Array("uint8_t", "a", "n"), Array("uint8_t", "b", "m")),
    out=Array("uint32_t", "out", "2"),
    constants=_common_constants,
    shape=_common_shape,
    edges=_common_edges,
    model=_common_model,
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

# --- generations of a cellular automaton -----------------------------------------------------------------------------


def _life_constants(rng: Rng) -> dict[str, int | str]:
    born = sorted(rng.sample((2, 3, 4, 5, 6), 2))
    stays = sorted(rng.sample((1, 2, 3, 4, 5), 2))
    return {
        "born": sum(1 << count for count in born),
        "stays": sum(1 << count for count in stays),
        "B0": born[0], "B1": born[1], "S0": stays[0], "S1": stays[1],
    }  # fmt: skip


def _life_shape(rng: Rng, constants: Constants) -> Input:
    h, w, steps = rng.integer(40, 46), rng.integer(100, 126), rng.integer(10, 12)
    return Input((h, w, steps), ([value // 2 for value in words(rng.child("cells"), h * w, 3)],))


def _life_edges(rng: Rng, constants: Constants) -> list[Input]:
    sizes = ((3, 3, 2), (5, 64, 3), (3, 65, 4), (9, 128, 2), (12, 7, 0), (20, 129, 5), (4, 192, 3))
    return [
        Input((h, w, steps), ([value // 2 for value in words(rng.child(f"{h} {w}"), h * w, 4)],))
        for h, w, steps in sizes
    ]


def _life_model(constants: Constants, given: Input) -> list[int]:
    h, w, steps = given.scalars
    born, stays = _number(constants, "born"), _number(constants, "stays")
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
    constants=_life_constants,
    shape=_life_shape,
    edges=_life_edges,
    model=_life_model,
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
