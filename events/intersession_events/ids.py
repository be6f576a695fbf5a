"""Derived ids: doing a step again can't do it twice, because it gets the same id again."""

import hashlib
import uuid

import msgspec


def derive(log_id: str, *parts: str | int) -> str:
    """Return the UUIDv5 of a step: the log it is in, and what it is.

    The parts are joined as a JSON array, so that ("a", "b:c") and ("a:b", "c") differ.
    """
    return str(uuid.uuid5(uuid.UUID(log_id), msgspec.json.encode(parts).decode()))


def session_stream(key: str) -> str:
    """Name the stream of a session, by canonical key."""
    return f"session:{key}"


def exchange_stream(exchange_id: str) -> str:
    """Name the stream of an exchange."""
    return f"exchange:{exchange_id}"


def spawn_stream(spawn_id: str) -> str:
    """Name the stream of a spawn."""
    return f"spawn:{spawn_id}"


def delivery_stream(delivery_id: str) -> str:
    """Name the stream of a delivery."""
    return f"delivery:{delivery_id}"


def access_stream(requester: str | None) -> str:
    """Name the stream of access receipts of a requester (None: the operator)."""
    return f"access:{requester or 'operator'}"


def event_id(log_id: str, stream: str, version: int, topic: str, payload: bytes) -> str:
    """Return the id of an event: the same step, decided again to the same end, has the same id."""
    return derive(log_id, stream, version, topic, hashlib.sha256(payload).hexdigest())
