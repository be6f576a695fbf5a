"""Which functions of the eventsourcing library, and of our subclasses of its classes, do the work of each path."""

import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from intersession import SessionSystem, Turn
from intersession_events.stores.tailing.places import kept_inside
from intersession_projections.views.inline_views import inline_views
from support.any_log import Logs, log_at
from support.log_drafts import anywhere, said
from support.running import closed_exchange
from support.soaking import until

EVERY = 250
"""After so many events of a stream its state is kept (docs/explanation/design.md)."""

ROOMS = (
    "eventsourcing/",
    "stores/library/",
    "stores/portable/snapshots/",
    "stores/sqlite/recorder",
    "stores/sqlite/application",
    "stores/postgres/recorder",
    "stores/postgres/application",
    "stores/portable/",
)


@contextmanager
def traced() -> Generator[set[str]]:
    """Collect the names of the functions that run in this thread and in all that begin inside the block."""
    seen: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and any(room in frame.f_code.co_filename for room in ROOMS):
            seen.add(frame.f_code.co_qualname)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield seen
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


WRITES = {
    "Pending.__init__",
    "ChainedMapper.seal",
    "GroupCommitRecorder.insert_rows",
}
READS = {"ReadsLog.select_events", "ChainedMapper.to_domain_event"}
WAKES = {"EventReader.from_snapshot", "ChainedMapper.to_domain_event"}
"""On a server, where the events behind a snapshot come with it."""


def inbound(system: SessionSystem) -> None:
    system.inbound(channel="telegram", chat_id="42", text="hello", sender="ann", deliver=False, wait=20)


def send(system: SessionSystem) -> None:
    sent = system.tools("agent:main:main").call(
        "sessions_send", {"sessionKey": "agent:ops:main", "message": "status?"}
    )
    closed_exchange(system, sent["runId"])


def history(system: SessionSystem) -> None:
    system.tools().call("sessions_history", {"sessionKey": "agent:main:main"})


def follow(system: SessionSystem) -> None:
    assert list(system.follow(0, timeout=0))


def answer(turn: Turn) -> str:
    return "yes" if turn.step == "message" else "REPLY_SKIP"


CONFIG = {"tools": {"agentToAgent": {"enabled": True}, "sessions": {"visibility": "all"}}}
AGENTS = {"main": answer, "ops": answer}


@pytest.mark.parametrize(
    ("path", "did"),
    [
        (inbound, WRITES),
        (send, WRITES),
        (history, READS),
        (follow, {"ReadsLog.select_notifications", "ChainedMapper.to_domain_event"}),
    ],
)
def test_each_path_goes_through_the_library(
    logs: Logs, log_url: str, path: Callable[[SessionSystem], None], did: set[str]
) -> None:
    with SessionSystem(log_url, agents=AGENTS, config=CONFIG) as system:
        inbound(system)
    with traced() as opened, SessionSystem(log_url, agents=AGENTS, config=CONFIG) as system:
        restarted = set(opened)
        opened.clear()
        path(system)
        done = set(opened)

    assert did <= done
    assert path is not send or done >= (READS if logs.are_files else WAKES)
    assert {
        "Application.__init__",
        "InfrastructureFactory.mapper",
        "SQLiteFactory.application_recorder" if logs.are_files else "PostgresFactory.application_recorder",
    } <= restarted


def test_views_that_follow_run_on_the_projection_and_the_runner_of_the_library(
    logs: Logs, log_url: str, beside_log: Path
) -> None:
    config = {**CONFIG, "views": {"keep": ["usage"], "afterSeconds": 0}, "transcripts": {"mirror": True}}
    did = {
        "BaseProjectionRunner.__init__",
        "BaseProjectionRunner._process_events_loop",
        "ApplicationSubscription.__next__",
        "Projection.view",
    }
    if logs.are_files:  # in a database its position stands with those of inline views
        did |= {"SQLiteTrackingRecorder._insert_tracking", "SQLiteTrackingRecorder._max_tracking_id"}
    with traced() as seen, SessionSystem(log_url, agents=AGENTS, config=config) as system:
        inbound(system)
        until(
            lambda: (
                any(beside_log.glob("log*.views/usage.db"))
                if logs.are_files
                else "usage" in kept_inside(system.log)
            )
        )
        until(lambda: did <= seen and any(beside_log.glob("log*.transcripts/*.jsonl")))


def test_a_session_wakes_by_the_snapshot_store_of_the_library(logs: Logs, log_url: str) -> None:
    with SessionSystem(log_url, agents=AGENTS, config=CONFIG) as system:
        inbound(system)
        stream = next(item.stream for item in system.follow(0, timeout=0) if item.topic == "session_opened.1")
    with log_at(log_url, inline=inline_views()) as log:
        log.append_now((anywhere(stream, *(said(str(number)) for number in range(EVERY))),))

    with traced() as first, SessionSystem(log_url, agents=AGENTS, config=CONFIG) as system:
        inbound(system)
    with traced() as again, SessionSystem(log_url, agents=AGENTS, config=CONFIG) as system:
        inbound(system)

    inserted = "SQLiteAggregateRecorder._insert_events" if logs.are_files else "SnapshotRecorder.insert_rows"
    took = {"EventStore.put", "SnapshotMapper.to_stored_event", inserted}
    # From a server the snapshot comes with the events behind it, in one way, and is the library's from there on.
    asked = (
        {"EventStore.get", "KeepsSnapshots.select_events"}
        if logs.are_files
        else {"EventReader.from_snapshot"}
    )
    read = {*asked, "SnapshotMapper.to_domain_event"}
    assert took <= first
    assert not took & again
    assert read <= again
