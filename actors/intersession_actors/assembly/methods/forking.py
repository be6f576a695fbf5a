"""The methods `forks.*`: forks of the host's runs, made and continued beside it, listed and deleted (FORK-9, FORK-10)."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

from intersession_actors.assembly.methods.params import (
    ForkParams,
    ForksParams,
    RemoveForkParams,
    ScriptParams,
)
from intersession_actors.calls.service.arguments import read_arguments
from intersession_actors.calls.service.callers import OPERATOR, Call
from intersession_actors.calls.service.pending import Pending, Result, finished
from intersession_actors.calls.service.reader import Reader
from intersession_actors.hindsight.forking import on_call
from intersession_actors.hindsight.forking.door import ForkDoor
from intersession_actors.outside.agents.agents import Agent
from intersession_actors.outside.agents.script import ScriptLine, script_agent
from intersession_actors.running.runtime.threads import Threads
from intersession_events.basics.plain_json import JsonMapping
from intersession_events.facts import ForkEdit
from intersession_projections.questions.places.runs_named import flow_id


class GatewayForks:
    """Forks for the gateway's callers: the operator alone, since a fork holds whole sessions."""

    def __init__(self, reader: Reader, door: ForkDoor) -> None:
        self._reader = reader
        self._door = door

    def make(self, call: Call, params: JsonMapping) -> Result | Pending:
        """Fork a run, and continue the fork: the answer has its outcome, or says that it is still running."""
        given = read_arguments(ForkParams, params)
        with on_call.ForkViews(on_call.View(self._reader, call.requester)) as forks:
            return self._made(call, given, forks)

    def _made(self, call: Call, given: ForkParams, forks: on_call.ForkViews) -> Result | Pending:
        view, run, at = forks.placed(given.run, given.at, field="run")
        name, place = view.parted(run, at, field="run")
        agents = {agent_id: _agent(spec) for agent_id, spec in given.agents.items()}
        edits = tuple(
            ForkEdit(kind=edit.kind, place=edit.place, key=edit.key, value=edit.value) for edit in given.edits
        )
        wanted = on_call.Wanted(
            flow_id(view.flow(name)),
            view.log.head() if place is None else place,
            edits,
            by=call.caller.name,
            exact=not (given.carry_on or edits or agents),
        )
        playing = on_call.Playing(agents, given.on_divergence, given.loose)
        inside = None if view.reader is self._reader else view.reader
        made, coming = self._door.make(wanted, playing, inside=inside, carry_on=given.carry_on)
        if coming is None:
            return on_call.describe_fork(on_call.ForkResult(made))
        return Pending(
            future=coming,
            timeout=given.timeout_ms / 1000,
            finish=lambda: _how_it_came(made, coming),
            over=lambda: None,  # the fork goes on, whether somebody waits for it or not
        )

    def list(self, call: Call, params: JsonMapping) -> Result:
        """Return the forks of the log, or of a run, the oldest first."""
        given = read_arguments(ForksParams, params)
        run = (
            None if given.run is None else flow_id(on_call.View(self._reader, call.requester).flow(given.run))
        )
        return self._door.listed(run).as_json()

    def remove(self, call: Call, params: JsonMapping) -> Result:
        """Delete a fork, with all files beside its own."""
        del call
        given = read_arguments(RemoveForkParams, params)
        file = self._door.remove(given.fork)
        return {"ok": True, "fork": file.stem, "store": str(file)}


def fork_methods(reader: Reader, door: ForkDoor, threads: Threads) -> Callable[[str, JsonMapping], Result]:
    """Return a function that calls these methods as the operator of a read-only log, beside the process that writes it."""
    forks = GatewayForks(reader, door)
    methods = {"forks.list": forks.list, "forks.make": forks.make, "forks.remove": forks.remove}

    def operate(method: str, params: JsonMapping) -> Result:
        return finished(methods[method](Call(OPERATOR, reader.requester(None)), params), threads)

    return operate


def _agent(spec: str | ScriptParams) -> str | Agent:
    if isinstance(spec, str):
        return spec
    lines = [ScriptLine(reply=line) if isinstance(line, str) else line for line in spec.script]
    return script_agent(lines, "script")


def _how_it_came(made: on_call.MadeFork, coming: Future[on_call.ForkResult]) -> Result:
    if not coming.done():
        return {**on_call.describe_fork(on_call.ForkResult(made)), "state": "running"}
    return on_call.describe_fork(coming.result())
