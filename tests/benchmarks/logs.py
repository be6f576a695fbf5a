"""Logs to measure on: sessions that were opened, with messages in them, written in large steps."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from intersession_events.basics import ids
from intersession_events.facts import (
    Event,
    Message,
    MessageRecorded,
    RunCompleted,
    RunQueued,
    RunStarted,
    SessionOpened,
    encode,
    topic_of,
)
from intersession_events.log.envelope import FIRST, seal
from intersession_events.log.log import HostLog
from intersession_events.log.recorded import ANY_VERSION, Draft, StreamAppend
from intersession_events.stores.sqlite.log import SqliteLog

SECOND_MS = 1000
START_MS = 1_700_000_000_000
_STEP = 500
_AT_ONCE = 5_000
_SALT = bytes(16)
_NAMES = "6a4d280b-fc53-4c01-9c8c-4d77a60bfa97"
_SAID = "Is the boiler on again?"
MAIN = "agent:main:main"
AGENTS = ("main", "ops", "desk", "home")
OLD_KIND = 50
"""One session in so many is of a kind that nothing happens to any more: it stands at the end of the list."""


def session_key(number: int, agent: str = "main") -> str:
    return f"agent:{agent}:session-{number}"


@cache
def session_id(key: str) -> str:
    return ids.derive(_NAMES, "session", key)


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


def answering(key: str, answer: Message) -> RunCompleted:
    """Return the end of the run that an answer is of."""
    return RunCompleted(
        run_id=answer.run_id or "",
        attempt=1,
        session_id=session_id(key),
        message=answer,
        message_is_reply=True,
    )


def draft(event: Event, name: str, time: int = START_MS) -> Draft:
    return Draft(event=event, id=ids.derive(_NAMES, "event", name), time=time)


def to(key: str, *drafts: Draft) -> StreamAppend:
    return StreamAppend(stream=ids.session_stream(key), expected=ANY_VERSION, drafts=drafts)


def turn(key: str, number: int) -> StreamAppend:
    """Return the append of a message and of the run that answers it, at a time of their own."""
    name, time = f"{key}-turn-{number}", START_MS + (1000 + number) * SECOND_MS
    run = ids.derive(session_id(key), "run", name)
    answer = Message(id=f"{name}-answer", role="assistant", content="It is done.", timestamp=time, run_id=run)
    events: tuple[Event, ...] = (
        RunQueued(
            run_id=run,
            session_id=session_id(key),
            message=saying(key, name, "Is it done?", time).message,
            step="message",
        ),
        RunStarted(run_id=run, attempt=1, context_hash="0" * 64),
        answering(key, answer),
    )
    return to(key, *(draft(event, f"{name}-{at}", time + at) for at, event in enumerate(events)))


def write(log: HostLog, appends: Iterator[StreamAppend]) -> None:
    """Write appends, many in a transaction."""
    while batch := tuple(islice(appends, _STEP)):
        log.append_now(batch, timeout=600)


def open_sessions(log: HostLog, keys: Sequence[str], *, messages: int = 0, text: str = "hello") -> None:
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


def crowd(sessions: int) -> Iterator[str]:
    """Yield keys as a log has them that many people and sub-agents use, the first ones of a kind that is old."""
    yield MAIN
    old = sessions // OLD_KIND
    for number in range(1, sessions):
        agent = AGENTS[number * number % 7 % 4]
        if number <= old:
            yield f"agent:{agent}:cron:job-{number}"
        elif number % 5 == 0:
            yield f"agent:main:subagent:{number:08x}-0000-4000-8000-000000000000"
        elif number % 5 == 1:
            yield f"agent:{agent}:telegram:group:-{number}"
        else:
            yield f"agent:{agent}:telegram:direct:{number}"


def opening_of_crowd(key: str, number: int) -> SessionOpened:
    """Return how a session of the crowd begins: a sub-agent has a parent and a label that others have, too."""
    is_child = ":subagent:" in key
    return replace(
        opening(key, spawned_by=MAIN if is_child else None),
        label="research" if is_child and number % 2 else "rare" if number % 10_000 == 1 else None,
        display_name=f"Person {number * 2_654_435_761 % 1_000_000_007:x}" if number % 3 == 0 else None,
    )


class Told(NamedTuple):
    """An event to be written, with its stream."""

    stream: str
    event: Event
    time: int


def write_directly(path: Path, told: Iterator[Told]) -> None:
    """Write a log that its writer would have made, without the writer: for logs of millions of events.

    It has no views: whoever opens it with them makes them.
    """
    with SqliteLog(path) as log:
        log_id, epoch = log.log_id, log.epoch
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA synchronous=OFF")
        ends: dict[str, tuple[int, str]] = {}
        while part := list(islice(told, _AT_ONCE)):
            rows: list[tuple[str, int, str, bytes]] = []
            for one in part:
                version, prev = ends.get(one.stream, (0, FIRST))
                topic, payload = topic_of(one.event), encode(one.event)
                own = ids.event_id(log_id, one.stream, version + 1, topic)
                state, sealed = seal(
                    Draft(event=one.event, id=own, time=one.time),
                    topic,
                    payload,
                    log_id=log_id,
                    stream=one.stream,
                    version=version + 1,
                    epoch=epoch,
                    prev=prev,
                    salt=_SALT,
                )
                ends[one.stream] = (version + 1, sealed.hash)
                rows.append((one.stream, version + 1, topic, state))
            database.execute("BEGIN")
            database.executemany(
                "INSERT INTO stored_events (originator_id, originator_version, topic, state) VALUES (?, ?, ?, ?)",
                rows,
            )
            topics = {(topic,) for *_, topic, _ in rows}
            database.executemany("INSERT OR IGNORE INTO log_topics VALUES (?)", sorted(topics))
            database.execute("COMMIT")


def crowd_told(sessions: int, messages: int = 1) -> Iterator[Told]:
    """Yield what happened in a crowd: all are opened, a second apart, and say something; then they speak in turn."""
    keys = list(crowd(sessions))
    for number, key in enumerate(keys):
        time, stream = START_MS + number * SECOND_MS, ids.session_stream(key)
        yield Told(stream, opening_of_crowd(key, number), time)
        yield Told(stream, saying(key, f"m{number}", _SAID, time), time)
    for turn in range(1, messages):
        for number in range(sessions):
            # Each turn in another order, so that what is next to each other in the list was not so before.
            at = number * 7_919 % sessions
            key, time = keys[at], START_MS + (sessions * turn + number) * SECOND_MS
            said = saying(key, f"m{turn}-{at}", _SAID, time)
            yield Told(ids.session_stream(key), said, time)


def long_session_told(messages: int, key: str = MAIN) -> Iterator[Told]:
    """Yield what happened in one session: every other message answered by a run."""
    stream = ids.session_stream(key)
    yield Told(stream, opening(key), START_MS)
    for number in range(messages // 2):
        time, run = START_MS + number * SECOND_MS, f"run-{number}"
        asked = saying(key, f"ask-{number}", _SAID, time).message
        queued = RunQueued(run_id=run, session_id=session_id(key), step="message", message=asked)
        answer = Message(id=f"answer-{number}", role="assistant", content=_SAID, timestamp=time, run_id=run)
        yield Told(stream, queued, time)
        yield Told(stream, RunStarted(run_id=run, attempt=1, context_hash="0" * 64), time)
        yield Told(stream, answering(key, answer), time)
