"""An answer that is said in pieces: who hears it, how it ends, and that the log is the same without it."""

import asyncio
import threading
from collections.abc import AsyncIterator, Generator, Iterator
from typing import Any

import pytest

from intersession import Reply, SessionSystem, StreamAnswer, ToolRefused, Turn, Usage
from intersession_events import facts
from support.fakes import ManualClock
from support.running import QUIET, SEES_ALL, WAIT, Booth, Gate, pass_time, recorded, wait_for

SPENT = Usage(input=1, output=2, total_tokens=3)


def talking(gate: Gate, *pieces: object, returned: object = None) -> Any:
    """Return an agent that says the first piece, stops at the gate, and says the rest."""

    def agent(turn: Turn) -> Generator[object, None, object]:
        yield pieces[0]
        gate.stop(turn)
        yield from pieces[1:]
        return returned

    return agent


def said_to(system: SessionSystem, text: str = "Hello", **more: Any) -> str:
    return str(system.inbound(channel="chat", chat_id="42", sender="ann", text=text, **more).get("runId"))


def texts(parts: list[StreamAnswer]) -> list[str]:
    return [part.get("text", part["state"]) for part in parts]


@pytest.mark.clause("STREAM-1", "STREAM-2")
def test_a_listener_hears_what_was_said_before_then_the_rest_and_the_end(booth: Booth, gate: Gate) -> None:
    system = booth.start({"main": talking(gate, "Good ", "morning.")})
    run_id = said_to(system)
    gate.reached()

    parts = iter(system.stream(run_id))
    first = next(parts)
    gate.open()
    rest = list(parts)

    assert first == {"state": "delta", "runId": run_id, "attempt": 1, "text": "Good ", "delta": "Good "}
    assert {**rest[-1], **system.gateway.call("agent.wait", {"runId": run_id})} == rest[-1]
    assert (rest[-1]["state"], rest[-1]["reply"]) == ("final", "Good morning.")
    assert [part["state"] for part in list(system.stream(run_id))] == ["final"]  # nothing is kept of pieces


@pytest.mark.clause("STREAM-2")
def test_a_listener_on_an_event_loop_hears_the_same(passing_url: str, gate: Gate) -> None:
    async def agent(turn: Turn) -> AsyncIterator[str]:
        yield "a"
        await asyncio.to_thread(gate.stop, turn)
        yield "b"

    async def listened() -> list[StreamAnswer]:
        parts: list[StreamAnswer] = []
        async with SessionSystem(passing_url, agents={"main": agent}) as system:
            told = await system.ainbound(channel="chat", chat_id="42", sender="ann", text="Hello")
            await asyncio.to_thread(gate.reached)
            async for part in system.stream(str(told.get("runId"))):
                parts.append(part)
                gate.open()
        return parts

    parts = asyncio.run(listened())

    assert texts(parts)[0] == "a"
    assert (parts[-1]["state"], parts[-1]["reply"]) == ("final", "ab")


@pytest.mark.clause("STREAM-1")
@pytest.mark.parametrize(
    ("pieces", "returned", "reply", "usage"),
    [
        (("a", "b"), None, "ab", None),
        (("a", Reply(usage=SPENT)), None, "a", SPENT),
        (("a", Reply("other")), None, "other", None),
        (("a", Reply.skip()), None, None, None),
        (("a",), Reply("other", usage=SPENT), "other", SPENT),
        (("a",), "other", "other", None),
        (("NO_", "REPLY"), None, None, None),
    ],
)
def test_the_pieces_are_the_answer_unless_it_ends_with_another(
    passing_url: str,
    pieces: tuple[object, ...],
    returned: object,
    reply: str | None,
    usage: Usage | None,
) -> None:
    gate = Gate()
    gate.open()
    with SessionSystem(
        passing_url, agents={"main": talking(gate, *pieces, returned=returned)}, config=QUIET
    ) as system:
        end = list(system.stream(said_to(system)))[-1]
        (completed,) = recorded(system, facts.RunCompleted)

    assert (end["status"], end.get("reply"), completed.usage) == ("ok", reply, usage)


@pytest.mark.clause("STREAM-1")
@pytest.mark.parametrize(
    ("pieces", "returned", "error"),
    [
        ((5,), None, "bad_reply: agent 'main' yielded int; an agent yields texts"),
        ((Reply("a"), "b"), None, "bad_reply: agent 'main' yielded something behind its Reply"),
        ((Reply("a"),), "b", "bad_reply: agent 'main' yielded a Reply and returned something, too"),
        (("x" * 60, "y" * 60), None, "reply_too_large: agent 'main' said a text of more than 100 bytes"),
    ],
)
def test_what_is_no_piece_fails_the_run_in_words(
    passing_url: str, gate: Gate, pieces: tuple[object, ...], returned: object, error: str
) -> None:
    gate.open()
    agents, config = {"main": talking(gate, *pieces, returned=returned)}, {"runs": {"replyMaxBytes": 100}}
    with SessionSystem(passing_url, agents=agents, config=config) as system:
        end = list(system.stream(said_to(system)))[-1]

    assert end["state"] == "error"
    assert end["error"].startswith(error)


def test_a_generator_that_nobody_runs_is_no_answer(passing_url: str) -> None:
    def pieces() -> Iterator[str]:
        yield "a"

    with SessionSystem(passing_url, agents={"main": lambda _: pieces()}) as system:
        end = list(system.stream(said_to(system)))[-1]

    assert "register the function that yields itself" in end["error"]


@pytest.mark.clause("STREAM-2")
def test_nothing_is_shown_of_a_text_that_may_become_a_word_for_silence(passing_url: str, gate: Gate) -> None:
    with SessionSystem(passing_url, agents={"main": talking(gate, "NO_", "REPLY")}) as system:
        run_id = said_to(system)
        gate.reached()
        heard: list[StreamAnswer] = []
        listener = threading.Thread(target=lambda: heard.extend(system.stream(run_id)))
        listener.start()
        gate.open()
        listener.join(WAIT)

    assert [part["state"] for part in heard] == ["final"]


@pytest.mark.clause("STREAM-3")
def test_an_abort_closes_the_generator_and_keeps_what_it_had_shown(booth: Booth) -> None:
    closed: list[type[BaseException]] = []
    shown = threading.Event()

    async def agent(turn: Turn) -> AsyncIterator[str]:
        del turn
        try:
            yield "Once upon a time"
            shown.set()
            await asyncio.sleep(WAIT)
        except BaseException as error:
            closed.append(type(error))
            raise

    system = booth.start({"main": agent})
    run_id = said_to(system)
    assert shown.wait(WAIT)
    parts = iter(system.stream(run_id))
    next(parts)
    system.abort(run_id)
    end = list(parts)[-1]
    wait_for(system, facts.RunAborted)
    (aborted,) = recorded(system, facts.RunAborted)

    assert (end["state"], aborted.partial) == ("aborted", "Once upon a time")
    system.close()
    assert closed == [asyncio.CancelledError]


@pytest.mark.clause("STREAM-3")
def test_a_generator_on_a_thread_is_closed_at_its_next_piece(passing_url: str, gate: Gate) -> None:
    closed = threading.Event()

    def agent(turn: Turn) -> Iterator[str]:
        try:
            yield "a"
            gate.stop(turn)
            yield "b"
        finally:
            closed.set()

    with SessionSystem(passing_url, agents={"main": agent}) as system:
        run_id = said_to(system)
        gate.reached()
        system.abort(run_id)
        gate.open()
        assert closed.wait(WAIT)
        (aborted,) = recorded(system, facts.RunAborted)

    assert aborted.partial == "a"


@pytest.mark.clause("STREAM-3")
def test_a_run_that_fails_or_is_out_of_time_keeps_what_it_had_shown(passing_url: str, gate: Gate) -> None:
    def failing(turn: Turn) -> Iterator[str]:
        del turn
        yield "Half of "
        raise OSError("gone")

    agents, clock = {"main": failing, "slow": talking(gate, "Wait")}, ManualClock()
    with SessionSystem(passing_url, agents=agents, config=SEES_ALL, clock=clock) as system:
        list(system.stream(said_to(system)))
        asked = {"sessionKey": "agent:slow:main", "message": "Go", "idempotencyKey": "k", "timeoutMs": 50}
        run_id = system.gateway.call("chat.send", asked)["runId"]
        gate.reached()
        pass_time(system, clock, 50)
        list(system.stream(run_id))
        failed = recorded(system, facts.RunFailed)

    assert [(one.code, one.partial) for one in failed] == [("backend", "Half of "), ("timeout", "Wait")]


@pytest.mark.clause("STREAM-3")
def test_what_an_attempt_had_said_that_was_cut_off_counts_no_more(passing_url: str) -> None:
    """The store says that the first attempt was too long for its model, behind its first words."""

    def agent(turn: Turn) -> Iterator[str]:
        if turn.attempt == 1:
            yield "Wrong"
            heard.wait(WAIT)
            raise ValueError("maximum context length is 8 tokens")
        yield "Right"

    heard = threading.Event()
    parts: list[StreamAnswer] = []
    with SessionSystem(passing_url, agents={"main": agent}) as system:
        for part in system.stream(said_to(system)):
            parts.append(part)
            heard.set()

    assert texts(parts)[:2] == ["Wrong", "restarted"]
    assert (parts[1]["attempt"], parts[-1]["reply"]) == (1, "Right")


@pytest.mark.clause("STREAM-3")
def test_pieces_of_an_attempt_that_is_over_are_refused(passing_url: str) -> None:
    turns: list[Turn] = []

    def agent(turn: Turn) -> str:
        turns.append(turn)
        turn.stream("a")
        return "a"

    with SessionSystem(passing_url, agents={"main": agent}) as system:
        list(system.stream(said_to(system)))
        with pytest.raises(ToolRefused, match="this attempt is over"):
            turns[0].stream("b")


def test_a_stream_of_an_unknown_run_is_refused(passing_url: str) -> None:
    with SessionSystem(passing_url, agents={}) as system, pytest.raises(ToolRefused, match="there is no run"):
        system.stream("nothing")


@pytest.mark.clause("STREAM-2")
def test_the_log_is_the_same_with_and_without_pieces(passing_url: str, gate: Gate) -> None:
    gate.open()

    agents = {"main": talking(gate, "a", "b"), "ops": lambda _: "ab"}
    with SessionSystem(passing_url, agents=agents) as system:
        for agent_id in agents:
            list(system.stream(said_to(system, agent_id=agent_id)))
        kinds = [
            [item.topic for item in system.log.stream(f"session:agent:{agent_id}:main")]
            for agent_id in agents
        ]

    assert kinds[0] == kinds[1]


@pytest.mark.clause("STREAM-2", "STREAM-3", "SEAL-1")
def test_a_sealed_replay_decides_the_same_without_pieces(log_url: str, gate: Gate) -> None:
    with SessionSystem(log_url, agents={"main": talking(gate, "Once ", "more")}) as system:
        stopped = said_to(system)
        gate.reached()
        system.abort(stopped)
        gate.open()
        list(system.stream(said_to(system, "And again")))
        replayed = system.debug.replay()

    assert replayed["firstDifference"] is None
