"""The transcripts beside the log."""

import os
import shutil
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intersession_actors.rules.config.config import Config
from intersession_events.basics.errors import StoreUnavailable
from intersession_events.facts import Message, MessageRecorded, TextBlock
from intersession_events.log.recorded import Draft, Recorded, StreamAppend
from intersession_events.stores.opened import open_log
from intersession_events.stores.portable.log import PortableLog
from intersession_events.stores.sqlite.log import SqliteLog
from intersession_projections.copies.transcripts.files import file_name, mirror_directory
from intersession_projections.copies.transcripts.mirror import transcript_mirror
from support.busy_session import STEPS, Busy
from support.plain_log import PlainLog
from support.rows import edited

STREAM = "session:agent:main:main"


def said(log: PortableLog, number: int, text: str) -> None:
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

    transcript_mirror(log, tmp_path / "transcripts").catch_up()

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
    transcript_mirror(log, directory).catch_up()
    whole = (directory / "s1.jsonl").read_bytes()
    (directory / "s1.jsonl").write_bytes(whole[:-10])
    (directory / ".mirror.json").write_bytes(msgspec.json.encode({"logId": log.log_id, "position": 0}))

    transcript_mirror(log, directory).catch_up()

    log.close()
    assert (directory / "s1.jsonl").read_bytes() == whole


def test_transcripts_of_a_log_that_is_gone_are_put_aside_and_not_mixed(tmp_path: Path) -> None:
    directory = tmp_path / "transcripts"
    for text in ("from a", "from b", "from c"):
        log = open_log(str(tmp_path / "log.db"))
        said(log, 1, text)
        transcript_mirror(log, directory).catch_up()
        log.close()
        (tmp_path / "log.db").unlink()
        if text == "from a":
            (directory / ".mirror.json").write_bytes(b'{"logId": "../../elsewhere", "position": 1}')

    assert "from c" in str(lines(directory))
    assert "from b" not in str(lines(directory))
    assert len(list(tmp_path.glob("transcripts.*"))) == 2
    assert list(tmp_path.glob("transcripts.unknown"))


@pytest.mark.clause("LIST-5")
def test_two_logs_in_one_folder_keep_to_themselves(tmp_path: Path) -> None:
    """B8: each took the other's directory away while it ran."""
    with open_log(str(tmp_path / "a.db")) as one, open_log(str(tmp_path / "b.db")) as other:
        directories = [mirror_directory(log, wanted=True) for log in (one, other)]
        mirrors = [
            transcript_mirror(log, found)
            for log, found in zip((one, other), directories, strict=True)
            if found
        ]
        for number in (1, 2):
            for log, name, mirror in zip((one, other), ("a", "b"), mirrors, strict=True):
                said(log, number, f"{number} from {name}")
                mirror.catch_up()

    assert [each.name for each in sorted(tmp_path.glob("*.transcripts*"))] == [
        "a.db.transcripts",
        "b.db.transcripts",
    ]
    for name in ("a", "b"):
        shown = lines(tmp_path / f"{name}.db.transcripts")
        assert [f"{number} from {name}" in str(line) for number, line in enumerate(shown)][1:] == [True, True]


@pytest.mark.clause("LIST-5")
def test_there_are_none_unless_asked_for(tmp_path: Path) -> None:
    with open_log(str(tmp_path / "log.db")) as log, open_log(":memory:") as memory:
        assert mirror_directory(log, wanted=False) is None
        assert mirror_directory(memory, wanted=True) is None
    assert not Config().transcripts.mirror


@pytest.mark.parametrize("cut", [1, 10, 3_000_000])
def test_a_line_of_megabytes_is_found_again_and_completed_once(tmp_path: Path, cut: int) -> None:
    """B8: lines over 1 MiB were doubled or glued together after a crash."""
    directory = tmp_path / "transcripts"
    with open_log(str(tmp_path / "log.db")) as log:
        for number, text in enumerate(["small", "x" * 3_200_000, "y" * 2_000_000], start=1):
            said(log, number, text)
            transcript_mirror(log, directory).catch_up()
        whole = (directory / "s1.jsonl").read_bytes()
        (directory / ".mirror.json").write_bytes(msgspec.json.encode({"logId": log.log_id, "position": 0}))
        transcript_mirror(log, directory).catch_up()
        assert (directory / "s1.jsonl").read_bytes() == whole

        (directory / "s1.jsonl").write_bytes(whole[:-cut])
        (directory / ".mirror.json").write_bytes(msgspec.json.encode({"logId": log.log_id, "position": 0}))
        transcript_mirror(log, directory).catch_up()

        assert (directory / "s1.jsonl").read_bytes() == whole


def test_what_somebody_wrote_into_a_file_doubles_nothing(tmp_path: Path) -> None:
    with open_log(str(tmp_path / "log.db")) as log:
        said(log, 1, "one")
        transcript_mirror(log, tmp_path / "transcripts").catch_up()
        with (tmp_path / "transcripts" / "s1.jsonl").open("a") as file:
            file.write("no json\n" + "[" * 100_000 + "\n")
        (tmp_path / "transcripts" / ".mirror.json").unlink()

        transcript_mirror(log, tmp_path / "transcripts").catch_up()

        assert (tmp_path / "transcripts" / "s1.jsonl").read_bytes().count(b'"m1"') == 1


def test_a_damaged_row_is_left_out_and_the_others_are_written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """B8: one bad row stopped all transcripts."""
    path = tmp_path / "log.db"
    with open_log(str(path)) as log:
        for number in range(1, 6):
            said(log, number, f"text {number}")
    with edited(path) as rows:
        rows.execute("UPDATE stored_events SET state=CAST('{}' AS BLOB) WHERE rowid IN (1, 3)")
    with open_log(str(path), read_only=True) as log:
        mirror = transcript_mirror(log, tmp_path / "transcripts")

        assert mirror.catch_up() == 5
        assert mirror.catch_up() == 5

    assert [line["id"] for line in lines(tmp_path / "transcripts")[1:]] == ["m2", "m4", "m5"]
    warned = [each.message for each in caplog.records if "is in no view beside it" in each.message]
    assert [message.split()[1] for message in warned] == ["1", "3"]


def a_link(path: Path, victim: Path) -> None:
    path.symlink_to(victim)


def a_dangling_link(path: Path, victim: Path) -> None:
    path.symlink_to(victim.with_name("not-there"))


def a_pipe(path: Path, _victim: Path) -> None:
    os.mkfifo(path)


def a_directory(path: Path, _victim: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize("planted", [a_link, a_dangling_link, a_pipe, a_directory])
@pytest.mark.parametrize("name", ["s1.jsonl", ".mirror.json", ".mirror.json.new"])
def test_nothing_is_written_through_what_is_no_file(
    tmp_path: Path, name: str, planted: Callable[[Path, Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    """B8: a file was truncated through a symbolic link."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"one line\nand a half")
    directory = tmp_path / "transcripts"
    directory.mkdir()
    planted(directory / name, victim)
    with open_log(str(tmp_path / "log.db")) as log:
        said(log, 1, "hello")
        other = MessageRecorded(
            session_id="s2", message=Message(id="m", role="user", content="x", timestamp=1)
        )
        draft = Draft(event=other, id="other", time=1)
        log.append_now([StreamAppend(stream="session:agent:ops:main", expected=0, drafts=(draft,))])
        mirror = transcript_mirror(log, directory)
        mirror.start()
        mirror.stop()

    assert victim.read_bytes() == b"one line\nand a half"
    assert not victim.with_name("not-there").exists()
    if name == "s1.jsonl":
        assert (directory / "s2.jsonl").exists()
        assert "the transcript of s1 can't be written" in caplog.text


def test_a_directory_that_is_a_link_is_not_followed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "transcripts").symlink_to(tmp_path / "elsewhere")
    with open_log(str(tmp_path / "log.db")) as log:
        said(log, 1, "hello")
        mirror = transcript_mirror(log, tmp_path / "transcripts")
        mirror.start()
        mirror.stop()

    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert "still at position 0" in caplog.text


def test_files_that_somebody_took_away_are_written_again(tmp_path: Path) -> None:
    with open_log(str(tmp_path / "log.db")) as log:
        said(log, 1, "one")
        mirror = transcript_mirror(log, tmp_path / "transcripts")
        mirror.catch_up()
        shutil.rmtree(tmp_path / "transcripts")
        said(log, 2, "two")

        mirror.catch_up()

        assert [line["id"] for line in lines(tmp_path / "transcripts")] == ["s1", "m1", "m2"]


@pytest.mark.parametrize(
    "session_id", ["../out", "a/b", "..", ".mirror.json", "x" * 500, "", "nul\0", "tab\tä"]
)
def test_an_id_that_is_no_name_of_a_file_gets_one(tmp_path: Path, session_id: str) -> None:
    with open_log(str(tmp_path / "log.db")) as log:
        event = MessageRecorded(
            session_id=session_id, message=Message(id="m", role="user", content="x", timestamp=1)
        )
        draft = Draft(event=event, id="e", time=1)
        log.append_now([StreamAppend(stream=STREAM, expected=0, drafts=(draft,))])
        transcript_mirror(log, tmp_path / "transcripts").catch_up()

    assert sorted(path.name for path in (tmp_path / "transcripts").iterdir()) == sorted(
        [".mirror.json", file_name(session_id)]
    )
    assert not (tmp_path / "out.jsonl").exists()


def test_ids_of_the_usual_form_are_the_names_of_their_files() -> None:
    for usual in ("f47483ee-bbbe-4e1c-a2af-c9cdfabd1d02", "s-agent", "a.b_c", "topic-1~2"):
        assert file_name(usual) == f"{usual}.jsonl"


def test_a_mirror_follows_the_log_until_it_is_stopped(tmp_path: Path) -> None:
    log = open_log(str(tmp_path / "log.db"))
    mirror = transcript_mirror(log, tmp_path / "transcripts")
    mirror.start()
    said(log, 1, "live")

    mirror.stop()

    log.close()
    assert "live" in str(lines(tmp_path / "transcripts"))


@given(steps=st.lists(st.sampled_from([*STEPS, None]), max_size=30))
@pytest.mark.clause("LIST-5", "HIST-3")
def test_lines_stand_in_the_order_in_which_the_agent_took_the_messages(
    steps: list[Callable[[Busy], None] | None],
) -> None:
    """Whenever the mirror is stopped and begun again (None): nothing is lost, doubled or moved."""
    busy, written = Busy(), 0
    with TemporaryDirectory() as folder, SqliteLog(":memory:") as log:
        directory = Path(folder) / "transcripts"
        for step in [*steps, None]:
            if step is not None:
                step(busy)
                continue
            drafts = tuple(
                Draft(event=event, id=f"e{number}", time=number)
                for number, event in enumerate(busy.events[written:], start=written + 1)
            )
            if drafts:
                log.append_now([StreamAppend(stream=STREAM, expected=written, drafts=drafts)])
            written = len(busy.events)
            transcript_mirror(log, directory).catch_up()

        path = directory / "s.jsonl"
        shown = (
            [msgspec.json.decode(line) for line in path.read_bytes().splitlines()[1:]]
            if path.exists()
            else []
        )

    assert [line["id"] for line in shown] == busy.taken
    assert all(line["message"].get("runId") for line in shown if line["message"]["role"] == "assistant")


class Unread(PlainLog):
    """A log that says when it is read as a whole."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[int] = []

    def all(
        self,
        *,
        after: int = 0,
        to: int | None = None,
        limit: int | None = None,
        topics: Collection[str] = (),
    ) -> Iterator[Recorded]:
        self.reads.append(after)
        return super().all(after=after, to=to, limit=limit, topics=topics)


def put(log: PlainLog, number: int) -> None:
    message = Message(id=f"m{number}", role="user", content=(TextBlock(text="hi"),), timestamp=number)
    log.put(STREAM, MessageRecorded(session_id="s1", message=message), time=number)


def test_a_mirror_goes_on_when_the_log_can_be_read_again(tmp_path: Path) -> None:
    log = PlainLog()
    put(log, 1)
    put(log, 2)
    log.unreadable[2] = StoreUnavailable("the store is away")
    mirror = transcript_mirror(log, tmp_path)
    mirror.start()
    mirror.wait(1, timeout=20)
    del log.unreadable[2]
    put(log, 3)
    mirror.wait(3, timeout=20)
    mirror.stop()

    assert [line["id"] for line in lines(tmp_path)[1:]] == ["m1", "m2", "m3"]


def test_who_waits_for_a_mirror_does_not_touch_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who waited looked into the files, and put the place back to 0 that the first line had just moved."""
    log = PlainLog()
    mirror = transcript_mirror(log, tmp_path)
    mirror.start()

    def looked() -> int:
        raise AssertionError("who waits looked into the files")

    monkeypatch.setattr(mirror.view, "reached", looked)
    put(log, 1)
    mirror.wait(1, timeout=20)
    monkeypatch.undo()
    mirror.stop()

    assert [line["id"] for line in lines(tmp_path)[1:]] == ["m1"]


def test_what_is_committed_is_written_from_memory_and_what_was_missed_from_the_log(tmp_path: Path) -> None:
    """Before: the mirror read back and proved each event anew."""
    log = Unread()
    put(log, 1)
    mirror = transcript_mirror(log, tmp_path)
    mirror.start()
    mirror.wait(1, timeout=20)
    reads = len(log.reads)
    put(log, 2)
    mirror.wait(2, timeout=20)
    read_for_what_came = len(log.reads) - reads
    mirror.stop()
    put(log, 3)  # nobody told it
    mirror.start()
    mirror.wait(3, timeout=20)
    put(log, 4)
    mirror.stop()

    assert [line["id"] for line in lines(tmp_path)[1:]] == ["m1", "m2", "m3", "m4"]
    assert (read_for_what_came, len(log.reads) - reads) == (0, 1)
