"""`intersession mcp --debug`: the verbs of the debugger as tools that read and change nothing."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from mcp import Client, MCPError, StdioServerParameters

from intersession.mcp.debugging import debug_server
from intersession_actors.hindsight.debugger.debugger import Debugger
from intersession_actors.hindsight.debugger.verbs.verbs import VERBS
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.rules.errors import ToolRefused
from intersession_events.basics.plain_json import JsonMapping, JsonObject
from intersession_events.facts import Provenance
from support.doors.command_line import environment, process, ran
from support.story import MAIN, Story

OPS = "agent:ops:main"


@pytest.fixture
def story(tmp_path: Path) -> Iterator[Story]:
    told = Story(tmp_path / "log.db")
    for key in (MAIN, OPS):
        told.open(key)
        told.say(key, f"hello {key}", provenance=Provenance(kind="external_user"))
    yield told
    told.close()


@pytest.mark.clause("PLACE-3")
async def test_each_verb_is_a_tool_that_says_it_only_reads(story: Story) -> None:
    async with Client(debug_server(Debugger(View(story.reader())))) as client:
        listed = (await client.list_tools()).tools
        answer = (await client.call_tool("state", {"of": "ops", "at": "head"})).structured_content

    assert [tool.name for tool in listed] == list(VERBS)
    assert all(tool.annotations is not None and tool.annotations.read_only_hint for tool in listed)
    assert answer is not None
    assert [session["key"] for session in answer["sessions"]] == [OPS]
    assert answer["sessions"][0]["transcript"][0]["content"] == f"hello {OPS}"


@pytest.mark.clause("PLACE-3", "VIS-2")
async def test_a_client_that_is_a_session_sees_what_that_one_may(story: Story) -> None:
    reader = story.reader({"tools": {"sessions": {"visibility": "self"}}})
    async with Client(debug_server(Debugger(View(reader, reader.requester(MAIN))))) as client:
        everything = (await client.call_tool("state", {})).structured_content
        hidden = (await client.call_tool("state", {"of": "ops"})).structured_content
        nobody = (await client.call_tool("state", {"of": "opsy"})).structured_content
        other_eyes = (await client.call_tool("state", {"as": "ops"})).structured_content

    assert everything is not None
    assert [session["key"] for session in everything["sessions"]] == [MAIN]
    assert hidden is not None
    assert nobody is not None
    assert other_eyes is not None
    assert (hidden["code"], hidden["error"].replace("ops", "opsy")) == (nobody["code"], nobody["error"])
    assert other_eyes["code"] == "not_visible"


async def test_what_is_no_place_or_no_verb_is_refused(story: Story) -> None:
    async with Client(debug_server(Debugger(View(story.reader())))) as client:
        refused = await client.call_tool("state", {"at": "noon"})
        assert refused.is_error
        with pytest.raises(MCPError, match="there is no tool"):
            await client.call_tool("sessions_send", {})


@pytest.mark.ci
async def test_the_command_needs_no_host_and_reads_beside_one(story: Story, tmp_path: Path) -> None:
    command, *arguments = process("mcp", "--debug", "--store", tmp_path / "log.db")
    server = StdioServerParameters(command=command, args=arguments, env=environment(), cwd=tmp_path)
    async with Client(server) as client:
        answer = (await client.call_tool("state", {"at": "-1"})).structured_content
    assert answer is not None
    assert answer["place"]["position"] == story.log.head() - 1


@pytest.mark.clause("LIVE-1")
async def test_holds_are_tools_only_where_they_are_allowed(story: Story) -> None:
    done: list[tuple[str, JsonMapping]] = []

    def operate(method: str, params: JsonMapping) -> JsonObject:
        done.append((method, params))
        if params.get("runId") == "gone":
            raise ToolRefused("unknown_run", "runId: there is no run 'gone'")
        return {"status": "released"}

    debugger = Debugger(View(story.reader()))
    async with Client(debug_server(debugger)) as client:
        with pytest.raises(MCPError, match="there is no tool"):
            await client.call_tool("release", {"runId": "r1"})
    async with Client(debug_server(debugger, operate=operate)) as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        answer = (await client.call_tool("release", {"runId": "r1", "text": "fine"})).structured_content
        refused = await client.call_tool("hold", {"runId": "gone"})

    assert set(listed) == {*VERBS, "hold", "release"}
    annotations = listed["release"].annotations
    assert annotations is not None
    assert annotations.read_only_hint is False
    assert "holdId" in listed["release"].input_schema["properties"]
    assert answer == {"status": "released"}
    assert refused.is_error
    assert done == [
        ("exchanges.release", {"runId": "r1", "text": "fine"}),
        ("exchanges.hold", {"runId": "gone"}),
    ]


@pytest.mark.clause("FORK-10")
async def test_forks_are_tools_only_where_they_are_allowed(story: Story, tmp_path: Path) -> None:
    command, *arguments = process("mcp", "--debug", "--allow-fork", "--store", tmp_path / "log.db")
    server = StdioServerParameters(command=command, args=arguments, env=environment(), cwd=tmp_path)
    async with Client(debug_server(Debugger(View(story.reader())))) as client:
        with pytest.raises(MCPError, match="there is no tool"):
            await client.call_tool("fork", {"run": "r1"})
    async with Client(server) as client:
        listed = [tool.name for tool in (await client.list_tools()).tools]
        refused = await client.call_tool("fork", {"run": "r1"})
        forks = (await client.call_tool("forks", {})).structured_content

    assert listed == [*VERBS, "fork", "forks"]
    assert refused.is_error
    assert forks == {"forks": [], "unread": []}


@pytest.mark.ci
@pytest.mark.clause("BUNDLE-8")
@pytest.mark.usefixtures("story")
async def test_bundles_go_into_the_folder_that_was_given(tmp_path: Path) -> None:
    folder = tmp_path / "bundles"
    folder.mkdir()
    store = ("--store", tmp_path / "log.db")
    command, *arguments = process("mcp", "--debug", "--allow-bundle", folder, *store)
    server = StdioServerParameters(command=command, args=arguments, env=environment(), cwd=tmp_path)
    async with Client(server) as client:
        listed = [tool.name for tool in (await client.list_tools()).tools]
        made = (await client.call_tool("bundle", {"session": "ops"})).structured_content
        again = await client.call_tool("bundle", {"session": "ops"})
        exported = (await client.call_tool("export", {"to": "cloudevents"})).structured_content

    assert listed == [*VERBS, "bundle", "export"]
    assert made is not None
    assert exported is not None
    assert {str(file) for file in folder.iterdir()} == {made["file"], exported["file"]}
    assert again.is_error
    for more in ((), ("--debug", "--as-session", "main")):
        refused = ran("mcp", "--allow-bundle", folder, *more, *store)
        assert refused.exit_code == 2
        assert "--allow-bundle" in refused.err


@pytest.mark.clause("FORK-10")
@pytest.mark.parametrize("more", [(), ("--debug", "--as-session", "main")])
def test_forks_are_allowed_to_the_operator_who_debugs_alone(tmp_path: Path, more: tuple[str, ...]) -> None:
    refused = ran("mcp", "--allow-fork", *more, "--store", tmp_path / "log.db")
    assert refused.exit_code == 2
    assert "--allow-fork" in refused.err


@pytest.mark.clause("LIVE-1")
@pytest.mark.parametrize("more", [(), ("--debug", "--as-session", "main")])
def test_holds_are_allowed_to_the_operator_who_debugs_alone(tmp_path: Path, more: tuple[str, ...]) -> None:
    refused = ran("mcp", "--allow-hold", *more, "--store", tmp_path / "log.db")
    assert refused.exit_code == 2
    assert "--allow-hold" in refused.err
