"""Puts together what a system has of workers: its side of the queue beside the log, and the agents and channels that workers have."""

from collections.abc import Callable, Sequence
from functools import partial, reduce

import msgspec

from intersession_actors.assembly.system.recovery import wake_agent
from intersession_actors.calls.service.service import Service
from intersession_actors.outside.agents.result import AgentResult
from intersession_actors.outside.attachments.contents import store_reply_files
from intersession_actors.outside.channels.caller import part_key
from intersession_actors.outside.channels.channels import ThreadWanted
from intersession_actors.outside.channels.offered import Offered, OfferedText, OfferedThread, text_offered
from intersession_actors.outside.channels.remote import RemoteChannels
from intersession_actors.outside.workers.desk import Desk
from intersession_actors.outside.workers.remote import SECRET_BYTES, RemoteAgents
from intersession_actors.owners.delivery.effects import call
from intersession_actors.owners.delivery.rules import Delivery
from intersession_actors.owners.delivery.rules import fold as fold_delivery
from intersession_actors.owners.session.commands import RunReturned
from intersession_actors.owners.spawn.rules import Spawn
from intersession_actors.owners.spawn.rules import fold as fold_spawn
from intersession_actors.owners.streams.commands import Resume
from intersession_actors.rules.config.settings import milliseconds
from intersession_actors.running.runtime.runtime import Runtime
from intersession_events.log.recorded import Recorded
from intersession_events.log.work_queue import QueuedCall


def remote_agents(
    service: Service,
    runtime: Runtime,
    *,
    knows: Callable[[str], None],
    listens: Callable[[Callable[[Sequence[Recorded]], None]], None],
) -> RemoteAgents:
    """Return the agents that workers have. `knows` is told of each that one announces; `listens` has a listener told of ends on record."""
    log, agents, config = service.log, service.world.agents, service.config
    log.work.alive_s = config.runs.worker_alive_seconds
    desk = Desk(
        log.work,
        threads=runtime.threads,
        clock=service.clock,
        alive_s=config.runs.worker_alive_seconds,
        begins=lambda: listens(remote.take),
    )
    remote = RemoteAgents(
        desk,
        log,
        agents,
        changed=runtime.threads.changed,
        entropy=runtime.entropy,
        knows=knows,
        wake=partial(wake_agent, service),
        late=partial(_late, service),
        most_bytes=config.runs.reply_max_bytes,
        store=lambda files: store_reply_files(log, service.config.files, files),
    )
    return remote


def remote_channels(service: Service, desk: Desk, entropy: Callable[[int], bytes]) -> RemoteChannels:
    """Return the channels that workers have, and let the caller of channels know them."""
    config, log = service.config, service.log
    remote = RemoteChannels(
        desk,
        timers=service.world.time.timers,
        timeout_ms=milliseconds(config.deliveries.timeout_seconds),
        standing=partial(service.world.mail.on_disk, log.work.standing),
        new_secret=lambda: entropy(SECRET_BYTES).hex(),
        only=lambda name: service.config.channels.get(name, {}).get("worker") is True,
    )
    service.world.channels.remote = remote
    desk.watch(remote.heard)
    return remote


def begin(
    service: Service, agents: RemoteAgents, channels: RemoteChannels, wake: Callable[[str], None]
) -> Sequence[QueuedCall]:
    """Go on with the calls that workers have since before this start (WORK-4, WORK-16), and return what was in the queue.

    Must run before sessions and flows are told to go on. A channel that is heard of later has its texts told by `wake`.

    Raises:
        StoreUnavailable: the store is away.
    """
    found = agents.begin(expects=service.config.expects_workers)
    if service.config.expects_workers:
        channels.heard(service.log.work.workers())
    agents.desk.done(
        queued.call for queued in found if queued.kind == "channel" and not _adopt(service, queued)
    )
    channels.wake = wake
    return found


def _adopt(service: Service, queued: QueuedCall) -> bool:
    """Go on with the call of a channel; False if its flow waits for no outcome of it."""
    offered = _asked_of_channel(service, queued)
    if offered is None:
        return False
    resume = partial(service.supervisor.tell_flow, queued.stream, Resume(stream=queued.stream))
    key = offered.outbound.key if isinstance(offered, OfferedText) else offered.wanted.key
    service.world.channels.adopt(queued, offered, key, resume)
    return True


def _asked_of_channel(service: Service, queued: QueuedCall) -> Offered | None:
    """Return what a call of a channel is about; None where its flow waits for no outcome of it."""
    stream, prefix = queued.stream, queued.stream.partition(":")[0]
    if prefix == "delivery":
        text: Delivery | None = reduce(fold_delivery, service.log.stream(stream), None)
        if text is None or (text.phase, text.attempt) != ("started", queued.attempt):
            return None
        offered = text_offered(call(text, None, text.attempt).outbound, begins=text.sent, head="")
        offered = msgspec.structs.replace(offered, files=text.decided.files)
        return offered if queued.id == part_key(text.decided.key, text.sent) else None
    if prefix == "spawn":
        spawn: Spawn | None = reduce(fold_spawn, service.log.stream(stream), None)
        asked = None if spawn is None or spawn.phase != "preparing" else spawn.accepted.thread
        if asked is not None and asked.key == queued.id:
            return OfferedThread(wanted=msgspec.convert(asked, ThreadWanted, from_attributes=True))
    return None


def _late(service: Service, run_id: str, attempt: int, result: AgentResult, begun: Recorded) -> None:
    """Put it on record that a worker answered late; nobody uses that."""
    service.world.agents.results.keep(run_id, attempt, result)
    key = begun.stream.partition(":")[2]
    returned = RunReturned(
        run_id=run_id,
        attempt=attempt,
        result=result,
        causation=begun.id,
        correlation=begun.correlation,
    )
    service.world.mail.tell_session(key, returned)
