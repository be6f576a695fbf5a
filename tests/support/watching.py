"""A runtime that looks at every command before an actor takes it: nothing that no log can hold may come so far."""

from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec

from intersession_actors.owners.session.commands import SessionRead
from intersession_actors.owners.streams.commands import Appended, Command, StreamLoaded
from intersession_actors.rules.gate.values import is_storable
from intersession_actors.running.runtime.actor import Handler, Ref
from intersession_actors.running.runtime.pool import PooledRuntime
from intersession_events.basics.plain_json import is_too_deep

_LARGEST = 2**53 - 1
_LONGEST = 2 * 1024 * 1024


def flaw_of_command(command: Any) -> str | None:
    """Say what of a command no log can hold, or None. What comes from the log, and what is called, is not looked at."""
    if isinstance(command, StreamLoaded | SessionRead | Appended):
        return None
    left: list[tuple[str, Any]] = [(type(command).__name__, command)]
    while left:
        where, value = left.pop()
        flaw = _flaw_of_leaf(value)
        if flaw is not None:
            return f"{where}: {flaw}"
        if isinstance(value, msgspec.Struct):
            for name in value.__struct_fields__:
                field = getattr(value, name)
                if name in {"extra", "json"} and field is not None and _is_no_object(field):
                    return f"{where}.{name}: no object that can be read"
                left.append((f"{where}.{name}", field))
        elif isinstance(value, dict):
            left += [(where, item) for pair in value.items() for item in pair]
        elif isinstance(value, list | tuple | set | frozenset):
            left += [(where, item) for item in value]
    return None


def _flaw_of_leaf(value: Any) -> str | None:
    if isinstance(value, str):
        if len(value) > _LONGEST:
            return f"a text of {len(value)} characters"
        return None if is_storable(value) else "a text that can't be encoded"
    if isinstance(value, float):
        return "a float"
    if isinstance(value, int) and abs(value) > _LARGEST:
        return f"{value:.3g}"
    return None


def _is_no_object(source: str) -> bool:
    try:
        value = msgspec.json.decode(source)
    except (ValueError, RecursionError):
        return True
    return not isinstance(value, dict) or is_too_deep(value)


class WatchingRuntime(PooledRuntime):
    """The runtime of production; `seen` are the flaws of what actors were told."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def start(self, handler_class: type[Handler], *args: Any, **given: Any) -> Ref:
        """Start an actor that is looked over."""
        return super().start(_watched(handler_class, self.seen.append), *args, **given)


@cache
def _watched(handler_class: type[Handler], say: Callable[[str], None]) -> type[Handler]:
    class Watched(handler_class):  # type: ignore[valid-type, misc]
        def on_receive(self, message: Any) -> None:
            flaw = flaw_of_command(message) if isinstance(message, Command) else None
            if flaw is not None:
                say(flaw)
            super().on_receive(message)

    return Watched
