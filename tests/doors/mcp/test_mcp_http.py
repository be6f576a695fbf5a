"""MCP over HTTP: only for whoever has a token of ours, and only as the sessions that the token may be."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from mcp import MCPError
from starlette.applications import Starlette
from starlette.routing import Mount

from intersession import SessionSystem, echo
from intersession.mcp.http import McpCaller, mcp_app
from intersession_actors.calls.service.callers import Caller
from intersession_actors.rules.config.host import OperatorScope
from intersession_events.facts import SESSION_TOOLS
from support.doors.mcp_clients import Mode, over_http, plain_http, served, text_of
from support.running import QUIET, SEES_ALL, merged

MAIN, OPS = "agent:main:main", "agent:ops:main"
RESOURCE = "https://agents.example/mcp"
WRITE: frozenset[OperatorScope] = frozenset({"operator.read", "operator.write"})
READ: frozenset[OperatorScope] = frozenset({"operator.read"})


def caller(
    name: str,
    act_as: str = "*",
    scopes: frozenset[OperatorScope] = WRITE,
    audience: str | None = None,
    sees: tuple[str, ...] = (),
) -> McpCaller:
    return McpCaller(caller=Caller(name=name, act_as=(act_as,), sees=sees), scopes=scopes, audience=audience)


CALLERS = {
    "shared": caller("shared"),
    "ops": caller("ops", "agent:ops:*"),
    "ops-and-main": caller("ops", "agent:ops:*", sees=(MAIN,)),
    "one": caller("one", OPS),
    "reads": caller("reads", scopes=READ),
    "nothing": caller("nothing", scopes=frozenset()),
    "issued": caller("issued", audience=f"{RESOURCE}/"),
    "issued-elsewhere": caller("elsewhere", audience="https://other.example/mcp"),
}


async def check(token: str) -> McpCaller | None:
    return CALLERS.get(token)


def bearer(token: str) -> str:
    return f"Bearer {token}"


@asynccontextmanager
async def door(*configs: dict[str, Any], **options: Any) -> AsyncGenerator[str]:
    """Serve a system's tools; yields the address of the door."""
    agents = {"main": echo("main heard "), "ops": echo("ops heard ")}
    with SessionSystem(":memory:", agents=agents, config=merged(SEES_ALL, QUIET, *configs)) as system:
        async with served(mcp_app(system, check=check, **options)) as address:
            yield f"{address}/mcp"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_sdks_client_has_the_tools_over_http(mode: Mode) -> None:
    async with door() as url, over_http(url, mode=mode, authorization=bearer("shared")) as client:
        listed = await client.list_tools()
        sent = await client.call_tool("sessions_send", {"agentId": "ops", "message": "status?"})

    assert [tool.name for tool in listed.tools] == list(SESSION_TOOLS)
    assert sent.structured_content["reply"] == "ops heard status?"
    assert json.loads(text_of(sent)) == sent.structured_content


async def test_a_gateway_mounts_it_beside_its_own_routes() -> None:
    with SessionSystem(":memory:", agents={"main": echo()}) as system:
        app = mcp_app(system, check=check)
        gateway = Starlette(routes=[Mount("/", app=app)], lifespan=lambda _: app.running())

        async with (
            served(gateway) as address,
            over_http(f"{address}/mcp", authorization=bearer("shared")) as client,
        ):
            listed = await client.list_tools()

    assert [tool.name for tool in listed.tools] == list(SESSION_TOOLS)


async def test_where_no_lifespan_is_spoken_it_serves_from_the_first_request_on() -> None:
    with SessionSystem(":memory:", agents={"main": echo()}) as system:
        app = mcp_app(system, check=check)
        async with served(app, lifespan="off") as address:
            early = await asyncio.gather(*(post(f"{address}/mcp") for _ in range(3)))
            async with app.running():
                meanwhile = await post(f"{address}/mcp")
            late = await post(f"{address}/mcp")

    assert [answer.status_code for answer in (*early, meanwhile, late)] == [200, 200, 200, 200, 503]


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_there_is_nothing_to_get_and_nothing_to_delete(method: str) -> None:
    async with door() as url, plain_http() as http:
        answer = await http.request(method, url, headers=HEADERS)

    assert answer.status_code == 405


@pytest.mark.clause("VIS-6")
@pytest.mark.parametrize("named", ["header", "query"])
async def test_a_client_is_the_session_that_it_names(named: str) -> None:
    async with door() as url:
        client_of = {
            "header": over_http(url, authorization=bearer("ops-and-main"), intersession_session=OPS),
            "query": over_http(f"{url}?session={OPS}", authorization=bearer("ops-and-main")),
        }
        async with client_of[named] as client:
            to_itself = await client.call_tool("sessions_send", {"sessionKey": OPS, "message": "x"})
            to_main = await client.call_tool("sessions_send", {"sessionKey": MAIN, "message": "x"})

    assert to_itself.structured_content["code"] == "self_send"
    assert to_main.structured_content["reply"] == "main heard x"


@pytest.mark.clause("VIS-6")
@pytest.mark.parametrize("claimed", [MAIN, "main", "agent:ghost:main"])
async def test_a_claim_beyond_the_credential_is_not_visible_whether_it_exists_or_not(claimed: str) -> None:
    async with (
        door() as url,
        over_http(url, authorization=bearer("shared")) as operator,
        over_http(url, authorization=bearer("ops"), intersession_session=claimed) as client,
    ):
        await operator.call_tool("sessions_send", {"sessionKey": MAIN, "message": "so that it exists"})
        result = await client.call_tool("sessions_list", {})
        with pytest.raises(MCPError, match="session not visible"):
            await client.list_tools()

    assert result.structured_content == {
        "status": "error",
        "code": "not_visible",
        "error": f"session not visible: {claimed}",
    }


async def test_a_credential_for_one_session_is_that_session_without_saying_so() -> None:
    async with door() as url, over_http(url, authorization=bearer("one")) as client:
        result = await client.call_tool("sessions_send", {"sessionKey": OPS, "message": "x"})

    assert result.structured_content["code"] == "self_send"


async def test_a_credential_for_several_sessions_must_say_which_it_is() -> None:
    async with door() as url, over_http(url, authorization=bearer("ops")) as client:
        result = await client.call_tool("sessions_list", {})

    assert result.structured_content["code"] == "invalid_request"
    assert "Intersession-Session" in result.structured_content["error"]


async def test_two_names_in_one_request_are_refused() -> None:
    async with (
        door() as url,
        over_http(
            f"{url}?session={OPS}", authorization=bearer("shared"), intersession_session=MAIN
        ) as client,
    ):
        result = await client.call_tool("sessions_list", {})

    assert result.is_error
    assert result.structured_content["code"] == "invalid_request"


@pytest.mark.parametrize(
    ("token", "names"),
    [
        ("reads", {"sessions_list", "sessions_history", "sessions_search", "agents_list"}),
        ("nothing", set[str]()),
    ],
)
async def test_what_changes_something_takes_a_scope_of_its_own(token: str, names: set[str]) -> None:
    async with door() as url, over_http(url, authorization=bearer(token)) as client:
        listed = await client.list_tools()
        with pytest.raises(MCPError, match="sessions_send"):
            await client.call_tool("sessions_send", {"agentId": "ops", "message": "x"})

    assert {tool.name for tool in listed.tools} == names


async def test_a_tool_that_the_gateway_denies_is_not_there() -> None:
    denying = {"gateway": {"tools": {"deny": ["sessions_spawn"]}}}

    async with door(denying) as url, over_http(url, authorization=bearer("shared")) as client:
        listed = await client.list_tools()

    assert "sessions_spawn" not in [tool.name for tool in listed.tools]


@pytest.mark.clause("SEND-11")
async def test_an_operators_keys_are_kept_under_the_name_of_the_credential() -> None:
    asked = {"agentId": "ops", "message": "x", "idempotencyKey": "k", "timeoutSeconds": 0}
    other = CALLERS | {"second": caller("second")}

    async def check_either(token: str) -> McpCaller | None:
        return other.get(token)

    with SessionSystem(":memory:", agents={"ops": echo()}) as system:
        async with served(mcp_app(system, check=check_either)) as address:
            runs: list[str] = []
            for token in ("shared", "shared", "second"):
                async with over_http(f"{address}/mcp", authorization=bearer(token)) as client:
                    answer = await client.call_tool("sessions_send", asked)
                    runs.append(answer.structured_content["runId"])

    assert runs[0] == runs[1] != runs[2]


@pytest.mark.clause("VIS-6")
async def test_a_generation_beyond_the_credential_is_not_told_from_nothing() -> None:
    with SessionSystem(":memory:", agents={"main": echo(), "ops": echo()}, config=SEES_ALL) as system:
        said = await system.ainbound(channel="webchat", chat_id="1", text="hi", sender="ann", wait=20)
        (row,) = (await system.tools().acall("sessions_list"))["sessions"]
        reset = await system.gateway.acall("sessions.reset", {"key": said["sessionKey"]})
        async with (
            served(mcp_app(system, check=check)) as address,
            over_http(
                f"{address}/mcp", authorization=bearer("ops"), intersession_session=row["sessionId"]
            ) as client,
        ):
            result = await client.call_tool("sessions_list", {})

    assert reset["entry"]["sessionId"] != row["sessionId"]
    assert result.structured_content["error"] == f"session not visible: {row['sessionId']}"


async def test_whoever_mounts_it_may_judge_where_a_request_comes_from_instead() -> None:
    async with door(allowed_hosts=None) as url:
        answer = await post(url, host="agents.example", origin="https://agents.example")

    assert answer.status_code == 200


# --- who gets in

LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
HEADERS = {"accept": "application/json, text/event-stream", "authorization": bearer("shared")}


async def post(url: str, body: Any = LIST, **headers: str) -> httpx2.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    given = HEADERS | {"content-type": "application/json"} | headers
    async with plain_http() as http:
        return await http.post(url, content=content, headers={k: v for k, v in given.items() if v})


@pytest.mark.parametrize("authorization", ["", "Bearer", "Bearer wrong", "Basic c2hhcmVk", "shared"])
async def test_nobody_gets_in_without_a_token(authorization: str) -> None:
    async with door() as url:
        refused = await post(url, authorization=authorization)

    assert refused.status_code == 401
    assert refused.headers["www-authenticate"].startswith("Bearer ")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"host": "127.0.0.1.evil.example:80"}, 421),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://localhost:3000"}, 200),
        ({"host": "agents.example"}, 200),
        ({"origin": "https://agents.example"}, 200),
        ({}, 200),
    ],
)
async def test_a_page_from_elsewhere_does_not_get_through_somebodys_browser(
    headers: dict[str, str], status: int
) -> None:
    allowed = {"allowed_hosts": ["agents.example"], "allowed_origins": ["https://agents.example"]}

    async with door(**allowed) as url:
        answer = await post(url, **headers)

    assert answer.status_code == status


@pytest.mark.parametrize(
    ("token", "resource", "status"),
    [
        ("shared", RESOURCE, 200),
        ("issued", RESOURCE, 200),
        ("issued-elsewhere", RESOURCE, 401),
        ("issued", None, 401),
    ],
)
async def test_a_token_that_was_issued_for_another_server_is_none(
    token: str, resource: str | None, status: int
) -> None:
    async with door(resource=resource) as url:
        answer = await post(url, authorization=bearer(token))

    assert answer.status_code == status


async def test_a_client_without_a_token_is_told_who_issues_them() -> None:
    async with door(resource=RESOURCE, issuers=["https://login.example"]) as url:
        refused = await post(url, authorization="")
        async with plain_http() as http:
            metadata = await http.get(url.replace("/mcp", "/.well-known/oauth-protected-resource/mcp"))

    assert (
        "https://agents.example/.well-known/oauth-protected-resource/mcp"
        in refused.headers["www-authenticate"]
    )
    assert metadata.json()["resource"] == RESOURCE
    assert metadata.json()["authorization_servers"] == ["https://login.example/"]


async def test_a_token_is_asked_for_anew_with_every_request() -> None:
    known = {"shared": CALLERS["shared"]}

    async def check_known(token: str) -> McpCaller | None:
        return known.get(token)

    with SessionSystem(":memory:", agents={"main": echo()}) as system:
        async with served(mcp_app(system, check=check_known)) as address:
            before = await post(f"{address}/mcp")
            known.clear()
            after = await post(f"{address}/mcp")

    assert (before.status_code, after.status_code) == (200, 401)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"nonsense", 400),
        (b"[" * 100_000, 400),
        ([LIST], 400),
        ({"id": 1}, 400),
        (b" " * 5000, 413),
    ],
    ids=["no JSON", "deep", "batch", "no method", "huge"],
)
async def test_what_is_no_request_is_refused_by_the_protocol(body: Any, status: int) -> None:
    async with door(most_bytes=4096 if status == 413 else 1_000_000) as url:
        refused = await post(url, body)
        served_then = await post(url)

    assert refused.status_code == status
    assert "Traceback" not in refused.text
    assert served_then.status_code == 200
