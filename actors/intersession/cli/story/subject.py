"""Finds what `replay` is asked to tell: the exchange, the spawn, the run or the session that a text names."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from intersession_actors.debugger import as_key, near_sessions
from intersession_actors.errors import ToolRefused
from intersession_actors.service import Reader
from intersession_events import ids
from intersession_events.errors import InvalidKey
from intersession_events.facts import SessionReset, generation_of
from intersession_events.keys import IdReference, KeyReference, LookupMiss
from intersession_events.log import Recorded
from intersession_projections.flows import DeliverySummary, Position
from intersession_projections.places import Flow, RunNames, UnknownPlace
from intersession_projections.sessions import SessionRow

_MOST_FLOWS = 1_000_000
_PAGE = 1_000
"""So many events of a stream are read at once."""


class SessionSubject(NamedTuple):
    """A session. `generation` is set where one transcript of it is meant, by its id."""

    row: SessionRow
    generation: str | None = None


Subject = Flow | SessionSubject


def find_subject(reader: Reader, name: str) -> Subject:
    """Return what a name means: an id of an exchange, a spawn or a run, a session's key in any form, or a session id.

    The operator asks, who sees what is archived too.
    """
    try:
        return RunNames(reader.log).flow(name, field="run")
    except UnknownPlace as error:
        if error.candidates:
            raise ToolRefused("invalid_request", str(error)) from None
    return _session(reader, as_key(reader, name))


def events_of_session(
    reader: Reader, subject: SessionSubject, *, to: int, sent: Sequence[DeliverySummary]
) -> list[Recorded]:
    """Return the events that the story of a session is made of, up to a position: its own stream, and the streams of its flows.

    `sent` are all texts that went out in its name.
    """
    key, stream = subject.row.key, ids.session_stream(subject.row.key)
    if subject.generation is not None:
        span = reader.sessions.span(key, subject.generation)
        events = (
            ()
            if span is None
            else _up_to(reader, stream, to, after=span.from_version - 1, last=span.to_version)
        )
        return [recorded for recorded in events if _of_generation(recorded, subject.generation)]
    found = list(_up_to(reader, stream, to))
    for of_flow in reader.log.whole(_streams_of_flows(reader, key, to, sent)):
        found.extend(recorded for recorded in of_flow if recorded.position <= to)
    return sorted(found, key=lambda recorded: recorded.position)


def _up_to(
    reader: Reader, stream: str, to: int, *, after: int = 0, last: int | None = None
) -> Iterator[Recorded]:
    """Yield the events of a stream up to a position; of a long one, not all that came since is read."""
    known = 0
    while page := reader.log.stream(stream, after=after, to=last, limit=_PAGE):
        yield from (recorded for recorded in page[known:] if recorded.position <= to)
        if len(page) < _PAGE or page[-1].position > to:
            return
        # The last of a page is read again: that the next one follows it is proven then.
        after, known = page[-1].version - 1, 1


def _session(reader: Reader, name: str) -> SessionSubject:
    config = reader.config
    try:
        reference = config.refer(name)
    except InvalidKey as error:
        raise ToolRefused("invalid_key", f"{error}") from None
    row, generation = None, None
    match reference:
        case KeyReference(key=key):
            row = reader.sessions.get(str(key))
        case IdReference(text=session_id):
            found = reader.sessions.by_session_id(session_id)
            if found is not None:
                row = reader.sessions.get(found.key)
                generation = session_id if row is not None and row.session_id != session_id else None
        case LookupMiss():
            pass
    if row is None:
        near = near_sessions(reader, name)
        alike = f" (there is {', '.join(near)})" if near else ""
        raise ToolRefused(
            "not_visible",
            f"no exchange, spawn, run or session is called {name[:128]!r}{alike}; "
            "`intersession runs` and `intersession sessions` show what there is",
        )
    return SessionSubject(row=row, generation=generation)


def _of_generation(recorded: Recorded, session_id: str) -> bool:
    event = recorded.event
    found = event.previous_session_id if isinstance(event, SessionReset) else generation_of(event)
    return found == session_id


def _streams_of_flows(reader: Reader, key: str, to: int, sent: Sequence[DeliverySummary]) -> list[str]:
    """Return the streams of a session's flows (asked for, asked in, spawned by), and of the texts that went out in its name.

    Only what had begun at a position.
    """
    names = dict.fromkeys(
        flow.stream
        for flow in reader.flows.exchanges_at(Position(0, to, key), _MOST_FLOWS)
        if key in {flow.requester, flow.target}
    )
    names |= dict.fromkeys(ids.delivery_stream(row.delivery_id) for row in sent if row.accepted <= to)
    names |= dict.fromkeys(flow.stream for flow in reader.flows.spawns_of(key) if flow.accepted <= to)
    own = reader.flows.spawn_of_child(key)
    if own is not None and own.accepted <= to:
        names[own.stream] = None
    return list(names)
