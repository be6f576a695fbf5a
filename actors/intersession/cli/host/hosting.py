"""Makes a command the host of a log, the operator beside its host, or the maker of its forks."""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, cast

from intersession.cli.host.beside import host_beside
from intersession.cli.host.reading import reader_of, store_url
from intersession.cli.shell.answer import Common, Reading, UsageError
from intersession.cli.shell.run import use_level
from intersession_actors.assembly.methods.forking import fork_methods
from intersession_actors.assembly.system.follow import followed
from intersession_actors.assembly.system.system import SessionSystem
from intersession_actors.calls.service.reader import Reader
from intersession_actors.hindsight.forking.door import ForkDoor
from intersession_actors.hindsight.forking.making import MadeFork
from intersession_actors.hindsight.forking.playing import Cast, Forker
from intersession_actors.outside.agents.agents import Agent
from intersession_actors.outside.agents.configured import configured_agents
from intersession_actors.outside.channels.channels import AnyChannel
from intersession_actors.rules.config.config import load_config
from intersession_actors.running.host.extras import named_object
from intersession_actors.running.runtime.threads import MachineThreads
from intersession_events.basics.machine import random_id
from intersession_events.basics.plain_json import JsonMapping, JsonObject
from intersession_events.log.recorded import Recorded
from intersession_events.stores.portable.log import PortableLog

_EXPECTED: Final = (
    "give module:NAME, where NAME is a dict of agents by id, or a function that takes the store's URL and returns a "
    "SessionSystem"
)


def hosted(common: Common, *, agents: str | None, config: Path | None) -> SessionSystem:
    """Return a running system on the log, which is its writer as long as the command lasts.

    Raises:
        UsageError: what `--agents` names is not there, or is neither agents nor a function that makes a system.
        StoreLocked: somebody else is the writer.
    """
    return making(common, agents=agents, config=config)()


def making(common: Common, *, agents: str | None, config: Path | None) -> Callable[[], SessionSystem]:
    """Return a function that does the same, once what `--agents` names is imported, and the configuration read.

    Raises:
        UsageError: what `--agents` names is not there, or is neither agents nor a function that makes a system.
    """
    found = None if agents is None else _imported(agents)
    if callable(found):
        if config is not None:
            raise UsageError(
                f"--config: {agents} makes a system with a configuration of its own, leave one of them out"
            )
        return partial(_made, found, common, agents or "")
    settings = load_config(config).config
    use_level(settings.logging)
    return partial(SessionSystem, store_url(common, settings), agents=found or {}, config=settings)


def named_agents(spec: str) -> Mapping[str, Agent]:
    """Return the dict of agents that `--agents` names, for a command that makes no system.

    Raises:
        UsageError: it is not there, or is something else.
    """
    return cast("Mapping[str, Agent]", _dict_of(spec, "agents", "by id"))


def named_channels(spec: str) -> Mapping[str, AnyChannel]:
    """Return the dict of channels that `--channels` names.

    Raises:
        UsageError: it is not there, or is something else.
    """
    return cast("Mapping[str, AnyChannel]", _dict_of(spec, "channels", "by name"))


def _dict_of(spec: str, option: str, by: str) -> Mapping[str, object]:
    expected = f"give module:NAME, where NAME is a dict of {option} {by}"
    try:
        found = named_object(spec)
    except ImportError as error:
        raise UsageError(f"--{option}: {spec!r}: {error}; {expected}") from error
    if isinstance(found, Mapping):
        return cast("Mapping[str, object]", found)
    raise UsageError(f"--{option}: {spec!r} is a {type(found).__name__}; {expected}")


def _imported(spec: str) -> Mapping[str, Agent] | Callable[[str | None], object]:
    try:
        found = named_object(spec)
    except ImportError as error:
        raise UsageError(f"--agents: {spec!r}: {error}; {_EXPECTED}") from error
    if isinstance(found, Mapping):
        return cast("Mapping[str, Agent]", found)
    if callable(found):
        return cast("Callable[[str | None], object]", found)
    raise UsageError(f"--agents: {spec!r} is a {type(found).__name__}; {_EXPECTED}")


def _made(factory: Callable[[str | None], object], common: Common, spec: str) -> SessionSystem:
    system = factory(store_url(common))
    if isinstance(system, SessionSystem):
        return system
    raise UsageError(f"--agents: {spec} returned a {type(system).__name__}; {_EXPECTED}")


class Operating(NamedTuple):
    """The operator's access to a log. `call` calls a method of the system; a refusal is raised as `ToolRefused`."""

    reader: Reader
    call: Callable[[str, JsonMapping], JsonObject]
    here: bool
    """Whether this command is the log's host, so that what is begun ends with it."""

    def events(self, after: int, *, quiet_s: float) -> Iterator[Recorded]:
        """Iterate over the events behind a position, until none came for this many seconds."""
        return followed(self.reader.log, after, timeout=quiet_s)


@contextmanager
def operator_of(reading: Reading, *, agents: str | None = None) -> Generator[Operating]:
    """Act as the operator of a log, like `send`: a reachable host does the work, else this command.

    `agents` names the agents here; then this command is the host in any case.
    """
    with reader_of(reading) as reader:
        beside = host_beside(reading) if agents is None else None
        if beside is not None:
            with beside:
                yield Operating(reader, beside.call, here=False)
            return
    with hosted(reading, agents=agents, config=reading.config) as system:
        yield Operating(system.service.reader, system.gateway.perform, here=True)


@contextmanager
def forking_beside(reader: Reader, reading: Reading) -> Generator[Callable[[str, JsonMapping], JsonObject]]:
    """Yield a function that calls the methods of forks on a read-only log, beside the process that writes it.

    Agents that the configuration has answer in them. What goes on at the end of the block is given up.
    """
    named = configured_agents(load_config(reading.config).config).agents
    threads = MachineThreads()

    def forker(inside: Reader | None) -> Forker:
        return forker_of(inside or reader, reading, named, afar=True)

    door = ForkDoor(reader.log, threads, forker=forker, opens=opened_fork)
    try:
        yield fork_methods(reader, door, threads)
    finally:
        door.stop(1.0)


def opened_fork(made: MadeFork, cast: Cast, deliver: Sequence[str] = ()) -> SessionSystem:
    """Return the system that continues a fork; its channels are sealed except the named ones."""
    return SessionSystem(
        made.path, agents=cast.agents, config=cast.config, deliver=deliver, stopping=cast.stopping
    )


def forker_of(reader: Reader, reading: Reading, named: Mapping[str, Agent], *, afar: bool = False) -> Forker:
    """Return the maker of forks of the log's runs; forks run under the rules then in force, with the given settings on top."""
    if not isinstance(reader.log, PortableLog):
        raise UsageError(f"{reader.log.path} is no log that can be forked")
    over = reading.config
    return Forker(reader.log, reader, config=None, over=over, new_id=random_id, named=named, afar=afar)
