"""A queue that serves those who wait in turns, so that whoever has much to do delays itself and not the others."""

from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


def _everybody(_: Hashable) -> bool:
    return True


class FairQueue(Generic[T]):
    """Items in lanes: in order of arrival within a lane, one of each lane in turn. Not for several threads at once."""

    def __init__(self) -> None:
        self._lanes: OrderedDict[Hashable, deque[T]] = OrderedDict()
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def put(self, lane: Hashable, item: T) -> None:
        """Add an item at the end of its lane."""
        self._lanes.setdefault(lane, deque()).append(item)
        self._length += 1

    def take(self, may: Callable[[Hashable], bool] = _everybody) -> T | None:
        """Return the next item of the lane whose turn it is, of those that `may`; None if there is none."""
        for lane, items in self._lanes.items():
            if may(lane):
                item = items.popleft()
                self._length -= 1
                if items:
                    self._lanes.move_to_end(lane)
                else:
                    del self._lanes[lane]
                return item
        return None

    def takable(self, room: Callable[[Hashable], int], most: int) -> int:
        """Count the items that could be taken at once, with a limit a lane; it looks for no more than `most`."""
        found = 0
        for lane, items in self._lanes.items():
            if found >= most:
                return most
            found += min(len(items), room(lane))
        return min(found, most)

    def remove(self, lane: Hashable, item: T) -> None:
        """Take an item out that nobody wants any more; nothing happens if it is not there."""
        items = self._lanes.get(lane)
        if items is None or item not in items:
            return
        items.remove(item)
        self._length -= 1
        if not items:
            del self._lanes[lane]

    def clear(self) -> list[T]:
        """Take everything out and return it, lane by lane."""
        left = [item for items in self._lanes.values() for item in items]
        self._lanes.clear()
        self._length = 0
        return left
