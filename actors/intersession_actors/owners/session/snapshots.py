"""Snapshots of sessions, outside of their actors: taken of imported ones, and compared with the events for `verify`."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from intersession_actors.owners.session.folding import SHAPE, SessionFolding
from intersession_actors.rules.prompt.window import nothing_earlier
from intersession_events.basics.errors import CorruptEvent, UnknownTopic
from intersession_events.basics.ids import SESSIONS
from intersession_events.basics.progress import Progress
from intersession_events.log.log import Log
from intersession_events.log.states import EVERY, EncryptedSnapshot, Snapshot
from intersession_events.log.verifying.report import Finding

_LOGGER: Final = logging.getLogger("intersession.store")
VIEW = "snapshots"
_TABLE = "stored_snapshots"


def long_sessions(log: Log) -> Sequence[str]:
    """Return the streams of sessions that are long enough for a snapshot."""
    found = log.query(
        "SELECT originator_id FROM stored_events WHERE originator_id>=? AND originator_id<? "
        "GROUP BY originator_id HAVING MAX(originator_version)>=? ORDER BY originator_id",
        (SESSIONS, f"{SESSIONS[:-1]};", EVERY),
    )
    return [stream for (stream,) in found]


def take_snapshots(log: Log, streams: Iterable[str], progress: Progress | None = None) -> int:
    """Fold the long ones of some session streams and store snapshots, so that they wake fast.

    Returns how many there were; one that can't be folded is left as it is. `progress` gets how many are done, and of how many.
    """
    folding = SessionFolding(room=0, earlier=nothing_earlier)
    sessions = sorted(stream for stream in streams if stream.startswith(SESSIONS))
    folded = 0
    for number, stream in enumerate(sessions, start=1):
        try:
            last = log.stream(stream, backwards=True, limit=1)
            if last and last[0].version >= EVERY:
                log.states.fold(stream, folding)
                folded += 1
        except (CorruptEvent, UnknownTopic, ValueError) as error:
            _LOGGER.warning("no snapshot of %s: it can't be folded (%s)", stream, error)
        if progress is not None:
            progress(number, len(sessions))
    return folded


def snapshots_compared(log: Log, progress: Progress | None = None) -> tuple[list[Finding], list[str]]:
    """Return how a log's snapshots differ from its streams, and in words what could not be compared.

    `progress` gets how many streams are done, and of how many.

    Raises:
        StoreUnavailable: the store does not answer, so that nothing can be said of them.
    """
    findings: list[Finding] = []
    unread: list[str] = []
    streams: Sequence[str] = ()
    try:
        findings += [_finding(None, problem) for problem in log.states.problems()]
        streams = log.states.streams()
    except CorruptEvent as error:
        findings.append(_finding(None, str(error)))
    foreign = encrypted = 0
    for number, stream in enumerate(streams, start=1):
        ours: list[Snapshot] = []
        for snapshot in _kept(log, stream):
            if isinstance(snapshot, EncryptedSnapshot):
                encrypted += 1
            elif isinstance(snapshot, CorruptEvent):
                findings.append(_finding(stream, str(snapshot)))
            elif snapshot.topic != SHAPE:
                foreign += 1
            else:
                ours.append(snapshot)
        try:
            findings += _differences(log, stream, ours)
        except (CorruptEvent, UnknownTopic, ValueError) as error:
            unread.append(f"What the snapshots of {stream} hold: its events can't be folded ({error}).")
        if progress is not None:
            progress(number, len(streams))
    unread += _not_compared(encrypted, foreign)
    return findings, unread


def _not_compared(encrypted: int, foreign: int) -> Iterator[str]:
    if encrypted:
        yield f"What {encrypted} encrypted snapshots hold: their keys are not at hand, or were destroyed. Without these none is used."
    if foreign:
        yield f"What {foreign} snapshots of another shape hold: this version reads only {SHAPE}, and uses none of them."


def _kept(log: Log, stream: str) -> Iterator[Snapshot | CorruptEvent]:
    """Yield the snapshots of a stream; if they can't be read, an error that says so."""
    try:
        yield from log.states.kept(stream)
    except CorruptEvent as error:
        yield error


def _differences(log: Log, stream: str, snapshots: Sequence[Snapshot]) -> Iterator[Finding]:
    folding = SessionFolding(room=0, earlier=nothing_earlier)
    state, version = folding.begin(), 0
    for snapshot in snapshots:
        hashed: str | None = None
        while version < snapshot.version:
            page = log.stream(stream, after=version, to=snapshot.version, limit=EVERY)
            if not page:
                break
            state, version, hashed = folding.apply(state, page), page[-1].version, page[-1].hash
        if version != snapshot.version or hashed != snapshot.hash:
            yield _finding(stream, f"version {snapshot.version}: it is of no event of this log")
        elif folding.encode(state) != _again(folding, snapshot):
            yield _finding(stream, f"version {snapshot.version}: the events say another state")


def _again(folding: SessionFolding, snapshot: Snapshot) -> bytes | None:
    """Return what a snapshot holds as this version writes it: events may have got fields that have defaults."""
    try:
        return folding.encode(folding.decode(snapshot.data, snapshot.version))
    except ValueError:
        return None


def _finding(stream: str | None, problem: str) -> Finding:
    return Finding(code="view_differs", problem=problem, view=VIEW, table=_TABLE, key=stream)
