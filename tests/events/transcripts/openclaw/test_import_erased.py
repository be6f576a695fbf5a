"""What was erased of an import does not come back with the next one, and no id of it lets its words be guessed (ERASE-4, IMP-3)."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from intersession_events.basics import ids
from intersession_events.facts import Erased, ImportReported, Message, MessageRecorded, SessionImported
from intersession_events.log.erasing import erased_stream, left_of
from intersession_events.log.recorded import ANY_VERSION, Draft, StreamAppend
from intersession_events.log.verifying.verification import verify_log
from intersession_events.stores.opened import open_log
from intersession_events.stores.portable.log import PortableLog
from intersession_events.transcripts.openclaw.importing import import_openclaw
from intersession_events.transcripts.openclaw.plan import ImportPlan, plan_survey
from intersession_events.transcripts.openclaw.reading.files import read_state
from intersession_events.transcripts.openclaw.reconstruction.sessions import survey
from intersession_events.transcripts.openclaw.report import ImportReport
from support.openclaw.samples import header, message, said, write_state

NOW = 1_800_000_000_000
NOTES, STREAM = "agent:main:notes", "session:agent:main:notes"
WORD = "the word that is to be forgotten"


@pytest.fixture
def log(tmp_path: Path) -> Iterator[PortableLog]:
    with open_log(f"sqlite:///{tmp_path}/import.db") as opened:
        yield opened


def state(root: Path, *texts: str, label: str = "Notes") -> Path:
    lines = [message(f"m-{number}", said(text), number) for number, text in enumerate(texts)]
    entry = {"sessionId": "s-1", "updatedAt": 1772442000000 + len(texts), "origin": {"label": label}}
    return write_state(root, [header("s-1"), *lines], name="s-1.jsonl", entries={NOTES: entry})


def into(log: PortableLog, root: Path, *texts: str) -> ImportReport:
    return import_openclaw(state(root, *texts), log, clock=lambda: NOW)


def append(log: PortableLog, stream: str, event: Erased | MessageRecorded, event_id: str) -> None:
    draft = Draft(event=event, id=event_id, time=NOW)
    log.append_now([StreamAppend(stream=stream, expected=ANY_VERSION, drafts=(draft,))])


def erase(log: PortableLog) -> None:
    rows = tuple((one.version, left) for one in log.stream(STREAM) if (left := left_of(one)) is not None)
    append(log, erased_stream(STREAM), Erased(stream=STREAM, rows=rows, by="operator"), "erased")
    assert WORD not in everything(log)


def speak(log: PortableLog) -> None:
    spoken = Message(id="own", role="user", content="here", timestamp=NOW)
    append(log, STREAM, MessageRecorded(session_id="s-1", message=spoken), "own")


def everything(log: PortableLog) -> str:
    return repr([one.event for one in log.all()])


@pytest.mark.clause("ERASE-4", "IMP-1")
def test_a_state_that_has_grown_brings_its_new_lines_and_not_what_was_erased(
    log: PortableLog, tmp_path: Path
) -> None:
    into(log, tmp_path / "1", "hello", WORD)
    erase(log)
    head = log.head()

    again = into(log, tmp_path / "1", "hello", WORD)
    assert (again.appended, log.head()) == (0, head)

    grown = into(log, tmp_path / "2", "hello", WORD, "more")

    assert grown.appended == 2  # the line, and the entry
    assert log.streams("session:") == [STREAM]
    assert WORD not in everything(log)
    assert "'more'" in everything(log)
    assert verify_log(log).ok


@pytest.mark.clause("ERASE-4", "IMP-1")
def test_a_session_that_went_on_here_and_had_lines_erased_is_not_kept_beside_anew(
    log: PortableLog, tmp_path: Path
) -> None:
    into(log, tmp_path / "1", "hello", WORD)
    erase(log)
    speak(log)

    report = into(log, tmp_path / "2", "hello", WORD, "more")

    assert report.appended == 0
    (note,) = [note for note in report.notes if note.subject == NOTES]
    assert note.what.startswith("went on here, and lines of it were erased")
    assert log.streams("session:") == [STREAM]
    assert WORD not in everything(log)


@pytest.mark.clause("IMP-1")
def test_lines_that_were_changed_in_the_state_stay_what_they_were_and_the_report_says_so(
    log: PortableLog, tmp_path: Path
) -> None:
    into(log, tmp_path / "1", "hello", "bye")

    changed = into(log, tmp_path / "2", "hello", "adieu")
    head = log.head()
    again = into(log, tmp_path / "2", "hello", "adieu")

    assert (changed.appended, again.appended, log.head()) == (0, 0, head)
    (note,) = [note for note in changed.notes if note.subject == STREAM]
    assert (
        note.what
        == "1 lines or entries have other words in the state than they were imported with, which stay"
    )
    kept = [one.event.report for one in log.all() if isinstance(one.event, ImportReported)]
    assert [note.what in report for report in kept] == [False, True]
    assert "adieu" not in repr([one.event for one in log.stream(STREAM)])


def planned(root: Path, word: str) -> ImportPlan:
    log_id = ids.derive("00000000-0000-0000-0000-000000000001", "log")
    found = read_state(state(root, "hello", word, label=word))
    return plan_survey(survey(found), log_id=log_id)


@pytest.mark.clause("ERASE-4")
def test_no_id_of_an_import_is_made_of_words(tmp_path: Path) -> None:
    yes, nay = (planned(tmp_path / word, word) for word in ("yes", "nay"))

    assert [one.draft.id for one in yes.planned] == [one.draft.id for one in nay.planned]
    assert yes.import_id == nay.import_id


@pytest.mark.clause("IMP-1", "ERASE-4")
@pytest.mark.parametrize("is_erased", [False, True])
def test_an_entry_that_the_first_logs_named_by_its_words_is_not_imported_again(
    log: PortableLog, tmp_path: Path, *, is_erased: bool
) -> None:
    root = state(tmp_path / "1", "hello", WORD)
    plan = plan_survey(survey(read_state(root)), log_id=log.log_id)
    drafts = [
        msgspec.structs.replace(one.draft, id="of-words")
        if isinstance(one.draft.event, SessionImported)
        else one.draft
        for one in plan.planned
    ]
    log.append_now([StreamAppend(stream=STREAM, expected=0, drafts=tuple(drafts))])
    if is_erased:
        erase(log)

    report = import_openclaw(root, log, clock=lambda: NOW)

    assert (report.appended, report.notes) == (0, ())
    assert WORD not in everything(log) or not is_erased
