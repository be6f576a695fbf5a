"""The verb `deliveries`: texts that went outside or should have, newest first (FIND-2)."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from typing import Annotated, Final

import msgspec

from intersession_actors.calls.service.reader import Reader
from intersession_actors.calls.tools.searching import words_asked
from intersession_actors.hindsight.debugger.lists.paging import (
    LimitArgument,
    Listed,
    PageAnswer,
    most_of,
    paged,
)
from intersession_actors.hindsight.debugger.search import InSpan, span_of
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.rules.gate.limits import KeyText, Name, PlaceText, SearchText
from intersession_events.basics.plain_json import JsonObject, present
from intersession_events.facts import DeliveryDecided, Route, ready, topics_of
from intersession_projections.questions.messages import BegunBy, Messages
from intersession_projections.questions.places.runs_named import flow_id
from intersession_projections.questions.places.then import Then
from intersession_projections.views.flows.rows import DeliveriesWanted, DeliveryNote, DeliverySummary
from intersession_projections.views.full_text.found import Wanted
from intersession_projections.views.full_text.tokens import Term, holds, terms
from intersession_projections.views.full_text.view import NOBODY, events_of

LOST: Final = frozenset({"failed", "unknown", "denied"})
"""The states of a text that nobody will get, or perhaps not."""
_ROWS: Final = 64
_MOST_ROWS: Final = 1024
"""Deliveries that are read at a time, at first and at most."""

Delivered = tuple[DeliverySummary, DeliveryNote | None]
"""A text that goes outside, and what is known of it besides."""


@ready
class Deliveries(InSpan, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `deliveries`; null counts as missing."""

    failed: Annotated[
        bool,
        msgspec.Meta(
            description="Only what ended without a receipt: failed, forbidden, or in doubt. With `pending`, either."
        ),
    ] = False
    pending: Annotated[bool, msgspec.Meta(description="Only what is still to come.")] = False
    session: Annotated[KeyText | None, msgspec.Meta(description="Only in the name of this session.")] = None
    channel: Annotated[Name | None, msgspec.Meta(description="Only to this channel.")] = None
    run: Annotated[
        KeyText | None, msgspec.Meta(description="Only of this exchange, spawn or run, by any name of it.")
    ] = None
    to: Annotated[
        SearchText | None,
        msgspec.Meta(description="Only to this address: a chat's or a person's id, alone or as channel:id."),
    ] = None
    person: Annotated[
        Name | None,
        msgspec.Meta(description="Only what came of words of this person, by any name of theirs."),
    ] = None
    words: Annotated[
        SearchText | None, msgspec.Meta(description="Only texts in which all of these words stand.")
    ] = None
    at: Annotated[
        int | float | PlaceText | None,
        msgspec.Meta(description="As they stood at this place. Default: head."),
    ] = None
    limit: LimitArgument = None


class DeliveriesAnswer(PageAnswer):
    """Texts, newest first: `{id, sessionKey, route, state, attempts, position, purpose, text, …}`; `cursor` is for the next page."""

    deliveries: list[JsonObject]


def list_deliveries(view: View, given: Deliveries) -> DeliveriesAnswer:
    """Return the texts that went outside, or should have.

    Raises:
        ToolRefused: a name, a place or the cursor is invalid.
    """
    rows, cursor = deliveries_found(view, given, most_of(given.limit))
    return {"count": len(rows), "deliveries": [text_value(*row, view) for row in rows], "cursor": cursor}


def deliveries_found(view: View, given: Deliveries, most: int) -> Listed[Delivered]:
    """Return the same, as rows up to a limit.

    Raises:
        ToolRefused: as `list_deliveries`.
    """
    reader = view.reader
    wanted = DeliveriesWanted(
        failed=given.failed,
        pending=given.pending,
        session_key=None if given.session is None else view.session(given.session, field="session"),
        channel=given.channel,
        run=None if given.run is None else flow_id(view.flow(given.run)),
        span=span_of(view, given),
    )
    at = None if given.at is None else view.place(given.at).position
    if given.to is not None:
        wanted = wanted._replace(routes=tuple(r for r in reader.flows.routes() if _is_at(r, given.to)))
    words = () if given.words is None else words_asked(given.words, "words")
    with ExitStack() as opened:
        standing = sent_texts(view, wanted, opened, words=words, person=given.person, at=at)
        found = (row for row in standing if view.is_seen(row.session_key))
        rows, cursor = paged(found, lambda row: row.accepted, most)
    return Listed(list(zip(rows, reader.flows.notes_of(rows), strict=True)), cursor)


def sent_texts(
    view: View,
    wanted: DeliveriesWanted,
    opened: ExitStack,
    *,
    words: Sequence[Term] = (),
    person: str | None = None,
    at: int | None = None,
) -> Iterator[DeliverySummary]:
    """Yield deliveries as they are, or were at a position, newest first, read as they are consumed while `opened` is.

    All that is given must hold: the words stand in the text, and the person's message began what the text came of.
    """
    reader = view.reader
    began = None if person is None else BegunBy(reader.log, Messages(reader.log), person, everywhere=True)
    if began is not None and not began.has_any():
        return
    holding = None if not words else _holding(view, wanted, words, opened)
    for rows in _standing_at(reader, wanted, holding, at):
        if began is None and not words:
            yield from rows
            continue
        notes = reader.flows.notes_of(rows)
        if began is not None:
            began.learn(note.root for note in notes if note is not None)
        for row, note in zip(rows, notes, strict=True):
            if note is None or not holds(terms([note.text]), words):
                continue
            if began is None or began.is_of(note.root):
                yield row


def _is_at(route: Route, to: str) -> bool:
    """Whether a place has an address: that of a chat or a person, alone or with its channel, or all of it."""
    wanted = to.casefold()
    return wanted in {each.casefold() for each in (route.to, f"{route.channel}:{route.to}", route.text)}


def _holding(view: View, wanted: DeliveriesWanted, words: Sequence[Term], opened: ExitStack) -> Iterator[int]:
    """Return the positions of the decisions on texts that may hold some words, newest first."""
    found = opened.enter_context(view.reader.full_text.up_to_date(for_all=view.is_operator))
    nobody = found.names("agent").get(NOBODY)
    groups = () if nobody is None else events_of((nobody,), ())
    return found.positions(Wanted(words, groups, wanted.span, topics_of(DeliveryDecided)))


def _standing_at(
    reader: Reader, wanted: DeliveriesWanted, holding: Iterator[int] | None, at: int | None
) -> Iterator[list[DeliverySummary]]:
    """Yield pages of deliveries, newest first; with `holding`, only those that were decided there."""
    then = None if at is None else Then(reader.log, at)
    span, size = wanted.span, _ROWS
    if at is not None:  # what has arrived by now may have been pending then
        span = span._replace(to=at if span.to is None else min(span.to, at))
    while True:
        asked = wanted._replace(span=span)
        if at is not None:
            asked = asked._replace(failed=False, pending=False)
        if holding is not None:
            asked = asked._replace(decided_at=tuple(islice(holding, size)))
        rows = reader.flows.deliveries(asked, size)
        stood = rows if then is None else then.deliveries(rows)
        yield [row for row in stood if _is_wanted(row, wanted)]
        if len(asked.decided_at or rows) < size:
            return
        if holding is None:
            span = span._replace(before=rows[-1].accepted)
        size = min(2 * size, _MOST_ROWS)


def _is_wanted(row: DeliverySummary, wanted: DeliveriesWanted) -> bool:
    if not wanted.failed and not wanted.pending:
        return True
    return (wanted.failed and row.state in LOST) or (wanted.pending and row.is_open)


def delivery_value(row: DeliverySummary, note: DeliveryNote | None, view: View) -> JsonObject:
    """Return a delivery's outcome as JSON, in the form of a view; unknown fields are left out."""
    return present(
        {
            "id": row.delivery_id,
            "purpose": row.purpose,
            "channel": row.channel,
            "to": None if note is None else note.route.to,
            "sessionKey": row.session_key,
            "runId": row.run_id,
            "state": row.state,
            "attempt": row.attempt or None,
            "retryAt": row.retry_at_ms,
            "error": None if note is None else view.shown(note.error, row.session_key),
        }
    )


def text_value(row: DeliverySummary, note: DeliveryNote | None, view: View) -> JsonObject:
    """Return a delivery with its text and its route; otherwise like `delivery_value`.

    `waitsFor` is an earlier one to the same chat, which is not over now.
    """
    earlier = None
    if note is not None and row.state == "decided":
        earlier = view.reader.flows.earlier_to(note.route, row)
    if earlier is not None and not view.is_seen(earlier.session_key):
        earlier = None
    return present(
        {
            **delivery_value(row, note, view),
            "route": None if note is None else present(msgspec.structs.asdict(note.route)),
            "attempts": row.attempt,
            "position": row.accepted,
            "decidedAt": None if note is None else note.decided_ms,
            "text": None if note is None else view.shown(note.text, row.session_key),
            "waitsFor": None if earlier is None else earlier.delivery_id,
        }
    )
