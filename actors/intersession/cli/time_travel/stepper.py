"""A place in a run, and its moves: by event, by turn, by cause, to a place, to a breakpoint. No terminal."""

from collections.abc import Callable, Sequence
from typing import Final, Literal

from intersession.cli.story.names import live_names
from intersession_actors.hindsight.debugger.debugger import Debugger
from intersession_events.basics.keys.short_names import short_name
from intersession_events.facts import run_named
from intersession_projections.questions.places.located import steps_of_flow
from intersession_projections.questions.places.runs_named import flow_id, flow_sessions
from intersession_projections.questions.timeline.steps import Step
from intersession_projections.views.run_outcomes.outcome import RunOutcome

Direction = Literal[1, -1]

_ANSWERS: Final = frozenset({"turn_ended", "child_ended", "announce_decided"})
"""Events of an exchange or a spawn that say that somebody has answered."""
_ENDS: Final = frozenset({"run_completed", "run_failed", "run_aborted"})
"""The same of a run that belongs to neither."""


class Stepper:
    """One run, and a place in it: always after one of its events, or before the first.

    A move returns False where there is nothing to move to, and stays.
    """

    def __init__(self, debugger: Debugger, run: str) -> None:
        self._debugger = debugger
        self._flow = debugger.view.flow(run)
        self.run = flow_id(self._flow)
        self.names = live_names(debugger.view.log)
        """How sessions are called here."""
        self.steps: Sequence[Step] = ()
        self.index = 0
        """How many of its events are behind the place."""
        self.breaks = ""
        """Where `run_to_break` stops: `kind:NAME`, `session:NAME`, or words."""
        self.refresh()

    @property
    def sessions(self) -> tuple[str, ...]:
        """The sessions that take part, by their keys."""
        return flow_sessions(self._flow)

    @property
    def step(self) -> Step | None:
        """The event that the place is after."""
        return self.steps[self.index - 1] if self.index else None

    @property
    def position(self) -> int:
        """The place as a position of the log."""
        step = self.step
        return step.position if step is not None else self.steps[0].position - 1 if self.steps else 0

    @property
    def here(self) -> str:
        """The place in terms of the run: `RUN@start+3`."""
        return f"{self.run}@start{max(self.index - 1, 0):+d}"

    @property
    def before(self) -> int:
        """The position of the event before the place's: the state is compared with that."""
        return self.steps[self.index - 2].position if self.index > 1 else self.position - 1

    def refresh(self) -> bool:
        """Take in new events; a place at the end moves along. Return whether there were any."""
        follows = self.index == len(self.steps)
        known = len(self.steps)
        view = self._debugger.view
        self._flow = view.flow(self.run)
        self.steps = [
            step
            for step in steps_of_flow(view.log, self._flow)
            if not step.stream.startswith("session:") or view.is_seen(step.stream.removeprefix("session:"))
        ]
        if follows and known:
            self.index = len(self.steps)
        return len(self.steps) > known

    def event(self, direction: Direction) -> bool:
        """Move by one event."""
        self._look_on(direction)
        return self.jump(self.index + direction)

    def _look_on(self, direction: Direction) -> None:
        """Take in new events at the end, if the stepper moves on from there."""
        index = self.index
        if direction == 1 and index == len(self.steps):
            self.refresh()
            self.index = index

    @property
    def run_here(self) -> str | None:
        """The run of the place's event, if it has begun by then; else the one whose agent was asked last.

        An import has no runs: there, the message that an agent was asked with, by its position.
        """
        begun = [run for step in self.steps[: self.index] if (run := self._begins(step)) is not None]
        own = None if self.step is None else self._run_of(self.step)
        return own if own in begun else begun[-1] if begun else None

    @property
    def run_next(self) -> str | None:
        """The run whose agent is asked next, after the place."""
        return next(filter(None, map(self._begins, self.steps[self.index :])), None)

    def _begins(self, step: Step) -> str | None:
        if step.event == "run_started":
            return self._run_of(step)
        is_imported = not isinstance(self._flow, RunOutcome) and self._flow.inferred
        return f"#{step.position}" if is_imported and step.event == "message_recorded" else None

    def _run_of(self, step: Step) -> str | None:
        """Return an event's run: of an exchange or a spawn, the run whose end it tells."""
        (recorded,) = self._debugger.view.log.all(after=step.position - 1, to=step.position)
        return run_named(recorded.event)

    def turn(self, direction: Direction) -> bool:
        """Move to the next answer, or the last one before."""
        self._look_on(direction)
        of_flow = any(step.event in _ANSWERS for step in self.steps)
        answers = _ANSWERS if of_flow else _ENDS
        return self._seek(direction, lambda step: step.event in answers)

    def cause(self) -> bool:
        """Move to the cause of the event."""
        step = self.step
        return step is not None and self._to_position(step.cause)

    def effect(self) -> bool:
        """Move to the first effect of the event."""
        step = self.step
        found = (
            None if step is None else next((one for one in self.steps if one.cause == step.position), None)
        )
        return found is not None and self._to_position(found.position)

    def go(self, place: str) -> bool:
        """Move to a place in any of its forms, in this run also `@turn:2` alone: after the run's last event up to there."""
        whole = f"{self.run}{place}" if place.startswith("@") else place
        position = self._debugger.view.place(whole).position
        return self.jump(sum(step.position <= position for step in self.steps))

    def find(self, words: str, direction: Direction = 1) -> bool:
        """Move to the next event that contains some words, in any case."""
        wanted = words.casefold()
        return bool(wanted) and self._seek(direction, lambda step: wanted in step.words.casefold())

    def run_to_break(self, direction: Direction) -> bool:
        """Move to the next or previous event that matches the breakpoint; without one, to the end."""
        self._look_on(direction)
        if not self.breaks:
            return self.jump(len(self.steps) if direction == 1 else 0)
        return self._seek(direction, self._is_break)

    def other_run(self, direction: Direction) -> str | None:
        """Return the next or previous run of one of the sessions; None if there is none."""
        if not self.steps:
            return None
        runs, session = self._debugger.view.reader.runs, self.sessions[-1]
        if direction == 1:
            found = runs.next_of_session(session, self.steps[-1].position)
        else:
            found = runs.last_of_session(session, self.steps[0].position)
        return None if found is None else found.run_id

    def _is_break(self, step: Step) -> bool:
        kind, colon, name = self.breaks.partition(":")
        if colon and kind == "kind":
            return step.event == name.strip()
        if colon and kind == "session":
            named = name.strip()
            return any(
                one is not None and named in {one, short_name(one), self.names.of(one)}
                for one in (step.who, step.to)
            )
        return self.breaks.casefold() in step.words.casefold()

    def _seek(self, direction: Direction, wanted: Callable[[Step], bool]) -> bool:
        index = self.index + direction
        while 0 < index <= len(self.steps):
            if wanted(self.steps[index - 1]):
                return self.jump(index)
            index += direction
        return False

    def _to_position(self, position: int | None) -> bool:
        for index, step in enumerate(self.steps, 1):
            if step.position == position:
                return self.jump(index)
        return False

    def jump(self, index: int) -> bool:
        """Move behind a number of events; 0 is before the first."""
        if not 0 <= index <= len(self.steps) or index == self.index:
            return False
        self.index = index
        return True
