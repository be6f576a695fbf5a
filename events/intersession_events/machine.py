"""What is asked of the machine: the time, random bytes, ids.

Everything else in this package is handed these, so that a test can hand in others.
"""

import os
import time
import uuid


def wall_clock_ms() -> int:
    """Return the wall clock's time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def machine_entropy(size: int) -> bytes:
    """Return random bytes, good enough for a salt that must not be guessed."""
    return os.urandom(size)


def random_id() -> str:
    """Return a new random UUID: the identity of a log, a session, a run, a message and so on."""
    return str(uuid.uuid4())
