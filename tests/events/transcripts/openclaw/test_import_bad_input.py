"""Whatever lies in a directory, an import says what is wrong with it, and reads the rest (IMP-1)."""

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from intersession_events.basics.errors import ImportFailed
from intersession_events.facts import LineImported, MessageRecorded, SessionImported, SessionOpened, registry
from intersession_events.stores.opened import open_log
from intersession_events.transcripts.openclaw.importing import import_openclaw
from intersession_events.transcripts.openclaw.reading.files import read_state
from intersession_events.transcripts.openclaw.reading.foreign_json import Unreadable, read_object
from intersession_events.transcripts.openclaw.report import Skipped
from support.openclaw.samples import all_events, header, message, planned, said, session_of, write_state

PATH = "agents/main/sessions/s-1.jsonl"


def test_what_is_no_directory_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")

    for path in (file, tmp_path / "nowhere"):
        with pytest.raises(ImportFailed, match="expected an OpenClaw state directory"):
            read_state(path)


def test_a_directory_without_sessions_is_refused(tmp_path: Path) -> None:
    (tmp_path / "agents" / "main" / "sessions").mkdir(parents=True)

    with pytest.raises(ImportFailed, match="has no sessions in it; expected"):
        read_state(tmp_path)


@pytest.mark.clause("IMP-1")
@pytest.mark.parametrize(
    ("line", "reason", "kept"),
    [
        (b'{"type":"message"', "no JSON", True),
        (b'{"a":NaN}', "no JSON", True),
        (b'{"a":1e999}', "no JSON", True),
        (b'{"a":' + b"9" * 6000 + b"}", "no JSON", True),
        (b'{"a":"\\ud800"}', "no JSON", True),
        (b"[1, 2]", "JSON, but no object", True),
        (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deep", True),
        (b'{"a":"\xff"}', "not UTF-8 at byte 7", False),
        (b"\0\0\0\0", "no JSON", False),
    ],
)
def test_a_line_that_is_no_entry_is_reported_and_kept_where_it_is_text(
    tmp_path: Path, line: bytes, reason: str, kept: bool
) -> None:
    found = planned(write_state(tmp_path, [header(), line, message("a1", said("hello"))]))

    [skipped] = found.report.skipped
    assert (skipped.file, skipped.line, skipped.kept) == (PATH, 2, kept)
    assert skipped.reason.startswith(reason)
    unreadable = [event.source for event in all_events(found, LineImported) if event.kind == "unreadable"]
    assert unreadable == ([line.decode()] if kept else [])
    assert [event.message.content for event in all_events(found, MessageRecorded)] == ["hello"]


def test_neighbouring_lines_that_are_wrong_in_one_way_are_one_line_of_the_report(tmp_path: Path) -> None:
    found = planned(
        write_state(tmp_path, [header(), b"\xff", b"\xff", b"\xff", message("a1", said("x")), b"\xff"])
    )

    reason = "not UTF-8 at byte 1"
    assert found.report.skipped == (
        Skipped(file=PATH, line=2, last_line=4, reason=reason),
        Skipped(file=PATH, line=6, last_line=6, reason=reason),
    )
    assert found.report.skipped_lines == 4


def test_a_line_that_is_too_long_is_passed_over(tmp_path: Path) -> None:
    long = b'{"type":"message","message":"' + b"x" * (2 * 16_777_216) + b'"}'
    found = planned(write_state(tmp_path, [header(), long, message("a1", said("hello"))]))

    [skipped] = found.report.skipped
    assert (skipped.line, skipped.reason) == (2, "longer than 16777216 bytes")
    assert len(all_events(found, MessageRecorded)) == 1


def test_a_second_line_of_one_id_is_no_message_but_kept_where_it_differs(tmp_path: Path) -> None:
    first = message("a1", said("one"))
    found = planned(write_state(tmp_path, [header(), first, first, message("a1", said("two"))]))

    assert [event.message.content for event in all_events(found, MessageRecorded)] == ["one"]
    assert [(item.line, item.reason, item.kept) for item in found.report.skipped] == [
        (3, "duplicate id 'a1': the same line again", False),
        (4, "duplicate id 'a1': another line", True),
    ]
    assert found.report.lines["duplicate"] == 1


@pytest.mark.parametrize(
    "body",
    [
        {"role": "bashExecution", "command": "ls", "output": "x"},
        {"role": "user"},
        {"role": "user", "content": None},
        {"role": "user", "content": ["text"]},
        {"content": "x"},
        {"role": 5, "content": "x"},
        "no object",
        5,
        None,
    ],
)
def test_a_message_that_is_none_of_a_conversation_is_a_line(tmp_path: Path, body: Any) -> None:
    found = planned(write_state(tmp_path, [header(), message("a1", body)]))

    assert all_events(found, MessageRecorded) == []
    assert len(all_events(found, LineImported)) == 2


def test_lines_without_type_time_or_anything_are_kept(tmp_path: Path) -> None:
    found = planned(
        write_state(tmp_path, [b"{}", b'{"type":5,"timestamp":"yesterday"}', b"  ", b'{"type":"x"}\r'])
    )

    kinds = [event.kind for event in all_events(found, LineImported)]
    assert kinds == ["untyped", "untyped", "x"]
    assert found.report.skipped == ()


def test_a_text_with_an_escaped_nul_is_a_message_all_the_same(tmp_path: Path) -> None:
    found = planned(write_state(tmp_path, [header(), message("a1", said("binary \0 output"))]))

    assert [event.message.content for event in all_events(found, MessageRecorded)] == ["binary \0 output"]


@pytest.mark.parametrize("version", [9, 0, "3", [], {}])
def test_a_version_that_is_not_known_is_read_and_noted(tmp_path: Path, version: object) -> None:
    found = planned(write_state(tmp_path, [header(version=version), message("a1", said("x"))]))

    assert len(all_events(found, MessageRecorded)) == 1
    assert any(f"version {version!r}" in note.what for note in found.report.notes)


def test_a_broken_store_leaves_the_transcripts_their_ids(tmp_path: Path) -> None:
    write_state(tmp_path, [header(), message("a1", said("x"))])
    (tmp_path / "agents" / "main" / "sessions" / "sessions.json").write_text('{"agent:main:main": {')

    found = planned(tmp_path)

    assert [opened.key for opened in all_events(found, SessionOpened)] == ["agent:main:archived-s-1"]
    assert [item.file for item in found.report.skipped] == ["agents/main/sessions/sessions.json"]


def test_entries_of_any_shape_are_sessions_or_notes(tmp_path: Path) -> None:
    entries: dict[str, Any] = {
        "agent:main:a": {"sessionId": 5, "updatedAt": "yesterday", "channel": {}, "label": ["x"]},
        "agent:main:b": {},
        "agent:main:c": None,
        "agent:main:d": [],
        "": {"sessionId": "s-2"},
        "agent:main:e\u200b": {"sessionId": "s-3"},
        "agent:main:" + "f" * 600: {"sessionId": "s-4"},
        "agent:main:g": {"sessionId": "../../etc/passwd", "updatedAt": -1},
        "agent:main:h": {"sessionId": "s-1", "lastTo": 5, "deliveryContext": "x", "totalTokens": 1.5},
    }
    found = planned(write_state(tmp_path, [header(), message("a1", said("x"))], entries=entries))

    keys = {opened.key for opened in all_events(found, SessionOpened)}
    assert {f"agent:main:{name}" for name in "abgh"} <= keys
    assert {f"agent:main:imported-s-{number}" for number in (2, 3, 4)} <= keys
    assert len(keys) == 7
    assert {note.subject.rpartition(": ")[2] for note in found.report.notes if "no object" in note.what} == {
        "agent:main:c",
        "agent:main:d",
    }
    for item in found.planned:
        registry.encode(item.draft.event)


def test_a_configuration_that_is_none_leaves_the_defaults_and_a_note(tmp_path: Path) -> None:
    write_state(tmp_path, [], entries={"main": {"sessionId": "s-1"}})
    (tmp_path / "openclaw.json").write_text("{ session: ")

    found = planned(tmp_path)

    assert [opened.key for opened in all_events(found, SessionOpened)] == ["agent:main:main"]
    assert any(note.subject == "openclaw.json" for note in found.report.notes)


@pytest.mark.parametrize(
    "source", ["[]", "{session: 5, agents: {list: {id: 'x'}}}", "{agents: {list: [5, {id: 7}]}}"]
)
def test_a_configuration_of_any_shape_is_read(tmp_path: Path, source: str) -> None:
    write_state(tmp_path, [], entries={"main": {"sessionId": "s-1"}})
    (tmp_path / "openclaw.json").write_text(source)

    assert [opened.key for opened in all_events(planned(tmp_path), SessionOpened)] == ["agent:main:main"]


@pytest.mark.clause("IMP-1")
def test_links_that_lead_out_of_the_directory_are_not_followed(tmp_path: Path) -> None:
    outside = write_state(
        tmp_path / "outside", [header("s-9"), message("a1", said("secret"))], name="s-9.jsonl"
    )
    inside = write_state(tmp_path / "inside", [header(), message("a1", said("x"))])
    folder = inside / "agents" / "main" / "sessions"
    (folder / "s-2.jsonl").symlink_to(outside / "agents" / "main" / "sessions" / "s-9.jsonl")
    (folder / "s-3.jsonl").symlink_to(folder / "nowhere.jsonl")
    (folder / "s-4.jsonl").symlink_to(folder / "s-4.jsonl")
    (inside / "agents" / "other").symlink_to(outside / "agents" / "main")

    found = planned(inside)

    assert [event.message.content for event in all_events(found, MessageRecorded)] == ["x"]
    assert len([note for note in found.report.notes if "symbolic link" in note.what]) == 4


def test_what_is_no_plain_file_is_left_out(tmp_path: Path) -> None:
    write_state(tmp_path, [header(), message("a1", said("x"))])
    folder = tmp_path / "agents" / "main" / "sessions"
    os.mkfifo(folder / "s-2.jsonl")
    (folder / "notes.txt").write_text("x")
    (folder / "s-1.jsonl.lock").write_text("{}")

    found = planned(tmp_path)

    assert {(note.subject.rpartition("/")[2], note.what) for note in found.report.notes} >= {
        ("s-2.jsonl", "left out: it is no plain file"),
        ("notes.txt", "left out: it is no transcript"),
    }
    assert len(all_events(found, MessageRecorded)) == 1


def test_file_names_that_are_no_text_can_be_reported_and_imported(tmp_path: Path) -> None:
    write_state(tmp_path, [header(), message("a1", said("x"))])
    folder = os.fsencode(tmp_path / "agents" / "main" / "sessions")
    (Path(os.fsdecode(folder + b"/\xff\xfe.jsonl"))).write_bytes(
        json.dumps(message("a1", said("y"))).encode()
    )

    found = planned(tmp_path)

    assert len(all_events(found, MessageRecorded)) == 2
    msgspec.json.encode(found.report)


def test_an_agents_folder_with_a_name_no_agent_can_have_is_read_under_another(tmp_path: Path) -> None:
    found = planned(write_state(tmp_path, [header(), message("a1", said("x"))], agent="My Agent!"))

    assert [opened.agent_id for opened in all_events(found, SessionOpened)] == ["my-agent"]
    assert any("my-agent" in note.what for note in found.report.notes)


_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
_FIELDS = st.sampled_from(
    [
        "type",
        "id",
        "parentId",
        "timestamp",
        "message",
        "version",
        "customType",
        "sessionId",
        "updatedAt",
        "label",
    ]
)
_KINDS = st.sampled_from(["session", "message", "custom", "compaction"])
_BODIES = st.dictionaries(
    st.sampled_from(["role", "content", "timestamp", "provenance", "toolCallId", "details", "stopReason"]),
    _VALUES | st.sampled_from(["user", "assistant", "toolResult"]),
    max_size=5,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    lines=st.lists(
        st.dictionaries(_FIELDS, _VALUES | _KINDS | _BODIES, max_size=6).map(
            lambda value: json.dumps(value).encode()
        )
        | st.binary(max_size=20).filter(lambda value: b"\n" not in value),
        max_size=8,
    ),
    entries=st.dictionaries(st.text(max_size=12), st.dictionaries(_FIELDS, _VALUES, max_size=4), max_size=3),
)
def test_no_content_of_a_file_makes_an_import_fail(
    tmp_path: Path, lines: list[bytes], entries: dict[str, Any]
) -> None:
    state = write_state(tmp_path, lines, entries=entries)

    found = planned(state)

    written = sum(1 for line in lines if line.strip())
    kept = len(all_events(found, MessageRecorded)) + len(all_events(found, LineImported))
    lost = sum(item.lines for item in found.report.skipped if item.file == PATH and not item.kept)
    assert kept + lost == written
    assert (
        len(all_events(found, SessionImported)) == len(entries) or found.report.notes or found.report.skipped
    )
    for item in found.planned:
        event = item.draft.event
        assert registry.decode(registry.topic_of(event), registry.encode(event)) == event
    assert len({item.draft.id for item in found.planned}) == len(found.planned)
    assert session_of(found, "agent:main:longer-than-any-entry") == []


@pytest.mark.parametrize(
    "about",
    [
        b"{",
        b"[]",
        b'{"transcripts": 7}',
        b'{"transcripts": [7, {}, {"agent": "main", "stem": "s-1", "key": []}]}',
        b'{"transcripts": [{"agent": "main", "stem": "s-1", "key": "", "sessionId": "../x"}]}',
        b"""{"transcripts": [{"agent": "main", "stem": "s-1", "key": "agent:main:main", "sessionId": "s-2"},
            {"agent": "main", "stem": "s-2", "key": "agent:main:main", "sessionId": "s-2"}]}""",
    ],
)
@pytest.mark.clause("IMP-1", "EXP-3")
def test_what_an_export_says_of_its_transcripts_is_believed_only_as_far_as_it_can_be(
    tmp_path: Path, about: bytes
) -> None:
    for name in ("s-1", "s-2"):
        write_state(
            tmp_path, [header(name), message(f"m-{name}", said("hello"))], name=f"{name}.jsonl.reset.1"
        )
    (tmp_path / "intersession.json").write_bytes(about)

    with open_log(":memory:") as log:
        report = import_openclaw(tmp_path, log, clock=lambda: 0)
        recorded = [item.event for item in log.all() if isinstance(item.event, MessageRecorded)]

    assert report.messages == len(recorded) == 2
    assert len({event.session_id for event in recorded}) == 2


def nested(levels: int) -> bytes:
    return b'{"a":' * levels + b"1" + b"}" * levels


@pytest.mark.clause("IMP-1")
@pytest.mark.parametrize("levels", [65, 500, 940])
def test_an_object_that_is_nested_too_deep_is_not_read(levels: int) -> None:
    with pytest.raises(Unreadable, match="nested too deep"):
        read_object(nested(levels))


@pytest.mark.clause("IMP-1")
def test_one_that_is_just_as_deep_as_may_be_is() -> None:
    values, raws = read_object(nested(64))

    assert values.keys() == raws.keys() == {"a"}
    assert read_object(b'{"a":[' + b"[]," * 500 + b"[]]}")[0]["a"] == [[]] * 501


@pytest.mark.clause("IMP-1")
def test_one_entry_that_is_too_deep_is_not_the_whole_file() -> None:
    _, raws = read_object(b'{"good":{},"deep":' + nested(70) + b"}", of_objects=True)

    assert raws.keys() == {"good", "deep"}
