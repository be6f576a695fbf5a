"""`runs` says each thing once, finds all that failed, and takes the names and words that it shows (FIND-2)."""

from pathlib import Path
from typing import Any

import pytest

from intersession import DeliveryRefused, MemoryChannel, Outbound, SessionSystem, Turn
from intersession.cli.questions.runs import CODES, ends_named, in_words
from intersession_events import facts
from support.doors.command_line import ran
from support.running import Booth, Gate, recorded, wait_for, wait_for_number

MAIN = "agent:main:main"
ASKED = {"agentId": "research", "message": "well?", "timeoutSeconds": 20}


def rows(store: str, *tokens: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ran("runs", *tokens, "--store", store, "--json").json["runs"]
    return found


def line(store: str, kind: str = "exchange") -> str:
    listed = ran("runs", "--kind", kind, "--store", store).out.splitlines()
    return listed[1]


def failing(turn: Turn) -> str:
    if turn.step == "reply":
        raise KeyError("season")
    return "yes"


def spoken_to(system: SessionSystem, channel: str, agent: str) -> None:
    system.inbound(channel=channel, chat_id="1", sender="ada", text="hi", agent_id=agent, wait=20)


@pytest.mark.clause("FIND-2")
def test_a_loop_that_a_failed_turn_ended_has_failed_and_is_found_by_the_words_that_are_shown(
    tmp_path: Path,
) -> None:
    """`--failed` left it out where its announce went well; and nobody could guess the word for it."""
    with Booth(str(tmp_path / "log.db")) as booth:
        agents = {"main": lambda _: "And then?", "research": failing}
        system = booth.start(agents, {"t": MemoryChannel()})
        spoken_to(system, "t", "research")
        system.tools(MAIN).call("sessions_send", ASKED)
        wait_for(system, facts.ExchangeClosed)
        system.close()

        (failed,) = rows(booth.url, "--failed")
        shown = line(booth.url)
        by_words = rows(booth.url, "--end", "A turn failed")

    assert (failed["kind"], failed["loopEnd"], failed["status"]) == ("exchange", "turn_failed", "ok")
    assert "a turn failed" in shown
    assert by_words == [failed]


@pytest.mark.clause("FIND-2")
def test_every_end_can_be_typed_by_its_code_and_by_its_words() -> None:
    for code in CODES:
        assert ends_named([code]) == (code,)
        assert in_words(code), code
        assert all(code in ends_named([words]) for words in in_words(code))


@pytest.mark.clause("FIND-2")
def test_a_word_that_is_no_end_is_refused_with_the_likely_one(tmp_path: Path) -> None:
    with Booth(str(tmp_path / "log.db")) as booth:
        booth.start({}).close()
        refused = ran("runs", "--end", "turnfailed", "--store", booth.url, "--json")

    assert refused.exit_code == 2
    assert "did you mean turn_failed" in refused.json["error"]
    assert "turn_limit (the limit of turns was reached)" in refused.json["error"]


@pytest.mark.clause("FIND-2")
@pytest.mark.parametrize("typed", ["u7", "ada", "t:u7", "Ada (u7)", "ada (u7) on t", "ADA on t", "u7 on t"])
def test_a_person_is_found_by_every_name_that_is_shown(tmp_path: Path, typed: str) -> None:
    """`telegram:ada` stood in every list, and was no name of anybody's."""
    with Booth(str(tmp_path / "log.db")) as booth:
        system = booth.start({"main": lambda _: "hello"}, {"t": MemoryChannel()})
        system.inbound(
            channel="t", chat_id="1", sender="u7", sender_name="Ada", text="hi", agent_id="main", wait=20
        )
        system.close()
        found = rows(booth.url, "--person", typed)
        said = ran("messages", "--person", typed, "--store", booth.url, "--json").json["messages"]
        nobody = ran("runs", "--person", "t:u8", "--store", booth.url, "--json").json

    assert len(found) == len(said) == 1
    assert nobody["runs"] == []
    assert "t:u7" in nobody["unknown"][0]["near"]


@pytest.mark.clause("FIND-2", "HIST-6")
def test_a_session_that_is_gone_is_told_once(tmp_path: Path) -> None:
    gate = Gate()
    key = "agent:research:other"
    with Booth(str(tmp_path / "log.db")) as booth:
        system = booth.start({"main": lambda _: "And then?", "research": gate.saying("yes", "reply")})
        system.gateway.call("sessions.patch", {"key": key, "label": "there"})
        asked = {"sessionKey": key, "message": "well?", "timeoutSeconds": 20}
        system.tools(MAIN).call("sessions_send", asked)
        gate.reached()
        system.gateway.call("sessions.delete", {"key": key})
        gate.open()
        wait_for(system, facts.ExchangeClosed)
        system.close()
        told = line(booth.url)
        why = ran("why", rows(booth.url)[0]["id"], "--store", booth.url).out

    assert told.count("the asked session is gone") == 1
    assert "sessionKey:" not in why
    assert "research/other was stopped, as operator archived its session" in why
    assert "aborted by archive" not in why
    assert "The exchange itself had begun with:" in why
    assert "main → research/other" in why.partition("The exchange itself had begun with:")[2]


@pytest.mark.clause("FIND-2", "ANN-3")
def test_what_became_of_an_announce_is_told_in_one_part(tmp_path: Path) -> None:
    """A refused one was told as not delivered twice; one that was late as if it had not been."""
    failing_once = [ConnectionError("502")]

    def late(_: Outbound) -> None:
        if failing_once:
            raise failing_once.pop()

    def closed(_: Outbound) -> None:
        raise DeliveryRefused("this room is closed")

    with Booth(str(tmp_path / "log.db")) as booth:
        agents = {"main": lambda _: "REPLY_SKIP", "research": lambda _: "yes", "ops": lambda _: "yes"}
        system = booth.start(agents, {"room": closed, "late": late})
        system.inbound(channel="room", chat_id="1", sender="a", text="hi", agent_id="research", deliver=False)
        system.inbound(channel="late", chat_id="2", sender="a", text="hi", agent_id="ops", deliver=False)
        for number, agent in enumerate(("research", "ops"), 1):
            system.tools(MAIN).call("sessions_send", {**ASKED, "agentId": agent})
            wait_for_number(system, facts.ExchangeClosed, number)
        assert len(recorded(system, facts.DeliveryFailed)) == 2
        system.close()
        told = ran("runs", "--kind", "exchange", "--store", booth.url).out
        listed = ran("deliveries", "--store", booth.url).out

    assert "; announced to late:2 at attempt 2" in told
    assert "; the announce could not be delivered to room:1: DeliveryRefused: this room is closed" in told
    assert "NOT" not in told
    assert "delivered to late:2 at attempt 2" in listed


@pytest.mark.clause("FIND-2", "P4")
def test_who_goes_on_is_said_once_of_what_a_process_left_open(tmp_path: Path) -> None:
    """One line said that the next start goes on, and that the next start tries again."""

    def down(_: Outbound) -> None:
        raise ConnectionError("down")

    with Booth(str(tmp_path / "log.db")) as booth:
        agents = {"main": lambda _: "REPLY_SKIP", "research": lambda _: "yes"}
        system = booth.start(agents, {"t": down})
        system.inbound(channel="t", chat_id="1", sender="ada", text="hi", agent_id="research", deliver=False)
        system.tools(MAIN).call("sessions_send", ASKED)
        wait_for(system, facts.DeliveryFailed)
        system.close()
        told = line(booth.url)

    assert told.count("the next start") == 1
    assert "not delivered to t:1 yet: ConnectionError: down" in told
