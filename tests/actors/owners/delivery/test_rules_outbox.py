"""The rules of a delivery: decided, started, done, failed and tried again, or in doubt."""

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from intersession_actors.outside.channels.outcomes import Delivered, NotDelivered
from intersession_actors.owners.delivery.commands import DeliveryReturned, SendChecked
from intersession_actors.owners.delivery.rules import (
    Circumstances,
    Delivery,
    decide,
    decide_checked,
    decide_done,
    decide_not_done,
    decide_part_done,
    decide_resume,
    decide_retried,
    evolve,
)
from intersession_actors.owners.streams.commands import Refused
from intersession_actors.rules.policy.sending import Verdict
from intersession_events.facts import (
    DeliveryDecided,
    DeliveryDenied,
    DeliveryDone,
    DeliveryEvent,
    DeliveryFailed,
    DeliveryPartDone,
    DeliveryRetried,
    DeliveryStarted,
    DeliveryUnknown,
    Route,
    decode,
    encode,
    topic_of,
)

DECIDED = DeliveryDecided(
    delivery_id="d1",
    session_key="agent:main:main",
    route=Route(channel="telegram", to="42"),
    text="done",
    key="d1",
    purpose="announce",
)
ALLOW = Verdict(action="allow", rule="session.sendPolicy.default: allow")
STARTED = DeliveryStarted(delivery_id="d1", attempt=1, rule=ALLOW.rule)
FAILED = DeliveryFailed(delivery_id="d1", attempt=1, error="down", retry_at_ms=1_000)


def deny(rule: str) -> Verdict:
    return Verdict(action="deny", rule=rule)


def state_after(*events: DeliveryEvent) -> Delivery:
    state: Delivery | None = None
    for event in events:
        state = evolve(state, event, 1)
    assert state is not None
    return state


@pytest.mark.clause("ANN-3")
def test_a_text_the_policy_lets_out_is_started() -> None:
    assert decide_checked(state_after(DECIDED), ALLOW) == [STARTED]


@pytest.mark.clause("ANN-4", "POL-3")
def test_a_text_the_policy_forbids_is_denied_naming_the_rule() -> None:
    (denied,) = decide_checked(state_after(DECIDED), deny("session.sendPolicy.default: deny"))

    assert denied == DeliveryDenied(delivery_id="d1", rule="session.sendPolicy.default: deny")
    assert state_after(DECIDED, denied).outcome == "denied"


@pytest.mark.clause("ANN-4")
def test_the_policy_is_asked_again_for_every_attempt() -> None:
    again = state_after(DECIDED, STARTED, FAILED)

    assert decide_checked(again, ALLOW) == [DeliveryStarted(delivery_id="d1", attempt=2, rule=ALLOW.rule)]
    assert decide_checked(again, deny("deny")) == [DeliveryDenied(delivery_id="d1", rule="deny")]


@pytest.mark.clause("ANN-4")
@pytest.mark.parametrize("after", [0, 2])
def test_a_word_of_the_policy_on_another_attempt_starts_none(after: int) -> None:
    again = state_after(DECIDED, STARTED, FAILED)

    assert decide(again, SendChecked(stream="delivery:d1", verdict=ALLOW, after=after), Circumstances()) == []
    assert decide(again, SendChecked(stream="delivery:d1", verdict=ALLOW, after=1), Circumstances()) != []


@pytest.mark.clause("ANN-3")
def test_what_came_of_another_part_ends_nothing() -> None:
    """A call of the first part that comes back late, once that part is on record, is no end of the whole."""
    part = DeliveryPartDone(delivery_id="d1", attempt=1, sent=100, receipt=None)
    whole = DeliveryReturned(stream="delivery:d1", attempt=1, begins=0, result=Delivered())

    assert decide(state_after(DECIDED, STARTED, part), whole, Circumstances()) == []
    rest = DeliveryReturned(stream="delivery:d1", attempt=1, begins=100, result=Delivered())
    assert decide(state_after(DECIDED, STARTED, part), rest, Circumstances()) != []


@pytest.mark.clause("ANN-3", "ANN-5")
def test_a_text_that_is_wanted_again_is_as_old_as_that_wish_and_stands_behind_what_was_decided_meanwhile() -> (
    None
):
    given_up = evolve(evolve(None, DECIDED, 1_000, 5), FAILED, 2_000, 6)
    again = evolve(given_up, DeliveryRetried(delivery_id="d1", by="operator"), 90_000, 70)

    assert (given_up.decided_ms, given_up.order) == (1_000, 5)
    assert (again.decided_ms, again.order, again.retry_at_ms, again.pause_ms) == (90_000, 70, 90_000, 0)


@pytest.mark.clause("ANN-3")
def test_what_the_channel_took_is_done_with_its_receipt() -> None:
    (done,) = decide_done(state_after(DECIDED, STARTED), 1, '{"id":7}')

    assert done == DeliveryDone(delivery_id="d1", attempt=1, receipt='{"id":7}')
    assert state_after(DECIDED, STARTED, done).outcome == "done"


@pytest.mark.clause("ANN-3")
def test_an_outcome_of_an_older_attempt_counts_for_nothing() -> None:
    second = state_after(DECIDED, STARTED, FAILED, DeliveryStarted(delivery_id="d1", attempt=2))

    assert decide_done(second, 1, None) == []
    assert decide_not_done(second, 1, NotDelivered(error="late", retry=True), now_ms=0) == []


@pytest.mark.clause("ANN-3")
def test_a_refusal_is_final_at_once() -> None:
    (failed,) = decide_not_done(
        state_after(DECIDED, STARTED), 1, NotDelivered(error="blocked", retry=False), now_ms=0
    )

    assert failed == DeliveryFailed(delivery_id="d1", attempt=1, error="blocked", retry_at_ms=None)
    assert state_after(DECIDED, STARTED, failed).outcome == "failed"


@pytest.mark.clause("ANN-3", "SEAL-1")
def test_a_failure_says_from_when_its_pause_is_reckoned() -> None:
    down = NotDelivered(error="down", retry=True)
    (failed,) = decide_not_done(state_after(DECIDED, STARTED), 1, down, now_ms=5_000)

    assert isinstance(failed, DeliveryFailed)
    assert (failed.failed_ms, failed.retry_at_ms) == (5_000, 6_000)


@pytest.mark.clause("ANN-3", "A8")
def test_failures_are_tried_again_with_pauses_that_grow_up_to_five_minutes() -> None:
    log: list[DeliveryEvent] = [DECIDED]
    waits: list[int] = []
    for _ in range(300):
        log += decide_checked(state_after(*log), ALLOW)
        state = state_after(*log)
        down = NotDelivered(error="down", retry=True)
        (failed,) = decide_not_done(state, state.attempt, down, now_ms=5_000)
        assert isinstance(failed, DeliveryFailed)
        assert failed.retry_at_ms is not None
        waits.append(failed.retry_at_ms - 5_000)
        log.append(failed)

    assert waits == [1_000, 4_000, 16_000, 64_000, 256_000, *[300_000] * 295]
    assert state_after(*log).phase == "failed"


@pytest.mark.clause("ANN-3", "A8")
def test_a_channel_is_left_alone_for_as_long_as_it_asks() -> None:
    asked = NotDelivered(error="too many", retry=True, later_ms=90_000)
    (failed,) = decide_not_done(state_after(DECIDED, STARTED), 1, asked, now_ms=5_000)

    assert failed == DeliveryFailed(
        delivery_id="d1",
        attempt=1,
        error="too many",
        retry_at_ms=95_000,
        failed_ms=5_000,
        later_ms=90_000,
    )
    assert state_after(DECIDED, STARTED, failed).pause_ms == 90_000


@pytest.mark.clause("ANN-6")
def test_a_part_that_the_channel_has_is_not_sent_again() -> None:
    part = DeliveryPartDone(delivery_id="d1", attempt=1, sent=100, receipt='{"id":7}')
    started = state_after(DECIDED, STARTED)
    assert decide_part_done(started, 1, 0, 100, '{"id":7}') == [part]

    later = state_after(DECIDED, STARTED, part)
    assert (later.phase, later.sent) == ("started", 100)
    assert decide_part_done(later, 1, 0, 100, '{"id":7}') == []  # told twice
    assert state_after(DECIDED, STARTED, part, FAILED).sent == 100
    assert decide_resume(later, idempotent=False) == [DeliveryUnknown(delivery_id="d1", attempt=1)]
    assert (
        state_after(DECIDED, STARTED, part, DeliveryUnknown(delivery_id="d1", attempt=1), RETRIED).sent == 100
    )


@pytest.mark.clause("ANN-3", "A5", "A6")
def test_what_was_cut_off_is_sent_again_only_to_a_channel_that_takes_the_key_twice() -> None:
    cut_off = state_after(DECIDED, STARTED)

    assert decide_resume(cut_off, idempotent=True) == [DeliveryStarted(delivery_id="d1", attempt=2)]
    (unknown,) = decide_resume(cut_off, idempotent=False)
    assert unknown == DeliveryUnknown(delivery_id="d1", attempt=1)
    assert evolve(cut_off, unknown, 1).outcome == "unknown"


def cut_off(times: int, *, first: int = 1) -> list[DeliveryEvent]:
    """Attempts that no outcome follows, one after the other."""
    return [DeliveryStarted(delivery_id="d1", attempt=first + number) for number in range(times)]


@pytest.mark.clause("ANN-3", "A5", "A6")
def test_a_text_that_ends_the_process_five_times_in_a_row_is_not_sent_again() -> None:
    four = state_after(DECIDED, *cut_off(4))
    assert decide_resume(four, idempotent=True) == [DeliveryStarted(delivery_id="d1", attempt=5)]

    five = state_after(DECIDED, *cut_off(5))
    (failed,) = decide_resume(five, idempotent=True)
    assert failed == DeliveryFailed(
        delivery_id="d1", attempt=5, error="cut off in the middle of attempt 5, the last one"
    )
    assert evolve(five, failed, 1).outcome == "failed"
    assert decide_resume(five, idempotent=False) == [DeliveryUnknown(delivery_id="d1", attempt=5)]


@pytest.mark.clause("ANN-3", "A5", "A6")
@pytest.mark.parametrize(
    "between",
    [
        DeliveryFailed(delivery_id="d1", attempt=4, error="down", retry_at_ms=1_000),
        DeliveryPartDone(delivery_id="d1", attempt=4, sent=10),
    ],
)
def test_an_attempt_with_an_outcome_is_none_that_was_cut_off(between: DeliveryEvent) -> None:
    state = state_after(DECIDED, *cut_off(4), between, *cut_off(3, first=5))

    assert decide_resume(state, idempotent=True) == [DeliveryStarted(delivery_id="d1", attempt=8)]
    again = state_after(DECIDED, *cut_off(4), between, *cut_off(5, first=5))
    (failed,) = decide_resume(again, idempotent=True)
    assert isinstance(failed, DeliveryFailed)
    assert failed.attempt == 9


@pytest.mark.clause("ANN-3")
@pytest.mark.parametrize("state", [state_after(DECIDED), state_after(DECIDED, STARTED, FAILED)])
def test_what_was_not_under_way_is_in_no_doubt(state: Delivery) -> None:
    assert decide_resume(state, idempotent=False) == []


@pytest.mark.clause("ANN-3", "O3")
@for_all(
    story=st.lists(st.sampled_from(["check", "deny", "done", "fail", "refuse", "restart"]), max_size=40),
    idempotent=st.booleans(),
)
def test_whatever_happens_a_channel_without_keys_is_called_again_only_after_it_said_no(
    story: list[str], *, idempotent: bool
) -> None:
    log: list[DeliveryEvent] = [DECIDED]
    for number, what in enumerate(story):
        state = state_after(*log)
        match what:
            case "check":
                log += decide_checked(state, ALLOW)
            case "deny":
                log += decide_checked(state, deny("deny"))
            case "done":
                log += decide_done(state, state.attempt, None)
            case "restart":
                log += decide_resume(state, idempotent=idempotent)
            case _:
                log += decide_not_done(
                    state, state.attempt, NotDelivered(error="no", retry=what == "fail"), now_ms=number
                )

    starts = [at for at, event in enumerate(log) if isinstance(event, DeliveryStarted)]
    if not idempotent:
        assert all(isinstance(log[at - 1], DeliveryDecided | DeliveryFailed) for at in starts)
    numbers = [event.attempt for event in log if isinstance(event, DeliveryStarted)]
    assert numbers == list(range(1, len(numbers) + 1))
    finals = [event for event in log if state_after(*log[: log.index(event) + 1]).phase == "final"]
    assert len(finals) <= 1
    read_back = [decode(topic_of(event), encode(event)) for event in log]
    assert state_after(*read_back) == state_after(*log)  # type: ignore[arg-type]


RETRIED = DeliveryRetried(delivery_id="d1", by="operator")


@pytest.mark.clause("ANN-3")
@pytest.mark.parametrize(
    "before",
    [
        (DECIDED,),
        (DECIDED, STARTED, FAILED),
        (DECIDED, STARTED, DeliveryFailed(delivery_id="d1", attempt=1, error="no such chat")),
        (DECIDED, STARTED, DeliveryUnknown(delivery_id="d1", attempt=1)),
        (DECIDED, DeliveryDenied(delivery_id="d1", rule="x")),
    ],
)
def test_a_text_that_is_wanted_after_all_gets_one_more_attempt(before: tuple[DeliveryEvent, ...]) -> None:
    """Before: failed deliveries were invisible."""
    state = state_after(*before)
    assert decide_retried(state, "operator") == [RETRIED]
    wanted = state_after(*before, RETRIED)
    assert decide_checked(wanted, ALLOW) == [
        DeliveryStarted(delivery_id="d1", attempt=state.attempt + 1, rule=ALLOW.rule)
    ]


@pytest.mark.clause("ANN-3")
@pytest.mark.parametrize(
    ("before", "code"),
    [
        ((DECIDED, STARTED), "busy"),
        ((DECIDED, STARTED, DeliveryDone(delivery_id="d1", attempt=1)), "invalid_request"),
    ],
)
def test_a_text_under_way_or_delivered_is_not_tried_again(
    before: tuple[DeliveryEvent, ...], code: str
) -> None:
    refused = decide_retried(state_after(*before), "operator")
    assert isinstance(refused, Refused)
    assert refused.code == code
