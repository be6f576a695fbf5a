"""Runs recorded scenarios of the original on a system of ours, and says where the two differ.

A scenario has what was there before (imported as a state directory of the original's), what the requester's model did
(`steps`), what every other model was told to say (`policy`, `scripts`), and what came of it (`theirs`). Time stands still
at the scenario's own time; `WAKES` says what somebody who sleeps waits for.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from intersession import MemoryChannel, SessionSystem, Turn
from intersession_events.facts import (
    ChildArchived,
    DeliveryDecided,
    DeliveryDone,
    DeliveryFailed,
    DeliveryUnknown,
    ExchangeAccepted,
    ExchangeClosed,
    Message,
    ResultHanded,
    RunAborted,
    RunCompleted,
    RunFailed,
    RunQueued,
    RunStarted,
    SpawnAccepted,
    SpawnClosed,
    TextBlock,
    TurnRequested,
    message_in,
    text_of,
)
from intersession_events.log.recorded import parts_in
from intersession_events.stores.opened import open_log
from intersession_events.transcripts.openclaw.importing import import_openclaw
from intersession_projections.views.inline_views import inline_views
from support import paths
from support.fakes import ManualClock, look_at_clock
from support.running import WAIT, pass_time, wait_for

DATA = paths.DATA / "recordings"

Row = dict[str, Any]
Wake = Callable[[SessionSystem, Turn], None]

MARKER = re.compile(r"\[\[LLM:(\w+)\]\]")
SQUEEZED = re.compile(r"⟦(.{1,8}?)\*(\d+)⟧", re.DOTALL)
ANNOUNCED = re.compile(r"Status: (\w+)\nResult: (.*)\nNotes: (.*?)(?:\nStats: [^\n]*)?\Z", re.DOTALL)
"""What is told of a sub-agent that has ended (SPAWN-10)."""
CHANGED: Final = ("label", "abortedLastRun", "lastChannel", "lastTo", "deliveryContext")
"""What of a session's row is compared after a scenario, beside what spawned it."""
OWN_TOOLS: Final = frozenset({"read"})
"""Tools that the original's agents bring, and that are an agent's own here as well."""


def expanded(value: Any) -> Any:
    """Write out what `compact.squeeze` wrote short."""
    if isinstance(value, str):
        return SQUEEZED.sub(lambda match: match[1] * int(match[2]), value)
    if isinstance(value, dict):
        return {name: expanded(item) for name, item in value.items()}
    if isinstance(value, list):
        return [expanded(item) for item in value]
    return value


@cache
def scenarios() -> dict[str, Row]:
    """Return all recorded scenarios by name; those of a crash have nothing but a name."""
    entries = _lines_of("entries.jsonl")
    rows = _lines_of("scenarios.jsonl")
    for row in rows:
        for before in row.get("prepared", {}).values():
            before["entry"] = entries[before["entry"]]
    return {row["scenario"]: row for row in rows}


def _lines_of(name: str) -> list[Row]:
    # Not `splitlines`: a text may have a separator of lines in it that JSON does not escape.
    return [
        expanded(json.loads(line)) for line in (DATA / name).read_text(encoding="utf-8").split("\n") if line
    ]


@cache
def configs() -> dict[str, Row]:
    """Return the original's configurations by name."""
    found: dict[str, Row] = json.loads((DATA / "configs.json").read_text(encoding="utf-8"))
    return found


# --- the scripted model


def _until(kind: type[Any]) -> Wake:
    def wait(system: SessionSystem, turn: Turn) -> None:
        del turn
        wait_for(system, kind)

    return wait


def _until_its_time_is_up(system: SessionSystem, turn: Turn) -> None:
    clock = system._clock
    assert isinstance(clock, ManualClock)
    assert turn.deadline is not None
    clock.advance(turn.deadline - clock.now_ms())
    look_at_clock(system._parts.timers)
    wait_for(system, RunFailed, lambda event: event.run_id == turn.run_id)


WAKES: Final[dict[tuple[str, str], Wake]] = {
    ("sessions_spawn.child_timeout", "too late"): _until_its_time_is_up,
    ("sessions_spawn.requester_busy_when_done", "agents_list"): _until(ResultHanded),
    ("sessions_spawn.two_children_one_turn", "result B"): _until(SpawnClosed),
    ("sessions_send.to_running_subagent", "child done"): _until(ExchangeAccepted),
    ("sessions_send.to_running_subagent", "announce"): _until(TurnRequested),
}
"""What a model that was told to sleep waits for instead, by scenario and what it says or calls next.

Whoever is not named here sleeps where nothing else happens meanwhile: the clock is moved on.
"""


class Model:
    """The recordings' model: does what a mark in the message says, else what the scenario has for this kind of turn."""

    def __init__(self, row: Row, clock: ManualClock) -> None:
        self._row = row
        self._clock = clock
        self.system: SessionSystem | None = None
        self.results: list[Row] = []

    def __call__(self, turn: Turn) -> str:
        """Answer a turn."""
        if turn.message == self._row["asked"]:
            return self._play(turn, self._row["steps"], keep=True)
        policy = self._row["policy"]
        if turn.step == "announce":
            return self._announced(turn, policy)
        if turn.step == "reply":
            return self._say(turn, self._turn(turn, policy.get("reply", {}).get("byTurn", [])))
        if ANNOUNCED.match(turn.message):
            return self._say(turn, policy.get("subagentAnnounce", "NO_REPLY"))
        mark = MARKER.search(turn.message)
        if mark is not None and mark[1] in self._row["scripts"]:
            return self._play(turn, self._row["scripts"][mark[1]], keep=False)
        return f"ack: {turn.message}"

    def _announced(self, turn: Turn, policy: Row) -> str:
        """Announce. The original's children have no such turn: theirs has nothing to add to what they said."""
        self._sleep(turn, 0, "announce")
        if "subagent" in turn.session_key and "sub-agent" in turn.context:
            said = [text_of(message) for message in turn.transcript if message.role == "assistant"]
            return "ANNOUNCE_SKIP" if said[-1:] == ["ANNOUNCE_SKIP"] else ""
        return self._say(turn, policy.get("announce", "ANNOUNCE_SKIP"))

    def _turn(self, turn: Turn, said: Sequence[Any]) -> Any:
        number = (turn.asked.provenance.turn if turn.asked.provenance is not None else None) or 0
        if number <= len(said):
            return said[number - 1]
        who = "requester" if turn.session_key == self._row["requester"] else "target"
        return f"pingpong turn {number} by {who}"

    def _play(self, turn: Turn, steps: Sequence[Row], *, keep: bool) -> str:
        for step in steps:
            if "tool" not in step and "tools" not in step:
                return self._say(turn, step)
            for call in step.get("tools", [step]):
                if "text" in call:
                    turn.recorder.said((TextBlock(text=call["text"]),))
                if "sleepMs" in step:
                    self._sleep(turn, step["sleepMs"], call["tool"])
                result = self._call(turn, call["tool"], call["args"])
                if keep:
                    self.results.append(json.loads(json.dumps(result)))
        return ""

    def _call(self, turn: Turn, tool: str, args: Row) -> Any:
        if tool not in OWN_TOOLS:
            return turn.tools.call(tool, args)
        call_id = turn.record_call(tool, args)
        said = [message for told in self._row["theirs"]["transcripts"].values() for message in told]
        result: Row = next(message["result"] for message in said if message.get("tool") == tool)
        turn.record_result(call_id, tool, json.dumps(result, indent=2))
        return result

    def _say(self, turn: Turn, step: Any) -> str:
        if isinstance(step, str):
            return step
        if "http" in step:
            raise RuntimeError(f"HTTP {step['http']}: {step['errorMessage']}")
        if step.get("sleepMs"):
            self._sleep(turn, step["sleepMs"], step["say"])
        said: str = step["say"]
        return said

    def _sleep(self, turn: Turn, ms: int, next_step: str) -> None:
        wake = WAKES.get((self._row["scenario"], next_step))
        assert self.system is not None
        if wake is not None:
            wake(self.system, turn)
        else:
            pass_time(self.system, self._clock, ms)


# --- one scenario


def written(row: Row, folder: Path, config: Row) -> Path:
    """Write what was there before a scenario as a state directory of the original's."""
    stores: dict[str, Row] = {}
    for key, before in row["prepared"].items():
        agent = key.split(":")[1] if key.startswith("agent:") else "main"
        stores.setdefault(agent, {})[key] = before["entry"]
        sessions = folder / "agents" / agent / "sessions"
        sessions.mkdir(parents=True, exist_ok=True)
        if "messages" in before:
            lines = _lines(before["entry"]["sessionId"], before["messages"])
            path = sessions / f"{before['entry']['sessionId']}.jsonl"
            path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    for agent, store in stores.items():
        (folder / "agents" / agent / "sessions" / "sessions.json").write_text(json.dumps(store))
    # All that an import reads of it, and parsing JSON5 takes its time.
    agents = [{"id": agent["id"]} for agent in config["agents"]["list"] if agent.get("default")]
    settings = {
        "session": {"scope": config["session"].get("scope", "per-sender")},
        "agents": {"list": agents},
    }
    (folder / "openclaw.json").write_text(json.dumps(settings))
    return folder


def _lines(session_id: str, messages: Sequence[Row]) -> Iterator[Row]:
    first = messages[0]["timestamp"] if messages else 0
    yield {"type": "session", "version": 3, "id": session_id, "timestamp": first, "cwd": "/"}
    for number, message in enumerate(messages):
        yield {
            "type": "message",
            "id": f"m{number}",
            "parentId": f"m{number - 1}" if number else None,
            "timestamp": message["timestamp"],
            "message": message,
        }


class Performance:
    """A scenario, run here: what the tools answered, what was said, sent and left behind."""

    def __init__(self, row: Row, folder: Path) -> None:
        self.row = row
        clock = ManualClock(row["at"])
        config = configs()[row["config"]]
        log = open_log(":memory:", inline=inline_views(), clock=clock.now_ms)
        if row["prepared"]:
            import_openclaw(written(row, folder / "state", config), log, clock=clock.now_ms)
        model = Model(row, clock)
        self.channel = MemoryChannel()
        agents = dict.fromkeys((agent["id"] for agent in config["agents"]["list"]), model)
        text = json.dumps(config).replace("$STATE", str(folder / "work"))
        with SessionSystem(
            log, agents=agents, channels={"testchan": self.channel}, config=json.loads(text), clock=clock
        ) as system:
            model.system = system
            before = log.head()
            self.before = self._sessions(system)
            key = "main" if row["requester"] == "global" else row["requester"]
            accepted = system.gateway.call(
                "agent", {"message": row["asked"], "sessionKey": key, "idempotencyKey": row["scenario"]}
            )
            assert accepted["status"] == "accepted", accepted
            settle(system, before)
            self.results = model.results
            self.events = list(log.all(after=before))
            self.sessions = self._sessions(system)

    def key_of(self, recorded: str) -> str:
        """Return the key under which the operator sees a session of the recording."""
        if recorded == "global":
            return "agent:main:main"
        return recorded

    @staticmethod
    def _sessions(system: SessionSystem) -> dict[str, Row]:
        listed: Any = system.tools().call("sessions_list", {"limit": 200})["sessions"]
        return {whole(item["key"]): item for item in listed}

    def changes(self) -> dict[str, Row]:
        """Return what the scenario changed in the rows of sessions; all of it where there was none before."""
        found: dict[str, Row] = {}
        for key in {*self.before, *self.sessions}:
            before, after = self.before.get(key), self.sessions.get(key)
            if after is None:
                found[key] = {"gone": True}
            elif before is None:
                found[key] = {"opened": True} | {name: after[name] for name in CHANGED if name in after}
                if "spawnedBy" in after:
                    found[key]["spawnedBy"] = whole(after["spawnedBy"])
            else:
                change = {n: after.get(n) for n in CHANGED if after.get(n) != before.get(n)}
                if after["sessionId"] != before["sessionId"]:
                    change["reset"] = True
                if change:
                    found[key] = change
        return found

    def transcripts(self) -> dict[str, list[Message]]:
        """Return what was said during the scenario, by session, each run's messages together.

        What waits for a busy session is in its transcript at once, and so may come before what the run that is under
        way still says. The original writes it when its own run begins.
        """
        run_of: dict[str, str] = {}
        started: list[str] = []
        said: list[tuple[str, Message]] = []
        for item in self.events:
            if (message := message_in(item.event)) is not None:
                said.append((item.stream.removeprefix("session:"), message))
            match item.event:
                case RunQueued():
                    run_of[item.event.message_id] = item.event.run_id
                case RunStarted():
                    started.append(item.event.run_id)
                case _:
                    pass
        found: dict[str, list[Message]] = {}
        order = {run_id: number for number, run_id in enumerate(started)}
        for key, message in sorted(
            said, key=lambda one: order.get(run_of.get(one[1].id, one[1].run_id or ""), len(order))
        ):
            found.setdefault(key, []).append(message)
        return found


def whole(key: str) -> str:
    """Return a key as its stream has it: the operator sees those of the default agent in their bare form (KEY-2, KEY-3)."""
    return key if key.startswith("agent:") else f"agent:main:{key}"


def settle(system: SessionSystem, after: int) -> None:
    """Wait until all that was begun behind a position is over."""
    open_things: set[str] = set()
    begun = False
    for item in parts_in(system.follow(after, timeout=WAIT)):
        match item.event:
            case RunQueued():
                begun = True
                open_things.add(f"run {item.event.run_id}")
            case RunCompleted() | RunFailed() | RunAborted():
                open_things.discard(f"run {item.event.run_id}")
            case ExchangeAccepted() | DeliveryDecided():
                open_things.add(item.stream)
            case SpawnAccepted():
                open_things.add(item.stream)
                if item.event.cleanup == "delete":
                    open_things.add(f"archive {item.stream}")
            case ExchangeClosed() | SpawnClosed() | DeliveryDone() | DeliveryFailed() | DeliveryUnknown():
                open_things.discard(item.stream)
            case ChildArchived():
                open_things.discard(f"archive {item.stream}")
            case _:
                pass
        if begun and not open_things:
            return
    raise AssertionError(f"not over: {open_things}")
