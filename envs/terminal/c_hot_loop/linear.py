"""Kernels over one sequence: what is done again for every element could be kept, counted or summed once."""

from __future__ import annotations

from collections import Counter, deque
from itertools import accumulate

from ...core import Rng
from .kernel import Array, Constants, Input, Kernel, words


def _number(constants: Constants, name: str) -> int:
    return int(constants[name])


# --- bytes of a text that are in a set -------------------------------------------------------------------------------


def _set_constants(rng: Rng) -> dict[str, int | str]:
    return {"K": rng.integer(3, 29), "B": rng.integer(2, 9) * 2 + 1}


def _set_shape(rng: Rng, constants: Constants) -> Input:
    n, m = rng.integer(14000, 17000), rng.integer(44, 56)
    marks = rng.child("set").sample(range(256), m)
    return Input((n, m), (words(rng.child("text"), n, 256), marks))


def _set_edges(rng: Rng, constants: Constants) -> list[Input]:
    sizes = ((0, 3), (9, 0), (1, 1), (700, 256), (500, 7))
    return [Input((n, m), (words(rng.child(f"text {n}"), n, 256), rng.sample(range(256), m))) for n, m in sizes]


def _set_model(constants: Constants, given: Input) -> list[int]:
    text, marks = given.arrays
    wanted = set(marks)
    found = [index for index, byte in enumerate(text) if byte in wanted]
    k, b = _number(constants, "K"), _number(constants, "B")
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
    constants=_set_constants,
    shape=_set_shape,
    edges=_set_edges,
    model=_set_model,
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

# --- a polynomial of each row ----------------------------------------------------------------------------------------


def _poly_constants(rng: Rng) -> dict[str, int | str]:
    return {"B": rng.integer(1000, 60000) * 2 + 1, "C": rng.integer(3, 999)}


def _poly_shape(rng: Rng, constants: Constants) -> Input:
    rows, k = rng.integer(8, 10), rng.integer(560, 640)
    return Input((rows, k), (words(rng.child("x"), rows * k, 1 << 32),))


def _poly_edges(rng: Rng, constants: Constants) -> list[Input]:
    sizes = ((0, 5), (3, 0), (1, 1), (2, 33), (7, 40))
    return [Input((r, k), (words(rng.child(f"x {r} {k}"), r * k, 1 << 32),)) for r, k in sizes]


def _poly_model(constants: Constants, given: Input) -> list[int]:
    rows, k = given.scalars
    base, start, mask = _number(constants, "B"), _number(constants, "C"), (1 << 32) - 1
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
    constants=_poly_constants,
    shape=_poly_shape,
    edges=_poly_edges,
    model=_poly_model,
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

# --- sums over a moving window ---------------------------------------------------------------------------------------


def _window_constants(rng: Rng) -> dict[str, int | str]:
    return {"X": rng.integer(1, 0xFFFF), "A": rng.integer(3, 99) * 2 + 1}


def _window_shape(rng: Rng, constants: Constants) -> Input:
    n, w = rng.integer(5000, 5600), rng.integer(140, 165)
    return Input((n, w), (words(rng.child("x"), n, 1 << 32),))


def _window_edges(rng: Rng, constants: Constants) -> list[Input]:
    sizes = ((0, 4), (1, 1), (5, 9), (64, 64), (300, 1), (257, 16))
    return [Input((n, w), (words(rng.child(f"x {n}"), n, 1 << 32),)) for n, w in sizes]


def _window_model(constants: Constants, given: Input) -> list[int]:
    n, w = given.scalars
    flip, scale = _number(constants, "X"), _number(constants, "A")
    sums = [0, *accumulate((value ^ flip) * scale for value in given.arrays[0])]
    return [sums[i + 1] - sums[max(0, i + 1 - w)] for i in range(n)]


MOVING_SUM = Kernel(
    name="moving sum",
    work="smooths a signal over a trailing window",
    rule="out[i] = the sum of (x[j] ^ $X) * $A over the last w positions j up to and including i (fewer at the\n"
    " * start), modulo 2^32, for i in [0, n). w is at least 1 and may exceed n.",
    functions=("moving_sum", "trailing_sum", "window_energy", "smooth_trailing"),
    scalars=("n", "w"),
    arrays=(Array("uint32_t", "x", "n"),),
    out=Array("uint32_t", "out", "n"),
    constants=_window_constants,
    shape=_window_shape,
    edges=_window_edges,
    model=_window_model,
    naive="""
---
for (uint32_t i = 0; i < n; i++) {
    uint32_t first = i + 1 < w ? 0 : i + 1 - w;
    out[i] = 0;
    for (uint32_t j = first; j <= i; j++)
        out[i] += (x[j] ^ $X) * $A;
}
""",
    fast="""
---
uint32_t sum = 0;
uint32_t head = w < n ? w : n;
for (uint32_t i = 0; i < head; i++) {
    sum += x[i] ^ $X;
    out[i] = sum * $A;
}
for (uint32_t i = head; i < n; i++) {
    sum += (x[i] ^ $X) - (x[i - w] ^ $X);
    out[i] = sum * $A;
}
""",
    other="""
---
uint32_t sum = 0;
for (uint32_t i = 0; i < n; i++) {
    sum += (x[i] ^ $X) * $A;
    out[i] = sum;
}
for (uint32_t i = n; i-- > w;)
    out[i] -= out[i - w];
""",
    lazy="""
---
for (uint32_t i = 0; i < n; i++) {
    uint32_t j = i + 1 < w ? 0 : i + 1 - w, a = 0, b = 0;
    for (; j + 1 <= i; j += 2) {
        a += x[j] ^ $X;
        b += x[j + 1] ^ $X;
    }
    if (j <= i)
        a += x[j] ^ $X;
    out[i] = (a + b) * $A;
}
""",
    wrong="""
---
uint32_t sum = 0;
for (uint32_t i = 0; i < n; i++) {
    sum += x[i] ^ $X;
    if (i > w)
        sum -= x[i - w] ^ $X;
    out[i] = sum * $A;
}
""",
    gain=110,
)

# --- sums over asked ranges ------------------------------------------------------------------------------------------


def _range_constants(rng: Rng) -> dict[str, int | str]:
    return {"T": rng.integer(1 << 29, 3 << 30), "A": rng.integer(2, 9)}


def _asked(rng: Rng, n: int, q: int) -> list[int]:
    ends = words(rng, 2 * q, n + 1)
    return [end for at in range(q) for end in sorted(ends[2 * at : 2 * at + 2])]


def _range_shape(rng: Rng, constants: Constants) -> Input:
    n, q = rng.integer(3300, 3700), rng.integer(780, 860)
    return Input((n, q), (words(rng.child("x"), n, 1 << 32), _asked(rng.child("asked"), n, q)))


def _range_edges(rng: Rng, constants: Constants) -> list[Input]:
    sizes = ((0, 2), (1, 3), (40, 0), (97, 60))
    return [Input((n, q), (words(rng.child(f"x {n}"), n, 1 << 32), _asked(rng, n, q))) for n, q in sizes]


def _range_model(constants: Constants, given: Input) -> list[int]:
    _, q = given.scalars
    limit, scale = _number(constants, "T"), _number(constants, "A")
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
    constants=_range_constants,
    shape=_range_shape,
    edges=_range_edges,
    model=_range_model,
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

# --- pairs whose sum has a remainder ---------------------------------------------------------------------------------


def _pair_constants(rng: Rng) -> dict[str, int | str]:
    modulus = rng.integer(150, 260)
    return {"M": modulus, "R": 2 * rng.integer(1, modulus // 2 - 1)}


def _pair_shape(rng: Rng, constants: Constants) -> Input:
    n = rng.integer(760, 840)
    return Input((n,), (words(rng.child("x"), n, 1 << 31),))


def _pair_edges(rng: Rng, constants: Constants) -> list[Input]:
    return [Input((n,), (words(rng.child(f"x {n}"), n, 1 << 31),)) for n in (0, 1, 2, 30, 333)]


def _pair_model(constants: Constants, given: Input) -> list[int]:
    modulus, rest = _number(constants, "M"), _number(constants, "R")
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
    constants=_pair_constants,
    shape=_pair_shape,
    edges=_pair_edges,
    model=_pair_model,
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

# --- the largest value of a moving window ----------------------------------------------------------------------------


def _largest_constants(rng: Rng) -> dict[str, int | str]:
    return {"X": rng.integer(1, 0xFFFFFF)}


def _falling(rng: Rng, n: int, steps: int, flip: int) -> list[int]:
    """Long falling runs with a little noise, as the kernel sees them."""
    noise = words(rng, n, 900)
    return [(4_000_000_000 - (i % steps) * 1000 - noise[i]) ^ flip for i in range(n)]


def _largest_shape(rng: Rng, constants: Constants) -> Input:
    n, w = rng.integer(5600, 6400), rng.integer(170, 210)
    return Input((n, w), (_falling(rng.child("x"), n, rng.integer(1500, 2500), _number(constants, "X")),))


def _largest_edges(rng: Rng, constants: Constants) -> list[Input]:
    sizes = ((0, 3), (1, 1), (6, 20), (200, 1), (333, 17), (64, 64))
    return [Input((n, w), (words(rng.child(f"x {n}"), n, 1 << 32),)) for n, w in sizes]


def _largest_model(constants: Constants, given: Input) -> list[int]:
    n, w = given.scalars
    x = [value ^ _number(constants, "X") for value in given.arrays[0]]
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
    constants=_largest_constants,
    shape=_largest_shape,
    edges=_largest_edges,
    model=_largest_model,
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
