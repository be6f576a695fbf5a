"""Flows and sessions as stories: recorded events in, beats out, each with what led to it. Pure."""

from collections.abc import Iterator

import msgspec

from intersession_actors.rules.prompt.silence import is_reply_skip
from intersession_events import facts
from intersession_events.facts import (
    LateReplyDropped,
    Message,
    RunAborted,
    RunFailed,
    RunInterrupted,
    message_in,
)
from intersession_events.log.recorded import Recorded
from intersession_projections.basics.wording.events import words_of
from intersession_projections.basics.wording.of_flows import asker_of
from intersession_projections.basics.wording.of_sessions import as_read, recorded_speaker, words_of_message
from intersession_projections.basics.wording.openclaw import OPENCLAW, is_openclaws
from intersession_projections.basics.wording.words import Kind, Words, route_text
from intersession_projections.questions.causes.shown import ShownCauses
from intersession_projections.views.run_outcomes.replies import Replies


class Beat(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is told, and where it stands in the log. `cause` is the position of the beat that led to it, if one did.

    `writer` is whose words they are where `who`, as an imported transcript has it, did not say them.
    """

    position: int
    time: int
    kind: Kind
    how: str
    who: str | None = None
    to: str | None = None
    text: str | None = None
    cause: int | None = None
    writer: str | None = None


def beat_of(words: Words, recorded: Recorded, cause: int | None) -> Beat:
    """Return what is told of an event in its place."""
    message = message_in(recorded.event)
    is_its_own = message is not None and is_openclaws(message)
    return Beat(
        position=recorded.position,
        time=recorded.time,
        kind=words.kind,
        how=words.how,
        who=words.who,
        to=words.to,
        text=words.text,
        cause=cause,
        writer=OPENCLAW if is_its_own else None,
    )


def message_words(message: Message, key: str) -> Iterator[Words]:
    """Yield what a message of a session says: its text, then the tools it calls."""
    for words in words_of_message(message, key):
        match message.role:
            case "assistant":
                yield words
            case "toolResult":
                yield words._replace(who=key, to=None)
            case "user" | "system":
                yield words._replace(who=recorded_speaker(message))


def run_words(event: facts.Event, key: str) -> Iterator[Words]:
    """Yield what became of an attempt that did not answer, and that a run is tried again."""
    match event:
        case RunInterrupted() | RunFailed() | RunAborted() | LateReplyDropped():
            yield words_of(event, key)._replace(who=key, to=None)
        case facts.RunQueued(retry_of=str()):
            yield words_of(event, key)
        case _:
            return


_OPERATOR = "the operator"
_NOWHERE = "announces, with nowhere to go: it stays in the log"
_SESSION = "session:"
_DELIVERY = "delivery:"


class FlowStory:
    """Tells one flow. Feed it the flow's events in log order: `tell` returns what there is to say of each.

    A text is told where the flow's own stream has it. The messages that carried it into the sessions are left out, except
    those of a run that belongs to no flow (`alone`).
    """

    def __init__(self, *, alone: bool = False) -> None:
        self._causes = ShownCauses()
        self._replies = Replies()
        self._untold: list[Recorded] = []
        self._asker = _OPERATOR
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
        """Return the beats of the next event; what begins the flow is told with the run that has its text."""
        self._replies.note(recorded)
        self._untold.append(recorded)
        if self._replies.lacks_text(self._untold[0]):
            return []  # the run stands behind it, in the same append
        untold, self._untold = self._untold, []
        return [beat for one in untold for beat in self._beats_of(one)]

    def _beats_of(self, recorded: Recorded) -> list[Beat]:
        recorded = self._replies.told(recorded)
        cause = self._causes.take(recorded)
        beats = [beat_of(words, part, cause) for part in recorded.parts() for words in self._told(part)]
        for beat in beats:
            self._causes.show(recorded)
            self._last = recorded.position
            self._last_said = beat.text if beat.kind == "said" else self._last_said
        self._follow_words(recorded)
        return beats

    def _follow_words(self, recorded: Recorded) -> None:
        """Remember which message carried a text that was told, so that causes lead to where it was told."""
        event, message = recorded.event, facts.message_in(recorded.event)
        if message is not None:
            self._carried[message.id] = recorded.id
        asked = facts.run_asked_in(event)
        if asked is not None and asked.message_id in self._carried:
            self._causes.show_as(self._carried[asked.message_id], self._last)

    def _told(self, recorded: Recorded) -> Iterator[Words]:  # noqa: C901, PLR0912 - one case an event
        place = self._routes.get(recorded.stream.removeprefix(_DELIVERY))
        words = words_of(recorded.event, None, max_turns=self._max_turns, place=place)
        match recorded.event:
            case facts.ExchangeAccepted() as event:
                self._inferred = event.inferred
                self._asker, self._asked = event.requester or _OPERATOR, event.target
                self._max_turns = event.settings.max_turns
                yield words._replace(who=self._asker)
            case facts.SpawnAccepted() as event:
                self._is_spawn = True
                who = asker_of(event)
                self._asker, self._asked = _OPERATOR if who == "operator" else who, event.child
                yield words._replace(who=self._asker)
            case facts.TurnEnded() | facts.ChildEnded() as event:
                yield self._answer(event, words)
            case (
                facts.ThreadOpened()
                | facts.AttachmentsReady()
                | facts.AttachmentsRemoved()
                | facts.AttachmentRemovalFailed()
            ):
                yield words._replace(who=self._asked)
            case facts.ChildArchived():
                yield words._replace(who=words.to, to=None)
            case facts.AnnounceDecided() | facts.ResultHanded() as event:
                yield from self._announced(event, words)
            case facts.ExchangeClosed() | facts.SpawnClosed() as event:
                if self._announce is not None:
                    yield Words(self._asked, None, "", _NOWHERE, self._announce, "said")
                kind, failed = (
                    ("spawn", False) if self._is_spawn else ("exchange", event.reason == "run_failed")
                )
                note = f" ({event.note})" if event.note and not failed else ""  # a failed run was told before
                yield words._replace(how=f"The {kind} is over: {words.how}{note}.")
            case facts.DeliveryDecided() as event:
                self._routes[event.delivery_id] = route_text(event.route)
                if event.text != self._last_said:
                    yield words
            case event if recorded.stream.startswith(_SESSION):
                yield from self._of_session(event, recorded.stream.removeprefix(_SESSION))
            case _ if words.how:
                yield words
            case _:
                return

    def _answer(self, event: facts.TurnEnded | facts.ChildEnded, words: Words) -> Words:
        who: str | None = self._asked
        to: str | None = self._asker
        if isinstance(event, facts.TurnEnded) and event.turn:
            who = event.speaker
            to = self._asked if who == self._asker else self._asker
            if words.kind == "said" and is_reply_skip(event.text or ""):
                words = words._replace(how=f"{words.how}, has nothing to add")
        return words._replace(who=who, to=to if words.kind == "said" else None)

    def _announced(self, event: facts.AnnounceDecided | facts.ResultHanded, words: Words) -> Iterator[Words]:
        match event:
            case facts.AnnounceDecided(silent=True):
                yield words
            case facts.AnnounceDecided(delivery_id=None) if self._is_spawn:
                # It is told when it is handed over, or when the spawn closes because nobody is there to get it.
                self._announce = event.text
            case facts.AnnounceDecided(delivery_id=None):
                yield words._replace(who=self._asked, how=words.how if self._inferred else _NOWHERE)
            case facts.AnnounceDecided():
                # The delivery, in the same append, tells the text, and where it goes; people don't get the stats.
                if event.stats is not None:
                    yield Words(self._asked, None, event.stats, f"Stats: {event.stats}")
            case facts.ResultHanded():
                self._handed_run = event.run_id
                yield words._replace(who=self._asked, text=self._announce)
                self._announce = None

    def _of_session(self, event: facts.Event, key: str) -> Iterator[Words]:
        message = facts.message_in(event)
        if message is not None:
            whole = self._alone or (message.run_id is not None and message.run_id == self._handed_run)
            yield from (words for words in message_words(message, key) if whole or words.kind == "tool")
        if self._alone or not isinstance(
            event, RunFailed | RunAborted
        ):  # else the flow says what it made of it
            yield from run_words(event, key)


class SessionStory:
    """Tells one session. Feed it the events of its stream, and those of the flows it is part of, in log order."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._causes = ShownCauses()
        self._route: facts.Route | None = None
        self._routes: dict[str, str] = {}
        """Where each delivery goes."""

    def tell(self, recorded: Recorded) -> list[Beat]:
        """Return the beats of the next event."""
        if _says_nothing(recorded.event):
            self._causes.pass_over(recorded)
            return []
        cause = self._causes.take(recorded)
        beats = [beat_of(words, part, cause) for part in recorded.parts() for words in self._told(part)]
        if any(beat.kind in {"said", "tool"} for beat in beats):
            self._causes.show(recorded)  # a note is never named as a cause: causes lead from text to text
        return beats

    def _told(self, recorded: Recorded) -> Iterator[Words]:
        """Yield what an event says. The texts of flows are told by messages, and the text of a run as its answer."""
        key, message = self._key, as_read(recorded.event)
        yield from () if message is None else message_words(message, key)
        yield from run_words(recorded.event, key)
        flow = recorded.stream.replace(":", " ", 1)
        match recorded.event:
            case facts.RunCompleted(reply=None) | facts.ExchangeHeld() | facts.ExchangeReleased() as event:
                yield words_of(event, key)
            case facts.LoopEnded(turns=turns) as event if turns:
                yield words_of(event, key)
            case facts.ExchangeAccepted() | facts.SpawnAccepted() as event:
                words = words_of(event, key)
                is_child = isinstance(event, facts.SpawnAccepted) and event.requester != key
                how = f"{'spawns it' if is_child else words.how}, {flow}"
                yield words._replace(kind="note", how=how, text=None)
            case facts.ExchangeClosed() | facts.SpawnClosed() as event:
                words = words_of(event, key)
                yield words._replace(how=f"The {flow} is over: {words.how}.")
            case facts.DeliveryDecided() as event:
                self._routes[event.delivery_id] = route_text(event.route)
                if event.purpose in {"failure_notice", "command_reply", "send"}:
                    yield words_of(event, key)
            case event if isinstance(event, facts.DeliveryEvent) and not isinstance(
                event, facts.DeliveryStarted
            ):
                yield words_of(event, None, place=self._routes.get(event.delivery_id))
            case facts.RouteChanged(route=route) as event if route != self._route:
                self._route = route
                yield words_of(event, key)._replace(to=None)
            case (
                facts.SessionOpened()
                | facts.SessionPatched()
                | facts.SessionReset()
                | facts.SessionArchived()
                | facts.SessionImported() as event
            ):
                yield words_of(event, key)._replace(who=None, to=None)
            case _:
                return


def _says_nothing(event: facts.Event) -> bool:
    """Whether an event is of those that a story leaves out and a session has most of: known at a look."""
    match event:
        case facts.RunStarted() | facts.DeliveryStarted():
            return True
        case facts.RunQueued(retry_of=None, message=None) | facts.RunCompleted(reply=str(), message=None):
            return True
        case _:
            return False
