"""Recovery after a stop or a crash: tells each actor its open work from the log, in stored order.

The views say what is open; actors never read them. Nothing here decides anything: the same rules go on from the same streams.
"""

import logging
from collections.abc import Sequence
from functools import partial

from intersession_actors.calls.service.run_waits import run_ended
from intersession_actors.calls.service.service import Service
from intersession_actors.outside.agents.runners import runner_of
from intersession_actors.outside.attachments.contents import named_in
from intersession_actors.outside.attachments.files import can_be_safe, sweep_unclaimed
from intersession_actors.outside.attachments.workspaces import all_workspaces
from intersession_actors.outside.channels.turns import Place
from intersession_actors.owners.delivery.rules import ended_in
from intersession_actors.owners.session.commands import Wake
from intersession_actors.owners.streams.commands import ChildGone, DeliveryEnded, Resume, RunEnded
from intersession_events import facts
from intersession_events.basics import ids
from intersession_projections.views.flows.rows import DeliverySummary
from intersession_projections.views.held_sessions import HeldSessions

logger = logging.getLogger("intersession.flows")


def recover(service: Service) -> None:
    """Tell all actors to go on: deliveries, exchanges, spawns, then the sessions with runs."""
    _hold_accepted(service)
    service.world.standing.holds.sessions.take(tuple(HeldSessions(service.log).all()))
    _take_over_sessions(service)
    for prefix in ("delivery", "exchange", "spawn"):
        recover_flows(service, prefix)
    open_runs = [run for run in service.runs.open_runs() if run.run_id not in service.world.fork.frozen_runs]
    keys = list(dict.fromkeys(run.session_key for run in open_runs))
    for key in dict.fromkeys((*keys, *service.threads.limited_sessions())):
        service.supervisor.tell_session(key, Wake())
    if keys:
        logger.info("carrying on %d sessions with open runs", len(keys))


def _take_over_sessions(service: Service) -> None:
    """Say which conversations the sessions of open exchanges are at (LOOP-2), and whose threads there are (SPAWN-12)."""
    world = service.world
    for stream in service.flows.open_exchanges():
        exchange = service.flows.exchange(stream.partition(":")[2])
        for key in () if exchange is None else (exchange.target, exchange.requester):
            if key is not None:
                world.standing.generations.found(key, _generation_of(service, key), by=stream)
    for key, route in service.threads.all():
        world.standing.threads.claim(route, key)


def _generation_of(service: Service, key: str) -> str | None:
    """Return which conversation a session is at; None where it is gone."""
    if service.log.forked is None:
        row = service.sessions.get(key)
        return None if row is None or row.archived is not None else row.session_id
    # In a fork the list would be folded for that; the few sessions of its flows say it themselves.
    for recorded in service.log.stream(ids.session_stream(key), backwards=True):
        match recorded.event:
            case facts.SessionArchived():
                return None
            case facts.SessionOpened() | facts.SessionReset() as begun:
                return begun.session_id
            case _:
                pass
    return None


def _hold_accepted(service: Service) -> None:
    """Count the runs of children that were accepted and wait for their files or their thread (LOOP-5)."""
    frozen = service.world.fork.frozen_flows
    for stream in service.flows.open_spawns():
        spawn = None if stream in frozen else service.flows.spawn(stream.partition(":")[2])
        if spawn is not None and spawn.root is not None and service.runs.get(spawn.run_id) is None:
            chains = service.world.chains
            chains.after_reading(partial(chains.hold, spawn.root, spawn.run_id, by=stream))


def recover_flows(service: Service, prefix: str) -> None:
    """Tell a manager its open flows, with outcomes that they may have missed."""
    flows = service.flows
    streams_of = {
        "delivery": flows.open_deliveries,
        "exchange": flows.open_exchanges,
        "spawn": flows.open_spawns,
    }
    streams = [stream for stream in streams_of[prefix]() if stream not in service.world.fork.frozen_flows]
    if prefix == "delivery" and streams:
        open_ = flows.many({"delivery": [stream.partition(":")[2] for stream in streams]})
        _line_up(service, [row for row in open_.values() if isinstance(row, DeliverySummary)])
    for stream in streams:
        recover_flow(service, stream)
    if prefix == "spawn":
        _recover_children(service)


def recover_flow(service: Service, stream: str) -> None:
    """Tell a manager one open flow, with outcomes that it may have missed."""
    prefix, _, flow_id = stream.partition(":")
    if prefix == "delivery":
        _resume(service, stream)
        return
    flow = service.flows.exchange(flow_id) if prefix == "exchange" else service.flows.spawn(flow_id)
    if flow is not None:
        missed = (run_ended(service, stream, flow.awaits), _delivery_ended(service, flow.delivery_id))
        _resume(service, stream, tuple(ended for ended in missed if ended is not None))


def recover_channel(service: Service, name: str) -> None:
    """Tell the outbox of the texts that wait for a channel, which has been registered."""
    frozen = service.world.fork.frozen_flows
    rows = [row for row in service.flows.open_deliveries_to(name) if row.stream not in frozen]
    _line_up(service, rows)
    for row in rows:
        _resume(service, row.stream)


def _line_up(service: Service, rows: Sequence[DeliverySummary]) -> None:
    """Line up the outgoing texts: views give those to one place in any order (ANN-5)."""
    channels = service.world.channels
    here = [row for row in rows if channels.has(row.channel)]
    for row, note in zip(here, service.flows.notes_of(here), strict=True):
        if note is not None:
            number = service.flows.number_of(note.route, row.delivery_id)
            channels.turns.enter(Place.of(note.route), row.stream, row.accepted, number)


def _recover_children(service: Service) -> None:
    """Tell of the children of closed spawns: some are to be archived, some have left files.

    What was over when a log was forked is the source's: a fork archives no child of it, and removes no file.
    """
    if service.log.forked is not None:
        return
    for pending in service.flows.pending_archives():
        _resume(service, ids.spawn_stream(pending.spawn_id))
    for left in service.flows.spawns_with_files():
        stream = ids.spawn_stream(left.spawn_id)
        _resume(service, stream)
        row = service.sessions.get(left.child)
        if row is not None and row.archived is not None and left.archived is None:
            service.supervisor.tell_flow(stream, ChildGone(stream=stream))


def sweep_staged(service: Service) -> None:
    """Remove staged files of spawns that were never accepted (ATT-3). Must run before anything is staged again."""
    claimed = {stream.partition(":")[2] for stream in service.flows.open_spawns()}
    if not can_be_safe():
        return
    for workspace in all_workspaces(service.config, service.log.place):
        swept = sweep_unclaimed(workspace, service.log.log_id, claimed)
        if swept:
            logger.info("removed the staged attachments of %d spawns that were never accepted", len(swept))


def sweep_files(service: Service) -> None:
    """Remove the contents of files that a crash left without an event (FILE-1). Must run before any is stored again."""
    swept = service.log.files.settle(partial(named_in, service.log))
    if swept:
        logger.info("removed %d files that no message came to name", swept)


def wake_agent(service: Service, agent_id: str) -> None:
    """Tell the sessions of a newly registered agent: parked runs start (KEY-9), released exchanges go on (LIVE-1)."""
    for key in dict.fromkeys(run.session_key for run in service.runs.open_runs()):
        if runner_of(key) == agent_id:
            service.supervisor.tell_session(key, Wake())
    for exchange in service.flows.released_exchanges():
        at = None if exchange.requester is None else runner_of(exchange.requester)
        if at == agent_id and exchange.stream not in service.world.fork.frozen_flows:
            _resume(service, exchange.stream)


def _resume(service: Service, stream: str, ended: tuple[RunEnded | DeliveryEnded, ...] = ()) -> None:
    service.supervisor.tell_flow(stream, Resume(stream=stream, ended=ended))


def _delivery_ended(service: Service, delivery_id: str | None) -> DeliveryEnded | None:
    """Return what a flow would have been told of the end of its delivery; None while it is under way."""
    if delivery_id is None:
        return None
    return ended_in(service.log.stream(ids.delivery_stream(delivery_id)))
