"""The host of a log as `send` sees it: the system in this process, or a gateway in another."""

from collections.abc import Callable, Collection, Iterator
from typing import Protocol

from intersession.cli.host.beside import Client
from intersession_actors.errors import ToolRefused
from intersession_actors.system import SessionSystem, followed
from intersession_events.log import Log, Recorded
from intersession_events.plain_json import JsonMapping, JsonObject
from intersession_projections.flows import Flows
from intersession_projections.run_outcomes import Runs
from intersession_projections.sessions import SessionNames


class LogHost(Protocol):
    """The one that does the work of a log. `flows` and `runs` say where everything stands, `names` how sessions are called."""

    flows: Flows
    runs: Runs
    names: SessionNames

    def head(self) -> int:
        """Return the position of the last committed event."""
        ...

    def call(self, tool: str, arguments: JsonMapping) -> JsonObject:
        """Call a tool and return its answer, a refusal too. May be called from a thread of its own."""
        ...

    def follow(self, after: int, *, timeout: float) -> Iterator[Recorded]:
        """Iterate over the events behind a position, until nothing came for `timeout` seconds."""
        ...

    def agents(self) -> Collection[str] | None:
        """Return the ids of the agents that answer; None once there is no host any more."""
        ...


class HostedHere:
    """The system that this command hosts, with its tools as a session has them; without a key as the operator's."""

    def __init__(self, system: SessionSystem, session_key: str | None) -> None:
        self._system = system
        self._tools = system.tools(session_key)
        self.flows: Flows = system.service.flows
        self.runs: Runs = system.service.runs
        self.names = SessionNames(system.log)

    def head(self) -> int:
        """Return the position of the last committed event."""
        return self._system.log.head()

    def call(self, tool: str, arguments: JsonMapping) -> JsonObject:
        """Call a tool and return its answer, a refusal too."""
        answer: JsonObject = self._tools.call(tool, arguments)
        return answer

    def follow(self, after: int, *, timeout: float) -> Iterator[Recorded]:
        """Iterate over the events behind a position, until nothing came for `timeout` seconds."""
        return self._system.follow(after, timeout=timeout)

    def agents(self) -> Collection[str] | None:
        """Return the ids of the agents that answer."""
        agents: list[str] = self._system.status()["agents"]
        return agents


class GatewayBeside:
    """The gateway of the process that hosts a log, which is open here to be read, with its views.

    `client` makes the one call. `another` gives a client for a question meanwhile, or None where there is no gateway any
    more. None is kept open without being read: what the gateway tells everybody would fill it.
    """

    def __init__(
        self, log: Log, client: Client, session_key: str | None, another: Callable[[], Client | None]
    ) -> None:
        self._log = log
        self._client = client
        self._session_key = session_key
        self._another = another
        self.flows = Flows(log)
        self.runs = Runs(log)
        self.names = SessionNames(log)

    def head(self) -> int:
        """Return the position of the last committed event."""
        return self._log.head()

    def call(self, tool: str, arguments: JsonMapping) -> JsonObject:
        """Call a tool through the gateway and return its answer, a refusal too: the tool's, or the gateway's own."""
        try:
            with self._client:
                answer: JsonObject = self._client.call_tool(tool, arguments, session_key=self._session_key)
        except ToolRefused as refused:
            return dict(refused.as_result())
        return answer

    def follow(self, after: int, *, timeout: float) -> Iterator[Recorded]:
        """Iterate over the events behind a position, until nothing came for `timeout` seconds."""
        return followed(self._log, after, timeout=timeout)

    def agents(self) -> Collection[str] | None:
        """Return the ids of the agents that answer; None once the gateway is gone."""
        try:
            asking = self._another()
            if asking is None:
                return None
            with asking:
                agents: list[str] = asking.call("status")["agents"]
        except ToolRefused as refused:
            if refused.code == "unavailable":
                return None
            raise
        return agents
