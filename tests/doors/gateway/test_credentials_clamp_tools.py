"""A limited credential that acts as a session sees what it names, whatever that session may see by the settings (VIS-6).

Each answer is held against that of a house in which what the credential does not name was never there.
"""

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from intersession import SessionSystem, echo
from intersession.gateway.process.mcp_mount import MCP_PATH
from intersession_actors.calls.tools.registry import TOOLS
from intersession_actors.rules.config.tools import OPTIONAL_TOOLS
from intersession_actors.rules.errors import ToolRefused
from intersession_events.facts import NotePinned
from support.doors.gateway_live import GATEWAY, LiveGateway, with_mcp
from support.doors.mcp_clients import over_http
from support.every_day import every_day
from support.running import QUIET, SEES_ALL, merged
from support.story import StillClock, Story

MAIN: Final = "agent:main:main"
OPS: Final = "agent:ops:main"
CRATE: Final = "agent:ops:crate"
CHILD: Final = "agent:ops:subagent:00000000-0000-4000-8000-00000000c41d"
ADA: Final = "agent:main:ada"

WHOLE, ONE, WITH = "a-token-of-an-agent", "a-token-of-a-session", "a-token-that-sees-more"
CREDENTIALS: Final = [
    {"name": "whole", "token": WHOLE, "actAs": ["agent:main:*"]},
    {"name": "one", "token": ONE, "actAs": [MAIN]},
    {"name": "with", "token": WITH, "actAs": [MAIN], "sees": [CRATE]},
]
WRITING: Final = ["operator.read", "operator.write"]
CONFIG: Final = merged(
    SEES_ALL,
    QUIET,
    GATEWAY,
    {
        "agents": {"list": [{"id": "main", "subagents": {"allowAgents": ["*"]}}, {"id": "ops"}]},
        "audit": {"access": "off"},
        "tools": {"alsoAllow": [*OPTIONAL_TOOLS]},
        "gateway": {
            "auth": {"credentials": [{**one, "scopes": WRITING} for one in CREDENTIALS]},
            "tools": {"allow": ["sessions_send", "sessions_spawn"]},
        },
    },
)

NAMED: Final[dict[str, frozenset[str]]] = {
    WHOLE: frozenset({MAIN, ADA}),
    ONE: frozenset({MAIN}),
    WITH: frozenset({MAIN, CRATE}),
}
"""The sessions that each credential names, of those that are there."""

ASKED: Final[dict[str, list[dict[str, Any]]]] = {
    "agents_list": [{}],
    "subagents": [{}, {"action": "cancel", "target": "all"}],
    "sessions_yield": [{}],
    "read_file": [{"file": "a.txt"}],
    "session_status": [{}, {"sessionKey": OPS}, {"sessionKey": CRATE, "changesSince": 0}],
    "sessions_history": [
        {"sessionKey": OPS},
        {"sessionKey": CRATE},
        {"sessionKey": ADA},
        {"sessionKey": "main"},
    ],
    "sessions_list": [
        {},
        {"limit": 1},
        {"search": "crate"},
        {"label": "the crate"},
        {"agentId": "ops"},
        {"messageLimit": 3},
    ],
    "sessions_search": [
        {"query": "zebra"},
        {"query": "zebra", "sessionKey": OPS},
        {"query": "zeb*", "limit": 1},
    ],
    "sessions_send": [
        {"sessionKey": OPS, "message": "hi", "timeoutSeconds": 0},
        {"sessionKey": CHILD, "message": "hi", "timeoutSeconds": 0},
        {"label": "the child", "message": "hi", "timeoutSeconds": 0},
    ],
    "sessions_spawn": [{"task": "x", "agentId": "nobody"}],
}
"""What is asked of each tool; what would begin anything is refused, or is told in a test of its own."""


class World(NamedTuple):
    """Asks a tool as the main session, with a token, through each door."""

    system: SessionSystem
    live: LiveGateway

    def http(self, token: str, tool: str, args: dict[str, Any]) -> Any:
        return self.live.invoke(tool, args, token=token, sessionKey=MAIN).json()

    def socket(self, token: str, tool: str, args: dict[str, Any]) -> Any:
        with self.live.client(token) as client:
            answer = client.request("tools.invoke", {"name": tool, "args": args, "sessionKey": MAIN})
        return {name: value for name, value in answer.items() if name != "id"}

    def mcp(self, token: str, tool: str, args: dict[str, Any]) -> Any:
        async def asked() -> Any:
            url = f"{self.live.address}{MCP_PATH}"
            bearer = f"Bearer {token}"
            async with over_http(url, authorization=bearer, intersession_session=MAIN) as client:
                return (await client.call_tool(tool, args)).structured_content

        return asyncio.run(asked())


DOORS: Final[dict[str, Callable[[World, str, str, dict[str, Any]], Any]]] = {
    "HTTP": World.http,
    "WebSocket": World.socket,
    "MCP over HTTP": World.mcp,
}


def house(folder: Path, named: frozenset[str] | None) -> SessionSystem:
    """Return a system on a log that tells of some sessions; of the others, notes that nobody reads take the place of each event."""
    story = Story(folder / "log.db")
    sessions: list[tuple[str, dict[str, Any]]] = [
        (MAIN, {}),
        (OPS, {}),
        (CRATE, {"label": "the crate", "display_name": "crate"}),
        (ADA, {}),
        (CHILD, {"label": "the child", "opened_by": "spawn", "spawned_by": MAIN, "spawn_depth": 1}),
    ]
    for number, (key, fields) in enumerate(sessions):
        if named is None or key in named:
            story.open(key, **fields)
            story.say(key, f"A zebra in {key}.")
        else:
            for _ in range(2):
                story.put("notes:none", NotePinned(flow="none", position=1, text="", by="nobody"))
        story.say(MAIN, f"note {number}")
    story.close()
    agents = {"main": echo(), "ops": echo()}
    return SessionSystem(folder / "log.db", agents=agents, config=CONFIG, clock=StillClock(2_000_000))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with house(tmp_path_factory.mktemp("whole"), None) as system, with_mcp(system) as live:
        yield World(system, live)


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Yield such a house of its own, for what changes it."""
    with house(tmp_path_factory.mktemp("busy"), None) as system, with_mcp(system) as live:
        yield World(system, live)


@pytest.fixture(scope="module", params=NAMED)
def cut(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, World]]:
    """Yield a token, and the house in which there is nothing but what it names."""
    named = NAMED[request.param]
    with house(tmp_path_factory.mktemp("cut"), named) as system, with_mcp(system) as live:
        yield request.param, World(system, live)


def test_every_tool_is_asked_here() -> None:
    assert ASKED.keys() == TOOLS.keys()


@pytest.mark.clause("VIS-6", "HIST-6", "X2")
@pytest.mark.parametrize("door", every_day(DOORS.keys(), "HTTP"))
@pytest.mark.parametrize("tool", ASKED)
def test_a_session_sees_through_a_credential_what_that_names_and_nothing_else(
    whole: World, cut: tuple[str, World], door: str, tool: str
) -> None:
    token, less = cut
    for args in ASKED[tool]:
        there, absent = (DOORS[door](world, token, tool, args) for world in (whole, less))

        assert _told(there) == _told(absent), args


def _told(answer: Any) -> str:
    """Return an answer as text, without the ids of messages, which are counted up here."""
    return re.sub(r"\bm\d+\b", "m", json.dumps(answer, sort_keys=True))


@pytest.mark.clause("VIS-6")
def test_a_session_without_a_credential_sees_what_settings_allow(whole: World) -> None:
    """So the worlds above do differ in what there is to see."""
    listed = whole.system.tools(MAIN).call("sessions_list")
    found = whole.system.tools(MAIN).call("sessions_search", {"query": "zebra"})

    assert len(listed["sessions"]) == 5
    assert len(found["hits"]) == 5


@pytest.mark.clause("VIS-6")
@pytest.mark.parametrize("key", [OPS, CRATE, ADA, CHILD])
@pytest.mark.parametrize("token", NAMED)
def test_what_it_sends_goes_to_those_alone(busy: World, token: str, key: str) -> None:
    answer = busy.http(token, "sessions_send", {"sessionKey": key, "message": "hi", "timeoutSeconds": 0})
    said = answer["result"]["details"]

    expected = ("accepted", None) if key in NAMED[token] else ("error", "not_visible")
    assert (said["status"], said.get("code")) == expected


@pytest.mark.clause("VIS-6", "SPAWN-2")
def test_it_starts_sub_agents_of_the_agents_that_it_names(whole: World) -> None:
    listed = whole.http(WHOLE, "agents_list", {})["result"]["details"]
    other = whole.http(WHOLE, "sessions_spawn", {"task": "x", "agentId": "ops"})["result"]["details"]

    assert [agent["id"] for agent in listed["agents"]] == ["main"]
    assert other["code"] == "agent_not_allowed"
    assert "ops" not in other["error"]


@pytest.mark.clause("VIS-6")
def test_globs_limit_a_session_and_not_the_operator(whole: World) -> None:
    with pytest.raises(ToolRefused, match="within: it limits what a session sees, name one by session_key"):
        whole.system.tools(within=("agent:main:*",))
