"""From the events of an exchange, a spawn or a run to its parts. Pure."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from intersession_events import facts
from intersession_events.basics.plain_json import JsonValue
from intersession_events.log.recorded import Recorded, parts_in
from intersession_projections.basics.speakers import speaker
from intersession_projections.questions.differences.drafts import Draft
from intersession_projections.questions.differences.parts import FlowKind, Outline, Part, Totals
from intersession_projections.views.flows.held import held_ms, holds_in
from intersession_projections.views.flows.rows import DeliverySummary, accept_flow, evolve_flow
from intersession_projections.views.run_outcomes.outcome import end_of
from intersession_projections.views.run_outcomes.replies import Replies

Begun = Callable[[str], Iterable[tuple[str, Outline]]]
"""The exchanges and spawns that a run, by its id, began: the id and the outline of each, in the order they were accepted."""

Disclose = Callable[[str, str], str]
"""A text as the caller may read it; the second argument is the key of the session that it is of."""

Since = Callable[[int], int]
"""When something that began at a time (ms) would have begun, had it gone on without a pause."""

_OURS: Final = "sessions_"
_OPEN: Final = "open"
_AFTERWARDS: Final = (facts.ChildArchived, facts.SessionArchived)
"""Events that are no longer part of a run."""


def outline_of(
    kind: FlowKind,
    events: Sequence[Recorded],
    *,
    begun: Begun,
    shown: Disclose,
    since: Since = lambda time: time,
) -> Outline:
    """Return a flow by its parts. `events` are all of it, of whatever streams, in log order, as far as they are looked at.

    `since` says from when on a time counts: in a fork the time before it was made does not.
    """
    events = [*map(Replies(events).with_texts, events)]
    folding = _Folding(kind, begun, shown, since)
    # An event of a session may stand before the one of its flow that names it: they are of one commit.
    for recorded in parts_in(events):
        folding.flow(recorded)
    for recorded in events:
        folding.run(recorded)
    folding.deliveries(events)
    return folding.outline(events)


class _Folding:
    def __init__(self, kind: FlowKind, begun: Begun, shown: Disclose, since: Since) -> None:
        self._kind: FlowKind = kind
        self._begun = begun
        self._shown = shown
        self._since = since
        self._parts: list[Draft] = []
        self._runs: dict[str, Draft] = {}
        self._of_flow: set[str] = set()
        """The runs of which the flow itself says what they answered."""
        self._usage: dict[str, facts.Usage] = {}
        self._calls: dict[str, Draft] = {}
        self._announced: dict[str, Draft] = {}
        """The announces that deliveries, by their ids, are of."""
        self._lanes: dict[str, str] = {}
        self._threads: set[str | None] = set()
        """The threads that were opened for the child: their ids are what a channel calls them, and mean nothing."""
        self._turns = 0
        self._loop_end: str | None = None
        self._end: str | None = None

    # --- the events of an exchange or a spawn

    def flow(self, recorded: Recorded) -> None:  # noqa: C901, PLR0912 - one case an event
        match recorded.event:
            case facts.ExchangeAccepted() as event:
                self._start(recorded, event, event.target, event.message or "")
            case facts.SpawnAccepted() as event:
                self._start(recorded, event, event.child, event.task or "")
            case facts.TurnEnded(turn=0) | facts.ChildEnded() as event:
                self._answered(recorded, self._parts[0].sessions.get("to", ""), event)
            case facts.RunAsked() as event:
                draft = self._asked(event.place, recorded, event.asked, event)
                if isinstance(event, facts.ResultHanded):
                    draft.fields["limit"] = event.limit
            case facts.TurnEnded() as event:
                if event.run_id not in self._runs:  # an import may show the answer alone
                    self._asked(f"turn:{event.turn}", recorded, event.speaker, event)
                self._turns += 1
                self._answered(recorded, event.speaker, event)
            case facts.LoopEnded() as event:
                self._loop_end = event.reason
                self._add(
                    "loop", recorded, {"reason": event.reason, "limit": event.limit, "turns": event.turns}
                )
            case facts.AnnounceDecided() as event:
                self._announce(recorded, event)
            case facts.ExchangeReleased(action="edit" | "drop" | "end") as event:
                self._add("release", recorded, {"action": event.action, "text": event.text})
            case facts.FlowClosed() as event:
                self._end = event.reason
                self._add("end", recorded, {"reason": event.reason, "limit": event.limit, "note": event.note})
            case facts.ThreadOpened(route=route):
                self._threads.add(route.thread)
            case _:
                pass

    def _start(
        self, recorded: Recorded, event: facts.ExchangeAccepted | facts.SpawnAccepted, to: str, text: str
    ) -> None:
        asker = event.asker
        self._lanes.update({asker: "<asker>", to: "<asked>"} if asker != to else {to: "<asker and asked>"})
        fields: dict[str, JsonValue] = {"text": self._shown(text, to)}
        match event:
            case facts.ExchangeAccepted():
                settings = event.settings
                fields |= {"loop": event.loop, "maxTurns": settings.max_turns, "announce": settings.announce}
                ids = {"exchange": event.exchange_id, "run": event.run_id, "message": event.message_id}
                sessions = {"session": event.target_session_id, "asker": event.requester_session_id}
            case facts.SpawnAccepted():
                files = () if event.attachments is None else event.attachments.files
                fields |= {
                    "label": event.label,
                    "agent": event.agent_id,
                    "model": event.model,
                    "thinking": event.thinking,
                    "mode": event.mode,
                    "cleanup": event.cleanup,
                    "files": {file.name: file.sha256 for file in files} or None,
                }
                ids = {"spawn": event.spawn_id, "run": event.run_id, "message": event.message_id, "child": to}
                sessions = {"session": event.child_session_id, "asker": event.requester_session_id}
        start = self._add("start", recorded, fields)
        start.likeness = text
        start.sessions.update({"who": asker, "to": to})
        start.ids.update(ids | {role: name for role, name in sessions.items() if name})
        self._begin("reply", recorded, to, event.run_id)

    def _asked(
        self, name: str, recorded: Recorded, speaker: str, event: facts.RunAsked | facts.TurnEnded
    ) -> Draft:
        draft = self._begin(name, recorded, speaker, event.run_id)
        if not isinstance(event, facts.TurnEnded):
            draft.ids["message"] = event.message_id
        return draft

    def _begin(self, name: str, recorded: Recorded, speaker: str, run_id: str) -> Draft:
        draft = self._add(name, recorded, {"status": _OPEN})
        draft.sessions["who"] = speaker
        draft.ids["run"] = run_id
        self._runs[run_id] = draft
        return draft

    def _answered(
        self,
        recorded: Recorded,
        speaker: str,
        event: facts.FlowAnswered,
    ) -> None:
        draft = self._runs.get(event.run_id)
        if draft is None:
            return
        self._of_flow.add(event.run_id)
        draft.saw(recorded)
        draft.fields.update(
            status=event.status, text=self._text(event.text, speaker), error=self._text(event.error, speaker)
        )
        if event.usage is not None:
            self._usage[event.run_id] = event.usage

    def _announce(self, recorded: Recorded, event: facts.AnnounceDecided) -> None:
        draft = next((part for part in reversed(self._parts) if part.name == "announce"), None)
        if draft is None:
            draft = self._add("announce", recorded, {})
        else:
            draft.saw(recorded)
            self._of_flow.add(draft.ids.get("run", ""))
        key = draft.sessions.get("who", "")
        draft.fields.update(status=None, text=self._text(event.text, key), why=event.why, limit=event.limit)
        if event.delivery_id is not None:
            self._announced[event.delivery_id] = draft

    # --- the events of the runs

    def run(self, recorded: Recorded) -> None:
        key = recorded.stream.removeprefix("session:")
        if (message := facts.message_in(recorded.event)) is not None:
            self._said(recorded, key, message)
        match recorded.event:
            case facts.RunQueued() as event if event.flow is None and event.run_id not in self._runs:
                self._alone(recorded, key, event)
            case facts.RunStarted() as event if (draft := self._runs.get(event.run_id)) is not None:
                draft.saw(recorded, moves=event.run_id not in self._of_flow)
                draft.fields.update(model=event.model, thinking=event.thinking)
                # What an attempt called that was cut off, the next one calls again.
                draft.parts.clear()
            case event if isinstance(event, facts.RunEnd):
                self._ended(recorded, event)
            case facts.RunQueued() | facts.RunInterrupted() as event if event.run_id in self._runs:
                self._runs[event.run_id].saw(recorded, moves=False)
            case _:
                pass

    def _alone(self, recorded: Recorded, key: str, event: facts.RunQueued) -> None:
        start = self._add("start", recorded, {})
        start.sessions["to"] = key
        start.ids["message"] = event.message_id
        if (message := event.message) is not None:
            start.sessions["who"] = speaker(message)
            start.likeness = facts.text_of(message)
            start.fields["text"] = self._shown(start.likeness, key)
        self._lanes[key] = "<asked>"
        self._begin("reply", recorded, key, event.run_id)

    def _ended(self, recorded: Recorded, event: facts.RunEnd) -> None:
        draft = self._runs.get(event.run_id)
        if draft is None:
            return
        of_flow = event.run_id in self._of_flow
        draft.saw(recorded, moves=not of_flow)
        if not of_flow:
            status, _, text = end_of(event)
            error = event.error if isinstance(event, facts.RunFailed) else None
            key = draft.sessions.get("who", "")
            draft.fields.update(status=status, text=self._text(text, key), error=self._text(error, key))
            if self._kind == "run":
                self._end = status
        if isinstance(event, facts.RunCompleted):
            draft.fields["model"] = event.model or draft.fields.get("model")
            if event.usage is not None:
                self._usage[event.run_id] = event.usage

    def _said(self, recorded: Recorded, key: str, message: facts.Message) -> None:
        draft = self._runs.get(message.run_id or "")
        if draft is None:
            return
        draft.saw(recorded, moves=False)
        if message.role == "assistant" and not isinstance(message.content, str):
            for block in message.content:
                if isinstance(block, facts.ToolCallBlock):
                    self._called(draft, recorded, key, block)
        elif message.role == "toolResult":
            self._gave(recorded, key, message)

    def _called(self, draft: Draft, recorded: Recorded, key: str, block: facts.ToolCallBlock) -> None:
        call = Draft(block.name, recorded, likeness=block.arguments)
        call.ids["call"] = block.id
        call.sessions["who"] = key
        call.fields["arguments"] = _json_or_text(self._shown(block.arguments, key))
        self._calls[block.id] = call
        draft.parts.append(call)

    def _gave(self, recorded: Recorded, key: str, message: facts.Message) -> None:
        call = self._calls.get(message.tool_call_id or "")
        if call is None:
            return
        result = Draft("result", recorded, likeness=call.name)
        result.ids["message"] = message.id
        text = self._shown(facts.text_of(message), key)
        result.fields["result"] = _json_or_text(text) if call.name.startswith(_OURS) else text
        result.fields["error"] = message.is_error or None
        call.parts.append(result)

    # --- deliveries

    def deliveries(self, events: Iterable[Recorded]) -> None:
        """Add the texts that went outside to the runs that said them."""
        found: dict[str, tuple[Draft, DeliverySummary]] = {}
        for recorded in events:
            if isinstance(recorded.event, facts.DeliveryDecided):
                row = accept_flow(recorded)
                if isinstance(row, DeliverySummary):
                    found[recorded.stream] = self._delivery(recorded, recorded.event), row
            elif recorded.stream in found:
                draft, row = found[recorded.stream]
                after = evolve_flow(row, recorded)
                draft.saw(recorded)
                if isinstance(after, DeliverySummary):
                    draft.fields["state"] = after.state
                    found[recorded.stream] = draft, after

    def _delivery(self, recorded: Recorded, event: facts.DeliveryDecided) -> Draft:
        own = event.route.thread if event.route.thread in self._threads else None
        route = event.route if own is None else msgspec.structs.replace(event.route, thread="<its thread>")
        draft = Draft("delivery", recorded, likeness=f"{route.text} {event.text}")
        draft.ids["delivery"] = event.delivery_id
        if own is not None:
            draft.ids["thread"] = own
        draft.sessions["who"] = event.session_key
        draft.fields.update(
            to=route.text,
            purpose=event.purpose,
            text=self._shown(event.text, event.session_key),
            state="decided",
        )
        of = self._announced.get(event.delivery_id) or self._runs.get(event.run_id or "")
        (self._parts if of is None else of.parts).append(draft)
        return draft

    # --- all of it

    def outline(self, events: Sequence[Recorded]) -> Outline:
        """Return what the events came to, with what their runs began."""
        inner: list[Outline] = []
        for run_id, draft in self._runs.items():
            for name, begun in self._begun(run_id):
                inner.append(begun)
                first = begun.parts[0] if begun.parts else None
                draft.parts.append(
                    Part(
                        name=begun.kind,
                        position=0 if first is None else first.position,
                        likeness="" if first is None else first.likeness,
                        ids={begun.kind: name},
                        parts=begun.parts,
                    )
                )
        parts = tuple(draft.part() for draft in self._parts)
        return Outline(
            kind=self._kind, parts=parts, lanes=self._lanes, totals=self._totals(parts, inner, events)
        )

    def _totals(self, parts: Iterable[Part], inner: Sequence[Outline], events: Sequence[Recorded]) -> Totals:
        texts = Counter(state for part in parts for state in _states(part))
        times = [recorded.time for recorded in events if not isinstance(recorded.event, _AFTERWARDS)]
        return Totals(
            turns=self._turns,
            loop_end=self._loop_end,
            end=self._end,
            tokens=sum(usage.tokens for usage in self._usage.values())
            + sum(one.totals.tokens for one in inner),
            cost_micros=sum(usage.cost_micros or 0 for usage in self._usage.values())
            + sum(one.totals.cost_micros for one in inner),
            duration_ms=self._since(max(times))
            - self._since(min(times))
            - held_ms(holds_in(events), self._since)
            if times
            else 0,
            deliveries=dict(sorted(texts.items())),
        )

    def _add(self, name: str, recorded: Recorded, fields: Mapping[str, JsonValue]) -> Draft:
        draft = Draft(name, recorded)
        draft.fields.update(fields)
        self._parts.append(draft)
        return draft

    def _text(self, text: str | None, key: str) -> str | None:
        return None if text is None else self._shown(text, key)


def _states(part: Part) -> Iterable[str]:
    state = part.fields.get("state")
    if part.name == "delivery" and isinstance(state, str):
        yield state
    for inner in part.parts:
        yield from _states(inner)


def _json_or_text(text: str) -> JsonValue:
    try:
        value: JsonValue = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text
    return value
