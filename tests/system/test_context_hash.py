"""The hash of a run's context is that of the log up to the run's start, whatever arrives in between (PROV-4)."""

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import pytest

from intersession import SessionSystem, Turn
from intersession_actors.owners.session.context_cache import ContextCache
from intersession_events.facts import RunCompleted, RunQueued, RunStarted
from intersession_events.stores.portable.log import PortableLog
from intersession_events.stores.portable.snapshots.states import StreamStates
from intersession_projections.views.inline_views import inline_views
from support.any_log import log_at
from support.run_context import context_of
from support.running import QUIET, SEES_ALL, merged, wait_for, wait_for_number

MAIN = "agent:main:main"
STREAM = f"session:{MAIN}"
LISTED = {"agents": {"list": [{"id": "main", "default": True}]}}


class SlowStates:
    """The states of a log, whose readers are told what they read only after something else has happened."""

    meanwhile: Callable[[], object] | None = None

    def __init__(self, states: StreamStates) -> None:
        self._states = states

    def __getattr__(self, name: str) -> Any:  # whatever the states do
        return getattr(self._states, name)

    def load(self, stream: str, folding: Any, on_folded: Callable[[Any], None]) -> None:
        meanwhile, self.meanwhile = self.meanwhile, None

        def folded(found: Any) -> None:
            if meanwhile is not None:
                meanwhile()
            on_folded(found)

        self._states.load(stream, folding, folded)


class SlowLog(PortableLog):
    """A log whose states are slow."""

    @cached_property
    def slow(self) -> SlowStates:
        return SlowStates(super().states)

    @property
    def states(self) -> Any:  # they do what those of a log do
        return self.slow


@pytest.fixture
def log(log_url: str) -> Iterator[SlowLog]:
    with log_at(log_url, SlowLog, inline=inline_views()) as opened:
        yield opened


def says(system: SessionSystem, text: str, **given: Any) -> None:
    answer = system.inbound(channel="x", chat_id="1", sender="1", text=text, **given)
    assert answer["status"] == "accepted", answer


def arrivals() -> dict[str, Callable[[SessionSystem], object]]:
    def injected(system: SessionSystem) -> None:
        system.gateway.call("chat.inject", {"sessionKey": MAIN, "message": "by the way"})

    return {
        "a message for a run": lambda system: says(system, "and?"),
        "a message without a run": lambda system: says(system, "psst", deliver=False),
        "what no run said": injected,
        "settings": lambda system: system.gateway.call("sessions.patch", {"key": MAIN, "label": "it"}),
    }


@pytest.mark.clause("PROV-4")
@pytest.mark.parametrize("arrival", sorted(arrivals()))
def test_what_arrives_while_a_context_is_read_is_in_the_hash_as_it_is_in_the_log(
    log: SlowLog, arrival: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before: 2 of 61 hashes were those of a context that was no longer the session's."""
    turns: list[Turn] = []

    def agent(turn: Turn) -> str:
        turns.append(turn)
        return "done"

    with SessionSystem(log, agents={}, config=merged(SEES_ALL, QUIET, LISTED)) as system:
        with monkeypatch.context() as forgetful:
            # As after somebody had it forgotten: else a session that is awake has its transcript at hand.
            forgetful.setattr(ContextCache, "offer", lambda *_: None)
            says(system, "earlier", deliver=False)
            says(system, "hi")
            wait_for(system, RunQueued)
        log.slow.meanwhile = lambda: arrivals()[arrival](system)
        system.register_agent("main", agent)
        started = wait_for(system, RunStarted)
        wait_for(system, RunCompleted)
        events = log.stream(STREAM)

    place = next(item.version for item in events if item.event == started)
    rebuilt = context_of(events[: place - 1], started.run_id)
    assert log.slow.meanwhile is None
    assert started.context_hash == rebuilt.hash
    assert [turns[0].transcript, turns[0].asked] == [rebuilt.transcript, rebuilt.message]


@pytest.mark.clause("PROV-4")
def test_every_hash_of_a_session_that_is_flooded_is_that_of_the_log(log: SlowLog) -> None:
    with SessionSystem(
        log, agents={"main": lambda turn: turn.message}, config=merged(SEES_ALL, QUIET)
    ) as system:
        for number in range(40):
            says(system, str(number), deliver=number % 3 > 0)
        wait_for_number(system, RunStarted, 26)
        events = log.stream(STREAM)

    hashes = [
        (item.event.context_hash, context_of(events[: item.version - 1], item.event.run_id).hash)
        for item in events
        if isinstance(item.event, RunStarted)
    ]
    assert len(hashes) == 26
    assert [recorded for recorded, _ in hashes] == [rebuilt for _, rebuilt in hashes]
