"""What was made is kept until what it was made of changes; the oldest goes where there is too much."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Kept(Generic[K, V]):
    """Values by key and version; one thread makes a value, and others who want the same one wait for it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[K, tuple[str, V]] = OrderedDict()
        self._making: dict[K, threading.Lock] = {}
        self._lock = threading.Lock()

    def get(self, key: K, version: str, make: Callable[[], V]) -> V:
        """The value of `key` as of `version`. Raises what `make` raises, and keeps nothing of it."""
        with self._lock:
            making = self._making.setdefault(key, threading.Lock())
        with making:
            with self._lock:
                found = self._values.get(key)
                if found is not None and found[0] == version:
                    self._values.move_to_end(key)
                    return found[1]
            value = make()
            with self._lock:
                self._values[key] = (version, value)
                self._values.move_to_end(key)
                while len(self._values) > self._most:
                    old, _ = self._values.popitem(last=False)
                    self._making.pop(old, None)
            return value
