"""The system's actor in Pykka's registry. It hands messages to `pykka.py`, and never waits."""

import threading
from collections.abc import Callable
from contextvars import Context, copy_context

import pykka

from intersession_actors.running.runtime.actor import Handler
from intersession_actors.running.runtime.inbox import Inbox, Mail
from intersession_actors.running.runtime.reply import ReplyFuture

Take = Callable[[object, ReplyFuture | None, Context], None]
"""Takes a message, the answer that is owed for it, and the context of whoever gave it."""


class SystemActor(Handler):
    """Hands every message on with its reply future (None for a tell), and goes on with the next.

    `close` is called when it is stopped, on another thread: it waits for actors, which no handler may. `check` raises where
    nobody would take a message from the inbox, in a forked child.
    """

    def __init__(self, take: Take, close: Callable[[], None], check: Callable[[], None]) -> None:
        super().__init__()
        self._take = take
        self._close = close
        self._actor_ref = _CallersRef(self, check)

    def on_receive(self, message: object) -> None:
        """Hand a message on."""
        mail = self.actor_inbox.current
        context = mail.context if isinstance(mail, _CallersMail) else copy_context()
        self._take(message, self.take_reply(), context)

    def on_stop(self) -> None:
        """Close the system before this actor counts as stopped: a host that stops all actors waits for it."""
        closing = threading.Thread(target=self._close, name="closing")
        closing.start()
        closing.join()


class _CallersMail(Mail):
    """A message with its sender's context: an agent's calls here continue its chain (LOOP-5)."""

    def __init__(self, mail: Mail) -> None:
        super().__init__(mail.message, mail.reply_to)
        self.context = copy_context()


class _CallersInbox(Inbox):
    """The way into an inbox from outside."""

    def __init__(self, inbox: Inbox, check: Callable[[], None]) -> None:
        super().__init__()
        self._inside = inbox
        self._check = check

    def put(self, envelope: Mail, *, urgent: bool = False) -> None:
        self._check()
        self._inside.put(_CallersMail(envelope), urgent=urgent)


class _CallersRef(pykka.ActorRef[Handler]):
    """The address that the host has: messages get the sender's context."""

    def __init__(self, actor: Handler, check: Callable[[], None]) -> None:
        super().__init__(actor)
        self.actor_inbox = _CallersInbox(actor.actor_inbox, check)
