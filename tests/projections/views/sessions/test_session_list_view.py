"""The session list: which events change a row, and how it stood before."""

import pytest

from intersession_events.facts import (
    DeliveryStarted,
    Route,
    RouteChanged,
    RunAborted,
    RunCompleted,
    RunInterrupted,
    RunQueued,
    RunStarted,
    SessionArchived,
    SessionImported,
    SessionPatched,
    SessionReset,
    Usage,
    message_in,
)
from intersession_projections.views.sessions.list import Generation, Sessions
from intersession_projections.views.sessions.versions import versions_in
from support.story import MAIN, Story, listed

STREAM = f"session:{MAIN}"
CHILD = "agent:main:subagent:6a4d280b-fc53-4c01-9c8c-4d77a60bfa97"
GRANDCHILD = "agent:ops:subagent:6a4d280b-fc53-4c01-9c8c-4d77a60bfa98"


def queued(run_id: str) -> RunQueued:
    return RunQueued(run_id=run_id, session_id="s", step="message", answers="m")


@pytest.mark.clause("LIST-3")
def test_messages_resets_and_patches_move_updated_at_and_nothing_else_does(story: Story) -> None:
    sessions = Sessions(story.log)
    story.open()

    def updated_at() -> int:
        row = sessions.get(MAIN)
        assert row is not None
        return row.updated_at

    for moving in ("message", "patch", "reset"):
        before = updated_at()
        match moving:
            case "message":
                story.say(MAIN, "hello")
            case "patch":
                story.put(STREAM, SessionPatched(values={"label": "a"}))
            case _:
                story.put(STREAM, SessionReset(session_id="s2", previous_session_id="s-agent-main-main"))
        assert updated_at() == story.clock.now > before
    before = updated_at()
    story.put(STREAM, queued("r"))
    story.put(STREAM, RunStarted(run_id="r", attempt=1, context_hash="h"))
    story.put(STREAM, RunCompleted(run_id="r", attempt=1, text="yes"))
    story.put(STREAM, RouteChanged(route=Route(channel="whatsapp", to="1")))
    story.put("delivery:d", DeliveryStarted(delivery_id="d", attempt=1))
    assert updated_at() == before


@pytest.mark.clause("LIST-3")
def test_updated_at_does_not_fall_when_the_clock_is_set_back(story: Story) -> None:
    sessions = Sessions(story.log)
    story.open()
    story.say(MAIN, "late", time=5_000_000)
    story.say(MAIN, "early", time=4_000_000)
    row = sessions.get(MAIN)
    assert row is not None
    assert row.updated_at == 5_000_000


@pytest.mark.clause("LIST-5")
def test_a_run_shows_as_queued_running_and_idle_again(story: Story) -> None:
    sessions = Sessions(story.log)
    story.open()
    states: list[tuple[str, bool, bool, int | None, str | None]] = []

    def note() -> None:
        row = sessions.get(MAIN)
        assert row is not None
        states.append((row.run_state, row.system_sent, row.aborted_last_run, row.total_tokens, row.model))

    note()
    story.put(STREAM, queued("r1"), queued("r2"))
    note()
    story.put(STREAM, RunStarted(run_id="r1", attempt=1, context_hash="h"))
    note()
    story.put(STREAM, RunInterrupted(run_id="r1", attempt=1))
    note()
    story.put(STREAM, RunStarted(run_id="r1", attempt=2, context_hash="h"))
    story.put(STREAM, RunAborted(run_id="r1", attempt=2, by="operator"))
    note()
    story.put(STREAM, RunStarted(run_id="r2", attempt=1, context_hash="h"))
    usage = Usage(input=7, output=3)
    story.put(STREAM, RunCompleted(run_id="r2", attempt=1, text="x", usage=usage, model="p/m"))
    note()
    assert states == [
        ("idle", False, False, None, None),
        ("queued", False, False, None, None),
        ("running", True, False, None, None),
        ("queued", True, False, None, None),
        ("queued", True, True, None, None),
        ("idle", True, False, 10, "p/m"),
    ]


@pytest.mark.clause("LIST-8", "HIST-3")
def test_old_rows_and_messages_are_found_in_full_blocks_and_in_the_last_one(story: Story) -> None:
    sessions = Sessions(story.log)
    story.open()
    rows = []
    for number in range(35):
        story.say(MAIN, f"m-{number}")
        rows.append(sessions.get(MAIN))
    assert [sessions.get(MAIN, as_of=row.position) for row in rows if row is not None] == rows
    assert sessions.get(MAIN, as_of=0) is None
    stored = story.log.query("SELECT versions FROM session_versions ORDER BY position")
    assert [len(versions_in(block)) for (block,) in stored] == [16, 16]
    for row, recorded in zip(rows, story.log.stream(STREAM, after=1), strict=True):
        message = message_in(recorded.event)
        assert message is not None
        assert row is not None
        assert sessions.versions_of_message(MAIN, message.id) == [row.version] == [recorded.version]
    assert sessions.versions_of_message(MAIN, "no such message") == []


@pytest.mark.clause("GATE-2")
def test_a_patch_sets_and_clears_what_the_list_shows(story: Story) -> None:
    sessions = Sessions(story.log)
    story.open(label="old")
    story.put(
        STREAM,
        SessionPatched(values={"sendPolicy": "deny", "model": "p/m", "unseen": "x"}, cleared=("label",)),
    )
    row = sessions.get(MAIN)
    assert row is not None
    assert (row.send_policy, row.model, row.model_override, row.label) == ("deny", "p/m", "p/m", None)


@pytest.mark.clause("KEY-5")
def test_the_id_of_an_earlier_generation_still_names_its_key(story: Story) -> None:
    sessions = Sessions(story.log)
    opened = story.open(session_id="first")
    story.put(STREAM, SessionReset(session_id="second", previous_session_id="first"))
    assert sessions.by_session_id("first") == Generation(MAIN, current=False)
    assert sessions.by_session_id("second") == Generation(MAIN, current=True)
    assert sessions.by_session_id("third") is None
    assert sessions.by_session_id("first", as_of=opened.position) == Generation(MAIN, current=True)
    assert sessions.by_session_id("second", as_of=opened.position) is None


@pytest.mark.clause("HIST-7")
def test_an_archived_session_leaves_the_list_and_keeps_its_id(story: Story) -> None:
    sessions = Sessions(story.log)
    story.open(label="gone")
    archived = story.put(STREAM, SessionArchived(session_id="s-agent-main-main", reason="deleted"))
    assert list(listed(sessions)) == []
    assert sessions.by_label("gone") == []
    assert sessions.by_session_id("s-agent-main-main") == Generation(MAIN, current=False)
    assert [row.key for row in listed(sessions, archived.position - 1)] == [MAIN]
    story.open(session_id="again")
    assert [row.session_id for row in listed(sessions)] == ["again"]


def test_archiving_an_earlier_generation_leaves_the_session_in_the_list(story: Story) -> None:
    story.open(session_id="now")
    story.put(STREAM, SessionArchived(session_id="before", reason="reset"))
    assert [row.archived for row in listed(Sessions(story.log))] == [None]


@pytest.mark.clause("VIS-2")
def test_descendants_are_all_it_spawned_directly_or_not(story: Story) -> None:
    sessions = Sessions(story.log)
    story.open()
    child = story.open(CHILD, spawned_by=MAIN)
    story.open(GRANDCHILD, spawned_by=CHILD)
    assert sessions.descendants(MAIN) == {CHILD, GRANDCHILD}
    assert sessions.descendants(MAIN, as_of=child.position) == {CHILD}
    assert sessions.ancestors(GRANDCHILD) == [CHILD, MAIN]
    assert sessions.descendants(GRANDCHILD) == set()


@pytest.mark.clause("VIS-2")
def test_a_circle_in_an_imported_lineage_ends_and_makes_nobody_its_own_child(story: Story) -> None:
    sessions = Sessions(story.log)
    story.open(spawned_by=CHILD)
    story.open(CHILD, spawned_by=MAIN)
    assert sessions.descendants(MAIN) == {CHILD}
    assert sessions.ancestors(MAIN) == [CHILD]


@pytest.mark.clause("VIS-2", "HIST-6")
def test_a_session_and_the_one_that_asks_for_it_are_looked_up_together(story: Story) -> None:
    sessions = Sessions(story.log)
    story.open(spawned_by=GRANDCHILD)  # imported: a circle
    story.open(CHILD, spawned_by=MAIN)
    story.open(GRANDCHILD, spawned_by=CHILD)
    story.open("agent:ops:main")
    for key in (MAIN, GRANDCHILD, "agent:ops:main", "agent:main:nobody"):
        for caller in (MAIN, CHILD, "agent:ops:main", "agent:main:no-one"):
            assert sessions.called(key, caller) == (
                sessions.get(key),
                sessions.get(caller),
                caller in sessions.ancestors(key),
            )


@pytest.mark.clause("LIST-3")
def test_rows_come_last_updated_first_and_ties_by_key(story: Story) -> None:
    for key in ("agent:main:b", "agent:main:a", "agent:main:c"):
        story.open(key, opened_by="import")
    for key, time in (("agent:main:b", 10), ("agent:main:a", 10), ("agent:main:c", 20)):
        story.say(key, "x", time=time)
    assert [row.key[-1] for row in listed(Sessions(story.log))] == ["c", "a", "b"]


@pytest.mark.clause("LIST-7", "LIST-8")
def test_a_list_being_read_is_not_moved_by_what_is_written_meanwhile(story: Story) -> None:
    for number in range(230):
        story.open(f"agent:main:n{number}")
    rows = listed(Sessions(story.log))
    first = next(rows)
    for number in range(230):
        story.say(f"agent:main:n{number}", "moved")
    assert [row.key for row in (first, *rows)] == [f"agent:main:n{number}" for number in reversed(range(230))]


@pytest.mark.clause("IMP-1")
def test_an_imported_session_is_as_old_as_its_entry_says(story: Story) -> None:
    story.open(opened_by="import")
    story.put(
        STREAM,
        SessionImported(
            session_id="old", source="state", entry="{}", updated_at=77, label="l", system_sent=True
        ),
    )
    row = Sessions(story.log).get(MAIN)
    assert row is not None
    assert (row.updated_at, row.session_id, row.label, row.system_sent) == (77, "old", "l", True)


@pytest.mark.clause("SEND-1")
def test_labels_with_any_character_are_found(story: Story) -> None:
    label = "a\0b\u202e'\""
    story.open(label=label)
    story.open("agent:ops:main", label=label)
    sessions = Sessions(story.log)
    assert [row.key for row in sessions.by_label(label)] == [MAIN, "agent:ops:main"]
    assert [row.key for row in sessions.by_label(label, "ops")] == ["agent:ops:main"]
    assert sessions.by_label("a") == []
