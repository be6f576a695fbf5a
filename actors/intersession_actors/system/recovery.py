"""Carrying on after a stop or a crash: what is open in the log is told to whoever leads it, in stored order.

The views say what is open; actors never read them. Nothing here decides anything: the same rules go on from the same streams.
"""

import logging

import msgspec

from intersession_actors.attachments import all_workspaces, can_be_safe, sweep_unclaimed
from intersession_actors.delivery import ended_in
from intersession_actors.service import Core
from intersession_actors.session import Wake, ended_again
from intersession_actors.streams import ChildGone, DeliveryEnded, Resume, RunEnded
from intersession_events import ids

logger = logging.getLogger(__name__)


def recover(core: Core) -> None:
    """Tell everybody to go on: deliveries, exchanges, spawns, then the sessions with runs."""
    for prefix in ("delivery", "exchange", "spawn"):
        recover_flows(core, prefix)
    keys = list(dict.fromkeys(run.session_key for run in core.runs.open_runs()))
    for key in dict.fromkeys((*keys, *core.threads.limited_sessions())):
        core.supervisor.tell_session(key, Wake())
    if keys:
        logger.info("carrying on %d sessions with open runs", len(keys))


def recover_flows(core: Core, prefix: str) -> None:
    """Tell a manager of all its open flows, with the outcomes they may have missed."""
    match prefix:
        case "delivery":
            names = core.flows.open_deliveries()
        case "exchange":
            names = core.flows.open_exchanges()
        case _:
            names = core.flows.open_spawns()
    for name in names:
        recover_flow(core, _stream(prefix, name))
    if prefix == "spawn":
        _recover_children(core)


def recover_flow(core: Core, stream: str) -> None:
    """Tell the manager of one open flow to carry it on, with the outcomes that it may have missed."""
    prefix, _, flow_id = stream.partition(":")
    match prefix:
        case "delivery":
            core.supervisor.tell_flow(stream, Resume(stream=stream))
        case "exchange":
            exchange = core.flows.exchange(flow_id)
            if exchange is not None:
                _resume(core, stream, exchange.awaits, exchange.delivery_id)
        case _:
            spawn = core.flows.spawn(flow_id)
            if spawn is not None:
                _resume(core, stream, spawn.awaits, spawn.delivery_id)


def _recover_children(core: Core) -> None:
    """Tell of the children of closed spawns: some are to be archived, some have left files."""
    for pending in core.flows.pending_archives():
        stream = ids.spawn_stream(pending.spawn_id)
        core.supervisor.tell_flow(stream, Resume(stream=stream))
    for left in core.flows.spawns_with_files():
        stream = ids.spawn_stream(left.spawn_id)
        core.supervisor.tell_flow(stream, Resume(stream=stream))
        row = core.sessions.get(left.child)
        if row is not None and row.archived is not None and left.archived is None:
            core.supervisor.tell_flow(stream, ChildGone(stream=stream))


def sweep_staged(core: Core) -> None:
    """Remove what was staged for spawns that were never accepted (ATT-3). To be done before anything is staged again."""
    claimed = {stream.partition(":")[2] for stream in core.flows.open_spawns()}
    if not can_be_safe():
        return
    for workspace in all_workspaces(core.config, core.store_path):
        swept = sweep_unclaimed(workspace, core.log.log_id, claimed)
        if swept:
            logger.info("removed the staged attachments of %d spawns that were never accepted", len(swept))


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
    ended = ended_again(stream, events)
    thread = core.threads.of(outcome.session_key)
    return ended if ended is None or thread is None else msgspec.structs.replace(ended, thread=thread)


def _delivery_ended(core: Core, delivery_id: str | None) -> DeliveryEnded | None:
    """Return what a flow would have been told of the end of its delivery; None while it is under way."""
    if delivery_id is None:
        return None
    return ended_in(core.log.stream(ids.delivery_stream(delivery_id)))
