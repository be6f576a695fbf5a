"""One guard over the whole causal chain, whatever carries it on: sends, turns, spawns, results, announces (LOOP-5, finding A1)."""

import asyncio
import itertools
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar, Final

import pykka
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from intersession import (
    As,
    Channel,
    DeliveryRefused,
    Failure,
    Inbound,
    MemoryChannel,
    Outbound,
    Reply,
    SessionsSend,
    SessionSystem,
    Turn,
    echo,
)
from intersession_actors.outside.channels.channels import ThreadWanted
from intersession_events.facts import (
    AnnounceDecided,
    ExchangeClosed,
    Provenance,
    ResultHanded,
    RouteChanged,
    RunCompleted,
    RunFailed,
    RunQueued,
    RunStarted,
    SendRefused,
    SpawnAccepted,
    SpawnClosed,
    Usage,
)
from intersession_events.log.recorded import Recorded
from support.fakes import ManualClock
from support.running import QUIET, WAIT, Booth, Gate, all_said, merged, recorded, wait_for, wait_until_done
from support.soaking import until

MAIN = "agent:main:main"
OFF: Final = {"hops": 0, "revisits": 0, "runs": 0, "tokens": 0, "costMicros": 0, "wallSeconds": 0}
ALL_MAY_SPAWN: dict[str, Any] = {
    "agents": {
        "defaults": {"subagents": {"allowAgents": ["*"], "maxSpawnDepth": 5, "maxChildrenPerAgent": 50}},
    },
    "tools": {"subagents": {"tools": {"alsoAllow": ["sessions_send", "sessions_spawn"]}}},
}


def limited(**limits: int) -> dict[str, Any]:
    return merged(ALL_MAY_SPAWN, {"session": {"agentToAgent": {"limits": OFF | limits}}})


def say(system: SessionSystem, text: str = "go", **given: Any) -> str:
    """Let a person begin a chain; its root is the answer's run."""
    answer = system.inbound(channel="telegram", chat_id="1", sender="p", text=text, **given)
    assert answer["status"] == "accepted", answer
    return str(answer["runId"])


def stored(system: SessionSystem) -> int:
    """Return the position of the last event in the database."""
    position: int = system.log.query("SELECT COALESCE(MAX(rowid), 0) FROM stored_events", ())[0][0]
    return position


def until_calm(system: SessionSystem) -> list[Recorded]:
    """Wait until no run, exchange or spawn is open, and return the whole log."""
    for _ in range(5_000):
        head = stored(system)  # the system may hear of it only later
        flows = system.service.flows
        is_calm = not (system.service.runs.open_runs() or flows.open_exchanges() or flows.open_spawns())
        if stored(system) != head:
            continue  # what was looked at later is of another moment
        if is_calm:
            return list(system.log.all())
        assert system.log.wait_for(head + 1, timeout=WAIT), "nothing happens any more, and something is open"
    raise AssertionError("the chain does not end")


def spawns_on(turn: Turn) -> str:
    """Spawn a child on whatever comes, a result of the last one too, and say how that was answered."""
    if ":subagent:" in turn.session_key:
        return "a result"
    answer = turn.tools.call("sessions_spawn", {"task": "go on"})
    return str(answer.get("error", "spawned"))


# --- each limit, over children and their results


@pytest.mark.clause("LOOP-5", "SPAWN-9", "L2")
@pytest.mark.parametrize(
    ("limits", "children"), [({"runs": 10}, 3), ({"hops": 3}, 3), ({"revisits": 2, "runs": 4}, 1)]
)
def test_a_chain_of_children_and_results_ends_at_its_limit_which_is_named(
    booth: Booth, limits: dict[str, int], children: int
) -> None:
    """Before: 930 children and 2,728 runs in one chain whose limit was 10."""
    system = booth.start({"main": spawns_on}, {}, limited(**limits))

    system.gateway.call("agent", {"message": "go", "sessionKey": MAIN, "idempotencyKey": "k"})
    log = until_calm(system)

    roots = {item.correlation for item in log if isinstance(item.event, RunQueued)}
    assert len(roots) == 1
    assert len(recorded(system, SpawnAccepted)) == children
    if "hops" in limits:
        (refused,) = recorded(system, SendRefused)
        assert (refused.tool, refused.code) == ("sessions_spawn", "limit")
        assert (refused.limit, refused.value, refused.allowed) == ("session.agentToAgent.limits.hops", 3, 3)
        last = recorded(system, RunCompleted, f"session:{MAIN}")[-1]
        assert last.reply == (
            "task: session.agentToAgent.limits.hops is 3 and this chain of messages has used 3, "
            "answer instead of going on"
        )
    else:
        assert len(recorded(system, RunQueued)) == limits["runs"]


@pytest.mark.clause("LOOP-5", "SPAWN-9")
@pytest.mark.parametrize("runs", [2, 3])
def test_a_result_that_finds_no_run_left_is_put_to_the_requester_all_the_same(
    booth: Booth, runs: int
) -> None:
    system = booth.start({"main": spawns_on}, {}, limited(runs=runs))

    system.gateway.call("agent", {"message": "go", "sessionKey": MAIN, "idempotencyKey": "k"})
    until_calm(system)

    setting = "session.agentToAgent.limits.runs"
    (handed,), (closed,) = recorded(system, ResultHanded), recorded(system, SpawnClosed)
    assert (handed.limit, closed.limit, closed.reason) == (setting, setting, "handed_over")
    assert closed.note == f"{setting} is {runs} and this chain of messages has used {runs}"
    (decided,) = recorded(system, AnnounceDecided)
    assert (decided.why, decided.limit) == (("limit", setting) if runs == 2 else ("text", None))
    messages = [item.message for item in all_said(system, f"session:{MAIN}")]
    assert "a result" in str(next(message for message in messages if message.id == handed.message_id).content)


@pytest.mark.clause("LOOP-5", "ANN-1")
def test_an_announce_that_finds_no_run_left_is_not_asked_for_and_says_why(booth: Booth) -> None:
    def agent(turn: Turn) -> str:
        if turn.agent_id == "main":
            return str(turn.tools.call("sessions_send", {"agentId": "ops", "message": "x"})["status"])
        return "fine"

    quiet = {"session": {"agentToAgent": {"maxPingPongTurns": 0}}}
    system = booth.start({"main": agent, "ops": agent}, {}, merged(limited(runs=2), quiet))

    assert say(system, wait=None)
    until_calm(system)

    setting = "session.agentToAgent.limits.runs"
    (closed,), (decided,) = recorded(system, ExchangeClosed), recorded(system, AnnounceDecided)
    assert (closed.reason, closed.limit) == ("announce_failed", setting)
    assert (decided.why, decided.limit, decided.text) == ("limit", setting, None)
    assert len(recorded(system, RunQueued)) == 2


@pytest.mark.clause("LOOP-5")
def test_children_that_start_at_the_same_moment_are_no_more_than_the_runs_allow(booth: Booth) -> None:
    started, asked = threading.Barrier(4), threading.Event()
    answers: list[Any] = []

    def agent(turn: Turn) -> str:
        if turn.agent_id != "main" or ":subagent:" in turn.session_key:
            assert asked.wait(WAIT)  # what follows from an answer would be a run of its own
            return "done"
        calls = [threading.Thread(target=call, args=(turn, number)) for number in range(4)]
        for each in calls:
            each.start()
        for each in calls:
            each.join()
        asked.set()
        return "NO_REPLY"

    def call(turn: Turn, number: int) -> None:
        started.wait(WAIT)
        if number % 2:
            answers.append(turn.tools.call("sessions_spawn", {"task": "x", "agentId": f"a{number}"}))
        else:
            given = {"agentId": f"a{number}", "message": "x", "timeoutSeconds": 0}
            answers.append(turn.tools.call("sessions_send", given))

    agents = {"main": agent, **{f"a{number}": agent for number in range(4)}}
    system = booth.start(agents, {}, limited(runs=3))

    system.gateway.call("agent", {"message": "go", "sessionKey": MAIN, "idempotencyKey": "k"})
    until_calm(system)

    assert sorted(answer["status"] for answer in answers) == ["accepted", "accepted", "error", "error"]
    assert {answer["code"] for answer in answers if "code" in answer} == {"limit"}
    assert len(recorded(system, RunQueued)) == 3


@pytest.mark.clause("LOOP-5")
@pytest.mark.parametrize(
    ("setting", "usage"), [("tokens", Usage(input=6)), ("costMicros", Usage(cost_micros=6))]
)
def test_a_run_that_waits_when_tokens_or_money_run_out_ends_and_its_flow_is_told(
    booth: Booth, setting: str, usage: Usage
) -> None:
    gate = Gate()

    def main(turn: Turn) -> str:
        for _ in range(2):
            turn.tools.call("sessions_send", {"agentId": "ops", "message": "x", "timeoutSeconds": 0})
        gate.open()
        return "NO_REPLY"

    def ops(turn: Turn) -> Reply:
        gate.stop(turn)
        return Reply("dear", usage=usage)

    system = booth.start({"main": main, "ops": ops}, {}, merged(limited(**{setting: 5}), QUIET))
    say(system)
    until_calm(system)

    (failed,) = recorded(system, RunFailed)
    assert failed.code == "limit"
    assert failed.error.startswith(f"limit: session.agentToAgent.limits.{setting} is 5 and ")
    outcome = system.gateway.call("agent.wait", {"runId": failed.run_id})
    assert (outcome["status"], outcome["error"]) == ("error", failed.error)
    closed = recorded(system, ExchangeClosed)
    assert [event.note for event in closed if event.reason == "run_failed"] == [failed.error]


@pytest.mark.clause("LOOP-5")
def test_a_chain_that_is_too_old_starts_nothing_more(booth: Booth) -> None:
    clock = ManualClock()

    def agent(turn: Turn) -> str:
        if ":subagent:" not in turn.session_key:
            clock.advance(2_000)
        return spawns_on(turn)

    system = booth.start({"main": agent}, {}, limited(wallSeconds=5), clock=clock)
    system.gateway.call("agent", {"message": "go", "sessionKey": MAIN, "idempotencyKey": "k"})
    until_calm(system)

    (refused,) = recorded(system, SendRefused)
    assert (refused.limit, refused.value) == ("session.agentToAgent.limits.wallSeconds", 6)
    assert len(recorded(system, SpawnAccepted)) == 2


@pytest.mark.clause("LOOP-5")
def test_what_a_person_says_next_begins_a_chain_of_its_own(booth: Booth) -> None:
    system = booth.start({"main": spawns_on}, {"telegram": MemoryChannel()}, limited(runs=2))

    roots = [say(system), say(system)]
    until_calm(system)

    assert len(recorded(system, SpawnAccepted)) == 2
    budgets = [run.budget for run in recorded(system, RunQueued)]
    assert {budget.root for budget in budgets if budget is not None} == set(roots)


# --- across a restart


@pytest.mark.clause("LOOP-5", "L2")
def test_a_chain_that_goes_on_after_a_restart_has_used_what_it_had(booth: Booth) -> None:
    gate = Gate()

    def slow(turn: Turn) -> str:
        if ":subagent:" in turn.session_key:
            gate.stop(turn)
        return spawns_on(turn)

    first = booth.start({"main": slow}, {}, limited(runs=6))
    first.gateway.call("agent", {"message": "go", "sessionKey": MAIN, "idempotencyKey": "k"})
    gate.reached()
    first.close(grace=0)
    gate.open()
    second = booth.start({"main": spawns_on}, {}, limited(runs=6))
    until_calm(second)

    assert len(recorded(second, RunQueued)) == 6
    assert len(second.service.world.chains._accounts) == 1, (
        "of chains that are over those are kept that were read"
    )


# --- what hosts make themselves


class Bridge:
    """A channel that is another session: what is sent there, a "person" says to the agent of that name."""

    def __init__(self) -> None:
        self.system: SessionSystem | None = None
        self.answers: list[Any] = []

    def __call__(self, out: Outbound) -> None:
        if self.system is not None:
            other = {"main": "ops", "ops": "main"}[out.to]
            said = self.system.inbound(
                channel="bridge", chat_id=other, text=out.text, sender=out.to, agent_id=other, owner=True
            )
            self.answers.append(said)


@pytest.mark.clause("LOOP-5", "INB-1", "PROV-2", "L2")
@pytest.mark.parametrize("limits", [{"runs": 5}, {"hops": 4}])
def test_a_channel_that_is_another_session_goes_on_with_the_chain(
    booth: Booth, limits: dict[str, int]
) -> None:
    bridge = Bridge()
    agents = dict.fromkeys(("main", "ops"), echo())
    bridge.system = system = booth.start(agents, {"bridge": bridge}, limited(**limits))

    root = system.inbound(channel="bridge", chat_id="main", text="hi", sender="p", agent_id="main")["runId"]
    refused = wait_for(system, SendRefused)
    wait_until_done(system)  # the channel that was refused has returned

    runs = recorded(system, RunQueued)
    assert [run.budget.root for run in runs if run.budget is not None] == [root] * 5
    assert (refused.tool, refused.limit) == ("inbound", f"session.agentToAgent.limits.{next(iter(limits))}")
    # Each text has a thread of its own: the last answer need not be the last in the list.
    assert [answer["code"] for answer in bridge.answers if "code" in answer] == ["limit"]
    first, *others = [item.message for item in all_said(system) if item.message.role == "user"]
    assert first.provenance == Provenance(kind="external_user", source_channel="bridge", sender="p")
    assert {said.provenance.kind for said in others if said.provenance} == {"inter_session"}
    assert others[0].provenance is not None
    assert others[0].provenance.source_session_key == MAIN
    # Only a person's message says where a session's words go.
    assert [change.route.to for change in recorded(system, RouteChanged)] == ["main"]


def by_inbound(system: SessionSystem) -> Any:
    return system.inbound(channel="bridge", chat_id="9", text="x", sender="p", agent_id="ops")


def by_agent(system: SessionSystem) -> Any:
    given = {"sessionKey": "agent:ops:main", "message": "x", "idempotencyKey": "in a run"}
    return system.gateway.call("agent", given)


def by_tools(system: SessionSystem) -> Any:
    return system.tools().call("sessions_send", {"agentId": "ops", "message": "x", "timeoutSeconds": 0})


def by_spawn(system: SessionSystem) -> Any:
    return system.tools().call("sessions_spawn", {"task": "x", "agentId": "ops"})


DOORS = [by_inbound, by_agent, by_tools, by_spawn]


@pytest.mark.clause("LOOP-5")
@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("runs", [1, 2])
def test_what_an_agent_does_by_a_door_of_the_system_goes_on_with_its_chain(
    booth: Booth, door: Callable[[SessionSystem], dict[str, Any]], runs: int, *, is_async: bool
) -> None:
    answers: list[Any] = []

    def agent(turn: Turn) -> str:
        if turn.agent_id == "main":
            answers.append(door(system))
        return "NO_REPLY"

    async def later(turn: Turn) -> str:
        return await asyncio.to_thread(agent, turn)

    agents = dict.fromkeys(("main", "ops"), later if is_async else agent)
    system = booth.start(agents, {}, limited(runs=runs))
    root = system.gateway.call("agent", {"message": "go", "sessionKey": MAIN, "idempotencyKey": "k"})["runId"]
    until_calm(system)

    assert [answer.get("code") for answer in answers] == [None if runs == 2 else "limit"]
    queued = recorded(system, RunQueued)
    assert [(run.budget.root, run.budget.hops) for run in queued if run.budget is not None] == [
        (root, hops) for hops in range(runs)
    ]


def in_a_thread(work: Callable[[], None]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join(WAIT)


def in_a_pool(work: Callable[[], None]) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result(WAIT)


@pytest.mark.clause("LOOP-5")
@pytest.mark.parametrize("elsewhere", [in_a_thread, in_a_pool])
@pytest.mark.parametrize(("carries", "runs"), [(True, 2), (False, 1)])
def test_what_a_thread_of_an_agents_own_does_goes_on_with_its_chain_if_it_takes_the_run_along(
    booth: Booth, elsewhere: Callable[[Callable[[], None]], None], runs: int, *, carries: bool
) -> None:
    """Before: Python hands nothing on to a thread, so what it says begins a chain unless it is told whose it is."""

    def agent(turn: Turn) -> str:
        def work() -> None:
            by_inbound(system)

        if turn.agent_id == "main":
            elsewhere(turn.carrying(work) if carries else work)
        return "NO_REPLY"

    system = booth.start(dict.fromkeys(("main", "ops"), agent), {}, limited(runs=9))
    root = system.gateway.call("agent", {"message": "go", "sessionKey": MAIN, "idempotencyKey": "k"})["runId"]
    until_calm(system)

    budgets = [run.budget for run in recorded(system, RunQueued) if run.budget is not None]
    assert len(budgets) == 2
    assert [budget.root for budget in budgets].count(root) == runs


@pytest.mark.clause("LOOP-5", "INB-1")
@pytest.mark.parametrize(("later_ms", "goes_on"), [(59_000, True), (61_000, False)])
def test_what_a_task_takes_in_is_a_persons_again_a_minute_after_its_run(
    booth: Booth, later_ms: int, *, goes_on: bool
) -> None:
    """Before: an agent that leaves a task behind, which speaks to an agent when the run is over, went on for ever."""
    clock = ManualClock()
    gate = asyncio.Event()
    begun: list[asyncio.Task[dict[str, Any]]] = []

    async def poll() -> Any:
        await gate.wait()
        return await system.ainbound(channel="telegram", chat_id="7", text="hello", sender="p")

    async def agent(turn: Turn) -> str:
        if not begun:
            begun.append(asyncio.create_task(poll()))
        return turn.message

    async def host() -> dict[str, Any]:
        async with system:
            first = await system.ainbound(channel="x", chat_id="1", text="hi", sender="p", wait=WAIT)
            assert first["reply"] == "hi"
            clock.advance(later_ms)
            gate.set()
            return await begun[0]

    system = booth.start({"main": agent}, {}, limited(runs=1), clock=clock)
    answer = asyncio.run(host())

    again = booth.start({"main": agent}, {}, limited(runs=1), clock=clock)
    assert answer.get("code") == ("limit" if goes_on else None)
    roots = {run.run_id: run.budget.root for run in recorded(again, RunQueued) if run.budget is not None}
    assert len(roots) == (1 if goes_on else 2)
    assert all(run_id == root for run_id, root in roots.items())


@pytest.mark.clause("LOOP-5", "SPAWN-12")
def test_what_a_channel_does_when_it_opens_a_thread_goes_on_with_the_chain(booth: Booth) -> None:
    """Before: a channel that says something where it opens a thread began a chain with each."""
    answers: list[Any] = []
    second = Gate()

    def opener(_wanted: ThreadWanted) -> str:
        answers.append(
            system.inbound(channel="bridge", chat_id="9", text="a thread", sender="bot", agent_id="main")
        )
        if len(answers) == 2:
            second.open()
        return str(len(answers))

    def agent(turn: Turn) -> str:
        if ":subagent:" in turn.session_key:
            second.stop(turn)  # what a child's end leads to is a run as well, and may be the fourth
        else:
            turn.tools.call("sessions_spawn", {"task": "go on", "thread": True})
        return "NO_REPLY"

    channel = Channel(deliver=lambda _: None, threads=opener)
    system = booth.start({"main": agent}, {"telegram": channel, "bridge": channel}, limited(runs=4))
    root = say(system)
    until_calm(system)

    assert answers[-1].get("code") == "limit"
    assert {run.budget.root for run in recorded(system, RunQueued) if run.budget is not None} == {root}


@pytest.mark.clause("LOOP-5")
@pytest.mark.parametrize("door", [by_inbound, by_tools, by_spawn])
def test_what_a_host_does_about_a_failure_goes_on_with_the_chain_that_failed(
    booth: Booth, door: Callable[[SessionSystem], dict[str, Any]]
) -> None:
    """Before: a word to another agent from `on_failure` made 89 runs in 4 s, each of a chain of its own."""
    answers: list[Any] = []
    heard = threading.Semaphore(0)

    def agent(turn: Turn) -> str:
        raise RuntimeError(turn.message)

    def on_failure(_failure: Failure) -> None:
        answers.append(door(system))
        heard.release()

    agents = dict.fromkeys(("main", "ops"), agent)
    channels = {"bridge": MemoryChannel(), "telegram": MemoryChannel()}
    system = booth.start(agents, channels, limited(runs=3), on_failure=on_failure)
    root = say(system)
    for _ in range(3):
        assert heard.acquire(timeout=WAIT)
    until_calm(system)

    roots = {run.budget.root for run in recorded(system, RunQueued) if run.budget is not None}
    assert roots == {root}
    assert len(recorded(system, RunQueued)) == 3
    assert answers[-1]["code"] == "limit"


@pytest.mark.clause("LOOP-5", "INB-1")
def test_a_failed_delivery_that_a_host_tells_an_agent_of_goes_on_with_its_chain(booth: Booth) -> None:
    """Before: each word of the agent on the failure failed as well, and so on."""
    answers: list[Any] = []
    refused = threading.Event()

    def broken(_outbound: Outbound) -> None:
        raise DeliveryRefused("no such chat")

    def on_failure(_failure: Failure) -> None:
        answers.append(
            system.inbound(channel="broken", chat_id="1", text="not delivered", sender="p", agent_id="main")
        )
        if answers[-1].get("code") == "limit":
            refused.set()

    system = booth.start({"main": echo()}, {"broken": broken}, limited(hops=2), on_failure=on_failure)
    root = system.inbound(channel="broken", chat_id="1", text="hi", sender="p", agent_id="main")["runId"]
    assert refused.wait(WAIT)
    until_calm(system)

    queued = [run.budget for run in recorded(system, RunQueued) if run.budget is not None]
    assert [(budget.root, budget.hops) for budget in queued] == [(root, 0), (root, 1), (root, 2)]


@pytest.mark.clause("LOOP-5", "INB-1")
def test_what_an_agent_asks_of_the_systems_actor_goes_on_with_its_chain(booth: Booth) -> None:
    """Before: 74 runs in 4 s, for the actor's thread knew nothing of who had asked."""
    answers: list[Any] = []

    def agent(_turn: Turn) -> str:
        person = Inbound(channel="bridge", chat_id="9", text="x", sender="p", agent_id="ops")
        answers.append(system.ref.ask(person, timeout=WAIT))
        return "NO_REPLY"

    system = booth.start(dict.fromkeys(("main", "ops"), agent), {}, limited(runs=3))
    root = say(system)
    until_calm(system)

    assert [answer.get("code") for answer in answers] == [None, None, "limit"]
    assert {run.budget.root for run in recorded(system, RunQueued) if run.budget is not None} == {root}


class Asking(pykka.ThreadingActor):
    """An agent that is an actor, and asks the system's actor as its session."""

    system: SessionSystem
    answers: ClassVar[list[Any]]

    def on_receive(self, message: Turn) -> str:
        other = "ops" if message.agent_id == "main" else "main"
        call = SessionsSend(agent_id=other, message="x", timeout_seconds=0)
        self.answers.append(self.system.ref.ask(As(message.session_key, call), timeout=WAIT))
        return "NO_REPLY"


@pytest.mark.clause("LOOP-5")
def test_what_an_agent_that_is_an_actor_asks_as_its_session_goes_on_with_its_chain(booth: Booth) -> None:
    """Before: its handler runs on a thread of its own, which is called for nothing."""
    Asking.answers = []
    ref = Asking.start()
    try:
        Asking.system = system = booth.start(dict.fromkeys(("main", "ops"), ref), {}, limited(runs=3))
        root = say(system)
        until_calm(system)
    finally:
        ref.stop()

    assert [answer.get("code") for answer in Asking.answers] == [None, None, "limit"]
    assert {run.budget.root for run in recorded(system, RunQueued) if run.budget is not None} == {root}


# --- the law


Call = tuple[str, str, bool]
Move = tuple[tuple[Call, ...], str | None]

AGENTS: Final = ("main", "ops", "lab")
CALLS: Final = st.tuples(st.sampled_from(["send", "spawn"]), st.sampled_from(AGENTS), st.booleans())
ANSWERS: Final = st.sampled_from(["fine", "fine", "go on", "REPLY_SKIP", "ANNOUNCE_SKIP", "NO_REPLY", None])
MOVES: Final = st.lists(st.tuples(st.lists(CALLS, max_size=2).map(tuple), ANSWERS), min_size=1, max_size=5)
PASSES_TO_OPS: Final[Move] = ((("send", "ops", False),), "NO_REPLY")
PASSES_TO_MAIN: Final[Move] = ((("send", "main", False),), "NO_REPLY")
LIMITS: Final = st.fixed_dictionaries(
    {
        "runs": st.integers(1, 12),
        "hops": st.integers(0, 4),
        "revisits": st.integers(0, 2),
        "tokens": st.sampled_from([0, 0, 3, 9]),
        "costMicros": st.sampled_from([0, 0, 4]),
    }
)


class Players:
    """Agents that make the moves they were dealt, one after the other, on whatever turn they get."""

    def __init__(self, dealt: Sequence[Sequence[Move]]) -> None:
        self._moves = {name: itertools.cycle(moves) for name, moves in zip(AGENTS, dealt, strict=True)}
        self._lock = threading.Lock()
        self.limited: list[str] = []

    def __call__(self, turn: Turn) -> Reply:
        with self._lock:
            calls, text = next(self._moves[turn.agent_id])
        for what, target, waits in calls:
            self._made(turn, what, target, waits=waits)
        return Reply(text, usage=Usage(total_tokens=1, cost_micros=2))

    def _made(self, turn: Turn, what: str, target: str, *, waits: bool) -> None:
        if what == "spawn":
            answer: Any = turn.tools.call("sessions_spawn", {"task": "go on", "agentId": target})
        else:
            given = {"agentId": target, "message": "go on", "timeoutSeconds": WAIT if waits else 0}
            answer = turn.tools.call("sessions_send", given)
        if answer.get("code") == "limit":
            self.limited.append(answer["error"])


def check_law(log: Sequence[Recorded], roots: Sequence[str], limits: dict[str, int]) -> None:
    """Check that all belongs to the chains that people began, and that none of those has passed a limit."""
    queued: dict[str, Recorded] = {}
    runs: defaultdict[str | None, int] = defaultdict(int)
    spent: dict[str | None, list[tuple[int, Usage]]] = defaultdict(list)
    for item in log:
        match item.event:
            case RunQueued() as run:
                queued[run.run_id] = item
                runs[item.correlation] += 1
                assert run.budget is not None
                assert run.budget.root == item.correlation
                assert run.budget.hops == len(run.budget.path) - 1
                assert not limits["hops"] or run.budget.hops <= limits["hops"]
                visits = max(run.budget.path.count(key) for key in run.budget.path)
                assert not limits["revisits"] or visits - 1 <= limits["revisits"]
            case RunCompleted(usage=Usage() as usage):
                spent[item.correlation].append((item.position, usage))
            case RunStarted(run_id=run_id) if run_id != item.correlation:
                # What had ended before a run was asked for was known when it started.
                before = [used for at, used in spent[item.correlation] if at < queued[run_id].position]
                assert not limits["tokens"] or sum(used.tokens for used in before) < limits["tokens"]
                money = sum(used.cost_micros or 0 for used in before)
                assert not limits["costMicros"] or money < limits["costMicros"]
            case _:
                pass
    assert set(runs) == set(roots), "something began a chain of its own"
    assert max(runs.values()) <= limits["runs"]


@pytest.mark.clause("LOOP-5", "L2")
@given(dealt=st.tuples(MOVES, MOVES, MOVES), limits=LIMITS, routed=st.booleans(), turns=st.integers(0, 2))
@example(
    dealt=([PASSES_TO_OPS], [PASSES_TO_MAIN], [PASSES_TO_MAIN]),
    limits=dict.fromkeys(OFF, 0) | {"runs": 12, "revisits": 1},
    routed=False,
    turns=0,
)
@settings(max_examples=4)
def test_no_chain_passes_any_limit_whatever_its_agents_do(
    dealt: tuple[Sequence[Move], ...], limits: dict[str, int], turns: int, *, routed: bool
) -> None:
    play(dealt, limits, turns=turns, routed=routed)


@pytest.mark.nightly
@pytest.mark.clause("LOOP-5", "L2")
@given(dealt=st.tuples(MOVES, MOVES, MOVES), limits=LIMITS, routed=st.booleans(), turns=st.integers(0, 5))
@settings(max_examples=400)
def test_no_chain_of_very_many_passes_any_limit(
    dealt: tuple[Sequence[Move], ...], limits: dict[str, int], turns: int, *, routed: bool
) -> None:
    play(dealt, limits, turns=turns, routed=routed)


def play(dealt: Sequence[Sequence[Move]], limits: dict[str, int], *, turns: int, routed: bool) -> None:
    """Let two people begin chains side by side, and check the law when all is calm."""
    players = Players(dealt)
    config = merged(limited(**limits), {"session": {"agentToAgent": {"maxPingPongTurns": turns}}})
    with tempfile.TemporaryDirectory() as directory, Booth(f"sqlite:///{directory}/log.db") as booth:
        system = booth.start(dict.fromkeys(AGENTS, players), {"telegram": MemoryChannel()}, config)
        if routed:
            roots = [say(system, agent_id="main"), say(system, agent_id="ops")]
        else:
            roots = [
                system.gateway.call(
                    "agent", {"message": "go", "sessionKey": f"agent:{name}:main", "idempotencyKey": name}
                )["runId"]
                for name in ("main", "ops")
            ]
        log = until_calm(system)

        check_law(log, roots, limits)
        for setting in players.limited:
            assert "session.agentToAgent.limits." in setting
        wait_for(system, RunStarted)
        chains = system.service.world.chains
        # A chain that was over for a moment, and was asked for again, was read from the log: of those the last 256 stay known.
        # The others are forgotten just after the events that the log has of their end.
        until(lambda: chains._accounts.keys() == chains._read.keys())
