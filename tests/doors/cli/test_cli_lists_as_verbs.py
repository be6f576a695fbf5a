"""The lists over the whole log are verbs of the debugger: Python, the gateway and MCP answer what the commands print (FIND-2)."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from intersession import SessionSystem, ToolRefused, Turn, open_log
from intersession.mcp.debugging import debug_server
from intersession_actors.calls.service.callers import Caller
from intersession_actors.calls.service.reader import Reader
from intersession_actors.hindsight.debugger.debugger import Debugger
from intersession_actors.hindsight.debugger.view import View
from intersession_events.facts import AnnounceDecided, ExchangeClosed, Provenance
from support.doors.command_line import DemoLog, ran
from support.running import SEES_ALL, wait_for
from support.story import MAIN, Story

OPS = "agent:ops:main"
SECRET = "sk-abcdefghijklmnopqrstuvwxyz0123456789"

QUESTIONS: list[tuple[str, list[str], dict[str, Any]]] = [
    ("runs", [], {}),
    ("runs", ["--kind", "exchange", "--kind", "spawn"], {"kind": ["exchange", "spawn"]}),
    ("runs", ["--session", "research", "--with", "main"], {"session": "research", "with": "main"}),
    ("runs", ["--end", "turn_limit", "--smell"], {"end": ["turn_limit"], "smell": True}),
    ("runs", ["--person", "ada", "--words", "lake"], {"person": "ada", "words": "lake"}),
    ("runs", ["--open", "--at", "30"], {"open": True, "at": 30}),
    ("runs", ["--limit", "1"], {"limit": 1}),
    ("messages", [], {}),
    ("messages", ["--inter-session", "--to", "research"], {"interSession": True, "to": "research"}),
    ("messages", ["--from", "main", "--why"], {"from": "main", "why": True}),
    ("messages", ["--person", "ada", "--delivered"], {"person": "ada", "delivered": True}),
    ("messages", ["--since", "20", "--until", "60", "--limit", "2"], {"since": 20, "until": 60, "limit": 2}),
    ("deliveries", [], {}),
    ("deliveries", ["--session", "main"], {"session": "main"}),
    ("deliveries", ["--failed", "--pending"], {"failed": True, "pending": True}),
    ("deliveries", ["--pending", "--at", "77"], {"pending": True, "at": 77}),
    ("access", ["--who", "operator", "--limit", "1"], {"who": "operator", "limit": 1}),
    ("access", ["--denied"], {"denied": True}),
    ("deliveries", ["--channel", "discord", "--limit", "1"], {"channel": "discord", "limit": 1}),
    ("events", ["--limit", "7"], {"limit": 7}),
    ("events", ["--kind", "turn_ended"], {"kind": ["turn_ended"]}),
    ("events", ["--stream", "session:research"], {"stream": "session:research"}),
    ("events", ["--stream", "delivery:", "--since", "40"], {"stream": "delivery:", "since": 40}),
    ("events", ["--session", "main", "--cursor", "60"], {"session": "main", "cursor": "60"}),
]


@pytest.mark.clause("FIND-2")
@pytest.mark.parametrize(("verb", "options", "given"), QUESTIONS)
async def test_each_list_is_the_same_on_the_command_line_in_python_and_over_mcp(
    demo_log: DemoLog, verb: str, options: list[str], given: dict[str, Any]
) -> None:
    """An agent that debugs agents could not list what there was to look at, nor could Python or the gateway."""
    command = ["audit", "access"] if verb == "access" else [verb]
    printed = ran(*command, *options, "--store", demo_log.path, "--json")
    with open_log(demo_log.path) as log:
        called = log.debug.call(verb, given)
        async with Client(debug_server(log.debug)) as client:
            over_mcp = (await client.call_tool(verb, given)).structured_content

    assert printed.exit_code == 0, printed.err
    assert called == {name: value for name, value in _plain(printed.json).items() if name != "unknown"}
    assert over_mcp == called


def _plain(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return it without who is at work now: only a command looks for that."""
    return {
        name: [{key: value for key, value in row.items() if key != "atWork"} for row in value]
        if isinstance(value, list)
        else value
        for name, value in answer.items()
    }


@pytest.mark.clause("FIND-2")
def test_the_methods_of_python_ask_what_they_are_given(demo_log: DemoLog) -> None:
    with open_log(demo_log.path) as log:
        debug = log.debug
        first = debug.runs(limit=1)
        rest = debug.runs(cursor=first["cursor"])
        assert [*first["runs"], *rest["runs"]] == debug.runs()["runs"]
        (exchange,) = debug.runs(kind=["exchange"], session="research", with_="main", end=["turn_limit"])[
            "runs"
        ]
        assert exchange["id"] == demo_log.exchange
        assert debug.runs(open_=True)["runs"] == []
        said = debug.messages(from_="research", to="main", inter_session=True, why=True)["messages"]
        assert {(row["from"], row["to"]) for row in said} == {("agent:research:main", MAIN)}
        assert [row["runId"] for row in debug.deliveries(run=demo_log.exchange)["deliveries"]]
        assert [row["kind"] for row in debug.events(kind=["loop_ended"])["events"]] == ["turn_ended"]
        with pytest.raises(ToolRefused, match="stream: no stream begins with 'somewhere'"):
            debug.events(stream="somewhere")
        with pytest.raises(ToolRefused, match="kind: no event is called"):
            debug.events(kind=["said"])


@pytest.mark.clause("FIND-2")
def test_notes_and_erasures_are_found_by_the_names_of_their_streams(tmp_path: Path) -> None:
    store = tmp_path / "log.db"
    with SessionSystem(store, agents={"ops": lambda _: "fine"}) as system:
        said = system.inbound(channel="t", chat_id="1", sender="ada", text="hi", agent_id="ops", wait=20)
        run = said["runId"]
        system.gateway.call("notes.pin", {"run": run, "text": "look", "at": "head"})
        (pinned,) = system.debug.events(stream="notes:")["events"]
        system.erase(said["sessionKey"], reason="asked to", unsent="giveUp")

    listed = ran("events", "--stream", "erased:", "--store", store, "--json")
    assert {row["kind"] for row in listed.json["events"]} == {"erased"}, listed.err
    assert pinned["stream"] == f"notes:{run}"
    assert ran("events", "--stream", pinned["stream"], "--store", store).exit_code == 0


@pytest.mark.clause("FIND-2")
def test_the_gateway_has_them_and_leaves_a_receipt(tmp_path: Path) -> None:
    agents = {"main": lambda _: "asked", "ops": lambda turn: "REPLY_SKIP" if turn.step == "reply" else "fine"}
    with SessionSystem(tmp_path / "log.db", agents=agents, config=SEES_ALL) as system:
        system.tools(MAIN).call("sessions_send", {"agentId": "ops", "message": "well?", "timeoutSeconds": 20})
        wait_for(system, ExchangeClosed)
        limited = Caller.by_credential("desk", ("agent:main:*",))
        (run,) = system.gateway.call("debug.runs", {"kind": ["exchange"]})["runs"]
        (seen,) = system.gateway.perform("debug.runs", {"kind": ["exchange"]}, caller=limited)["runs"]

    assert (run["requester"], run["target"], run["state"]) == (MAIN, OPS, "closed")
    assert seen["id"] == run["id"]


@pytest.fixture
def story(tmp_path: Path) -> Iterator[Story]:
    """Tell of two sessions that people spoke to, one of them with a secret."""
    told = Story(tmp_path / "log.db")
    for key in (MAIN, OPS):
        told.open(key)
        told.say(key, f"hello {SECRET}", provenance=Provenance(kind="external_user", sender="ann"))
    yield told
    told.close()


def as_main(story: Story) -> Debugger:
    reader: Reader = story.reader({"tools": {"sessions": {"visibility": "self"}}})
    return Debugger(View(reader, reader.requester(MAIN)))


@pytest.mark.clause("FIND-2", "VIS-2")
def test_a_limited_caller_gets_what_it_sees_and_nothing_stored(story: Story) -> None:
    debug = as_main(story)

    assert {row["to"] for row in debug.messages()["messages"]} == {MAIN}
    found = debug.events()["events"]
    assert {row["stream"] for row in found} == {f"session:{MAIN}"}
    assert not any("data" in row or "causation" in row for row in found)
    assert debug.events(stream=f"session:{OPS}")["events"] == []
    assert debug.events(stream="access:")["events"] == []


@pytest.mark.clause("FIND-2", "HIST-5")
def test_a_limited_caller_reads_no_secret_of_others(story: Story) -> None:
    reader: Reader = story.reader(SEES_ALL)
    debug = Debugger(View(reader, reader.requester(MAIN)))

    said = {row["to"]: row["text"] for row in debug.messages()["messages"]}
    assert (SECRET in said[MAIN], SECRET in said[OPS]) == (True, False)
    told = {row["stream"]: row["text"] for row in debug.events(kind=["message_recorded"])["events"]}
    assert (SECRET in told[f"session:{MAIN}"], SECRET in told[f"session:{OPS}"]) == (True, False)


@pytest.mark.clause("FIND-2", "VIS-2")
@pytest.mark.parametrize(
    ("verb", "given"),
    [
        ("runs", {"words": "hello"}),
        ("runs", {"person": "ann"}),
        ("runs", {"channel": "telegram"}),
        ("messages", {"person": "ann"}),
    ],
)
def test_what_would_tell_of_others_only_the_operator_asks(
    story: Story, verb: str, given: dict[str, Any]
) -> None:
    with pytest.raises(ToolRefused, match="only the operator") as refused:
        as_main(story).call(verb, given)
    assert refused.value.code == "forbidden"


@pytest.mark.clause("FIND-2")
def test_what_the_system_says_of_a_request_is_not_what_its_session_said(tmp_path: Path) -> None:
    """`messages --from` had the announce step of each spawn of that session, which the system says."""

    def main(turn: Turn) -> str:
        if turn.step == "message" and ":subagent:" not in turn.session_key:
            turn.tools.call("sessions_spawn", {"task": "count"})
        return "done"

    with SessionSystem(tmp_path / "log.db", agents={"main": main}, config=SEES_ALL) as system:
        system.inbound(channel="t", chat_id="1", sender="ada", text="hi", agent_id="main", wait=20)
        wait_for(system, AnnounceDecided)
        said = system.debug.messages(from_="main")["messages"]

    assert [(row["from"], row["text"]) for row in said] == [(MAIN, "count")]
