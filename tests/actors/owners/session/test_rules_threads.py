"""A thread that belongs to a session: how long, and what it takes in from there."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intersession_actors.owners.session.commands import Archive, Enqueue, Unbind
from intersession_actors.owners.session.rules import ThreadLeft, decide_archive, decide_enqueue, decide_unbind
from intersession_actors.owners.session.state import Session, evolve
from intersession_actors.owners.streams.commands import Refused
from intersession_events.facts import (
    Budget,
    Event,
    Message,
    MessageRecorded,
    Route,
    RouteChanged,
    SessionArchived,
    SessionOpened,
    ThreadBound,
    ThreadUnbound,
    UnbindReason,
    encode,
)
from support.bare_events import bare

KEY = "agent:main:subagent:6a4d280b-fc53-4c01-9c8c-4d77a60bfa97"
OPENED = SessionOpened(key=KEY, session_id="s1", agent_id="main", opened_by="spawn")
BUDGET = Budget(root="r")
THREAD = Route(channel="discord", to="42", thread="t1")
BOUND_AT = 1_000


def state_after(*events: tuple[int, Event]) -> Session:
    state = Session()
    for number, (time, event) in enumerate(events, start=1):
        digest = encode(event).hex()
        state = evolve(state, bare(f"session:{KEY}", number, event, time=time, digest=digest))
    return state


def message(at: int = BOUND_AT) -> Message:
    return Message(id=f"m{at}", role="user", content="hi", timestamp=at)


def said(at: int) -> tuple[int, Event]:
    return at, MessageRecorded(session_id="s1", message=message(at))


def left(state: Session, now: int) -> ThreadLeft:
    """Return for how long a thread is its session's own at a time, by a clock that nobody sets."""
    return state.thread_left(age_ms=now - state.bound_ms, quiet_ms=now - state.last_message_ms)


def bound(*more: tuple[int, Event], idle_ms: int = 0, max_age_ms: int = 0) -> Session:
    binding = ThreadBound(route=THREAD, idle_ms=idle_ms, max_age_ms=max_age_ms)
    return state_after((BOUND_AT, OPENED), (BOUND_AT, binding), *more)


@pytest.mark.clause("SPAWN-12")
def test_a_bound_session_speaks_there_and_an_unbound_one_nowhere() -> None:
    unbound = ThreadUnbound(route=THREAD, reason="unbound")

    assert bound().route == THREAD
    assert bound((2_000, unbound)).route is None
    assert bound((2_000, unbound)).bound is None
    elsewhere = RouteChanged(route=Route(channel="telegram", to="7"))
    assert bound((2_000, elsewhere), (3_000, unbound)).route == elsewhere.route


@pytest.mark.clause("SPAWN-12")
def test_a_thread_is_quiet_from_when_it_was_bound_on_and_the_nearest_limit_ends_it() -> None:
    state = bound(idle_ms=3_600_000)
    both = bound(idle_ms=3_600_000, max_age_ms=600_000)

    assert state.thread_left(age_ms=60_000, quiet_ms=7_200_000) == (3_540_000, "idle")
    assert state.thread_left(age_ms=7_200_000, quiet_ms=60_000) == (3_540_000, "idle")
    assert both.thread_left(age_ms=60_000, quiet_ms=60_000) == (540_000, "max_age")


@pytest.mark.clause("SPAWN-12")
@pytest.mark.parametrize(
    ("limits", "now", "reason"),
    [
        ({}, 10**12, None),
        ({"idle_ms": 500}, 1_999, None),
        ({"idle_ms": 500}, 2_000, "idle"),
        ({"max_age_ms": 700}, 1_699, None),
        ({"max_age_ms": 700}, 1_700, "max_age"),
        ({"idle_ms": 500, "max_age_ms": 700}, 1_700, "max_age"),
        ({"idle_ms": 500, "max_age_ms": 9_000}, 2_000, "idle"),
    ],
)
def test_it_is_unbound_a_while_after_the_last_word_or_after_its_time(
    limits: dict[str, int], now: int, reason: UnbindReason | None
) -> None:
    state = bound(said(1_500), **limits)

    events = decide_unbind(state, Unbind(only_due=True), left(state, now))

    assert events == ([] if reason is None else [ThreadUnbound(route=THREAD, reason=reason)])


@pytest.mark.clause("SPAWN-12")
def test_it_is_unbound_when_asked_to_once() -> None:
    events = decide_unbind(bound(), Unbind(), None)

    assert events == [ThreadUnbound(route=THREAD, reason="unbound")]
    assert decide_unbind(bound((BOUND_AT, events[0])), Unbind(), None) == []


@pytest.mark.clause("SPAWN-12")
def test_archiving_unbinds_it() -> None:
    events = decide_archive(bound(), Archive(reason="expired"))

    assert events == [
        ThreadUnbound(route=THREAD, reason="archived"),
        SessionArchived(session_id="s1", reason="expired"),
    ]


@pytest.mark.clause("SPAWN-12")
def test_a_message_from_a_thread_is_taken_only_while_it_is_the_sessions_own() -> None:
    from_there = Enqueue(budget=BUDGET, message=message(1_500), only_bound=THREAD)

    assert not isinstance(decide_enqueue(bound(), from_there), Refused)
    for state in (
        bound((1_200, ThreadUnbound(route=THREAD, reason="unbound"))),
        bound(max_age_ms=500),
        state_after((BOUND_AT, OPENED)),
        Session(),
    ):
        refused = decide_enqueue(state, from_there, thread_left=left(state, 1_500))
        assert isinstance(refused, Refused)
        assert refused.code == "not_visible"


@pytest.mark.clause("SPAWN-12")
def test_a_session_that_opens_with_a_thread_has_it_before_its_first_message() -> None:
    binding = ThreadBound(route=THREAD)

    events = decide_enqueue(
        Session(), Enqueue(budget=BUDGET, message=message(), opening=OPENED, bound=binding)
    )

    assert events == [OPENED, binding, MessageRecorded(session_id="s1", message=message())]


@pytest.mark.clause("SPAWN-12")
@given(
    st.lists(st.integers(0, 2_000), max_size=5),
    st.integers(0, 1_000),
    st.integers(0, 1_000),
    st.integers(0, 4_000),
)
def test_the_timer_the_door_and_the_rule_agree_on_when_it_has_had_its_time(
    pauses: list[int], idle_ms: int, max_age_ms: int, later: int
) -> None:
    times = [BOUND_AT]
    for pause in pauses:
        times.append(times[-1] + pause)
    state = bound(*(said(time) for time in times[1:]), idle_ms=idle_ms, max_age_ms=max_age_ms)
    now = times[-1] + later

    remaining = left(state, now)
    due = remaining is not None and remaining[0] <= 0

    assert bool(decide_unbind(state, Unbind(only_due=True), remaining)) is due
    from_there = Enqueue(budget=BUDGET, message=message(now), only_bound=THREAD)
    taken = decide_enqueue(state, from_there, thread_left=remaining)
    assert isinstance(taken, Refused) is due
