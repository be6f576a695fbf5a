"""Bounds the connections that are not yet admitted: without room for another, the oldest is closed."""

from collections.abc import Callable

GiveWay = Callable[[], None]


class Strangers:
    """Counts connections of strangers, up to `most`."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._next = 0
        self._waiting: dict[int, GiveWay] = {}

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._waiting)

    def come(self, give_way: GiveWay) -> Callable[[], None]:
        """Count one more; `give_way` is called when its room is needed. Returns a function that counts it no longer."""
        number, self._next = self._next, self._next + 1
        self._waiting[number] = give_way
        if len(self._waiting) > self._most:
            self._waiting.pop(next(iter(self._waiting)))()

        def known() -> None:
            self._waiting.pop(number, None)

        return known
