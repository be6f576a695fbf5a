"""A plan becomes a log: once, in order, beside what is there, with its report (IMP-1, IMP-3)."""

import json
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from intersession_events.basics import ids
from intersession_events.basics.errors import ImportFailed
from intersession_events.facts import (
    ChildArchived,
    ImportReported,
    Message,
    MessageRecorded,
    SessionImported,
    SessionOpened,
    SessionReset,
)
from intersession_events.log.recorded import ANY_VERSION, Draft, StreamAppend
from intersession_events.stores.opened import open_log
from intersession_events.stores.portable.log import PortableLog
from support.openclaw.samples import (
    HOME,
    HOUSEHOLD,
    NOW,
    ONE_FOR_ALL,
    all_states,
    header,
    into,
    message,
    said,
    texts,
    write_state,
)

NOTES = "agent:main:notes"


@pytest.fixture
def log(tmp_path: Path) -> Iterator[PortableLog]:
    with open_log(f"sqlite:///{tmp_path}/import.db") as opened:
        yield opened


def speak(log: PortableLog, key: str, session_id: str, text: str) -> None:
    """Let a session of the log go on here."""
    recorded = MessageRecorded(
        session_id=session_id, message=Message(id=f"own-{text}", role="user", content=text, timestamp=NOW)
    )
    draft = Draft(event=recorded, id=f"own-{text}", time=NOW)
    log.append_now([StreamAppend(stream=ids.session_stream(key), expected=ANY_VERSION, drafts=(draft,))])


def opened_here(log: PortableLog, key: str) -> None:
    opened = SessionOpened(key=key, session_id="ours", agent_id=key.split(":")[1], opened_by="person")
    draft = Draft(event=opened, id=f"own-{key}", time=NOW)
    log.append_now([StreamAppend(stream=ids.session_stream(key), expected=0, drafts=(draft,))])


def notes_state(root: Path, *said_texts: str, session_id: str = "s-1") -> Path:
    lines = [message(f"{session_id}-{number}", said(text), number) for number, text in enumerate(said_texts)]
    entries = {NOTES: {"sessionId": session_id, "updatedAt": 1772442000000 + len(said_texts)}}
    return write_state(root, [header(session_id), *lines], name=f"{session_id}.jsonl", entries=entries)


@pytest.mark.clause("IMP-3")
@pytest.mark.parametrize("state", all_states())
def test_the_log_has_all_events_of_a_state_in_the_order_of_time(log: PortableLog, state: Path) -> None:
    before = log.head()

    report = into(log, state)

    *imported, reported = list(log.all(after=before))
    assert len(imported) == report.events == report.appended
    times = [item.time for item in imported]
    assert times == sorted(times)
    assert isinstance(reported.event, ImportReported)


@pytest.mark.clause("IMP-1")
@pytest.mark.parametrize("state", all_states())
def test_importing_twice_changes_nothing(log: PortableLog, state: Path, tmp_path: Path) -> None:
    into(log, state)
    head = log.head()
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(state, elsewhere)

    again = into(log, state)
    copy = into(log, elsewhere)

    assert log.head() == head
    assert (again.already_imported, again.appended) == (True, 0)
    assert (copy.already_imported, copy.import_id) == (True, again.import_id)


@pytest.mark.clause("IMP-1")
def test_the_report_is_kept_in_the_log(log: PortableLog) -> None:
    report = into(log, HOUSEHOLD)

    [recorded] = log.stream(f"import:{report.import_id}")
    assert recorded.time == NOW
    event = recorded.event
    assert isinstance(event, ImportReported)
    assert (event.sessions, event.exchanges, event.spawns, event.skipped) == (17, 6, 5, 0)
    assert json.loads(event.report) == json.loads(msgspec.json.encode(report))
    assert msgspec.to_builtins(report)["interSession"] == 19


@pytest.mark.clause("IMP-1")
def test_a_state_that_has_grown_adds_only_what_is_new(log: PortableLog, tmp_path: Path) -> None:
    into(log, notes_state(tmp_path, "one", "two"))

    report = into(log, notes_state(tmp_path, "one", "two", "three"))

    assert texts(log, NOTES) == ["one", "two", "three"]
    assert report.appended == 2  # the message, and the entry that is another one now
    kinds = [type(item.event) for item in log.stream(ids.session_stream(NOTES))]
    assert kinds.count(SessionOpened) == 1
    assert kinds.count(SessionImported) == 2


@pytest.mark.clause("IMP-1", "IMP-2")
def test_a_session_that_was_reset_since_gets_its_next_generation(log: PortableLog, tmp_path: Path) -> None:
    folder = notes_state(tmp_path, "one", "two") / "agents" / "main" / "sessions"
    into(log, tmp_path)
    (folder / "s-1.jsonl").rename(folder / "s-1.jsonl.reset.2026-03-02T09-00-30.000Z")
    (folder / "sessions.json").write_text(json.dumps({NOTES: {"sessionId": "s-2"}}))
    lines = [header("s-2", timestamp="2026-03-02T09:00:30.500Z"), message("x", said("three"), 31)]
    (folder / "s-2.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    into(log, tmp_path)

    assert texts(log, NOTES) == ["one", "two", "three"]
    recorded = log.stream(ids.session_stream(NOTES))
    resets = [item.event for item in recorded if isinstance(item.event, SessionReset)]
    assert [(reset.previous_session_id, reset.session_id) for reset in resets] == [("s-1", "s-2")]


@pytest.mark.clause("IMP-2")
@pytest.mark.parametrize(
    ("named", "reset_at"),
    [
        ("2026-03-02T09-00-30.000Z", "2026-03-02T09:00:30.000+00:00"),
        # A name that its neighbours contradict: not before the last line of the one, nor behind the first of the next.
        ("2026-03-02T07-00-00.000Z", "2026-03-02T09:00:01.000+00:00"),
        ("2026-03-02T23-00-00.000Z", "2026-03-02T09:00:50.000+00:00"),
        ("yesterday", "2026-03-02T09:00:50.000+00:00"),
    ],
)
def test_a_reset_has_the_time_that_its_file_says(
    log: PortableLog, tmp_path: Path, named: str, reset_at: str
) -> None:
    folder = notes_state(tmp_path, "one", "two") / "agents" / "main" / "sessions"
    (folder / "s-1.jsonl").rename(folder / f"s-1.jsonl.reset.{named}")
    entries = {
        "Agent:Main:Notes": {"sessionId": "s-1", "updatedAt": 5},
        NOTES: {"sessionId": "s-2", "updatedAt": 9},
    }
    (folder / "sessions.json").write_text(json.dumps(entries))
    lines = [header("s-2", timestamp="2026-03-02T09:00:50.000Z"), message("x", said("three"), 51)]
    (folder / "s-2.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    into(log, tmp_path)

    recorded = log.stream(ids.session_stream(NOTES))
    (reset,) = (item for item in recorded if isinstance(item.event, SessionReset))
    at = datetime.fromtimestamp(reset.time / 1000, UTC).isoformat(timespec="milliseconds")
    assert at == reset_at
    assert texts(log, NOTES) == ["one", "two", "three"]
    before = [item.event for item in recorded if item.version < reset.version]
    assert [event.session_id for event in before if isinstance(event, MessageRecorded)] == ["s-1", "s-1"]


@pytest.mark.clause("IMP-1")
def test_an_older_generation_that_turns_up_later_does_not_become_the_newest(
    log: PortableLog, tmp_path: Path
) -> None:
    folder = notes_state(tmp_path, "three", session_id="s-2") / "agents" / "main" / "sessions"
    into(log, tmp_path)
    entries = {
        NOTES: {"sessionId": "s-2", "updatedAt": 9_000},
        "Agent:Main:Notes": {"sessionId": "s-1", "updatedAt": 5},
    }
    (folder / "sessions.json").write_text(json.dumps(entries))
    lines = [header("s-1", timestamp="2026-03-01T09:00:00Z"), message("x", said("one"), 0)]
    (folder / "s-1.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    into(log, tmp_path)

    recorded = log.stream(ids.session_stream(NOTES))
    assert [item.event.session_id for item in recorded if isinstance(item.event, SessionOpened)] == ["s-2"]
    assert not [item for item in recorded if isinstance(item.event, SessionReset)]
    assert texts(log, NOTES) == ["three", "one"]


@pytest.mark.clause("IMP-1")
def test_a_key_that_the_log_has_from_elsewhere_is_kept_beside_it(log: PortableLog) -> None:
    opened_here(log, HOME)

    report = into(log, HOUSEHOLD)

    beside = "agent:home:imported-00000001-1111-4111-8111-000000000001"
    assert [type(item.event) for item in log.stream(ids.session_stream(HOME))] == [SessionOpened]
    [first, *_] = log.stream(ids.session_stream(beside))
    assert isinstance(first.event, SessionOpened)
    assert first.event.original_key == HOME
    assert [(item.original, item.key) for item in report.renamed if item.original == HOME] == [(HOME, beside)]
    assert into(log, HOUSEHOLD).already_imported


@pytest.mark.clause("IMP-4")
def test_exchanges_and_lineage_follow_a_session_to_the_key_it_has_here(log: PortableLog) -> None:
    opened_here(log, HOME)
    into(log, HOUSEHOLD)

    beside = "agent:home:imported-00000001-1111-4111-8111-000000000001"
    named = {
        name
        for item in log.all()
        if item.stream.startswith(("exchange:", "spawn:"))
        for name in (getattr(item.event, "requester", None), getattr(item.event, "speaker", None))
    }
    assert beside in named
    assert HOME not in named


@pytest.mark.clause("IMP-1")
def test_an_import_can_refuse_where_the_log_has_the_key(log: PortableLog) -> None:
    opened_here(log, HOME)
    head = log.head()

    with pytest.raises(ImportFailed, match=HOME):
        into(log, HOUSEHOLD, on_taken="refuse")

    assert log.head() == head


@pytest.mark.clause("IMP-1")
def test_a_session_that_went_on_here_is_not_mixed_with_what_it_became_there(
    log: PortableLog, tmp_path: Path
) -> None:
    into(log, notes_state(tmp_path, "one", "two"))
    speak(log, NOTES, "s-1", "here")

    unchanged = into(log, notes_state(tmp_path, "one", "two"))
    grown = into(log, notes_state(tmp_path, "one", "two", "there"))
    again = into(log, notes_state(tmp_path, "one", "two", "there"))

    assert unchanged.already_imported
    assert texts(log, NOTES) == ["one", "two", "here"]
    assert texts(log, "agent:main:imported-s-1") == ["one", "two", "there"]
    assert [item.key for item in grown.renamed] == ["agent:main:imported-s-1"]
    assert again.already_imported


@pytest.mark.clause("IMP-1")
def test_a_second_state_does_not_touch_the_first(log: PortableLog, tmp_path: Path) -> None:
    into(log, notes_state(tmp_path / "a", "one"))
    report = into(log, notes_state(tmp_path / "b", "uno", session_id="s-9"))

    assert texts(log, NOTES) == ["one"]
    assert texts(log, "agent:main:imported-s-9") == ["uno"]
    assert report.appended == report.events
    into(log, ONE_FOR_ALL)
    assert len(texts(log, "agent:ada:hearth")) == 2


@pytest.mark.clause("IMP-1")
def test_an_import_that_was_cut_off_is_finished_by_the_next(log: PortableLog) -> None:
    class Cut(Exception):
        pass

    def cut(done: int, total: int) -> None:
        assert done < total
        raise Cut

    before = log.head()
    with pytest.raises(Cut):
        into(log, HOUSEHOLD, progress=cut)

    report = into(log, HOUSEHOLD)

    assert 0 < report.appended < report.events
    assert log.head() - before == report.events + 1
    assert into(log, HOUSEHOLD).already_imported


def test_progress_is_told_after_each_batch(log: PortableLog) -> None:
    told: list[tuple[int, int]] = []

    report = into(log, HOUSEHOLD, progress=lambda done, total: told.append((done, total)))

    assert told == [(256, report.events), (report.events, report.events)]


@pytest.mark.clause("IMP-4")
def test_a_flow_that_was_closed_stays_as_it_was_and_a_late_archiving_is_added(
    log: PortableLog, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    shutil.copytree(HOUSEHOLD, state)
    folder = state / "agents" / "home" / "sessions"
    into(log, state)
    store = json.loads((folder / "sessions.json").read_text())
    key = "agent:home:subagent:cccccccc-0000-4000-8000-000000000001"
    child = store.pop(key)["sessionId"]
    (folder / "sessions.json").write_text(json.dumps(store))
    (folder / f"{child}.jsonl").rename(folder / f"{child}.jsonl.deleted.2026-03-02T10-30-00.000Z")
    desk = next((state / "agents" / "desk" / "sessions").glob("00000002*.jsonl"))
    provenance = {"kind": "inter_session", "sourceSessionKey": HOME, "sourceTool": "sessions_send"}
    late = message(
        "late", {"role": "user", "content": "Agent-to-agent announce step.", "provenance": provenance}, 0
    )
    late["timestamp"] = "2026-03-02T09:03:12Z"
    with desk.open("a") as file:
        file.write(json.dumps(late) + "\n")
    before = log.head()

    report = into(log, state)

    added = [item for item in log.all(after=before) if item.stream.startswith(("exchange:", "spawn:"))]
    assert [item.event for item in added] == [ChildArchived(child=key, reason="expired")]
    [left] = [note for note in report.notes if "as an earlier import had closed it" in note.what]
    assert left.subject.startswith("exchange:")
