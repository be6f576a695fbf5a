"""Which session a caller of the gateway means, and whether it reaches it (VIS-6, KEY-9)."""

from intersession_actors.errors import ToolRefused
from intersession_actors.policy import Operation
from intersession_actors.service import GatewayCaller, Resolved, Service, TargetRefused, resolve_target
from intersession_events.facts import SessionOpened
from intersession_events.keys import KeyReference, SessionKey, refer
from intersession_projections.run_outcomes import RunOutcome


class Targets:
    """Finds sessions and runs as the operator does, and refuses what a caller does not reach."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def seen(
        self, caller: GatewayCaller, text: str, operation: Operation, *, field: str = "sessionKey"
    ) -> Resolved:
        """Return a session that is there.

        Raises:
            ToolRefused: it is not, or is beyond reach (`not_visible`); or this is no key.
        """
        found = self._resolved(caller, text, operation, field)
        caller.check(found.key, text)
        caller.saw(str(found.key))
        return found

    def opened(
        self,
        caller: GatewayCaller,
        text: str | None,
        agent_id: str | None = None,
        *,
        field: str = "sessionKey",
    ) -> SessionKey:
        """Return the session that is meant; one of a configured agent that is not there yet can be opened (KEY-9).

        Without a text it is the agent's main session, without an agent the default agent's.

        Raises:
            ToolRefused: as `seen`; or the agent is not configured, or is another one than the key's.
        """
        service = self._service
        if text is None:
            agent = agent_id or service.config.default_agent
            self._check_agent(agent)
            key = service.main_key(agent)
            caller.check(key, str(key))
            return key
        key = self._key_of(caller, text, field)
        caller.check(key, text)
        if agent_id is not None and agent_id != key.agent_id and service.config.session.scope != "global":
            raise ToolRefused(
                "invalid_request",
                f"agentId: the session is one of {key.agent_id!r}, give that or leave it out",
            )
        return key

    def opening(self, key: SessionKey) -> SessionOpened:
        """Return the event that opens a session for the operator."""
        return self._service.opening(key, by="operator")

    def run(self, caller: GatewayCaller, run_id: str) -> RunOutcome:
        """Return a run by its id, or by the caller's own idempotency key, else by anybody's (GATE-1).

        Raises:
            ToolRefused: there is none within reach (`unknown_run`).
        """
        runs = self._service.runs
        found = runs.get(run_id)
        if found is None:
            by_key = runs.by_any_key(run_id, caller.name) or runs.by_any_key(run_id)
            found = None if by_key is None else runs.get(by_key)
        if found is None or not caller.reaches(self._service.reader.parse(found.session_key)):
            caller.was_denied(run_id, "unknown_run")
            raise ToolRefused(
                "unknown_run", f"runId: there is no run {run_id[:128]!r}, use one that was answered"
            )
        return found

    def _resolved(self, caller: GatewayCaller, text: str, operation: Operation, field: str) -> Resolved:
        service = self._service
        try:
            return resolve_target(service.reader, service.requester(None), text, operation, field=field)
        except TargetRefused as refused:
            if refused.named is not None:
                caller.check(refused.named, text)
            raise

    def _key_of(self, caller: GatewayCaller, text: str, field: str) -> SessionKey:
        service = self._service
        try:
            return self._resolved(caller, text, "send", field).key
        except ToolRefused as refused:
            if refused.code != "not_visible":
                raise
            reference = refer(
                text,
                requester_agent=None,
                default_agent=service.config.default_agent,
                main_key=service.config.session.main_key,
                scope=service.config.session.scope,
            )
            if (
                not isinstance(reference, KeyReference)
                or reference.key.agent_id not in service.config.agent_ids
            ):
                raise
            return reference.key

    def _check_agent(self, agent_id: str) -> None:
        known = self._service.config.agent_ids
        if agent_id not in known:
            raise ToolRefused(
                "unknown_agent",
                f"agentId: {agent_id[:128]!r} is not configured, use one of {', '.join(known)}",
            )
