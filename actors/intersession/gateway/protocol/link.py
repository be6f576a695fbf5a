"""The way from a host that follows a log to the gateway of its writer, whichever host that is by then (DOOR-1, DOOR-2).

One connection has all calls. When it ends, or another host writes the log, it is opened again, and what was not answered is
sent again: the writer counts a call by its number.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Final

import msgspec

from intersession.gateway.protocol.behalf import MOST_RECEIPTS, PERFORM, RECEIPTS, OnBehalf, Receipt
from intersession.gateway.protocol.client import GatewayClient, GatewayGone
from intersession_actors.calls.service.callers import Caller
from intersession_actors.calls.service.pending import Handed
from intersession_actors.rules.errors import REFUSAL_CODES, RefusalCode, ToolRefused
from intersession_events.basics.errors import IntersessionError, StoreUnavailable
from intersession_events.basics.machine import monotonic_s, random_id
from intersession_events.basics.plain_json import JsonMapping, JsonObject
from intersession_events.facts import AccessRecorded
from intersession_events.log.log import InFlight
from intersession_events.log.recorded import OnOutcome, StreamAppend, Unavailable
from intersession_events.stores.portable.appends import NotTaken

logger = logging.getLogger("intersession.door")

PAUSE_S: Final = 0.1
"""Between two attempts to reach a writer."""
LOOK_S: Final = 1.0
"""How often is looked whether another host writes the log now: a paused one keeps its connection, and answers nothing."""
PATIENCE_S: Final = 5.0
"""How long a writer may take to take receipts."""
MOST_WAITING: Final = 10_000
"""Calls that wait for the writer, and receipts; further ones are refused."""

Heard = Callable[[JsonObject], object]


class _Call(msgspec.Struct, eq=False):
    """A call under way. `since` is when it began to wait for a writer; None while a writer has it."""

    number: str
    caller: OnBehalf
    method: str
    params: JsonMapping
    future: Future[Handed]
    since: float | None
    begun: float
    was_sent: bool = False
    not_before: float = 0.0
    last: Handed | None = None
    """What the writer said that could not take it, or could not record it."""


class WriterLink:
    """Hands calls on. `where` returns the address of the writer's gateway now, and blocks; None while there is none.

    `wait_s` says how long a call waits for a writer, `hear` gets the events that the writer's gateway tells a door.
    """

    def __init__(
        self,
        where: Callable[[], str | None],
        token: str,
        *,
        wait_s: Callable[[], float],
        hear: Heard = lambda _: None,
        new_id: Callable[[], str] = random_id,
        now: Callable[[], float] = monotonic_s,
    ) -> None:
        self._where, self._token, self._wait_s, self._new_id, self._now = where, token, wait_s, new_id, now
        self.hear = hear
        self._lock = threading.Condition()
        self._one_at_a_time = threading.Lock()
        self._calls: dict[str, _Call] = {}
        self._receipts: list[Receipt] = []
        self._client: GatewayClient | None = None
        self._address: str | None = None
        self._trouble = "nobody writes the log"
        self._closed = False
        threading.Thread(target=self._run, name="door", daemon=True).start()

    def ask(self, caller: Caller, method: str, params: JsonMapping) -> "Future[Handed]":
        """Have a method called for a caller; the future has the answer, or the refusal."""
        future: Future[Handed] = Future()
        now = self._now()
        call = _Call(self._new_id(), OnBehalf.of(caller), method, params, future, now, now)
        with self._lock:
            if self._closed or len(self._calls) >= MOST_WAITING:
                what = (
                    "the gateway is stopping" if self._closed else "too many calls wait for the log's writer"
                )
                future.set_result(Handed({}, refused=ToolRefused("unavailable", f"{what}, try again later")))
                return future
            self._calls[call.number] = call
            client = self._client
        if client is not None:
            self._send(client, call)
        return future

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
                self._lock.notify_all()
        if is_full:
            on_outcome(Unavailable(error=StoreUnavailable("too many receipts wait for the log's writer")))
        return NotTaken(batch[0].stream)

    @property
    def standing(self) -> JsonObject:
        """The state of the connection: `{address, isConnected, waiting, receipts, error}`."""
        with self._lock:
            connected = self._client is not None
            return {
                "address": self._address,
                "isConnected": connected,
                "waiting": len(self._calls),
                "receipts": len(self._receipts),
                "error": None if connected else self._trouble,
            }

    def close(self) -> None:
        """Hand on the last receipts, and give up the connection; what waits is refused."""
        with self._lock:
            self._closed = True
            client, self._client = self._client, None
            self._lock.notify_all()
        if client is not None:
            with suppress(ToolRefused):
                while self._receipts:
                    self._send_receipts(client)
            client.close()
        if self._receipts:
            logger.warning("%d access receipts could not be handed on", len(self._receipts))
        for call in list(self._calls.values()):
            self._give_up(call)

    # --- on its own thread

    def _run(self) -> None:
        while not self._closed:
            failed = False
            try:
                self._look()
            except Exception as error:
                self._trouble, failed = str(error), True
                if not isinstance(error, IntersessionError):
                    logger.exception("the way to the log's writer failed")
            for call in list(self._calls.values()):
                if call.since is not None and self._now() - call.since > self._wait_s():
                    self._give_up(call)
            with self._lock:
                has_work = self._client is not None and bool(self._receipts) and not failed
                if not (self._closed or has_work):
                    waits = failed or self._client is None or self._is_waited_for
                    self._lock.wait(PAUSE_S if waits else LOOK_S)

    def _look(self) -> None:
        """Open the connection to the present writer if there is none, and send it what waits."""
        address = self._where()
        client = self._client
        if client is not None and (address != self._address or client.gone.done()):
            self._leave(client)
            client = None
        if address is None:
            self._trouble = "nobody writes the log, or its writer has no gateway"
            return
        if client is None:
            client = GatewayClient(address, self._token, hear=self._hears)
            with self._lock:
                if self._closed:
                    client.close()
                    return
                self._client, self._address = client, address
            logger.info("handing on to the log's writer at %s", address)
            client.gone.add_done_callback(lambda _: self._wake())
        for call in list(self._calls.values()):
            if call.since is not None and call.not_before <= self._now():
                self._send(client, call)
        self._send_receipts(client)

    @property
    def _is_waited_for(self) -> bool:
        return any(one.since is not None for one in self._calls.values())

    def _hears(self, frame: JsonObject) -> None:
        self.hear(frame)

    def _leave(self, client: GatewayClient) -> None:
        """Give a connection up: what waits there begins to wait for the next."""
        with self._lock:
            if self._client is client:
                self._client = None
        client.close()
        client.gone.result(LOOK_S)

    def _wake(self) -> None:
        with self._lock:
            self._lock.notify_all()

    def _send(self, client: GatewayClient, call: _Call) -> None:
        with self._lock:
            if call.since is None or call.future.done():
                return  # somebody else has sent it
            waited_since, call.since = call.since, None
            again, call.was_sent = call.was_sent, True
        asked = client.begin(
            PERFORM,
            {
                "caller": msgspec.to_builtins(call.caller),
                "method": call.method,
                "params": dict(call.params),
                "number": call.number,
                "again": again,
                "waitedMs": round((self._now() - call.begun) * 1000),
            },
        )
        asked.add_done_callback(lambda done: self._answered(call, done, waited_since))

    def _answered(self, call: _Call, done: "Future[JsonObject]", waited_since: float) -> None:
        """Take an answer. What was not answered, or could not be recorded there, waits for the next writer."""
        error = done.exception()
        if isinstance(error, GatewayGone):
            call.since = self._now()
            self._wake()
            return
        handed = _handed(done.result()) if error is None else Handed({}, refused=_as_refused(error))
        if error is None and done.result().get("tryAgain"):
            # Its patience begins with the first such answer: until then a writer was at work on it.
            call.since = self._now() if call.last is None else waited_since
            call.last, call.not_before = handed, self._now() + PAUSE_S
            self._wake()
            return
        self._finish(call, handed)

    def _give_up(self, call: _Call) -> None:
        if call.last is not None:
            self._finish(call, call.last)
            return
        done = "it may have been done or not" if call.was_sent else "nothing was done"
        error = f"the log's writer can't be reached ({self._trouble}), {done}; try again later"
        self._finish(call, Handed({}, refused=ToolRefused("unavailable", error)))

    def _finish(self, call: _Call, handed: Handed) -> None:
        with self._lock:
            if self._calls.pop(call.number, None) is None:
                return
        call.future.set_result(handed)

    def _send_receipts(self, client: GatewayClient) -> None:
        with self._one_at_a_time:
            sent = self._receipts[:MOST_RECEIPTS]
            if not sent:
                return
            try:
                client.call(RECEIPTS, {"receipts": msgspec.to_builtins(sent)}, timeout=PATIENCE_S)
            except ToolRefused as refused:
                if refused.code == "unavailable":
                    raise  # they are sent again: the log takes each once
                logger.warning("the log's writer refused %d access receipts: %s", len(sent), refused.error)
            with self._lock:
                del self._receipts[: len(sent)]


def _handed(answer: JsonObject) -> Handed:
    refused = answer.get("refused")
    result: JsonObject = answer.get("result") or {}
    return Handed(result, int(answer.get("position") or 0), None if refused is None else _refusal(refused))


def _refusal(refused: JsonObject) -> ToolRefused:
    code = refused.get("code")
    known: RefusalCode = code if code in REFUSAL_CODES else "internal"
    return ToolRefused(known, str(refused.get("error", "refused")))


def _as_refused(error: BaseException) -> ToolRefused:
    return error if isinstance(error, ToolRefused) else ToolRefused("internal", str(error))
