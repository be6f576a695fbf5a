"""The messages of a session, read backwards from the log itself, in the order in which its agent took them (HIST)."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from intersession_events.basics.errors import CorruptEvent, IntersessionError, UnknownTopic
from intersession_events.basics.ids import session_stream
from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts import Message, RunQueued, generation_of, is_imported, message_in, raw_message
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded, StreamPart
from intersession_projections.basics.columns import packed
from intersession_projections.basics.speakers import without_stamp
from intersession_projections.views.sessions.list import Sessions, Span
from intersession_projections.views.sessions.row import SessionRow
from intersession_projections.views.sessions.taken_order import events_backwards, taken_backwards, with_run

RawMessage = JsonObject


class UnknownMessage(IntersessionError, LookupError):
    """The message that should bound a page is not in this generation of the session."""


_MORE: Final = 2
"""Events beyond as many as messages are asked for: the one before them says that there are more."""


_EVENTS: Final = 2
"""The number of events read for a message: a run's request, its start and its answer."""


class End(NamedTuple):
    """Where the messages of a generation lie, and its newest events, oldest first."""

    span: Span
    newest: Sequence[Recorded]


class _RunMessage(NamedTuple):
    """A message with the run that it belongs to."""

    message: Message
    imported: bool


class _End(NamedTuple):
    """Where reading backwards begins, and how many runs wait there."""

    version: int
    waiting: int


class HistoryPage(msgspec.Struct, frozen=True, kw_only=True):
    """Messages in the raw transcript form (HIST-3), oldest first.

    `position` is the position the page belongs to; `before` is the id to ask for the next older page with, None at
    the beginning.
    """

    messages: list[RawMessage]
    position: int
    before: str | None = None


class History:
    """Reads transcripts, uncut and unredacted; who may read what is decided elsewhere."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._sessions = Sessions(log)

    def messages(
        self,
        key: str,
        session_id: str,
        *,
        as_of: int | None = None,
        before: str | None = None,
        limit: int,
        include_tools: bool,
        row: SessionRow | None = None,
        end: "End | None" = None,
    ) -> HistoryPage:
        """Return the last `limit` messages of one generation of a session, or the last before a message.

        Without `include_tools` tool results don't count and don't come (HIST-2). `as_of` is a position; `row` is the
        session's row there and `end` how the generation ends there, if the caller has them.

        Raises:
            UnknownMessage: there is no message `before` in this generation at that position.
            CorruptEvent: a message of the page can't be read; those behind it can, with the `limit` in the error.
        """
        position, row, span = self._found(key, session_id, as_of, row, None if end is None else end.span)
        found: list[RawMessage] = []
        more = False
        waiting = before is not None
        try:
            for taken in self._backwards(
                key,
                session_id,
                row,
                span,
                before,
                left=lambda: limit + _MORE - len(found),
                newest=() if end is None else end.newest,
            ):
                message = taken.message
                if waiting:
                    waiting = message.id != before
                    continue
                if message.role == "toolResult" and not include_tools:
                    continue
                if len(found) == limit:
                    more = True
                    break
                found.append(_view(taken))
        except CorruptEvent as error:
            if len(found) < limit:
                raise _damaged(error, len(found)) from error
            more = True
        if waiting:
            raise UnknownMessage(
                f"before: no message {before!a} in this session, give the id of one that is there"
            )
        found.reverse()
        return HistoryPage(
            messages=found, position=position, before=found[0]["id"] if more and found else None
        )

    def ends(self, rows: Sequence[SessionRow], limit: int) -> dict[str, "End"]:
        """Return the end of each row's generation by key, for `messages` with a limit, in one read."""
        spans = self._sessions.spans([(row.key, row.session_id) for row in rows])
        of_rows = [(row, spans[row.key]) for row in rows if row.key in spans]
        parts = [_last_of(row, span, _EVENTS * limit + _MORE) for row, span in of_rows]
        try:
            newest = self._log.parts(parts)
        except (CorruptEvent, UnknownTopic):  # each finds out by itself how much can be read
            newest = [()] * len(parts)
        return {row.key: End(span, of_row) for (row, span), of_row in zip(of_rows, newest, strict=True)}

    def operator_messages(
        self, key: str, session_id: str, *, as_of: int | None = None, limit: int | None = None
    ) -> list[Message]:
        """Return the last messages as they were recorded, with their stamps, oldest first; None is no limit.

        Each has the run that it belongs to, the message that a run answers too (HIST-3).
        """
        _, row, span = self._found(key, session_id, as_of, None, None)
        found: list[Message] = []
        for taken in self._backwards(key, session_id, row, span):
            if limit is not None and len(found) == limit:
                break
            found.append(taken.message)
        found.reverse()
        return found

    def _found(
        self, key: str, session_id: str, as_of: int | None, row: SessionRow | None, span: Span | None
    ) -> tuple[int, SessionRow | None, Span | None]:
        """Return the position, the session's row there, and the generation's place; given values are used."""
        if as_of is not None and row is not None and span is not None:
            return as_of, row, span
        position, found, where = self._sessions.found(key, session_id, as_of)
        return position, row or found, span or where

    def _backwards(
        self,
        key: str,
        session_id: str,
        row: SessionRow | None,
        span: Span | None,
        before: str | None = None,
        *,
        left: Callable[[], int] | None = None,
        newest: Sequence[Recorded] = (),
    ) -> Iterator[_RunMessage]:
        """Yield the messages of a generation, the last that was taken first; from one on, if it is given, or soon before it.

        `left` says how many more are wanted; the `newest` events of it may have been read already.
        """
        if span is None or row is None:
            return
        # Nothing waits in a generation that has ended.
        end = _End(_version_of_end(row, span), row.queued if span.to_version is None else 0)
        if before is not None:
            found = self._end_at(key, session_id, span, end, before)
            if found is None:
                return
            end, newest = found, ()
        events = events_backwards(
            self._log, session_stream(key), span.from_version, end.version, left=left, newest=newest
        )
        if self._log.forked is None:  # which takes single events along
            events = _beginning(events, end.version, key)
        of_generation = (
            recorded for recorded in events if generation_of(recorded.event) in {None, session_id}
        )
        for taken in taken_backwards(of_generation, end.waiting):
            if (message := message_in(taken.recorded.event)) is not None:
                yield _RunMessage(with_run(message, taken.run_id), is_imported(taken.recorded.event))

    def _end_at(self, key: str, session_id: str, span: Span, end: _End, name: str) -> _End | None:
        """Return where a message was taken: from there on backwards it comes first, but for what waited then.

        The end itself where it waits still, None where there is no such message.
        """
        stream = session_stream(key)
        for version in self._sessions.versions_of_message(key, name):
            if not span.from_version <= version <= end.version:
                continue
            (taken,) = self._log.stream(stream, after=version - 1, to=version)
            event = taken.event
            message = message_in(event)
            if message is None or message.id != name or generation_of(event) != session_id:
                continue
            if isinstance(event, RunQueued):
                at = self._taken_version(event.run_id)
                if at is not None and at <= end.version:
                    taken = self._log.stream(stream, after=at - 1, to=at)[0]
                elif span.to_version is None:
                    return end
            then = self._sessions.get(key, taken.position)
            if then is None or (then.queued and span.to_version is not None):
                return end  # what waited and was never taken stands where it arrived
            return _End(taken.version, then.queued)
        return None

    def _taken_version(self, run_id: str) -> int | None:
        rows = self._log.query("SELECT taken_version FROM run_outcomes WHERE run_id = ?", (packed(run_id),))
        return rows[0][0] if rows else None


def _version_of_end(row: SessionRow, span: Span) -> int:
    """Return the last version of a generation as of a row: each message writes one, so that the row knows it."""
    return row.version if span.to_version is None else min(row.version, span.to_version)


def _last_of(row: SessionRow, span: Span, size: int) -> StreamPart:
    to = _version_of_end(row, span)
    return StreamPart(session_stream(row.key), max(span.from_version - 1, to - size), to)


def _damaged(error: CorruptEvent, behind: int) -> CorruptEvent:
    """Return an error that says how many messages come behind what can't be read."""
    can = f"; the {behind} messages that come behind it can be read, with limit {behind}" if behind else ""
    said = CorruptEvent(f"{error}{can}")
    said.position = error.position
    return said


def _beginning(events: Iterator[Recorded], version: int, key: str) -> Iterator[Recorded]:
    """Check that events, read backwards, begin at an existing version: no other check notices a missing last event of a stream."""
    newest = next(events, None)
    if newest is None or newest.version != version:
        raise CorruptEvent(f"{session_stream(key)!r}: version {version} is missing")
    yield newest
    yield from events


def _view(said: _RunMessage) -> RawMessage:
    message = said.message
    if said.imported and message.role == "user":
        message = without_stamp(message)
    return raw_message(message)
