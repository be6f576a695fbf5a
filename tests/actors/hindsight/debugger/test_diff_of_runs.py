"""What differs between two runs, and between two places of one, on real logs (DIFF)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from intersession import MemoryChannel, SessionSystem, ToolRefused, Turn, open_log
from intersession_actors.hindsight.debugger.debugger import Debugger
from intersession_actors.hindsight.debugger.diff import DiffAnswer
from intersession_actors.hindsight.debugger.view import View
from intersession_events.facts import (
    Message,
    MessageRecorded,
    RunCompleted,
    RunInterrupted,
    RunQueued,
    RunStarted,
    SpawnClosed,
    ToolCallBlock,
)
from intersession_projections.questions.places.located import steps_of_flow
from intersession_projections.questions.places.runs_named import RunNames
from support.running import SEES_ALL, closed_exchange, merged, wait_for
from support.story import MAIN, Story

RESEARCH, DESK = "agent:research:main", "agent:desk:main"
SECRET = "sk-abcdefghijklmnopqrstuvwxyz0123456789"
CONFIG = merged(
    SEES_ALL,
    {"agents": {"list": [{"id": "main", "default": True}, {"id": "research"}, {"id": "desk"}]}},
    {"session": {"agentToAgent": {"maxPingPongTurns": 3}}},
)


def research(turn: Turn) -> str:
    wet = "wet" in str(turn.transcript[-1])
    if turn.step == "reply":
        return "Up to 2.8 tonnes, not more." if wet else "Up to 3.5 tonnes, not more."
    if turn.step == "announce":
        return f"The token is {SECRET}."
    if "look" in turn.message:
        turn.tools.call("sessions_history", {"sessionKey": RESEARCH, "limit": 3})
    return "Yes."


def main(turn: Turn) -> str:
    if turn.session_key != MAIN:
        return "84 km."
    if turn.message == "Spawn.":
        return str(turn.tools.call("sessions_spawn", {"task": "Measure it.", "label": "detour"})["status"])
    return "And when it is wet?" if "wet" in str(turn.transcript) and turn.step == "reply" else "How heavy?"


class Told:
    """A log with runs that are alike, and some that are not; everything is asked of it."""

    def __init__(self, folder: Path) -> None:
        agents = {"main": main, "research": research, "desk": lambda _: "hello"}
        channels = {"telegram": MemoryChannel()}
        self.system = SessionSystem(folder / "log.db", agents=agents, channels=channels, config=CONFIG)
        greeting: dict[str, Any] = {"channel": "telegram", "chat_id": "1", "sender": "ann"}
        self.system.inbound(text="hi", agent_id="desk", wait=20, **greeting)
        self.system.inbound(text="hi", agent_id="research", wait=20, **greeting)
        self.plain, self.looked, self.again = (
            self.asked(words) for words in ("Is it open?", "Is it open? look", "Is it open?")
        )
        self.spawned = self.system.inbound(text="Spawn.", wait=20, **greeting)["runId"]
        wait_for(self.system, SpawnClosed)

    def asked(self, words: str) -> str:
        sent = {"agentId": "research", "message": words, "timeoutSeconds": 20}
        run_id = self.system.tools(MAIN).call("sessions_send", sent)["runId"]
        closed_exchange(self.system, run_id)
        return str(run_id)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    found = Told(tmp_path_factory.mktemp("diff"))
    with found.system:
        yield found


def kinds(found: DiffAnswer) -> dict[str, str]:
    return {turn["turn"]: turn["kind"] for turn in found["turns"]}


@pytest.mark.clause("DIFF-2")
def test_two_runs_that_mean_the_same_do_not_differ_save_exactly(told: Told) -> None:
    found = told.system.debug.diff(told.plain, told.again)

    assert (found["same"], found["firstDivergence"]) == (True, None)
    assert list(kinds(found)) == [
        "start", "reply", "turn:1", "turn:2", "turn:3", "loop", "announce", "announce/delivery", "end",
    ]  # fmt: skip
    exactly = told.system.debug.diff(told.plain, told.again, exact=True)
    assert not exactly["same"]
    assert exactly["firstDivergence"] is not None
    assert exactly["firstDivergence"]["turn"] == "start"
    assert {field["field"] for field in exactly["turns"][1]["differs"]} == {
        "ids", "eventIds", "times", "positions", "hashes",
    }  # fmt: skip


@pytest.mark.clause("DIFF-1")
def test_it_begins_where_the_runs_begin_to_differ_and_names_what_an_agent_called(told: Told) -> None:
    debug = told.system.debug
    found = debug.diff(told.plain, told.looked)

    (field,) = found["turns"][0]["differs"]
    assert field["words"] == [{"of": "both", "text": "Is it open?"}, {"of": "b", "text": " look"}]
    first = found["firstDivergence"]
    assert first is not None
    assert first["place"] == debug.state(told.plain, at=f"{told.plain}@start")["place"]
    assert first["b"] == debug.state(told.looked, at=f"{told.looked}@start")["place"]
    assert kinds(found)["reply/sessions_history"] == "only_b"
    assert kinds(found)["reply/sessions_history/result"] == "only_b"
    assert {kinds(found)[turn] for turn in ("reply", "turn:1", "turn:2", "end")} == {"same"}


@pytest.mark.clause("DIFF-1")
def test_what_a_run_began_is_compared_within_it(told: Told) -> None:
    found = told.system.debug.diff(told.spawned, told.spawned)
    assert found["same"]
    assert [turn for turn in kinds(found) if turn.startswith("reply/spawn/")] == [
        "reply/spawn/start", "reply/spawn/reply", "reply/spawn/announce", "reply/spawn/announce/delivery",
        "reply/spawn/end",
    ]  # fmt: skip


@pytest.mark.clause("DIFF-1", "DIFF-2")
def test_every_place_of_a_run_differs_from_the_whole_in_what_came_behind_it_alone(told: Told) -> None:
    debug = told.system.debug
    flow = debug.view.flow(told.plain)
    steps = len(steps_of_flow(debug.view.log, flow))
    seen: set[str] = set()
    for step in range(0, steps, 7):
        here = f"{told.plain}@start{step:+d}"
        assert debug.diff(here, here)["same"]
        found, back = debug.diff(here, told.plain), debug.diff(told.plain, here)
        assert found["same"] == back["same"]
        # A turn that was asked and not answered is there, and open.
        assert set(kinds(found).values()) <= {"same", "changed", "only_b"}
        assert list(kinds(found).values()).count("changed") <= 1
        done = {turn for turn, kind in kinds(found).items() if kind == "same"}
        assert seen <= done
        seen = done
    two = debug.diff(f"{told.plain}@turn:1", f"{told.plain}@turn:2")
    assert two["firstDivergence"] is not None
    assert (two["firstDivergence"]["turn"], two["firstDivergence"]["kind"]) == ("turn:2", "changed")
    # The event that ended turn 1 has asked for turn 2.
    assert two["firstDivergence"]["a"] is not None
    assert (two["totals"]["a"]["turns"], two["totals"]["b"]["turns"]) == (1, 2)


@pytest.mark.clause("DIFF-2")
def test_runs_of_two_logs_are_compared_though_no_id_and_no_time_is_the_same(
    told: Told, tmp_path: Path
) -> None:
    twin = Told(tmp_path)
    twin.system.close()
    with open_log(tmp_path / "log.db") as other:
        for one, another in (
            (told.plain, twin.plain),
            (told.looked, twin.looked),
            (told.spawned, twin.spawned),
        ):
            found = told.system.debug.diff(one, another, other=other.debug)
            assert found["same"], found["firstDivergence"]


@pytest.mark.clause("DIFF-1", "HIST-4")
def test_a_stranger_reads_no_secrets_and_finds_no_run_of_others(told: Told, log_url: str) -> None:
    system = told.system
    reader = system.debug.view.reader
    stranger = Debugger(View(reader, reader.requester(DESK)))
    assert SECRET in str(system.debug.diff(told.plain, told.spawned))
    assert SECRET not in str(stranger.diff(told.plain, told.spawned))

    closed = merged(CONFIG, {"tools": {"sessions": {"visibility": "self"}}})
    with SessionSystem(log_url, agents={"main": main}, config=closed) as hidden:
        run = hidden.inbound(channel="x", chat_id="1", text="hi", sender="ann", wait=20)["runId"]
        desk = Debugger(View(hidden.debug.view.reader, hidden.debug.view.reader.requester(DESK)))
        said: list[str] = []
        for name in (run, "00000000-0000-4000-8000-000000000000"):
            with pytest.raises(ToolRefused) as refused:
                desk.diff(f"{name}@reply", name)
            said.append(str(refused.value).replace(name, "…"))
        assert said[0] == said[1]


@pytest.mark.clause("DIFF-1")
@pytest.mark.parametrize("name", ["nothing", "12", "head", "nothing@turn:1", "@turn:1", "{run}@turn:9", ""])
def test_what_is_no_run_and_no_place_of_one_is_refused(told: Told, name: str) -> None:
    with pytest.raises(ToolRefused, match=r"^b: "):
        told.system.debug.diff(told.plain, name.replace("{run}", told.plain))


@pytest.mark.clause("DIFF-2")
def test_a_run_that_was_cut_off_and_tried_again_means_what_it_came_to(log_url: str) -> None:
    story = Story(log_url)
    stream = f"session:{MAIN}"

    def call(run: str, number: int) -> MessageRecorded:
        block = ToolCallBlock(id=f"{run}-{number}", name="look", arguments="{}")
        said: Any = Message(
            id=f"{run}-m{number}", role="assistant", content=(block,), timestamp=0, run_id=run
        )
        return MessageRecorded(session_id="s", message=said)

    story.open()
    for run, attempts in (("run-once", 1), ("run-twice", 2)):
        asked = Message(id=f"{run}-asked", role="user", content="Go.", timestamp=0)
        story.put(stream, RunQueued(run_id=run, session_id="s", step="message", message=asked))
        for attempt in range(1, attempts + 1):
            story.put(stream, RunStarted(run_id=run, attempt=attempt, context_hash="h"), call(run, attempt))
            if attempt < attempts:
                story.put(stream, RunInterrupted(run_id=run, attempt=attempt))
        story.put(stream, RunCompleted(run_id=run, attempt=attempts, text="done"))
    story.close()

    with open_log(log_url) as opened:
        assert getattr(RunNames(opened.log).run("run-twice", field="run"), "attempt", None) == 2
        assert opened.debug.diff("run-once", "run-twice")["same"]
        assert not opened.debug.diff("run-once", "run-twice", exact=True)["same"]
