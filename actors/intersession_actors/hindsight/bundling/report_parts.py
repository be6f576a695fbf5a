"""Reads the events of a bundle, line by line, for its report: who took part, what was said, called, sent, used and refused.

It reads what the bundle has, so a report can't say what an edition withholds (BUNDLE-26).
"""

from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from intersession_actors.hindsight.bundling.editions import WITHHELD
from intersession_events import facts
from intersession_events.basics.errors import CorruptEvent, UnknownTopic
from intersession_events.facts.base import ERASED
from intersession_events.facts.delivery import STATES
from intersession_events.facts.message_words import is_by_method, person, words_of_message
from intersession_events.facts.parts import words_of
from intersession_events.facts.reasons import counted
from intersession_events.facts.words import Frame, Words
from intersession_events.proofs.apart import Apart, whole

MOST_EVENTS: Final = 2000
MOST_SAID: Final = 1000
MOST_OTHERS: Final = 500
"""The most rows of each other table."""


class _Line(msgspec.Struct):
    position: int
    stream: str
    topic: str
    time: int
    hash: str
    data: msgspec.Raw
    correlation: str | None = None
    apart: Apart | None = None
    withheld: str = ""


class Entry(NamedTuple):
    """A row of the report: what happened at a position, between whom; `behalf` is the person or caller it all began with."""

    position: int
    time: int
    who: str = ""
    to: str = ""
    how: str = ""
    text: str = ""
    behalf: str = ""
    hash: str = ""
    withheld: str = ""
    ended: int = 0
    """Where what came of it stands."""


class FirstRows(list[Entry]):
    """The first rows of a table, and how many it has in all."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most
        self.total = 0

    def put(self, entry: Entry) -> None:
        """Add a row, if there is room."""
        self.total += 1
        if len(self) < self.most:
            self.append(entry)


class Used(msgspec.Struct):
    """The answers of one session by one model, and what they used."""

    answers: int = 0
    read: int = 0
    written: int = 0
    tokens: int = 0
    cost_micros: int | None = None

    def add(self, usage: facts.Usage) -> None:
        """Add what an answer used."""
        self.answers += 1
        self.read += usage.input
        self.written += usage.output
        self.tokens += usage.tokens
        if usage.cost_micros is not None:
            self.cost_micros = (self.cost_micros or 0) + usage.cost_micros


class Reported:
    """All that the report tells of the events."""

    def __init__(self) -> None:
        self.events = FirstRows(MOST_EVENTS)
        self.said = FirstRows(MOST_SAID)
        self.calls = FirstRows(MOST_OTHERS)
        self.deliveries = FirstRows(MOST_OTHERS)
        self.refusals = FirstRows(MOST_OTHERS)
        self.failures = FirstRows(MOST_OTHERS)
        self.erasures = FirstRows(MOST_OTHERS)
        self.notes = FirstRows(MOST_OTHERS)
        self.people: Counter[str] = Counter()
        """How often each sender said something, by their id."""
        self.names: dict[str, str] = {}
        """The name and id of each sender, who is told now with a name, now without."""
        self.sessions: Counter[str] = Counter()
        self.places: Counter[str] = Counter()
        self.agents: dict[str, str] = {}
        """The agent of each session."""
        self.between: Counter[tuple[str, str]] = Counter()
        """How often one said something to another, in the order in which they began."""
        self.used: dict[tuple[str, str], Used] = {}
        self.withheld: Counter[str] = Counter()
        self.began = self.ended = 0
        self._senders: dict[str, str] = {}
        self._behalf: dict[str, str] = {}
        self._calls: dict[tuple[str, str], int] = {}
        self._sent: dict[str, int] = {}

    def called(self, name: str) -> str:
        """Return how somebody is called throughout the report."""
        return self.names.get(self._senders.get(name, name), name)

    def read(self, lines: Iterable[bytes]) -> None:
        """Read the lines of `events.jsonl`."""
        for line in lines:
            self._take(_DECODE(line))

    def _take(self, line: _Line) -> None:
        kind, _, name = line.stream.partition(":")
        key = name if kind == "session" else None
        if line.withheld:
            self.withheld[line.withheld] += 1
        if line.topic not in _OF_THE_LOG:
            self.began = self.began or line.time
            self.ended = line.time
        try:
            event: facts.Event | None = facts.decode(line.topic, whole(bytes(line.data), line.apart))
        except (CorruptEvent, UnknownTopic):
            event = None  # of a later version, or withheld because nobody knew what it says
        words = Words(None, None, "") if event is None else words_of(event, Frame(key=key))
        at = Entry(line.position, line.time, hash=line.hash, withheld=line.withheld)
        self.events.put(
            at._replace(
                who=words.who or "",
                to=words.to or "",
                how=line.topic.rpartition(".")[0].replace("_", " "),
                text=self._shown(words.brief, line),
            )
        )
        if key is not None:
            self.sessions[key] += 0
        if event is not None:
            self._tell(event, at._replace(behalf=self._on_behalf(event, line)), line, key)

    def _shown(self, text: str, line: _Line) -> str:
        """Return a text of a row. What an edition withholds stands there as an erasure leaves it."""
        return text.replace(ERASED, WITHHELD) if line.withheld else text

    def _on_behalf(self, event: facts.Event, line: _Line) -> str:
        chain = line.correlation or ""
        known = self._behalf.get(chain)
        if known is None or (chain and known in _VAGUE):
            message = facts.message_in(event)
            origin = None if message is None else message.provenance
            if origin is not None and is_by_method(origin):
                known = "operator"
            elif origin is not None and origin.kind == "external_user":
                known = person(origin.sender, origin.sender_name)
            else:
                known = known or _BEGUN.get(event.begun_by, event.begun_by)
            if chain:
                self._behalf[chain] = known
        return known

    def _tell(self, event: facts.Event, at: Entry, line: _Line, key: str | None) -> None:
        message = facts.message_in(event)
        if message is not None and key is not None:
            self._message(message, at, line, key)
        match event:
            case facts.SessionOpened():
                self.agents[event.key] = event.agent_id
            case facts.DeliveryFact():
                self._send(event, at, line)
            case facts.AccessRecorded() | facts.SendRefused():
                self._refuse(event, at)
            case facts.RunFailed():
                text = self._shown(event.error, line)
                self.failures.put(at._replace(who=key or "", how=event.code, text=text))
            case facts.Erased() if event.edition is None:
                text = f"{counted(len(event.rows), 'event')} of {event.stream}"
                self.erasures.put(at._replace(who=event.by, how=event.reason, text=text))
            case facts.NotePinned():
                text = self._shown(event.text, line)
                self.notes.put(at._replace(who=event.by, text=text, ended=event.position))
            case _:
                pass

    def _refuse(self, event: facts.AccessEvent, at: Entry) -> None:
        at = at._replace(who=event.doer or "", how=event.tool)
        if isinstance(event, facts.SendRefused):
            text = f"{event.code}: {event.limit} is {event.value}"
            self.refusals.put(at._replace(to=event.target, text=text))
        elif event.denied_count:
            text = ", ".join(f"{target}: {reason}" for target, reason in event.denied)
            self.refusals.put(at._replace(text=text))

    def _message(self, message: facts.Message, at: Entry, line: _Line, key: str) -> None:
        origin = message.provenance
        if origin is not None and origin.kind == "external_user" and origin.sender is not None:
            self.people[origin.sender] += 1
            if origin.sender_name is not None:
                self.names[origin.sender] = person(origin.sender, origin.sender_name)
                self._senders[self.names[origin.sender]] = origin.sender
        if message.role == "assistant":
            self.sessions[key] += 1
            if message.usage is not None:
                self.used.setdefault((key, message.model or ""), Used()).add(message.usage)
        calls = iter(facts.calls_of(message))
        for words in words_of_message(message, key):
            text = self._shown(words.text or "", line)
            entry = at._replace(who=words.who or "", to=words.to or "", how=words.how, text=text)
            if words.kind == "said":
                self.said.put(entry)
                self.between[entry.who, entry.to or ""] += 1
            elif message.role == "assistant":
                self._calls[key, next(calls, "")] = len(self.calls)
                self.calls.put(entry)
            else:
                self._answered(message, entry, key)

    def _answered(self, message: facts.Message, entry: Entry, key: str) -> None:
        place = self._calls.pop((key, message.tool_call_id or ""), MOST_OTHERS)
        if place < len(self.calls):
            call = self.calls[place]
            how = f"{call.how}, fails" if message.is_error else call.how
            self.calls[place] = call._replace(how=how, to=entry.text, ended=entry.position)

    def _send(self, event: facts.DeliveryFact, at: Entry, line: _Line) -> None:
        if isinstance(event, facts.DeliveryDecided):
            self.places[event.route.text] += 1
            self._sent[event.delivery_id] = len(self.deliveries)
            text, purpose = self._shown(event.text, line), event.purpose.replace("_", " ")
            self.deliveries.put(
                at._replace(who=event.session_key, to=event.route.text, how=f"{purpose}: waiting", text=text)
            )
            return
        place = self._sent.get(event.delivery_id, MOST_OTHERS)
        if place < len(self.deliveries):
            sent = self.deliveries[place]
            how = f"{sent.how.partition(':')[0]}: {STATES[event.state]}"
            if event.trouble:
                how = f"{how}: {self._shown(event.trouble, line)}"
            self.deliveries[place] = sent._replace(how=how, ended=at.position)


_DECODE: Final = msgspec.json.Decoder(_Line).decode
_VAGUE: Final = frozenset({"a person", "the system"})
_BEGUN: Final = {
    "person": "a person",
    "timer": "a timer",
    "start": "a start of the system",
    "import": "an import",
    "system": "the system",
}
_OF_THE_LOG: Final = frozenset({"log_opened.1", "config_loaded.1", "checkpoint_taken.1"})
