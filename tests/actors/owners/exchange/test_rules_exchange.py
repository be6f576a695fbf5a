"""The rules of an exchange: given what happened, when a run or a delivery ends, then what follows."""

from typing import Any, get_args

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from intersession_actors.owners.exchange.exchange import Exchange, Quoted
from intersession_actors.owners.exchange.rules import Circumstances, evolve, speaker_of
from intersession_actors.owners.streams.commands import DeliveryEnded, RunEnded, StepRefused
from intersession_actors.rules.policy.chain import Spent
from intersession_events.basics import ids
from intersession_events.basics.ids import announce_delivery
from intersession_events.facts import (
    AnnounceDecided,
    AnnounceRequested,
    Budget,
    CloseReason,
    ExchangeAccepted,
    ExchangeClosed,
    ExchangeEvent,
    ExchangeSettings,
    Limits,
    LoopEnd,
    LoopEnded,
    Route,
    RunStatus,
    TurnEnded,
    TurnRequested,
    decode,
    encode,
    topic_of,
)
from support import hostile
from support.exchange_states import decide, state_after

LOG = "00000000-0000-4000-8000-000000000001"
STREAM = "exchange:x1"
ASKER, ASKED = "agent:main:main", "agent:ops:main"
ROUTE = Route(channel="telegram", to="-5")
ANNOUNCE_RUN = ids.derive(LOG, "run", "x1", "announce")
DELIVERY = announce_delivery(LOG, "x1")


def turn_run(turn: int) -> str:
    return ids.derive(LOG, "run", "x1", "turn", turn)


def accepted(*, started_ms: int = 0, **fields: Any) -> ExchangeAccepted:
    limits = fields.get("settings", ExchangeSettings()).limits
    given_fields: dict[str, Any] = {
        "budget": Budget(root="r0", started_ms=started_ms, path=(ASKER, ASKED), hops=1, limits=limits),
        "exchange_id": "x1",
        "run_id": "r0",
        "target": ASKED,
        "target_session_id": "s1",
        "message_id": "m1",
        "message": "how is it going?",
        "requester": ASKER,
        "caller": ASKER,
        "route": ROUTE,
    }
    return ExchangeAccepted(**{**given_fields, **fields})


def ended(run_id: str, text: str | None = None, **fields: Any) -> RunEnded:
    return RunEnded(stream=STREAM, run_id=run_id, status=fields.pop("status", "ok"), text=text, **fields)


def facts(**fields: Any) -> Circumstances:
    return Circumstances(log_id=LOG, now_ms=fields.pop("now_ms", 0), **{"has_route": True, **fields})


def refused(run_id: str, code: Any = "not_visible") -> dict[str, StepRefused]:
    return {run_id: StepRefused(stream=STREAM, run_id=run_id, code=code, error="the session is gone")}


def loop_end(events: list[ExchangeEvent]) -> LoopEnded:
    found = [event for event in events if isinstance(event, LoopEnded)]
    assert len(found) == 1
    return found[0]


PRIMARY = TurnEnded(turn=0, speaker=ASKED, run_id="r0", status="ok")
TURN_1 = TurnRequested(turn=1, speaker=ASKER, run_id=turn_run(1), message_id="m2")
LOOPED = LoopEnded(reason="turn_limit", turns=0)
ASKED_TO_ANNOUNCE = AnnounceRequested(speaker=ASKED, run_id=ANNOUNCE_RUN, message_id="m9")
GOES_OUT = AnnounceDecided(run_id=ANNOUNCE_RUN, delivery_id=DELIVERY)


@pytest.mark.clause("LOOP-1")
def test_a_reply_goes_back_to_the_requester_for_turn_one() -> None:
    events = decide(state_after(accepted()), ended("r0", "fine"), facts())

    assert events[0] == TurnEnded(turn=0, speaker=ASKED, run_id="r0", status="ok")
    assert isinstance(events[1], TurnRequested)
    assert (events[1].turn, events[1].speaker, events[1].run_id) == (1, ASKER, turn_run(1))


@pytest.mark.clause("LOOP-1")
def test_turns_alternate_between_the_two() -> None:
    state = state_after(accepted(), PRIMARY, TURN_1)

    events = decide(state, ended(turn_run(1), "and the tests?"), facts())

    assert events[0] == TurnEnded(turn=1, speaker=ASKER, run_id=turn_run(1), status="ok")
    assert isinstance(events[1], TurnRequested)
    assert (events[1].turn, events[1].speaker) == (2, ASKED)
    assert [speaker_of(accepted(), turn) for turn in (1, 2, 3, 4, 5)] == [ASKER, ASKED, ASKER, ASKED, ASKER]


def loop_ends() -> dict[LoopEnd, tuple[Exchange, RunEnded, Circumstances]]:
    """Return for each reason what was, what happened, and what is known."""
    in_turn = state_after(accepted(), PRIMARY, TURN_1)
    first = ended("r0", "fine")

    def limited(**limits: int) -> ExchangeSettings:
        return ExchangeSettings(limits=Limits(**{"wall_seconds": 0, "runs": 0, **limits}))

    return {
        "reply_skip": (in_turn, ended(turn_run(1), "REPLY_SKIP"), facts()),
        "no_text": (in_turn, ended(turn_run(1), None), facts()),
        "turn_limit": (state_after(accepted(settings=ExchangeSettings(max_turns=0))), first, facts()),
        "turn_failed": (in_turn, ended(turn_run(1), status="error", error="backend: no"), facts()),
        "turn_timeout": (in_turn, ended(turn_run(1), status="timeout", error="timeout"), facts()),
        "aborted": (in_turn, ended(turn_run(1), status="aborted"), facts()),
        "policy_denied": (
            state_after(accepted()),
            first,
            facts(refused=refused(turn_run(1), "policy_denied")),
        ),
        "requester_gone": (state_after(accepted()), first, facts(refused=refused(turn_run(1)))),
        "target_gone": (in_turn, ended(turn_run(1), "go on"), facts(refused=refused(turn_run(2)))),
        "no_agent": (state_after(accepted()), first, facts(requester_has_agent=False)),
        "no_requester": (
            state_after(accepted(requester=None, loop=False, loop_reason="no_requester")),
            first,
            facts(),
        ),
        "one_way": (state_after(accepted(loop=False, loop_reason="one_way")), first, facts()),
        "run_limit": (
            state_after(accepted(settings=limited(runs=3))),
            first,
            facts(spent=Spent(runs=3)),
        ),
        "token_limit": (
            state_after(accepted(settings=limited(tokens=1000))),
            first,
            facts(spent=Spent(tokens=1000)),
        ),
        "cost_limit": (
            state_after(accepted(settings=limited(cost_micros=100))),
            first,
            facts(spent=Spent(cost_micros=100)),
        ),
        "wall_limit": (
            state_after(accepted(settings=limited(wall_seconds=60), started_ms=1_000)),
            first,
            facts(now_ms=61_000),
        ),
    }


NOT_OF_THE_LOOP: set[LoopEnd] = {"hop_limit", "revisit_limit", "inferred", "dropped", "ended"}
"""Hops and revisits count exchanges, so they refuse a send; `inferred` is an import's word, the last two are of a release."""

OF_THE_CHAIN: set[LoopEnd] = {"run_limit", "token_limit", "cost_limit", "wall_limit"}


@pytest.mark.clause("LOOP-2", "LOOP-4", "LOOP-5")
@pytest.mark.parametrize("reason", sorted(set(get_args(LoopEnd)) - NOT_OF_THE_LOOP))
def test_the_loop_ends_for_each_of_its_reasons_and_says_which(reason: LoopEnd) -> None:
    state, outcome, known = loop_ends()[reason]

    events = decide(state, outcome, known)

    assert loop_end(events).reason == reason
    if reason in OF_THE_CHAIN:
        # Nor is there a run left for the announce, and that says so, too.
        limit = loop_end(events).limit
        decided, closed = events[-2:]
        assert decided == AnnounceDecided(silent=True, why="limit", limit=limit)
        assert isinstance(closed, ExchangeClosed)
        assert (closed.reason, closed.limit) == ("announce_failed", limit)
    else:
        # Whatever else ended the loop, the target is asked to announce (ANN-1).
        assert isinstance(events[-1], AnnounceRequested)
        assert (events[-1].speaker, events[-1].run_id) == (ASKED, ANNOUNCE_RUN)


@pytest.mark.clause("LOOP-5")
@pytest.mark.parametrize(
    ("reason", "setting"),
    [
        ("turn_limit", "session.agentToAgent.maxPingPongTurns"),
        ("run_limit", "session.agentToAgent.limits.runs"),
        ("token_limit", "session.agentToAgent.limits.tokens"),
        ("cost_limit", "session.agentToAgent.limits.costMicros"),
        ("wall_limit", "session.agentToAgent.limits.wallSeconds"),
    ],
)
def test_a_limit_that_ends_the_loop_is_named_by_its_setting(reason: LoopEnd, setting: str) -> None:
    assert loop_end(decide(*loop_ends()[reason])).limit == setting


@pytest.mark.clause("LOOP-2")
def test_the_last_reply_before_the_turn_limit_is_kept() -> None:
    state = state_after(accepted(settings=ExchangeSettings(max_turns=1)), PRIMARY, TURN_1)

    events = decide(state, ended(turn_run(1), "thanks"), facts())

    assert events[0] == TurnEnded(turn=1, speaker=ASKER, run_id=turn_run(1), status="ok")
    assert loop_end(events) == LoopEnded(
        reason="turn_limit", turns=1, limit="session.agentToAgent.maxPingPongTurns"
    )
    assert evolve(state, events[0]).latest == Quoted(turn_run(1))


@pytest.mark.clause("LOOP-2", "X5")
@pytest.mark.parametrize("row", hostile.rows("T", field="reply in ping-pong step"), ids=hostile.row_id)
def test_only_the_exact_skip_word_ends_the_loop(row: dict[str, Any]) -> None:
    state = state_after(accepted(), PRIMARY, TURN_1)

    events = decide(state, ended(turn_run(1), row["input"]), facts())

    if row["expect"] == "skip":
        assert loop_end(events).reason == "reply_skip"
        assert evolve(state, events[0]).latest == state.latest, "the skip word is nobody's reply"
    else:
        assert isinstance(events[-1], TurnRequested)
        assert evolve(state, events[0]).latest == Quoted(turn_run(1))


@pytest.mark.clause("ANN-1", "X5")
@pytest.mark.parametrize("row", hostile.rows("T", field="announce reply"), ids=hostile.row_id)
def test_the_loops_skip_word_is_announced_as_text(row: dict[str, Any]) -> None:
    state = state_after(accepted(), PRIMARY, LOOPED, ASKED_TO_ANNOUNCE)

    (decided,) = decide(state, ended(ANNOUNCE_RUN, row["input"]), facts())

    assert decided == AnnounceDecided(delivery_id=DELIVERY, run_id=ANNOUNCE_RUN)


@pytest.mark.clause("LOOP-6", "SEND-5")
@pytest.mark.parametrize("text", [None, "", " \n", "NO_REPLY", "REPLY_SKIP", " REPLY_SKIP\n"])
def test_a_first_reply_that_is_no_text_closes_the_exchange_at_once(text: str | None) -> None:
    events = decide(state_after(accepted()), ended("r0", text), facts())

    assert events == [
        TurnEnded(turn=0, speaker=ASKED, run_id="r0", status="ok", said="nothing"),
        ExchangeClosed(reason="no_reply"),
    ]


@pytest.mark.clause("LOOP-6")
@pytest.mark.parametrize("text", ["HEARTBEAT_OK", "<b>REPLY_SKIP</b>", "ANNOUNCE_SKIP"])
def test_other_words_are_text(text: str) -> None:
    events = decide(state_after(accepted()), ended("r0", text), facts())

    assert isinstance(events[-1], TurnRequested)


def closes() -> dict[CloseReason, tuple[Exchange, RunEnded | DeliveryEnded, Circumstances]]:
    announcing = state_after(accepted(), PRIMARY, LOOPED, ASKED_TO_ANNOUNCE)
    delivering = state_after(accepted(), PRIMARY, LOOPED, ASKED_TO_ANNOUNCE, GOES_OUT)

    def delivered(outcome: Any) -> DeliveryEnded:
        return DeliveryEnded(stream=STREAM, delivery_id=DELIVERY, outcome=outcome, note="why")

    return {
        "announced": (delivering, delivered("done"), facts()),
        "silent": (announcing, ended(ANNOUNCE_RUN, "ANNOUNCE_SKIP"), facts()),
        "no_route": (announcing, ended(ANNOUNCE_RUN, "all is well"), facts(has_route=False)),
        "no_reply": (state_after(accepted()), ended("r0", None), facts()),
        "run_failed": (state_after(accepted()), ended("r0", status="timeout", error="timeout"), facts()),
        "announce_failed": (announcing, ended(ANNOUNCE_RUN, status="timeout", error="timeout"), facts()),
        "announce_denied": (delivering, delivered("denied"), facts()),
        "delivery_unknown": (delivering, delivered("unknown"), facts()),
        "withheld": (delivering, delivered("withheld"), facts()),
        "target_gone": (announcing, ended(ANNOUNCE_RUN, status="aborted", gone=True), facts()),
        "aborted": (state_after(accepted()), ended("r0", status="aborted"), facts()),
    }


@pytest.mark.clause("ANN-1", "ANN-2", "ANN-3", "ANN-4")
@pytest.mark.parametrize("reason", sorted(set(get_args(CloseReason)) - {"inferred", "dropped", "ended"}))
def test_an_exchange_closes_for_each_of_its_reasons(reason: CloseReason) -> None:
    state, outcome, known = closes()[reason]

    events = decide(state, outcome, known)

    assert isinstance(events[-1], ExchangeClosed)
    assert events[-1].reason == reason
    assert state_after(state.accepted, *events).phase == "closed"


@pytest.mark.clause("ANN-2")
def test_what_has_no_route_is_recorded_all_the_same() -> None:
    state = state_after(accepted(), PRIMARY, LOOPED, ASKED_TO_ANNOUNCE)

    events = decide(state, ended(ANNOUNCE_RUN, "all is well"), facts(has_route=False))

    assert events[0] == AnnounceDecided(run_id=ANNOUNCE_RUN)


@pytest.mark.clause("ANN-2")
def test_announce_routed_saves_the_turn_where_there_is_no_route() -> None:
    routed = ExchangeSettings(max_turns=0, announce="routed")

    nowhere = state_after(accepted(settings=routed, route=None))
    without = decide(nowhere, ended("r0", "fine"), facts())
    with_route = decide(state_after(accepted(settings=routed)), ended("r0", "fine"), facts())

    assert without[-2:] == [AnnounceDecided(silent=True, why="not_routed"), ExchangeClosed(reason="no_route")]
    assert isinstance(with_route[-1], AnnounceRequested)


@pytest.mark.clause("ANN-2")
def test_what_a_listening_host_got_had_no_route_all_the_same() -> None:
    nowhere = state_after(accepted(route=None), PRIMARY, LOOPED, ASKED_TO_ANNOUNCE, GOES_OUT)

    events = decide(nowhere, DeliveryEnded(stream=STREAM, delivery_id=DELIVERY, outcome="done"), facts())

    assert events == [ExchangeClosed(reason="no_route")]


@pytest.mark.clause("ANN-1")
@pytest.mark.parametrize(("text", "why"), [("ANNOUNCE_SKIP", "announce_skip"), (None, "no_text")])
def test_silence_is_recorded_with_its_kind(text: str | None, why: str) -> None:
    state = state_after(accepted(), PRIMARY, LOOPED, ASKED_TO_ANNOUNCE)

    events = decide(state, ended(ANNOUNCE_RUN, text), facts())

    assert events[0] == AnnounceDecided(silent=True, why=why, run_id=ANNOUNCE_RUN)  # type: ignore[arg-type]


def test_a_target_that_is_gone_is_not_asked_to_announce() -> None:
    gone = refused(turn_run(1)) | refused(ANNOUNCE_RUN)

    events = decide(state_after(accepted()), ended("r0", "fine"), facts(refused=gone))

    assert events[-2:] == [
        AnnounceDecided(silent=True, why="run_failed"),
        ExchangeClosed(reason="target_gone", note="the session is gone"),
    ]


@pytest.mark.clause("HIST-6", "LOOP-2")
@pytest.mark.parametrize(("turn", "reason"), [(1, "requester_gone"), (2, "target_gone")])
@pytest.mark.parametrize("status", ["aborted", "error"])
def test_who_is_deleted_in_its_turn_is_gone(turn: int, reason: LoopEnd, status: RunStatus) -> None:
    """Before: it read as aborted, or as a turn that failed."""
    speaker = speaker_of(accepted(), turn)
    asked = TurnRequested(turn=turn, speaker=speaker, run_id=turn_run(turn), message_id="m2")

    events = decide(
        state_after(accepted(), PRIMARY, asked), ended(turn_run(turn), status=status, gone=True), facts()
    )

    assert loop_end(events).reason == reason


@pytest.mark.parametrize(
    "outcome",
    [
        ended("r0", "told twice"),
        ended(turn_run(2), "of a turn that was never asked for"),
        DeliveryEnded(stream=STREAM, delivery_id=DELIVERY, outcome="done"),
    ],
)
def test_an_outcome_that_is_not_awaited_leads_to_nothing(outcome: RunEnded | DeliveryEnded) -> None:
    assert decide(state_after(accepted(), PRIMARY, TURN_1), outcome, facts()) == []


REPLIES = st.lists(
    st.one_of(
        st.sampled_from(["REPLY_SKIP", "NO_REPLY", "", "go on", "ANNOUNCE_SKIP", None]),
        st.text(max_size=20),
    ),
    min_size=12,
    max_size=12,
)
STATUSES = st.lists(st.sampled_from(["ok"] * 8 + ["error", "timeout", "aborted"]), min_size=12, max_size=12)


@pytest.mark.clause("LOOP-2", "L1")
@for_all(
    replies=REPLIES,
    statuses=STATUSES,
    cap=st.integers(min_value=0, max_value=5),
    chain=st.tuples(st.integers(min_value=0, max_value=6), st.integers(min_value=0, max_value=3)),
    delivered=st.sampled_from(["done", "failed", "denied", "unknown"]),
    route=st.booleans(),
)
def test_every_exchange_ends_within_its_turns_and_its_stored_events_tell_its_state(
    replies: list[str | None],
    statuses: list[Any],
    cap: int,
    chain: tuple[int, int],
    delivered: Any,
    *,
    route: bool,
) -> None:
    runs, before = chain  # what the whole chain may have, and what it has had
    settings = ExchangeSettings(max_turns=cap, limits=Limits(runs=runs))
    log: list[ExchangeEvent] = [accepted(settings=settings)]
    state = state_after(*log)
    for step in range(12):
        if state.phase == "closed":
            break
        outcome: RunEnded | DeliveryEnded = (
            DeliveryEnded(stream=STREAM, delivery_id=state.pending, outcome=delivered)
            if state.phase == "delivery"
            else ended(state.pending, replies[step], status=statuses[step])
        )
        asked = sum(isinstance(event, TurnRequested | AnnounceRequested) for event in log)
        known = facts(has_route=route, spent=Spent(runs=before + 1 + asked))
        events = decide(state, outcome, known)
        assert events, "an awaited outcome always leads somewhere"
        log += events
        state = state_after(*log)
        assert decide(state, outcome, known) == [], "told twice, it leads to nothing more"

    assert state.phase == "closed"
    turns = [event for event in log if isinstance(event, TurnRequested)]
    assert len(turns) <= cap
    asked = sum(isinstance(event, TurnRequested | AnnounceRequested) for event in log)
    assert runs == 0 or asked <= max(runs - before - 1, 0)
    assert [event.turn for event in turns] == list(range(1, len(turns) + 1))
    assert sum(isinstance(event, LoopEnded) for event in log) <= 1
    assert sum(isinstance(event, AnnounceRequested) for event in log) <= 1
    assert sum(isinstance(event, ExchangeClosed) for event in log) == 1
    stored = [(topic_of(event), encode(event)) for event in log]
    read_back: list[Any] = [decode(topic, payload) for topic, payload in stored]
    assert state_after(*read_back) == state
