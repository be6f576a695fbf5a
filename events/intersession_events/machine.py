"""What is asked of the machine: the time, random bytes, ids, which version is installed.

Everything else in this package is handed these, so that a test can hand in others.
"""

import os
import time
import uuid
from functools import cache
from importlib.metadata import version


def wall_clock_ms() -> int:
    """Return the wall clock's time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def machine_entropy(size: int) -> bytes:
    """Return random bytes, good enough for a salt that must not be guessed."""
    return os.urandom(size)


def random_id() -> str:
    """Return a new random UUID: the identity of a log, a session, a run, a message and so on."""
    return str(uuid.uuid4())


@cache
def installed_version() -> str:
    """Return the version of this package as it was installed. It is looked up in a file, once."""
    return version("intersession")
