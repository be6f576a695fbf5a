"""Shows each warning once while a command does the same many times: `fork --times` of a model that is down would fill the terminal."""

import re
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

_ID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_lock = threading.Lock()
_said: list[set[str]] = []


@contextmanager
def saying_once() -> Generator[None]:
    """Have warnings that differ in ids alone be shown once, while the block lasts."""
    _said.append(set())
    try:
        yield
    finally:
        _said.pop()


def is_new(said: str) -> bool:
    """Whether a warning is to be shown: none like it was shown since the block began."""
    with _lock:
        if not _said:
            return True
        alike = _ID.sub("", said)
        if alike in _said[-1]:
            return False
        _said[-1].add(alike)
        return True
