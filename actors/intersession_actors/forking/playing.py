"""Makes a fork and the agents that answer in it: what Python, the command line and the gateway have in common (FORK-4, FORK-10)."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from intersession_actors.agents import (
    Agent,
    Divergence,
    OnDivergence,
    Recording,
    Turn,
    as_function,
    script_file,
)
from intersession_actors.errors import ToolRefused
from intersession_actors.forking.agents import EVERY, AgentSpecs, Models
from intersession_actors.forking.carrying import Stopping
from intersession_actors.forking.making import MadeFork, Wanted, make_fork
from intersession_actors.forking.outcomes import agent_ids
from intersession_actors.service import Reader
from intersession_events import facts
from intersession_events.stores import SqliteLog

Given = Mapping[str, "str | Agent"]
"""Agents by id, each by a SPEC or itself; `*` is for all others."""

_SCRIPT = "script:"


class Cast(NamedTuple):
    """Who answers in a fork. `stopping` knows where a recording ended."""

    agents: dict[str, Agent]
    stopping: Stopping


class Forker:
    """Forks the runs of one log. `source` writes the file, `reader` is on the same log, with its views.

    `named` are the agents of the host, `models` makes one of a model.
    """

    def __init__(
        self,
        source: SqliteLog,
        reader: Reader,
        *,
        new_id: Callable[[], str],
        entropy: Callable[[int], bytes],
        named: Mapping[str, Agent] | None = None,
        models: Models | None = None,
    ) -> None:
        self._source = source
        self._reader = reader
        self._new_id = new_id
        self._entropy = entropy
        self._named = dict(named or {})
        self._models = models
        self._recording: Recording | None = None

    def make(self, wanted: Wanted, agents: Given) -> MadeFork:
        """Make a fork. Its agents, as far as they are given by a SPEC, are edits of it as well.

        Raises:
            ToolRefused: there is no such run or place, or an edit is not possible there.
            ForkFailed: the file can't be written.
        """
        known = {edit.key for edit in wanted.edits if edit.kind == "agent"}
        told = tuple(
            facts.ForkEdit(kind="agent", key=agent_id, value=spec)
            for agent_id, spec in agents.items()
            if isinstance(spec, str) and agent_id not in known
        )
        return make_fork(
            self._source,
            self._reader.log,
            wanted._replace(edits=(*wanted.edits, *told)),
            fork_id=self._new_id(),
            now_ms=self._reader.clock.now_ms(),
            entropy=self._entropy,
        )

    def cast(
        self, made: MadeFork, agents: Given, *, on_divergence: str = "stop", loose: bool = False
    ) -> Cast:
        """Return who answers in a fork.

        `on_divergence` is what a recorded agent does where the recording ends: `stop`, `live` (the host's agent of that id
        answers) or `script:FILE`. `loose`: the place of a turn is enough to find its answer.

        Raises:
            ToolRefused: an agent is none, or there is no such way to go on.
            ConfigError: a model is not configured.
        """
        given = {edit.key: edit.value for edit in made.edits if edit.kind == "agent"} | dict(agents)
        stopping = Stopping(self._otherwise(on_divergence))
        specs = AgentSpecs(
            named=self._named,
            models=self._models,
            recording=self._recorded,
            after=made.position,
            loose=loose,
        )
        every = given.pop(EVERY, None)
        if every is not None:
            for agent_id in agent_ids(self._reader):
                given.setdefault(agent_id, every)
        return Cast(
            {agent_id: specs.agent(agent_id, spec, stopping) for agent_id, spec in given.items()}, stopping
        )

    def _recorded(self) -> Recording:
        if self._recording is None:
            lineage = [fork.log_id for fork in self._source.lineage.forks]
            self._recording = Recording.of(self._reader.log, lineage=lineage)
        return self._recording

    def _otherwise(self, on_divergence: str) -> OnDivergence | None:
        if on_divergence == "stop":
            return None
        if on_divergence.startswith(_SCRIPT):
            script = script_file(Path(on_divergence.removeprefix(_SCRIPT)).expanduser())
            return lambda turn, _: script(turn)
        if on_divergence == "live":
            return self._live
        raise ToolRefused(
            "invalid_request",
            f"onDivergence: {on_divergence[:64]!r} is no way to go on, give stop, live or script:FILE",
        )

    def _live(self, turn: Turn, divergence: Divergence) -> object:
        del divergence
        agent = self._named.get(turn.agent_id)
        if agent is None:
            raise LookupError(f"no agent {turn.agent_id!r} of the host is here to go on")
        return as_function(agent)(turn)
