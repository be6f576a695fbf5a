"""What a flow is told of its run's end: the same from the actor that saw it and, after a restart, from the log."""

from collections.abc import Sequence

import pytest

from intersession_actors.owners.session.answers import ended_again, ended_of
from intersession_actors.owners.session.state import Session, evolve
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
    Usage,
)
from intersession_events.log.recorded import Recorded
from support.bare_events import bare

KEY = "agent:main:main"
OPENED = SessionOpened(key=KEY, session_id="s", agent_id="main", opened_by="person")
QUEUED = RunQueued(run_id="r", session_id="s", step="message", answers="m", spawn_id="p", model="a/b")
OTHER = RunQueued(run_id="o", session_id="s", step="message", answers="n")


def started(attempt: int) -> RunStarted:
    return RunStarted(run_id="r", attempt=attempt, context_hash="h")


def tool_said(text: str, run_id: str = "r") -> MessageRecorded:
    message = Message(
        id=f"{run_id}-{text}", role="toolResult", content=text, timestamp=0, run_id=run_id, tool_call_id="c"
    )
    return MessageRecorded(session_id="s", message=message)


DONE = RunCompleted(run_id="r", attempt=2, text=None, usage=Usage(input=1), model="c/d")
CUT_OFF = (started(1), tool_said("found"), RunInterrupted(run_id="r", attempt=1))

STORIES: dict[str, Sequence[Event]] = {
    "answered": (QUEUED, started(1), RunCompleted(run_id="r", attempt=1, text="fine")),
    "after a tool": (QUEUED, started(1), tool_said("one"), tool_said("two"), tool_said(""), DONE),
    "in its second attempt": (QUEUED, *CUT_OFF, started(2), DONE),
    "failed": (QUEUED, started(1), RunFailed(run_id="r", attempt=1, code="timeout", error="e", partial="so")),
    "interrupted": (
        QUEUED,
        *CUT_OFF,
        started(2),
        RunFailed(run_id="r", attempt=2, code="interrupted", error="e"),
    ),
    "aborted": (QUEUED, started(1), RunAborted(run_id="r", attempt=1, by="me", partial="so far")),
    "aborted in the queue": (QUEUED, RunAborted(run_id="r", attempt=0, by="me")),
    "aborted before its second attempt": (QUEUED, *CUT_OFF, RunAborted(run_id="r", attempt=0, by="me")),
    "beside another": (QUEUED, OTHER, started(1), tool_said("theirs", "o"), DONE),
}


def recorded(number: int, event: Event) -> Recorded:
    return bare(f"session:{KEY}", number, event, time=number * 1000, correlation="root")


@pytest.mark.clause("O6")
@pytest.mark.parametrize("story", STORIES)
def test_a_flow_is_told_the_same_of_its_run_before_a_restart_and_after(story: str) -> None:
    items = [recorded(number, event) for number, event in enumerate((OPENED, *STORIES[story]), start=1)]
    before = Session()
    for item in items[:-1]:
        before = evolve(before, item)

    live = ended_of(before, items[-1])

    assert live is not None
    assert ended_again("spawn:p", items[1:]) == live


@pytest.mark.clause("SPAWN-10", "S6")
def test_a_tool_result_outlives_the_attempt_that_was_cut_off_after_it() -> None:
    ended = ended_again(
        "spawn:p", [recorded(n, event) for n, event in enumerate(STORIES["in its second attempt"], 1)]
    )

    assert ended is not None
    assert (ended.text, ended.last_tool_result) == (None, "found")


def test_a_run_that_has_not_ended_has_no_word() -> None:
    assert ended_again("spawn:p", []) is None
    assert ended_again("spawn:p", [recorded(1, QUEUED)]) is None
