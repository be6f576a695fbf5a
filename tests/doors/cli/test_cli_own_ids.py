"""`verify` makes the ids of events anew: an event that comes to stand elsewhere has to have another one (V1)."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from intersession import SessionSystem
from intersession_events.basics.ids import first_event_id
from intersession_events.facts import encode
from intersession_events.log.verifying.report import VerifyReport
from intersession_events.log.verifying.verification import verify_log
from intersession_events.stores.sqlite.log import SqliteLog
from intersession_events.transcripts.openclaw.importing import import_openclaw
from intersession_projections.views.inline_views import inline_views
from support.doors.command_line import DemoLog
from support.golden_logs import GoldenLog
from support.openclaw.samples import DESK, HOME, HOUSEHOLD
from support.row_states import with_states
from support.tampering import hashed_again


def verified(path: str | Path) -> VerifyReport:
    with SqliteLog(path, read_only=True) as log:
        return verify_log(log)


@pytest.mark.clause("V1")
@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM stored_events WHERE rowid=(SELECT MIN(rowid) FROM stored_events WHERE topic='turn_ended.1')",
        "UPDATE stored_events SET originator_id='exchange:other' WHERE originator_id LIKE 'exchange:%'",
    ],
)
def test_an_event_that_stands_elsewhere_is_found_by_its_id_though_all_is_hashed_again(
    demo_log: DemoLog, tmp_path: Path, statement: str
) -> None:
    path = copied(demo_log.path, tmp_path)

    changed(path, lambda rows: rows.execute(statement))

    found = verified(path)
    assert verified(demo_log.path).counts == {}
    assert found.counts["id_differs"] > 0
    assert any("does not follow from its place" in one.problem for one in found.findings)


@pytest.mark.clause("V1")
def test_ids_of_the_first_logs_which_came_of_what_was_said_are_proven_too(tmp_path: Path) -> None:
    path = GoldenLog("0.1.0", "demo").unpack(tmp_path)

    with SqliteLog(path, read_only=True) as log:
        own = [one for one in log.all() if one.stream.startswith(("session:", "exchange:"))]
        of_payload = [
            one
            for one in own
            if one.id == first_event_id(log.log_id, one.stream, one.version, one.topic, encode(one.event))
        ]

    assert len(of_payload) > 10
    assert verified(path).counts == {}


def copied(path: str | Path, folder: Path) -> Path:
    """Copy a log, with all that is committed."""
    to = folder / "changed.db"
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(to)) as target:
        source.backup(target)
    return to


def changed(path: Path, change: Callable[[sqlite3.Connection], object]) -> None:
    with closing(sqlite3.connect(path)) as rows, rows:
        with_states(rows)
        change(rows)
        hashed_again(rows, ids=False)


@pytest.mark.clause("V1")
def test_ids_that_an_import_gave_are_named_and_those_that_came_after_it_are_proven(
    tmp_path: Path,
) -> None:
    path = tmp_path / "log.db"
    with SqliteLog(path, inline=inline_views()) as log:
        import_openclaw(shutil.copytree(HOUSEHOLD, tmp_path / "state"), log, clock=lambda: 1_795_000_000_000)
    with SessionSystem(path, agents={"main": lambda _: "yes"}) as system:
        system.inbound(channel="discord", chat_id="1", text="hi", sender="p", wait=20, deliver=False)

    report = verified(path)

    assert report.counts == {}
    assert any("events of imported sessions and flows have the ids" in said for said in report.unproven)


@pytest.mark.clause("V1")
@pytest.mark.parametrize("key", [HOME, DESK])
def test_an_imported_flow_whose_words_are_erased_keeps_the_ids_that_the_import_gave(
    tmp_path: Path, key: str
) -> None:
    path = tmp_path / "log.db"
    with SqliteLog(path, inline=inline_views()) as log:
        import_openclaw(shutil.copytree(HOUSEHOLD, tmp_path / "state"), log, clock=lambda: 1_795_000_000_000)
    with SessionSystem(path) as system:
        assert system.erase(key)["erased"] > 0

    report = verified(path)

    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as rows:
        (erased,) = rows.execute(
            "SELECT count(*) FROM stored_events WHERE topic LIKE 'exchange_accepted%' AND substr(state, 1, 1)=X'7B'"
        ).fetchone()
    assert erased > 0
    assert report.counts == {}
    assert any("events of imported sessions and flows have the ids" in said for said in report.unproven)
