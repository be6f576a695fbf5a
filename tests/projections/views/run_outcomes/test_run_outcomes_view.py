"""Run outcomes: what a waiter, a resume and a guard read."""

import pytest

from intersession_events.facts import (
    AnswerShown,
    ChildEnded,
    ExchangeAccepted,
    RunAborted,
    RunCompleted,
    RunFailed,
    RunInterrupted,
    RunQueued,
    RunStarted,
    SpawnAccepted,
    Usage,
)
from intersession_projections.views.flows.flows import Flows
from intersession_projections.views.run_outcomes.runs import KeyUse, Runs
from support.story import MAIN, Story

STREAM = f"session:{MAIN}"


def queued(run_id: str = "r", **fields: object) -> RunQueued:
    return RunQueued(run_id=run_id, session_id="s", step="message", answers="m", **fields)  # type: ignore[arg-type]


def accepted(run_id: str = "r", *, digest: str = "d") -> ExchangeAccepted:
    return ExchangeAccepted(
        exchange_id="x",
        run_id=run_id,
        target=MAIN,
        target_session_id="s",
        message_id="m",
        message="hello",
        caller="agent:ops:main",
        idempotency_key="k",
        request_digest=digest,
    )


@pytest.mark.clause("GATE-3")
@pytest.mark.parametrize(
    ("end", "told"),
    [
        (RunCompleted(run_id="r", attempt=1, text="yes\0"), ("ok", None, None, "yes\0")),
        (RunCompleted(run_id="r", attempt=1), ("ok", None, None, None)),
        (RunFailed(run_id="r", attempt=1, code="backend", error="boom"), ("error", "backend", "boom", None)),
        (
            RunFailed(run_id="r", attempt=1, code="timeout", error="60 s", partial="so"),
            ("timeout", "timeout", "60 s", "so"),
        ),
        (
            RunAborted(run_id="r", attempt=1, by="operator", partial="so far"),
            ("aborted", None, "aborted by operator", "so far"),
        ),
    ],
)
def test_a_run_ends_in_one_of_four_ways_and_keeps_its_words(
    story: Story, end: RunCompleted | RunFailed | RunAborted, told: tuple[str | None, ...]
) -> None:
    runs = Runs(story.log)
    story.put(STREAM, queued())
    queued_ms = story.clock.now
    story.put(STREAM, RunStarted(run_id="r", attempt=1, context_hash="h"))
    story.put(STREAM, end)
    outcome = runs.get("r")
    assert outcome is not None
    assert (outcome.status, outcome.code, outcome.error, outcome.reply) == told
    assert (outcome.queued_ms, outcome.started_ms, outcome.ended_ms) == (
        queued_ms,
        queued_ms + 1,
        queued_ms + 2,
    )
    assert outcome.ended
    story.put(STREAM, RunFailed(run_id="r", attempt=1, code="store", error="late"))
    assert runs.get("r") == outcome


@pytest.mark.clause("GATE-3")
def test_an_unknown_run_is_none(story: Story) -> None:
    assert Runs(story.log).get("nobody") is None


@pytest.mark.clause("SEND-10")
def test_open_runs_come_in_the_order_they_were_accepted(story: Story) -> None:
    runs = Runs(story.log)
    story.put(STREAM, queued("b"), queued("a"), queued("c"))
    story.put(STREAM, RunStarted(run_id="b", attempt=1, context_hash="h"))
    story.put(STREAM, RunInterrupted(run_id="b", attempt=1))
    story.put(STREAM, RunStarted(run_id="a", attempt=1, context_hash="h"))
    story.put(STREAM, RunFailed(run_id="a", attempt=1, code="backend", error="x"))
    assert [(run.run_id, run.status, run.attempt) for run in runs.open_runs()] == [
        ("b", "queued", 1),
        ("c", "queued", 0),
    ]
    assert [run.run_id for run in runs.recent(2)] == ["c", "a"]


@pytest.mark.clause("STREAM-5")
def test_a_run_whose_answer_is_shown_while_it_is_said_is_at_work(story: Story) -> None:
    story.put(STREAM, queued())
    story.put(STREAM, RunStarted(run_id="r", attempt=1, context_hash="h"))
    last = story.put(STREAM, AnswerShown(run_id="r", attempt=1))
    (run,) = Runs(story.log).open_runs()
    assert (run.status, run.attempt, run.position) == ("running", 1, last.position)


@pytest.mark.clause("SEND-11")
def test_a_callers_key_stands_for_its_first_run_for_ever(story: Story) -> None:
    runs = Runs(story.log)
    story.put(STREAM, queued(caller="agent:ops:main"))
    story.put("exchange:x", accepted())
    story.put("exchange:y", accepted("other", digest="d2"))
    assert runs.by_idempotency_key("agent:ops:main", "k") == KeyUse("r", ("d",))
    assert runs.by_idempotency_key("agent:main:main", "k") is None
    assert runs.by_idempotency_key("agent:ops:main", "K") is None


@pytest.mark.clause("GATE-1")
def test_a_run_is_found_by_the_callers_own_key(story: Story) -> None:
    runs = Runs(story.log)
    story.put(STREAM, queued("first", caller="a", idempotency_key="k"))
    story.put(STREAM, queued("second", caller="b", idempotency_key="k"))
    assert runs.by_any_key("k") == "first"
    assert runs.by_any_key("k", "b") == "second"
    assert runs.by_any_key("k", "c") is None


@pytest.mark.clause("LOOP-5")
def test_the_runs_of_a_chain_are_found_with_their_tokens_and_their_cost(story: Story) -> None:
    runs = Runs(story.log)
    for run_id, root in (("a", "root"), ("b", "root"), ("c", "other")):
        story.put(STREAM, queued(run_id), correlation=root)
        usage = Usage(total_tokens=10, cost_micros=3)
        story.put(STREAM, RunCompleted(run_id=run_id, attempt=1, usage=usage), correlation=root)
    story.put(STREAM, queued("d"), correlation="root")
    assert runs.of_chain("root") == [("a", True, 10, 3), ("b", True, 10, 3), ("d", False, 0, 0)]
    assert runs.of_chain("nothing") == []


@pytest.mark.clause("SPAWN-3")
def test_a_child_counts_as_running_until_its_task_ended(story: Story) -> None:
    flows = Flows(story.log)
    for one in ("a", "b"):
        story.put(
            f"spawn:{one}",
            SpawnAccepted(
                spawn_id=one,
                run_id=f"r{one}",
                child=f"agent:main:subagent:{one}",
                child_session_id="s",
                agent_id="main",
                task="t",
                message_id="m",
                requester=MAIN,
            ),
        )
    assert flows.running_children(MAIN) == 2
    story.put("spawn:a", ChildEnded(run_id="ra", status="error"))
    assert flows.running_children(MAIN) == 1
    assert flows.running_children("agent:ops:main") == 0
