"""Puts together what a system has of workers: its side of the queue beside the log, and the agents that workers have."""

from collections.abc import Callable, Sequence
from functools import partial

from intersession_actors.assembly.system.recovery import wake_agent
from intersession_actors.calls.service.service import Service
from intersession_actors.outside.agents.result import AgentResult
from intersession_actors.outside.workers.desk import Desk
from intersession_actors.outside.workers.remote import RemoteAgents
from intersession_actors.owners.session.commands import RunReturned
from intersession_actors.running.runtime.runtime import Runtime
from intersession_events.log.recorded import Recorded


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
    )
    return remote


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
