"""Each session, run and flow in the answer of `state`: the view's fields, and its owner's knowledge at the time."""

from collections.abc import Collection, Iterator, Sequence

import msgspec

from intersession_actors.hindsight.debugger.view import View
from intersession_actors.owners.exchange import records as exchange_records
from intersession_actors.owners.exchange.exchange import Exchange
from intersession_actors.owners.spawn import records as spawn_records
from intersession_actors.owners.spawn import rules as spawn_rules
from intersession_actors.owners.spawn.rules import Spawn
from intersession_actors.owners.streams.texts import RunTexts, Texts
from intersession_actors.rules.disclosure.capping import shown_messages
from intersession_actors.rules.policy.sending import Speak, Speech, judge_send
from intersession_events.basics.ids import session_stream
from intersession_events.basics.plain_json import JsonObject, present
from intersession_events.facts import SessionArchived
from intersession_events.log.recorded import Recorded, StreamPart
from intersession_projections.basics.spans import Span, backwards
from intersession_projections.copies.forks.frozen_work import frozen_in
from intersession_projections.questions.places.located import Located
from intersession_projections.views.flows.rows import DeliverySummary, ExchangeSummary, SpawnSummary
from intersession_projections.views.run_outcomes.outcome import RunOutcome
from intersession_projections.views.sessions.history import End
from intersession_projections.views.sessions.row import SessionRow


class Values:
    """The state at a place as plain values, for one view: with the last `messages` of each transcript."""

    def __init__(self, view: View, place: Located, *, messages: int) -> None:
        self._view = view
        self._place = place
        self._messages = messages
        self._frozen = frozen_in(view.log, place.position)
        # Where nothing was recorded, the reader's settings are the best guess.
        self._config = view.config_at(place.position) or view.reader.config

    def sessions(self, rows: Sequence[SessionRow]) -> list[JsonObject]:
        """Return sessions, each with the last messages of its transcript."""
        reader = self._view.reader
        ends = reader.history.ends(rows, max(1, self._messages))
        deleted = [row for row in rows if row.archived == "deleted"]
        parts = [StreamPart(session_stream(row.key), row.version - 1, row.version) for row in deleted]
        last = self._view.log.parts(parts) if parts else ()
        by = {row.key: self._archiver(row, events) for row, events in zip(deleted, last, strict=True)}
        return [self._session(row, ends.get(row.key), by.get(row.key)) for row in rows]

    def _session(self, row: SessionRow, end: End | None, archived_by: str | None) -> JsonObject:
        view, reader = self._view, self._view.reader
        key = reader.parse(row.key)
        policy = self._config.session.send_policy
        verdict = judge_send(
            Speak(key=row.key),
            Speech(
                default=policy.default,
                rules=policy.rules,
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
            end=end,
        )
        shown = shown_messages(page.messages, redact=view.is_stranger(row.key))
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
                "archivedBy": archived_by,
                "abortedLastRun": row.aborted_last_run or None,
            }
        )

    def _archiver(self, row: SessionRow, last: Sequence[Recorded]) -> str | None:
        """Return who deleted a session, by its last event or those before; None if the log does not tell."""
        for recorded in last:
            if isinstance(recorded.event, SessionArchived):
                return recorded.event.by
        behind = backwards(self._view.log, Span(to=self._place.position), session_stream(row.key))
        return next((one.event.by for one in behind if isinstance(one.event, SessionArchived)), None)

    def run(self, run: RunOutcome) -> JsonObject:
        """Return a run at its stage."""
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

    def exchanges(self, flows: Sequence[tuple[ExchangeSummary, Sequence[Recorded]]]) -> list[JsonObject]:
        """Return exchanges, each with the coordinator's knowledge from its events."""
        decided = [exchange_records.RULES.state_in(events) for _, events in flows]
        texts = self._replied({run_id for one in decided if one is not None for run_id in _quoted_in(one)})
        return [self._exchange(flow, one, texts) for (flow, _), one in zip(flows, decided, strict=True)]

    def _replied(self, run_ids: Collection[str]) -> Texts:
        """Return what some runs replied, read together."""
        replied, texts = self._view.reader.runs.many(run_ids) if run_ids else {}, Texts()
        for run_id in run_ids:
            run = replied.get(run_id)
            texts.take(run_id, RunTexts(reply=(None if run is None else run.reply) or ""))
        return texts

    def _exchange(self, flow: ExchangeSummary, decided: Exchange | None, texts: Texts) -> JsonObject:
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
            | ({} if decided is None else self._decided_exchange(flow, decided, texts))
        )

    def _decided_exchange(self, flow: ExchangeSummary, decided: Exchange, texts: Texts) -> JsonObject:
        """Return the coordinator's knowledge of an exchange: what it waited for, the text it would pass on, and its settings."""
        settings = decided.accepted.settings
        latest = None if decided.latest is None else decided.latest.read(texts)
        return {
            "phase": decided.phase,
            "latest": self._view.shown(latest, flow.target),
            **self._held(decided, texts),
            "settings": {
                "maxTurns": settings.max_turns,
                "turnTimeoutMs": settings.turn_timeout_ms,
                "announce": settings.announce,
                "hold": settings.hold,
            },
        }

    def _held(self, decided: Exchange, texts: Texts) -> JsonObject:
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
                    "text": self._view.shown(texts.reply(held.run_id or ""), held.speaker),
                    "speaker": held.speaker,
                    "to": held.to,
                    "by": held.by,
                    "since": held.since_ms,
                }
            )
        }

    def spawns(self, flows: Sequence[tuple[SpawnSummary, Sequence[Recorded]]]) -> list[JsonObject]:
        """Return spawns, each with the spawner's knowledge from its events."""
        decided = [spawn_records.RULES.state_in(events) for _, events in flows]
        ended = [one.ended for one in decided if one is not None and one.ended is not None]
        texts = self._replied({one.run_id for one in ended if one.text is None and one.said == "text"})
        return [self._spawn(flow, one, texts) for (flow, _), one in zip(flows, decided, strict=True)]

    def _spawn(self, flow: SpawnSummary, decided: Spawn | None, texts: Texts) -> JsonObject:
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
            | ({} if decided is None else self._decided_spawn(flow, decided, texts))
        )

    def _decided_spawn(self, flow: SpawnSummary, decided: Spawn, texts: Texts) -> JsonObject:
        """Return the spawner's knowledge of a spawn: what it waited for, and the child's state."""
        result = spawn_rules.replied(decided, texts)
        return {"phase": decided.phase, "result": self._view.shown(result, flow.child)}

    def delivery(self, row: DeliverySummary) -> JsonObject:
        """Return a delivery in progress, or its outcome."""
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


def _quoted_in(decided: Exchange) -> Iterator[str]:
    """Yield the runs whose replies an exchange would hand on, or holds."""
    if decided.latest is not None:
        yield decided.latest.run_id
    if decided.held is not None:
        yield decided.held.run_id or ""
