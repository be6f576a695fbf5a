"""Proofs of one event in the text form that other tools check: C2SP's `tlog-proof` (TLOG-7).

The leaf is the event's line, `<position> <hash>` and a line feed. What stands there as `extra` is the event without its words,
from which the hash is made again.
"""

import base64
from collections.abc import Sequence
from typing import Final

import msgspec

from intersession_events.basics.errors import BadCheckpoint
from intersession_events.proofs.merkle import leaf_hash, root_by_path
from intersession_events.proofs.notes import TreeNote, hash_of, published_note, read_note
from intersession_events.proofs.proof import ProofReport, ProvenEvent, StreamProof
from intersession_events.proofs.signatures import NamedKey, Trusted
from intersession_events.proofs.statement import line_of

TLOG_PROOF: Final = "c2sp.org/tlog-proof@v1"
_MOST_BYTES: Final = 1 << 20
_MOST_NODES: Final = 63
_MOST_DIGITS: Final = 19


class TlogProof(msgspec.Struct, frozen=True):
    """An event, its leaf, the path from there to the root of the note, and the note."""

    event: ProvenEvent
    index: int
    path: Sequence[bytes]
    note: TreeNote

    def __str__(self) -> str:
        nodes = "".join(f"{base64.b64encode(node).decode()}\n" for node in self.path)
        extra = base64.b64encode(msgspec.json.encode(self.event)).decode()
        return f"{TLOG_PROOF}\nextra {extra}\nindex {self.index}\n{nodes}\n{self.note}"


def tlog_proof(proof: StreamProof, note: TreeNote | None) -> TlogProof:
    """Return a proof of the last event of a stream, with the note of its checkpoint.

    Raises:
        BadCheckpoint: the checkpoint has no note.
    """
    if note is None:
        position = proof.checkpoint.position
        raise BadCheckpoint(
            f"the checkpoint of position {position} is not signed; `checkpoints.keyFile` names a key"
        )
    return TlogProof(proof.event, proof.index, [bytes.fromhex(node) for node in proof.path], note)


def read_tlog_proof(text: bytes) -> TlogProof:
    """Return the proof of a text.

    Raises:
        BadCheckpoint: it is no such proof, or not of an event of ours.
    """
    try:
        head, apart, below = text[:_MOST_BYTES].partition(b"\n\n")
        first, extra, index, *nodes = head.decode().split("\n")
        digits = index.removeprefix("index ")
        is_index = digits.isascii() and digits.isdecimal() and len(digits) <= _MOST_DIGITS
        if not (apart and first == TLOG_PROOF and extra.startswith("extra ") and is_index):
            raise BadCheckpoint(f"a proof of ours has the lines {TLOG_PROOF}, extra, index, and hashes")
        if len(nodes) > _MOST_NODES:
            raise BadCheckpoint(f"a path has at most {_MOST_NODES} hashes, this has {len(nodes)}")
        raw = base64.b64decode(extra.removeprefix("extra "), validate=True)
        event = msgspec.json.decode(raw, type=ProvenEvent)
    except (ValueError, msgspec.MsgspecError) as error:
        raise BadCheckpoint(f"this is no proof of an event of ours ({error})") from error
    return TlogProof(event, int(digits), list(map(hash_of, nodes)), read_note(below))


def check_tlog_proof(proof: TlogProof, *, trusted: Trusted) -> ProofReport:
    """Say what a proof shows, given trusted keys and witnesses.

    Raises:
        BadCheckpoint: its note is of another kind of log.
        MissingExtra: there is a signature to be checked, and the extra `sign` is not installed.
    """
    event, note, wrong, unproven = proof.event, proof.note, list[str](), list[str]()
    of = published_note(note)
    hashed = event.hash_in(of.log_id)
    leaf = leaf_hash(line_of(event.position, hashed))
    if root_by_path(proof.index, note.size, leaf, proof.path) != note.root:
        wrong.append("the path does not lead from the event to the note: one of them was changed")
    try:
        is_signed = any(note.signed_by(NamedKey(note.origin, key)) is not None for key in trusted.keys)
        cosigned = [key.name for key in trusted.witnesses if note.signed_by(key) is not None]
    except BadCheckpoint as error:
        return ProofReport(shows="", wrong=(*wrong, str(error)), unproven=())
    if len(cosigned) < trusted.quorum:
        wrong.append(f"{len(cosigned)} of the {trusted.quorum} trusted witnesses have cosigned the note")
    elif not is_signed and not cosigned:
        unproven.append(
            f"That the note of {note.origin} is genuine: no trusted key has signed it (`--trust`)."
        )
    shows = (
        f"version {event.version} of {event.stream} at position {event.position} (hash {hashed}) is event {proof.index + 1} of "
        f"the {note.size} of {note.origin}{', cosigned by ' * bool(cosigned)}{', '.join(cosigned)}"
    )
    return ProofReport(shows="" if wrong else shows, wrong=tuple(wrong), unproven=tuple(unproven))
