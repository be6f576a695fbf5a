"""The state of a log at any place of a real exchange, in Python."""

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any, assert_type, get_overloads

import pytest

from intersession import MemoryChannel, SessionSystem, ToolRefused, Turn, echo
from intersession.cli.app import COMMANDS
from intersession_actors.hindsight.debugger.answers import StateAnswer
from intersession_actors.hindsight.debugger.debugger import Debugger
from intersession_actors.hindsight.debugger.diff import DiffAnswer
from intersession_actors.hindsight.debugger.lens import LensAnswer
from intersession_actors.hindsight.debugger.origin import OriginAnswer
from intersession_actors.hindsight.debugger.search import SearchAnswer
from intersession_actors.hindsight.debugger.show import ShowAnswer
from intersession_actors.hindsight.debugger.smells import SmellingAnswer, SmellsAnswer
from intersession_actors.hindsight.debugger.state import ChangesAnswer
from intersession_actors.hindsight.debugger.verbs.verbs import VERBS
from intersession_actors.hindsight.debugger.why import EffectsAnswer, WhyAnswer
from intersession_events.basics import ids
from intersession_events.facts import (
    DeliveryDone,
    ExchangeClosed,
    TurnEnded,
    message_in,
)
from intersession_events.log.recorded import parts_in
from intersession_projections.questions.places.located import steps_of_flow
from support.any_log import Logs
from support.running import SEES_ALL, closed_exchange, merged, wait_for

MAIN, RESEARCH = "agent:main:main", "agent:research:main"
TWO_TURNS = {"session": {"agentToAgent": {"maxPingPongTurns": 2}}}


@pytest.fixture(scope="module")
def told(logs: Logs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SessionSystem, str]]:
    """Return a system in which main asked research and two turns followed, and the id of the exchange's first run."""
    path: Path = tmp_path_factory.mktemp("state")
    agents = {"main": lambda turn: f"main to: {turn.message[-20:]}", "research": lambda _: "it is open"}
    with SessionSystem(logs.at(path), agents=agents, config=merged(SEES_ALL, TWO_TURNS)) as system:
        asked = {"agentId": "research", "message": "is it open?", "timeoutSeconds": 20}
        run_id = system.tools(MAIN).call("sessions_send", asked)["runId"]
        closed_exchange(system, run_id)
        yield system, run_id


def position_of(system: SessionSystem, kind: type[Any], turn: int | None = None) -> int:
    events: list[tuple[int, Any]] = [
        (recorded.position, recorded.event) for recorded in parts_in(system.log.all())
    ]
    (found,) = [
        position
        for position, event in events
        if isinstance(event, kind) and (turn is None or event.turn == turn)
    ]
    return found


def words_at(system: SessionSystem, at: str) -> tuple[int, str]:
    place = system.debug.state(at=at, messages=0)["place"]
    return place["position"], place["text"]


@pytest.mark.clause("PLACE-1", "PLACE-5")
def test_each_mark_of_a_run_is_after_the_event_it_names_and_says_so(told: tuple[SessionSystem, str]) -> None:
    system, run = told
    exchange = ids.derive(system.log.log_id, "exchange", run)

    assert words_at(system, f"{run}@reply") == (
        position_of(system, TurnEnded, 0),
        "after the primary reply: research has answered, main has not yet",
    )
    assert words_at(system, f"{run}@turn:1") == (
        position_of(system, TurnEnded, 1),
        "after turn 1: main has answered, research has not yet",
    )
    assert words_at(system, f"{run}@turn:2") == (
        position_of(system, TurnEnded, 2),
        "after the loop: it ended after 2 turns, the limit of turns was reached",
    )
    assert words_at(system, f"{exchange[:8]}@end")[0] == position_of(system, ExchangeClosed)
    assert words_at(system, f"{run}@turn:2-1")[0] < words_at(system, f"{run}@turn:2")[0]
    assert words_at(system, "0") == (0, "before the first event")


@pytest.mark.clause("PLACE-5")
def test_what_comes_next_stands_beside_a_place(told: tuple[SessionSystem, str]) -> None:
    system, run = told
    after_one = system.debug.state(run, at=f"{run}@turn:1")["next"]
    assert after_one is not None
    assert after_one["text"] == "research is asked for turn 2"
    assert system.debug.state(at="head")["next"] is None


@pytest.mark.clause("PLACE-1", "PLACE-5")
def test_a_run_by_itself_is_said_in_its_own_words_at_each_of_its_events(log_url: str) -> None:
    """Places of a run without an exchange were told by the names of their events (issue 10)."""

    def looks(turn: Turn) -> str:
        return str(turn.tools.call("sessions_list", {})["count"])

    channels = {"telegram": MemoryChannel()}
    with SessionSystem(log_url, agents={"main": looks}, channels=channels) as system:
        asked = system.inbound(channel="telegram", chat_id="1", text="hi", sender="ann", wait=20)
        wait_for(system, DeliveryDone)
        run, told = asked["runId"], list[str]()
        for step in steps_of_flow(system.log, system.debug.view.flow(run)):
            place = system.debug.state(run, at=step.position)["place"]
            told.append(place["text"].removeprefix(f"after #{step.position}, "))
            assert system.debug.state(at=f"event:{place['eventId']}")["place"] == place
        assert told[-8:] == [
            "after the start: main has been asked, and has not begun yet",
            "at work: main has begun, and has not answered yet",
            "main calls a tool, for its answer",
            "a tool answers main, for its answer",
            "after the reply: main has answered, and is done",
            "a text of main is to go to telegram",
            "telegram is given the text of main",
            "telegram has the text of main",
        ]
        assert words_at(system, f"{run}@end")[1] == told[-4]


@pytest.mark.clause("PLACE-5")
def test_of_a_run_a_place_says_how_that_run_stood_there_however_much_came_later(
    told: tuple[SessionSystem, str],
) -> None:
    """`show` and `state` said where the log stood, of a run that had ended long before (issue 10)."""
    system, run = told
    debug, end = system.debug, position_of(system, ExchangeClosed)
    spoken: Any = {"channel": "telegram", "chat_id": "1", "sender": "ann", "text": "and you?"}
    other = system.inbound(**spoken, wait=20)["runId"]

    assert debug.show(run)["place"] == debug.state(at=f"{run}@end")["place"]
    assert debug.show(run)["next"] is None
    stood, head = debug.state(run), system.log.head()
    assert (stood["place"]["position"], stood["next"]) == (head, None)
    assert stood["place"]["text"] == (
        f"after the end: main and research are done, nowhere to announce to, at #{end}, and {head - end} events of the log later"
    )
    early = debug.show(other, at=f"{run}@reply")
    assert early["place"]["text"].startswith(
        "before the start; after the primary reply: research has answered"
    )
    assert early["next"] is not None


@pytest.mark.clause("PLACE-3")
def test_the_state_of_a_run_has_both_transcripts_as_they_stood(told: tuple[SessionSystem, str]) -> None:
    system, run = told
    early, late = system.debug.state(run, at=f"{run}@reply"), system.debug.state(run, at=f"{run}@end")

    assert [session["key"] for session in early["sessions"]] == [MAIN, RESEARCH]
    assert transcripts(early)[RESEARCH] == ["is it open?", "it is open"]
    assert len(transcripts(late)[RESEARCH]) > len(transcripts(early)[RESEARCH])
    assert [(one["turns"], one["state"]) for one in (*early["exchanges"], *late["exchanges"])] == [
        (0, "open"),
        (2, "closed"),
    ]
    assert [one["phase"] for one in (*early["exchanges"], *late["exchanges"])] == ["turn", "closed"]
    assert early["exchanges"][0]["latest"] == "it is open"
    assert early["exchanges"][0]["settings"]["maxTurns"] == 2
    assert early["open"]["exchanges"] != []
    assert late["open"] == {"runs": [], "exchanges": [], "spawns": [], "deliveries": []}


@pytest.mark.clause("PLACE-3")
def test_two_places_give_what_differs(told: tuple[SessionSystem, str]) -> None:
    system, run = told
    found = system.debug.state("research", frm=f"{run}@start", to=f"{run}@reply")
    assert [found["from"]["position"], found["to"]["position"]] == sorted(
        (found["from"]["position"], found["to"]["position"])
    )
    paths = {change["path"]: (change["before"], change["after"]) for change in found["changes"]}
    assert paths[f"runs/{run}"][1]["reply"] == "it is open"
    (exchange,) = {path.split("/")[1] for path in paths if path.startswith("exchanges/")}
    assert paths[f"exchanges/{exchange}/primaryStatus"] == (None, "ok")
    later = system.debug.state("research", frm=f"{run}@reply", to=f"{run}@end")["changes"]
    assert any(change["path"].startswith(f"sessions/{RESEARCH}/transcript/") for change in later)
    assert system.debug.state(frm="head", to="head")["changes"] == []


@pytest.mark.clause("PLACE-3")
def test_as_a_session_only_what_it_could_see_then_is_there(log_url: str) -> None:
    closed = {"tools": {"sessions": {"visibility": "self"}}, "runs": {"shutdownGraceSeconds": 0}}
    agents = {
        "main": lambda _: "fine",
        "ops": lambda _: "the token is sk-abcdefghijklmnopqrstuvwxyz0123456789",
    }
    with SessionSystem(log_url, agents=agents, config=closed) as system:
        for agent in ("main", "ops"):
            system.inbound(channel="telegram", chat_id="1", text="hi", sender="ann", agent_id=agent, wait=20)
        seen = system.debug.state(as_="ops")
        assert [session["key"] for session in seen["sessions"]] == ["agent:ops:main"]
        assert "config" not in seen
        with pytest.raises(ToolRefused, match="was not there yet"):
            system.debug.state(as_="ops", at=1)


@pytest.mark.clause("PLACE-3", "GATE-2")
def test_status_at_a_place_is_what_stood_there_in_numbers(told: tuple[SessionSystem, str]) -> None:
    """`status` told of now alone (issue 10)."""
    system, run = told
    then = system.status(at=f"{run}@turn:1")

    assert system.gateway.call("status", {"at": f"{run}@turn:1"}) == then
    assert then["place"]["text"] == "after turn 1: main has answered, research has not yet"
    assert (then["openRuns"], len(then["open"]["exchanges"]), then["held"]) == (0, 1, [])
    assert then["sessions"]["count"] == 2
    assert {one["key"] for one in then["sessions"]["recent"]} == {MAIN, RESEARCH}
    assert system.status(at="head")["open"]["exchanges"] == []
    assert system.status(at=0)["sessions"] == {"count": 0, "recent": []}
    assert system.gateway.call("status", {"at": "noon"})["code"] == "invalid_request"
    assert "place" not in system.gateway.call("status")


@pytest.mark.clause("PLACE-2")
@pytest.mark.parametrize(
    ("given", "said"), [({"at": "noon"}, "at: 'noon'"), ({"to": "noon", "frm": 1}, "to: 'noon'")]
)
def test_what_is_no_place_is_refused_by_name(
    told: tuple[SessionSystem, str], given: dict[str, Any], said: str
) -> None:
    with pytest.raises(ToolRefused, match=said):
        told[0].debug.state(**given)


async def test_a_verb_can_be_awaited(told: tuple[SessionSystem, str]) -> None:
    system, _ = told
    assert await system.debug.acall("state", {"at": 3}) == system.debug.state(at=3)


async def test_each_method_has_a_typed_twin_to_be_awaited(told: tuple[SessionSystem, str]) -> None:
    debug, run = told[0].debug, told[1]

    assert assert_type(await debug.astate(run, at=3), StateAnswer) == debug.state(run, at=3)
    assert assert_type(await debug.astate(frm=3), ChangesAnswer) == debug.state(frm=3)
    assert assert_type(await debug.awhy(run), WhyAnswer) == debug.why(run)
    assert assert_type(await debug.awhy(run, forward=True), EffectsAnswer) == debug.why(run, forward=True)
    assert assert_type(await debug.asmells(run), SmellsAnswer) == debug.smells(run)
    assert assert_type(await debug.asmells(), SmellingAnswer) == debug.smells()
    assert assert_type(await debug.alens(run, attempt=1), LensAnswer) == debug.lens(run, attempt=1)
    assert assert_type(await debug.ashow(run), ShowAnswer) == debug.show(run)
    assert assert_type(await debug.adiff(run, f"{run}@reply"), DiffAnswer) == debug.diff(run, f"{run}@reply")
    assert assert_type(await debug.aorigin("open"), OriginAnswer) == debug.origin("open")
    assert assert_type(await debug.asearch("open"), SearchAnswer) == debug.search("open")
    assert (await debug.adiagram(run)).text() == debug.diagram(run).text()
    assert (await debug.areplay(run))["same"]
    with pytest.raises(ToolRefused, match="at: 'noon'"):
        await debug.astate(at="noon")


def test_each_verb_has_its_method_its_twin_and_its_command(told: tuple[SessionSystem, str]) -> None:
    debug, methods = told[0].debug, {*VERBS, "diagram"}
    assert [name for name in methods if not callable(getattr(debug, name))] == []
    assert [name for name in methods if not inspect.iscoroutinefunction(getattr(debug, f"a{name}"))] == []
    named_otherwise = {"access": "audit"}
    assert [name for name in VERBS if named_otherwise.get(name, name) not in COMMANDS] == []


def test_a_method_takes_what_the_struct_of_its_verb_has(told: tuple[SessionSystem, str]) -> None:
    debug, beside = told[0].debug, {"diff": {"other"}, "replay": {"progress"}}
    for name, verb in VERBS.items():
        method = getattr(Debugger, name)
        variants = (get_overloads(method) if inspect.isfunction(method) else []) or [getattr(debug, name)]
        taken = {each for one in variants for each in inspect.signature(one).parameters} - {"self"}
        assert taken - beside.get(name, set()) == {*verb.arguments.__struct_fields__}, name
    with pytest.raises(TypeError, match="nonsense"):
        debug.runs(nonsense=1)  # type: ignore[call-arg] # pyright: ignore[reportCallIssue] - what the test is about
    assert "newest first" in (debug.runs.__doc__ or "")


def transcripts(found: StateAnswer) -> dict[str, list[str]]:
    return {
        session["key"]: [text_of(message["content"]) for message in session["transcript"]]
        for session in found["sessions"]
    }


def text_of(content: Any) -> str:
    return content if isinstance(content, str) else "".join(block.get("text", "") for block in content)


@pytest.mark.clause("PLACE-3", "CFG-4")
def test_the_configuration_at_a_place_is_the_one_in_force_there_without_secrets(log_url: str) -> None:
    """A reload was not recorded: the log said that the settings of the start were in force for ever."""
    secret = {"gateway": {"auth": {"token": "a-token-that-is-long-enough-1234"}}}
    with SessionSystem(log_url, agents={"main": echo()}, config=merged(TWO_TURNS, secret)) as system:
        before = system.log.head()
        system.reload(merged(secret, {"session": {"agentToAgent": {"maxPingPongTurns": 4}}}))
        assert system.log.wait_for(before + 1, timeout=20)
        system.reload(merged(secret, {"session": {"agentToAgent": {"maxPingPongTurns": 4}}}))
        turns = [
            system.debug.state(at=at)["config"]["settings"]["session"]["agentToAgent"]["maxPingPongTurns"]
            for at in (before, "head")
        ]
        assert turns == [2, 4]
        assert "a-token" not in str(system.debug.state(at="head"))
        assert system.log.head() == before + 1


@pytest.mark.clause("PLACE-3")
@pytest.mark.parametrize("messages", [1, 2, 200])
def test_a_message_that_comes_changes_one_transcript_however_many_of_it_are_shown(
    told: tuple[SessionSystem, str], messages: int
) -> None:
    """The last messages of a transcript are shown: one that comes pushed another one out, which then was told as taken away."""
    system, run = told
    said = [
        (one.position, one.stream.removeprefix("session:"), brought.id)
        for one in system.log.all()
        if (brought := message_in(one.event)) is not None
    ]
    later = [one for number, one in enumerate(said) if one[1] in {key for _, key, _ in said[:number]}]
    assert len(later) >= 6  # other tests of this module have said more

    for position, key, message in later:
        path = f"sessions/{key}/transcript/{message}"
        there = system.debug.state(run, frm=position - 1, to=position, messages=messages)["changes"]
        back = system.debug.state(run, frm=position, to=position - 1, messages=messages)["changes"]

        of_transcripts = [one for one in (*there, *back) if "/transcript" in one["path"]]
        assert [one["path"] for one in of_transcripts] == [path, path]
        assert [of_transcripts[0]["before"], of_transcripts[1]["after"]] == [None, None]


@pytest.mark.clause("PLACE-3")
def test_a_session_that_is_busy_pushes_another_off_the_list_and_that_is_no_change_of_the_other(
    told: tuple[SessionSystem, str],
) -> None:
    system, _ = told
    head = system.log.head()
    sessions = {
        place: [one["key"] for one in system.debug.state(at=place, limit=1)["sessions"]]
        for place in range(1, head)
    }
    place = next(one for one in range(2, head) if sessions[one - 1] != sessions[one] and sessions[one - 1])

    changes = system.debug.state(frm=place - 1, to=place, limit=1)["changes"]

    assert [one["path"] for one in changes if one["after"] is None] == []
