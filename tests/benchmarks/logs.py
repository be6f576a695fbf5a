"""Logs to measure on: sessions that were opened, with messages in them, written in large steps."""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice

from intersession_events import ids
from intersession_events.facts import Event, Message, MessageRecorded, SessionOpened
from intersession_events.log import ANY_VERSION, Draft, Log, StreamAppend

SECOND_MS = 1000
START_MS = 1_700_000_000_000
_STEP = 500


def session_key(number: int, agent: str = "main") -> str:
    return f"agent:{agent}:session-{number}"


@cache
def session_id(key: str) -> str:
    return ids.derive("6a4d280b-fc53-4c01-9c8c-4d77a60bfa97", "session", key)


def opening(key: str, *, spawned_by: str | None = None) -> SessionOpened:
    return SessionOpened(
        key=key,
        session_id=session_id(key),
        agent_id=key.split(":")[1],
        opened_by="operator",
        spawned_by=spawned_by,
    )


def saying(key: str, name: str, text: str, time: int = START_MS) -> MessageRecorded:
    message = Message(id=name, role="user", content=text, timestamp=time)
    return MessageRecorded(session_id=session_id(key), message=message)


def draft(event: Event, name: str, time: int = START_MS) -> Draft:
    return Draft(event=event, id=name, time=time)


def to(key: str, *drafts: Draft) -> StreamAppend:
    return StreamAppend(stream=ids.session_stream(key), expected=ANY_VERSION, drafts=drafts)


def write(log: Log, appends: Iterator[StreamAppend]) -> None:
    """Write appends, many in a transaction."""
    while batch := tuple(islice(appends, _STEP)):
        log.append_now(batch, timeout=600)


def open_sessions(log: Log, keys: Sequence[str], *, messages: int = 0, text: str = "hello") -> None:
    """Open sessions, a second between each and the next, with some messages in each."""
    write(
        log,
        (
            to(key, draft(opening(key), f"open-{key}", START_MS + at * SECOND_MS))
            for at, key in enumerate(keys)
        ),
    )
    write(
        log,
        (
            to(key, draft(saying(key, f"{key}-{number}", text, time), f"said-{number}-{key}", time))
            for number in range(messages)
            for at, key in enumerate(keys)
            for time in (START_MS + (len(keys) * (number + 1) + at) * SECOND_MS,)
        ),
    )
