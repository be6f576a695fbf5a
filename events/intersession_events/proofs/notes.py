"""Checkpoints as signed notes, so that tools for transparency logs check them: C2SP's `signed-note`, `tlog-checkpoint`, `tlog-cosignature`.

The text of a note is the log's origin, the number of events, the events root in base64, and one line more:
`intersession <log id> <position> <hash of the checkpoint>`. Signatures stand below it, a line each.
"""

import base64
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from intersession_events.basics.errors import BadCheckpoint
from intersession_events.proofs.signatures import NamedKey, PrivateKey
from intersession_events.proofs.statement import Checkpoint

MOST_NOTE_BYTES: Final = 65_536
_MOST_SIGNATURES: Final = 100
_MOST_SIZE: Final = 1 << 63
_DASH: Final = "\u2014 "
_CUT_DASHES: Final = frozenset({"\u2014", "\ufffd"})
"""What a cut leaves of it."""
_OWN: Final = "intersession"
_HASH_BYTES: Final = 32
_TIME_BYTES: Final = 8
_MOST_DIGITS: Final = 19


class NoteSignature(NamedTuple):
    """A line below a note: who signed it, the four bytes that tell their keys apart, and the signature itself."""

    name: str
    hash: bytes
    signature: bytes

    @property
    def line(self) -> str:
        """The line, with its line feed."""
        return f"{_DASH}{self.name} {base64.b64encode(self.hash + self.signature).decode()}\n"


class TreeNote(msgspec.Struct, frozen=True, kw_only=True):
    """A signed note that says what a log is: its origin, how many leaves it has, and their root."""

    origin: str
    size: int
    root: bytes
    extensions: tuple[str, ...] = ()
    signatures: tuple[NoteSignature, ...] = ()

    @property
    def text(self) -> str:
        """What is signed."""
        lines = (self.origin, str(self.size), base64.b64encode(self.root).decode(), *self.extensions)
        return "".join(f"{line}\n" for line in lines)

    def __str__(self) -> str:
        return f"{self.text}\n{''.join(one.line for one in self.signatures)}"

    def signed_by(self, key: NamedKey) -> int | None:
        """Return the last time (s) at which a witness signed, 0 for a log's signature; None if there is none of that key.

        Raises:
            BadCheckpoint: there is one of that key, and it does not fit: then nothing that the note says is worth anything.
        """
        last: int | None = None
        for name, hashed, signature in self.signatures:
            if (name, hashed) != (key.name, key.hash):
                continue
            time, of = 0, signature
            if key.is_witness:
                time, of = int.from_bytes(signature[:_TIME_BYTES]), signature[_TIME_BYTES:]
            said = cosigned_text(time, self.text) if key.is_witness else self.text.encode()
            if not key.key.has_signed(said, base64.b64encode(of).decode()):
                raise BadCheckpoint(
                    f"the note of {self.origin} with {self.size} leaves was not signed by {name}, whose signature it bears"
                )
            last = max(time, last or 0)
        return last


class PublishedNote(msgspec.Struct, frozen=True):
    """A note of one of our checkpoints: it names the log, the position and the hash of the checkpoint, so that it stands for it."""

    log_id: str
    position: int
    hash: str
    note: TreeNote

    @property
    def count(self) -> int:
        """The number of events."""
        return self.note.size

    @property
    def events_root(self) -> str:
        """The root over them, in hex."""
        return self.note.root.hex()


def default_origin(log_id: str) -> str:
    """Return the origin of a log that is given none."""
    return f"{_OWN}/{log_id}"


def note_of(checkpoint: Checkpoint, origin: str) -> TreeNote:
    """Return the note of a checkpoint, unsigned."""
    return TreeNote(
        origin=origin,
        size=checkpoint.count,
        root=bytes.fromhex(checkpoint.events_root),
        extensions=(f"{_OWN} {checkpoint.log_id} {checkpoint.position} {checkpoint.hash}",),
    )


def noted(checkpoint: Checkpoint) -> TreeNote | None:
    """Return the note that a checkpoint was signed with, with the cosignatures that it has; None if there is none.

    Raises:
        BadCheckpoint: its lines are no signatures.
    """
    if checkpoint.note is None:
        return None
    signatures = tuple(map(_signature, checkpoint.note.splitlines()))
    if not signatures or len(checkpoint.events_root) != 2 * _HASH_BYTES:
        raise BadCheckpoint(f"the checkpoint of position {checkpoint.position} has no signature of its note")
    return msgspec.structs.replace(note_of(checkpoint, signatures[0].name), signatures=signatures)


def signed_note(text: str, key: PrivateKey, name: str) -> NoteSignature:
    """Sign a note as its log."""
    named = NamedKey(name, key.public)
    return NoteSignature(name, named.hash, base64.b64decode(key.sign(text.encode())))


def cosigned_note(text: str, key: PrivateKey, name: str, *, time: int) -> NoteSignature:
    """Sign a note as a witness, at a time in seconds since 1970."""
    named = NamedKey(name, key.public, is_witness=True)
    signature = base64.b64decode(key.sign(cosigned_text(time, text)))
    return NoteSignature(name, named.hash, time.to_bytes(_TIME_BYTES) + signature)


def cosigned_text(time: int, text: str) -> bytes:
    """Return what a witness signs."""
    return f"cosignature/v1\ntime {time}\n{text}".encode()


def signature_lines(text: str) -> tuple[NoteSignature, ...]:
    """Return the signatures in lines, as a witness answers with them.

    Raises:
        BadCheckpoint: a line is no signature, or they are not between one and a hundred.
    """
    lines = text.split("\n")
    if lines.pop() or not 0 < len(lines) <= _MOST_SIGNATURES:
        raise BadCheckpoint("lines of signatures end with line feeds, and are between one and a hundred")
    return tuple(map(_signature, lines))


def read_note(text: bytes) -> TreeNote:
    """Return the note of a text, byte for byte: what it was signed as is what it says.

    Raises:
        BadCheckpoint: it is no signed note of a log's tree.
    """
    if len(text) > MOST_NOTE_BYTES:
        raise BadCheckpoint(f"a note has at most {MOST_NOTE_BYTES} bytes, this has {len(text)}")
    try:
        body, _, below = text.decode().rpartition("\n\n")
    except UnicodeDecodeError as error:
        raise BadCheckpoint(f"a note is UTF-8 ({error})") from error
    if any(char < " " and char != "\n" for char in body):
        raise BadCheckpoint("a note has no control characters but line feeds")
    return _note(body.split("\n"), signature_lines(below))


def notes_in(text: bytes) -> Sequence[PublishedNote]:
    """Return the notes of a published file, one after the other.

    A note that was cut off while it was written is passed over: the last one of several without its end, and one that the
    next begins with.

    Raises:
        BadCheckpoint: something else stands there, or a note of another kind of log.
    """
    # A write that was cut off may have ended within a letter.
    blocks = list(_blocks(text.decode(errors="replace")))
    if len(blocks) > 1 and not text.endswith(b"\n"):
        blocks.pop()
    found: list[PublishedNote] = []
    for number, (body, below) in enumerate(blocks):
        # What was cut off was tried again, and one that witnesses have cosigned since stands behind the same without them.
        if number + 1 < len(blocks) and "\n".join(blocks[number + 1][0]).startswith("\n".join(body)):
            continue
        try:
            found.append(published_note(_note(body, tuple(map(_signature, below)))))
        except BadCheckpoint as error:
            raise BadCheckpoint(f"note {number + 1}: {error}") from error
    if not found:
        raise BadCheckpoint("it holds no signed note")
    return found


def published_note(note: TreeNote) -> PublishedNote:
    """Return a note as that of one of our checkpoints.

    Raises:
        BadCheckpoint: it has no line that says of which.
    """
    for line in note.extensions:
        match line.split(" "):
            case ["intersession", log_id, position, hashed] if (
                position.isdecimal() and len(position) <= _MOST_DIGITS
            ):
                return PublishedNote(log_id, int(position), hashed, note)
            case _:
                pass
    raise BadCheckpoint(
        f"the note of {note.origin} does not say which checkpoint it is of (a line `intersession LOG POSITION HASH`)"
    )


def _blocks(text: str) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the lines of each text with those of its signatures, which are missing where it was cut off."""
    body: list[str] = []
    below: list[str] = []
    is_apart = False
    for line in text.split("\n"):
        if line and (line.startswith(_DASH) or line in _CUT_DASHES) and (below or is_apart):
            below.append(line)
        elif line and (below or is_apart):
            yield body, below
            body, below = [line], []
        elif line:
            body.append(line)
        is_apart = bool(body) and not line
    if body:
        yield body, below


def _note(body: Sequence[str], signatures: tuple[NoteSignature, ...]) -> TreeNote:
    if len(body) < 3 or not all(body) or not signatures:  # noqa: PLR2004 - origin, size, root
        raise BadCheckpoint(
            "a note has a line each for origin, size and root, an empty line, and signatures below it"
        )
    origin, size, root = body[:3]
    if not (
        size.isascii()
        and size.isdecimal()
        and str(int(size[:_MOST_DIGITS])) == size
        and int(size) < _MOST_SIZE
    ):
        raise BadCheckpoint(f"{size[:40]!r} is no size of a tree")
    return TreeNote(
        origin=origin,
        size=int(size),
        root=hash_of(root),
        extensions=tuple(body[3:]),
        signatures=signatures,
    )


def hash_of(line: str) -> bytes:
    """Return the hash that a line has in base64.

    Raises:
        BadCheckpoint: it has none.
    """
    try:
        found = base64.b64decode(line, validate=True)
    except ValueError:
        found = b""
    if len(found) != _HASH_BYTES or base64.b64encode(found).decode() != line:
        raise BadCheckpoint(f"{line[:60]!r} is no hash in base64")
    return found


def _signature(line: str) -> NoteSignature:
    name, _, encoded = line.removeprefix(_DASH).partition(" ")
    try:
        raw = base64.b64decode(encoded, validate=True)
    except ValueError:
        raw = b""
    if not line.startswith(_DASH) or not name or "+" in name or len(raw) <= 4:  # noqa: PLR2004 - hash, signature
        raise BadCheckpoint(f"{line[:80]!r} is no line of a signature")
    return NoteSignature(name, raw[:4], raw[4:])
