"""A session as a story, from its opening to now: what was said in it, and the flows it was part of. Pure."""

from collections.abc import Iterator

from intersession.cli.story.beat import Beat, beat_of
from intersession.cli.story.messages import attempt_words, message_words
from intersession_events import facts
from intersession_events.log import Recorded
from intersession_projections.causes import ShownCauses
from intersession_projections.wording import Words, as_read, route_text, words_of


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
        message = as_read(recorded.event)
        yield from () if message is None else message_words(message, self._key)
        match recorded.event:
            case facts.RunCompleted(reply=None) | facts.RunQueued(retry_of=str()) as event:
                yield words_of(event, self._key)
            case event if isinstance(event, facts.DeliveryEvent):
                yield from self._of_delivery(event)
            case (
                facts.RunInterrupted()
                | facts.RunFailed()
                | facts.RunAborted()
                | facts.LateReplyDropped() as event
            ):
                yield attempt_words(event, self._key)
            case (
                facts.ExchangeAccepted()
                | facts.SpawnAccepted()
                | facts.LoopEnded()
                | facts.ExchangeHeld()
                | facts.ExchangeReleased()
                | facts.ExchangeClosed()
                | facts.SpawnClosed() as event
            ):
                words = words_of(event, self._key)
                yield from self._of_flow(event, words, recorded.stream.replace(":", " ", 1))
            case facts.RouteChanged(route=route) as event:
                if route != self._route:
                    self._route = route
                    yield words_of(event, self._key)._replace(to=None)
            case (
                facts.SessionOpened()
                | facts.SessionPatched()
                | facts.SessionReset()
                | facts.SessionArchived()
                | facts.SessionImported() as event
            ):
                yield words_of(event, self._key)._replace(who=None, to=None)
            case _:
                return

    def _of_delivery(self, event: facts.DeliveryEvent) -> Iterator[Words]:
        """Yield what became of a text on its way outside; the text of a run was told as its answer."""
        match event:
            case facts.DeliveryDecided():
                self._routes[event.delivery_id] = route_text(event.route)
                if event.purpose in {"failure_notice", "command_reply", "send"}:
                    yield words_of(event, self._key)
            case facts.DeliveryStarted():
                return
            case (
                facts.DeliveryPartDone()
                | facts.DeliveryDone()
                | facts.DeliveryFailed()
                | facts.DeliveryUnknown()
                | facts.DeliveryDenied()
                | facts.DeliveryWithheld()
                | facts.DeliveryRetried()
            ):
                yield words_of(event, None, place=self._routes.get(event.delivery_id))

    def _of_flow(
        self,
        event: facts.ExchangeAccepted
        | facts.SpawnAccepted
        | facts.LoopEnded
        | facts.ExchangeHeld
        | facts.ExchangeReleased
        | facts.ExchangeClosed
        | facts.SpawnClosed,
        words: Words,
        name: str,
    ) -> Iterator[Words]:
        """Yield that a flow begins or ends; its texts are told by the messages of the session."""
        match event:
            case facts.ExchangeAccepted() | facts.SpawnAccepted():
                is_child = isinstance(event, facts.SpawnAccepted) and event.requester != self._key
                how = "spawns it" if is_child else words.how
                yield words._replace(kind="note", how=f"{how}, {name}", text=None)
            case facts.ExchangeHeld() | facts.ExchangeReleased():
                yield words
            case facts.LoopEnded():
                if event.turns:
                    yield words
            case facts.ExchangeClosed() | facts.SpawnClosed():
                yield words._replace(how=f"The {name} is over: {words.how}.")


def _says_nothing(event: facts.Event) -> bool:
    """Whether an event is of those that a story leaves out and a session has most of: known at a look."""
    match event:
        case facts.RunStarted() | facts.DeliveryStarted():
            return True
        case facts.RunQueued(retry_of=None, message=None) | facts.RunCompleted(reply=str(), message=None):
            return True
        case _:
            return False
