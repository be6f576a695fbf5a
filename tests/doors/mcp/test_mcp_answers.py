"""What tools of the debugger answer over MCP: not too much at once, and in the terms of those tools."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from mcp import Client
from mcp_types import TextContent

from intersession import SessionSystem
from intersession.mcp.debugging import Operate, debug_server, terms_of
from intersession.mcp.server import Seat, mcp_server
from intersession_actors.assembly.methods.terms import in_terms_of_methods
from intersession_actors.hindsight.debugger.debugger import Debugger
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.rules.disclosure.advice import advised
from intersession_actors.rules.errors import ToolRefused
from intersession_events.basics.plain_json import JsonObject
from support.story import MAIN, Story

WORDS = "the ferry leaves at noon, and not before " * 8


def long_log(path: Path) -> Story:
    story = Story(path)
    for number in range(60):
        key = f"agent:main:room-{number}"
        story.open(key)
        for turn in range(10):
            name = f"{number:04}{turn:04}-0000-4000-8000-000000000000"
            story.run(key, name, f"{turn} {WORDS}", f"{turn} {WORDS}")
    return story


async def answered(client: Client, tool: str, **given: object) -> tuple[int, JsonObject]:
    result = await client.call_tool(tool, given)
    text = result.content[0]
    assert isinstance(text, TextContent)
    assert result.structured_content is not None
    assert list(msgspec.json.decode(text.text)) == list(result.structured_content)
    return len(text.text.encode()), result.structured_content


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    with closing(long_log(tmp_path_factory.mktemp("long") / "log.db")) as told:
        yield told


def debugging(story: Story, *, fork: Operate | None = None) -> Client:
    return Client(debug_server(Debugger(View(story.reader())), fork=fork))


@pytest.mark.clause("FIND-3")
async def test_no_answer_is_longer_than_a_model_has_room_for(story: Story) -> None:
    """All of a log at once had 134,072 bytes."""
    asked: list[tuple[str, JsonObject]] = [
        ("state", {}),
        ("state", {"limit": 1000, "messages": 1000}),
        ("state", {"from": 1, "to": "head"}),
        ("runs", {"limit": 500}),
        ("events", {"limit": 500}),
        ("messages", {"limit": 500}),
        ("origin", {"words": "the ferry leaves at noon"}),
    ]
    async with debugging(story) as client:
        for tool, given in asked:
            size, answer = await answered(client, tool, **given)
            assert 4_096 < size <= 65_536, tool
            assert next(iter(answer)) == "notGiven", tool
            assert answer["notGiven"].startswith("of "), tool
        size, answer = await answered(client, "state", of="agent:main:room-7")
    assert size < 65_536
    assert "notGiven" not in answer
    assert len(answer["sessions"][0]["transcript"]) == 20


@pytest.mark.clause("FIND-3")
async def test_a_shorter_page_is_followed_by_the_next_one(story: Story) -> None:
    positions: list[int] = []
    given: JsonObject = {"limit": 500}
    async with debugging(story) as client:
        for _ in range(40):
            size, page = await answered(client, "messages", **given)
            assert size <= 65_536
            positions += [message["position"] for message in page["messages"]]
            if page["cursor"] is None:
                break
            given["cursor"] = page["cursor"]
    assert len(positions) == 600
    assert positions == sorted(set(positions), reverse=True)


@pytest.mark.clause("FIND-3")
async def test_an_answer_that_can_be_asked_for_in_no_parts_is_cut_and_says_so(tmp_path: Path) -> None:
    run = "aaaa0001-0000-4000-8000-000000000001"
    with closing(Story(tmp_path / "log.db")) as story:
        story.open()
        story.run(MAIN, run, "a" * 100_000, "yes")
        async with debugging(story) as client:
            size, answer = await answered(client, "lens", run=run)
    assert size < 65_536
    assert answer["message"]["content"] == f"{'a' * 4_000}… [96000 characters cut]"
    assert "the ends of texts of more than 4000 characters" in answer["notGiven"]


@pytest.mark.clause("FIND-3")
async def test_why_begins_with_its_explanations(story: Story) -> None:
    async with debugging(story) as client:
        _, answer = await answered(client, "why", of="00000000-0000-4000-8000-000000000000")
    assert list(answer)[:4] == ["explanations", "event", "causes", "root"]


@pytest.mark.clause("FIND-3")
async def test_advice_names_the_tools_that_the_client_has(story: Story, tmp_path: Path) -> None:
    """A model was told to run commands in a shell that it does not have."""
    async with debugging(story) as client:
        for tool, given, said in (
            ("show", {"run": "nope12"}, "`runs` shows what there is"),
            ("why", {"of": "nope12"}, "`runs`, `events` and `deliveries` show what there is"),
            ("state", {"of": "nosuch"}, "`state` and `runs` show what there is"),
            ("state", {"at": "event:dead"}, "`events` shows what there is"),
        ):
            _, answer = await answered(client, tool, **given)
            assert said in answer["error"]
            assert "intersession " not in answer["error"]
    with SessionSystem(tmp_path / "other.db", agents={"main": lambda _: "hello"}) as system:
        await system.ainbound(channel="x", chat_id="1", text="hi", sender="ann", deliver=False)
        tools = system.tools("agent:main:main")
        async with Client(mcp_server(lambda _: Seat(tools, ("sessions_list",)))) as client:
            _, answer = await answered(client, "sessions_list", asOf="nope@end")
        assert "the operator's command `intersession runs` shows what there is" in answer["error"]
        refused = await system.gateway.acall("debug.show", {"run": "nope12"})
    assert refused == {
        "status": "error",
        "code": "invalid_request",
        "error": "run: no exchange, spawn or run is called 'nope12'; `debug.runs` shows what there is",
    }


@pytest.mark.clause("FIND-3")
@pytest.mark.parametrize(
    ("written", "as_tools", "as_methods"),
    [
        ("`intersession runs --held` shows what is", '`runs {"held":true}` shows what is', '`debug.runs {"held":true}` shows what is'),
        ("`intersession state ab --at ab@reply`", '`state {"of":"ab","at":"ab@reply"}`', '`debug.state {"of":"ab","at":"ab@reply"}`'),
        ("`intersession deliveries retry D` tries", "the operator's command `intersession deliveries retry D` tries", '`deliveries.retry {"deliveryId":"D"}` tries'),
        ("`intersession fork R --at PLACE`", '`fork {"run":"R","at":"PLACE"}`', '`forks.make {"run":"R","at":"PLACE"}`'),
        ("`intersession verify` says where", "the operator's command `intersession verify` says where", "the operator's command `intersession verify` says where"),
        ("use --skip or --drop; a fork whose `--deliver` names it", "use `skip` or `drop`; a fork whose `deliver` names it", "use `skip` or `drop`; a fork whose `deliver` names it"),
        ("no command here", "no command here", "no command here"),
    ],
)  # fmt: skip
def test_advice_is_called_as_at_the_door_of_the_question(
    written: str, as_tools: str, as_methods: str
) -> None:
    assert advised(written, terms_of(("fork", "forks"))) == as_tools
    assert in_terms_of_methods(ToolRefused("invalid_request", written)).error == as_methods


@pytest.mark.clause("FIND-3", "FORK-10")
async def test_what_changes_something_is_said_to_and_what_only_lists_is_not(story: Story) -> None:
    """It said that all tools change nothing, beside `fork`."""
    async with debugging(story) as client:
        assert "They read and change nothing." in str(client.instructions)
    async with debugging(story, fork=lambda _, given: dict(given)) as client:
        assert "They only read, but for fork." in str(client.instructions)
        listed = {tool.name: tool.annotations for tool in (await client.list_tools()).tools}
    assert {name for name, known in listed.items() if known is not None and not known.read_only_hint} == {
        "fork"
    }
