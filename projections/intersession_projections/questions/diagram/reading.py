"""Reads lanes and rows out of the events of a run: who says what to whom, and what happens besides. Pure."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from intersession_events import facts
from intersession_events.facts import Frame
from intersession_events.facts.message_words import BY_METHOD, is_by_method, words_of_message
from intersession_events.facts.parts import words_of
from intersession_events.log.recorded import Recorded, parts_in
from intersession_projections.basics.speakers import is_openclaws
from intersession_projections.questions.diagram.rows import Arrow, Gap, Lane, LaneKind, Mark, MarkKind, Row
from intersession_projections.views.flows.held import Hold, holds_in

FOLDED_MS: Final = 2_000
"""The number of milliseconds from which an idle stretch is folded and its length written."""

_FRAMED: Final = re.compile(
    r"\[\w{3} \d{4}-\d\d-\d\d \d\d:\d\d [^\]\n]{1,40}\] (?:\[Subagent Context\] .{0,2000}?\[Subagent Task\]: )?",
    re.DOTALL,
)
"""What OpenClaw writes before the words of a message: when it came, and to a sub-agent what it is."""


def read(
    events: Iterable[Recorded],
    names: Callable[[str], str],
    *,
    folded_ms: int = FOLDED_MS,
    forked: Collection[int] = (),
) -> tuple[Sequence[Lane], Sequence[Row]]:
    """Return the lanes, in order of appearance, and the rows of events that are in log order.

    `names` says how a session's key is shown, `forked` when the log was forked, in ms.
    """
    found = list(events)
    reading = _Reading(
        names,
        {
            one.event.message_id: one.event.caller
            for one in found
            if isinstance(one.event, facts.RunQueued) and one.event.caller is not None
        },
    )
    for recorded in parts_in(found):
        reading.take(recorded)
    return reading.lanes, _with_gaps(reading.without_repeats(), folded_ms, forked, holds_in(found))


class _Spoken(NamedTuple):
    """An answer as an exchange or a spawn took it down, and how many rows there were then."""

    text: str
    position: int
    time: int
    rows: int


class _Reading:
    def __init__(self, names: Callable[[str], str], callers: Mapping[str, str]) -> None:
        self._names = names
        self._callers = callers
        """Who had a message queued, by its id: of what was said by a method, the message itself does not say it."""
        self._lanes: dict[str, Lane] = {}
        self._numbers: dict[str, int] = {}
        self._rows: list[Arrow | Mark] = []
        self._said: dict[int, tuple[int, str]] = {}
        """Which marks tell what an agent said, by their place among the rows: its lane, and the text."""
        self._places: dict[str, int] = {}
        """Where a delivery goes, by its stream: a lane."""
        self._spawners: dict[str, str] = {}
        """Who gave a sub-agent its task, by the child's key: an import's messages don't say it."""
        self._answered: tuple[str, str] | None = None
        """The last answer of an exchange, and which one it is: the message that carries it on need not say it."""
        self._spoken: _Spoken | None = None
        """The same, or an announce: until something else is drawn, an arrow that carries it on stands where it was said."""
        self._imported: str | None = None
        """The agents that answer in an imported exchange or spawn: not all that was said there is a message of a session."""
        self._tokens: dict[tuple[str, str], int] = {}
        """What words took, by who said them."""
        self._failed: set[str] = set()
        """Runs whose failure a session told."""

    @property
    def lanes(self) -> Sequence[Lane]:
        return tuple(self._lanes.values())

    def without_repeats(self) -> Sequence[Arrow | Mark]:
        """Return the rows; what an agent said is left out where an arrow carries the same words on."""
        carried = {(row.source, row.text) for row in self._rows if isinstance(row, Arrow)}
        return [row for place, row in enumerate(self._rows) if self._said.get(place) not in carried]

    def take(self, recorded: Recorded) -> None:  # noqa: C901, PLR0912 - one case an event that is drawn
        """Add what an event shows; most show nothing of their own."""
        kind, _, name = recorded.stream.partition(":")
        key = name if kind == "session" else None
        message = facts.message_in(recorded.event)
        if message is not None and key is not None:
            self._message(recorded, message, key)
        match recorded.event:
            case facts.RunQueued(step="compaction") | facts.RunCompleted(covers=facts.Covers()) if key:
                self._mark(recorded, self._session(key), "note", key)
            case facts.RunCompleted(reply=str(reply), usage=facts.Usage() as usage) if key is not None:
                self._tokens[key, reply] = usage.tokens
            case facts.FlowAccepted() as event:
                if event.inferred or kind == "spawn":
                    self._imported = event.asked if event.inferred else None
                if kind == "spawn" and event.requester is not None:
                    self._spawners[event.asked] = event.requester
            case facts.FlowAnswered() as event:
                self._replied(recorded, event)
                if event.status != "ok" and not self._failed:  # an import: no session told it
                    self._mark(recorded, None, "failed")
            case facts.AnnounceDecided(silent=True):
                self._mark(recorded, None, "end")
            case facts.AnnounceDecided(text=str(text)):
                if kind == "exchange" and self._imported is not None:
                    self._says(recorded, self._imported, text, "announces")
                self._spoken = _Spoken(text, recorded.position, recorded.time, len(self._rows))
            case facts.DeliveryDecided() as event:
                self._decided(recorded, event)
            case event if event.mark is not None:
                if event.mark == "failed" and kind == "session":
                    self._failed.add(facts.run_named(event) or "")
                self._mark(recorded, self._lane_of(recorded), event.mark, key)
            case _:
                pass

    def _lane_of(self, recorded: Recorded) -> int | None:
        """Return where an event is marked: on its session's lane, at its channel; None for all lanes."""
        kind, _, name = recorded.stream.partition(":")
        match kind:
            case "session":
                return self._session(name)
            case "delivery":
                return self._places.get(recorded.stream)
            case _:
                who = words_of(recorded.event).who
                return None if who is None or who == recorded.event.doer else self._session(who)

    def _message(self, recorded: Recorded, message: facts.Message, key: str) -> None:
        # The requester stands before the target.
        source = self._asker(message, key) if message.role not in {"assistant", "toolResult"} else None
        own = self._session(key)
        for words in words_of_message(message, key):
            text = _unframed(words.text or words.brief)
            if words.kind == "tool":
                tool = f"{words.how} {text}"
                self._rows.append(_mark(recorded, own, tool, "tool"))
            elif message.role == "assistant":
                self._said[len(self._rows)] = own, text
                self._rows.append(_mark(recorded, own, f"says {text}", "note"))
            elif source is None:
                self._rows.append(_mark(recorded, own, f"is told: {text}", "note"))
            else:
                how = "asks" if message.provenance is None and key in self._spawners else words.how
                how = self._carries(message.provenance, text, how)
                self._rows.append(self._arrow(recorded, source, own, text, how))

    def _replied(self, recorded: Recorded, event: facts.FlowAnswered) -> None:
        """Say of the words that an agent said which turn they are; an arrow that carries them on says so itself."""
        if event.text is None:
            return
        if not isinstance(event, facts.TurnEnded):
            if self._imported is not None:
                self._says(recorded, self._imported, event.text, "ends its task")
            return
        how = f"turn {event.turn}" if event.turn else "replies"
        self._answered = event.text, how
        self._says(recorded, None if self._imported is None else event.speaker, event.text, how)
        self._spoken = _Spoken(event.text, recorded.position, recorded.time, len(self._rows))

    def _says(self, recorded: Recorded, speaker: str | None, text: str, how: str) -> None:
        """Say how the words are meant that an agent said last; of a speaker in an import, add them where no session told them."""
        place, (_, said) = next(reversed(self._said.items()), (0, (0, None)))
        if said == text:
            self._rows[place] = msgspec.structs.replace(self._rows[place], text=f"{how}: {text}")
        elif speaker is not None:
            lane = self._session(speaker)
            self._said[len(self._rows)] = lane, text
            self._rows.append(_mark(recorded, lane, f"{how}: {text}", "note"))

    def _carries(self, origin: facts.Provenance | None, text: str, how: str) -> str:
        """Return what a message carries from one agent to the other: the reply of a turn asks for the next one."""
        if origin is not None and origin.turn:
            return "replies" if origin.turn == 1 else f"turn {origin.turn - 1}"
        return self._answered[1] if self._answered is not None and self._answered[0] == text else how

    def _asker(self, message: facts.Message, key: str) -> int | None:
        """Return the lane of the requester of an agent; None where the system does."""
        origin = message.provenance
        if message.role == "system" and origin is None:
            return None
        if origin is None and key in self._spawners:
            return self._session(self._spawners[key])
        if is_openclaws(message):
            return None
        if origin is None:
            return self._lane("?", "not recorded", "person")
        if is_by_method(origin):
            caller = self._callers.get(message.id, BY_METHOD)
            return self._lane(caller, caller, "operator")
        match origin.kind:
            case "internal_system":
                return None
            case "inter_session" if origin.source_session_key is not None:
                return self._session(origin.source_session_key)
            case "inter_session":
                return self._lane(BY_METHOD, BY_METHOD, "operator")
            case "external_user":
                return self._person(origin)

    def _person(self, origin: facts.Provenance) -> int:
        """Return the lane of a person on a channel."""
        channel = origin.source_channel or "a channel"
        if origin.sender is None:
            return self._lane(f"{channel}:?", f"a person on {channel}", "person")
        name = f"{origin.sender_name or origin.sender} ({channel})"
        return self._lane(f"{channel}:{origin.sender}", name, "person")

    def _decided(self, recorded: Recorded, event: facts.DeliveryDecided) -> None:
        route = event.route
        source = self._session(event.session_key)
        place = self._lane(f"{route.channel}:{route.to}", route.text, "channel")
        self._places[recorded.stream] = place
        self._rows.append(self._arrow(recorded, source, place, event.text, words_of(event).how))

    def _mark(self, recorded: Recorded, lane: int | None, kind: MarkKind, key: str | None = None) -> None:
        at = Frame(key=key)
        if lane is not None and key is None:
            at = Frame(place=self.lanes[lane].name)
        words = words_of(recorded.event, at)
        said = (words.how.removesuffix(".") if words.reason else words.how) or words.brief
        if lane is None and words.who is not None and recorded.event.doer == words.who:
            # It is nobody's lane, so it says who.
            said = f"{words.who} {said}{'' if words.text is None else f': {words.text}'}"
        self._rows.append(_mark(recorded, lane, said, kind))

    def _arrow(self, recorded: Recorded, source: int, target: int, text: str, how: str) -> Arrow:
        spoken = self._spoken
        is_carried = spoken is not None and (spoken.text, spoken.rows) == (text, len(self._rows))
        said = spoken if spoken is not None and is_carried else recorded
        return Arrow(
            position=said.position,
            time=said.time,
            arrived=recorded.position if said is spoken else None,
            source=source,
            target=target,
            text=text,
            how=how,
            tokens=self._tokens.get((self.lanes[source].id, text)),
        )

    def _session(self, key: str) -> int:
        return self._lane(key, self._names(key), "session")

    def _lane(self, lane_id: str, name: str, kind: LaneKind) -> int:
        if lane_id not in self._lanes:
            self._numbers[lane_id] = len(self._lanes)
            self._lanes[lane_id] = Lane(id=lane_id, name=name, kind=kind)
        return self._numbers[lane_id]


def _unframed(text: str) -> str:
    """Return words without what OpenClaw has put before them."""
    found = _FRAMED.match(text)
    return text if found is None else text[found.end() :]


def _mark(recorded: Recorded, lane: int | None, text: str, kind: MarkKind) -> Mark:
    return Mark(position=recorded.position, time=recorded.time, lane=lane, text=text, kind=kind)


def _with_gaps(
    rows: Iterable[Arrow | Mark], folded_ms: int, forked: Collection[int], holds: Sequence[Hold]
) -> Sequence[Row]:
    found: list[Row] = []
    before: int | None = None
    for row in rows:
        if before is not None and row.time - before >= folded_ms:
            is_cut = any(before < made <= row.time for made in forked)
            is_held = any(
                hold.since <= before and (hold.until is None or row.time <= hold.until) for hold in holds
            )
            found.append(Gap(ms=row.time - before, forked=is_cut, held=is_held and not is_cut))
        found.append(row)
        before = row.time
    return tuple(found)
