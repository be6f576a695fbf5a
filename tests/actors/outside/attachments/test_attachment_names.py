"""A file for a sub-agent has one plain file name, and content that decodes one way."""

import base64
import contextlib
import hashlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intersession_actors.outside.attachments.checks import (
    AttachmentArgument,
    blocks_without_contents,
    check_attachments,
    check_mount_path,
    name_problem,
    one_name,
    without_contents,
)
from intersession_actors.rules.config.tools import AttachmentRules
from intersession_actors.rules.errors import ToolRefused
from intersession_events.facts import ToolCallBlock
from support import hostile

ON = AttachmentRules(enabled=True)
SECRET = "the content itself"


def file(name: str = "a.txt", content: str = "x", **fields: Any) -> AttachmentArgument:
    return AttachmentArgument(name=name, content=content, **fields)


def code_of(*files: AttachmentArgument, rules: AttachmentRules = ON) -> str:
    with pytest.raises(ToolRefused) as refused:
        check_attachments(files, rules)
    return refused.value.code


@pytest.mark.clause("ATT-2")
@pytest.mark.parametrize(
    "row",
    [row for row in hostile.rows("A", field="attachments[].name") if row["expect"] == "invalid_name"],
    ids=hostile.row_id,
)
def test_a_hostile_name_is_refused(row: dict[str, Any]) -> None:
    assert code_of(file(hostile.given(row))) == "invalid_name"


@pytest.mark.clause("ATT-2")
@pytest.mark.parametrize(
    "name",
    [
        ".",
        "a/b",
        "a\0b",
        "a ",
        " a",
        "nul.txt",
        "Aux",
        "LPT9.tar.gz",
        "COM¹",
        "con .txt",
        "manifest.json",
        "Manifest.JSON",
        ".MANIFEST.json",
        "a\u200bb",
        "a\u2028b",
        "a\x7fb",
        "what?.txt",
        "é" * 128,
    ],
)
def test_so_is_any_that_another_system_would_read_otherwise(name: str) -> None:
    assert code_of(file(name)) == "invalid_name"


@pytest.mark.clause("ATT-2")
@pytest.mark.parametrize(
    "name",
    ["%2e%2e%2fx", "a", ".gitignore", "data.csv", "Bericht März.pdf", "…", "a" * 255, "console.log", "~"],
)
def test_a_plain_name_is_taken_as_it_is(name: str) -> None:
    (taken,) = check_attachments([file(name)], ON)

    assert taken.file.name == name


names = st.text(max_size=300) | st.text(alphabet="./\\:\0 ~%aA", max_size=6)


def check_taken(name: str) -> None:
    if name_problem(name) is None:
        assert not {"/", "\\", ":", "\0"} & set(name)
        assert name not in {"", ".", ".."}
        assert len(name.encode()) <= 255
        assert name.isprintable()
        assert one_name(name) not in {".manifest.json", "manifest.json"}


@pytest.mark.clause("ATT-2", "X9")
@settings(max_examples=1000)
@given(names)
def test_a_name_that_is_taken_is_one_component_of_a_path(name: str) -> None:
    check_taken(name)


@pytest.mark.nightly
@pytest.mark.clause("ATT-2", "X9")
@pytest.mark.timeout(600)
@settings(max_examples=100_000)
@given(names)
def test_a_hundred_thousand_names_that_are_taken_are_components_of_paths(name: str) -> None:
    check_taken(name)


@pytest.mark.clause("ATT-2")
@pytest.mark.parametrize(
    ("first", "second"), [("a", "a"), ("A.txt", "a.txt"), ("é", "e\u0301"), ("straße", "STRASSE")]
)
def test_two_names_that_are_one_file_somewhere_are_refused(first: str, second: str) -> None:
    assert code_of(file(first), file(second)) == "duplicate_name"


@pytest.mark.clause("ATT-2")
@pytest.mark.parametrize("row", hostile.rows("A", field="attachments[].content (base64)"), ids=hostile.row_id)
def test_base64_is_strict(row: dict[str, Any]) -> None:
    assert code_of(file(content=hostile.given(row), encoding="base64")) == row["expect"]


@pytest.mark.clause("ATT-2")
@given(st.binary(max_size=200))
def test_what_is_properly_encoded_comes_out_as_it_was(content: bytes) -> None:
    (taken,) = check_attachments([file(content=base64.b64encode(content).decode(), encoding="base64")], ON)

    assert taken.content == content
    assert (taken.file.bytes, taken.file.sha256) == (len(content), hashlib.sha256(content).hexdigest())


@pytest.mark.clause("ATT-2")
@given(st.text(alphabet="QUJD=\n_- é+/", max_size=12))
def test_there_is_one_way_to_write_bytes_in_base64(text: str) -> None:
    taken = []
    with contextlib.suppress(ToolRefused):
        taken = [one.content for one in check_attachments([file(content=text, encoding="base64")], ON)]

    assert [base64.b64encode(content).decode() for content in taken] in ([], [text])


@pytest.mark.clause("ATT-1")
def test_attachments_are_off_and_the_refusal_names_the_setting() -> None:
    with pytest.raises(ToolRefused, match=r"tools\.sessions_spawn\.attachments\.enabled") as refused:
        check_attachments([file()], AttachmentRules())

    assert (refused.value.code, refused.value.status) == ("forbidden", "forbidden")


@pytest.mark.clause("ATT-1")
def test_the_limits_are_the_documented_ones_and_name_their_settings() -> None:
    assert (ON.max_files, ON.max_file_bytes, ON.max_total_bytes) == (50, 1 << 20, 5 << 20)
    many = [file(str(number)) for number in range(51)]
    assert code_of(*many) == "file_count_exceeded"
    assert len(check_attachments(many[:50], ON)) == 50


@pytest.mark.clause("ATT-1")
@pytest.mark.parametrize("encoding", ["utf8", "base64"])
def test_a_file_and_all_of_them_have_a_most_of_bytes(encoding: Any) -> None:
    rules = AttachmentRules(enabled=True, max_file_bytes=9, max_total_bytes=20)

    def of(size: int) -> str:
        return "x" * size if encoding == "utf8" else base64.b64encode(b"x" * size).decode()

    assert code_of(file(content=of(10), encoding=encoding), rules=rules) == "file_bytes_exceeded"
    three = [file(str(number), of(7), encoding=encoding) for number in range(3)]
    assert code_of(*three, rules=rules) == "total_bytes_exceeded"
    assert len(check_attachments(three[:2], rules)) == 2
    assert code_of(file(content="é" * 5), rules=rules) == "file_bytes_exceeded"


@pytest.mark.clause("ATT-2")
@pytest.mark.parametrize("mime_type", ["text", "text/", "text/plain; charset=utf-8", "a/b\n", ""])
def test_a_type_that_is_none_is_refused(mime_type: str) -> None:
    assert code_of(file(mime_type=mime_type)) == "invalid_request"


@pytest.mark.clause("SPAWN-1")
@pytest.mark.parametrize("path", ["", "/mnt/../etc", "..", "a b", "/mnt/\n", "/mnt/$HOME", "/" * 2000])
def test_a_mount_path_that_is_none_is_refused(path: str) -> None:
    with pytest.raises(ToolRefused, match=r"attachAs\.mountPath") as refused:
        check_mount_path(path)

    assert refused.value.code == "invalid_request"


@pytest.mark.clause("SPAWN-1")
@pytest.mark.parametrize("path", [None, "/mnt/files", "C:/files", "a..b", "."])
def test_a_mount_path_is_taken_as_it_is(path: str | None) -> None:
    assert check_mount_path(path) == path


@pytest.mark.clause("ATT-4")
@pytest.mark.parametrize(
    "attachments",
    [
        [{"name": "a", "content": SECRET}],
        [{"name": "a", "content": SECRET, "encoding": "base64"}],
        [{"name": "a", "content": [SECRET], "more": SECRET}],
        [SECRET, [SECRET]],
        {"content": SECRET},
        SECRET,
        [{"content": {"deep": SECRET}, "encoding": [SECRET]}],
    ],
)
def test_no_content_is_repeated_whatever_the_call_looks_like(attachments: Any) -> None:
    shown = without_contents({"task": "t", "attachments": attachments})

    assert SECRET not in str(shown)
    assert shown["task"] == "t"
    assert "sha256" in str(shown)


@pytest.mark.clause("ATT-4")
def test_the_reference_has_the_hash_of_the_receipt() -> None:
    given_file = {"name": "a.bin", "content": base64.b64encode(b"\0\1").decode(), "encoding": "base64"}

    (shown,) = without_contents({"attachments": [given_file]})["attachments"]

    assert shown == {
        "name": "a.bin",
        "encoding": "base64",
        "content": {"omitted": True, "bytes": 2, "sha256": hashlib.sha256(b"\0\1").hexdigest()},
    }


@pytest.mark.clause("ATT-4")
@pytest.mark.parametrize(
    "source",
    [
        '{"task":"t","attachments":[{"name":"a","content":"the content itself"}]}',
        '{"task":"t","\\u0061ttachments":[{"name":"a","content":"the content itself"}]}',
        '{"attachments":[{"content":"the content itself"}],"attachments":[]}',
        '{"attachments":[{"content":"the content itself"',
    ],
)
def test_a_recorded_call_is_without_contents_however_it_is_spelled(source: str) -> None:
    (block,) = blocks_without_contents((ToolCallBlock(id="c", name="sessions_spawn", arguments=source),))

    assert isinstance(block, ToolCallBlock)
    assert SECRET not in block.arguments


def test_other_calls_are_recorded_as_they_are() -> None:
    calls = (
        ToolCallBlock(id="c", name="read", arguments='{"attachments": ["a"]}'),
        ToolCallBlock(id="d", name="sessions_spawn", arguments='{ "task": "t" }'),
    )

    assert blocks_without_contents(calls) == calls
