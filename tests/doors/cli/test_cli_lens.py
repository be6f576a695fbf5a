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
