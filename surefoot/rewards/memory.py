"""A bounded memory of results that took a jail to find."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

V = TypeVar("V")


class Memory(Generic[V]):
    """Keeps the results that were used last. Thread-safe; two threads that ask for the same at once both find it."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._kept: OrderedDict[Hashable, V] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, find: Callable[[], V]) -> V:
        """The result for `key`; `find` is called if it is not known. What `find` raises is not kept."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        found = find()
        with self._lock:
            self._kept[key] = found
            if len(self._kept) > self._size:
                self._kept.popitem(last=False)
        return found
