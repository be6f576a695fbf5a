"""Calls over HTTP beside a bare Litestar route, and a waited send beside a bare call of the same scripted model (finding E10)."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import httpx

from benchmarks.figures import Figure, quantile
from benchmarks.systems import SEES_ALL
from intersession import SessionSystem, load_config
from intersession_actors.outside.agents.configured import configured_agents
from support.doors.bare_route import bare_route
from support.doors.gateway_live import GATEWAY, LiveGateway
from support.doors.scripted_endpoint import scripted_endpoint
from support.running import QUIET, merged

NAME = "doors"
_ROUNDS: Final = 5
_MAIN: Final = "agent:main:main"


def measure(directory: Path, *, calls: int = 500) -> list[Figure]:
    """Make each kind of call in turns with the bare ones, from one client; wall time, and processor time of both sides."""
    with scripted_endpoint() as endpoint, bare_route() as bare:
        url = f"http://127.0.0.1:{endpoint.server_port}/v1"
        config = merged(
            SEES_ALL,
            QUIET,
            GATEWAY,
            {
                "gateway": {"tools": {"allow": ["sessions_send"]}},
                "models": {
                    "providers": {"lab": {"baseUrl": url, "apiKey": "k", "api": "openai-completions"}}
                },
                "agents": {"defaults": {"model": "lab/m"}, "list": [{"id": "main", "default": True}]},
            },
        )
        agents = configured_agents(load_config(config).config).agents
        with (
            SessionSystem(directory / "log.db", agents=agents, config=config) as system,
            LiveGateway(system) as live,
            live.http() as client,
        ):

            def tool(name: str, **arguments: Any) -> Callable[[], httpx.Response]:
                asked = {"tool": name, "args": arguments}
                return lambda: client.post("/tools/invoke", json=asked)

            asked = {"model": "m", "messages": [{"role": "user", "content": "Is it done?"}]}
            headers = {"authorization": "Bearer k"}
            return _figures(
                {
                    "bare route": lambda: client.post(bare, json={"tool": "x", "args": {}}),
                    "agents_list": tool("agents_list"),
                    "sessions_list": tool("sessions_list"),
                    "sessions_history": tool("sessions_history", sessionKey=_MAIN, limit=10),
                    "bare call of the model": lambda: client.post(
                        f"{url}/chat/completions", json=asked, headers=headers
                    ),
                    "waited send": tool(
                        "sessions_send", sessionKey=_MAIN, message="Is it done?", timeoutSeconds=60
                    ),
                },
                {"waited send": "bare call of the model"},
                calls,
            )


def _figures(
    kinds: dict[str, Callable[[], httpx.Response]], beside: dict[str, str], calls: int
) -> list[Figure]:
    wall: dict[str, list[float]] = {name: [] for name in kinds}
    spent: dict[str, list[float]] = {name: [] for name in kinds}
    for name in ("waited send", *kinds):
        kinds[name]().raise_for_status()  # whatever is made once is made now
    for _ in range(_ROUNDS):
        for name, call in kinds.items():
            each = max(1, calls // _ROUNDS // (5 if "model" in name or "send" in name else 1))
            before = time.process_time()
            for _number in range(each):
                began = time.perf_counter()
                call().raise_for_status()
                wall[name].append((time.perf_counter() - began) * 1000)
            spent[name].append((time.process_time() - before) * 1000 / each)
    return [
        Figure(
            benchmark=NAME,
            name=f"{name}, {what}",
            value=quantile(samples[name], 0.5),
            unit="ms",
            ratios=_ratios(name, samples, beside),
        )
        for name in kinds
        for what, samples in (("p50", wall), ("processor time", spent))
    ]


def _ratios(name: str, samples: dict[str, list[float]], beside: dict[str, str]) -> dict[str, float]:
    bare = beside.get(name, "bare route")
    if name.startswith("bare"):
        return {}
    return {bare: quantile(samples[name], 0.5) / max(quantile(samples[bare], 0.5), 1e-9)}
