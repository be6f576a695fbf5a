"""Keeps the words of a log encrypted: a key for each stream and each file, wrapped by the master key (CRYPT-1).

A row that is kept encrypted is one whose words are erased, as it would stand without them, and its salt and its payload stand
encrypted beside (`Envelope.sealed`). So what a hash covers is the same with encryption and without, and a log whose keys are not at
hand is read like one whose words are gone. With the keys each row is seen as it was before (`clear`).
"""

import base64
import hmac
from collections.abc import Callable, Collection, Generator, Iterable
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from typing import Any, Final, final

import msgspec

from intersession_events.basics.crash_points import crash_point
from intersession_events.basics.errors import CorruptEvent, UnknownTopic
from intersession_events.facts import Event, encode, has_words, left_of_payload, unsaid
from intersession_events.log.recorded import Recorded
from intersession_events.log.row_state import SEALED, SHORT, WHOLE, Envelope, as_state, is_sealed, opened
from intersession_events.log.sql import COLUMNS, Query, Question
from intersession_events.log.verifying.encrypted_rows import Unseen
from intersession_events.proofs.apart import Apart
from intersession_events.stores.database import Cursor, Row
from intersession_events.stores.keys.box import NONCE_BYTES, locked, unlocked
from intersession_events.stores.keys.records import KeyFile
from intersession_events.stores.keys.wrapped_keys import Known, WrappedKeys
from intersession_events.stores.keys.wrapping import ID_BYTES, decoded

_ROW: Final = b"intersession row 1"
_THINKING: Final = b"intersession thinking 1"
_ENCODE: Final = msgspec.json.Encoder().encode
_APART: Final = msgspec.json.Decoder(Apart).decode
_DATA: Final = b"intersession data 1"
_NEVER: Final = "erased.1"
UNFINISHED: Final = "unfinished answers"
"""The owner of the key of what channels at workers show of answers that are still being said."""


@final
class Keyring(WrappedKeys):
    """Encrypts with the keys of a log, and puts into clear."""

    def __init__(
        self, records: KeyFile, entropy: Callable[[int], bytes], *, known: Known | None = None
    ) -> None:
        super().__init__(records, entropy, known=known)
        self._leaving = ContextVar("leaving", default=False)

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

    def sealed_rows(self, rows: Iterable[Row]) -> list[Row]:
        """Return rows that are copied into this log, or that stand in it, with their words encrypted. Their new keys are one write.

        Raises:
            CorruptEvent: one can't be read.
            UnknownTopic: this version does not know a topic.
            StoreUnavailable: new keys can't be stored.
        """
        found = [(row, self._clear_words(row)) for row in rows]
        self.prepare({row[1] for row, words in found if words is not None})
        return [
            row if words is None else (*row[:4], self._sealed(words[0], row[1], words[1]))
            for row, words in found
        ]

    def has_clear_words(self, row: Row) -> bool:
        """Whether a row has words in clear that are to be encrypted."""
        return self._clear_words(row) is not None

    def _clear_words(self, row: Row) -> tuple[Envelope, bytes] | None:
        """Return a row's envelope, and what is left without its words; None where it has none that are kept so, or they are."""
        _, stream, version, topic, state = row
        if topic == _NEVER or not self.keeps(stream) or not has_words(topic):
            return None
        envelope = opened(state, where=(stream, version))
        left = None if envelope.is_erased else left_of_payload(topic, envelope.payload)
        return None if left is None or left == envelope.data else (envelope, left)

    def prepare_for(self, coming: Iterable[tuple[str, Event]]) -> None:
        """Make the keys that coming events of streams take, in one write: a stream has one from its first words on.

        Raises:
            StoreUnavailable: they can't be stored.
        """
        self.prepare({stream for stream, event in coming if not self.has(stream) and unsaid(event) != event})

    def _sealed(self, envelope: Envelope, stream: str, left: bytes) -> bytes:
        name, key = self.key_of(stream)
        hashed = bytes.fromhex(envelope.hash)
        box = locked(
            key, hashed[:NONCE_BYTES], bytes.fromhex(envelope.salt) + bytes(envelope.data), _ROW + hashed
        )
        sealed = base64.b64encode(bytes.fromhex(name) + box).decode()
        if envelope.apart is not None:
            # Another nonce, of the same hash: that covers the thinking as well, so no other text comes with it.
            own = locked(key, hashed[NONCE_BYTES:][:NONCE_BYTES], _ENCODE(envelope.apart), _THINKING + hashed)
            sealed += f".{base64.b64encode(own).decode()}"
        return as_state(
            msgspec.structs.replace(envelope, apart=None, data=msgspec.Raw(left), salt="", sealed=sealed)
        )

    def sealed_data(self, data: bytes, owner: str) -> bytes:
        """Return other data of a stream, such as a snapshot of its state, encrypted; as it is, where the stream is not kept so."""
        if not self.keeps(owner):
            return data
        return WHOLE + base64.b64encode(self.locked(data, owner)) + b'"}'

    def sealed_call(self, content: bytes, stream: str) -> bytes:
        """Return what a worker is given for a call, or answers to it, as it may wait in a table (WORK-18).

        The stream is that of the call; a part of an unfinished answer has none, and a key that all of these share.
        """
        return self.sealed_data(content, stream or UNFINISHED) if content else content

    def locked(self, data: bytes, owner: str) -> bytes:
        """Return data encrypted with the key of its owner, which is made if there is none."""
        name, key = self.key_of(owner)
        # No nonce comes twice but with the same data: that has the same ciphertext, so that an answer is known when it is told again.
        nonce = hmac.digest(key, data, "sha256")[:NONCE_BYTES]
        return bytes.fromhex(name) + nonce + locked(key, nonce, data, _DATA)

    # What was encrypted, for all:

    def clear(self, state: bytes) -> bytes:
        """Return what was encrypted; what is something else, or whose key is not at hand, as it is."""
        if not is_sealed(state):
            return state
        if state.startswith(WHOLE):
            return self.unlocked(_box_in(state)) or state
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
        key = self.opened(box[:ID_BYTES].hex())
        nonce, data = box[ID_BYTES : ID_BYTES + NONCE_BYTES], box[ID_BYTES + NONCE_BYTES :]
        return None if key is None else unlocked(key, nonce, data, _DATA)

    def look(self, envelope: Envelope) -> Unseen | str:
        """Say why an encrypted row, as it was read with these keys, can't be seen, or in words what is wrong with it."""
        return self._why_unseen(key_in(envelope), "payload", partial(self._clear, envelope))

    def look_whole(self, state: bytes) -> Unseen | str:
        """Say the same of data that is encrypted as a whole."""
        box = _box_in(state)
        return self._why_unseen(box[:ID_BYTES].hex(), "data", partial(self.unlocked, box))

    def _why_unseen(self, key: str, what: str, clear: Callable[[], bytes | None]) -> Unseen | str:
        if self.opened(key) is not None:
            return f"the encrypted {what} was changed" if clear() is None else "away"
        found = self._by_id.get(key)
        if found is None:
            return f"the {what} is encrypted with a key that {self._records.shown} does not have"
        if found.destroyed is not None:
            return "destroyed"
        return "away" if self._master is None else f"{self._records.shown} was changed: a key can't be read"

    def _clear(self, envelope: Envelope) -> bytes | None:
        key = self.opened(key_in(envelope))
        if key is None:
            return None
        try:
            hashed = bytes.fromhex(envelope.hash)
        except ValueError:
            return None
        box, _, thinking = envelope.sealed.partition(".")
        data = unlocked(key, hashed[:NONCE_BYTES], decoded(box)[ID_BYTES:], _ROW + hashed)
        if data is None:
            return None
        apart = None
        if thinking:
            own = unlocked(key, hashed[NONCE_BYTES:][:NONCE_BYTES], decoded(thinking), _THINKING + hashed)
            if own is None:
                return None
            apart = _APART(own)
        salt, payload = data[:ID_BYTES], data[ID_BYTES:]
        return as_state(
            msgspec.structs.replace(
                envelope, apart=apart, data=msgspec.Raw(payload), salt=salt.hex(), sealed=""
            )
        )


def _box_in(state: bytes) -> bytes:
    return decoded(state[len(WHOLE) : -2])


def key_in(envelope: Envelope) -> str:
    """Return the id of the key that encrypted a row."""
    return decoded(envelope.sealed.partition(".")[0])[:ID_BYTES].hex()


_LOOKED_AT: Final = 1_000
_IN_CLEAR: Final = (
    f"{COLUMNS}WHERE NOT (substr(state, 1, 1) <> ? AND instr(state, ?) > 0) ORDER BY rowid LIMIT ?"
)
_ENCRYPTED: Final = "SELECT originator_version FROM stored_events WHERE originator_id=? AND substr(state, 1, 1) <> ? AND instr(state, ?) > 0"


def without(keys: Keyring, places: Iterable[tuple[str, int]], query: Query) -> tuple[int, list[str]]:
    """Return how many keys encrypt nothing without the events at these places, streams with versions, and the streams that copies show still.

    They show what is not encrypted, and what has a key that other events of its stream need.
    """
    owners = {key.owner for key in keys.all() if key.destroyed is None}
    versions: dict[str, set[int]] = {}
    for stream, version in places:
        versions.setdefault(stream, set()).add(version)
    unused, shown = 0, list[str]()
    for stream, erased in sorted(versions.items()):
        encrypted = {version for (version,) in query(_ENCRYPTED, (stream, SHORT, SEALED))}
        unused += stream in owners and encrypted <= erased
        if encrypted != erased:
            shown.append(stream)
    return unused, shown


def destroy_unused(keys: Keyring, streams: Collection[str], now_ms: int, cursor: Cursor) -> int:
    """Destroy the keys of streams in which nothing is encrypted any more, and return their number; in the writer's turn.

    Raises:
        StoreUnavailable: they can't be written over.
    """
    unused: list[str] = []
    for stream in streams:
        cursor.execute(f"{_ENCRYPTED} LIMIT 1", (stream, SHORT, SEALED))
        if cursor.fetchone() is None:
            unused.append(stream)
    ids = keys.ids(unused)
    crash_point("Y2")
    # Parts of an unfinished answer may be in a copy of the database: what is shown from now on gets another key.
    keys.destroy([*ids, *keys.ids((UNFINISHED,))], now_ms)
    return len(ids)


def clear_from(keys: Keyring, query: Query) -> int | None:
    """Return the position of the first words in clear of streams that are kept encrypted; None if none of the first rows has some."""
    with keys.as_stored():
        rows = query(_IN_CLEAR, (SHORT, SEALED, _LOOKED_AT))
    for row in rows:
        with suppress(CorruptEvent, UnknownTopic):
            if keys.has_clear_words(row):
                return int(row[0])
    return None


def encrypt_page(keys: Keyring, after: int, page: int, cursor: Cursor) -> tuple[int, int]:
    """Encrypt those of as many rows behind a position as a `page` has that are in clear, where they stand (CRYPT-7).

    Return the last position, and how many rows were in clear.

    Raises:
        CorruptEvent: one can't be read, or would not come back as it is.
        StoreUnavailable: new keys can't be stored.
    """
    with keys.as_stored():
        cursor.execute(f"{COLUMNS}WHERE rowid > ? ORDER BY rowid LIMIT ?", (after, page))
        rows: list[Row] = cursor.fetchall()
    changed = 0
    for row, sealed in zip(rows, keys.sealed_rows(rows), strict=True):
        if sealed is row:
            continue
        where = f"position {row[0]}"
        if opened(keys.clear(sealed[4]), where=where) != opened(row[4], where=where):
            raise CorruptEvent(f"{where} can't be encrypted: it would not come back as it is")
        cursor.execute("UPDATE stored_events SET state=? WHERE rowid=?", (sealed[4], row[0]))
        changed += 1
    return (rows[-1][0] if rows else after), changed


def encrypt_calls(keys: Keyring, cursor: Cursor) -> None:
    """Encrypt what waits in the queue of calls in clear, where it stands (WORK-18)."""
    with keys.as_stored():
        cursor.execute("SELECT number, stream, content, answer FROM agent_calls")
        rows: list[tuple[int, str, bytes, bytes | None]] = cursor.fetchall()
    for number, stream, *said in rows:
        sealed = [one if not one or one.startswith(WHOLE) else keys.sealed_call(one, stream) for one in said]
        cursor.execute("UPDATE agent_calls SET content=?, answer=? WHERE number=?", (*sealed, number))


ENCRYPTED_ROWS: Final[Question] = (
    "SELECT 1 FROM stored_events WHERE substr(state, 1, 1) <> ? AND instr(state, ?) > 0 LIMIT 1",
    (SHORT, SEALED),
)
"""Asks whether a log has a row that is kept encrypted; it looks at each."""
