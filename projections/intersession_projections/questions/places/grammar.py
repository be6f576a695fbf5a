"""The grammar of places for every door: from a text or a number to a typed place (PLACE-1, PLACE-2). Pure."""

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, get_args

import msgspec

from intersession_events.basics.errors import IntersessionError

Mark = Literal["start", "reply", "turn", "announce", "end"]
"""What of a flow or a run a place can name."""

FORMS: Final = (
    "a position (412), event:ID, an ISO time (2026-11-21T04:05:00Z), head, RUN@start, RUN@reply, RUN@turn:3, RUN@announce "
    "or RUN@end; each may have +N or -N behind it, for steps on or back, and -N alone counts from the head"
)
"""What a refusal says of the forms that there are."""


class UnknownPlace(IntersessionError, ValueError):
    """A caller's place is invalid: its form is unknown, it is not in the log, beyond its end, or in the future.

    `candidates` are the ids that could be meant, where several begin as it does.
    """

    def __init__(self, error: str, candidates: tuple[str, ...] = ()) -> None:
        super().__init__(error)
        self.candidates = candidates


def no_place(error: str, candidates: tuple[str, ...] = ()) -> UnknownPlace:
    """Return the refusal of a place, with the valid forms (PLACE-2)."""
    return UnknownPlace(f"{error}. A place is {FORMS}", candidates)


class AtPosition(msgspec.Struct, frozen=True):
    """After the event with this position; 0 is before all."""

    position: int


class AtEvent(msgspec.Struct, frozen=True):
    """After the event with this id, or an id that begins so."""

    event_id: str


class AtTime(msgspec.Struct, frozen=True):
    """After everything up to this time (ms)."""

    time_ms: int


class AtHead(msgspec.Struct, frozen=True):
    """After the last event of the log."""


class InRun(msgspec.Struct, frozen=True):
    """After an event of an exchange, a spawn or a run, by any name of it. `turn` is set for the mark `turn`."""

    run: str
    mark: Mark
    turn: int = 0


Base = AtPosition | AtEvent | AtTime | AtHead | InRun


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A place, and how many events it is behind (`steps` above zero) or before what `base` names."""

    base: Base
    steps: int = 0


_MOST_DIGITS: Final = 18
_MOST_SHOWN: Final = 64
_POSITION: Final = re.compile(r"#?([0-9]+)")
"""Lists show positions with the sign; what is shown can be typed."""
_STEPPED: Final = re.compile(r"(?P<base>.*?)(?P<steps>[+-][0-9]{1,18})", re.DOTALL)
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_BEGUN: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){0,3}-[0-9a-f]{4,12}", re.IGNORECASE)
_EVENT: Final = "event:"
_TURN: Final = re.compile(r"turn:([0-9]{1,9})")
_MARKS: Final[Mapping[str, Mark]] = {mark: mark for mark in get_args(Mark) if mark != "turn"}
_ISO: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"([Tt ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]{1,9})?)?([Zz]|[+-][0-9]{2}:?[0-9]{2})?)?"
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def parse_place(value: float | str, *, field: str = "at") -> Place:
    """Parse a place from a number or a text. A number is a position; a fraction is floored.

    `field` is what an error names.

    Raises:
        UnknownPlace: it names none; the error says which forms there are.
    """
    if isinstance(value, bool):
        raise no_place(f"{field}: true and false are no places")
    if not isinstance(value, str | int | float):  # pyright: ignore[reportUnnecessaryIsInstance] - a host gives what it likes
        raise no_place(f"{field}: a {type(value).__name__} is no place")
    if not isinstance(value, str):
        return Place(base=AtPosition(_position(value, field)))
    # Whole first: an id and the offset of a time may end like a step.
    base = _base(value, field)
    if base is not None:
        return Place(base=base)
    stepped = _STEPPED.fullmatch(value)
    if stepped is not None:
        steps = int(stepped["steps"])
        inner = stepped["base"]
        base = _base(inner, field) if inner else (AtHead() if value.startswith("-") else None)
        if base is not None:
            return Place(base=base, steps=steps)
    raise no_place(f"{field}: {shown(value)} names no place")


def parse_time(value: str, *, field: str) -> int:
    """Return an ISO time in ms; without an offset it is UTC. For fields that take a time and not a place.

    Raises:
        UnknownPlace: the text is no ISO date or time.
    """
    time_ms = _time(value)
    if time_ms is None:
        raise UnknownPlace(f"{field}: {shown(value)} is no ISO time, give one like 2026-11-21T04:05:00Z")
    return time_ms


def shown(value: str) -> str:
    """Return typed input as an error quotes it."""
    return f"{value[:_MOST_SHOWN]!a}"


def _base(text: str, field: str) -> Base | None:
    if (position := _POSITION.fullmatch(text)) is not None:
        if len(position[1]) > _MOST_DIGITS:
            raise _beyond(shown(text), field)
        return AtPosition(int(position[1]))
    if text == "head":
        return AtHead()
    if text.startswith(_EVENT):
        event_id = text.removeprefix(_EVENT)
        return AtEvent(event_id.lower() if _is_hex(event_id) else event_id) if _is_id(event_id) else None
    time_ms = _time(text)
    if time_ms is not None:
        return AtTime(time_ms)
    run, at, mark = text.rpartition("@")
    if not at or not run.strip():
        return None
    if (turn := _TURN.fullmatch(mark)) is not None:
        return InRun(run.strip(), "turn", int(turn[1]))
    return InRun(run.strip(), _MARKS[mark]) if mark in _MARKS else None


def _is_hex(event_id: str) -> bool:
    return _UUID.fullmatch(event_id) is not None or _BEGUN.fullmatch(event_id) is not None


def _is_id(event_id: str) -> bool:
    """Whether all of it is an id: a step behind one has at most three digits, or stands behind a whole id."""
    if not event_id or event_id != event_id.strip():
        return False
    return _is_hex(event_id) or _STEPPED.fullmatch(event_id) is None


def _position(value: float, field: str) -> int:
    if isinstance(value, float) and not math.isfinite(value):
        raise no_place(f"{field}: {value} is no position, give a whole number")
    if value >= 10**_MOST_DIGITS:
        raise _beyond(f"a number of more than {_MOST_DIGITS} digits", field)
    if value < 0:
        said = math.floor(value) if value > -(10**_MOST_DIGITS) else "a number far below 0"
        raise no_place(f"{field}: {said} is before the log, positions begin at 1 and 0 is the empty log")
    return math.floor(value)


def _beyond(said: str, field: str) -> UnknownPlace:
    return no_place(f"{field}: {said} is beyond the end of any log, give a smaller position")


def _time(value: str) -> int | None:
    if _ISO.fullmatch(value) is None:
        return None
    elapsed = _since_epoch(value)
    return (
        None
        if elapsed is None
        else (elapsed.days * 86_400 + elapsed.seconds) * 1000 + elapsed.microseconds // 1000
    )


def _since_epoch(value: str) -> timedelta | None:
    try:
        parsed = datetime.fromisoformat(value.upper())
        moment = parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=UTC)
        return moment - _EPOCH
    except ValueError:
        return None
