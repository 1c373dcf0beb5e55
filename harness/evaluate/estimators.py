"""What n samples of one instance say of k: exact fractions, so that a report is the same on every machine.

`pass_at_k` is the chance that one of k samples passes, `pass_hat_k` (pass^k) that all of them do; k samples are drawn
from the n that were run, without replacement (Chen et al., 2021; Yao et al., 2024). Where fewer than k were run there
is no estimate.
"""

from __future__ import annotations

import math
from fractions import Fraction

CONVENTION = (
    "pass@k = 1 - C(n-c, k) / C(n, k) and pass^k = C(c, k) / C(n, k) for n valid samples of an instance of which c "
    "passed, averaged over the instances that have at least k valid samples"
)


def pass_at_k(num_valid: int, num_passed: int, k: int) -> Fraction | None:
    """1 − C(n − c, k) / C(n, k); None where n < k.

    Raises:
        ValueError: k below 1, or passed outside 0..valid.

    Example:
        >>> pass_at_k(5, 3, 2), pass_at_k(1, 1, 2)
        (Fraction(9, 10), None)
    """
    _check(num_valid, num_passed, k)
    if num_valid < k:
        return None
    return 1 - Fraction(math.comb(num_valid - num_passed, k), math.comb(num_valid, k))


def pass_hat_k(num_valid: int, num_passed: int, k: int) -> Fraction | None:
    """C(c, k) / C(n, k); None where n < k. Raises as `pass_at_k`.

    Example:
        >>> pass_hat_k(5, 3, 2)  # and not (3/5)² = 0.36
        Fraction(3, 10)
    """
    _check(num_valid, num_passed, k)
    if num_valid < k:
        return None
    return Fraction(math.comb(num_passed, k), math.comb(num_valid, k))


def _check(num_valid: int, num_passed: int, k: int) -> None:
    if k < 1:
        raise ValueError(f"k is {k}: give at least 1")
    if not 0 <= num_passed <= num_valid:
        raise ValueError(f"{num_passed} passed of {num_valid} valid samples")
