"""Finds the texts of a session: in its own stream, and copies everywhere else. For `sessions.erase` (ERASE-1)."""

from collections.abc import Collection, Iterable, Iterator
from typing import Final, Literal

from intersession_events.basics.ids import access_stream, delivery_stream, notes_stream, session_stream
from intersession_events.facts import (
    CheckpointPublished,
    CheckpointTaken,
    ClockStepped,
    FlowAccepted,
    ForkedFrom,
    ForkEdited,
    LogOpened,
    RecordingLeft,
    RunQueued,
    calls_of,
    is_summary,
    message_in,
    run_asked_in,
    run_named,
    text_of,
    topics_of,
    unsaid,
    words,
)
from intersession_events.log.erasing import left_of
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded
from intersession_projections.copies.found_words import Found, Staying, Words, erasable, with_words
from intersession_projections.copies.text_copies import QUOTED, Copies, Inheritances, copied
from intersession_projections.copies.whose_words import Person
from intersession_projections.views.flows.flows import Flows
from intersession_projections.views.flows.rows import DeliverySummary, ExchangeSummary, Position, SpawnSummary
from intersession_projections.views.run_outcomes.runs import Runs

_PAGE: Final = 256
_NEVER: Final = topics_of(CheckpointTaken, CheckpointPublished, ClockStepped, LogOpened)
"""What nobody said."""
_KEPT: Final = "words in what is never erased (labels, names, settings)"
_CALLED: Final = "their name in what is never erased (labels, names of chats)"
_LEFT: Final = {"part": "parts of texts, quoted", "named": "words of others that name them"}


class Erasable:
    """Finds what a session said and was told: its own events, those that belong to it elsewhere, and all copies.

    What is somebody else's is a copy if it has a whole text of at least 20 characters in it, as it was said or cut short, or if
    it says that it came from the session. What another session repeats in words of its own is not found.

    In a fork, `source` is what was found in the log that it came from: its texts are looked for as well, and its events go.
    """

    def __init__(self, log: Log, source: "Erasable | None" = None) -> None:
        self.named: list[str] = []
        """What was found and can't be erased, in words."""
        self.waiting: list[str] = []
        """Streams of others with copies in which something is under way: words there may be acted on, and written again."""
        self.told_to: dict[str, None] = {}
        """The channels, and the models, that were given what goes."""
        self.spawns: set[str] = set()
        """Streams of spawns that it led to, which may have handed files to a child."""
        self.places: set[tuple[str, int]] = set()
        """Streams and versions of all that was found."""
        self._log = log
        self._source = source
        self._copies: Copies = Copies() if source is None else source._copies  # noqa: SLF001 - of the same kind
        self._flows = Flows(log)
        self._runs = Runs(log)

    def open_work(self, key: str) -> list[str]:
        """Return the streams and ids of unfinished work in a session: its texts are still needed."""
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

    def of_session(self, key: str, messages: Collection[str] = ()) -> list[Words]:
        """Return all events with texts of a session; with ids of `messages` those alone, and all copies of their texts.

        Copies come first: they are found by the session's own words, as long as those are there.

        Raises:
            LookupError: one of the messages is not in the session.
        """
        if not messages:
            said: set[str] = set()
            found = Found(self._copies)
            own = [
                *with_words(found.noting(self._in_source())),
                *with_words(found.noting(self._noted(self._everything(key), said))),
                *with_words(found.noting(self._edits(said, key))),
            ]
            return self._all(found, self._elsewhere(found, (key,)), own)
        texts: set[str] = set()
        missing = set(messages)
        summaries: set[str] = set()
        summarising: set[str] = set()
        for recorded in self._stream(session_stream(key)):
            message = message_in(recorded.event)
            if message is not None and message.id in messages:
                missing.discard(message.id)
                texts.add(text_of(message).strip())
            elif len(missing) < len(messages) and is_summary(recorded.event):
                summarising.add(run_named(recorded.event) or "")
                summaries.add(recorded.id)  # it may say what the message said, in words of its own
        if missing and self._source is None:
            raise LookupError(min(missing))
        texts.discard("")
        found = Found(self._copies, everything=False)
        found.copies.note(texts)
        told = (
            recorded
            for recorded in self._everything(key)
            if recorded.id in summaries or _says(recorded, messages, texts)
        )
        own = [
            *with_words(found.noting(self._in_source())),
            *with_words(found.noting(told)),
            *with_words(found.noting(self._edits(texts, None))),
        ]
        return self._all(found, self._elsewhere(found, (), {*messages, *summarising}), own)

    def of_person(self, person: Person, *, mentions: bool = False) -> list[Words]:
        """Return all events with what a person said, was told, and led to, and all copies; copies come first.

        With `mentions` also what others said in which they are named. Streams in which something of it is under way are in `waiting`.
        """
        found, busy = Found(self._copies, person=person), self.under_way()
        own: list[Words] = []
        for events in (
            self._in_source(),
            *map(self._everything, person.sessions),
            *(self._edits((), key) for key in person.sessions),
            person.events(self._log),
        ):
            for recorded in found.noting(events):
                if recorded.stream in busy:
                    self.waiting.append(recorded.stream)
                own += with_words((recorded,))
        some = {*person.messages, *person.summaries}
        elsewhere = self._elsewhere(found, person.sessions, some, person, mentions=mentions)
        return self._all(found, elsewhere, own)

    def _in_source(self) -> Iterator[Recorded]:
        """Yield the events of a fork's beginning that were found in the log that it came from."""
        forked, source = self._log.forked, self._source
        if forked is None or source is None:
            return
        heads = {stream: version for stream, version, _ in forked.heads}
        for stream, version in sorted(source.places):
            if version <= heads.get(stream, 0) and stream != "log":
                yield from self._log.stream(stream, after=version - 1, to=version)

    def _all(self, found: "Found", elsewhere: Iterator[Words], own: list[Words]) -> list[Words]:
        words = [*elsewhere, *own]
        self.places = {(one.stream, one.version) for one in words}
        self.told_to, self.spawns = found.told_to, found.spawns
        return words

    def _elsewhere(  # noqa: C901 - one look at each event
        self,
        found: "Found",
        keys: Collection[str],
        some: Collection[str] = (),
        person: Person | None = None,
        *,
        mentions: bool = False,
    ) -> Iterator[Words]:
        """Yield the copies in all the rest of the log; what can't be erased, or only has a part of a text, is named.

        `keys` are the sessions whose words go wherever they say that they came from these; `some` single messages and summaries
        that go, by the ids of these and their runs. A child that began with any of them loses all that it began with, and its summaries.
        """
        inherited = Inheritances(keys, some)
        busy, named, stays = self.under_way(), self._named_by_flows(), Staying()
        for recorded in self._log.all(to=self._log.head()):
            if recorded.topic in _NEVER:
                continue
            where = f"{recorded.kind} of {recorded.stream}"
            if person is not None and person.is_kept_in(recorded):
                stays.note(_CALLED, where, recorded.position)
            if recorded.position in found.positions:
                continue
            how: Literal["whole", "part", "named"] | None = (
                "whole" if inherited.has(recorded) else copied(recorded, found.copies, keys)
            )
            if how != "whole" and person is not None and person.is_mentioned(recorded):
                how = "whole" if mentions else "named"
            if how != "whole":
                if how is not None:
                    stays.note(_LEFT[how], recorded.stream, recorded.position)
                continue
            flow = named.get(run_named(recorded.event) or "")
            if flow is not None or recorded.stream in busy:
                self.waiting.append(flow or recorded.stream)
                continue
            left = left_of(recorded)
            if left is not None:
                yield erasable(recorded, left, is_copy=True)
            if found.copies.found_in(unsaid(recorded.event)) == "whole":
                stays.note(_KEPT, where, recorded.position)
        self.named += stays.in_words()
        if not found.copies.is_all_known:
            self.named.append(
                "parts of texts that were quoted: there are too many texts to look for those of all"
            )

    def under_way(self) -> set[str]:
        """Return the streams of all unfinished work; none of a fork that nobody runs: whoever goes on with it finds no words."""
        flows = self._flows
        if self._source is not None:
            return set()
        return {
            *flows.open_exchanges(),
            *flows.open_spawns(),
            *flows.open_deliveries(),
            *(session_stream(run.session_key) for run in self._runs.open_runs()),
        }

    def _named_by_flows(self) -> dict[str, str]:
        """Return the runs whose texts an open flow may carry on, each with the stream of the flow: they stand with the runs alone."""
        return {
            asked.run_id: stream
            for stream in self.under_way()
            if stream.startswith(("exchange:", "spawn:"))
            for recorded in self._stream(stream)
            if (asked := run_asked_in(recorded.event)) is not None
        }

    def _noted(self, events: Iterable[Recorded], said: set[str]) -> Iterator[Recorded]:
        """Note in `said` the texts after the cut of a fork; does nothing in a log that is not a fork."""
        forked = self._log.forked
        for recorded in events:
            if forked is not None and recorded.position > forked.position:
                said.update(text.strip() for text in words(recorded.event))
            yield recorded

    def _edits(self, said: Collection[str], key: str | None) -> Iterator[Recorded]:
        """Yield the fork's edits that contain one of these texts, or tell the session something.

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
                case RecordingLeft(session_key=asked):
                    if asked == key:
                        yield recorded
                    continue
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
                if (asked := run_asked_in(recorded.event)) is not None:
                    runs.append(asked.run_id)
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
        stream = session_stream(run.session_key)
        for recorded in self._log.stream(stream, after=run.first_version - 1, to=run.last_version):
            if run_named(recorded.event) == run_id:
                yield recorded

    def _stream(self, stream: str) -> Iterator[Recorded]:
        after = 0
        while page := self._log.stream(stream, after=after, limit=_PAGE):
            yield from page
            after = page[-1].version


def _asking(recorded: Recorded) -> Iterator[str]:
    """Yield the run whose tool began a flow: the call and its result repeat the texts."""
    event = recorded.event
    if isinstance(event, FlowAccepted) and event.requester_run_id is not None:
        yield event.requester_run_id


def _is_of_tools(recorded: Recorded) -> bool:
    message = message_in(recorded.event)
    return message is not None and (message.role == "toolResult" or bool(calls_of(message)))


def _says(recorded: Recorded, messages: Collection[str], texts: Collection[str]) -> bool:
    event = recorded.event
    message = message_in(event)
    if message is not None and message.id in messages:
        return True
    if isinstance(event, FlowAccepted) and event.message_id in messages:
        return True  # it has the digest of the message
    return any(
        text == said.strip() or (len(text) >= QUOTED and text in said)
        for said in words(recorded.event)
        for text in texts
    )
