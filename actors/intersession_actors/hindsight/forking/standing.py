"""Which work of a fork goes on, and what the rest waits for: missing agents, a release, a mended flow."""

from collections.abc import Collection, Iterator
from typing import Literal, NamedTuple

import msgspec

from intersession_actors.calls.service.service import Service
from intersession_actors.outside.agents.runners import runner_of
from intersession_events.facts import HeldText
from intersession_projections.copies.forks.frozen_work import frozen_in
from intersession_projections.views.held_calls import HeldCalls


class HeldAt(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A held exchange (LIVE-1): the id of its first run, the step before which it is held, and the number of turns so far.

    Or a held tool call (ASK-1): its run, and its hold.
    """

    run: str
    step: HeldText | Literal["call"]
    turn: int = 0
    hold: str | None = None


class Standing(NamedTuple):
    """The state of a fork. While something `goes_on`, the other fields are empty."""

    goes_on: bool
    missing: tuple[str, ...] = ()
    """The agents that it waits for, by their ids."""
    held: tuple[HeldAt, ...] = ()
    set_aside: tuple[str, ...] = ()
    """Sessions and flows that went wrong and are not served any more, by key or stream."""
    imported: tuple[str, ...] = ()
    """Streams of exchanges and spawns that were open when they were cut and that an import has inferred: the log does not have the
    runs that they waited for, and nobody goes on with them (IMP-4)."""


def standing(service: Service) -> Standing:
    """Return the state of a fork. Work that was frozen at its cut does not count."""
    reader = service.reader
    frozen, degraded = frozen_in(reader.log), service.supervisor.degraded
    runs = [run for run in reader.runs.open_runs() if run.run_id not in frozen.runs]
    parked = [
        run
        for run in runs
        if run.status == "queued" and not service.world.agents.has(runner_of(run.session_key))
    ]
    held = [exchange for exchange in reader.flows.held_exchanges() if exchange.stream not in frozen.flows]
    calls = [one.held for one in HeldCalls(reader.log).waiting() if one.held.run_id not in frozen.runs]
    aside = tuple(name for name in degraded if name not in frozen.flows)
    still = {run.run_id for run in parked} | {run.run_id for run in runs if run.session_key in degraded}
    still |= {call.run_id for call in calls}
    if still or held or aside:
        # A run that waits for one that stands still, stands still as well.
        waiting = service.wait_graph.waiting_runs()
        still |= {run.run_id for run in runs if run.run_id in waiting}
        occupied = {run.session_key for run in runs if run.status == "running" and run.run_id in still}
        still |= {run.run_id for run in runs if run.session_key in occupied}
    imported = tuple(stream for stream in _imported(service) if stream not in frozen.flows)
    return Standing(
        goes_on=any(run.run_id not in still for run in runs)
        or _flows_go_on(service, {*frozen.flows, *aside, *imported}, still),
        missing=tuple(sorted({runner_of(run.session_key) for run in parked})),
        held=(
            *(HeldAt(run=one.run_id, step=one.held or "reply", turn=one.turns) for one in held),
            *(HeldAt(run=call.run_id, step="call", hold=call.hold_id) for call in calls),
        ),
        set_aside=aside,
        imported=imported,
    )


def _imported(service: Service) -> Iterator[str]:
    flows = service.reader.flows
    exchanges = (flows.exchange(stream.partition(":")[2]) for stream in flows.open_exchanges())
    spawns = (flows.spawn(stream.partition(":")[2]) for stream in flows.open_spawns())
    forked = service.log.forked
    cut = service.log.head() if forked is None else forked.position
    return (
        flow.stream
        for flow in (*exchanges, *spawns)
        if flow is not None
        and flow.inferred
        and flow.position <= cut  # nothing came of it here
        and (flow.awaits is None or service.reader.runs.get(flow.awaits) is None)
    )


def _flows_go_on(service: Service, apart: Collection[str], still: Collection[str]) -> bool:
    """Whether an open flow has anything to do, but for those `apart`: no run that stands still, no release to wait for."""
    flows, world = service.reader.flows, service.world
    for stream in flows.open_exchanges():
        exchange = flows.exchange(stream.partition(":")[2])
        if (
            stream not in apart
            and exchange is not None
            and exchange.held is None
            and exchange.awaits not in still
        ):
            return True
    for stream in flows.open_spawns():
        spawn = flows.spawn(stream.partition(":")[2])
        # One that waits for no run waits until its requester is free to hear of it.
        is_waiting = spawn is None or (bool(still) if spawn.awaits is None else spawn.awaits in still)
        if stream not in apart and not is_waiting:
            return True
    deliveries = (
        flows.delivery(stream.partition(":")[2]) for stream in flows.open_deliveries() if stream not in apart
    )
    return any(
        delivery is not None
        and delivery.session_key not in apart  # whose session can't be asked whether it may go out
        and (world.fork.sealed(delivery.channel) or world.channels.has(delivery.channel))
        for delivery in deliveries
    )
