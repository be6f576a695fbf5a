"""Reading a configuration file: every way it can be wrong is a `ConfigError`, and its JSON5 is read."""

from pathlib import Path
from typing import Any

import pytest

from intersession_actors.rules.config.config import load_config
from intersession_actors.rules.errors import ConfigError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "openclaw.json"


def refused(source: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        load_config(source)
    return str(caught.value)


@pytest.mark.clause("CFG-1")
def test_json5_is_read(file: Path) -> None:
    file.write_text(
        "// who sees whom\n{tools: {sessions: {visibility: 'all',},}, /* numbers */ runs: {poolSize: 0x10}}",
        encoding="utf-8",
    )

    config = load_config(file).config

    assert config.tools.sessions.visibility == "all"
    assert config.runs.pool_size == 16


def test_a_path_may_be_text_and_the_file_may_begin_with_a_byte_order_mark(file: Path) -> None:
    file.write_bytes(b'\xef\xbb\xbf{"session": {"mainKey": "home"}}')

    assert load_config(str(file)).config.session.main_key == "home"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "Empty"),
        (b"{", "1 Unexpected end of input"),
        (b"{session: {}}\n{}", "2 Unexpected"),
        (b'{"session": {}, "session": {}}', 'Duplicate key "session"'),
        (b"{tools: {}, tools: {sessions: {visibility: 'all'}}}", 'Duplicate key "tools"'),
        (b"\xff\xfe{}", "not UTF-8 at byte 0"),
        (b"[" * 20_000, "nested deeper"),
        (b"{a:" * 20_000, "nested deeper"),
        (b'{"channels": {"x": ' + b'{"a": ' * 40 + b"1" + b"}" * 42, "nested deeper"),
        (b'{"channels": {"x": {"a": NaN}}}', "NaN"),
        (b'{"channels": {"x": {"a": 1e999}}}', "NaN and infinity"),
        (b"{channels: {x: {a: -Infinity}}}", "infinity"),
        (b'{"channels": {"x": {"a": ' + b"9" * 5000 + b"}}}", ""),
        (b'{"session": {"mainKey": "\\ud800"}}', "surrogate"),
        (b"[]", "is an object"),
        (b"null", "is an object"),
        (b'"text"', "is an object"),
        (b" " * 1_048_577, "larger than"),
        (b"{//" + b" " * 140_000 + b"\n}", "write plain JSON"),
    ],
    ids=range(19),
)
def test_a_file_that_is_no_configuration_is_refused(file: Path, content: bytes, said: str) -> None:
    file.write_bytes(content)

    assert said in refused(file)


def test_a_missing_file_a_directory_and_an_impossible_name_are_refused(tmp_path: Path) -> None:
    assert "no file" in refused(tmp_path / "missing.json")
    assert "no file" in refused(tmp_path)
    assert refused("a\0b")


def test_values_that_no_file_could_hold_are_refused() -> None:
    endless: dict[str, Any] = {}
    endless["channels"] = endless

    assert "nested deeper" in refused(endless)
    assert "no string" in refused({"channels": {1: {}}})
    assert "a set is nothing that JSON has" in refused({"channels": {"x": {"a": {1, 2}}}})
    assert "bytes" in refused({"session": {"mainKey": b"main"}})


def test_what_is_given_is_not_changed() -> None:
    source = {
        "agent": {"sandbox": {"mode": "all", "tools": {"deny": ["x"]}}},
        "routing": {"defaultAgentId": "a"},
    }
    before = repr(source)

    load_config(source)

    assert repr(source) == before
