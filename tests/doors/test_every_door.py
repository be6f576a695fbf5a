"""Every way out of a system, taken from the tables of the code, with secrets planted everywhere and two callers who may not see them (X11).

A new method, tool or command is walked by itself: without words on how it is asked, or on what it may show, a test fails.
"""

import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from mcp import Client, StdioServerParameters

from intersession import Failure, SessionSystem, Turn, echo
from intersession.cli.app import COMMANDS
from intersession.gateway.admission.limits import Limits
from intersession.gateway.door import OWN_METHODS
from intersession_actors.assembly.methods.methods import METHODS
from intersession_actors.calls.tools.registry import TOOLS
from intersession_actors.hindsight.debugger.verbs.verbs import VERBS
from intersession_actors.outside.channels.channels import MemoryChannel
from support.doors.command_line import environment, process, ran
from support.doors.every import NAMES, Door, open_doors
from support.doors.gateway_live import GATEWAY, READER, TOKEN, LiveGateway
from support.every_day import every_day
from support.oracle import uuid
from support.paths import ROOT
from support.planted import told_in
from support.running import SEES_ALL, WAIT, merged

MAIN, OPS = "agent:main:main", "agent:ops:main"
ALL_OF_MAIN: Final = "a-token-with-all-scopes-for-main"
WORD: Final = "quokkaberry"
"""A word that only ops and those who wrote to it have said."""

SECRETS: Final = {
    "in a message": "sk-proj-Me1Ss2Ag3Eq4Wx5Yz6Ab7Cd8Ef9Gh0",
    "nested in an argument": "Nest5Qx8Wc2Vb6Er",
    "keyed in an argument": "Keyd7Yh3Kd9Ju1Po",
    "split over lines": "Spli4Rt6Pl8Mn2Qa",
    "in a result": "Resu9Fg5Hj7Kl3Zx",
    "in a label": "sk-label-Qw3Er5Ty7Ui9Op1As2Df4",
    "in a name": "ghp_Na2Me4Bc6De8Fg0Hi1Jk3Lm5No7Pq9Rs1Tu",
    "in an error": "Err0r6Bn4Mv2Cx8Z",
    "in a thread id": "xoxb-1234567890-Th2Re4Ad6Id8Qw1Er3Ty5",
    "in an attachment": "Atta3Ws5Ed7Rf9Tg",
    "in a note": "N0te8Uj6Hy4Gt2Fr",
    "in a reply": "Repl2Qa4Ws6Ed8Rf",
}

WHERE_NAMED: Final = ("subagents", "sessions_yield", "session_status", "read_file")
"""Tools that a session has where settings name them."""

CONFIG: Final[dict[str, Any]] = merged(
    SEES_ALL,
    GATEWAY,
    {
        "agents": {
            "defaults": {"subagents": {"allowAgents": ["*"]}},
            "list": [{"id": "main", "default": True}, {"id": "ops"}],
        },
        "tools": {"sessions_spawn": {"attachments": {"enabled": True}}, "alsoAllow": [*WHERE_NAMED]},
        "gateway": {
            "auth": {
                "credentials": [
                    *GATEWAY["gateway"]["auth"]["credentials"],
                    {
                        "name": "all-of-main",
                        "token": ALL_OF_MAIN,
                        "actAs": ["agent:main:*"],
                        "scopes": ["operator.read", "operator.write", "operator.admin", "operator.approvals"],
                    },
                ]
            },
            "tools": {"allow": ["sessions_send", "sessions_spawn"]},
        },
    },
)


def ops(turn: Turn) -> str:
    if turn.step != "message":
        return "NO_REPLY"
    if "fail" in turn.message:
        raise RuntimeError(f"{WORD}: refused, password={SECRETS['in an error']}")
    if "work" in turn.message:
        call = turn.record_call(
            "login",
            {
                "db": {"password": {"value": SECRETS["nested in an argument"]}},
                "apiKey": SECRETS["keyed in an argument"],
                "file": f"user: me\npassword: |\n  {SECRETS['split over lines']}\n{WORD}",
            },
        )
        turn.record_result(call, "login", {"secret": SECRETS["in a result"], "of": WORD})
        turn.tools.call(
            "sessions_spawn",
            {
                "task": f"read {WORD}",
                "attachments": [{"name": "a.env", "content": f"TOKEN={SECRETS['in an attachment']}"}],
            },
        )
        return f"{WORD}, password: {SECRETS['in a reply']}"
    return "NO_REPLY"


class House(NamedTuple):
    """A system in which ops was told and said secrets, its doors, and what went wrong in it."""

    system: SessionSystem
    live: LiveGateway
    doors: Mapping[str, Door]
    folder: Path
    failures: list[Failure]
    logged: Callable[[], str]
    there: Mapping[str, tuple[str, str]]


class Kept(logging.Handler):
    """Keeps the lines of our own loggers, whatever their level."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(logging.Formatter().format(record))


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    folder, failures, kept = tmp_path_factory.mktemp("house"), list[Failure](), Kept()
    loggers = [
        logging.getLogger(name) for name in ("intersession", "intersession_actors", "intersession_events")
    ]
    levels = [one.level for one in loggers]
    for one in loggers:
        one.addHandler(kept)
        one.setLevel(logging.DEBUG)
    channel = MemoryChannel(idempotent=True)
    with SessionSystem(
        folder / "log.db",
        agents={"main": echo("main heard "), "ops": ops},
        channels={"telegram": channel},
        config=CONFIG,
        on_failure=failures.append,
    ) as system:
        there = plant(system)
        with (
            open_doors(system, CONFIG, folder) as doors,
            LiveGateway(system, limits=Limits(check_s=0.02, keep_alive_s=0.05)) as live,
        ):
            yield House(system, live, doors, folder, failures, lambda: "\n".join(kept.lines), there)
    for one, level in zip(loggers, levels, strict=True):
        one.removeHandler(kept)
        one.setLevel(level)


def plant(system: SessionSystem) -> dict[str, tuple[str, str]]:
    """Have ops told and say each secret; return what there is of it by name, and beside each something like it that is not there."""
    said: dict[str, Any] = {
        "channel": "telegram",
        "chat_id": "bo",
        "sender": "bo",
        "agent_id": "ops",
        "thread": SECRETS["in a thread id"],
        "wait": WAIT,
    }
    for text in (f"work: {WORD} {SECRETS['in a message']}", f"fail {WORD}"):
        assert "runId" in system.inbound(text=text, **said)
    asked = {"sessionKey": OPS, "message": f"work on {WORD}", "timeoutSeconds": WAIT}
    system.tools("agent:ops:desk").call("sessions_send", asked)
    for key, name in ((OPS, "label"), ("agent:ops:desk", "displayName")):
        secret = SECRETS["in a label" if name == "label" else "in a name"]
        system.gateway.call("sessions.patch", {"key": key, name: secret})
    run = system.debug.runs(kind=["exchange"])["runs"][0]
    note = f"{WORD}: password is {SECRETS['in a note']}"
    system.gateway.call("notes.pin", {"run": run["id"], "text": note})
    system.inbound(channel="telegram", chat_id="ada", sender="ada", text="good morning", wait=WAIT)
    row = system.gateway.call("sessions.list", {"agentId": "ops"})["sessions"][0]
    failed = system.debug.runs(failed=True)["runs"][0]["id"]
    return {
        "KEY": (OPS, "agent:ops:nobody"),
        "ID": (row["sessionId"], uuid(901)),
        "RUN": (run["id"], uuid(902)),
        "FAILED": (failed, uuid(904)),
        "LABEL": (SECRETS["in a label"], "sk-label-Zz9Yy8Xx7Ww6Vv5Uu4Tt3"),
    }


told_of: Final = partial(told_in, secrets=SECRETS)


@pytest.mark.clause("X11")
def test_the_log_has_them_all_but_what_is_hidden_or_left_out_on_writing(house: House) -> None:
    whole = "".join(str(recorded) for recorded in house.system.log.all())

    assert {*SECRETS} - {*told_of(whole)} == {"in an error", "in an attachment"}


# --- who is limited to other sessions

METHOD_ASKED: Final[Mapping[str, list[dict[str, Any]]]] = {
    "agent": [{"sessionKey": "KEY", "message": "x", "idempotencyKey": "FRESH"}],
    "agent.identity.get": [{}, {"sessionKey": "KEY"}, {"agentId": "ops"}],
    "agent.wait": [{"runId": "RUN", "timeoutMs": 1}, {"runId": "FAILED", "timeoutMs": 1}],
    "agents.list": [{}],
    "chat.abort": [{"sessionKey": "KEY"}, {"sessionKey": MAIN, "runId": "RUN"}],
    "chat.history": [{"sessionKey": "KEY"}, {"sessionKey": "ID"}, {"sessionKey": "LABEL"}],
    "chat.inject": [{"sessionKey": "KEY", "message": "x"}],
    "chat.send": [{"sessionKey": "KEY", "message": "x", "idempotencyKey": "FRESH"}],
    "bundles.make": [{"run": "RUN"}, {"session": "KEY"}],
    "exports.make": [{"to": "cloudevents", "run": "RUN"}, {"to": "openai", "session": "KEY"}, {"to": "otlp"}],
    "checkpoints.take": [{}],
    "config.get": [{}],
    "connect": [{}],
    "deliveries.retry": [{"deliveryId": "RUN"}, {"failed": True}],
    "exchanges.held": [{}],
    "exchanges.hold": [{"runId": "RUN"}, {"sessionKey": "KEY"}],
    "exchanges.release": [{"runId": "RUN"}, {"sessionKey": "KEY"}],
    "forks.list": [{}, {"run": "RUN"}],
    "forks.make": [{"run": "RUN"}],
    "forks.remove": [{"fork": "RUN"}],
    "health": [{}, {"probe": True}],
    "import.framework": [{"from": "langgraph", "source": "/nowhere"}],
    "import.openclaw": [{"directory": "/nowhere"}],
    "models.list": [{}],
    "notes.pin": [{"run": "RUN", "text": "x"}],
    "people.forget": [{"person": "telegram:bo", "dryRun": True}],
    "retention.apply": [{"dryRun": True}],
    "runs.retry": [{"runId": "FAILED"}],
    "send": [
        {"channel": "telegram", "to": "bo", "message": "x", "idempotencyKey": "FRESH", "sessionKey": "KEY"}
    ],
    "sessions.compact": [{"key": "KEY"}],
    "sessions.delete": [{"key": "KEY"}],
    "sessions.erase": [{"key": "KEY"}],
    "sessions.list": [
        {"includeLastMessage": True, "includeDerivedTitles": True},
        {"limit": 1},
        {"agentId": "ops"},
        {"label": "LABEL"},
        {"search": "sk-label", "limit": 1},
        {"spawnedBy": "KEY"},
    ],
    "sessions.patch": [{"key": "KEY", "label": "x"}],
    "sessions.preview": [{"keys": ["KEY", "ID", "LABEL"]}],
    "sessions.reset": [{"key": "KEY"}],
    "sessions.resolve": [{"key": "KEY"}, {"sessionId": "ID"}, {"label": "LABEL"}],
    "status": [{}, {"at": "head"}],
    "system-presence": [{}],
    "calls.held": [{}],
    "calls.release": [{"holdId": "RUN"}],
    "cron.list": [{}],
    "cron.run": [{"jobId": "KEY"}],
    "cron.runs": [{"jobId": "KEY"}],
    "cron.status": [{}],
    "cron.update": [{"jobId": "KEY", "patch": {"enabled": False}}],
    "usage.budgets": [{}],
    "tools.invoke": [{"name": "sessions_list", "sessionKey": "KEY"}, {"name": "sessions_list"}],
    "tools.names": [{"sessionKey": "KEY"}, {}],
    "copies.at": [{"places": [["session:KEY", 1]]}],
    "copies.file": [{"name": "0"}],
    "copies.files": [{}],
    "copies.known": [{}],
    "copies.rows": [{"after": 0, "limit": 5}],
    "worker.act": [
        {"kind": "agent", "id": "RUN", "attempt": 1, "secret": "x", "act": {"type": "attachments"}}
    ],
    "worker.announce": [{"worker": "w"}],
    "worker.answer": [{"worker": "w", "kind": "agent", "id": "RUN", "attempt": 1, "content": ""}],
    "worker.events": [{"worker": "w", "kind": "agent", "id": "RUN", "attempt": 1, "after": 0}],
    "worker.leave": [{"worker": "w"}],
    "worker.renew": [{"worker": "w", "calls": []}],
    "worker.next": [{"worker": "w", "answer": {"kind": "agent", "id": "RUN", "attempt": 1, "content": ""}}],
    "worker.take": [{"worker": "w", "most": 1, "wait": 0}],
}
"""How each method is asked; RUN, KEY, ID, LABEL and FAILED stand for what there is of ops, FRESH for what was never said."""

VERB_ASKED: Final[Mapping[str, list[dict[str, Any]]]] = {
    "access": [{}, {"who": "KEY"}, {"denied": True, "limit": 1}],
    "calls": [{"limit": 1}, {"session": "KEY"}, {"tool": "login"}, {"agent": "ops"}, {"held": True}],
    "deliveries": [{"limit": 1}, {"session": "KEY"}, {"run": "RUN"}],
    "diff": [{"a": "RUN", "b": "FAILED"}],
    "erasures": [{}, {"session": "KEY"}],
    "events": [{"limit": 1}, {"session": "KEY"}, {"stream": "session:KEY"}, {"stream": "exchange:RUN"}],
    "hosts": [{}, {"limit": 1}],
    "imports": [{}],
    "lens": [{"run": "RUN"}, {"run": "FAILED"}],
    "messages": [{"limit": 1}, {"to": "KEY"}, {"from": "KEY"}],
    "origin": [{"words": WORD}, {"words": WORD, "run": "RUN"}, {"words": WORD, "seen": True}],
    "replay": [{"run": "RUN"}],
    "runs": [{"limit": 1}, {"session": "KEY"}, {"with": "KEY"}, {"failed": True}],
    "search": [{"words": WORD}, {"words": WORD, "in": "KEY"}, {"words": "quokka*", "limit": 1}],
    "show": [{"run": "RUN"}],
    "smells": [{"limit": 1}, {"run": "RUN"}, {"session": "KEY"}],
    "state": [{}, {"of": "KEY"}, {"as": "KEY"}, {"of": "RUN"}],
    "told": [{"person": "bo"}, {"person": "ada", "limit": 1}],
    "usage": [{}, {"by": ["session", "model"]}],
    "why": [{"of": "RUN"}, {"of": "RUN@end", "forward": True}],
}

TOOL_ASKED: Final[Mapping[str, list[dict[str, Any]]]] = {
    "agents_list": [{}],
    "sessions_history": [
        {"sessionKey": "KEY", "includeTools": True},
        {"sessionKey": "ID", "includeTools": True},
    ],
    "sessions_list": [{"messageLimit": 20}, {"label": "LABEL"}, {"search": "sk-l"}, {"limit": 1}],
    "sessions_search": [{"query": WORD}, {"query": "password"}, {"query": "quokka*", "limit": 1}],
    "sessions_send": [
        {"sessionKey": "KEY", "message": "still there?", "timeoutSeconds": 0},
        {"label": "LABEL", "message": "?"},
    ],
    "sessions_spawn": [{"task": "look", "agentId": "ops"}],
    "subagents": [{}, {"action": "steer", "target": "RUN", "message": "x"}],
    "sessions_yield": [{}],
    "session_status": [{"sessionKey": "KEY"}, {"sessionKey": "KEY", "changesSince": 1}],
    "read_file": [{"file": "notes.txt"}],
}


def test_each_method_verb_and_tool_has_words_on_how_it_is_asked() -> None:
    assert METHOD_ASKED.keys() | {f"debug.{verb}" for verb in VERBS} == METHODS.keys() | set(OWN_METHODS)
    assert VERB_ASKED.keys() == VERBS.keys()
    assert TOOL_ASKED.keys() == TOOLS.keys()


def asked_for(house: House, given: Any, *, absent: bool = False) -> Any:
    """Return arguments with the names of what is there, or of what is not."""

    def of(text: str) -> str:
        if text == "FRESH":
            return f"fresh-{next(_NUMBERS)}"
        return re.sub(
            r"\b[A-Z]{2,6}\b",
            lambda name: house.there[name[0]][absent] if name[0] in house.there else name[0],
            text,
        )

    if isinstance(given, str):
        return of(given)
    if isinstance(given, list):
        return [asked_for(house, one, absent=absent) for one in given]
    if isinstance(given, dict):
        return {name: asked_for(house, one, absent=absent) for name, one in given.items()}
    return given


_NUMBERS = iter(range(1, 1 << 31))

ASKED: Final = [
    *((method, given) for method, each in METHOD_ASKED.items() for given in each),
    *((f"debug.{verb}", given) for verb, each in VERB_ASKED.items() for given in each),
]


@pytest.mark.clause("X11", "VIS-6", "HIST-6")
def test_no_method_tells_a_limited_caller_of_others_or_whether_they_are_there(house: House) -> None:
    told: dict[str, Any] = {}
    with house.live.client(ALL_OF_MAIN) as client:
        for method, given in ASKED:
            there, absent = (
                client.request(method, asked_for(house, given, absent=absent)) for absent in (False, True)
            )
            text = json.dumps(there, ensure_ascii=False).replace(SECRETS["in a label"], "as it was typed")
            if told_of(text) or WORD in text:
                told[f"{method} {given}"] = text
            elif plain(house, there) != plain(house, absent) and method not in MOVES:
                told[f"{method} {given}"] = (plain(house, there), plain(house, absent))

    assert told == {}


MOVES: Final = frozenset({"health", "status", "system-presence"})
"""What tells the time, and asks for nobody."""


def plain(house: House, answer: Mapping[str, Any]) -> str:
    """Return an answer without the names that were asked for, the time, and the position of the log."""
    text = json.dumps({name: value for name, value in answer.items() if name != "id"}, sort_keys=True)
    for there, absent in house.there.values():
        text = text.replace(there, "NAME").replace(absent, "NAME")
        text = text.replace(there[:8], "NAME").replace(absent[:8], "NAME")
    return "".join("#" if letter.isdigit() else letter for letter in text).replace("#", "")


def heard(house: House, token: str, words: str) -> str:
    """Return all of the event stream, from the beginning until it has told some words and is silent."""
    lines: list[str] = []
    with house.live.http(token) as client, client.stream("GET", "/events", params={"after": 0}) as stream:
        for line in stream.iter_lines():
            lines.append(line)
            if line.startswith(": still here") and words in "\n".join(lines):
                break
    return "\n".join(lines)


@pytest.mark.clause("X11", "VIS-6")
def test_no_stream_tells_a_limited_caller_of_others(house: House) -> None:
    with house.live.client(ALL_OF_MAIN, caps=["tool-events"]) as client:
        house.system.inbound(
            channel="telegram", chat_id="bo", sender="bo", agent_id="ops", text=f"work {WORD}", wait=WAIT
        )
        own = {"sessionKey": MAIN, "message": "good evening", "idempotencyKey": "evening"}
        run = client.request("agent", own)["payload"]["runId"]
        client.event("chat", lambda payload: payload["runId"] == run and payload["state"] == "final")
        events = json.dumps(client.events)
    stream = heard(house, ALL_OF_MAIN, "good evening")

    assert (told_of(events + stream), WORD in events + stream, OPS in events + stream) == ([], False, False)


# --- a session that reads of another


@pytest.mark.clause("X11", "HIST-4", "HIST-5")
@pytest.mark.sampled("python", "HTTP", "MCP over pipes", "MCP passed on")
@pytest.mark.parametrize("name", NAMES)
def test_no_door_tells_a_session_a_secret_of_another(house: House, name: str) -> None:
    said: list[str] = []
    for tool, each in TOOL_ASKED.items():
        if (name, tool) in NO_COMMAND:
            continue
        said += [house.doors[name].ask(MAIN, tool, asked_for(house, given)).decode() for given in each]

    assert told_of("\n".join(said)) == []
    assert WORD in "\n".join(said), "it sees what they say"


@pytest.mark.ci
@pytest.mark.clause("X11", "FIND-2", "HIST-5")
async def test_no_verb_over_mcp_tells_a_session_a_secret_or_finds_one(house: House) -> None:
    """As the command gives them: they are hidden before anything is cut, and names of sessions have none."""
    config = house.folder / "config.json5"
    command, *arguments = process(
        "mcp", "--debug", "--as-session", MAIN, "--store", house.folder / "log.db", "--config", config
    )
    server = StdioServerParameters(command=command, args=arguments, env=environment(), cwd=house.folder)
    said: dict[str, str] = {}
    found: dict[str, Any] = {}
    async with Client(server) as client:
        for verb, each in VERB_ASKED.items():
            for given in each:
                answer = await client.call_tool(verb, asked_for(house, given))
                said[f"{verb} {given}"] = json.dumps(answer.structured_content, ensure_ascii=False)
        for name, secret in SECRETS.items():
            letters = secret.rpartition("-")[2].rpartition("_")[2]
            for words in (secret, f"{letters[:7]}*", f"{letters[:9]}*"):
                answer = await client.call_tool("search", {"words": words})
                assert answer.structured_content is not None
                if answer.structured_content["hits"]:
                    found[f"{name}: {words}"] = answer.structured_content["hits"]

    assert {asked: told_of(text) for asked, text in said.items() if told_of(text)} == {}
    assert found == {}
    assert WORD in "".join(said.values()), "it sees what they say"


NO_COMMAND: Final = {
    *(("command line", tool) for tool in ("agents_list", "sessions_search", "sessions_spawn")),
    *((door, tool) for door in ("command line", "pykka") for tool in WHERE_NAMED),
}


# --- what the operator is shown

RAW: Final = (
    "The operator reads them in Python, on the command line, by methods over the network, in downloads,"
)
"""The words of the page on redaction for what is shown as it was said."""


def test_the_page_says_where_they_are_shown() -> None:
    page = (ROOT / "docs/reference/redaction.md").read_text(encoding="utf-8")

    assert RAW in " ".join(page.split())


SHOWN: Final[Mapping[str, list[str]]] = {
    "sessions": [],
    "history": [OPS, "--tools"],
    "runs": [],
    "messages": [],
    "deliveries": [],
    "told": ["bo"],
    "calls": ["--tool=login"],
    "events": [],
    "replay": ["RUN", "--tools"],
    "lens": ["RUN"],
    "show": ["RUN"],
    "state": [],
    "why": ["RUN"],
    "origin": [WORD],
    "diff": ["RUN", "FAILED"],
    "search": [WORD],
    "smells": ["RUN"],
    "audit": ["access"],
}
"""Commands that show what was said, by the sentence above."""

HIDDEN: Final[Mapping[str, list[list[str]]]] = {
    "hosts": [[]],
    "imports": [[]],
    "usage": [[], ["--by=session"], ["--by=person"]],
    "erasures": [[]],
    "forks": [[]],
    "doctor": [[]],
    "verify": [[]],
    "config": [["check", "CONFIG"]],
    "policy": [["test", OPS], ["test", MAIN]],
    "completion": [["bash"], ["zsh"], ["fish"]],
    "keys": [["--help"]],
    "schedules": [[]],
    "rebuild": [["--help"]],
    "encryption": [["--help"]],
}
"""Commands that show nothing of what was said."""

ELSEWHERE: Final[Mapping[str, str]] = {
    **dict.fromkeys(("demo", "send", "abort", "retry", "hold", "release", "reset", "compact", "label", "delete", "erase", "forget"),
                    "changes sessions, and answers what the method does"),
    **dict.fromkeys(("import", "export", "migrate", "backup", "restore", "export-test", "fork", "checkpoint", "bundle"),
                    "writes files, which have what the log has"),
    **dict.fromkeys(("debug", "serve", "mcp"), "is a door, walked above or by the page's questions"),
    **dict.fromkeys(("fleet", "work", "witness"), "looks after hosts, agents and logs, and shows nothing of what was said"),
    **dict.fromkeys(("tail", "step"), "does not end by itself; shows what `events` and `show` do"),
}  # fmt: skip


def test_each_command_has_words_on_what_it_may_show() -> None:
    assert [*SHOWN, *HIDDEN, *ELSEWHERE].sort() == [*COMMANDS].sort()
    assert SHOWN.keys() | HIDDEN.keys() | ELSEWHERE.keys() == COMMANDS.keys()


def typed(house: House, command: str, given: list[str]) -> tuple[int, str]:
    config = house.folder / "config.json5"
    if command == "completion" or "--help" in given:
        more: list[str] = []
    elif command == "config":
        more, given = [], [str(config) if one == "CONFIG" else one for one in given]
    elif command in {"imports", "usage", "forks", "verify", "audit", "events"}:
        more = [f"--store={house.folder / 'log.db'}"]
    else:
        more = [f"--store={house.folder / 'log.db'}", f"--config={config}"]
    said = ""
    code = 0
    for json_too in ([], ["--json"]):
        done = ran(command, *(asked_for(house, one) for one in given), *more, *json_too)
        said, code = said + done.out + done.err, max(code, done.exit_code)
    return code, said


@pytest.mark.clause("X11")
@pytest.mark.parametrize("command", every_day(HIDDEN.keys(), *(HIDDEN.keys() - {"completion"})))
def test_no_command_that_shows_nothing_said_tells_a_secret(house: House, command: str) -> None:
    for given in HIDDEN[command]:
        code, said = typed(house, command, given)
        assert code in {0, 1}, said
        assert told_of(said) == []


@pytest.mark.clause("HIST-5")
@pytest.mark.parametrize("command", SHOWN)
def test_commands_that_show_what_was_said_end_well(house: House, command: str) -> None:
    code, said = typed(house, command, SHOWN[command])

    assert code == 0, said
    assert "Traceback" not in said


# --- what nobody is shown


@pytest.mark.clause("X11")
def test_no_line_of_a_log_and_no_failure_tells_a_secret(house: House) -> None:
    with house.live.client(TOKEN) as client:
        for method in ("health", "status", "config.get", "system-presence", "models.list", "agents.list"):
            said = json.dumps(client.request(method, {}))
            assert told_of(said) == [], method
    with house.live.http(TOKEN) as client:
        open_to_all = [client.get(path).text for path in ("/metrics", "/healthz", "/readyz", "/openapi.json")]
    with house.live.http(READER) as client:
        refused = [client.get(path).text for path in ("/metrics", "/nowhere", "/debug/api/nothing")]
    failed = "".join(f"{failure}{failure!r}" for failure in house.failures)

    assert WORD in failed, "the host is told of the run that failed"
    assert told_of(failed + house.logged() + "".join(open_to_all + refused)) == []
