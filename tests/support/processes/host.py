"""A host of a session system, to be killed and started again: does what it is told, and ends once nothing is open any more.

Arguments: its directory, the URL of its log, a scenario, the channel its words go to, by how many hours its clock is ahead.

Each start calls the same tools with the same idempotency keys, as a client does that has had no answer. What it was
answered, how its agents were called and what its channels showed is in files of its own, each line synced before it goes on.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from intersession import Channel, DeliveryRefused, Outbound, Reply, SessionSystem, Turn
from intersession_actors.running.runtime.clock import SystemClock
from intersession_events.facts import Event, ExchangeAccepted, ExchangeClosed, ExchangeHeld, ToolCallBlock
from intersession_events.log.recorded import parts_in
from intersession_events.stores.opened import located
from support.processes.errands import ERRANDS, RUN, Bank

MAIN, RESEARCH, HELPER = "agent:main:main", "agent:research:main", "agent:helper:main"
HOUR_MS = 3_600_000
PATIENCE_S = 30.0

CONFIG: dict[str, Any] = {
    "tools": {
        "sessions": {"visibility": "all"},
        "agentToAgent": {"enabled": True},
        "sessions_spawn": {"attachments": {"enabled": True}},
    },
    "agents": {"defaults": {"subagents": {"archiveAfterMinutes": 60}}},
    "runs": {"shutdownGraceSeconds": 1},
    "transcripts": {"mirror": True},
}


COUNTED: dict[str, Any] = {"session": {"agentToAgent": {"limits": {"tokens": 1_000_000}}}}
"""What a run has used is recorded before the next one is asked for: no step shares the commit of the one before it."""


HELD: dict[str, Any] = {"session": {"agentToAgent": {"hold": "reply", "maxPingPongTurns": 1}}}
"""Each first reply waits until somebody has looked at it."""

PATIENT: dict[str, Any] = {
    "session": {"agentToAgent": {"maxPingPongTurns": 0, "announce": "routed"}},
    "runs": {"shutdownGraceSeconds": 1, "retryInterrupted": 100},
}
"""A run is tried again however often it is cut off, and a send is one run and nothing after it."""

CROWDED: dict[str, Any] = {
    "agents": {"list": [{"id": f"a{number}"} for number in range(128)]},
    "session": {"agentToAgent": {"limits": {"runs": 0, "wallSeconds": 0}}},
    "runs": {"shutdownGraceSeconds": 1, "retryInterrupted": 100},
}
"""Pairs of agents, whose runs are tried again however often they are cut off."""

CONFIGS = {"counted": COUNTED, "held": HELD, "errand": PATIENT, "errands": PATIENT, "crowd": CROWDED}


def progress_in(directory: Path) -> int:
    """Return how often a host was answered, has called its agents, and these have taken a step."""
    files = [directory / name for name in ("acks", "turns", "steps")]
    return sum(path.read_bytes().count(b"\n") for path in files if path.exists())


class Lines:
    """A file of JSON lines; each is on the disk before `add` returns. One that was cut off was never finished.

    Where its folder has a file `stop`, nothing that writes goes on behind that much progress: until it is killed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        stop = path.with_name("stop")
        self._stop = int(stop.read_text()) if stop.exists() else sys.maxsize
        # A kill comes in the middle of a line, too.
        os.truncate(self._file, path.read_bytes().rfind(b"\n") + 1)

    def add(self, line: Mapping[str, Any]) -> None:
        os.write(self._file, (json.dumps(line) + "\n").encode())
        os.fsync(self._file)
        if progress_in(self._path.parent) >= self._stop:
            threading.Event().wait()

    def all(self) -> list[dict[str, Any]]:
        finished = self._path.read_bytes().rpartition(b"\n")[0]  # somebody may be writing the next one
        return [json.loads(line) for line in finished.splitlines()]


class AheadClock(SystemClock):
    """The system's clock, some hours later."""

    def __init__(self, hours: int) -> None:
        self._ahead_ms = hours * HOUR_MS

    def now_ms(self) -> int:
        return super().now_ms() + self._ahead_ms


class Agents:
    """One function for all agents. It tells of its tools' use as it goes, and of the attempt it is in."""

    def __init__(self, turns: Lines, workspaces: Path) -> None:
        self._turns = turns
        self._workspaces = workspaces
        self._stopped = threading.Event()
        self.may_answer = threading.Event()
        """Until then, who is asked to wait for it does not answer."""

    def __call__(self, turn: Turn) -> str | Reply | None:
        self._turns.add({"run": turn.run_id, "attempt": turn.attempt, "partial": len(turn.partial)})
        match turn.step:
            case "message" | "compaction":
                return self._answer(turn)
            case "reply":
                provenance = turn.asked.provenance
                number = provenance.turn if provenance is not None else None
                return Reply.skip() if "quiet" in turn.message and number == 2 else f"{turn.message}+"
            case "announce" if "quiet" in turn.context:
                return Reply.skip()
            case "announce" if "speechless" in turn.context:
                return None
            case "announce":
                return f"announce of attempt {turn.attempt}"

    def stop(self) -> None:
        self._stopped.set()
        self.may_answer.set()

    def _answer(self, turn: Turn) -> str | None:
        if "for ever" in turn.message:
            self._stopped.wait()
        if "in your time" in turn.message:
            self.may_answer.wait()
        # It may have been killed between the two.
        blocks = [block for message in turn.partial for block in message.content]
        called = (block.id for block in blocks if isinstance(block, ToolCallBlock))
        call = next(called, None) or turn.record_call("search", {"for": turn.message})
        if all(message.tool_call_id != call for message in turn.partial):
            turn.record_result(call, "search", "found nothing")
        if "read" in turn.message:
            files = self._workspaces.glob("main/.openclaw/attachments/*/note.txt")
            return f"it says {[path.read_text() for path in files]}"
        return None if "speechless" in turn.message else f"{turn.message}: done in attempt {turn.attempt}"


class Channels:
    """`keyed` shows a key once, `plain` shows whatever it gets, and the two walls refuse all."""

    def __init__(self, calls: Lines, shown: Lines) -> None:
        self._calls = calls
        self._shown = shown
        self._lock = threading.Lock()
        self.all = {
            "keyed": Channel(deliver=self._show_once, idempotent=True),
            "plain": Channel(deliver=self._show),
            "keyed-wall": Channel(deliver=self._refuse, idempotent=True),
            "plain-wall": Channel(deliver=self._refuse),
        }

    def _show_once(self, outbound: Outbound) -> str:
        with self._lock:
            if all(line["key"] != outbound.key for line in self._shown.all()):
                self._shown.add({"key": outbound.key, "text": outbound.text})
        self._calls.add({"key": outbound.key})
        return "shown"

    def _show(self, outbound: Outbound) -> dict[str, Any]:
        self._shown.add({"key": outbound.key, "text": outbound.text})
        self._calls.add({"key": outbound.key})
        return {"shown": True}

    def _refuse(self, outbound: Outbound) -> None:
        self._calls.add({"key": outbound.key})
        raise DeliveryRefused("no such room")


def taken(ask: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
    """Ask until it is not refused for now, as a client does: a store that many ask at once, on a slow machine, may be `unavailable`."""
    until = time.monotonic() + PATIENCE_S
    while True:
        answer = ask()
        if answer.get("code") not in {"busy", "unavailable"} or time.monotonic() > until:
            return answer


class Host:
    """The system and what a scenario does with it."""

    def __init__(self, directory: Path, url: str, scenario: str, channel: str, hours: int) -> None:
        self._acks = Lines(directory / "acks")
        self._waits = Lines(directory / "waits")
        self._orders = Lines(directory / "orders")
        self._held = Lines(directory / "held")
        turns = Lines(directory / "turns")
        self.agents = Agents(turns, Path(located(url).place).parent / "workspaces")
        config = {**CONFIG, **CONFIGS.get(scenario.partition("-")[0], {})}
        names = [agent["id"] for agent in config["agents"].get("list", ())] or ["main", "research", "helper"]
        agents: dict[str, Any] = dict.fromkeys(names, self.agents)
        if scenario in ERRANDS:
            bank = Bank(Lines(directory / "paid"))
            agents["main"] = ERRANDS[scenario](Lines(directory / "steps"), bank, self.agents, turns)
        self._channel = channel
        self._clock = AheadClock(hours)
        self.system = SessionSystem(
            url,
            agents=agents,
            channels=Channels(Lines(directory / "calls"), Lines(directory / "shown")).all,
            config=config,
            clock=self._clock,
        )
        for held in self.system.status()["held"]:
            self._held.add({"holdId": held["holdId"]})

    def keep(self, call: str, answer: Mapping[str, Any]) -> None:
        self._acks.add({"call": call, "answer": answer, "position": self.system.log.head()})

    def person(self, agent_id: str, text: str, *, deliver: bool = False) -> None:
        """Say something to an agent's main session, which gives it a route. `deliver`: and have it answered."""
        answer = taken(
            lambda: self.system.inbound(
                channel=self._channel,
                chat_id=agent_id,
                agent_id=agent_id,
                text=text,
                sender="bob",
                message_id=text,
                deliver=deliver,
            )
        )
        if deliver:
            self.keep(text, answer)

    def send(self, message: str, timeout: float, *, requester: str = MAIN, target: str = RESEARCH) -> None:
        arguments: dict[str, Any] = {"sessionKey": target, "message": message, "timeoutSeconds": timeout}
        arguments["idempotencyKey"] = message
        self.keep(message, taken(lambda: self.system.tools(requester).call("sessions_send", arguments)))

    def spawn(self, requester: str, task: str, **arguments: Any) -> None:
        given = {"task": task, "idempotencyKey": task, **arguments}
        self.keep(task, taken(lambda: self.system.tools(requester).call("sessions_spawn", given)))

    def run_of(self, message: str) -> str:
        """Return the run of a message that was accepted."""
        return next(str(ack["answer"]["runId"]) for ack in self._acks.all() if ack["call"] == message)

    def order(self, name: str, method: str, **params: Any) -> None:
        """Do what an operator does, again and again until he is told that it is done; then never again."""
        if all(line["order"] != name for line in self._orders.all()):
            answer = self.system.gateway.call(f"exchanges.{method}", params)
            self._orders.add({"order": name, "answer": answer})

    def until_held(self, message: str, step: str) -> str:
        """Wait until a text of an exchange is held, and return the hold."""
        found = self._until(message, lambda event: isinstance(event, ExchangeHeld) and event.step == step)
        assert isinstance(found, ExchangeHeld)
        return found.hold_id

    def until_closed(self, message: str) -> None:
        """Wait until an exchange is over."""
        self._until(message, lambda event: isinstance(event, ExchangeClosed))

    def _until(self, message: str, is_it: Callable[[Event], bool]) -> Event:
        run_id, stream = self.run_of(message), ""
        for recorded in parts_in(self.system.follow(0, timeout=PATIENCE_S)):
            event = recorded.event
            if isinstance(event, ExchangeAccepted) and event.run_id == run_id:
                stream = recorded.stream
            if recorded.stream == stream and is_it(event):
                return event
        raise TimeoutError(f"{message} has not come so far; {self.system.status()}")

    def operator(self, key: str, message: str) -> None:
        given = {"sessionKey": key, "message": message, "idempotencyKey": message}
        self.keep(message, self.system.gateway.call("agent", given))

    def settle(self) -> None:
        """Wait until nothing is open, and nothing due, any more."""
        log, until = self.system.log, time.monotonic() + PATIENCE_S
        while left := self._open():
            if time.monotonic() > until:
                raise TimeoutError(f"still open: {left}; {self.system.status()}")
            log.wait_for(log.head() + 1, timeout=0.1)

    def end(self) -> None:
        """Ask for each run again, and stop."""
        self.settle()
        for run_id in dict.fromkeys(ack["answer"]["runId"] for ack in self._acks.all()):
            answer = self.system.gateway.call("agent.wait", {"runId": run_id, "timeoutMs": 0})
            self._waits.add({"answer": answer, "position": self.system.log.head()})
        self.agents.stop()
        self.system.close()

    def _open(self) -> list[str]:
        service = self.system.service
        return [
            *service.flows.open_exchanges(),
            *service.flows.open_spawns(),
            *service.flows.open_deliveries(),
            *(spawn.child for spawn in service.flows.spawns_with_files()),
            *(run.run_id for run in service.runs.open_runs()),
            *(
                spawn.child
                for spawn in service.flows.pending_archives()
                # Asked last: a spawn that is closed meanwhile is due from then on.
                if (spawn.archive_due_ms or 0) <= self._clock.now_ms()
            ),
        ]


def talk(host: Host) -> None:
    """One send that is waited for, talked over in five turns and announced; one that is not, and soon falls silent."""
    host.person("main", "this is main")
    host.person("research", "this is research")
    host.send("look it up", 10)
    host.settle()
    host.send("be quiet", 0)
    host.settle()


def counted(host: Host) -> None:
    """The same, with the tokens of its chains counted."""
    talk(host)


def ask(host: Host) -> None:
    """A person asks, and is answered."""
    host.person("research", "what is new", deliver=True)


def spawn(host: Host) -> None:
    """A sub-agent for a session that has a route; it is cleaned up after its announce."""
    host.person("main", "this is main")
    host.spawn(MAIN, "dig", cleanup="delete")


def files(host: Host) -> None:
    """A sub-agent that is given a file, which is gone after its announce."""
    host.person("main", "this is main")
    note = {"name": "note.txt", "content": "forty-two"}
    host.spawn(MAIN, "read this", cleanup="delete", attachments=[note])


def hand(host: Host) -> None:
    """A sub-agent for a session that has no route: the result is handed to it, and it runs on it."""
    host.operator(HELPER, "begin")
    host.settle()
    host.spawn(HELPER, "dig speechless", cleanup="delete")


def late(host: Host) -> None:
    """A sub-agent that does not come back in its time."""
    host.person("main", "this is main")
    host.spawn(MAIN, "dig for ever", runTimeoutSeconds=0.3)


def held(host: Host) -> None:
    """A reply is held and edited, the announce that somebody wants held too is let go on; another hold is withdrawn in time."""
    host.person("main", "this is main")
    host.person("research", "this is research")
    host.send("look it up", 0)
    run_id = host.run_of("look it up")
    reply = host.until_held("look it up", "reply")
    host.order("hold", "hold", runId=run_id, before="announce")
    host.order("release reply", "release", runId=run_id, holdId=reply, text="what a person wrote")
    announce = host.until_held("look it up", "announce")
    host.order("release announce", "release", runId=run_id, holdId=announce)
    host.until_closed("look it up")
    host.send("in your time", 0)
    run_id = host.run_of("in your time")
    host.order("hold again", "hold", runId=run_id, before="announce")
    host.order("withdraw", "release", runId=run_id)
    host.agents.may_answer.set()
    reply = host.until_held("in your time", "reply")
    host.order("release again", "release", runId=run_id, holdId=reply, action="drop")


def keep(host: Host) -> None:
    """A sub-agent that is archived an hour later."""
    host.person("main", "this is main")
    host.spawn(MAIN, "dig")


def crowd(host: Host, pairs: int) -> None:
    """So many pairs at once: each sends, and is held, has a sub-agent, or a person asks one of the two."""
    agents = [f"agent:a{number}:main" for number in range(2 * pairs)]

    def pair(number: int) -> None:
        requester, target = agents[2 * number : 2 * number + 2]
        for key in (requester, target):
            host.person(key.split(":")[1], f"this is {key}")
        if number % 4 == 0:
            host.order(f"hold {number}", "hold", sessionKey=target, before="next")
        message = f"look {number} up"
        host.send(message, 5 * (number % 2), requester=requester, target=target)
        if number % 4 == 0:
            hold = host.until_held(message, "reply")
            host.order(f"release {number}", "release", runId=host.run_of(message), holdId=hold)
        if number % 4 == 1:
            host.spawn(requester, f"dig {number}", cleanup="delete")
        if number % 4 == 2:
            host.person(target.split(":")[1], f"what is {number}", deliver=True)

    with ThreadPoolExecutor(pairs) as pool:
        list(pool.map(pair, range(pairs)))


def errand(host: Host) -> None:
    """A person sends an agent on an errand of many steps."""
    host.person("main", RUN, deliver=True)


def errands(host: Host) -> None:
    """The same, with all steps side by side."""
    errand(host)


SCENARIOS: dict[str, Callable[[Host], None]] = {
    **{
        scenario.__name__: scenario
        for scenario in (talk, counted, held, ask, spawn, files, hand, late, keep, errand, errands)
    },
    **{f"crowd-{pairs}": partial(crowd, pairs=pairs) for pairs in (4, 64)},
}


def main(directory: str, url: str, scenario: str, channel: str, hours: str) -> None:
    host = Host(Path(directory), url, scenario, channel, int(hours))
    SCENARIOS[scenario](host)
    host.end()


if __name__ == "__main__":
    main(*sys.argv[1:])
