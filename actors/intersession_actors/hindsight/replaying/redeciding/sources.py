"""The inputs that decision records refer to: events found by their ids, and the ends of runs and deliveries in them."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Final

import msgspec

from intersession_actors.calls.tools.registry import tools_offered
from intersession_actors.hindsight.replaying.settings import RecordedSettings
from intersession_actors.hindsight.replaying.snapshot_start import Begins
from intersession_actors.owners.delivery.rules import ended_in
from intersession_actors.owners.session.answers import ended_again
from intersession_actors.owners.session.commands import Enqueue
from intersession_actors.owners.streams.commands import DeliveryEnded, RunEnded
from intersession_actors.owners.streams.judgements import lists_in
from intersession_actors.owners.streams.records import record_in, texts_in
from intersession_actors.owners.streams.rules_in_force import RulesInForce
from intersession_actors.rules.config.config import Config
from intersession_events import facts
from intersession_events.basics.ids import session_stream
from intersession_events.basics.plain_json import JsonValue
from intersession_events.log.erasing import rows_erased
from intersession_events.log.lineage import Lineage
from intersession_events.log.recorded import Draft, Recorded, StreamAppend
from intersession_events.proofs.apart import parted, whole

Place = tuple[str, int]
"""A stream and a version."""


class Sources:
    """The events of a log, in their order. Those up to `begins` are not decided again.

    Of a fork `lineage` says in which log each event was written, and `accepted_as` with which settings an exchange goes on there.
    `frozen` are the runs that do not go on. Of a session that is in `begun` not all is given. `erased` are the places of those whose
    words were erased (None: events say it). `settings` are those that were in force, where they were recorded.
    """

    def __init__(
        self,
        log_id: str,
        events: Iterable[Recorded],
        *,
        begins: int = 0,
        lineage: Lineage | None = None,
        accepted_as: Callable[[facts.ExchangeAccepted, int], facts.ExchangeAccepted] | None = None,
        frozen: Collection[str] = (),
        begun: Begins = MappingProxyType({}),
        erased: frozenset[Place] | None = None,
        settings: RecordedSettings | None = None,
    ) -> None:
        self.begins: Final = begins
        self.frozen: Final = frozen
        self.begun: Final = begun
        self.settings: Final = settings
        self._lineage = lineage or Lineage(log_id)
        forked = self._lineage.forked
        self._forked_at = begins if forked is None else forked.position
        self._accepted_as = accepted_as
        self._by_id: dict[str, Recorded] = {}
        self._by_position: dict[int, Recorded] = {}
        self._streams: dict[str, list[Recorded]] = {}
        self._queued: dict[str, Recorded] = {}
        self._ended: dict[str, facts.RunEnd] = {}
        self._last = 0
        for event in events:
            self._by_id[event.id] = event
            self._by_position[event.position] = event
            self._streams.setdefault(event.stream, []).append(event)
            self._last = max(self._last, event.position)
            if isinstance(event.event, facts.RunQueued):
                self._queued.setdefault(event.event.run_id, event)
            elif isinstance(event.event, facts.RunEnd):
                self._ended[event.event.run_id] = event.event
        self._erased = erased_by(self._by_id.values()) if erased is None else erased
        self._first_erased: dict[str, int] = {}
        """The first event of each stream whose words were erased."""
        for stream, version in self._erased:
            self._first_erased[stream] = min(version, self._first_erased.get(stream, version))

    @cached_property
    def _lists(self) -> Mapping[str, JsonValue]:
        loaded = (one.event for one in self._streams.get("log", ()))
        found: dict[str, JsonValue] = {}
        for event in loaded:
            if isinstance(event, facts.ConfigLoaded):
                found |= lists_in(msgspec.json.decode(event.config))
        return found

    def listed(self, digest: str) -> JsonValue:
        """Return the list of a setting with this digest; None if no configuration of the log has it."""
        return self._lists.get(digest)

    @property
    def streams(self) -> Mapping[str, Sequence[Recorded]]:
        """The events of each stream."""
        return self._streams

    def beside(self, append: Sequence[Recorded]) -> Iterator[Sequence[Recorded]]:
        """Yield the appends of other streams right before and after an append: those that it carried are there."""
        position = append[0].position
        before: list[Recorded] = []
        while (one := self._by_position.get(position - len(before) - 1)) is not None and (
            not before
            or (not before[0].decision and (one.stream, one.id) == (before[0].stream, before[0].causation))
        ):
            before.insert(0, one)
        yield before
        position = append[-1].position
        behind: list[Recorded] = []
        while (one := self._by_position.get(position + len(behind) + 1)) is not None and (
            not behind
            or (not one.decision and (one.stream, one.causation) == (behind[0].stream, behind[-1].id))
        ):
            behind.append(one)
        yield behind

    def at(self, append: StreamAppend) -> Sequence[Recorded]:
        """Return the recorded events in the places of an append."""
        first = self._streams[append.stream][0].version if append.stream in self._streams else 0
        start = append.expected + 1 - first
        return self._streams.get(append.stream, ())[max(start, 0) : start + len(append.drafts)]

    def has_gap(self, append: Sequence[Recorded]) -> bool:
        """Whether the neighbours of an append are missing: what it carried belongs to another run."""
        first, last = append[0].position - 1, append[-1].position + 1
        return (first > 0 and first not in self._by_position) or (
            last <= self._last and last not in self._by_position
        )

    def tools_at(
        self, position: int, opened: facts.SessionOpened | None, begun: facts.RunStarted, sender: str | None
    ) -> tuple[str, ...] | None:
        """Return a session's tools under the settings in force: the recorded ones, unless something contradicts them."""
        configs = [] if self.settings is None or opened is None else self.settings.around(position)
        offered = [
            rules_of(config).tools_of(opened, sender, begun.model) for config in configs if opened is not None
        ]
        return begun.tools if begun.tools in offered else next(iter(offered), begun.tools)

    def queued(self, run_id: str | None) -> Recorded | None:
        """Return the event that queued a run."""
        return None if run_id is None else self._queued.get(run_id)

    def texts_with(self, append: Sequence[Recorded]) -> Sequence[Recorded]:
        """Return the outbox text that was recorded with an append; empty if there is none."""
        return [one for part in self.beside(append) for one in part if is_carried(one, append)]

    def step_with(self, append: Sequence[Recorded]) -> StreamAppend | None:
        """Return the flow's append that a session's append carried; None if it is not a flow's step."""
        queued = (one.event for one in append if isinstance(one.event, facts.RunQueued))
        flow = next((run.flow for run in queued), None)
        for part in self.beside(append):
            is_of_flow = bool(part) and part[0].stream.startswith(_FLOWS)
            if is_of_flow and (part[0].stream == flow or any(_is_step(append, one.event) for one in part)):
                return _as_append(part)
        return None

    def is_erased(self, recorded: Recorded) -> bool:
        """Whether an event's texts were erased after it was recorded."""
        return (recorded.stream, recorded.version) in self._erased

    def without_words(self, recorded: Recorded, event: facts.Event) -> facts.Event:
        """Return an event that is decided again as an erased one is left: without its words, or without its thinking alone."""
        left = facts.unsaid(event)
        if facts.unsaid(recorded.event) == recorded.event:
            return left
        payload = facts.encode(event)
        return facts.decode(recorded.topic, whole(parted(payload, b"")[0], None))

    def has_erased(self, append: Sequence[Recorded]) -> bool:
        """Whether texts of a session before a run's start were erased: they were in its agent's input."""
        first = self._first_erased.get(append[0].stream, append[-1].version)
        return first < append[-1].version and any(isinstance(one.event, facts.RunStarted) for one in append)

    def log_id_of(self, first: Recorded) -> str:
        """Return the id of the log in which an append was decided."""
        return self._lineage.log_id_at(first.position)

    def accepted_as(self, accepted: facts.ExchangeAccepted, first: Recorded) -> facts.ExchangeAccepted:
        """Return the terms on which an exchange was accepted, as they applied when an append was decided (FORK-4)."""
        if self._accepted_as is None or first.position <= self._forked_at:
            return accepted
        return self._accepted_as(accepted, first.position)

    def reply(self, run_id: str) -> str:
        """Return a run's reply; `[erased]` if its end is missing."""
        end = self._ended.get(run_id)
        return facts.ERASED if end is None else end.spoken or ""

    def asked(self, run_id: str) -> str:
        """Return a run's input; `[erased]` if it is missing."""
        queued = self._queued.get(run_id)
        message = None if queued is None else facts.message_in(queued.event)
        return facts.ERASED if message is None else facts.text_of(message)

    def run_ended(self, first: Recorded) -> RunEnded | None:
        """Return the message to a flow about the end of the run that caused an append; None if that is missing."""
        end = self._cause(first)
        if end is None or not isinstance(end.event, facts.RunEnd):
            return None
        stream = self._streams[end.stream]
        before = [item for item in stream if item.version <= end.version]
        begun = _begun(before, end.event.run_id)
        return None if begun is None else ended_again(first.stream, before[begun:])

    def delivery_ended(self, first: Recorded) -> DeliveryEnded | None:
        """Return the message to a flow about the end of the delivery that caused an append; None if that is missing."""
        end = self._cause(first)
        if end is None or not isinstance(end.event, facts.DeliveryEvent):
            return None
        return ended_in(item for item in self._streams[end.stream] if item.version <= end.version)

    def _cause(self, first: Recorded) -> Recorded | None:
        return None if first.causation is None else self._by_id.get(first.causation)


def rules_of(config: Config) -> RulesInForce:
    """Return the rules in some settings."""
    return RulesInForce(lambda: config, offered=tools_offered, has_channel=lambda _: False)


def erased_by(events: Iterable[Recorded]) -> frozenset[Place]:
    """Return the places whose texts a log's events erased."""
    return frozenset(
        (item.event.stream, version)
        for item in events
        if isinstance(item.event, facts.Erased)
        for version in rows_erased(item.event, stream=item.stream, position=item.position)
    )


def _begun(stream: Sequence[Recorded], run_id: str) -> int | None:
    for number, item in enumerate(stream):
        if isinstance(item.event, facts.RunQueued) and item.event.run_id == run_id:
            return number
    return None


_AT_A_DOOR: Final = frozenset({"command_reply", "send", "approval"})
"""What a text is for that comes with no append of another stream."""


def is_begun_with_another(recorded: Recorded) -> bool:
    """Whether an event begins the delivery of a text that came with the decision before it."""
    event = recorded.event
    return isinstance(event, facts.DeliveryDecided) and event.purpose not in _AT_A_DOOR


def is_carried(recorded: Recorded, append: Sequence[Recorded]) -> bool:
    """Whether an event begins the delivery of a text that an append of its flow, or of its run, decided."""
    event = recorded.event
    if not isinstance(event, facts.DeliveryDecided) or not is_begun_with_another(recorded):
        return False
    if recorded.causation not in {append[0].causation, append[-1].id}:
        return False
    last = append[-1].event
    of_run = isinstance(last, facts.RunEnd) and event.run_id == last.run_id
    return of_run if event.owner is None else event.owner == append[0].stream


def _as_append(part: Sequence[Recorded]) -> StreamAppend:
    drafts = tuple(
        Draft(
            event=one.event,
            id=one.id,
            time=one.time,
            causation=one.causation,
            correlation=one.correlation,
            decision=one.decision,
        )
        for one in part
    )
    return StreamAppend(stream=part[0].stream, expected=part[0].version - 1, drafts=drafts)


_FLOWS: Final = ("exchange:", "spawn:")


def _is_step(append: Sequence[Recorded], event: facts.Event) -> bool:
    """Whether an event of a flow asks for what a session's append has: a message, or the end of the session."""
    asked = facts.run_asked_in(event)
    if asked is not None:
        return any(
            (message := facts.message_in(one.event)) is not None and message.id == asked.message_id
            for one in append
        )
    match event:
        case facts.ChildArchived(child=child):
            # Somebody else may have archived the child right before its spawn would have: only that leaves alone what is at work.
            is_asked = bool(append[0].decision) and "onlyIdle" in record_in(append[0].decision).inputs
            return is_asked and append[0].stream == session_stream(child)
        case _:
            return False


_LEFT: Final = frozenset({facts.ERASED, f'"{facts.ERASED}"'})
"""What stands in the place of words, and of a receipt, which is JSON."""


def are_erased(append: Sequence[Recorded], command: object) -> bool:
    """Whether texts of the input or of the append were erased."""
    match command:
        case RunEnded():
            came_in: tuple[str | None, ...] = (command.text, command.error, command.last_tool_result)
        case DeliveryEnded():
            came_in = (command.note,)
        case Enqueue(queue=facts.RunQueued() as queue):
            instructed = () if queue.instructions is None else queue.instructions.texts
            told = facts.text_of(command.message), queue.system_context, *instructed
            came_in = tuple(facts.ERASED for text in told if facts.ERASED in text)
        case _:
            came_in = ()
    return not _LEFT.isdisjoint((*texts_in(one.event for one in append), *came_in))
