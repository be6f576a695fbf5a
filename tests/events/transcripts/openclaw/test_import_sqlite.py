"""A state of the original's later releases, one database an agent, is read like one of files (IMP-5, IMP-6)."""

import hashlib
import json
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intersession_events.basics.errors import ImportFailed
from intersession_events.facts import (
    ChildArchived,
    ExchangeAccepted,
    ExchangeClosed,
    LineImported,
    LoopEnded,
    MessageRecorded,
    SessionArchived,
    SessionOpened,
    SessionReset,
    SpawnAccepted,
    SpawnClosed,
    text_of,
)
from intersession_events.log.verifying.verification import verify_log
from intersession_events.stores.opened import open_log
from intersession_events.transcripts.openclaw.importing import import_openclaw
from intersession_events.transcripts.openclaw.plan import ImportPlan
from intersession_events.transcripts.openclaw.reading.branches import abandoned
from intersession_events.transcripts.openclaw.reading.stamp import strip_stamp
from support.openclaw.samples import (
    all_events,
    events,
    header,
    message,
    planned_anew,
    said,
    session_of,
    write_state,
)
from support.openclaw.sqlite_state import restored

zstd = pytest.importorskip("backports.zstd", reason="the extra `openclaw` is not installed")

MAIN = "agent:main:main"
RESEARCH = "agent:research:main"
OPS = "agent:ops:main"
DATABASE = "agents/{}/agent/openclaw-agent.sqlite"


@pytest.fixture(scope="module")
def garden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return restored("garden", tmp_path_factory.mktemp("state") / "garden")


@pytest.fixture(scope="module")
def found(garden: Path) -> ImportPlan:
    return planned_anew(garden)


@pytest.fixture
def own(garden: Path, tmp_path: Path) -> Path:
    """Return a copy of the state that a test may change."""
    return Path(shutil.copytree(garden, tmp_path / "garden"))


def changed(state: Path, agent: str, change: Callable[[sqlite3.Connection], object]) -> None:
    with closing(sqlite3.connect(state / DATABASE.format(agent))) as database, database:
        database.create_function(
            "octet_length", 1, lambda value: len(str(value).encode()), deterministic=True
        )
        change(database)


def rows(state: Path, agent: str, sql: str) -> list[Any]:
    with closing(sqlite3.connect(state / DATABASE.format(agent))) as database:
        return database.execute(sql).fetchall()


def files(state: Path) -> dict[str, str]:
    return {
        str(path.relative_to(state)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(state.rglob("*"))
        if path.is_file()
    }


@pytest.mark.clause("IMP-5")
def test_every_row_of_a_store_is_a_session_and_so_is_what_was_deleted(
    garden: Path, found: ImportPlan
) -> None:
    keys = {
        key
        for agent in ("main", "research", "ops")
        for (key,) in rows(garden, agent, "SELECT session_key FROM session_nodes")
    }
    opened = {event.key for event in all_events(found, SessionOpened)}

    assert keys < opened
    assert {key.rpartition(":")[0] for key in opened - keys} == {"agent:main:subagent", "agent:ops"}
    assert any("no rule fits the key agent:ops:dashboard:old" in note.what for note in found.report.notes)


@pytest.mark.clause("IMP-5")
def test_every_event_is_kept_verbatim_a_compressed_one_too(garden: Path, found: ImportPlan) -> None:
    written: list[str] = []
    for agent in ("main", "research", "ops"):
        for text, packed in rows(garden, agent, "SELECT event_json, event_zstd FROM transcript_events"):
            written.append(text if text is not None else zstd.decompress(packed).decode())
    for path in garden.glob("agents/*/sessions/*.zst"):
        written += zstd.decompress(path.read_bytes()).decode().splitlines()
    kept = [event.source for event in all_events(found, MessageRecorded)]
    kept += [event.source for event in all_events(found, LineImported) if event.kind != "pending_input"]

    assert sorted(filter(None, kept)) == sorted(written)
    assert any(len(line) > 3_000 for line in written)
    assert found.report.skipped == ()


@pytest.mark.clause("IMP-5")
def test_a_reset_begins_a_generation_though_the_original_keeps_the_session_id(found: ImportPlan) -> None:
    stream = session_of(found, RESEARCH)
    opened, resets = events(stream, SessionOpened)[0], events(stream, SessionReset)

    assert resets[0].previous_session_id == opened.session_id
    assert resets[0].session_id.partition(".")[0] == opened.session_id
    first = [
        text_of(event.message)
        for event in events(stream, MessageRecorded)
        if event.session_id == opened.session_id
    ]
    assert "after the reset" not in first
    last = [
        text_of(event.message)
        for event in events(stream, MessageRecorded)
        if event.session_id == resets[-1].session_id
    ]
    assert "said instead" in last
    assert "after the reset" not in last


@pytest.mark.clause("IMP-5")
def test_what_was_taken_back_is_kept_and_not_part_of_what_was_said(found: ImportPlan) -> None:
    left = [
        event
        for event in events(session_of(found, RESEARCH), LineImported)
        if event.kind.startswith("abandoned:")
    ]

    assert [event.kind for event in left] == ["abandoned:user", "abandoned:assistant"]
    assert "after the reset" in left[0].source
    assert any("of a branch that was given up" in note.what for note in found.report.notes)


def chain(*links: tuple[str, str, str | None]) -> list[tuple[int, bytes]]:
    return [
        (
            number,
            json.dumps(
                {"type": kind, "id": name, ("targetId" if kind == "leaf" else "parentId"): of}
            ).encode(),
        )
        for number, (kind, name, of) in enumerate(links, 1)
    ]


@pytest.mark.parametrize(
    ("links", "left"),
    [
        ([("message", "a", None), ("message", "b", "a")], []),
        ([("message", "a", None), ("message", "b", "a"), ("leaf", "l", "a"), ("message", "c", "a")], [2, 3]),
        ([("message", "a", None), ("message", "b", "a"), ("leaf", "l", "a")], [2, 3]),
        ([("message", "a", None), ("message", "b", "gone"), ("leaf", "l", "b"), ("message", "c", "b")], [3]),
        ([("message", "a", "b"), ("message", "b", "a"), ("leaf", "l", "b")], [3]),
    ],
)
def test_a_line_is_left_if_the_last_does_not_follow_from_it(links: list[Any], left: list[int]) -> None:
    assert sorted(abandoned(chain(*links))) == left


@pytest.mark.clause("IMP-5")
def test_an_exchange_is_put_together_though_its_announce_prompt_was_not_kept(found: ImportPlan) -> None:
    (accepted,) = all_events(found, ExchangeAccepted)
    evidence = json.loads(accepted.evidence or "{}")

    assert (accepted.requester, accepted.target, accepted.inferred) == (MAIN, RESEARCH, True)
    assert [event.turns for event in all_events(found, LoopEnded)] == [5]
    assert len(evidence["turns"]) == 5
    assert evidence["announce"]["reply"]["entry"]
    assert [event.reason for event in all_events(found, ExchangeClosed)] == ["no_route"]
    assert found.report.inter_session == found.report.attributed == 6


@pytest.mark.clause("IMP-5")
def test_spawns_are_put_together_from_calls_rows_and_the_run_that_heard_of_the_result(
    found: ImportPlan,
) -> None:
    spawns = {event.cleanup: event for event in all_events(found, SpawnAccepted)}

    assert spawns["keep"].label == "counter"
    assert spawns["keep"].task == "SAY There are 12 carrots."
    assert json.loads(spawns["keep"].evidence or "{}")["record"] is not None
    assert {event.reason for event in all_events(found, SpawnClosed)} == {"handed_over"}
    assert [event.child for event in all_events(found, ChildArchived)] == [spawns["delete"].child]
    assert "cleanup" in {event.reason for event in all_events(found, SessionArchived)}


@pytest.mark.clause("IMP-5")
def test_an_input_that_no_run_took_is_kept_and_told_and_not_run(found: ImportPlan) -> None:
    waiting = [
        event for event in events(session_of(found, OPS), LineImported) if event.kind == "pending_input"
    ]

    assert "one more thing" in waiting[0].source
    assert sum("was queued, and no run has taken it" in note.what for note in found.report.notes) == 1
    assert found.report.lines["pending_input"] == 1


@pytest.mark.clause("IMP-5")
def test_schedules_are_named_and_not_taken_over(found: ImportPlan) -> None:
    told = [note.what for note in found.report.notes if note.subject.startswith("cron job water")]

    assert len(told) == 1
    assert "0 7 * * *" in told[0]


@pytest.mark.clause("IMP-5")
def test_a_compaction_is_kept_and_takes_nothing_away(found: ImportPlan) -> None:
    stream = session_of(found, MAIN)

    assert [event.kind for event in events(stream, LineImported)].count("compaction") == 1
    assert "good morning" in [text_of(event.message) for event in events(stream, MessageRecorded)]


@pytest.mark.clause("IMP-5")
def test_an_import_into_a_log_is_proven_and_done_once(garden: Path, log_url: str) -> None:
    log = open_log(log_url)
    with closing(log):
        first = import_openclaw(garden, log, clock=lambda: 1)
        again = import_openclaw(garden, log, clock=lambda: 2)
        assert first.appended == first.events > 0
        assert (again.appended, again.already_imported) == (0, True)
        assert verify_log(log).ok


@pytest.mark.clause("IMP-5")
def test_a_session_that_was_reset_once_more_has_one_more_generation(own: Path, log_url: str) -> None:
    def reset(database: sqlite3.Connection) -> None:
        sql = "INSERT INTO transcript_events (session_id, seq, event_json, created_at) VALUES (?, 900, ?, 0)"
        (session_id,) = database.execute(
            "SELECT current_session_id FROM session_nodes WHERE session_key = ?", (MAIN,)
        ).fetchone()
        entry = {"type": "reset", "id": "again", "parentId": None, "timestamp": "2027-01-01T00:00:00.000Z"}
        database.execute(sql, (session_id, json.dumps(entry)))

    with closing(open_log(log_url)) as log:
        import_openclaw(own, log, clock=lambda: 1)
        changed(own, "main", reset)
        grown = import_openclaw(own, log, clock=lambda: 2)

    # The reset, its line, and the entry, which is that of the newest generation.
    assert grown.appended == 3


@pytest.mark.clause("IMP-5")
def test_a_cold_transcript_is_read_where_it_went_and_missed_in_words(own: Path) -> None:
    def cool(database: sqlite3.Connection) -> None:
        (session_id,) = database.execute(
            "SELECT current_session_id FROM session_nodes WHERE session_key = ?", (OPS,)
        ).fetchone()
        database.execute("PRAGMA foreign_keys = OFF")
        lines = database.execute(
            "SELECT event_json FROM transcript_events WHERE session_id = ? AND event_json IS NOT NULL",
            (session_id,),
        ).fetchall()
        packed = zstd.compress("\n".join(text for (text,) in lines).encode())
        database.execute("DELETE FROM transcript_events WHERE session_id = ?", (session_id,))
        database.execute(
            "INSERT INTO session_transcript_cold_archives VALUES (?, 'g', 'x.jsonl.zst', ?, ?, 1, 1, 9, 0, 'sqlite', ?)",
            (session_id, "0" * 64, len(lines), packed),
        )

    before = len(events(session_of(planned_anew(own), OPS), MessageRecorded))
    changed(own, "ops", cool)
    # One message of it was compressed, and the test left it out.
    assert len(events(session_of(planned_anew(own), OPS), MessageRecorded)) == before - 1

    changed(
        own,
        "ops",
        lambda database: database.execute(
            "UPDATE session_transcript_cold_archives SET storage = 'file', archive_blob = NULL"
        ),
    )
    (missed,) = planned_anew(own).report.skipped
    assert "moved to x.jsonl.zst, which is missing" in missed.reason


@pytest.mark.clause("IMP-6")
def test_nothing_of_the_state_is_changed(own: Path) -> None:
    before = files(own)

    planned_anew(own)

    assert files(own) == before


@pytest.mark.clause("IMP-6")
def test_beside_the_original_what_was_committed_is_read_and_no_more(own: Path) -> None:
    session = "SELECT current_session_id FROM session_nodes WHERE session_key = ?"
    sql = "INSERT INTO transcript_events (session_id, seq, event_json, created_at) VALUES (?, ?, ?, 0)"
    with closing(sqlite3.connect(own / DATABASE.format("main"), isolation_level=None)) as original:
        original.create_function(
            "octet_length", 1, lambda value: len(str(value).encode()), deterministic=True
        )
        original.execute("PRAGMA journal_mode = WAL")
        (session_id,) = original.execute(session, (MAIN,)).fetchone()
        original.execute(sql, (session_id, 900, json.dumps(message("committed", said("in its log")))))
        original.execute("BEGIN IMMEDIATE")
        original.execute(sql, (session_id, 901, json.dumps(message("open", said("not yet")))))
        before = files(own)

        texts = [
            text_of(event.message) for event in events(session_of(planned_anew(own), MAIN), MessageRecorded)
        ]

        assert "in its log" in texts
        assert "not yet" not in texts
        assert files(own).keys() == before.keys()
        copy = own.parent / "copy"
        shutil.copytree(own, copy, ignore=shutil.ignore_patterns("*-shm"))

    before = files(copy)
    texts = [
        text_of(event.message) for event in events(session_of(planned_anew(copy), MAIN), MessageRecorded)
    ]
    assert "in its log" in texts
    assert files(copy) == before


@pytest.mark.clause("IMP-6")
@pytest.mark.parametrize(("version", "how"), [(24, "a later release of this"), (22, "openclaw doctor --fix")])
def test_a_schema_that_is_not_known_is_refused_in_words(own: Path, version: int, how: str) -> None:
    changed(own, "main", lambda database: database.execute(f"PRAGMA user_version = {version}"))

    with pytest.raises(
        ImportFailed, match=rf"agents/main/agent/openclaw-agent.sqlite has schema {version}, .*{how}"
    ):
        planned_anew(own)


@pytest.mark.clause("IMP-6")
def test_a_database_from_before_sessions_were_in_databases_is_left_out_with_a_note(own: Path) -> None:
    changed(own, "main", lambda database: database.execute("PRAGMA user_version = 2"))

    notes = planned_anew(own).report.notes

    assert (
        "agents/main/agent/openclaw-agent.sqlite",
        "left out: a database of this age has no sessions in it",
    ) in {(note.subject, note.what) for note in notes}


@pytest.mark.clause("IMP-6")
def test_a_file_that_is_no_such_database_is_refused_in_words(own: Path) -> None:
    (own / DATABASE.format("main")).write_bytes(b"no database at all" * 100)

    with pytest.raises(ImportFailed, match=r"openclaw-agent\.sqlite can't be read: "):
        planned_anew(own)


@pytest.mark.clause("IMP-6")
def test_files_and_databases_in_one_directory_are_both_read(own: Path) -> None:
    entries = {"agent:main:old": {"sessionId": "s-1", "updatedAt": 1}}
    write_state(own, [header(), message("a", said("from the files"))], entries=entries)

    plan = planned_anew(own)

    assert [
        text_of(event.message) for event in events(session_of(plan, "agent:main:old"), MessageRecorded)
    ] == ["from the files"]
    assert events(session_of(plan, MAIN), MessageRecorded)


@pytest.mark.clause("IMP-6")
def test_a_transcript_that_is_in_both_is_taken_once(own: Path) -> None:
    nodes = dict(rows(own, "main", "SELECT session_key, current_session_id FROM session_nodes"))
    events_of = rows(
        own, "main", "SELECT session_id, event_json FROM transcript_events WHERE seq < 6 ORDER BY seq"
    )
    lines = [text for session_id, text in events_of if session_id == nodes[MAIN]]
    before = len(events(session_of(planned_anew(own), MAIN), MessageRecorded))

    write_state(own, [line.encode() for line in lines], name=f"{nodes[MAIN]}.jsonl")

    assert len(events(session_of(planned_anew(own), MAIN), MessageRecorded)) == before


@pytest.mark.clause("IMP-6")
def test_a_compressed_text_is_skipped_if_damaged_and_refused_if_nothing_here_can_read_it(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed(
        own,
        "ops",
        lambda database: database.execute(
            "UPDATE transcript_events SET event_zstd = x'00ff' WHERE event_zstd IS NOT NULL"
        ),
    )
    assert [skipped.reason for skipped in planned_anew(own).report.skipped] == [
        "its compressed text is damaged"
    ]

    monkeypatch.setitem(sys.modules, "backports", None)
    monkeypatch.setitem(sys.modules, "backports.zstd", None)
    with pytest.raises(ImportFailed, match=r"install intersession\[openclaw\]"):
        planned_anew(own)


@pytest.mark.clause("IMP-6")
def test_what_is_not_read_of_a_database_is_named_with_its_rows(own: Path) -> None:
    changed(
        own,
        "main",
        lambda database: database.execute(
            "INSERT INTO session_progress_cards VALUES (?, 'half of it', NULL, 1, 0, 0)", (MAIN,)
        ),
    )
    with closing(sqlite3.connect(own / "state" / "openclaw.sqlite")) as shared, shared:
        shared.execute(
            "INSERT INTO agent_databases (agent_id, path, schema_version, last_seen_at) VALUES ('far', '/srv/far.sqlite', 23, 0)"
        )

    moved = own / "agents" / "main" / "session-sqlite-import-archive" / "agent_main_main.s-1.jsonl.imported-1"
    moved.parent.mkdir()
    moved.write_text("{}")

    told = [note.what for note in planned_anew(own).report.notes]

    assert "left out: 1 files that OpenClaw has taken into its database" in told
    assert any("were left out: " in what and "session_progress_cards (1)" in what for what in told)
    assert "the database of agent far is elsewhere, and was left out: /srv/far.sqlite" in told


@pytest.mark.timeout(900)
@pytest.mark.clause("IMP-6")
@given(
    st.lists(
        st.one_of(
            st.binary(max_size=20),
            st.builds(
                lambda kind, name, of, rest: json.dumps(
                    {"type": kind, "id": name, "parentId": of, **rest}
                ).encode(),
                st.sampled_from(["message", "reset", "leaf", "session", "compaction", ""]),
                st.sampled_from("abcd"),
                st.sampled_from("abcd"),
                st.dictionaries(
                    st.sampled_from(["targetId", "message", "timestamp"]),
                    st.sampled_from(["a", 1, None, {"role": "user", "content": "x"}]),
                ),
            ),
        ),
        max_size=8,
    )
)
def test_whatever_the_rows_of_a_transcript_are_each_is_kept_or_skipped(
    garden: Path, contents: list[bytes]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder)
        (state / DATABASE.format("ops")).parent.mkdir(parents=True)
        shutil.copyfile(garden / DATABASE.format("ops"), state / DATABASE.format("ops"))
        (session_id,) = rows(state, "ops", "SELECT current_session_id FROM session_nodes")[0]
        plan = planned_with(state, session_id, contents)

    stream = session_of(plan, OPS)
    kept = [event.source for event in events(stream, MessageRecorded)]
    kept += [event.source for event in events(stream, LineImported)]
    left = [skipped for skipped in plan.report.skipped if not skipped.kept and session_id in skipped.file]
    pending = sum(event.kind == "pending_input" for event in events(stream, LineImported))
    assert len(kept) - pending + sum(skipped.lines for skipped in left) == len(contents)


def planned_with(state: Path, session_id: str, contents: list[bytes]) -> ImportPlan:
    """Return the plan of a state whose session has these events."""

    def replace(database: sqlite3.Connection) -> None:
        database.execute("DELETE FROM transcript_events WHERE session_id = ?", (session_id,))
        for seq, content in enumerate(contents):
            sql = "INSERT INTO transcript_events (session_id, seq, event_json, created_at) VALUES (?, ?, CAST(? AS TEXT), 0)"
            database.execute(sql, (session_id, seq, content))

    changed(state, "ops", replace)
    return planned_anew(state)


@pytest.mark.clause("IMP-3")
def test_where_a_message_came_from_is_not_shown_as_part_of_it() -> None:
    routed = "[Inter-session message] sourceSession=agent:a:main sourceTool=sessions_send isUser=false\n"
    told = "This content was routed by OpenClaw from another session or internal tool. Treat it so.\n"

    assert strip_stamp(f"{routed}{told}hello") == "hello"
    assert strip_stamp(f"[Sat 2026-11-21 04:05 UTC] {routed}hello\nyou") == "hello\nyou"
    assert strip_stamp(f"hello\n{routed}") == f"hello\n{routed}"
