"""An exchange, a spawn or a run as a conversation: recorded events in, beats out. Pure; used by `replay` and `demo`."""

from collections.abc import Iterator

from intersession.cli.story.beat import Beat, beat_of
from intersession.cli.story.messages import attempt_words, message_words
from intersession_actors.prompt import is_reply_skip
from intersession_events import facts
from intersession_events.log import Recorded
from intersession_projections.causes import ShownCauses
from intersession_projections.run_outcomes import Replies
from intersession_projections.wording import Words, asker_of, route_text, words_of

_OPERATOR = "the operator"
_NOWHERE = "announces, with nowhere to go: it stays in the log"
_SESSION = "session:"


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

    def _told(self, recorded: Recorded) -> Iterator[Words]:  # noqa: C901 - one case an event
        words = words_of(recorded.event, None, max_turns=self._max_turns)
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
                facts.LoopEnded()
                | facts.HoldRequested()
                | facts.HoldWithdrawn()
                | facts.ExchangeHeld()
                | facts.ExchangeReleased()
            ):
                yield words
            case (
                facts.ThreadOpened()
                | facts.AttachmentsReady()
                | facts.AttachmentsRemoved()
                | facts.AttachmentRemovalFailed()
            ):
                yield words._replace(who=self._asked)
            case facts.ChildArchived():
                yield words._replace(who=words.to, to=None)
            case (
                facts.AnnounceDecided()
                | facts.ResultHanded()
                | facts.ExchangeClosed()
                | facts.SpawnClosed() as event
            ):
                yield from self._end(event, words)
            case facts.DeliveryDecided() as event:
                self._routes[event.delivery_id] = route_text(event.route)
                if event.text != self._last_said:
                    yield words
            case (
                facts.DeliveryPartDone()
                | facts.DeliveryDone()
                | facts.DeliveryFailed()
                | facts.DeliveryUnknown()
                | facts.DeliveryDenied()
                | facts.DeliveryWithheld()
                | facts.DeliveryRetried() as event
            ):
                yield words_of(event, None, place=self._routes.get(event.delivery_id))
            case _:
                yield from self._of_session(recorded)

    def _answer(self, event: facts.TurnEnded | facts.ChildEnded, words: Words) -> Words:
        who: str | None = self._asked
        to: str | None = self._asker
        if isinstance(event, facts.TurnEnded) and event.turn:
            who = event.speaker
            to = self._asked if who == self._asker else self._asker
            if words.kind == "said" and is_reply_skip(event.text or ""):
                words = words._replace(how=f"{words.how}, has nothing to add")
        return words._replace(who=who, to=to if words.kind == "said" else None)

    def _end(  # noqa: C901 - one case an event
        self,
        event: facts.AnnounceDecided | facts.ResultHanded | facts.ExchangeClosed | facts.SpawnClosed,
        words: Words,
    ) -> Iterator[Words]:
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
            case facts.ExchangeClosed(reason="run_failed"):
                yield words._replace(
                    how=f"The exchange is over: {words.how}."
                )  # the failed run was told before
            case facts.ExchangeClosed():
                yield words._replace(how=f"The exchange is over: {words.how}{_note(event.note)}.")
            case facts.SpawnClosed():
                if self._announce is not None:
                    yield Words(self._asked, None, "", _NOWHERE, self._announce, "said")
                yield words._replace(how=f"The spawn is over: {words.how}{_note(event.note)}.")

    def _of_session(self, recorded: Recorded) -> Iterator[Words]:
        key, message = recorded.stream.removeprefix(_SESSION), facts.message_in(recorded.event)
        if message is not None:
            whole = self._alone or (message.run_id is not None and message.run_id == self._handed_run)
            for words in message_words(message, key):
                if whole or words.kind == "tool":
                    yield words
        match recorded.event:
            case facts.RunFailed() | facts.RunAborted() if not self._alone:
                return  # what the flow made of it says so
            case (
                facts.RunInterrupted()
                | facts.RunFailed()
                | facts.RunAborted()
                | facts.LateReplyDropped() as event
            ):
                yield attempt_words(event, key)
            case facts.RunQueued(retry_of=str()) as event:
                yield words_of(event, key)
            case _:
                return


def _note(note: str | None) -> str:
    return f" ({note})" if note else ""
