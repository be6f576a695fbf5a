"""The timeline of a flow: every step of it, nothing else's, with causes."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings

from intersession_events.facts import (
    TOPICS,
    AnnounceDecided,
    ChildArchived,
    DeliveryDecided,
    DeliveryDone,
    Event,
    ExchangeAccepted,
    ExchangeClosed,
    LateReplyDropped,
    LoopEnded,
    Message,
    Provenance,
    Route,
    RunAborted,
    RunCompleted,
    RunQueued,
    RunStarted,
    SessionOpened,
    SpawnAccepted,
    ToolCallBlock,
    TurnEnded,
    TurnRequested,
)
from intersession_events.log.recorded import Recorded
from intersession_projections.questions.timeline.steps import Step, steps_of
from support.plain_log import PlainLog
from support.story import MAIN, Story
from support.told_steps import steps_told
from support.vocabulary import events

OPS = "agent:ops:main"
Told = list[tuple[str, str | None, str | None, str]]


def queued(run_id: str, text: str) -> RunQueued:
    message = Message(id=f"{run_id}-in", role="user", content=text, timestamp=0)
    return RunQueued(run_id=run_id, session_id="s", step="message", message=message)


def told(steps: list[Step]) -> Told:
    return [(step.event, step.who, step.to, step.words) for step in steps]


def exchange(story: Story, exchange_id: str) -> None:
    """Tell a whole exchange of one turn, between other events of the same sessions."""
    run, turn = f"{exchange_id}-run", f"{exchange_id}-turn"
    asked = Provenance(kind="inter_session", source_session_key=MAIN, exchange_id=exchange_id)
    message = Message(id=f"{run}-in", role="user", content="ready?", timestamp=0, provenance=asked)
    accepted = ExchangeAccepted(
        exchange_id=exchange_id,
        run_id=run,
        target=OPS,
        target_session_id="s",
        message_id=message.id,
        message="ready?",
        requester=MAIN,
    )
    queue = RunQueued(run_id=run, session_id="s", step="message", message=message, caller=MAIN)
    story.put(f"session:{OPS}", queue, causation="before")
    story.put(f"exchange:{exchange_id}", accepted)
    story.put(f"session:{OPS}", RunStarted(run_id=run, attempt=1, context_hash="h"))
    story.say(OPS, "of nobody's run")
    reply = Message(
        id=f"{run}-out",
        role="assistant",
        content=(ToolCallBlock(id="1", name="look", arguments='{"at":1}'),),
        timestamp=0,
        run_id=run,
    )
    end = RunCompleted(
        run_id=run, attempt=1, session_id="s", message=reply, message_is_reply=False, text="yes"
    )
    story.put(f"session:{OPS}", end)
    story.put(f"exchange:{exchange_id}", TurnEnded(turn=0, speaker=OPS, run_id=run, status="ok", text="yes"))
    story.put(
        f"exchange:{exchange_id}", TurnRequested(turn=1, speaker=MAIN, run_id=turn, message_id=f"{turn}-in")
    )
    story.run(MAIN, turn, "yes", "REPLY_SKIP")
    story.put(
        f"exchange:{exchange_id}",
        TurnEnded(turn=1, speaker=MAIN, run_id=turn, status="ok", text="REPLY_SKIP"),
        LoopEnded(reason="reply_skip", turns=1),
        AnnounceDecided(text="they are ready", delivery_id=f"{exchange_id}-d"),
    )
    delivery = DeliveryDecided(
        delivery_id=f"{exchange_id}-d",
        session_key=OPS,
        route=Route(channel="telegram", to="7", thread="3"),
        text="they are ready",
        key="k",
        purpose="announce",
        owner=f"exchange:{exchange_id}",
    )
    story.put(f"delivery:{exchange_id}-d", delivery, DeliveryDone(delivery_id=f"{exchange_id}-d", attempt=1))
    story.put(f"exchange:{exchange_id}", ExchangeClosed(reason="announced"))


@pytest.fixture
def two(story: Story) -> Story:
    story.open()
    story.open(OPS)
    exchange(story, "x")
    exchange(story, "y")
    return story


@pytest.mark.clause("SEND-3", "LOOP-1", "ANN-3")
def test_an_exchange_is_told_over_all_its_sessions_in_order(two: Story) -> None:
    assert told(steps_told(two.log, "y")) == [
        ("run_queued", MAIN, OPS, "ready?"),
        ("exchange_accepted", MAIN, OPS, "ready?"),
        ("run_started", OPS, None, "attempt 1"),
        ("run_completed", OPS, None, "yes"),
        ("turn_ended", OPS, None, "yes"),
        ("turn_requested", None, MAIN, "turn 1"),
        ("run_queued", None, MAIN, "yes"),
        ("run_started", MAIN, None, "attempt 1"),
        ("run_completed", MAIN, None, "REPLY_SKIP"),
        ("turn_ended", MAIN, None, "REPLY_SKIP"),
        ("loop_ended", None, None, "reply_skip after 1 turns"),
        ("announce_decided", None, None, "they are ready"),
        ("delivery_decided", OPS, "telegram:7#3", "they are ready"),
        ("delivery_done", None, None, "taken"),
        ("exchange_closed", None, None, "announced"),
    ]


@pytest.mark.clause("SEND-3")
def test_any_run_of_an_exchange_leads_to_all_of_it(two: Story) -> None:
    log = two.log
    assert steps_told(log, "x-run") == steps_told(log, "x-turn") == steps_told(log, "x") != []
    assert steps_told(log, "nobody") == []


def test_a_run_of_no_flow_is_told_with_its_message_and_its_delivery(story: Story) -> None:
    story.open()
    story.run(MAIN, "r", "hello", "hi")
    route = Route(channel="whatsapp", to="1", account="work")
    story.put(
        "delivery:d",
        DeliveryDecided(
            delivery_id="d",
            session_key=MAIN,
            route=route,
            text="hi",
            key="k",
            purpose="auto_reply",
            run_id="r",
        ),
    )
    assert told(steps_told(story.log, "r")) == [
        ("run_queued", None, MAIN, "hello"),
        ("run_started", MAIN, None, "attempt 1"),
        ("run_completed", MAIN, None, "hi"),
        ("delivery_decided", MAIN, "work@whatsapp:1", "hi"),
    ]


@pytest.mark.clause("SPAWN-6")
def test_a_spawn_is_told_from_the_opening_of_the_child_on(story: Story) -> None:
    child = "agent:main:subagent:c"
    story.open()
    message = Message(id="r-in", role="user", content="dig", timestamp=0)
    story.put(
        f"session:{child}",
        SessionOpened(key=child, session_id="c", agent_id="main", opened_by="spawn", spawned_by=MAIN),
        RunQueued(run_id="r", session_id="c", step="message", message=message, spawn_id="p"),
    )
    accepted = SpawnAccepted(
        spawn_id="p",
        run_id="r",
        child=child,
        child_session_id="c",
        agent_id="main",
        task="dig",
        message_id="r-in",
        requester=MAIN,
    )
    story.put("spawn:p", accepted, ChildArchived(child=child, reason="expired"))
    steps = steps_told(story.log, "p")
    assert [step.event for step in steps] == [
        "session_opened",
        "run_queued",
        "spawn_accepted",
        "child_archived",
    ]
    assert told(steps)[0] == ("session_opened", MAIN, child, "opened by spawn")


@pytest.mark.clause("IMP-4")
def test_an_imported_exchange_shows_its_messages_though_it_had_no_runs(story: Story) -> None:
    story.open(OPS, opened_by="import")
    message_id = story.say(OPS, "hello there", source="{}")
    accepted = ExchangeAccepted(
        exchange_id="i",
        run_id="unknown",
        target=OPS,
        target_session_id="s",
        message_id=message_id,
        message="hello there",
        inferred=True,
    )
    story.put("exchange:i", accepted, ExchangeClosed(reason="inferred"))
    assert [step.event for step in steps_told(story.log, "i")] == [
        "message_recorded",
        "exchange_accepted",
        "exchange_closed",
    ]


def test_a_cause_is_named_by_its_place_among_the_steps(story: Story) -> None:
    story.open()
    first = story.put(f"session:{MAIN}", RunStarted(run_id="r", attempt=1, context_hash="h"))
    story.put(f"session:{MAIN}", LateReplyDropped(run_id="r", attempt=1, reply="late"), causation=first.id)
    steps = steps_of(story.log.stream(f"session:{MAIN}", after=1))
    assert [(step.event, step.cause) for step in steps] == [
        ("run_started", None),
        ("late_reply_dropped", first.position),
    ]


@settings(max_examples=150, deadline=None)
@given(events())
def test_every_event_of_the_vocabulary_is_a_step(entry: tuple[str, Event, int]) -> None:
    stream, event, time = entry
    (step,) = steps_of([PlainLog().put(stream, event, time=time)])
    assert step.event in {topic.rpartition(".")[0] for topic in TOPICS}
    assert isinstance(step.words, str)


def test_what_others_did_while_a_run_waited_is_not_read_for_its_timeline(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before: a timeline costs what it shows, however long the run waited in the queue."""
    story.open()
    story.put(f"session:{MAIN}", queued("r", "me too"))
    for number in range(50):
        story.say(MAIN, f"{number}")
    story.put(f"session:{MAIN}", RunStarted(run_id="r", attempt=1, context_hash="h"))
    story.put(f"session:{MAIN}", RunCompleted(run_id="r", attempt=1, text="yes"))
    read: list[Recorded] = []
    stream = story.log.stream

    def watched(name: str, **given: Any) -> Sequence[Recorded]:
        found = stream(name, **given)
        read.extend(found)
        return found

    monkeypatch.setattr(story.log, "stream", watched)
    steps = steps_told(story.log, "r")

    assert [step.event for step in steps] == [
        "run_queued",
        "run_started",
        "run_completed",
    ]
    assert len(read) < 10


def test_a_run_that_waits_or_was_given_up_while_it_waited_has_its_timeline(story: Story) -> None:
    story.open()
    stream = f"session:{MAIN}"
    for name in ("a", "b"):
        story.put(stream, queued(name, name))
    story.put(stream, RunAborted(run_id="b", attempt=0, by="me"))

    told_of = {name: [step.event for step in steps_told(story.log, name)] for name in ("a", "b")}

    assert told_of == {
        "a": ["run_queued"],
        "b": ["run_queued", "run_aborted"],
    }
