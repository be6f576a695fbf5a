"""An import into a log that others write to: what they did meanwhile is theirs, nothing is lost, doubled or left open."""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from intersession_events.basics import ids
from intersession_events.basics.errors import AppendConflict, ImportFailed
from intersession_events.facts import (
    Event,
    ExchangeAccepted,
    ExchangeClosed,
    Message,
    MessageRecorded,
    SessionArchived,
    SessionOpened,
    SessionReset,
    SpawnAccepted,
    SpawnClosed,
)
from intersession_events.log.recorded import ANY_VERSION, Draft, StreamAppend, parts_in
from intersession_events.stores.opened import open_log
from intersession_events.stores.portable.log import PortableLog
from intersession_events.transcripts.openclaw import appending
from support.every_day import every_day
from support.openclaw.samples import (
    DESK,
    HOME,
    HOUSEHOLD,
    NOW,
    header,
    into,
    message,
    said,
    texts,
    write_state,
)

NOTES = "agent:main:notes"
BESIDE = "agent:main:imported-s-1"


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Iterator[PortableLog]:
    """Return a log into which an import appends two events at a time."""
    monkeypatch.setattr(appending, "BATCH", 2)
    with open_log(":memory:") as opened:
        yield opened


def record(log: PortableLog, key: str, event: Event, name: str) -> None:
    """Let somebody who is at work here record something of a session."""
    draft = Draft(event=event, id=f"own-{name}", time=NOW)
    log.append_now([StreamAppend(stream=ids.session_stream(key), expected=ANY_VERSION, drafts=(draft,))])


def speak(log: PortableLog, key: str, name: str = "here") -> None:
    said_here = Message(id=f"own-{name}", role="user", content=name, timestamp=NOW)
    record(log, key, MessageRecorded(session_id="s-1", message=said_here), name)


def notes(root: Path, *texts: str) -> Path:
    lines = [message(f"s-1-{number}", said(text), number) for number, text in enumerate(texts)]
    entries = {NOTES: {"sessionId": "s-1", "updatedAt": 1772442000000 + len(texts)}}
    return write_state(root, [header("s-1"), *lines], entries=entries)


def once(act: Callable[[], None], *, after: int = 1) -> Callable[[int, int], None]:
    """Return a progress that lets something happen behind the batch of this number."""
    batches = iter(range(1, 1 << 30))

    def progress(done: int, of: int) -> None:
        assert done <= of
        if next(batches) == after:
            act()

    return progress


@pytest.mark.clause("IMP-1")
def test_a_session_that_is_used_while_it_is_imported_is_kept_whole_beside(
    log: PortableLog, tmp_path: Path
) -> None:
    state = notes(tmp_path, "one", "two", "three", "four")

    report = into(log, state, progress=once(lambda: speak(log, NOTES), after=2))
    again = into(log, state)

    assert texts(log, NOTES) == ["one", "two", "here"]
    assert texts(log, BESIDE) == ["one", "two", "three", "four"]
    assert [item.key for item in report.renamed] == [BESIDE]
    assert again.already_imported


@pytest.mark.clause("IMP-1")
def test_a_key_that_is_taken_while_it_is_imported_is_left_to_whom_it_is(
    log: PortableLog, tmp_path: Path
) -> None:
    into(log, notes(tmp_path / "first", "one"))
    other = "agent:main:other"
    entries = {other: {"sessionId": "s-2", "updatedAt": 1772442900000}}
    lines = [header("s-2"), *(message(f"s-2-{n}", said(f"there {n}"), 30 + n) for n in range(4))]
    state = write_state(tmp_path / "first", lines, name="s-2.jsonl", entries=entries)
    opened = SessionOpened(key=other, session_id="ours", agent_id="main", opened_by="person")
    first = message("early", said("early"), 0)
    write_state(state, [header("s-0"), first, first | {"id": "e2"}, first | {"id": "e3"}], name="s-0.jsonl")

    report = into(log, state, progress=once(lambda: record(log, other, opened, "opened")))

    assert [type(item.event) for item in log.stream(ids.session_stream(other))] == [SessionOpened]
    assert texts(log, "agent:main:imported-s-2") == [f"there {n}" for n in range(4)]
    assert (other, "agent:main:imported-s-2") in [(item.original, item.key) for item in report.renamed]
    assert into(log, state).already_imported


@pytest.mark.clause("IMP-1", "IMP-4")
@pytest.mark.parametrize("key", every_day([HOME, DESK], HOME))
def test_wherever_an_import_is_overtaken_no_exchange_or_spawn_stays_open(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(appending, "BATCH", 3)
    for moment in range(1, 20, 3):
        with open_log(":memory:") as log:
            into(log, HOUSEHOLD, progress=once(partial(speak, log, key), after=moment))
            again = into(log, HOUSEHOLD)

            found = Counter(item.id for item in log.all())
            open_flows = {
                item.stream for item in log.all() if isinstance(item.event, ExchangeAccepted | SpawnAccepted)
            } - {
                item.stream
                for item in parts_in(log.all())
                if isinstance(item.event, ExchangeClosed | SpawnClosed)
            }
        assert again.already_imported
        assert found.most_common(1)[0][1] == 1
        assert not open_flows


@pytest.mark.clause("IMP-1")
def test_a_cut_off_import_that_was_overtaken_closes_what_it_had_begun(
    log: PortableLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Cut(Exception):
        pass

    def begun() -> set[str]:
        return {item.stream for item in log.all() if isinstance(item.event, ExchangeAccepted)}

    def cut(_done: int, _of: int) -> None:
        if begun():
            raise Cut

    monkeypatch.setattr(appending, "BATCH", 1)
    with pytest.raises(Cut):
        into(log, HOUSEHOLD, progress=cut)
    [left_open] = begun()
    [accepted] = [item.event for item in log.stream(left_open)]
    assert isinstance(accepted, ExchangeAccepted)
    speak(log, accepted.target)

    report = into(log, HOUSEHOLD)

    assert isinstance(log.stream(left_open)[-1].event, ExchangeClosed)
    assert left_open in {note.subject for note in report.notes}
    assert into(log, HOUSEHOLD).already_imported


@pytest.mark.clause("IMP-1")
@pytest.mark.parametrize(
    "event",
    [
        SessionReset(session_id="ours", previous_session_id="s-1", reason="reset"),
        SessionArchived(session_id="s-1", reason="deleted"),
    ],
    ids=["reset", "deleted"],
)
def test_a_session_that_was_reset_or_deleted_here_stays_so(
    log: PortableLog, tmp_path: Path, event: Event
) -> None:
    into(log, notes(tmp_path, "one"))
    record(log, NOTES, event, "end")
    head = log.head()

    unchanged = into(log, notes(tmp_path, "one"))
    into(log, notes(tmp_path, "one", "two"))

    assert unchanged.already_imported
    assert log.stream(ids.session_stream(NOTES))[-1].event == event
    assert texts(log, BESIDE) == ["one", "two"]
    assert log.head() > head


def test_refusing_holds_for_what_was_taken_meanwhile_too(log: PortableLog, tmp_path: Path) -> None:
    state = notes(tmp_path, "one", "two", "three", "four")

    with pytest.raises(ImportFailed, match=NOTES):
        into(log, state, progress=once(lambda: speak(log, NOTES)), on_taken="refuse")

    assert texts(log, BESIDE) == []


def test_who_is_overtaken_every_time_gives_up_in_the_end(
    log: PortableLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = notes(tmp_path, "one", "two", "three", "four")

    def overtaken(batch: Any, **_: Any) -> Any:
        raise AppendConflict(batch[0].stream, 0, 1)

    with monkeypatch.context() as patched:
        patched.setattr(log, "append_now", overtaken)
        with pytest.raises(AppendConflict):
            into(log, state)

    assert into(log, state).sessions == 1


def test_the_streams_of_each_batch_are_told(log: PortableLog, tmp_path: Path) -> None:
    told: list[str] = []

    into(log, notes(tmp_path, "one", "two", "three"), appended=told.extend)

    assert set(told) == {ids.session_stream(NOTES)}
    assert len(told) > 1
