"""An event carries the record of the decision that led to it: hashed, and there whatever becomes of the payload."""

from pathlib import Path

import msgspec
import pytest

from intersession_events.basics.errors import NotStorable
from intersession_events.copies.migrating import migrate
from intersession_events.facts import Erased, Event, SessionArchived
from intersession_events.log.erasing import erased_stream, left_of
from intersession_events.log.recorded import ANY_VERSION, Draft, StreamAppend
from intersession_events.log.verifying.verification import verify_log
from intersession_events.stores.sqlite.log import SqliteLog
from support.log_drafts import said

RECORD = '{"asked":{"DeliveryEnded":{}},"knew":{"note":"ä\\""}}'
ARCHIVED = SessionArchived(session_id="s", reason="deleted")


def decided(event: Event, name: str, decision: str = RECORD) -> StreamAppend:
    drafts = (
        Draft(event=event, id=f"id-{name}", time=1, decision=decision),
        Draft(event=ARCHIVED, id=f"id-{name}-2", time=1),
    )
    return StreamAppend(stream=name, expected=ANY_VERSION, drafts=drafts)


def records(log: SqliteLog, stream: str) -> list[str]:
    return [one.decision for one in log.stream(stream)]


@pytest.mark.clause("C6")
@pytest.mark.parametrize("record", [RECORD, "{" + " " * 9_997 + "}", "{" + " " * 9_998 + "}"])
def test_a_record_is_read_as_it_was_written_at_the_event_it_was_given_with(
    tmp_path: Path, record: str
) -> None:
    with SqliteLog(tmp_path / "log.db") as log:
        (first, second) = log.append_now([decided(ARCHIVED, "s", record)]).recorded
        assert (first.decision, second.decision) == (record, "")

    with SqliteLog(tmp_path / "log.db", read_only=True) as log:
        assert records(log, "s") == [record, ""]
        assert verify_log(log).ok


@pytest.mark.clause("C6", "ERASE-1")
def test_a_record_survives_the_erasure_of_its_payload(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log.db") as log:
        log.append_now([decided(said("m").event, "s")])
        rows = ((1, left_of(log.stream("s")[0]) or ""),)
        erased = Draft(event=Erased(stream="s", rows=rows, by="operator"), id="erased", time=2)
        log.append_now([StreamAppend(stream=erased_stream("s"), expected=ANY_VERSION, drafts=(erased,))])

        assert records(log, "s") == [RECORD, ""]
        assert "hello" not in str(log.stream("s")[0].event)
        assert verify_log(log).ok


@pytest.mark.clause("C6")
def test_a_log_that_is_moved_has_the_records(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log.db") as log:
        log.append_now([decided(ARCHIVED, "s")])
    migrate(str(tmp_path / "log.db"), str(tmp_path / "kept.db"))

    with SqliteLog(tmp_path / "kept.db", read_only=True) as log:
        assert records(log, "s") == [RECORD, ""]


@pytest.mark.clause("C6")
def test_a_step_that_is_told_again_with_another_record_is_recorded_once_with_its_first(
    tmp_path: Path,
) -> None:
    first = decided(ARCHIVED, "s")
    append = msgspec.structs.replace(first, expected=0)
    other = msgspec.structs.replace(decided(ARCHIVED, "s", "{}"), expected=0)
    with SqliteLog(tmp_path / "log.db") as log:
        log.append_now([append])
        again = log.append_now([other])

        assert again.again
        assert [one.decision for one in again.recorded] == [RECORD, ""] == records(log, "s")


@pytest.mark.clause("C6")
def test_a_record_that_no_reader_could_decode_is_not_stored(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log.db") as log, pytest.raises(NotStorable):
        log.append_now([decided(ARCHIVED, "s", "\ud800")])
