"""The actor around owners of streams: it does what they give back, one effect after the other. Session actors and managers are such."""

from typing import Final, Generic, TypeVar

import pykka
from pykka._envelope import Envelope

from intersession_actors.chains import ChainUnread
from intersession_actors.runtime import Handler
from intersession_actors.streams.commands import Appended, Ask, Command, StoreDue, StreamLoaded, WasRead
from intersession_actors.streams.effects import (
    Answer,
    Append,
    AskStoreAgain,
    Durable,
    Failed,
    GivenUp,
    Load,
    Loaded,
    OwnerEffect,
    Read,
    ReadBack,
    TellFlow,
    TellSession,
    Told,
    Unread,
)
from intersession_actors.streams.outcomes import Accepted, Refused
from intersession_actors.streams.owner import Owner, answer
from intersession_actors.streams.world import World
from intersession_events.log import InFlight, StreamAppend

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

    def do(  # noqa: C901, PLR0912 - one case an effect
        self, owner: Owner[S, C], effect: OwnerEffect[S, C]
    ) -> None:
        """Do one effect."""
        world, stream, tell = self.world, owner.stream, self.tell_self
        match effect:
            case Durable():
                self.durable(owner, effect)
            case Answer(command, outcome):
                self.answered(command, outcome)
            case Append(asked, ask, behind):
                in_flight = world.log.append(
                    asked.appends,
                    lambda outcome: tell(Appended(stream=stream, outcome=outcome, ask=ask)),
                    patient=asked.leads_on,
                    behind=behind,
                )
                if asked.leads_on:
                    owner.in_flight = in_flight
                    self.leads_on(asked.appends[0], in_flight)
            case TellFlow(command):
                world.mail.tell_flow(command.stream, command)
            case TellSession(key, command):
                world.mail.tell_session(key, command)
            case Load(ask):
                self.load(stream, ask)
            case Loaded():
                self.loaded(owner)
            case ReadBack():
                self.read_back(owner)
            case GivenUp(command):
                self.give_up(owner, command)
            case Failed(error, told):
                self.cannot_go_on(owner, error, told)
            case Read(unread, ask):
                self._read(stream, unread, ask)
            case AskStoreAgain(number):
                due = StoreDue(stream=stream, number=number)
                world.time.timers.after(STORE_RETRY_MS, ("store", stream, str(number)), lambda: tell(due))

    def _read(self, stream: str, unread: Unread, ask: Ask) -> None:
        world, tell = self.world, self.tell_self
        if isinstance(unread, ChainUnread):
            root = unread.root
            world.mail.on_disk(
                lambda: world.chains.read(root),
                lambda found: tell(WasRead(stream=stream, ask=ask, found=found)),
            )
        else:
            run_id = unread.run_id
            world.mail.on_disk(
                lambda: world.mail.texts_of(run_id),
                lambda found: tell(WasRead(stream=stream, ask=ask, found=found, run_id=run_id)),
            )

    # --- what each kind of actor does in its own way

    def durable(self, owner: Owner[S, C], effect: Durable[S, C]) -> None:
        """Do what durable events ask for."""
        raise NotImplementedError

    def answered(self, command: C, outcome: Accepted | Refused) -> None:
        """Tell whoever waits for a command what came of it."""
        answer(command, outcome)

    def leads_on(self, append: StreamAppend, in_flight: InFlight) -> None:
        """Tell of an append that is not durable yet, so that what follows from it can share its commit."""

    def load(self, stream: str, ask: Ask) -> None:
        """Have a stream read."""
        tell = self.tell_self
        self.world.log.load(
            stream, lambda recorded: tell(StreamLoaded(stream=stream, recorded=recorded, ask=ask))
        )

    def loaded(self, owner: Owner[S, C]) -> None:
        """Go on from what was read."""
        raise NotImplementedError

    def read_back(self, owner: Owner[S, C]) -> None:
        """Have it looked for what nobody acted on."""
        raise NotImplementedError

    def give_up(self, owner: Owner[S, C], command: C) -> None:
        """Let go of a command that the store was away for too long for."""

    def cannot_go_on(self, owner: Owner[S, C], error: Exception, told: Told[C] | None) -> None:
        """Do what is to be done about an owner that can't go on."""
        raise NotImplementedError

    def at_rest(self, owner: Owner[S, C]) -> None:
        """Nothing waits and nothing is under way."""
        raise NotImplementedError
