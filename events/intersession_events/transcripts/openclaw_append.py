"""The other half of the import: what of a plan is new to a log, appended in the order of time."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from intersession_events.exchange import ExchangeClosed
from intersession_events.log import Log
from intersession_events.recorded import Draft, Recorded, StreamAppend
from intersession_events.run import RunQueued
from intersession_events.session import MessageRecorded, SessionImported, SessionOpened, SessionReset
from intersession_events.spawn import ChildArchived, SpawnClosed
from intersession_events.transcripts.openclaw_drafts import Planned
from intersession_events.transcripts.openclaw_plan import ImportPlan

BATCH: Final = 256

Progress = Callable[[int, int], None]


class Fresh(NamedTuple):
    """What of a plan the log does not have: drafts in the order of time, and the versions their streams are at.

    `left` are flows that go on in the state but were closed, as they then stood, by an earlier import.
    """

    planned: Sequence[Planned]
    versions: dict[str, int]
    left: tuple[str, ...]


def goes_on_here(recorded: Iterable[Recorded]) -> bool:
    """Whether a session in the log is more than an import made of it: it was opened or spoken to here."""
    for item in recorded:
        match item.event:
            case RunQueued():
                return True
            case SessionOpened(opened_by=by):
                if by != "import":
                    return True
            case MessageRecorded(source=None):
                return True
            case _:
                pass
    return False


def generations_of(recorded: Iterable[Recorded]) -> set[str]:
    """Return the session ids that a stream has had."""
    return {
        item.event.session_id for item in recorded if isinstance(item.event, SessionOpened | SessionReset)
    }


def fresh(plan: ImportPlan, log: Log) -> Fresh:
    """Return what of a plan is new to the log."""
    planned: list[Planned] = []
    versions: dict[str, int] = {}
    left: list[str] = []
    by_stream: dict[str, list[Planned]] = {}
    for item in plan.planned:
        by_stream.setdefault(item.stream, []).append(item)
    for stream, items in by_stream.items():
        recorded = log.stream(stream)
        versions[stream] = recorded[-1].version if recorded else 0
        known = {item.id for item in recorded}
        new = [item for item in items if item.draft.id not in known]
        if recorded and stream in plan.generations:
            # What went on here keeps its own state; lines that it lacks are planned for a stream of their own.
            going_on = goes_on_here(recorded)
            new = (
                [] if going_on else list(_of_session(new, plan.generations[stream], generations_of(recorded)))
            )
        elif any(isinstance(item.event, ExchangeClosed | SpawnClosed) for item in recorded):
            later = [item for item in new if isinstance(item.draft.event, ChildArchived)]
            if len(later) < len(new):
                left.append(stream)
            new = later
        planned += new
    planned.sort(key=lambda item: item.place)
    return Fresh(planned, versions, tuple(left))


def append_fresh(log: Log, found: Fresh, progress: Progress | None = None) -> int:
    """Append in batches, each of them one transaction; return how many events that were.

    Raises:
        AppendConflict: somebody else wrote to one of the streams meanwhile; import again.
        StoreUnavailable: the store could not take it. What was appended stays; import again to go on.
    """
    total = len(found.planned)
    versions = dict(found.versions)
    for start in range(0, total, BATCH):
        batch = found.planned[start : start + BATCH]
        log.append_now(list(_appends(batch, versions)))
        if progress is not None:
            progress(start + len(batch), total)
    return total


def _appends(batch: Sequence[Planned], versions: dict[str, int]) -> Iterator[StreamAppend]:
    for stream, items in groupby(batch, key=lambda item: item.stream):
        drafts: tuple[Draft, ...] = tuple(item.draft for item in items)
        yield StreamAppend(stream=stream, expected=versions[stream], drafts=drafts)
        versions[stream] += len(drafts)


def _of_session(new: Iterable[Planned], generations: Sequence[str], known: set[str]) -> Iterator[Planned]:
    """Yield what a session that is in the log already gets: it is opened once, and never goes back a generation."""
    newest_known = max(
        (index for index, session_id in enumerate(generations) if session_id in known), default=-1
    )
    for item in new:
        match item.draft.event:
            case SessionOpened(session_id=session_id) | SessionReset(session_id=session_id):
                if generations.index(session_id) > newest_known:
                    yield item
            case SessionImported(session_id=session_id):
                if session_id == generations[-1]:
                    yield item
            case _:
                yield item
