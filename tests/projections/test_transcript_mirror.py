"""The transcripts beside the log."""

from pathlib import Path

import msgspec
import pytest

from intersession_events.facts import Message, MessageRecorded, TextBlock
from intersession_events.log import Draft, StreamAppend
from intersession_events.stores import SqliteLog, open_log
from intersession_projections.transcript_mirror import TranscriptMirror

STREAM = "session:agent:main:main"


def said(log: SqliteLog, number: int, text: str) -> None:
    message = Message(id=f"m{number}", role="user", content=(TextBlock(text=text),), timestamp=1_000 + number)
    draft = Draft(
        event=MessageRecorded(session_id="s1", message=message), id=f"e{number}", time=1_000 + number
    )
    log.append_now([StreamAppend(stream=STREAM, expected=number - 1, drafts=(draft,))])


def lines(directory: Path) -> list[dict[str, object]]:
    return [msgspec.json.decode(line) for line in (directory / "s1.jsonl").read_bytes().splitlines()]


@pytest.mark.clause("LIST-5")
def test_each_message_is_a_line_behind_the_one_before_it(tmp_path: Path) -> None:
    log = open_log(str(tmp_path / "log.db"))
    said(log, 1, "hello")
    said(log, 2, "again")

    TranscriptMirror(log, tmp_path / "transcripts").catch_up()

    header, first, second = lines(tmp_path / "transcripts")
    log.close()
    assert (header["type"], header["version"], header["id"]) == ("session", 3, "s1")
    assert first["message"] == {
        "role": "user",
        "content": [{"type": "text", "text": "hello"}],
        "timestamp": 1_001,
    }
    assert (first["parentId"], second["parentId"]) == (None, "m1")


def test_after_a_crash_nothing_stands_twice_and_a_torn_line_is_written_again(tmp_path: Path) -> None:
    directory = tmp_path / "transcripts"
    log = open_log(str(tmp_path / "log.db"))
    said(log, 1, "one")
    said(log, 2, "two")
    TranscriptMirror(log, directory).catch_up()
    whole = (directory / "s1.jsonl").read_bytes()
    (directory / "s1.jsonl").write_bytes(whole[:-10])
    (directory / ".mirror.json").write_bytes(msgspec.json.encode({"logId": log.log_id, "position": 0}))

    TranscriptMirror(log, directory).catch_up()

    log.close()
    assert (directory / "s1.jsonl").read_bytes() == whole


def test_transcripts_of_another_log_are_put_aside_and_not_mixed(tmp_path: Path) -> None:
    directory = tmp_path / "transcripts"
    for name, text in (("a.db", "from a"), ("b.db", "from b")):
        log = open_log(str(tmp_path / name))
        said(log, 1, text)
        TranscriptMirror(log, directory).catch_up()
        log.close()

    assert "from b" in str(lines(directory))
    assert "from a" not in str(lines(directory))
    assert len(list(tmp_path.glob("transcripts.*"))) == 1


def test_a_mirror_follows_the_log_until_it_is_stopped(tmp_path: Path) -> None:
    log = open_log(str(tmp_path / "log.db"))
    mirror = TranscriptMirror(log, tmp_path / "transcripts")
    mirror.start()
    said(log, 1, "live")

    mirror.stop()

    log.close()
    assert "live" in str(lines(tmp_path / "transcripts"))
