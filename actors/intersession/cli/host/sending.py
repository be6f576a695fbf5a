"""One `sessions_send` that `send` has started, and what can be seen of it while it goes on."""

import threading
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

import msgspec

from intersession.cli.host.log_host import LogHost
from intersession.cli.story import Beat, BeatPrinter, FlowStory, Names, flow_value, in_words
from intersession_actors.errors import ToolRefused
from intersession_events.facts import (
    DeliveryDecided,
    DeliveryFailed,
    ExchangeAccepted,
    ExchangeClosed,
    RunQueued,
    message_in,
    parts_of,
    run_asked_in,
    run_named,
)
from intersession_events.ids import exchange_stream
from intersession_events.keys import SessionKey
from intersession_events.log import Recorded
from intersession_events.plain_json import JsonObject
from intersession_projections.flows import ExchangeSummary

_POLL_S: Final = 0.5


class Pending(NamedTuple):
    """What an exchange waits for that is not over: a code, and words that say which."""

    code: Literal["no_host", "no_agent", "no_channel", "held", "going_on"]
    words: str


class Sending:
    """Calls the tool in a thread of its own, so that what happens can be watched meanwhile."""

    def __init__(self, host: LogHost, arguments: JsonObject) -> None:
        self._host = host
        self._after = host.head()
        self._idempotency_key: str = arguments["idempotencyKey"]
        self._answer: JsonObject = {}
        self._beats: list[Beat] = []
        self._exchange_id: str | None = None
        self._pending: Pending | None = None
        self._parked: JsonObject | None = None
        self._thread = threading.Thread(target=self._call, args=(arguments,), daemon=True)
        self._thread.start()

    @property
    def names(self) -> Names:
        """The names of those who take part."""
        return Names(called=self._host.names.one)

    def follow(self, printer: BeatPrinter | None) -> None:
        """Watch the exchange until it is over, or waits for what is not here."""
        story = FlowStory()
        for recorded in self._events():
            for beat in story.tell(recorded):
                self._beats.append(beat)
                if printer is not None:
                    printer.print(beat)

    def result(self) -> JsonObject:
        """Return what the tool answered, once it has.

        Raises:
            ToolRefused: nothing was accepted.
        """
        while self._thread.is_alive() and self._parked is None:
            self._thread.join(_POLL_S)
        if self._parked is not None:
            return self._parked
        if "runId" not in self._answer:
            raise ToolRefused(self._answer["code"], self._answer["error"])
        return self._answer

    def outcome(self) -> tuple[JsonObject, str]:
        """Return what is known of the exchange by now, as plain JSON and in words."""
        flows = self._host.flows
        exchange_id = self._exchange_id or flows.exchange_of_run(self.result()["runId"])
        exchange = None if exchange_id is None else flows.exchange(exchange_id)
        if exchange is None:
            return {}, ""
        value: JsonObject = {"exchange": flow_value(exchange)}
        if self._beats:
            value["beats"] = msgspec.to_builtins(self._beats)
        if not exchange.is_open:
            return value, in_words(exchange)
        pending = self._pending or Pending("going_on", in_words(exchange))
        value["pending"] = pending.code
        return value, pending.words

    def _call(self, arguments: JsonObject) -> None:
        self._answer = self._host.call("sessions_send", arguments)

    def _events(self) -> Iterator[Recorded]:
        """Yield the events of the exchange as they come, until it is over."""
        mine: set[str] = set()
        before: list[Recorded] = []
        after = self._after
        while self._pending is None:
            for recorded in self._host.follow(after, timeout=_POLL_S):
                after = recorded.position
                if self._exchange_id is None:
                    before.append(recorded)
                    if not self._is_mine(recorded):
                        continue
                    mine.add(recorded.stream)
                    batch, before = before, []
                else:
                    batch = [recorded]
                for each in batch:
                    self._take(each, mine)
                    if _belongs(each, mine):
                        yield each
                if recorded.stream in mine and _closes(recorded):
                    return
            if self._exchange_id is None and not self._thread.is_alive():
                return  # it was refused, or sent before
            self._look_who_is_missing()

    def _is_mine(self, recorded: Recorded) -> bool:
        event = recorded.event
        if isinstance(event, ExchangeAccepted) and event.idempotency_key == self._idempotency_key:
            self._exchange_id = event.exchange_id
            return True
        return False

    def _take(self, recorded: Recorded, mine: set[str]) -> None:
        """Note which runs and deliveries belong to the exchange, and what can't go on here."""
        if recorded.stream in mine and (asked := run_asked_in(recorded.event)) is not None:
            mine.add(asked.run_id)
        match recorded.event:
            case RunQueued(exchange_id=str() as exchange_id, run_id=run_id):
                if exchange_stream(exchange_id) in mine:
                    mine.add(run_id)
            case DeliveryDecided(owner=owner) if owner in mine:
                mine.add(recorded.stream)
            case DeliveryFailed(retry_at_ms=int()) if recorded.stream in mine:
                self._pending = Pending("no_channel", "the announce waits for a host that has the channel")
            case _:
                pass

    def _look_who_is_missing(self) -> None:
        """Stop waiting where it is held, where no host has the agent, or where there is no host: the runs are parked (KEY-9)."""
        flows, exchange_id = self._host.flows, self._exchange_id
        exchange = None if exchange_id is None else flows.exchange(exchange_id)
        if exchange is None:
            return
        if exchange.held is not None:
            self._pending = Pending(
                "held", f"it is held; `intersession release {exchange.run_id}` lets it go on"
            )
            return
        agents = self._host.agents()
        if agents is None:
            self._pending = Pending("no_host", "it waits for a host of the log")
            self._stop_waiting(exchange)
            return
        run = None if exchange.awaits is None else self._host.runs.get(exchange.awaits)
        if run is None or run.status != "queued":
            return
        agent_id = SessionKey.recorded(run.session_key).agent_id
        if agent_id in agents:
            return
        self._pending = Pending("no_agent", f"it waits for a host that has the agent {agent_id!r}")
        if exchange.awaits == exchange.run_id:
            self._stop_waiting(exchange)

    def _stop_waiting(self, exchange: ExchangeSummary) -> None:
        """Answer that the message was accepted: no reply will come before a host opens the log."""
        if "runId" not in self._answer:
            self._parked = {"runId": exchange.run_id, "status": "accepted", "sessionKey": exchange.target}


def _belongs(recorded: Recorded, mine: set[str]) -> bool:
    if recorded.stream in mine:
        return True
    message = message_in(recorded.event)
    origin = None if message is None else message.provenance
    if origin is not None and origin.exchange_id is not None and exchange_stream(origin.exchange_id) in mine:
        return True
    return run_named(recorded.event) in mine


def _closes(recorded: Recorded) -> bool:
    return any(isinstance(part, ExchangeClosed) for part in parts_of(recorded.event))
