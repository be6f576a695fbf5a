"""The content of a checkpoint as it is hashed, signed and published: one line of canonical JSON.

The statement is `{"count":…,"eventsRoot":…,"headsRoot":…,"logId":…,"position":…,"previous":…,"rolling":…,"streams":…,
"unsaid":…}`; what a checkpoint leaves out is null. Its hash is the SHA-256 of `intersession checkpoint 1`, a line feed, and that line, and
the signature is over the same bytes.
"""

from hashlib import sha256
from typing import Final

import msgspec

from intersession_events.facts import CheckpointTaken, ready

STREAM: Final = "log"
"""Where checkpoints stand."""
TAKEN: Final = "checkpoint_taken.1"
PUBLISHED: Final = "checkpoint_published.1"

_DOMAIN: Final = b"intersession checkpoint 1\n"


class _Statement(msgspec.Struct, rename="camel"):
    # Canonical order: what is encoded here is what RFC 8785 says.
    count: int
    events_root: str
    heads_root: str | None
    log_id: str
    position: int
    previous: str | None
    rolling: str
    streams: int | None
    unsaid: str | None


_ENCODE: Final = msgspec.json.Encoder().encode


@ready
class Checkpoint(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The state of a log at a position, apart from the log: a line of a published file, or a part of a proof."""

    log_id: str
    position: int
    count: int
    rolling: str
    events_root: str
    previous: str | None = None
    heads_root: str | None = None
    streams: int | None = None
    unsaid: str | None = None
    key_id: str | None = None
    signature: str | None = None
    note: str | None = None
    """The lines of signatures below its note (`notes.py`)."""

    @property
    def text(self) -> bytes:
        """What is hashed and signed."""
        said = _Statement(
            self.count,
            self.events_root,
            self.heads_root,
            self.log_id,
            self.position,
            self.previous,
            self.rolling,
            self.streams,
            self.unsaid,
        )
        return _DOMAIN + _ENCODE(said)

    @property
    def hash(self) -> str:
        """The SHA-256 of its text, in lower-case hex: the next checkpoint's `previous`."""
        return sha256(self.text).hexdigest()

    @property
    def line(self) -> bytes:
        """The line of a published file, with its line feed."""
        return _ENCODE(self) + b"\n"


def checkpoint_of(log_id: str, event: CheckpointTaken) -> Checkpoint:
    """Return the checkpoint that an event records."""
    return Checkpoint(
        log_id=log_id,
        position=event.position,
        count=event.count,
        rolling=event.rolling,
        events_root=event.events_root,
        previous=event.previous,
        heads_root=event.heads_root,
        streams=event.streams,
        unsaid=event.unsaid,
        key_id=event.key_id,
        signature=event.signature,
        note=event.note,
    )


def unsaid_line(position: int, left: bytes) -> bytes:
    """Return the line for what would be left of an event without its texts."""
    return f"{position} {sha256(left).hexdigest()}\n".encode()


def line_of(position: int, hashed: str | None) -> bytes:
    """Return the line of an event, the input of the events root; for an unreadable event, only its position."""
    return f"{position} {hashed or ''}\n".encode()
