"""The verb `why`: the causes and effects of an event, and why things ended, were refused or reached nobody (WHY)."""

from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import Annotated, NamedTuple, NotRequired, TypedDict

import msgspec

from intersession_actors.hindsight.debugger.named import delivery_named
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.hindsight.explaining.explained import Explaining
from intersession_actors.hindsight.explaining.explanation import Explanation
from intersession_actors.hindsight.explaining.not_over import awaited
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.gate.limits import PlaceText
from intersession_events import facts
from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts import ready
from intersession_events.log.recorded import Recorded
from intersession_projections.questions.causes.causes import Causes
from intersession_projections.questions.causes.causes import Why as Found
from intersession_projections.questions.causes.effects import Effect, Effects
from intersession_projections.questions.causes.in_words import EventInWords
from intersession_projections.questions.places.grammar import FORMS, UnknownPlace, parse_place
from intersession_projections.questions.places.located import read_flow, steps_of_flow
from intersession_projections.questions.places.runs_named import FEWEST, Flow

_EVENT = "event:"


@ready
class Why(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of `why`."""

    of: Annotated[
        int | float | PlaceText,
        msgspec.Meta(
            description="An event, by its position, its id or as any place (RUN@turn:2); or an exchange, a spawn, a run or a delivery."
        ),
    ]
    forward: Annotated[
        bool, msgspec.Meta(description="What it led to, as a tree, in place of what led to it.")
    ] = False


class DescribedEvent(TypedDict):
    """An event in words. `who` acts and `to` is acted on, None if there is nobody; `text` is the message or the event.

    `how` is for people: a sentence, or a verb after `who`; it is empty where a story leaves the event out, because another one
    says the same. `way` is how it is told: `said`, `tool`, `note` or `end`. `carried` says that it only carries on the words of
    the event before it in the answer: whoever tells a story leaves it out.
    """

    position: int
    eventId: str
    timeMs: int
    stream: str
    topic: str
    way: str
    who: str | None
    to: str | None
    text: str
    how: str
    carried: bool


class RootAnswer(DescribedEvent):
    """What a chain began with: `kind` is `person`, `operator`, `timer`, `start`, `import` or `system`.

    `by` is who called for it, where it began with a call (`operator`, `credential:<name>`, a session); None elsewhere.
    """

    kind: facts.Root
    by: str | None


class WhyAnswer(TypedDict):
    """An event, its causes (the nearest first), and the chain's beginning; None if that is not within reach.

    `explanations` say why it, what it came of, and (for an exchange, a spawn or a run) anything of it ended, was refused or
    reached nobody: `{position, about, code, rule, text, inputs, instead, asDecided}`. `waits` says what an exchange, a spawn or a
    run that is not over waits for: `{code, text, sinceMs?, untilMs?, who?, runId?}`. `begun` is what an exchange, a spawn or
    a run itself began with, where what ended it came from elsewhere: somebody deleted its session, for example.
    """

    event: DescribedEvent
    causes: list[DescribedEvent]
    root: RootAnswer | None
    explanations: list[JsonObject]
    begun: NotRequired[RootAnswer]
    waits: NotRequired[JsonObject]


class EffectAnswer(DescribedEvent):
    """An event and its effects. `more` events are left out below a very deep one, else 0."""

    effects: "list[EffectAnswer]"
    more: int


class EffectsAnswer(TypedDict):
    """An event, its effects, and those that are still open: `{kind, id, position, eventId}`."""

    event: DescribedEvent
    effects: list[EffectAnswer]
    open: list[JsonObject]


def why(view: View, given: Why) -> WhyAnswer | EffectsAnswer:
    """Return why an event is there, or its effects.

    Raises:
        ToolRefused: nothing has that name, or there is no event there (`invalid_request`).
    """
    asked = _asked(view, given.of)
    seeing = _Seeing(view)
    return _effects(seeing, asked) if given.forward else _why(seeing, asked)


class _Subject(NamedTuple):
    """The event that is asked about, and the exchange, spawn or run that it was named by."""

    position: int
    flow: Flow | None = None


def _asked(view: View, of: float | str) -> _Subject:
    try:
        position = view.place(of, field="of").position
    except ToolRefused as no_place:
        found = _named(view, of) if isinstance(of, str) else None
        if found is None:
            raise _nothing(of) or no_place from None
        return found
    if position == 0:
        raise ToolRefused("invalid_request", "of: 0 is before the first event, give an event")
    return _Subject(position)


def _named(view: View, of: str) -> _Subject | None:
    """Return the last event of what a name means: an exchange, a spawn, a run, a delivery; or the event of an id."""
    try:
        flow = view.flow(of, field="of")
    except ToolRefused:
        if view.is_run(of):
            raise  # several begin so
    else:
        return _Subject(flow.position, flow)
    try:
        return _Subject(view.place(f"{_EVENT}{of}", field="of").position)
    except ToolRefused:
        if view.is_operator and len(of) >= FEWEST and len(view.log.with_id(of, limit=2)) > 1:
            raise
    try:
        row = view.reader.flows.delivery(delivery_named(view.reader, of))
    except ToolRefused:
        if view.is_operator and len(of) >= FEWEST and len(view.reader.flows.delivery_ids(of, 2)) > 1:
            raise
        return None
    return None if row is None or not view.is_seen(row.session_key) else _Subject(row.position)


def _nothing(of: float | str) -> ToolRefused | None:
    """Return the refusal of a text that is no place, and no name of anything; None for a place that is not in the log."""
    try:
        parse_place(of, field="of")
    except UnknownPlace:
        if not isinstance(of, str) or "@" in of:
            return None
        unknown = "of: no event, exchange, spawn, run or delivery is called"
        shows = "`intersession runs`, `intersession events` and `intersession deliveries` show what there is"
        few = f", of an id give {FEWEST} characters at least" if len(of.strip()) < FEWEST else ""
        return ToolRefused("invalid_request", f"{unknown} {of[:64]!a}; {shows}{few}. A place is {FORMS}")
    return None


def _why(seeing: "_Seeing", asked: _Subject) -> WhyAnswer:
    view = seeing.view
    reading = Causes(view.log)
    whole = reading.path(asked.position)
    found = reading.explain(whole)
    path = [recorded for recorded in whole if seeing.is_seen(recorded.position)]
    if found is None or not path or path[0].position != asked.position:
        raise ToolRefused("invalid_request", f"of: there is no event at position {asked.position}")
    root: RootAnswer | None = None
    if seeing.is_seen(found.root.position):
        root = seeing.root(found)
    event = seeing.asked_about(found.event)
    causes = [seeing.describe(cause) for cause in found.causes if seeing.is_seen(cause.position)]
    _mark_carried(event, causes)
    # In this order a reader learns first why it is so, and then how it came about.
    answer: WhyAnswer = {
        "explanations": [seeing.explained(one) for one in _explanations(seeing, path, asked.flow)],
        "event": event,
        "causes": causes,
        "root": root,
    }
    if asked.flow is not None and found.root.position > asked.flow.accepted:
        begun = reading.why(asked.flow.accepted)
        if begun is not None and seeing.is_seen(begun.root.position):
            answer["begun"] = seeing.root(begun)
    waits = None if asked.flow is None else awaited(view.reader, asked.flow)
    if waits is not None:
        answer["waits"] = waits.value(whole=view.is_operator)
    return answer


_CARRIERS = frozenset({"turn_ended", "child_ended"})
_FAILURES = frozenset({"run_failed", "run_aborted"})
_WORDED = frozenset({"exchange_released"})
"""The author of a replaced text is named, though the text that went on is the same."""


def _mark_carried(event: DescribedEvent, causes: list[DescribedEvent]) -> None:
    """Mark the causes that only carry the words, or the failure, that another event of the chain tells."""
    said = event["text"]
    for cause, before in zip_longest(causes, causes[1:]):
        tells_failure = before is not None and _kind(cause) in _CARRIERS and _kind(before) in _FAILURES
        is_told = bool(cause["how"]) or cause["way"] == "said"
        cause["carried"] = is_told and (
            tells_failure or (cause["text"] == said and _kind(cause) not in _WORDED)
        )
        if is_told and not cause["carried"]:
            said = cause["text"]


def _kind(event: DescribedEvent) -> str:
    return event["topic"].rpartition(".")[0]


def _explanations(seeing: "_Seeing", path: list[Recorded], flow: Flow | None) -> Iterator[Explanation]:
    view = seeing.view
    explaining = Explaining(view.reader, secretly=not view.is_operator)
    found = {(one.position, one.about): one for one in explaining.along(path)}
    if flow is not None:
        seen = view.known(read_flow(view.log, flow).events)
        found |= {(one.position, one.about): one for one in explaining.of_all(seen)}
    yield from sorted(found.values(), key=lambda one: one.position)


def _effects(seeing: "_Seeing", asked: _Subject) -> EffectsAnswer:
    """Return the effects of an event; of an exchange, a spawn or a run, all effects from its beginning on."""
    log, flow = seeing.view.log, asked.flow
    position = asked.position if flow is None else flow.accepted
    own = () if flow is None else (step.position for step in steps_of_flow(log, flow))
    led = Effects(log).of(position, own=own)
    if led is None or not seeing.is_seen(position):
        raise ToolRefused("invalid_request", f"of: there is no event at position {position}")
    event = seeing.describe(led.event)
    return {
        "event": event,
        "effects": list(seeing.effects(led.effects, event["text"])),
        "open": [msgspec.to_builtins(one) for one in led.open if seeing.is_seen(one.position)],
    }


class _Seeing:
    """Shows events to the caller: those beyond reach are left out, with their effects in their place."""

    def __init__(self, view: View) -> None:
        self.view = view

    def is_seen(self, position: int) -> bool:
        if self.view.is_operator:
            return True
        return any(map(self.view.may_know, self.view.log.all(after=position - 1, to=position)))

    def describe(self, told: EventInWords) -> DescribedEvent:
        kind, _, key = told.stream.partition(":")
        if kind == "session":
            self.view.is_seen(key)
        return {
            "position": told.position,
            "eventId": told.event_id,
            "timeMs": told.time_ms,
            "stream": told.stream,
            "topic": told.topic,
            "way": told.way,
            "who": told.who,
            "to": told.to,
            "text": self.view.shown(told.text, key) or "",
            "how": self.view.shown(told.how, key) or "",
            "carried": False,
        }

    def root(self, found: Found) -> RootAnswer:
        """Return what something began with."""
        return {**self.describe(found.root), "kind": found.root_kind, "by": found.root_by}

    def asked_about(self, told: EventInWords) -> DescribedEvent:
        """Return the event that is asked about: a story may leave it out, and here it has its sentence."""
        answer = self.describe(told)
        if not answer["how"] and answer["way"] != "said" and (step := self.view.step_at(told.position)):
            answer["how"] = f"Here {step}."
        return answer

    def effects(self, effects: Iterable[Effect], said: str) -> Iterator[EffectAnswer]:
        """Yield the effects of an event; `said` is the text shown last on the way there."""
        for effect in effects:
            if not self.is_seen(effect.position):
                yield from self.effects(effect.effects, said)
                continue
            told = self.describe(effect)
            is_told = bool(told["how"]) or told["way"] == "said"
            carried = is_told and told["text"] == said
            below = list(self.effects(effect.effects, told["text"] if is_told and not carried else said))
            yield {**told, "carried": carried, "effects": below, "more": effect.more}

    def explained(self, explanation: Explanation) -> JsonObject:
        """Return an explanation as JSON has it."""
        answer: JsonObject = msgspec.json.decode(msgspec.json.encode(explanation))
        return answer
