"""Flows and sessions as stories: recorded events in, beats out, each with what led to it. Pure."""

from collections.abc import Iterator

import msgspec

from intersession_actors.rules.prompt.silence import is_reply_skip
from intersession_events import facts
from intersession_events.basics.ids import SESSIONS
from intersession_events.facts import Frame, Kind, Message, Words, message_in, words_of, words_of_message
from intersession_events.log.recorded import Recorded
from intersession_projections.basics.speakers import OPENCLAW, as_read, is_openclaws, recorded_speaker
from intersession_projections.questions.causes.visible_causes import VisibleCauses
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
    """Yield what became of an attempt that did not answer, that a run is tried again, and what a summary says."""
    match event:
        case _ if event.mark == "failed" and facts.run_named(event) is not None:
            yield words_of(event, Frame(key=key))._replace(who=key, to=None)
        case facts.RunQueued(retry_of=str()) | facts.RunCompleted(covers=facts.Covers()):
            yield words_of(event, Frame(key=key))
        case _:
            return


_OPERATOR = "the operator"
_NOWHERE = "announces, with nowhere to go: it stays in the log"
_SPAWN = "spawn:"


class FlowStory:
    """Tells one flow. Feed it the flow's events in log order: `tell` returns what there is to say of each.

    A text is told where the flow's own stream has it. The messages that carried it into the sessions are left out, except
    those of a run that belongs to no flow (`alone`).
    """

    def __init__(self, *, alone: bool = False) -> None:
        self._causes = VisibleCauses()
        self._replies = Replies()
        self._untold: list[Recorded] = []
        self._frame = Frame()
        self._alone = alone
        self._inferred = False
        self._announce: str | None = None
        self._handed_run: str | None = None
        self._frames: dict[str, Frame] = {}
        """What is known around the events of deliveries, by their streams."""
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
        recorded = self._replies.with_texts(recorded)
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
        words = words_of(recorded.event, self._frames.get(recorded.stream, self._frame))
        match recorded.event:
            case facts.FlowAccepted() as event:
                asker = event.asker if self._is_spawn(recorded) else event.requester or _OPERATOR
                asker = _OPERATOR if asker == "operator" else asker
                self._inferred = event.inferred
                self._frame = event.frame()._replace(sides=(asker, event.asked))
                yield words._replace(who=asker)
            case facts.FlowAnswered() as event:
                if words.kind != "said":
                    words = words._replace(to=None)
                elif isinstance(event, facts.TurnEnded) and event.turn and is_reply_skip(event.text or ""):
                    words = words._replace(how=f"{words.how}, has nothing to add")
                yield words
            case facts.ChildArchived():
                yield words._replace(who=words.to, to=None)
            case facts.AnnounceDecided() | facts.ResultHanded() as event:
                yield from self._announced(event, words, is_spawn=self._is_spawn(recorded))
            case facts.FlowClosed() as event:
                if self._announce is not None:
                    yield Words(self._frame.acting, None, "", _NOWHERE, self._announce, "said")
                was_told = not event.note or (not self._is_spawn(recorded) and event.reason == "run_failed")
                yield words if was_told else words._replace(how=f"{words.how[:-1]} ({event.note}).")
            case facts.DeliveryDecided() as event:
                self._frames[recorded.stream] = event.frame()
                if event.text != self._last_said:
                    yield words
            case event if recorded.stream.startswith(SESSIONS):
                yield from self._of_session(event, recorded.stream.removeprefix(SESSIONS))
            case _ if words.how:
                yield words
            case _:
                return

    @staticmethod
    def _is_spawn(recorded: Recorded) -> bool:
        return recorded.stream.startswith(_SPAWN)

    def _announced(
        self, event: facts.AnnounceDecided | facts.ResultHanded, words: Words, *, is_spawn: bool
    ) -> Iterator[Words]:
        match event:
            case facts.AnnounceDecided(silent=True):
                yield words
            case facts.AnnounceDecided(delivery_id=None) if is_spawn:
                # It is told when it is handed over, or when the spawn closes because nobody is there to get it.
                self._announce = event.text
            case facts.AnnounceDecided(delivery_id=None):
                yield words if self._inferred else words._replace(how=_NOWHERE)
            case facts.AnnounceDecided():
                # The delivery, in the same append, tells the text, and where it goes; people don't get the stats.
                if event.stats is not None:
                    yield Words(words.who, None, event.stats, f"Stats: {event.stats}")
            case facts.ResultHanded():
                self._handed_run = event.run_id
                yield words._replace(text=self._announce)
                self._announce = None

    def _of_session(self, event: facts.Event, key: str) -> Iterator[Words]:
        message = facts.message_in(event)
        if message is not None:
            whole = self._alone or (message.run_id is not None and message.run_id == self._handed_run)
            yield from (words for words in message_words(message, key) if whole or words.kind == "tool")
        if self._alone or event.ends is None:  # else the flow says what it made of it
            yield from run_words(event, key)


class SessionStory:
    """Tells one session. Feed it the events of its stream, and those of the flows it is part of, in log order."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._causes = VisibleCauses()
        self._route: facts.Route | None = None
        self._frames: dict[str, Frame] = {}
        """What is known around the events of deliveries, by their streams."""

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

    def _told(self, recorded: Recorded) -> Iterator[Words]:  # noqa: C901 - one case an event
        """Yield what an event says. The texts of flows are told by messages, and the text of a run as its answer."""
        key, message = self._key, as_read(recorded.event)
        yield from () if message is None else message_words(message, key)
        yield from run_words(recorded.event, key)
        kind, _, name = recorded.stream.partition(":")
        words = words_of(recorded.event, self._frames.get(recorded.stream, Frame(key=key)))
        match recorded.event:
            case facts.RunCompleted(reply=None) | facts.ExchangeHeld() | facts.ExchangeReleased():
                yield words
            case facts.LoopEnded(turns=turns) if turns:
                yield words
            case facts.FlowAccepted() as event:
                how = "spawns it" if kind == "spawn" and event.requester != key else words.how
                yield words._replace(kind="note", how=f"{how}, {kind} {name}", text=None)
            case facts.FlowClosed():
                yield words._replace(how=f"The {kind} {name} is over: {words.reason}.")
            case facts.DeliveryDecided() as event:
                self._frames[recorded.stream] = event.frame()
                if event.purpose in {"failure_notice", "command_reply", "send", "approval"}:
                    yield words
            case _ if kind == "delivery" and words.how:
                yield words
            case facts.RouteChanged(route=route) if route != self._route:
                self._route = route
                yield words._replace(to=None)
            case facts.RouteChanged():
                return
            case event if isinstance(event, facts.SessionEvent) and words.how:
                yield words._replace(who=None, to=None)
            case _:
                return


def _says_nothing(event: facts.Event) -> bool:
    """Whether an event is of those that a story leaves out and a session has most of: known at a look."""
    match event:
        case (
            facts.RunQueued(retry_of=None, message=None)
            | facts.RunCompleted(reply=str(), message=None, covers=None)
        ):
            return True
        case _:
            return not event.in_stories
