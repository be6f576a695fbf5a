"""Every session of a state appears, under its key, with all of its generations (IMP-1, IMP-2)."""

from pathlib import Path

import pytest

from intersession_events.basics.keys.key import SessionKey
from intersession_events.facts import (
    LineImported,
    MessageRecorded,
    Route,
    SessionArchived,
    SessionImported,
    SessionOpened,
    SessionReset,
    text_of,
)
from intersession_events.transcripts.openclaw.reading.files import read_state
from support.openclaw.samples import (
    DESK,
    HOME,
    HOUSEHOLD,
    ONE_FOR_ALL,
    all_events,
    all_states,
    events,
    header,
    message,
    planned,
    said,
    session_of,
    write_state,
)


def session_id(number: int) -> str:
    return f"{number:08x}-1111-4111-8111-{number:012x}"


@pytest.mark.clause("IMP-1")
def test_every_entry_of_every_store_becomes_a_session() -> None:
    found = planned(HOUSEHOLD)

    assert sorted(opened.key for opened in all_events(found, SessionOpened)) == sorted(
        [
            HOME,
            DESK,
            "agent:desk:archived-0000000e-1111-4111-8111-00000000000e",
            "agent:desk:discord:channel:42",
            "agent:desk:notes",
            "agent:home:cron:nightly",
            "agent:home:empty",
            "agent:home:imported-00000010-1111-4111-8111-000000000010",
            "agent:home:legacy",
            *(f"agent:home:subagent:cccccccc-0000-4000-8000-{number:012x}" for number in range(1, 6)),
            "agent:home:telegram:group:-100200",
            "agent:home:telegram:group:-100200:topic:7",
            "agent:home:whatsapp:direct:+49123",
        ]
    )


@pytest.mark.clause("IMP-1")
@pytest.mark.parametrize("state", all_states())
def test_every_session_id_of_a_state_is_a_generation_of_some_session(state: Path) -> None:
    source = read_state(state)
    found = planned(state)

    generations = {session_id for ids in found.generations.values() for session_id in ids}
    assert {entry.values["sessionId"] for _, entry in source.entries} <= generations
    assert len({file.stem for file in source.files}) <= len(generations)


@pytest.mark.clause("IMP-1")
@pytest.mark.parametrize("state", all_states())
def test_every_line_of_a_state_is_planned_verbatim_or_reported(state: Path) -> None:
    found = planned(state)

    written = [line.decode() for file in read_state(state).files for _, line in file.lines]
    kept = [event.source for event in all_events(found, MessageRecorded)]
    kept += [event.source for event in all_events(found, LineImported)]
    assert found.report.skipped == ()
    assert sorted(filter(None, kept)) == sorted(written)


@pytest.mark.clause("IMP-1")
@pytest.mark.parametrize("state", all_states())
def test_every_planned_key_is_canonical(state: Path) -> None:
    for opened in all_events(planned(state), SessionOpened):
        assert str(SessionKey.parse(opened.key)) == opened.key


@pytest.mark.clause("IMP-1")
def test_an_entry_is_kept_whole_and_its_known_fields_are_read() -> None:
    drafts = session_of(planned(HOUSEHOLD), "agent:home:telegram:group:-100200")

    [imported] = events(drafts, SessionImported)
    assert '"threadId": 7' in imported.entry
    assert imported.route == Route(channel="telegram", to="-100200", thread="7")
    assert (imported.label, imported.display_name, imported.send_policy) == ("family", "Family", "deny")
    [opened] = events(drafts, SessionOpened)
    assert opened.original_key == "agent:home:Telegram:group:-100200"
    assert (opened.channel, opened.chat_type, opened.opened_by) == ("telegram", "group", "import")


@pytest.mark.clause("IMP-1")
def test_the_fields_of_an_older_dialect_are_read() -> None:
    [imported] = events(session_of(planned(HOUSEHOLD), "agent:home:whatsapp:direct:+49123"), SessionImported)

    assert (imported.last_channel, imported.last_to) == ("whatsapp", "+49123")


@pytest.mark.clause("IMP-1")
def test_run_aliases_belong_to_their_cron_job_as_its_generations() -> None:
    drafts = session_of(planned(HOUSEHOLD), "agent:home:cron:nightly")

    [opened] = events(drafts, SessionOpened)
    [reset] = events(drafts, SessionReset)
    assert (opened.session_id, reset.session_id, reset.reason) == (session_id(7), session_id(8), "run")
    assert [imported.session_id for imported in events(drafts, SessionImported)][-1] == session_id(8)
    texts = [text_of(event.message) for event in events(drafts, MessageRecorded)]
    assert texts[1::2] == ["Backed up once.", "Backed up twice."]


@pytest.mark.clause("IMP-1", "KEY-4")
def test_the_global_session_is_the_main_session_of_the_default_agent() -> None:
    found = planned(ONE_FOR_ALL)

    [opened] = all_events(found, SessionOpened)
    assert (opened.key, opened.original_key) == ("agent:ada:hearth", "global")
    assert len(all_events(found, MessageRecorded)) == 2


@pytest.mark.clause("IMP-1")
def test_a_key_that_no_rule_fits_is_kept_under_a_name_with_the_original() -> None:
    found = planned(HOUSEHOLD)

    [opened] = events(
        session_of(found, "agent:home:imported-00000010-1111-4111-8111-000000000010"), SessionOpened
    )
    assert opened.original_key == "unknown"
    assert [item.reason for item in found.report.renamed if item.original == "unknown"] == [
        "no rule fits the key"
    ]


@pytest.mark.clause("IMP-2")
def test_an_entry_without_a_file_is_a_session_without_messages() -> None:
    drafts = session_of(planned(HOUSEHOLD), "agent:home:empty")

    assert [type(draft.event) for draft in drafts] == [SessionOpened, SessionImported]


@pytest.mark.clause("IMP-2")
def test_a_reset_transcript_is_the_closed_generation_before() -> None:
    drafts = session_of(planned(HOUSEHOLD), HOME)

    [opened] = events(drafts, SessionOpened)
    [reset] = events(drafts, SessionReset)
    assert opened.session_id == session_id(9)
    assert (reset.previous_session_id, reset.session_id) == (session_id(9), session_id(1))
    before = [event for event in events(drafts, MessageRecorded) if event.session_id == session_id(9)]
    assert [text_of(event.message) for event in before] == [
        "[Mon 2026-03-02 08:50 UTC] good morning",
        "Good morning.",
    ]


@pytest.mark.clause("IMP-2")
def test_a_deleted_child_is_archived_under_the_key_its_completion_names() -> None:
    drafts = session_of(planned(HOUSEHOLD), "agent:home:subagent:cccccccc-0000-4000-8000-000000000004")

    [archived] = events(drafts, SessionArchived)
    assert (archived.session_id, archived.reason) == (session_id(13), "cleanup")
    assert drafts[-1].time == 1772442286000
    assert events(drafts, SessionOpened)[0].spawned_by == HOME


@pytest.mark.clause("IMP-2")
def test_an_archive_that_nothing_names_gets_a_key_of_its_own_and_a_reason() -> None:
    found = planned(HOUSEHOLD)
    key = "agent:desk:archived-0000000e-1111-4111-8111-00000000000e"

    [archived] = events(session_of(found, key), SessionArchived)
    assert archived.reason == "deleted"
    assert any(key in note.what and "nothing in the state shows" in note.what for note in found.report.notes)


@pytest.mark.clause("IMP-2")
def test_a_topic_is_a_session_of_its_own_with_its_own_file() -> None:
    drafts = session_of(planned(HOUSEHOLD), "agent:home:telegram:group:-100200:topic:7")

    texts = [text_of(event.message) for event in events(drafts, MessageRecorded)]
    assert texts == ["[Mon 2026-03-02 09:07 UTC] in the topic", "Here too."]
    [opened] = events(drafts, SessionOpened)
    assert opened.session_id == f"{session_id(3)}-topic-7"


@pytest.mark.clause("IMP-2")
def test_a_backup_of_a_transcript_adds_only_what_the_transcript_lacks(tmp_path: Path) -> None:
    first, second = message("a1", said("one")), message("a2", said("two"), 2)
    write_state(tmp_path, [header(), first, second], entries={"agent:main:main": {"sessionId": "s-1"}})
    write_state(tmp_path, [header(), first, message("a9", said("gone"), 3)], name="s-1.jsonl.bak.2026")

    found = planned(tmp_path)

    texts = [text_of(event.message) for event in all_events(found, MessageRecorded)]
    assert texts == ["one", "two", "gone"]
    assert any("2 lines are those of another file" in note.what for note in found.report.notes)
    assert all_events(found, SessionArchived) == []


@pytest.mark.clause("IMP-2")
def test_a_deleted_session_whose_key_was_used_again_is_opened_again(tmp_path: Path) -> None:
    entries = {"agent:main:notes": {"sessionId": "s-2", "updatedAt": 1772442005000}}
    write_state(
        tmp_path, [header("s-2", timestamp="2026-03-02T09:00:05Z")], name="s-2.jsonl", entries=entries
    )
    line = message("a1", said("[cron:x y] z"))
    write_state(tmp_path, [header(), line], name="s-1.jsonl.deleted.2026-03-02T09-00-04.000Z")
    runs = tmp_path / "cron" / "runs"
    runs.mkdir(parents=True)
    (runs / "x.jsonl").write_text('{"sessionId":"s-1","sessionKey":"agent:main:notes"}\nno json\n')

    drafts = session_of(planned(tmp_path), "agent:main:notes")

    kinds = [type(draft.event).__name__ for draft in drafts]
    assert kinds == [
        "SessionOpened",
        "LineImported",
        "MessageRecorded",
        "SessionArchived",
        "SessionOpened",
        "LineImported",
        "SessionImported",
    ]


@pytest.mark.clause("IMP-1")
def test_sessions_without_a_store_are_kept_by_their_ids_and_stay_listed(tmp_path: Path) -> None:
    found = planned(write_state(tmp_path, [header(), message("a1", said("hello"))]))

    assert [opened.key for opened in all_events(found, SessionOpened)] == ["agent:main:archived-s-1"]
    assert all_events(found, SessionArchived) == []


@pytest.mark.clause("IMP-1")
def test_the_older_of_two_spellings_of_a_key_is_the_generation_before(tmp_path: Path) -> None:
    entries = {
        "agent:main:main": {"sessionId": "s-2", "updatedAt": 2_000},
        "Agent:Main:Main": {"sessionId": "s-1", "updatedAt": 1_000},
    }
    write_state(tmp_path, [header()], entries=entries)

    drafts = session_of(planned(tmp_path), "agent:main:main")

    assert [reset.session_id for reset in events(drafts, SessionReset)] == ["s-2"]
    assert [imported.session_id for imported in events(drafts, SessionImported)] == ["s-1", "s-2"]


@pytest.mark.clause("IMP-1")
def test_two_keys_with_one_transcript_are_told_apart_and_reported(tmp_path: Path) -> None:
    entries = {
        "agent:main:one": {"sessionId": "s-1", "updatedAt": 1_000},
        "agent:main:two": {"sessionId": "s-1", "updatedAt": 2_000},
    }
    write_state(tmp_path, [header(), message("a1", said("hello"))], entries=entries)

    found = planned(tmp_path)

    assert len(events(session_of(found, "agent:main:one"), MessageRecorded)) == 1
    assert len(events(session_of(found, "agent:main:two"), MessageRecorded)) == 0
    assert any("session without messages" in note.what for note in found.report.notes)


@pytest.mark.clause("IMP-1")
def test_the_old_place_of_sessions_belongs_to_the_default_agent(tmp_path: Path) -> None:
    folder = tmp_path / "sessions"
    folder.mkdir()
    (folder / "sessions.json").write_text(
        '{"main":{"sessionId":"s-1"},"group:42":{"sessionId":"s-2","channel":"signal"}}'
    )
    (tmp_path / "openclaw.json").write_text("{agents:{list:[{id:'ada'}]}}")

    found = planned(tmp_path)

    keys = {opened.key for opened in all_events(found, SessionOpened)}
    assert keys == {"agent:ada:main", "agent:ada:signal:group:42"}
