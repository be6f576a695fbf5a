"""What was recorded, as far as a replay has come: each stream has its own place, and no order holds between streams but causes."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Container, Iterable, Sequence
from operator import attrgetter
from types import MappingProxyType
from typing import Final

import msgspec

from intersession_actors.agents import runner_of
from intersession_actors.replaying.begun import Begins
from intersession_actors.replaying.recording.given import Given
from intersession_actors.replaying.recording.one_append import first_of_append
from intersession_events import facts
from intersession_events.errors import CorruptEvent, InvalidKey
from intersession_events.facts import encode
from intersession_events.ids import event_id, session_stream
from intersession_events.log import Recorded, rows_erased
from intersession_events.plain_json import JsonObject

_ALL: Final = 1 << 62
_POSITION: Final = attrgetter("position")
_AROUND: Final = 200
"""So many messages beside an event show what the clock said."""
_TRANSCRIPT: Final = re.compile(r"• transcript (\S*?([^/\s]+)\.jsonl)")

Place = tuple[str, int]
"""A stream and a version."""

MANAGED: Final = ("session:", "exchange:", "spawn:", "delivery:")
"""Streams whose events actors decide. Those of others are inputs: configurations, receipts, what a channel told."""


class Recording:
    """Events in log order. Those up to `begins` have happened already.

    Of a session that is in `begun` they are given from the first event on that is told there. `erased` are the places of those
    whose words were erased since.

    Raises:
        CorruptEvent: an event of a stream is not there or stands twice, or a stream of a session has no key.
    """

    def __init__(
        self,
        log_id: str,
        events: Iterable[Recorded],
        *,
        begins: int = 0,
        begun: Begins = MappingProxyType({}),
        stood: Callable[[Recorded], bool] | None = None,
        erased: Container[Place] = frozenset(),
    ) -> None:
        self.log_id = log_id
        self._erased: Final = erased
        self.begins = begins
        self.begun: Final = begun
        self.order: list[Recorded] = sorted(events, key=_POSITION)
        self._streams: dict[str, Given] = {}
        self._messages: dict[str, dict[str, int]] = {}
        self.times: dict[str, int] = {}
        """When the last event of each stream happened that was come to."""
        self._imported: dict[str, int] = {}
        self._inferred: set[str] = set()
        self._by_id = {recorded.id: recorded for recorded in self.order}
        self.transcripts: dict[str, str] = {}
        """Where the transcripts of children were mirrored, by session id, as far as an announce says so."""
        self._of_run: dict[str, list[Recorded]] = {}
        self._handed: dict[str, str] = {}
        self._queued: dict[str, list[Recorded]] = {}
        self._used: dict[str, list[tuple[Recorded, facts.Usage]]] = {}
        self._flows: dict[str, list[str]] = {}
        self._opened: list[Recorded] = []
        self._begun: dict[str, list[Recorded]] = {}
        self.withheld: set[str] = set()
        """The channels that were sealed, as those of a fork are."""
        self.was_ruled = False
        """Whether a rule of the host's held a text."""
        self._stood = stood or self._stood_still
        self._said: list[Recorded] = []
        self._clocks: dict[str, tuple[int, int | None]] = {}
        """What the clock said for the next append of a stream, by how far the stream had come."""
        for number, recorded in enumerate(self.order):
            given = self._streams.get(recorded.stream)
            if given is None:
                before = begun[recorded.stream].first - 1 if recorded.stream in begun else 0
                given = self._streams[recorded.stream] = Given(before)
            _check(recorded, given, self.order[number - 1] if number else None)
            given.events.append(recorded)
            self._look_at(recorded)
        for stream, version in self._imported.items():
            self._imported[stream] = self._import_of(stream, version)
        self._happened: Final = bisect_right(self.order, begins, key=_POSITION)
        for recorded in self.order_so_far():
            self.came_to(recorded)

    def _look_at(self, recorded: Recorded) -> None:  # noqa: C901, PLR0912 - one case an event
        match recorded.event:
            case facts.MessageRecorded(message=message):
                self._messages.setdefault(recorded.stream, {})[message.id] = recorded.version
                self._said.append(recorded)
                if recorded.event.source is not None:
                    self._imported[recorded.stream] = recorded.version
            case facts.AnnounceDecided(text=str() as text):
                self.transcripts.update((found[2], found[1]) for found in _TRANSCRIPT.finditer(text))
            case facts.LineImported() | facts.SessionImported():
                self._imported[recorded.stream] = recorded.version
            case facts.ExchangeAccepted(inferred=False) | facts.SpawnAccepted(inferred=False):
                self._flows.setdefault(recorded.correlation or "", []).append(recorded.stream)
            case facts.ExchangeAccepted(inferred=True) | facts.SpawnAccepted(inferred=True):
                self._imported[recorded.stream] = recorded.version
                self._inferred.add(recorded.stream)
            case facts.DeliveryWithheld(channel=channel):
                self.withheld.add(channel)
            case facts.ExchangeHeld(source="rule"):
                self.was_ruled = True
            case facts.ResultHanded(message_id=message_id):
                self._handed[message_id] = recorded.stream
            case facts.LogOpened():
                self._opened.append(recorded)
            case facts.RunQueued(run_id=run_id) | facts.RunStarted(run_id=run_id):
                self._of_run.setdefault(run_id, []).append(recorded)
                if isinstance(recorded.event, facts.RunQueued):
                    self._queued.setdefault(recorded.correlation or "", []).append(recorded)
                else:
                    self._begun.setdefault(_runner_of(recorded), []).append(recorded)
            case facts.RunCompleted() | facts.RunFailed() | facts.RunAborted():
                if isinstance(recorded.event, facts.RunCompleted) and recorded.event.usage is not None:
                    used = recorded, recorded.event.usage
                    self._used.setdefault(recorded.correlation or "", []).append(used)
                self._of_run.setdefault(recorded.event.run_id, []).append(recorded)
            case _:
                pass

    def is_erased(self, recorded: Recorded) -> bool:
        """Whether the words of an event were erased after it was recorded."""
        return (recorded.stream, recorded.version) in self._erased

    def has_erased(self) -> bool:
        """Whether words were erased of anything that has happened so far, or happens next in its stream."""
        return any(
            self.is_erased(recorded) and recorded.version <= self.version(recorded.stream) + 1
            for recorded in self.order
        )

    def fits(self, recorded: Recorded) -> bool:
        """Whether an event has the id that follows from its place and its content, as each has that an actor decides."""
        return recorded.id in {
            derived_id(self.log_id, recorded),
            _id_of(self.log_id, recorded, _without_empty(recorded.event)),
        }

    def of_run(self, run_id: str) -> Sequence[Recorded]:
        """Return the beginnings and the end of a run in its session."""
        return self._of_run.get(run_id, ())

    def decided_in(self, recorded: Recorded) -> str:
        """Return the stream on which it was decided that the next event of a stream happens: a flow's, if it begins its step."""
        if not recorded.stream.startswith("session:"):
            return recorded.stream
        together = self.append_ahead(recorded.stream)
        for number, item in enumerate(together):
            match item.event:
                case facts.MessageRecorded(message=message):
                    flow = self._handed.get(message.id)
                    for behind in together[number + 1 : number + 3]:
                        if (
                            isinstance(behind.event, facts.RunQueued)
                            and behind.event.message_id == message.id
                        ):
                            flow = behind.event.flow
                    return flow if flow is not None and flow in self._streams else recorded.stream
                case facts.SessionOpened() | facts.ThreadBound() | facts.RouteChanged() | facts.RunAborted():
                    pass
                case _:
                    break
        return recorded.stream

    def order_so_far(self) -> list[Recorded]:
        """Return what had happened before the replay, in log order."""
        return self.order[: self._happened]

    def order_to_come(self) -> list[Recorded]:
        """Return what is to be replayed, in log order."""
        return self.order[self._happened :]

    @property
    def number_of_streams(self) -> int:
        """Return how many streams it has."""
        return len(self._streams)

    def has(self, stream: str) -> bool:
        """Whether a stream is part of it."""
        return stream in self._streams

    def _import_of(self, stream: str, version: int) -> int:
        """Return how far an import goes in a stream: its events have other ids than what actors decide."""
        for recorded in self._streams[stream].behind(version):
            if self.fits(recorded):
                break
            version = recorded.version
        return version

    def behind_ms(self, recorded: Recorded) -> int:
        """Return how far the clock may have been behind the time of an event: the log's own time never goes back.

        What was said shows the clock: each message has the time at which somebody said it.
        """
        if isinstance(recorded.event, facts.MessageRecorded):
            return _ALL  # it was said, and recorded when it could be
        number = bisect_left(self._said, recorded.position, key=lambda item: item.position)
        around = self._said[max(number - 1, 0) : number + _AROUND]
        later = [item for item in around if item.position > recorded.position]
        if self.stands(recorded) and not (later and later[0].time == recorded.time):
            return _ALL  # by the next message it had caught up, perhaps
        return max((_behind(item) for item in around if item.time == recorded.time), default=0)

    def stands(self, recorded: Recorded) -> bool:
        """Whether the log's time had not moved on when an event was recorded, so that the clock may have been behind it."""
        return self._stood(first_of_append(self._by_id, recorded))

    def _stood_still(self, recorded: Recorded) -> bool:
        """Whether the log's time stood at an event: then the clock may have been behind it."""
        number = bisect_left(self.order, recorded.position, key=lambda item: item.position)
        return number > 0 and self.order[number - 1].time >= recorded.time

    def clock_ahead(self, stream: str) -> int | None:
        """Return what the clock said when the next append of a stream was decided; None where it does not say."""
        version = self.version(stream)
        found = self._clocks.get(stream)
        if found is None or found[0] != version:
            said = (clock_of(item.event) for item in self.append_ahead(stream))
            found = self._clocks[stream] = version, next((ms for ms in said if ms is not None), None)
        return found[1]

    def waited_ms(self, recorded: Recorded) -> int:
        """Return how long after its cause an event was recorded: so much earlier it can have been decided."""
        cause = self._cause_of(recorded)
        while cause is not None and cause.time == recorded.time:  # of the same append, as a rule
            cause = self._cause_of(cause)
        return 0 if cause is None else recorded.time - cause.time

    def _cause_of(self, recorded: Recorded) -> Recorded | None:
        """Return the cause of an event, which stands before it: nothing else is one."""
        cause = self._by_id.get(recorded.causation or "")
        return cause if cause is not None and cause.position < recorded.position else None

    def looked_since(self, stream: str) -> int:
        """Return from which position on whoever leads a flow may have looked at the rest of the log for what he decides next.

        It is told of the end of a run before that is recorded, so it is the last event before that, or the flow's own last one.
        """
        past = self.past(stream)
        if not past:
            coming = self.ahead(stream)
            return 0 if coming is None else self.caused_at(coming)
        since = past[-1].position
        named = (facts.run_named(item.event) for item in reversed(past))
        run_id = next((found for found in named if found is not None), "")
        for item in self.of_run(run_id):
            before = self.at(item.stream, first_of_append(self._by_id, item).version - 1)
            if item.version <= self.version(item.stream) and before is not None:
                since = max(past[-1].position, before.position)
        return since

    def queued_in(self, root: str, *, since: int) -> tuple[int, int]:
        """Return how many runs of a chain were queued since a position up to now, and how many more may have been reserved.

        Those are runs that are still to be queued, and one for each flow that goes on: it may have asked for one that came to nothing.
        """
        late = 0
        open_ = sum(self._goes_on(stream) for stream in self._flows.get(root, ()))
        for item in self._queued.get(root, ()):
            if item.version > self.version(item.stream):
                open_ += 1
            elif item.position > since:
                late += 1
        return late, open_

    def used_in(self, root: str, *, since: int) -> list[tuple[int, int]]:
        """Return what each run of a chain used that ended since a position up to now: tokens, and money in micro-units."""
        return [
            (max(usage.tokens, 0), max(usage.cost_micros or 0, 0))
            for item, usage in self._used.get(root, ())
            if since < item.position and item.version <= self.version(item.stream)
        ]

    def _goes_on(self, flow: str) -> bool:
        past = self.past(flow)
        return bool(past) and not any(
            isinstance(item.event, facts.ExchangeClosed | facts.SpawnClosed) for item in past
        )

    def has_come(self, agent_id: str) -> bool:
        """Whether an agent has begun a run since the process began that is at work, as far as that is given."""
        opened = next(
            (item.position for item in reversed(self._opened) if item.version <= self.version(item.stream)), 0
        )
        return any(
            opened < item.position and item.version <= self.version(item.stream)
            for item in self._begun.get(agent_id, ())
        )

    def has_begun_since(self, run_id: str, attempt: int) -> bool:
        """Whether another process has begun since an attempt did, as far as that is given."""
        started = (
            item.position
            for item in self.of_run(run_id)
            if isinstance(item.event, facts.RunStarted) and item.event.attempt == attempt
        )
        begun = next(started, None)
        return begun is not None and any(
            item.position > begun and item.version <= self.version(item.stream) for item in self._opened
        )

    def is_of_hold(self, recorded: Recorded) -> bool:
        """Whether what was held was recorded as what led to a text: logs of before did so of one that was released."""
        event = recorded.event
        owner = event.owner if isinstance(event, facts.DeliveryDecided) else None
        return owner is not None and any(
            isinstance(item.event, facts.ExchangeHeld) and item.id == recorded.causation
            for item in self.happened(owner)
        )

    def caused_at(self, recorded: Recorded) -> int:
        """Return where in the log the cause of an event stands; its own position where that is not known."""
        cause = self._by_id.get(recorded.causation or "")
        return recorded.position if cause is None else cause.position

    def has_imports(self) -> bool:
        """Whether some of it was imported."""
        return bool(self._imported)

    def is_imported(self, recorded: Recorded) -> bool:
        """Whether another system decided an event: it stands before the last one that was imported into its stream."""
        return recorded.version <= self._imported.get(recorded.stream, 0)

    def is_walked(self, recorded: Recorded) -> bool:
        """Whether another system decided an event, or the beginning of the flow that it is of, which a fork carries on (SEAL-4)."""
        return self.is_imported(recorded) or recorded.stream in self._inferred

    def version(self, stream: str) -> int:
        """Return how far a stream has come."""
        return self._given(stream).came

    def came_to(self, recorded: Recorded) -> None:
        """Note that the next event of a stream has happened."""
        self._streams[recorded.stream].came = recorded.version
        self.times[recorded.stream] = recorded.time

    def past(self, stream: str) -> Sequence[Recorded]:
        """Return what has happened in a stream, as far back as it is given."""
        return self.happened(stream)

    def happened(self, stream: str, *, after: int = 0, to: int | None = None) -> Sequence[Recorded]:
        """Return what has happened in a stream, with `after < version <= to`."""
        return self._given(stream).happened(after, to)

    def ahead(self, stream: str, further: int = 0) -> Recorded | None:
        """Return the next event of a stream, or the one so many further on."""
        return self._given(stream).ahead(further)

    def at(self, stream: str, version: int) -> Recorded | None:
        """Return an event by its version."""
        return self._given(stream).at(version)

    def append_ahead(self, stream: str) -> Sequence[Recorded]:
        """Return the events of a stream that follow, as far as one append may have made them."""
        return self._given(stream).append_ahead()

    def _given(self, stream: str) -> Given:
        return self._streams.get(stream) or Given(0)

    def message_version(self, key: str, message_id: str) -> int | None:
        """Return where a message stands in the stream of a session; None where it was never recorded."""
        return self._messages.get(session_stream(key), {}).get(message_id)

    def is_over(self, stream: str) -> bool:
        """Whether a stream was recorded to an end behind which nothing follows."""
        last = self._streams[stream].events[-1].event if stream in self._streams else None
        match last:
            case (
                facts.ExchangeClosed()
                | facts.DeliveryDone()
                | facts.DeliveryUnknown()
                | facts.DeliveryDenied()
                | facts.DeliveryWithheld()
            ):
                return True
            case facts.DeliveryFailed():
                return last.retry_at_ms is None
            case _:
                return False


def _runner_of(recorded: Recorded) -> str:
    try:
        return runner_of(recorded.stream.partition(":")[2])
    except InvalidKey as error:
        raise CorruptEvent(
            f"a recording has a run at position {recorded.position} in {recorded.stream!r}: {error}"
        ) from error


def _check(recorded: Recorded, given: Given, before: Recorded | None) -> None:
    """Find an event right behind the one before it, in its stream and in the whole order: all that a replay looks up rests on it."""
    version = given.before + len(given.events) + 1
    last = given.events[-1].version if given.events else 0
    # Of a stream that no actor owns, as that of configurations, a recording may have a part.
    if recorded.version != version if recorded.stream.startswith(MANAGED) else recorded.version <= last:
        raise CorruptEvent(
            f"a recording has version {recorded.version} of {recorded.stream!r} at position {recorded.position}, "
            f"where version {version} follows"
        )
    if before is not None and recorded.position <= before.position:
        raise CorruptEvent(
            f"a recording has two events at position {recorded.position}: "
            f"version {before.version} of {before.stream!r} and version {recorded.version} of {recorded.stream!r}"
        )


def derived_id(log_id: str, recorded: Recorded) -> str:
    """Return the id that an event has by its place and its content."""
    return _id_of(log_id, recorded, encode(recorded.event))


def _id_of(log_id: str, recorded: Recorded, payload: bytes) -> str:
    return event_id(log_id, recorded.stream, recorded.version, recorded.topic, payload)


def _without_empty(event: facts.Event) -> bytes:
    """Return an event as it was stored before it had the fields that are empty."""
    plain: JsonObject = msgspec.to_builtins(event)
    return msgspec.json.encode({name: value for name, value in plain.items() if value != {}}, order="sorted")


def erased_by(events: Iterable[Recorded]) -> frozenset[Place]:
    """Return the places whose words events of a log erased."""
    return frozenset(
        (item.event.stream, version)
        for item in events
        if isinstance(item.event, facts.Erased)
        for version in rows_erased(item.event, stream=item.stream, position=item.position)
    )


def clock_of(event: facts.Event) -> int | None:
    """Return what the clock said when an event was decided, where it says so: the log's time may be ahead of it."""
    match event:
        case facts.DeliveryFailed():
            return event.failed_ms
        case facts.RunStarted():
            return event.started_ms
        case facts.ExchangeHeld():
            return event.since_ms
        case _:
            return None


def _behind(said: Recorded) -> int:
    """Return how far the clock was behind the time of a message that was recorded."""
    return said.time - said.event.message.timestamp if isinstance(said.event, facts.MessageRecorded) else 0
