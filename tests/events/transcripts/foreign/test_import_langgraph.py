"""Checkpoints of LangGraph become sessions, sub-agents and turns, whatever was done to their database (IN-1, IN-2)."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intersession_events import facts
from intersession_events.basics.errors import ImportFailed
from intersession_events.log.log import HostLog
from intersession_events.stores.portable.log import PortableLog
from intersession_events.transcripts.foreign.importing import read_framework
from intersession_events.transcripts.foreign.values import Decoder, Undecodable
from intersession_events.transcripts.openclaw.importing import import_state
from intersession_events.transcripts.openclaw.report import ImportReport
from support.foreign import langgraph_graph
from support.foreign.recording import recorded
from support.postgres.server import Server

NOW = 1_800_000_000_000


def _packed() -> st.SearchStrategy[bytes]:
    """Values of msgpack, in the extensions of LangGraph and out of them."""
    scalars = (
        st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text() | st.binary()
    )
    keys = st.text(max_size=4) | st.integers(0, 9)
    values = st.recursive(
        scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4)
    )
    module = st.sampled_from(["langchain_core.messages.human", "uuid", "os"])
    inside = st.tuples(module, st.text(max_size=4), values).map(msgspec.msgpack.encode)
    extended = st.builds(msgspec.msgpack.Ext, st.integers(0, 9), inside)
    return st.one_of(values, st.lists(extended, max_size=3)).map(msgspec.msgpack.encode)


THREAD = "agent:langgraph:thread-trip-1-5f1695585c4d"


def into(log: HostLog, where: Path | str, agent: str | None = None, **options: Any) -> ImportReport:
    return import_state(read_framework("langgraph", str(where), agent), log, clock=lambda: NOW, **options)


def said(log: PortableLog, key: str) -> list[tuple[str, str]]:
    """Return what was said in a session, by whom."""
    messages = [
        recorded.event.message
        for recorded in log.stream(f"session:{key}")
        if isinstance(recorded.event, facts.MessageRecorded)
    ]
    return [(each.role, facts.text_of(each) or " ".join(_calls(each))) for each in messages]


def _calls(message: facts.Message) -> list[str]:
    return [
        f"{each.name}{each.arguments}" for each in message.content if isinstance(each, facts.ToolCallBlock)
    ]


def lines(log: PortableLog, key: str) -> list[tuple[str, Any]]:
    found = [each.event for each in log.stream(f"session:{key}")]
    return [
        (each.kind, msgspec.json.decode(each.source))
        for each in found
        if isinstance(each, facts.LineImported)
    ]


BRANCH = [
    ("user", "weather in Paris?"),
    ("assistant", 'weather{"city":"Rome"}'),
    ("toolResult", "rain in Rome"),
    ("assistant", "It is rain in Rome"),
    ("assistant", "inner says It is rain in Rome"),
]


@pytest.mark.clause("IN-1", "IN-2")
def test_a_thread_becomes_a_session_of_its_newest_branch_with_its_tools_and_its_subgraphs(
    log: PortableLog, tmp_path: Path
) -> None:
    report = into(log, recorded("langgraph", tmp_path))

    opened = [each.event for each in log.all() if isinstance(each.event, facts.SessionOpened)]
    children = [each for each in opened if each.spawned_by is not None]
    spawns = [each.event for each in log.all() if isinstance(each.event, facts.SpawnAccepted)]
    assert (report.sessions, report.spawns, report.skipped) == (3, 2, ())
    assert said(log, THREAD)[:1] == [("user", "weather in Rome?")]
    assert said(log, THREAD)[-5:] == BRANCH
    assert [each.original_key for each in opened if each.spawned_by is None] == [langgraph_graph.THREAD]
    assert {each.spawned_by for each in children} == {THREAD}
    assert [said(log, each.key)[-1] for each in children] == [
        ("assistant", "inner says It is rain in Rome")
    ] * 2
    assert all(each.inferred and each.evidence for each in spawns)
    assert sorted(each.task or "" for each in spawns) == ["weather in Paris?", "weather in Rome?"]


@pytest.mark.clause("IN-2")
def test_what_a_graph_asked_of_a_person_and_a_branch_that_was_given_up_are_kept_and_said(
    log: PortableLog, tmp_path: Path
) -> None:
    report = into(log, recorded("langgraph", tmp_path))

    kept = lines(log, THREAD)
    asked = [line["value"] for kind, line in kept if kind == "interrupt"]
    answers = [line["value"] for kind, line in kept if kind == "resume"]
    notes = "; ".join(note.what for note in report.notes)
    assert {each[0]["value"]["question"] for each in asked} == {"ok?"}
    assert answers == [["fine"]]
    assert any(kind == "abandoned:assistant" for kind, _ in kept)
    assert any(kind == "checkpoint" and line["metadata"]["source"] == "update" for kind, line in kept)
    assert "branch that was given up" in notes
    assert "stands at an interrupt, which nobody answered" in notes


@pytest.mark.clause("IN-2")
def test_tokens_and_money_of_an_answer_are_counted_once_whichever_states_repeat_it(
    log: PortableLog, tmp_path: Path
) -> None:
    into(log, recorded("langgraph", tmp_path))

    used = [
        each.event.message.usage
        for each in log.all()
        if isinstance(each.event, facts.MessageRecorded) and each.event.message.usage is not None
    ]
    assert [(each.input, each.output, each.cache_read, each.cost_micros) for each in used] == [
        (10, 3, 2, None),
        (20, 4, 0, 250_000),
    ]


@pytest.mark.clause("IN-1")
def test_a_second_import_adds_only_what_is_new_and_another_database_is_kept_beside(
    log: PortableLog, tmp_path: Path
) -> None:
    whole = recorded("langgraph", tmp_path)
    part = tmp_path / "part.db"
    part.write_bytes(whole.read_bytes())
    other = tmp_path / "other.db"
    other.write_bytes(whole.read_bytes())
    with sqlite3.connect(part) as database:
        half = database.execute(
            "SELECT checkpoint_id FROM checkpoints ORDER BY 1 LIMIT 1 OFFSET 4"
        ).fetchone()[0]
        database.execute("DELETE FROM checkpoints WHERE checkpoint_id > ?", (half,))
    database.close()
    _of_another_origin(other)

    first, grown, again = into(log, part), into(log, whole), into(log, whole)
    beside = into(log, other)

    assert first.appended > 0
    assert grown.appended > first.appended
    assert (again.appended, again.already_imported) == (0, True)
    assert said(log, THREAD)[-4:] == BRANCH[-4:]
    assert THREAD in {each.original for each in beside.renamed}
    with pytest.raises(ImportFailed, match="has other sessions"):
        into(log, other, on_taken="refuse")


@pytest.mark.clause("IN-2")
def test_a_branch_that_is_given_up_between_two_imports_is_named(log: PortableLog, tmp_path: Path) -> None:
    whole = recorded("langgraph", tmp_path)
    before = tmp_path / "before.db"
    before.write_bytes(whole.read_bytes())
    with sqlite3.connect(before) as database:
        sql = "SELECT checkpoint_id FROM checkpoints WHERE json_extract(CAST(metadata AS TEXT), '$.source') = 'update'"
        (fork,) = database.execute(sql).fetchone()
        database.execute("DELETE FROM checkpoints WHERE checkpoint_id >= ?", (fork,))
    database.close()

    into(log, before)
    grown, again = into(log, whole), into(log, whole)

    assert "given up since they were imported" in "; ".join(note.what for note in grown.notes)
    assert again.appended == 0


def _of_another_origin(path: Path) -> None:
    """Give the first message of a thread, and every copy of it, another id: as another run of the same graph would have."""
    with sqlite3.connect(path) as database:
        sql = "SELECT checkpoint FROM checkpoints WHERE checkpoint_ns = '' ORDER BY checkpoint_id LIMIT 1 OFFSET 1"
        (old,) = database.execute(sql).fetchone()
        at = old.rindex(b"\xa2id\xd9$") + 5
        name = old[at : at + 36]
        for rowid, blob in database.execute("SELECT rowid, checkpoint FROM checkpoints").fetchall():
            database.execute(
                "UPDATE checkpoints SET checkpoint = ? WHERE rowid = ?",
                (blob.replace(name, name[::-1]), rowid),
            )
    database.close()


@pytest.mark.clause("IN-1")
@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ("UPDATE checkpoints SET type = 'pickle' WHERE rowid = 3", "pickled"),
        ("UPDATE checkpoints SET type = 'msgpack+aes' WHERE rowid = 3", "encrypted"),
        ("UPDATE checkpoints SET type = 'other' WHERE rowid = 3", "unknown form"),
        ("UPDATE checkpoints SET checkpoint = substr(checkpoint, 1, 90) WHERE rowid = 3", "no msgpack"),
        pytest.param(
            "UPDATE checkpoints SET checkpoint = zeroblob(70000000) WHERE rowid = 3",
            "longer than",
            marks=pytest.mark.ci,
        ),
        ("UPDATE checkpoints SET checkpoint = 7 WHERE rowid = 3", "int where bytes"),
        ("UPDATE checkpoints SET metadata = x'ff00' WHERE rowid = 3", "metadata: no JSON"),
        ("UPDATE writes SET type = 'pickle' WHERE channel = '__interrupt__'", "__interrupt__: pickled"),
    ],
)
def test_a_damaged_checkpoint_is_left_out_with_its_reason_and_all_others_are_imported(
    log: PortableLog, tmp_path: Path, damage: str, reason: str
) -> None:
    path = recorded("langgraph", tmp_path)
    with sqlite3.connect(path) as database:
        database.execute(damage)
    database.close()

    report = into(log, path)

    assert reason in "; ".join(each.reason for each in report.skipped)
    assert said(log, THREAD)[-5:] == BRANCH


@pytest.mark.clause("IN-1")
def test_what_is_no_database_of_the_framework_is_refused_in_words(log: PortableLog, tmp_path: Path) -> None:
    text, empty, agents = tmp_path / "text.db", tmp_path / "empty.db", recorded("agents-plain", tmp_path)
    text.write_text("not a database at all, but as long as one might be" * 40)
    with sqlite3.connect(empty) as database:
        database.execute("CREATE TABLE checkpoints (thread_id, checkpoint_ns)")
    database.close()

    for path, reason in {
        text: "file is not a database",
        empty: "its table checkpoints has no checkpoint",
        agents: "no table checkpoints",
        tmp_path: "is no file",
        tmp_path / "gone.db": "can't be read",
    }.items():
        with pytest.raises(ImportFailed, match=reason):
            into(log, path)
    with pytest.raises(ImportFailed, match="is no agent's id"):
        into(log, recorded("langgraph", tmp_path), agent="No Agent")
    with pytest.raises(ImportFailed, match="langgraph, openai-agents"):
        read_framework("crewai", str(text))
    assert log.head() == 0


@pytest.mark.clause("IN-2")
@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("msgpack", b"\x91" * 500 + b"\x90"),
        ("msgpack", b"\xc7\x02\x63ab"),
        ("msgpack", b"\xc7\x03\x05\x92\x01\x02"),
        ("msgpack", b"\x81\x80\x01"),
        ("json", b"[" * 2_000),
        ("json", b"\xff"),
        ("pickle", b"cos\nsystem\n(S'true'\ntR."),
    ],
)
def test_hostile_values_are_refused_and_nothing_is_constructed(kind: str, content: bytes) -> None:
    with pytest.raises(Undecodable):
        Decoder().value(kind, content)


@pytest.mark.clause("IN-2")
def test_checkpoints_of_the_older_form_are_read_like_those_of_today() -> None:
    old = {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", "HumanMessage"],
        "kwargs": {"content": "hi", "id": "m1"},
    }

    value = Decoder().value("json", msgspec.json.encode({"channel_values": {"messages": [old]}}))

    assert value["channel_values"]["messages"] == [{"type": "human", "content": "hi", "id": "m1"}]


@pytest.mark.clause("IN-2")
def test_states_that_are_kept_as_changes_are_put_together(log: PortableLog, tmp_path: Path) -> None:
    report = into(log, recorded("langgraph-deltas", tmp_path))

    spoken = [text for _, text in said(log, "agent:langgraph:thread-deltas")]
    assert report.skipped == ()
    assert spoken == [
        text for number in range(6) for text in (f"question {number}", f"answer to question {number}")
    ]


@pytest.mark.ci
@pytest.mark.clause("IN-2")
@given(st.sampled_from(["msgpack", "json"]), st.binary(max_size=200) | _packed())
def test_any_bytes_are_json_or_refused(kind: str, content: bytes) -> None:
    try:
        value = Decoder().value(kind, content)
    except Undecodable:
        return
    assert msgspec.json.decode(msgspec.json.encode(value)) is not None or value is None


def real_sqlite(tmp_path: Path) -> Callable[[Callable[[Any], None]], str]:
    savers = pytest.importorskip("langgraph.checkpoint.sqlite", reason="install the group frameworks")

    def play(playing: Callable[[Any], None]) -> str:
        path = tmp_path / "real.db"
        with savers.SqliteSaver.from_conn_string(str(path)) as saver:
            playing(saver)
        return str(path)

    return play


@pytest.mark.ci
@pytest.mark.clause("IN-2")
@pytest.mark.filterwarnings("ignore")
def test_the_library_of_today_is_read_from_a_file(log: PortableLog, tmp_path: Path) -> None:
    where = real_sqlite(tmp_path)(langgraph_graph.play)

    report = into(log, where)

    assert report.skipped == ()
    assert said(log, THREAD)[-5:] == BRANCH


@pytest.mark.postgres
@pytest.mark.clause("IN-1", "IN-2")
@pytest.mark.filterwarnings("ignore")
def test_the_library_of_today_is_read_from_a_server(log: PortableLog, postgres: Server) -> None:
    savers = pytest.importorskip("langgraph.checkpoint.postgres", reason="install the group frameworks")
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE langgraph")
    url = postgres.url.replace("/postgres?", "/langgraph?")
    with savers.PostgresSaver.from_conn_string(url) as saver:
        saver.setup()
        langgraph_graph.play(saver)

    report, again = into(log, url), into(log, url)

    assert report.skipped == ()
    assert said(log, THREAD)[-5:] == BRANCH
    assert again.already_imported
    with pytest.raises(ImportFailed, match="does not exist") as failed:
        into(log, url.replace("/langgraph?", "/no_such_database?password=secret&"))
    assert "secret" not in str(failed.value)
