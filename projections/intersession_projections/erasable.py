"""Where the words of a session stand: in its own stream, and where others have a copy. For `sessions.erase` (ERASE-1)."""

from collections.abc import Collection, Iterable, Iterator
from typing import Final, NamedTuple, TypeVar

from intersession_events.facts import (
    ExchangeAccepted,
    ForkedFrom,
    ForkEdited,
    MessageRecorded,
    RunAsked,
    RunQueued,
    SpawnAccepted,
    ToolCallBlock,
    run_named,
    text_of,
    words,
)
from intersession_events.ids import access_stream, delivery_stream, notes_stream, session_stream
from intersession_events.log import Log, Recorded, left_of
from intersession_projections.flows import DeliverySummary, ExchangeSummary, Flows, Position, SpawnSummary
from intersession_projections.run_outcomes import Runs

_PAGE: Final = 256
_NEAR: Final = 16
"""A run's message is recorded in one append with it, or a little before."""
_QUOTED: Final = 20
"""A text of so many characters is also looked for within others; a shorter one may stand there by chance."""

T = TypeVar("T")


class Words(NamedTuple):
    """An event with words, and the digest of what is left of it without them."""

    recorded: Recorded
    left: str


class Erasable:
    """Finds what a session has said and was told: its own, and copies in flows, deliveries, other sessions and notes.

    What another session read with `sessions_history`, or repeats in words of its own, is not found: it is that session's.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self._flows = Flows(log)
        self._runs = Runs(log)

    def open_work(self, key: str) -> list[str]:
        """Return the streams and ids of what is still under way in a session: words that are still to be acted on."""
        everything = Position(0, self._log.head(), key, is_open=True)
        return [
            *(run.run_id for run in self._runs.open_runs() if run.session_key == key),
            *(flow.stream for flow in self._flows.exchanges_at(everything, _PAGE)),
            *(flow.stream for flow in self._flows.spawns_at(everything, _PAGE)),
            *(
                delivery_stream(flow.delivery_id)
                for flow in self._flows.deliveries_of_session(key)
                if flow.is_open
            ),
        ]

    def of_session(self, key: str, messages: Collection[str] = ()) -> Iterator[Words]:
        """Yield all events with words of a session; with ids of `messages` those alone, and wherever their text stands.

        Raises:
            LookupError: one of the messages is not in the session.
        """
        if not messages:
            said: set[str] = set()
            yield from _with_words(self._noted(self._everything(key), said))
            yield from _with_words(self._edits(said, key))
            return
        texts: set[str] = set()
        missing = set(messages)
        for recorded in self._stream(session_stream(key)):
            event = recorded.event
            if isinstance(event, MessageRecorded) and event.message.id in messages:
                missing.discard(event.message.id)
                texts.add(text_of(event.message).strip())
        if missing:
            raise LookupError(min(missing))
        texts.discard("")
        yield from _with_words(
            recorded for recorded in self._everything(key) if _says(recorded, messages, texts)
        )
        yield from _with_words(self._edits(texts, None))

    def _noted(self, events: Iterable[Recorded], said: set[str]) -> Iterator[Recorded]:
        """Note in `said` what was said behind the cut of a fork; in a log that is none, nothing."""
        forked = self._log.forked
        for recorded in events:
            if forked is not None and recorded.position > forked.position:
                said.update(text.strip() for text in words(recorded.event))
            yield recorded

    def _edits(self, said: Collection[str], key: str | None) -> Iterator[Recorded]:
        """Yield the events that say what is otherwise in a fork, of those that had any of this said, or a session told something.

        What began the fork says all its edits at once, and loses the words of all of them.
        """
        if self._log.forked is None:
            return
        for recorded in self._stream("log"):
            match recorded.event:
                case ForkedFrom(edits=edits):
                    pass
                case ForkEdited(edit=edit):
                    edits = (edit,)
                case _:
                    continue
            if any(
                edit.value.strip() in said or (edit.kind == "inject" and edit.key == key) for edit in edits
            ):
                yield recorded

    def _everything(self, key: str) -> Iterator[Recorded]:
        yield from self._own(key)
        yield from self._stream(access_stream(key))
        seen: set[str] = set()
        for delivery in self._flows.deliveries_of_session(key):
            yield from self._delivery(delivery, seen)
        for flow in self._flows_of(key):
            yield from self._stream(notes_stream(flow.stream.partition(":")[2]))
            runs: list[str] = []
            asking: list[str] = []
            for recorded in self._stream(flow.stream):
                yield recorded
                if isinstance(recorded.event, RunAsked):
                    runs.append(recorded.event.run_id)
                asking += _asking(recorded)
            for run_id in runs:
                yield from self._of_run(run_id, key, seen)
            for run_id in asking:
                # Another session's run, of which only what passed through its tools is about this one.
                yield from filter(_is_of_tools, self._of_run(run_id, key, seen))
            for delivery in self._flows.deliveries_of(flow.stream):
                yield from self._delivery(delivery, seen)

    def _own(self, key: str) -> Iterator[Recorded]:
        """Yield what a session has recorded itself, and the notes beside its runs."""
        begun: list[str] = []
        for recorded in self._stream(session_stream(key)):
            yield recorded
            if isinstance(recorded.event, RunQueued):
                begun.append(recorded.event.run_id)
        for run_id in begun:
            yield from self._stream(notes_stream(run_id))

    def _flows_of(self, key: str) -> Iterator[ExchangeSummary | SpawnSummary]:
        for select in (self._flows.exchanges_at, self._flows.spawns_at):
            last = self._log.head()
            while page := select(Position(0, last, key), _PAGE):
                yield from page
                last = page[-1].accepted - 1

    def _delivery(self, delivery: DeliverySummary, seen: set[str]) -> Iterator[Recorded]:
        if delivery.delivery_id not in seen:
            seen.add(delivery.delivery_id)
            yield from self._stream(delivery_stream(delivery.delivery_id))

    def _of_run(self, run_id: str, key: str, seen: set[str]) -> Iterator[Recorded]:
        """Yield what a run said and was told in another session."""
        run = self._runs.get(run_id)
        if run is None or run.session_key == key or run_id in seen:
            return
        seen.add(run_id)
        first = max(0, run.first_version - _NEAR)
        for recorded in self._log.stream(session_stream(run.session_key), after=first, to=run.last_version):
            event = recorded.event
            if isinstance(event, MessageRecorded):
                if event.message.run_id == run_id or event.message.id == run.message_id:
                    yield recorded
            elif run_named(event) == run_id:
                yield recorded

    def _stream(self, stream: str) -> Iterator[Recorded]:
        after = 0
        while page := self._log.stream(stream, after=after, limit=_PAGE):
            yield from page
            after = page[-1].version


def _asking(recorded: Recorded) -> Iterator[str]:
    """Yield the run whose tool began a flow: the call and its result repeat what was said."""
    event = recorded.event
    if isinstance(event, ExchangeAccepted | SpawnAccepted) and event.requester_run_id is not None:
        yield event.requester_run_id


def _is_of_tools(recorded: Recorded) -> bool:
    event = recorded.event
    if not isinstance(event, MessageRecorded):
        return False
    content = event.message.content
    return event.message.role == "toolResult" or (
        isinstance(content, tuple) and any(isinstance(block, ToolCallBlock) for block in content)
    )


def _with_words(events: Iterable[Recorded]) -> Iterator[Words]:
    for recorded in events:
        left = left_of(recorded)
        if left is not None:
            yield Words(recorded, left)


def _says(recorded: Recorded, messages: Collection[str], texts: Collection[str]) -> bool:
    event = recorded.event
    if isinstance(event, MessageRecorded) and event.message.id in messages:
        return True
    return any(
        text == said.strip() or (len(text) >= _QUOTED and text in said)
        for said in words(event)
        for text in texts
    )
