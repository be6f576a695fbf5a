"""An error names what a person typed, an option or an argument as help has it, and to programs the field of every door."""

from pathlib import Path

import pytest

from support.doors.command_line import DemoLog, ran


@pytest.mark.clause("LIST-8")
@pytest.mark.parametrize(
    ("command", "typed", "field"),
    [
        (("history", "main", "--at", "noon"), "--at", "asOf"),
        (("history", "main", "--as-of=noon"), "--as-of", "asOf"),
        (("sessions", "--at", "noon"), "--at", "asOf"),
        (("why", "nobody"), "EVENT|PLACE", "of"),
        (("state", "nobody"), "KEY|RUN", "of"),
        (("lens", "nobody"), "RUN", "run"),
        (("diff", "nobody", "nobody"), "A", "a"),
        (("search", "hello", "--in", "nobody"), "--in", "in"),
        (("search", "hello", "--since", "2999-01-01"), "--since", "since"),
        (("smells", "--session", "nobody"), "--session", "session"),
        (("retry", "nobody"), "RUN", "runId"),
        (("hold", "nobody"), "WHAT", "what"),
        (("reset", "nobody"), "SESSION", "session"),
        (("delete", "main"), "SESSION", "key"),
        (("label", "main", ""), "TEXT", "label"),
        (("erase", "main", "--yes", "--message", "nobody"), "--message", "messageIds"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_an_error_names_what_was_typed(
    demo_log: DemoLog, tmp_path: Path, command: tuple[str, ...], typed: str, field: str
) -> None:
    store = demo_log.copy(
        tmp_path
    )  # who opens a log to write says so in it, also if what was asked is refused
    told = ran(*command, "--store", store)
    to_programs = ran(*command, "--store", store, "--json")

    assert (told.exit_code, told.out) == (1, "")
    assert told.err.partition("): ")[2].startswith(f"{typed}: ")
    assert to_programs.exit_code == 1
    assert to_programs.json["error"].startswith(f"{field}: ")


@pytest.mark.clause("FIND-2")
@pytest.mark.parametrize("command", ["runs", "messages", "deliveries", "events", "smells", "search hello"])
def test_until_a_time_that_has_not_come_is_up_to_now(demo_log: DemoLog, command: str) -> None:
    def asked(*further: str) -> object:
        return ran(*command.split(), *further, "--store", demo_log.path, "--json").json

    assert asked("--until", "2999-01-01") == asked()
