"""The verb `told`: all texts for one person, newest first, with who said each, for whom, why, and whether it arrived (ANS-1)."""

import heapq
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Annotated, Final, NamedTuple, TypedDict

import msgspec

from intersession_actors.calls.tools.searching import words_asked
from intersession_actors.hindsight.debugger.lists.deliveries import sent_texts
from intersession_actors.hindsight.debugger.lists.messages import person_value, speaker
from intersession_actors.hindsight.debugger.lists.paging import (
    LimitArgument,
    Listed,
    PageAnswer,
    most_of,
    paged,
)
from intersession_actors.hindsight.debugger.search import InSpan, span_of
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.rules.gate.limits import KeyText, Name, SearchText
from intersession_actors.rules.gate.values import invalid
from intersession_events.basics.ids import SESSIONS
from intersession_events.basics.keys.key import SessionKey
from intersession_events.basics.plain_json import JsonObject, present
from intersession_events.facts import (
    DeliveryPartDone,
    FileBlock,
    Message,
    Route,
    files_of,
    message_in,
    ready,
    text_of,
)
from intersession_events.facts.message_words import writer_of
from intersession_events.facts.registry import SAYING
from intersession_events.log.recorded import Recorded
from intersession_events.log.sql import Row
from intersession_projections.basics.row_prefilter import prefiltered
from intersession_projections.basics.spans import Span
from intersession_projections.questions.known_names import KnownNames, near
from intersession_projections.questions.messages import Messages
from intersession_projections.questions.people import Chat, Person, person_named
from intersession_projections.views.flows.rows import DeliveriesWanted, DeliveryNote, DeliverySummary
from intersession_projections.views.full_text.tokens import Term, holds, terms

_REACHED: Final[Mapping[str, bool]] = {"done": True, "failed": False, "denied": False, "withheld": False}
"""Whether a text reached its chat, by the state of its delivery; of the other states it is not known."""

Begun = tuple[int, str, Message]
"""A message with its position and the session that it was said to."""


@ready
class PersonTexts(InSpan, frozen=True, forbid_unknown_fields=True):
    """The arguments of `told`; null counts as missing."""

    person: Annotated[
        Name,
        msgspec.Meta(
            description="The person: their id or name on the channel, as they are shown (telegram:ada), or a name of `session.identityLinks`."
        ),
    ]
    from_: Annotated[KeyText | None, msgspec.Meta(description="Only what this session said.")] = (
        msgspec.field(default=None, name="from")
    )
    words: Annotated[
        SearchText | None, msgspec.Meta(description="Only texts in which all of these words stand.")
    ] = None
    limit: LimitArgument = None


class WhomAnswer(TypedDict):
    """The people of a name, and the chats where texts reach them: `{route, chat, sessionKey?, since?}`, as in `PersonTextsAnswer`."""

    people: list[JsonObject]
    chats: list[JsonObject]
    imported: bool


class PersonTextsAnswer(PageAnswer, WhomAnswer):
    """Texts for a person, newest first; `cursor` is for the next page.

    Each is `{position, time, sessionKey, agentId, purpose, state, reached, text, route?, chat, files?, person?, answers?, why?, …}`.
    `reached` is true where the channel took it, false where it did not, null where that is not known or still to come. `people`
    are those with the name, `chats` where texts reach them: `{route, chat, since?}`, with the position of their first words there.
    `chat` is its kind: `direct`, `group`, `channel`, or `address` where nobody of that name wrote.
    `imported`: some of their words came by an import, which does not say what went outside.
    """

    texts: list[JsonObject]


class PersonText(NamedTuple):
    """A text for a person: a delivery with what is known of it, or a message that `writer` put into a session's history."""

    position: int
    chat: Chat
    delivery: DeliverySummary | None = None
    note: DeliveryNote | None = None
    injected: Recorded | None = None

    @property
    def session_key(self) -> str:
        """The session in whose name it was said."""
        if self.delivery is not None:
            return self.delivery.session_key
        return "" if self.injected is None else self.injected.stream.removeprefix(SESSIONS)


def list_person_texts(view: View, given: PersonTexts) -> PersonTextsAnswer:
    """Return what a person was told.

    Raises:
        ToolRefused: the log knows no such person, or a name, a place or the cursor is invalid.
    """
    person = person_of(view, given.person)
    rows, cursor = person_texts_found(view, given, person, most_of(given.limit))
    meant = whom(person)
    return {
        "count": len(rows),
        "people": meant["people"],
        "chats": meant["chats"],
        "imported": meant["imported"],
        "texts": person_text_values(view, rows),
        "cursor": cursor,
    }


def whom(person: Person) -> WhomAnswer:
    """Return who is meant, and where texts reach them."""
    return {
        "people": [person_value(one) for one in person.people],
        "chats": [_chat_value(chat) for chat in person.chats],
        "imported": person.imported,
    }


def person_of(view: View, name: str) -> Person:
    """Return a person by any name of theirs.

    Raises:
        ToolRefused: the log knows nobody of that name (`invalid_request`).
    """
    if not name.strip():
        raise invalid(
            "person", "blank, give an id or a name, as the channel or a list shows it (telegram:ada)"
        )
    linked = view.reader.config.session.identity_links.get(name, ())
    found = person_named(view.log, (name, *linked))
    if found is None:
        alike = near(name, KnownNames(view.log).people())
        there = f"; there is {', '.join(alike)}" if alike else ""
        raise invalid(
            "person", f"this log knows nobody called {name[:64]!a}, and no chat of that address{there}"
        )
    return found


def person_texts_found(view: View, given: PersonTexts, person: Person, most: int) -> Listed[PersonText]:
    """Return the same, as rows up to a limit.

    Raises:
        ToolRefused: as `list_person_texts`.
    """
    session = None if given.from_ is None else view.session(given.from_, field="from")
    words = () if given.words is None else words_asked(given.words, "words")
    routes = {chat.route: chat for chat in person.chats}
    wanted = DeliveriesWanted(session_key=session, span=span_of(view, given), routes=tuple(routes))
    with ExitStack() as opened:
        sent = (
            (
                PersonText(one.accepted, person.chats[0], one)
                for one in sent_texts(view, wanted, opened, words=words)
            )
            if routes
            else ()
        )
        put = _injected(view, person, session, wanted.span, words)
        found = heapq.merge(sent, put, key=lambda one: -one.position)
        rows, cursor = paged(found, lambda one: one.position, most)
    notes = iter(view.reader.flows.notes_of([one.delivery for one in rows if one.delivery is not None]))
    return Listed([one if one.delivery is None else _noted(one, next(notes), routes) for one in rows], cursor)


def _noted(text: PersonText, note: DeliveryNote | None, chats: Mapping[Route, Chat]) -> PersonText:
    chat = text.chat if note is None else chats.get(note.route, text.chat)
    return text._replace(note=note, chat=chat)


def _injected(
    view: View, person: Person, session: str | None, span: Span, words: Sequence[Term]
) -> Iterator[PersonText]:
    """Yield what was put into the histories of the sessions that they speak to, as words of the agent's that it never said."""
    chats = {chat.session_key: chat for chat in person.chats if session in {None, chat.session_key}}
    streams = {f"{SESSIONS}{key}" for key in chats if key is not None}
    if not streams:
        return
    for recorded in prefiltered(view.log, span, lambda row: _may_be_injected(row, streams)):
        message = message_in(recorded.event)
        if message is None or writer_of(message) is None or not holds(terms([text_of(message)]), words):
            continue
        chat = chats[recorded.stream.removeprefix(SESSIONS)]
        yield PersonText(recorded.position, chat, injected=recorded)


def _may_be_injected(row: Row, streams: Collection[str]) -> bool:
    return (
        row[1] in streams and row[3] in SAYING and b"internal_system" in row[4] and b'"assistant"' in row[4]
    )


def person_text_values(view: View, rows: Sequence[PersonText]) -> list[JsonObject]:
    """Return texts as JSON, in the form of a view; unknown fields are left out."""
    messages, reader = Messages(view.log), view.reader
    notes = [one.note for one in rows if one.note is not None]
    began = messages.beginnings(note.root for note in notes if note.root is not None)
    runs = reader.runs.many_without_words(
        one.delivery.run_id for one in rows if one.delivery is not None and one.delivery.run_id is not None
    )
    answered = dict(zip(runs, messages.of_runs(list(runs.values())), strict=True))
    return [
        _injected_value(view, one.injected, one.chat)
        if one.injected is not None
        else _sent_value(view, one, began, answered)
        for one in rows
    ]


def _sent_value(
    view: View, text: PersonText, began: Mapping[str, Begun | None], answered: Mapping[str, Begun | None]
) -> JsonObject:
    row, note = text.delivery, text.note
    if row is None:
        return {}
    first = None if note is None or note.root is None else began.get(note.root)
    asked = answered.get(row.run_id or "")
    provenance = None if first is None else first[2].provenance
    is_person = provenance is not None and provenance.kind == "external_user"
    return _value(
        view,
        text.position,
        row.session_key,
        text.chat,
        {
            "id": row.delivery_id,
            "time": None if note is None else note.decided_ms,
            "endedAt": None if note is None or row.is_open else note.last_ms,
            "purpose": row.purpose,
            "state": row.state,
            "attempts": row.attempt,
            "error": None if note is None else view.shown(note.error, row.session_key),
            "sentChars": None if row.state == "done" or not row.attempt else _sent_chars(view, row),
            "text": None if note is None else view.shown(note.text, row.session_key),
            "files": None if note is None else _file_values(note.decided.files),
            "shownEarlier": None if note is None else note.decided.edits is not None or None,
            "by": None if note is None else note.decided.by,
            "runId": row.run_id,
            "flow": row.owner,
            "person": person_value(provenance) if provenance is not None and is_person else None,
            "answers": None if asked is None else _said_value(view, asked),
            "why": None if first is None or first == asked else _said_value(view, first),
        },
        reached=_REACHED.get(row.state),
    )


def _injected_value(view: View, recorded: Recorded, chat: Chat) -> JsonObject:
    key, message = recorded.stream.removeprefix(SESSIONS), message_in(recorded.event)
    if message is None:
        return {}
    return _value(
        view,
        recorded.position,
        key,
        chat,
        {
            "id": message.id,
            "time": recorded.time,
            "purpose": "inject",
            "state": "history",
            "text": view.shown(text_of(message), key),
            "files": _file_values(files_of(message)),
            "by": writer_of(message),
        },
        reached=None,
    )


def _value(
    view: View, position: int, key: str, chat: Chat, rest: JsonObject, *, reached: bool | None
) -> JsonObject:
    view.is_seen(key)  # for the receipt
    early = chat.kind in {"group", "channel"} and chat.first is not None and position < chat.first
    known: JsonObject = {
        "position": position,
        "sessionKey": key,
        "agentId": SessionKey.recorded(key).agent_id,
    }
    shown = present(
        {"route": present(msgspec.structs.asdict(chat.route)), "beforeFirstWords": early or None, **rest}
    )
    return {**known, "chat": chat.kind, "reached": reached, **shown}


def _chat_value(chat: Chat) -> JsonObject:
    route = present(msgspec.structs.asdict(chat.route))
    return present({"route": route, "chat": chat.kind, "sessionKey": chat.session_key, "since": chat.first})


def _said_value(view: View, said: Begun) -> JsonObject:
    position, key, message = said
    return present(
        {
            "position": position,
            "from": speaker(message),
            "to": key,
            "text": view.shown(text_of(message), key),
        }
    )


def _file_values(files: Sequence[FileBlock]) -> list[JsonObject] | None:
    return [
        {"name": one.name, "mimeType": one.mime_type, "size": one.size, "sha256": one.sha256} for one in files
    ] or None


def _sent_chars(view: View, row: DeliverySummary) -> int | None:
    """Return how many characters of a text that was not delivered whole the channel took all the same."""
    parts = [one.event for one in view.log.stream(row.stream) if isinstance(one.event, DeliveryPartDone)]
    return parts[-1].sent if parts else None
