"""Spawns are put together again from calls, the registry, the children and what came back (IMP-4)."""

import json
from pathlib import Path
from typing import Any

import pytest

from intersession_events.basics import ids
from intersession_events.facts import (
    AnnounceDecided,
    ChildArchived,
    ChildEnded,
    Event,
    ResultHanded,
    SessionOpened,
    SpawnAccepted,
    SpawnClosed,
)
from intersession_events.transcripts.openclaw.plan import ImportPlan
from support.openclaw.samples import (
    HOME,
    HOUSEHOLD,
    all_events,
    all_states,
    drafts_of,
    header,
    message,
    planned,
    said,
    session_of,
    write_state,
)


def child(number: int) -> str:
    return f"agent:home:subagent:cccccccc-0000-4000-8000-{number:012x}"


def spawn(found: ImportPlan, key: str) -> list[Event]:
    [accepted] = [event for event in all_events(found, SpawnAccepted) if event.child == key]
    return [draft.event for draft in drafts_of(found, ids.spawn_stream(accepted.spawn_id))]


@pytest.mark.clause("IMP-4")
def test_a_child_that_is_done_hands_its_result_to_the_requester() -> None:
    accepted, ended, decided, handed, closed = spawn(planned(HOUSEHOLD), child(1))

    assert isinstance(accepted, SpawnAccepted)
    assert (accepted.requester, accepted.task, accepted.label) == (HOME, "Count the files", "counter")
    assert (accepted.run_id, accepted.inferred) == ("aaaaaaaa-0000-4000-8000-00000000000b", True)
    assert accepted.archive_after_ms == 0
    assert isinstance(ended, ChildEnded)
    assert (ended.status, ended.text, ended.ended_ms) == ("ok", "There are 7 files.", 1772442204000)
    assert decided == AnnounceDecided(text="There are 7 files.")
    assert isinstance(handed, ResultHanded)
    assert handed.requester == HOME
    assert closed == SpawnClosed(reason="handed_over")
    evidence: dict[str, Any] = json.loads(accepted.evidence or "")
    assert evidence["record"] == accepted.run_id
    assert evidence["handed"][0]["entry"] == handed.message_id


@pytest.mark.clause("IMP-4")
@pytest.mark.parametrize(
    ("number", "status", "error"), [(2, "error", "HTTP 400: bad"), (3, "timeout", "aborted"), (4, "ok", None)]
)
def test_the_status_is_that_of_the_registry_else_of_the_child(
    number: int, status: str, error: str | None
) -> None:
    ended = spawn(planned(HOUSEHOLD), child(number))[1]

    assert isinstance(ended, ChildEnded)
    assert (ended.status, ended.error) == (status, error)


@pytest.mark.clause("IMP-4")
def test_a_child_without_output_is_handed_over_without_text() -> None:
    decided = spawn(planned(HOUSEHOLD), child(2))[2]

    assert decided == AnnounceDecided(silent=True, why="no_text")


@pytest.mark.clause("IMP-4")
def test_a_child_that_was_cleaned_up_is_archived_when_its_file_was() -> None:
    found = planned(HOUSEHOLD)
    [accepted] = [event for event in all_events(found, SpawnAccepted) if event.child == child(4)]

    assert accepted.cleanup == "delete"
    last = drafts_of(found, ids.spawn_stream(accepted.spawn_id))[-1]
    assert last.event == ChildArchived(child=child(4), reason="cleanup")
    assert last.time == 1772442286000


@pytest.mark.clause("IMP-4")
def test_a_result_that_went_to_the_channel_is_announced() -> None:
    events = spawn(planned(HOUSEHOLD), child(5))

    assert events[2] == AnnounceDecided(text="It is 42.")
    assert isinstance(events[3], SpawnClosed)
    assert events[3].reason == "announced"


@pytest.mark.clause("IMP-4")
@pytest.mark.parametrize("state", all_states())
def test_every_sub_agent_has_one_spawn_and_the_lineage_it_names(state: Path) -> None:
    found = planned(state)

    accepted = {event.child: event for event in all_events(found, SpawnAccepted)}
    assert len(accepted) == len(all_events(found, SpawnAccepted)) == found.report.spawns
    for event in all_events(found, SessionOpened):
        if ":subagent:" in event.key:
            assert event.spawned_by == accepted[event.key].requester
            assert event.spawn_depth == accepted[event.key].depth


@pytest.mark.clause("IMP-4")
@pytest.mark.parametrize("state", all_states())
def test_every_spawn_is_closed(state: Path) -> None:
    found = planned(state)

    for event in all_events(found, SpawnAccepted):
        kinds = [type(draft.event) for draft in drafts_of(found, ids.spawn_stream(event.spawn_id))]
        assert kinds[:2] == [SpawnAccepted, ChildEnded]
        assert kinds.count(SpawnClosed) == 1


def test_a_refused_spawn_is_counted_and_nothing_is_made_of_it() -> None:
    found = planned(HOUSEHOLD)

    assert found.report.refused_spawns == 1
    assert found.report.spawns == 5


@pytest.mark.clause("IMP-4")
def test_a_child_of_which_only_its_entry_is_left_is_a_spawn_without_messages(tmp_path: Path) -> None:
    key = "agent:main:subagent:cccccccc-0000-4000-8000-000000000001"
    entries = {key: {"sessionId": "s-2", "spawnedBy": "main", "updatedAt": 5_000, "spawnDepth": 2}}
    found = planned(write_state(tmp_path, [], entries=entries))

    accepted, ended, closed = spawn(found, key)
    assert isinstance(accepted, SpawnAccepted)
    assert (accepted.requester, accepted.depth) == ("agent:main:main", 2)
    assert isinstance(ended, ChildEnded)
    assert (ended.status, ended.text) == ("interrupted", None)
    assert isinstance(closed, SpawnClosed)
    assert closed.reason == "inferred"
    assert [type(draft.event).__name__ for draft in session_of(found, key)] == [
        "SessionOpened",
        "SessionImported",
    ]


@pytest.mark.clause("IMP-4")
def test_records_and_completions_of_children_that_are_gone_are_counted(tmp_path: Path) -> None:
    told = (
        "[Internal task completion event]\nsource: subagent\nsession_key: agent:main:subagent:x\nstatus: ok\n"
    )
    write_state(tmp_path, [header(), message("a1", said(told))])
    (tmp_path / "subagents").mkdir()
    records = {"r-1": {"childSessionKey": "agent:main:subagent:y"}, "r-2": {}}
    (tmp_path / "subagents" / "runs.json").write_text(json.dumps({"version": 2, "runs": records}))

    found = planned(tmp_path)

    assert sorted((item.what, item.where) for item in found.report.unattributed) == [
        ("completion event", "agents/main/sessions/s-1.jsonl:2"),
        ("sub-agent record", "subagents/runs.json:r-1"),
        ("sub-agent record", "subagents/runs.json:r-2"),
    ]
    assert found.report.spawns == 0


CHILD = "agent:main:subagent:cccccccc-0000-4000-8000-000000000001"


@pytest.mark.clause("IMP-4")
def test_who_asked_for_a_child_is_unknown_where_nothing_says_it(tmp_path: Path) -> None:
    """Before: the import made it the operator."""
    found = planned(write_state(tmp_path, [], entries={CHILD: {"sessionId": "s-2", "updatedAt": 5_000}}))

    accepted = spawn(found, CHILD)[0]
    assert isinstance(accepted, SpawnAccepted)
    assert (accepted.caller, accepted.requester) == ("unknown", None)


@pytest.mark.clause("IMP-4")
def test_who_was_given_the_result_of_a_child_had_asked_for_it(tmp_path: Path) -> None:
    told = f"[Internal task completion event]\nsource: subagent\nsession_key: {CHILD}\nstatus: ok\n"
    entries = {"agent:main:main": {"sessionId": "s-1"}, CHILD: {"sessionId": "s-2", "updatedAt": 5_000}}
    found = planned(write_state(tmp_path, [header(), message("a1", said(told))], entries=entries))

    accepted = spawn(found, CHILD)[0]
    assert isinstance(accepted, SpawnAccepted)
    assert (accepted.caller, accepted.requester) == ("agent:main:main", "agent:main:main")
