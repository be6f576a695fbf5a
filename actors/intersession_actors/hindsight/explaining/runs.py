"""Explains why a run failed, was cut off or aborted, or why its answer was used nowhere."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from intersession_actors.hindsight.explaining.around import Around
from intersession_actors.hindsight.explaining.decisions import SessionDecision, decision_in_session
from intersession_actors.hindsight.explaining.explanation import Explanation, Input, Instead
from intersession_actors.hindsight.explaining.rules.failures import (
    COMPACTIONS,
    CUTS,
    FAILURES,
    SPENT,
    WITHHELD,
)
from intersession_actors.hindsight.explaining.settings import InForce
from intersession_actors.owners.streams.records import record_in
from intersession_actors.rules.policy.chain import Spent
from intersession_actors.rules.prompt.silence import is_withheld
from intersession_events import facts
from intersession_events.facts import topic_of
from intersession_events.log.recorded import Recorded
from intersession_projections.views.run_outcomes.outcome import RunOutcome

Ending = facts.RunFailed | facts.RunAborted | facts.RunInterrupted | facts.LateReplyDropped

_TIMES: Final[Mapping[facts.Step, str]] = {
    "message": "agents.defaults.timeoutSeconds",
    "reply": "session.agentToAgent.turnTimeoutSeconds",
    "announce": "session.agentToAgent.turnTimeoutSeconds",
    "compaction": "agents.defaults.compaction.timeoutSeconds",
}
"""Which setting limits a run, by its step."""

_AGAIN: Final = "runs.retryInterrupted"


def explain_ending(around: Around, in_force: InForce, recorded: Recorded, event: Ending) -> Explanation:
    """Explain how an attempt of a run ended."""
    outcome = around.run(event.run_id)
    code: str
    match event:
        case facts.RunFailed():
            is_spent = event.limit is not None and event.limit.startswith("budgets.")
            code, rule = event.code, SPENT if is_spent else FAILURES[event.code]
            said = f"The run failed in attempt {event.attempt} ({event.error})"
        case facts.RunAborted(into=str() as into):
            code, rule = "collected", CUTS["collected"]
            said = f"Run {into} answers its message together with its own"
        case facts.RunAborted():
            code, rule = "aborted", CUTS["aborted"]
            said = (
                "The archiving of its session stopped the run"
                if event.gone
                else f"{event.by} aborted the run"
            )
        case facts.RunInterrupted():
            code, rule = "interrupted", CUTS["interrupted"]
            said = f"Attempt {event.attempt} was cut off"
        case facts.LateReplyDropped():
            code, rule = "late", CUTS["late"]
            said = f"Attempt {event.attempt} answered when it was over"
    decision = decision_in_session(around.log, recorded)
    return rule.explains(
        recorded,
        "run",
        code,
        said,
        _inputs(around, in_force, recorded, event, outcome),
        instead=_instead_of(decision, event),
        as_decided=None if decision is None else decision.holds,
    )


def _instead_of(decision: SessionDecision | None, event: Ending) -> tuple[Instead, ...]:
    """Return which change of a setting would have led to something else, and to what, as the rules say that were asked."""
    if decision is None or not decision.holds:
        return ()
    change: Instead | None = None
    now, state = decision.now, decision.state
    match event:
        case facts.RunFailed(code="limit", limit=str() as limit, used=int() as used):
            change = Instead(
                change=f"{limit} is at least {used + 1}, or 0 for none", setting=limit, value=used + 1
            )
            now = replace(now, spent=Spent())
        case facts.RunFailed(code="interrupted") if state.running is not None:
            often = event.attempt - state.running.waiting.refused
            change = Instead(change=f"{_AGAIN} is at least {often}", setting=_AGAIN, value=often)
            now = replace(now, retries=often)
        case _:
            return ()
    (last,) = decision._replace(now=now).decided()[-1:]
    return (replace(change, verdict=topic_of(last).rpartition(".")[0]),)


def explain_summary(around: Around, recorded: Recorded, event: facts.RunCompleted) -> tuple[Explanation, ...]:
    """Explain why a summary was made: the tokens that there were then, and how many there may be (CTX-5)."""
    outcome = around.run(event.run_id)
    if event.covers is None or outcome is None:
        return ()
    of_run = around.part(recorded.stream, outcome.first_version - 1, recorded.version)
    queued = _queued(of_run, event.run_id)
    if queued is None:
        return ()
    asked, run = queued
    if run.caller is not None:
        said, inputs = f"{run.caller} asked for a summary", []
    else:
        knew = record_in(asked.decision).knew if asked.decision else {}
        said = "There was no room any more for what the agent was to be given"
        inputs = [
            Input(name=name, value=knew[key], set_by="log", position=asked.position)
            for name, key in (("usedTokens", "used"), ("compactsAt", "compactsAt"), ("keptTokens", "keep"))
            if key in knew
        ]
    covered = Input(name="messages", value=event.covers.messages, set_by="log", position=recorded.position)
    decision = decision_in_session(around.log, asked)
    holds = None if decision is None else decision.holds
    code = "asked_for" if run.caller is not None else "full"
    rule = COMPACTIONS[code]
    return (rule.explains(recorded, "run", code, said, (*inputs, covered), as_decided=holds),)


def explain_silence(around: Around, recorded: Recorded, event: facts.RunCompleted) -> tuple[Explanation, ...]:
    """Explain why a run's answer went to no person though one waits for it; nothing where it went there, or nobody waits."""
    outcome = around.run(event.run_id) if is_withheld(event.reply) else None
    if outcome is None:
        return ()
    of_run = around.part(recorded.stream, outcome.first_version - 1, recorded.version)
    queued = _queued(of_run, event.run_id)
    if queued is None or queued[1].route is None:
        return ()
    said = "The whole answer is a word for silence, so nothing went to the person"
    reply = Input(name="reply", value=event.reply, set_by="agent", position=recorded.position)
    return (WITHHELD.explains(recorded, "run", "reply_withheld", said, iter((reply,))),)


def _inputs(
    around: Around, in_force: InForce, recorded: Recorded, event: Ending, outcome: RunOutcome | None
) -> Iterator[Input]:
    yield Input(name="attempt", value=event.attempt, set_by="log")
    if outcome is None:
        return
    of_run = around.part(recorded.stream, outcome.first_version - 1, recorded.version)
    queued = _queued(of_run, event.run_id)
    of_attempt = [one for one in of_run if _is_of(one, event)]
    started = next((one for one in of_attempt if isinstance(one.event, facts.RunStarted)), None)
    over = next((one for one in of_attempt if not isinstance(one.event, facts.RunStarted)), None)
    if queued is not None and queued[1].timeout_ms:
        setting = in_force.setting(_TIMES[outcome.step], queued[0].position)
        seconds = queued[1].timeout_ms / 1000
        if setting.value == seconds:
            yield setting
        else:
            yield Input(name="timeoutSeconds", value=seconds, set_by="call", position=queued[0].position)
    if started is not None:
        yield from _times(recorded, started, over)
    match event:
        case facts.RunFailed(limit=str() as limit) if queued is not None:
            yield in_force.setting(limit, queued[0].position)
            yield Input(name=f"{limit}.used", value=event.used, set_by="log")
        case facts.RunFailed(code="interrupted") | facts.RunInterrupted():
            yield in_force.setting(_AGAIN, recorded.position)
            yield from _of_start(around, recorded, started)
        case facts.RunAborted():
            yield Input(name="by", value=event.by, set_by="call", position=recorded.position)
        case facts.LateReplyDropped():
            yield Input(name="reply", value=event.reply, set_by="agent", position=recorded.position)
            if outcome.ended:
                yield Input(name="status", value=outcome.status, set_by="log", position=outcome.position)
        case _:
            pass


def _times(recorded: Recorded, started: Recorded, over: Recorded | None) -> Iterator[Input]:
    """Name when an attempt began and ended, and how long it took; of an answer that came late, how much too late it was."""
    at = recorded.position
    yield Input(name="started", value=started.time, set_by="log", position=started.position, unit="time")
    if not isinstance(recorded.event, facts.LateReplyDropped):
        took = recorded.time - started.time
        yield Input(name="ended", value=recorded.time, set_by="log", position=at, unit="time")
        yield Input(name="took", value=took, set_by="log", unit="duration")
        return
    if over is not None:
        yield Input(name="over", value=over.time, set_by="log", position=over.position, unit="time")
    yield Input(name="answered", value=recorded.time, set_by="log", position=at, unit="time")
    if over is not None:
        late = recorded.time - over.time
        yield Input(name="tooLateBy", value=late, set_by="log", unit="duration")


def _of_start(around: Around, recorded: Recorded, started: Recorded | None) -> Iterator[Input]:
    """Name the start of the system that came between an attempt and the word that it was cut off."""
    if started is None or recorded.epoch == started.epoch:
        return
    for opened in reversed(around.stream("log")):
        if isinstance(opened.event, facts.LogOpened) and opened.event.epoch == recorded.epoch:
            yield Input(name="start", value=opened.event.epoch, set_by="log", position=opened.position)
            return


def _queued(of_run: Sequence[Recorded], run_id: str) -> tuple[Recorded, facts.RunQueued] | None:
    """Return where a run was queued."""
    for recorded in of_run:
        if isinstance(event := recorded.event, facts.RunQueued) and event.run_id == run_id:
            return recorded, event
    return None


def _is_of(recorded: Recorded, ending: Ending) -> bool:
    """Whether an event is of the attempt that an ending is of."""
    event = recorded.event
    return isinstance(event, facts.RunAttempt) and (event.run_id, event.attempt) == (
        ending.run_id,
        ending.attempt,
    )
