"""A writer with a gateway, and a worker that calls its agents over that: both in a test's process."""

from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from intersession import SessionSystem
from intersession.worker.worker import Worker
from intersession_actors.outside.agents.agents import Agent
from support.doors.gateway_live import TOKEN, LiveGateway
from support.running import SEES_ALL, merged

WORKER = "a token for workers alone"

WITH_WORKERS: dict[str, Any] = {
    "gateway": {
        "auth": {
            "token": TOKEN,
            "credentials": [
                {
                    "name": "work",
                    "token": WORKER,
                    "scopes": ["worker"],
                    "agents": ["*"],
                    "channels": ["*"],
                }
            ],
        }
    },
    "runs": {"workerAliveSeconds": 5},
}


class Beside:
    """A system and the gateway that it is reached by; `worker` starts another worker."""

    def __init__(self, system: SessionSystem, live: LiveGateway) -> None:
        self.system = system
        self.live = live
        self._open = ExitStack()

    def worker(self, agents: Mapping[str, Agent], **given: Any) -> Worker:
        gateway = given.pop("gateway", self.live.address)
        config = merged({"runs": {"shutdownGraceSeconds": 5}}, given.pop("config", {}))
        made = Worker(gateway=gateway, agents=agents, token=WORKER, config=config, **given)
        return self._open.enter_context(made)

    def ask(self, text: str, agent: str = "main", wait: float = 20.0) -> Any:
        return self.system.inbound(
            channel="chat", chat_id="1", sender="mia", agent_id=agent, text=text, wait=wait
        )

    def close(self) -> None:
        self._open.close()


@contextmanager
def beside(
    store: Any,
    agents: Mapping[str, Agent] | None = None,
    *,
    config: Any = None,
    agents_here: Mapping[str, Agent] | None = None,
) -> Generator[Beside]:
    """Open a writer without agents of its own, unless given; and end its workers first."""
    whole = merged(SEES_ALL, WITH_WORKERS, config or {})
    with SessionSystem(store, agents=agents_here, config=whole) as system, LiveGateway(system) as live:
        opened = Beside(system, live)
        try:
            if agents:
                opened.worker(agents)
            yield opened
        finally:
            opened.close()
