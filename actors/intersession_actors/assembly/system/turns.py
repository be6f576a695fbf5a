"""Makes an agent's turn for one attempt of a run, with the tools bound to its session."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial

from intersession_actors.calls.service.callers import Caller, CallingRun
from intersession_actors.calls.service.service import Service
from intersession_actors.calls.tools.recorder import RunRecorder
from intersession_actors.calls.tools.toolbox import Tools
from intersession_actors.outside.agents.runners import runner_of
from intersession_actors.outside.agents.turn import Turn
from intersession_actors.outside.attachments.workspaces import OwnFiles, own_files
from intersession_actors.owners.session.state import Running
from intersession_actors.owners.session.turn_of import turn_of
from intersession_actors.rules.policy.windows import ModelWindow, takes_images
from intersession_actors.rules.prompt.transcript import RunContext
from intersession_actors.running.host.door_threads import DoorThreads
from intersession_events.basics import ids
from intersession_events.basics.keys.key import SessionKey
from intersession_events.facts import SessionOpened


class Turns:
    """Makes turns. `threads` block for coroutines, `waiting` lets other agents run while one waits in a tool."""

    def __init__(
        self, service: Service, *, threads: DoorThreads, waiting: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self._service = service
        self._threads = threads
        self._waiting = waiting

    def __call__(self, key: str, running: Running, context: RunContext, opened: SessionOpened | None) -> Turn:
        """Return the turn of an attempt that has just begun."""
        service, run = self._service, running.waiting.queued
        calling = CallingRun(
            run_id=run.run_id,
            attempt=running.attempt,
            budget=running.waiting.budget,
            cause=running.cause,
            model=running.model,
        )
        caller = Caller(name=key, key=key, run=calling)
        tools = Tools(
            service,
            caller,
            threads=self._threads,
            waiting=self._waiting,
            done=context.partial,
            opened=opened,
            offers=running.has_tools,
        )
        return turn_of(
            key,
            running,
            context,
            tools=tools,
            recorder=RunRecorder(service, key, calling, context.partial),
            store=service.log.files,
            pieces=partial(
                service.world.agents.pieces.add,
                key,
                run.run_id,
                running.attempt,
                is_shown=run.step != "compaction",  # a summary is for the model alone
            ),
            takes_images=partial(self._takes_images, key, run.run_id, running),
            own_files=partial(self._files, key, None if opened is None else opened.spawn_id),
            forked=service.log.forked is not None,
        )

    def _takes_images(self, key: str, run_id: str, running: Running) -> bool:
        agents, runner = self._service.world.agents, runner_of(key)
        said = agents.window(runner, run_id, running.attempt)
        known = said if isinstance(said, ModelWindow) else None
        return takes_images(self._service.config, runner, running.model, known)

    def _files(self, key: str, spawn_id: str | None) -> OwnFiles:
        """Return an agent's files, on demand: most agents never look."""
        log, agent_id = self._service.log, SessionKey.recorded(key).agent_id
        spawn = () if spawn_id is None else log.stream(ids.spawn_stream(spawn_id))
        return own_files(self._service.config, agent_id, log.log_id, spawn)
