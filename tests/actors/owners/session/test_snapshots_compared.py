"""`verify` folds sessions anew and compares their snapshots; a rebuild drops them."""

import sqlite3
from collections.abc import Sequence
from hashlib import sha256
from itertools import takewhile
from pathlib import Path

import msgspec
import pytest

from intersession_actors.owners.session.context_cache import ContextCache
from intersession_actors.owners.session.folding import SessionFolding
from intersession_actors.owners.session.snapshots import snapshots_compared
from intersession_actors.rules.prompt.window import nothing_earlier
from intersession_events.basics.errors import StoreUnavailable
from intersession_events.facts import SessionOpened
from intersession_events.log.verifying.report import Finding
from intersession_events.stores.keys.source import Encryption
from intersession_events.stores.opened import open_log
from intersession_events.stores.postgres.address import address_of
from intersession_events.stores.sqlite.log import SqliteLog
from intersession_projections.views.inline_views import inline_views
from support.any_log import changed_behind, log_at
from support.encrypted import master_key, source
from support.log_drafts import anywhere, draft, said
from support.postgres.network import network
from support.postgres.server import Server
from support.rows import edited

EVERY = 250
"""After so many events of a stream its state is kept (docs/explanation/design.md)."""

STREAM = "session:agent:main:main"
OPENED = SessionOpened(key="agent:main:main", session_id="s", agent_id="main", opened_by="person")


def written(url: str | Path, encryption: Encryption | None = None) -> None:
    """Write a log with a session that has two snapshots."""
    with log_at(url, inline=inline_views(), encryption=encryption) as log:
        drafts = (said(str(number)) for number in range(2 * EVERY + 10))
        log.append_now((anywhere(STREAM, draft(OPENED, "o"), *drafts),))
        log.states.fold(STREAM, ContextCache(log).folding("agent:main:main"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a log with a session that has two snapshots."""
    written(tmp_path / "log.db")
    return tmp_path / "log.db"


def compared(path: Path) -> tuple[Sequence[Finding], Sequence[str]]:
    with open_log(f"sqlite:///{path}", read_only=True) as log:
        return snapshots_compared(log)


def test_snapshots_that_are_what_the_events_say_are_no_findings(path: Path) -> None:
    seen: list[tuple[int, int]] = []
    with open_log(f"sqlite:///{path}", read_only=True) as log:
        assert len(log.states.versions(STREAM, "session_state.3")) == 2
        assert snapshots_compared(log, lambda done, of: seen.append((done, of))) == ([], [])

    assert seen == [(1, 1)]


@pytest.mark.clause("CRYPT-6")
def test_encrypted_snapshots_are_proven_with_their_keys_and_else_named_as_not_proven(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    written(path, Encryption(source(master_key(tmp_path))))
    assert compared(path) == ([], [])

    unseen = "What 2 encrypted snapshots hold: their keys are not at hand, or were destroyed"
    for left in (path.with_name("log.db.keys"), tmp_path / "master.key"):
        left.rename(tmp_path / "away")
        findings, unread = compared(path)
        (tmp_path / "away").rename(left)
        assert (list(findings), [one.startswith(unseen) for one in unread]) == ([], [True])

    with edited(path) as database:
        (state,) = database.execute("SELECT state FROM stored_snapshots LIMIT 1").fetchone()
        at = len(state) // 2
        changed = state[:at] + (b"A" if state[at : at + 1] != b"A" else b"B") + state[at + 1 :]
        database.execute("UPDATE stored_snapshots SET state=? WHERE state=?", (changed, state))
    findings, unread = compared(path)
    assert (["the encrypted data was changed" in one.problem for one in findings], unread) == ([True], [])


def test_a_log_without_snapshots_has_nothing_to_compare(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log.db") as log:
        assert snapshots_compared(log) == ([], [])


@pytest.mark.parametrize(
    "statement",
    [
        """UPDATE stored_snapshots SET state=replace(state, '"archived":false', '"archived":true')""",
        "UPDATE stored_snapshots SET state=x'7b7d' WHERE originator_version=500",
        "UPDATE stored_snapshots SET originator_version=originator_version+1",
        "UPDATE stored_snapshots SET originator_id='session:agent:main:other'",
        "ALTER TABLE stored_snapshots ADD COLUMN more",
        "DELETE FROM stored_events WHERE originator_version>=490",
    ],
)
def test_a_snapshot_that_was_changed_is_a_finding(path: Path, statement: str) -> None:
    with edited(path) as raw:
        raw.execute(statement)

    findings, _ = compared(path)

    assert findings
    assert {(finding.code, finding.view) for finding in findings} == {("view_differs", "snapshots")}


def forge(raw: sqlite3.Connection) -> int:
    """Change the last snapshot, compute its digest again, and return its version."""
    log_id = raw.execute("SELECT log_id FROM log_identity").fetchone()[0]
    version, topic, state = raw.execute(
        "SELECT originator_version, topic, state FROM stored_snapshots ORDER BY 1 DESC"
    ).fetchone()
    stored = msgspec.json.decode(state)
    stored["data"]["session"]["settings"] = {"sendPolicy": "allow"}
    data = msgspec.json.encode(stored["data"], order="sorted")
    about = msgspec.json.encode([log_id, STREAM, version, topic, stored["hash"]])
    stored["digest"] = sha256(about + data).hexdigest()
    forged = b'{"data":%s,"digest":"%s","hash":"%s"}' % (
        data,
        stored["digest"].encode(),
        stored["hash"].encode(),
    )
    raw.execute("UPDATE stored_snapshots SET state=? WHERE originator_version=?", (forged, version))
    return int(version)


def test_a_snapshot_whose_digest_was_computed_again_is_a_finding(path: Path) -> None:
    """The digest proves nothing against an attacker who can hash; the events do."""
    with edited(path) as raw:
        version = forge(raw)

    findings, unproven = compared(path)

    assert [finding.problem for finding in findings] == [f"version {version}: the events say another state"]
    assert unproven == []


@pytest.mark.parametrize(
    ("stream", "topic", "state"),
    [
        ("CAST(X'ff' AS TEXT)", "'session_state.3'", "X'7b7d'"),
        ("X'ff'", "'session_state.3'", "X'7b7d'"),
        (f"'{STREAM}'", "CAST(X'ff' AS TEXT)", "X'7b7d'"),
        (f"'{STREAM}'", "'session_state.3'", "CAST(X'ff' AS TEXT)"),
        (f"'{STREAM}'", "'session_state.3'", "CAST(X'7b7d' AS TEXT)"),
    ],
)
def test_a_row_that_can_not_be_read_hides_no_other(path: Path, stream: str, topic: str, state: str) -> None:
    """Before: it had all snapshots of its stream, or of the log, pass for none."""
    with edited(path) as raw:
        version = forge(raw)
        raw.execute(f"INSERT INTO stored_snapshots VALUES ({stream}, 3, {topic}, {state})")  # noqa: S608 - written above

    problems = [finding.problem for finding in compared(path)[0]]

    assert f"version {version}: the events say another state" in problems
    assert len(problems) == 2


def test_snapshots_of_another_shape_are_named_as_not_compared(path: Path) -> None:
    class Later(SessionFolding):
        topic = "session_state.99"

    with SqliteLog(path, inline=inline_views()) as log:
        log.states.drop()
        log.states.fold(STREAM, Later(room=0, earlier=nothing_earlier))

    findings, unproven = compared(path)

    assert findings == []
    assert unproven == [
        "What 2 snapshots of another shape hold: this version reads only session_state.3, and uses none of them."
    ]


def test_snapshots_of_a_stream_that_can_not_be_folded_are_named_as_not_compared(path: Path) -> None:
    with edited(path) as raw:
        raw.execute("UPDATE stored_events SET state='{}' WHERE originator_version=3")

    findings, unproven = compared(path)

    assert findings == []
    assert unproven[0].startswith(f"What the snapshots of {STREAM} hold: its events can't be folded (")


@pytest.mark.parametrize("column", ["originator_id", "state"])
def test_snapshots_that_can_not_be_read_are_a_finding(log_url: str, column: str) -> None:
    """They had passed for none, with a warning."""
    written(log_url)
    changed_behind(log_url, f"ALTER TABLE stored_snapshots RENAME COLUMN {column} TO other")

    with open_log(log_url, read_only=True) as log:
        findings, _ = snapshots_compared(log)

    assert findings
    assert "can't be read" in findings[-1].problem
    assert {(finding.code, finding.view) for finding in findings} == {("view_differs", "snapshots")}


@pytest.mark.postgres
@pytest.mark.clause("PG2")
def test_snapshots_that_could_not_be_compared_are_not_said_to_be_right(
    postgres: Server, postgres_url: str
) -> None:
    """`verify` had said so of a log whose server went in its last answers."""
    written(postgres_url)
    with network(postgres.directory) as between:
        through = between.url(address_of(postgres_url).schema)

        def answers(gone_after: int) -> bool:
            """Compare them while the server goes; whether it went before all was compared, which has to be told."""
            between.to = postgres.directory
            with open_log(through, read_only=True) as log:
                between.gone_after(gone_after)
                try:
                    assert snapshots_compared(log) == ([], [])
                except StoreUnavailable:
                    return True
                assert not between.is_gone
                return False

        tried = list(takewhile(answers, range(1, 100)))

    assert 3 < len(tried) < 99
