"""The way from a host that follows a log to the gateway of its writer, whichever host that is by then (DOOR-1, DOOR-2).

What was not answered when the connection ended, or another host began to write the log, is sent again: the writer counts a
call by its number.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future
from typing import Final

import msgspec

from intersession.gateway.protocol.behalf import MOST_RECEIPTS, PERFORM, RECEIPTS, OnBehalf, Receipt
from intersession.gateway.protocol.line import MOST_BYTES, Line
from intersession_actors.calls.service.callers import Caller
from intersession_actors.calls.service.pending import Handed
from intersession_actors.rules.errors import REFUSAL_CODES, RefusalCode, ToolRefused
from intersession_events.basics.errors import StoreUnavailable
from intersession_events.basics.machine import monotonic_s, random_id
from intersession_events.basics.plain_json import JsonMapping, JsonObject
from intersession_events.facts import AccessRecorded
from intersession_events.log.log import InFlight
from intersession_events.log.recorded import OnOutcome, StreamAppend, Unavailable
from intersession_events.stores.portable.appends import NotTaken

logger = logging.getLogger("intersession.door")

PAUSE_S: Final = 0.1
"""How long a call rests that the writer could not take or record just now."""
LOOK_S: Final = 1.0
"""How often is looked whether another host writes the log now: a paused one keeps its connection, and answers nothing."""
PATIENCE_S: Final = 5.0
"""How long a writer may take to take receipts at the end."""
MOST_WAITING: Final = 10_000
"""Calls that wait for the writer, and receipts; further ones are refused."""


class _Call(msgspec.Struct, eq=False):
    """A call under way. `since` is when the writer began to fail it; None while one may be at work on it."""

    number: str
    caller: OnBehalf
    method: str
    params: JsonMapping
    future: Future[Handed]
    begun: float
    since: float | None = None
    was_sent: bool = False
    asked: Future[JsonObject] | None = None
    last: Handed | None = None
    """What the writer said that could not take it, or could not record it."""


class WriterLink:
    """Hands calls on. `where` returns the address of the present writer's gateway and its epoch, or None without a writer; it blocks.

    `announced`: the log says it, so it has to prove that it knows the token. `wait_s` says how long a call waits for a writer, `hear` gets the events that the writer's gateway tells a door.
    """

    def __init__(
        self,
        where: Callable[[], tuple[str, int] | None],
        token: str,
        *,
        wait_s: Callable[[], float],
        hear: Callable[[JsonObject], object],
        announced: bool = True,
        new_id: Callable[[], str] = random_id,
        now: Callable[[], float] = monotonic_s,
    ) -> None:
        self._where, self._wait_s, self._new_id, self._now = where, wait_s, new_id, now
        self._found: tuple[str, int] | None = None
        """The writer that the last connection was made to."""
        self._lock = threading.Condition()
        self._calls: dict[str, _Call] = {}
        self._receipts: list[Receipt] = []
        self._is_sending = False
        self._away_since: float | None = now()
        self._closed = False
        self._line = Line(self._addresses, token, announced=announced, hear=hear)

    def open(self) -> None:
        """Connect to the writer, if there is one; else it is waited for.

        Raises:
            ToolRefused: its gateway does not know the token (`forbidden`).
        """
        self._line.open()
        threading.Thread(target=self._run, name="door", daemon=True).start()

    def ask(self, caller: Caller, method: str, params: JsonMapping) -> "Future[Handed]":
        """Have a method called for a caller; the future has the answer, or the refusal."""
        call = _Call(self._new_id(), OnBehalf.of(caller), method, params, Future(), self._now())
        refused: ToolRefused | None = None
        with self._lock:
            if self._closed:
                refused = ToolRefused("unavailable", "the gateway is stopping, try again after its restart")
            elif len(self._calls) >= MOST_WAITING:
                refused = ToolRefused(
                    "unavailable", "too many calls wait for the log's writer, try again later"
                )
            elif len(msgspec.json.encode(self._said(call))) > MOST_BYTES - 1024:
                refused = ToolRefused("too_large", f"{method}: more than {MOST_BYTES} bytes, send less")
            else:
                self._calls[call.number] = call
                self._lock.notify_all()
        if refused is None:
            self._send(call)
        else:
            call.future.set_result(Handed({}, refused=refused))
        return call.future

    def append(
        self,
        batch: Sequence[StreamAppend],
        on_outcome: OnOutcome,
        *,
        patient: bool = False,
        behind: InFlight | None = None,
    ) -> InFlight:
        """Hand access receipts on, without waiting: the writer records them."""
        del patient, behind
        receipts = [
            Receipt(
                id=draft.id,
                time=draft.time,
                event=draft.event,
                correlation=draft.correlation,
                decision=draft.decision,
            )
            for one in batch
            for draft in one.drafts
            if isinstance(draft.event, AccessRecorded)
        ]
        with self._lock:
            is_full = len(self._receipts) + len(receipts) > MOST_WAITING
            if not is_full:
                self._receipts += receipts
        if is_full:
            on_outcome(Unavailable(error=StoreUnavailable("too many receipts wait for the log's writer")))
        self._send_receipts()
        return NotTaken(batch[0].stream)

    @property
    def standing(self) -> JsonObject:
        """The state of the connection: `{address, isConnected, waiting, receipts, error}`."""
        connected = self._line.is_connected
        return {
            "address": self._line.address,
            "isConnected": connected,
            "waiting": len(self._calls),
            "receipts": len(self._receipts),
            "error": None if connected else self._line.trouble,
        }

    def drain(self, seconds: float) -> None:
        """Wait until all calls are answered, for so long."""
        with self._lock:
            self._lock.wait_for(lambda: not self._calls, seconds)

    def close(self) -> None:
        """Hand on the last receipts, and give up the connection; what waits is refused."""
        with self._lock:
            self._closed = True
            self._lock.notify_all()
            if self._line.is_connected:
                self._lock.wait_for(lambda: not self._receipts, PATIENCE_S)
        self._line.close()
        if self._receipts:
            logger.warning("%d access receipts could not be handed on", len(self._receipts))
        for call in list(self._calls.values()):
            self._give_up(call)

    # --- calls

    def _said(self, call: _Call, *, again: bool = False) -> JsonObject:
        return {
            "caller": msgspec.to_builtins(call.caller),
            "method": call.method,
            "params": dict(call.params),
            "number": call.number,
            "again": again,
            "waitedMs": round((self._now() - call.begun) * 1000),
        }

    def _send(self, call: _Call) -> None:
        def params() -> JsonObject:
            again, call.was_sent = call.was_sent, True
            return self._said(call, again=again)

        call.asked = self._line.ask(PERFORM, params)
        call.asked.add_done_callback(lambda done: self._answered(call, done))

    def _answered(self, call: _Call, done: "Future[JsonObject]") -> None:
        """Take an answer. What could not be taken or recorded there is asked again, of the writer by then."""
        if done.cancelled():
            return
        error = done.exception()
        if error is not None:
            refused = error if isinstance(error, ToolRefused) else ToolRefused("unavailable", str(error))
            self._finish(call, Handed({}, refused=refused))
            return
        handed = handed_of(done.result())
        if not done.result().get("tryAgain") or self._closed:
            self._finish(call, handed)
            return
        call.last = handed
        call.since = call.since or self._now()
        later = threading.Timer(PAUSE_S, self._send, (call,))
        later.daemon = True
        later.start()

    def _give_up(self, call: _Call) -> None:
        done = "it may have been done or not" if call.was_sent else "nothing was done"
        error = f"the log's writer can't be reached ({self._line.trouble}), {done}; try again later"
        self._finish(call, call.last or Handed({}, refused=ToolRefused("unavailable", error)))
        if call.asked is not None:
            call.asked.cancel()

    def _finish(self, call: _Call, handed: Handed) -> None:
        with self._lock:
            if self._calls.pop(call.number, None) is None:
                return
            self._lock.notify_all()
        call.future.set_result(handed)

    # --- receipts: one request at a time, so that none overtakes another

    def _send_receipts(self) -> None:
        with self._lock:
            if self._is_sending or not self._receipts:
                return
            sent = self._receipts[:MOST_RECEIPTS]
            self._is_sending = True
        asked = self._line.ask(RECEIPTS, {"receipts": msgspec.to_builtins(sent)})
        asked.add_done_callback(lambda done: self._taken(len(sent), done))

    def _taken(self, number: int, done: "Future[JsonObject]") -> None:
        with self._lock:
            self._is_sending = False
            if isinstance(error := _error_of(done), StoreUnavailable):
                return  # the line was closed
            if error is not None:
                logger.warning("the log's writer refused %d access receipts: %s", number, error)
            del self._receipts[:number]
            self._lock.notify_all()
        self._send_receipts()

    # --- the writer

    def _addresses(self) -> Sequence[str]:
        self._found = self._where()
        return () if self._found is None else self._found[:1]

    def _run(self) -> None:
        """Leave a host that is no longer the writer, and refuse calls that have waited for too long."""
        while not self._closed:
            try:
                # By its epoch too: behind one proxy all writers have one address, and a paused one keeps its connection.
                if self._line.is_connected and self._where() != self._found:
                    self._line.lose()
            except StoreUnavailable as error:
                logger.info("the log's writer can't be looked up: %s", error)
            now = self._now()
            self._away_since = None if self._line.is_connected else self._away_since or now
            for call in list(self._calls.values()):
                away = None if self._away_since is None else max(self._away_since, call.begun)
                since = min((one for one in (away, call.since) if one is not None), default=None)
                if since is not None and now - since > self._wait_s():
                    self._give_up(call)
            with self._lock:
                if not self._closed:
                    self._lock.wait(PAUSE_S if self._calls and self._away_since is not None else LOOK_S)


def handed_of(answer: JsonObject) -> Handed:
    """Return what the writer's gateway answered to `door.perform`."""
    refused = answer.get("refused")
    result: JsonObject = answer.get("result") or {}
    return Handed(result, int(answer.get("position") or 0), None if refused is None else _refusal(refused))


def _refusal(refused: JsonObject) -> ToolRefused:
    code = refused.get("code")
    known: RefusalCode = code if code in REFUSAL_CODES else "internal"
    return ToolRefused(known, str(refused.get("error", "refused")))


def _error_of(done: "Future[JsonObject]") -> BaseException | None:
    try:
        return done.exception()
    except CancelledError:
        return StoreUnavailable("it was given up")
