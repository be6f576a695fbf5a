"""The verb `messages`: messages to sessions, on whose behalf they were sent, and the answers' outcome (FIND-2)."""

from typing import Annotated

import msgspec

from intersession_actors.hindsight.debugger.lists.deliveries import delivery_value
from intersession_actors.hindsight.debugger.lists.paging import (
    LimitArgument,
    Listed,
    PageAnswer,
    most_of,
    paged,
)
from intersession_actors.hindsight.debugger.search import InSpan, span_of
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.rules.gate.limits import KeyText, Name
from intersession_events.basics.plain_json import JsonObject, present
from intersession_events.facts import Message, Provenance, ready, text_of
from intersession_events.facts.message_words import is_by_method
from intersession_projections.basics.speakers import is_openclaws
from intersession_projections.questions.messages import IncomingMessage, MessageFilter, Messages
from intersession_projections.views.flows.rows import DeliveryNote, DeliverySummary

Texts = tuple[tuple[DeliverySummary, DeliveryNote | None], ...]


@ready
class MessagesOf(InSpan, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The arguments of `messages`; null counts as missing."""

    inter_session: Annotated[bool, msgspec.Meta(description="Only what sessions said to each other.")] = False
    from_: Annotated[KeyText | None, msgspec.Meta(description="Only what this session said.")] = (
        msgspec.field(default=None, name="from")
    )
    to: Annotated[KeyText | None, msgspec.Meta(description="Only what was said to this session.")] = None
    person: Annotated[
        Name | None,
        msgspec.Meta(
            description="Only what this person said, or what was said for them: their id or name on the channel, or any name that is shown (telegram:ada)."
        ),
    ] = None
    why: Annotated[bool, msgspec.Meta(description="Also the message that it all began with.")] = False
    delivered: Annotated[
        bool, msgspec.Meta(description="Also what became of the texts that went outside for it.")
    ] = False
    limit: LimitArgument = None


class MessagesAnswer(PageAnswer):
    """Messages, newest first: `{position, time, from, to, runId, text, person?, why?, delivered?, …}`; `cursor` is for the next page."""

    messages: list[JsonObject]


def list_messages(view: View, given: MessagesOf) -> MessagesAnswer:
    """Return the messages of people and sessions to sessions.

    Raises:
        ToolRefused: a name, a place or the cursor is invalid.
    """
    rows, cursor = messages_found(view, given, most_of(given.limit))
    values = [said_value(*row, view=view, given=given) for row in rows]
    return {"count": len(rows), "messages": values, "cursor": cursor}


def messages_found(view: View, given: MessagesOf, most: int) -> Listed[tuple[IncomingMessage, Texts]]:
    """Return the same, with the deliveries of each if requested, as rows up to a limit.

    Raises:
        ToolRefused: as `list_messages`.
    """
    wanted = MessageFilter(
        inter_session=given.inter_session,
        sender=None if given.from_ is None else view.session(given.from_, field="from"),
        target=None if given.to is None else view.session(given.to, field="to"),
        person=given.person,
        span=span_of(view, given),
    )
    known, flows = Messages(view.log), view.reader.flows
    found = (said for said in known.said(wanted) if view.is_seen(said.target))
    rows, cursor = paged(found, lambda said: said.position, most)
    sent: list[list[DeliverySummary]] = known.deliveries_of(rows) if given.delivered else [[] for _ in rows]
    sent = [[row for row in some if view.is_seen(row.session_key)] for some in sent]
    notes = iter(flows.notes_of([row for some in sent for row in some]))
    texts = [tuple((row, next(notes)) for row in some) for some in sent]
    return Listed(list(zip(rows, texts, strict=True)), cursor)


def said_value(said: IncomingMessage, texts: Texts, *, view: View, given: MessagesOf) -> JsonObject:
    """Return a message as JSON, in the form of a view; unknown fields are left out.

    What it all began with, and who spoke there, only those know who see that session.
    """
    provenance, began = said.message.provenance, said.began
    if began is not None and not view.is_seen(began[1]):
        began = None
    person = said.person if began is not None else None
    value: JsonObject = {
        "position": said.position,
        "time": said.time_ms,
        "from": speaker(said.message),
        "to": said.target,
        "runId": None if said.run is None else said.run.run_id,
        "retryOf": None if said.run is None else said.run.retry_of,
        "messageId": said.message.id,
        "text": view.shown(text_of(said.message), said.target),
        "kind": None if provenance is None else provenance.kind,
        "exchangeId": None if provenance is None else provenance.exchange_id,
        "turn": None if provenance is None else provenance.turn,
        "person": None if person is None else person_value(person),
    }
    if given.why and began is not None:
        position, key, message = began
        value["why"] = {
            "position": position,
            "to": key,
            "messageId": message.id,
            "text": view.shown(text_of(message), key),
        }
    if given.delivered and (texts or not said.imported):
        value["delivered"] = [delivery_value(text, note, view) for text, note in texts]
    return present(value)


def speaker(message: Message) -> str:
    """Return the speaker: a session by its key, else `person`, `operator`, `system` (of an import OpenClaw), or `unknown` (an import)."""
    if is_openclaws(message):
        return "system"
    if message.provenance is not None and is_by_method(message.provenance):
        return "operator"
    match message.provenance:
        case Provenance(kind="inter_session", source_session_key=str() as key):
            return key
        case Provenance(kind="external_user", source_channel="operator"):
            return "operator"
        case Provenance(kind="external_user"):
            return "person"
        case Provenance(kind="internal_system"):
            return "system"
        case _:
            return "unknown"


def person_value(provenance: Provenance) -> JsonObject:
    """Return a person as JSON, as the channel knows them."""
    return present(
        {"channel": provenance.source_channel, "id": provenance.sender, "name": provenance.sender_name}
    )
