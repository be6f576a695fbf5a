"""An exchange, a spawn or a run, told as a conversation. Pure: recorded events in, beats out, one event at a time."""

from collections.abc import Iterator

from intersession.cli.story.beat import Beat, Told, beat_of
from intersession.cli.story.causes import Causes
from intersession.cli.story.messages import attempt_told, message_told
from intersession.cli.story.reasons import CLOSES, SILENCES, STATUSES, loop_end
from intersession_actors.prompt import is_reply_skip
from intersession_events.facts import (
    AnnounceDecided,
    AnnounceRequested,
    AttachmentRemovalFailed,
    AttachmentsReady,
    AttachmentsRemoved,
    ChildArchived,
    ChildEnded,
    DeliveryDecided,
    DeliveryDenied,
    DeliveryDone,
    DeliveryFailed,
    DeliveryUnknown,
    ExchangeAccepted,
    ExchangeClosed,
    LateReplyDropped,
    LoopEnded,
    MessageRecorded,
    PrimaryEnded,
    ResultHanded,
    RunAborted,
    RunFailed,
    RunInterrupted,
    SpawnAccepted,
    SpawnClosed,
    ThreadOpened,
    TurnReplied,
    TurnRequested,
)
from intersession_events.log import Recorded
from intersession_projections.timeline import route_text

OPERATOR = "the operator"
_SESSION = "session:"


class FlowStory:
    """Tells one flow. Feed it the flow's events in log order: `tell` returns what there is to say of each.

    Words are told where the flow's own stream has them. The messages that carried them into the sessions are passed
    over, save those of a run that belongs to no flow (`alone`).
    """

    def __init__(self, *, alone: bool = False) -> None:
        self._causes = Causes()
        self._asker = OPERATOR
        self._asked: str | None = None
        self._max_turns = 0
        self._alone = alone
        self._inferred = False
        self._is_spawn = False
        self._announce: str | None = None
        self._handed_run: str | None = None
        self._routes: dict[str, str] = {}
        self._carried: dict[str, str] = {}
        self._last = 0
        self._last_said: str | None = None

    def tell(self, recorded: Recorded) -> list[Beat]:
        """Return the beats of the next event."""
        cause = self._causes.take(recorded)
        beats = [beat_of(told, recorded, cause) for told in self._told(recorded)]
        for beat in beats:
            self._causes.show(recorded)
            self._last = recorded.position
            self._last_said = beat.text if beat.kind == "said" else self._last_said
        self._follow_words(recorded)
        return beats

    def _follow_words(self, recorded: Recorded) -> None:
        """Remember which message carried which words on, so that causes lead to the words."""
        match recorded.event:
            case MessageRecorded(message=message):
                self._carried[message.id] = recorded.id
            case (
                ExchangeAccepted(message_id=message_id)
                | SpawnAccepted(message_id=message_id)
                | TurnRequested(message_id=message_id)
                | AnnounceRequested(message_id=message_id)
                | ResultHanded(message_id=message_id)
            ):
                if message_id in self._carried:
                    self._causes.show_as(self._carried[message_id], self._last)
            case _:
                pass

    def _told(self, recorded: Recorded) -> Iterator[Told]:
        match recorded.event:
            case (
                ExchangeAccepted() | PrimaryEnded() | TurnReplied() | LoopEnded() | ExchangeClosed() as event
            ):
                yield from self._of_exchange(event)
            case SpawnAccepted() | ChildEnded() | ResultHanded() | SpawnClosed() | ChildArchived() as event:
                yield from self._of_spawn(event)
            case (
                ThreadOpened()
                | AttachmentsReady()
                | AttachmentsRemoved()
                | AttachmentRemovalFailed() as event
            ):
                yield Told("note", _prepared(event), who=self._asked)
            case AnnounceDecided() as event:
                yield from self._of_announce(event)
            case DeliveryDecided() as event:
                self._routes[event.delivery_id] = route_text(event.route)
                if event.text != self._last_said:
                    how = "announces" if event.purpose in {"announce", "spawn_announce"} else "sends"
                    yield Told("said", how, event.session_key, route_text(event.route), event.text)
            case DeliveryDone() | DeliveryFailed() | DeliveryUnknown() | DeliveryDenied() as event:
                yield Told("note", _delivered(event, self._routes.get(event.delivery_id, "its channel")))
            case _:
                yield from self._of_session(recorded)

    def _of_exchange(
        self, event: ExchangeAccepted | PrimaryEnded | TurnReplied | LoopEnded | ExchangeClosed
    ) -> Iterator[Told]:
        match event:
            case ExchangeAccepted():
                self._inferred = event.inferred
                self._asker, self._asked = event.requester or OPERATOR, event.target
                self._max_turns = event.settings.max_turns
                yield Told("said", "asks", self._asker, event.target, event.message)
            case PrimaryEnded():
                yield _reply("replies", self._asked, self._asker, event)
            case TurnReplied():
                yield self._turn(event)
            case LoopEnded():
                yield Told("note", loop_end(event.reason, event.turns, event.limit, event.note))
            case ExchangeClosed(reason="run_failed"):
                yield Told("end", f"The exchange is over: {CLOSES[event.reason]}.")  # why was said before
            case ExchangeClosed():
                yield Told("end", f"The exchange is over: {CLOSES[event.reason]}{_note(event.note)}.")

    def _of_spawn(
        self, event: SpawnAccepted | ChildEnded | ResultHanded | SpawnClosed | ChildArchived
    ) -> Iterator[Told]:
        match event:
            case SpawnAccepted():
                self._is_spawn = True
                self._asker, self._asked = event.requester or OPERATOR, event.child
                yield Told("said", "spawns a sub-agent", self._asker, event.child, event.task)
            case ChildEnded():
                yield _reply("ends its task", self._asked, self._asker, event)
            case ResultHanded():
                self._handed_run = event.run_id
                yield Told("said", "hands over the result", self._asked, event.requester, self._announce)
                self._announce = None
            case SpawnClosed():
                if self._announce is not None:
                    how = "announces, with nowhere to go: it stays in the log"
                    yield Told("said", how, self._asked, None, self._announce)
                yield Told("end", f"The spawn is over: {CLOSES[event.reason]}{_note(event.note)}.")
            case ChildArchived():
                yield Told("note", f"left the list ({event.reason}); its record stays", who=event.child)

    def _of_announce(self, event: AnnounceDecided) -> Iterator[Told]:
        if event.text is None:
            yield Told("note", f"Nothing is announced: {SILENCES[event.why]}.")
        elif event.delivery_id is None:
            # Otherwise the delivery, in the same append, says it, and where it goes.
            if self._is_spawn:
                self._announce = event.text
            else:
                how = "announces" if self._inferred else "announces, with nowhere to go: it stays in the log"
                yield Told("said", how, self._asked, None, event.text)

    def _of_session(self, recorded: Recorded) -> Iterator[Told]:
        key = recorded.stream.removeprefix(_SESSION)
        match recorded.event:
            case MessageRecorded(message=message):
                whole = self._alone or (message.run_id is not None and message.run_id == self._handed_run)
                for told in message_told(message, key):
                    if whole or told.kind == "tool":
                        yield told
            case RunFailed() | RunAborted() if not self._alone:
                return  # what the flow made of it says so
            case RunInterrupted() | RunFailed() | RunAborted() | LateReplyDropped() as event:
                yield attempt_told(event, key)
            case _:
                return

    def _turn(self, event: TurnReplied) -> Told:
        to = self._asked if event.speaker == self._asker else self._asker
        how = f"turn {event.turn} of {self._max_turns}" if self._max_turns else f"turn {event.turn}"
        if is_reply_skip(event.text or ""):
            how += ", has nothing to add"
        return _reply(how, event.speaker, to, event)


def _reply(how: str, who: str | None, to: str | None, ended: PrimaryEnded | TurnReplied | ChildEnded) -> Told:
    """Return how a run of the flow ended: with words for the other side, or without."""
    if ended.status != "ok":
        error = f": {ended.error}" if ended.error else ""
        return Told("note", f"{STATUSES[ended.status]}{error}", who=who, text=ended.text)
    if ended.text is None:
        return Told("note", f"{how}: answers without a text", who=who)
    return Told("said", how, who, to, ended.text)


def _delivered(event: DeliveryDone | DeliveryFailed | DeliveryUnknown | DeliveryDenied, where: str) -> str:
    match event:
        case DeliveryDone():
            return f"Delivered to {where}."
        case DeliveryFailed(retry_at_ms=None):
            return f"Not delivered to {where}, given up: {event.error}"
        case DeliveryFailed():
            return f"Not delivered to {where}, to be tried again: {event.error}"
        case DeliveryUnknown():
            return f"It is not known whether {where} got it; it is not sent again."
        case DeliveryDenied():
            return f"Not delivered to {where}: the send policy forbids it ({event.rule})."


def _note(note: str | None) -> str:
    return f" ({note})" if note else ""


def _prepared(event: ThreadOpened | AttachmentsReady | AttachmentsRemoved | AttachmentRemovalFailed) -> str:
    match event:
        case ThreadOpened():
            return f"has a thread of its own: {route_text(event.route)}"
        case AttachmentsReady():
            return f"has {event.count} files ({event.total_bytes} bytes) in {event.directory}"
        case AttachmentsRemoved():
            return f"has no files any more in {event.directory}"
        case AttachmentRemovalFailed():
            return f"keeps its files in {event.directory}: {event.error}"
