"""The method `runs.retry`: answers the message of a failed run with a new run (GATE-6)."""

from msgspec.structs import replace

from intersession_actors.assembly.methods.params import RetryParams
from intersession_actors.assembly.methods.targets import Targets
from intersession_actors.calls.service.arguments import read_arguments
from intersession_actors.calls.service.asking import MessageRequest, ask_session, reserving
from intersession_actors.calls.service.callers import OPERATOR, Call
from intersession_actors.calls.service.pending import Result
from intersession_actors.calls.service.run_waits import unknown_run
from intersession_actors.calls.service.service import Service
from intersession_actors.owners.session.commands import Enqueue
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.gate.values import invalid
from intersession_events.basics import ids
from intersession_events.basics.plain_json import JsonMapping
from intersession_events.facts import ERASED, Message, RunQueued, text_of
from intersession_projections.questions.messages import Messages
from intersession_projections.views.run_outcomes.outcome import RunOutcome


class GatewayRetries:
    """Retries failed runs."""

    def __init__(self, service: Service, targets: Targets) -> None:
        self._service = service
        self._targets = targets
        self._messages = Messages(service.log)

    def retry(self, call: Call, params: JsonMapping) -> Result:
        """Queue a run that answers the message of a failed one; repeated calls return the same run."""
        given = read_arguments(RetryParams, params)
        service = self._service
        failed = self._targets.run(call, given.run_id)
        tried = service.runs.retry_of(failed.run_id)
        run_id = ids.retry_of(service.log.log_id, failed.run_id) if tried is None else tried.run_id
        if tried is None:
            self._check(failed, given.run_id)
            asked = MessageRequest(run_id, failed.session_key, tool="runs.retry", field="runId")
            with reserving(service, call.caller, asked) as origin:
                queued, message = self._again(call, failed, given.run_id, run_id)
                command = Enqueue(
                    budget=origin.budget,
                    message=message,
                    queue=queued,
                    session_id=failed.session_id,
                    check_policy=not _is_from_a_channel(message),
                    at_most=service.config.runs.inbox_max,
                    causation=next((one.id for one in service.log.at([failed.position])), None),
                )
                ask_session(service, failed.session_key, command)
        accepted = service.runs.get(run_id)
        if accepted is None:
            raise unknown_run(run_id)
        return {
            "runId": run_id,
            "status": "accepted",
            "acceptedAt": accepted.queued_ms,
            "sessionKey": failed.session_key,
            "retryOf": failed.run_id,
        }

    def _check(self, run: RunOutcome, typed: str) -> None:
        """Refuse a run that can't be tried again by itself; `typed` is how it was named.

        Raises:
            ToolRefused: it is part of a flow, is not over, did not fail, or its session is not what it was.
        """
        flow = self._service.flows.flow_of_run(run.run_id)
        if flow is not None or not run.is_alone:
            part = "a part of another call" if flow is None else f"a part of {flow.replace(':', ' ', 1)}"
            raise invalid(
                "runId", f"{typed} is {part}, send or spawn again with a new idempotencyKey instead"
            )
        match run.status:
            case "queued" | "running":
                raise ToolRefused(
                    "busy", f"runId: {typed} is {run.status}, wait for its end or abort it first"
                )
            case "ok":
                raise invalid("runId", f"{typed} did not fail, say it again if there is more to say")
            case "aborted":
                raise invalid("runId", f"{typed} was {run.error}, say it again if it is wanted after all")
            case "error" | "timeout":
                self._check_session(run, typed)

    def _check_session(self, run: RunOutcome, typed: str) -> None:
        row = self._service.sessions.get(run.session_key)
        if row is None or row.archived is not None:
            raise ToolRefused(
                "not_visible",
                f"runId: {run.session_key}, where {typed} failed, is gone, say it again in another session",
            )
        if row.session_id != run.session_id:
            raise ToolRefused(
                "old_generation",
                f"runId: {run.session_key} was reset since {typed} failed, say it again in the new session",
            )

    def _again(self, call: Call, failed: RunOutcome, typed: str, run_id: str) -> tuple[RunQueued, Message]:
        """Return the run, asked for as the failed one was, and its message: the same words of the same speaker.

        Raises:
            ToolRefused: there are no words any more.
        """
        service = self._service
        (said,) = self._messages.of_runs([failed])
        queued = next((one.event for one in service.log.at([failed.accepted])), None)
        if said is None or not isinstance(queued, RunQueued):
            raise invalid("runId", f"the log does not have the message of {typed}, say it again")
        message = said[2]
        if text_of(message) == ERASED:
            raise invalid("runId", f"the message of {typed} was erased, say it again")
        message_id = ids.derive(service.log.log_id, "message", run_id)
        now = service.clock.now_ms()
        again = replace(
            queued,
            run_id=run_id,
            session_id="",
            message=None,
            answers=message_id,
            # A person's message names no limit of its own, so the one that is configured now holds.
            timeout_ms=service.config.run_timeout_ms() if _is_from_a_channel(message) else queued.timeout_ms,
            caller=call.caller.name,
            idempotency_key=None,
            request_digest=None,
            request_digests=(),
            retry_of=failed.run_id,
        )
        return again, replace(message, id=message_id, timestamp=now, run_id=None)


def _is_from_a_channel(message: Message) -> bool:
    """Whether a message came by a channel: of those the send policy is asked at delivery alone (POL-3)."""
    origin = message.provenance
    return origin is not None and origin.source_channel != OPERATOR.name
