"""The rules of holds: what stops an exchange, what a release leads to, and that a plain one changes nothing (LIVE-1)."""

from typing import Any

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from intersession_actors.owners.exchange.commands import HoldExchange, ReleaseExchange
from intersession_actors.owners.exchange.exchange import Exchange, Quoted
from intersession_actors.owners.exchange.holds import decide_hold, decide_release
from intersession_actors.owners.exchange.rules import Circumstances, evolve, go_on
from intersession_actors.owners.streams.commands import Refused, RunEnded, StepRefused
from intersession_actors.rules.policy.chain import Spent
from intersession_actors.rules.policy.holding import HoldOrder
from intersession_events.basics.ids import derive
from intersession_events.facts import (
    AnnounceDecided,
    AnnounceRequested,
    Budget,
    ExchangeAccepted,
    ExchangeClosed,
    ExchangeEvent,
    ExchangeHeld,
    ExchangeReleased,
    ExchangeSettings,
    HoldRequested,
    HoldWithdrawn,
    Limits,
    LoopEnded,
    Route,
    TurnRequested,
)
from support.exchange_states import decide, state_after

LOG = "00000000-0000-4000-8000-000000000001"
STREAM = "exchange:x1"
ASKER, ASKED = "agent:main:main", "agent:ops:main"
ONCE = HoldOrder(source="session", before="next", by="ann", order="o1")

pytestmark = pytest.mark.clause("LIVE-1")


def accepted(*, started_ms: int = 0, **fields: Any) -> ExchangeAccepted:
    limits = fields.get("settings", ExchangeSettings()).limits
    given: dict[str, Any] = {
        "budget": Budget(root="r0", started_ms=started_ms, path=(ASKER, ASKED), hops=1, limits=limits),
        "exchange_id": "x1",
        "run_id": "r0",
        "target": ASKED,
        "target_session_id": "s1",
        "message_id": "m1",
        "message": "how is it going?",
        "requester": ASKER,
        "route": Route(channel="telegram", to="-5"),
    }
    return ExchangeAccepted(**given | fields)


def held_by(setting: Any, **settings: Any) -> ExchangeAccepted:
    return accepted(settings=ExchangeSettings(hold=setting, **settings))


def now(**fields: Any) -> Circumstances:
    return Circumstances(log_id=LOG, now_ms=fields.pop("now_ms", 0), **{"has_route": True} | fields)


def ended(state: Exchange, text: str | None) -> RunEnded:
    return RunEnded(stream=STREAM, run_id=state.pending, status="ok", text=text)


def released(action: Any = "go_on", text: str | None = None, **fields: Any) -> ReleaseExchange:
    return ReleaseExchange(stream=STREAM, action=action, by="ann", text=text, **fields)


def answered(state: Exchange, text: str | None, **circumstances: Any) -> Exchange:
    """Return an exchange whose pending run answered."""
    for event in decide(state, ended(state, text), now(**circumstances)):
        state = evolve(state, event)
    return state


def let_go(state: Exchange, command: ReleaseExchange, **circumstances: Any) -> Exchange:
    for event in decide(state, command, now(**circumstances)):
        state = evolve(state, event)
    return state


@pytest.mark.parametrize(
    ("setting", "stops"),
    [
        ("off", []),
        ("reply", ["reply 0"]),
        ("every-turn", ["reply 0", "reply 1", "announce 2"]),
        ("announce", ["announce 2"]),
    ],
)
def test_a_setting_stops_before_what_it_names(setting: Any, stops: list[str]) -> None:
    state, seen = state_after(held_by(setting, max_turns=2)), list[str]()
    while state.phase not in {"delivery", "closed"}:
        if state.phase == "held":
            assert state.held is not None
            seen.append(f"{state.held.step} {state.held.turn}")
            state = let_go(state, released())
        else:
            state = answered(state, "words")
    assert seen == stops


def test_what_is_held_says_whose_words_for_whom_and_on_whose_word() -> None:
    state = state_after(held_by("reply"))
    held = decide(state, ended(state, "fine"), now(wall_ms=77))[1]
    assert held == ExchangeHeld(
        hold_id=held.hold_id if isinstance(held, ExchangeHeld) else "",
        step="reply",
        run_id="r0",
        speaker=ASKED,
        to=ASKER,
        since_ms=77,
        before="reply",
        source="setting",
        by="session.agentToAgent.hold",
        order="session.agentToAgent.hold",
        next_turn=1,
    )


def test_an_order_stops_an_exchange_once_and_another_one_again() -> None:
    state = answered(state_after(accepted()), "fine", orders=(ONCE,))
    assert state.phase == "held"
    state = let_go(state, released(), orders=(ONCE,))
    assert state.phase == "turn"
    assert answered(state, "well", orders=(ONCE,)).phase == "turn"
    other = HoldOrder(source="session", before="next", by="ann", order="o2")
    assert answered(state, "well", orders=(ONCE, other)).phase == "held"


def test_what_goes_nowhere_is_not_held() -> None:
    by_operator = accepted(requester=None, settings=ExchangeSettings(hold="reply"))
    assert answered(state_after(by_operator), "fine").phase == "announce"
    assert answered(state_after(held_by("every-turn")), None).phase == "closed"
    last = answered(state_after(held_by("reply", max_turns=0)), "fine")
    assert last.held is not None, "the first reply goes to who waits for it, loop or not"
    assert last.held.next_turn is None


@pytest.mark.parametrize(
    ("circumstances", "settings", "end", "limit", "note"),
    [
        ({}, {"max_turns": 0}, "turn_limit", "session.agentToAgent.maxPingPongTurns", None),
        ({"requester_has_agent": False}, {}, "no_agent", None, ASKER),
        (
            {"spent": Spent(runs=2)},
            {"limits": Limits(runs=2)},
            "run_limit",
            "session.agentToAgent.limits.runs",
            "2 of 2",
        ),
        ({"refused": "policy_denied"}, {}, "policy_denied", None, "not today"),
        ({}, {}, None, None, None),
    ],
)
def test_a_hold_says_why_no_turn_would_follow(
    circumstances: Any, settings: Any, end: str | None, limit: str | None, note: str | None
) -> None:
    run_id = derive(LOG, "run", "x1", "turn", 1)
    if code := circumstances.pop("refused", None):
        refused = StepRefused(stream=STREAM, run_id=run_id, code=code, error="not today")
        circumstances["refused"] = {run_id: refused}
    held = answered(state_after(held_by("reply", **settings)), "fine", **circumstances).held

    assert held is not None
    assert (held.next_turn is None) is (end is not None)
    assert (held.next_end, held.next_limit, held.next_note) == (end, limit, note)


def test_another_text_goes_on_in_the_place_of_the_one_that_was_held() -> None:
    state = let_go(answered(state_after(held_by("reply")), "secret"), released("edit", "nothing"))
    assert (state.phase, state.latest, state.round_one, state.edited_by) == (
        "turn",
        Quoted("r0", "nothing"),
        Quoted("r0", "nothing"),
        "ann",
    )
    said_next = state.pending
    state = answered(state, "well")
    assert state.latest is not None
    assert (state.latest.run_id, state.latest.text, state.edited_by) == (said_next, None, None)


@pytest.mark.parametrize(
    ("action", "turn", "said"),
    [
        ("drop", 0, [ExchangeClosed(reason="dropped", note="ann")]),
        ("drop", 1, [LoopEnded(reason="dropped", turns=1, note="ann"), AnnounceRequested]),
        (
            "end",
            0,
            [LoopEnded(reason="ended", turns=0, note="ann"), ExchangeClosed(reason="ended", note="ann")],
        ),
        (
            "end",
            1,
            [LoopEnded(reason="ended", turns=1, note="ann"), ExchangeClosed(reason="ended", note="ann")],
        ),
    ],
)
def test_what_is_dropped_was_not_said_and_what_is_ended_is_over(
    action: Any, turn: int, said: list[Any]
) -> None:
    state = answered(state_after(held_by("every-turn")), "one")
    for _ in range(turn):
        state = answered(let_go(state, released()), "two")
    _, *follows = decide(state, released(action), now())
    assert [
        type(event) if isinstance(want, type) else event for event, want in zip(follows, said, strict=True)
    ] == said
    before = state.round_one if (action, turn) == ("drop", 1) else state.latest
    assert let_go(state, released(action)).latest == before or turn == 0


@pytest.mark.parametrize(
    ("command", "silent", "by", "closed"),
    [
        (released(), False, None, None),
        (released("edit", "all is fine"), False, "ann", None),
        (released("drop"), True, None, "silent"),
        (released("end"), True, None, "ended"),
    ],
)
def test_a_held_announce_goes_out_as_it_was_released(
    command: ReleaseExchange, silent: bool, by: str | None, closed: str | None
) -> None:
    state = answered(answered(state_after(held_by("announce", max_turns=0)), "fine"), "all is well")
    assert state.held is not None
    assert state.held.step == "announce"
    _, decided, *rest = decide(state, command, now())
    assert isinstance(decided, AnnounceDecided)
    assert (decided.silent, decided.edited_by, decided.run_id) == (silent, by, state.held.run_id)
    assert [event.reason for event in rest if isinstance(event, ExchangeClosed)] == (
        [closed] if closed else []
    )


def test_saying_it_again_is_saying_it_once_and_saying_otherwise_is_refused() -> None:
    state = answered(state_after(held_by("every-turn")), "fine")
    first = state.held.hold_id if state.held else ""
    gone = let_go(state, released("edit", "other", hold_id=first))
    for hold_id in (first, None):
        assert decide_release(gone, released("edit", "other", hold_id=hold_id), 0) == []
        assert isinstance(decide_release(gone, released("drop", hold_id=hold_id), 0), Refused)
    again = answered(gone, "and now?")
    assert again.phase == "held"
    assert decide_release(again, released("edit", "other", hold_id=first), 0) == [], "not the next hold"
    assert again.held is not None
    assert again.held.hold_id != first


@pytest.mark.parametrize("text", ["", " \n", "NO_REPLY", "REPLY_SKIP", " REPLY_SKIP\n"])
def test_an_edit_that_says_nothing_is_refused(text: str) -> None:
    state = answered(state_after(held_by("reply")), "fine")
    refused = decide_release(state, released("edit", text), 0)
    assert isinstance(refused, Refused)
    assert refused.error.startswith("text: ")


def test_a_hold_is_asked_for_once_kept_until_it_stops_and_can_be_withdrawn() -> None:
    state = state_after(accepted())
    wanted = HoldExchange(stream=STREAM, before="next", by="bob")
    assert decide_hold(state, wanted) == [HoldRequested(before="next", by="bob")]
    waits = evolve(state, HoldRequested(before="next", by="bob"))
    assert decide_hold(waits, wanted) == []
    assert decide_release(waits, released(), 0) == [HoldWithdrawn(by="ann")]
    assert isinstance(decide_release(waits, released("drop"), 0), Refused)
    withdrawn = evolve(waits, HoldWithdrawn(by="ann"))
    assert decide_release(withdrawn, released(), 0) == [], "whoever had no answer asks again"
    assert isinstance(decide_release(withdrawn, released("drop"), 0), Refused)
    assert decide_hold(withdrawn, wanted) == [HoldRequested(before="next", by="bob")]
    over = evolve(waits, ExchangeClosed(reason="silent"))
    assert isinstance(decide_release(over, released(), 0), Refused), "nothing is written behind its end"
    stopped = answered(waits, "fine")
    assert (stopped.phase, stopped.asked) == ("held", None)
    assert decide_hold(stopped, wanted) == [], "it is held already"
    gone_on = let_go(stopped, released())
    assert answered(gone_on, "on").phase == "turn"
    again = evolve(gone_on, HoldRequested(before="next", by="bob"))
    assert answered(again, "on").phase == "held", "whoever asks once more is served once more"


def test_nothing_is_held_or_released_of_what_is_over_or_was_never_held() -> None:
    state = state_after(accepted())
    over = evolve(state, ExchangeClosed(reason="silent"))
    announcing = answered(state_after(held_by("off", max_turns=0)), "fine")
    for there in (over, announcing):
        assert isinstance(decide_hold(there, HoldExchange(stream=STREAM, before="reply", by="bob")), Refused)
    assert isinstance(decide_hold(announcing, HoldExchange(stream=STREAM, before="announce", by="bob")), list)
    for there in (state, over):
        assert isinstance(decide_release(there, released(), 0), Refused)
    assert isinstance(decide_release(state, released(hold_id="h9"), 0), Refused)


def test_a_release_for_good_is_not_held_again_until_somebody_asks() -> None:
    state = let_go(answered(state_after(held_by("every-turn")), "fine"), released(for_good=True))
    state = answered(state, "on", orders=(ONCE,))
    assert state.phase == "turn"
    state = evolve(state, HoldRequested(before="next", by="bob"))
    assert answered(state, "on").phase == "held"


def test_time_that_it_was_held_is_no_time_of_its_chain() -> None:
    limits = ExchangeSettings(hold="reply", limits=Limits(wall_seconds=60))
    state = answered(state_after(accepted(settings=limits, started_ms=1_000)), "fine", now_ms=2_000)
    late = {"now_ms": 3_600_000}
    assert isinstance(decide(state, released(), now(**late))[1], LoopEnded)
    events = decide(state, released(), now(**late, held_ms=3_590_000))
    assert events[0] == ExchangeReleased(
        hold_id=state.held.hold_id if state.held else "", action="go_on", by="ann", held_ms=3_590_000
    )
    assert isinstance(events[1], TurnRequested)
    assert let_go(state, released(), **late, held_ms=3_590_000).budget.held_ms == 3_590_000


def test_a_release_waits_for_an_agent_that_is_not_here() -> None:
    state = answered(state_after(held_by("reply")), "fine")
    waiting = let_go(state, released(), requester_has_agent=False)
    assert waiting.phase == "released"
    assert go_on(waiting, now(requester_has_agent=False)) == []
    assert isinstance(go_on(waiting, now())[0], TurnRequested)
    nobody = answered(state_after(held_by("reply")), "fine", requester_has_agent=False)
    assert let_go(nobody, released(), requester_has_agent=False).phase == "announce", "nobody had one before"


TEXTS = st.sampled_from(["words", "more words", "REPLY_SKIP", "ANNOUNCE_SKIP", "NO_REPLY", ""])
ORDERS = st.sampled_from(["next", "reply", "every-turn", "announce"])


@for_all(
    said=st.lists(TEXTS, min_size=8, max_size=8),
    setting=st.sampled_from(["off", "reply", "every-turn", "announce"]),
    wanted=st.lists(st.one_of(st.none(), ORDERS), min_size=8, max_size=8),
    turns=st.integers(0, 5),
)
def test_a_plain_release_changes_nothing_of_what_an_exchange_comes_to(
    said: list[str], setting: Any, wanted: list[Any], turns: int
) -> None:
    """The law of LIVE-1: whatever was held, released as it was, the exchange has the events of one that was never held."""

    def run(state: Exchange, *, holds: bool) -> list[ExchangeEvent]:
        events: list[ExchangeEvent] = []
        for text, before in zip(said, wanted, strict=True):
            if state.phase in {"delivery", "closed"}:
                break
            if holds and before is not None:
                hold = decide_hold(state, HoldExchange(stream=STREAM, before=before, by="bob"))
                for event in hold if isinstance(hold, list) else ():
                    state = evolve(state, event)
            decided = decide(state, ended(state, text), now())
            for event in decided:
                state = evolve(state, event)
            while state.phase == "held":
                more = decide(state, released(), now())
                for event in more:
                    state = evolve(state, event)
                decided += more
            events += decided
        return [event for event in events if not isinstance(event, ExchangeHeld | ExchangeReleased)]

    free, held = held_by("off", max_turns=turns), held_by(setting, max_turns=turns)
    assert run(state_after(held), holds=True) == run(state_after(free), holds=False)
