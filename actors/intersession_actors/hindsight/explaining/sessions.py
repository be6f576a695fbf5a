"""Explains why a session left the list, or why its thread is its own no more: what was counted, and who had said so."""

from collections.abc import Iterator

from intersession_actors.calls.service.reader import Reader
from intersession_actors.hindsight.explaining.decisions import decision_in_session
from intersession_actors.hindsight.explaining.explanation import Explanation, Input
from intersession_actors.hindsight.explaining.rules.ends import ARCHIVALS, RESETS, UNBINDINGS
from intersession_actors.hindsight.explaining.settings import InForce
from intersession_events import facts
from intersession_events.basics.ids import session_stream, spawn_stream
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded, parts_in
from intersession_projections.basics.spans import Span, backwards

Leaving = facts.SessionArchived | facts.ThreadUnbound | facts.ChildArchived

_AFTER = "agents.defaults.subagents.archiveAfterMinutes"
_IDLE = "session.threadBindings.idleHours"
_MAX_AGE = "session.threadBindings.maxAgeHours"
_HOUR_MS = 3_600_000
_MINUTE_MS = 60_000


def explain_leaving(reader: Reader, in_force: InForce, recorded: Recorded, event: Leaving) -> Explanation:
    """Explain an archiving or an unbinding by what its rule looks at, as far as the log has it."""
    if isinstance(event, facts.ThreadUnbound):
        unbound = UNBINDINGS[event.reason]
        inputs = [*_of_thread(reader.log, in_force, recorded, event), *_by(recorded, event.by)]
        decision = decision_in_session(reader.log, recorded)
        holds = None if decision is None else decision.holds
        said = "The thread was unbound"
        return unbound.explains(recorded, "session", event.reason, said, inputs, as_decided=holds)
    by = event.by if isinstance(event, facts.SessionArchived) else None
    inputs = [*_of_archiving(reader, in_force, recorded, event), *_by(recorded, by)]
    rule = ARCHIVALS[event.reason]
    return rule.explains(recorded, "session", event.reason, "The session left the list", inputs)


def explain_reset(recorded: Recorded, event: facts.SessionReset) -> Explanation | None:
    """Explain a reset by the clock; None for one that somebody asked for, which its words tell."""
    if event.due_ms is None:
        return None
    due = Input(name="due", value=event.due_ms, set_by="log", unit="time")
    said = "The conversation was over, and began anew"
    return RESETS[event.reason].explains(recorded, "session", event.reason, said, (due,))


def _by(recorded: Recorded, who: str | None) -> Iterator[Input]:
    """Name who did it, where the log says that."""
    if who is not None:
        yield Input(name="by", value=who, set_by="call", position=recorded.position)


def _of_thread(
    log: Log, in_force: InForce, recorded: Recorded, event: facts.ThreadUnbound
) -> Iterator[Input]:
    bound = spoken = None
    for earlier in backwards(log, Span(to=recorded.position - 1), recorded.stream):
        if facts.message_in(earlier.event) is not None:
            spoken = spoken or earlier
        if isinstance(earlier.event, facts.ThreadBound):
            bound = earlier
            break
    at = None if bound is None else bound.position
    yield Input(name="thread", value=event.route.text, set_by="channel", position=at)
    if bound is None or not isinstance(bound.event, facts.ThreadBound):
        return
    if event.reason == "idle":
        yield in_force.taken(_IDLE, bound.event.idle_ms / _HOUR_MS, bound.position)
        last = spoken or bound
        yield Input(name="lastMessage", value=last.time, set_by="log", position=last.position, unit="time")
        yield _for("idleFor", recorded.time - last.time)
    elif event.reason == "max_age":
        yield in_force.taken(_MAX_AGE, bound.event.max_age_ms / _HOUR_MS, bound.position)
        yield Input(name="bound", value=bound.time, set_by="log", position=bound.position, unit="time")
        yield _for("boundFor", recorded.time - bound.time)


def _of_archiving(
    reader: Reader, in_force: InForce, recorded: Recorded, event: facts.SessionArchived | facts.ChildArchived
) -> Iterator[Input]:
    if isinstance(event, facts.ChildArchived):
        key, stream = event.child, recorded.stream
    else:
        key = recorded.stream.removeprefix(session_stream(""))
        found = reader.flows.spawn_of_child(key)
        stream = "" if found is None else spawn_stream(found.spawn_id)
    yield Input(name="session", value=key, set_by="log")
    for earlier in parts_in(reader.log.stream(stream)) if stream else ():
        if earlier.position > recorded.position:
            return
        match earlier.event:
            case facts.SpawnAccepted() as accepted if event.reason in {"cleanup", "expired"}:
                at = earlier.position
                yield Input(name="cleanup", value=accepted.cleanup, set_by="call", position=at)
                if event.reason == "expired":
                    minutes = (accepted.archive_after_ms or 0) / _MINUTE_MS
                    yield in_force.taken(_AFTER, minutes, at)
            case facts.ChildEnded() if event.reason == "expired":
                ended, at = earlier.time, earlier.position
                yield Input(name="ended", value=ended, set_by="log", position=at, unit="time")
                yield _for("keptFor", recorded.time - ended)
            case facts.SpawnClosed(reason=reason) if event.reason == "cleanup":
                yield Input(name="announce", value=reason, set_by="log", position=earlier.position)
            case _:
                pass


def _for(name: str, milliseconds: int) -> Input:
    return Input(name=name, value=milliseconds, set_by="log", unit="duration")
