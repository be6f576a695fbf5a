"""What agents and models give too long or broken costs no run, takes nothing from a guard, and is said (findings A2, A20)."""

import math
import os
from pathlib import Path
from typing import Any, cast

import pytest

from intersession import Reply, SessionSystem, Turn
from intersession_actors.rules.config.config import load_config
from intersession_actors.rules.errors import ConfigError
from intersession_events.basics.errors import NoSuchStore
from intersession_events.facts import (
    Message,
    RunCompleted,
    ToolCallBlock,
    Usage,
    text_of,
)
from support.running import QUIET, WAIT, Booth, all_said, merged, recorded

MAIN = "agent:main:main"
LONE = "caf\udce9"


def say(system: SessionSystem, text: str) -> Any:
    return system.inbound(channel="webchat", chat_id="1", text=text, sender="ann", wait=WAIT)


@pytest.mark.clause("LOOP-5")
def test_a_usage_below_zero_takes_nothing_from_what_a_chain_has_used(booth: Booth) -> None:
    usages = iter([600, -1_000_000, 600, 600])
    answers: list[Any] = []

    def main(turn: Turn) -> str:
        answers.extend(
            turn.tools.call("sessions_send", {"agentId": "ops", "message": f"{number}"})
            for number in range(4)
        )
        return "done"

    def ops(_turn: Turn) -> Reply:
        return Reply("counted", usage=Usage(total_tokens=next(usages)))

    limits = {"session": {"agentToAgent": {"limits": {"tokens": 1000}}}}
    system = booth.start({"main": main, "ops": ops}, None, merged(QUIET, limits))
    say(system, "go")

    assert [answer["status"] for answer in answers] == ["ok", "ok", "ok", "error"]
    assert answers[-1]["code"] == "limit"
    noted = [run.notes for run in recorded(system, RunCompleted) if run.notes]
    assert noted == [("usage.totalTokens was below 0, counted as 0",)]


@pytest.mark.clause("L3")
@pytest.mark.parametrize("number", [math.nan, math.inf, "12", True, [1]])
def test_a_usage_that_is_no_number_counts_as_none_and_costs_no_answer(booth: Booth, number: Any) -> None:
    """Before: the page says so, and the answer was lost."""
    usage = Usage(input=number, output=cast("int", 2.9))
    message = Message(id="1", role="assistant", content="well", timestamp=1, usage=usage)
    system = booth.start({"main": lambda _: Reply("well", usage=usage, messages=(message,))})
    answer = say(system, "go")
    (completed,) = recorded(system, RunCompleted)

    assert (answer["status"], answer["reply"]) == ("ok", "well")
    assert completed.usage == Usage(output=2)
    assert completed.notes == ("usage.input was no number, counted as 0",)


@pytest.mark.clause("L3")
def test_what_stands_beside_a_text_is_cut_and_noted_and_the_text_is_told(booth: Booth) -> None:
    def agent(_turn: Turn) -> Reply:
        message = Message(id="x" * 300, role="assistant", content="well", timestamp=2**60)
        return Reply(
            "well",
            usage=Usage(total_tokens=2**70),
            model=f"m{LONE}" + "x" * 300,
            stop_reason="a\nb",
            messages=(message,),
        )

    system = booth.start({"main": agent})
    answer = say(system, "go")
    (completed,) = recorded(system, RunCompleted)

    assert (answer["status"], answer["reply"]) == ("ok", "well")
    assert completed.usage == Usage(total_tokens=10**12)
    assert completed.model is not None
    assert completed.model.startswith("mcaf\\udce9xxx")
    assert completed.model.endswith("…")
    assert completed.stop_reason == "a\\nb"
    assert len(completed.notes) == 6


@pytest.mark.clause("HIST-4")
def test_an_id_that_an_agent_uses_again_is_given_to_one_message_so_that_pages_come_to_an_end(
    booth: Booth,
) -> None:
    def agent(turn: Turn) -> Reply:
        for result in ("yes", "no"):
            turn.record_result(turn.record_call("ask", {}, call_id="call_0"), "ask", result)
        before = turn.transcript[0].id if turn.transcript else turn.asked.id
        said = [
            Message(id=name, role="assistant", content="well", timestamp=0) for name in ("1", "1", before)
        ]
        return Reply("well", messages=tuple(said))

    system = booth.start({"main": agent})
    for text in ("one", "two"):
        say(system, text)
    names, before = list[str](), None
    while before is not None or not names:
        asked = {"sessionKey": MAIN, "limit": 3, "includeTools": True}
        page = system.tools().call("sessions_history", asked | ({} if before is None else {"before": before}))
        names = [message["id"] for message in page["messages"]] + names
        before = page.get("before")
        assert len(names) <= 16, "pages go on and on"
    noted = [run.notes for run in recorded(system, RunCompleted)]

    assert len(names) == len(set(names)) == 16
    assert names.count("1") == 1
    assert noted == [("the id of a message was that of another one, given another",)] * 2


@pytest.mark.clause("L3")
def test_what_a_tool_gave_is_cut_or_spelled_out_and_the_run_goes_on(booth: Booth) -> None:
    def agent(turn: Turn) -> str:
        call = turn.record_call(f"read{LONE}", {"path": LONE, LONE: 1}, call_id="c" * 1000)
        turn.record_result(call, "read", f"{LONE}.txt")
        turn.record_result(call + "2", "read", "x" * 3_000_000)
        turn.recorder.tool_call("deep", "read", '{"a":' * 200 + "1" + "}" * 200)
        turn.recorder.tool_call("long", "read", '{"a":"' + "x" * 3_000_000 + '"}')
        return "done"

    system = booth.start({"main": agent})
    assert say(system, "go")["reply"] == "done"
    said = [event.message for event in all_said(system)]
    calls = [block for message in said for block in message.content if isinstance(block, ToolCallBlock)]
    results = [message for message in said if message.role == "toolResult"]

    assert calls[0].name == r"readcaf\udce9"
    assert calls[0].arguments == r'{"path": "caf\\udce9", "caf\\udce9": 1}'
    assert calls[0].id == results[0].tool_call_id
    assert len(calls[0].id) < 300
    assert text_of(results[0]) == r"caf\udce9.txt"
    assert text_of(results[1]).endswith("… [1951424 characters cut]")
    assert calls[1].arguments.startswith('"{')
    assert '"omitted":true' in calls[2].arguments
    history = system.tools().call("sessions_history", {"sessionKey": MAIN, "includeTools": True})
    assert len(history["messages"]) == len(said)


@pytest.mark.clause("ATT-3", "L3")
def test_a_workspace_whose_path_cant_be_recorded_is_refused(log_url: str, tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    (tmp_path / "plain").symlink_to(folder)
    config = {
        "tools": {"sessions_spawn": {"attachments": {"enabled": True}}},
        "agents": {"defaults": {"workspace": str(tmp_path / "plain")}},
    }
    with SessionSystem(log_url, agents={"main": lambda _: "done"}, config=config) as system:
        answer = system.tools(MAIN).call(
            "sessions_spawn", {"task": "x", "attachments": [{"name": "a.txt", "content": "x"}]}
        )
        plain = system.tools(MAIN).call("sessions_spawn", {"task": "x"})

    assert (answer["code"], plain["status"]) == ("unsafe_path", "accepted")


@pytest.mark.sqlite("about the path of a file")
def test_a_log_whose_path_is_no_text_is_no_log(tmp_path: Path) -> None:
    with pytest.raises(NoSuchStore, match="not valid Unicode"):
        SessionSystem(tmp_path / os.fsdecode(b"caf\xe9.db"))


@pytest.mark.clause("CFG-1")
@pytest.mark.parametrize(
    ("given", "path"),
    [
        (
            {"gateway": {"auth": {"credentials": [{"name": "x" * 200, "token": "t"}]}}},
            "gateway.auth.credentials[0].name",
        ),
        (
            {"gateway": {"auth": {"credentials": [{"name": "a\nb", "token": "t"}]}}},
            "gateway.auth.credentials[0].name",
        ),
        ({"agents": {"defaults": {"workspace": "x" * 70_000}}}, "agents.defaults.workspace"),
        ({"runs": {"replyMaxBytes": 10**9}}, "runs.replyMaxBytes"),
        ({"gateway": {"auth": {"token": "${TOKEN}"}}}, "gateway.auth.token"),
    ],
)
def test_a_setting_over_its_limit_is_refused_with_its_path(given: dict[str, Any], path: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load_config(given, variables={"TOKEN": LONE})

    assert refused.value.path == path
