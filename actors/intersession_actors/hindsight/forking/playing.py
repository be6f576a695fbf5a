"""Makes forks, chooses their agents, and continues them: shared by all doors (FORK-4, FORK-8, FORK-10)."""

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from intersession_actors.calls.service.reader import Reader
from intersession_actors.calls.service.service import Service
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.hindsight.forking.agents import EVERY, RECORDED, AgentSpecs
from intersession_actors.hindsight.forking.carrying import Stopping, carry_on
from intersession_actors.hindsight.forking.describing import ForkResult
from intersession_actors.hindsight.forking.edits import check_edits
from intersession_actors.hindsight.forking.imports import attempts_of, is_imported
from intersession_actors.hindsight.forking.making import MadeFork, Wanted, make_fork
from intersession_actors.hindsight.forking.outcomes import agent_ids
from intersession_actors.hindsight.forking.overlay import Merged, check_settings, merged, without_effect
from intersession_actors.hindsight.forking.repeating import RecordedOrder, RecordedReleases
from intersession_actors.outside.agents.agents import Agent, as_function, function_of
from intersession_actors.outside.agents.configured import ConfiguredAgent
from intersession_actors.outside.agents.recorded import Divergence, OnDivergence
from intersession_actors.outside.agents.recording import Recording
from intersession_actors.outside.agents.runners import runner_of
from intersession_actors.outside.agents.script import script_file
from intersession_actors.outside.agents.turn import Turn
from intersession_actors.rules.config.config import Config, load_config
from intersession_actors.rules.errors import ToolRefused
from intersession_events import facts
from intersession_events.copies.forks.files import remove_fork
from intersession_events.stores.portable.log import PortableLog

AgentsById = Mapping[str, "str | Agent"]
"""Agents by id, each by a SPEC or itself; `*` is for all others."""

_SCRIPT: Final = "script:"
_ITSELF: Final = "an agent of its own"
"""What the event says of an agent that was given itself, and not by a SPEC."""


class CarriedSystem(Protocol):
    """The part of a `SessionSystem` that a fork uses."""

    @property
    def service(self) -> Service:
        """Its parts."""
        ...

    def close(self, grace: float | None = None) -> None:
        """Stop it."""
        ...


class Cast(NamedTuple):
    """The agents of a fork, and its configuration. `stopping` knows where a recording ended."""

    agents: dict[str, Agent]
    stopping: Stopping
    config: Config


class Playing(NamedTuple):
    """How a fork is continued.

    `on_divergence` is what a recorded agent does where the recording ends: `stop`, `live` (the host's agent of that id
    answers) or `script:FILE`. `loose`: the place of a turn is enough to find its answer.
    """

    agents: AgentsById
    on_divergence: str = "stop"
    loose: bool = False


S = TypeVar("S", bound=CarriedSystem)


class Opened(NamedTuple, Generic[S]):
    """A fork with the system that runs on it."""

    made: MadeFork
    system: S
    stopping: Stopping

    def carried_on(
        self, timeout: float | None = None, *, ending: Callable[[], bool] | None = None
    ) -> ForkResult:
        """Continue the fork until it has ended or stands still, and close its system. Blocks.

        `timeout` in seconds; None is no limit. Where `ending` says so, nobody waits any longer.
        """
        made, system = self.made, self.system
        try:
            carried = carry_on(
                system.service, made.run, stopping=self.stopping, timeout=timeout, ending=ending
            )
            reader, found = system.service.reader, carried.divergence
            if found is None:
                return ForkResult(made, carried)
            run = reader.runs.get(found.run_id)
            return ForkResult(
                made, carried, View(reader).at(reader.log.head() if run is None else run.position)
            )
        finally:
            system.close(grace=0)


Opens = Callable[[MadeFork, Cast], CarriedSystem]
"""Starts a system on a fork."""


class Forker:
    """Forks the runs of one log, which `reader` reads.

    `config` is what a fork runs under, None for what was in force where it is cut, with the settings of the file `over` on top;
    `named` are the agents of the host. From `afar` neither files nor modules of this machine can be named.
    """

    def __init__(
        self,
        log: PortableLog,
        reader: Reader,
        *,
        config: Config | None,
        new_id: Callable[[], str],
        named: Mapping[str, Agent] | None = None,
        afar: bool = False,
        over: Path | None = None,
    ) -> None:
        self._over = over
        self._log = log
        self._reader = reader
        self._config = config
        self._new_id = new_id
        self._named = dict(named or {})
        self._afar = afar
        self._recordings: dict[str, Recording] = {}
        """By the id of the imported flow whose answers are in it; of no such flow by none."""
        self._reading = threading.Lock()

    def make(self, wanted: Wanted, agents: AgentsById) -> MadeFork:
        """Make a fork. Its agents count as edits too.

        Raises:
            ToolRefused: there is no such run, place or recorded agent, or an edit is not possible there or from afar.
            ConfigError: a setting is invalid.
            ForkFailed: the file can't be written.
        """
        check_edits(wanted.edits)
        wanted = wanted._replace(edits=tuple(map(self._in_full, wanted.edits)))
        # Where it is cut is not known yet; whether a setting is one does not depend on that.
        check_settings(self._config or load_config(self._over).config, wanted.edits, afar=self._afar)
        given = {edit.key: edit.value for edit in wanted.edits if edit.kind == "agent"}
        notes = (*self._unknown({**given, **agents}), *without_effect(wanted.edits))
        told = tuple(
            facts.ForkEdit(kind="agent", key=agent_id, value=spec if isinstance(spec, str) else _ITSELF)
            for agent_id, spec in agents.items()
            if agent_id not in given
        )
        made = make_fork(
            self._log,
            wanted._replace(edits=(*wanted.edits, *told)),
            fork_id=self._new_id(),
            now_ms=self._reader.clock.now_ms(),
        )
        return made._replace(notes=(*made.notes, *notes))

    def configured(self, at: int) -> Merged:
        """Return the configuration for a fork that is cut at a position, and the file's changes of it.

        Raises:
            ConfigError: the file can't be read, or does not fit.
        """
        if self._config is not None:
            return Merged(self._config)
        recorded = View(self._reader).config_at(at) or load_config(None).config
        return Merged(recorded) if self._over is None else merged(recorded, self._over)

    def open(self, made: MadeFork, playing: Playing, opens: Callable[[MadeFork, Cast], S]) -> Opened[S]:
        """Start a system on a fork; if that fails, the fork is deleted.

        Raises:
            ToolRefused: an agent is invalid, or there is no such way to go on.
            ConfigError: a model is not configured, or a setting is invalid.
        """
        try:
            cast = self._cast(made, playing)
            return Opened(made, opens(made, cast), cast.stopping)
        except BaseException:
            remove_fork(Path(made.path))
            raise

    def carry(self, made: MadeFork, playing: Playing, opens: Opens) -> ForkResult:
        """Continue a fork until it has ended or stands still. Blocks.

        Raises:
            ToolRefused: as `open`.
            ConfigError: as `open`.
        """
        return self.open(made, playing, opens).carried_on()

    def _cast(self, made: MadeFork, playing: Playing) -> Cast:
        given = {edit.key: edit.value for edit in made.edits if edit.kind == "agent"} | dict(playing.agents)
        releases = (
            RecordedReleases(self._log.again, after=made.position, loose=playing.loose)
            if RECORDED in given.values()
            else None
        )
        # What was edited comes out otherwise: nobody waits for what may not come there.
        is_as_it_was = {edit.kind for edit in made.edits} <= {"agent"} and {*given.values()} == {RECORDED}
        order = RecordedOrder(self._log.again, after=made.position) if is_as_it_was else None
        stopping = Stopping(self._otherwise(playing.on_divergence), releases, order)
        config = self.configured(made.position).config
        specs = AgentSpecs(
            named=self._named,
            models=lambda model: ConfiguredAgent(config, model),
            recording=lambda: self._recorded(made.forked),
            after=made.position,
            loose=playing.loose,
            afar=self._afar,
        )
        every = given.pop(EVERY, None)
        if every is not None:
            for agent_id in agent_ids(self._reader):
                given.setdefault(agent_id, every)
        agents = {agent_id: specs.agent(agent_id, spec, stopping) for agent_id, spec in given.items()}
        return Cast(agents, stopping, config)

    def _in_full(self, edit: facts.ForkEdit) -> facts.ForkEdit:
        """Return an edit with the canonical key of its session, if it is for one: it may be called by any name that is shown."""
        if edit.kind != "inject":
            return edit
        try:
            key = View(self._reader).session(edit.key, field="--inject")
        except ToolRefused:
            return edit  # the fork may not have it, and says what it has
        return facts.ForkEdit(kind="inject", place=edit.place, key=key, value=edit.value)

    def _unknown(self, agents: AgentsById) -> list[str]:
        """Refuse an invalid agent, or one that was never recorded; say which ids the log does not know yet: they may be mistyped, or come later."""
        for agent_id, given in agents.items():
            if not isinstance(given, str):
                function_of(f"agents[{agent_id!r}]", given)
        specs = [agent_id for agent_id, spec in agents.items() if isinstance(spec, str) and agent_id != EVERY]
        if not specs:
            return []
        known = {*agent_ids(self._reader), *self._named}
        for agent_id in specs:
            if agent_id not in known and agents[agent_id] == RECORDED:
                raise ToolRefused(
                    "unknown_agent",
                    f"agent {agent_id[:128]!r}: there is no such agent here; there are {', '.join(sorted(known))}",
                )
        return [
            f"agent {agent_id[:128]!r}: nobody was called that up to here, so it answers only if somebody asks for it in the fork; "
            f"there are {', '.join(sorted(known))}"
            for agent_id in specs
            if agent_id not in known
        ]

    def _recorded(self, forked: str) -> Recording:
        """Return what agents answered in the source; in an imported flow only in that one, which is forked."""
        with self._reading:
            # The source may be closed while the fork goes on.
            known = self._recordings.get("") or Recording(self._log.again)
            self._recordings[""] = known
            flow = View(self._reader).flow(forked)
            if not is_imported(flow):
                return known
            if forked not in self._recordings:
                imported = attempts_of(self._reader.log, flow)
                self._recordings[forked] = known.with_also(imported)
            return self._recordings[forked]

    def _otherwise(self, on_divergence: str) -> OnDivergence | None:
        if on_divergence == "stop":
            return None
        if on_divergence.startswith(_SCRIPT) and not self._afar:
            script = script_file(Path(on_divergence.removeprefix(_SCRIPT)).expanduser())
            return lambda turn, _: script(turn)
        if on_divergence == "live":
            return self._live
        ways = "stop or live" if self._afar else "stop, live or script:FILE"
        raise ToolRefused(
            "invalid_request", f"onDivergence: {on_divergence[:64]!r} is no way to go on, give {ways}"
        )

    def _live(self, turn: Turn, divergence: Divergence) -> object:
        del divergence
        runner = runner_of(turn.session_key)
        agent = self._named.get(runner)
        if agent is None:
            raise LookupError(f"no agent {runner!r} of the host is here to go on")
        return as_function(agent)(turn)
