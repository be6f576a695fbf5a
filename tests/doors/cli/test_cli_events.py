"""`intersession events` lists what is in a log, event by event, and `tail` shows it as it comes."""

import json
import signal
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from intersession import SessionSystem, echo
from support.doors.command_line import DemoLog, environment, hear_ctrl_c, process, ran
from support.hostile import given, rows
from support.running import WAIT
from support.story import MAIN, Story


def listed(log: Path, *tokens: object) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ran("events", *tokens, "--limit", 1000, "--store", log, "--json").json[
        "events"
    ]
    return found


def test_every_event_is_listed_with_all_that_is_stored_of_it(demo_log: DemoLog) -> None:
    """Before: there was no question over the whole log."""
    found = listed(demo_log.path)

    assert [event["position"] for event in found] == list(range(demo_log.value["position"], 0, -1))
    first = found[-1]
    assert (first["kind"], first["topic"], first["stream"]) == ("log_opened", "log_opened.1", "log")
    (closed,) = [event for event in found if event["kind"] == "exchange_closed"]
    assert (closed["text"], closed["data"]) == ("announced", {"reason": "announced"})
    ids = {event["eventId"] for event in found}
    assert len(ids) == len(found)
    assert closed["causation"] in ids


def test_events_are_chosen_by_name_stream_session_and_place(demo_log: DemoLog) -> None:
    whole = listed(demo_log.path)
    turns = [event["position"] for event in whole if event["kind"] == "turn_ended"]
    ends = [event["position"] for event in whole if event["kind"] in {"exchange_closed", "spawn_closed"}]
    research = [event["position"] for event in whole if event["stream"] == "session:agent:research:main"]

    def positions(*tokens: object) -> list[int]:
        return [event["position"] for event in listed(demo_log.path, *tokens)]

    assert positions("--kind", "turn_ended") == turns
    assert positions("--kind", "exchange_closed", "--kind", "spawn_closed") == ends
    for named in ("session:agent:research:main", "session:research"):
        assert positions("--stream", named) == research
    assert positions("--session", "research") == research
    exchange = f"exchange:{demo_log.exchange}"
    assert positions("--stream", exchange[:17]) == positions("--stream", exchange) != []
    assert positions("--stream", "exchange:", "--kind", "turn_ended", "--since", turns[3]) == turns[:3]
    assert positions("--until", turns[3], "--kind", "turn_ended") == turns[3:]
    assert positions("--session", "research", "--since", research[2], "--until", research[1]) == [research[1]]


def test_every_stream_that_is_shown_can_be_typed(demo_log: DemoLog) -> None:
    lines = ran("events", "--limit", 1000, "--store", demo_log.path).out.splitlines()
    shown = {line.split("  ")[2] for line in lines if line.startswith("#")}

    assert {"session:main", "session:research", "log"} < shown
    for stream in shown:
        assert listed(demo_log.path, "--stream", stream), stream


def test_pages_give_every_event_once(demo_log: DemoLog) -> None:
    whole = [event["position"] for event in listed(demo_log.path, "--stream", "session:main")]
    paged: list[int] = []
    cursor: tuple[str, ...] = ()
    while True:
        tokens = ("--stream", "session:main", "--limit", 7, *cursor, "--store", demo_log.path, "--json")
        page = ran("events", *tokens).json
        paged += [event["position"] for event in page["events"]]
        if page["cursor"] is None:
            break
        cursor = ("--cursor", page["cursor"])

    assert paged == whole


@pytest.mark.parametrize(
    ("tokens", "told"),
    [
        (("--kind", "turn"), "turn_ended"),
        (("--stream", "turns"), "exchange:"),
        (("--session", "nobody/none"), "no"),
        (("--session", "main", "--stream", "log"), "leave"),
        (("--since", "yesterday"), "since"),
        (("--cursor", "x"), "cursor"),
    ],
)
@pytest.mark.parametrize("command", ["events", "tail"])
def test_what_names_no_event_is_refused_and_what_there_is_is_named(
    demo_log: DemoLog, command: str, tokens: tuple[str, ...], told: str
) -> None:
    if command == "tail" and tokens[0] in {"--since", "--cursor"}:
        tokens, told = ("--last", "-1"), "last"

    refused = ran(command, *tokens, "--store", demo_log.path, "--json")

    assert refused.exit_code in {1, 2}
    assert told in refused.json["error"]


def test_an_event_is_one_line_whatever_is_in_it(tmp_path: Path) -> None:
    story = Story(tmp_path / "hostile.db")
    story.open()
    for row in rows("R"):
        story.say(MAIN, str(given(row)))
    story.close()

    done = ran("events", "--limit", 1000, "--store", tmp_path / "hostile.db")

    lines = done.out.splitlines()
    assert sum(line.startswith("#") for line in lines) == len(listed(tmp_path / "hostile.db"))
    assert len(lines) == len(listed(tmp_path / "hostile.db")) + 2
    assert all(character.isprintable() for line in lines for character in line)


# --- as they come, of a log that another process writes


@contextmanager
def tailed(log: Path, *tokens: object) -> Generator[subprocess.Popen[str]]:
    with subprocess.Popen(
        process("tail", *tokens, "--store", log),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hear_ctrl_c,  # noqa: PLW1509 - it only sets a signal
    ) as child:
        try:
            yield child
        finally:
            child.kill()


def lines_until(child: subprocess.Popen[str], text: str) -> list[str]:
    assert child.stdout is not None
    found: list[str] = []
    for line in child.stdout:
        found.append(line)
        if text in line:
            return found
    raise AssertionError(f"{text!r} never came, but {found} {child.stderr and child.stderr.read()}")


def speak(system: SessionSystem, text: str) -> None:
    system.inbound(channel="telegram", chat_id="1", sender="ada", text=text, wait=WAIT)


def test_tail_shows_what_was_last_and_then_what_comes_until_ctrl_c(tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    with SessionSystem(store, agents={"main": echo("heard: ")}) as system:
        speak(system, "before")
        head = system.log.head()
        with tailed(store, "--last", 2, "--json") as child:
            last = [json.loads(line) for line in lines_until(child, f'"position": {head}')]
            speak(system, "after")
            later = [json.loads(line) for line in lines_until(child, "run_completed")]
            child.send_signal(signal.SIGINT)
            out, err = child.communicate(timeout=WAIT)

    assert [event["position"] for event in last] == [head - 1, head]
    rest = [json.loads(line) for line in out.splitlines()]
    came = [event["position"] for event in (*later, *rest)]
    assert came == list(range(head + 1, head + 1 + len(came))), (
        "whole lines, one after the other, to the last"
    )
    assert later[-1]["text"] == "heard: after"
    assert (child.returncode, err) == (130, "")


def test_tail_shows_only_what_was_asked_for(tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    with SessionSystem(store, agents={"main": echo("heard: ")}) as system:
        speak(system, "one")
        with tailed(store, "--kind", "run_completed", "--session", "main", "-n", 1) as child:
            shown = lines_until(child, "heard: one")
            speak(system, "two\x1b[31m\nand more")
            shown += lines_until(child, "and more")

    told = [line.split("  ", 3)[2:] for line in shown if line.startswith("#")]
    assert told == [
        ["session:main", "run_completed  main: heard: one\n"],
        ["session:main", "run_completed  main: heard: two\\x1b[31m ⏎ and more\n"],
    ]


def test_tail_ends_when_nobody_reads_it_any_more(demo_log: DemoLog) -> None:
    """Though nothing more comes, which would show it."""
    with tailed(demo_log.path, "--last", 1) as child:
        lines_until(child, "#")
        assert child.stdout is not None
        child.stdout.close()
        assert child.wait(WAIT) == 141
        assert child.stderr is not None
        assert child.stderr.read() == ""
