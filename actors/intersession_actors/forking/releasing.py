"""Releases as a recording has them: a what-if lets go on what is held there, as somebody let it go on then (FORK-7, LIVE-1)."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Final, NamedTuple

import msgspec

from intersession_actors.exchange import ReleaseExchange
from intersession_actors.prompt import text_meaning
from intersession_actors.service import Service, ask_flow
from intersession_events import facts, ids
from intersession_events.log import Log, parts_in
from intersession_events.plain_json import JsonValue, is_object
from intersession_projections.flows import ExchangeSummary
from intersession_projections.run_outcomes import held_in, told_in

_RELEASES: Final = (
    "SELECT DISTINCT originator_id FROM stored_events "
    "WHERE topic LIKE 'exchange\\_released.%' ESCAPE '\\' AND rowid > ? ORDER BY originator_id"
)


class _Then(NamedTuple):
    """A release, with what was held."""

    held: facts.ExchangeHeld
    released: facts.ExchangeReleased
    caller_had_gone_on: bool
    """Whether the call that began the exchange had its answer before."""


class RecordedReleases:
    """The releases of a log behind a position. Each is given once, for what is held in the same place with the same words.

    Where only the place counts (`loose`), whatever is held there is released as it was then.
    """

    def __init__(
        self, reading: Callable[[], AbstractContextManager[Log]], *, after: int, loose: bool
    ) -> None:
        self._reading = reading
        self._after = after
        self._loose = loose
        self._left: list[_Then] | None = None

    def release(self, service: Service, exchange: ExchangeSummary) -> bool:
        """Let a held exchange go on as it did then; False where the recording has no release for it.

        Where its caller waited in vain for the answer then, it is released once that wait is over: True, and still held.

        Raises:
            ToolRefused: the log did not take it in time.
        """
        held = held_in(service.log, exchange)
        then = None if held is None else self._of(held)
        if held is None or then is None:
            return False
        if then.caller_had_gone_on and _caller_waits(service, exchange):
            return True
        released = then.released
        self._taken(then)
        ask_flow(
            service,
            ReleaseExchange(
                stream=exchange.stream,
                action=released.action,
                by=released.by,
                text=released.text,
                hold_id=held.hold_id,
                for_good=released.for_good,
            ),
        )
        return True

    def _of(self, held: facts.ExchangeHeld) -> _Then | None:
        if self._left is None:
            with self._reading() as log:
                self._left = [*self._read(log)]
        return next((then for then in self._left if self._is_of(then.held, held)), None)

    def _taken(self, then: _Then) -> None:
        if self._left is not None:
            self._left.remove(then)

    def _is_of(self, then: facts.ExchangeHeld, now: facts.ExchangeHeld) -> bool:
        places = [(one.step, one.turn, text_meaning(one.speaker)) for one in (then, now)]
        return places[0] == places[1] and (
            self._loose or text_meaning(then.text or "") == text_meaning(now.text or "")
        )

    def _read(self, log: Log) -> Iterator[_Then]:
        for (stream,) in log.query(_RELEASES, (self._after,)):
            held: dict[str, facts.ExchangeHeld] = {}
            accepted: facts.ExchangeAccepted | None = None
            for recorded in parts_in(told_in(log, log.stream(stream))):
                match recorded.event:
                    case facts.ExchangeAccepted() as event:
                        accepted = event
                    case facts.ExchangeHeld() as event:
                        held[event.hold_id] = event
                    case facts.ExchangeReleased() as event if (
                        recorded.position > self._after and event.hold_id in held
                    ):
                        gone_on = accepted is not None and _had_answer(log, accepted, recorded.position)
                        yield _Then(held[event.hold_id], event, gone_on)
                    case _:
                        pass


def _had_answer(log: Log, accepted: facts.ExchangeAccepted, position: int) -> bool:
    """Whether the call that began an exchange had its answer before a position."""
    if accepted.requester is None or accepted.requester_run_id is None:
        return False
    for recorded in log.stream(ids.session_stream(accepted.requester)):
        if recorded.position > position:
            break
        said = facts.message_in(recorded.event)
        if (
            said is not None
            and said.role == "toolResult"
            and _run_told(facts.text_of(said)) == accepted.run_id
        ):
            return True
    return False


def _run_told(result: str) -> JsonValue:
    try:
        value: JsonValue = msgspec.json.decode(result)
    except (ValueError, RecursionError):
        return None
    return value.get("runId") if is_object(value) else None


def _caller_waits(service: Service, exchange: ExchangeSummary) -> bool:
    begun = next(iter(service.log.stream(exchange.stream, limit=1)), None)
    if begun is None or not isinstance(begun.event, facts.ExchangeAccepted):
        return False
    return begun.event.requester_run_id in service.wait_graph.waiting_runs()
