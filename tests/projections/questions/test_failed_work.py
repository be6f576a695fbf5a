"""What has failed is found by an index, and is what all that was asked for would show to have failed (FIND-2)."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from intersession_events.facts import (
    ChildEnded,
    DeliveryDecided,
    DeliveryFailed,
    Event,
    ExchangeAccepted,
    ExchangeClosed,
    Route,
    RunFailed,
    RunQueued,
    SpawnAccepted,
    SpawnClosed,
)
from intersession_events.log.log import Log
from intersession_projections.basics.spans import Span
from intersession_projections.questions.places.runs_named import Flow, flow_sessions
from intersession_projections.questions.work_list import (
    WorkFilter,
    WorkKind,
    WorkList,
    ask_deliveries_of_each,
    has_failed,
)
from intersession_projections.views.flows import flows as flow_queries
from intersession_projections.views.flows.flows import Flows
from intersession_projections.views.inline_views import inline_views
from intersession_projections.views.run_outcomes import runs as run_queries
from support.plain_log import PlainLog
from support.story import MAIN, Story
from support.vocabulary import logs

Entry = tuple[str, Event, int]
KINDS: list[tuple[WorkKind, ...]] = [(), ("exchange",), ("spawn", "run")]


def all_that_failed(log: Log) -> list[Flow]:
    """Find the same by looking at everything."""
    everything = list(WorkList(log).newest(WorkFilter()))
    (sent,) = log.answers(ask_deliveries_of_each(Flows(log), everything))
    return [work for work, texts in zip(everything, sent, strict=True) if has_failed(work, texts)]


@pytest.mark.clause("FIND-2")
@settings(max_examples=60, deadline=None)
@given(logs(), st.data())
def test_what_has_failed_is_all_of_it_in_the_order_of_the_log(
    entries: list[Entry], data: st.DataObject
) -> None:
    log: Any = PlainLog(inline_views())
    for stream, event, time in entries:
        log.put(stream, event, time=time, correlation="root")
    kinds = data.draw(st.sampled_from(KINDS))
    span = Span(data.draw(st.integers(0, log.head())), data.draw(st.none() | st.integers(0, log.head())))
    keys = sorted({key for work in WorkList(log).newest(WorkFilter()) for key in flow_sessions(work)})
    key = data.draw(st.none() | st.sampled_from(keys)) if keys else None

    wanted = WorkFilter(kinds, failed=True, span=span, session_key=key)
    found = [(work.kind, work.accepted) for work in WorkList(log).newest(wanted)]

    of_key = {work.accepted for work in WorkList(log).newest(WorkFilter(session_key=key))}
    assert found == [
        (work.kind, work.accepted)
        for work in all_that_failed(log)
        if (not kinds or work.kind in kinds)
        and span.after < work.accepted <= span.last(log.head())
        and work.accepted in of_key
    ]


ROUTE = Route(channel="telegram", to="1")
EXCHANGE = ExchangeAccepted(
    exchange_id="", run_id="", target=MAIN, target_session_id="s", message_id="m", requester="agent:main:x"
)
SPAWN = SpawnAccepted(
    spawn_id="",
    run_id="",
    child="agent:main:subagent:1",
    child_session_id="c",
    agent_id="main",
    message_id="m",
)


def exchange(story: Story, name: str, *events: Event) -> None:
    accepted = replace(EXCHANGE, exchange_id=name, run_id=f"{name}-run")
    story.put(f"exchange:{name}", accepted, *events)


def spawn(story: Story, name: str, *events: Event) -> None:
    story.put(f"spawn:{name}", replace(SPAWN, spawn_id=name, run_id=f"{name}-run"), *events)


def undelivered(story: Story, name: str, **of: Any) -> None:
    """Decide a delivery, and give it up."""
    decided = DeliveryDecided(
        delivery_id=name, session_key=MAIN, route=ROUTE, text="x", key="k", purpose="announce", **of
    )
    story.put(f"delivery:{name}", decided, DeliveryFailed(delivery_id=name, error="It is gone."))


@pytest.mark.clause("FIND-2")
def test_each_way_to_fail_is_found(story: Story) -> None:
    story.open()
    exchange(story, "fine", ExchangeClosed(reason="announced"))
    exchange(story, "denied", ExchangeClosed(reason="announce_denied"))
    exchange(story, "open")
    spawn(story, "done", SpawnClosed(reason="announced"))
    spawn(
        story,
        "timeout",
        ChildEnded(run_id="x", status="timeout"),
        SpawnClosed(reason="silent"),
    )
    # Closed in another way, and its text failed behind that.
    exchange(story, "aborted", ExchangeClosed(reason="aborted"))
    spawn(story, "ended", SpawnClosed(reason="silent"))
    story.run(MAIN, "unheard", "Who is there?", "I am.")
    for number in range(150):  # pages of deliveries, each of a work that began long before
        story.run(MAIN, f"run-{number}", "Who is there?", "I am.")
    for number in range(150):
        undelivered(story, f"of-{number}", run_id=f"run-{number}")
    undelivered(story, "a", owner="exchange:aborted")
    undelivered(story, "b", owner="spawn:ended")
    undelivered(story, "c", run_id="unheard")
    undelivered(story, "d", run_id="unheard")

    found = list(WorkList(story.log).newest(WorkFilter(failed=True)))

    assert [work.run_id for work in found] == [
        *(f"run-{number}" for number in reversed(range(150))),
        "unheard",
        "ended-run",
        "aborted-run",
        "timeout-run",
        "denied-run",
    ]
    assert found == all_that_failed(story.log)


@pytest.fixture
def rows_made(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count the rows of flows and of runs that are made into what they stand for."""
    made: Counter[str] = Counter()
    for module in (flow_queries, run_queries):

        def counting(row: Any, of: Any = module, restored: Any = module.restored) -> Any:
            made[of.__name__.rpartition(".")[2]] += 1
            return restored(row)

        monkeypatch.setattr(module, "restored", counting)
    return made


@pytest.mark.clause("FIND-2")
def test_runs_that_have_not_failed_are_not_read(story: Story, rows_made: Counter[str]) -> None:
    """20,000 runs of which none had failed took 410 ms."""
    story.open()
    story.run(MAIN, "run", "Who is there?", "I am.")
    story.put(f"session:{MAIN}", RunQueued(run_id="failed", session_id="s", step="message"))
    story.put(f"session:{MAIN}", RunFailed(run_id="failed", attempt=0, code="no_agent", error="Nobody is."))
    for number in range(200):
        story.run(MAIN, f"run-{number}", "Who is there?", "I am.")
    rows_made.clear()

    found = [work.run_id for work in WorkList(story.log).newest(WorkFilter(failed=True))]

    assert (found, rows_made) == (["failed"], Counter({"runs": 1}))
