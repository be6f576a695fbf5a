"""What is exported and imported again is what it was; what was imported comes out as it went in (finding E9)."""

import json
from collections.abc import Container, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from intersession_events.basics.ids import session_stream
from intersession_events.facts import (
    SessionArchived,
    SessionOpened,
    SessionReset,
    generation_of,
    message_in,
    text_of,
)
from intersession_events.log.log import Log
from intersession_events.log.recorded import Draft, StreamAppend
from intersession_events.stores.opened import open_log
from intersession_events.stores.portable.log import PortableLog
from intersession_events.transcripts.openclaw.importing import import_openclaw
from intersession_events.transcripts.openclaw.reading.files import read_state
from intersession_events.transcripts.openclaw.report import ImportReport
from intersession_projections.copies.openclaw_state.exporting import (
    ExportReport,
    StateSettings,
    export_openclaw,
)
from intersession_projections.copies.openclaw_state.lives import life_of
from support.busy_session import STEPS, Busy
from support.golden_logs import GoldenLog, golden_logs
from support.openclaw.samples import all_states

KEY = "agent:main:main"


def content(log: Log) -> dict[str, Any]:
    """Return what an export has to keep: lineage, generations, and what was said in each, in order."""
    found: dict[str, Any] = {}
    for stream in log.streams("session:"):
        key = stream.removeprefix("session:")
        life = life_of(key, log.stream(stream))
        assert life is not None
        found[key] = {
            "lineage": (life.row.spawned_by, life.row.spawn_depth),
            "label": life.row.label,
            "route": life.row.route,
            "generations": [
                (generation.session_id, generation.closing, [*said(generation.lines)])
                for generation in life.generations
            ],
        }
    return found


def said(lines: Sequence[Any]) -> Iterator[tuple[object, ...]]:
    for taken in lines:
        message = message_in(taken.recorded.event)
        if message is not None:
            yield message.id, message.role, text_of(message), message.provenance, taken.run_id


def written(log: Log, directory: Path, **options: Any) -> ExportReport:
    return export_openclaw(log, directory, settings=StateSettings(), **options)


@contextmanager
def read_back(directory: Path) -> Generator[tuple[PortableLog, ImportReport]]:
    with TemporaryDirectory() as folder, open_log(f"{folder}/again.db") as log:
        yield log, import_openclaw(directory, log, clock=lambda: 0)


@contextmanager
def imported(state: Path) -> Generator[PortableLog]:
    with read_back(state) as (log, _):
        yield log


@pytest.mark.clause("EXP-1", "EXP-3")
@pytest.mark.parametrize("state", all_states())
def test_an_imported_state_is_exported_and_imported_as_what_it_was(state: Path, tmp_path: Path) -> None:
    with imported(state) as log:
        report = written(log, tmp_path / "out")
        with read_back(tmp_path / "out") as (again, _):
            assert content(again) == content(log)

    assert report.messages > 0


@pytest.mark.clause("EXP-3")
@pytest.mark.parametrize("golden", golden_logs(), ids=lambda golden: f"{golden.version}-{golden.name}")
def test_a_log_of_a_release_is_exported_and_imported_as_what_it_was(
    golden: GoldenLog, tmp_path: Path
) -> None:
    with open_log(str(golden.unpack(tmp_path)), read_only=True) as log:
        written(log, tmp_path / "out")
        with read_back(tmp_path / "out") as (again, report):
            assert content(again) == content(log)

    assert report.skipped == ()


def transcripts(root: Path, lost: Container[tuple[str, int]] = ()) -> dict[tuple[str, str], list[bytes]]:
    """Return the lines of each transcript but those that are lost, by agent and stem: a run of cron's has a new ending."""
    return {
        (file.agent, file.stem): [line for number, line in file.lines if (file.path, number) not in lost]
        for file in read_state(root).files
    }


@pytest.mark.clause("EXP-1")
@pytest.mark.parametrize("state", all_states())
def test_the_transcripts_of_a_state_come_out_line_by_line(state: Path, tmp_path: Path) -> None:
    with read_back(state) as (log, report):
        written(log, tmp_path / "out")
    lost = {
        (skipped.file, number)
        for skipped in report.skipped
        if not skipped.kept
        for number in range(skipped.line, skipped.last_line + 1)
    }
    came, out = transcripts(state, lost), transcripts(tmp_path / "out")

    assert sorted(out) == sorted(came)
    for path, lines in came.items():
        # A file that never had a header gets one: without it the original takes a file for empty.
        found = out[path][len(out[path]) - len(lines) :]
        assert len(out[path]) - len(lines) == (0 if b'"session"' in lines[0] else 1)
        for before, after in zip(lines, found, strict=True):
            # Version 1 had no ids: a message gets the one it is known by.
            assert before == after or json.loads(after) == {
                "id": json.loads(after)["id"],
                **json.loads(before),
            }


@pytest.mark.clause("EXP-1")
@pytest.mark.parametrize("state", all_states())
def test_the_entries_of_a_state_keep_every_field(state: Path, tmp_path: Path) -> None:
    with imported(state) as log:
        written(log, tmp_path / "out")
    out = {entry.values["sessionId"]: entry.values for _, entry in read_state(tmp_path / "out").entries}

    for _, entry in read_state(state).entries:
        if ":run:" in entry.key or entry.values["sessionId"] not in out:
            continue
        kept = out[entry.values["sessionId"]]
        if kept["updatedAt"] == entry.values["updatedAt"]:
            unchanged = entry.values.keys() - {"sessionFile"}
            assert {name: kept[name] for name in unchanged} == {
                name: entry.values[name] for name in unchanged
            }


@given(
    steps=st.lists(st.sampled_from(STEPS), max_size=30),
    resets=st.lists(st.integers(0, 30), max_size=3),
    archive=st.booleans(),
)
@pytest.mark.clause("EXP-1", "EXP-3", "HIST-3")
@pytest.mark.ci
def test_whatever_a_session_went_through_comes_back(
    steps: Sequence[Any], resets: Sequence[int], *, archive: bool
) -> None:
    """Waiting messages, runs cut off, resets in one millisecond: the same generations, in the order they were taken."""
    busy = Busy()
    for step in steps:
        step(busy)
    events: list[Any] = [SessionOpened(key=KEY, session_id="s", agent_id="main", opened_by="person")]
    current = "s"
    for number, event in enumerate(busy.events):
        for _ in range(resets.count(number) if not busy.waiting and busy.running is None else 0):
            events.append(SessionReset(session_id=f"{current}x", previous_session_id=current))
            current = events[-1].session_id
        in_transcript = generation_of(event) is not None
        events.append(replace(event, session_id=current) if in_transcript else event)
    if archive:
        events.append(SessionArchived(session_id=current, reason="deleted"))
    with TemporaryDirectory() as folder, open_log(":memory:") as log:
        drafts = tuple(Draft(event=event, id=f"e{n}", time=1_000) for n, event in enumerate(events))
        log.append_now([StreamAppend(stream=session_stream(KEY), expected=0, drafts=drafts)])
        written(log, Path(folder) / "out")
        with read_back(Path(folder) / "out") as (again, _):
            assert content(again) == content(log)
