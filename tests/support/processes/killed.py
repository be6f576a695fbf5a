"""Kills a host of a session system and starts it again; says what has to be true of what it left behind.

The host is `host.py`. Only processes that were started here are killed.
"""

import json
import signal
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from intersession import SessionSystem
from intersession_events.basics.errors import NoSuchStore
from intersession_events.facts import (
    RunInterrupted,
    RunQueued,
    text_of,
)
from intersession_events.log.recorded import Recorded, parts_in
from intersession_events.stores.opened import located
from intersession_projections.views.inline_views import inline_views
from support.any_log import AnyLog, Logs, log_at
from support.history import Asked, Evidence, Op, Shown, broken, check_views, check_whole
from support.processes.errands import ERRANDS
from support.processes.forked import Forked
from support.processes.host import progress_in

HOST = Path(__file__).with_name("host.py")
PATIENCE_S = 60.0
PATIENT = {*ERRANDS, "crowd-4", "crowd-64"}
"""Scenarios in which a run is tried again however often it is cut off."""


class Host:
    """A host that is started, killed and started again in one directory."""

    def __init__(self, logs: Logs, directory: Path, scenario: str, channel: str = "keyed") -> None:
        self.directory = directory
        self.scenario = scenario
        self.channel = channel
        self.url = logs.at(directory)

    def started(self, *, crash_at: str = "", hours: int = 0) -> Forked:
        """Return a start of it; it does not live longer than its context."""
        given = (str(self.directory), self.url, self.scenario, self.channel, str(hours))
        return Forked(HOST, *given, says=self.directory / "said", crash_at=crash_at)

    def dies_at(self, crash_at: str, *, hours: int = 0, surely: bool = True) -> bool:
        """Start it, and have it killed at a crash point; returns whether it was, unless it `surely` must be."""
        ended = self._run(crash_at, hours)
        assert ended == -signal.SIGKILL or (ended == 0 and not surely), f"{crash_at} was not reached: {ended}"
        return ended != 0

    def finishes(self, *, hours: int = 0) -> None:
        """Start it, and wait until nothing is open any more."""
        assert self._run("", hours) == 0

    def _run(self, crash_at: str, hours: int) -> int | None:
        with self.started(crash_at=crash_at, hours=hours) as child:
            ended = child.wait(PATIENCE_S)
            sys.stderr.write(child.said)  # for whoever reads why it failed
            return ended

    def dies_after(self, lines: int, more_s: float = 0, *, surely: bool = True) -> bool:
        """Start it, and kill it when it has been answered, or has called its agents, that often, and a moment later.

        Returns whether it was killed; it must be, and waits for it, unless it need not `surely`: then it may have been done before.
        """
        wanted = self.progress + lines
        stop = self.directory / "stop"
        stop.write_text(str(wanted if surely else sys.maxsize))
        with self.started() as child:
            while self.progress < wanted and child.wait(0.005) is None:
                pass
            child.wait(more_s)
            child.kill()
            ended = child.wait(PATIENCE_S)
            stop.unlink()
            sys.stderr.write(child.said)
            assert ended == -signal.SIGKILL or (ended == 0 and not surely), child.said or "it was done before"
            return ended != 0

    @property
    def progress(self) -> int:
        """How often it was answered, has called its agents, and these have taken a step."""
        return progress_in(self.directory)

    def lines(self, name: str) -> list[dict[str, Any]]:
        """Return what it wrote to one of its files; a line that was cut off was never finished."""
        path = self.directory / name
        text = path.read_text() if path.exists() else ""
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def log(self) -> AnyLog:
        """Open its log for reading."""
        return log_at(self.url, read_only=True)

    def events(self) -> list[Recorded]:
        """Return what its log says of sessions and flows: receipts, and steps of the clock, ride along with whatever comes next."""
        try:
            with self.log() as log:
                return [item for item in log.all() if not item.stream.startswith(("access:", "log", "clock"))]
        except NoSuchStore:
            return []

    def check_all(self) -> None:
        """Check all that must be true of what it left behind."""
        self.check_whole()
        self.check_still_answers()
        self.check_views()

    def check_whole(self) -> None:
        """Check what holds after any crash, once nothing is open any more."""
        with self.log() as log:
            assert check_whole(log) == []
            assert broken(self.evidence(log)) == []

    def evidence(self, log: AnyLog) -> Evidence:
        """Return what is known of all that it did, once nothing is open any more."""
        calls = [
            Op(
                client="host",
                kind="write",
                outcome="ok",
                position=line["position"],
                call=line["call"],
                text=line["call"],
                run_id=line["answer"]["runId"],
                answer=line["answer"],
            )
            for line in self.lines("acks")
        ]
        waits = [
            Op(
                client="host",
                kind="wait",
                outcome="ok",
                position=line["position"],
                run_id=line["answer"]["runId"],
                answer=line["answer"],
            )
            for line in self.lines("waits")
        ]
        assert {call.run_id for call in calls} == {wait.run_id for wait in waits}
        return Evidence(
            events=list(log.all()),
            ops=[*calls, *waits],
            asked=[
                Asked(run_id=line["run"], attempt=line["attempt"], partial=line["partial"])
                for line in self.lines("turns")
            ],
            called=[line["key"] for line in self.lines("calls")],
            shown=[Shown(key=line["key"], text=line["text"], said=False) for line in self.lines("shown")],
            ended=True,
            attempts=101 if self.scenario in PATIENT else 2,
        )

    def check_still_answers(self) -> None:
        """Check that another start has nothing to do, and is asked for the same runs with the same answers."""
        answers = {line["answer"]["runId"]: line["answer"] for line in self.lines("waits")}
        before = self.events()
        again: dict[str, Any] = {}
        agents = dict.fromkeys(("main", "research", "helper"), _nobody)
        with SessionSystem(self.url, agents=agents, config={"transcripts": {"mirror": True}}) as system:
            for run_id in answers:
                again[run_id] = system.gateway.call("agent.wait", {"runId": run_id, "timeoutMs": 0})
        assert json.dumps(again) == json.dumps(answers)
        assert self.events() == before
        check_mirror(before, Path(f"{located(self.url).place}.transcripts"))

    def check_views(self) -> None:
        """Check that the views written with the events are what the events say."""
        with log_at(self.url, inline=inline_views()) as log:
            assert check_views(log, [view.name for view in inline_views()]) == []

    def check_acknowledged(self) -> None:
        """Check that what was answered is stored, whatever else is not."""
        queued = Counter(of(self.events(), RunQueued, "run_id"))
        assert all(queued[line["answer"]["runId"]] == 1 for line in self.lines("acks"))


def check_mirror(events: Sequence[Recorded], transcripts: Path) -> None:
    """Check that the mirrored transcripts have each message once, in the order in which its agent took them."""
    mirrored = {
        path.stem: [
            line["id"] for line in map(json.loads, path.read_text().splitlines()) if line["type"] == "message"
        ]
        for path in transcripts.glob("*.jsonl")
    }
    assert mirrored == {name: kept.ids for name, kept in Evidence(events=events).transcripts.items()}


def interrupted(events: Sequence[Recorded]) -> list[str]:
    """Return the steps of the runs that were cut off, in order."""
    steps = {item.event.run_id: item.event.step for item in events if isinstance(item.event, RunQueued)}
    return [steps[item.event.run_id] for item in events if isinstance(item.event, RunInterrupted)]


def story(items: Sequence[Recorded]) -> str:
    """Return the kinds of events, and of what follows in them, in one line."""
    return " ".join(item.kind for item in parts_in(items))


def streams(events: Sequence[Recorded], prefix: str) -> list[list[Recorded]]:
    """Return the events of each stream with a prefix."""
    found: defaultdict[str, list[Recorded]] = defaultdict(list)
    for item in events:
        if item.stream.startswith(prefix):
            found[item.stream].append(item)
    return list(found.values())


def of(events: Sequence[Recorded], kind: type[Any], field: str) -> list[Any]:
    """Return a field of all events of a kind, in order."""
    return [getattr(item.event, field) for item in parts_in(events) if isinstance(item.event, kind)]


def asked(events: Sequence[Recorded], accepted: type[Any]) -> list[str]:
    """Return what was asked by all sends, or of all children, that were accepted: their runs have it."""
    runs = set(of(events, accepted, "run_id"))
    queued = zip(of(events, RunQueued, "run_id"), of(events, RunQueued, "message"), strict=True)
    return [text_of(message) for run_id, message in queued if run_id in runs]


def _nobody(_: Any) -> str:
    raise AssertionError("nothing was left to do")
