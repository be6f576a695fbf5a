"""Kills a host of a session system and starts it again; says what has to be true of what it left behind.

The host is `host.py`. Only processes that were started here are killed.
"""

import json
import re
import signal
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from intersession import SessionSystem
from intersession_actors.prompt import visible_text
from intersession_events.facts import (
    AnnounceRequested,
    DeliveryDecided,
    DeliveryDone,
    DeliveryStarted,
    DeliveryUnknown,
    ExchangeAccepted,
    MessageRecorded,
    PrimaryEnded,
    ResultHanded,
    RunAborted,
    RunCompleted,
    RunFailed,
    RunInterrupted,
    RunQueued,
    RunStarted,
    SpawnAccepted,
    TurnReplied,
    TurnRequested,
)
from intersession_events.log import Recorded, verify_log
from intersession_events.stores import SqliteLog
from intersession_projections.inline_views import inline_views
from support.processes.forked import Forked

HOST = Path(__file__).with_name("host.py")
PATIENCE_S = 60.0
MOST_TURNS = 5

RUN = re.compile(r"run_queued (run_started run_interrupted )?run_started run_(completed|failed)")
EXCHANGE = re.compile(
    r"exchange_accepted primary_ended( turn_requested turn_replied)*"
    r"( loop_ended announce_requested announce_decided)? exchange_closed"
)
SPAWN = re.compile(
    r"spawn_accepted( attachments_ready)? child_ended( announce_requested)? announce_decided( result_handed)? spawn_closed"
    r"( child_archived| attachments_removed){0,2}"
)
DELIVERY = re.compile(r"delivery_decided( delivery_started)+ delivery_(done|failed|unknown)")


class Host:
    """A host that is started, killed and started again in one directory."""

    def __init__(self, directory: Path, scenario: str, channel: str = "keyed") -> None:
        self.directory = directory
        self.scenario = scenario
        self.channel = channel
        self.url = f"sqlite:///{directory / 'log.db'}"

    def started(self, *, crash_at: str = "", hours: int = 0) -> Forked:
        """Return a start of it; it does not live longer than its context."""
        given = (str(self.directory), self.scenario, self.channel, str(hours))
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

    def dies_after(self, lines: int) -> None:
        """Start it, and kill it when it has been answered, or has called its agents, that often."""
        wanted = self.progress + lines
        with self.started() as child:
            while self.progress < wanted and child.wait(0.005) is None:
                pass
            child.kill()
            assert child.wait(PATIENCE_S) == -signal.SIGKILL, child.said or "it was done before"

    @property
    def progress(self) -> int:
        """How often it was answered and has called its agents."""
        files = [self.directory / name for name in ("acks", "turns")]
        return sum(path.read_bytes().count(b"\n") for path in files if path.exists())

    def lines(self, name: str) -> list[dict[str, Any]]:
        """Return what it wrote to one of its files; a line that was cut off was never finished."""
        path = self.directory / name
        text = path.read_text() if path.exists() else ""
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def log(self) -> SqliteLog:
        """Open its log for reading."""
        return SqliteLog(self.directory / "log.db", read_only=True)

    def events(self) -> list[Recorded]:
        """Return what its log says of sessions and flows: receipts ride along with whatever comes next."""
        if not (self.directory / "log.db").exists():
            return []
        with self.log() as log:
            return [item for item in log.all() if not item.stream.startswith(("access:", "log"))]

    def check_all(self) -> None:
        """Check all that must be true of what it left behind."""
        self.check_whole()
        self.check_still_answers()
        self.check_views()

    def check_whole(self) -> None:
        """Check what holds after any crash, once nothing is open any more."""
        with self.log() as log:
            report = verify_log(log)
            assert report.counts == {}, report.findings
            assert log.query("PRAGMA integrity_check") == [("ok",)]
            assert log.query("SELECT * FROM set_aside") == []
        events = self.events()
        check_runs(events)
        check_exchanges(events)
        check_spawns(events)
        check_deliveries(events, self.lines("shown"), self.lines("calls"))
        check_messages(events)
        check_turns(events, self.lines("turns"))
        self._check_acks(events)

    def check_still_answers(self) -> None:
        """Check that another start has nothing to do, and is asked for the same runs with the same answers."""
        answers = {line["runId"]: line for line in self.lines("waits")}
        before = self.events()
        again: dict[str, Any] = {}
        agents = dict.fromkeys(("main", "research", "helper"), _nobody)
        with SessionSystem(self.url, agents=agents, config={"transcripts": {"mirror": True}}) as system:
            for run_id in answers:
                again[run_id] = system.gateway.call("agent.wait", {"runId": run_id, "timeoutMs": 0})
        assert json.dumps(again) == json.dumps(answers)
        assert self.events() == before
        check_mirror(before, self.directory / "log.db.transcripts")

    def check_views(self) -> None:
        """Check that the views written with the events are what the events say."""
        with SqliteLog(self.directory / "log.db", inline=inline_views()) as log:
            kept = _tables(log)
            for view in inline_views():
                log.rebuild(view.name)
            assert _tables(log) == kept

    def check_acknowledged(self) -> None:
        """Check that what was answered is stored, whatever else is not."""
        queued = Counter(of(self.events(), RunQueued, "run_id"))
        assert all(queued[line["answer"]["runId"]] == 1 for line in self.lines("acks"))

    def _check_acks(self, events: Sequence[Recorded]) -> None:
        queued = Counter(of(events, RunQueued, "run_id"))
        ended = {
            item.event.run_id: item.event
            for item in events
            if isinstance(item.event, RunCompleted | RunFailed)
        }
        runs: dict[str, str] = {}
        for line in self.lines("acks"):
            answer = line["answer"]
            assert answer["status"] in {"accepted", "ok", "error", "timeout"}, answer
            assert runs.setdefault(line["call"], answer["runId"]) == answer["runId"]
            assert queued[answer["runId"]] == 1
            if answer["status"] == "ok":
                end = ended[answer["runId"]]
                assert isinstance(end, RunCompleted)
                assert answer["reply"] == end.reply
        assert len(set(runs.values())) == len(runs)
        assert {line["runId"] for line in self.lines("waits")} == set(runs.values())
        for line in self.lines("waits"):
            match ended[line["runId"]]:
                case RunCompleted(reply=reply):
                    assert (line["status"], line.get("reply")) == ("ok", reply)
                case RunFailed(code=code, error=error):
                    status = "timeout" if code == "timeout" else "error"
                    assert (line["status"], line["error"]) == (status, error)


def check_runs(events: Sequence[Recorded]) -> None:
    """Check that each run was queued once, tried at most twice, and has one end."""
    of_run: defaultdict[str, list[Recorded]] = defaultdict(list)
    for item in events:
        if item.topic.startswith("run_"):
            of_run[getattr(item.event, "run_id")].append(item)  # noqa: B009 - all of them have one
    for items in of_run.values():
        assert RUN.fullmatch(story(items)), story(items)
        assert len({item.stream for item in items}) == 1
        attempts = [item.event.attempt for item in items if isinstance(item.event, RunStarted)]
        assert attempts == list(range(1, len(attempts) + 1))


def check_exchanges(events: Sequence[Recorded]) -> None:
    """Check that each exchange is closed, its turns are counted through, and its words are those of its runs."""
    replies = {item.event.run_id: item.event for item in events if isinstance(item.event, RunCompleted)}
    for items in streams(events, "exchange:"):
        assert EXCHANGE.fullmatch(story(items)), story(items)
        turns = [item.event for item in items if isinstance(item.event, TurnRequested)]
        replied = [item.event for item in items if isinstance(item.event, TurnReplied)]
        assert [turn.turn for turn in turns] == list(range(1, len(turns) + 1))
        assert len(turns) <= MOST_TURNS
        assert [(turn.turn, turn.run_id) for turn in replied] == [(turn.turn, turn.run_id) for turn in turns]
        for ended in (item.event for item in items if isinstance(item.event, PrimaryEnded | TurnReplied)):
            said = replies[ended.run_id].reply if ended.run_id in replies else None
            assert (ended.status == "ok") == (ended.run_id in replies)
            assert ended.text == visible_text(said) or ended.status != "ok"
    check_asked(events, ExchangeAccepted, TurnRequested, AnnounceRequested, SpawnAccepted, ResultHanded)


def check_asked(events: Sequence[Recorded], *kinds: type[Any]) -> None:
    """Check that what was asked of a session and its run and message are one step: all there, each once."""
    asked = Counter(
        (getattr(item.event, "run_id"), getattr(item.event, "message_id"))  # noqa: B009 - each of `kinds` has both
        for item in events
        if isinstance(item.event, kinds)
    )
    queued = Counter(
        (item.event.run_id, item.event.message_id)
        for item in events
        if isinstance(item.event, RunQueued)
        and (item.event.exchange_id is not None or item.event.spawn_id is not None)
    )
    assert asked == queued


def check_spawns(events: Sequence[Recorded]) -> None:
    """Check that each spawn is closed."""
    for items in streams(events, "spawn:"):
        assert SPAWN.fullmatch(story(items)), story(items)


def check_deliveries(
    events: Sequence[Recorded], shown: Sequence[dict[str, Any]], calls: Sequence[dict[str, Any]]
) -> None:
    """Check that each delivery is over and shown once, or at most once where that is in doubt."""
    texts: defaultdict[str, list[str]] = defaultdict(list)
    for line in shown:
        texts[line["key"]].append(line["text"])
    called = Counter(line["key"] for line in calls)
    decided: set[str] = set()
    for items in streams(events, "delivery:"):
        assert DELIVERY.fullmatch(story(items)), story(items)
        first, last = items[0].event, items[-1].event
        assert isinstance(first, DeliveryDecided)
        decided.add(first.key)
        attempts = [item.event.attempt for item in items if isinstance(item.event, DeliveryStarted)]
        assert attempts == list(range(1, len(attempts) + 1))
        assert called[first.key] <= len(attempts)
        if isinstance(last, DeliveryDone):
            assert texts[first.key] == [first.text]
        elif isinstance(last, DeliveryUnknown):
            assert len(attempts) == 1
            assert texts[first.key] in ([], [first.text])
        else:
            assert texts[first.key] == []
    assert set(texts) | set(called) <= decided


def check_messages(events: Sequence[Recorded]) -> None:
    """Check that no session has a message twice."""
    ids = Counter(
        (item.stream, item.event.message.id) for item in events if isinstance(item.event, MessageRecorded)
    )
    assert set(ids.values()) <= {1}


def check_turns(events: Sequence[Recorded], turns: Sequence[dict[str, Any]]) -> None:
    """Check that each attempt was made once, after it was stored, and told what the one before it had done."""
    made = Counter((line["run"], line["attempt"]) for line in turns)
    assert set(made.values()) <= {1}
    started = {
        (item.event.run_id, item.event.attempt) for item in events if isinstance(item.event, RunStarted)
    }
    assert set(made) <= started
    answered = {
        (item.event.run_id, item.event.attempt) for item in events if isinstance(item.event, RunCompleted)
    }
    assert answered <= set(made)
    done: Counter[str] = Counter()
    for item in events:
        match item.event:
            case MessageRecorded(message=message) if message.run_id is not None:
                done[message.run_id] += 1
            case RunStarted(run_id=run_id, attempt=attempt):
                told = [
                    line["partial"] for line in turns if (line["run"], line["attempt"]) == (run_id, attempt)
                ]
                assert set(told) <= {done[run_id]}
            case _:
                pass


def check_mirror(events: Sequence[Recorded], transcripts: Path) -> None:
    """Check that the mirrored transcripts have each message once, in the order in which its agent took them."""
    said: defaultdict[str, list[str]] = defaultdict(list)
    waiting: dict[str, tuple[str, str]] = {}
    for item in events:
        match item.event:
            case MessageRecorded(session_id=session_id, message=message):
                said[session_id].append(message.id)
            case RunQueued(run_id=run_id, session_id=session_id, message_id=message_id):
                said[session_id].remove(message_id)
                waiting[run_id] = session_id, message_id
            case RunStarted(run_id=run_id, attempt=1) | RunAborted(run_id=run_id) if run_id in waiting:
                session_id, message_id = waiting.pop(run_id)
                said[session_id].append(message_id)
            case _:
                pass
    mirrored = {
        path.stem: [
            line["id"] for line in map(json.loads, path.read_text().splitlines()) if line["type"] == "message"
        ]
        for path in transcripts.glob("*.jsonl")
    }
    assert mirrored == said


def interrupted(events: Sequence[Recorded]) -> list[str]:
    """Return the steps of the runs that were cut off, in order."""
    steps = {item.event.run_id: item.event.step for item in events if isinstance(item.event, RunQueued)}
    return [steps[item.event.run_id] for item in events if isinstance(item.event, RunInterrupted)]


def story(items: Sequence[Recorded]) -> str:
    """Return the topics of events in one line, without their versions."""
    return " ".join(item.topic.partition(".")[0] for item in items)


def streams(events: Sequence[Recorded], prefix: str) -> list[list[Recorded]]:
    """Return the events of each stream with a prefix."""
    found: defaultdict[str, list[Recorded]] = defaultdict(list)
    for item in events:
        if item.stream.startswith(prefix):
            found[item.stream].append(item)
    return list(found.values())


def of(events: Sequence[Recorded], kind: type[Any], field: str) -> list[Any]:
    """Return a field of all events of a kind, in order."""
    return [getattr(item.event, field) for item in events if isinstance(item.event, kind)]


def _tables(log: SqliteLog) -> dict[str, list[Any]]:
    """Return the rows of all views, without indexes of text: how SQLite lays one out depends on how it was filled."""
    names = log.query("SELECT name, sql FROM sqlite_master WHERE type = 'table'")
    own = {"stored_events", "sqlite_sequence", "log_identity", "log_topics"}
    texts = tuple(name for name, sql in names if sql is not None and sql.startswith("CREATE VIRTUAL TABLE"))
    return {
        name: sorted(log.query(f"SELECT * FROM {name}"), key=repr)  # noqa: S608 - our own tables
        for name, _ in names
        if name not in own and name not in texts and not name.startswith(tuple(f"{text}_" for text in texts))
    }


def _nobody(_: Any) -> str:
    raise AssertionError("nothing was left to do")
