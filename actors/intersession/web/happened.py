"""Live news for pages besides positions: erased texts, changed forks, a store that is away or back."""

from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Final

import msgspec

from intersession_events.basics.errors import LogError
from intersession_events.basics.plain_json import JsonObject
from intersession_events.copies.forks.files import forks_beside
from intersession_events.log.log import Log
from intersession_events.stores.database import MEMORY
from intersession_events.stores.opened import open_log

Stamp = tuple[tuple[int, int], ...]
"""Sizes and times of the files of a fork: while these are the same, so is the fork."""

_BESIDE: Final = ("", "-wal")
_ERASED: Final = "SELECT 1 FROM stored_events WHERE originator_id>=? AND originator_id<? AND rowid>? LIMIT 1"


def told_live(position: int, **more: str) -> bytes:
    """Return the server-sent event that announces a position."""
    return b"id: %d\nevent: head\ndata: %s\n\n" % (
        position,
        msgspec.json.encode({"position": position, **more}),
    )


def told_erased(position: int) -> bytes:
    """Return the server-sent event that announces an erasure: pages drop their texts, and ask again.

    It has no id: who is cut off before the position behind it came is told anew.
    """
    return b"event: erased\ndata: %s\n\n" % msgspec.json.encode({"position": position})


def erased_behind(log: Log, position: int) -> bool:
    """Whether texts were erased (ERASE-1) behind a position."""
    return bool(log.query(_ERASED, ("erased:", "erased;", position)))


def forks_state(log: Log) -> str:
    """Return a text for the present state of the forks beside a log: it changes when one is made, goes on or is deleted.

    None of them is opened: it is asked again and again, for nobody tells us of a fork that is made elsewhere.
    """
    return _digest(_stamps(log))


class ForksFolder:
    """The forks beside a log, polled once for all pages of a process: at most every `every_s` seconds."""

    def __init__(self, log: Log, *, monotonic: Callable[[], float], every_s: float) -> None:
        self._log = log
        self._monotonic = monotonic
        self._every_s = every_s
        self._stamps: Mapping[str, Stamp] = {}
        self._looked: float | None = None
        self._erased: dict[str, tuple[Stamp, bool]] = {}
        self._lock = Lock()

    def stamps(self) -> Mapping[str, Stamp]:
        """Return the sizes and times of the forks' files, as of the last look."""
        with self._lock:
            now = self._monotonic()
            if self._looked is None or now - self._looked >= self._every_s:
                self._stamps, self._looked = _stamps(self._log), now
                self._erased = {fork: known for fork, known in self._erased.items() if fork in self._stamps}
            return self._stamps

    def has_erasures(self, fork: str, stamp: Stamp) -> bool:
        """Whether texts were erased in a fork, or that is unknown; a fork is opened once for each stamp."""
        with self._lock:
            known = self._erased.get(fork)
            if known is None or known[0] != stamp:
                known = self._erased[fork] = (stamp, self._looked_up(fork))
            return known[1]

    def _looked_up(self, fork: str) -> bool:
        file = next((file for file in forks_beside(self._log.place) if file.stem == fork), None)
        if file is None:
            return False
        try:
            with open_log(str(file), read_only=True) as log:
                return erased_behind(log, 0)
        except LogError:
            return True  # nobody knows


class ForksBeside:
    """The forks beside a log, for one page that is told of changes."""

    def __init__(self, folder: ForksFolder) -> None:
        self._folder = folder
        self._known: Mapping[str, Stamp] | None = None

    def news(self) -> bytes | None:
        """Return the server-sent event with their present state; None if it is the same as at the last call.

        `erased` are those that have changed since, and have had words erased in them: whoever shows one of these asks again.
        """
        now, known = self._folder.stamps(), self._known
        if now == known:
            return None
        self._known = now
        said: JsonObject = {"state": _digest(now), "erased": list(self._with_erasures(known or now, now))}
        return b"event: forks\ndata: %s\n\n" % msgspec.json.encode(said)

    def _with_erasures(self, known: Mapping[str, Stamp], now: Mapping[str, Stamp]) -> Iterator[str]:
        for fork, stamp in now.items():
            if known.get(fork, stamp) != stamp and self._folder.has_erasures(fork, stamp):
                yield fork


class StoreNews:
    """Whether the store can be read, for one page that is told of changes."""

    def __init__(self, is_away: Callable[[], bool]) -> None:
        self._is_away = is_away
        self._known = False

    def news(self) -> bytes | None:
        """Return the server-sent event for a change; None if there is none since the last call. At first the store counts as present."""
        away = self._is_away()
        if away == self._known:
            return None
        self._known = away
        return b"event: store\ndata: %s\n\n" % msgspec.json.encode({"available": not away})


def all_news(*asked: Callable[[], bytes | None]) -> bytes | None:
    """Return the news of several sources together; None if there are none."""
    return b"".join(said for one in asked if (said := one()) is not None) or None


def _stamps(log: Log) -> Mapping[str, Stamp]:
    if log.place == MEMORY:
        return {}
    return {
        file.stem: tuple(_stamp(Path(f"{file}{beside}")) for beside in _BESIDE)
        for file in forks_beside(log.place)
    }


def _stamp(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return (0, 0)
    return (found.st_mtime_ns, found.st_size) if found.st_size else (0, 0)


def _digest(stamps: Mapping[str, Stamp]) -> str:
    return sha256(msgspec.json.encode(sorted(stamps.items()))).hexdigest()[:16]
