"""What is sent and spawned through one door has the answer, and leaves the log, of every other door: twins, step by step."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from intersession_events.facts import AttachmentsRemoved, ExchangeAccepted
from support.any_log import Logs
from support.doors.every import NAMES, Unsayable, open_doors
from support.doors.twins import CONFIG, ROOM, Twin
from support.every_day import every_day
from support.running import wait_for, wait_for_number

Said = dict[str, Any]
MAIN, OPS, SLOW = "agent:main:main", "agent:ops:main", "agent:slow:main"
GHOST, BOXED, VAULT = "agent:ghost:main", "agent:boxed:main", "agent:vault:main"
ROOM_KEY, DENIED = "agent:main:telegram:group:r1", "agent:ops:signal:group:g1"


class Step(NamedTuple):
    """A call, what is to be true of its answer, and what else happens before and after it in each twin."""

    name: str
    clauses: str
    requester: str | None
    tool: str
    args: Mapping[str, Any]
    right: Callable[[Said], object]
    before: Callable[[Twin], None] | None = None
    after: Callable[[Twin], None] | None = None
    elsewhere: tuple[str, ...] = ()


def status(expected: str, **fields: Any) -> Callable[[Said], object]:
    return lambda said: said["status"] == expected and said | fields == said and "runId" in said


def refused(code: str) -> Callable[[Said], object]:
    def right(said: Said) -> object:
        return said["code"] == code and "runId" not in said and len(said) == 3

    def wrong(said: Said) -> object:
        return right(said)

    return wrong if code == "invalid_request" else right


def send(name: str, clauses: str, right: Callable[[Said], object], /, **args: Any) -> Step:
    by = args.pop("by", MAIN)
    given = {key: args.pop(key) for key in ("before", "after", "elsewhere") if key in args}
    # The command line makes a key of its own where none is given, and no id of a run is the next one then.
    key = {} if "elsewhere" in given else {"idempotencyKey": f"key of {name}"}
    return Step(name, clauses, by, "sessions_send", {"message": "hi", **key, **args}, right, **given)


def spawn(name: str, clauses: str, right: Callable[[Said], object], /, **args: Any) -> Step:
    by = args.pop("by", MAIN)
    given = {key: args.pop(key) for key in ("before", "after", "elsewhere") if key in args}
    return Step(name, clauses, by, "sessions_spawn", {"task": "count", **args}, right, **given)


def read(name: str, clauses: str, tool: str, by: str | None, /, **args: Any) -> Step:
    return Step(f"after all of it, {name}", clauses, by, tool, args, lambda said: "status" not in said)


def open_up(twin: Twin) -> None:
    """Let people open the sessions that there are to be."""
    system = twin.system
    person: dict[str, Any] = {"text": "hello", "sender": "ann", "deliver": False}
    system.inbound(channel="telegram", chat_id="42", **person)
    system.inbound(channel="telegram", chat_id="r1", chat_type="group", **person)
    system.inbound(channel="signal", chat_id="g1", chat_type="group", agent_id="ops", **person)
    system.inbound(channel="telegram", chat_id="7", agent_id="vault", **person)
    for key, label in ((ROOM_KEY, "room"), (DENIED, "room"), (VAULT, "safe")):
        system.gateway.call("sessions.patch", {"key": key, "label": label})
    (room,) = system.tools().call("sessions_list", {"search": ROOM_KEY})["sessions"]
    twin.names["old"] = room["sessionId"]
    system.gateway.call("sessions.reset", {"key": ROOM_KEY})


def crowd(twin: Twin) -> None:
    """Fill the inbox of an agent that nobody has here."""
    for number in range(ROOM):
        twin.system.tools(MAIN).call(
            "sessions_send", {"agentId": "ghost", "message": f"{number}", "timeoutSeconds": 0}
        )


def wait_for_slow(twin: Twin) -> None:
    """Let main wait for the slow one, in a thread of its own."""
    args = {"sessionKey": SLOW, "message": "I wait", "idempotencyKey": "waiting", "timeoutSeconds": 60}
    accepted = sum(isinstance(item.event, ExchangeAccepted) for item in twin.system.log.all())
    tools = twin.system.tools(MAIN)
    threading.Thread(target=tools.call, args=("sessions_send", args), daemon=True).start()
    wait_for_number(twin.system, ExchangeAccepted, accepted + 1)


def reach(twin: Twin) -> None:
    twin.gate.reached()


def gone(twin: Twin) -> None:
    """Wait until a child's files are removed, which nobody else waits for."""
    wait_for(twin.system, AttachmentsRemoved)


STEPS = [
    # --- sessions_send: taken
    send("a reply", "SEND-5 SEND-8", status("ok", reply="heard: hi"), sessionKey=OPS, idempotencyKey="1"),
    send("a talk", "LOOP-1 ANN-1", status("ok"), sessionKey=OPS, message="talk aloud", idempotencyKey="2"),
    send("by the operator", "LOOP-4", status("ok"), by=None, sessionKey=OPS, idempotencyKey="3"),
    send("by agentId", "SEND-1", status("ok"), agentId="ops", idempotencyKey="4"),
    send("by label", "SEND-1", status("ok"), by=OPS, label="room", agentId="main", idempotencyKey="5"),
    send("a silence", "SEND-5", status("ok", reply="", noReply=True), agentId="ops", message="silence", idempotencyKey="6"),
    send("a failure", "SEND-7", status("error"), agentId="ops", message="fail", idempotencyKey="7"),
    send("fire and forget", "SEND-4", status("accepted"), agentId="ops", timeoutSeconds=0, idempotencyKey="8"),
    send("the same key", "SEND-11", status("ok", reply="heard: hi"), sessionKey=OPS, idempotencyKey="1"),
    send("the same key of another", "SEND-11", status("ok"), by=ROOM_KEY, sessionKey=OPS, idempotencyKey="1"),
    send("without a key", "SEND-5", status("ok"), agentId="ops", elsewhere=("command line",)),
    send("to a group with a route", "SEND-8", status("ok", delivery={"status": "pending", "mode": "announce"}), by=OPS, sessionKey=ROOM_KEY, idempotencyKey="9"),
    send("half a second", "SEND-1 SEND-6", status("timeout", delivered=True), sessionKey=SLOW, timeoutSeconds=0.5, idempotencyKey="10", after=reach),
    send("words in all scripts", "SEND-5", status("ok"), agentId="ops", message='\u202e\N{SNOWMAN}\U0001f600 \\ " \x1b[31m', idempotencyKey="11"),
    # --- sessions_send: refused
    send("the same key, other words", "SEND-11", refused("idempotency_conflict"), sessionKey=OPS, message="ho", idempotencyKey="1"),
    send("to oneself", "SEND-2", refused("self_send"), sessionKey="main"),
    send("to nobody", "SEND-2 HIST-6", refused("not_visible"), sessionKey="agent:main:nobody"),
    send("to an unknown label", "SEND-1", refused("not_visible"), label="nothing"),
    send("to an invisible label", "SEND-1 HIST-6", refused("not_visible"), label="safe"),
    send("to two of a label", "SEND-1", refused("ambiguous_label"), by=None, label="room"),
    send("to a closed agent", "HIST-6 VIS-2", refused("forbidden"), sessionKey=VAULT),
    send("to a closed agent by id", "HIST-6", refused("forbidden"), agentId="vault"),
    send("to no agent", "SEND-2", refused("forbidden"), agentId="nobody"),
    send("to no agent's id", "SEND-1", refused("invalid_request"), agentId="No Body"),
    send("to no key", "KEY-6", refused("invalid_key"), sessionKey="agent:main:"),
    send("to nothing", "SEND-1", refused("invalid_request")),
    send("to two at once", "SEND-1", refused("invalid_request"), sessionKey=OPS, label="room"),
    send("where the policy denies", "SEND-12 POL-3", refused("policy_denied"), sessionKey=DENIED),
    send("blank", "SEND-1", refused("invalid_request"), agentId="ops", message=" \n"),
    send("a message that is none", "SEND-1", refused("invalid_request"), agentId="ops", message=5),
    send("a timeout too long", "SEND-1", refused("invalid_request"), agentId="ops", timeoutSeconds=86_401),
    send("a field more", "SEND-1 PROV-2", refused("invalid_request"), agentId="ops", provenance={"kind": "external_user"}),
    send("in a cycle", "SEND-10", refused("cycle"), by=SLOW, sessionKey=MAIN, before=wait_for_slow),
    # Over Pykka, what is asked for a session at work goes on with its run (LOOP-5): there it would be one hop further.
    send("in a cycle, not waiting", "SEND-10", status("accepted"), by=SLOW, sessionKey=MAIN, timeoutSeconds=0, idempotencyKey="12", elsewhere=("pykka",)),
    send("to who has too much", "GATE-4", refused("busy"), agentId="ghost", timeoutSeconds=0, before=crowd),
    # --- sessions_spawn: refused
    spawn("no task", "SPAWN-1", refused("invalid_request"), task=" "),
    spawn("a parent of one's choice", "SPAWN-6", refused("invalid_request"), spawnedBy=OPS),
    spawn("an agent that is closed", "SPAWN-2", refused("agent_not_allowed"), agentId="ops"),
    spawn("no agent's id", "SPAWN-2", refused("invalid_request"), agentId="Worker\u212a"),
    spawn("no model", "SPAWN-4", refused("invalid_model"), model="nothing/none"),
    spawn("no thinking", "SPAWN-4", refused("invalid_thinking"), thinking="hard"),
    spawn("an unsandboxed one from a box", "SPAWN-5", refused("sandbox_inherit"), by=BOXED, agentId="ghost"),
    spawn("a box that is none", "SPAWN-5", refused("sandbox_required"), agentId="ghost", sandbox="require"),
    spawn("a thread on no channel", "SPAWN-12", refused("no_threads"), thread=True),
    spawn("a runtime that is not there", "SPAWN-1", refused("not_supported"), runtime="acp"),
    spawn("a session without a thread", "SPAWN-1", refused("invalid_request"), mode="session"),
    spawn("no time", "SPAWN-1", refused("invalid_request"), runTimeoutSeconds=-1),
    spawn("a name that is none", "ATT-2", refused("invalid_name"), attachments=[{"name": "../x", "content": "x"}]),
    spawn("one name twice", "ATT-2", refused("duplicate_name"), attachments=[{"name": "a", "content": "x"}, {"name": "A", "content": "x"}]),
    spawn("no base64", "ATT-2", refused("invalid_base64"), attachments=[{"name": "a", "content": "QR==", "encoding": "base64"}]),
    spawn("no encoding", "ATT-2", refused("invalid_request"), attachments=[{"name": "a", "content": "x", "encoding": "hex"}]),
    spawn("too many files", "ATT-1", refused("file_count_exceeded"), attachments=[{"name": f"{n}", "content": "x"} for n in range(3)]),
    spawn("too large a file", "ATT-1", refused("file_bytes_exceeded"), attachments=[{"name": "a", "content": "x" * 9}]),
    spawn("too much in all", "ATT-1", refused("total_bytes_exceeded"), attachments=[{"name": f"{n}", "content": "x" * 7} for n in range(2)]),
    # --- sessions_spawn: taken
    spawn("a child", "SPAWN-6", status("accepted", mode="run"), label="counter", model="one", thinking="high", idempotencyKey="s1"),
    spawn("a child again", "SPAWN-6", status("accepted", mode="run"), label="counter", model="one", thinking="high", idempotencyKey="s1"),
    spawn("another child under its key", "SPAWN-6", refused("idempotency_conflict"), task="more", idempotencyKey="s1"),
    spawn("a child with a file", "ATT-3", lambda said: said["attachments"]["files"][0]["bytes"] == 2, attachments=[{"name": "a.txt", "content": "\N{LATIN SMALL LETTER E WITH ACUTE}"}], after=gone),
    spawn("a child of the operator's", "SPAWN-2", status("accepted"), by=None, agentId="ops"),
    spawn("who never comes", "SPAWN-3", status("accepted"), agentId="ghost"),
    spawn("who never comes either", "SPAWN-3", status("accepted"), agentId="boxed", cleanup="delete"),
    spawn("one too many", "SPAWN-3", refused("spawn_limit")),
    spawn("of a child, a child", "SPAWN-3", refused("subagent_spawn"), by="child"),
    send("of a child", "SPAWN-7 VIS-2", refused("self_send"), by="child", sessionKey="child", message="I"),
    # --- what is there now
    read("the operator's list", "LIST-5", "sessions_list", None, messageLimit=20),
    read("the list of one", "LIST-5", "sessions_list", MAIN),
    read("a child's list", "LIST-5", "sessions_list", "child"),
    read("the history of ops", "HIST-3", "sessions_history", MAIN, sessionKey=OPS, includeTools=True),
    read("the history of main", "HIST-3 PROV-2", "sessions_history", None, sessionKey=MAIN, limit=1000),
    read("the history of the slow one", "HIST-3", "sessions_history", MAIN, sessionKey=SLOW),
    read("the child's history", "HIST-3 PROV-2", "sessions_history", MAIN, sessionKey="child"),
    read("an old generation", "KEY-5", "sessions_history", OPS, sessionKey="old"),
    read("the agents", "SPAWN-2", "agents_list", MAIN),
]  # fmt: skip


def may_be_unsayable(name: str, step: Step) -> bool:
    """Whether a door may have no words for a call: the exceptions are few, and each has a reason."""
    wrong = step.right.__name__ == "wrong"
    match name:
        case "command line":  # it spawns nothing, and its own parser refuses what is no value of an option
            return step.tool in {"sessions_spawn", "agents_list"} or wrong or name in step.elsewhere
        case (
            "pykka"
        ):  # Python itself makes no message with unknown fields, or without those that are required
            return wrong
        case "MCP over pipes" | "MCP passed on" if step.requester is None:  # such a client is a session
            return True
        case "MCP over pipes" | "MCP passed on" | "MCP over HTTP":  # what a client is not shown is not there
            return step.name == "of a child, a child"
        case _:
            return False


assert len({step.name for step in STEPS}) == len(STEPS)


class Played(NamedTuple):
    """What came of all steps: answers by the step's name, those that the door could not say, and the log by stream."""

    answers: dict[str, bytes]
    unsaid: dict[str, str]
    log: dict[str, list[tuple[str, bytes]]]


def play(name: str, logs: Logs, folder: Path) -> Played:
    """Take all steps through one door of a twin of its own; what it can't say is done in Python."""
    answers: dict[str, bytes] = {}
    unsaid: dict[str, str] = {}
    with Twin(logs, folder) as twin, open_doors(twin.system, CONFIG, folder, ("python", name)) as doors:
        open_up(twin)
        for step in STEPS:
            twin.settle()
            if step.before is not None:
                step.before(twin)
                twin.settle()
            requester = twin.names.get(step.requester or "", step.requester)
            args = {
                field: twin.names.get(value, value) if isinstance(value, str) else value
                for field, value in step.args.items()
            }
            door = doors["python" if name in step.elsewhere else name]
            try:
                answer = door.ask(requester, step.tool, args)
            except Unsayable as reason:
                unsaid[step.name] = str(reason)
                answer = doors["python"].ask(requester, step.tool, args)
            answers[step.name] = answer
            if step.after is not None:
                step.after(twin)
            if step.name == "a child":
                twin.names["child"] = json.loads(answer)["childSessionKey"]
        twin.settle()
        return Played(answers, unsaid, written(twin))


def written(twin: Twin) -> dict[str, list[tuple[str, bytes]]]:
    """Return the log, stream by stream: streams that have nothing to do with each other have no order."""
    log: dict[str, list[tuple[str, bytes]]] = {}
    here = str(Path(twin.system.log.place).parent).encode()
    for item in twin.system.log.all():
        event = msgspec.json.encode(item.event).replace(here, b"here")
        log.setdefault(item.stream, []).append((item.topic, event))
    return log


@pytest.fixture(scope="module")
def in_python(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """What came of it on a log in a file: whoever plays on a server is held against it."""
    return play("python", Logs(), tmp_path_factory.mktemp("python"))


def _parameters() -> Iterator[Any]:
    for step in STEPS:
        marks = [pytest.mark.clause(clause) for clause in step.clauses.split()]
        yield pytest.param(step, marks=marks, id=f"{step.tool}, {step.name}")


@pytest.mark.parametrize("step", list(_parameters()))
def test_each_call_has_the_answer_that_the_clauses_want(in_python: Played, step: Step) -> None:
    said = json.loads(in_python.answers[step.name])

    assert step.right(said), said


@pytest.mark.clause("VIS-3")
@pytest.mark.sampled("HTTP", "MCP over pipes")
@pytest.mark.parametrize(
    "name",
    every_day(
        [name for name in NAMES if name not in {"python", "another host"}],
        "HTTP",
        "MCP over pipes",
        "WebSocket",
    ),
)
def test_every_door_answers_the_same_and_leaves_the_same_log(
    in_python: Played, name: str, logs: Logs, tmp_path: Path
) -> None:
    played = play(name, logs, tmp_path)

    differing = {
        step: (json.loads(played.answers[step]), json.loads(answer))
        for step, answer in in_python.answers.items()
        if played.answers[step] != answer
    }
    streams = {
        stream: (played.log.get(stream), in_python.log.get(stream))
        for stream in played.log.keys() | in_python.log.keys()
        if played.log.get(stream) != in_python.log.get(stream)
    }
    assert differing == {}
    assert streams == {}
    assert not [step for step in STEPS if step.name in played.unsaid and not may_be_unsayable(name, step)]
