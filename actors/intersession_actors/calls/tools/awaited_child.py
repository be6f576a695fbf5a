"""A sub-agent whose result the call waits for, as text, or as JSON that fits a schema (CHILD-1)."""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, Final, NamedTuple

import msgspec

from intersession_actors.calls.service import asking
from intersession_actors.calls.service.callers import Call
from intersession_actors.calls.service.pending import Pending, Result
from intersession_actors.calls.service.service import Service
from intersession_actors.calls.service.waits import Wait
from intersession_actors.owners.session.commands import Enqueue, message_for
from intersession_actors.rules.errors import Judgement, ToolRefused
from intersession_actors.rules.gate.values import invalid
from intersession_actors.rules.policy.chain import WaitFor, Waits
from intersession_actors.rules.prompt.silence import visible_text
from intersession_actors.running.host.extras import imported
from intersession_events.basics import ids
from intersession_events.basics.plain_json import JsonMapping, JsonValue, is_list_like, is_object
from intersession_events.facts import Provenance, RunQueued, SpawnAccepted
from intersession_projections.views.run_outcomes.outcome import RunOutcome

MOST_SCHEMA: Final = 16_384
"""The longest schema, in bytes of JSON."""

_LATER_S: Final = 0.5
"""How much longer than its time a call waits, so that what came in the last moment is not missed."""
_SHOWN: Final = 2_000

_NO_PATTERNS: Final = frozenset({"pattern", "patternProperties", "$dynamicRef"})
"""A pattern can take for ever to match, and a model writes it."""


def check_schema(schema: JsonMapping) -> None:
    """Refuse an invalid schema, one that is too long, and one that could take for ever.

    Raises:
        ToolRefused: it is refused (`invalid_request`, `too_large`), or jsonschema is not installed (`not_supported`).
    """
    if len(msgspec.json.encode(schema)) > MOST_SCHEMA:
        raise ToolRefused("too_large", f"outputSchema: more than {MOST_SCHEMA} bytes, give a shorter one")
    for name, value in _keywords(schema):
        if name in _NO_PATTERNS or (name == "$ref" and not str(value).startswith("#")):
            raise invalid("outputSchema", f"{name} is not taken, describe the value without it")
    library = _library()
    try:
        library.Draft202012Validator.check_schema(schema)
    except library.SchemaError as error:
        raise invalid("outputSchema", f"it is no JSON schema: {error.message[:_SHOWN]}, mend it") from None


def _library() -> Any:  # jsonschema has no types of its own
    return imported("jsonschema", what="outputSchema", library="jsonschema", extra="models")


def _keywords(value: JsonValue) -> "list[tuple[str, JsonValue]]":
    found: list[tuple[str, JsonValue]] = []
    left = [value]
    while left:
        one = left.pop()
        if is_object(one):
            found += one.items()
            left += one.values()
        elif is_list_like(one):
            left += one
    return found


def with_schema(task: str, schema: JsonMapping) -> str:
    """Return a task that says in which form its result is wanted."""
    return f"{task}\n\nAnswer with JSON alone that fits this schema: {msgspec.json.encode(schema).decode()}"


class AwaitedChild(NamedTuple):
    """A call that waits: for which child, for how many seconds, and for JSON that fits `schema` if that is given.

    `answer` is what the call would say if it did not wait.
    """

    service: Service
    call: Call
    accepted: SpawnAccepted
    answer: Result
    seconds: float
    schema: JsonMapping | None

    def result(self) -> Pending:
        """Return the wait for the child's result.

        Raises:
            ToolRefused: the child waits for the caller already (`cycle`).
        """
        return self._end_of(self.accepted.run_id, self._of_first)

    def _end_of(self, run_id: str, finish: Callable[[RunOutcome | None], Result | Pending]) -> Pending:
        """Return the wait for a run of the child; `finish` gets its outcome, None if it did not end in time."""
        service, wait = self.service, self._begin_wait()
        future = service.waits.expect(run_id)
        if wait is not None:
            wait.give_up = partial(service.waits.finish, run_id, future)
        if service.runs.has_ended(run_id):
            service.waits.finish(run_id, future)

        def over() -> None:
            service.waits.forget(run_id, future)
            if wait is not None:
                service.wait_graph.end(wait)

        return Pending(
            future=future,
            timeout=self.seconds + _LATER_S,
            finish=lambda: finish(service.runs.get(run_id)),
            in_vain=self._timeout,
            over=over,
        )

    def _begin_wait(self) -> Wait | None:
        caller, child = self.call.caller, self.accepted.child
        if caller.key is None:
            return None
        calling = None if caller.run is None else caller.run.run_id
        begun = self.service.wait_graph.begin(
            caller.key, child, seconds=self.seconds + _LATER_S, run_id=calling
        )
        if not isinstance(begun, tuple):
            return begun
        error = f"wait: it would close a cycle ({' -> '.join(begun)}), spawn without wait"
        asked = WaitFor(requester=caller.key, target=child)
        raise ToolRefused("cycle", error, judged=Judgement(asked, Waits(waits=tuple(pairwise(begun[:-1])))))

    def _of_first(self, outcome: RunOutcome | None) -> Result | Pending:
        if outcome is None or not outcome.ended:
            return self._timeout()
        if outcome.status != "ok":
            return self._failed(outcome)
        reply = visible_text(outcome.reply)
        if self.schema is None:
            return self.answer | {"status": "ok", "reply": reply or ""}
        output, why = _fitted(reply, self.schema)
        if why is None:
            return self.answer | {"status": "ok", "output": output}
        return self._end_of(self._ask_again(why, self.schema), self._of_second)

    def _of_second(self, outcome: RunOutcome | None) -> Result:
        if outcome is None or not outcome.ended:
            return self._timeout()
        if outcome.status != "ok":
            return self._failed(outcome)
        reply = visible_text(outcome.reply)
        output, why = _fitted(reply, self.schema or {})
        if why is None:
            return self.answer | {"status": "ok", "output": output}
        error = f"the sub-agent's answer does not fit outputSchema, also when it was told so: {why}"
        return self.answer | {"status": "error", "error": error, "reply": (reply or "")[:_SHOWN]}

    def _timeout(self) -> Result:
        error = f"no result within {self.seconds:g} s; the run goes on, and its result is announced"
        return self.answer | {"status": "timeout", "error": error}

    def _failed(self, outcome: RunOutcome) -> Result:
        return self.answer | {"status": "error", "error": outcome.error or outcome.status}

    def _ask_again(self, why: str, schema: JsonMapping) -> str:
        """Tell the child that its answer does not fit; return the run that answers, which is the same if asked again."""
        service, accepted, caller = self.service, self.accepted, self.call.caller
        log_id = service.log.log_id
        run_id = ids.derive(log_id, "run", accepted.run_id, "fit")
        if service.runs.get(run_id) is not None:
            return run_id
        text = with_schema(f"Your answer does not fit: {why}. Answer once more.", schema)
        asked = asking.MessageRequest(run_id, accepted.child, tool="sessions_spawn", field="outputSchema")
        with asking.reserving(service, caller, asked) as origin:
            queued = RunQueued(
                run_id=run_id,
                session_id="",
                step="message",
                answers=ids.derive(log_id, "message", run_id),
                timeout_ms=accepted.run_timeout_ms,
                caller=caller.name,
            )
            said_by = Provenance(
                kind="inter_session",
                source_session_key=caller.key,
                source_tool="sessions_spawn",
                hops=origin.budget.hops,
            )
            command = Enqueue(
                budget=origin.budget,
                message=message_for(queued, text, said_by, service.clock.now_ms()),
                queue=queued,
                causation=origin.causation,
                session_id=accepted.child_session_id,
            )
            asking.ask_session(service, accepted.child, command)
        return run_id


def _fitted(reply: str | None, schema: JsonMapping) -> tuple[JsonValue, str | None]:
    """Return the JSON in a reply, and why it does not fit."""
    if reply is None:
        return None, "there is no text"
    text = reply.strip()
    if text.startswith("```") and text.endswith("```"):
        text = text.removesuffix("```").partition("\n")[2]
    try:
        value: JsonValue = msgspec.json.decode(text)
    except (ValueError, RecursionError) as failed:
        return None, f"it is no JSON ({failed})"
    flaw = next(iter(_library().Draft202012Validator(schema).iter_errors(value)), None)
    return value, None if flaw is None else f"{flaw.json_path}: {flaw.message[:_SHOWN]}"
