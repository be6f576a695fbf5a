"""Verification: what was changed is found and named, and what can't be found is said."""

import hashlib
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intersession_events.basics.errors import NotALog
from intersession_events.log.recorded import Draft
from intersession_events.log.sql import SqlValue
from intersession_events.log.verifying.report import Finding, LogHead, VerifyReport
from intersession_events.log.verifying.verification import head, verify_log
from intersession_events.stores.sqlite.log import SqliteLog
from support.hostile import row_id, rows
from support.log_drafts import anywhere, said, to
from support.transacting import transact

KEY = b"a key that is kept elsewhere"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A log of ten events in three streams, written by two writers."""
    with SqliteLog(tmp_path / "log.db") as log:
        for number in range(6):
            log.append_now([anywhere(f"s{number % 2}", said(f"{number}"))])
    with SqliteLog(tmp_path / "log.db") as log:
        log.append_now([to("s2", 0, *(said(f"late-{number}") for number in range(4)))])
    return tmp_path / "log.db"


def change(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        connection.execute("PRAGMA ignore_check_constraints=ON")
        connection.execute(statement)
    connection.close()


def verified(path: Path, *, head: LogHead | None = None, key: bytes | None = None) -> VerifyReport:
    with SqliteLog(path, read_only=True) as log:
        return verify_log(log, head=head, key=key)


def exported(path: Path, key: bytes | None = None) -> LogHead:
    with SqliteLog(path, read_only=True) as log:
        return head(log, key=key)


def codes(report: VerifyReport) -> dict[str, list[int | None]]:
    found: dict[str, list[int | None]] = {}
    for finding in report.findings:
        found.setdefault(finding.code, []).append(finding.position)
    return found


def test_an_untouched_log_is_whole_and_the_report_says_what_that_leaves_open(path: Path) -> None:
    report = verified(path)

    assert report.ok
    assert (report.events, report.streams, report.erased, report.findings) == (10, 3, 0, ())
    assert report.head == exported(path)
    unproven = " ".join(report.unproven)
    for what in (
        "cut off the end",
        "rewritten from the start",
        "whole streams",
        "order",
        "views",
        "`log_identity`",
    ):
        assert what in unproven


def test_an_empty_log_is_whole() -> None:
    with SqliteLog(":memory:") as log:
        assert verify_log(log).ok
        assert head(log).position == 0


@pytest.mark.clause("V1")
@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        pytest.param(
            "UPDATE stored_events SET state=CAST(replace(state, 'hello', 'hellp') AS BLOB) WHERE rowid=3",
            {"changed": [3]},
            id="S01-a-bit-of-the-payload",
        ),
        pytest.param(
            "UPDATE stored_events SET state=CAST(replace(state, '\"epoch\":1', '\"epoch\":0') AS BLOB) WHERE rowid=3",
            {"changed": [3], "epoch_backwards": [3]},
            id="S01-a-bit-of-the-envelope",
        ),
        pytest.param(
            "UPDATE stored_events SET state=CAST(state || ' ' AS BLOB) WHERE rowid=3",
            {"unreadable": [3]},
            id="S01-a-space-more",
        ),
        pytest.param(
            "UPDATE stored_events SET state=CAST(replace(state, substr(state, -45, 32), upper(substr(state, -45, 32))) "
            "AS BLOB) WHERE rowid=3",
            {"changed": [3]},
            id="S01-the-case-of-the-salt",
        ),
        pytest.param(
            "UPDATE stored_events SET state=x'7b' WHERE rowid=3", {"unreadable": [3]}, id="S01-no-envelope"
        ),
        pytest.param(
            "DELETE FROM stored_events WHERE rowid=3",
            {"position_missing": [4], "missing": [5]},
            id="S02-a-middle-row",
        ),
        pytest.param(
            "DELETE FROM stored_events WHERE rowid=6",
            {"position_missing": [7]},
            id="S02-the-last-of-a-stream",
        ),
        pytest.param("DELETE FROM stored_events WHERE rowid=10", {"tail_cut": [None]}, id="S03-the-last-row"),
        pytest.param(
            "UPDATE stored_events SET originator_id='s1', originator_version=4 WHERE rowid=5",
            {"changed": [5], "out_of_order": [6], "missing": [5]},
            id="S04-moved-to-another-stream",
        ),
        pytest.param(
            "UPDATE stored_events SET originator_version=9 WHERE rowid=10",
            {"changed": [10], "missing": [10]},
            id="S04-moved-to-another-version",
        ),
        pytest.param(
            "UPDATE stored_events SET topic='os:system' WHERE rowid=3",
            {"changed": [3], "unknown_topic": [3]},
            id="S05-a-topic-to-be-imported",
        ),
        pytest.param(
            "UPDATE stored_events SET rowid=rowid+100 WHERE rowid>8",
            {"position_missing": [109], "table_altered": [None]},
            id="positions-moved",
        ),
        pytest.param(
            "UPDATE stored_events SET originator_version='x' WHERE rowid=2",
            {"unreadable": [2], "missing": [4]},
            id="a-version-that-is-no-number",
        ),
    ],
)
def test_what_was_changed_is_found_and_the_walk_goes_on(
    path: Path, statement: str, expected: dict[str, list[int | None]]
) -> None:
    change(path, statement)

    report = verified(path)

    assert codes(report) == expected
    assert not report.ok
    assert report.counts == {code: len(places) for code, places in expected.items()}


def test_a_finding_names_stream_and_version_and_says_what_is_wrong(path: Path) -> None:
    change(
        path, "UPDATE stored_events SET state=CAST(replace(state, 'hello', 'hellp') AS BLOB) WHERE rowid=3"
    )

    assert verified(path).findings == (
        Finding(
            code="changed",
            position=3,
            stream="s0",
            version=2,
            problem="the payload does not have the digest that was hashed: it was changed",
        ),
    )


def swap(path: Path, one: int, other: int) -> None:
    for old, new in ((one, -1), (other, one), (-1, other)):
        change(path, f"UPDATE stored_events SET rowid={new} WHERE rowid={old}")  # noqa: S608 - numbers


@pytest.mark.clause("V1")
def test_order_between_streams_is_proven_by_a_head_alone(path: Path) -> None:
    before = exported(path)
    swap(path, 1, 2)

    assert verified(path).ok
    assert codes(verified(path, head=before)) == {"head_mismatch": [None]}


@pytest.mark.clause("V1")
def test_a_cut_tail_is_found_with_a_head_even_if_its_traces_were_removed(path: Path) -> None:
    before = exported(path)
    change(
        path,
        "DELETE FROM stored_events WHERE rowid>8",
        "UPDATE sqlite_sequence SET seq=8 WHERE name='stored_events'",
    )

    assert verified(path).ok
    assert codes(verified(path, head=before)) == {"tail_cut": [None]}


@pytest.mark.clause("V1")
def test_a_log_rewritten_from_the_start_is_found_with_a_head(path: Path, tmp_path: Path) -> None:
    before = exported(path)
    with SqliteLog(tmp_path / "forged.db", new_log_id=lambda: before.log_id) as forged:
        for number in range(10):
            forged.append_now([anywhere(f"s{number % 2}", said(f"forged-{number}"))])

    assert verified(tmp_path / "forged.db").ok
    assert codes(verified(tmp_path / "forged.db", head=before)) == {"head_mismatch": [None]}


def test_a_head_of_another_log_is_said_to_be_one(path: Path, tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "other.db") as other:
        stranger = head(other)

    assert codes(verified(path, head=stranger)) == {"other_log": [None]}


def test_a_head_stays_true_as_the_log_grows_and_the_rest_is_said_to_be_unproven(path: Path) -> None:
    before = exported(path, KEY)
    with SqliteLog(path) as log:
        log.append_now([anywhere("s0", said("new"))])

    report = verified(path, head=before, key=KEY)

    assert report.ok
    assert len([what for what in report.unproven if "after position 10" in what]) == 3


@pytest.mark.parametrize(
    "forge", [lambda h: h.signed(b"another"), lambda h: msgspec.structs.replace(h, signature=None)]
)
def test_a_head_that_was_not_signed_with_the_key_is_forged(
    path: Path, forge: Callable[[LogHead], LogHead]
) -> None:
    genuine = exported(path, KEY)

    assert verified(path, head=genuine, key=KEY).ok
    assert codes(verified(path, head=forge(genuine), key=KEY)) == {"head_forged": [None]}


def test_a_head_without_a_signature_is_said_to_prove_less(path: Path) -> None:
    assert any("not signed" in said for said in verified(path, head=exported(path)).unproven)


def test_a_head_can_be_made_with_sqlite_and_sha256sum(path: Path) -> None:
    connection = sqlite3.connect(path)
    lines = connection.execute(
        "SELECT rowid || ' ' || json_extract(state, '$.hash') FROM stored_events ORDER BY rowid"
    ).fetchall()
    connection.close()

    text = "".join(f"{line}\n" for (line,) in lines)
    assert exported(path).hash == hashlib.sha256(text.encode()).hexdigest()


def test_an_erased_payload_leaves_the_chain_true_and_is_found_since_no_event_authorises_it(
    path: Path,
) -> None:
    """Before: `verify` passed rows that no append can have written, and edits of views, snapshots and triggers."""
    change(
        path,
        "UPDATE stored_events SET state=CAST(json_set(state, '$.data', NULL, '$.salt', '') AS BLOB) WHERE rowid=3",
    )

    report = verified(path)

    assert codes(report) == {"erased": [3]}
    assert report.erased == 1
    assert any("erased" in said for said in report.unproven)


def test_two_events_of_one_id_are_found(path: Path) -> None:
    with SqliteLog(path) as log:
        log.append_now([to("another", 0, said("0"))])

    assert codes(verified(path)) == {"id_repeated": [11]}


def test_more_findings_are_counted_than_described(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log.db") as log:
        drafts: list[Draft] = [said(f"{number}") for number in range(1_000 + 5)]
        log.append_now([to("s", 0, *drafts)])
    change(tmp_path / "log.db", "UPDATE stored_events SET state=x'00'")

    report = verified(tmp_path / "log.db")

    assert report.counts == {"unreadable": 1_000 + 5}
    assert len(report.findings) == 1_000


def test_progress_reaches_the_end(path: Path) -> None:
    steps: list[tuple[int, int]] = []
    with SqliteLog(path, read_only=True) as log:
        verify_log(log, progress=lambda position, last: steps.append((position, last)))

    assert steps[-1] == (10, 10)


@pytest.mark.clause("V1")
@given(row=st.integers(0, 5), edit=st.data())
def test_any_edit_is_found_with_a_head(row: int, edit: st.DataObject) -> None:
    with SqliteLog(":memory:") as log:
        log.append_now(
            [to("s", 0, said("a"), said("b"), said("c")), to("t", 0, said("d"), said("e"), said("f"))]
        )
        before = head(log)
        rows = log.query(
            "SELECT originator_id, originator_version, topic, state FROM stored_events ORDER BY rowid"
        )
        column = edit.draw(st.integers(0, 3))
        old = rows[row][column]
        if isinstance(old, bytes):
            at = edit.draw(st.integers(0, len(old) - 1))
            new: SqlValue = old[:at] + bytes([old[at] ^ (1 << edit.draw(st.integers(0, 7)))]) + old[at + 1 :]
        elif isinstance(old, int):
            new = edit.draw(st.integers(-3, 10).filter(lambda number: number != old))
        else:
            new = edit.draw(st.sampled_from(["s", "t", "run_queued.1", "x"]).filter(lambda text: text != old))
        name = ("originator_id", "originator_version", "topic", "state")[column]

        statement = f"UPDATE OR REPLACE stored_events SET {name}=? WHERE rowid=?"  # noqa: S608 - a column

        transact(log, lambda sql: sql.execute(statement, (new, row + 1)))

        assert not verify_log(log, head=before).ok


def _forge_at_the_end(path: Path) -> None:
    """Append a row with a right chain, as somebody could who may write the file."""
    with SqliteLog(path) as log:
        log.append_now([anywhere("s0", said("forged"))])


def _restore_from_a_dump(path: Path) -> None:
    source, restored = sqlite3.connect(path), sqlite3.connect(path.with_name("restored.db"))
    restored.executescript("\n".join(source.iterdump()))
    source.close()
    restored.close()
    path.with_name("restored.db").rename(path)


ATTACKS: dict[str, Callable[[Path], None]] = {
    "S01": lambda path: change(path, _FLIP),
    "S02": lambda path: change(path, "DELETE FROM stored_events WHERE rowid=3"),
    "S04": lambda path: change(path, "UPDATE stored_events SET originator_id='s9' WHERE rowid=3"),
    "S05": lambda path: change(path, "UPDATE stored_events SET topic='os:system' WHERE rowid=3"),
    "S07": _forge_at_the_end,
    "S08": _restore_from_a_dump,
}
_FLIP = "UPDATE stored_events SET state=CAST(replace(state, 'hello', 'hellp') AS BLOB) WHERE rowid=3"
SEEN = {
    "S01": {"changed"},
    "S02": {"missing", "position_missing", "head_mismatch"},
    "S04": {"changed", "missing"},
    "S05": {"changed", "unknown_topic"},
    "S07": {"after_head"},
}


@pytest.mark.clause("X5", "V1")
@pytest.mark.parametrize("row", rows("S"), ids=row_id)
def test_every_hostile_store_is_seen_through(path: Path, row: dict[str, Any]) -> None:
    genuine = exported(path, KEY)
    ATTACKS[row["id"]](path)

    if row["id"] == "S08":
        with pytest.raises(NotALog):
            verified(path)
        return
    with SqliteLog(path, read_only=True) as log:
        report = verify_log(log, head=genuine, key=KEY, final=True)

    assert set(report.counts) == SEEN[row["id"]]
