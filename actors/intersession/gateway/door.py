"""Shared by all routes of the gateway: the system, admission, listeners, and whether it is closing."""

import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from typing import Annotated, Final

import msgspec

from intersession.gateway.about_gateway import CONFIG, PRESENCE, configuration, presence
from intersession.gateway.admission import addresses, complaints, scopes, shares
from intersession.gateway.admission import attempts as admission_attempts
from intersession.gateway.admission import credentials as admission_credentials
from intersession.gateway.admission import limits as admission_limits
from intersession.gateway.admission.proof import named_in
from intersession.gateway.hub import Hub
from intersession.gateway.metrics import Metrics
from intersession.gateway.other_doors import Doors
from intersession.gateway.protocol.behalf import PERFORM, RECEIPTS
from intersession.gateway.protocol.connection import Connection
from intersession.gateway.protocol.frames import PROTOCOL, Frame
from intersession.gateway.protocol.run_end import second_answer
from intersession.gateway.protocol.run_names import name_for, named
from intersession.web.happened import ForksFolder
from intersession.web.rate import Rates
from intersession_actors.assembly.methods.methods import unknown_method
from intersession_actors.assembly.methods.params import NoParams
from intersession_actors.assembly.system.system import SessionSystem
from intersession_actors.calls.service.arguments import read_arguments
from intersession_actors.calls.service.pending import INVOKE
from intersession_actors.calls.service.resolve import claimed_session
from intersession_actors.calls.tools.registry import TOOLS
from intersession_actors.calls.tools.toolbox import Tools
from intersession_actors.rules.config.host import Gateway, GatewayAuth
from intersession_actors.rules.config.tools import names_tool
from intersession_actors.rules.errors import ConfigError, ConfigProblem, ToolRefused
from intersession_actors.rules.gate.limits import KeyText
from intersession_actors.rules.gate.values import invalid
from intersession_actors.running.host.door_threads import LimitedLane
from intersession_actors.running.host.own_threads import off_loop
from intersession_events.basics.errors import IntersessionError
from intersession_events.basics.keys.key import SessionKey
from intersession_events.basics.machine import VERSION
from intersession_events.basics.plain_json import JsonMapping, JsonObject, JsonValue, is_object
from intersession_events.facts import ready
from intersession_events.stores.portable.log import PortableLog

logger = logging.getLogger("intersession.gateway")

NAMES: Final = "tools.names"
"""Our own as well: the names of a session's tools, as far as a credential is given them."""

OWN_METHODS: Final = ("connect", INVOKE, NAMES, PRESENCE, CONFIG)
"""Methods that only connections have, beside those of `system.gateway`."""

EVENTS: Final = ("connect.challenge", "agent", "chat", "tick", "shutdown")
NOT_OVER_HTTP: Final = frozenset({"sessions_send", "sessions_spawn"})
"""Tools that HTTP only gives where `gateway.tools.allow` names them, as in the original."""

ONLY_HERE: Final = frozenset({"import.framework", "import.openclaw"})
"""Methods that read files of the gateway's machine."""

STOPPING: Final = "the gateway is stopping, try again after its restart"

TOO_MUCH: Final = "this credential has too much open at a time, close some of it and try again"


@ready
class InvokeParams(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The parameters of `tools.invoke`."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
    args: JsonObject = msgspec.field(default_factory=JsonObject)
    session_key: KeyText | None = None


@ready
class NamesParams(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The parameters of `tools.names`."""

    session_key: KeyText | None = None


def refuse_without_token(credentials: admission_credentials.Credentials, auth: GatewayAuth) -> None:
    """Refuse to start a gateway without a token: no caller could enter.

    Raises:
        ConfigError: no token is set.
    """
    if not credentials.known:
        what = "is missing; set it, for example to ${INTERSESSION_GATEWAY_TOKEN}: there is no gateway without a token"
        field = "password" if auth.mode == "password" else "token"
        raise ConfigError([ConfigProblem(f"gateway.auth.{field}", what)])


class Door:
    """The gateway's shared state. `settings` gives the settings in force; the system's own if not given.

    `credentials` are given where what is mounted looks up the same ones.

    Raises:
        ConfigError: nobody could come in, because no token is set.
    """

    def __init__(
        self,
        system: SessionSystem,
        *,
        settings: Callable[[], Gateway] | None = None,
        limits: admission_limits.Limits | None = None,
        credentials: admission_credentials.Credentials | None = None,
    ) -> None:
        self.system = system
        self.limits = limits or admission_limits.Limits()
        self._settings = settings or (lambda: system.config.gateway)
        self.credentials = credentials or admission_credentials.Credentials(lambda: self.settings.auth)
        self.attempts = admission_attempts.FailedAttempts(time.monotonic)
        self.refusals_told = admission_attempts.FailedAttempts(time.monotonic)
        shared = self.limits
        self.open = shares.Shares(most=shared.connections, each=shared.share, reserve=shared.reserve)
        self.waits = shares.Shares(most=shared.waits, each=shared.waits_share, reserve=shared.waits_share)
        self.logger = complaints.limited_logger("intersession.gateway", time.monotonic)
        """For what clients can cause as often as they like."""
        self.questions = Rates(time.monotonic)
        """How often each caller may ask the web debugger's questions."""
        self.forks = ForksFolder(system.log, monotonic=time.monotonic, every_s=self.limits.check_s)
        """What all live pages of the web debugger are told of forks by."""
        self.unread = False
        """Whether the last question of the web debugger found the store away: those that wait for it ask again."""
        self.hub = Hub(
            system.log, system.service.world.agents.pieces, system.service.clock.now_ms, self.logger
        )
        self.metrics = Metrics(system)
        self.doors = Doors(system, lambda: self.settings)
        self.draining = False
        self._own: Mapping[
            str, Callable[[admission_credentials.Credential, JsonMapping], Awaitable[JsonValue]]
        ]
        self._own = {
            INVOKE: self._invoke_over_wire,
            NAMES: self._names_over_wire,
            PRESENCE: self._present,
            CONFIG: self._configured,
            PERFORM: self._perform_for_a_door,
            RECEIPTS: self._record_for_a_door,
        }
        self._started = time.monotonic()
        refuse_without_token(self.credentials, self.settings.auth)

    @property
    def settings(self) -> Gateway:
        """The settings in force."""
        return self._settings()

    def client_of(self, scope: JsonMapping) -> str:
        """Return the address that limits count for a request or connection of ASGI."""
        client = scope.get("client")
        return addresses.client_address(
            client[0] if client else None, scope["headers"], trusted=self.settings.trusted_proxies
        )

    def drain(self) -> None:
        """Refuse new work from now on, and end connections that only listen."""
        self.draining = True
        self.hub.wake()
        self.metrics.stop()

    def connection(self, address: str, server: str | None) -> Connection:
        """Return the logic of a new connection from an address, and to `server` if it is a direct one."""
        advertised = self.settings.advertise and named_in(self.settings.advertise)
        return Connection(
            nonce=secrets.token_urlsafe(24),
            position=lambda: self.position,
            address=address,
            credentials=self.credentials,
            attempts=self.attempts,
            now_ms=self.system.service.clock.now_ms,
            parse_key=self.system.service.reader.parse,
            servers=[name for name in (server, advertised) if name],
        )

    # --- positions

    @property
    def position(self) -> int:
        """The position up to which this host has read: all that it has acknowledged is before that (DOOR-3)."""
        log = self.system.log
        return log.followed if isinstance(log, PortableLog) else log.head()

    async def reach(self, position: int) -> None:
        """Wait until this host has read up to a position that another one has named (DOOR-3).

        Raises:
            ToolRefused: there is no such position (`invalid_request`), or it does not come here in time (`unavailable`).
        """
        if not position or position <= self.position:
            return
        log, seconds = self.system.log, self.limits.behind_s
        if not self.system.is_follower and position > await off_loop(log.head):
            raise invalid(
                "after", f"position {position} is beyond the end of the log, give one that was answered"
            )
        if not await off_loop(partial(log.wait_for, position, timeout=seconds)):
            error = f"after: position {position} has not come to this host in {seconds:g} s, try again or ask another"
            raise ToolRefused("unavailable", error)

    # --- methods

    async def perform(
        self,
        credential: admission_credentials.Credential,
        method: str,
        params: JsonMapping,
        *,
        here: bool = False,
    ) -> JsonValue:
        """Call a method and return its payload; all but `system-presence` give an object.

        `here` says that the caller is on this machine, where a path means the same to both.

        Raises:
            ToolRefused: it was refused.
        """
        own = self._own.get(method)
        if own is not None:
            return await own(credential, params)
        if method not in self.system.gateway.methods:
            raise unknown_method(method, (*OWN_METHODS, *self.system.gateway.methods))
        if method in ONLY_HERE and not here:
            raise ToolRefused(
                "forbidden", f"{method} is for callers on the gateway's own machine, over its loopback"
            )
        if self.draining and scopes.needed_scope(method) != "operator.read":
            raise ToolRefused("unavailable", STOPPING)
        try:
            return await self.system.gateway.aperform(method, params, caller=credential.caller)
        except (IntersessionError, RuntimeError) as error:
            raise self.known(error, method) from None

    async def _perform_for_a_door(
        self, credential: admission_credentials.Credential, params: JsonMapping
    ) -> Frame:
        return await self.doors.perform(credential, params, stopping=STOPPING if self.draining else None)

    async def _record_for_a_door(
        self, credential: admission_credentials.Credential, params: JsonMapping
    ) -> Frame:
        return self.doors.record(credential, params)

    async def _present(self, _: admission_credentials.Credential, params: JsonMapping) -> list[JsonObject]:
        read_arguments(NoParams, params)
        return presence(VERSION, self.system.service.clock.now_ms())

    async def _configured(
        self, credential: admission_credentials.Credential, params: JsonMapping
    ) -> JsonObject:
        read_arguments(NoParams, params)
        return configuration(credential.caller, self.system.config)

    async def named(
        self, credential: admission_credentials.Credential, method: str, params: JsonMapping, payload: object
    ) -> JsonValue:
        """Return an answer with the caller's own names of runs."""
        caller, asked = credential.caller.name, self.system.service.runs.asked
        if not is_object(payload) or ("runId" not in payload and not payload.get("runIds")):
            return payload
        try:
            return await off_loop(
                named, method, params, payload, lambda run_id: name_for(caller, run_id, asked(run_id))
            )
        except (IntersessionError, RuntimeError) as error:
            raise self.known(error, method) from None

    async def _invoke_over_wire(
        self, credential: admission_credentials.Credential, params: JsonMapping
    ) -> Frame:
        """Call a tool over a connection, whose scopes decide; `gateway.tools.allow` is HTTP's."""
        arguments: JsonValue = params.get("args", {})
        # The tool reads its own arguments, and says of them what every door says.
        rest: JsonMapping = {**params, "args": {}} if is_object(arguments) else params
        given = read_arguments(InvokeParams, rest)
        scope = scopes.needed_scope(given.name)
        if scope not in scopes.all_scopes(credential.scopes):
            raise ToolRefused("forbidden", f"missing scope: {scope}")
        if names_tool(self.settings.tools.deny, given.name):
            raise ToolRefused("forbidden", f"name: {given.name} is not given here (gateway.tools.deny)")
        answer = await self.invoke(credential, given.name, arguments, given.session_key)
        if answer is None:
            raise ToolRefused("not_supported", f"name: there is no tool {given.name!r} here")
        return answer

    async def final(self, run_id: str) -> tuple[Frame, Frame | None]:
        """Wait until a run has ended; return the payload of the second answer of `agent`, and its error if it has one.

        Raises:
            ToolRefused: the gateway stopped first; the run goes on after its restart.
        """
        try:
            outcome = await self.system.gateway.await_end(run_id)
        except (IntersessionError, RuntimeError) as error:
            raise self.known(error, "agent") from None
        return second_answer(outcome)

    async def hello(self, credential: admission_credentials.Credential) -> Frame:
        """Return the payload that admits a connection."""
        config = self.system.config
        health = await self.perform(credential, "health", {})
        default = health["defaultAgentId"]
        main = self.system.service.reader.main_key(default)
        return {
            "type": "hello-ok",
            "protocol": PROTOCOL,
            "server": {"version": VERSION, "connId": secrets.token_hex(16)},
            "features": {"methods": [*OWN_METHODS, *self.system.gateway.methods], "events": list(EVENTS)},
            "snapshot": {
                "presence": presence(VERSION, self.system.service.clock.now_ms()),
                "health": health,
                "stateVersion": {"presence": 0, "health": 0},
                "uptimeMs": round((time.monotonic() - self._started) * 1000),
                "sessionDefaults": {
                    "defaultAgentId": default,
                    "mainKey": config.session.main_key,
                    "mainSessionKey": str(main),
                    "scope": config.session.scope,
                },
                "authMode": self.settings.auth.mode,
            },
            "policy": {
                "maxPayload": self.limits.body_bytes,
                "maxBufferedBytes": self.limits.buffered_bytes,
                "tickIntervalMs": round(self.limits.tick_s * 1000),
            },
        }

    # --- tools

    def tool_is_given(self, tool: str) -> bool:
        """Whether HTTP offers a tool at all (`gateway.tools`)."""
        rules = self.settings.tools
        return not names_tool(rules.deny, tool) and (tool not in NOT_OVER_HTTP or tool in rules.allow)

    async def invoke(
        self,
        credential: admission_credentials.Credential,
        tool: str,
        arguments: JsonMapping,
        session_key: str | None,
    ) -> Frame | None:
        """Call a tool as a session, or as the operator; None if there is no such tool.

        Raises:
            ToolRefused: the credential may not act as that session, or the system is stopping.
        """
        if self.draining:
            raise ToolRefused("unavailable", STOPPING)
        try:
            if session_key is None:
                tools = self._tools(credential, None, tool, arguments)
                return await tools.acall(tool, arguments) if tool in TOOLS else None
            caller = credential.caller

            def begin() -> Coroutine[object, object, Frame] | None:
                tools = self._tools(credential, session_key, tool, arguments)
                return tools.begin(tool, arguments) if tool in TOOLS else None

            # One thread finds the session and makes the call: it costs as much to change threads as to do either.
            lane = session_key if caller.is_operator else LimitedLane(caller.name)
            begun = await self.system.threads.run(begin, lane)
            return None if begun is None else await begun
        except (IntersessionError, RuntimeError) as error:
            raise self.known(error, tool) from None

    async def _names_over_wire(
        self, credential: admission_credentials.Credential, params: JsonMapping
    ) -> Frame:
        """Name the tools of a session, or of the operator, that a connection is given."""
        key = read_arguments(NamesParams, params).session_key
        held, deny = scopes.all_scopes(credential.scopes), self.settings.tools.deny
        try:
            tools = await off_loop(self._tools, credential, key, NAMES, {})
            names = await off_loop(lambda: tools.names)
        except (IntersessionError, RuntimeError) as error:
            raise self.known(error, NAMES) from None
        return {
            "names": [
                name for name in names if scopes.needed_scope(name) in held and not names_tool(deny, name)
            ]
        }

    def _tools(
        self,
        credential: admission_credentials.Credential,
        session_key: str | None,
        tool: str,
        arguments: JsonMapping,
    ) -> Tools:
        """Return the tools as a session that a credential may act as has them, or as the operator."""
        key = self.acting_as(credential, session_key, tool, arguments)
        return self.system.tools(
            None if key is None else str(key),
            name=credential.caller.name if key is None else None,
            credential=credential.caller.credential,
            of_agent=credential.caller.of_agent,
            within=credential.caller.within,
        )

    def acting_as(
        self,
        credential: admission_credentials.Credential,
        text: str | None,
        tool: str,
        arguments: JsonMapping,
    ) -> SessionKey | None:
        """Return the session that a call acts as; None is the operator (VIS-6).

        Raises:
            ToolRefused: the claim is invalid, or exceeds the credential (`not_visible`).
        """
        if text is None:
            if not credential.caller.is_operator:
                raise invalid("sessionKey", "required, this credential only acts as sessions")
            return None
        return claimed_session(
            self.system.service, credential.caller, text, field="sessionKey", what=tool, arguments=arguments
        )

    def known(self, error: Exception, what: str) -> ToolRefused:
        """Return an error as a refusal; an unforeseen error is logged, and its message stays here."""
        if isinstance(error, ToolRefused):
            return error
        if self.draining:
            return ToolRefused("unavailable", STOPPING)
        logger.error("%s failed", what, exc_info=error)
        return ToolRefused("internal", "a fault of the gateway, its log says more")
