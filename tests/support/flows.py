"""A world for a process manager that is tried alone: a real log, and nobody else."""

from collections.abc import Callable, Sequence
from queue import Queue
from typing import Any

from intersession_actors.owners.chains.ledger import ChainLedger
from intersession_actors.owners.flows.rules import Rules
from intersession_actors.owners.holding.standing import HeldSessions, Holds
from intersession_actors.owners.streams.effects import Effect
from intersession_actors.owners.streams.standing import BoundThreads, Generations, Standing
from intersession_actors.owners.streams.world import Mail, Time, World
from intersession_actors.rules.config.config import load_config
from intersession_actors.running.failures.reports import Reports
from intersession_actors.running.runtime.clock import Stopwatch
from intersession_events.facts import Event, LoopEnded
from intersession_events.log.log import HostLog
from intersession_events.log.recorded import Recorded
from support.fakes import ManualClock, ManualTimers


def a_world(log: HostLog, aside: Queue[tuple[str, str]]) -> World:
    """Return a world in which sessions hear nothing, and `aside` gets what a manager sets aside, and why."""
    clock = ManualClock()

    def nothing(*_: Any, **__: Any) -> Any:
        return None

    parts: Any = nothing
    return World(
        log=log,
        time=Time(clock, ManualTimers(clock), Stopwatch(clock)),
        mail=Mail(
            tell_session=nothing,
            tell_flow=nothing,
            set_aside=lambda stream, reason: aside.put((stream, reason)),
            resume_flow=nothing,
            read_back=nothing,
            passivated=nothing,
            on_disk=nothing,
            texts_of=nothing,
            number_of=nothing,
        ),
        reports=Reports(clock=clock),
        agents=parts,
        channels=parts,
        rules=parts,
        chains=ChainLedger(log, lambda _root: ()),
        standing=Standing(Holds(HeldSessions()), Generations(), BoundThreads()),
        limits=load_config(None).config,
    )


def counting(
    commands: Any, effects: Callable[[int, Recorded, Any], Sequence[Effect]] = lambda *_: ()
) -> Rules[int, Any, None]:
    """Return rules of a flow that counts its events, but can't take in those of `exchange:huge`."""

    def fold(state: int | None, recorded: Recorded) -> int:
        if recorded.stream == "exchange:huge":
            raise MemoryError
        return (state or 0) + 1

    def nothing(*_: Any) -> Any:
        return {}

    return Rules(
        commands=commands,
        events=Event,
        begins=LoopEnded,
        fold=fold,
        decide=nothing,
        effects=effects,
        inputs_of=nothing,
        knew_of=nothing,
        command_in=nothing,
        circumstances_in=nothing,
    )
