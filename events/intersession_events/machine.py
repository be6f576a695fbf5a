"""The only place of the facts that asks the machine for time, randomness and ids; everything else is handed them."""

import os
import time
import uuid


def wall_clock_ms() -> int:
    """Return the wall clock's time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def machine_entropy(size: int) -> bytes:
    """Return random bytes, good enough for a salt that must not be guessed."""
    return os.urandom(size)


def random_log_id() -> str:
    """Return the identity of a log that is about to be made."""
    return str(uuid.uuid4())
