"""A log read at a place of it is the log that stood there: of any events, and of runs of real agents."""

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import Phase, example, given, settings

from intersession import MemoryChannel, SessionSystem, Turn
from intersession_actors.calls.service.reader import Reader
from intersession_actors.hindsight.debugger.debugger import Debugger
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.rules.config.config import load_config
from intersession_events.facts import (
    AnswerShown,
    Event,
    RunCompleted,
    RunInterrupted,
    RunQueued,
    RunStarted,
)
from intersession_events.log.recorded import Recorded
from intersession_projections.views.inline_views import inline_views
from support.plain_log import PlainLog
from support.running import QUIET, SEES_ALL, WAIT, merged
from support.story import StillClock
from support.vocabulary import logs

MAIN, OPS = "agent:main:main", "agent:ops:main"
CONFIG = load_config(None).config
NO_KEYS = {"session:agent:main:subagent:s"}
"""Streams of sessions that no log can have: this is no key."""


class Fold:
    """A log that grows event by event, with all its views, and the state that it had after each."""

    def __init__(self) -> None:
        self.log = PlainLog(inline_views())
        self.debugger = Debugger(View(Reader(self.log, config=lambda: CONFIG, clock=StillClock())))
        self.stood = [self.state("head")]

    def put(self, stream: str, event: Event, time: int, correlation: str | None = None) -> None:
        self.log.put(stream, event, time=time, correlation=correlation)
        self.stood.append(self.state("head"))

    def state(self, at: int | str, of: str | None = None) -> dict[str, Any]:
        found = dict(self.debugger.state(of, at=at, limit=1000, messages=1000))
        del found["next"]  # what comes next was not known then
        return found

    def sought(self) -> list[dict[str, Any]]:
        return [self.state(position) for position in range(len(self.stood))]


def named_by(stream: str, event: Event) -> Event:
    """Return an event of a flow that says the id which the stream is named after, as each does."""
    kind, _, name = stream.partition(":")
    field = f"{kind}_id"
    return msgspec.structs.replace(event, **{field: name}) if hasattr(event, field) else event


@pytest.mark.clause("PLACE-4")
@settings(max_examples=25, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(logs(max_size=16))
@example(  # what comes later of a run is not known of its earlier events
    [
        ("session:agent:main:main", RunCompleted(run_id="run-1", attempt=1), 0),
        (
            "session:agent:main:main",
            RunQueued(run_id="run-1", session_id="s", step="reply", answers="m"),
            0,
        ),
    ]
)
@example(  # the views may have set aside the event that it was started with (J3)
    [
        (f"session:{MAIN}", RunQueued(run_id="run-1", session_id="s", step="reply", answers="m"), 0),
        (f"session:{MAIN}", RunInterrupted(run_id="run-1", attempt=1), 0),
        (f"session:{MAIN}", RunInterrupted(run_id="run-1", attempt=2), 0),
    ]
)
@example(  # a run whose answer is shown while it is said is at work still
    [
        (f"session:{MAIN}", RunQueued(run_id="run-1", session_id="s", step="reply", answers="m"), 0),
        (f"session:{MAIN}", RunStarted(run_id="run-1", attempt=1, context_hash=""), 0),
        (f"session:{MAIN}", AnswerShown(run_id="run-1", attempt=1), 0),
        (f"session:{MAIN}", RunCompleted(run_id="run-1", attempt=1), 0),
    ]
)
def test_the_state_at_every_position_of_any_log_is_the_state_that_stood_there(
    entries: list[tuple[str, Event, int]],
) -> None:
    fold = Fold()
    for stream, event, time in entries:
        if stream not in NO_KEYS:
            fold.put(stream, named_by(stream, event), time)
    assert fold.sought() == fold.stood


class Erratic:
    """An agent that answers, is silent, breaks, asks the other one or spawns, as its dice say."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)  # noqa: S311 - dice, not secrets

    def __call__(self, turn: Turn) -> str:
        match self._dice.randrange(8):
            case 0:
                return "REPLY_SKIP"
            case 1:
                raise RuntimeError("out of luck")
            case 2:
                other = "ops" if turn.session_key == MAIN else "main"
                turn.tools.call("sessions_send", {"agentId": other, "message": "and?", "timeoutSeconds": 0})
                return "asked"
            case 3:
                turn.tools.call("sessions_spawn", {"task": "look it up"})
                return "spawned"
            case _:
                return f"word {self._dice.randrange(100)}"


def events_of_runs(path: Path, seed: int) -> list[Recorded]:
    """Let erratic agents talk until all is done, and return what their log holds."""
    limits = {"session": {"agentToAgent": {"limits": {"runs": 12, "hops": 3}}}}
    agents = {"main": Erratic(seed), "ops": Erratic(seed + 1)}
    channels = {"telegram": MemoryChannel()}
    config = merged(SEES_ALL, limits, QUIET if seed % 2 else {})
    with SessionSystem(path / "log.db", agents=agents, channels=channels, config=config) as system:
        for text in ("hi", "go on"):
            system.inbound(channel="telegram", chat_id="1", text=text, sender="ann", wait=WAIT)
        asked = {"agentId": "ops", "message": "what is new?", "timeoutSeconds": WAIT}
        system.tools(MAIN).call("sessions_send", asked)
        # What is still under way then is open at the head, too, which is as good.
        return list(system.log.all())


def check_every_position(events: Iterable[Recorded]) -> None:
    fold = Fold()
    for recorded in events:
        fold.put(recorded.stream, recorded.event, recorded.time, recorded.correlation)
    assert fold.sought() == fold.stood


@pytest.mark.clause("PLACE-3", "PLACE-4")
def test_the_state_at_every_position_of_runs_is_the_state_that_stood_there(tmp_path: Path) -> None:
    check_every_position(events_of_runs(tmp_path, 3))


@pytest.mark.nightly
@pytest.mark.clause("PLACE-3", "PLACE-4")
@pytest.mark.parametrize("seed", range(4, 24))
def test_the_state_at_every_position_of_many_runs_is_the_state_that_stood_there(
    tmp_path: Path, seed: int
) -> None:
    check_every_position(events_of_runs(tmp_path, seed))
