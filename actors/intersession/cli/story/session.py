"""A session, told from its opening to now: what was said in it, and the flows it was part of. Pure."""

from collections.abc import Iterator

from intersession.cli.story.beat import Beat, Told, beat_of
from intersession.cli.story.causes import Causes
from intersession.cli.story.messages import attempt_told, message_told
from intersession.cli.story.reasons import ARCHIVALS, CLOSES, OPENINGS, loop_end
from intersession_events.facts import (
    ExchangeAccepted,
    ExchangeClosed,
    LateReplyDropped,
    LoopEnded,
    MessageRecorded,
    Route,
    RouteChanged,
    RunAborted,
    RunCompleted,
    RunFailed,
    RunInterrupted,
    SessionArchived,
    SessionImported,
    SessionOpened,
    SessionPatched,
    SessionReset,
    SpawnAccepted,
    SpawnClosed,
)
from intersession_events.log import Recorded
from intersession_events.transcripts.openclaw import strip_stamp
from intersession_projections.timeline import route_text


class SessionStory:
    """Tells one session. Feed it the events of its stream, and those of the flows it is part of, in log order."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._causes = Causes()
        self._route: Route | None = None
        self._with: dict[str, str] = {}

    def tell(self, recorded: Recorded) -> list[Beat]:
        """Return the beats of the next event."""
        cause = self._causes.take(recorded)
        beats = [beat_of(told, recorded, cause) for told in self._told(recorded)]
        if any(beat.kind in {"said", "tool"} for beat in beats):
            self._causes.show(recorded)  # what happens beside it leads to nothing that anybody says
        return beats

    def _told(self, recorded: Recorded) -> Iterator[Told]:
        match recorded.event:
            case MessageRecorded(message=message, source=source):
                for told in message_told(message, self._key):
                    # The stamp that another system put before people's words is no word of theirs (IMP-3).
                    unstamped = strip_stamp(told.text or "") if source is not None else told.text
                    yield told._replace(text=unstamped)
            case RunCompleted(reply=None):
                yield Told("note", "answers without a text", who=self._key)
            case RunInterrupted() | RunFailed() | RunAborted() | LateReplyDropped() as event:
                yield attempt_told(event, self._key)
            case (
                ExchangeAccepted() | SpawnAccepted() | LoopEnded() | ExchangeClosed() | SpawnClosed() as event
            ):
                yield from self._of_flow(recorded.stream, event)
            case (
                SessionOpened()
                | SessionPatched()
                | SessionReset()
                | SessionArchived()
                | SessionImported()
                | RouteChanged() as event
            ):
                yield from self._of_session(event)
            case _:
                return

    def _of_flow(
        self,
        stream: str,
        event: ExchangeAccepted | SpawnAccepted | LoopEnded | ExchangeClosed | SpawnClosed,
    ) -> Iterator[Told]:
        kind, _, flow_id = stream.partition(":")
        name = f"{kind} {flow_id}"
        match event:
            case ExchangeAccepted() if event.requester == self._key:
                yield Told("note", f"asks, {name}", who=self._key, to=event.target)
            case ExchangeAccepted():
                yield Told("note", f"asks, {name}", who=event.requester or event.caller, to=self._key)
            case SpawnAccepted() if event.requester == self._key:
                yield Told("note", f"spawns a sub-agent, {name}", who=self._key, to=event.child)
            case SpawnAccepted():
                yield Told("note", f"spawns it, {name}", who=event.requester or event.caller, to=self._key)
            case LoopEnded():
                if event.turns:
                    yield Told("note", loop_end(event.reason, event.turns, event.limit, event.note))
            case ExchangeClosed() | SpawnClosed():
                yield Told("end", f"The {name} is over: {CLOSES[event.reason]}.")

    def _of_session(
        self,
        event: SessionOpened
        | SessionPatched
        | SessionReset
        | SessionArchived
        | SessionImported
        | RouteChanged,
    ) -> Iterator[Told]:
        match event:
            case SessionOpened():
                yield Told("note", f"The session opens: {OPENINGS[event.opened_by]}.")
            case SessionPatched():
                changes = [f"{name}: {value}" for name, value in event.values.items()]
                changes += [f"{name} cleared" for name in event.cleared]
                by = f" by {event.by}" if event.by else ""
                yield Told("note", f"Settings changed{by}: {', '.join(changes)}.")
            case SessionReset():
                yield Told(
                    "note", f"The session is reset; what was said before is {event.previous_session_id}."
                )
            case SessionArchived():
                yield Told("note", f"The session leaves the list: {ARCHIVALS[event.reason]}.")
            case SessionImported():
                yield Told("note", f"Imported from {event.source}.")
            case RouteChanged():
                if event.route != self._route:
                    self._route = event.route
                    yield Told("note", f"From now on its words go to {route_text(event.route)}.")
