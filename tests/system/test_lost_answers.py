"""The store has taken an append, and its answer was lost: whatever append it was, what it began comes to its end, once."""

import itertools
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from intersession import MemoryChannel, SessionSystem, Turn
from intersession_events.basics.errors import StoreUnavailable
from intersession_events.facts import (
    ChildArchived,
    DeliveryDecided,
    DeliveryDone,
    ExchangeClosed,
    LateReplyDropped,
    RunCompleted,
    RunFailed,
    RunQueued,
    SpawnClosed,
    message_in,
)
from intersession_events.log.log import InFlight
from intersession_events.log.recorded import (
    Committed,
    OnOutcome,
    Outcome,
    StreamAppend,
    Unavailable,
    parts_in,
)
from intersession_events.log.verifying.verification import verify_log
from intersession_events.stores.portable.log import PortableLog
from intersession_projections.views.inline_views import inline_views
from support.any_log import log_at
from support.fakes import ManualClock
from support.running import SEES_ALL, merged, pass_time

MAIN, DESK = "agent:main:main", "agent:desk:main"
CONFIG = merged(
    SEES_ALL,
    {
        "agents": {"list": [{"id": "main", "default": True}, {"id": "desk"}]},
        "session": {"agentToAgent": {"maxPingPongTurns": 2}},
    },
)
APPENDS = 32
"""As many as the whole story has, about: what shares an append depends on what is faster."""
PATIENCE = (0.02,) * 50 + (0.5,) * 40
"""How long is waited for an event before the clock goes on: a busy machine takes longer, and no more of the clock's time."""
NUMBERS = [
    pytest.param(number, marks=() if number % 4 == 1 else pytest.mark.nightly) for number in range(1, APPENDS)
]


class LosingLog(PortableLog):
    """A log that takes an append, and says that it has not: that one, by its number, and what is behind it."""

    loses = 0
    made = 0
    lost: list[Any]
    making: threading.RLock

    def append(
        self,
        batch: Sequence[StreamAppend],
        on_outcome: OnOutcome,
        *,
        patient: bool = False,
        behind: InFlight | None = None,
    ) -> InFlight:
        self.made += 1
        number = self.made
        made: list[Any] = []

        def told(outcome: Outcome) -> None:
            with self.making:  # the writer may be done before it is known here what was made
                itself = made[0] if made else None
            if isinstance(outcome, Committed) and (number == self.loses or behind in self.lost):
                if itself is not None:
                    itself.stands, itself.has_failed = False, True
                    self.lost.append(itself)
                outcome = Unavailable(error=StoreUnavailable("the answer was lost"))
            on_outcome(outcome)

        with self.making:
            in_flight = super().append(batch, told, patient=patient, behind=behind)
            made.append(in_flight)
        return in_flight


@pytest.fixture
def log(log_url: str) -> Iterator[LosingLog]:
    with log_at(log_url, LosingLog, inline=inline_views()) as opened:
        opened.lost, opened.making = [], threading.RLock()
        yield opened


def speak(turn: Turn) -> str:
    return f"{turn.agent_id} says {turn.step}"


def asked(running: SessionSystem, tool: str, **arguments: Any) -> None:
    """Call a tool, and once more with the same key if the store was away."""
    for _ in range(2):
        answer = running.tools(MAIN).call(tool, {**arguments, "idempotencyKey": f"one {tool}"})
        if answer.get("code") != "unavailable":
            assert answer["status"] in {"ok", "accepted"}, answer
            return


@pytest.mark.clause("O2", "O3", "O5")
@pytest.mark.parametrize("number", NUMBERS)
def test_a_lost_answer_stops_nothing_and_doubles_nothing(log: LosingLog, number: int) -> None:
    clock, channel = ManualClock(), MemoryChannel()
    with SessionSystem(
        log, agents={"main": speak, "desk": speak}, channels={"x": channel}, config=CONFIG, clock=clock
    ) as running:
        running.inbound(channel="x", chat_id="1", sender="1", text="this is main")
        log.loses = log.made + number
        asked(running, "sessions_send", sessionKey=DESK, message="and?", timeoutSeconds=0)
        asked(running, "sessions_spawn", task="count", cleanup="delete")
        awaited = {ExchangeClosed, SpawnClosed, ChildArchived}
        for patience in PATIENCE:
            seen = {type(item.event) for item in parts_in(running.log.all())}
            # What was said first is still on its way out where its channel is slow.
            if awaited <= seen and not running.service.flows.open_deliveries():
                break
            list(itertools.islice(running.follow(running.log.head(), timeout=patience), 1))
            pass_time(running, clock, 250)
        list(running.follow(running.log.head(), timeout=0.05))
        events = [item.event for item in parts_in(running.log.all())]
        degraded = running.status()["degraded"]
    assert awaited <= {type(event) for event in events}
    assert degraded == {}
    assert not [event for event in events if isinstance(event, LateReplyDropped | RunFailed)]
    queued = [event.run_id for event in events if isinstance(event, RunQueued)]
    ended = [event.run_id for event in events if isinstance(event, RunCompleted)]
    assert sorted(queued) == sorted(ended)
    assert len(ended) == len(set(ended)) == 7
    said = [message.id for event in events if (message := message_in(event)) is not None]
    assert len(said) == len(set(said))
    decided = [event.delivery_id for event in events if isinstance(event, DeliveryDecided)]
    done = [event.delivery_id for event in events if isinstance(event, DeliveryDone)]
    assert sorted(decided) == sorted(done)
    assert verify_log(log).ok
