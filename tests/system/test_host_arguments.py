"""What a host's own code gives the wrong way is refused in typed words that say what to do: never a bare error of Python's."""

import asyncio
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from intersession import Channel, Inbound, InboundFields, SessionSystem, ToolRefused
from intersession import open_log as open_to_read
from intersession_events.basics.errors import IntersessionError
from intersession_events.stores.opened import open_log
from support.any_log import Logs
from support.running import WAIT

SAID: dict[str, Any] = {"channel": "telegram", "chat_id": "42", "text": "hi", "sender": "ann"}
NAMED: dict[str, Any] = {"a": 1}
STRANGE: tuple[Any, ...] = (
    None,
    42,
    -1,
    True,
    float("nan"),
    b"x",
    "",
    "caf\udce9",
    [],
    [1],
    {},
    NAMED,
    object(),
)


@pytest.fixture(scope="module")
def system(logs: Logs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SessionSystem]:
    with SessionSystem(
        logs.at(tmp_path_factory.mktemp("host")), agents={"main": lambda turn: turn.message}
    ) as opened:
        yield opened


def made(system: SessionSystem, given: Mapping[str, Any]) -> Any:
    """Ask the system's actor; what is wrong with the message shows while it is made."""
    try:
        return system.ref.ask(Inbound(**given), timeout=WAIT)
    except ToolRefused as refused:
        return refused.as_result()


DOORS: dict[str, Callable[[SessionSystem, Mapping[str, Any]], Any]] = {
    "inbound": lambda system, given: system.inbound(**given),
    "ainbound": lambda system, given: asyncio.run(system.ainbound(**given)),
    "the actor": made,
}


@pytest.mark.clause("INB-1")
@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("field", SAID)
def test_a_field_that_is_missing_is_named(system: SessionSystem, door: str, field: str) -> None:
    """A host that forgot a field had a bare TypeError, where it looks at an answer."""
    given = {name: value for name, value in SAID.items() if name != field}

    answer = DOORS[door](system, given)

    assert answer == {"status": "error", "code": "invalid_request", "error": f"{field}: required, give it"}


@pytest.mark.clause("INB-1")
@pytest.mark.parametrize("door", DOORS)
def test_a_field_that_nobody_knows_is_named_with_those_there_are(system: SessionSystem, door: str) -> None:
    answer = DOORS[door](system, SAID | {"chatid": "42"})

    assert (answer["code"], answer["error"].partition(":")[0]) == ("invalid_request", "chatid")
    assert "chat_id" in answer["error"]


@pytest.mark.clause("INB-1")
def test_fields_without_names_are_refused(system: SessionSystem) -> None:
    inbound: Any = system.inbound
    ainbound: Any = system.ainbound

    async def awaited() -> Any:
        return await ainbound("telegram", **SAID)

    for answer in (inbound("telegram", "42", "hi", "ann"), asyncio.run(awaited())):
        assert answer["code"] == "invalid_request"
        assert "channel=…" in answer["error"]
    in_words: Any = Inbound
    with pytest.raises(ToolRefused, match="channel=…"):
        in_words("telegram")
    assert system.inbound(**SAID)["status"] == "accepted"


def reads_log(value: Any) -> None:
    with closing(open_log(value, read_only=True)):
        pass


def forks(system: SessionSystem, **given: Any) -> None:
    run = system.inbound(**SAID, message_id="forked", wait=WAIT)["runId"]
    system.fork(**{"run": run, "at": "start", **given}).close(grace=0)


class Tells:
    """A clock that tells whatever it was given."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def now_ms(self) -> Any:
        return self._value

    def monotonic(self) -> float:
        return 0.0


def made_with(**given: Any) -> None:
    SessionSystem(":memory:", **given).close(grace=0)


def named(value: Any) -> Any:
    """Return a value as a name by which something could be given."""
    return value if isinstance(value, Hashable) else repr(value)


CALLS: dict[str, Callable[[SessionSystem, Any], object]] = {
    "tools": lambda system, value: system.tools(value),
    "tools, name": lambda system, value: system.tools(name=value),
    "tools, credential": lambda system, value: system.tools(credential=value),
    "tools.call": lambda system, value: system.tools().call(value, {}),
    "tools.call, arguments": lambda system, value: system.tools().call("sessions_list", value),
    "tools.schemas": lambda system, value: system.tools().schemas(value),
    "gateway.call": lambda system, value: system.gateway.call(value),
    "gateway.call, params": lambda system, value: system.gateway.call("sessions.list", value),
    "gateway.perform, params": lambda system, value: system.gateway.perform("sessions.list", value),
    "follow": lambda system, value: next(system.follow(value, timeout=0), None),
    "follow, timeout": lambda system, value: next(system.follow(0, timeout=value), None),
    "abort": lambda system, value: system.abort(value),
    "abort, by": lambda system, value: system.abort("x", by=value),
    "retry": lambda system, value: system.retry(value),
    "erase": lambda system, value: system.erase(value),
    "erase, message_ids": lambda system, value: system.erase("main", message_ids=value),
    "erase, reason": lambda system, value: system.erase("nobody", reason=value),
    "fork": lambda system, value: forks(system, run=value),
    "fork, at": lambda system, value: forks(system, at=value),
    "fork, edits": lambda system, value: forks(system, edits=value),
    "fork, agents": lambda system, value: forks(system, agents=value),
    "fork, on_divergence": lambda system, value: forks(system, on_divergence=value),
    "fork, deliver": lambda system, value: forks(system, deliver=value),
    "fork, by": lambda system, value: forks(system, by=value),
    "carried_on": lambda system, value: system.carried_on(value),
    "hold": lambda system, value: system.hold(value),
    "hold, before": lambda system, value: system.hold("main", before=value),
    "release": lambda system, value: system.release(value),
    "release, text": lambda system, value: system.release("main", text=value),
    "release, action": lambda system, value: system.release("main", action=value),
    "status": lambda system, value: system.status(value),
    "unbind_thread": lambda system, value: system.unbind_thread(value),
    "register_agent, id": lambda system, value: system.register_agent(value, lambda _turn: "x"),
    "register_runtime": lambda system, value: system.register_runtime(value, lambda _turn: "x"),
    "register_channel": lambda system, value: system.register_channel(value, lambda _out: None),
    "reload": lambda system, value: system.reload(value),
    "import_openclaw": lambda system, value: system.import_openclaw(value),
    "import_openclaw, on_taken": lambda system, value: system.import_openclaw("/nowhere", on_taken=value),
    "export_openclaw": lambda system, value: system.export_openclaw(value),
    "export_openclaw, as_of": lambda system, value: system.export_openclaw("/dev/null", as_of=value),
    "export_openclaw, sessions": lambda system, value: system.export_openclaw("/dev/null", sessions=value),
    "inbound, wait": lambda system, value: system.inbound(**SAID, wait=value),
    "open_log, to read": lambda _system, value: open_to_read(value).close(),
    "debugger.call": lambda system, value: system.debug.call(value),
    "debugger.state": lambda system, value: system.debug.state(at=value),
    "debugger.diff": lambda system, value: system.debug.diff(value, value),
    "debugger.show": lambda system, value: system.debug.show(value),
    "open_log": lambda _system, value: reads_log(value),
    "SessionSystem, store": lambda _system, value: SessionSystem(value).close(),
    "SessionSystem, agents": lambda _system, value: SessionSystem(":memory:", agents=value).close(),
    "SessionSystem, channels": lambda _system, value: SessionSystem(":memory:", channels=value).close(),
    "SessionSystem, config": lambda _system, value: SessionSystem(":memory:", config=value).close(),
    "fork, agents, one": lambda system, value: forks(system, agents={"*": value}),
    "register_agent": lambda system, value: system.register_agent("new", value),
    "register_runtime, runner": lambda system, value: system.register_runtime("acp", value),
    "register_channel, channel": lambda system, value: system.register_channel("new", value),
    "SessionSystem, an agent": lambda _system, value: made_with(agents={"main": value}),
    "SessionSystem, a channel": lambda _system, value: made_with(channels={"telegram": value}),
    "SessionSystem, an agent's id": lambda _system, value: made_with(agents={named(value): print}),
    "SessionSystem, a channel's name": lambda _system, value: made_with(channels={named(value): print}),
    "SessionSystem, clock": lambda _system, value: made_with(clock=value),
    "SessionSystem, a clock's time": lambda _system, value: made_with(clock=Tells(value)),
    "SessionSystem, runtime": lambda _system, value: made_with(runtime=value),
    "SessionSystem, new_id": lambda _system, value: made_with(new_id=value),
    "SessionSystem, an id": lambda _system, value: made_with(new_id=lambda: value),
    "SessionSystem, smells": lambda _system, value: made_with(smells=value),
    "SessionSystem, a smell": lambda _system, value: made_with(smells=[value]),
    "SessionSystem, deliver": lambda _system, value: made_with(deliver=value),
    "SessionSystem, hold": lambda _system, value: made_with(hold=value),
    "SessionSystem, stopping": lambda _system, value: made_with(stopping=value),
    "SessionSystem, tracer_provider": lambda _system, value: made_with(tracer_provider=value),
    "SessionSystem, on_failure": lambda _system, value: SessionSystem(":memory:", on_failure=value).close(),
}


FINE: dict[str, tuple[Any, ...]] = {
    "follow, timeout": (None,),  # for ever
    "erase, message_ids": ([], {}),
    "reload": (None,),
    "export_openclaw": ("caf\udce9",),  # a file can be called so
    "open_log, to read": (None, ""),
    "open_log": (None, ""),
    "fork, at": (42, -1),
    "fork, edits": ([],),
    "fork, agents": (None, {}),
    "fork, deliver": ([], {}),
    "carried_on": (None,),
    "status": (None,),
    "SessionSystem, store": (None, ""),
    "fork, agents, one": ("",),  # a SPEC, of an agent that there is not
    "SessionSystem, runtime": (None,),
    "SessionSystem, clock": (None,),
    "SessionSystem, new_id": (None,),
    "SessionSystem, tracer_provider": (None,),
    "SessionSystem, smells": ([], {}),
}
"""What is not tried, because it means something there."""


@pytest.mark.parametrize("name", CALLS)
def test_what_is_of_another_kind_is_refused_in_typed_words(
    system: SessionSystem, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kind, over every public function of the system and `open_log`."""
    monkeypatch.chdir(tmp_path)
    bare: list[tuple[Any, BaseException]] = []
    told: list[str] = []
    for value in (value for value in STRANGE if value not in FINE.get(name, ())):
        try:
            CALLS[name](system, value)
        except IntersessionError as refused:
            told.append(str(refused))
        except Exception as error:  # noqa: BLE001 - that is what is looked for
            bare.append((value, error))

    assert bare == []
    assert all(words.strip() for words in told)


def test_names_that_nobody_reads_are_refused(system: SessionSystem) -> None:
    """A runtime of any name was taken for the one there is, and a callback that can't be called failed with the first failure."""
    register: Any = system.register_runtime
    made_with: Any = SessionSystem

    with pytest.raises(ToolRefused, match='give "acp"'):
        register("docker", lambda _turn: "x")
    with pytest.raises(ToolRefused, match="on_failure: int can't be called, give a function"):
        made_with(":memory:", on_failure=42)
    with pytest.raises(ToolRefused, match=r"message_ids: it is no list of texts but a text"):
        system.erase("main", message_ids="abc")


@pytest.mark.clause("INB-1")
@pytest.mark.sqlite("looks at a docstring, and opens no log")
def test_help_names_every_field_of_a_message() -> None:
    said = SessionSystem.inbound.__doc__ or ""

    assert [
        name for name in InboundFields.__annotations__ if f"{name}," not in said and f"{name}=" not in said
    ] == []


@pytest.mark.clause("L3")
def test_functions_that_take_other_arguments_are_refused_when_they_are_given(system: SessionSystem) -> None:
    made_with: Any = SessionSystem
    two: Any = lambda one, other: (one, other)  # noqa: E731 - a function without a name of its own
    none: Any = lambda: None  # noqa: E731 - the same

    for given in (
        {"agents": {"main": none}},
        {"agents": {"main": two}},
        {"channels": {"telegram": none}},
        {"channels": {"telegram": Channel(deliver=two)}},
        {"channels": {"telegram": Channel(deliver=print, threads=none)}},
        {"channels": {"telegram": Channel(deliver=print, escape=two)}},
        {"hold": none},
        {"on_failure": two},
        {"smells": [none]},
        {"new_id": lambda one: one},
    ):
        with pytest.raises(ToolRefused, match=r"it is called as .*<lambda>\("):
            made_with(":memory:", **given)
    with pytest.raises(ToolRefused, match=r"it is called as .*<lambda>\(turn\)"):
        system.register_agent("other", two)
    with pytest.raises(ToolRefused, match=r"it is called as .*<lambda>\(outbound\)"):
        system.register_channel("other", none)
