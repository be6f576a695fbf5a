"""Named places where a process may die: a no-op, until a test or `INTERSESSION_CRASH_AT=name:n` arms one."""

import os
import signal
from collections.abc import Callable, Mapping
from itertools import count
from typing import Final

VARIABLE: Final = "INTERSESSION_CRASH_AT"

Hook = Callable[[str], None]


def crash_point(name: str) -> None:
    """Pass a point of the crash matrix: the armed hook is called, and may end the process here."""
    hook = _armed.hook
    if hook is not None:
        hook(name)


def is_armed() -> bool:
    """Return whether a hook is armed."""
    return _armed.hook is not None


def arm(hook: Hook) -> Callable[[], None]:
    """Call a hook at every point that is passed, in the thread that passes it. Returns a function that disarms it."""
    before, _armed.hook = _armed.hook, hook

    def disarm() -> None:
        _armed.hook = before

    return disarm


def kill_at(name: str, passing: int) -> Hook:
    """Return a hook that kills this process, as `kill -9` would, at the n-th passing of a point."""
    passings = count(1)

    def hook(passed: str) -> None:
        if passed == name and next(passings) == passing:
            os.kill(os.getpid(), signal.SIGKILL)

    return hook


def from_environment(environment: Mapping[str, str]) -> Hook | None:
    """Return what `INTERSESSION_CRASH_AT=name:n` asks for, or None. `n` is 1 if left out.

    Raises:
        ValueError: the variable is not of that form.
    """
    text = environment.get(VARIABLE)
    if not text:
        return None
    name, _, passing = text.partition(":")
    try:
        return kill_at(name, int(passing or 1))
    except ValueError:
        raise ValueError(f"{VARIABLE}={text!r}: write a point's name and a number, such as S1:3") from None


class _Armed:
    def __init__(self) -> None:
        self.hook: Hook | None = from_environment(os.environ)


_armed: Final = _Armed()
