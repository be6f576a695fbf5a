"""`intersession lens` shows what an agent was given, and says by its exit code whether that is what was recorded."""

from pathlib import Path

import pytest

from intersession import MemoryChannel, SessionSystem
from intersession_events.facts import DeliveryDone
from support.doors.command_line import DemoLog, ran
from support.running import wait_for


@pytest.mark.clause("LENS-1")
def test_it_shows_each_part_and_that_it_is_as_recorded(demo_log: DemoLog) -> None:
    shown = ran("lens", f"{demo_log.exchange[:8]}@turn:2", "--store", demo_log.path)

    assert shown.exit_code == 0, shown.err
    heads = [
        "as recorded: ",
        "system context",
        "transcript: 4 messages",
        "message to answer",
        "tools: sessions_list, ",
    ]
    found = [line for line in shown.out.splitlines() if line.startswith(tuple(heads))]
    assert [line.startswith(head) for line, head in zip(found, heads, strict=True)] == [True] * 5
    assert "This is turn 2 of 5." in shown.out


@pytest.mark.clause("LENS-1")
def test_it_gives_the_prompt_and_what_another_run_had_not_seen(demo_log: DemoLog) -> None:
    run = f"{demo_log.exchange}@turn:5"
    prompt = ran("lens", run, "--dialect", "prompt", "--store", demo_log.path)
    than = ran("lens", run, "--than", f"{demo_log.exchange}@turn:3", "--store", demo_log.path)
    assert "[[message " in prompt.out
    assert "what the other run had not seen: 2 messages" in than.out
    assert (
        len(ran("lens", run, "--dialect", "openai", "--store", demo_log.path, "--json").json["rendered"]) > 4
    )


@pytest.mark.clause("LENS-2")
def test_it_shows_the_end_of_the_transcript_and_says_how_to_get_at_what_stands_before(
    demo_log: DemoLog,
) -> None:
    def lens(*more: str) -> str:
        shown = ran("lens", f"{demo_log.exchange}@turn:2", *more, "--store", demo_log.path)
        assert shown.exit_code == 0, shown.err
        return shown.out

    whole = lens()
    end = lens("--limit", "1")
    first = lens("--limit", "3", "--before", "3")

    assert "before: --before" not in whole
    assert "transcript: 1 message, 4 to 4 of 4\n  3 messages before: --before 3; whole: --all\n" in end
    assert "transcript: 3 messages, 1 to 3 of 4\n" in first
    assert "before: --before" not in first
    said = whole.partition("transcript: 4 messages\n")[2].partition("\nmessage to answer")[0]
    there = [
        part.partition("\nmessage to answer")[0].partition(" of 4\n")[2].rpartition("--all\n")[2]
        for part in (first, end)
    ]
    assert said == "".join(part.removesuffix("\n") + "\n" for part in there)
    assert lens("--limit", "1", "--all") == whole


@pytest.mark.clause("LENS-2")
def test_what_another_run_had_not_seen_may_stand_before_what_is_shown(demo_log: DemoLog) -> None:
    run = f"{demo_log.exchange}@turn:5"
    than = (run, "--than", f"{demo_log.exchange}@turn:3", "--store", demo_log.path)
    assert " before: --before" not in ran("lens", *than).out
    assert " before: --before" in ran("lens", *than, "--limit", "1").out


@pytest.mark.clause("LENS-1", "ERASE-1")
def test_a_context_that_is_not_as_recorded_is_told_by_exit_code_4(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with SessionSystem(path, agents={"main": lambda _: "fine"}, channels={"x": MemoryChannel()}) as system:
        run = system.inbound(channel="x", chat_id="1", text="my number is 7", sender="ann", wait=20)["runId"]
        wait_for(system, DeliveryDone)
        said = system.debug.lens(run)["message"]
        system.erase("agent:main:main", message_ids=[said["id"]])

    shown = ran("lens", run, "--store", path)

    assert shown.exit_code == 4
    assert "not as recorded: the log does not give what was recorded" in shown.out
    assert "my number" not in shown.out
