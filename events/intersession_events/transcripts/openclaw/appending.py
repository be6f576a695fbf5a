"""Appends the events of an import plan that a log does not have yet, in the order of their times."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import groupby
from types import MappingProxyType
from typing import Final, NamedTuple

from intersession_events import facts
from intersession_events.basics.progress import Progress
from intersession_events.log.log import HostLog, Log
from intersession_events.log.recorded import Draft, Recorded, StreamAppend
from intersession_events.transcripts.openclaw.plan import ImportPlan
from intersession_events.transcripts.openclaw.reconstruction.drafts import Planned, planned_id
from intersession_events.transcripts.openclaw.reconstruction.session_events import archived_step, reset_step

BATCH: Final = 256
_FLOWS: Final = ("exchange:", "spawn:")


Appended = Callable[[Collection[str]], None]
"""Hears the streams of a batch that was appended, from the thread that imports."""


class Fresh(NamedTuple):
    """The part of a plan that the log does not have: drafts in the order of time, and the versions of their streams.

    `left` are flows that go on in the state but were closed, as they then stood, by an earlier import.
    """

    planned: Sequence[Planned]
    versions: dict[str, int]
    left: tuple[str, ...]


class Known(NamedTuple):
    """What a log has of a stream: the ids of its events, its version, and its session ids.

    `said` are those of imported messages. `goes_on` is True for a session that is more than an import made of it: it was opened,
    spoken to, reset or deleted here. `closed` is True for an exchange or a spawn that is over. `sources` are the digests of imported
    lines by the ids of their events, without those that were erased; `erased`: there are such. `entries` are its imported entries.
    """

    events: frozenset[str]
    version: int
    generations: frozenset[str]
    goes_on: bool
    closed: bool
    said: frozenset[str] = frozenset()
    sources: Mapping[str, bytes] = MappingProxyType({})
    erased: bool = False
    entries: Sequence[facts.SessionImported] = ()

    def has(self, item: Planned) -> bool:
        """Whether it has an event. Ids of entries were made of their words once: one is known by its time, and by its words unless they were erased."""
        event = item.draft.event
        return item.draft.id in self.events or (
            isinstance(event, facts.SessionImported)
            and any(
                (one.session_id, one.updated_at) == (event.session_id, event.updated_at)
                and (one.entry == event.entry or _is_erased(one))
                for one in self.entries
            )
        )

    def has_changed(self, item: Planned) -> bool:
        """Whether a line is another one now than it was when it was imported."""
        here, source = self.sources.get(item.draft.id), _source(item.draft.event)
        return here is not None and source is not None and here != source


class KnownStreams:
    """Reads each stream of a log once, and remembers what an import needs."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._known: dict[str, Known] = {}

    def of(self, stream: str) -> Known:
        """Return what the log has of a stream."""
        if stream not in self._known:
            self._known[stream] = _known(self._log.stream(stream), self._log.log_id)
        return self._known[stream]


def fresh(plan: ImportPlan, known: KnownStreams) -> Fresh:
    """Return the part of a plan that is new to the log."""
    planned: list[Planned] = []
    versions: dict[str, int] = {}
    left: list[str] = []
    by_stream: dict[str, list[Planned]] = {}
    for item in plan.planned:
        by_stream.setdefault(item.stream, []).append(item)
    for stream, items in by_stream.items():
        here = known.of(stream)
        versions[stream] = here.version
        new = [item for item in items if not here.has(item)]
        if here.goes_on:
            # What went on here keeps its own state; lines that it lacks are planned for a stream of their own.
            new = []
        elif here.version and stream in plan.generations:
            new = list(_of_session(new, plan.generations[stream], here.generations))
        elif here.closed:
            later = [item for item in new if isinstance(item.draft.event, facts.ChildArchived)]
            if len(later) < len(new):
                left.append(stream)
            new = later
        planned += new
    planned.sort(key=lambda item: item.place)
    return Fresh(planned, versions, tuple(left))


def begun(plan: ImportPlan, instead: ImportPlan, known: KnownStreams) -> Fresh:
    """Return the missing events of flows that an earlier plan began in the log and that the plan in use does not have."""
    kept = {item.stream for item in instead.planned}
    rest: list[Planned] = []
    versions: dict[str, int] = {}
    for item in plan.planned:
        here = known.of(item.stream)
        if item.stream in kept or not here.version or here.closed or not item.stream.startswith(_FLOWS):
            continue
        if item.draft.id not in here.events:
            rest.append(item)
            versions[item.stream] = here.version
    return Fresh(rest, versions, ())


def append_fresh(
    log: HostLog, found: Fresh, progress: Progress | None = None, told: Appended | None = None
) -> int:
    """Append in batches, each in one transaction; return the number of events.

    Raises:
        AppendConflict: somebody else wrote to one of the streams meanwhile; import again.
        StoreUnavailable: the store could not take it. What was appended stays; import again to go on.
    """
    total = len(found.planned)
    versions = dict(found.versions)
    for start in range(0, total, BATCH):
        batch = found.planned[start : start + BATCH]
        log.append_now(list(_appends(batch, versions)))
        if told is not None:
            told(dict.fromkeys(item.stream for item in batch))
        if progress is not None:
            progress(start + len(batch), total)
    return total


def _appends(batch: Sequence[Planned], versions: dict[str, int]) -> Iterator[StreamAppend]:
    for stream, items in groupby(batch, key=lambda item: item.stream):
        drafts: tuple[Draft, ...] = tuple(item.draft for item in items)
        yield StreamAppend(stream=stream, expected=versions[stream], drafts=drafts)
        versions[stream] += len(drafts)


def _of_session(
    new: Iterable[Planned], generations: Sequence[str], known: frozenset[str]
) -> Iterator[Planned]:
    """Yield what a session that is in the log already gets: it is opened once, and never goes back a generation."""
    newest_known = max(
        (index for index, session_id in enumerate(generations) if session_id in known), default=-1
    )
    for item in new:
        match item.draft.event:
            case facts.SessionOpened(session_id=session_id) | facts.SessionReset(session_id=session_id):
                if generations.index(session_id) > newest_known:
                    yield item
            case facts.SessionImported(session_id=session_id):
                if session_id == generations[-1]:
                    yield item
            case _:
                yield item


def _source(event: facts.Event) -> bytes | None:
    """Return the digest of what an event has of an imported line or entry, in its words."""
    match event:
        case facts.MessageRecorded(source=str(source)) | facts.LineImported(source=source):
            return sha256(source.encode()).digest()
        case facts.SessionImported(entry=source):
            return sha256(source.encode()).digest()
        case _:
            return None


def _is_erased(event: facts.Event) -> bool:
    """Whether nothing is left of an imported event's words."""
    return facts.unsaid(event) == event


def _known(recorded: Sequence[Recorded], log_id: str) -> Known:
    generations: set[str] = set()
    sources: dict[str, bytes] = {}
    goes_on = closed = erased = False
    for item in recorded:
        # An erased line has lost its source: it is still no message of this log's own, whose decision would be on record.
        is_line = isinstance(item.event, facts.MessageRecorded | facts.LineImported | facts.SessionImported)
        if is_line and not item.decision and _is_erased(item.event):
            erased = True
            continue
        if (source := _source(item.event)) is not None:
            sources[item.id] = source
        match item.event:
            case facts.SessionOpened(session_id=session_id, opened_by=by):
                generations.add(session_id)
                goes_on = goes_on or by != "import"
            case facts.SessionReset(session_id=session_id):
                generations.add(session_id)
                goes_on = goes_on or item.id != planned_id(
                    log_id, item.stream, item.event, reset_step(session_id)
                )
            case facts.SessionArchived(session_id=session_id):
                goes_on = goes_on or item.id != planned_id(
                    log_id, item.stream, item.event, archived_step(session_id)
                )
            case facts.RunQueued() | facts.RunCompleted() | facts.MessageRecorded(source=None):
                goes_on = True
            case facts.FlowClosed():
                closed = True
            case _:
                pass
    return Known(
        frozenset(item.id for item in recorded),
        recorded[-1].version if recorded else 0,
        frozenset(generations),
        goes_on,
        closed,
        frozenset(item.id for item in recorded if isinstance(item.event, facts.MessageRecorded)),
        sources,
        erased,
        [item.event for item in recorded if isinstance(item.event, facts.SessionImported)],
    )
