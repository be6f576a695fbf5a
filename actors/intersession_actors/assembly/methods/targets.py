"""Finds the session, the run or the route that a caller of the gateway means, and refuses what it does not reach (VIS-6, KEY-9)."""

from collections.abc import Iterator

from msgspec.structs import replace

from intersession_actors.calls.service.asking import opening
from intersession_actors.calls.service.callers import Call
from intersession_actors.calls.service.deliveries import route_of
from intersession_actors.calls.service.resolve import Resolved, TargetRefused, resolve_target
from intersession_actors.calls.service.run_waits import unknown_run
from intersession_actors.calls.service.service import Service
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.gate.limits import RUN
from intersession_actors.rules.gate.values import invalid
from intersession_actors.rules.policy.access import Operation, not_visible
from intersession_events.basics.errors import InvalidKey
from intersession_events.basics.keys.key import SessionKey
from intersession_events.basics.keys.references import IdReference, KeyReference, LookupMiss
from intersession_events.facts import Route, SessionOpened
from intersession_projections.views.run_outcomes.outcome import RunOutcome


class Targets:
    """Finds sessions, runs and routes as the operator does, and refuses what a caller does not reach."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def seen(self, call: Call, text: str, operation: Operation, *, field: str = "sessionKey") -> Resolved:
        """Return an existing session.

        Raises:
            ToolRefused: it is not, or is beyond reach (`not_visible`); or this is no key.
        """
        found = self._resolved(call, text, operation, field)
        call.check(found.key, text)
        call.saw(str(found.key))
        return found

    def seen_or_main(self, call: Call, text: str) -> Resolved:
        """Return a session for its history; a configured agent's main session need not exist yet.

        A terminal reads the history first and speaks then, which is what opens the session.

        Raises:
            ToolRefused: as `seen`.
        """
        try:
            return self.seen(call, text, "history")
        except ToolRefused as refused:
            if refused.code != "not_visible":
                raise
            key = self._of_configured_agent(text)
            if key is None or not key.is_main or not call.caller.reaches(key):
                raise
            return Resolved(key=key, shown=str(key), row=None, session_id=None)

    def opened(
        self, call: Call, text: str | None, agent_id: str | None = None, *, field: str = "sessionKey"
    ) -> SessionKey:
        """Return a session; one of a configured agent that does not exist yet can be opened (KEY-9).

        Without a text it is the agent's main session, without an agent the default agent's. A limited credential opens
        no session of a chat: its key says where its words go, and only what comes from there shows that it is meant.

        Raises:
            ToolRefused: as `seen`; or the agent is not configured, or is another one than the key's.
        """
        service = self._service
        if text is None:
            agent = agent_id or self.default_agent(call)
            self._check_agent(call, agent)
            key = service.reader.main_key(agent)
            call.check(key, agent_id or str(key))
            return key
        key = self._key_of(call, text, field)
        call.check(key, text)
        if not call.caller.is_operator and key.chat_type is not None:
            row = service.sessions.get(str(key))
            if row is None or row.archived is not None:
                call.was_denied(text, "not_visible")
                raise ToolRefused("not_visible", not_visible(text))
        if agent_id is not None and agent_id != key.agent_id and service.config.session.scope != "global":
            raise invalid("agentId", f"the session is one of {key.agent_id!r}, give that or leave it out")
        return key

    def is_named(self, key: SessionKey, text: str | None, agent_id: str | None) -> bool:
        """Whether a text names this session, present or not; without a text, its agent's main session."""
        reader = self._service.reader
        if text is None:
            return key == reader.main_key(agent_id or reader.config.default_agent)
        try:
            reference = reader.config.refer(text)
        except InvalidKey:
            return False
        match reference:
            case KeyReference():
                return reference.key == key
            case IdReference():
                found = reader.sessions.by_session_id(reference.text)
                return found is not None and found.key == str(key)
            case LookupMiss():
                return False

    def opening(self, call: Call, key: SessionKey) -> SessionOpened:
        """Return the event that opens a session for a gateway's caller."""
        return replace(opening(self._service, key, by="operator"), by=call.caller.name)

    def run(self, call: Call, run_id: str) -> RunOutcome:
        """Return a run by its id, or by an idempotency key: the caller's own, else any caller's (GATE-1).

        Raises:
            ToolRefused: there is none within reach (`unknown_run`).
        """
        runs = self._service.runs
        names: tuple[str, ...] = ()
        if len(run_id) <= RUN.most:  # there is no run of a longer id
            by_key = sorted(runs.under_key(run_id), key=lambda used: used[0] != call.caller.name)
            names = (run_id, *(named for _, named in by_key))
        for name in names:
            found = runs.get(name)
            if found is None:
                continue
            if call.caller.reaches(self._service.reader.parse(found.session_key)):
                return found
            call.left_out()
        call.was_denied(run_id, "unknown_run")
        raise unknown_run(run_id)

    def _resolved(self, call: Call, text: str, operation: Operation, field: str) -> Resolved:
        service = self._service
        try:
            return resolve_target(service.reader, call.requester, text, operation, field=field)
        except TargetRefused as refused:
            if refused.named is not None:
                call.check(refused.named, text)
            raise

    def _key_of(self, call: Call, text: str, field: str) -> SessionKey:
        try:
            return self._resolved(call, text, "send", field).key
        except ToolRefused as refused:
            if refused.code != "not_visible":
                raise
            key = self._of_configured_agent(text)
            if key is None:
                raise
            return key

    def _of_configured_agent(self, text: str) -> SessionKey | None:
        config = self._service.config
        reference = config.refer(text)
        if isinstance(reference, KeyReference) and reference.key.agent_id in config.agent_ids:
            return reference.key
        return None

    def agents(self, call: Call) -> list[str]:
        """Return the configured agents that a caller may use."""
        return [agent_id for agent_id in self._service.config.agent_ids if call.caller.has_agent(agent_id)]

    def default_agent(self, call: Call) -> str:
        """Return the agent of a call that names none: the default one, else the caller's first.

        A caller without any agent gets the name "main", which tells nothing.
        """
        configured, known = self._service.config.default_agent, self.agents(call)
        if configured in known:
            return configured
        return known[0] if known else "main"

    def _check_agent(self, call: Call, agent_id: str) -> None:
        known = self.agents(call)
        if agent_id not in known:
            raise ToolRefused(
                "unknown_agent",
                f"agentId: {agent_id[:128]!r} is not configured, use one of {', '.join(known) or 'none'}",
            )

    def route(self, call: Call, key: SessionKey, route: Route, *, field: str) -> Route:
        """Return the route that a call in the name of a session names with `channel` and `to` (VIS-6).

        A limited credential has its sessions' routes. An account or a thread that was left out is that route's.

        Raises:
            ToolRefused: none of the sessions within reach has this route (`forbidden`), whatever the others have.
        """
        if call.caller.is_operator:
            return route
        for own in self._own_routes(call, key):
            if _fits(route, own):
                return own
        raise ToolRefused(
            "forbidden",
            f"{field}: this credential sends only to the channels and chats of its own sessions, leave it out or name one",
        )

    def _own_routes(self, call: Call, key: SessionKey) -> Iterator[Route]:
        """Yield the routes of the sessions within reach, the one that is named first."""
        sessions, parse = self._service.sessions, self._service.reader.parse
        row = sessions.get(str(key))
        if row is not None and row.archived is None and (route := route_of(row, key)) is not None:
            yield route
        order = sessions.order()
        mine = (place for place in order.places() if call.caller.reaches(parse(place.key)))
        for row in order.rows(mine):
            if (route := route_of(row, parse(row.key))) is not None:
                yield route


def _fits(given: Route, own: Route) -> bool:
    return (
        (given.channel, given.to) == (own.channel, own.to)
        and given.account in {None, own.account}
        and given.thread in {None, own.thread}
    )
