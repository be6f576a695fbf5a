"""What stood at a place of a log: sessions, runs, flows, what was open, what was in force. The verb `state` answers it (PLACE-3)."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, NotRequired, TypedDict

import msgspec

from intersession_actors.debugger.answers import PlaceAnswer
from intersession_actors.debugger.view import View, settings_of
from intersession_actors.disclosure import shown_messages
from intersession_actors.exchange import Exchange, exchange_in
from intersession_actors.policy import Speaker, judge_send
from intersession_actors.spawn import spawn_in
from intersession_events.facts import SessionArchived
from intersession_events.ids import session_stream
from intersession_events.log import Recorded
from intersession_events.plain_json import JsonObject, present
from intersession_projections.flows import DeliverySummary, ExchangeSummary, SpawnSummary, Summary
from intersession_projections.frozen import frozen_in
from intersession_projections.places import Flow, Located, Then, flow_sessions, flow_stream
from intersession_projections.run_outcomes import RunOutcome
from intersession_projections.sessions import SessionRow, Wanted
from intersession_projections.spans import Span, backwards


class OpenAnswer(TypedDict):
    """The ids of what was not over at a place."""

    runs: list[str]
    exchanges: list[str]
    spawns: list[str]
    deliveries: list[str]


def open_in(found: Sequence[RunOutcome | Summary]) -> OpenAnswer:
    """Return the ids of what was not over."""
    return {
        "runs": [run.run_id for run in found if isinstance(run, RunOutcome)],
        "exchanges": [flow.exchange_id for flow in found if isinstance(flow, ExchangeSummary)],
        "spawns": [flow.spawn_id for flow in found if isinstance(flow, SpawnSummary)],
        "deliveries": [row.delivery_id for row in found if isinstance(row, DeliverySummary)],
    }


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


class _Part(NamedTuple):
    """A part of a log: its sessions, runs and flows, and texts that went outside.

    `run_ids` is set for a flow or a run alone, `keys` for some sessions.
    """

    rows: list[SessionRow]
    runs: list[RunOutcome]
    flows: Sequence[ExchangeSummary | SpawnSummary]
    deliveries: Sequence[DeliverySummary] = ()
    run_ids: set[str] | None = None
    stream: str | None = None
    keys: frozenset[str] | None = None


def _stream_of(one: RunOutcome | Summary) -> str | None:
    """Return the stream of the exchange or spawn that something is, or is sent for."""
    match one:
        case ExchangeSummary() | SpawnSummary():
            return one.stream
        case DeliverySummary():
            return one.owner
        case RunOutcome():
            return None


class Standing:
    """What stands at a place, as a view shows it: at most `limit` of a kind, and `messages` of each transcript."""

    def __init__(self, view: View, place: Located, *, limit: int, messages: int) -> None:
        self._view = view
        self._place = place
        self._then = Then(view.log, place.position)
        self._frozen = frozen_in(view.log, place.position)
        self._limit = limit
        self._messages = messages
        # Where nothing was recorded, the settings of whoever reads are the best guess.
        self._config = view.config_at(place.position) or view.reader.config

    def of(self, subject: str | Flow | None) -> StateAnswer:
        """Return the state of the whole log, of a session, or of a flow."""
        view, place = self._view, self._place
        flow = None if isinstance(subject, str) else subject
        part = self._part(subject)
        open_ = [
            one for one in (*self._then.open_runs(), *self._then.open_flows()) if self._is_open_in(part, one)
        ]
        sent = {
            row.delivery_id: row for row in (*part.deliveries, *open_) if isinstance(row, DeliverySummary)
        }
        flows = list(zip(part.flows, self._then.events_of([flow.stream for flow in part.flows]), strict=True))
        answer: StateAnswer = {
            "place": view.say(place, flow),
            "next": view.say_next(place, flow),
            "sessions": [self._session(row) for row in part.rows],
            "runs": [self._run(run) for run in part.runs if view.is_seen(run.session_key)],
            "exchanges": [
                self._exchange(flow, events) for flow, events in flows if isinstance(flow, ExchangeSummary)
            ],
            "spawns": [self._spawn(flow, events) for flow, events in flows if isinstance(flow, SpawnSummary)],
            "deliveries": [self._delivery(row) for row in sent.values()],
            "open": open_in(open_),
        }
        recorded = view.recorded_config(place.position) if view.is_operator else None
        if recorded is not None:
            answer["config"] = {"digest": recorded.digest, "settings": settings_of(recorded)}
        return answer

    def _part(self, subject: str | Flow | None) -> "_Part":
        """Return which part of the log is asked for."""
        then = self._then
        match subject:
            case ExchangeSummary() | SpawnSummary():
                stream = flow_stream(subject) or ""
                flow = (
                    then.exchange(subject.exchange_id)
                    if isinstance(subject, ExchangeSummary)
                    else then.spawn(subject.spawn_id)
                )
                runs = then.runs_of(stream)
                sent = [
                    *then.deliveries_of(stream),
                    *(row for run in runs for row in then.deliveries_of_run(run.run_id)),
                ]
                rows = list(self._rows(flow_sessions(subject)))
                return _Part(
                    rows, runs, [] if flow is None else [flow], sent, {run.run_id for run in runs}, stream
                )
            case RunOutcome():
                run = then.run(subject.run_id)
                sent = then.deliveries_of_run(subject.run_id)
                rows = list(self._rows(flow_sessions(subject)))
                return _Part(rows, [] if run is None else [run], [], sent, {subject.run_id})
            case str():
                return self._sessions((subject,), list(self._rows((subject,))))
            case None if self._view.is_operator:
                flows: list[ExchangeSummary | SpawnSummary] = []
                flows += then.exchanges(self._limit)
                flows += then.spawns(self._limit)
                return _Part(list(self._rows(None)), then.runs(self._limit), flows)
            case None:
                # What others do must not push what is seen off the list.
                rows = list(self._rows(None))
                return self._sessions([row.key for row in rows], rows)

    def _sessions(self, keys: Sequence[str], rows: list[SessionRow]) -> "_Part":
        then, limit = self._then, self._limit
        runs = [run for key in keys for run in then.runs(limit, key)]
        flows: dict[int, ExchangeSummary | SpawnSummary] = {}
        for key in keys:
            flows |= {flow.accepted: flow for flow in then.exchanges(limit, key)}
            flows |= {flow.accepted: flow for flow in then.spawns(limit, key)}
        newest = sorted(flows.values(), key=lambda flow: -flow.accepted)
        shown = sorted(runs, key=lambda run: -run.accepted)[:limit]
        return _Part(rows, shown, newest[:limit], keys=frozenset(keys))

    def _is_open_in(self, part: "_Part", one: RunOutcome | Summary) -> bool:
        """Whether something that was not over is of the part that is asked for: of its runs, else of its sessions."""
        sessions = (one.session_key,) if isinstance(one, DeliverySummary) else flow_sessions(one)
        if not any(map(self._view.is_seen, sessions)):
            return False
        if part.run_ids is not None:
            # What was imported has no runs.
            return one.run_id in part.run_ids or (part.stream is not None and part.stream == _stream_of(one))
        return part.keys is None or not part.keys.isdisjoint(sessions)

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
                "archivedBy": self._archiver(row),
                "abortedLastRun": row.aborted_last_run or None,
            }
        )

    def _archiver(self, row: SessionRow) -> str | None:
        """Return who deleted a session; None where nobody did, or the log does not say who."""
        if row.archived != "deleted":
            return None
        behind = backwards(self._view.log, Span(to=self._place.position), session_stream(row.key))
        return next((one.event.by for one in behind if isinstance(one.event, SessionArchived)), None)

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
                "frozen": self._frozen.holds(run) or None,
            }
        )

    def _exchange(self, flow: ExchangeSummary, events: Sequence[Recorded]) -> JsonObject:
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
                "frozen": self._frozen.holds(flow) or None,
            }
            | self._decided_exchange(flow, events)
        )

    def _decided_exchange(self, flow: ExchangeSummary, events: Sequence[Recorded]) -> JsonObject:
        """Return what the coordinator knew of an exchange: what it waited for, the words it would hand on, and its settings."""
        decided = exchange_in(events)
        if decided is None:
            return {}
        settings = decided.accepted.settings
        return {
            "phase": decided.phase,
            "latest": self._view.shown(decided.latest, flow.target),
            **self._held(decided),
            "settings": {
                "maxTurns": settings.max_turns,
                "turnTimeoutMs": settings.turn_timeout_ms,
                "announce": settings.announce,
                "hold": settings.hold,
            },
        }

    def _held(self, decided: Exchange) -> JsonObject:
        """Return what stood still there, and for whose word (LIVE-1)."""
        held, asked = decided.held, decided.asked
        value: JsonObject = {} if asked is None else {"hold": asked.before}
        if held is None or decided.phase not in {"held", "released"}:
            return value
        return value | {
            "held": present(
                {
                    "holdId": held.hold_id,
                    "step": held.step,
                    "text": self._view.shown(held.text, held.speaker),
                    "speaker": held.speaker,
                    "to": held.to,
                    "by": held.by,
                    "since": held.since_ms,
                }
            )
        }

    def _spawn(self, flow: SpawnSummary, events: Sequence[Recorded]) -> JsonObject:
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
                "frozen": self._frozen.holds(flow) or None,
            }
            | self._decided_spawn(flow, events)
        )

    def _decided_spawn(self, flow: SpawnSummary, events: Sequence[Recorded]) -> JsonObject:
        """Return what the spawner knew of a spawn: what it waited for, and what the child had come to."""
        decided = spawn_in(events)
        if decided is None:
            return {}
        return {
            "phase": decided.phase,
            "result": None if decided.ended is None else self._view.shown(decided.ended.text, flow.child),
        }

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
        } | present(
            {
                "runId": row.run_id,
                "owner": row.owner,
                "retryAt": row.retry_at_ms,
                "frozen": self._frozen.holds(row) or None,
            }
        )
