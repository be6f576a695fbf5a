"""Makes the events `agent` and `chat`, which tell connections of runs, from committed events. Pure.

Each run counts its own events from 1. Whatever is told here was durable before, but for what agents say in pieces (STREAM-4).
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from intersession_actors.outside.agents.pieces import Utterance
from intersession_actors.rules.prompt.silence import shown_text, visible_text
from intersession_events import facts
from intersession_events.basics.ids import SESSIONS
from intersession_events.basics.plain_json import JsonMapping, JsonObject
from intersession_events.log.recorded import Recorded
from intersession_projections.views.run_outcomes.outcome import RunRequest, asked_in

MOST_RUNS: Final = 10_000


class RunEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event of a session. `tools`: only for clients that asked to see tool calls. `asked`: the caller that asked for the run.

    `position` None: it is of an agent that says its answer in pieces, in an `attempt`, and of no event of the log.
    """

    name: str
    session_key: str
    position: int | None
    payload: JsonObject
    tools: bool = False
    asked: RunRequest | None = None
    attempt: int | None = None


class _Progress(msgspec.Struct):
    """How far a run got, as far as it was told here."""

    seq: int = 0
    started_ms: int | None = None
    text: str = ""
    in_pieces: bool = False
    """Whether the attempt says its answer in pieces: the texts that it records are among them."""
    asked: RunRequest | None = None


class RunEvents:
    """Makes the events of runs, in order. `asked` looks up the caller of a run that was queued earlier."""

    def __init__(self, asked: Callable[[str], RunRequest | None] = lambda _: None) -> None:
        self._asked = asked
        self._runs: OrderedDict[str, _Progress] = OrderedDict()

    @property
    def under_way(self) -> int:
        """How many runs are open."""
        return len(self._runs)

    def knows(self, recorded: Recorded) -> bool:
        """Whether an event belongs to an open run."""
        match recorded.event:
            case (
                facts.MessageRecorded()
                | facts.RunStarted()
                | facts.RunInterrupted()
                | facts.RunCompleted()
                | facts.RunFailed()
                | facts.RunAborted() as event
            ):
                return facts.run_named(event) in self._runs
            case _:
                return False

    def events_for(self, recorded: Recorded) -> Iterator[RunEvent]:
        """Yield the events for connections from a committed event."""
        if not recorded.stream.startswith(SESSIONS):
            return
        message = facts.message_in(recorded.event)
        if message is not None and message.run_id is not None:
            yield from self._message(recorded, message.run_id, message)
        elif message is not None and message.model == "gateway-injected":
            yield _injected(recorded, message)
        match recorded.event:
            case facts.RunQueued() as event:
                self._keep(event.run_id, _Progress(asked=asked_in(event)))
            case facts.RunStarted() as event:
                progress = self._progress(event.run_id)
                progress.started_ms, progress.text, progress.in_pieces = recorded.time, "", False
                data: JsonObject = {"phase": "start", "startedAt": recorded.time, "attempt": event.attempt}
                yield self._agent(recorded, event.run_id, "lifecycle", data)
            case facts.RunCompleted() as event:
                fields: JsonObject = {"state": "final"} | _message_of(event.reply, recorded.time)
                fields |= {} if event.usage is None else {"usage": msgspec.to_builtins(event.usage)}
                fields |= {} if event.stop_reason is None else {"stopReason": event.stop_reason}
                yield from self._ended(recorded, event.run_id, {"phase": "end"}, fields)
            case facts.RunFailed() as event:
                fields = {"state": "error", "errorMessage": event.error}
                yield from self._ended(
                    recorded, event.run_id, {"phase": "error", "error": event.error}, fields
                )
            case facts.RunAborted() as event:
                fields = {"state": "aborted", "stopReason": "aborted"}
                fields |= (
                    {} if event.into is None else {"stopReason": "collected", "collectedInto": event.into}
                )
                fields |= _message_of(event.partial, recorded.time)
                yield from self._ended(recorded, event.run_id, {"phase": "end", "aborted": True}, fields)
            case facts.RunInterrupted() as event:
                data = {"phase": "interrupted", "attempt": event.attempt}
                yield self._agent(recorded, event.run_id, "lifecycle", data)
            case _:
                pass

    def pieces(self, run_id: str, shown: Utterance, now_ms: int) -> list[RunEvent]:
        """Return the events of what an agent has said in pieces so far; none while nothing of it may be shown."""
        text, progress = shown_text(shown.text), self._progress(run_id)
        progress.in_pieces = True
        if text in {"", progress.text}:
            return []
        delta = text.removeprefix(progress.text)
        progress.text, progress.seq = text, progress.seq + 1
        return _of_pieces(run_id, shown, progress, (text, delta), now_ms)

    def so_far(self, run_id: str, shown: Utterance, now_ms: int) -> list[RunEvent]:
        """Return the same for a listener that has heard nothing of the run; it counts as what was told last."""
        text = shown_text(shown.text)
        return _of_pieces(run_id, shown, self._progress(run_id), (text, text), now_ms) if text else []

    def _message(self, recorded: Recorded, run_id: str, message: facts.Message) -> Iterator[RunEvent]:
        if message.role == "toolResult":
            data = {
                "phase": "result",
                "toolCallId": message.tool_call_id,
                "name": message.tool_name,
                "isError": bool(message.is_error),
                "result": facts.text_of(message),
            }
            yield self._agent(recorded, run_id, "tool", data, tools=True)
            return
        if message.role != "assistant":
            return
        blocks = () if isinstance(message.content, str) else message.content
        text = facts.text_of(message)
        known = self._runs.get(run_id)
        if visible_text(text) is not None and not (known is not None and known.in_pieces):
            progress = self._progress(run_id)
            progress.text = f"{progress.text}\n{text}" if progress.text else text
            yield self._agent(recorded, run_id, "assistant", {"text": progress.text, "delta": text})
            yield self._chat(
                recorded, run_id, {"state": "delta", "message": _said(progress.text, recorded.time)}
            )
        for block in blocks:
            if isinstance(block, facts.ToolCallBlock):
                data = {"phase": "start", "toolCallId": block.id, "name": block.name, "args": block.arguments}
                yield self._agent(recorded, run_id, "tool", data, tools=True)

    def _progress(self, run_id: str) -> _Progress:
        progress = self._runs.get(run_id)
        if progress is None:
            progress = self._keep(run_id, _Progress(asked=self._asked(run_id)))
        return progress

    def _keep(self, run_id: str, progress: _Progress) -> _Progress:
        self._runs[run_id] = progress
        if len(self._runs) > MOST_RUNS:
            self._runs.popitem(last=False)
        return progress

    def _ended(
        self, recorded: Recorded, run_id: str, data: JsonObject, fields: JsonMapping
    ) -> Iterator[RunEvent]:
        started = self._progress(run_id).started_ms
        data = data | {"endedAt": recorded.time} | ({} if started is None else {"startedAt": started})
        yield self._agent(recorded, run_id, "lifecycle", data)
        yield self._chat(recorded, run_id, fields)
        self._runs.pop(run_id, None)

    def _agent(
        self, recorded: Recorded, run_id: str, stream: str, data: JsonMapping, *, tools: bool = False
    ) -> RunEvent:
        progress = self._progress(run_id)
        progress.seq += 1
        fields = {"stream": stream, "ts": recorded.time, "data": data}
        return _event("agent", recorded, run_id, progress, fields, tools=tools)

    def _chat(self, recorded: Recorded, run_id: str, fields: JsonMapping) -> RunEvent:
        return _event("chat", recorded, run_id, self._progress(run_id), fields)


def _event(
    name: str,
    recorded: Recorded,
    run_id: str,
    progress: _Progress,
    fields: JsonMapping,
    *,
    tools: bool = False,
) -> RunEvent:
    key = recorded.stream.removeprefix(SESSIONS)
    return RunEvent(
        name=name,
        session_key=key,
        position=recorded.position,
        payload={"runId": run_id, "sessionKey": key, "seq": progress.seq, **fields},
        tools=tools,
        asked=progress.asked,
    )


def _of_pieces(
    run_id: str, shown: Utterance, progress: _Progress, said: tuple[str, str], now_ms: int
) -> list[RunEvent]:
    text, delta = said
    agent: JsonObject = {"stream": "assistant", "ts": now_ms, "data": {"text": text, "delta": delta}}
    chat: JsonObject = {"state": "delta", "message": _said(text, now_ms)}
    head: JsonObject = {"runId": run_id, "sessionKey": shown.session_key, "seq": progress.seq}
    return [
        RunEvent(
            name=name,
            session_key=shown.session_key,
            position=None,
            payload=head | fields,
            asked=progress.asked,
            attempt=shown.attempt,
        )
        for name, fields in (("agent", agent), ("chat", chat))
    ]


def _injected(recorded: Recorded, message: facts.Message) -> RunEvent:
    fields = {"state": "final", "message": _said(facts.text_of(message), recorded.time)}
    return _event("chat", recorded, f"inject-{message.id}", _Progress(), fields)


def _message_of(reply: str | None, time_ms: int) -> JsonObject:
    text = visible_text(reply)
    return {} if text is None else {"message": _said(text, time_ms)}


def _said(text: str, time_ms: int) -> JsonObject:
    return {"role": "assistant", "content": [{"type": "text", "text": text}], "timestamp": time_ms}
