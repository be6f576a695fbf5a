"""What a limited caller is answered at every door is what it would be answered if nothing beyond its reach existed (VIS-6, X2).

Two logs are asked the same: one in which all happened, and one in which each event that the caller may not know of is a note of
nobody's. All else is the same in both, to the last id, time and position. What is asked comes from the tables of the code: each verb,
question of a page and tool that reads, with each of its fields. A new one is walked by itself, and one whose field is of a kind that
nobody gave a value for is red.
"""

import asyncio
import json
import re
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import pytest
from mcp import Client
from msgspec import inspect as types

from intersession import MemoryChannel, SessionSystem, ToolRefused, Turn
from intersession.cli.commands.demo import play_round
from intersession.cli.commands.demo_agents import AGENTS, CONFIG
from intersession.mcp.debugging import debug_server
from intersession.web.questions.files import What
from intersession.web.questions.of_attachments import Attachment
from intersession.web.questions.table import QUESTIONS
from intersession.web.rate import Rates
from intersession_actors.calls.service.callers import Caller
from intersession_actors.calls.tools.registry import TOOLS
from intersession_actors.hindsight.debugger.debugger import Debugger
from intersession_actors.hindsight.debugger.verbs.verbs import VERBS
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.rules.policy.questions import OPERATORS, check_asked
from intersession_events.facts import Event, MessageRecorded, NotePinned, RunStarted, unsaid
from intersession_events.log.recorded import ANY_VERSION, Draft, Recorded, StreamAppend
from intersession_events.stores.opened import open_log
from intersession_projections.questions.places.located import sessions_of, steps_of_flow
from intersession_projections.questions.places.runs_named import flow_sessions
from intersession_projections.views.inline_views import inline_views
from support.doors.gateway_live import GATEWAY, READER, TOKEN, WRITER, LiveGateway
from support.oracle import uuid
from support.running import merged
from support.story import StillClock

MAIN, RESEARCH, HIDDEN = "agent:main:main", "agent:research:main", "agent:research:telegram:group:bo"
OPENED: Final = "a-token-that-sees-research"

SETTINGS: Final[dict[str, Any]] = merged(
    CONFIG,
    GATEWAY,
    {
        "audit": {
            "access": "off"
        },  # receipts are events, and would be at other positions where an answer has fewer sessions
        "runs": {"shutdownGraceSeconds": 0},
        "gateway": {
            "auth": {
                "credentials": [
                    *GATEWAY["gateway"]["auth"]["credentials"],
                    {
                        "name": "sees",
                        "token": OPENED,
                        "actAs": ["agent:main:main"],
                        "sees": ["agent:research:main"],
                    },
                ]
            }
        },
    },
)


ASKED: Final = merged(SETTINGS, {"tools": {"sessions": {"visibility": "self"}}})
"""When the logs are asked, a session sees itself alone; when they were written, all saw all."""


class Limited(NamedTuple):
    """A limited caller: by a credential, or a session."""

    token: str = ""
    reaches: tuple[str, ...] = ()
    session: str | None = None

    def sees(self, key: str) -> bool:
        return key == self.session if self.session else bool(re.match("|".join(self.reaches) or "$", key))


CALLERS: Final = {
    "a credential of some sessions": Limited(READER, ("agent:main:",)),
    "a credential of none": Limited(WRITER, ("agent:ops:",)),
    "a credential that sees one more": Limited(OPENED, ("agent:main:main$",)),
    "a session": Limited(session=MAIN),
}


class World(NamedTuple):
    """A log that is asked, behind all its doors."""

    system: SessionSystem
    gateway: LiveGateway


Ask = Callable[[str, dict[str, Any]], Any]


class Way(NamedTuple):
    """A door: what is asked there, with which arguments, and how it is opened."""

    asked: Mapping[str, type[msgspec.Struct]]
    opened: Callable[[World, Limited], Any]
    is_of: Callable[[Limited], bool]


@contextmanager
def in_python(world: World, caller: Limited) -> Generator[Ask]:
    """Open `gateway.perform`, as a door calls it for a credential."""
    name, act_as, sees = next(
        (one.name, one.act_as, one.sees)
        for one in world.system.config.gateway.auth.credentials
        if one.token == caller.token
    )
    limited = Caller.by_credential(name, act_as, sees=sees)

    def ask(verb: str, given: dict[str, Any]) -> Any:
        try:
            return world.system.gateway.perform(f"debug.{verb}", given, caller=limited)
        except ToolRefused as refused:
            return dict(refused.as_result())

    yield ask


@contextmanager
def over_websocket(world: World, caller: Limited) -> Generator[Ask]:
    with world.gateway.client(caller.token) as client:

        def ask(verb: str, given: dict[str, Any]) -> Any:
            frame = client.request(f"debug.{verb}", given)
            return {name: value for name, value in frame.items() if name != "id"}

        yield ask


@contextmanager
def by_pages(world: World, caller: Limited) -> Generator[Ask]:
    with world.gateway.http(caller.token) as client:

        def ask(question: str, given: dict[str, Any]) -> Any:
            query = {
                name: value if isinstance(value, list) else _in_query(value) for name, value in given.items()
            }
            answer = client.get(f"/debug/api/{question}", params=query)
            return {"status": answer.status_code, **answer.json()}

        yield ask


def _in_query(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@contextmanager
def over_mcp(world: World, caller: Limited) -> Generator[Ask]:
    """Open `mcp --debug --as-session`."""
    reader = world.system.service.reader
    server = debug_server(Debugger(View(reader, reader.requester(caller.session)).hiding()))

    async def call(verb: str, given: dict[str, Any]) -> Any:
        async with Client(server) as client:
            return (await client.call_tool(verb, given)).structured_content

    yield lambda verb, given: asyncio.run(call(verb, given))


@contextmanager
def tools_of_session(world: World, caller: Limited) -> Generator[Ask]:
    yield lambda tool, given: world.system.tools(caller.session).call(tool, given)


@contextmanager
def tools_over_http(world: World, caller: Limited) -> Generator[Ask]:
    """Open `/tools/invoke` for a credential, as the session that it may act as."""

    def ask(tool: str, given: dict[str, Any]) -> Any:
        return world.gateway.invoke(tool, given, token=caller.token, sessionKey=MAIN).json()

    yield ask


def _has_token(caller: Limited) -> bool:
    return bool(caller.token)


def _is_session(caller: Limited) -> bool:
    return not caller.token


_VERBS: Final = {name: verb.arguments for name, verb in VERBS.items()}
_OF_A_FORK: Final = [("fork", str | None, None)]
_BESIDE: Final[dict[str, type[msgspec.Struct]]] = {
    "about": msgspec.defstruct("About", []),
    "attachment": Attachment,
    "file": msgspec.defstruct(
        "File",
        [("what", What), ("run", str | None, None), ("session", str | None, None), ("at", str | None, None)],
    ),
}
_PAGES: Final = {
    name: msgspec.defstruct(name, [*_OF_A_FORK] if name != "about" else [], bases=(arguments,), kw_only=True)
    for name, arguments in ({question.name: question.arguments for question in QUESTIONS} | _BESIDE).items()
}
"""What is asked of each page: any can be asked of a fork."""
_READING: Final = {name: tool.arguments for name, tool in TOOLS.items() if tool.reads}

DOORS: Final = {
    "Python": Way(_VERBS, in_python, _has_token),
    "WebSocket": Way(_VERBS, over_websocket, _has_token),
    "pages": Way(_PAGES, by_pages, _has_token),
    "MCP": Way(_VERBS, over_mcp, _is_session),
    "tools": Way(_READING, tools_of_session, _is_session),
    "tools over HTTP": Way(_READING, tools_over_http, _has_token),
}

WALKS: Final = {
    f"{door}, {name}": (door, name)
    for door, way in DOORS.items()
    for name, caller in CALLERS.items()
    if way.is_of(caller)
}


# --- what happened


def _at_work(turn: Turn) -> str:
    if turn.message.startswith("Ask main"):
        return str(turn.tools.call("sessions_send", {"sessionKey": MAIN, "message": "Is the boat there?"}))
    if turn.message.startswith("Weigh"):
        return str(turn.tools.call("sessions_list", {"search": "zanzibar"})["count"])
    if turn.message.startswith("Fail"):
        raise RuntimeError("the boat sank")
    return str(AGENTS["research"](turn)) if turn.step != "message" else "The boat is of seven metres."


def play(store: Path) -> None:
    """Play the demo, and then have somebody speak to research of what nobody else says."""
    channel = MemoryChannel(idempotent=True)
    with SessionSystem(
        store, agents=AGENTS, channels={"telegram": channel, "discord": channel}, config=SETTINGS
    ) as system:
        play_round(system)
    agents = {"main": lambda _: "It is.", "research": _at_work}
    with SessionSystem(
        store,
        agents=agents,
        channels=dict.fromkeys(("telegram", "signal", "discord"), channel),
        config=SETTINGS,
    ) as system:
        for text in (
            "How long is the boat?",
            "Ask main.",
            "Fail, please: the boat.",
            "How long is the boat?",
        ):
            for name, place in (("telegram", "bo"), ("signal", "eve")):
                told: dict[str, Any] = {
                    "channel": name,
                    "chat_id": place,
                    "chat_type": "group",
                    "sender": place,
                    "agent_id": "research",
                }
                system.inbound(text=text, wait=20, **told)
        # What research looks for meanwhile, main never hears.
        system.tools(MAIN).call(
            "sessions_send", {"sessionKey": RESEARCH, "message": "Weigh the van.", "timeoutSeconds": 20}
        )
        while any(system.debug.state()["open"].values()):
            time.sleep(0.01)
        system.gateway.call("sessions.patch", {"key": HIDDEN, "label": "boat"})


def copied(source: Path, target: Path, known: set[int] | None, caller: Limited | None = None) -> None:
    """Copy a log event by event; what is not known becomes a note of nobody's at the same place.

    A step of a session that the caller does not see says something else there, unless it is heard on the other side.
    """
    with open_log(str(source), read_only=True) as log, open_log(str(target), inline=inline_views()) as copy:
        for one in log.all():
            if one.position <= copy.head():
                continue
            is_known = known is None or one.position in known
            event: Event = (
                one.event if is_known else NotePinned(flow="none", position=1, text="", by="nobody")
            )
            if isinstance(event, MessageRecorded) and caller is not None and not caller.sees(_session(one)):
                event = unsaid(event)
            if isinstance(event, RunStarted) and one.stream != f"session:{MAIN}":
                # What such a run was given is not all there any more: for the hash to fit, it is one that is made up.
                event = msgspec.structs.replace(event, context_hash="0" * 64)
            draft = Draft(
                event=event,
                id=one.id if is_known else uuid(one.position),
                time=one.time,
                causation=one.causation if is_known else None,
                correlation=one.correlation if is_known else None,
                decision=one.decision if is_known else "",
                is_dated=True,
            )
            stream = one.stream if is_known else "notes:none"
            copy.append_now((StreamAppend(stream=stream, expected=ANY_VERSION, drafts=(draft,)),))
            assert copy.head() == one.position


def _session(one: Recorded) -> str:
    return one.stream.partition(":")[2]


@contextmanager
def asked_of(store: Path) -> Generator[World]:
    channel = MemoryChannel()
    with open_log(str(store), read_only=True) as log:
        clock = StillClock(max(one.time for one in log.all()) + 1_000)
    with (
        SessionSystem(
            store,
            agents=AGENTS,
            channels={"telegram": channel, "discord": channel, "signal": channel},
            config=ASKED,
            clock=clock,
        ) as system,
        LiveGateway(system) as gateway,
    ):
        gateway.door.questions = Rates(lambda: 0.0, burst=10**9)
        yield World(system, gateway)


class Worlds:
    """The log in which all happened, and for each caller the one in which nothing happened beyond its reach."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder, self._stack = folder, stack
        self._source = folder / "played.db"
        play(self._source)
        copied(self._source, folder / "all.db", None)
        self.all = stack.enter_context(asked_of(folder / "all.db"))
        self._known: dict[str, World] = {}
        self.values = _values(self.all.system.debug)

    def known_to(self, name: str) -> World:
        if name not in self._known:
            store = self._folder / f"{len(self._known)}.db"
            caller = CALLERS[name]
            copied(self._source, store, known_positions(self.all.system.debug.view, caller), caller)
            self._known[name] = self._stack.enter_context(asked_of(store))
            assert self._known[name].system.log.head() == self.all.system.log.head()
        return self._known[name]


def known_positions(view: View, caller: Limited) -> set[int]:
    """Return where what a caller may know of stands: all of its sessions, and of others what is a step of something that they take part in.

    Of those others it knows that they are there.
    """
    log = view.log
    known = {
        one.position
        for one in log.all()
        if one.stream.partition(":")[0] in {"log", "clock"} or any(map(caller.sees, sessions_of(log, one)))
    }
    for run in Debugger(view).runs(limit=1_000)["runs"]:
        flow = view.flow(run["id"])
        if not any(map(caller.sees, flow_sessions(flow))):
            continue
        known |= {step.position for step in steps_of_flow(log, flow)}
        known |= {log.stream(f"session:{key}", limit=1)[0].position for key in flow_sessions(flow)}
    return known


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worlds]:
    with ExitStack() as stack:
        yield Worlds(tmp_path_factory.mktemp("worlds"), stack)


# --- what is asked


def _values(debug: Debugger) -> Mapping[str, list[Any]]:
    """Return what each field is given that is a text: of the caller's own, of others, and of nobody."""
    *_, own = debug.runs(kind=["exchange"], session=MAIN, words="lake crossing")["runs"]
    (spawn,) = debug.runs(kind=["spawn"])["runs"]
    hidden, *_ = debug.runs(session=HIDDEN)["runs"]
    mixed = debug.runs(kind=["run"], session=RESEARCH, limit=1)["runs"][0]["id"]
    asking, *_ = debug.runs(kind=["exchange"], session=HIDDEN)["runs"]
    runs = [own["id"], f"{own['id']}@turn:2", spawn["id"], own["runId"], mixed, hidden["id"], "no-such-run"]
    sessions = [MAIN, RESEARCH, HIDDEN, "agent:research:telegram:group:no", "boat", spawn["target"]]
    places = [
        "head",
        5,
        -3,
        10**9,
        hidden["accepted"],
        f"{hidden['id']}@end",
        f"{own['id']}@turn:2",
        "2026-11-29",
    ]
    words = ["lake crossing", "boat", "seven metres", "Ask main", "zanzibar", "nobody said this"]
    return {
        **dict.fromkeys(("a", "b", "run", "than"), runs),
        **dict.fromkeys(("session", "with", "in", "as", "sessionKey"), sessions),
        **dict.fromkeys(("at", "since", "until", "asOf"), places),
        **dict.fromkeys(("words", "query", "args", "result", "search"), words),
        "of": [
            *runs,
            *sessions,
            *places,
            *(step["position"] for step in debug.show(asking["id"])["rows"] if "position" in step),
        ],
        "from": [*sessions, *places],
        "to": [*sessions, *places, "bo"],
        "agent": ["main", "research", "vault"],
        "agentId": ["main", "research", "vault"],
        "before": ["1", 2, "m1"],
        "channel": ["telegram", "signal"],
        "code": [["polite_loop"], ["loop_cut", "announce_unheard"]],
        "cursor": ["1", str(hidden["accepted"]), str(own["accepted"]), "none"],
        "kind": [["message_recorded"], ["turn_ended", "run_failed"]],
        "label": ["boat", "detour", "none"],
        "file": ["0" * 64, "boat"],
        "fork": ["0"],
        "other": ["0"],
        "person": ["ada", "bo", "eve"],
        "who": ["operator", *sessions],
        "target": sessions,
        "stream": ["session:", f"session:{HIDDEN}", "exchange:", "delivery:", f"spawn:{spawn['id'][:8]}"],
        "tool": ["sessions_send", "sessions_spawn"],
        "what": ["skipped"],
    }


def _values_of(field: msgspec.structs.FieldInfo, values: Mapping[str, list[Any]]) -> list[Any]:
    """Return what a field is given: of a text what is written down, of a choice each, of a number some."""
    kinds = [*_kinds(types.type_info(field.type))]
    for info in kinds:
        match info:
            case types.BoolType():
                return [True]
            case types.LiteralType(values=choices):
                return [*choices]
            case types.CollectionType(item_type=types.LiteralType(values=choices)):
                return [[choice] for choice in choices]
            case _:
                continue
    if field.encode_name in values:
        return values[field.encode_name]
    if any(isinstance(info, types.IntType | types.FloatType) for info in kinds):
        return [1, 3, 10**6]
    raise AssertionError(f"{field.encode_name}: what is it to be asked with? Say so in `_values`")


def _kinds(info: types.Type) -> Iterator[types.Type]:
    match info:
        case types.Metadata(type=inner):
            yield from _kinds(inner)
        case types.UnionType(types=each):
            for one in each:
                yield from _kinds(one)
        case _:
            yield info


def asked_with(arguments: type[msgspec.Struct], values: Mapping[str, list[Any]]) -> Iterator[dict[str, Any]]:
    """Yield arguments of a question: what it needs, each of its fields with each value, and a page of one for what has pages."""
    fields = msgspec.structs.fields(arguments)
    needs = {one.encode_name: _values_of(one, values)[0] for one in fields if one.required}
    yield needs
    for one in fields:
        for value in _values_of(one, values):
            yield needs | {one.encode_name: value}


PAGES: Final = 12


def _answer_in(answer: dict[str, Any]) -> dict[str, Any]:
    """Return what was answered, without the frame that a connection has around it."""
    inner: dict[str, Any] = answer.get("payload", answer)
    return inner


def answers(ask: Ask, name: str, given: dict[str, Any]) -> Iterator[Any]:
    """Yield an answer, and where one row was asked for those of the pages behind it."""
    for _ in range(PAGES):
        answer = ask(name, given)
        yield answer
        inner = _answer_in(answer)
        cursor = inner.get("cursor") or inner.get("nextCursor")
        if given.get("limit") != 1 or not cursor:
            return
        given = {**given, "cursor": cursor}


def plain(answer: Any, world: World) -> str:
    """Return an answer without what each log has of its own: its id, and hashes, which are salted."""
    text = json.dumps(answer, sort_keys=True).replace(world.system.log.log_id, "LOG")
    return re.sub(r"\b[0-9a-f]{64}\b", "HASH", text)


def code_of(answer: Any) -> str | None:
    """Return the code of a refusal, in the form of any door."""
    error = answer.get("error")
    inner = error if isinstance(error, dict) else answer
    found: str | None = inner.get("details", inner).get("code")
    return found


@pytest.mark.clause("VIS-6", "FIND-2", "X2")
@pytest.mark.ci
@pytest.mark.parametrize(("door", "name"), [pytest.param(*case, id=name) for name, case in WALKS.items()])
def test_no_answer_tells_of_what_its_caller_does_not_see(worlds: Worlds, door: str, name: str) -> None:
    way, caller = DOORS[door], CALLERS[name]
    there, known = worlds.all, worlds.known_to(name)
    differing: list[Any] = []
    with way.opened(there, caller) as of_all, way.opened(known, caller) as of_known:
        for question, arguments in way.asked.items():
            for given in asked_with(arguments, worlds.values):
                pairs = zip(answers(of_all, question, given), answers(of_known, question, given), strict=True)
                for got, expected in pairs:
                    if question == "why" and _answer_in(got).get("root", got) is None:
                        # A chain that began beyond what is seen has no root; in the other world it begins where it is seen.
                        _answer_in(expected)["root"] = None
                    if plain(got, there) != plain(expected, known):
                        differing.append((question, given, got, expected))
                    if way.asked is not _READING and is_operators(question, given):
                        assert code_of(got) in {"forbidden", "invalid_request"}, (question, given)

    assert differing == []


def is_operators(question: str, given: dict[str, Any]) -> bool:
    try:
        check_asked(question, given, is_operator=False)
    except ToolRefused:
        return True
    return False


@pytest.mark.clause("VIS-6", "FIND-2")
def test_the_table_says_of_each_question_of_each_door_who_may_ask_it(worlds: Worlds) -> None:
    with worlds.all.gateway.http(TOKEN) as client:
        paths = client.get("/openapi.json").json()["paths"]
    served = {path.rpartition("/")[2] for path in paths if "/debug/api/" in path} - {"live", "do"}

    assert served == OPERATORS.keys() == _PAGES.keys() | {"reveal"}
    assert VERBS.keys() <= OPERATORS.keys()
    for name, arguments in _PAGES.items():
        known = {field.encode_name for field in msgspec.structs.fields(arguments)}
        assert (OPERATORS[name] or frozenset()) <= known, name


@pytest.mark.ci
@pytest.mark.clause("VIS-6", "FIND-2")
def test_the_operator_may_ask_what_nobody_else_may(worlds: Worlds) -> None:
    with by_pages(worlds.all, Limited(TOKEN)) as ask:
        refused = [
            (question, given)
            for question, arguments in _PAGES.items()
            for given in asked_with(arguments, worlds.values)
            if is_operators(question, given)
            and question != "file"
            and code_of(ask(question, given)) == "forbidden"
        ]

    assert refused == []
