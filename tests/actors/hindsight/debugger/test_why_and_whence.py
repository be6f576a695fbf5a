"""Why things are as they are, where words came from and what smells, as the debugger says it (WHY, ORIGIN, SMELL)."""

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from intersession import MemoryChannel, Seen, SessionSystem, Smell, ToolRefused, Turn
from intersession_actors.hindsight.debugger.debugger import Debugger
from intersession_actors.hindsight.debugger.view import View
from intersession_events.facts import DeliveryDone, ExchangeClosed, LoopEnded, SessionArchived
from intersession_events.log.recorded import parts_in
from support.any_log import Logs
from support.running import SEES_ALL, exchange_of, merged, wait_for
from support.story import Story

MAIN, RESEARCH, OPS = "agent:main:main", "agent:research:main", "agent:ops:main"
CLAIM = "the ferry is closed on Sunday"
TWO_TURNS = {"session": {"agentToAgent": {"maxPingPongTurns": 2}}}


def main(turn: Turn) -> str:
    if turn.step == "reply":
        return "Then I know."
    asked = {"agentId": "research", "message": "What of the ferry?", "timeoutSeconds": 20}
    return f"They say: {turn.tools.call('sessions_send', asked)['reply']}"


def shouting(seen: Seen) -> Iterator[Smell]:
    for recorded in seen.events:
        if isinstance(recorded.event, ExchangeClosed):
            yield Smell("closed", recorded.position, "it was closed")


@pytest.fixture(scope="module")
def told(logs: Logs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SessionSystem, str]]:
    """A system in which ada asked main, main asked research, and two turns followed; and the id of the run of research."""
    path: Path = tmp_path_factory.mktemp("why")
    agents = {
        "main": main,
        "research": lambda _: f"I hear {CLAIM}.",
        "ops": lambda _: "token=sk-abcdefabcdef1234567890",
    }
    config = merged(SEES_ALL, TWO_TURNS)
    with SessionSystem(
        logs.at(path),
        agents=agents,
        channels={"telegram": MemoryChannel()},
        config=config,
        smells=[shouting],
    ) as system:
        system.inbound(
            channel="telegram", chat_id="ada", sender="ada", text="And Sunday?", agent_id="main", wait=20
        )
        wait_for(system, ExchangeClosed)
        wait_for(system, DeliveryDone)
        system.inbound(channel="telegram", chat_id="ops", sender="eve", text="Key?", agent_id="ops", wait=20)
        (run,) = [
            run.run_id
            for run in system.service.runs.recent(20)
            if run.session_key == RESEARCH and run.turn == 0
        ]
        yield system, run


def position_of(system: SessionSystem, kind: type[object]) -> int:
    (found,) = [
        recorded.position for recorded in parts_in(system.log.all()) if isinstance(recorded.event, kind)
    ]
    return found


@pytest.mark.clause("WHY-1", "WHY-2")
def test_an_end_is_explained_and_goes_back_to_whoever_asked(told: tuple[SessionSystem, str]) -> None:
    system, _ = told
    ended = position_of(system, LoopEnded)

    why = system.debug.why(ended)

    assert why["event"]["position"] == ended
    assert why["root"] is not None
    assert (why["root"]["kind"], why["root"]["who"], why["root"]["text"]) == (
        "person",
        "ada on telegram",
        "And Sunday?",
    )
    assert why["causes"][-1]["position"] == why["root"]["position"]
    (loop,) = why["explanations"]
    assert (loop["code"], loop["asDecided"], loop["rule"]) == ("turn_limit", True, "LOOP-2")
    assert {"session.agentToAgent.maxPingPongTurns": 2}.items() <= {
        one["name"]: one["value"] for one in loop["inputs"]
    }.items()
    assert "turn_requested" in {one.get("verdict") for one in loop["instead"]}


@pytest.mark.clause("WHY-2")
def test_of_an_exchange_everything_is_explained_that_went_otherwise(told: tuple[SessionSystem, str]) -> None:
    system, run = told

    by_run, by_exchange = system.debug.why(run), system.debug.why(exchange_of(system, run))

    assert by_run == by_exchange
    assert [(one["about"], one["code"]) for one in by_run["explanations"]] == [
        ("loop", "turn_limit"),
        ("exchange", "no_route"),
    ]
    assert by_run["event"]["position"] == position_of(system, ExchangeClosed)


@pytest.mark.clause("WHY-1")
def test_an_event_is_named_by_position_id_or_place(told: tuple[SessionSystem, str]) -> None:
    system, run = told
    ended = position_of(system, LoopEnded)
    event_id = system.debug.why(ended)["event"]["eventId"]

    assert {
        system.debug.why(name)["event"]["position"]
        for name in (ended, str(ended), event_id, event_id[:13], f"event:{event_id}", f"{run}@turn:2")
    } == {ended}


@pytest.mark.clause("WHY-1")
def test_forward_is_all_that_came_of_a_persons_words(told: tuple[SessionSystem, str]) -> None:
    system, _ = told
    root = system.debug.why(position_of(system, LoopEnded))["root"]
    assert root is not None

    led = system.debug.why(root["position"], forward=True)

    positions, left = set[int](), list(led["effects"])
    while left:
        effect = left.pop()
        positions.add(effect["position"])
        left.extend(effect["effects"])
    assert {position_of(system, LoopEnded), position_of(system, ExchangeClosed)} <= positions
    assert led["open"] == []
    assert msgspec.json.decode(msgspec.json.encode(led)) == led


@pytest.mark.clause("WHY-1")
@pytest.mark.parametrize("name", [0, 999_999, "nothing", "event:0000dead", "", "zz" * 200])
def test_what_names_no_event_is_refused(told: tuple[SessionSystem, str], name: str | int) -> None:
    with pytest.raises(ToolRefused) as refused:
        told[0].debug.why(name)

    assert refused.value.code == "invalid_request"


@pytest.mark.clause("ORIGIN-1")
def test_who_said_it_first_and_who_repeated_it(told: tuple[SessionSystem, str]) -> None:
    system, run = told

    found = system.debug.origin(CLAIM)

    assert found["first"] is not None
    assert (found["first"]["who"], found["first"]["via"]) == (RESEARCH, "agent")
    via = [(hop["via"], hop["sessionKey"]) for hop in found["hops"]]
    assert {("tool", MAIN), ("agent", MAIN), ("delivery", MAIN), ("sessions_send", MAIN)} <= set(via)
    within = system.debug.origin(CLAIM, run=run)
    assert within["first"] == found["first"]
    assert ("delivery", MAIN) not in {(hop["via"], hop["sessionKey"]) for hop in within["hops"]}
    assert system.debug.origin(CLAIM, at=found["first"]["position"] - 1)["first"] is None


@pytest.mark.clause("ORIGIN-1")
def test_blank_or_too_many_words_are_refused(told: tuple[SessionSystem, str]) -> None:
    for words in ("", "  ", "x" * 513):
        with pytest.raises(ToolRefused):
            told[0].debug.origin(words)


@pytest.mark.clause("SMELL-1")
def test_smells_of_a_run_are_those_of_its_exchange_and_the_hosts_own(told: tuple[SessionSystem, str]) -> None:
    system, run = told

    found = system.debug.smells(run)

    codes = [smell["code"] for smell in found["smells"]]
    assert codes == ["loop_cut", "announce_unheard", "closed"]
    assert found["smells"][0]["place"]["position"] == position_of(system, LoopEnded)
    assert system.gateway.call("debug.smells", {"run": run}) == found


@pytest.mark.clause("SMELL-1")
def test_smells_of_no_run_are_those_of_all_that_smell_in_pages(told: tuple[SessionSystem, str]) -> None:
    system, run = told
    exchange = exchange_of(system, run).partition(":")[2]
    debug = system.debug

    everything = debug.smells()
    (own,) = [one for one in everything["runs"] if one["run"] == exchange]
    assert own["smells"] == debug.smells(run)["smells"]
    assert (everything["looked"], everything["cursor"]) == (3, None)
    assert debug.smells(session="ops")["runs"] == []
    (cut,) = debug.smells(code=["loop_cut"])["runs"]
    assert [smell["code"] for smell in cut["smells"]] == ["loop_cut"]
    first = debug.smells(code=["loop_cut"], limit=1)
    assert first["runs"] == [cut]
    assert first["cursor"] is not None
    assert debug.smells(code=["loop_cut"], limit=1, cursor=first["cursor"])["runs"] == []
    assert debug.smells(since="head")["looked"] == 0
    assert debug.smells(at=f"{run}@turn:1")["runs"] == []
    assert debug.smells(run, at=f"{run}@turn:1")["smells"] == []
    with pytest.raises(ToolRefused, match="session: it is for all runs"):
        debug.call("smells", {"run": run, "session": "main"})


@pytest.mark.clause("SMELL-1", "VIS-4")
def test_smells_are_told_to_whoever_sees_the_session_and_of_those_alone(
    told: tuple[SessionSystem, str],
) -> None:
    """A limited caller was told of no smell at all."""
    system, run = told
    reader = system.service.reader
    seen = Debugger(View(reader, within=lambda key: key == RESEARCH))
    other = Debugger(View(reader, within=lambda key: key == OPS))

    assert [smell["code"] for smell in seen.smells(run)["smells"]][:1] == ["loop_cut"]
    assert [one["run"] for one in seen.smells()["runs"]] == [exchange_of(system, run).partition(":")[2]]
    assert other.smells()["runs"] == []
    with pytest.raises(ToolRefused):
        other.smells(run)


@pytest.mark.clause("WHY-1", "ORIGIN-1")
def test_what_is_beyond_reach_is_as_if_it_were_not_there(told: tuple[SessionSystem, str]) -> None:
    system, _ = told
    reader = system.service.reader
    debug = Debugger(View(reader, within=lambda key: key == RESEARCH))

    why = debug.why(position_of(system, LoopEnded))

    assert why["root"] is None
    assert {cause["stream"].partition(":")[0] for cause in why["causes"]} == {"session", "exchange"}
    assert f"session:{MAIN}" not in {cause["stream"] for cause in why["causes"]}
    assert [(one["code"], one["inputs"]) for one in why["explanations"]] == [("turn_limit", [])]
    found = debug.origin(CLAIM)
    assert found["first"] is not None
    assert {found["first"]["sessionKey"], *(hop["sessionKey"] for hop in found["hops"])} == {RESEARCH}
    (asked,) = [item for item in system.log.all() if item.stream == f"session:{OPS}" and item.version == 1]
    with pytest.raises(ToolRefused):
        debug.why(asked.position)


@pytest.mark.clause("ORIGIN-1")
def test_a_secret_that_is_hidden_can_not_be_found_by_its_words(told: tuple[SessionSystem, str]) -> None:
    system, _ = told
    reader = system.service.reader
    stranger = Debugger(View(reader, reader.requester(MAIN)))

    assert system.debug.origin("sk-abcdefabcdef1234567890")["first"] is not None
    assert stranger.origin("sk-abcdefabcdef1234567890")["first"] is None
    assert stranger.origin("sk-abcdefabcdef1234567890") == stranger.origin("sk-0000000000000000000000")


@pytest.mark.clause("WHY-1", "SPAWN-11")
def test_the_archiving_of_a_sub_agent_goes_back_to_who_wanted_its_work(log_url: str) -> None:
    """It ended with itself: nothing that was recorded led to it."""

    def main(turn: Turn) -> str:
        if turn.step == "message" and ":subagent:" not in turn.session_key:
            turn.tools.call("sessions_spawn", {"task": "count", "cleanup": "delete"})
        return "done"

    channels = {"t": MemoryChannel()}
    with SessionSystem(log_url, agents={"main": main}, channels=channels) as system:
        system.inbound(channel="t", chat_id="1", sender="ada", text="count them", agent_id="main", wait=20)
        wait_for(system, SessionArchived)
        (archived,) = [at.position for at in system.log.all() if isinstance(at.event, SessionArchived)]
        why = system.debug.why(archived)

    assert why["root"] is not None
    assert (why["root"]["kind"], why["root"]["text"]) == ("person", "count them")
    assert "spawn_closed.1" in [cause["topic"] for cause in why["causes"]]


def reads(tool: str, key: str) -> dict[str, object]:
    match tool:
        case "sessions_history":
            return {"sessionKey": key}
        case "sessions_search":
            return {"query": "ferry"}
        case _:
            return {"messageLimit": 5}


@pytest.mark.clause("ORIGIN-1", "KEY-2")
@pytest.mark.parametrize("tool", ["sessions_history", "sessions_search", "sessions_list"])
@pytest.mark.parametrize("whose", ["main", "research"])
def test_what_a_tool_read_came_from_the_session_that_it_names(tool: str, whose: str, log_url: str) -> None:
    """Also among many in one answer, and where that shows the session of the same agent as `main`."""

    def speak(turn: Turn) -> str:
        if turn.message == "read":
            turn.tools.call(tool, reads(tool, f"agent:{whose}:desk"))
        return f"I hear {CLAIM}."

    # With a main session that is called otherwise.
    config = merged(SEES_ALL, {"session": {"mainKey": "desk"}})
    reader = "agent:main:telegram:group:7"
    source = f"agent:{whose}:desk"
    with SessionSystem(log_url, agents={"main": speak, "research": speak}, config=config) as system:
        system.inbound(channel="telegram", chat_id="ada", sender="ada", text="say", agent_id=whose, wait=20)
        system.inbound(
            channel="telegram",
            chat_id="7",
            sender="ada",
            text="read",
            chat_type="group",
            agent_id="main",
            wait=20,
        )
        first = system.debug.origin(CLAIM)["first"]
        hops = system.debug.origin(CLAIM)["hops"]

    (read,) = [hop for hop in hops if hop["via"] == "tool"]
    assert first is not None
    assert (first["sessionKey"], read["sessionKey"]) == (source, reader)
    assert read["cause"] == first["position"]


@pytest.mark.sqlite("how a verb refuses is the same on both stores")
@pytest.mark.clause("WHY-1", "PLACE-2")
def test_what_names_nothing_is_told_so_and_what_names_several_which(tmp_path: Path) -> None:
    """It was said of an id with a slip that it names no place, and of the beginning of several ids, too."""
    story = Story(tmp_path / "log.db")
    story.open()
    for run_id in ("aaaa0001-0000-4000-8000-000000000001", "aaaa0001-0000-4000-8000-000000000002"):
        story.run(MAIN, run_id, "ready?", "yes")
    debug = Debugger(View(story.reader()))
    refused: list[tuple[Callable[[str], object], str, str]] = [
        (debug.why, "deadbeefdead", "no event, exchange, spawn, run or delivery is called 'deadbeefdead'"),
        (debug.why, "aaa", "of an id give 4 characters at least"),
        (debug.show, "aaa", "of an id give 4 characters at least"),
        (debug.why, "aaaa", "several ids begin with 'aaaa'"),
        (debug.why, "99999", "beyond the log's end"),
        (debug.why, "aaaa0001-0000-4000-8000-000000000001@turn:7", "@turn:7"),
    ]
    for verb, typed, complaint in refused:
        with pytest.raises(ToolRefused, match=complaint):
            verb(typed)
    story.close()
