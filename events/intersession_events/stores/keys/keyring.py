"""Keeps the words of a log encrypted: a key for each stream and each file, wrapped by the master key (CRYPT-1).

A row that is kept encrypted is one whose words are erased, as it would stand without them, and its salt and its payload stand
encrypted beside (`Envelope.sealed`). So what a hash covers is the same with encryption and without, and a log whose keys are not at
hand is read like one whose words are gone. With the keys each row is seen as it was before (`clear`).
"""

import base64
import threading
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from fnmatch import fnmatchcase
from typing import Any, Final, final

import msgspec

from intersession_events.basics.crash_points import crash_point
from intersession_events.basics.errors import BadKey, CorruptEvent, StoreUnavailable
from intersession_events.facts import encode, has_words, left_of_payload, unsaid
from intersession_events.log.recorded import Recorded
from intersession_events.log.row_state import SEALED, SHORT, Envelope, as_state, is_sealed, opened
from intersession_events.log.sql import Question
from intersession_events.log.verifying.encrypted_rows import Unseen
from intersession_events.stores.database import Cursor, Row
from intersession_events.stores.keys.box import KEY_BYTES, NONCE_BYTES, locked, unlocked
from intersession_events.stores.keys.records import Header, KeyFile, KeyRecords, Stamp, Wrapped
from intersession_events.stores.keys.source import VARIABLE, Sessions, Source

_ID_BYTES: Final = 16
_ROW: Final = b"intersession row 1"
_DATA: Final = b"intersession data 1"
_KEY: Final = b"intersession key 1"
_WHOLE: Final = b'{"sealed":"'
_LINE_BYTES: Final = 4_096
"""No line of a key is longer."""
_NEVER: Final = "erased.1"
_SESSION: Final = "session:"


@final
class Keyring:
    """The keys of a log. Any thread may call it; the log's one writer makes keys.

    `source` says where the master key is, in the place of what was noted with the keys. A reader that can't have it sees the log
    without what is encrypted, and `trouble` says why.
    """

    def __init__(
        self, records: KeyFile, entropy: Callable[[int], bytes], *, source: Source | None = None
    ) -> None:
        self._records = records
        self._entropy = entropy
        self._source = source
        self._lock = threading.RLock()
        self._leaving = ContextVar("leaving", default=False)
        self._stamp: Stamp | None = None
        self._kept: KeyRecords
        self._by_id: dict[str, Wrapped] = {}
        self._of: dict[str, Wrapped] = {}
        self._open: dict[str, bytes] = {}
        self._master: bytes | None = None
        self._found_at: Source | None = None
        self.trouble: BadKey | None
        self._load()

    # What is encrypted, for the writer:

    def sealed(self, state: bytes, recorded: Recorded) -> bytes:
        """Return the state of a row with its words encrypted; the same one, if it has none that are kept so.

        Raises:
            StoreUnavailable: a new key can't be stored.
        """
        if recorded.topic == _NEVER or not self.keeps(recorded.stream):
            return state
        left = unsaid(recorded.event)
        if left == recorded.event:
            return state
        return self._sealed(
            opened(state, where=(recorded.stream, recorded.version)), recorded.stream, encode(left)
        )

    def sealed_row(self, row: Row) -> Row:
        """Return a row of another log's, as it is copied into this one, with its words encrypted.

        Raises:
            CorruptEvent: it can't be read.
            UnknownTopic: this version does not know its topic.
            StoreUnavailable: a new key can't be stored.
        """
        position, stream, version, topic, state = row
        if topic == _NEVER or not self.keeps(stream) or not has_words(topic):
            return row
        envelope = opened(state, where=(stream, version))
        payload = bytes(envelope.data)
        left = None if envelope.is_erased else left_of_payload(topic, payload)
        if left is None or left == payload:
            return row
        return position, stream, version, topic, self._sealed(envelope, stream, left)

    def _sealed(self, envelope: Envelope, stream: str, left: bytes) -> bytes:
        name, key = self._key_of(stream)
        hashed = bytes.fromhex(envelope.hash)
        box = locked(
            key, hashed[:NONCE_BYTES], bytes.fromhex(envelope.salt) + bytes(envelope.data), _ROW + hashed
        )
        return as_state(
            msgspec.structs.replace(
                envelope,
                data=msgspec.Raw(left),
                salt="",
                sealed=base64.b64encode(bytes.fromhex(name) + box).decode(),
            )
        )

    def sealed_data(self, data: bytes, owner: str) -> bytes:
        """Return other data of a stream, such as a snapshot of its state, encrypted; as it is, where the stream is not kept so."""
        if not self.keeps(owner):
            return data
        return _WHOLE + base64.b64encode(self.locked(data, owner)) + b'"}'

    def locked(self, data: bytes, owner: str) -> bytes:
        """Return data encrypted with the key of its owner, which is made if there is none."""
        name, key = self._key_of(owner)
        nonce = self._entropy(NONCE_BYTES)
        return bytes.fromhex(name) + nonce + locked(key, nonce, data, _DATA)

    def keeps(self, owner: str) -> bool:
        """Whether what belongs to a stream is kept encrypted from now on."""
        sessions = self._kept.header.sessions
        if sessions == "all" or not owner.startswith(_SESSION):
            return bool(sessions)
        key = owner.removeprefix(_SESSION)
        return any(fnmatchcase(key, pattern) for pattern in sessions)

    def prepare(self, owners: Iterable[str]) -> None:
        """Make the keys that owners have not yet, in one write."""
        with self._lock:
            fresh = [owner for owner in owners if owner not in self._of and self.keeps(owner)]
            if fresh:
                self._make(fresh)

    # What was encrypted, for all:

    def clear(self, state: bytes) -> bytes:
        """Return what was encrypted; what is something else, or whose key is not at hand, as it is."""
        if not is_sealed(state):
            return state
        if state.startswith(_WHOLE):
            return self.unlocked(_bytes(state[len(_WHOLE) : -2])) or state
        try:
            envelope = opened(state, where="a row")
        except CorruptEvent:
            return state
        return self._clear(envelope) or state

    def clear_row(self, _cursor: object, row: tuple[Any, ...]) -> tuple[Any, ...]:  # what columns hold
        """Return a row of any table with what is encrypted in it in clear: the `row_factory` of a connection."""
        for value in () if self._leaving.get() else row:
            if type(value) is bytes and SEALED in value:
                return tuple(self.clear(one) if type(one) is bytes else one for one in row)
        return row

    @contextmanager
    def as_stored(self) -> Generator[None]:
        """Leave rows encrypted that are read in a block, by this thread: a backup has them so, or it would not forget."""
        token = self._leaving.set(True)
        try:
            yield
        finally:
            self._leaving.reset(token)

    def unlocked(self, box: bytes) -> bytes | None:
        """Return data that was encrypted; None where it is something else, or its key is not at hand."""
        key = self._opened(box[:_ID_BYTES].hex())
        nonce, data = box[_ID_BYTES : _ID_BYTES + NONCE_BYTES], box[_ID_BYTES + NONCE_BYTES :]
        return None if key is None else unlocked(key, nonce, data, _DATA)

    def look(self, envelope: Envelope) -> Unseen | str:
        """Say why an encrypted row, as it was read with these keys, can't be seen, or in words what is wrong with it."""
        if self._opened(key_in(envelope)) is not None:
            return "the encrypted payload was changed" if self._clear(envelope) is None else "away"
        found = self._by_id.get(key_in(envelope))
        if found is None:
            return f"the payload is encrypted with a key that {self._records.shown} does not have"
        if found.destroyed is not None:
            return "destroyed"
        return "away" if self._master is None else f"{self._records.shown} was changed: a key can't be read"

    def of(self, owner: str) -> bytes | None:
        """Return the key of an owner; None where there is none, or it is not at hand."""
        with self._lock:
            if owner not in self._of:
                self._refresh()
            found = self._of.get(owner)
            return None if found is None else self._opened(found.id)

    # Its life:

    @property
    def header(self) -> Header:
        """How the log is kept."""
        return self._kept.header

    @property
    def source(self) -> Source | None:
        """Where its master key was found; None where it is not at hand."""
        return self._found_at

    @property
    def shown(self) -> str:
        """The place of the keys, in words."""
        return self._records.shown

    def all(self) -> Sequence[Wrapped]:
        """Return all keys, as they are wrapped, in the order in which they were made."""
        with self._lock:
            self._load()
            return tuple(self._by_id.values())

    def ids(self, owners: Collection[str]) -> list[str]:
        """Return the ids of the keys of streams or files that are there, sorted."""
        wanted = frozenset(owners)
        return sorted(key.id for key in self.all() if key.owner in wanted and key.destroyed is None)

    def destroy(self, ids: Collection[str], now_ms: int) -> None:
        """Destroy keys for good: what they encrypted can't be read any more, here and in any copy of the log (CRYPT-4).

        Raises:
            StoreUnavailable: they can't be written over.
        """
        if not ids:
            return
        with self._lock, self._records.held() as file:
            file.destroy(frozenset(ids), now_ms)
            self._load()

    def rotate(self, source: Source, master: bytes) -> int:
        """Wrap all keys anew by another master key, and return their number (CRYPT-3).

        Raises:
            StoreUnavailable: the present master key is not at hand, or they can't be written.
        """
        with self._lock, self._records.held():
            self._load()
            opened_ = {name: self.must(name) for name, key in self._by_id.items() if key.destroyed is None}
            header = header_of(source, master, self._kept.header.sessions, self._entropy)
            keys = [
                _wrapped(master, key.id, key.owner, opened_[key.id], self._entropy)
                if key.id in opened_
                else key
                for key in self._by_id.values()
            ]
            self._source = source
            self._records.write(KeyRecords(header, keys))
            self._load()
            return len(opened_)

    def change(self, sessions: Sessions) -> None:
        """Note which sessions are kept encrypted from now on, and where the master key is.

        Raises:
            StoreUnavailable: it can't be written.
        """
        with self._lock, self._records.held():
            self._refresh()
            header = msgspec.structs.replace(self._kept.header, master=_noted(self.source), sessions=sessions)
            if header != self._kept.header:
                self._records.write(KeyRecords(header, (*self._by_id.values(),)))
                self._load()

    def must(self, name: str) -> bytes:
        """Return a key.

        Raises:
            StoreUnavailable: it can't be had.
        """
        key = self._opened(name)
        if key is None:
            raise StoreUnavailable(
                str(self.trouble or f"{self._records.shown} has no key {name} that could be read")
            )
        return key

    def _key_of(self, owner: str) -> tuple[str, bytes]:
        with self._lock:
            self.prepare((owner,))
            found = self._of[owner]
            return found.id, self.must(found.id)

    def _make(self, owners: Sequence[str]) -> None:
        with self._records.held() as file:
            self._refresh()  # the master key may be another one now
            if self._master is None:
                raise StoreUnavailable(str(self.trouble))
            made = [
                _wrapped(
                    self._master,
                    self._entropy(_ID_BYTES).hex(),
                    owner,
                    self._entropy(KEY_BYTES),
                    self._entropy,
                )
                for owner in owners
                if owner not in self._of
            ]
            if made:
                file.add(made)
                self._take(made)
                self._stamp = self._records.stamp()

    def _clear(self, envelope: Envelope) -> bytes | None:
        key = self._opened(key_in(envelope))
        if key is None:
            return None
        try:
            hashed = bytes.fromhex(envelope.hash)
        except ValueError:
            return None
        box = _bytes(envelope.sealed)[_ID_BYTES:]
        data = unlocked(key, hashed[:NONCE_BYTES], box, _ROW + hashed)
        if data is None:
            return None
        salt, payload = data[:_ID_BYTES], data[_ID_BYTES:]
        return as_state(
            msgspec.structs.replace(envelope, data=msgspec.Raw(payload), salt=salt.hex(), sealed="")
        )

    def _opened(self, name: str) -> bytes | None:
        key = self._open.get(name)
        if key is not None:
            return key
        with self._lock:
            if name not in self._by_id:
                self._refresh()
            found = self._by_id.get(name)
            if found is None or self._master is None or found.destroyed is not None:
                return None
            key = _unwrapped(self._master, found)
            if key is not None:
                self._open[name] = key
            return key

    def _refresh(self) -> None:
        before, now = self._stamp, self._records.stamp()
        if before is None or now is None or now.inode != before.inode or now.size <= before.size:
            if now != before:
                self._load()
            return
        # Each stream that begins adds a key: what was read is not read again. From the line before, which may have been cut.
        self._take(self._records.added(max(before.size - _LINE_BYTES, 0)))
        self._stamp = now

    def _load(self) -> None:
        self._stamp = self._records.stamp()
        kept = self._records.load()
        is_same = self._master is not None and kept.header == self._kept.header
        self._kept = kept
        self._by_id, self._of, self._open = {}, {}, {}
        self._take(self._kept.keys)
        if is_same:
            return  # a command that prints it is not run again
        self._master, self._found_at = None, None
        self.trouble = BadKey(
            f"the master key of {self._records.shown} comes from a command: name that in encryption.keys, or in "
            f"${VARIABLE}"
        )
        # Where it was noted last as well: it may have been rotated since this process was told.
        for source in filter(None, dict.fromkeys((self._source, self._kept.header.master))):
            try:
                master = source.key()
            except BadKey as error:
                self.trouble = error
                continue
            if _checked(self._kept.header, master):
                self._master, self._found_at, self.trouble = master, source, None
                return
            self.trouble = BadKey(
                f"{source} is not the master key of {self._records.shown}: bring that back from its copy. Without it the "
                "log can be read, but for what is encrypted in it"
            )

    def _take(self, keys: Iterable[Wrapped]) -> None:
        for key in keys:
            self._by_id[key.id] = key
            if key.destroyed is None:
                self._of[key.owner] = key


def key_in(envelope: Envelope) -> str:
    """Return the id of the key that encrypted a row."""
    return _bytes(envelope.sealed)[:_ID_BYTES].hex()


def header_of(source: Source, master: bytes, sessions: Sessions, entropy: Callable[[int], bytes]) -> Header:
    """Return how a log is kept with a master key."""
    nonce = entropy(NONCE_BYTES)
    return Header(
        check=base64.b64encode(nonce + locked(master, nonce, b"", _KEY)).decode(),
        master=_noted(source),
        sessions=sessions,
    )


def _noted(source: Source | None) -> Source | None:
    """Return what is noted of a source: no file says which program others run."""
    return None if source is None or source.command else source


def _checked(header: Header, master: bytes) -> bool:
    box = _bytes(header.check)
    return unlocked(master, box[:NONCE_BYTES], box[NONCE_BYTES:], _KEY) is not None


def _wrapped(master: bytes, name: str, owner: str, key: bytes, entropy: Callable[[int], bytes]) -> Wrapped:
    nonce = entropy(NONCE_BYTES)
    box = nonce + locked(master, nonce, key, _KEY + bytes.fromhex(name) + owner.encode())
    return Wrapped(name, base64.b64encode(box).decode(), owner)


def _unwrapped(master: bytes, wrapped: Wrapped) -> bytes | None:
    box = _bytes(wrapped.key)
    try:
        bound = _KEY + bytes.fromhex(wrapped.id) + wrapped.owner.encode()
    except ValueError:
        return None
    return unlocked(master, box[:NONCE_BYTES], box[NONCE_BYTES:], bound)


def _bytes(text: str | bytes) -> bytes:
    """Return the bytes of a base64; none of one that is not written as we write it: each changed letter is noticed."""
    said = text.encode() if isinstance(text, str) else text
    try:
        data = base64.b64decode(said, validate=True)
    except ValueError:
        return b""
    return data if base64.b64encode(data) == said else b""


_ENCRYPTED: Final = "SELECT COUNT(*) FROM stored_events WHERE originator_id=? AND substr(state, 1, 1) <> ? AND instr(state, ?) > 0"


def destroy_unused(keys: Keyring, streams: Collection[str], now_ms: int, cursor: Cursor) -> int:
    """Destroy the keys of streams in which nothing is encrypted any more, and return their number; in the writer's turn.

    Raises:
        StoreUnavailable: they can't be written over.
    """
    unused: list[str] = []
    for stream in streams:
        cursor.execute(_ENCRYPTED, (stream, SHORT, SEALED))
        if cursor.fetchone() == (0,):
            unused.append(stream)
    ids = keys.ids(unused)
    crash_point("Y2")
    keys.destroy(ids, now_ms)
    return len(ids)


ENCRYPTED_ROWS: Final[Question] = (
    "SELECT 1 FROM stored_events WHERE substr(state, 1, 1) <> ? AND instr(state, ?) > 0 LIMIT 1",
    (SHORT, SEALED),
)
"""Asks whether a log has a row that is kept encrypted; it looks at each."""
