"""A run as a sequence diagram, as far as who asks may see it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from intersession import MemoryChannel, SessionSystem, ToolRefused, Turn
from intersession_actors.calls.service.reader import Reader
from intersession_actors.hindsight.debugger.debugger import Debugger
from intersession_actors.hindsight.debugger.view import View
from support.any_log import Logs
from support.running import SEES_ALL, closed_exchange, merged

MAIN, RESEARCH, DESK = "agent:main:main", "agent:research:main", "agent:desk:main"
SECRET = "sk-abcdefghijklmnopqrstuvwxyz0123456789"
LISTED = {"agents": {"list": [{"id": "main", "default": True}, {"id": "research"}, {"id": "desk"}]}}
TWO_TURNS = {"session": {"agentToAgent": {"maxPingPongTurns": 2}}}


@pytest.fixture(scope="module")
def told(logs: Logs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SessionSystem, str]]:
    path: Path = tmp_path_factory.mktemp("show")
    agents = {
        "main": lambda _: "fine",
        "research": lambda _: f"the token is {SECRET}",
        "desk": lambda _: "hello",
    }
    with SessionSystem(logs.at(path), agents=agents, config=merged(SEES_ALL, LISTED, TWO_TURNS)) as system:
        system.inbound(channel="telegram", chat_id="1", text="hi", sender="ann", agent_id="desk", wait=20)
        asked = {"agentId": "research", "message": "what is it?", "timeoutSeconds": 20}
        run_id = system.tools(MAIN).call("sessions_send", asked)["runId"]
        closed_exchange(system, run_id)
        yield system, run_id


def as_session(system: SessionSystem, key: str) -> Debugger:
    reader: Reader = system.debug.view.reader
    return Debugger(View(reader, reader.requester(key)))


@pytest.mark.clause("SHOW-1")
def test_it_has_lanes_and_rows_and_says_where_it_is_looked_at_from(told: tuple[SessionSystem, str]) -> None:
    system, run = told

    found = system.debug.show(run, at=f"{run}@turn:1")

    assert [lane["name"] for lane in found["lanes"]] == ["main", "research"]
    arrows = [row for row in found["rows"] if row["row"] == "arrow"]
    assert [(row["source"], row["target"], row["how"]) for row in arrows] == [
        (0, 1, "asks"),
        (1, 0, "replies"),
        (0, 1, "turn 1"),
    ]
    assert found["place"]["text"] == "after turn 1: main has answered, research has not yet"
    # An answer stands where it was said, which is what its turn names; where it came to the other is told beside.
    assert [row["position"] - found["place"]["position"] for row in arrows][2:] == [0]
    assert arrows[2]["arrived"] > arrows[2]["position"]
    assert system.debug.show(run, at=f"{run}@reply")["place"]["position"] == arrows[1]["position"]
    later = [row for row in found["rows"] if row["row"] != "gap" and row["position"] > arrows[2]["position"]]
    assert [row["kind"] for row in later] == ["end", "note", "end"], "what comes later is there, too"


@pytest.mark.clause("SHOW-1")
def test_a_notebook_shows_it_as_a_picture(told: tuple[SessionSystem, str]) -> None:
    system, run = told
    picture = system.debug.diagram(run, at=f"{run}@turn:1")._repr_html_()
    assert picture.startswith("<div><svg ")
    assert 'opacity="0.35"' in picture
    assert ' opacity="' not in system.debug.diagram(run).svg()


@pytest.mark.clause("SHOW-1", "HIST-4")
def test_a_stranger_to_a_session_reads_no_secrets_of_it(told: tuple[SessionSystem, str]) -> None:
    system, run = told

    assert SECRET in system.debug.diagram(run).text(200)
    assert SECRET in as_session(system, RESEARCH).diagram(run).text(200).replace("\n", "")
    assert SECRET not in str(as_session(system, DESK).show(run))


@pytest.mark.clause("SHOW-1", "PLACE-2")
def test_what_is_no_run_and_what_is_out_of_reach_are_refused_alike(log_url: str) -> None:
    closed = merged(LISTED, {"tools": {"sessions": {"visibility": "self"}}})
    with SessionSystem(log_url, agents={"desk": lambda _: "hello"}, config=closed) as system:
        run = system.inbound(channel="x", chat_id="1", text="hi", sender="ann", agent_id="desk", wait=20)[
            "runId"
        ]
        words: list[str] = []
        for name in (run, "00000000-0000-4000-8000-000000000000"):
            with pytest.raises(ToolRefused) as refused:
                as_session(system, MAIN).show(name)
            words.append(str(refused.value).replace(name, "…"))
        assert words[0] == words[1]
        assert as_session(system, DESK).show(run)["lanes"] != []


def hands_on(key: str, answer: str) -> Callable[[Turn], str]:
    def agent(turn: Turn) -> str:
        if turn.step in {"message", "primary"}:
            turn.tools.call(
                "sessions_send", {"sessionKey": key, "message": f"{turn.message}?", "timeoutSeconds": 20}
            )
        return answer

    return agent


@pytest.mark.clause("SHOW-1")
def test_it_has_what_was_asked_of_the_run_that_called_and_what_that_answered(
    logs: Logs, tmp_path: Path
) -> None:
    """The person who had asked was on no drawing of what came of it (issue 12)."""
    agents = {
        "main": lambda _: "fine",
        "research": hands_on(MAIN, "it is fine"),
        "desk": hands_on(RESEARCH, "it is fine, they say"),
    }
    config = merged(SEES_ALL, LISTED, TWO_TURNS)
    channels = {"telegram": MemoryChannel()}
    with SessionSystem(logs.at(tmp_path), agents=agents, channels=channels, config=config) as system:
        system.inbound(channel="telegram", chat_id="1", text="hi", sender="ann", agent_id="desk", wait=20)
        listed = system.debug.runs(kind=["exchange"])["runs"]
        for run in listed:
            closed_exchange(system, run["runId"])
        inner, outer = (run["id"] for run in listed)
        of_ann, of_research = (arrows_of(system, run) for run in (outer, inner))

    assert of_ann[:2] == [("ann (telegram)", "desk", "hi", True), ("desk", "research", "hi?", False)]
    assert ("desk", "telegram:1", "it is fine, they say", True) in of_ann
    assert of_research[:2] == [("desk", "research", "hi?", True), ("research", "main", "hi??", False)]
    assert [arrow for arrow in of_research if "telegram" in arrow[0] or "telegram" in arrow[1]] == []


def arrows_of(system: SessionSystem, run: str) -> list[tuple[str, str, str, bool]]:
    found = system.debug.show(run)
    names = [str(lane["name"]) for lane in found["lanes"]]
    return [
        (names[row["source"]], names[row["target"]], row["text"], "caller" in row)
        for row in found["rows"]
        if row["row"] == "arrow"
    ]
