"""Flows: what start-up picks up again, and where each exchange, spawn and delivery stands."""

from typing import Literal

import msgspec
import pytest
from msgspec.structs import replace

from intersession_events.facts import (
    AnnounceDecided,
    AnnounceRequested,
    ChildArchived,
    ChildEnded,
    DeliveryDecided,
    DeliveryDenied,
    DeliveryDone,
    DeliveryEvent,
    DeliveryFailed,
    DeliveryRetried,
    DeliveryStarted,
    DeliveryUnknown,
    ExchangeAccepted,
    ExchangeClosed,
    LoopEnded,
    ResultHanded,
    Route,
    SpawnAccepted,
    SpawnClosed,
    TurnEnded,
    TurnRequested,
)
from intersession_events.stores.postgres.log import PostgresLog
from intersession_projections.views.flows.flows import Flows, _at
from intersession_projections.views.flows.rows import Position
from support.story import MAIN, Story

OPS = "agent:ops:main"


def archives(flows: Flows) -> list[tuple[str, str, int | None]]:
    return [(spawn.spawn_id, spawn.child, spawn.archive_due_ms) for spawn in flows.pending_archives()]


MINUTE = 60_000


def exchange(exchange_id: str = "x") -> ExchangeAccepted:
    return ExchangeAccepted(
        exchange_id=exchange_id,
        run_id=f"{exchange_id}-primary",
        target=OPS,
        target_session_id="s",
        message_id="m",
        message="hello",
        requester=MAIN,
    )


def spawn(
    spawn_id: str = "p",
    *,
    cleanup: Literal["delete", "keep"] = "keep",
    mode: Literal["run", "session"] = "run",
    archive_after_ms: int = MINUTE,
) -> SpawnAccepted:
    return SpawnAccepted(
        spawn_id=spawn_id,
        run_id=f"{spawn_id}-task",
        child=f"agent:main:subagent:{spawn_id}",
        child_session_id="s",
        agent_id="main",
        task="t",
        message_id="m",
        requester=MAIN,
        cleanup=cleanup,
        mode=mode,
        archive_after_ms=archive_after_ms,
    )


def delivery(delivery_id: str = "d") -> DeliveryDecided:
    return DeliveryDecided(
        delivery_id=delivery_id,
        session_key=OPS,
        route=Route(channel="whatsapp", to="1"),
        text="hi",
        key="k",
        purpose="announce",
        run_id="r",
        owner="exchange:x",
    )


@pytest.mark.clause("LOOP-1")
def test_an_exchange_stands_where_its_last_event_put_it(story: Story) -> None:
    flows = Flows(story.log)
    accepted = story.put("exchange:x", exchange())
    story.put("exchange:x", TurnEnded(turn=0, speaker=OPS, run_id="x-primary", status="ok", text="yes"))
    story.put("exchange:x", TurnRequested(turn=1, speaker=MAIN, run_id="turn1", message_id="m1"))
    waiting = flows.exchange("x")
    assert waiting is not None
    assert (waiting.is_open, waiting.awaits, waiting.accepted) == (True, "turn1", accepted.position)
    story.put("exchange:x", TurnEnded(turn=1, speaker=MAIN, run_id="turn1", status="ok", text="REPLY_SKIP"))
    story.put("exchange:x", LoopEnded(reason="reply_skip", turns=1))
    story.put("exchange:x", AnnounceRequested(speaker=OPS, run_id="announce", message_id="m2"))
    story.put("exchange:x", AnnounceDecided(text="told", delivery_id="d"))
    story.put("exchange:x", ExchangeClosed(reason="announced"))
    closed = flows.exchange("x")
    assert closed is not None
    assert (closed.turns, closed.end_reason, closed.close_reason) == (1, "reply_skip", "announced")
    assert (closed.is_open, closed.awaits, closed.delivery_id) == (False, None, "d")
    assert [flows.exchange_of_run(run) for run in ("x-primary", "turn1", "announce", "other")] == [
        "x",
        "x",
        "x",
        None,
    ]


@pytest.mark.clause("SEND-3")
def test_start_up_finds_what_is_open_in_stored_order(story: Story) -> None:
    flows = Flows(story.log)
    for one in ("b", "c", "a"):
        story.put(f"exchange:{one}", exchange(one))
        story.put(f"spawn:{one}", spawn(one))
        story.put(f"delivery:{one}", delivery(one))
    story.put("exchange:c", ExchangeClosed(reason="silent"))
    story.put("spawn:c", SpawnClosed(reason="silent"))
    story.put("delivery:c", DeliveryDone(delivery_id="c", attempt=1))
    assert flows.open_exchanges() == ["exchange:b", "exchange:a"]
    assert flows.open_spawns() == ["spawn:b", "spawn:a"]
    assert flows.open_deliveries() == ["delivery:b", "delivery:a"]
    assert [row.exchange_id for row in flows.exchanges_at(Position(0, 99), 2)] == ["a", "c"]


@pytest.mark.clause("SEND-3")
def test_the_exchanges_of_a_session_are_found_without_looking_at_those_of_others(story: Story) -> None:
    """Issue 9: `replay SESSION` looked at every exchange of the log. One that was imported has no runs to be found by."""
    flows = Flows(story.log)
    for number in range(40):
        story.put(f"exchange:other{number}", exchange(f"other{number}"))
    for name, requester, target in (
        ("asked", "agent:a:main", "agent:b:main"),
        ("told", "agent:c:main", "agent:a:main"),
    ):
        story.put(
            f"exchange:{name}", replace(exchange(name), requester=requester, target=target, exchange_id=name)
        )

    for is_open in (False, True):
        where = Position(0, story.log.head(), "agent:a:main", is_open)
        assert [row.exchange_id for row in flows.exchanges_at(where, 10)] == ["told", "asked"]
        condition, parameters = _at("exchange", where, 10)
        if isinstance(story.log, PostgresLog):
            continue  # what it looks at depends on how much there is
        plan = story.log.query(  # the condition is ours
            f"EXPLAIN QUERY PLAN SELECT accepted FROM flows WHERE {condition}",  # noqa: S608
            parameters,
        )
        assert not any("SCAN" in row[3] or "flows_asked" in row[3] or "flows_open" in row[3] for row in plan)


@pytest.mark.clause("ANN-3")
@pytest.mark.parametrize(
    ("last", "state", "is_open"),
    [
        (DeliveryStarted(delivery_id="d", attempt=1), "started", True),
        (DeliveryFailed(delivery_id="d", attempt=1, error="x", retry_at_ms=9), "retrying", True),
        (DeliveryFailed(delivery_id="d", attempt=1, error="x"), "failed", False),
        (DeliveryDone(delivery_id="d", attempt=1), "done", False),
        (DeliveryUnknown(delivery_id="d", attempt=1), "unknown", False),
        (DeliveryDenied(delivery_id="d", rule="default"), "denied", False),
        (DeliveryRetried(delivery_id="d", by="operator"), "retrying", True),
    ],
)
def test_a_delivery_is_open_until_its_outcome_is_known(
    story: Story, last: DeliveryEvent, state: str, *, is_open: bool
) -> None:
    flows = Flows(story.log)
    story.put("delivery:d", delivery(), last)
    row = flows.delivery("d")
    assert row is not None
    assert (row.state, row.is_open) == (state, is_open)
    assert flows.open_deliveries() == (["delivery:d"] if is_open else [])
    assert flows.deliveries_of("exchange:x") == flows.deliveries_of_all((), ["r"]) == [row]


@pytest.mark.clause("SPAWN-11")
def test_a_kept_child_is_due_so_long_after_its_run_ended(story: Story) -> None:
    flows = Flows(story.log)
    story.put("spawn:p", spawn())
    assert flows.pending_archives() == []
    story.put("spawn:p", ChildEnded(run_id="p-task", status="ok", ended_ms=500))
    assert archives(flows) == [("p", "agent:main:subagent:p", 500 + MINUTE)]
    story.put("spawn:p", SpawnClosed(reason="announced"))
    story.put("spawn:p", ChildArchived(child="agent:main:subagent:p", reason="expired"))
    assert flows.pending_archives() == []


@pytest.mark.clause("SPAWN-11")
def test_a_child_to_be_deleted_is_due_when_its_announce_is_final_and_not_before(story: Story) -> None:
    flows = Flows(story.log)
    story.put("spawn:p", spawn(cleanup="delete"), ChildEnded(run_id="p-task", status="ok"))
    assert flows.pending_archives() == []
    story.put("spawn:p", SpawnClosed(reason="announced"), time=900)
    assert archives(flows) == [("p", "agent:main:subagent:p", 900)]


@pytest.mark.clause("SPAWN-11")
def test_sessions_and_children_without_a_time_are_never_due(story: Story) -> None:
    story.put("spawn:a", spawn("a", mode="session"), ChildEnded(run_id="a-task", status="ok"))
    story.put("spawn:b", spawn("b", archive_after_ms=0), ChildEnded(run_id="b-task", status="ok"))
    assert Flows(story.log).pending_archives() == []


@pytest.mark.clause("SPAWN-9")
def test_a_spawn_is_found_by_its_child_and_by_its_runs(story: Story) -> None:
    flows = Flows(story.log)
    story.put("spawn:p", spawn(), ResultHanded(requester=MAIN, run_id="handed", message_id="m"))
    found = flows.spawn_of_child("agent:main:subagent:p")
    assert found == flows.spawn("p")
    assert found is not None
    assert flows.spawns_of(MAIN) == [found]
    assert (flows.flow_of_run("p-task"), flows.flow_of_run("handed")) == ("spawn:p", "spawn:p")
    assert flows.exchange_of_run("p-task") is None


@pytest.mark.clause("IMP-4")
def test_an_imported_exchange_is_found_by_the_session_that_was_asked(story: Story) -> None:
    """An import knows of no run there."""
    flows = Flows(story.log)
    imported = msgspec.structs.replace(exchange("i"), inferred=True)
    story.put("exchange:i", imported, ExchangeClosed(reason="inferred"))
    story.put("exchange:x", exchange())

    assert [row.exchange_id for row in flows.exchanges_at(Position(0, 99, OPS), 9)] == ["x", "i"]
    assert [row.exchange_id for row in flows.exchanges_at(Position(0, 99, MAIN), 9)] == ["x", "i"]
    assert flows.spawn_of_child(OPS) is None


@pytest.mark.clause("J3")
def test_what_begins_in_a_stream_of_another_kind_or_twice_harms_no_row(story: Story) -> None:
    """B13: an id that an exchange and a spawn share made a row of one kind with the state of the other."""
    flows = Flows(story.log)
    for stream in ("exchange:p", "spawn:p", "delivery:p"):
        for begins in (exchange("p"), spawn("p"), delivery("p"), exchange("p"), spawn("p")):
            story.put(stream, begins)
        story.put(stream, ChildEnded(run_id="p-task", status="ok", text="done"))
        story.put(stream, ExchangeClosed(reason="silent"))

    assert story.log.set_aside() == []
    closed, ended, decided = flows.exchange("p"), flows.spawn("p"), flows.delivery("p")
    assert closed is not None
    assert ended is not None
    assert decided is not None
    assert (closed.accepted, closed.close_reason, ended.accepted, ended.status) == (1, "silent", 9, "ok")
    assert (decided.accepted, decided.state) == (17, "decided")
    assert [row.exchange_id for row in flows.exchanges_at(Position(0, 99), 50)] == ["p"]
    assert [row.spawn_id for row in flows.spawns_at(Position(0, 99), 50)] == ["p"]
