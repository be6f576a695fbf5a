"""The contents of files that events name by their SHA-256, as the log's users have them (FILE-1).

A content is durable before the event that names it. Until that event is recorded it is *in doubt*, and so is one whose events
are about to be erased. What a crash leaves in doubt is looked up in the log at the next start, and goes if no event names it.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple, Protocol

from intersession_events.basics.errors import CorruptEvent
from intersession_events.facts import FileBlock, decode, files_in
from intersession_events.log.row_state import payload_in
from intersession_events.log.sql import Row

_MARK: Final = b'"type":"file"'
_PAGE: Final = 1000

FileState = Literal["right", "altered", "missing"]


class ReadsFiles(Protocol):
    """Reads contents; any thread may call it."""

    def read(self, sha256: str) -> bytes | None:
        """Return a content; None where it is not there: erased, lost, or gone from the log that this fork comes from.

        Raises:
            CorruptEvent: it is not what was written.
            StoreUnavailable: it can't be read.
        """
        ...

    def path(self, sha256: str) -> Path | None:
        """Return the file that has a content; None where it is in none."""
        ...


class Files(ReadsFiles, Protocol):
    """The contents of a log's files. A fork also reads those of the logs that it comes from.

    Its log's one writer writes them; any thread may call it.
    """

    def write(self, data: bytes, *, since: int) -> str:
        """Store a content durably, in doubt until `keep` or `drop`, and return its SHA-256 in hex.

        `since` is a position of the log behind which the event will be that names it.

        Raises:
            StoreUnavailable: it can't be stored.
        """
        ...

    def keep(self, contents: Iterable[str]) -> None:
        """Note that an event that names these contents is recorded: they are in doubt no more."""
        ...

    def drop(self, contents: Iterable[str]) -> None:
        """Note that no event will name these contents; what is new of them goes, unless another message has it."""
        ...

    def doubt(self, contents: Iterable[str]) -> None:
        """Put contents in doubt whose events are about to be erased; `settle` says what becomes of them."""
        ...

    def settle(self, named: Callable[[Collection[str], int], Collection[str]]) -> int:
        """Remove the contents in doubt that no event names, and return how many there were.

        `named` gets contents and a position, and returns those that an event behind it names.
        """
        ...

    def encrypt(self) -> int:
        """Encrypt contents that were stored before the log was kept so, and return how many these are (CRYPT-7).

        Raises:
            StoreUnavailable: they can't be read, or stored.
        """
        ...

    def state(self, sha256: str) -> FileState:
        """Return whether a content is there as it was written."""
        ...

    def stored_names(self) -> Sequence[str]:
        """Return the names of all contents of this log as they are stored, sorted: of an encrypted one another than its SHA-256."""
        ...

    def stored(self, name: str) -> bytes | None:
        """Return the bytes that are stored under such a name, encrypted ones as they are; None where there are none."""
        ...

    def own(self) -> Sequence[str]:
        """Return the SHA-256 of all contents of this log, sorted; those that a fork has of its source are not its own."""
        ...

    def take(self, sha256: str, other: "Files") -> bool:
        """Copy a content of another log; False where that has none, or it is altered there."""
        ...


class NamedFile(NamedTuple):
    """A file that an event names, and the event's place."""

    file: FileBlock
    position: int
    stream: str
    version: int


class HasRows(Protocol):
    """Reads the rows of a log, unproven."""

    def rows(self, *, after: int | None = 0, limit: int = 1000) -> Sequence[Row]:
        """Return position, stream, version, topic and state of rows after a position."""
        ...


def named_files(log: HasRows, *, after: int = 0) -> Iterator[NamedFile]:
    """Yield the files that events behind a position name, unproven; what can't be read names none."""
    while rows := log.rows(after=after, limit=_PAGE):
        for position, stream, version, topic, state in rows:
            payload = payload_in(state)
            # Few events name a file, so few are decoded.
            if payload is None or _MARK not in payload:
                continue
            try:
                files = files_in(decode(topic, payload))
            except CorruptEvent:
                continue
            yield from (NamedFile(file, position, stream, version) for file in files)
        after = rows[-1][0]
