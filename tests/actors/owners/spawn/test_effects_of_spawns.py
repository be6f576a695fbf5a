"""What the events of a spawn ask for, as lists of effects, and what one that is over asks for after a restart."""

from collections.abc import Sequence
from typing import Any

import pytest

from intersession_actors.owners.chains.cause import CausedBy
from intersession_actors.owners.spawn.commands import ArchiveDue
from intersession_actors.owners.spawn.effects import (
    Prepare,
    RemoveFiles,
    TellStarted,
    ThreadRecorded,
    clean_up,
    effects,
    prepared,
)
from intersession_actors.owners.spawn.rules import Spawn, fold
from intersession_actors.owners.streams.commands import Accepted, Refused
from intersession_actors.owners.streams.effects import (
    DropStopwatch,
    Effect,
    Pass,
    Report,
    Sleep,
    StartStopwatch,
    TellFlow,
    Until,
)
from intersession_actors.rules.config.config import load_config
from intersession_events.facts import (
    AnnounceDecided,
    AttachedFile,
    AttachmentRemovalFailed,
    Attachments,
    Budget,
    ChildArchived,
    ChildEnded,
    Limits,
    Route,
    SpawnAccepted,
    SpawnClosed,
    SpawnEvent,
    ThreadAsked,
    ThreadOpened,
)
from support.bare_events import bare

LIMITS = load_config(None).config
STREAM = "spawn:w1"
BUDGET = Budget(root="r", limits=Limits(runs=3))
FILES = Attachments(
    root="/srv/w",
    directory="attachments/w1",
    files=(AttachedFile(name="a.txt", bytes=2, sha256="0" * 64, mime_type="text/plain"),),
)
THREAD = ThreadAsked(channel="chat", to="42", key="t1", title="task")
HOUR_MS = 3_600_000
STARTED = TellStarted(Accepted(recorded=()))
ARCHIVE = ("archive", STREAM)


def accepted(**fields: Any) -> SpawnAccepted:
    given: dict[str, Any] = {
        "spawn_id": "w1",
        "run_id": "r0",
        "child": "agent:main:subagent:c",
        "child_session_id": "s1",
        "agent_id": "main",
        "task": "count the files",
        "message_id": "m1",
        "requester": "agent:main:main",
        "budget": BUDGET,
    }
    return SpawnAccepted(**given | fields)


ENDED = ChildEnded(run_id="r0", status="ok", text="three", ended_ms=2_000)
CLOSED = SpawnClosed(reason="announced")


def asked_after(*events: SpawnEvent) -> tuple[Spawn, list[Effect]]:
    """Return a spawn after some events, and what the last of them asks for."""
    state: Spawn | None = None
    asked: Sequence[Effect] = ()
    for number, event in enumerate(events, 1):
        recorded = bare(STREAM, number, event)
        state = fold(state, recorded)
        asked = effects(state, recorded, LIMITS)
    assert state is not None
    return state, [*asked]


@pytest.mark.clause("SPAWN-8", "SPAWN-12")
def test_a_child_that_needs_nothing_is_there_at_once() -> None:
    assert asked_after(accepted())[1] == [Pass("P2"), STARTED]


@pytest.mark.clause("SPAWN-12", "ATT-3")
def test_what_a_child_needs_is_had_once_the_spawn_is_durable_and_again_after_a_restart() -> None:
    begun = accepted(thread=THREAD)
    caused = CausedBy(session_key="agent:main:main", budget=BUDGET, event="e1")

    state, asked = asked_after(begun)

    assert asked == [Pass("P2"), Prepare(begun, caused)]
    assert prepared(state, "e1", again=True) == Prepare(begun, caused, again=True)


@pytest.mark.clause("SPAWN-12")
def test_a_thread_that_was_opened_is_on_record_and_the_child_is_there() -> None:
    opened = ThreadOpened(route=Route(channel="chat", to="42", thread="7"))

    assert asked_after(accepted(thread=THREAD), opened)[1] == [Pass("P4"), ThreadRecorded("t1"), STARTED]


@pytest.mark.clause("SPAWN-12", "SPAWN-11")
def test_who_waits_for_a_child_that_never_was_is_told_why() -> None:
    closed = SpawnClosed(reason="not_started", code="no_threads", note="thread: none, spawn without one")

    assert asked_after(accepted(thread=THREAD), closed)[1] == [
        ThreadRecorded("t1"),
        TellStarted(Refused(code="no_threads", error="thread: none, spawn without one")),
        DropStopwatch(("ended", STREAM)),
    ]


@pytest.mark.clause("SPAWN-11")
@pytest.mark.parametrize(
    ("fields", "last"),
    [
        ({}, DropStopwatch(("ended", STREAM))),
        ({"cleanup": "delete"}, Sleep(ARCHIVE, TellFlow(ArchiveDue(stream=STREAM)))),
        (
            {"archive_after_ms": HOUR_MS},
            Sleep(
                ARCHIVE,
                TellFlow(ArchiveDue(stream=STREAM)),
                HOUR_MS,
                (Until(("ended", STREAM), 2_000, HOUR_MS),),
            ),
        ),
    ],
)
def test_a_child_is_archived_in_its_time(fields: dict[str, Any], last: Effect) -> None:
    state, asked = asked_after(accepted(**fields), ENDED, CLOSED)

    assert asked == [last]
    assert [*clean_up(state)] == [last], "after a restart, too"
    assert asked_after(accepted(**fields), ENDED)[1] == [StartStopwatch(("ended", STREAM))]


@pytest.mark.clause("ATT-5")
def test_files_are_removed_when_the_child_is_gone_and_what_keeps_them_is_told() -> None:
    begun = accepted(attachments=FILES, cleanup="delete")
    archived = ChildArchived(child=begun.child, reason="cleanup")
    left = AttachmentRemovalFailed(directory=FILES.directory, error="busy")

    over = (begun, ENDED, CLOSED)
    assert asked_after(*over)[1][1:] == [RemoveFiles(begun, FILES)]
    assert asked_after(*over, archived)[1] == [DropStopwatch(("ended", STREAM)), RemoveFiles(begun, FILES)]
    assert asked_after(*over, archived, left)[1] == [
        Report("files_left", {"stream": STREAM, "error": f"{FILES.directory}: busy"})
    ]


@pytest.mark.clause("O4")
def test_silence_is_a_point_of_the_crash_matrix() -> None:
    silent = AnnounceDecided(silent=True, why="announce_skip")

    assert asked_after(accepted(), ENDED, silent)[1] == [Pass("A4")]
