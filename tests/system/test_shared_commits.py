"""Steps that follow at once share a commit, and each is recorded only with what it follows from (docs/reliability.md, rule 9)."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any, NamedTuple

import pytest

from intersession import SessionSystem, Turn
from intersession_actors.owners.session.deciding import Decider
from intersession_actors.owners.streams.owner import Owner
from intersession_actors.owners.streams.records import record_in
from intersession_events.basics.errors import CorruptEvent, StoreUnavailable
from intersession_events.facts import (
    ExchangeClosed,
    LateReplyDropped,
    RunCompleted,
    RunQueued,
    RunStarted,
    SessionPatched,
    TurnEnded,
    TurnRequested,
    message_in,
    topic_of,
)
from intersession_events.log.log import InFlight
from intersession_events.log.recorded import (
    ANY_VERSION,
    Draft,
    OnOutcome,
    Outcome,
    StreamAppend,
    Unavailable,
    parts_in,
)
from intersession_events.stores.portable.log import PortableLog
from intersession_projections.views.inline_views import inline_views
from support.any_log import log_at
from support.fakes import ManualClock
from support.run_context import context_of
from support.running import (
    QUIET,
    SEES_ALL,
    WAIT,
    Gate,
    exchange_of,
    merged,
    one,
    pass_time,
    wait_for,
    wait_for_number,
)

MAIN, DESK = "agent:main:main", "agent:desk:main"
LISTED = {"agents": {"list": [{"id": "main", "default": True}, {"id": "desk"}]}}
COUNTED = {"session": {"agentToAgent": {"limits": {"tokens": 1_000_000}}}}


class Noted(NamedTuple):
    """An append as it was asked for."""

    topics: tuple[str, ...]
    behind: InFlight | None
    itself: InFlight


class NotingLog(PortableLog):
    """A log that notes what is appended behind what; `before` may do something instead of a patient append, or before it.

    `held` gets the word on the next append, and keeps it back. No word comes of an append before it is noted.
    """

    noted: list[Noted]
    noting: threading.RLock
    before: Callable[[OnOutcome], bool] | None = None
    held: SimpleQueue[Callable[[], None]] | None = None

    def append(
        self,
        batch: Sequence[StreamAppend],
        on_outcome: OnOutcome,
        *,
        patient: bool = False,
        behind: InFlight | None = None,
    ) -> InFlight:
        topics = tuple(topic_of(draft.event).partition(".")[0] for one in batch for draft in one.drafts)
        if patient and "run_completed" in topics and self.before is not None:
            before, self.before = self.before, None
            if before(on_outcome):
                return super().append([to_nowhere()], lambda _: None)
        if (held := self.held) is not None:
            self.held, tell = None, on_outcome
            on_outcome = lambda outcome: held.put(lambda: tell(outcome))  # noqa: E731
        told = on_outcome

        def once_noted(outcome: Outcome) -> None:
            with self.noting:  # which a refusal in this thread has already
                pass
            told(outcome)

        with self.noting:
            itself = super().append(batch, once_noted, patient=patient, behind=behind)
            self.noted.append(Noted(topics, behind, itself))
        return itself


def to_nowhere() -> StreamAppend:
    """Return an append that conflicts."""
    return StreamAppend(stream="nowhere", expected=7, drafts=())


@pytest.fixture
def log(log_url: str) -> Iterator[NotingLog]:
    with log_at(log_url, NotingLog, inline=inline_views()) as opened:
        opened.noted, opened.noting = [], threading.RLock()
        yield opened


def system(log: NotingLog, agent: Any, *configs: Any, **given: Any) -> SessionSystem:
    agents = {"main": agent, "desk": agent}
    return SessionSystem(log, agents=agents, config=merged(SEES_ALL, LISTED, *configs), **given)


def speak(turn: Turn) -> str:
    return f"{turn.agent_id} says {turn.step}"


def exchange(running: SessionSystem) -> list[Any]:
    """Let main send to desk, and return the exchange's events once it is over."""
    running.inbound(channel="x", chat_id="1", sender="1", text="this is main", deliver=False)
    answer = running.tools(MAIN).call(
        "sessions_send", {"sessionKey": DESK, "message": "and?", "timeoutSeconds": 20}
    )
    assert answer["status"] == "ok", answer
    stream = exchange_of(running, answer["runId"])
    wait_for(running, ExchangeClosed)
    return [item.event for item in parts_in(running.log.stream(stream))]


def by_topic(log: NotingLog, topic: str) -> list[Noted]:
    return [noted for noted in log.noted if topic in noted.topics]


@pytest.mark.clause("O1", "O6")
def test_a_step_of_an_exchange_is_behind_the_result_it_follows(log: NotingLog) -> None:
    with system(log, speak) as running:
        events = exchange(running)

    results = [noted.itself for noted in by_topic(log, "run_completed")]
    steps = [noted.behind for noted in log.noted if {"turn_ended", "announce_decided"} & {*noted.topics}]
    assert len(steps) == 7  # five turns, the announce, and what became of it
    assert steps == [result for result in results if result in steps]
    assert sum(isinstance(event, TurnEnded) for event in events) == 6


@pytest.mark.clause("O6", "PROV-4")
def test_a_run_starts_in_the_append_that_queues_it_where_the_session_is_free(log: NotingLog) -> None:
    with system(log, speak) as running:
        exchange(running)
        stored = list(log.all())

    queued = by_topic(log, "run_queued")
    at_once = [noted for noted in queued if "run_started" in noted.topics]
    assert len(at_once) >= len(queued) - 2  # each session reads its transcript once
    for item in stored:
        if isinstance(item.event, RunStarted):
            before = [one for one in stored if one.stream == item.stream and one.version < item.version]
            assert context_of(before, item.event.run_id).hash == item.event.context_hash
            cause = next(one for one in stored if one.id == item.causation)
            assert isinstance(cause.event, RunQueued)
            assert cause.event.run_id == item.event.run_id


@pytest.mark.clause("LOOP-5")
def test_where_tokens_are_limited_what_a_run_has_used_is_recorded_before_the_next_is_asked_for(
    log: NotingLog,
) -> None:
    with system(log, speak, COUNTED) as running:
        exchange(running)

    assert [noted for noted in log.noted if noted.behind is not None] == []
    assert [noted for noted in by_topic(log, "run_queued") if "run_started" in noted.topics] == []


def test_a_run_waits_for_the_one_under_way_and_starts_in_the_append_that_ends_it(log: NotingLog) -> None:
    gate = Gate()
    slow = gate.saying("done")

    with system(log, slow, QUIET) as running:
        for text in ("one", "two"):
            running.inbound(channel="x", chat_id="1", sender="1", text=text)
        gate.reached()
        first, second = by_topic(log, "run_queued")
        assert first.topics == ("session_opened", "route_changed", "run_queued", "run_started")
        assert second.topics == ("run_queued",)
        gate.open()
        gate.reached()
        wait_for_number(running, RunCompleted, 2)
        stored = list(log.all())

    ends = by_topic(log, "run_completed")
    answered = ("run_completed", "delivery_decided")
    assert [noted.topics for noted in ends] == [(*answered, "run_started"), answered]
    # They are two decisions: each has its record, its cause and its chain.
    _, queued = [item for item in stored if isinstance(item.event, RunQueued)]
    _, started = [item for item in stored if isinstance(item.event, RunStarted)]
    ended = next(item for item in stored if isinstance(item.event, RunCompleted))
    assert (started.position, started.version) == (ended.position + 2, ended.version + 1)
    assert (started.causation, started.correlation) == (queued.id, queued.correlation)
    assert ended.correlation != queued.correlation
    assert [record_in(item.decision).asked for item in (ended, started)] == ["RunReturned", "StartNext"]


@pytest.mark.clause("GATE-2")
def test_what_waits_is_decided_before_the_next_run_begins(
    log: NotingLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, models, taken = Gate(), list[str | None](), SimpleQueue[str]()
    take = Owner.take

    def noted(owner: Any, command: Any) -> None:
        take(owner, command)
        taken.put(type(command).__name__)

    def slow(turn: Turn) -> str:
        models.append(turn.model)
        gate.stop(turn)
        return "done"

    with system(log, slow, QUIET) as running, ThreadPoolExecutor(2) as doors:
        for text in ("one", "two"):
            running.inbound(channel="x", chat_id="1", sender="1", text=text)
        gate.reached()
        held = log.held = SimpleQueue()
        doors.submit(running.inbound, channel="x", chat_id="1", sender="1", text="three")
        tell = held.get(timeout=WAIT)
        # While the session waits for the word on that, the run ends, and then its model is changed.
        monkeypatch.setattr(Owner, "take", noted)
        gate.open()
        assert taken.get(timeout=WAIT) == "RunReturned"
        patching = doors.submit(running.gateway.call, "sessions.patch", {"key": MAIN, "model": "a/b"})
        assert taken.get(timeout=WAIT) == "Patch"
        tell()
        patching.result(WAIT)
        wait_for_number(running, RunCompleted, 3)

    assert models == [None, "a/b", "a/b"]


@pytest.mark.clause("LOOP-5")
def test_a_run_whose_chain_is_limited_starts_once_what_the_one_before_has_used_is_recorded(
    log: NotingLog,
) -> None:
    gate = Gate()
    with system(log, gate.saying("done"), QUIET, COUNTED) as running:
        for text in ("one", "two"):
            running.inbound(channel="x", chat_id="1", sender="1", text=text)
        gate.reached()
        gate.open()
        wait_for_number(running, RunCompleted, 2)

    assert [noted.topics for noted in by_topic(log, "run_started")] == [("run_started",)] * 2


@pytest.mark.clause("O2", "O5")
def test_no_step_follows_a_result_that_was_not_recorded_because_somebody_else_wrote(log: NotingLog) -> None:
    patched = SessionPatched(values={"label": "it"}, by="somebody else")

    def somebody_writes(_: OnOutcome) -> bool:
        draft = Draft(event=patched, id="patched", time=1)
        PortableLog.append(
            log,
            [StreamAppend(stream=f"session:{DESK}", expected=ANY_VERSION, drafts=(draft,))],
            lambda _: None,
        )
        return False

    log.before = somebody_writes
    with system(log, speak) as running:
        events = exchange(running)
        stored = list(log.all())

    assert [item.event for item in stored if isinstance(item.event, SessionPatched)] == [patched]
    assert [event.turn for event in events if isinstance(event, TurnRequested)] == [1, 2, 3, 4, 5]
    assert isinstance(events[-1], ExchangeClosed)
    assert [item for item in stored if isinstance(item.event, LateReplyDropped)] == []
    results = [item.event.run_id for item in stored if isinstance(item.event, RunCompleted)]
    assert len(results) == len({*results}) == 7
    assert running.status()["degraded"] == {}


@pytest.mark.clause("O2", "D4")
def test_no_step_follows_a_result_that_the_store_refused_until_it_takes_it(log: NotingLog) -> None:
    clock = ManualClock()
    refused: list[bool] = []

    def store_is_away(on_outcome: OnOutcome) -> bool:
        on_outcome(Unavailable(error=StoreUnavailable("the disk is full")))
        refused.append(True)
        return True

    log.before = store_is_away
    with system(log, speak, clock=clock) as running:
        running.inbound(channel="x", chat_id="1", sender="1", text="this is main", deliver=False)
        arguments = {"sessionKey": DESK, "message": "and?", "timeoutSeconds": 0}
        running.tools(MAIN).call("sessions_send", arguments)
        for _ in range(200):
            pass_time(running, clock, 500)
            if any(
                isinstance(item.event, ExchangeClosed) for item in parts_in(running.follow(0, timeout=0.05))
            ):
                break
        stored = list(log.all())

    assert refused
    results = [item.event.run_id for item in stored if isinstance(item.event, RunCompleted)]
    assert len(results) == len({*results}) == 7
    turns = [item.event.turn for item in parts_in(stored) if isinstance(item.event, TurnRequested)]
    assert turns == [1, 2, 3, 4, 5]
    one([item.event for item in parts_in(stored)], ExchangeClosed)
    said = [message.id for item in stored if (message := message_in(item.event)) is not None]
    assert len(said) == len({*said})


@pytest.mark.clause("O6", "L3")
def test_an_answer_is_recorded_although_the_next_start_cannot_be_decided_with_it(
    log: NotingLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What keeps the next run from starting is met by itself, once the answer is durable."""

    def breaks(*_: object) -> None:
        raise CorruptEvent("run two has no message in this stream")

    gate = Gate()
    with system(log, gate.saying("done"), QUIET) as running:
        for text in ("one", "two"):
            running.inbound(channel="x", chat_id="1", sender="1", text=text)
        gate.reached()
        monkeypatch.setattr(Decider, "next_decision", breaks)
        gate.open()
        wait_for_number(running, RunCompleted, 2)

    answered = ("run_completed", "delivery_decided")
    assert [noted.topics for noted in by_topic(log, "run_completed")] == [answered, answered]
    assert by_topic(log, "run_started")[-1].topics == ("run_started",)
