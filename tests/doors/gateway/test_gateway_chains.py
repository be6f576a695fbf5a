"""What an agent calls over the network goes on with its run's causal chain, where the operator says that it is an agent's."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from intersession import SessionSystem, Turn, echo
from intersession.gateway.process.mcp_mount import MCP_PATH
from intersession_events.facts import RunQueued
from support.doors.gateway_live import GATEWAY, WRITER, LiveGateway, with_mcp
from support.doors.mcp_clients import over_http
from support.running import QUIET, SEES_ALL, merged, recorded

MAIN = "agent:main:main"
OPS = "agent:ops:main"


def by_tool(live: LiveGateway) -> Any:
    arguments = {"agentId": "main", "message": "x", "timeoutSeconds": 0}
    return live.invoke("sessions_send", arguments, token=WRITER, sessionKey=OPS).json()["result"]["details"]


def by_method(live: LiveGateway) -> Any:
    with live.client(WRITER) as client:
        answer = client.request("agent", {"message": "x", "sessionKey": OPS, "idempotencyKey": "in a run"})
    return answer["payload"] if answer["ok"] else answer["error"]["details"]


def by_mcp(live: LiveGateway) -> Any:
    return asyncio.run(
        _over_mcp(live, "sessions_send", {"agentId": "main", "message": "x", "timeoutSeconds": 0})
    )


def by_spawn_over_mcp(live: LiveGateway) -> Any:
    return asyncio.run(_over_mcp(live, "sessions_spawn", {"task": "x"}))


async def _over_mcp(live: LiveGateway, tool: str, arguments: dict[str, Any]) -> Any:
    """Call a tool with the SDK's own client."""
    url = f"{live.address}{MCP_PATH}"
    async with over_http(url, authorization=f"Bearer {WRITER}", intersession_session=OPS) as client:
        return (await client.call_tool(tool, arguments)).structured_content


def config(*, runs: int, of_agent: bool) -> dict[str, Any]:
    credential = {
        "name": "ops",
        "token": WRITER,
        "actAs": ["agent:ops:*"],
        "sees": ["agent:main:*"],
        "scopes": ["operator.read", "operator.write"],
        "ofAgent": of_agent,
    }
    gateway = {"auth": {"credentials": [credential]}, "tools": {"allow": ["sessions_send"]}}
    return merged(
        SEES_ALL,
        QUIET,
        GATEWAY,
        {"gateway": gateway, "session": {"agentToAgent": {"limits": {"runs": runs}}}},
    )


@pytest.mark.clause("LOOP-5")
@pytest.mark.parametrize("door", [by_tool, by_method, by_mcp, by_spawn_over_mcp])
@pytest.mark.parametrize(
    ("of_agent", "runs", "code"), [(True, 1, "limit"), (True, 2, None), (False, 1, None)]
)
def test_an_agents_own_credential_goes_on_with_the_chain_of_its_run(
    tmp_path: Path, door: Callable[[LiveGateway], Any], code: str | None, runs: int, *, of_agent: bool
) -> None:
    """Before: a chain was begun anew by a call that went out of the process and in again."""
    answers: list[Any] = []

    def ops(_: Turn) -> str:
        if not answers:
            answers.append(None)
            answers[0] = door(live)
        return "NO_REPLY"

    with (
        SessionSystem(
            tmp_path / "log.db",
            agents={"main": echo(), "ops": ops},
            config=config(runs=runs, of_agent=of_agent),
        ) as system,
        with_mcp(system) as live,
    ):
        go = {"message": "go", "sessionKey": OPS, "idempotencyKey": "k"}
        root = system.gateway.call("agent", go)["runId"]
        system.gateway.call("agent.wait", {"runId": root, "timeoutMs": 20_000})
        if "runId" in answers[0]:  # a method's run is of the same session
            system.gateway.call("agent.wait", {"runId": answers[0]["runId"], "timeoutMs": 20_000})
        again = by_tool(live)  # no run of its session is under way: what comes now begins a chain
        queued = recorded(system, RunQueued)

    assert answers[0].get("code") == code
    assert again["status"] == "accepted"
    first = [run for run in queued if run.budget is not None and run.budget.root == root]
    assert len(first) == (2 if of_agent and runs == 2 else 1)
