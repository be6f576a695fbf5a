"""Derives ids of streams and steps: a repeated step gets the same id, so it has no second effect."""

import hashlib
import uuid
from functools import lru_cache
from typing import Final

import msgspec


def derive(log_id: str, *parts: str | int) -> str:
    """Return the UUIDv5 of a step, from the id of its log and the parts that name it.

    The parts are joined as a JSON array, so that ("a", "b:c") and ("a:b", "c") differ.
    """
    # What uuid.uuid5 does, without its objects: every event has an id, so this runs for every event.
    digest = bytearray(
        hashlib.sha1(_bytes_of(log_id) + msgspec.json.encode(parts), usedforsecurity=False).digest()
    )
    digest[6] = digest[6] & 0x0F | 0x50
    digest[8] = digest[8] & 0x3F | 0x80
    text = digest.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:32]}"


@lru_cache(maxsize=16)
def _bytes_of(log_id: str) -> bytes:
    return uuid.UUID(log_id).bytes


CLOCK: Final = "clock"
"""The stream of what the writer says of the machine's wall clock."""


SESSIONS: Final = "session:"
"""The beginning of the name of each session's stream, with the session's key behind it."""


def session_stream(key: str) -> str:
    """Name the stream of a session, by canonical key."""
    return f"{SESSIONS}{key}"


def exchange_stream(exchange_id: str) -> str:
    """Name the stream of an exchange."""
    return f"exchange:{exchange_id}"


def spawn_stream(spawn_id: str) -> str:
    """Name the stream of a spawn."""
    return f"spawn:{spawn_id}"


def delivery_stream(delivery_id: str) -> str:
    """Name the stream of a delivery."""
    return f"delivery:{delivery_id}"


def inbound_stream(run_id: str) -> str:
    """Name the stream that records a channel's message which starts no run."""
    return f"inbound:{run_id}"


def schedule_stream(job_id: str) -> str:
    """Name the stream of a scheduled job."""
    return f"schedule:{job_id}"


def notes_stream(run_id: str) -> str:
    """Name the stream of the notes beside an exchange, a spawn or a run."""
    return f"notes:{run_id}"


def access_stream(requester: str | None) -> str:
    """Name the stream of access receipts of a requester (None: the operator)."""
    return f"access:{requester or 'operator'}"


def event_id(log_id: str, stream: str, version: int, topic: str) -> str:
    """Return the id of an event: that of its place. It has nothing of its words, so it stays true, and tells nothing, once they are erased."""
    return derive(log_id, stream, version, topic)


def first_event_id(log_id: str, stream: str, version: int, topic: str, payload: bytes) -> str:
    """Return the id that an event had in the first logs: of its place and its payload."""
    return derive(log_id, stream, version, topic, hashlib.sha256(payload).hexdigest())


def is_event_id(own: str, log_id: str, stream: str, version: int, topic: str, payload: bytes) -> bool:  # noqa: PLR0917 - an event and its id
    """Whether an event can have an id, in a log of any version."""
    return own in {
        event_id(log_id, stream, version, topic),
        first_event_id(log_id, stream, version, topic, payload),
    }


def retry_of(log_id: str, run_id: str) -> str:
    """Return the id of the run that retries a failed one: always the same, however often it is asked for."""
    return derive(log_id, "run", "retry", run_id)


def announce_delivery(log_id: str, flow_id: str) -> str:
    """Return the id of the delivery of a flow's announce: the same for every attempt."""
    return derive(log_id, "delivery", flow_id, "announce")
