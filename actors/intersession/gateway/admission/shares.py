"""Divides the gateway's open requests and connections among credentials, so that none shuts the others out.

A limited credential has a share, all of them together leave a reserve, and the operator's own token leaves one, too. Where
all limited credentials together have what there is for them, who holds the most gives way to who holds less.
"""

from collections.abc import Callable

from intersession.gateway.admission.credentials import Credential
from intersession_actors.calls.service.callers import OPERATOR

GiveWay = Callable[[], None]


class Hold:
    """An open request, event stream or connection. Call `release` at its end."""

    def __init__(self, release: Callable[["Hold"], None]) -> None:
        self._release = release
        self.give_way: GiveWay | None = None
        """How it is asked to end; None for what has to come to its own end."""

    def release(self) -> None:
        """Count it no longer; may be called again."""
        self._release(self)


class Shares:
    """Counts the holds of each credential. `most` is for all, `each` for a limited one, `reserve` is kept free of one kind."""

    def __init__(self, *, most: int, each: int, reserve: int) -> None:
        self._each = each
        self._together = max(1, most - reserve)
        self._held: dict[str, dict[Hold, None]] = {}
        self._limited = 0

    def take(self, credential: Credential) -> Hold | None:
        """Count one more for a credential; None if there is no room."""
        name = credential.caller.name
        # A door has divided them among its own callers.
        limited = credential.caller.credential is not None and "door" not in credential.scopes
        mine = self._held.get(name, {})
        if len(mine) >= (min(self._each, self._together) if limited else self._together):
            return None
        if limited and self._limited >= self._together and not self._make_room(len(mine)):
            return None
        hold = Hold(lambda hold: self._let_go(name, hold, limited=limited))
        self._held.setdefault(name, {})[hold] = None
        self._limited += limited
        return hold

    def _make_room(self, mine: int) -> bool:
        """Close the oldest connection of the busiest caller, unless the requester would then be the busiest."""
        limited = [holds for name, holds in self._held.items() if name != OPERATOR.name]
        nobody: dict[Hold, None] = {}
        largest = max(limited, key=len, default=nobody)
        if len(largest) <= mine + 1:
            return False
        oldest = next((hold for hold in largest if hold.give_way is not None), None)
        if oldest is None or oldest.give_way is None:
            return False
        give_way = oldest.give_way
        oldest.release()
        give_way()
        return True

    def _let_go(self, name: str, hold: Hold, *, limited: bool) -> None:
        mine = self._held.get(name, {})
        if hold not in mine:
            return
        del mine[hold]
        self._limited -= limited
        if not mine:
            del self._held[name]
