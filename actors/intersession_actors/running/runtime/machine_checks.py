"""Checks the machine that a host hands to a system: a clock, ids, a runtime. What is invalid is refused before anything is opened."""

from collections.abc import Callable
from typing import Final

from intersession_actors.rules.gate.limits import IDENTITY
from intersession_actors.rules.gate.shapes import callable_of
from intersession_actors.rules.gate.texts import checked
from intersession_actors.rules.gate.values import invalid
from intersession_actors.running.runtime.clock import Clock
from intersession_actors.running.runtime.runtime import Runtime

_TIMES: Final = "now_ms() -> int, milliseconds since 1970, and monotonic() -> float, seconds"


def clock_of(clock: Clock | None) -> Clock | None:
    """Return a clock that tells the time; None is the runtime's own.

    Raises:
        ToolRefused: it does not.
    """
    if clock is None:
        return None
    told: list[object] = []
    for name in ("now_ms", "monotonic"):
        tell: object = getattr(clock, name, None)
        if not callable(tell):
            raise invalid("clock", f"{type(clock).__name__} has no {name}(), give an object with {_TIMES}")
        told.append(tell())
    now_ms, monotonic = told
    if type(now_ms) is not int or isinstance(monotonic, bool) or not isinstance(monotonic, int | float):
        what = f"it tells {type(now_ms).__name__} and {type(monotonic).__name__}"
        raise invalid("clock", f"{what}, give an object with {_TIMES}")
    return clock


def ids_of(new_id: Callable[[], str] | None) -> Callable[[], str] | None:
    """Return what draws ids, each of which is a text that can be recorded; None is the runtime's own.

    Raises:
        ToolRefused: it can't be called; also from the returned function, where it drew no id.
    """
    callable_of("new_id", new_id)
    return None if new_id is None else lambda: checked("new_id", new_id(), most=IDENTITY.most)


def runtime_of(runtime: Runtime | None) -> Runtime | None:
    """Return a runtime; None is a pooled one.

    Raises:
        ToolRefused: it is none.
    """
    if runtime is None or isinstance(runtime, Runtime):  # pyright: ignore[reportUnnecessaryIsInstance] - a host gives what it likes
        return runtime
    raise invalid(
        "runtime",
        f"it is no runtime but {type(runtime).__name__}, give one of `intersession_actors.running.runtime`",
    )
