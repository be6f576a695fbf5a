"""The contents of files that events name by their SHA-256, beside the log or in its database (FILE-1).

A content is durable before the event that names it. Until that event is recorded it is *in doubt*: a mark beside it says so, with
the position of the log behind which an event can name it. So is one whose words are about to be erased. What a crash leaves in
doubt is looked up in the log at the next start, and goes if no event names it.
"""

import hashlib
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol, final

from intersession_events.basics.crash_points import crash_point
from intersession_events.basics.errors import CorruptEvent
from intersession_events.log.files import Files, FileState

MARK: Final = ".doubt"
"""What the name of a mark ends with, behind that of its content."""
HIDDEN: Final = ".enc"
"""What the name of an encrypted content ends with."""


class Contents(Protocol):
    """A place for bytes by names. What was put is durable."""

    def get(self, name: str) -> bytes | None:
        """Return the bytes of a name; None where there are none."""
        ...

    def put(self, name: str, data: bytes) -> None:
        """Store bytes whole and durably, in the place of those that have the name."""
        ...

    def remove(self, name: str) -> None:
        """Remove a name, if it is there."""
        ...

    def names(self) -> Iterable[str]:
        """Return all names."""
        ...

    def path(self, name: str) -> Path | None:
        """Return the file that has the bytes of a name; None where they are not in a file."""
        ...

    @property
    def stored(self) -> "Contents":
        """The place where they lie as they are stored: itself, where nothing is encrypted."""
        ...


@final
class Memory:
    """Contents in memory."""

    def __init__(self) -> None:
        self._held: dict[str, bytes] = {}

    def get(self, name: str) -> bytes | None:
        """Return the bytes of a name; None where there are none."""
        return self._held.get(name)

    def put(self, name: str, data: bytes) -> None:
        """Keep bytes."""
        self._held[name] = data

    def remove(self, name: str) -> None:
        """Forget a name."""
        self._held.pop(name, None)

    def names(self) -> Iterable[str]:
        """Return all names."""
        return [*self._held]

    def path(self, name: str) -> Path | None:  # noqa: ARG002 - there is none
        """Return None."""
        return None

    @property
    def stored(self) -> "Memory":
        """Return itself: nothing is encrypted here."""
        return self


@final
class FileStore:
    """The contents of a log's files. A fork also reads those of the logs that it comes from: `sources`.

    Its log's one writer writes them; any thread may call it.
    """

    def __init__(self, own: Contents, sources: Callable[[], Sequence[Contents]] = tuple) -> None:
        self._own = own
        self._sources = sources
        self._lock = threading.Lock()
        self._in_use = Counter[str]()
        """Contents that a message on its way names."""

    def write(self, data: bytes, *, since: int) -> str:
        """Store a content durably, in doubt until `keep` or `drop`, and return its SHA-256 in hex.

        `since` is a position of the log behind which the event will be that names it.

        Raises:
            StoreUnavailable: it can't be stored.
        """
        sha256 = hashlib.sha256(data).hexdigest()
        with self._lock:
            # An equal content is never written over: it may be read now. One that was altered is made good.
            if self._state(self._own, sha256) != "right":
                self._own.put(f"{sha256}{MARK}", str(since).encode())
                self._own.put(sha256, data)
            self._in_use[sha256] += 1
        crash_point("F1")
        return sha256

    def keep(self, contents: Iterable[str]) -> None:
        """Note that an event that names these contents is recorded: they are in doubt no more."""
        with self._lock:
            for sha256 in contents:
                self._in_use[sha256] -= 1
                self._own.remove(f"{sha256}{MARK}")

    def drop(self, contents: Iterable[str]) -> None:
        """Note that no event will name these contents; what is new of them goes, unless another message has it."""
        with self._lock:
            for sha256 in contents:
                self._in_use[sha256] -= 1
                mark = self._own.get(f"{sha256}{MARK}")
                if self._in_use[sha256] <= 0 and mark:
                    self._remove(sha256)

    def doubt(self, contents: Iterable[str]) -> None:
        """Put contents in doubt whose events are about to be erased; `settle` says what becomes of them."""
        with self._lock:
            for sha256 in contents:
                if self._own.get(sha256) is not None:
                    self._own.put(f"{sha256}{MARK}", b"")

    def settle(self, named: Callable[[Collection[str], int], Collection[str]]) -> int:
        """Remove the contents in doubt that no event names, and return how many there were.

        `named` gets contents and a position, and returns those that an event behind it names.
        """
        removed = 0
        by_place: dict[int, list[str]] = {}
        for sha256, since in self._doubtful().items():
            by_place.setdefault(since, []).append(sha256)
        for since, contents in by_place.items():
            still = named(contents, since)
            with self._lock:
                for sha256 in contents:
                    if sha256 in still:
                        self._own.remove(f"{sha256}{MARK}")
                    elif self._in_use[sha256] <= 0 and self._own.get(f"{sha256}{MARK}") is not None:
                        self._remove(sha256)
                        removed += 1
        return removed

    def read(self, sha256: str) -> bytes | None:
        """Return a content; None where it is not there: erased, lost, or left in the log that this fork comes from.

        Raises:
            CorruptEvent: it is not what was written.
            StoreUnavailable: it can't be read.
        """
        altered = False
        for contents in (self._own, *self._sources()):
            data = contents.get(sha256)
            if data is not None:
                if hashlib.sha256(data).hexdigest() == sha256:
                    return data
                altered = True
        if altered:
            raise CorruptEvent(f"the file {sha256} is not what was written: restore it from a backup")
        return None

    def path(self, sha256: str) -> Path | None:
        """Return the file that has a content; None where it is in none."""
        for contents in (self._own, *self._sources()):
            path = contents.path(sha256)
            if path is not None:
                return path
        return None

    def state(self, sha256: str) -> FileState:
        """Return whether a content is there as it was written."""
        states = {self._state(contents, sha256) for contents in (self._own, *self._sources())}
        return "right" if "right" in states else "altered" if "altered" in states else "missing"

    def own(self) -> Sequence[str]:
        """Return the SHA-256 of all contents of this log, sorted."""
        return sorted(name for name in self._own.names() if not name.endswith(MARK))

    def take(self, sha256: str, other: Files) -> bool:
        """Copy a content of another store; False where that has none, or it is altered there."""
        if other.state(sha256) != "right":
            return False
        data = other.read(sha256)
        if data is None:
            return False
        if self._state(self._own, sha256) != "right":
            self._own.put(sha256, data)
        return True

    def encrypt(self) -> int:
        """Encrypt contents that were stored before the log was kept so, and return how many these are (CRYPT-7)."""
        stored, number = self._own.stored, 0
        if stored is self._own:
            return 0
        with self._lock:
            for name in [name for name in stored.names() if HIDDEN not in name]:
                data = stored.get(name)
                if data is not None:
                    self._own.put(name, data)
                    stored.remove(name)  # not before: after a kill it is there twice, and goes the next time
                    number += not name.endswith(MARK)
        return number

    def stored_names(self) -> Sequence[str]:
        """Return the names of all contents of this log as they are stored, sorted: of an encrypted one another than its SHA-256."""
        return sorted(name for name in self._own.stored.names() if not name.endswith(MARK))

    def stored(self, name: str) -> bytes | None:
        """Return the bytes that are stored under such a name, encrypted ones as they are; None where there are none."""
        return self._own.stored.get(name)

    def _doubtful(self) -> Mapping[str, int]:
        with self._lock:
            marks = [name for name in self._own.names() if name.endswith(MARK)]
            return {
                name.removesuffix(MARK): int(self._own.get(name) or b"0")
                for name in marks
                if self._in_use[name.removesuffix(MARK)] <= 0
            }

    def _remove(self, sha256: str) -> None:
        # The content first: without its mark it would never be looked at again.
        self._own.remove(sha256)
        self._own.remove(f"{sha256}{MARK}")

    @staticmethod
    def _state(contents: Contents, sha256: str) -> FileState:
        data = contents.get(sha256)
        if data is None:
            return "missing"
        return "right" if hashlib.sha256(data).hexdigest() == sha256 else "altered"
