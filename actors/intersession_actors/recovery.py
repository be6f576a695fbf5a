"""Carrying on after a stop or a crash: what is open in the log is told to whoever leads it, in stored order.

The views say what is open; actors never read them. Nothing here decides anything: the same rules go on from the same streams.
"""

import logging

from intersession_actors.commands import DeliveryEnded, Resume, RunEnded, Wake
from intersession_actors.core import Core
from intersession_events import ids
from intersession_events.exchange import RunStatus
from intersession_projections.flow_rows import DeliverySummary
from intersession_projections.run_outcomes import RunOutcome

logger = logging.getLogger(__name__)


def recover(core: Core) -> None:
    """Tell everybody to go on: deliveries, exchanges, spawns, then the sessions with runs."""
    for prefix in ("delivery", "exchange", "spawn"):
        recover_flows(core, prefix)
    keys = list(dict.fromkeys(run.session_key for run in core.runs.open_runs()))
    for key in keys:
        core.supervisor.tell_session(key, Wake())
    if keys:
        logger.info("carrying on %d sessions with open runs", len(keys))


def recover_flows(core: Core, prefix: str) -> None:
    """Tell a manager of all its open flows, with the outcomes they may have missed."""
    match prefix:
        case "delivery":
            for delivery_id in core.flows.open_deliveries():
                stream = _stream(prefix, delivery_id)
                core.supervisor.tell_flow(stream, Resume(stream=stream))
        case "exchange":
            for exchange_id in core.flows.open_exchanges():
                stream = _stream(prefix, exchange_id)
                exchange = core.flows.exchange(stream.partition(":")[2])
                if exchange is not None:
                    _resume(core, stream, exchange.awaits, exchange.delivery_id)
        case _:
            for spawn_id in core.flows.open_spawns():
                stream = _stream(prefix, spawn_id)
                spawn = core.flows.spawn(stream.partition(":")[2])
                if spawn is not None:
                    _resume(core, stream, spawn.awaits, spawn.delivery_id)
            for pending in core.flows.pending_archives():
                stream = ids.spawn_stream(pending.spawn_id)
                core.supervisor.tell_flow(stream, Resume(stream=stream))


def wake_agent(core: Core, agent_id: str) -> None:
    """Tell the sessions of an agent that it is there now: parked runs start (KEY-9)."""
    for key in dict.fromkeys(run.session_key for run in core.runs.open_runs()):
        if core.world.agent_of(key) == agent_id:
            core.supervisor.tell_session(key, Wake())


def _stream(prefix: str, name: str) -> str:
    return name if name.startswith(f"{prefix}:") else f"{prefix}:{name}"


def _resume(core: Core, stream: str, run_id: str | None, delivery_id: str | None) -> None:
    ended: list[RunEnded | DeliveryEnded] = []
    outcome = core.runs.get(run_id) if run_id is not None else None
    if outcome is not None and outcome.ended:
        ended.append(_run_ended(core, stream, outcome))
    delivery = core.flows.delivery(delivery_id) if delivery_id is not None else None
    if delivery is not None and not delivery.is_open:
        ended.append(_delivery_ended(core, stream, delivery))
    core.supervisor.tell_flow(stream, Resume(stream=stream, ended=tuple(ended)))


def _run_ended(core: Core, stream: str, outcome: RunOutcome) -> RunEnded:
    status: RunStatus = "interrupted" if outcome.code == "interrupted" else "error"
    match outcome.status:
        case "ok" | "timeout" | "aborted" as ended:
            status = ended
        case _:
            pass
    return RunEnded(
        stream=stream,
        run_id=outcome.run_id,
        status=status,
        text=outcome.reply,
        error=outcome.error,
        usage=outcome.usage,
        model=outcome.model,
        started_ms=outcome.started_ms,
        ended_ms=outcome.ended_ms,
        cause=_event_at(core, outcome.position),
    )


def _delivery_ended(core: Core, stream: str, delivery: DeliverySummary) -> DeliveryEnded:
    match delivery.state:
        case "done" | "failed" | "unknown" | "denied" as outcome:
            return DeliveryEnded(
                stream=stream,
                delivery_id=delivery.delivery_id,
                outcome=outcome,
                cause=_event_at(core, delivery.position),
            )
        case state:
            raise ValueError(f"delivery {delivery.delivery_id} is not over but {state}")


def _event_at(core: Core, position: int) -> str | None:
    """Return the id of the event that ended it: the cause of what follows."""
    for recorded in core.log.all(after=position - 1, to=position):
        return recorded.id
    return None
