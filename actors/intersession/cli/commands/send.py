"""`intersession send`: a message to a session, answered by agents that this command hosts, or by a gateway that runs."""

import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from typing import Annotated, Final, Literal, NamedTuple

import msgspec
from cyclopts import Parameter

from intersession.cli.host.beside import Client, host_beside
from intersession.cli.host.hosting import hosted
from intersession.cli.host.reading import acting_as, reading_log
from intersession.cli.shell.answer import (
    OK,
    READING,
    REFUSED,
    ActingAs,
    Agents,
    Answer,
    Reading,
    UsageError,
    as_typed,
)
from intersession.cli.shell.terminal import Screen, safe
from intersession.cli.story.names import live_names
from intersession.cli.story.printing import BeatPrinter
from intersession.cli.story.telling import Beat, FlowStory
from intersession_actors.assembly.system.follow import followed
from intersession_actors.calls.service.reader import Reader
from intersession_actors.hindsight.debugger.named import as_key
from intersession_actors.rules.answers import StreamAnswer
from intersession_actors.rules.config.config import load_config
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.running.runtime.clock import SystemClock
from intersession_events import facts
from intersession_events.basics.ids import exchange_stream
from intersession_events.basics.keys.key import SessionKey
from intersession_events.basics.machine import random_id
from intersession_events.basics.plain_json import JsonObject, present
from intersession_events.log.recorded import Recorded
from intersession_projections.questions.flow_summary import flow_value, in_words
from intersession_projections.views.flows.rows import ExchangeSummary
from intersession_projections.views.inline_views import inline_views

_POLL_S: Final = 0.5


class Pending(NamedTuple):
    """What an open exchange waits for: a code, and words."""

    code: Literal["no_host", "no_agent", "no_channel", "held", "going_on"]
    words: str


class Sending:
    """Calls the tool in a thread, so that the exchange can be watched meanwhile.

    `call` returns its answer, a refusal too; `agents` the ids of those that answer, None once there is no host any more.
    """

    def __init__(
        self,
        reader: Reader,
        arguments: JsonObject,
        *,
        call: Callable[[JsonObject], JsonObject],
        agents: Callable[[], Collection[str] | None],
    ) -> None:
        self._reader = reader
        self._agents = agents
        self._after = reader.log.head()
        self.names: Final = live_names(reader.log)
        self._key: str = arguments["idempotencyKey"]
        self._answer: JsonObject = {}
        self._beats: list[Beat] = []
        self._exchange_id: str | None = None
        self._pending: Pending | None = None
        self._parked: JsonObject | None = None

        def answer() -> None:
            self._answer = call(arguments)

        self._thread = threading.Thread(target=answer, daemon=True)
        self._thread.start()

    def follow(self, printer: BeatPrinter | None) -> None:
        """Watch the exchange until it is over, or waits for something outside of this command."""
        story = FlowStory()
        for recorded in self._events():
            for beat in story.tell(recorded):
                self._beats.append(beat)
                if printer is not None:
                    printer.print(beat)

    def run_id(self) -> str | None:
        """Wait until the message is accepted; return the run that answers it, None where it was refused."""
        for recorded in self._events():
            if isinstance(recorded.event, facts.ExchangeAccepted):
                return recorded.event.run_id
        return None if self._thread.is_alive() else self._answer.get("runId")

    @property
    def is_answered(self) -> bool:
        """Whether the tool has answered, or nobody waits for its answer any more."""
        return not self._thread.is_alive() or self._parked is not None

    def result(self) -> JsonObject:
        """Return the tool's answer, once it is there."""
        while self._thread.is_alive() and self._parked is None:
            self._thread.join(_POLL_S)
        if self._parked is not None:
            return self._parked
        if "runId" not in self._answer:
            raise ToolRefused(self._answer["code"], self._answer["error"])
        return self._answer

    def outcome(self) -> tuple[JsonObject, str]:
        """Return the present outcome of the exchange, as plain JSON and in words."""
        flows = self._reader.flows
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

    def _events(self) -> Iterator[Recorded]:
        """Yield the events of the exchange as they come, until it is over."""
        mine: set[str] = set()
        before: list[Recorded] = []
        after, answered_at = self._after, None
        while self._pending is None:
            for recorded in self._of_a_moment(after):
                after = recorded.position
                if self._exchange_id is None:
                    before.append(recorded)
                    event = recorded.event
                    if not isinstance(event, facts.ExchangeAccepted) or event.idempotency_key != self._key:
                        continue
                    self._exchange_id = event.exchange_id
                    mine.add(recorded.stream)
                    batch, before = before, []
                else:
                    batch = [recorded]
                for each in batch:
                    self._take(each, mine)
                    if _belongs(each, mine):
                        yield each
                closes = any(isinstance(part.event, facts.ExchangeClosed) for part in recorded.parts())
                if closes and recorded.stream in mine:
                    return
            if self._exchange_id is None and not self._thread.is_alive():
                answered_at = self._reader.log.head() if answered_at is None else answered_at
                if "runId" not in self._answer or after >= answered_at:
                    return  # it was refused, or sent before
            self._look_who_is_missing()

    def _of_a_moment(self, after: int) -> Iterator[Recorded]:
        """Yield what comes, and end soon also where others write without a pause."""
        until = time.monotonic() + _POLL_S
        for recorded in followed(self._reader.log, after, timeout=_POLL_S):
            yield recorded
            if time.monotonic() >= until:
                return

    def _take(self, recorded: Recorded, mine: set[str]) -> None:
        """Note which runs and deliveries belong to the exchange, and what can't go on here."""
        if recorded.stream in mine and (asked := facts.run_asked_in(recorded.event)) is not None:
            mine.add(asked.run_id)
        match recorded.event:
            case facts.RunQueued(exchange_id=str() as exchange_id, run_id=run_id):
                if exchange_stream(exchange_id) in mine:
                    mine.add(run_id)
            case facts.DeliveryDecided(owner=owner) if owner in mine:
                mine.add(recorded.stream)
            case facts.DeliveryFailed(retry_at_ms=int()) if recorded.stream in mine:
                self._pending = Pending("no_channel", "the announce waits for a host that has the channel")
            case _:
                pass

    def _look_who_is_missing(self) -> None:
        """Stop waiting where it is held, where no host has the agent, or where there is no host: the runs are parked (KEY-9)."""
        flows, exchange_id = self._reader.flows, self._exchange_id
        exchange = None if exchange_id is None else flows.exchange(exchange_id)
        if exchange is None:
            return
        if exchange.held is not None:
            self._pending = Pending(
                "held", f"it is held; `intersession release {exchange.run_id}` lets it go on"
            )
            return
        agents = self._agents()
        if agents is None:
            self._pending = Pending("no_host", "it waits for a host of the log")
            self._stop_waiting(exchange)
            return
        run = None if exchange.awaits is None else self._reader.runs.get(exchange.awaits)
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
    message = facts.message_in(recorded.event)
    origin = None if message is None else message.provenance
    if origin is not None and origin.exchange_id is not None and exchange_stream(origin.exchange_id) in mine:
        return True
    return facts.run_named(recorded.event) in mine


_HURRIED_S: Final = 0.5
_TOOL: Final = "sessions_send"


def send(
    message: Annotated[str, Parameter(help="What to say.")],
    /,
    *,
    to: Annotated[str | None, Parameter(help="The session: its key in any form, or its session id.")] = None,
    label: Annotated[
        str | None, Parameter(help="The session with this label; with --agent, of that agent.")
    ] = None,
    agent: Annotated[str | None, Parameter(help="This agent's main session.")] = None,
    agents: Agents = None,
    timeout: Annotated[
        float, Parameter(help="Seconds to wait for the reply, up to 86400; 0 does not wait. Default: 30.")
    ] = 30.0,
    no_follow: Annotated[
        bool, Parameter(help="Come back with the reply, and leave the rest to the log's next host.")
    ] = False,
    stream: Annotated[
        bool,
        Parameter(
            help="Show the reply while it is said, in place of the steps; leaves the rest to the host."
        ),
    ] = False,
    idempotency_key: Annotated[
        str | None, Parameter(help="The same key and message are sent once, however often this is called.")
    ] = None,
    acting: ActingAs = None,
    reading: Reading = READING,
) -> Answer:
    """Send a message to a session, and follow what comes of it.

    It shows reply, ping-pong and announce as they come. The command is the log's writer for its time, with
    the agents that --agents names; one that is not there answers when a host that has it opens the log. Where
    the log has a host, it asks that one instead. Without --as the operator asks, and there is no
    reply-back.
    """
    if to is None and label is None and agent is None:
        raise UsageError("say which session: give --to, --label or --agent")
    if stream and reading.json:
        raise UsageError("--stream shows a text as it comes, leave out --json")
    arguments = {
        "message": message,
        "sessionKey": to,
        "label": label,
        "agentId": agent,
        "timeoutSeconds": timeout,
        "idempotencyKey": idempotency_key or random_id(),
    }
    given = present(arguments)
    if agents is None and (beside := host_beside(reading)) is not None:
        # Whatever ends the block, the gateway goes on.
        config = load_config(reading.config).config
        with beside, reading_log(reading, config=config, views=inline_views()) as log:
            reader = Reader(log, config=lambda: config, clock=SystemClock())
            call = partial(_through, beside, _named(reader, given, acting))
            sending = Sending(reader, given, call=call, agents=partial(_agents_beside, reading))
            if stream:
                return _growing(sending, partial(_deltas_of, reading, sending))
            return _sent(sending, no_follow=no_follow, json=reading.json)
    if agents is None and timeout > 0:
        raise UsageError(
            "--agents: nobody would answer; name who does, or give --timeout 0 to leave it to the next host"
        )
    with hosted(reading, agents=agents, config=reading.config) as system:
        reader = system.service.reader
        call = partial(system.tools(_named(reader, given, acting)).call, _TOOL)
        sending = Sending(reader, given, call=call, agents=lambda: system.status()["agents"])
        try:
            if stream:
                return _growing(sending, lambda run_id: _texts_of(system.stream(run_id)))
            return _sent(sending, no_follow=no_follow, json=reading.json)
        except (KeyboardInterrupt, BrokenPipeError):
            system.close(_HURRIED_S)  # what is cut off is taken up by the next host
            raise


def _named(reader: Reader, given: JsonObject, acting: str | None) -> str | None:
    """Return the key of the session that the command acts as; the one that it speaks to is named by its key, too."""
    if "sessionKey" in given:
        given["sessionKey"] = as_key(reader, given["sessionKey"])
    key = acting_as(reader, acting).key
    return None if key is None else str(key)


def _through(client: Client, session_key: str | None, arguments: JsonObject) -> JsonObject:
    """Send it through the gateway, and return the tool's answer, or the gateway's own refusal."""
    try:
        with client:
            answer: JsonObject = client.call_tool(_TOOL, arguments, session_key=session_key)
    except ToolRefused as refused:
        return dict(refused.as_result())
    return answer


def _agents_beside(reading: Reading) -> Collection[str] | None:
    """Return the ids of the agents that answer; None once the gateway is gone.

    Each time by a client of its own: what the gateway tells everybody would fill one that is kept open without being read.
    """
    try:
        asking = host_beside(reading)
        if asking is None:
            return None
        with asking:
            agents: list[str] = asking.call("status")["agents"]
    except ToolRefused as refused:
        if refused.code == "unavailable":
            return None
        raise
    return agents


def _texts_of(parts: Iterable[StreamAnswer]) -> Iterator[str]:
    return (part["text"] for part in parts if "text" in part)


def _deltas_of(reading: Reading, sending: Sending, run_id: str) -> Iterator[str]:
    """Yield what the agent of a run has said so far, where the host has a gateway that tells it."""
    listening = host_beside(reading)
    if listening is None or not hasattr(listening, "deltas"):
        return
    with listening:
        yield from listening.deltas(run_id, lambda: sending.is_answered)


def _growing(sending: Sending, heard: Callable[[str], Iterator[str]]) -> Answer:
    """Show the reply while it is said, then how it ended. What was said by an attempt that was cut off is said to be so."""
    screen, before = Screen(), ""
    run_id = sending.run_id()
    for text in heard(run_id) if run_id is not None else ():
        if not text.startswith(before):
            screen.grow("\n")
            screen.dim("  it was cut off there, and begins again:")
            before = ""
        screen.grow(text.removeprefix(before))
        before = text
    result = sending.result()
    reply = str(result.get("reply") or "")
    is_shown = bool(before) and reply.startswith(before)
    if before:
        screen.grow(f"{reply.removeprefix(before) if is_shown else ''}\n")
    known, words = sending.outcome()
    value = result | known | ({"reply": None} if is_shown else {})
    failed = result["status"] in {"error", "forbidden"}
    return Answer(value, lambda screen: _show(screen, value, words), REFUSED if failed else OK)


def _sent(sending: Sending, *, no_follow: bool, json: bool) -> Answer:
    """Follow the sent message, and return the answer with the present outcome."""
    if not no_follow:
        sending.follow(None if json else BeatPrinter(Screen(), sending.names))
    result = sending.result()
    known, words = sending.outcome()
    value = result | known
    failed = result["status"] in {"error", "forbidden"}
    return Answer(value, lambda screen: _show(screen, value, words), REFUSED if failed else OK)


def _show(screen: Screen, value: JsonObject, words: str) -> None:
    screen.line()
    status = value["status"]
    screen.line(
        safe(f"{status}", "bold green" if status in {"ok", "accepted"} else "bold red"),
        f"  run {value['runId']}",
    )
    if "beats" not in value and value.get("reply"):
        screen.indented(value["reply"], 4)
    if "error" in value:
        screen.line("  ", as_typed(str(value["error"]), ["send"]))
    if "pending" in value:
        more = f"`intersession replay {value['runId']}` shows how far it is"
        screen.dim(f"  not over: {words}; {more}")
    elif "exchange" in value:
        screen.dim(f"  exchange {value['exchange']['id']}: {words}")
