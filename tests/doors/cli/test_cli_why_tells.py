"""What `why` prints reads as a story: who failed, who let go on, how long it took, and whether anybody is at work (WHY-1, WHY-2)."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from intersession import MemoryChannel, Turn
from intersession_events import facts
from support.doors.command_line import ran
from support.running import Booth, Gate, wait_for

MAIN = "agent:main:main"
HELD = {"session": {"agentToAgent": {"hold": "announce"}}}
SKIPPED: dict[str, Callable[[Turn], str]] = {"main": lambda _: "REPLY_SKIP", "research": lambda _: "yes"}
ASKED = {"agentId": "research", "message": "well?", "timeoutSeconds": 20}


def one_exchange(store: str) -> str:
    (found,) = ran("runs", "--kind", "exchange", "--store", store, "--json").json["runs"]
    return str(found["id"])


def sent_and_closed(booth: Booth, agents: dict[str, Callable[[Turn], str]]) -> str:
    """Have `main` send to `research`, until the exchange is over and nobody is at work; return the exchange's id."""
    system = booth.start(agents)
    system.tools(MAIN).call("sessions_send", ASKED)
    wait_for(system, facts.ExchangeClosed)
    system.close()
    return one_exchange(booth.url)


def at(store: str, kind: str) -> str:
    return str(ran("events", "--kind", kind, "--store", store, "--json").json["events"][0]["position"])


@pytest.mark.clause("WHY-1", "LIVE-1")
def test_what_was_held_goes_on_by_whoever_released_it(tmp_path: Path) -> None:
    """The text went back to the hold, and neither who let it go on nor with what words was told."""
    with Booth(str(tmp_path / "log.db")) as booth:
        agents = {"main": lambda _: "REPLY_SKIP", "research": lambda _: "The dam is open."}
        system = booth.start(agents, {"t": MemoryChannel()}, HELD)
        system.inbound(channel="t", chat_id="1", sender="ada", text="hi", agent_id="research", wait=20)
        run_id = system.tools(MAIN).call("sessions_send", ASKED).get("runId", "")
        wait_for(system, facts.ExchangeHeld)
        system.release(run_id, text="The dam is closed.")
        wait_for(system, facts.ExchangeClosed)
        system.close()

        told = ran("why", one_exchange(booth.url), "--store", booth.url).out
        forward = ran("why", at(booth.url, "exchange_released"), "--forward", "--store", booth.url).out

    assert "operator lets it go on with another text" in told
    assert told.index("lets it go on") < told.index("Held: the announce")
    assert "Delivered to t:1." in forward


@pytest.mark.clause("WHY-1", "WHY-2")
def test_a_turn_that_failed_names_who_failed_and_once(tmp_path: Path) -> None:
    """Lines began with `failed:`, of nobody, and the exchange said again what its run had said."""

    def research(turn: Turn) -> str:
        if turn.step == "reply":
            raise KeyError("season")
        return "yes"

    with Booth(str(tmp_path / "log.db")) as booth:
        run = sent_and_closed(booth, {"main": lambda _: "And with a car?", "research": research})

        told = ran("why", run, "--store", booth.url).out

    assert told.count("  research failed: backend: KeyError: 'season'") == 1
    assert not re.search(r"\d\d\d  failed:", told)
    assert re.search(r"started = \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} UTC", told)
    assert re.search(r"took = \d+ ms|took = [\d.]+ s", told)
    assert not re.search(r"= \d{13}", told)


@pytest.mark.clause("WHY-2", "GATE-3")
def test_what_a_process_left_open_is_at_nobodys_work(tmp_path: Path) -> None:
    """Of a host that was killed it was said that the run was being done right now."""
    gate = Gate()
    copy = tmp_path / "copy.db"
    with Booth(str(tmp_path / "log.db")) as booth:
        system = booth.start({"main": gate.stop}, {"t": MemoryChannel()})
        system.inbound(channel="t", chat_id="1", sender="ada", text="hi", agent_id="main")
        gate.reached()
        beside = ran("why", at(booth.url, "run_queued"), "--store", booth.url).out
        assert ran("backup", str(copy), "--store", booth.url).exit_code == 0
        gate.open()
        left = ran("why", at(str(copy), "run_queued"), "--store", str(copy)).out

    assert "under_way" in left
    assert "No process writes this log now" in left
    assert "No process writes" not in beside


def open_at(step: str, store: str, hold: str = "off") -> tuple[str, dict[str, Any]]:
    """Return what `why` says of an exchange that is open at a step, in words and as JSON."""
    gate = Gate()

    def research(turn: Turn) -> str:
        if turn.step == step and hold == "off":
            gate.stop(turn)
        return "yes"

    with Booth(store) as booth:
        system = booth.start(
            {"main": lambda _: "REPLY_SKIP" if step == "announce" else "sure?", "research": research},
            {"t": MemoryChannel()},
            {"session": {"agentToAgent": {"hold": hold}}},
        )
        system.tools(MAIN).call("sessions_send", ASKED | {"timeoutSeconds": 0})
        if hold == "off":
            gate.reached()
        else:
            wait_for(system, facts.ExchangeHeld)
        told = ran("why", one_exchange(store), "--store", store)
        found = ran("why", one_exchange(store), "--store", store, "--json").json
        gate.open()
    return told.out, found


@pytest.mark.clause("WHY-2", "GATE-3")
@pytest.mark.parametrize(
    ("step", "what"), [("message", "the primary reply"), ("reply", "turn 2"), ("announce", "the announce")]
)
def test_the_first_line_says_what_an_open_exchange_waits_for(step: str, what: str, tmp_path: Path) -> None:
    told, found = open_at(step, str(tmp_path / "log.db"))
    waits = found["waits"]

    begun = f"The exchange waits for {what}: research has begun it, and has not answered yet."
    assert re.match(rf"{re.escape(begun)}  since [-\d]+ [:\d]+ UTC, until [-\d]+ [:\d]+ UTC at most\n", told)
    assert (waits["code"], waits["who"]) == ("under_way", "agent:research:main")
    assert waits["untilMs"] - waits["sinceMs"] == (600_000 if step == "message" else 60_000)


@pytest.mark.clause("WHY-2", "LIVE-1")
def test_the_first_line_says_who_holds_an_open_exchange(tmp_path: Path) -> None:
    told, found = open_at("message", str(tmp_path / "log.db"), hold="reply")

    assert told.startswith(
        "The exchange waits for a release: the reply is held, as session.agentToAgent.hold wants.  since "
    )
    assert "untilMs" not in found["waits"]
    assert found["waits"]["code"] == "waits_for_release"


@pytest.mark.clause("WHY-1")
def test_a_step_that_stories_leave_out_has_a_sentence_where_it_is_asked_about(tmp_path: Path) -> None:
    store = str(tmp_path / "log.db")
    open_at("reply", store)

    first = ran("events", "--kind", "run_started", "--store", store, "--json").json["events"][-1]["position"]
    said = ran("why", str(first), "--store", store).out.splitlines()[0]
    assert said.endswith("Here research begins the primary reply.")


@pytest.mark.clause("ORIGIN-1", "SPAWN-9")
def test_the_result_of_a_sub_agent_is_its_own_words_in_the_chat(tmp_path: Path) -> None:
    """The text in the chat came from nowhere, as the session that announced it had not said it."""

    def main(turn: Turn) -> str:
        if ":subagent:" in turn.session_key:
            return "The detour is 84 km longer."
        if turn.step == "message":
            turn.tools.call("sessions_spawn", {"task": "count"})
        return "I have put a helper on it."

    with Booth(str(tmp_path / "log.db")) as booth:
        system = booth.start({"main": main}, {"t": MemoryChannel()})
        system.inbound(channel="t", chat_id="1", sender="ada", text="go", agent_id="main", wait=20)
        wait_for(system, facts.SpawnClosed)
        system.close()
        found = ran("origin", "84 km", "--store", booth.url, "--json").json

    (sent,) = [hop for hop in found["hops"] if hop["via"] == "delivery"]
    said = {hop["position"]: hop["who"] for hop in (found["first"], *found["hops"])}
    assert sent["who"] == "agent:main:main"
    assert ":subagent:" in said[sent["cause"]]


@pytest.mark.clause("LENS-1")
def test_a_place_for_which_nobody_was_asked_names_those_for_which_somebody_was(tmp_path: Path) -> None:
    with Booth(str(tmp_path / "log.db")) as booth:
        run = sent_and_closed(booth, SKIPPED)
        refused = ran("lens", f"{run}@turn:3", "--store", booth.url, "--json")

    assert refused.exit_code == 1
    assert "agents were asked for @reply, @turn:1, @announce" in refused.json["error"]


@pytest.mark.clause("PLACE-3")
def test_what_changed_between_two_places_is_told_with_short_ids_and_times_of_day(tmp_path: Path) -> None:
    """Each line began with a whole id, and times were milliseconds since 1970."""
    with Booth(str(tmp_path / "log.db")) as booth:
        run = sent_and_closed(booth, SKIPPED)
        told = ran("state", run, "--from", f"{run}@start", "--to", f"{run}@end", "--store", booth.url).out

    assert f"exchanges/{run[:8]}/" in told
    assert run not in "".join(line.partition("  ")[0] for line in told.splitlines()[2:])
    assert re.search(r"updatedAt  (nothing|[\d:.]+) → \d\d:\d\d:\d\d\.\d{3}", told)


@pytest.mark.clause("PROV-2", "PLACE-3")
def test_a_transcript_says_what_was_said_by_a_method_and_what_its_agent_never_said(tmp_path: Path) -> None:
    """`a person (operator)`, it said, and of injected words that the agent had said them."""
    store = str(tmp_path / "log.db")
    with Booth(store) as booth:
        system = booth.start({"main": lambda _: "yes"})
        said = {"sessionKey": MAIN, "message": "hello", "idempotencyKey": "1"}
        system.gateway.perform("chat.send", said)
        wait_for(system, facts.RunCompleted)
        system.gateway.perform("chat.inject", {"sessionKey": MAIN, "message": "the ferry is late"})
        system.close()
        told = ran("state", MAIN, "--store", store).out

    said_by = [
        line.strip().partition("  ")[0] for line in told.splitlines() if re.search(r"\w  \d{4}-", line)
    ]
    assert said_by == ["operator", "agent", "agent, in the words of operator"]
