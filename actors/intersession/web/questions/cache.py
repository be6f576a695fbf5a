"""A small cache for parts of a run that pages ask for repeatedly; an entry is valid until the run gets an event."""

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")

Same = tuple[str, str, int]
"""What stands for something: the log, its name in there, and how far it has come."""


class LruCache(Generic[T]):
    """A cache of limited size that forgets the least recently used entry."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._found: OrderedDict[Same, T] = OrderedDict()
        self._making: dict[Same, _Making] = {}
        self._lock = Lock()

    def has(self, same: Same) -> bool:
        """Whether there is an entry."""
        with self._lock:
            return same in self._found

    def of(self, same: Same, make: Callable[[], T]) -> T:
        """Return an entry, made now if it is missing: once, even for several concurrent callers."""
        with self._lock:
            making = self._making.setdefault(same, _Making())
            making.waiting += 1
        try:
            with making.lock:
                return self._of(same, make)
        finally:
            with self._lock:
                making.waiting -= 1
                if not making.waiting:
                    del self._making[same]

    def _of(self, same: Same, make: Callable[[], T]) -> T:
        with self._lock:
            if same in self._found:
                self._found.move_to_end(same)
                return self._found[same]
        made = make()
        with self._lock:
            self._found[same] = made
            while len(self._found) > self._most:
                self._found.popitem(last=False)
        return made


class _Making:
    """The lock of a thing that is being made, and how many hold it or wait for it."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.waiting = 0
