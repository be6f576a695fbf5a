"""States that are folded from streams, and snapshots of them: an actor continues from one without reading its whole stream.

A snapshot is the state after one event of a stream, kept beside the log. It proves nothing and nobody needs it: it can be
dropped at any time, and is folded anew. So it is used only where it fits what the log says: it holds the hash of its event, which is
read with what follows, and a digest over all of it. That digest finds damage and careless edits. An attacker who can hash can
make another snapshot that fits; `verify` folds the streams anew and finds it.
"""

from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from intersession_events.basics.errors import CorruptEvent
from intersession_events.log.recorded import Recorded

S = TypeVar("S")

EVERY: Final = 250
"""A stream gets a snapshot when it has this many more events than the last one covers, and none as long as it has fewer."""

LARGEST_STATE: Final = 64 * 1024
"""A state that has more bytes than this as JSON gets no snapshot: it will soon be smaller, or is better read from the log."""


class Folding(Protocol[S]):
    """How the state of a stream is folded from its events, and stored.

    `topic` names the shape of what `encode` returns, with a version: `session_state.1`. What was kept in another shape is not read.
    """

    @property
    def topic(self) -> str:
        """The shape's name and version."""
        ...

    def begin(self) -> S:
        """Return the state before the first event."""
        ...

    def apply(self, state: S, recorded: Sequence[Recorded]) -> S:
        """Return the state after some more events. The previous state is not used again."""
        ...

    def encode(self, state: S) -> bytes | None:
        """Return a state as canonical JSON; None for a state that is not stored."""
        ...

    def decode(self, data: bytes, version: int) -> S:
        """Return a stored state, and the version of the stream that it belongs to.

        Raises:
            ValueError: it is of another shape.
        """
        ...


class Folded(NamedTuple, Generic[S]):
    """The state of a stream after its event `last` (None: there is no event). `kept` is the version of the last snapshot."""

    state: S
    last: Recorded | None
    kept: int

    @property
    def version(self) -> int:
        """The version of the stream."""
        return 0 if self.last is None else self.last.version


class States(Protocol):
    """Folds the streams of a log, each from its last snapshot on."""

    def fold(self, stream: str, folding: Folding[S], *, to: int | None = None) -> Folded[S]:
        """Return the state of a stream, as of a version (None: now).

        Raises:
            CorruptEvent: an event that was read was changed, or is missing.
            UnknownTopic: one is of a newer version.
        """
        ...

    def walk(self, stream: str, folding: Folding[S], *, since: int = 0) -> Iterator[Folded[S]]:
        """Yield the state at a version that has a snapshot (0: the beginning), then after every few events behind it.

        Raises:
            CorruptEvent: as `fold` does.
            UnknownTopic: the same.
        """
        ...

    def load(
        self, stream: str, folding: Folding[S], on_folded: "Callable[[Folded[S] | Exception], None]"
    ) -> None:
        """Fold a stream on a reader's thread; never blocks. `on_folded` must not block either."""
        ...

    def keep(self, stream: str, folding: Folding[S], folded: Folded[S]) -> bool:
        """Store a state as a snapshot with the next commit, without waiting. False if the state is not to be stored.

        It may get lost with the process; the events that it is of are durable already.
        """
        ...

    def versions(self, stream: str, topic: str) -> Sequence[int]:
        """Return the versions of a stream that have a snapshot of this shape, in order."""
        ...

    def streams(self) -> Sequence[str]:
        """Return the names of the streams that have snapshots, sorted.

        Raises:
            CorruptEvent: the snapshots can't be read.
            StoreUnavailable: the store does not answer.
        """
        ...

    def kept(self, stream: str, *, version: int | None = None) -> "Iterator[Snapshot | CorruptEvent]":
        """Yield the snapshots of a stream by version, or those of one version; for each changed one, an error.

        Raises:
            CorruptEvent: all of a stream are asked for, and can't be read.
            StoreUnavailable: all of a stream are asked for, and the store does not answer.
        """
        ...

    def problems(self) -> Iterator[str]:
        """Say what is wrong with the table of snapshots itself.

        Raises:
            CorruptEvent: the snapshots can't be read.
            StoreUnavailable: the store does not answer.
        """
        ...

    def drop(self) -> int:
        """Drop all snapshots, and say how many there were. For the writer.

        Raises:
            StoreUnavailable: this log is open for reading only.
        """
        ...


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A stored state. `hash` is that of the event that it follows; `data` is JSON."""

    stream: str
    version: int
    topic: str
    hash: str
    data: bytes

    @property
    def originator_id(self) -> str:
        """The stream, as the eventsourcing library calls it."""
        return self.stream

    @property
    def originator_version(self) -> int:
        """The version, as the eventsourcing library calls it."""
        return self.version


class EncryptedSnapshot(CorruptEvent):
    """A snapshot is encrypted, and its key is not at hand, or was destroyed."""


class _Stored(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    # The `state` of a row, in canonical order.
    data: msgspec.Raw
    digest: str
    hash: str


_ENCODE: Final = msgspec.json.Encoder().encode
_DECODE: Final = msgspec.json.Decoder(_Stored).decode


def stored_snapshot(snapshot: Snapshot, *, log_id: str) -> bytes:
    """Return a snapshot's row: JSON with a digest over its content, its stream and its log."""
    return _ENCODE(_Stored(msgspec.Raw(snapshot.data), _digest(snapshot, log_id), snapshot.hash))


def read_snapshot(*, log_id: str, stream: str, version: int, topic: str, state: bytes) -> Snapshot:
    """Return the snapshot of a row.

    Raises:
        CorruptEvent: it was changed, or is of another log or stream.
    """
    if not isinstance(version, int):  # pyright: ignore[reportUnnecessaryIsInstance]  # SQLite keeps what it is given
        raise CorruptEvent(f"the snapshot of {stream!r} has an invalid version, {version!r}")
    if type(state) is not bytes:
        raise CorruptEvent(
            f"the snapshot of {stream!r} version {version} is invalid: it is not stored as bytes"
        )
    try:
        stored = _DECODE(state)
    except (ValueError, TypeError, RecursionError) as error:
        raise CorruptEvent(f"the snapshot of {stream!r} version {version} is invalid: {error}") from error
    snapshot = Snapshot(
        stream=stream, version=version, topic=topic, hash=stored.hash, data=bytes(stored.data)
    )
    if _digest(snapshot, log_id) != stored.digest:
        raise CorruptEvent(f"the snapshot of {stream!r} version {version!r} was changed")
    return snapshot


def _digest(snapshot: Snapshot, log_id: str) -> str:
    about = _ENCODE([log_id, snapshot.stream, snapshot.version, snapshot.topic, snapshot.hash])
    return sha256(about + snapshot.data).hexdigest()
