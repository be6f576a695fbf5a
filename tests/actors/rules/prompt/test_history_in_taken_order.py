"""A history shows messages in the order in which the agent took them: that of the transcripts which agents are given."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intersession_actors.rules.prompt.transcript import TranscriptFold
from intersession_events.facts import (
    Event,
    SessionOpened,
    message_in,
)
from intersession_events.log.recorded import Recorded
from intersession_projections.views.sessions.row import SessionRow, evolve_row
from intersession_projections.views.sessions.taken_order import taken_backwards
from support.bare_events import bare
from support.busy_session import STEPS, Busy

KEY = "agent:main:main"


def recorded(events: Sequence[Event]) -> list[Recorded]:
    opened = SessionOpened(key=KEY, session_id="s", agent_id="main", opened_by="person")
    return [
        bare(f"session:{KEY}", version, event, time=version)
        for version, event in enumerate([opened, *events], start=1)
    ]


def history(events: list[Recorded]) -> list[tuple[str, str | None]]:
    row: SessionRow | None = None
    for item in events:
        row = evolve_row(row, KEY, item)
    assert row is not None
    found = [
        (message.id, taken.run_id)
        for taken in taken_backwards(reversed(events), row.queued)
        if (message := message_in(taken.recorded.event)) is not None
    ]
    return found[::-1]


@given(steps=st.lists(st.sampled_from(STEPS), max_size=40))
@pytest.mark.clause("HIST-3", "PROV-4")
def test_a_history_is_in_the_order_in_which_the_agent_took_its_messages(
    steps: Sequence[object],
) -> None:
    """Before: three messages to a busy session read Q1 Q0 Q2 A1 A0 A2."""
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
