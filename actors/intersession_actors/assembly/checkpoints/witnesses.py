"""Has checkpoints cosigned: the side of the log in C2SP's `tlog-witness` (TLOG-3).

A witness cosigns what goes on from what it saw last. It says itself how many events that was, so nothing is kept of it here.
"""

import base64
from collections.abc import Callable, Collection
from typing import Final

import msgspec

from intersession_actors.assembly.checkpoints.targets import NotPublished
from intersession_actors.outside.channels.webhook import Answered, asking
from intersession_events.basics.errors import BadCheckpoint
from intersession_events.copies.checkpoints.proving import growth_path
from intersession_events.log.held_checkpoints import checkpoint_with
from intersession_events.log.log import Log
from intersession_events.proofs.notes import TreeNote, noted, signature_lines
from intersession_events.proofs.signatures import NamedKey
from intersession_events.proofs.statement import Checkpoint

_ATTEMPTS: Final = 3
"""Another process may have had one cosigned since the witness said what it saw last."""
_OK: Final = 200
_CONFLICT: Final = 409
_REASONS: Final = {
    403: "it does not trust the key that signs the checkpoints",
    404: "it does not know the log",
    422: "it found no way from what it saw last to this checkpoint: the log was rewritten",
}


def cosigning(url: str, key: NamedKey, *, allowed: Collection[str] = ()) -> Callable[[Checkpoint, Log], str]:
    """Return a function that has a witness cosign a checkpoint, and returns the line of the cosignature.

    Raises:
        BadChannelUrl: it is no http or https URL.
        DeliveryRefused: its host can be seen to be private, and is not `allowed`.
    """
    ask = asking(f"{url.rstrip('/')}/add-checkpoint", allowed=allowed)
    seen = 0

    def put(checkpoint: Checkpoint, log: Log) -> str:
        nonlocal seen
        note = noted(checkpoint)
        if note is None:
            raise NotPublished(f"the checkpoint of position {checkpoint.position} was taken without a key")
        for _ in range(_ATTEMPTS):
            answer = ask(_request(log, checkpoint, note, seen))
            if answer.status == _OK:
                line = _cosignature(answer, note, key)
                seen = note.size
                return line
            if answer.status != _CONFLICT:
                raise NotPublished(_problem(answer, key, note))
            last = _size(answer)
            if last == seen:
                raise NotPublished(
                    f"the witness {key.name} has seen another log of {last} events as {note.origin}"
                )
            if last > note.size:
                raise NotPublished(
                    f"the witness {key.name} has seen {last} events of {note.origin}, this checkpoint is of {note.size}: was the "
                    "log set back, or has another one its origin?"
                )
            seen = last
        raise NotPublished(f"the witness {key.name} says each time that it has seen something else")

    return put


def _request(log: Log, checkpoint: Checkpoint, note: TreeNote, seen: int) -> bytes:
    path: tuple[str, ...] = ()
    if 0 < seen < note.size:
        since = checkpoint_with(log.query, seen)
        if since is None:
            raise NotPublished(
                f"the witness has seen {seen} events of {note.origin}, and this log has no checkpoint of as many: was it set "
                "back, or has another one its origin?"
            )
        path = growth_path(log, since, checkpoint)
    proof = "".join(f"{base64.b64encode(bytes.fromhex(node)).decode()}\n" for node in path)
    return f"old {seen}\n{proof}\n{note}".encode()


def _cosignature(answer: Answered, note: TreeNote, key: NamedKey) -> str:
    try:
        lines = signature_lines(answer.content.decode())
        time = msgspec.structs.replace(note, signatures=lines).signed_by(key)
    except (BadCheckpoint, UnicodeDecodeError) as error:
        raise NotPublished(f"the witness {key.name} answered with no cosignature ({error})") from error
    if time is None:
        raise NotPublished(f"the witness at that URL is another one: it did not sign as {key}")
    return next(one.line for one in lines if (one.name, one.hash) == (key.name, key.hash))


def _size(answer: Answered) -> int:
    text = answer.content.removesuffix(b"\n")
    if not (text.isdigit() and len(text) <= 19):  # noqa: PLR2004 - of 64 bits
        raise NotPublished("HTTP 409 without the size of a tree")
    return int(text)


def _problem(answer: Answered, key: NamedKey, note: TreeNote) -> str:
    text = answer.content.decode(errors="replace").strip()[:300]
    reason = _REASONS.get(answer.status, text)
    return f"the witness {key.name} refused {note.origin} (HTTP {answer.status}): {reason}"
