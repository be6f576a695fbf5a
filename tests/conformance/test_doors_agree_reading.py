"""What is read through one door is read through every other one, byte for byte."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from intersession import SessionSystem
from intersession_events.facts import AccessRecorded
from support.any_log import Logs
from support.doors.every import NAMES, Door, Unsayable, open_doors
from support.doors.full_house import (
    BOARD,
    CHILD,
    CONFIG,
    CRON,
    DESK,
    GONE,
    GRANDCHILD,
    GROUP,
    MAIN,
    NEW_PAGE,
    OPS,
    PEER,
    RESEARCH,
    SECRET,
    SESSION_IDS,
    SESSIONS,
    SEVENTH_QUESTION,
    STRANGER,
    TOPIC,
    full_house,
)
from support.running import WAIT, merged

Said = dict[str, Any]


@pytest.fixture(scope="module")
def doors(logs: Logs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Door]]:
    folder = tmp_path_factory.mktemp("house")
    story = full_house(logs.at(folder))
    with (
        SessionSystem(story.log, config=CONFIG, clock=story.clock) as system,
        open_doors(system, CONFIG, folder) as opened,
    ):
        yield opened
    story.close()


class Case(NamedTuple):
    """A question, and what is to be true of the answer, lest all doors agree on something else."""

    name: str
    clauses: str
    requester: str | None
    tool: str
    args: Mapping[str, Any]
    right: Callable[[Said], object]
    elsewhere: tuple[str, ...] = ()
    """Doors that answer something else, and rightly."""


def keys(*expected: str) -> Callable[[Said], object]:
    return lambda said: [row["key"] for row in said["sessions"]] == list(expected)


def count(number: int) -> Callable[[Said], object]:
    return lambda said: said["count"] == len(said["sessions"]) == number


def refused(code: str) -> Callable[[Said], object]:
    return lambda said: said["code"] == code and said["status"] in {"error", "forbidden"}


def texts(number: int) -> Callable[[Said], object]:
    return lambda said: len(said["messages"]) == number


def hides(secret: str) -> Callable[[Said], object]:
    return lambda said: said["contentRedacted"] and secret not in json.dumps(said)


def listed(name: str, clauses: str, right: Callable[[Said], object], /, **args: Any) -> Case:
    elsewhere = args.pop("elsewhere", ())
    return Case(name, clauses, args.pop("by", None), "sessions_list", args, right, elsewhere)


def history(name: str, clauses: str, right: Callable[[Said], object], /, **args: Any) -> Case:
    return Case(name, clauses, args.pop("by", None), "sessions_history", args, right)


def searched(name: str, clauses: str, right: Callable[[Said], object], /, **args: Any) -> Case:
    return Case(name, clauses, args.pop("by", None), "sessions_search", args, right)


def hits(*expected: str) -> Callable[[Said], object]:
    return lambda said: [hit["sessionKey"] for hit in said["hits"]] == list(expected)


OPEN = len(SESSIONS) - 1
SEEN_BY_MAIN = {"main", CHILD, GRANDCHILD}

CASES = [
    # --- sessions_list
    listed("all of it", "LIST-5 LIST-7 VIS-6", count(OPEN)),
    listed("as a session", "VIS-2", lambda said: {r["key"] for r in said["sessions"]} == SEEN_BY_MAIN, by=MAIN),
    listed("as a child", "VIS-2", lambda said: said["count"] == 2, by=CHILD),
    listed("as a sandboxed one", "VIS-5", keys(STRANGER), by=STRANGER),
    listed("as another agent's", "VIS-2 KEY-3", keys("main"), by=RESEARCH),
    listed("kinds", "LIST-1 KEY-7", count(3), kinds=["cron", "hook", "node"]),
    listed("no kinds", "LIST-1", count(OPEN), kinds=[]),
    listed("limit", "LIST-2", count(2), limit=2, asOf=100),
    listed("a limit of none", "LIST-2", count(1), limit=0, asOf=100),
    listed("a limit beyond", "LIST-2", count(OPEN), limit=1_000_000_000),
    listed("a limit that is a fraction", "LIST-1", count(2), limit=2.9, asOf=100),
    listed("activeMinutes", "LIST-3", lambda said: said["count"] >= 1, activeMinutes=1, asOf=40),
    # A command has a clock of its own, and it is not the test's.
    listed("activeMinutes now", "LIST-3", count(OPEN), activeMinutes=1, elsewhere=("command line",)),
    listed("messageLimit", "LIST-4", lambda said: any("messages" in r for r in said["sessions"]), messageLimit=2),
    listed("messages of a tree", "LIST-4 HIST-5", lambda said: said["contentRedacted"], by=MAIN, messageLimit=20),
    listed("messageLimit beyond", "LIST-4", lambda said: said["messageLimitApplied"] == 20, messageLimit=99),
    listed("search", "LIST-4", keys(GROUP), search="oPs Ro"),
    listed("label", "LIST-4", count(2), label="desk"),
    listed("a label that is not plain", "LIST-4", keys(BOARD), label="board \N{SNOWMAN}"),
    listed("agentId", "LIST-1", lambda said: {r["key"] for r in said["sessions"]} == {OPS, DESK}, agentId="ops"),
    listed("asOf a position", "LIST-8", count(3), asOf=3),
    listed("asOf a time", "LIST-8", count(3), asOf="1970-01-01T00:16:40.003Z"),
    listed("a page", "LIST-7", lambda said: said["nextCursor"], limit=3, asOf=60),
    listed("many filters", "LIST-2", count(1), kinds=["other"], agentId="main", search="SUBAGENT", limit=1, asOf=100),
    listed("an unknown kind", "LIST-1", refused("invalid_request"), kinds=["main", "direct"]),
    listed("an unknown field", "LIST-1", refused("invalid_request"), kind="main"),
    listed("a wrong type", "LIST-1", refused("invalid_request"), limit="5"),
    listed("a number that is true", "LIST-1", refused("invalid_request"), limit=True),
    listed("no agent's id", "LIST-1", refused("invalid_request"), agentId="not an agent"),
    listed("a cursor that is none", "LIST-7", refused("invalid_request"), cursor="nonsense"),
    listed("asOf beyond the end", "LIST-8", refused("invalid_request"), asOf=1_000_000),
    listed("asOf no time", "LIST-8", refused("invalid_request"), asOf="yesterday"),
    listed("asOf in the future", "LIST-8", refused("invalid_request"), asOf="2999-01-01T00:00:00Z"),
    # --- sessions_history
    history("one's own", "HIST-1 HIST-3", texts(25), sessionKey="main", by=MAIN),
    history("the operator's main", "KEY-2", texts(25), sessionKey="main"),
    history("limit", "HIST-2", texts(5), sessionKey=MAIN, limit=5),
    history("includeTools", "HIST-2", texts(26), sessionKey=MAIN, includeTools=True),
    history("tools before the limit", "HIST-2", texts(1), sessionKey=MAIN, includeTools=True, limit=1),
    history("before", "HIST-4", texts(3), sessionKey=MAIN, before=SEVENTH_QUESTION, limit=3),
    history("asOf", "HIST-1", lambda said: len(said["messages"]) < 25, sessionKey=MAIN, asOf=30),
    history("a secret of another's", "HIST-4 HIST-5", hides(SECRET), sessionKey=CHILD, by=MAIN),
    history("a secret of its own", "HIST-4", lambda said: SECRET in json.dumps(said), sessionKey=CHILD, by=CHILD),
    history("a long text", "HIST-4", lambda said: said["contentTruncated"], sessionKey=CHILD),
    history("too much", "HIST-4", lambda said: said["droppedMessages"] > 0, sessionKey=GRANDCHILD),
    history("hostile words", "HIST-3", lambda said: len(said["messages"]) == 18, sessionKey=SESSION_IDS[BOARD]),
    history("after a reset", "KEY-5 GATE-2", texts(1), sessionKey=BOARD),
    history("a generation", "KEY-5", texts(1), sessionKey=NEW_PAGE),
    history("a sessionId", "KEY-5", texts(1), sessionKey=SESSION_IDS[GROUP]),
    history("an archived one", "HIST-7", texts(1), sessionKey=SESSION_IDS[GONE]),
    history("an archived one's key", "HIST-7", refused("not_visible"), sessionKey=GONE),
    history("a bare cron", "KEY-3", texts(1), sessionKey="cron:nightly"),
    history("a bare group", "KEY-3", texts(1), sessionKey="telegram:group:-100"),
    history("a topic", "KEY-1", texts(1), sessionKey=TOPIC),
    history("an id that keeps its case", "KEY-6", texts(1), sessionKey=PEER),
    history("a key in any case", "KEY-6", texts(1), sessionKey=f" {CRON.replace('cron', 'CRON')}\t"),
    history("an aborted run", "GATE-5", lambda said: said["messages"], sessionKey=DESK),
    history("a parent", "HIST-6 VIS-2", refused("not_visible"), sessionKey=BOARD, by=STRANGER),
    history("nobody", "HIST-6", refused("not_visible"), sessionKey="agent:main:nobody", by=MAIN),
    history("another agent's", "HIST-6 VIS-2", refused("forbidden"), sessionKey=OPS, by=MAIN),
    history("another agent's nobody", "HIST-6", refused("forbidden"), sessionKey="agent:ops:nobody", by=MAIN),
    history("another agent's id", "HIST-6", refused("not_visible"), sessionKey=SESSION_IDS[OPS], by=MAIN),
    history("no key", "KEY-6", refused("invalid_key"), sessionKey="agent::main"),
    history("an empty key", "KEY-6", refused("invalid_key"), sessionKey=""),
    history("nothing", "HIST-1", refused("invalid_request")),
    history("an unknown field", "HIST-1", refused("invalid_request"), sessionKey=MAIN, tools=True),
    history("a wrong type", "HIST-1", refused("invalid_request"), sessionKey=5),
    history("an unknown message", "HIST-4", refused("invalid_request"), sessionKey=MAIN, before="nobody's"),
    # --- sessions_search
    searched("all of it", "FIND-1 VIS-6", lambda said: len(said["hits"]) == 11 and said["cursor"] is None, query="HELLO"),
    searched("a page", "FIND-1", lambda said: len(said["hits"]) == 2 and said["cursor"], query="hello", limit=2),
    searched("behind a cursor", "FIND-1", hits("main"), query="question", limit=1, cursor="30"),
    searched("one's own", "FIND-1 VIS-2", hits("main"), query="question 7", by=MAIN),
    searched("nothing of strangers", "FIND-1 VIS-2", hits(), query="hello", by=MAIN),
    searched("a sandboxed one's", "FIND-1 VIS-5", hits(STRANGER), query="hello", by=STRANGER),
    searched("a secret of one's own", "FIND-1 HIST-5", hits("main", "main"), query=SECRET, by=MAIN),
    searched("a secret of another", "FIND-1 HIST-5", hits(), query=SECRET, sessionKey=CHILD, by=MAIN),
    searched("the words around it", "FIND-1 HIST-5", hits(CHILD), query="my key is", sessionKey=CHILD, by=MAIN),
    searched("an earlier generation", "FIND-1", hits(BOARD), query="a new page", sessionKey=BOARD),
    searched("another agent's", "FIND-1 HIST-6", refused("forbidden"), query="x", sessionKey=OPS, by=MAIN),
    searched("a parent", "FIND-1 HIST-6", refused("not_visible"), query="x", sessionKey=BOARD, by=STRANGER),
    searched("no word", "FIND-1", refused("invalid_request"), query="***"),
    searched("no query", "FIND-1", refused("invalid_request")),
    searched("an unknown field", "FIND-1", refused("invalid_request"), query="x", words="y"),
    # --- agents_list
    Case("the operator's agents", "SPAWN-2", None, "agents_list", {}, lambda said: len(said["agents"]) == 3),
    Case("an agent's", "SPAWN-2", MAIN, "agents_list", {}, lambda said: not said["allowAny"]),
    Case("any agent's", "SPAWN-2", RESEARCH, "agents_list", {}, lambda said: said["allowAny"]),
    Case("agents with a field", "SPAWN-2", MAIN, "agents_list", {"all": 1}, refused("invalid_request")),
]  # fmt: skip


def may_be_unsayable(name: str, case: Case, said: Said) -> bool:
    """Whether a door may have no words for a question: the exceptions are few, and each has a reason."""
    match name:
        case "command line":  # it has no agents, and its own parser refuses what is no value of an option
            return (
                case.tool in {"agents_list", "sessions_search"}
                or said.get("code") == "invalid_request"
                or case.name == "a limit that is a fraction"
            )
        case (
            "pykka"
        ):  # Python itself makes no message with unknown fields, or without those that are required
            return said.get("code") == "invalid_request"
        case "MCP over pipes" | "MCP passed on":  # such a client is a session
            return case.requester is None
        case _:
            return False


def _parameters() -> Iterator[Any]:
    """Yield all cases; every day has those that prove a clause of a tool first."""
    proven: set[tuple[str, str]] = set()
    for case in CASES:
        proves = {(case.tool, clause) for clause in case.clauses.split()}
        marks = [pytest.mark.clause(clause) for clause in case.clauses.split()]
        marks += [] if proves - proven else [pytest.mark.ci]
        proven |= proves
        yield pytest.param(case, marks=marks, id=f"{case.tool}, {case.name}")


@pytest.mark.clause("VIS-3")
@pytest.mark.parametrize("case", list(_parameters()))
def test_every_door_gives_the_same_answer(doors: Mapping[str, Door], case: Case) -> None:
    answer = doors["python"].ask(case.requester, case.tool, case.args)
    said = json.loads(answer)
    differing: dict[str, Any] = {}
    for name in NAMES:
        if name in case.elsewhere:
            continue
        try:
            other = doors[name].ask(case.requester, case.tool, case.args)
        except Unsayable:
            assert may_be_unsayable(name, case, said)
            continue
        if other != answer:
            differing[name] = json.loads(other)

    assert case.right(said), said
    assert differing == {}, said


@pytest.mark.clause("VIS-4")
def test_every_door_leaves_the_same_receipts(logs: Logs, tmp_path: Path) -> None:
    audited = merged(CONFIG, {"audit": {"access": "all"}})
    asked = (("sessions_list", {"limit": 5}), ("sessions_history", {"sessionKey": BOARD}))
    story = full_house(logs.at(tmp_path))
    receipts: dict[str, list[tuple[str, AccessRecorded]]] = {}
    with (
        SessionSystem(story.log, config=audited, clock=story.clock) as system,
        open_doors(system, audited, tmp_path) as doors,
    ):
        for name in (name for name in NAMES if name != "command line"):  # it reads a log and leaves it alone
            head = system.log.head()
            for tool, args in asked:
                doors[name].ask(MAIN, tool, args)
            assert story.log.wait_for(head + len(asked), timeout=WAIT)
            receipts[name] = [
                (item.stream, msgspec.structs.replace(item.event, door=None))
                for item in system.log.all(after=head)
                if isinstance(item.event, AccessRecorded)
            ]
    story.close()

    assert [len(left) for left in receipts.values()] == [len(asked)] * len(receipts)
    assert all(left == receipts["python"] for left in receipts.values()), receipts
