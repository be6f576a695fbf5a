"""The verb `hosts`: the hosts of a log now: its writer, standbys, workers and doors, and the calls under way (HOSTS-1)."""

import os
import socket
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Final, Literal, TypedDict

import msgspec

from intersession_actors.hindsight.debugger.lists.paging import most_of
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.outside.agents.runners import is_agent, runner_of
from intersession_events.basics.errors import StoreUnavailable
from intersession_events.basics.machine import VERSION
from intersession_events.facts import LogOpened, ready
from intersession_events.log.log import Log
from intersession_events.log.other_words import as_it_is
from intersession_events.log.work_queue import CallKind, QueuedCall, Worker
from intersession_events.stores.hosts.host import Host
from intersession_events.stores.portable.log import PortableLog
from intersession_projections.basics.spans import stream_backwards
from intersession_projections.copies.forks.frozen_work import frozen_in
from intersession_projections.views.run_outcomes.outcome import RunOutcome

CallState = Literal["waiting", "underWay", "silent", "answered"]
"""How a call stands: no worker has it, a worker has it, its worker has said nothing for too long, its answer is not on record yet."""


@ready
class HostsOf(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The arguments of `hosts`; null counts as missing."""

    limit: Annotated[
        float | None,
        msgspec.Meta(description="At most this many calls, the oldest, 1 to 1000; 50 if not given."),
    ] = None


class WriterAnswer(TypedDict):
    """The log's writer. `version` is that of the last process that opened the log to write."""

    host: str
    pid: int
    version: str
    epoch: int
    gateway: str | None


class PresentAnswer(TypedDict):
    """A standby or a door that is alive. `lag` is how many events a door had still to read when it last said so; None for a standby."""

    name: str
    host: str
    pid: int
    version: str
    gateway: str | None
    sinceMs: int
    lag: int | None


class WorkerAnswer(TypedDict):
    """A worker that is alive: it makes `seats` calls at once, and now `taken`. One that is `draining` takes no more."""

    name: str
    host: str
    version: str
    agents: list[str]
    channels: list[str]
    seats: int
    taken: int
    draining: bool
    sinceMs: int


class ServedAnswer(TypedDict):
    """How many calls of an agent or a channel stand how, and which workers have it.

    `parked` are runs that no call was made for yet, since neither the writer nor a worker has their agent.
    """

    kind: CallKind
    name: str
    workers: list[str]
    waiting: int
    underWay: int
    silent: int
    answered: int
    parked: int


class CallAnswer(TypedDict):
    """A call in the queue: an attempt of a run (then `sessionKey` is its session), or of a delivery."""

    kind: CallKind
    id: str
    attempt: int
    name: str
    sessionKey: str | None
    state: CallState
    worker: str | None
    offeredMs: int


class HostsAnswer(TypedDict):
    """The hosts of a log, each list by name. `underWay` are calls, oldest first; `count` is the number of all.

    `unread` is why only the writer is named: no process of this version has written the log yet, or this role has no right.
    """

    position: int
    unread: str | None
    writer: WriterAnswer | None
    standbys: list[PresentAnswer]
    workers: list[WorkerAnswer]
    doors: list[PresentAnswer]
    calls: list[ServedAnswer]
    underWay: list[CallAnswer]
    count: int


def hosts(view: View, given: HostsOf) -> HostsAnswer:
    """Return the hosts of the log. The answer tells of all sessions and names machines, so only the operator may ask.

    Raises:
        ToolRefused: the limit is no number.
    """
    found = hosts_of(view.log, view.reader.runs.open_runs(), most=most_of(given.limit))
    for call in found["underWay"]:
        if call["sessionKey"] is not None:
            view.is_seen(call["sessionKey"])
    return found


def hosts_of(log: Log, open_runs: Iterable[RunOutcome], *, most: int) -> HostsAnswer:
    """Return the hosts of a log, and `most` of its calls. `open_runs` are all that wait or are under way."""
    stored = as_it_is(log)
    writer, others, workers, calls = None, list[Host](), list[Worker](), list[QueuedCall]()
    unread: str | None = None
    if isinstance(stored, PortableLog):
        writer = _writer(stored)
        try:
            others, workers = [*stored.hosts.alive()], [*stored.work.workers()]
            calls = [call for call in stored.work.standing() if not call.is_over]
        except StoreUnavailable as error:  # where the store itself is away, `head` says so below
            unread = str(error)
    return {
        "position": log.head(),
        "unread": unread,
        "writer": writer,
        "standbys": [_present(host) for host in others if host.kind == "standby"],
        "workers": [_worker(worker) for worker in workers],
        "doors": [_present(host) for host in others if host.kind == "door"],
        "calls": _served(workers, calls, _parked(log, open_runs)),
        "underWay": [_call(call) for call in calls[:most]],
        "count": len(calls),
    }


def _writer(log: PortableLog) -> WriterAnswer | None:
    """Return the log's writer: this process, or the one that the store names."""
    if log.epoch:
        return {
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "version": VERSION,
            "epoch": log.epoch,
            "gateway": log.gateway,
        }
    holder = log.written_by()
    if holder is None:
        return None
    opened = (each.event for each in stream_backwards(log, _LOG, None))
    version = next((event.version for event in opened if isinstance(event, LogOpened)), "")
    return {
        "host": holder.host or socket.gethostname(),
        "pid": holder.pid,
        "version": version,
        "epoch": holder.epoch,
        "gateway": holder.gateway,
    }


_LOG: Final = "log"


def _present(host: Host) -> PresentAnswer:
    return {
        "name": host.name,
        "host": host.machine,
        "pid": host.pid,
        "version": host.version,
        "gateway": host.address,
        "sinceMs": host.since,
        "lag": host.behind,
    }


def _worker(worker: Worker) -> WorkerAnswer:
    return {
        "name": worker.name,
        "host": worker.host,
        "version": worker.version,
        "agents": sorted(worker.agents),
        "channels": sorted(worker.channels),
        "seats": worker.seats,
        "taken": worker.taken,
        "draining": worker.is_draining,
        "sinceMs": worker.since,
    }


def _call(call: QueuedCall) -> CallAnswer:
    return {
        "kind": call.kind,
        "id": call.id,
        "attempt": call.attempt,
        "name": call.name,
        "sessionKey": call.stream.partition(":")[2] if call.kind == "agent" else None,
        "state": _state(call),
        "worker": call.worker,
        "offeredMs": call.offered,
    }


def _state(call: QueuedCall) -> CallState:
    if call.is_answered:
        return "answered"
    if call.worker is None:
        return "waiting"
    return "underWay" if call.is_alive else "silent"


def _parked(log: Log, open_runs: Iterable[RunOutcome]) -> Counter[str]:
    """Return how many runs wait by agent, in sessions that have nothing under way: nobody has their agent."""
    runs = list(open_runs)
    busy = {run.session_key for run in runs if run.status != _QUEUED}
    frozen = frozen_in(log).runs
    return Counter(
        runner_of(run.session_key)
        for run in runs
        if run.session_key not in busy and run.run_id not in frozen and is_agent(runner_of(run.session_key))
    )


_QUEUED: Final = "queued"


def _served(
    workers: Sequence[Worker], calls: Sequence[QueuedCall], parked: Mapping[str, int]
) -> list[ServedAnswer]:
    states: dict[tuple[CallKind, str], Counter[str]] = {}
    for call in calls:
        states.setdefault((call.kind, call.name), Counter())[_state(call)] += 1
    has: dict[tuple[CallKind, str], list[str]] = {}
    for worker in workers:
        for name in worker.agents:
            has.setdefault(("agent", name), []).append(worker.name)
        for name in worker.channels:
            has.setdefault(("channel", name), []).append(worker.name)
    of_parked: set[tuple[CallKind, str]] = {("agent", name) for name in parked}
    return [
        {
            "kind": kind,
            "name": name,
            "workers": has.get((kind, name), []),
            "waiting": stand["waiting"],
            "underWay": stand["underWay"],
            "silent": stand["silent"],
            "answered": stand["answered"],
            "parked": parked.get(name, 0) if kind == "agent" else 0,
        }
        for kind, name in sorted(states.keys() | has.keys() | of_parked)
        for stand in [states.get((kind, name), Counter[str]())]
    ]
