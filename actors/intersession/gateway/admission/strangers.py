"""Bounds the connections that have not said who they are: where there is no room for one more, the oldest is closed."""

from collections.abc import Callable

GiveWay = Callable[[], None]


class Strangers:
    """Counts strangers; there is room for `most`."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._next = 0
        self._waiting: dict[int, GiveWay] = {}

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._waiting)

    def come(self, give_way: GiveWay) -> Callable[[], None]:
        """Count one more, who is told to `give_way` when there is no room. Returns a way to count it no longer."""
        number, self._next = self._next, self._next + 1
        self._waiting[number] = give_way
        if len(self._waiting) > self._most:
            self._waiting.pop(next(iter(self._waiting)))()

        def known() -> None:
            self._waiting.pop(number, None)

        return known
