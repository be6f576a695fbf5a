"""Asks an actor of the host's without waiting: the answer comes as a callback."""

from collections.abc import Callable
from typing import Any, TypeGuard

import pykka
from pykka._envelope import Envelope

from intersession_actors.running.runtime.actor import Ref
from intersession_actors.running.runtime.reply import ReplyFuture

HostActor = pykka.ActorRef[Any] | Ref  # an actor of any class
"""An address of an actor: Pykka's own, or one of our runtimes'."""


def asking(actor: HostActor) -> Callable[[object], ReplyFuture]:
    """Return a function that sends an actor a message and returns the future of its answer.

    Pykka's own `ask` would do, but its future can only be waited for.
    """
    if isinstance(actor, Ref):
        return actor.ask

    def ask(message: object) -> ReplyFuture:
        answer = ReplyFuture()
        if actor.is_alive():
            actor.actor_inbox.put(Envelope(message, answer))
        # Pykka looks before it puts; one that stopped in between never answers what came after its last look. What
        # it did handle was answered before it counted as stopped.
        if not actor.is_alive() and not answer.answered:
            raise pykka.ActorDeadError(f"{actor} has stopped and does not answer")
        return answer

    return ask


def is_host_actor(candidate: object) -> TypeGuard[HostActor]:
    """Return whether a value is the address of an actor."""
    return isinstance(candidate, pykka.ActorRef | Ref)
