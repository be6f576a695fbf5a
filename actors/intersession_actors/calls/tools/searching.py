"""Searches texts, for the tool `sessions_search` and the debugger's `search`, within the caller's rights (FIND-1)."""

import re
from collections.abc import Callable, Collection, Iterator
from itertools import islice
from typing import Final, NamedTuple

from intersession_actors.calls.service.reader import Reader
from intersession_actors.rules.disclosure.redaction import redact_raw
from intersession_actors.rules.gate.values import invalid
from intersession_events.basics.ids import SESSIONS
from intersession_events.facts import message_in, run_named
from intersession_events.log.recorded import Recorded
from intersession_projections.views.full_text.found import Found, Wanted
from intersession_projections.views.full_text.searched_texts import (
    message_of,
    texts_of_event,
    texts_of_message,
)
from intersession_projections.views.full_text.tokens import Term, holds, snippet, terms, terms_asked

_FLOWS: Final = ("exchange", "spawn")
_CURSOR: Final = re.compile(r"[1-9][0-9]{0,17}", re.ASCII)


class Hit(NamedTuple):
    """A match of all words. `session_key` is the session whose stream it is in; None for an exchange, a spawn and so on."""

    recorded: Recorded
    session_key: str | None
    run_id: str | None
    snippet: str


class Page(NamedTuple):
    """Hits, newest first, and the cursor of the next page, if there is one."""

    hits: list[Hit]
    cursor: str | None


def words_asked(text: str, field: str) -> tuple[Term, ...]:
    """Return the words of a search.

    Raises:
        ToolRefused: there is none in it (`invalid_request`).
    """
    asked = terms_asked(text)
    if not asked:
        raise invalid(field, "there is no word in it, give letters or digits to search for")
    return asked


def before_of(cursor: str | None) -> int | None:
    """Return the position before which a page ends.

    Raises:
        ToolRefused: the cursor does not come from a search (`invalid_request`).
    """
    if cursor is not None and not _CURSOR.fullmatch(cursor):
        raise invalid("cursor", "it is no cursor of this list, give the one that the page before ended with")
    return None if cursor is None else int(cursor)


def page_of(
    reader: Reader, found: Found, wanted: Wanted, *, redacts: Callable[[str], bool], limit: int
) -> Page:
    """Return a page of hits. `redacts` tells of a session whether the caller sees it without its secrets."""
    hits: list[Hit] = []
    # One more than the page is read, to know whether there is another.
    for hit in _hits(reader, found, wanted, redacts, limit + 1):
        if len(hits) == limit:
            return Page(hits, str(hits[-1].recorded.position))
        hits.append(hit)
    return Page(hits, None)


def _hits(
    reader: Reader, found: Found, wanted: Wanted, redacts: Callable[[str], bool], at_once: int
) -> Iterator[Hit]:
    """Yield matches, newest first; read in batches."""
    positions = found.positions(wanted)
    while some := list(islice(positions, at_once)):
        there = {recorded.position: recorded for recorded in reader.log.at(some)}
        for recorded in filter(None, map(there.get, some)):
            key = None
            if recorded.stream.startswith(SESSIONS):
                key = recorded.stream.removeprefix(SESSIONS)
            texts = _texts(recorded, redacted=key is not None and redacts(key))
            # It may have been erased meanwhile, and what is a secret is decided by the rules of today.
            if holds(terms(texts), wanted.terms):
                shown = _spoken(recorded, texts, wanted.terms)
                yield Hit(recorded, key, _run_id(recorded), snippet(shown, wanted.terms))


def _texts(recorded: Recorded, *, redacted: bool) -> list[str]:
    raw = message_of(recorded)
    if raw is None:
        return texts_of_event(recorded)
    return texts_of_message(redact_raw(raw)[0] if redacted else raw)


def _spoken(recorded: Recorded, texts: list[str], asked: Collection[Term]) -> list[str]:
    """Return the texts that are shown together: all of a message, of any other event the one in which a word stands."""
    if message_in(recorded.event) is not None:
        return texts
    return next(([text] for text in texts if any(holds(terms([text]), (term,)) for term in asked)), texts)


def _run_id(recorded: Recorded) -> str | None:
    """Return an event's run; of an exchange or a spawn its own id."""
    kind, _, name = recorded.stream.partition(":")
    return name if kind in _FLOWS else run_named(recorded.event)
