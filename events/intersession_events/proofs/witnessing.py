"""Judges what a witness is asked to cosign, as C2SP's `tlog-witness` says (TLOG-5). Pure: `intersession witness` keeps and answers."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from intersession_events.basics.errors import BadCheckpoint, BadKey
from intersession_events.proofs.merkle import EMPTY, is_beginning
from intersession_events.proofs.notes import TreeNote, hash_of, read_note
from intersession_events.proofs.signatures import NamedKey, named_key

MOST_BODY_BYTES: Final = 131_072
_MOST_LOGS: Final = 10_000
_MOST_NODES: Final = 63
_MOST_DIGITS: Final = 19

OK, BAD, FORBIDDEN, UNKNOWN, CONFLICT, UNPROVEN = 200, 400, 403, 404, 409, 422


class Judged(NamedTuple):
    """An answer in HTTP. With 200, `note` is to be kept, and then cosigned.

    `evidence` are two notes of one log and size that the log signed, and that have two roots.
    """

    status: int
    said: str
    note: TreeNote | None = None
    evidence: tuple[TreeNote, TreeNote] | None = None


def known_logs(text: str) -> Mapping[str, Sequence[NamedKey]]:
    """Return the keys of logs by their origins: a line each, a vkey, or an origin and a vkey where its name is another one.

    Raises:
        BadKey: a line is something else, or there is none.
    """
    found: dict[str, list[NamedKey]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        key = named_key(words[-1])
        if key.is_witness or len(words) > 2:  # noqa: PLR2004 - an origin and a vkey
            raise BadKey(f"line {number} is no vkey of a log, or an origin and one: {line[:200]!r}")
        found.setdefault(words[0] if len(words) > 1 else key.name, []).append(key)
    if not 0 < len(found) <= _MOST_LOGS:
        raise BadKey(
            f"{len(found)} logs are named, 1 to {_MOST_LOGS} can be: a line each, as `intersession keys show KEY --name ORIGIN` prints it"
        )
    return found


def judged(body: bytes, logs: Mapping[str, Sequence[NamedKey]], seen: Mapping[str, TreeNote]) -> Judged:
    """Judge a request to `add-checkpoint`, by what was cosigned last of each log, by its origin."""
    try:
        old, path, note = _request(body)
    except (BadCheckpoint, UnicodeDecodeError) as error:
        return Judged(BAD, str(error))
    if note.origin not in logs:
        return Judged(UNKNOWN, f"this witness does not know {note.origin}")
    try:
        is_signed = any(note.signed_by(key) is not None for key in logs[note.origin])
    except BadCheckpoint as error:
        return Judged(FORBIDDEN, str(error))
    if not is_signed:
        return Judged(FORBIDDEN, f"no key that this witness knows has signed this note of {note.origin}")
    if old > note.size:
        return Judged(BAD, f"old {old} is more than the {note.size} of the checkpoint")
    last = seen.get(note.origin)
    size, root = (0, EMPTY) if last is None else (last.size, last.root)
    if last is not None and note.size == size and note.root != root:
        return Judged(CONFLICT, str(size), evidence=(last, note))
    if old != size:
        return Judged(CONFLICT, str(size))
    if (note.size == 0 and note.root != EMPTY) or not is_beginning(old, root, note.size, note.root, path):
        return Judged(UNPROVEN, f"the proof does not lead from {old} to {note.size}")
    return Judged(OK, "", note)


def split_view(first: TreeNote, second: TreeNote, keys: Sequence[NamedKey]) -> str | None:
    """Say why two notes prove no split view; None if they do: one log has signed two roots of one size."""
    if first.origin != second.origin:
        return f"they are of two logs, {first.origin} and {second.origin}"
    if first.size != second.size:
        return f"they are of two sizes, {first.size} and {second.size}: a proof of consistency would be due"
    if first.root == second.root:
        return f"they have the same root of {first.size} leaves"
    try:
        if not any(all(note.signed_by(key) is not None for note in (first, second)) for key in keys):
            return "no trusted key has signed both"
    except BadCheckpoint as error:
        return str(error)
    return None


def _request(body: bytes) -> tuple[int, Sequence[bytes], TreeNote]:
    if len(body) > MOST_BODY_BYTES:
        raise BadCheckpoint(f"a request has at most {MOST_BODY_BYTES} bytes")
    head, apart, text = body.partition(b"\n\n")
    first, *nodes = head.decode().split("\n")
    size = first.removeprefix("old ")
    if not (
        apart
        and first.startswith("old ")
        and size.isascii()
        and size.isdecimal()
        and len(size) <= _MOST_DIGITS
        and str(int(size)) == size
    ):
        raise BadCheckpoint("a request begins with `old SIZE`, hashes in base64, and an empty line")
    if len(nodes) > _MOST_NODES:
        raise BadCheckpoint(f"a proof has at most {_MOST_NODES} hashes, this has {len(nodes)}")
    return int(size), [hash_of(node) for node in nodes], read_note(text)
