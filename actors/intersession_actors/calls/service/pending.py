"""Answers that may need a wait, and the two ways to wait: on the calling thread, or on the event loop.

Some are the log's writer's, where this host only follows the log (DOOR-1).
"""

import asyncio
import logging
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from intersession_actors.calls.service.callers import Caller
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.running.host.door_threads import DoorThreads
from intersession_actors.running.runtime.threads import Threads
from intersession_events.basics.errors import StoreUnavailable
from intersession_events.basics.plain_json import JsonMapping, JsonObject
from intersession_events.log.log import Appends, Follows

_DOOR: Final = logging.getLogger("intersession.door")

Result = JsonObject
"""An answer, as a model or a client sees it."""


_HOWEVER_LATE_S: Final = 86_400.0
"""Runs have limits of their own, and whoever carries a fork on sees what stands still."""


class Pending(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that is there once `future` is done or `timeout` seconds are over; `finish` then makes it, mostly from the log.

    What the future is done with, nobody looks at, unless `is_given`.

    `over` is called when the wait has ended in whichever way, before `finish`, and also where nobody wants the answer
    any more.
    """

    future: "Future[Any]"  # of whatever kind: only that it is done counts
    timeout: float
    finish: "Callable[[], Result | Pending]"
    over: Callable[[], object]
    in_vain: Callable[[], Result] | None = None
    """Makes the answer of a wait in which nothing came, whatever the log has by now; None where that is what `finish` does."""
    is_given: bool = False
    """Whether the future is done with the answer, made on another thread; with None, if `finish` has to make it."""

    def as_then(self, *, ran_out: bool) -> "Pending":
        """Return the same wait with the outcome of a recording: an immediate timeout, or the awaited result, however late."""
        if not ran_out:
            return msgspec.structs.replace(self, timeout=max(self.timeout, _HOWEVER_LATE_S))
        return msgspec.structs.replace(self, timeout=0.0, finish=self.in_vain or self.finish)

    def with_fields(self, **fields: object) -> "Pending":
        """Return the same wait, with more fields in its answer."""
        return msgspec.structs.replace(self, finish=lambda: with_fields(self.finish(), **fields))


class Held(Pending, frozen=True, kw_only=True):
    """A wait for a person, behind which the wait of the call itself may come (ASK-1)."""

    def as_then(self, *, ran_out: bool) -> Pending:
        """Return the same wait; a recording's outcome is that of the call behind it."""

        def finish() -> Result | Pending:
            made = self.finish()
            return made.as_then(ran_out=ran_out) if isinstance(made, Pending) else made

        return msgspec.structs.replace(self, finish=finish)


def with_fields(answer: Result | Pending, **fields: object) -> Result | Pending:
    """Return an answer with more fields, or the wait for one."""
    return answer.with_fields(**fields) if isinstance(answer, Pending) else answer | fields


def finished(begun: Result | Pending, blocking: Threads) -> Result:
    """Return the answer, waiting for it on the calling thread."""
    while isinstance(begun, Pending):
        try:
            blocking.wait(begun.future, begun.timeout)
        finally:
            begun.over()
        begun = begun.finish()
    return begun


async def afinished(begun: Result | Pending, threads: DoorThreads, lane: Hashable = None) -> Result:
    """Return the answer without blocking the event loop; the wait holds no thread."""
    while isinstance(begun, Pending):
        try:
            await asyncio.wait([asyncio.wrap_future(begun.future)], timeout=begun.timeout)
        finally:
            begun.over()
        if begun.is_given and begun.future.done() and (given := begun.future.result()) is not None:
            begun = given
            continue
        try:
            finishing = threads.submit(begun.finish, lane)
        except StoreUnavailable:
            begun = begun.finish()  # closed meanwhile: what it has to say takes no time
        else:
            begun = await asyncio.wrap_future(finishing)
    return begun


# --- answers of the log's writer

INVOKE: Final = "tools.invoke"
"""The name under which a tool is handed on, with `{name, args}`."""

BEHIND_S: Final = 10.0
"""How long an answer waits until this host has read what it reports."""


class Handed(NamedTuple):
    """What the writer answered, and up to which position of the log that is recorded; or why the call was refused."""

    result: Result
    position: int = 0
    refused: ToolRefused | None = None


class LogWriter(Appends, Protocol):
    """The way to the process that writes the log, whichever that is by then. What is appended are access receipts."""

    def ask(self, caller: Caller, method: str, params: JsonMapping) -> "Future[Handed]":
        """Have a method called for a caller. The future always has a result; a call that is sent again counts once."""
        ...

    @property
    def standing(self) -> JsonObject:
        """The state of the connection, for `status`: `{address, isConnected, waiting}`."""
        ...

    def drain(self, seconds: float) -> None:
        """Wait until all calls are answered, for so long."""
        ...

    def close(self) -> None:
        """Give up the connection; what waits is refused."""
        ...


def handed_on(log: Follows, writer: LogWriter, caller: Caller, method: str, params: JsonMapping) -> Pending:
    """Hand a call on to the writer; its answer comes when this host has read what it reports (DOOR-3)."""
    asked = writer.ask(caller, method, params)

    def finish() -> Result:
        handed = asked.result()
        if handed.position and not log.wait_for(handed.position, timeout=BEHIND_S):
            _DOOR.warning(
                "position %d has not come here in %g s, the log lags behind", handed.position, BEHIND_S
            )
        if handed.refused is not None:
            raise handed.refused
        return handed.result

    return Pending(future=asked, timeout=_HOWEVER_LATE_S, finish=finish, over=lambda: None)
