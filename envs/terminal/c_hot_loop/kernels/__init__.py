"""The kernels, one a module: the C in its versions, its inputs, and the host's model."""

from __future__ import annotations

from .box_sum import BOX_SUM
from .common_subsequence import COMMON_SUBSEQUENCE
from .in_set import IN_SET
from .life import LIFE
from .moving_sum import MOVING_SUM
from .pair_count import PAIR_COUNT
from .range_sums import RANGE_SUMS
from .row_hash import ROW_HASH
from .rows_apart import ROWS_APART
from .window_max import WINDOW_MAX

ALL = (IN_SET, ROW_HASH, MOVING_SUM, RANGE_SUMS, PAIR_COUNT, WINDOW_MAX, BOX_SUM, ROWS_APART, COMMON_SUBSEQUENCE, LIFE)
