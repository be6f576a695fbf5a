"""A session that is longer than its model's window is summarised, by a run of its own whose end names what it covers."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest

from intersession import Channel, MemoryChannel, Outbound, Reply, SessionSystem, Turn, Usage, openai_agent
from intersession_events.facts import (
    ERASED,
    AnswerShown,
    DeliveryDecided,
    ForkEdit,
    RunAborted,
    RunCompleted,
    RunFailed,
    RunInterrupted,
    RunQueued,
    RunStarted,
)
from support.doors.command_line import ran
from support.endpoint import Said, an_endpoint
from support.running import WAIT, Gate, recorded, wait_for, wait_until

MAIN = "agent:main:main"
LONG = "What about the weather in Oslo, and in Bergen, and further north? " * 4
SMALL: dict[str, Any] = {"agents": {"defaults": {"contextTokens": 8_000}}}
SUMMARY = "Ann asks about the weather in the north."


class Talker:
    """Answers each message, and summarises with one sentence or as told; keeps what it was given."""

    def __init__(self, summarise: Callable[[Turn], Reply | str | None] = lambda _: SUMMARY) -> None:
        self.summarise = summarise
        self.asked: list[Turn] = []
        self.summaries: list[Turn] = []

    def __call__(self, turn: Turn) -> Reply | str | None:
        if turn.step == "compaction":
            self.summaries.append(turn)
            return self.summarise(turn)
        self.asked.append(turn)
        return f"It rains, {len(self.asked)}."


def a_system(store: str, agent: Any, config: dict[str, Any] = SMALL, **agents: Any) -> SessionSystem:
    return SessionSystem(
        store, agents={"main": agent, **agents}, channels={"chat": MemoryChannel()}, config=config
    )


def said_to(system: SessionSystem, number: int, text: str = LONG) -> Any:
    return system.inbound(channel="chat", chat_id="42", sender="ann", text=f"{number}. {text}", wait=WAIT)


def talk(system: SessionSystem, first: int, last: int) -> list[str]:
    return [said_to(system, number)["status"] for number in range(first, last)]


def summaries(system: SessionSystem) -> list[RunCompleted]:
    return [event for event in recorded(system, RunCompleted) if event.covers is not None]


def compactions(system: SessionSystem) -> list[RunQueued]:
    return [run for run in recorded(system, RunQueued) if run.step == "compaction"]


def talked_until_it_summarises(system: SessionSystem) -> tuple[int, str]:
    """Talk until a summary is asked for; return the number of messages, and the run of the last, which waits for it."""
    number, run = 0, ""

    def is_over() -> bool:
        ended = {one.run_id for one in recorded(system, RunCompleted)}
        return run in ended or bool(compactions(system))

    while not compactions(system):
        said = f"{number}. {LONG}"
        answer = system.inbound(channel="chat", chat_id="42", sender="ann", text=said)
        number, run = number + 1, answer["runId"]
        wait_until(system, is_over)
    return number, run


def look_up(number: int) -> str:
    """Look a number up."""
    return str(number)


@pytest.mark.clause("CTX-5")
def test_older_turns_are_summarised_ahead_of_a_run_that_has_no_room_for_them(log_url: str) -> None:
    talker = Talker()
    with a_system(log_url, talker) as system:
        assert talk(system, 0, 30) == ["ok"] * 30
        found, runs = summaries(system), recorded(system, RunQueued)
        ahead = next(place for place, run in enumerate(runs) if run.step == "compaction")
        lens = system.debug.lens(talker.asked[-1].run_id, dialect="openai")
        whole = system.tools().call("sessions_history", {"sessionKey": "main", "limit": 100})
        assert system.debug.replay()["same"]

    first, second = (event.covers for event in found[:2])
    assert first is not None
    assert second is not None
    assert (first.since, first.earlier) == (0, None)
    assert (second.since, second.earlier) == (first.messages, found[0].run_id)
    assert first.through == talker.asked[-1].transcript[first.messages - 1].id
    assert runs[ahead].timeout_ms == 180_000
    assert runs[ahead].message is None
    # What the agent that summarises is given: the oldest turns, whole, and what to do with them.
    given = talker.summaries[0].messages("openai")
    assert len(given) == first.messages + 1
    assert given[0]["content"] == f"0. {LONG}"
    assert "Summary step" in given[-1]["content"]
    assert talker.summaries[0].tools.schemas() == []
    assert SUMMARY in talker.summaries[1].messages("openai")[0]["content"]
    # From then on the summary stands for them, and everything else is as it was.
    shown = talker.asked[-1].messages("openai")
    assert SUMMARY in shown[0]["content"]
    assert len(shown) < 12
    assert len(talker.asked[-1].transcript) == 58
    assert len(whole.get("messages", [])) == 60
    assert lens["asRecorded"]
    assert lens.get("rendered") == shown
    assert lens.get("summary", {}).get("text") == SUMMARY
    assert lens["leftOut"] is not None
    assert "a summary stands for the first" in lens["leftOut"]["told"]
    assert "not shown" not in lens["leftOut"]["told"]


@pytest.mark.clause("CTX-5", "CTX-3")
def test_a_conversation_with_a_model_that_takes_eight_thousand_tokens_goes_on_and_on(log_url: str) -> None:
    def say(request: Said) -> Said:
        is_summary = "Summary step" in str(request["messages"][-1])
        return {"content": f"Ann's number is 17. {LONG}" if is_summary else f"Yes. {LONG}"}

    with an_endpoint(8_000) as endpoint:
        endpoint.say = say
        agent = openai_agent(
            model="tiny",
            base_url=endpoint.url,
            api_key="none",
            context_tokens=8_000,
            system="Be brief.",
            tools=[look_up],
        )
        with a_system(log_url, agent, {}) as system:
            assert talk(system, 0, 60) == ["ok"] * 60
            taken, number = endpoint.taken, len(summaries(system))
            (row,) = system.tools().call("sessions_list", {}).get("sessions", [])

    assert endpoint.refused == []
    assert len(taken) == 60 + number
    assert 5 <= number <= 30
    answered = [one for one in taken if "Summary step" not in str(one["messages"][-1])]
    assert all("number is 17" in str(one["messages"]) for one in answered[14:])
    assert not any("are left out here" in str(one["messages"]) for one in taken)
    assert "tools" not in next(one for one in taken if "Summary step" in str(one["messages"][-1]))
    assert row["contextTokens"] == 8_000
    assert 1_000 < (row["totalTokens"] or 0) < 8_000


@pytest.mark.clause("CTX-5", "CTX-3")
def test_what_the_server_refuses_as_too_long_is_summarised_and_tried_once_more(log_url: str) -> None:
    with an_endpoint(2_000) as endpoint:
        agent = openai_agent(
            model="tiny",
            base_url=endpoint.url,
            api_key="none",
            context_tokens=40_000,
            client_options={"max_retries": 0},
        )
        with a_system(log_url, agent, {"tools": {"deny": ["*"]}}) as system:
            assert talk(system, 0, 40) == ["ok"] * 40
            refused, found = recorded(system, RunInterrupted), summaries(system)

    assert refused
    assert all(one.too_long is not None for one in refused)
    assert found
    assert len(endpoint.refused) == len(refused)


@pytest.mark.clause("CTX-5")
@pytest.mark.parametrize("fails", ["raises", "says nothing"])
def test_a_compaction_that_fails_is_told_and_eight_runs_go_on_without(log_url: str, fails: str) -> None:
    def summarise(_: Turn) -> str:
        if fails == "raises":
            raise RuntimeError("no time")
        return "NO_REPLY"

    told: list[Any] = []
    talker = Talker(summarise)
    with SessionSystem(log_url, agents={"main": talker}, config=SMALL, on_failure=told.append) as system:
        for number in range(40):
            answer = system.inbound(
                channel="chat", chat_id="42", sender="ann", text=f"{number}. {LONG}", deliver=True, wait=WAIT
            )
            assert answer["status"] == "ok"
        failed = recorded(system, RunFailed)
        tried = [run.run_id for run in recorded(system, RunQueued) if run.step == "compaction"]
        order = [run.run_id for run in recorded(system, RunQueued)]

    assert [one.run_id for one in failed] == tried
    assert {one.code for one in failed} == {"backend" if fails == "raises" else "bad_reply"}
    # The one that it went ahead of and seven more begin before the next try.
    places = [order.index(run_id) for run_id in tried]
    assert {later - earlier for earlier, later in pairwise(places)} == {9}
    assert "are left out here" in talker.asked[-1].messages("openai")[0]["content"]
    assert any(one.run_id == tried[0] for one in told if hasattr(one, "run_id"))


@pytest.mark.clause("CTX-5")
def test_code_of_which_nobody_says_on_which_model_it_is_is_asked_for_no_summary_but_another_agent_may_be(
    log_url: str,
) -> None:
    clerk = Talker(lambda turn: Reply(f"By {turn.agent_id}: {SUMMARY}", usage=Usage(total_tokens=5)))
    talker = Talker()
    with a_system(log_url, talker, {}) as system:
        talk(system, 0, 3)
        assert recorded(system, RunStarted)[-1].compacts_at is None
    config: dict[str, Any] = {
        "agents": {
            "defaults": {"contextTokens": 8_000, "compaction": {"agent": "clerk", "model": "local/small"}},
            "list": [{"id": "main", "default": True}, {"id": "clerk"}],
        }
    }
    with a_system(log_url, talker, config, clerk=clerk) as system:
        talk(system, 0, 20)
        (row,) = system.tools().call("sessions_list", {}).get("sessions", [])

    assert talker.summaries == []
    assert clerk.asked == []
    assert {(one.session_key, one.model) for one in clerk.summaries} == {(MAIN, "local/small")}
    assert f"By clerk: {SUMMARY}" in talker.asked[-1].messages("openai")[0]["content"]
    assert row["totalTokens"] is None


@pytest.mark.clause("CTX-5")
def test_a_process_that_ends_while_it_summarises_summarises_again_and_answers(log_url: str) -> None:
    gate, store = Gate(), log_url
    config: dict[str, Any] = {**SMALL, "runs": {"shutdownGraceSeconds": 0}}

    waits = gate.saying(SUMMARY)

    with a_system(store, Talker(waits), config) as system:
        _, waiting = talked_until_it_summarises(system)
        gate.reached()
    gate.open()
    talker = Talker()
    with a_system(store, talker, config) as system:
        assert (
            system.gateway.call("agent.wait", {"runId": waiting, "timeoutMs": int(WAIT * 1000)})["status"]
            == "ok"
        )
        (summary,) = summaries(system)
        assert system.debug.replay()["same"]

    assert summary.attempt == 2
    assert [turn.attempt for turn in talker.summaries] == [2]
    assert SUMMARY in talker.asked[0].messages("openai")[0]["content"]


@pytest.mark.clause("CTX-6")
def test_a_summary_can_be_asked_for(log_url: str) -> None:
    talker = Talker()
    with a_system(log_url, talker, {"agents": {"defaults": {"contextTokens": 30_000}}}) as system:
        key = {"key": "main", "idempotencyKey": "k1"}
        talk(system, 0, 3)
        small = system.gateway.call("sessions.compact", {"key": "main"})
        ended = system.gateway.call("agent.wait", {"runId": small["runId"]})
        talk(system, 3, 60)
        asked = system.gateway.call("sessions.compact", {**key, "instructions": "Keep the towns."})
        again = system.gateway.call("sessions.compact", {**key, "instructions": "Keep the towns."})
        assert system.gateway.call("agent.wait", {"runId": asked["runId"]})["status"] == "ok"
        assert said_to(system, 60)["status"] == "ok"
        (summary,) = summaries(system)
        unknown = system.gateway.call("sessions.compact", {"key": "agent:main:chat:group:none"})
        assert system.debug.replay()["same"]

    assert asked == again == {
        "ok": True, "key": MAIN, "runId": summary.run_id, "status": "accepted"
    }  # fmt: skip
    assert unknown["code"] == "not_visible"
    assert ended["status"] == "ok"
    assert "Keep the towns." in talker.summaries[0].context
    assert SUMMARY in talker.asked[-1].messages("openai")[0]["content"]
    assert len(talker.asked[-1].messages("openai")) < 60


@pytest.mark.clause("CTX-6")
def test_a_summary_that_is_asked_for_during_a_run_may_cover_its_answer(log_url: str) -> None:
    """Its start is decided together with that answer, which no reader has at hand before both are recorded."""
    gate, talker = Gate(), Talker()

    def long_at_last(turn: Turn) -> Reply | str | None:
        if turn.message.startswith("6."):
            gate.stop(turn)
            return LONG * 40
        return talker(turn)

    with a_system(log_url, long_at_last, {"agents": {"defaults": {"contextTokens": 8_000}}}) as system:
        talk(system, 0, 6)
        last = system.inbound(channel="chat", chat_id="42", sender="ann", text="6.")
        gate.reached()
        asked = system.gateway.call("sessions.compact", {"key": "main"})
        gate.open()
        ended = [system.gateway.call("agent.wait", {"runId": one["runId"]}) for one in (last, asked)]
        assert [one["status"] for one in ended] == ["ok", "ok"]
        (summary,) = summaries(system)
        (answer,) = (one for one in recorded(system, RunCompleted) if one.run_id == last["runId"])
        assert said_to(system, 7)["status"] == "ok"
        assert system.debug.replay()["same"]

    assert summary.covers is not None
    assert answer.message is not None
    assert summary.covers.through == answer.message.id


@pytest.mark.clause("CTX-6")
def test_a_summary_may_cover_the_last_message_that_no_run_has_answered(log_url: str) -> None:
    talker = Talker()
    with a_system(log_url, talker) as system:
        talk(system, 0, 2)
        system.gateway.call("chat.inject", {"sessionKey": MAIN, "message": LONG * 40})
        asked = system.gateway.call("sessions.compact", {"key": "main"})
        assert system.gateway.call("agent.wait", {"runId": asked["runId"]})["status"] == "ok"
        (summary,) = summaries(system)
        assert said_to(system, 2)["status"] == "ok"
        assert system.status()["failures"].keys() <= {"slow_handler"}
        assert system.debug.replay()["same"]

    assert summary.covers is not None
    assert summary.covers.messages == 5


@pytest.mark.clause("CTX-5", "ERASE-1")
def test_a_summary_is_erased_with_a_message_that_it_may_tell_of_and_the_next_one_begins_anew(
    log_url: str,
) -> None:
    talker = Talker()
    with a_system(log_url, talker) as system:
        talk(system, 0, 20)
        (first, *_), before = summaries(system), len(talker.summaries)
        message = talker.asked[0].asked.id
        system.gateway.call("sessions.erase", {"key": "main", "messageIds": [message], "unsent": "giveUp"})
        erased = [event for event in recorded(system, RunCompleted) if event.covers is not None]
        assert talk(system, 20, 22) == ["ok"] * 2
        shown = str(talker.asked[-1].messages("openai"))
        anew = talker.summaries[before]
        assert system.debug.replay()["same"]

    assert first.text == SUMMARY
    assert {event.text for event in erased} == {ERASED}
    assert anew.fit is not None
    assert (anew.fit.left_out, anew.fit.summary) == (0, None)
    assert anew.messages("openai")[0]["content"] == ERASED
    assert SUMMARY in shown


@pytest.mark.clause("CTX-5")
def test_a_reset_begins_without_the_summary_and_an_abort_of_it_lets_the_run_go_on(log_url: str) -> None:
    gate = Gate()

    waits = gate.saying(SUMMARY)

    talker = Talker(waits)
    with a_system(log_url, talker) as system:
        number, run = talked_until_it_summarises(system)
        gate.reached()
        (compaction,) = compactions(system)
        system.gateway.call("chat.abort", {"sessionKey": MAIN, "runId": compaction.run_id})
        assert wait_for(system, RunAborted).run_id == compaction.run_id
        assert system.gateway.call("agent.wait", {"runId": run})["status"] == "ok"
        gate.open()
        talk(system, number, number + 12)
        assert summaries(system)
        system.gateway.call("sessions.reset", {"key": "main"})
        assert said_to(system, 99)["status"] == "ok"

    assert len(talker.asked[-1].messages("openai")) == 1


@pytest.mark.clause("CTX-5", "FORK-7")
def test_a_fork_in_the_middle_goes_on_behind_the_summary_that_was_there(log_url: str) -> None:
    talker = Talker()
    with a_system(log_url, talker) as system:
        talk(system, 0, 20)
        asked = talker.asked[12]
        with system.fork(asked.run_id, at="start", agents={"main": Talker()}) as fork:
            outcome = fork.carried_on(timeout=WAIT)
            lens = fork.debug.lens(asked.run_id)

        (summary, *_) = summaries(system)
        why = system.debug.why(summary.run_id)
        edits = [ForkEdit(kind="reply", value="Ann is in the south.")]
        with system.fork(summary.run_id, at="reply", edits=edits) as fork:
            fork.carried_on(timeout=WAIT)
            (otherwise, *_) = summaries(fork)

    assert "ended" in str(outcome), outcome
    assert lens["asRecorded"]
    assert "There was no room any more" in str(why)
    assert (otherwise.text, otherwise.covers) == ("Ann is in the south.", summary.covers)


@pytest.mark.clause("CTX-6", "INB-3")
def test_an_owner_asks_for_a_summary_in_the_chat_and_nobody_else_does(log_url: str) -> None:
    def says(text: str, *, owner: bool, message_id: str = "1") -> Any:
        return system.inbound(
            channel="chat",
            chat_id="42",
            sender="ann",
            text=text,
            owner=owner,
            message_id=message_id,
            wait=WAIT,
        )

    talker = Talker()
    with a_system(log_url, talker, {"agents": {"defaults": {"contextTokens": 30_000}}}) as system:
        early = says("/compact", owner=True, message_id="0")
        talk(system, 0, 60)
        assert says("/compact", owner=False, message_id="2")["reply"] == "It rains, 61."
        asked = [says("/compact the towns", owner=True) for _ in range(2)]
        assert said_to(system, 60)["status"] == "ok"
        (summary,) = summaries(system)
        (run,) = [run for run in recorded(system, RunQueued) if run.run_id == summary.run_id]
        sent = [one.text for one in recorded(system, DeliveryDecided) if one.purpose == "command_reply"]

    assert "runId" not in early
    assert asked[0] == asked[1]
    assert run.caller == "chat:ann"
    assert "the towns" in talker.summaries[0].context
    assert sent == ["There is nothing to summarise yet.", "What was said earlier here is being summarised."]


@pytest.mark.clause("CTX-6")
def test_the_command_line_asks_for_a_summary_of_a_session(log_url: str) -> None:
    with a_system(log_url, Talker(), {}) as system:
        talk(system, 0, 2)
    shown = ran("compact", "main", "--store", log_url)

    assert shown.exit_code == 0, shown
    assert "is summarised by run" in shown.out


@pytest.mark.clause("CTX-5")
def test_a_summary_is_told_in_stories_and_drawn(log_url: str) -> None:
    with a_system(log_url, Talker()) as system:
        talk(system, 0, 10)
        (summary, *_) = summaries(system)

    assert summary.covers is not None
    said = f"summarises the first {summary.covers.messages} messages of the transcript"
    for told in (
        ran("replay", summary.run_id, "--store", log_url),
        ran("replay", "main", "--store", log_url),
    ):
        assert said in told.out
        assert SUMMARY in told.out
    assert "is to summarise" in ran("show", summary.run_id, "--store", log_url).out


@pytest.mark.clause("STREAM-2", "CTX-5")
def test_a_summary_that_an_agent_says_in_pieces_is_shown_to_nobody(log_url: str) -> None:
    shown, heard = list[str](), set[str]()

    def talker(turn: Turn) -> Iterator[str]:
        yield SUMMARY if turn.step == "compaction" else "It rains,"
        yield " and will rain."

    def show(out: Outbound) -> int:
        shown.append(out.text)
        return 1

    def hear(run_id: str) -> None:
        said = pieces.of(run_id)
        if said is not None and said.text:
            heard.add(run_id)

    chat = Channel(deliver=show, edit=show, edit_every=0.0)
    with SessionSystem(log_url, agents={"main": talker}, channels={"chat": chat}, config=SMALL) as system:
        pieces = system._parts.executor.pieces
        pieces.watch(hear)
        assert talk(system, 0, 30) == ["ok"] * 30
        steps = {run.run_id: run.step for run in recorded(system, RunQueued)}
        begun = {event.run_id for event in recorded(system, AnswerShown)}

    assert "compaction" in steps.values()
    assert {steps[run_id] for run_id in heard} == {"message"}
    assert {steps[run_id] for run_id in begun} <= {"message"}
    assert not any(SUMMARY in text for text in shown)
