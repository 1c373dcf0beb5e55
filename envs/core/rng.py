"""Randomness that is the same on every machine, in every process and with every library version.

A stream is SHA-256 in counter mode over its names, so no release of Python or NumPy moves an instance. The *instance*
stream is named by (id, version, options, seed, level); the *hidden* stream, which only a verifier sees, is keyed by the
hub's secret: no byte of an instance depends on it, so an agent cannot predict the held-out inputs.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Protocol, TypeVar

from .tools import Json

T = TypeVar("T")


class Rng(Protocol):
    """A stream over a hash of (id, version, options, seed, level, names)."""

    def child(self, name: str) -> Rng:
        """Independent: adding one shifts no other."""
        ...

    def integer(self, low: int, high: int) -> int:
        """Uniform, both ends included."""
        ...

    def fraction(self) -> float:
        """Uniform in [0, 1), a multiple of 2^-53."""
        ...

    def choice(self, items: Sequence[T]) -> T:
        """One of `items`, uniform."""
        ...

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """A permutation of `items`, uniform (Fisher and Yates)."""
        ...

    def sample(self, items: Sequence[T], count: int) -> list[T]:
        """`count` distinct positions of `items`, in random order."""
        ...


class HashRng:
    """The one implementation of `Rng`: SHA-256 in counter mode.

    Example:
        >>> rng = HashRng(b"example")
        >>> rng.child("a").integer(1, 6) == HashRng(b"example").child("a").integer(1, 6)
        True
    """

    __slots__ = ("_counter", "_key")

    def __init__(self, key: bytes) -> None:
        self._key = hashlib.sha256(key).digest()
        self._counter = 0

    def child(self, name: str) -> HashRng:
        return HashRng(self._key + b"/" + name.encode())

    def _bits(self, count: int) -> int:
        blocks: list[bytes] = []
        for _ in range((count + 255) // 256):
            blocks.append(hashlib.sha256(self._key + self._counter.to_bytes(8, "big")).digest())
            self._counter += 1
        return int.from_bytes(b"".join(blocks), "big") >> (len(blocks) * 256 - count)

    def integer(self, low: int, high: int) -> int:
        if low > high:
            raise ValueError(f"integer({low}, {high}): the range is empty")
        span = high - low + 1
        bits = max(1, (span - 1).bit_length())
        while True:  # rejection keeps every value equally likely
            value = self._bits(bits)
            if value < span:
                return low + value

    def fraction(self) -> float:
        return float(Fraction(self._bits(53), 1 << 53))

    def choice(self, items: Sequence[T]) -> T:
        return items[self.integer(0, len(items) - 1)]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        result = list(items)
        for last in range(len(result) - 1, 0, -1):
            other = self.integer(0, last)
            result[last], result[other] = result[other], result[last]
        return result

    def sample(self, items: Sequence[T], count: int) -> list[T]:
        if not 0 <= count <= len(items):
            raise ValueError(f"sample of {count} from {len(items)} items")
        pool = list(items)
        for first in range(count):
            other = self.integer(first, len(pool) - 1)
            pool[first], pool[other] = pool[other], pool[first]
        return pool[:count]


def instance_rng(env_id: str, options: Mapping[str, Json], seed: int, level: int) -> HashRng:
    """The stream that `Family.generate` gets; `env_id` carries the version."""
    name = json.dumps([env_id, dict(options), seed, level], sort_keys=True, separators=(",", ":"))
    return HashRng(b"instance:" + name.encode())


def hidden_rng(secret: bytes, env_id: str, seed: int) -> HashRng:
    """The stream that only `Family.verify` gets: HMAC(hub secret, id, seed)."""
    name = json.dumps([env_id, seed], separators=(",", ":")).encode()
    return HashRng(b"hidden:" + hmac.new(secret, name, hashlib.sha256).digest())
