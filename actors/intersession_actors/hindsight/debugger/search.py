"""The verb `search`: where a text was said, in all transcripts and events that the caller may see (FIND-1)."""

from collections.abc import Collection, Sequence
from typing import Annotated, TypedDict

import msgspec

from intersession_actors.calls.tools.searching import Hit, before_of, page_of, words_asked
from intersession_actors.hindsight.debugger.lists.paging import most_of
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.rules.gate.limits import CHOICES, CursorText, KeyText, Name, PlaceText, SearchText
from intersession_actors.rules.gate.values import invalid
from intersession_events.facts import EVENT_KINDS, TOPICS, ready
from intersession_projections.basics.spans import Span
from intersession_projections.questions.places.located import sessions_of_each
from intersession_projections.views.full_text.found import Found, Wanted
from intersession_projections.views.full_text.view import events_of, private_of, shown_of


@ready
class InSpan(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The arguments of a list over the log, read newest first in pages."""

    since: Annotated[int | float | PlaceText | None, msgspec.Meta(description="Only behind this place.")] = (
        None
    )
    until: Annotated[
        int | float | PlaceText | None, msgspec.Meta(description="Only up to this place. Default: head.")
    ] = None
    cursor: Annotated[
        CursorText | None, msgspec.Meta(description="The cursor of the page before this one.")
    ] = None


def span_of(view: View, given: InSpan) -> Span:
    """Return the selected part of the log.

    Raises:
        ToolRefused: a place or the cursor is invalid.
    """
    return Span(
        after=0 if given.since is None else view.place(given.since, field="since").position,
        to=None if given.until is None else view.place(given.until, field="until", is_end=True).position,
        before=before_of(given.cursor),
    )


def check_kinds(kinds: Collection[str]) -> None:
    """Refuse unknown names of events.

    Raises:
        ToolRefused: no event has that name.
    """
    for kind in kinds:
        if kind not in EVENT_KINDS:
            known = ", ".join(sorted(EVENT_KINDS))
            raise invalid("kind", f"no event is called {kind[:64]!a}, give one of {known}")


@ready
class Search(InSpan, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The arguments of `search`; null counts as missing."""

    words: Annotated[
        SearchText,
        msgspec.Meta(description="All of these words, in any case and order; `word*` is any that begins so."),
    ]
    in_: Annotated[
        KeyText | None, msgspec.Meta(description="Only in this session. Default: the whole log.")
    ] = msgspec.field(default=None, name="in")
    kind: Annotated[
        Annotated[Sequence[Name], msgspec.Meta(max_length=CHOICES.most)] | None,
        msgspec.Meta(description="Only events of these names (message_recorded, run_failed, …)."),
    ] = None
    limit: Annotated[
        float | None, msgspec.Meta(description="At most this many hits, 1 to 1000; 50 if not given.")
    ] = None


class HitAnswer(TypedDict):
    """A match of all words. `runId` is the run that it belongs to, or that answers it; exchanges and spawns have fields of their own."""

    position: int
    sessionKey: str | None
    runId: str | None
    kind: str
    timeMs: int
    snippet: str


class SearchAnswer(TypedDict):
    """Hits, newest first; `cursor` is for the next page.

    `indexed` is False where all words had to be looked at: there is no index, or it is far behind.
    """

    hits: list[HitAnswer]
    cursor: str | None
    indexed: bool


def search(view: View, given: Search) -> SearchAnswer:
    """Return where a text was said.

    Raises:
        ToolRefused: there is no word, or a name, a kind, a place or the cursor is invalid.
    """
    asked = words_asked(given.words, "words")
    key = None if given.in_ is None else view.session(given.in_, field="in")
    span = span_of(view, given)
    check_kinds(given.kind or ())
    topics = [topic for topic in TOPICS if topic.rpartition(".")[0] in (given.kind or ())]
    limit = most_of(given.limit)
    with view.reader.full_text.up_to_date(for_all=view.is_operator) as found:
        wanted = Wanted(asked, _groups(view, found, key), span, topics)
        page = page_of(
            view.reader,
            found,
            wanted,
            redacts=view.is_stranger,
            limit=limit,
        )
        sessions = sessions_of_each(view.log, [hit.recorded for hit in page.hits])
        return {
            "hits": [_answer(view, hit, of) for hit, of in zip(page.hits, sessions, strict=True)],
            "cursor": page.cursor,
            "indexed": found.indexed,
        }


def _groups(view: View, found: Found, key: str | None) -> list[str]:
    """Return the groups that the caller may see, in one session or in all."""
    if view.is_operator and key is None:
        agents = found.names("agent").values()
        private = () if view.hides else agents
        return [*shown_of(agents, ()), *private_of(private, ()), *events_of(agents, ())]
    sessions = found.names("session")
    seen = {key: sessions[key]} if key in sessions else {}
    if key is None:
        seen = {of: number for of, number in sessions.items() if of and view.is_seen(of)}
    whole = [number for of, number in seen.items() if not view.is_stranger(of)]
    events = seen.values() if view.is_operator else ()
    return [*shown_of((), seen.values()), *private_of((), whole), *events_of((), events)]


def _answer(view: View, hit: Hit, sessions: Sequence[str]) -> HitAnswer:
    recorded = hit.recorded
    key = hit.session_key or next(iter(sessions), None)
    if key is not None:
        view.is_seen(key)  # for the receipt
    return {
        "position": recorded.position,
        "sessionKey": key,
        "runId": hit.run_id,
        "kind": recorded.kind,
        "timeMs": recorded.time,
        "snippet": hit.snippet,
    }
