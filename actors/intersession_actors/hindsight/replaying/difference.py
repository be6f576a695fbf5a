"""Compares today's decision with the recorded one, field by field, and says in words what differs."""

from collections.abc import Iterator, Sequence
from typing import Final, TypedDict

import msgspec

from intersession_events import facts
from intersession_events.basics.plain_json import JsonValue, is_list_like, is_object
from intersession_events.log.recorded import Draft, Recorded

_SHORT: Final = 80


class Field(TypedDict):
    """A field of an event that differs; None on a side that does not have it."""

    path: str
    recorded: JsonValue
    now: JsonValue


class Difference(TypedDict):
    """The first event that differs from its record.

    `kind`: it is another one, or has other fields (`changed`); no decision led to it (`missing`); it was never recorded (`extra`);
    it would be refused (`refused`), or a door would say something else of it (`judged`); nothing can be decided upon its
    record (`failed`). `erased`: it can't be compared, since words that led to it were erased.
    `command` is what led to it, `text` says all of that in words.
    """

    kind: str
    position: int | None
    stream: str
    version: int
    recorded: str | None
    now: str | None
    fields: list[Field]
    command: str | None
    text: str


def fields_that_differ(recorded: Recorded, draft: Draft) -> list[Field]:
    """Return the fields in which an event differs from its record, its cause among them."""
    if type(recorded.event) is not type(draft.event):
        return [Field(path="type", recorded=_name(recorded), now=type(draft.event).__name__)]
    was: JsonValue = msgspec.to_builtins(recorded.event)
    now: JsonValue = msgspec.to_builtins(draft.event)
    fields = [Field(path=path, recorded=one, now=other) for path, one, other in _different(was, now, "")]
    for name in ("causation", "correlation"):
        one, other = getattr(recorded, name), getattr(draft, name)
        if one != other:
            fields.append(Field(path=name, recorded=one, now=other))
    return fields


def misplaced(recorded: Recorded) -> list[Field]:
    """Return the fields in which the opening of a session names another session than its stream."""
    if not isinstance(recorded.event, facts.SessionOpened):
        return []
    key = recorded.stream.partition(":")[2]
    named: dict[str, tuple[str, str]] = {"key": (recorded.event.key, key)}
    if key.startswith("agent:"):
        named["agentId"] = recorded.event.agent_id, key.split(":")[1]
    return [Field(path=path, recorded=was, now=now) for path, (was, now) in named.items() if was != now]


def changed(recorded: Recorded, draft: Draft, fields: list[Field], command: str | None) -> Difference:
    """Return the difference that an event is another one."""
    was, now = recorded.in_words().brief, _as_recorded(recorded, draft).in_words().brief
    if type(recorded.event) is type(draft.event):
        parts = ", ".join(
            f"{field['path']} was {_short(field['recorded'])} and is {_short(field['now'])}"
            for field in fields
        )
        text = f"{_name(recorded)} at position {recorded.position} ({was}): {parts}"
    else:
        text = f"{_was(recorded)}; today's rules decide {type(draft.event).__name__} ({now})"
    return _of(recorded, "changed", text, now=type(draft.event).__name__, fields=fields, command=command)


def missing(recorded: Recorded) -> Difference:
    """Return the difference that a recorded event was not decided."""
    return _of(recorded, "missing", f"{_was(recorded)}; today's rules decide nothing there")


def erased(differs: Difference) -> Difference:
    """Return that a difference can't be judged: texts that today's rules need were erased."""
    text = (
        "can't be compared: erased. The text of some events that led to this was erased, so nobody can say whether it is "
        f"a difference that {differs['text']}"
    )
    return {**differs, "kind": "erased", "text": text}


def refused(recorded: Recorded, code: str, error: str) -> Difference:
    """Return the difference that a door would now refuse a call that it let in."""
    fields = [Field(path="code", recorded=None, now=code), Field(path="error", recorded=None, now=error)]
    text = f"{_was(recorded)}; today's rules refuse it ({code}): {error}"
    return _of(recorded, "refused", text, now=code, fields=fields)


def judged_otherwise(recorded: Recorded, was: str | None, now: str | None, problem: str) -> Difference:
    """Return the difference that a door would now answer otherwise; a code None means that it lets the call in."""
    fields = [Field(path="code", recorded=was, now=now)]
    return _of(recorded, "judged", f"{_was(recorded)}: {problem}", now=now, fields=fields)


def undecided(recorded: Recorded, kind: str, problem: str, command: str | None) -> Difference:
    """Return that an event could not be decided again, and why."""
    return _of(recorded, kind, f"{_was(recorded)}: {problem}", command=command)


def extra(stream: str, version: int, draft: Draft, command: str | None) -> Difference:
    """Return the difference that an event was decided after the end of its stream."""
    name = type(draft.event).__name__
    return Difference(
        kind="extra",
        position=None,
        stream=stream,
        version=version,
        recorded=None,
        now=name,
        fields=[],
        command=command,
        text=_led(f"{stream} had ended; today's rules decide {name} behind its end", command),
    )


def _of(
    recorded: Recorded,
    kind: str,
    text: str,
    *,
    now: str | None = None,
    fields: Sequence[Field] = (),
    command: str | None = None,
) -> Difference:
    return Difference(
        kind=kind,
        position=recorded.position,
        stream=recorded.stream,
        version=recorded.version,
        recorded=recorded.topic,
        now=now,
        fields=[*fields],
        command=command,
        text=_led(text, command),
    )


def _was(recorded: Recorded) -> str:
    return f"at position {recorded.position} {_name(recorded)} was recorded ({recorded.in_words().brief})"


def _led(text: str, command: str | None) -> str:
    return text if command is None else f"{text}; the command was {command}"


def _name(recorded: Recorded) -> str:
    return type(recorded.event).__name__


def _as_recorded(recorded: Recorded, draft: Draft) -> Recorded:
    return msgspec.structs.replace(recorded, event=draft.event, id=draft.id)


def _different(was: JsonValue, now: JsonValue, path: str) -> Iterator[tuple[str, JsonValue, JsonValue]]:
    if was == now:
        return
    if is_object(was) and is_object(now):
        for name in dict.fromkeys((*was, *now)):
            yield from _different(was.get(name), now.get(name), f"{path}.{name}" if path else name)
    elif is_list_like(was) and is_list_like(now) and len(was) == len(now):
        for number, (one, other) in enumerate(zip(was, now, strict=True)):
            yield from _different(one, other, f"{path}[{number}]")
    else:
        yield path, was, now


def _short(value: JsonValue) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _SHORT else f"{text[: _SHORT - 1]}…"
