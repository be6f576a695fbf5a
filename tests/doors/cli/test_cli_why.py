"""`why`, `origin`, `smells`, `runs --smell` and `replay` on the command line: on a host's log, and on an imported one."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from intersession import MemoryChannel, Turn
from intersession_events.facts import DeliveryDenied, ExchangeClosed
from support.any_log import Logs
from support.doors.command_line import ran
from support.golden_logs import GoldenLog
from support.running import Booth, wait_for, wait_until_done

TOLD = {"position", "eventId", "timeMs", "stream", "topic", "way", "who", "to", "text", "how", "carried"}
LIMITED = {
    "session": {
        "agentToAgent": {"maxPingPongTurns": 1},
        "sendPolicy": {"rules": [{"action": "deny", "match": {"channel": "discord"}}]},
    }
}


def main(turn: Turn) -> str:
    if turn.step == "reply":
        return "Thanks."
    asked = {"agentId": "research", "message": "Is it \x1b[31mopen?", "timeoutSeconds": 20}
    return str(turn.tools.call("sessions_send", asked)["status"])


@pytest.fixture(scope="module")
def store(logs: Logs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The log of a host that has stopped: an exchange that a limit ended, and a text that the send policy kept inside."""
    with Booth(logs.at(tmp_path_factory.mktemp("why"))) as booth:
        agents = {"main": main, "research": lambda _: "The dam is open until nine."}
        channels = {"telegram": MemoryChannel(), "discord": MemoryChannel()}
        system = booth.start(agents, channels, LIMITED)
        system.inbound(channel="telegram", chat_id="ada", sender="ada", text="Go.", agent_id="main", wait=20)
        wait_for(system, ExchangeClosed)
        system.inbound(
            channel="discord", chat_id="b", sender="ben", text="And?", agent_id="research", wait=20
        )
        wait_for(system, DeliveryDenied)
        wait_until_done(system)
        system.close()
        yield booth.url


def flow(store: str, kind: str = "exchange") -> str:
    return str(ran("runs", "--kind", kind, "--store", store, "--json").json["runs"][0]["id"])


@pytest.mark.clause("WHY-1", "WHY-2")
def test_why_of_an_exchange_says_the_rule_the_setting_and_the_person(store: str) -> None:
    found = ran("why", flow(store), "--store", store, "--json")

    assert found.exit_code == 0
    assert set(found.json) == {"event", "causes", "root", "explanations"}
    assert all(set(event) == TOLD for event in (found.json["event"], *found.json["causes"]))
    assert set(found.json["root"]) == TOLD | {"kind", "by"}
    (loop, *_rest) = found.json["explanations"]
    assert (loop["about"], loop["code"], loop["rule"], loop["asDecided"]) == (
        "loop",
        "turn_limit",
        "LOOP-2",
        True,
    )
    told = ran("why", flow(store), "--store", store).out
    assert "LOOP-2 turn_limit" in told
    assert "session.agentToAgent.maxPingPongTurns = 1  (configuration, #2)" in told
    assert "a person said so" in told
    assert "\x1b" not in told


@pytest.mark.clause("WHY-2")
def test_why_of_a_delivery_that_reached_nobody_names_the_policy(store: str) -> None:
    (denied,) = ran("deliveries", "--failed", "--store", store, "--json").json["deliveries"]

    found = ran("why", denied["id"][:8], "--store", store, "--json")

    (explanation,) = found.json["explanations"]
    assert (explanation["code"], explanation["rule"]) == ("denied", "ANN-4")
    assert {
        "change": "session.sendPolicy.rules[0] is not there",
        "verdict": "allow",
        "setting": "session.sendPolicy.rules[0]",
    } in explanation["instead"]


@pytest.mark.clause("WHY-1")
def test_why_forward_is_a_tree_that_says_what_is_open(store: str) -> None:
    root = ran("why", flow(store), "--store", store, "--json").json["root"]["position"]

    found = ran("why", root, "--forward", "--store", store, "--json")

    assert set(found.json) == {"event", "effects", "open"}
    assert set(found.json["effects"][0]) == TOLD | {"effects", "more"}
    assert "still open: nothing" in ran("why", root, "--forward", "--store", store).out
    assert "run_started" in ran("why", root, "--forward", "--steps", "--store", store).out


@pytest.mark.clause("WHY-1")
def test_why_forward_of_an_exchange_tells_what_came_of_its_beginning(store: str) -> None:
    """Of its last event, which its id names else, nothing came."""
    exchange = flow(store)
    steps = ran("replay", exchange, "--steps", "--store", store, "--json").json["steps"]

    found = ran("why", exchange, "--forward", "--store", store, "--json").json

    def positions(effects: list[dict[str, Any]]) -> set[int]:
        return {one["position"] for one in effects} | {
            at for one in effects for at in positions(one["effects"])
        }

    assert found["event"]["topic"] == "exchange_accepted.1"
    told = positions(found["effects"]) | {found["event"]["position"]}
    assert {step["position"] for step in steps} <= told
    assert found["open"] == []
    accepted = ran("why", f"{exchange}@start", "--forward", "--store", store, "--json").json
    assert accepted["open"] == []


@pytest.mark.clause("SMELL-1")
def test_smells_of_no_run_are_those_of_all_that_smell(store: str) -> None:
    found = ran("smells", "--store", store, "--json").json
    assert set(found) == {"runs", "looked", "cursor"}
    assert flow(store) in [one["run"] for one in found["runs"]]
    told = ran("smells", "--code", "loop_cut", "--store", store).out
    assert told.startswith(f"{flow(store)}\n  loop_cut  ")
    assert "1 run; " in told
    nothing = ran("smells", "--code", "polite_loop", "--session", "main", "--store", store)
    assert (nothing.exit_code, nothing.out.partition(";")[0]) == (0, "nothing that is seldom meant")


@pytest.mark.clause("ORIGIN-1")
def test_origin_names_who_said_it_first(store: str) -> None:
    found = ran("origin", "the DAM is open", "--store", store, "--json")

    assert found.exit_code == 0
    assert set(found.json) == {"first", "hops", "match", "words", "cut"}
    assert (found.json["first"]["who"], found.json["match"]) == ("agent:research:main", "folded")
    assert "in other case or white space" in ran("origin", "the DAM is open", "--store", store).out
    nobody = ran("origin", "zebra stripes", "--store", store)
    assert (nobody.exit_code, nobody.out) == (1, "Nobody said that.\n")


@pytest.mark.clause("SMELL-1")
def test_runs_and_replay_mark_what_smells(store: str) -> None:
    listed = ran("runs", "--smell", "--store", store, "--json").json["runs"]

    smells: dict[str, list[str]] = {row["kind"]: [smell["code"] for smell in row["smells"]] for row in listed}
    assert smells["exchange"] == ["loop_cut", "announce_unheard"]
    place: dict[str, Any] = next(row for row in listed if row["kind"] == "exchange")["smells"][0]["place"]
    assert set(place) == {"position", "eventId", "timeMs", "text"}
    assert "smells: loop_cut, announce_unheard" in ran("runs", "--smell", "--store", store).out
    then = ran("runs", "--smell", "--kind", "exchange", "--at", f"{flow(store)}@reply", "--store", store)
    assert "smells:" not in then.out
    assert "smells" not in ran("runs", "--store", store, "--json").json["runs"][0]
    assert "loop_cut: " in ran("replay", flow(store), "--store", store).out
    assert [
        one["code"] for one in ran("replay", flow(store), "--store", store, "--json").json["smells"]
    ] == smells["exchange"]
    drawn = ran("show", flow(store), "--store", store)
    assert "loop_cut  " in drawn.out
    shown = ran("show", flow(store), "--store", store, "--json").json["smells"]
    assert [one["code"] for one in shown] == smells["exchange"]
    assert ran("show", f"{flow(store)}@reply", "--store", store, "--json").json["smells"] == []
    alone = ran("smells", flow(store), "--store", store, "--json").json
    assert [one["code"] for one in alone["smells"]] == smells["exchange"]
    assert "loop_cut" in ran("smells", flow(store), "--store", store).out


@pytest.mark.parametrize("typed", ["0", "99999", "nothing", "event:0000dead"])
def test_what_names_no_event_is_refused_and_says_the_forms(store: str, typed: str) -> None:
    found = ran("why", typed, "--store", store)

    assert found.exit_code == 1
    assert "EVENT|PLACE: " in found.err


@pytest.mark.clause("WHY-1", "WHY-2", "ORIGIN-1", "SMELL-1")
def test_an_imported_state_is_explained_too(tmp_path: Path) -> None:
    store = f"sqlite:///{GoldenLog('0.1.0', 'base').unpack(tmp_path)}"

    why = ran("why", 267, "--store", store, "--json").json

    assert (why["root"]["kind"], why["root"]["position"]) == ("person", 239)
    assert [(one["code"], one["asDecided"]) for one in why["explanations"]] == [("turn_limit", None)]
    origin = ran("origin", "pingpong turn 1 by requester", "--store", store, "--json").json
    assert (origin["first"]["who"], origin["hops"][0]["sessionKey"]) == (
        "agent:main:main",
        "agent:research:main",
    )
    for row in ran("runs", "--kind", "spawn", "--store", store, "--json").json["runs"][:3]:
        begun = ran("why", row["id"], "--forward", "--store", store, "--json").json
        assert (begun["event"]["topic"], begun["open"]) == ("spawn_accepted.1", [])
        assert begun["effects"]
    texts = [one["text"] for one in (*why["causes"], why["root"])]
    texts += [row["text"] for row in ran("messages", "--store", store, "--json").json["messages"]]
    assert [text for text in texts if text.startswith("[Sat ")] == []  # what OpenClaw put before them (IMP-3)
    assert any(
        row["smells"]
        for row in ran("runs", "--smell", "--limit", 200, "--store", store, "--json").json["runs"]
    )


@pytest.mark.clause("PLACE-3", "FIND-1", "IMP-4")
def test_of_an_import_people_read_what_was_said_and_no_more(tmp_path: Path) -> None:
    """`state` printed whole answers of tools first, and `search` what the importer has noted as evidence."""
    store = f"sqlite:///{GoldenLog('0.1.0', 'base').unpack(tmp_path)}"
    row = next(
        row
        for row in ran("runs", "--kind", "exchange", "--limit", 200, "--store", store, "--json").json["runs"]
        if row["turns"] > 1
    )
    stood = ran("state", f"{row['id']}@turn:1", "--store", store)
    given = [
        block["text"]
        for session in ran("state", f"{row['id']}@turn:1", "--store", store, "--json").json["sessions"]
        for message in session["transcript"]
        if message["role"] == "toolResult"
        for block in message["content"]
    ]
    assert max(map(len, given)) > 1000
    assert "more characters (--json has all)" in stood.out
    answers = re.findall(r"^  tool .*\n((?:      .*\n)*)", stood.out, re.MULTILINE)
    assert len(answers) > 5
    assert max(answer.count("\n") for answer in answers) <= 12  # some are of two texts
    found = ran("search", "llm", "--kind", "exchange_accepted", "--store", store, "--json").json["hits"]
    assert found
    assert not any("agents/main/sessions" in hit["snippet"] for hit in found)


@pytest.mark.clause("ORIGIN-1")
def test_the_words_that_are_asked_for_are_shown_wherever_they_stand(logs: Logs, tmp_path: Path) -> None:
    """Of the answer of a tool all its fields were shown, of a long text its beginning."""

    def forwards(turn: Turn) -> str:
        if turn.step != "message":
            return "REPLY_SKIP"
        asked = {"agentId": "research", "message": "Well?", "timeoutSeconds": 20}
        return str(turn.tools.call("sessions_send", asked)["status"])

    with Booth(logs.at(tmp_path)) as booth:
        agents = {"main": forwards, "research": lambda _: f"{'So it is. ' * 40}The dam is open."}
        system = booth.start(agents, {"telegram": MemoryChannel()}, LIMITED)
        system.inbound(channel="telegram", chat_id="ada", sender="ada", text="Go.", agent_id="main", wait=20)
        told = ran("origin", "the  dam IS", "--store", booth.url)
    assert "#" in told.out
    lines = [line for line in told.out.splitlines() if line.startswith("  #")]
    assert all("The dam is open." in line for line in lines)
    (given,) = (line for line in lines if "sessions_send → main gives: " in line)
    assert "gives: …" in given


@pytest.mark.clause("FIND-2", "IMP-4")
@pytest.mark.parametrize("name", ["base", "restricted", "global"])
def test_of_an_import_it_is_not_said_that_nothing_went_outside(name: str, tmp_path: Path) -> None:
    """`messages --delivered` said so of every imported message, and `deliveries` had no texts: nobody knows that."""
    store = f"sqlite:///{GoldenLog('0.1.0', name).unpack(tmp_path)}"

    told = ran("messages", "--delivered", "--store", store)
    assert "what of it went outside was not imported" in told.out
    assert "nothing of it went outside" not in told.out
    listed = ran("messages", "--delivered", "--store", store, "--json").json["messages"]
    assert [one for one in listed if "delivered" in one] == []
    assert "no texts; an imported record has none of its own" in ran("deliveries", "--store", store).out
    rows = ran("runs", "--store", store).out
    assert ("`intersession sessions` shows who was spoken to" in rows) == (name == "global")
