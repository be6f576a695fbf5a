"""Whatever is wrong is said in a sentence, with a code for programs and an exit code for scripts; never a traceback."""

import os
from pathlib import Path

import pytest

from intersession.cli.shell.failures import failure_of
from intersession_actors.rules.errors import ToolRefused
from intersession_events.basics.errors import MissingExtra
from support.doors.command_line import DemoLog, ran, ran_as_process
from support.rows import edited
from support.story import Story

READING = (("sessions",), ("history", "main"), ("runs",), ("replay", "main"), ("verify",))


@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_a_log_that_is_not_there_is_an_error_and_no_new_log(command: tuple[str, ...], tmp_path: Path) -> None:
    done = ran(*command, "--store", tmp_path / "no.db", "--json")

    assert (done.exit_code, done.json["code"]) == (3, "no_store")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "command", [*READING, ("send", "hi", "--agent", "main", "--timeout", "0")], ids=" ".join
)
def test_a_file_that_is_no_log_is_left_alone(command: tuple[str, ...], tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    with edited(other) as database:
        database.execute("CREATE TABLE mine (a)")
    (tmp_path / "text.db").write_text("no database", encoding="utf-8")
    before = other.read_bytes()

    for file in (other, tmp_path / "text.db"):
        done = ran(*command, "--store", file, "--json")
        assert (done.exit_code, done.json["code"]) == (3, "not_a_log")
    assert other.read_bytes() == before


@pytest.mark.parametrize(
    ("tokens", "exit_code", "code"),
    [
        (("history", "agent:main:nobody"), 1, "not_visible"),
        (("history", "agent::main"), 1, "invalid_key"),
        (("history", "00000000-0000-4000-8000-000000000000"), 1, "not_visible"),
        (("history", "main", "--limit", "many"), 2, "usage"),
        (("history",), 2, "usage"),
        (("replay", "nothing"), 1, "not_visible"),
        (("replay", "agent:x:y:z:"), 1, "not_visible"),
        (("sessions", "--as-of", "yesterday"), 1, "invalid_request"),
        (("sessions", "--as-of", "99999"), 1, "invalid_request"),
        (("sessions", "--as-of", "9" * 5_000), 1, "invalid_request"),
        (("sessions", "--as-of", "2999-01-01"), 1, "invalid_request"),
        (("sessions", "--as", "agent:main:nobody"), 1, "not_visible"),
        (("sessions", "--active-minutes", "nan"), 1, "invalid_request"),
        (("sessions", "--cursor", "rubbish"), 1, "invalid_request"),
        (("sessions", "--kind", "unknown"), 2, "usage"),
        (("sessions", "--what"), 2, "usage"),
        (("sessions", "--config", "no.json5"), 1, "invalid_config"),
        (("verify", "--head", "no.json"), 2, "usage"),
        (("nonsense",), 2, "usage"),
        (("send", "hi", "--agent", "main"), 2, "usage"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, tuple) else None,
)
def test_bad_input_is_refused_in_words(
    demo_log: DemoLog, tokens: tuple[str, ...], exit_code: int, code: str
) -> None:
    store = () if tokens == ("nonsense",) else ("--store", demo_log.path)
    in_json = ran(*tokens, *store, "--json")
    in_words = ran(*tokens, *store)

    assert (in_json.exit_code, in_json.json["code"], in_json.err) == (exit_code, code, "")
    assert in_json.json["status"] in {"error", "forbidden"}
    assert (in_words.exit_code, in_words.out) == (exit_code, "")
    assert in_words.err.startswith(f"error ({code}): ")
    assert "Traceback" not in in_words.err


def test_a_server_that_is_not_there_is_told_in_words(tmp_path: Path) -> None:
    done = ran("sessions", "--store", f"postgresql://bot:pa55@/db?host={tmp_path}", "--json")

    assert (done.exit_code, done.json["code"]) == (3, "unavailable")
    assert "can't be reached" in done.json["error"]
    assert "pa55" not in done.out + done.err


def test_a_store_that_goes_while_something_is_done_is_exit_code_3() -> None:
    """It was 1, as if who asked had asked for something wrong; the store that was gone at the beginning was 3."""
    refused = [failure_of(ToolRefused(code, "why")) for code in ("unavailable", "busy", "not_visible")]

    assert [failure and failure.exit_code for failure in refused] == [3, 1, 1]


def test_a_damaged_row_that_has_to_be_read_is_exit_code_4(tmp_path: Path) -> None:
    path = tmp_path / "damaged.db"
    story = Story(path)
    story.open()
    story.say("agent:main:main", "as it was")
    story.close()
    with edited(path) as database:
        damaged = database.execute(
            "SELECT rowid, replace(CAST(state AS TEXT), 'as it was', 'as it is.') FROM stored_events WHERE rowid = 2"
        ).fetchone()
        database.execute("UPDATE stored_events SET state = CAST(? AS BLOB) WHERE rowid = ?", damaged[::-1])

    done = ran("replay", "main", "--store", path, "--json")

    assert (done.exit_code, done.json["code"]) == (4, "corrupt")
    assert "intersession verify" in done.json["error"]


def test_bytes_that_are_no_text_are_refused_in_words(demo_log: DemoLog) -> None:
    word = os.fsdecode(b"\xff\xfe")

    for tokens in (("replay", word), ("history", word), ("sessions", "--search", word)):
        done = ran(*tokens, "--store", demo_log.path, "--json")
        assert (done.exit_code, done.json["code"]) == (1, "invalid_request")


def test_the_version_and_the_help_need_no_log() -> None:
    version = ran_as_process("--version")
    help_ = ran("--help")

    assert version.exit_code == help_.exit_code == 0
    assert version.out.startswith("intersession ")
    assert "Exit codes: 0 done" in " ".join(help_.out.split())


def test_without_a_command_the_help_is_shown() -> None:
    done = ran()

    assert done.exit_code == 0
    assert "Usage: " in done.out


def test_what_an_extra_is_missing_for_says_how_to_install_it() -> None:
    failure = failure_of(MissingExtra("intersession serve", "litestar", "gateway"))

    assert failure is not None
    assert (failure.exit_code, failure.code) == (1, "missing_extra")
    assert "pip install 'intersession[gateway]'" in failure.error
