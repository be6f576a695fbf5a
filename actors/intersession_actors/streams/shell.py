"""The actor around owners of streams: it does what they give back, one effect after the other. Session actors and managers are such."""

from typing import Final, Generic, TypeVar

import pykka
from pykka._envelope import Envelope

from intersession_actors.chains import ChainUnread
from intersession_actors.runtime import Handler
from intersession_actors.streams.commands import Appended, Command, StoreDue, StreamLoaded, WasRead
from intersession_actors.streams.effects import (
    Append,
    AskStoreAgain,
    Load,
    OwnerEffect,
    Read,
    TellFlow,
    TellSession,
)
from intersession_actors.streams.owner import Owner
from intersession_actors.streams.texts import TextsUnread
from intersession_actors.streams.world import World

S = TypeVar("S")
C = TypeVar("C", bound=Command)

SLOW_S: Final = 0.05
"""A handler decides and hands on, which takes a millisecond or two; all actors of a host wait for one that takes longer."""
STORE_RETRY_MS: Final = 500
"""How long to wait before the store is asked again for what it could not do."""


class Shell(Handler, Generic[S, C]):
    """Base of the actors that own streams."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world

    def on_receive(self, message: object) -> None:
        """Take a message, and have the operator told if that took long."""
        monotonic = self.world.time.clock.monotonic
        began = monotonic()
        try:
            self.handle(message)
        except BaseException as error:
            self.failed(error)
            raise
        finally:
            took = monotonic() - began
            if took >= SLOW_S:
                self.world.reports.slow_handler(str(self), type(message).__name__, took)

    def handle(self, message: object) -> None:
        """Take a command, or what comes back from the log, another actor, an agent or the clock."""
        raise NotImplementedError

    def failed(self, error: BaseException) -> None:
        """Do what is still to be done by an actor that ends with an error."""

    def tell_self(self, command: Command) -> None:
        """Put a command of our own into our inbox, from any thread."""
        try:
            self.actor_inbox.put(Envelope(command), urgent=True)
        except pykka.ActorDeadError:
            return  # stopped or started again; the log has what matters

    def carry_out(self, owner: Owner[S, C]) -> None:
        """Do what an owner gives back, until it waits for an answer or has nothing left to do."""
        effects = owner.effects
        while True:
            if effects:
                self.do(owner, effects.pop(0))
            elif owner.waiting and not owner.is_busy:
                owner.decide_next()
            else:
                break
        if not owner.is_busy:
            self.at_rest(owner)

    def do(self, owner: Owner[S, C], effect: OwnerEffect[S, C]) -> None:
        """Do one effect."""
        world, stream, tell = self.world, owner.stream, self.tell_self
        match effect:
            case TellFlow(command):
                world.mail.tell_flow(command.stream, command)
            case TellSession(key, command):
                world.mail.tell_session(key, command)
            case Append(asked, ask, behind):
                in_flight = world.log.append(
                    asked.appends,
                    lambda outcome: tell(Appended(stream=stream, outcome=outcome, ask=ask)),
                    patient=asked.leads_on,
                    behind=behind,
                )
                if asked.leads_on:
                    owner.in_flight = in_flight
            case Load(ask):
                world.log.load(
                    stream, lambda recorded: tell(StreamLoaded(stream=stream, recorded=recorded, ask=ask))
                )
            case Read(ChainUnread(root=root), ask):
                world.mail.on_disk(
                    lambda: world.chains.read(root),
                    lambda found: tell(WasRead(stream=stream, ask=ask, found=found)),
                )
            case Read(TextsUnread(run_id=run_id), ask):
                world.mail.on_disk(
                    lambda: world.mail.texts_of(run_id),
                    lambda found: tell(WasRead(stream=stream, ask=ask, found=found, run_id=run_id)),
                )
            case AskStoreAgain(number):
                due = StoreDue(stream=stream, number=number)
                world.time.timers.after(STORE_RETRY_MS, ("store", stream, str(number)), lambda: tell(due))
            case _:
                raise TypeError(f"{type(self).__name__} can't do {effect}")

    def at_rest(self, owner: Owner[S, C]) -> None:
        """Nothing waits and nothing is under way."""
        raise NotImplementedError
