"""The verb `state`: everything at a place, and what differs between two (PLACE-3)."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Final, NotRequired, TypedDict

import msgspec

from intersession_actors.debugger.answers import PlaceAnswer
from intersession_actors.debugger.view import View
from intersession_actors.disclosure import shown_messages
from intersession_actors.gate import KeyText, PlaceText, invalid
from intersession_actors.policy import Speaker, judge_send
from intersession_actors.service import bounded
from intersession_events.facts import ready
from intersession_events.plain_json import JsonObject, JsonValue, is_list, is_object, present
from intersession_projections.flows import DeliverySummary, ExchangeSummary, SpawnSummary
from intersession_projections.places import Flow, Located, Then, flow_sessions, flow_stream
from intersession_projections.run_outcomes import RunOutcome
from intersession_projections.sessions import SessionRow, Wanted

DEFAULT_SESSIONS: Final = 50
DEFAULT_MESSAGES: Final = 200
MOST: Final = 1000

PlaceGiven = int | float | PlaceText


@ready
class State(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What a caller of `state` gives; null is not given."""

    of: Annotated[
        KeyText | None,
        msgspec.Meta(description="A session, or an exchange, spawn or run. Default: the whole log."),
    ] = None
    at: Annotated[PlaceGiven | None, msgspec.Meta(description="The place. Default: head.")] = None
    from_: Annotated[
        PlaceGiven | None, msgspec.Meta(description="With `to`: what differs from this place on.")
    ] = msgspec.field(default=None, name="from")
    to: Annotated[PlaceGiven | None, msgspec.Meta(description="Up to this place. Default: head.")] = None
    as_: Annotated[
        KeyText | None, msgspec.Meta(description="Only what this session could see at that place.")
    ] = msgspec.field(default=None, name="as")
    limit: Annotated[
        float | None,
        msgspec.Meta(description="At most this many sessions, runs and flows, 1 to 1000; 50 if not given."),
    ] = None
    messages: Annotated[
        float | None,
        msgspec.Meta(description="At most this many messages of each session, 0 to 1000; 200 if not given."),
    ] = None


class OpenAnswer(TypedDict):
    """The ids of what was not over at a place."""

    runs: list[str]
    exchanges: list[str]
    spawns: list[str]
    deliveries: list[str]


class StateAnswer(TypedDict):
    """Everything at a place: sessions with their `transcript`, runs and flows as far as they had got, what was open.

    `next` is what comes behind the place. `config` is what was in force, without secrets, for the operator alone.
    """

    place: PlaceAnswer
    next: PlaceAnswer | None
    sessions: list[JsonObject]
    runs: list[JsonObject]
    exchanges: list[JsonObject]
    spawns: list[JsonObject]
    deliveries: list[JsonObject]
    open: OpenAnswer
    config: NotRequired[JsonObject]


class Change(TypedDict):
    """One difference. `path` says where, from the name of a list on by ids; a side is None where it had nothing there."""

    path: str
    before: JsonValue
    after: JsonValue


ChangesAnswer = TypedDict("ChangesAnswer", {"from": PlaceAnswer, "to": PlaceAnswer, "changes": list[Change]})
"""What differs between two places."""


def state(view: View, given: State) -> StateAnswer | ChangesAnswer:
    """Return everything at a place, or what differs between two.

    Raises:
        ToolRefused: a place or a name is none, or not within reach.
    """
    if given.from_ is None and given.to is None:
        return _state(view, given, view.place(given.at))
    if given.at is not None:
        raise invalid("at", "a difference has the places from and to, leave at or those out")
    if given.from_ is None:
        raise invalid("from", "required with to, give the place to compare with")
    before, after = view.place(given.from_, field="from"), view.place(given.to, field="to")
    then, now = _state(view, given, before), _state(view, given, after)
    return {
        "from": then["place"],
        "to": now["place"],
        "changes": list(_changes(_compared(then), _compared(now))),
    }


def _state(view: View, given: State, place: Located) -> StateAnswer:
    eyes = view if given.as_ is None else view.acting_as(given.as_, at=place.position)
    subject = None if given.of is None else eyes.session_or_flow(given.of, field="of")
    return _Standing(eyes, place, given).of(subject)


class _Standing:
    """What stands at a place, for who sees certain sessions."""

    def __init__(self, view: View, place: Located, given: State) -> None:
        self._view = view
        self._place = place
        self._then = Then(view.log, place.position)
        self._limit = bounded(given.limit, "limit", 1, MOST, default=DEFAULT_SESSIONS).value
        self._messages = bounded(given.messages, "messages", 0, MOST, default=DEFAULT_MESSAGES).value
        # Where nothing was recorded, the settings of whoever reads are the best guess.
        self._config = view.config_at(place.position) or view.reader.config

    def of(self, subject: str | Flow | None) -> StateAnswer:
        """Return the state of the whole log, of a session, or of a flow."""
        view, place = self._view, self._place
        if isinstance(subject, ExchangeSummary | SpawnSummary | RunOutcome):
            keys: tuple[str, ...] | None = flow_sessions(subject)
            runs, flows = self._of_flow(subject)
        else:
            keys = None if subject is None else (subject,)
            runs = self._then.runs(self._limit, subject)
            flows = [*self._then.exchanges(self._limit, subject), *self._then.spawns(self._limit, subject)]
        seen_runs = [run for run in runs if view.is_seen(run.session_key)]
        seen_flows = [flow for flow in flows if any(map(view.is_seen, flow_sessions(flow)))]
        open_ = self._open(None if keys is None else frozenset(keys), subject)
        answer: StateAnswer = {
            "place": view.say(place),
            "next": view.say_next(place),
            "sessions": [self._session(row) for row in self._rows(keys)],
            "runs": [self._run(run) for run in seen_runs],
            "exchanges": [self._exchange(flow) for flow in seen_flows if isinstance(flow, ExchangeSummary)],
            "spawns": [self._spawn(flow) for flow in seen_flows if isinstance(flow, SpawnSummary)],
            "deliveries": [self._delivery(row) for row in open_ if isinstance(row, DeliverySummary)],
            "open": {
                "runs": [run.run_id for run in open_ if isinstance(run, RunOutcome)],
                "exchanges": [flow.exchange_id for flow in open_ if isinstance(flow, ExchangeSummary)],
                "spawns": [flow.spawn_id for flow in open_ if isinstance(flow, SpawnSummary)],
                "deliveries": [row.delivery_id for row in open_ if isinstance(row, DeliverySummary)],
            },
        }
        recorded = view.recorded_config(place.position) if view.is_operator else None
        if recorded is not None:
            settings: JsonObject = msgspec.json.decode(recorded.config)
            answer["config"] = {"digest": recorded.digest, "settings": settings}
        return answer

    def _of_flow(self, flow: Flow) -> tuple[list[RunOutcome], list[ExchangeSummary | SpawnSummary]]:
        stream = flow_stream(flow)
        if stream is None or isinstance(flow, RunOutcome):
            run = self._then.run(flow.run_id)
            return ([] if run is None else [run]), []
        then = (
            self._then.exchange(flow.exchange_id)
            if isinstance(flow, ExchangeSummary)
            else self._then.spawn(flow.spawn_id)
        )
        return self._then.runs_of(stream), ([] if then is None else [then])

    def _open(
        self, keys: frozenset[str] | None, subject: str | Flow | None
    ) -> list[RunOutcome | ExchangeSummary | SpawnSummary | DeliverySummary]:
        """Return what was not over, of the sessions that are shown, or of the flow alone."""
        found: list[RunOutcome | ExchangeSummary | SpawnSummary | DeliverySummary] = []
        found += self._then.open_runs()
        found += self._then.open_flows()
        return [one for one in found if self._is_part(one, keys, subject)]

    def _is_part(
        self,
        one: RunOutcome | ExchangeSummary | SpawnSummary | DeliverySummary,
        keys: frozenset[str] | None,
        subject: str | Flow | None,
    ) -> bool:
        sessions = (one.session_key,) if isinstance(one, DeliverySummary) else flow_sessions(one)
        if not any(map(self._view.is_seen, sessions)):
            return False
        if isinstance(subject, ExchangeSummary | SpawnSummary):
            return one.run_id in {run.run_id for run in self._of_flow(subject)[0]} or (
                isinstance(one, DeliverySummary) and one.owner == flow_stream(subject)
            )
        if isinstance(subject, RunOutcome):
            return one.run_id == subject.run_id
        return keys is None or not keys.isdisjoint(sessions)

    def _rows(self, keys: Iterable[str] | None) -> Iterator[SessionRow]:
        sessions, position = self._view.reader.sessions, self._place.position
        if keys is not None:
            for key in keys:
                row = sessions.get(key, position) if self._view.is_seen(key) else None
                if row is not None:
                    yield row
            return
        order = sessions.order(position, Wanted(seen=self._view.reader.seen(self._view.requester)))
        shown = 0
        for row in order.rows(order.places(), at_once=self._limit):
            if shown == self._limit:
                return
            if self._view.is_seen(row.key):
                shown += 1
                yield row

    # --- each as an answer has it

    def _session(self, row: SessionRow) -> JsonObject:
        view, reader = self._view, self._view.reader
        key = reader.parse(row.key)
        verdict = judge_send(
            self._config.session.send_policy,
            Speaker(
                key=key,
                channel=row.channel or row.last_channel,
                chat_type=row.chat_type,
                override=row.send_policy,
            ),
        )
        page = reader.history.messages(
            row.key,
            row.session_id,
            as_of=self._place.position,
            limit=max(1, self._messages),
            include_tools=True,
            row=row,
        )
        shown = shown_messages(page.messages, redact=reader.is_stranger(view.requester, row.key))
        earlier = shown.first_id if shown.dropped else page.before
        return {
            "key": row.key,
            "kind": key.kind,
            "agentId": row.agent_id,
            "sessionId": row.session_id,
            "updatedAt": row.updated_at,
            "runState": row.run_state,
            "queued": row.queued,
            "running": row.running,
            "sendPolicy": {"action": verdict.action, "rule": verdict.rule},
            "transcript": shown.messages if self._messages else [],
            "position": row.position,
        } | present(
            {
                "earlier": earlier,
                "channel": reader.channel_of(row),
                "chatType": row.chat_type,
                "model": row.model,
                "contextTokens": row.context_tokens,
                "totalTokens": row.total_tokens,
                "thinkingLevel": row.thinking_level,
                "verboseLevel": row.verbose_level,
                "displayName": row.display_name,
                "label": row.label,
                "route": None if row.route is None else msgspec.to_builtins(row.route),
                "spawnedBy": row.spawned_by,
                "archived": row.archived,
                "abortedLastRun": row.aborted_last_run or None,
            }
        )

    def _run(self, run: RunOutcome) -> JsonObject:
        shown = self._view.shown
        return {
            "runId": run.run_id,
            "sessionKey": run.session_key,
            "sessionId": run.session_id,
            "step": run.step,
            "status": run.status,
            "attempt": run.attempt,
            "queuedAt": run.queued_ms,
            "accepted": run.accepted,
            "position": run.position,
        } | present(
            {
                "turn": run.turn,
                "startedAt": run.started_ms,
                "endedAt": run.ended_ms,
                "reply": shown(run.reply, run.session_key),
                "code": run.code,
                "error": shown(run.error, run.session_key),
                "model": run.model,
                "usage": None if run.usage is None else msgspec.to_builtins(run.usage),
                "exchangeId": run.exchange_id,
                "spawnId": run.spawn_id,
            }
        )

    def _exchange(self, flow: ExchangeSummary) -> JsonObject:
        return {
            "exchangeId": flow.exchange_id,
            "runId": flow.run_id,
            "requester": flow.requester or flow.caller,
            "target": flow.target,
            "state": "open" if flow.is_open else "closed",
            "turns": flow.turns,
            "maxTurns": flow.max_turns,
            "acceptedAt": flow.accepted_ms,
            "accepted": flow.accepted,
            "position": flow.position,
        } | present(
            {
                "awaits": flow.awaits,
                "primaryStatus": flow.primary_status,
                "loopEnd": flow.end_reason,
                "limit": flow.limit,
                "deliveryId": flow.delivery_id,
                "closeReason": flow.close_reason,
                "closedAt": flow.closed_ms,
                "inferred": flow.inferred or None,
            }
        )

    def _spawn(self, flow: SpawnSummary) -> JsonObject:
        return {
            "spawnId": flow.spawn_id,
            "runId": flow.run_id,
            "requester": flow.asker,
            "child": flow.child,
            "state": "open" if flow.is_open else "closed",
            "mode": flow.mode,
            "acceptedAt": flow.accepted_ms,
            "accepted": flow.accepted,
            "position": flow.position,
        } | present(
            {
                "label": flow.label,
                "awaits": flow.awaits,
                "status": flow.status,
                "endedAt": flow.ended_ms,
                "deliveryId": flow.delivery_id,
                "closeReason": flow.close_reason,
                "closedAt": flow.closed_ms,
                "archived": flow.archived,
            }
        )

    def _delivery(self, row: DeliverySummary) -> JsonObject:
        return {
            "deliveryId": row.delivery_id,
            "sessionKey": row.session_key,
            "channel": row.channel,
            "purpose": row.purpose,
            "state": row.state,
            "attempt": row.attempt,
            "accepted": row.accepted,
            "position": row.position,
        } | present({"runId": row.run_id, "owner": row.owner, "retryAt": row.retry_at_ms})


# --- what differs

_NAMES: Final = {
    "sessions": "key",
    "transcript": "id",
    "runs": "runId",
    "exchanges": "exchangeId",
    "spawns": "spawnId",
    "deliveries": "deliveryId",
}
"""What the items of each list are told apart by."""


def _compared(answer: StateAnswer) -> JsonObject:
    compared: JsonObject = {**answer}
    for place in ("place", "next"):
        del compared[place]
    return compared


def _changes(before: JsonValue, after: JsonValue, path: str = "", name: str = "") -> Iterator[Change]:
    if before == after:
        return
    old, new = _by_name(before, name), _by_name(after, name)
    if old is None or new is None:
        yield {"path": path, "before": before, "after": after}
        return
    for inner in dict.fromkeys((*old, *new)):
        where = f"{path}/{_escaped(inner)}" if path else inner
        yield from _changes(old.get(inner), new.get(inner), where, inner)


def _escaped(name: str) -> str:
    """Return a name as JSON pointers have it (RFC 6901), so that the parts of a path can be told apart."""
    return name.replace("~", "~0").replace("/", "~1")


def _by_name(value: JsonValue, name: str) -> Mapping[str, JsonValue] | None:
    """Return what has names inside a value: fields of an object, items of a list by their ids."""
    if is_object(value):
        return value
    if is_list(value) and name in _NAMES:
        # What is open is listed by ids alone.
        return {str(item[_NAMES[name]] if is_object(item) else item): item for item in value}
    return None
