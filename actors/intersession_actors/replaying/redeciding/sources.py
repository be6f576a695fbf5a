"""What decision records refer to: events of a log, found by their ids, and what they say of how a run or a delivery ended."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final

import msgspec
from msgspec.structs import replace

from intersession_actors.delivery import ended_in
from intersession_actors.session import Enqueue, ended_again
from intersession_actors.streams import DeliveryEnded, RunEnded, lists_in, texts_in
from intersession_events import facts
from intersession_events.log import Draft, Lineage, Recorded, StreamAppend, rows_erased
from intersession_events.plain_json import JsonValue

Place = tuple[str, int]
"""A stream and a version."""


class Sources:
    """The events of a log, in their order.

    Of a fork `lineage` says in which log each event was written, `accepted_as` with which settings an exchange goes on there, and
    `frozen` which runs do not go on.
    """

    def __init__(
        self,
        log_id: str,
        events: Iterable[Recorded],
        *,
        lineage: Lineage | None = None,
        accepted_as: Callable[[facts.ExchangeAccepted], facts.ExchangeAccepted] | None = None,
        frozen: Collection[str] = (),
    ) -> None:
        self._lineage = lineage or Lineage(log_id)
        self._accepted_as = accepted_as
        self.frozen: Final = frozen
        self._by_id: dict[str, Recorded] = {}
        self._by_position: dict[int, Recorded] = {}
        self._streams: dict[str, list[Recorded]] = {}
        for event in events:
            self._by_id[event.id] = event
            self._by_position[event.position] = event
            self._streams.setdefault(event.stream, []).append(event)
        self._erased = erased_by(self._by_id.values())
        self._first_erased: dict[str, int] = {}
        """The first event of each stream whose words were erased."""
        for stream, version in self._erased:
            self._first_erased[stream] = min(version, self._first_erased.get(stream, version))

    @cached_property
    def _lists(self) -> Mapping[str, JsonValue]:
        return lists_loaded(self._streams.get("log", ()))

    def listed(self, digest: str) -> JsonValue:
        """Return the list of a setting that has a digest; None where no configuration of the log has one."""
        return self._lists.get(digest)

    @property
    def streams(self) -> Mapping[str, Sequence[Recorded]]:
        """The events of each stream."""
        return self._streams

    def behind(self, append: Sequence[Recorded]) -> Sequence[Recorded]:
        """Return the events of one other stream right behind an append: what it carried is there."""
        found: list[Recorded] = []
        position = append[-1].position
        while (one := self._by_position.get(position + len(found) + 1)) is not None and (
            not found or (not one.decision and (one.stream, one.causation) == (found[0].stream, found[-1].id))
        ):
            found.append(one)
        return found

    def at(self, append: StreamAppend) -> Sequence[Recorded]:
        """Return what was recorded in the places of an append."""
        first = self._streams[append.stream][0].version if append.stream in self._streams else 0
        start = append.expected + 1 - first
        return self._streams.get(append.stream, ())[max(start, 0) : start + len(append.drafts)]

    def texts_with(self, append: Sequence[Recorded]) -> Sequence[Recorded]:
        """Return the text for the outbox that was recorded with an append; empty where none was."""
        return [one for one in self.behind(append)[:1] if is_carried(one)]

    def step_with(self, append: Sequence[Recorded]) -> StreamAppend | None:
        """Return the append of a flow that a session's append carried; None where it is no step of one."""
        carried = self.behind(append)
        if not carried or not carried[0].stream.startswith(_FLOWS) or not _is_step(append, carried[-1].event):
            return None
        drafts = tuple(
            Draft(
                event=one.event,
                id=one.id,
                time=one.time,
                causation=one.causation,
                correlation=one.correlation,
                decision=one.decision,
            )
            for one in carried
        )
        return StreamAppend(stream=carried[0].stream, expected=carried[0].version - 1, drafts=drafts)

    def is_given(self, append: Sequence[Recorded]) -> bool:
        """Whether nobody decided an append of a session here: it was imported, or it is of whoever made a fork."""
        return append[0].stream.startswith("session:")

    def is_erased(self, recorded: Recorded) -> bool:
        """Whether the words of an event were erased after it was recorded."""
        return (recorded.stream, recorded.version) in self._erased

    def has_erased(self, append: Sequence[Recorded]) -> bool:
        """Whether words were erased of what a session had said before it started a run: its agent was given them."""
        first = self._first_erased.get(append[0].stream, append[-1].version)
        return first < append[-1].version and any(isinstance(one.event, facts.RunStarted) for one in append)

    def log_id_of(self, first: Recorded) -> str:
        """Return the id of the log in which an append was decided."""
        return self._lineage.log_id_at(first.position)

    def accepted_as(self, accepted: facts.ExchangeAccepted, first: Recorded) -> facts.ExchangeAccepted:
        """Return what an exchange was accepted with, as it held when an append was decided (FORK-4)."""
        forked = self._lineage.forked
        if self._accepted_as is None or forked is None or first.position <= forked.position:
            return accepted
        return self._accepted_as(accepted)

    def run_ended(self, first: Recorded) -> RunEnded | None:
        """Return what a flow was told of the end of the run that an append was caused by; None if that is not here."""
        end = self._cause(first)
        if end is None or not isinstance(end.event, facts.RunEnd):
            return None
        stream = self._streams[end.stream]
        before = [item for item in stream if item.version <= end.version]
        begun = _begun(before, end.event.run_id)
        told = None if begun is None else ended_again(first.stream, before[begun:])
        return None if told is None else replace(told, thread=_thread_of(before))

    def delivery_ended(self, first: Recorded) -> DeliveryEnded | None:
        """Return what a flow was told of the end of the delivery that an append was caused by; None if that is not here."""
        end = self._cause(first)
        if end is None or not isinstance(end.event, facts.DeliveryEvent):
            return None
        return ended_in(item for item in self._streams[end.stream] if item.version <= end.version)

    def _cause(self, first: Recorded) -> Recorded | None:
        return None if first.causation is None else self._by_id.get(first.causation)


def _thread_of(session: Sequence[Recorded]) -> facts.Route | None:
    """Return the thread that a session is bound to after these events (SPAWN-12)."""
    for item in reversed(session):
        match item.event:
            case facts.ThreadBound() as bound:
                return bound.route
            case facts.ThreadUnbound():
                return None
            case _:
                pass
    return None


def erased_by(events: Iterable[Recorded]) -> frozenset[Place]:
    """Return the places whose words events of a log erased."""
    return frozenset(
        (item.event.stream, version)
        for item in events
        if isinstance(item.event, facts.Erased)
        for version in rows_erased(item.event, stream=item.stream, position=item.position)
    )


def lists_loaded(events: Iterable[Recorded]) -> dict[str, JsonValue]:
    """Return the lists of all configurations among some events, by their digests."""
    found: dict[str, JsonValue] = {}
    for one in events:
        if isinstance(one.event, facts.ConfigLoaded):
            found |= lists_in(msgspec.json.decode(one.event.config))
    return found


def _begun(stream: Sequence[Recorded], run_id: str) -> int | None:
    for number, item in enumerate(stream):
        if isinstance(item.event, facts.RunQueued) and item.event.run_id == run_id:
            return number
    return None


_AT_A_DOOR: Final = frozenset({"command_reply", "send"})
"""What a text is for that comes with no append of another stream."""


def is_carried(recorded: Recorded) -> bool:
    """Whether an event begins the delivery of a text that came with the decision which led to it."""
    event = recorded.event
    return (
        isinstance(event, facts.DeliveryDecided) and event.purpose not in _AT_A_DOOR and recorded.version == 1
    )


_FLOWS: Final = ("exchange:", "spawn:")


def _is_step(append: Sequence[Recorded], event: facts.Event) -> bool:
    """Whether an event of a flow asks for what a session's append has: a message, or the end of the session."""
    match event:
        case (
            facts.ExchangeAccepted()
            | facts.TurnRequested()
            | facts.AnnounceRequested()
            | facts.SpawnAccepted()
            | facts.ResultHanded()
        ):
            return any(
                isinstance(one.event, facts.MessageRecorded) and one.event.message.id == event.message_id
                for one in append
            )
        case facts.AttachmentsReady() | facts.ThreadOpened():
            return any(isinstance(one.event, facts.SessionOpened) for one in append)
        case facts.ChildArchived():
            return any(isinstance(one.event, facts.SessionArchived) for one in append)
        case _:
            return False


_LEFT: Final = frozenset({facts.ERASED, f'"{facts.ERASED}"'})
"""What stands in the place of words, and of a receipt, which is JSON."""


def are_erased(append: Sequence[Recorded], command: object) -> bool:
    """Whether words were erased of what came in, or of what an append holds."""
    match command:
        case RunEnded():
            came_in: tuple[str | None, ...] = (command.text, command.error, command.last_tool_result)
        case DeliveryEnded():
            came_in = (command.note,)
        case Enqueue(queue=facts.RunQueued() as queue):
            told = facts.text_of(command.message), queue.system_context
            came_in = tuple(facts.ERASED for text in told if facts.ERASED in text)
        case _:
            came_in = ()
    return not _LEFT.isdisjoint((*texts_in(append), *came_in))
