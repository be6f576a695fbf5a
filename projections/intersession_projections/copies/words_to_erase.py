"""Finds the texts of a session: in its own stream, and copies everywhere else. For `sessions.erase` (ERASE-1)."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final, Literal, NamedTuple, TypeVar

from intersession_events.basics.ids import access_stream, delivery_stream, notes_stream, session_stream
from intersession_events.facts import (
    AccessRecorded,
    CheckpointPublished,
    CheckpointTaken,
    ClockStepped,
    FlowAccepted,
    ForkedFrom,
    ForkEdited,
    LogOpened,
    RecordingLeft,
    RunQueued,
    SpawnAccepted,
    TranscriptGiven,
    calls_of,
    files_in,
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
from intersession_projections.copies.text_copies import QUOTED, Copies, said_in, shows
from intersession_projections.views.flows.flows import Flows
from intersession_projections.views.flows.rows import DeliverySummary, ExchangeSummary, Position, SpawnSummary
from intersession_projections.views.run_outcomes.runs import Runs

_PAGE: Final = 256
_MOST_NAMED: Final = 20
_NEVER: Final = topics_of(CheckpointTaken, CheckpointPublished, ClockStepped, LogOpened)
"""What nobody said."""

T = TypeVar("T")


class Words(NamedTuple):
    """An event with texts, by its stream and version, and the digest of what is left of it without them."""

    stream: str
    version: int
    left: str
    files: tuple[str, ...] = ()
    """The SHA-256 of the files that it names."""


class Erasable:
    """Finds what a session said and was told: its own events, those that belong to it elsewhere, and all copies.

    What is somebody else's is a copy if it has a whole text of at least 20 characters in it, as it was said or cut short, or if
    it says that it came from the session. What another session repeats in words of its own is not found.
    """

    def __init__(self, log: Log) -> None:
        self.named: list[str] = []
        """What `of_session` found and can't be erased, in words."""
        self.waiting: list[str] = []
        """Streams of others with copies in which something is under way: words there may be acted on, and written again."""
        self._log = log
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
            found = _Found()
            own = [
                *_with_words(found.noting(self._noted(self._everything(key), said))),
                *_with_words(found.noting(self._edits(said, key))),
            ]
            return [*self._elsewhere(found, key), *own]
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
        if missing:
            raise LookupError(min(missing))
        texts.discard("")
        found = _Found(everything=False)
        found.copies.note(texts)
        told = (
            recorded
            for recorded in self._everything(key)
            if recorded.id in summaries or _says(recorded, messages, texts)
        )
        own = [*_with_words(found.noting(told)), *_with_words(found.noting(self._edits(texts, None)))]
        return [*self._elsewhere(found, None, {*messages, *summarising}), *own]

    def _elsewhere(self, found: "_Found", key: str | None, some: Collection[str] = ()) -> Iterator[Words]:
        """Yield the copies in all the rest of the log; what can't be erased, or only has a part of a text, is named.

        `key` is the session whose words go wherever they say that they came from it; None where single texts go,
        `some` messages and summaries by the ids of these and their runs. A child that began with any of them loses all that it began with, and its summaries.
        """
        inherited = _Inheritances(key, some)
        busy, parts, kept = self._busy(), dict[str, int](), dict[str, int]()
        named = self._named_by_flows()
        for recorded in self._log.all(to=self._log.head()):
            if recorded.position in found.positions or recorded.topic in _NEVER:
                continue
            how = "whole" if inherited.has(recorded) else _copied(recorded, found.copies, key)
            if how == "part":
                parts[recorded.stream] = recorded.position
            if how != "whole":
                continue
            flow = named.get(run_named(recorded.event) or "")
            if flow is not None or recorded.stream in busy:
                self.waiting.append(flow or recorded.stream)
                continue
            left = left_of(recorded)
            if left is not None:
                yield _erasable(recorded, left)
            if found.copies.found_in(unsaid(recorded.event)) == "whole":
                kept[f"{recorded.topic.partition('.')[0]} of {recorded.stream}"] = recorded.position
        self.named += _named("words in what is never erased (labels, names, settings)", kept)
        self.named += _named("parts of texts, quoted", parts)
        if not found.copies.is_all_known:
            self.named.append(
                "parts of texts that were quoted: there are too many texts to look for those of all"
            )

    def _busy(self) -> set[str]:
        """Return the streams of unfinished work."""
        flows = self._flows
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
            for stream in (*self._flows.open_exchanges(), *self._flows.open_spawns())
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


class _Found:
    """The events of a session, and their texts. With single messages only their own texts count."""

    def __init__(self, *, everything: bool = True) -> None:
        self.positions: set[int] = set()
        self.copies = Copies()
        self._everything = everything

    def noting(self, events: Iterable[Recorded]) -> Iterator[Recorded]:
        for recorded in events:
            if recorded.position not in self.positions:
                self.positions.add(recorded.position)
                if self._everything:
                    self.copies.note(said_in(recorded.event))
                yield recorded


def _copied(recorded: Recorded, copies: Copies, key: str | None) -> Literal["whole", "part"] | None:
    event = recorded.event
    if key is not None and (message := message_in(event)) is not None:
        origin = message.provenance
        if origin is not None and origin.source_session_key == key:
            return "whole"
        if shows(message, _names(key, recorded.stream)):
            return "whole"
    if isinstance(event, AccessRecorded) and copies.are_asked_for(event):
        return "whole"
    return copies.found_in(event) if copies else None


class _Inheritances:
    """Finds the transcripts that children began with, of a session that goes, or with messages or summaries that do (CHILD-6)."""

    def __init__(self, key: str | None, ids: Collection[str]) -> None:
        self._key = key
        self._ids = {*ids}
        """Of messages, and of the runs that have summarised."""
        self._streams = set[str]()

    def has(self, recorded: Recorded) -> bool:
        """Whether it is such a transcript, or a summary by a child that began with one."""
        event = recorded.event
        given = event.transcript if isinstance(event, SpawnAccepted) else event
        if not isinstance(given, TranscriptGiven):
            if recorded.stream not in self._streams or not is_summary(event):
                return False
            self._ids.add(run_named(event) or "")
            return True
        ids = {one.id for one in given.given}
        if given.summary is not None:
            ids.add(given.summary)
        if given.requester != self._key and ids.isdisjoint(self._ids):
            return False
        self._streams.add(recorded.stream)
        # A child of that child may have been given the same; the first of all messages says what a summary said.
        self._ids |= ids if given.requester == self._key else {given.given[0].id}
        return True


def _names(key: str, stream: str) -> set[str]:
    """Return how a session is named to the one with a stream: the main session of its own agent is `main` to it."""
    agent, _, rest = key.removeprefix("agent:").partition(":")
    return {key, "main"} if rest == "main" and stream.startswith(session_stream(f"agent:{agent}:")) else {key}


def _named(what: str, places: Mapping[str, int]) -> Iterator[str]:
    if places:
        some = [f"{stream} (#{position})" for stream, position in list(places.items())[:_MOST_NAMED]]
        more = f" and {len(places) - len(some)} more" if len(places) > len(some) else ""
        yield f"{what}: {', '.join(some)}{more}"


def _asking(recorded: Recorded) -> Iterator[str]:
    """Yield the run whose tool began a flow: the call and its result repeat the texts."""
    event = recorded.event
    if isinstance(event, FlowAccepted) and event.requester_run_id is not None:
        yield event.requester_run_id


def _is_of_tools(recorded: Recorded) -> bool:
    message = message_in(recorded.event)
    return message is not None and (message.role == "toolResult" or bool(calls_of(message)))


def _with_words(events: Iterable[Recorded]) -> Iterator[Words]:
    for recorded in events:
        left = left_of(recorded)
        if left is not None:
            yield _erasable(recorded, left)


def _erasable(recorded: Recorded, left: str) -> Words:
    files = tuple(file.sha256 for file in files_in(recorded.event))
    return Words(recorded.stream, recorded.version, left, files)


def _says(recorded: Recorded, messages: Collection[str], texts: Collection[str]) -> bool:
    message = message_in(recorded.event)
    if message is not None and message.id in messages:
        return True
    return any(
        text == said.strip() or (len(text) >= QUOTED and text in said)
        for said in words(recorded.event)
        for text in texts
    )
