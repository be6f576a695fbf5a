"""A second attempt does what the first one did, and nothing of it happens twice: it gets the answers that the first one got."""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pykka
import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from intersession import SessionSystem, Turn
from intersession_actors.hindsight.forking.carrying import carry_on
from intersession_events.facts import (
    ExchangeAccepted,
    RunStarted,
    SpawnAccepted,
    TextBlock,
    ToolCallBlock,
    text_of,
)
from support.every_day import every_day
from support.running import QUIET, WAIT, Booth, Gate, all_said, ended, recorded

MAIN, OPS = "agent:main:main", "agent:ops:main"
PATIENT: dict[str, Any] = {"runs": {"retryInterrupted": 9}}


def pay(message: str = "pay invoice 7", timeout: float = 10, **more: object) -> dict[str, object]:
    return {"sessionKey": OPS, "message": message, "timeoutSeconds": timeout, **more}


class Ops:
    """The session that is written to: it notes what it hears, and answers with the how many-th thing that is."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def __call__(self, turn: Turn) -> str:
        if turn.step != "message" or turn.session_key != OPS:
            return "done" if turn.step == "message" else turn.skip_word
        self.heard.append(turn.message)
        return f"{turn.message}: number {len(self.heard)}"


class Errand:
    """An agent that does one thing after the other; it is cut off when it has done as many as `cut` says."""

    def __init__(self, *steps: Callable[[Turn], object]) -> None:
        self.steps = steps
        self.cut: int | None = None
        self.gate = Gate()
        self.got: dict[int, list[object]] = {}
        """What each attempt got, by its number."""

    def __call__(self, turn: Turn) -> str:
        if turn.step != "message" or turn.session_key != MAIN or turn.message != "go":
            return "done" if turn.step == "message" else turn.skip_word
        got = self.got.setdefault(turn.attempt, [])
        for number, step in enumerate((*self.steps, None)):
            if self.cut == number:
                self.gate.stop(turn)
                raise InterruptedError("the process of this attempt is gone")
            if step is not None:
                got.append(step(turn))
        return "all done"


class Lives:
    """The systems of one log, one after the other. An agent may be called again before its system is handed out."""

    def __init__(self) -> None:
        self.systems: list[SessionSystem] = []
        self.is_here = threading.Event()

    @property
    def now(self) -> SessionSystem:
        """The system of today; waits until it is here."""
        assert self.is_here.wait(WAIT)
        return self.systems[-1]

    def begin(self, start: Callable[[], SessionSystem]) -> SessionSystem:
        """Start the next one."""
        self.is_here.clear()
        self.systems.append(start())
        self.is_here.set()
        return self.systems[-1]


def told(system: SessionSystem) -> str:
    """Have a person tell the errand's session to go; return the run."""
    return str(system.inbound(channel="x", chat_id="1", sender="ann", text="go", message_id="1")["runId"])


def cut_off(booth: Booth, errand: Errand, ops: Ops, after: int, **agents: Any) -> str:
    """Start a system, and stop it when the errand has done so much."""
    errand.cut, errand.gate = after, Gate()
    system = booth.start({"main": errand, "ops": ops, **agents}, None, QUIET, PATIENT)
    run = told(system)
    errand.gate.reached()
    carry_on_besides(system, run)
    system.close(grace=0)
    errand.gate.open()
    errand.cut = None
    return run


def carry_on_besides(system: SessionSystem, run: str) -> None:
    """Wait until whatever else is open has ended: what is cut off is one run."""
    for item in system.follow(0, timeout=WAIT):
        if not [one for one in system.service.runs.open_runs() if one.run_id != run]:
            break
        del item


def cut_twice(booth: Booth, lives: "Lives", errand: Errand, ops: Ops) -> SessionSystem:
    """Cut an errand off behind its third step, then behind its second; the attempt after that ends well."""
    run = ""
    for after in (3, 2, None):
        errand.cut, errand.gate = after, Gate()
        system = lives.begin(lambda: booth.start({"main": errand, "ops": ops}, None, QUIET, PATIENT))
        run = told(system)
        if after is not None:
            errand.gate.reached()
            system.close(grace=0)
            errand.gate.open()
    assert ended(system, run)["status"] == "ok"
    return system


def finished(booth: Booth, agents: dict[str, Any], run: str) -> SessionSystem:
    system = booth.start(agents, None, QUIET, PATIENT)
    assert ended(system, run)["status"] == "ok"
    carry_on(system.service, "", timeout=WAIT)
    return system


def tool(name: str, arguments: dict[str, object]) -> Callable[[Turn], object]:
    return lambda turn: turn.tools.call(name, arguments)


def search(turn: Turn) -> str:
    return turn.record_call("search", {"for": "invoice 7"})


def found(turn: Turn) -> None:
    turn.record_result(next(iter(own_calls(turn))), "search", "paid")


def own_calls(turn: Turn) -> list[str]:
    """Return the ids of the agent's own calls, as the session has them."""
    made = [one.call_id for one in turn.made_before.values() if one.name == "search"]
    return made or [turn.record_call("search", {"for": "invoice 7"})]


EVERYTHING: tuple[Callable[[Turn], object], ...] = (
    tool("sessions_send", pay()),
    tool("sessions_spawn", {"task": "look it up"}),
    tool("sessions_list", {}),
    tool("sessions_send", pay("thanks", 0)),
    tool("sessions_send", pay()),
    tool("sessions_send", pay("once", idempotencyKey="k")),
    tool("sessions_spawn", {"task": "and that", "idempotencyKey": "k2"}),
    tool("sessions_history", {"sessionKey": OPS}),
)
HEARD = ["once", "pay invoice 7", "pay invoice 7", "thanks"]


def calls(system: SessionSystem) -> list[tuple[str, str]]:
    """Return what the errand's run has called, and with what."""
    said = [one.message for one in all_said(system, f"session:{MAIN}")]
    blocks = [block for message in said for block in message.content if isinstance(block, ToolCallBlock)]
    return [(block.name, block.arguments) for block in blocks]


def results(system: SessionSystem) -> Counter[str | None]:
    said = [one.message for one in all_said(system, f"session:{MAIN}")]
    return Counter(message.tool_call_id for message in said if message.role == "toolResult")


def check_once(system: SessionSystem, ops: Ops) -> None:
    """Check that all of `EVERYTHING` has happened once."""
    assert sorted(ops.heard) == HEARD
    assert sorted(one.message or "" for one in recorded(system, ExchangeAccepted)) == HEARD
    assert sorted(one.task or "" for one in recorded(system, SpawnAccepted)) == ["and that", "look it up"]
    assert len(calls(system)) == 8
    assert set(results(system).values()) == {1}
    assert len(results(system)) == 8


@pytest.mark.clause("SEND-13", "S5", "O4")
@pytest.mark.parametrize("after", every_day(range(9), 0, 3, 6, 8))
def test_what_was_done_before_the_cut_is_not_done_again(booth: Booth, after: int) -> None:
    errand, ops = Errand(*EVERYTHING), Ops()
    run = cut_off(booth, errand, ops, after)

    system = finished(booth, {"main": errand, "ops": ops}, run)

    check_once(system, ops)
    assert errand.got[2][:after] == errand.got[1]
    assert len(errand.got[2]) == 8


@pytest.mark.clause("SEND-13", "S5")
@pytest.mark.parametrize(
    "cuts", every_day({str(cuts): (cuts,) for cuts in ((8, 8), (3, 6), (6, 3), (1, 2, 4, 5))}, (6, 3))
)
def test_a_third_attempt_knows_both(booth: Booth, cuts: tuple[int, ...]) -> None:
    errand, ops = Errand(*EVERYTHING), Ops()
    run = ""
    for after in cuts:
        run = cut_off(booth, errand, ops, after)

    system = finished(booth, {"main": errand, "ops": ops}, run)

    check_once(system, ops)
    last = errand.got[len(cuts) + 1]
    assert all(got == last[: len(got)] for got in errand.got.values())


@pytest.mark.clause("SEND-13", "SEND-9")
@pytest.mark.parametrize("timeout", [10, 0.2])
def test_a_call_that_was_cut_off_while_it_waited_is_carried_on(booth: Booth, timeout: float) -> None:
    gate, errand = Gate(), Errand(tool("sessions_send", pay(timeout=timeout)))
    errand.cut = 1  # where its wait runs out before the process is gone, it goes no further
    first = booth.start({"main": errand, "ops": gate.saying("never said")}, None, QUIET, PATIENT)
    run = told(first)
    gate.reached()
    first.close(grace=0)
    gate.open()
    errand.gate.open()
    errand.cut = None

    ops, after = Ops(), Gate()

    def slow(turn: Turn) -> str:
        if timeout == 0.2:
            after.stop(turn)
        return ops(turn)

    second = booth.start({"main": errand, "ops": slow}, None, QUIET, PATIENT)
    answer = second.gateway.call("agent.wait", {"runId": run, "timeoutMs": 20_000})
    after.open()
    carry_on(second.service, "", timeout=WAIT)

    assert answer["status"] == "ok"
    (got,) = errand.got[2]
    assert isinstance(got, dict)
    assert got["status"] == ("ok" if timeout == 10 else "timeout")
    assert ops.heard == ["pay invoice 7"]
    assert len(recorded(second, ExchangeAccepted)) == 1
    assert len(calls(second)) == len(results(second)) == 1


@pytest.mark.clause("SEND-13")
def test_other_words_are_another_call_and_the_log_says_of_which_attempt(booth: Booth) -> None:
    errand, ops = Errand(tool("sessions_send", pay()), tool("sessions_send", pay("and invoice 8"))), Ops()
    run = cut_off(booth, errand, ops, 1)
    errand.steps = (tool("sessions_send", pay("pay invoice 9")), tool("sessions_send", pay()))

    system = finished(booth, {"main": errand, "ops": ops}, run)

    assert sorted(ops.heard) == ["pay invoice 7", "pay invoice 9"]
    assert errand.got[2][1:] == errand.got[1]
    said = [event for event in all_said(system) if event.message.run_id == run]
    assert [(event.message.role, event.attempt) for event in said] == [
        ("assistant", None),
        ("toolResult", None),
        ("assistant", 2),
        ("toolResult", 2),
        ("assistant", None),  # its answer
    ]
    lens = system.debug.lens(run=run, attempt=2)
    assert lens["asRecorded"]
    assert [made["name"] for made in lens["madeBefore"]] == ["sessions_send"]
    assert [made["hasEnded"] for made in lens["madeBefore"]] == [True]


@pytest.mark.clause("SEND-13")
def test_calls_in_another_order_are_the_same_calls(booth: Booth) -> None:
    one, two = tool("sessions_send", pay()), tool("sessions_send", pay("thanks"))
    errand, ops = Errand(one, two, one), Ops()
    run = cut_off(booth, errand, ops, 3)
    errand.steps = (two, one, one)

    system = finished(booth, {"main": errand, "ops": ops}, run)

    first = errand.got[1]
    assert errand.got[2] == [first[1], first[0], first[2]]
    assert ops.heard == ["pay invoice 7", "thanks", "pay invoice 7"]
    assert len(calls(system)) == 3


@pytest.mark.clause("SEND-13", "SEND-10")
def test_calls_side_by_side_are_found_again_in_any_order(booth: Booth) -> None:
    """An agent on asyncio has several calls under way; which is recorded first is chance."""
    gate, ops, got = Gate(), Ops(), list[list[dict[str, Any]]]()

    async def busy(turn: Turn) -> str:
        texts = [f"pay invoice {number}" for number in range(6)] + ["twice", "twice"]
        sent = texts if turn.attempt % 2 else texts[::-1]
        answers: Any = await asyncio.gather(*(turn.tools.acall("sessions_send", pay(text)) for text in sent))
        got.append(sorted(answers, key=lambda answer: str(answer["runId"])))
        if turn.attempt < 3:
            await asyncio.to_thread(gate.stop, turn)
            raise InterruptedError
        return "all done"

    agents = {"main": busy, "ops": ops}
    run = ""
    for _ in range(2):
        gate = Gate()
        system = booth.start(agents, None, QUIET, PATIENT)
        run = told(system)
        gate.reached()
        system.close(grace=0)
        gate.open()

    last = finished(booth, agents, run)

    assert Counter(ops.heard) == Counter({f"pay invoice {number}": 1 for number in range(6)} | {"twice": 2})
    assert got[0] == got[1] == got[2]
    assert len(recorded(last, ExchangeAccepted)) == 8


@pytest.mark.clause("SEND-13", "SEND-11")
def test_a_key_that_is_used_for_other_words_in_the_second_attempt_is_refused(booth: Booth) -> None:
    errand, ops = Errand(tool("sessions_send", pay(idempotencyKey="k"))), Ops()
    run = cut_off(booth, errand, ops, 1)
    other = pay("pay invoice 8", idempotencyKey="k")
    errand.steps = (
        tool("sessions_send", other),
        tool("sessions_spawn", {"task": "x", "idempotencyKey": "k"}),
    )

    finished(booth, {"main": errand, "ops": ops}, run)

    refused = [answer["code"] for answer in errand.got[2] if isinstance(answer, dict)]
    assert refused == ["idempotency_conflict"] * 2
    assert ops.heard == ["pay invoice 7"]


@pytest.mark.clause("SEND-13", "SEND-12")
def test_what_was_accepted_is_judged_by_nobody_again(booth: Booth) -> None:
    """What has become of the target, of the settings and of limits meanwhile does not matter to what happened before."""
    errand = Errand(tool("sessions_send", pay("hello", 0)), tool("sessions_spawn", {"task": "look it up"}))
    ops = Ops()
    run = cut_off(booth, errand, ops, 2)
    narrow = {
        "session": {"sendPolicy": {"default": "deny"}},
        "tools": {"sessions": {"visibility": "self"}},
        "agents": {"defaults": {"subagents": {"maxChildrenPerAgent": 1}}},
    }
    system = booth.start({"main": errand, "ops": ops}, None, QUIET, PATIENT, narrow)
    answer = system.gateway.call("agent.wait", {"runId": run, "timeoutMs": 20_000})

    assert answer["status"] == "ok"
    assert errand.got[2] == errand.got[1]
    assert ops.heard == ["hello"]


# --- agents of every kind


def of_pydantic_ai(errand_gate: Callable[[], Gate | None]) -> Agent[None, str]:
    """Return a model that asks for the same in each attempt, whatever it is shown."""

    async def model(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        seen = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
        asked = [part for part in seen if part.tool_call_id.startswith("now")]
        if not asked:
            return ModelResponse([ToolCallPart("sessions_send", pay(), tool_call_id="now")])
        gate = errand_gate()
        if gate is not None:
            await asyncio.to_thread(gate.stop, None)  # type: ignore[arg-type]
        return ModelResponse([TextPart("all done")])

    return Agent(FunctionModel(model))


def of_pykka(errand_gate: Callable[[], Gate | None]) -> Any:
    class Clerk(pykka.ThreadingActor):
        def on_receive(self, message: Any) -> str:
            message.tools.call("sessions_send", pay())
            gate = errand_gate()
            if gate is not None:
                gate.stop(message)
            return "all done"

    return Clerk.start()


@pytest.mark.clause("SEND-13")
@pytest.mark.parametrize("made", [of_pydantic_ai, of_pykka])
def test_agents_of_every_kind_send_once(booth: Booth, made: Callable[[Any], Any]) -> None:
    ops, gates = Ops(), [Gate(), Gate()]
    agents = {"main": made(lambda: gates[0] if gates else None), "ops": ops}
    run = ""
    while gates:
        system = booth.start(agents, None, QUIET, PATIENT)
        run = told(system)
        gates[0].reached()
        system.close(grace=0)
        gates.pop(0).open()
        if isinstance(agents["main"], pykka.ActorRef):
            agents["main"].stop()
            agents["main"] = made(lambda: gates[0] if gates else None)

    system = finished(booth, agents, run)

    assert ops.heard == ["pay invoice 7"]
    assert len(recorded(system, ExchangeAccepted)) == 1
    if isinstance(agents["main"], pykka.ActorRef):
        agents["main"].stop()


# --- an agent's own tools


class Bank:
    """Pays what it is told to, once for each key, and says how often it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def pay(self, key: str) -> str:
        self.asked.append(key)
        return f"paid {len(set(self.asked))}"


@pytest.mark.clause("SEND-13", "S5")
@pytest.mark.parametrize("cut", ["before", "while", "after", "behind"])
def test_what_its_own_tools_had_done_is_handed_in(booth: Booth, cut: str) -> None:
    bank, gate, seen = Bank(), Gate(), list[Any]()

    def clerk(turn: Turn) -> str:
        def maybe(place: str) -> None:
            if cut == place and turn.attempt == 1:
                gate.stop(turn)
                raise InterruptedError

        maybe("before")
        call = turn.record_call("pay", {"invoice": 7})
        seen.append((call, turn.made_before.get(call)))
        maybe("while")
        made = turn.made_before.get(call)
        result = made.result if made is not None and made.has_ended else bank.pay(call)
        maybe("after")
        turn.record_result(call, "pay", result)
        maybe("behind")
        return str(result)

    first = booth.start({"main": clerk, "ops": Ops()}, None, QUIET, PATIENT)
    run = told(first)
    gate.reached()
    first.close(grace=0)
    gate.open()
    system = booth.start({"main": clerk, "ops": Ops()}, None, QUIET, PATIENT)
    answer = system.gateway.call("agent.wait", {"runId": run, "timeoutMs": 20_000})

    assert answer["reply"] == "paid 1"
    assert bank.asked == {"before": 1, "while": 1, "after": 2, "behind": 1}[cut] * [seen[-1][0]]
    assert calls(system) == [("pay", '{"invoice":7}')]
    assert list(results(system).values()) == [1]
    call, made = seen[-1]
    if cut == "before":
        assert made is None
    else:
        assert (made.call_id, made.name, made.arguments, made.ordinal) == (call, "pay", {"invoice": 7}, 1)
        assert made.has_ended == (cut == "behind")
        assert made.result == ("paid 1" if cut == "behind" else None)


@pytest.mark.clause("SEND-13")
def test_the_same_words_twice_are_two_calls_of_its_own_tools(booth: Booth) -> None:
    def twice(turn: Turn) -> list[str]:
        found = [
            turn.record_call("look", {"at": 1, "for": "x"}),
            turn.record_call("look", {"for": "x", "at": 1}),
        ]
        turn.record_result(found[1], "look", {"n": turn.attempt}, is_error=True)
        return [*found, turn.record_call("look", {"at": turn.attempt})]

    errand = Errand(twice)
    run = cut_off(booth, errand, Ops(), 1)
    system = finished(booth, {"main": errand, "ops": Ops()}, run)

    (before,), (after,) = errand.got[1], errand.got[2]
    assert isinstance(before, list)
    assert isinstance(after, list)
    assert before[:2] == after[:2]
    assert len({*before, *after}) == 4
    assert [arguments for _, arguments in calls(system)] == [
        '{"at":1,"for":"x"}',
        '{"at":1,"for":"x"}',
        '{"at":1}',
        '{"at":2}',
    ]
    said = [one.message for one in all_said(system) if one.message.role == "toolResult"]
    assert [(text_of(message), message.is_error) for message in said] == [('{"n":1}', True)]


# --- by other doors


@pytest.mark.clause("SEND-13", "LOOP-5")
def test_what_an_agent_says_by_other_doors_is_said_once_too(booth: Booth) -> None:
    lives = Lives()

    def by_tools(_: Turn) -> object:
        return [lives.now.tools(MAIN).call("sessions_send", pay()) for _ in range(2)]

    def by_inbound(_: Turn) -> object:
        said: Any = {"channel": "x", "chat_id": "2", "sender": "main", "agent_id": "ops"}
        return [
            lives.now.inbound(**said, text="by the way", wait=10),
            lives.now.inbound(**said, text="a note", deliver=False),
        ]

    errand, ops = Errand(by_tools, by_inbound, tool("sessions_send", pay())), Ops()
    system = cut_twice(booth, lives, errand, ops)

    assert errand.got[1] == errand.got[3]
    assert errand.got[2] == errand.got[1][:2]
    assert ops.heard == ["pay invoice 7", "pay invoice 7", "by the way", "pay invoice 7"]
    notes = [one for one in all_said(system) if text_of(one.message) == "a note"]
    assert len(notes) == 1


@pytest.mark.clause("SEND-13")
def test_what_an_agent_records_by_itself_is_recorded_once(booth: Booth) -> None:
    lives = Lives()

    def injects(_: Turn) -> object:
        given = {"sessionKey": OPS, "message": "a remark"}
        return [lives.now.gateway.call("chat.inject", given)["messageId"] for _ in range(2)]

    def says(turn: Turn) -> None:
        for text in ("let me see", "let me see", f"for the {turn.attempt}. time"):
            turn.recorder.said([TextBlock(text=text)])

    errand, ops = Errand(tool("sessions_send", pay()), injects, says), Ops()
    system = cut_twice(booth, lives, errand, ops)

    assert errand.got[1][:2] == errand.got[2] == errand.got[3][:2]
    texts = Counter(text_of(one.message) for one in all_said(system))
    assert texts["a remark"] == texts["let me see"] == 2
    assert (texts["for the 1. time"], texts["for the 3. time"]) == (1, 1)


# --- what is told of it


@pytest.mark.clause("SEND-13", "FORK-7", "C5", "LENS-1")
def test_it_is_decided_again_and_forked_as_it_was(booth: Booth) -> None:
    errand, ops = Errand(*EVERYTHING), Ops()
    run = cut_off(booth, errand, ops, 5)
    errand.steps = (*EVERYTHING[1:], tool("sessions_send", pay("a last word")))
    system = finished(booth, {"main": errand, "ops": ops}, run)

    assert system.debug.replay(run)["same"]
    assert system.debug.lens(run=run)["asRecorded"]
    starts = [
        item.position
        for item in system.log.all()
        if isinstance(item.event, RunStarted) and item.event.run_id == run
    ]
    for at in (starts[1], starts[1] + 3, system.service.runs.get(run).position - 1):  # type: ignore[union-attr]
        with system.fork(run, at=at, agents={"*": "recorded"}) as fork:
            carried = fork.carried_on(WAIT)
            assert (carried.state, carried.divergence) == ("ended", None), at
            assert sorted(one.message or "" for one in recorded(fork, ExchangeAccepted)) == [
                *sorted([*HEARD, "a last word"])
            ]
            assert len(recorded(fork, SpawnAccepted)) == 2
