"""A history shows messages in the order in which the agent took them: that of the transcripts which agents are given."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intersession_actors.prompt.transcript import TranscriptFold
from intersession_events.facts import (
    Event,
    Message,
    MessageRecorded,
    RunAborted,
    RunCompleted,
    RunFailed,
    RunInterrupted,
    RunQueued,
    RunStarted,
    SessionOpened,
)
from intersession_events.log import Recorded
from intersession_projections.sessions.row import SessionRow, evolve_row
from intersession_projections.sessions.taken_order import taken_backwards

KEY = "agent:main:main"


class Busy:
    """A session that is told at random what to do next; what can't happen then is left out."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.taken: list[str] = []
        self.waiting: list[tuple[str, str]] = []
        self.running: str | None = None
        self.attempts: dict[str, int] = {}
        self._number = 0

    def _message(self, run_id: str | None = None, *, role: str = "user") -> str:
        self._number += 1
        said = f"m{self._number}"
        message = Message(id=said, role=role, content=said, timestamp=self._number, run_id=run_id)  # type: ignore[arg-type]
        self.events.append(MessageRecorded(session_id="s", message=message))
        return said

    def note(self) -> None:
        """A message that no run answers."""
        self.taken.append(self._message())

    def ask(self) -> None:
        said = self._message()
        run_id = f"r{self._number}"
        self.events.append(RunQueued(run_id=run_id, session_id="s", step="message", message_id=said))
        self.waiting.append((run_id, said))

    def start(self) -> None:
        if self.running is None and self.waiting:
            self.running, said = self.waiting.pop(0)
            attempt = self.attempts.get(self.running, 0) + 1
            self.attempts[self.running] = attempt
            self.events.append(RunStarted(run_id=self.running, attempt=attempt, context_hash="h"))
            if attempt == 1:
                self.taken.append(said)

    def speak(self) -> None:
        if self.running is not None:
            self.taken.append(self._message(self.running, role="assistant"))

    def complete(self) -> None:
        if self.running is not None:
            attempt = self.attempts[self.running]
            self.events.append(RunCompleted(run_id=self.running, attempt=attempt))
            self.running = None

    def fail(self) -> None:
        if self.running is not None:
            attempt = self.attempts[self.running]
            self.events.append(RunFailed(run_id=self.running, attempt=attempt, code="backend", error="no"))
            self.running = None

    def cut_off(self) -> None:
        if self.running is not None:
            self.events.append(RunInterrupted(run_id=self.running, attempt=self.attempts[self.running]))
            self.waiting.insert(0, (self.running, ""))
            self.running = None

    def abort_a_waiting_one(self) -> None:
        if self.waiting:
            run_id, said = self.waiting.pop()
            self.events.append(RunAborted(run_id=run_id, attempt=0, by="operator"))
            if said:
                self.taken.append(said)

    @property
    def shown(self) -> list[str]:
        return self.taken + [said for _run_id, said in self.waiting if said]


STEPS = [
    Busy.note,
    Busy.ask,
    Busy.ask,
    Busy.start,
    Busy.start,
    Busy.speak,
    Busy.complete,
    Busy.fail,
    Busy.cut_off,
    Busy.abort_a_waiting_one,
]


def recorded(events: Sequence[Event]) -> list[Recorded]:
    opened = SessionOpened(key=KEY, session_id="s", agent_id="main", opened_by="person")
    return [
        Recorded(
            position=version,
            stream=f"session:{KEY}",
            version=version,
            id=f"e{version}",
            time=version,
            causation=None,
            correlation=None,
            event=event,
            prev="",
            digest="",
            hash="",
            epoch=1,
            topic="",
        )
        for version, event in enumerate([opened, *events], start=1)
    ]


def history(events: list[Recorded]) -> list[tuple[str, str | None]]:
    row: SessionRow | None = None
    for item in events:
        row = evolve_row(row, KEY, item)
    assert row is not None
    found = [
        (taken.event.message.id, taken.run_id) for taken in taken_backwards(reversed(events), row.queued)
    ]
    return found[::-1]


@given(steps=st.lists(st.sampled_from(STEPS), max_size=40))
@pytest.mark.clause("HIST-3", "PROV-4")
def test_a_history_is_in_the_order_in_which_the_agent_took_its_messages(
    steps: Sequence[object],
) -> None:
    """Finding E2: three messages to a busy session read Q1 Q0 Q2 A1 A0 A2."""
    busy = Busy()
    for step in steps:
        step(busy)  # type: ignore[operator]
        assert [message_id for message_id, _ in history(recorded(busy.events))] == busy.shown

    while busy.waiting or busy.running:
        busy.complete()
        busy.start()
    busy.ask()
    events = recorded(busy.events)
    fold = TranscriptFold()
    for item in events:
        fold.apply(item)
    context = fold.context(busy.waiting[0][0])
    given_to_it = [message.id for message in (*context.transcript, context.message)]
    assert [message_id for message_id, _ in history(events)] == given_to_it


@pytest.mark.clause("HIST-3")
def test_each_message_of_a_run_names_it_the_one_it_answers_too() -> None:
    busy = Busy()
    for step in (
        Busy.ask,
        Busy.start,
        Busy.ask,
        Busy.note,
        Busy.speak,
        Busy.complete,
        Busy.start,
        Busy.speak,
    ):
        step(busy)

    assert history(recorded(busy.events)) == [
        ("m1", "r1"),
        ("m3", None),
        ("m4", "r1"),
        ("m2", "r2"),
        ("m5", "r2"),
    ]
