"""What the events of a delivery ask for, as lists of effects, and what one that is open asks for again after a restart."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from intersession_actors.outside.channels.channels import Outbound
from intersession_actors.outside.channels.turns import Place
from intersession_actors.owners.chains.cause import CausedBy
from intersession_actors.owners.delivery.commands import RetryDue, SendChecked, TooOld
from intersession_actors.owners.delivery.effects import (
    AskPolicy,
    AttemptRecorded,
    CallChannel,
    LeaveLine,
    LineUp,
    WaitsAgain,
    carried_on,
    effects,
    parked,
)
from intersession_actors.owners.delivery.rules import Delivery, fold
from intersession_actors.owners.streams.commands import DeliveryEnded
from intersession_actors.owners.streams.effects import (
    AttemptDue,
    DropStopwatch,
    Effect,
    Pass,
    Report,
    Sleep,
    StartStopwatch,
    StopTimer,
    TellFlow,
    Until,
)
from intersession_actors.rules.config.config import load_config
from intersession_actors.rules.policy.sending import Verdict
from intersession_events.facts import (
    Budget,
    DeliveryDecided,
    DeliveryDenied,
    DeliveryDone,
    DeliveryEvent,
    DeliveryFailed,
    DeliveryPartDone,
    DeliveryRetried,
    DeliveryStarted,
    DeliveryUnknown,
    Limits,
    Route,
)
from support.bare_events import bare

LIMITS = load_config(None).config
DAY_MS = 1000 * int(LIMITS.deliveries.max_age_seconds)
STREAM = "delivery:d1"
BUDGET = Budget(root="r", limits=Limits(runs=3))
DECIDED = DeliveryDecided(
    delivery_id="d1",
    session_key="agent:main:main",
    route=Route(channel="telegram", to="42"),
    text="done",
    key="d1",
    purpose="announce",
    run_id="r1",
    owner="exchange:x1",
    budget=BUDGET,
)
STARTED = DeliveryStarted(delivery_id="d1", attempt=1, rule="allow")
FAILED = DeliveryFailed(delivery_id="d1", attempt=1, error="down", retry_at_ms=4_000)
DONE = DeliveryDone(delivery_id="d1", attempt=1, receipt="m1")

LINED_UP = LineUp(Place("telegram", None, "42", None), 1)
OVER = (DropStopwatch(("decided", STREAM)), DropStopwatch(("failed", STREAM)))
RETRY = Sleep(
    ("retry", STREAM),
    TellFlow(RetryDue(stream=STREAM, attempt=1)),
    until=(Until(("failed", STREAM), 3_000, 1_000), Until(("decided", STREAM), 1_000, DAY_MS)),
)


def ask(after: int) -> AskPolicy:
    return AskPolicy("agent:main:main", "telegram", after)


def call(number: int, *, begins: int = 0) -> CallChannel:
    outbound = Outbound(channel="telegram", to="42", text="done", key="d1")
    caused = CausedBy(session_key="agent:main:main", budget=BUDGET, event=f"e{number}", of="d1")
    return CallChannel(outbound, 1, begins, caused)


def ended(outcome: Any, number: int, note: str | None = None) -> TellFlow:
    return TellFlow(
        DeliveryEnded(stream="exchange:x1", delivery_id="d1", outcome=outcome, cause=f"e{number}", note=note)
    )


def told(kind: Any, number: int, error: str, **fields: Any) -> Report:
    said = {
        "session_key": "agent:main:main",
        "run_id": "r1",
        "stream": STREAM,
        "channel": "telegram",
        "attempt": 1,
        "error": error,
    }
    caused = CausedBy(session_key="agent:main:main", budget=BUDGET, event=f"e{number}")
    return Report(kind, said | fields, caused)


def state_after(*events: DeliveryEvent) -> tuple[Delivery, Sequence[Effect]]:
    """Return a delivery after some events, and what the last of them asks for."""
    state: Delivery | None = None
    asked: Sequence[Effect] = ()
    for number, event in enumerate(events, 1):
        recorded = bare(STREAM, number, event, time=1_000 * number)
        state = fold(state, recorded)
        asked = effects(state, recorded, LIMITS)
    assert state is not None
    return state, asked


@pytest.mark.clause("ANN-3", "ANN-4", "ANN-5")
@pytest.mark.parametrize(
    ("events", "asked"),
    [
        ((DECIDED,), (Pass("A3"), ask(0))),
        ((DECIDED, STARTED), (Pass("A5"), StopTimer(("parked", STREAM)), call(2))),
        (
            (DECIDED, STARTED, DeliveryPartDone(delivery_id="d1", attempt=1, sent=2, receipt=None)),
            (AttemptRecorded("d1", 1), AttemptDue("d1", 1), call(3, begins=2)),
        ),
        (
            (DECIDED, STARTED, FAILED),
            (
                told("delivery_retry", 3, "down", retry_at_ms=4_000, traceback=None),
                AttemptRecorded("d1", 1),
                WaitsAgain(),
                StartStopwatch(("failed", STREAM)),
                RETRY,
            ),
        ),
        (
            (DECIDED, STARTED, DONE),
            (Pass("A7"), AttemptRecorded("d1", 1), LeaveLine(), *OVER, ended("done", 3)),
        ),
        (
            (DECIDED, STARTED, DeliveryUnknown(delivery_id="d1", attempt=1, error="cut")),
            (
                told("delivery_unknown", 3, "the channel may have shown the text (cut)"),
                Pass("A7"),
                AttemptRecorded("d1", 1),
                LeaveLine(),
                *OVER,
                ended("unknown", 3, "delivery_unknown"),
            ),
        ),
        (
            (DECIDED, DeliveryDenied(delivery_id="d1", rule="deny")),
            (
                told("delivery_denied", 2, "deny", attempt=None),
                Pass("A7"),
                AttemptRecorded("d1", 0),
                LeaveLine(),
                *OVER,
                ended("denied", 2, "deny"),
            ),
        ),
    ],
)
def test_an_event_asks_for(events: tuple[DeliveryEvent, ...], asked: Sequence[Effect]) -> None:
    assert [*state_after(*events)[1]] == [*asked]


@pytest.mark.clause("ANN-3", "ANN-5")
def test_a_text_that_is_wanted_again_waits_as_a_new_one_does() -> None:
    failed = DeliveryFailed(delivery_id="d1", attempt=1, error="down")
    _, asked = state_after(DECIDED, STARTED, failed, DeliveryRetried(delivery_id="d1", by="operator"))

    assert [*asked] == [StartStopwatch(("decided", STREAM)), LineUp(LINED_UP.place, 4), ask(1)]


@pytest.mark.clause("INB-3")
def test_nobody_is_asked_about_the_answer_to_a_command() -> None:
    _, (_, said) = state_after(msgspec.structs.replace(DECIDED, purpose="command_reply"))

    rule = "the answer to an owner's command: allow"
    assert said == TellFlow(SendChecked(stream=STREAM, verdict=Verdict(action="allow", rule=rule)))


@pytest.mark.clause("O4", "ANN-3")
@pytest.mark.parametrize(
    ("events", "asked"),
    [
        ((DECIDED,), (LINED_UP, ask(0))),
        ((DECIDED, STARTED), (LINED_UP,)),
        ((DECIDED, STARTED, FAILED), (LINED_UP, RETRY)),
        ((DECIDED, STARTED, DONE), (LeaveLine(), ended("done", 3))),
    ],
)
def test_after_a_restart_what_is_open_asks_for_it_again(
    events: tuple[DeliveryEvent, ...], asked: Sequence[Effect]
) -> None:
    state, _ = state_after(*events)

    assert [*carried_on(state, f"e{len(events)}", LIMITS, sealed=False)] == [*asked]


@pytest.mark.clause("ANN-3")
def test_a_text_whose_channel_is_not_here_holds_nobody_back_and_waits_as_long_as_it_may() -> None:
    waits = Sleep(
        ("parked", STREAM),
        TellFlow(TooOld(stream=STREAM)),
        until=(Until(("decided", STREAM), 1_000, DAY_MS),),
    )

    assert [*parked(state_after(DECIDED)[0], LIMITS)] == [LeaveLine(), waits]
