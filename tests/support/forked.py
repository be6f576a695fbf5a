"""A log with a few streams, configurations and checkpoints to make forks of."""

import sqlite3
from collections.abc import Collection, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from intersession_events.basics.ids import derive, event_id
from intersession_events.basics.machine import random_id
from intersession_events.copies.forks.forking import Fork, ForkWanted, fork_log
from intersession_events.facts import (
    ConfigLoaded,
    Event,
    ForkEdit,
    LogOpened,
    Message,
    MessageRecorded,
)
from intersession_events.log.recorded import ANY_VERSION, Draft, StreamAppend
from intersession_events.log.tables import APPLICATION_ID, FORMAT, LOG_TABLES
from intersession_events.stores.portable.log import PortableLog
from intersession_events.stores.sqlite.log import SqliteLog
from support.checkpointed import checkpoint, key_of

KEY: Final = key_of(7)
LOG_ID: Final = "6a4d280b-fc53-4c01-9c8c-4d77a60bfa97"
A: Final = "session:agent:a:main"
B: Final = "session:agent:b:main"
OTHER: Final = "session:agent:other:main"
CUT: Final = 20


def empty_log(path: Path) -> None:
    """Make a log with nothing in it."""
    with closing(sqlite3.connect(path)) as made, made:
        made.execute(f"PRAGMA application_id={APPLICATION_ID}")
        for statement in LOG_TABLES.values():
            made.execute(statement)
        made.execute("INSERT INTO log_identity VALUES (?, ?, 0, 5)", (LOG_ID, FORMAT))


def say(log: SqliteLog, stream: str, *texts: str) -> None:
    """Record messages in a stream."""
    before = len(log.stream(stream))
    events = [
        MessageRecorded(session_id="s", message=Message(id=text, role="user", content=text, timestamp=5))
        for text in texts
    ]
    drafts = tuple(
        Draft(
            event=event,
            id=event_id(log.log_id, stream, before + number + 1, "message_recorded.1"),
            time=1_000 + before + number,
            correlation=derive(LOG_ID, "root"),
            decision="" if number else '{"asked":{"say":{}}}',
        )
        for number, event in enumerate(events)
    )
    log.append_now([StreamAppend(stream=stream, expected=ANY_VERSION, drafts=drafts)])


def load(log: SqliteLog, name: str) -> None:
    """Record a start, and a configuration that came into force by it."""
    events: tuple[Event, ...] = (
        LogOpened(epoch=log.epoch, version="1"),
        ConfigLoaded(digest=name, config="{}"),
    )
    drafts = tuple(
        Draft(event=event, id=derive(LOG_ID, name, number), time=1) for number, event in enumerate(events)
    )
    log.append_now([StreamAppend(stream="log", expected=ANY_VERSION, drafts=drafts)])


def source_log(path: Path) -> Path:
    """Make the log: `A` and `B` speak before and after `CUT`, `OTHER` is of no concern; two signed checkpoints, one behind.

    The configuration `idle` was in force while neither spoke, `first` and `now` when they did.
    """
    empty_log(path)
    with SqliteLog(path) as log:
        load(log, "first")
        say(log, A, "one", "two")
        say(log, OTHER, "elsewhere", "more")
        checkpoint(log, KEY)
        load(log, "idle")
        say(log, OTHER, "again")
        load(log, "now")
        say(log, A, "three")
        say(log, B, "four", "five")
        say(log, OTHER, *map(str, range(4)))
        assert log.head() < CUT
        say(log, B, *(f"long {number}" for number in range(CUT - log.head())))
        say(log, A, "too late")
        checkpoint(log, KEY)
        say(log, B, "later still")
    return path


def fork_of(path: Path, streams: Sequence[str] = (A, B), *, at: int = CUT) -> Path:
    """Make a fork of some streams of a log, and return its file."""
    with SqliteLog(path, read_only=True) as log:
        return Path(forked(log, streams, at=at, flow="a run").path)


def forked(
    log: PortableLog,
    streams: Collection[str],
    *,
    at: int,
    flow: str = "r",
    edits: Sequence[ForkEdit] = (),
    by: str = "operator",
    directory: Path | None = None,
) -> Fork:
    """Make a fork of some streams of a log that is open."""
    wanted = ForkWanted(streams=streams, at=at, flow=flow, edits=edits, by=by)
    return fork_log(log, wanted, directory=directory, fork_id=random_id(), now_ms=1_000)
