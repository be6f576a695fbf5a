"""Questions over the whole log: calls of tools, who was told what, who saw some words, what each person cost."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from intersession import MemoryChannel, SessionSystem, ToolRefused, Turn
from intersession_actors.hindsight.debugger.debugger import Debugger
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.outside.agents.turn import Reply
from intersession_actors.rules.config.config import load_config
from intersession_actors.rules.errors import ConfigError
from intersession_events.facts import (
    CheckpointPublished,
    DeliveryDecided,
    DeliveryDone,
    Route,
    ToolCallBlock,
    Usage,
)
from intersession_events.proofs import new_private, write_private
from intersession_projections.questions.messages import used_by_person
from support.any_log import Logs
from support.as_caller import as_session
from support.running import SEES_ALL, closed_exchange, merged, wait_for_number
from support.story import Story

MAIN, RESEARCH = "agent:main:main", "agent:research:main"
SECRET = "sk-proj-" + "a1B2c3D4e5F6g7H8" * 3
NO_LOOP = {"session": {"agentToAgent": {"maxPingPongTurns": 0}}}


def main(turn: Turn) -> str:
    if turn.message == "Ask research.":
        asked = {"agentId": "research", "message": f"Is the dam open? {SECRET}", "timeoutSeconds": 20}
        return f"It says: {turn.tools.call('sessions_send', asked)['reply']}"
    if turn.message == "Ask nobody.":
        refused = turn.tools.call("sessions_send", {"sessionKey": "agent:nobody:main", "message": "Hello?"})
        return str(refused["status"])
    return "Noted, Ben."


def research(turn: Turn) -> Reply | str:
    if turn.step == "announce":
        return "ANNOUNCE_SKIP"
    return Reply("The dam is open until nine.", usage=Usage(total_tokens=40, cost_micros=7))


@pytest.fixture(scope="module")
def told(logs: Logs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SessionSystem]:
    """Return a system in which Ada had main ask research and somebody who is not there, and Ben spoke to main."""
    path: Path = tmp_path_factory.mktemp("asked")
    agents: dict[str, Any] = {"main": main, "research": research}
    channel = MemoryChannel()
    config = merged(SEES_ALL, NO_LOOP)
    with SessionSystem(logs.at(path), agents=agents, channels={"telegram": channel}, config=config) as system:
        for sender, text in (("ada", "Ask research."), ("ada", "Ask nobody."), ("ben", "It rains.")):
            system.inbound(
                channel="telegram",
                chat_id=f"chat-{sender}",
                sender=sender,
                text=text,
                agent_id="main",
                wait=20,
            )
        wait_for_number(system, DeliveryDone, 3)
        (exchange,) = system.debug.runs(kind=["exchange"])["runs"]
        closed_exchange(system, exchange["runId"])
        yield system


@pytest.mark.clause("FIND-2")
def test_calls_of_tools_are_listed_with_what_was_given_and_what_came_of_it(told: SessionSystem) -> None:
    debug = told.debug

    nobody, asked = debug.calls()["calls"]

    assert (nobody["tool"], nobody["sessionKey"], nobody["failed"]) == ("sessions_send", MAIN, True)
    assert "agent:nobody:main" in nobody["arguments"]
    assert "Is the dam open?" in asked["arguments"]
    assert "The dam is open until nine." in asked["result"]["text"]
    assert asked["result"]["position"] > asked["position"]
    assert [one["position"] for one in debug.calls(failed=True)["calls"]] == [nobody["position"]]
    assert [one["position"] for one in debug.calls(args="DAM open")["calls"]] == [asked["position"]]
    assert debug.calls(tool="sessions_spawn")["calls"] == []
    assert debug.calls(session="research")["calls"] == []
    first = debug.calls(limit=1)
    assert (first["count"], first["cursor"]) == (1, str(nobody["position"]))
    assert debug.calls(limit=1, cursor=first["cursor"])["calls"] == [asked]


@pytest.mark.clause("ANS-10")
@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"person": "ada"}, 2),
        ({"person": "ben"}, 0),
        ({"agent": "main"}, 2),
        ({"agent": "research"}, 0),
        ({"args": "agentId=research"}, 1),
        ({"args": "timeoutSeconds=20"}, 1),
        ({"args": "agentId=nobody"}, 0),
        ({"args": "message.inner=x"}, 0),
        ({"result": "dam nine"}, 1),
        ({"result": "dam closed"}, 0),
        ({"held": True}, 0),
        ({"person": "ada", "agent": "main", "args": "agentId=research", "result": "nine"}, 1),
    ],
)
def test_calls_are_found_by_who_asked_by_arguments_and_by_results(
    told: SessionSystem, asked: dict[str, Any], found: int
) -> None:
    calls = told.debug.calls(**asked)["calls"]

    assert len(calls) == found
    assert all(call["person"] == "ada on telegram" and call["tookMs"] >= 0 for call in calls)


@pytest.mark.clause("FIND-2")
def test_calls_that_failed_are_those_of_all_calls_that_did(log_url: str) -> None:
    """Before: each call was read with what its tool gave, to say of most that they had not failed."""
    story = Story(log_url)
    story.open(MAIN)
    given = ['{"status": "ok"}', '{"status": "forbidden"}', "an error", '{"status": "\\u0065rror"}', None]
    for number in range(60):
        # Agents number their calls anew: an id comes again, also before anything was given for the one before.
        name, text = f"c{number % 3}", given[number % len(given)]
        blocks = [ToolCallBlock(id=each, name="ask", arguments='{"id":"c0"}') for each in (name, f"{name}b")]
        story.say(MAIN, tuple(blocks), role="assistant")
        if text is not None:
            story.say(MAIN, text, role="toolResult", tool_call_id=name, tool_name="ask")
        if number % 7 == 0:
            story.say(MAIN, "No.", role="toolResult", tool_call_id=f"{name}b", is_error=True)
    with closing(story):
        debug = Debugger(View(story.reader()))
        failed = [one for one in debug.calls(limit=1000)["calls"] if one["failed"]]
        page = debug.calls(failed=True, limit=2)
        found = page["calls"]
        while page["cursor"] is not None:
            page = debug.calls(failed=True, limit=2, cursor=page["cursor"])
            found += page["calls"]

        assert 110 > len(failed) > 20
        assert found == failed
        assert debug.calls(failed=True, limit=5000)["limitApplied"] == 1000


@pytest.mark.clause("FIND-2", "HIST-4", "VIS-6")
def test_a_stranger_reads_no_secret_in_a_call_and_asks_for_no_words_in_it(told: SessionSystem) -> None:
    seen = as_session(told, RESEARCH)

    assert SECRET in str(told.debug.calls())
    assert seen.calls()["count"] == 2
    assert SECRET not in str(seen.calls())
    assert "person" not in str(seen.calls())
    for field in ("args", "person", "result"):
        with pytest.raises(ToolRefused, match="only the operator"):
            seen.call("calls", {field: "dam"})
    for field in ("to", "person", "words"):
        with pytest.raises(ToolRefused, match="only the operator"):
            seen.call("deliveries", {field: "ada"})
    with pytest.raises(ToolRefused, match="only the operator"):
        seen.imports()


@pytest.mark.clause("FIND-2", "ANS-2")
@pytest.mark.parametrize(
    ("asked", "texts"),
    [
        ({"person": "ada"}, ["error", "It says: The dam is open until nine."]),
        ({"person": "ADA"}, ["error", "It says: The dam is open until nine."]),
        ({"person": "telegram:ben"}, ["Noted, Ben."]),
        ({"person": "carl"}, []),
        ({"to": "chat-ben"}, ["Noted, Ben."]),
        ({"to": "telegram:chat-ada", "words": "until nine"}, ["It says: The dam is open until nine."]),
        ({"words": "open nin*"}, ["It says: The dam is open until nine."]),
        ({"words": "nin"}, []),
        ({"words": "open nine", "person": "ben"}, []),
        (
            {"words": "nine", "person": "ada", "to": "chat-ada", "limit": 1},
            ["It says: The dam is open until nine."],
        ),
        ({"words": "nine", "to": "chat-ben"}, []),
    ],
)
def test_what_somebody_was_told_is_found_by_address_person_and_words(
    told: SessionSystem, asked: dict[str, Any], texts: list[str]
) -> None:
    found = told.debug.deliveries(**asked)["deliveries"]
    assert [one["text"] if one["text"] != "forbidden" else "error" for one in found] == texts


@pytest.mark.ci
@pytest.mark.clause("ANS-2")
def test_deliveries_found_by_address_and_words_are_those_of_all_that_are(log_url: str) -> None:
    """Texts for an address and with words are looked up by different ways, a page at a time; together they give what all deliveries do."""
    story = Story(log_url)
    story.open(MAIN)
    for number in range(150):
        route = Route(channel="telegram", to=f"c{number % 7}", thread="t" if number % 5 == 0 else None)
        name, text = str(UUID(int=number)), f"{'Open' if number % 3 == 0 else 'Closed'} until {number % 4}"
        decided = DeliveryDecided(
            delivery_id=name, session_key=MAIN, route=route, text=text, key=name, purpose="send"
        )
        story.put(f"delivery:{name}", decided)
        if number % 2:
            story.put(f"delivery:{name}", DeliveryDone(delivery_id=name))
    with closing(story):
        debug = Debugger(View(story.reader()))
        every = debug.deliveries(limit=1000)["deliveries"]
        assert len(every) == 150
        for to in (None, "c3", "telegram:C3", "telegram:c0#t", "c9"):
            for words in (None, "open", "until 2", "clos*", "never"):
                for pending in (False, True):
                    given: dict[str, Any] = {"to": to, "words": words, "pending": pending, "limit": 4}
                    page = debug.deliveries(**given)
                    found = [*page["deliveries"]]
                    while page["cursor"] is not None:
                        page = debug.deliveries(**given, cursor=page["cursor"])
                        found += page["deliveries"]
                    wanted = [one for one in every if _is_so(one, to, words, pending=pending)]
                    assert found == wanted, given


def _is_so(row: dict[str, Any], to: str | None, words: str | None, *, pending: bool) -> bool:
    route = Route(**row["route"])
    places = {route.to, f"telegram:{route.to}", route.text}
    said = row["text"].casefold()
    return (
        (to is None or to.casefold() in places)
        and (words is None or words.rstrip("*") in said)
        and (not pending or row["state"] == "decided")
    )


@pytest.mark.clause("ORIGIN-1", "LENS-1")
def test_each_run_is_named_whose_agent_was_given_some_words(told: SessionSystem) -> None:
    debug = told.debug

    found = debug.origin("dam is  OPEN until", seen=True)

    assert found["first"] is not None
    assert found["first"]["who"] == RESEARCH
    runs = found["seen"]
    assert {(one["sessionKey"], *one["within"]) for one in runs} >= {(MAIN, "transcript")}
    for one in runs:
        lens = debug.lens(one["runId"], dialect="prompt")
        assert "The dam is open until nine." in lens["prompt"]
    named = {one["runId"] for one in runs}
    others = {one["runId"] for one in debug.runs()["runs"]} - named
    assert all("until nine" not in debug.lens(run, dialect="prompt")["prompt"] for run in others)
    assert [one["position"] for one in runs] == sorted((one["position"] for one in runs), reverse=True)
    page = debug.origin("dam is open until", seen=True, limit=1)
    assert page["seen"] == runs[:1]
    assert debug.origin("dam is open until", seen=True, limit=1, cursor=page["cursor"])["seen"] == runs[1:2]
    assert "seen" not in debug.origin("dam is open until")


@pytest.mark.clause("FIND-2")
def test_what_came_of_a_persons_words_is_added_up_for_them(told: SessionSystem) -> None:
    (row,) = used_by_person(told.log)
    assert (row.person, row.sums.runs, row.sums.total_tokens, row.sums.cost_micros) == (
        "ada on telegram",
        1,
        40,
        7,
    )
    assert used_by_person(told.log, until_ms=0) == []


def say(system: SessionSystem, sender: str, text: str) -> None:
    system.inbound(
        channel="telegram",
        chat_id=sender,
        chat_type="group",
        sender=sender,
        text=text,
        wait=20,
    )


PRICES = {
    "models": {"providers": {"acme": {"models": [{"id": "large", "cost": {"input": 0.1, "output": 2.5}}]}}}
}


@pytest.mark.clause("ANS-11")
def test_usage_is_added_up_by_several_things_with_money_by_what_was_said_or_by_prices(
    logs: Logs, tmp_path: Path
) -> None:
    used = {
        "told": Reply("yes", model="large", usage=Usage(input=10, output=1, cost_micros=7)),
        "priced": Reply("yes", model="acme/large", usage=Usage(input=3, output=2)),
        "plain": Reply("yes", model="large", usage=Usage(input=1)),
        "strange": Reply("yes", model="small", usage=Usage(input=5)),
    }
    agents: dict[str, Any] = {"main": lambda turn: next(used[name] for name in used if name in turn.message)}
    channels = {"telegram": MemoryChannel()}
    with SessionSystem(
        logs.at(tmp_path), agents=agents, channels=channels, config=merged(SEES_ALL, PRICES)
    ) as system:
        for sender, text in (("ada", "told"), ("ada", "priced"), ("ben", "plain"), ("ben", "strange")):
            say(system, sender, text)
        debug = system.debug
        by = debug.usage(by=["person", "model"])
        rows = {
            (row["person"], row["model"]): (row["runs"], row["costMicros"], row["unpriced"])
            for row in by["usage"]
        }
        first = debug.usage(by=["model"], limit=1)
        second = debug.usage(by=["model"], limit=2, cursor=first["cursor"])
        agent = debug.usage()["usage"]
        day = debug.usage(by=["day", "agent"], since="2001-01-01", until="2001-01-02")
        seen = as_session(system, "agent:main:telegram:group:ada")
        with pytest.raises(ToolRefused, match="only the operator adds up by person"):
            seen.usage(by=["person"])
        with pytest.raises(ToolRefused, match="cursor"):
            debug.usage(cursor="x")
        with pytest.raises(ToolRefused, match="is no ISO time"):
            debug.usage(since="yesterday")

    # 3 tokens at 0.1 and 2 at 2.5 millionths are 5.3, and 1 at 0.1 is 0.1: a sum is told in whole ones.
    assert rows == {
        ("ada on telegram", "large"): (1, 7, 0),
        ("ada on telegram", "acme/large"): (1, 5, 0),
        ("ben on telegram", "large"): (1, 0, 0),
        ("ben on telegram", "small"): (1, 0, 1),
    }
    assert by["totals"] == {
        "runs": 4,
        "input": 19,
        "output": 3,
        "cacheRead": 0,
        "cacheWrite": 0,
        "totalTokens": 22,
        "costMicros": 12,
        "unpriced": 1,
    }
    assert [row["model"] for row in (*first["usage"], *second["usage"])] == ["large", "acme/large", "small"]
    assert [(row["agent"], row["runs"], row["costMicros"]) for row in agent] == [("main", 4, 12)]
    assert (day["usage"], day["totals"]["runs"], day["cursor"]) == ([], 0, None)


@pytest.mark.clause("ANS-11", "CFG-1")
@pytest.mark.parametrize(
    ("cost", "problem"),
    [
        ({"input": -1}, "input is -1"),
        ({"output": "many"}, "output"),
        ({"input": 1e30}, "input is 1"),
        ([], "Expected `object`"),
    ],
)
def test_a_price_that_is_none_is_refused_by_its_place(cost: Any, problem: str) -> None:
    settings: Any = {
        "models": {"providers": {"acme": {"models": [{"id": "a"}, {"id": "large", "cost": cost}]}}}
    }

    with pytest.raises(ConfigError, match=rf"models\.providers\.acme\.models\[1\]\.cost: .*{problem}"):
        load_config(settings)


@pytest.mark.clause("ANS-13", "ERASE-1")
def test_erasures_are_listed_with_what_covers_them(logs: Logs, tmp_path: Path) -> None:
    key = new_private(lambda size: b"k" * size)
    write_private(key, tmp_path / "key.pem")
    signed = {
        "checkpoints": {"keyFile": str(tmp_path / "key.pem"), "publish": {"file": str(tmp_path / "lines")}}
    }
    with SessionSystem(
        logs.at(tmp_path),
        agents={"main": lambda _: "yes"},
        channels={"telegram": MemoryChannel()},
        config=signed,
    ) as system:
        for sender in ("ada", "ben"):
            say(system, sender, "my number is 555")
        keys = [f"agent:main:telegram:group:{sender}" for sender in ("ada", "ben")]
        wait_for_number(system, DeliveryDone, 2)
        for session in keys:
            system.erase(session, reason="asked for")
        wait_for_number(system, CheckpointPublished, 1)
        found = system.debug.erasures()["erasures"]
        first = system.debug.erasures(limit=1)
        mine = system.debug.erasures(session=keys[0])["erasures"]
        with pytest.raises(ToolRefused, match="only the operator"):
            as_session(system, keys[0]).erasures()

    assert {row["sessionKey"] for row in found if "sessionKey" in row} == {*keys}
    assert [row["position"] for row in found] == sorted((row["position"] for row in found), reverse=True)
    assert (first["count"], first["cursor"]) == (1, str(found[0]["position"]))
    (row,) = mine
    assert (row["by"], row["reason"], row["stream"]) == ("operator", "asked for", f"session:{keys[0]}")
    assert row["payloads"] > 1
    assert row["checkpoint"]["keyId"] == key.public.id
    assert row["checkpoint"]["position"] >= row["position"]
