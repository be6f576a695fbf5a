"""The checker of histories finds nothing in one that is right, and each kind of wrong in one that was doctored."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeVar

import pytest
from msgspec import structs

from intersession import Channel, Outbound, SessionSystem, Turn
from intersession_events.facts import (
    AnnounceDecided,
    AnnounceRequested,
    ChildEnded,
    Deciding,
    DeliveryDecided,
    DeliveryDenied,
    DeliveryDone,
    DeliveryFailed,
    DeliveryStarted,
    DeliveryUnknown,
    Event,
    ExchangeAccepted,
    ExchangeClosed,
    ExchangeHeld,
    ExchangeReleased,
    LateReplyDropped,
    LoopEnded,
    Message,
    Provenance,
    Route,
    RouteChanged,
    RunAborted,
    RunCompleted,
    RunFailed,
    RunQueued,
    RunStarted,
    SessionArchived,
    SessionOpened,
    SessionPatched,
    SpawnAccepted,
    SpawnClosed,
    TurnEnded,
    TurnRequested,
    joined,
    parts_of,
)
from intersession_events.log.recorded import Recorded
from intersession_events.stores.sqlite.log import SqliteLog
from intersession_projections.views.inline_views import inline_views
from support.branching_chain import branches
from support.history import Asked, Evidence, Op, Shown, broken, check_views, check_whole
from support.running import SEES_ALL, merged, wait_for
from support.transacting import transact

E = TypeVar("E")
MAIN, DESK = "agent:main:main", "agent:desk:main"
CONFIG = merged(SEES_ALL, {"agents": {"list": [{"id": "main", "default": True}, {"id": "desk"}]}})


class Told:
    """A system that is talked to, and what it was asked, answered and shown."""

    def __init__(self, log: SqliteLog) -> None:
        self.log = log
        self.ops: list[Op] = []
        self.asked: list[Asked] = []
        self.shown: list[Shown] = []

    def answer(self, turn: Turn) -> str:
        given = tuple(message.id for message in turn.transcript)
        self.asked.append(
            Asked(run_id=turn.run_id, attempt=turn.attempt, position=self.log.head(), given=given)
        )
        return f"{turn.agent_id} at {turn.step}"

    def show(self, outbound: Outbound) -> None:
        self.shown.append(Shown(key=outbound.key, text=outbound.text))

    def happens(self) -> None:
        agents = {"main": self.answer, "desk": self.answer}
        with SessionSystem(
            self.log, agents=agents, channels={"x": Channel(deliver=self.show)}, config=CONFIG
        ) as system:
            tools = system.tools(MAIN)
            system.inbound(channel="x", chat_id="1", sender="1", text="hello", message_id="1", wait=20)
            sent = tools.call("sessions_send", {"sessionKey": DESK, "message": "and?", "idempotencyKey": "1"})
            self._note("write", "and?", sent["runId"], DESK, answer=sent)
            self._read(system)
            wait_for(system, ExchangeClosed)
            again = tools.call(
                "sessions_send", {"sessionKey": DESK, "message": "and?", "idempotencyKey": "1"}
            )
            self._note("write", "and?", again["runId"], DESK, answer=again)
            spawned = tools.call("sessions_spawn", {"task": "dig"})
            self._note("write", "dig", spawned["runId"])
            wait_for(system, SpawnClosed)
            self._read(system)
            waited = system.gateway.call("agent.wait", {"runId": sent["runId"], "timeoutMs": 0})
            self._note("wait", None, sent["runId"], answer=waited)

    def _note(self, kind: str, call: str | None, run_id: str, key: str = "", answer: object = None) -> None:
        self.ops.append(
            Op(
                client="main",
                kind="wait" if kind == "wait" else "write",
                outcome="ok",
                position=self.log.head(),
                call=call,
                text=call,
                run_id=run_id,
                session_id=self._generation(key),
                answer=answer if isinstance(answer, dict) else {},
            )
        )

    def _read(self, system: SessionSystem) -> None:
        read = system.tools(MAIN).call("sessions_history", {"sessionKey": DESK, "includeTools": True})
        seen = tuple(message["id"] for message in read["messages"])
        self.ops.append(
            Op(
                client="main",
                kind="read",
                outcome="ok",
                position=read["position"],
                session_id=self._generation(DESK),
                seen=seen,
            )
        )

    def _generation(self, key: str) -> str | None:
        events = self.log.stream(f"session:{key}", limit=1) if key else ()
        return getattr(events[0].event, "session_id") if events else None  # noqa: B009 - it opens the session

    def evidence(self) -> Evidence:
        return Evidence(
            events=list(self.log.all()),
            ops=self.ops,
            asked=self.asked,
            called=[one.key for one in self.shown],
            shown=self.shown,
            aborts=(),
            ended=True,
        )


@pytest.fixture(scope="module")
def log() -> Iterator[SqliteLog]:
    with SqliteLog(":memory:", inline=inline_views()) as opened:
        yield opened


@pytest.fixture(scope="module")
def clean(log: SqliteLog) -> Evidence:
    told = Told(log)
    told.happens()
    return told.evidence()


def last(evidence: Evidence, kind: type[E]) -> Recorded:
    return evidence.of(kind)[-1][0]


def without(evidence: Evidence, *gone: Recorded) -> Evidence:
    positions = {item.position for item in gone}
    return replace(evidence, events=[item for item in evidence.events if item.position not in positions])


def again(evidence: Evidence, kind: type[E], **fields: object) -> Evidence:
    """Have the last event of a kind a second time at the end, with other fields, its place in the chain mended."""
    first, end = last(evidence, kind), evidence.events[-1]
    before = evidence.streams[first.stream][-1]
    doubled = structs.replace(
        first,
        event=structs.replace(first.event, **fields),
        position=end.position + 1,
        version=before.version + 1,
        prev=before.hash,
        id="another",
        hash="x",
    )
    return replace(evidence, events=[*evidence.events, doubled])


def changed(evidence: Evidence, item: Recorded, **fields: object) -> Evidence:
    """Have another event in the place of one."""
    return instead(evidence, item, structs.replace(item.event, **fields))


def child_that_skipped(evidence: Evidence) -> Evidence:
    """Have the announce turn of the spawn answer with the word for silence."""
    asked = evidence.of(AnnounceRequested)[-1][1].run_id
    item = next(item for item, end in evidence.of(RunCompleted) if end.run_id == asked)
    return changed(evidence, item, message_is_reply=False, text="ANNOUNCE_SKIP")


def reads_less(evidence: Evidence) -> Evidence:
    ops = [replace(op, seen=op.seen[1:]) if op.kind == "read" else op for op in evidence.ops]
    return replace(evidence, ops=ops)


def swapped(evidence: Evidence) -> Evidence:
    """Have the run's end before its start, both where the other was."""
    return exchanged(evidence, last(evidence, RunStarted), last(evidence, RunCompleted))


def exchanged(evidence: Evidence, one: Recorded, other: Recorded) -> Evidence:
    """Have two events each where the other was."""
    moved = {
        one.position: structs.replace(other, position=one.position),
        other.position: structs.replace(one, position=other.position),
    }
    return replace(evidence, events=[moved.get(item.position, item) for item in evidence.events])


def out_of_turn(evidence: Evidence) -> Evidence:
    """Have a text to the same place decided before all others, of which nothing more is recorded."""
    first = last(evidence, DeliveryDecided)
    return replace(evidence, events=[structs.replace(first, stream="delivery:another"), *evidence.events])


def opened_child(evidence: Evidence) -> Recorded:
    """Return how the session of the sub-agent was opened."""
    return next(item for item, event in evidence.of(SessionOpened) if event.spawn_id is not None)


def announced_to_nobody(evidence: Evidence) -> Evidence:
    """Have the exchange announce only where it has a route, and none."""
    item, accepted = evidence.of(ExchangeAccepted)[-1]
    settings = structs.replace(accepted.settings, announce="routed")
    return changed(evidence, item, settings=settings, route=None)


def another_way(evidence: Evidence) -> Evidence:
    """Have the first turn's message say that it came by more hops."""
    item, queued = next((item, event) for item, event in evidence.of(RunQueued) if event.turn == 1)
    assert queued.budget is not None
    return changed(evidence, item, budget=structs.replace(queued.budget, hops=7))


def of_desk(evidence: Evidence, kind: type[E]) -> list[Recorded]:
    return [item for item, _ in evidence.of(kind) if item.stream == f"session:{DESK}"]


def side_by_side(evidence: Evidence) -> Evidence:
    """Start a session's second run before its first one has ended."""
    return exchanged(evidence, of_desk(evidence, RunCompleted)[0], of_desk(evidence, RunStarted)[1])


def overtaken(evidence: Evidence) -> Evidence:
    """Queue a session's second run before the first, which starts first all the same."""
    return exchanged(evidence, of_desk(evidence, RunQueued)[1], of_desk(evidence, RunStarted)[0])


def archived_early(evidence: Evidence) -> Evidence:
    item = of_desk(evidence, RunCompleted)[0]
    return instead(evidence, item, SessionArchived(session_id="x", reason="deleted"))


def said_by(evidence: Evidence, role: str) -> tuple[Recorded, Message]:
    """Return what was said last by a role."""
    return [one for one in evidence.said if one[1].role == role][-1]


def said_otherwise(evidence: Evidence, message_id: str, **fields: object) -> Evidence:
    item, message = evidence.messages[message_id][0]
    return changed(evidence, item, message=structs.replace(message, **fields))


def turn_says(evidence: Evidence, **fields: object) -> Evidence:
    return said_otherwise(evidence, evidence.of(TurnRequested)[0][1].message_id, **fields)


def message_says(evidence: Evidence, **fields: object) -> Evidence:
    return said_otherwise(evidence, evidence.of(ExchangeAccepted)[0][1].message_id, **fields)


def task_says(evidence: Evidence, **fields: object) -> Evidence:
    return said_otherwise(evidence, evidence.of(SpawnAccepted)[0][1].message_id, **fields)


def answered_as_a_person(evidence: Evidence) -> Evidence:
    item, message = said_by(evidence, "assistant")
    person = structs.replace(message, role="user", provenance=Provenance(kind="external_user"))
    return changed(evidence, item, message=person)


def goes_on_behind_silence(evidence: Evidence) -> Evidence:
    """Have a turn follow on a skip word, which all of them say."""
    replied, turn = evidence.of(TurnEnded)[1]
    asked = evidence.of(TurnRequested)[1][1]
    told = changed(evidence, replied, text="REPLY_SKIP")
    told = said_otherwise(told, asked.message_id, content="REPLY_SKIP")
    return changed(told, evidence.ends[turn.run_id][0], message_is_reply=False, text="REPLY_SKIP")


def announced(evidence: Evidence) -> Recorded:
    return next(item for item, event in evidence.of(DeliveryDecided) if event.owner is not None)


def answered(evidence: Evidence) -> Recorded:
    return next(item for item, event in evidence.of(DeliveryDecided) if event.owner is None)


def acked_early(evidence: Evidence) -> Evidence:
    return replace(
        evidence, ops=[replace(op, position=1) if op.kind == "write" else op for op in evidence.ops]
    )


def acked_nothing(evidence: Evidence) -> Evidence:
    lost = Op(
        client="main", kind="write", outcome="ok", position=9, call="lost", text="lost", run_id="nowhere"
    )
    return replace(evidence, ops=[*evidence.ops, lost])


def refused_and_there(evidence: Evidence) -> Evidence:
    return replace(evidence, ops=[replace(op, outcome="fail") for op in evidence.ops if op.text == "and?"])


def other_run(evidence: Evidence) -> Evidence:
    """Answer a retry with the run of another message."""
    runs = [op.run_id for op in evidence.ops if op.text == "dig"]
    ops = [op for op in evidence.ops if op.text == "and?"]
    return replace(evidence, ops=[*evidence.ops, replace(ops[0], run_id=runs[0], text=None)])


def other_generation(evidence: Evidence) -> Evidence:
    item, _ = next(found for found in evidence.of(RunQueued) if found[1].turn is not None)
    return changed(evidence, item, session_id="another")


def over_limit(evidence: Evidence) -> Evidence:
    item, accepted = evidence.of(ExchangeAccepted)[0]
    return changed(evidence, item, settings=structs.replace(accepted.settings, max_turns=2))


def held_before(step: Literal["reply", "announce"]) -> ExchangeHeld:
    """Return an event that an order of a session holds an exchange."""
    return ExchangeHeld(
        hold_id="x",
        step=step,
        text="x",
        speaker="x",
        since_ms=0,
        before=step,
        source="session",
        by="operator",
        order="x",
    )


def held_twice(evidence: Evidence) -> Evidence:
    """Have an order of a session stop an exchange at both of its last turns."""
    first, second = (item for item, _ in evidence.of(TurnEnded)[-2:])
    held = held_before("reply")
    return instead(instead(evidence, first, held), second, held)


def beyond_budget(evidence: Evidence) -> Evidence:
    item, queued = evidence.of(RunQueued)[-1]
    assert queued.budget is not None
    limits = structs.replace(queued.budget.limits, runs=1)
    return changed(evidence, item, budget=structs.replace(queued.budget, limits=limits))


def own_chain(evidence: Evidence) -> Evidence:
    item, queued = next(found for found in evidence.of(RunQueued) if found[1].turn)
    assert queued.budget is not None
    return changed(evidence, item, budget=structs.replace(queued.budget, root=queued.run_id))


def asked_early(evidence: Evidence) -> Evidence:
    return replace(evidence, asked=[replace(one, position=1) for one in evidence.asked or ()])


def given_another(evidence: Evidence) -> Evidence:
    return replace(evidence, asked=[replace(one, given=("another",)) for one in evidence.asked or ()])


def waited_for_another(evidence: Evidence) -> Evidence:
    ops = [
        replace(op, answer={"status": "ok", "reply": "another"}) if op.kind == "wait" else op
        for op in evidence.ops
    ]
    return replace(evidence, ops=ops)


def instead(evidence: Evidence, item: Recorded, event: Event) -> Evidence:
    """Have another event at the place of one, which may be a part of what is there."""

    def other(one: Recorded) -> Recorded:
        parts = [event if type(part) is type(item.event) else part for part in parts_of(one.event)]
        return structs.replace(one, event=joined(parts)[0] if isinstance(parts[0], Deciding) else event)

    events = [other(one) if one.position == item.position else one for one in evidence.events]
    return replace(evidence, events=events)


def stopped(evidence: Evidence) -> Evidence:
    item, end = evidence.of(RunCompleted)[-1]
    return instead(evidence, item, RunAborted(run_id=end.run_id, attempt=end.attempt, by="operator"))


def timed_out(evidence: Evidence) -> Evidence:
    """End a turn of a minute as timed out after a second."""
    end = next(end for _, end in evidence.of(RunCompleted) if evidence.queued[end.run_id][1].turn)
    items = {type(item.event): item for item in evidence.runs[end.run_id]}
    times = {items[RunStarted].position: 10.0, items[RunCompleted].position: 11.0}
    failed = RunFailed(run_id=end.run_id, attempt=end.attempt, code="timeout", error="timeout")
    return replace(instead(evidence, items[RunCompleted], failed), passed=times)


def answered_before(evidence: Evidence) -> Evidence:
    _, end = evidence.of(RunCompleted)[0]
    return replace(evidence, answers={(end.run_id, end.attempt): "what was said in the attempt before"})


def edited_for_nothing(evidence: Evidence) -> Evidence:
    """Have the announce held and edited before it is decided as it is."""
    first, second = (item for item, _ in evidence.of(TurnEnded)[-2:])
    held = held_before("announce")
    released = ExchangeReleased(hold_id="x", action="edit", text="other words", by="operator")
    return instead(instead(evidence, first, held), second, released)


def denied_meanwhile(evidence: Evidence) -> Evidence:
    """Have the session that speaks be denied before it was decided that it speaks."""
    changed_route = last(evidence, RouteChanged)
    return instead(evidence, changed_route, SessionPatched(values={"sendPolicy": "deny"}))


def dropped_while_under_way(evidence: Evidence) -> Evidence:
    """Have the answer of an attempt that is under way be taken for one that came too late."""
    item, end = evidence.of(RunCompleted)[-1]
    return instead(evidence, item, LateReplyDropped(run_id=end.run_id, attempt=end.attempt))


def to_be_held(evidence: Evidence) -> Evidence:
    """Have every text of an exchange be one that is to be held, and none is."""
    item, accepted = next(one for one in evidence.of(ExchangeAccepted) if one[1].settings.max_turns)
    return changed(evidence, item, settings=structs.replace(accepted.settings, hold="every-turn"))


DOCTORED: dict[str, tuple[str, Callable[[Evidence], Evidence]]] = {
    "an event is gone": ("in_order", lambda told: without(told, last(told, DeliveryStarted))),
    "an event is there twice": (
        "in_order",
        lambda told: replace(told, events=[*told.events, told.events[3]]),
    ),
    "an effect before its cause": ("after_causes", swapped),
    "a message twice": ("messages_once", lambda told: again(told, RunQueued)),
    "a run with two results": ("runs_end_once", lambda told: again(told, RunCompleted)),
    "a run that is tried for ever": (
        "runs_end_once",
        lambda told: changed(told, last(told, RunStarted), attempt=4),
    ),
    "a turn with two replies": ("turns_once", lambda told: again(told, TurnEnded)),
    "more turns than the limit": ("turns_once", over_limit),
    "a text that goes on and was never held": (
        "holds_end_once",
        lambda told: instead(
            told, last(told, TurnEnded), ExchangeReleased(hold_id="x", action="go_on", by="operator")
        ),
    ),
    "an order that stops an exchange twice": ("holds_stop_once", held_twice),
    "an order that nobody heard": ("orders_are_done", to_be_held),
    "an answer that is dropped too early": ("late_answers_kept", dropped_while_under_way),
    "a flow that is closed twice": ("flows_in_order", lambda told: again(told, ExchangeClosed)),
    "other words than the run's": (
        "words_are_theirs",
        lambda told: changed(told, last(told, ChildEnded), text="x"),
    ),
    "a reply that is taken for silence": (
        "silence_is_said",
        lambda told: changed(told, last(told, LoopEnded), reason="reply_skip"),
    ),
    "an abort that nobody asked for": ("aborts_are_asked_for", stopped),
    "a run that is ended before its time": ("limits_of_time_kept", timed_out),
    "a turn without its run": (
        "steps_whole",
        lambda told: changed(told, last(told, TurnRequested), run_id="x"),
    ),
    "a turn in another conversation": ("generations_kept", other_generation),
    "two deliveries under one key": ("announced_once", lambda told: again(told, DeliveryDecided)),
    "a delivery that goes on": ("deliveries_in_order", lambda told: again(told, DeliveryStarted)),
    "a text that goes out before another": ("places_in_order", out_of_turn),
    "one key for two runs": ("keys_once", lambda told: again(told, ExchangeAccepted, run_id="another")),
    "a run beyond the budget": ("budgets_kept", beyond_budget),
    "a turn in a chain of its own": ("chains_go_on", own_chain),
    "an acknowledgement of nothing": ("acknowledged_once", acked_nothing),
    "an acknowledgement before it was stored": ("acknowledged_once", acked_early),
    "a message that was refused": ("said_once", refused_and_there),
    "a retry with another run": ("keys_answer_alike", other_run),
    "a read that lacks a message": ("reads_grow", reads_less),
    "a client that does not read its own words": ("own_writes_read", reads_less),
    "a wait with another answer": ("waits_answer_alike", waited_for_another),
    "an agent that is asked too early": ("asked_once", asked_early),
    "an agent that is given another transcript": ("given_what_is_recorded", given_another),
    "an answer of an attempt before": ("answers_of_their_attempt", answered_before),
    "an announce that was edited for nothing": ("edits_go_on", edited_for_nothing),
    "a text that is tried at once": (
        "pauses_of_deliveries",
        lambda told: instead(
            told,
            last(told, DeliveryDone),
            DeliveryFailed(
                delivery_id=told.of(DeliveryDone)[-1][1].delivery_id,
                attempt=2,
                error="down",
                retry_at_ms=1_000,
                failed_ms=0,
            ),
        ),
    ),
    "a text that goes out though nothing may": ("policy_at_each_attempt", denied_meanwhile),
    "a text that goes out by a rule that forbids it": (
        "policy_at_each_attempt",
        lambda told: changed(told, last(told, DeliveryStarted), rule="session.sendPolicy.default: deny"),
    ),
    "a text that is denied though all may go out": (
        "policy_at_each_attempt",
        lambda told: instead(
            told,
            last(told, DeliveryStarted),
            DeliveryDenied(
                delivery_id=told.of(DeliveryStarted)[-1][1].delivery_id,
                rule="the session's own sendPolicy: deny",
            ),
        ),
    ),
    "a text that was shown and is in doubt": (
        "shown_once",
        lambda told: instead(
            told,
            last(told, DeliveryDone),
            DeliveryUnknown(delivery_id=told.of(DeliveryDone)[-1][1].delivery_id, attempt=1),
        ),
    ),
    "a text that is shown twice": (
        "shown_once",
        lambda told: replace(told, shown=[*told.shown, *told.shown]),
    ),
    "two runs of a session at a time": ("one_at_a_time", side_by_side),
    "a run that starts before it is queued": ("one_at_a_time", overtaken),
    "a run in a session that is archived": ("gone_is_gone", archived_early),
    "a route that no person changed": ("routes_are_of_people", lambda told: again(told, RouteChanged)),
    "an answer that its session does not have": (
        "answers_are_said",
        lambda told: changed(told, last(told, RunCompleted), message_is_reply=False, text="x"),
    ),
    "words of an agent as a person's": ("own_output", answered_as_a_person),
    "a turn of whoever spoke last": (
        "each_in_turn",
        lambda told: changed(told, told.of(TurnRequested)[0][0], speaker=DESK),
    ),
    "a turn with words that nobody said": ("words_go_on", lambda told: turn_says(told, content="x")),
    "a turn that says it is from a person": (
        "words_go_on",
        lambda told: turn_says(told, provenance=Provenance(kind="external_user")),
    ),
    "a message in other words": ("words_go_on", lambda told: message_says(told, content="x")),
    "a task from nowhere": ("results_go_on", lambda told: task_says(told, provenance=None)),
    "a loop that ends for no text, and there is one": (
        "loops_end_for_cause",
        lambda told: changed(told, last(told, LoopEnded), reason="no_text"),
    ),
    "a loop that ends as somebody is gone, who is there": (
        "loops_end_for_cause",
        lambda told: changed(told, last(told, LoopEnded), reason="requester_gone"),
    ),
    "a loop that goes on behind a skip word": ("loops_end_for_cause", goes_on_behind_silence),
    "a loop that counts other turns": (
        "loops_end_for_cause",
        lambda told: changed(told, last(told, LoopEnded), turns=1),
    ),
    "an announce in other words": (
        "children_told_as_they_ended",
        lambda told: changed(told, announced(told), text="x"),
    ),
    "an announce to another chat": (
        "announced_as_said",
        lambda told: changed(told, announced(told), route=Route(channel="x", to="another")),
    ),
    "an answer to another chat": (
        "announced_as_said",
        lambda told: changed(told, answered(told), route=Route(channel="x", to="another")),
    ),
    "an exchange that closes as unannounced": (
        "closed_as_it_ended",
        lambda told: changed(told, last(told, ExchangeClosed), reason="announce_denied"),
    ),
    "a child that skipped and is announced": ("children_told_as_they_ended", child_that_skipped),
    "a child that failed and is told as a success": (
        "children_told_as_they_ended",
        lambda told: changed(told, last(told, ChildEnded), status="timeout"),
    ),
    "a child that is announced in other words": (
        "children_told_as_they_ended",
        lambda told: changed(
            told, last(told, AnnounceDecided), text="Status: success\nResult: x\nNotes: (none)"
        ),
    ),
    "a spawn that closes as silent": (
        "closed_as_it_ended",
        lambda told: changed(told, last(told, SpawnClosed), reason="silent"),
    ),
    "an attempt that has more time than its run": (
        "attempts_have_their_time",
        lambda told: changed(told, last(told, RunStarted), deadline_ms=1),
    ),
    "an answer that goes nowhere": ("people_hear", lambda told: without(told, answered(told))),
    "a child that is opened for another": (
        "children_are_opened_for_their_requester",
        lambda told: changed(told, opened_child(told), spawned_by=DESK),
    ),
    "an announce to nobody": ("announced_where_it_may_be", announced_to_nobody),
    "a send that comes another way": ("chains_go_on", another_way),
    "a run that never ends": ("all_ended", lambda told: without(told, last(told, RunCompleted))),
}


@pytest.mark.clause("O1", "O2", "O3", "O4")
def test_a_history_of_a_running_system_breaks_no_law(clean: Evidence, log: SqliteLog) -> None:
    assert broken(clean) == []
    assert check_whole(log) == []
    assert check_views(log, [view.name for view in inline_views()]) == []


@pytest.mark.clause("O1", "O2", "O3", "O4", "O7", "L1", "L2")
@pytest.mark.parametrize("wrong", DOCTORED)
def test_a_doctored_history_breaks_the_law_that_it_breaks(clean: Evidence, wrong: str) -> None:
    law, doctor = DOCTORED[wrong]

    assert law in {finding.law for finding in broken(doctor(clean))}


@pytest.mark.clause("L2", "LOOP-5")
@pytest.mark.parametrize("limits", [{"tokens": 5}, {"costMicros": 5}])
def test_a_start_that_its_chain_could_not_pay_breaks_the_law(tmp_path: Path, limits: dict[str, int]) -> None:
    _, events = branches(tmp_path / "log.db", 0, limits)
    kept = Evidence(events=events)
    refused = next(item for item in events if isinstance(item.event, RunFailed))
    assert isinstance(refused.event, RunFailed)
    started = structs.replace(
        refused, event=RunStarted(run_id=refused.event.run_id, attempt=1, context_hash="")
    )
    other = replace(kept, events=[started if item is refused else item for item in events])

    assert [finding.law for finding in broken(kept)] == []
    assert "use_kept" in [finding.law for finding in broken(other)]


def test_a_row_of_a_view_that_is_not_of_the_events_is_found(clean: Evidence, log: SqliteLog) -> None:
    assert clean.events
    transact(log, lambda sql: sql.execute("UPDATE session_list SET position=7"))

    assert {finding.law for finding in check_views(log, [view.name for view in inline_views()])} == {
        "rebuilt"
    }
