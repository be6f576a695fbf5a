"""Carrying on after a stop or a crash: what is open in the log is told to whoever leads it, in stored order.

The views say what is open; actors never read them. Nothing here decides anything: the same rules go on from the same streams.
"""

import logging

from intersession_actors import outbox_rules
from intersession_actors.commands import DeliveryEnded, Resume, RunEnded, Wake
from intersession_actors.core import Core
from intersession_actors.outbox_rules import Delivery
from intersession_actors.run_outcome import ended_again
from intersession_events import ids

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
    told = (_run_ended(core, stream, run_id), _delivery_ended(core, delivery_id))
    core.supervisor.tell_flow(stream, Resume(stream=stream, ended=tuple(word for word in told if word)))


def _run_ended(core: Core, stream: str, run_id: str | None) -> RunEnded | None:
    """Return what a flow would have been told of the end of its run; None while it is under way."""
    outcome = core.runs.get(run_id) if run_id is not None else None
    if outcome is None or not outcome.ended:
        return None
    session = ids.session_stream(outcome.session_key)
    events = core.log.stream(session, after=outcome.first_version - 1, to=outcome.last_version)
    return ended_again(stream, events)


def _delivery_ended(core: Core, delivery_id: str | None) -> DeliveryEnded | None:
    """Return what a flow would have been told of the end of its delivery; None while it is under way."""
    if delivery_id is None:
        return None
    state: Delivery | None = None
    cause: str | None = None
    for recorded in core.log.stream(ids.delivery_stream(delivery_id)):
        state, cause = outbox_rules.evolve(state, recorded.event), recorded.id
    return outbox_rules.ended_of(state, cause) if state is not None else None
