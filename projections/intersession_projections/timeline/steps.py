"""One event as a step that a person can follow: who, to whom, in which words. Pure."""

from typing import Final

import msgspec

from intersession_events.facts import (
    AccessRecorded,
    AnnounceDecided,
    AnnounceRequested,
    AttachmentRemovalFailed,
    AttachmentsReady,
    AttachmentsRemoved,
    ChildArchived,
    ChildEnded,
    ConfigLoaded,
    DeliveryDecided,
    DeliveryDenied,
    DeliveryDone,
    DeliveryFailed,
    DeliveryStarted,
    DeliveryUnknown,
    ExchangeAccepted,
    ExchangeClosed,
    ImportReported,
    LateReplyDropped,
    LineImported,
    LogOpened,
    LoopEnded,
    Message,
    MessageRecorded,
    PrimaryEnded,
    ResultHanded,
    Route,
    RouteChanged,
    RunAborted,
    RunCompleted,
    RunFailed,
    RunInterrupted,
    RunQueued,
    RunStarted,
    SendRefused,
    SessionArchived,
    SessionImported,
    SessionOpened,
    SessionPatched,
    SessionReset,
    SpawnAccepted,
    SpawnClosed,
    ThreadBound,
    ThreadOpened,
    ThreadUnbound,
    ToolCallBlock,
    TurnReplied,
    TurnRequested,
    text_of,
)
from intersession_events.log import Recorded

NO_TEXT: Final = "(no text)"
_SPEAKERS: Final = {
    "external_user": "a person",
    "internal_system": "the system",
    "inter_session": "a session",
}


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """An event as it is shown: `event` is its stored name without the version.

    `who` acts and `to` is acted on: session keys, routes, `operator`; None where the event has none. `words` is raw
    text of anybody's making: whoever prints it makes it harmless first. `cause` is the position of the step that
    caused it, where that is among the steps shown.
    """

    position: int
    time: int
    stream: str
    event: str
    id: str
    who: str | None
    to: str | None
    words: str
    cause: int | None = None


def step_of(recorded: Recorded, cause: int | None = None) -> Step:
    """Return an event as a step."""
    kind, _, name = recorded.stream.partition(":")
    who, to, words = _told(recorded, name if kind == "session" else None)
    return Step(
        position=recorded.position,
        time=recorded.time,
        stream=recorded.stream,
        event=recorded.topic.rpartition(".")[0],
        id=recorded.id,
        who=who,
        to=to,
        words=words,
        cause=cause,
    )


_Told = tuple[str | None, str | None, str]


def _told(recorded: Recorded, key: str | None) -> _Told:
    event = recorded.event
    match event:
        case (
            SessionOpened()
            | SessionPatched()
            | RouteChanged()
            | SessionReset()
            | SessionArchived()
            | ThreadBound()
            | ThreadUnbound()
            | SessionImported()
            | MessageRecorded()
            | LineImported()
        ):
            return _of_session(event, key)
        case (
            RunQueued()
            | RunStarted()
            | RunInterrupted()
            | RunCompleted()
            | RunFailed()
            | RunAborted()
            | LateReplyDropped()
        ):
            return _of_run(event, key)
        case (
            ExchangeAccepted()
            | PrimaryEnded()
            | TurnRequested()
            | TurnReplied()
            | LoopEnded()
            | AnnounceRequested()
            | AnnounceDecided()
            | ExchangeClosed()
        ):
            return _of_exchange(event)
        case (
            SpawnAccepted()
            | ThreadOpened()
            | AttachmentsReady()
            | ChildEnded()
            | ResultHanded()
            | SpawnClosed()
            | ChildArchived()
            | AttachmentsRemoved()
            | AttachmentRemovalFailed()
        ):
            return _of_spawn(event)
        case (
            DeliveryDecided()
            | DeliveryStarted()
            | DeliveryDone()
            | DeliveryFailed()
            | DeliveryUnknown()
            | DeliveryDenied()
        ):
            return _of_delivery(event)
        case AccessRecorded() | SendRefused() | LogOpened() | ConfigLoaded() | ImportReported():
            return _of_system(event)


def _of_session(  # noqa: C901 - one case an event
    event: SessionOpened
    | SessionPatched
    | RouteChanged
    | SessionReset
    | SessionArchived
    | ThreadBound
    | ThreadUnbound
    | SessionImported
    | MessageRecorded
    | LineImported,
    key: str | None,
) -> _Told:
    match event:
        case SessionOpened():
            return event.spawned_by, key, f"opened by {event.opened_by}"
        case SessionPatched():
            changes = [f"{name}={value}" for name, value in event.values.items()]
            return event.by, key, ", ".join([*changes, *(f"{name} cleared" for name in event.cleared)])
        case RouteChanged():
            return None, key, f"words go to {route_text(event.route)}"
        case SessionReset():
            return None, key, f"{event.reason}: {event.previous_session_id} is now {event.session_id}"
        case SessionArchived():
            return None, key, event.reason
        case ThreadBound():
            return None, key, f"thread {route_text(event.route)} is its own"
        case ThreadUnbound():
            return None, key, f"thread {route_text(event.route)} is its own no more: {event.reason}"
        case SessionImported():
            return None, key, event.source
        case MessageRecorded():
            return _of_message(event.message, key)
        case LineImported():
            return None, key, event.kind


def _of_message(message: Message, key: str | None) -> _Told:
    text = text_of(message)
    if message.role == "assistant":
        blocks = message.content if not isinstance(message.content, str) else ()
        calls = [f"{block.name}({block.arguments})" for block in blocks if isinstance(block, ToolCallBlock)]
        return key, None, "\n".join([*([text] if text else []), *calls]) or NO_TEXT
    if message.role == "toolResult":
        return message.tool_name or "a tool", key, text
    origin = message.provenance
    if origin is None:
        return None, key, text
    return origin.source_session_key or _SPEAKERS[origin.kind], key, text


def _of_run(
    event: RunQueued | RunStarted | RunInterrupted | RunCompleted | RunFailed | RunAborted | LateReplyDropped,
    key: str | None,
) -> _Told:
    match event:
        case RunQueued():
            turn = "" if event.turn is None else f" {event.turn}"
            return event.caller, key, f"{event.step}{turn}, run {event.run_id}"
        case RunStarted():
            return key, None, f"attempt {event.attempt}"
        case RunInterrupted():
            return key, None, f"attempt {event.attempt} was cut off"
        case RunCompleted():
            return key, None, event.reply or NO_TEXT
        case RunFailed():
            return key, None, f"{event.code}: {event.error}"
        case RunAborted():
            return event.by, key, event.partial or NO_TEXT
        case LateReplyDropped():
            return key, None, event.reply or NO_TEXT


def _of_exchange(
    event: ExchangeAccepted
    | PrimaryEnded
    | TurnRequested
    | TurnReplied
    | LoopEnded
    | AnnounceRequested
    | AnnounceDecided
    | ExchangeClosed,
) -> _Told:
    match event:
        case ExchangeAccepted():
            return event.requester or event.caller, event.target, event.message
        case PrimaryEnded():
            return None, None, _ended(event.status, event.text, event.error)
        case TurnRequested():
            return None, event.speaker, f"turn {event.turn}"
        case TurnReplied():
            return event.speaker, None, _ended(event.status, event.text, event.error)
        case LoopEnded():
            limit = "" if event.limit is None else f" ({event.limit})"
            return None, None, f"{event.reason}{limit} after {event.turns} turns{_note(event.note)}"
        case AnnounceRequested():
            return None, event.speaker, "announce"
        case AnnounceDecided():
            return None, None, event.why if event.text is None else event.text
        case ExchangeClosed():
            return None, None, f"{event.reason}{_note(event.note)}"


def _of_spawn(
    event: SpawnAccepted
    | ThreadOpened
    | AttachmentsReady
    | ChildEnded
    | ResultHanded
    | SpawnClosed
    | ChildArchived
    | AttachmentsRemoved
    | AttachmentRemovalFailed,
) -> _Told:
    match event:
        case SpawnAccepted():
            return event.requester or event.caller, event.child, event.task
        case ChildEnded():
            return None, None, _ended(event.status, event.text, event.error)
        case ResultHanded():
            return None, event.requester, f"result, run {event.run_id}"
        case SpawnClosed():
            return None, None, f"{event.reason}{_note(event.note)}"
        case ChildArchived():
            return None, event.child, event.reason
        case ThreadOpened():
            return None, None, f"thread {route_text(event.route)}"
        case AttachmentsReady():
            return None, None, f"{event.count} files, {event.total_bytes} bytes, in {event.directory}"
        case AttachmentsRemoved():
            return None, None, f"files removed from {event.directory}"
        case AttachmentRemovalFailed():
            return None, None, f"files not removed from {event.directory}: {event.error}"


def _of_delivery(
    event: DeliveryDecided
    | DeliveryStarted
    | DeliveryDone
    | DeliveryFailed
    | DeliveryUnknown
    | DeliveryDenied,
) -> _Told:
    match event:
        case DeliveryDecided():
            return event.session_key, route_text(event.route), event.text
        case DeliveryStarted():
            return None, None, f"attempt {event.attempt}"
        case DeliveryDone():
            return None, None, event.receipt or "taken"
        case DeliveryFailed():
            again = "not tried again" if event.retry_at_ms is None else "to be tried again"
            return None, None, f"attempt {event.attempt}, {again}: {event.error}"
        case DeliveryUnknown():
            return None, None, f"attempt {event.attempt} was cut off, the channel may have it"
        case DeliveryDenied():
            return None, None, event.rule


def _of_system(event: AccessRecorded | SendRefused | LogOpened | ConfigLoaded | ImportReported) -> _Told:
    match event:
        case AccessRecorded():
            words = f"{event.tool}: {event.allowed} allowed, {event.denied_count} denied"
            who = event.requester or (f"credential:{event.credential}" if event.credential else "operator")
            return who, None, words
        case SendRefused():
            words = f"{event.code}: {event.limit} is {event.value}"
            return event.requester or "operator", event.target, words
        case LogOpened():
            return None, None, f"epoch {event.epoch}, version {event.version}"
        case ConfigLoaded():
            return None, None, f"configuration {event.digest}"
        case ImportReported():
            return None, None, f"{event.source}: {event.sessions} sessions, {event.messages} messages"


def route_text(route: Route) -> str:
    """Return a route as one word."""
    account = "" if route.account is None else f"{route.account}@"
    thread = "" if route.thread is None else f"#{route.thread}"
    return f"{account}{route.channel}:{route.to}{thread}"


def _ended(status: str, text: str | None, error: str | None) -> str:
    return (text or NO_TEXT) if status == "ok" else f"{status}: {error or text or NO_TEXT}"


def _note(note: str | None) -> str:
    return "" if note is None else f", {note}"
