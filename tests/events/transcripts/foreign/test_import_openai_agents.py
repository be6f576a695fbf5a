"""Sessions of the OpenAI Agents SDK become sessions, whichever class kept them (IN-3)."""

import sqlite3
from pathlib import Path
from typing import Any

import msgspec
import pytest

from intersession_events import facts
from intersession_events.basics.errors import ImportFailed
from intersession_events.log.log import HostLog
from intersession_events.stores.portable.log import PortableLog
from intersession_events.transcripts.foreign.importing import read_framework
from intersession_events.transcripts.openclaw.importing import import_state
from intersession_events.transcripts.openclaw.report import ImportReport
from support.foreign import agents_sdk
from support.foreign.recording import RECORDED, recorded
from support.postgres.server import Server

NOW = 1_800_000_000_000


def into(log: HostLog, path: Path | str, agent: str | None = None, **options: Any) -> ImportReport:
    return import_state(read_framework("openai-agents", str(path), agent), log, clock=lambda: NOW, **options)


def messages(log: PortableLog) -> list[facts.Message]:
    return [each.event.message for each in log.all() if isinstance(each.event, facts.MessageRecorded)]


@pytest.mark.clause("IN-3")
@pytest.mark.parametrize(
    ("name", "key"),
    [("agents-plain", "session-user-42-d4e6077439e5"), ("agents-sqlalchemy", "session-alchemy")],
)
def test_a_session_has_its_messages_its_calls_and_their_results(
    log: PortableLog, tmp_path: Path, name: str, key: str
) -> None:
    report = into(log, recorded(name, tmp_path))
    again = into(log, recorded(name, tmp_path))

    question, call, result, answer = messages(log)
    assert list(log.streams("session:")) == [f"session:agent:openai-agents:{key}"]
    assert (report.skipped, again.already_imported) == ((), True)
    assert (question.role, question.content) == ("user", "weather?")
    assert call.content == (
        facts.ToolCallBlock(id=result.tool_call_id or "", name="weather", arguments='{"city":"Rome"}'),
    )
    assert (result.role, result.tool_name, result.content) == ("toolResult", "weather", "rain in Rome")
    assert facts.text_of(answer) == "It is rain in Rome"


@pytest.mark.clause("IN-3")
def test_the_branch_that_was_written_to_last_is_what_was_said_and_turns_have_their_usage(
    log: PortableLog, tmp_path: Path
) -> None:
    report = into(log, recorded("agents-advanced", tmp_path))

    asked = [each.content for each in messages(log) if each.role == "user"]
    used = [each.usage.tokens for each in messages(log) if each.usage is not None]
    assert asked == ["weather?", "other?"]
    assert used == [28, 28]
    assert report.lines == {"abandoned:assistant": 2, "abandoned:toolResult": 1, "abandoned:user": 1}
    assert "other branches" in report.notes[0].what


@pytest.mark.clause("IN-1", "IN-3")
def test_items_that_are_no_messages_are_kept_and_damaged_ones_are_named(
    log: PortableLog, tmp_path: Path
) -> None:
    path = recorded("agents-plain", tmp_path)
    picture = {"type": "input_image", "image_url": "data:image/png;base64,aGk="}
    items = [
        {"role": "user", "content": [{"type": "input_text", "text": "look"}, picture]},
        {"type": "reasoning", "id": "r1", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "web_search_call", "id": "w1", "status": "completed"},
        {"__enc__": 1, "v": 1, "kid": "k", "payload": "x"},
    ]
    with sqlite3.connect(path) as database:
        sql = "INSERT INTO agent_messages (session_id, message_data) VALUES ('User 42', ?)"
        database.executemany(sql, [(msgspec.json.encode(item).decode(),) for item in items])
        database.executemany(sql, [("{broken",), (b"\xff\xfe",), (7,), ("[" * 9_000,)])
    database.close()

    report = into(log, path)

    look, thought = messages(log)[-2:]
    assert [type(block) for block in look.content] == [facts.TextBlock, facts.ImageBlock]
    assert [type(block) for block in thought.content] == [facts.ThinkingBlock]
    assert report.lines == {"encrypted": 1, "web_search_call": 1}
    assert [each.line for each in report.skipped] == [9, 10, 11, 12]


@pytest.mark.clause("IN-1")
def test_a_database_without_sessions_is_refused(log: PortableLog, tmp_path: Path) -> None:
    path = recorded("agents-plain", tmp_path)
    with sqlite3.connect(path) as database:
        database.executescript("DELETE FROM agent_messages; DELETE FROM agent_sessions;")
    database.close()

    with pytest.raises(ImportFailed, match="no sessions in it"):
        into(log, path)
    with pytest.raises(ImportFailed, match="no tables of sessions"):
        into(log, recorded("langgraph", tmp_path))


@pytest.mark.ci
@pytest.mark.clause("IN-3")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["agents-plain", "agents-advanced", "agents-sqlalchemy"])
def test_the_library_of_today_is_read(log: PortableLog, tmp_path: Path, name: str) -> None:
    pytest.importorskip("agents.memory", reason="install the group frameworks")
    RECORDED[name](tmp_path / "real.db")

    report = into(log, tmp_path / "real.db")

    assert report.skipped == ()
    assert facts.text_of(messages(log)[-1]) == "It is rain in Rome"


@pytest.mark.postgres
@pytest.mark.clause("IN-1", "IN-3")
@pytest.mark.filterwarnings("ignore")
def test_the_library_of_today_is_read_from_a_server(log: PortableLog, postgres: Server) -> None:
    pytest.importorskip("agents.memory", reason="install the group frameworks")
    url = postgres.url
    agents_sdk.play_sqlalchemy_at(url.replace("postgresql://", "postgresql+psycopg://"))

    report, again = into(log, url), into(log, url)

    assert (report.skipped, again.already_imported) == ((), True)
    assert facts.text_of(messages(log)[-1]) == "It is rain in Rome"


@pytest.mark.clause("IN-3", "ERASE-4")
def test_no_id_of_a_line_is_made_of_its_words(tmp_path: Path) -> None:
    path = recorded("agents-plain", tmp_path)
    before = [file.lines for file in read_framework("openai-agents", str(path), None).files]
    with sqlite3.connect(path) as rows:
        rows.execute("UPDATE agent_messages SET message_data = replace(message_data, 'rain', 'snow')")
    after = [file.lines for file in read_framework("openai-agents", str(path), None).files]

    assert before != after
    assert named(before) == named(after)


def named(files: list[tuple[tuple[int, bytes], ...]]) -> list[list[str]]:
    return [[msgspec.json.decode(line)["id"] for _, line in lines] for lines in files]
