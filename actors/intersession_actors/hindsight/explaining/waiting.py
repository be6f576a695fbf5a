"""Explains why a run, an exchange, or a text on its way outside, has not gone on yet."""

from collections.abc import Mapping
from typing import Final

from intersession_actors.calls.service.reader import Reader
from intersession_actors.hindsight.explaining.around import Around
from intersession_actors.hindsight.explaining.explanation import Explanation, Input, SetBy
from intersession_actors.hindsight.explaining.rules.failures import WAITING, Waiting
from intersession_events import facts
from intersession_events.facts.reasons import HELD_TEXTS
from intersession_events.log.recorded import Recorded
from intersession_projections.copies.forks.frozen_work import frozen_in
from intersession_projections.views.held_calls import HeldCalls

MayWait = facts.RunQueued | facts.DeliveryDecided | facts.ExchangeHeld | facts.ToolCallHeld


def explain_waiting(
    reader: Reader,
    around: Around,
    recorded: Recorded,
    event: MayWait,
) -> tuple[Explanation, ...]:
    """Explain why something is not over; nothing where it is."""
    match event:
        case facts.RunQueued():
            return _of_run(reader, around, recorded, event)
        case facts.DeliveryDecided():
            return _of_delivery(reader, recorded, event)
        case facts.ExchangeHeld():
            return _of_hold(reader, recorded, event)
        case facts.ToolCallHeld():
            return _of_call(reader, recorded, event)


def _of_run(
    reader: Reader, around: Around, recorded: Recorded, event: facts.RunQueued
) -> tuple[Explanation, ...]:
    run = around.run(event.run_id)
    if run is None or run.ended:
        return ()
    said = f"The run of {run.session_key} is not over"
    status = Input(name="status", value=run.status, set_by="log", position=run.position)
    if frozen_in(reader.log).holds(run):
        frozen = WAITING["frozen"]
        return (frozen.explains(recorded, "run", "frozen", said, [status], named=run.run_id),)
    row = reader.sessions.get(run.session_key)
    before = None if row is None or row.running == run.run_id else row.running
    code: Waiting = "under_way"
    if run.status == "queued":
        code = "waits_for_agent" if before is None else "waits_in_queue"
    inputs = [status]
    if run.started_ms is not None:
        inputs.append(
            Input(name="started", value=run.started_ms, set_by="log", position=run.position, unit="time")
        )
    if run.started_ms is not None and run.timeout_ms and run.status == "running":
        until = run.started_ms + run.timeout_ms
        inputs.append(Input(name="until", value=until, set_by="log", position=run.position, unit="time"))
    if before is not None:
        inputs.append(Input(name="running", value=before, set_by="log"))
    return (WAITING[code].explains(recorded, "run", code, said, inputs),)


def _of_delivery(reader: Reader, recorded: Recorded, event: facts.DeliveryDecided) -> tuple[Explanation, ...]:
    row = reader.flows.delivery(event.delivery_id)
    if row is None or not row.is_open or row.state == "retrying":
        return ()  # what is tried again is explained by how it failed
    place = event.route.text
    earlier = reader.flows.earlier_to(event.route, row) if row.state == "decided" else None
    code: Waiting = "waits_for_channel" if row.state == "decided" else "under_way"
    inputs = [
        Input(name="route", value=place, set_by="session", position=recorded.position),
        Input(name="state", value=row.state, set_by="log", position=row.position),
    ]
    if earlier is not None and earlier.attempt:  # else nothing to this place was ever tried
        code = "waits_for_earlier"
        inputs.append(Input(name="earlier", value=earlier.state, set_by="log", position=earlier.position))
    return (WAITING[code].explains(recorded, "delivery", code, f"{place} has not got it yet", inputs),)


def _of_hold(reader: Reader, recorded: Recorded, event: facts.ExchangeHeld) -> tuple[Explanation, ...]:
    row = reader.flows.exchange(recorded.stream.partition(":")[2])
    if row is None or row.hold_id != event.hold_id:
        return ()
    set_by: SetBy = _SET_BY[event.source]
    inputs = (
        Input(name="hold", value=event.before, set_by=set_by, position=recorded.position),
        Input(name="by", value=event.by, set_by=set_by),
        *(() if event.note is None else (Input(name="note", value=event.note, set_by=set_by),)),
    )
    said = f"{HELD_TEXTS[event.step].capitalize()} is held"
    code: Waiting = "waits_for_release"
    return (WAITING[code].explains(recorded, "exchange", code, said, inputs, named=row.run_id),)


def _of_call(reader: Reader, recorded: Recorded, event: facts.ToolCallHeld) -> tuple[Explanation, ...]:
    found = HeldCalls(reader.log).named(event.hold_id)
    if not found or found[0].released is not None:
        return ()
    setting, _, pattern = event.rule.partition(": ")
    inputs = (Input(name=setting, value=pattern, set_by="configuration", position=recorded.position),)
    said, code = f"The call of {event.tool} is held", _APPROVAL
    return (WAITING[code].explains(recorded, "run", code, said, inputs, named=event.hold_id),)


_APPROVAL: Final[Waiting] = "waits_for_approval"

_SET_BY: Final[Mapping[facts.HoldSource, SetBy]] = {
    "setting": "exchange",
    "session": "session",
    "run": "call",
    "rule": "call",
}
