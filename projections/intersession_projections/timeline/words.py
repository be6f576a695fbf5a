"""Every event in words: the one table that the steps of a timeline and the stories of the command line read from. Pure.

A step shows an event in brief, by the names that are stored; a story tells it in a sentence. The two stand side by side
here, so that a new event is put into words in one place.
"""

from collections.abc import Iterator, Mapping
from typing import Final, Literal, NamedTuple

from intersession_events import facts
from intersession_events.log import Recorded
from intersession_projections.timeline.reasons import (
    ARCHIVALS,
    CLOSES,
    FAILURES,
    HELD_BEFORE,
    HELD_TEXTS,
    OPENINGS,
    RELEASES,
    SILENCES,
    STATUSES,
    loop_end,
)

NO_TEXT: Final = "(no text)"
_A_PERSON: Final = "a person"
_A_SESSION: Final = "a session"
_THE_SYSTEM: Final = "the system"
_SPEAKERS: Final = {"internal_system": _THE_SYSTEM, "inter_session": _A_SESSION}

Kind = Literal["said", "tool", "note", "end"]
"""`said`: a text from one to another; `tool`: what an agent did meanwhile; `note`: what happened besides; `end`: how all
of it ended."""


class Words(NamedTuple):
    """One event in words.

    `who` acts and `to` is acted on, as far as the event itself names them: session keys, routes, `operator`. `brief` is
    for a list of steps. `how` is for a story: a sentence, or a verb after `who`; it is empty where stories leave the
    event out. `text` is what somebody wrote, raw: whoever prints it makes it harmless first.
    """

    who: str | None
    to: str | None
    brief: str
    how: str = ""
    text: str | None = None
    kind: Kind = "note"


def words_of(event: facts.Event, key: str | None, *, max_turns: int = 0, place: str | None = None) -> Words:
    """Return an event in words.

    `key` is the session whose stream the event is in, None for other streams. `max_turns` says how many turns its
    exchange may have, `place` where its delivery goes: events before it have told that.
    """
    if isinstance(event, facts.SessionEvent):
        return _of_session(event, key)
    if isinstance(event, facts.RunEvent):
        return _of_run(event, key)
    if isinstance(event, facts.ExchangeEvent):
        return _of_exchange(event, max_turns)
    if isinstance(event, facts.SpawnEvent):
        return _of_spawn(event)
    if isinstance(event, facts.DeliveryEvent):
        return _of_delivery(event, place or "its channel")
    return _of_system(event)


def words_in(recorded: Recorded) -> Words:
    """Return an event of a log in words."""
    kind, _, name = recorded.stream.partition(":")
    return words_of(recorded.event, name if kind == "session" else None)


def words_of_message(message: facts.Message, key: str | None) -> Iterator[Words]:
    """Yield what a message of a session says: its text, then each tool that it calls."""
    text = facts.text_of(message)
    match message.role:
        case "assistant" if isinstance(message.content, str):
            yield Words(key, None, text or NO_TEXT, "says", text, "said")
        case "assistant":
            if text:
                yield Words(key, None, text, "says", text, "said")
            for block in message.content:
                if isinstance(block, facts.ToolCallBlock):
                    call = f"{block.name}({block.arguments})"
                    yield Words(key, None, call, f"calls {block.name}", block.arguments, "tool")
        case "toolResult":
            tool = message.tool_name or "a tool"
            yield Words(tool, key, text, f"gets from {tool}", text, "tool")
        case "user" | "system":
            yield Words(_asker(message), key, text, _asks(message), text, "said")


def person(sender: str | None, sender_name: str | None) -> str:
    """Return a person as stories call them: name and id; `a person` where the log does not say who spoke."""
    if sender is None:
        return _A_PERSON
    return sender if sender_name in {None, sender} else f"{sender_name} ({sender})"


def speaker(message: facts.Message) -> str:
    """Return who asks an agent with a message: a session's key, or words for a person or the system."""
    origin = message.provenance
    if origin is None:
        return _THE_SYSTEM if message.role == "system" else _A_PERSON
    match origin.kind:
        case "external_user":
            who = person(origin.sender, origin.sender_name)
            return who if origin.source_channel is None else f"{who} on {origin.source_channel}"
        case "inter_session":
            return origin.source_session_key or _A_SESSION
        case "internal_system":
            return _THE_SYSTEM


def route_text(route: facts.Route) -> str:
    """Return a route as one word."""
    account = "" if route.account is None else f"{route.account}@"
    thread = "" if route.thread is None else f"#{route.thread}"
    return f"{account}{route.channel}:{route.to}{thread}"


def _of_session(event: facts.SessionEvent, key: str | None) -> Words:  # noqa: C901 - one case an event
    match event:
        case facts.SessionOpened():
            how = f"The session opens: {OPENINGS[event.opened_by]}."
            return Words(event.spawned_by, key, f"opened by {event.opened_by}", how)
        case facts.SessionPatched():
            cleared = [f"{name} cleared" for name in event.cleared]
            brief = ", ".join([*(f"{name}={value}" for name, value in event.values.items()), *cleared])
            changes = ", ".join([*(f"{name}: {value}" for name, value in event.values.items()), *cleared])
            by = f" by {event.by}" if event.by else ""
            return Words(event.by, key, brief, f"Settings changed{by}: {changes}.")
        case facts.RouteChanged():
            place = route_text(event.route)
            return Words(None, key, f"words go to {place}", f"From now on its words go to {place}.")
        case facts.SessionReset():
            brief = f"{event.reason}: {event.previous_session_id} is now {event.session_id}"
            how = f"The session is reset; what was said before is {event.previous_session_id}."
            return Words(None, key, brief, how)
        case facts.SessionArchived():
            how = f"The session leaves the list: {ARCHIVALS[event.reason]}."
            return Words(None, key, event.reason, how)
        case facts.ThreadBound():
            return Words(None, key, f"thread {route_text(event.route)} is its own")
        case facts.ThreadUnbound():
            return Words(None, key, f"thread {route_text(event.route)} is its own no more: {event.reason}")
        case facts.SessionImported():
            return Words(None, key, event.source, f"Imported from {event.source}.")
        case facts.MessageRecorded():
            said = list(words_of_message(event.message, key))
            who, to = (said[0].who, said[0].to) if said else (key, None)
            return Words(who, to, "\n".join(words.brief for words in said) if said else NO_TEXT)
        case facts.LineImported():
            return Words(None, key, event.kind)


def _asker(message: facts.Message) -> str | None:
    """Return who asks, as a step shows it: None where the message has no record of it."""
    origin = message.provenance
    if origin is None:
        return None
    if origin.kind == "external_user":
        return person(origin.sender, origin.sender_name)
    return origin.source_session_key or _SPEAKERS[origin.kind]


def _asks(message: facts.Message) -> str:
    origin = message.provenance
    if origin is None or origin.kind != "inter_session":
        return "says"
    if origin.source_tool == "sessions_spawn":
        return "hands over" if origin.turn is None else "says"
    asks = f"asks for turn {origin.turn}" if origin.turn else "asks"
    return asks if origin.edited_by is None else f"{asks}, in the words of {origin.edited_by}"


def _of_run(event: facts.RunEvent, key: str | None) -> Words:
    match event:
        case facts.RunQueued():
            turn = "" if event.turn is None else f" {event.turn}"
            brief = f"{event.step}{turn}, run {event.run_id}"
            if event.retry_of is None:
                return Words(event.caller, key, brief)
            again = f"wants run {event.retry_of} tried again"
            return Words(event.caller, key, f"{brief}, tries {event.retry_of} again", again)
        case facts.RunStarted():
            return Words(key, None, f"attempt {event.attempt}")
        case facts.RunInterrupted():
            how = f"was cut off in attempt {event.attempt}; the run starts again"
            return Words(key, None, f"attempt {event.attempt} was cut off", how)
        case facts.RunCompleted():
            how = "; ".join(("answers without a text", *event.notes))
            return Words(key, None, event.reply or NO_TEXT, how)
        case facts.RunFailed():
            how = f"{FAILURES[event.code]}: {event.error}"
            return Words(
                key, None, f"{event.code}: {event.error}", how, _with_trace(event.partial, event.traceback)
            )
        case facts.RunAborted():
            return Words(event.by, key, event.partial or NO_TEXT, f"was aborted by {event.by}", event.partial)
        case facts.LateReplyDropped():
            return Words(key, None, event.reply or NO_TEXT, "answered too late; nobody uses it", event.reply)


def asker_of(event: facts.ExchangeAccepted | facts.SpawnAccepted) -> str:
    """Return who asked: a session by its key, else `operator` or a credential; `unknown` where an import does not show."""
    if event.requester is None and event.inferred:
        return "unknown"  # logs of before the word was known have `operator` there
    return event.requester or event.caller


def _of_exchange(event: facts.ExchangeEvent, max_turns: int) -> Words:
    match event:
        case facts.ExchangeAccepted():
            return Words(asker_of(event), event.target, event.message, "asks", event.message, "said")
        case facts.PrimaryEnded():
            return _of_answer(event, None, "replies")
        case facts.TurnRequested():
            return Words(None, event.speaker, f"turn {event.turn}")
        case facts.TurnReplied():
            of = f" of {max_turns}" if max_turns else ""
            return _of_answer(event, event.speaker, f"turn {event.turn}{of}")
        case facts.LoopEnded():
            limit = "" if event.limit is None else f" ({event.limit})"
            brief = f"{event.reason}{limit} after {event.turns} turns{_note(event.note)}"
            return Words(None, None, brief, loop_end(event.reason, event.turns, event.limit, event.note))
        case facts.AnnounceRequested() | facts.AnnounceDecided():
            return _of_announce(event)
        case facts.HoldRequested() | facts.HoldWithdrawn() | facts.ExchangeHeld() | facts.ExchangeReleased():
            return _of_hold(event)
        case facts.ExchangeClosed():
            return _of_close(event)


def _of_hold(
    event: facts.HoldRequested | facts.HoldWithdrawn | facts.ExchangeHeld | facts.ExchangeReleased,
) -> Words:
    match event:
        case facts.HoldRequested():
            what = HELD_BEFORE[event.before]
            return Words(event.by, None, f"hold before {event.before}", f"wants it held before {what}")
        case facts.HoldWithdrawn():
            return Words(event.by, None, "hold withdrawn", "wants it held no more")
        case facts.ExchangeHeld():
            note = _note(event.note)
            how = f"Held: {HELD_TEXTS[event.step]} waits for a release, as {event.by} wants{note}."
            return Words(event.speaker, event.to, f"{event.step} held by {event.by}{note}: {event.text}", how)
        case facts.ExchangeReleased():
            brief = event.action if event.text is None else f"{event.action}: {event.text}"
            how = RELEASES[event.action]
            kind: Kind = "note" if event.text is None else "said"
            return Words(event.by, None, brief, how, event.text, kind)


def _of_spawn(event: facts.SpawnEvent) -> Words:  # noqa: C901 - one case an event
    match event:
        case facts.SpawnAccepted():
            return Words(asker_of(event), event.child, event.task, "spawns a sub-agent", event.task, "said")
        case facts.ChildEnded():
            return _of_answer(event, None, "ends its task")
        case facts.AnnounceRequested() | facts.AnnounceDecided():
            return _of_announce(event)
        case facts.ResultHanded():
            brief = f"result, {f'run {event.run_id}' if event.limit is None else f'no run: {event.limit}'}"
            return Words(None, event.requester, brief, "hands over the result", kind="said")
        case facts.SpawnClosed():
            return _of_close(event)
        case facts.ChildArchived():
            how = f"left the list ({event.reason}); its record stays"
            return Words(None, event.child, event.reason, how)
        case facts.ThreadOpened():
            place = route_text(event.route)
            return Words(None, None, f"thread {place}", f"has a thread of its own: {place}")
        case facts.AttachmentsReady():
            files, size, place = f"{event.count} files", f"{event.total_bytes} bytes", event.directory
            return Words(None, None, f"{files}, {size}, in {place}", f"has {files} ({size}) in {place}")
        case facts.AttachmentsRemoved():
            how = f"has no files any more in {event.directory}"
            return Words(None, None, f"files removed from {event.directory}", how)
        case facts.AttachmentRemovalFailed():
            where = f"{event.directory}: {event.error}"
            return Words(None, None, f"files not removed from {where}", f"keeps its files in {where}")


def _of_answer(
    event: facts.PrimaryEnded | facts.TurnReplied | facts.ChildEnded, who: str | None, how: str
) -> Words:
    """Return how a run of a flow ended: with a text for the other side, or without."""
    if event.status != "ok":
        brief = f"{event.status}: {event.error or event.text or NO_TEXT}"
        error = f": {event.error}" if event.error else ""
        return Words(who, None, brief, f"{STATUSES[event.status]}{error}", event.text)
    if event.text is None:
        return Words(who, None, NO_TEXT, f"{how}: answers without a text")
    return Words(who, None, event.text or NO_TEXT, how, event.text, "said")


def _of_announce(event: facts.AnnounceRequested | facts.AnnounceDecided) -> Words:
    match event:
        case facts.AnnounceRequested():
            return Words(None, event.speaker, "announce")
        case facts.AnnounceDecided():
            if event.text is None:
                return Words(None, None, event.why, f"Nothing is announced: {SILENCES[event.why]}.")
            how = "announces" if event.edited_by is None else f"announces, in the words of {event.edited_by}"
            return Words(None, None, event.text, how, event.text, "said")


def _of_close(event: facts.ExchangeClosed | facts.SpawnClosed) -> Words:
    """Return why a flow is over. Its `how` is the reason alone, for a story that says which flow it is."""
    return Words(None, None, f"{event.reason}{_note(event.note)}", CLOSES[event.reason], kind="end")


def _of_delivery(event: facts.DeliveryEvent, place: str) -> Words:
    match event:
        case facts.DeliveryDecided():
            how = _SENDS.get(event.purpose, "sends")
            return Words(event.session_key, route_text(event.route), event.text, how, event.text, "said")
        case facts.DeliveryStarted():
            return Words(None, None, f"attempt {event.attempt}")
        case facts.DeliveryDone():
            return Words(None, None, event.receipt or "taken", f"Delivered to {place}.")
        case facts.DeliveryFailed():
            given_up = event.retry_at_ms is None
            brief = "not tried again" if given_up else "to be tried again"
            how = "given up" if given_up else "to be tried again"
            return Words(
                None,
                None,
                f"attempt {event.attempt}, {brief}: {event.error}",
                f"Not delivered to {place}, {how}: {event.error}",
                event.traceback,
            )
        case facts.DeliveryUnknown(error=error):
            how = "was cut off" if error is None else "is in doubt"
            brief = f"attempt {event.attempt} {how}, the channel may have it" + (
                f": {error}" if error else ""
            )
            whole = f"It is not known whether {place} got it; it is not sent again."
            return Words(None, None, brief, f"{whole} {error}" if error else whole)
        case facts.DeliveryDenied():
            how = f"Not delivered to {place}: the send policy forbids it ({event.rule})."
            return Words(None, None, event.rule, how)
        case facts.DeliveryWithheld():
            how = f"Would be delivered to {place}: the channels of a fork are sealed."
            return Words(None, None, f"withheld, would deliver to {event.channel}", how)
        case facts.DeliveryRetried():
            return Words(event.by, None, "once more", f"wants it delivered to {place} after all")


def _of_system(event: facts.AccessEvent | facts.SystemEvent) -> Words:  # noqa: C901 - one case an event
    match event:
        case facts.AccessRecorded():
            who = event.requester or (f"credential:{event.credential}" if event.credential else "operator")
            return Words(who, None, f"{event.tool}: {event.allowed} allowed, {event.denied_count} denied")
        case facts.SendRefused():
            brief = f"{event.tool}: {event.code}, {event.limit} is {event.value}"
            return Words(event.requester or "operator", event.target, brief)
        case facts.LogOpened():
            return Words(None, None, f"epoch {event.epoch}, version {event.version}")
        case facts.ConfigLoaded():
            return Words(None, None, f"configuration {event.digest}")
        case facts.CheckpointTaken():
            signed = "" if event.key_id is None else f", signed by {event.key_id}"
            return Words(None, None, f"the log up to {event.position}: {event.events_root}{signed}")
        case facts.CheckpointPublished():
            return Words(None, None, f"the checkpoint of {event.position}, to a {event.to}")
        case facts.ImportReported():
            brief = f"{event.source}: {event.sessions} sessions, {event.messages} messages"
            return Words(None, None, brief)
        case facts.InboundTaken():
            return Words(None, event.session_key, f"message {event.message_id}")
        case facts.NotePinned():
            return Words(event.by, None, f"notes at {event.position}: {event.text}", text=event.text)
        case facts.Erased():
            brief = f"{len(event.rows)} events of {event.stream}"
            return Words(event.by, None, f"{brief}: {event.reason}" if event.reason else brief)
        case facts.ForkEdited():
            edit = event.edit
            what = f"{edit.kind} {edit.key}".strip()
            return Words(event.by, None, f"edited at {edit.place}: {what}", text=edit.value or None)
        case facts.ForkedFrom():
            edits = ", ".join(f"{edit.kind} {edit.key}".strip() for edit in event.edits) or "no edits"
            return Words(event.by, None, f"fork of {event.log_id} at position {event.position}: {edits}")


_SENDS: Final[Mapping[facts.Purpose, str]] = {
    "announce": "announces",
    "spawn_announce": "announces",
    "failure_notice": "tells that there is no answer",
}


def _with_trace(partial: str | None, traceback: str | None) -> str | None:
    return "\n".join(text for text in (partial, traceback) if text is not None) or None


def _note(note: str | None) -> str:
    return "" if note is None else f", {note}"
