"""Budgets of people, chats, agents and credentials: refused in words, recorded, counted over restarts."""

import threading
from collections.abc import Sequence
from typing import Any

import pytest

from intersession import MemoryChannel, Reply, Turn
from intersession_actors.calls.service.callers import Caller
from intersession_actors.owners.chains.ledger import ChainLedger
from intersession_events.facts import RunCompleted, RunFailed, RunStarted, SendRefused, Usage, kinds_of
from intersession_events.stores.library.frontier import Frontier
from intersession_events.stores.portable.appends import Append
from intersession_events.stores.portable.group_commit import Work
from intersession_events.stores.portable.writer import Writer
from support.as_caller import called_by
from support.doors.command_line import ran
from support.explained import decided_alike
from support.fakes import ManualClock
from support.running import WAIT, Booth, Gate, recorded, speak
from support.soaking import until

MAIN = "agent:main:main"
HOUR = 3_600_000
REFUSED = "You have used all that there is for you at present. Please try again later."


def budgets(**named: Any) -> dict[str, Any]:
    return {"budgets": named}


def spends(turn: Turn) -> Reply:
    return Reply(f"heard {turn.message}", usage=Usage(input=60, output=40, cost_micros=500))


@pytest.mark.clause("LIMIT-1", "LIMIT-2")
def test_a_person_is_refused_in_words_until_time_has_passed(booth: Booth) -> None:
    clock, telegram = ManualClock(), MemoryChannel()
    config = budgets(each={"per": "person", "runsPerHour": 2})
    system = booth.start({"main": spends}, {"telegram": telegram}, config, clock=clock)
    assert [speak(system)["status"] for _ in range(2)] == ["ok", "ok"]
    telegram.wait_for(2, timeout=WAIT)
    system.close()
    system = booth.start({"main": spends}, {"telegram": telegram}, config, clock=clock)
    refused = speak(system, "more", message_id="m3")

    assert refused["status"] == "error"
    assert refused["error"] == "limit: budgets.each.runsPerHour is 2 and 2 are used, try again later"
    assert telegram.wait_for(3, timeout=WAIT)[-1].text == REFUSED
    assert speak(system, "more", message_id="m3")["runId"] == refused["runId"]
    assert system.gateway.call("usage.budgets", {})["budgets"] == [
        {
            "per": "person",
            "of": "telegram:ann",
            "setting": "budgets.each.runsPerHour",
            "used": 2,
            "allowed": 2,
            "left": 0,
        }
    ]
    (failed,) = recorded(system, RunFailed)
    assert (failed.code, failed.attempt, failed.limit, failed.used) == (
        "limit",
        0,
        "budgets.each.runsPerHour",
        2,
    )
    assert "budgets.each.runsPerHour" in str(system.debug.why(refused["runId"]))
    assert speak(system, sender="bob")["status"] == "ok"
    clock.advance(HOUR + 60_000)
    assert speak(system)["status"] == "ok"
    assert decided_alike(system)


@pytest.mark.clause("LIMIT-1")
@pytest.mark.parametrize("limit", [{"tokensPerDay": 100}, {"costMicrosPerDay": 500}])
def test_tokens_and_money_count_for_a_person_of_several_addresses(
    booth: Booth, limit: dict[str, int]
) -> None:
    links = {"session": {"identityLinks": {"ann": ["telegram:ann", "discord:9"]}}}
    channels = {"telegram": MemoryChannel(), "discord": MemoryChannel()}
    config = budgets(ann={"per": "person", "match": ["ann"], **limit})
    system = booth.start({"main": spends}, channels, links, config)
    assert speak(system)["status"] == "ok"

    assert speak(system, channel="discord", sender="9")["error"].startswith("limit: budgets.ann.")
    assert speak(system, sender="bob")["status"] == "ok"


class LateWord:
    """Keeps the writer's thread from saying that a run's end is committed, which the database shows already."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self._now = threading.Event()
        tells = Writer.committed

        def committed(writer: Writer, written: Sequence[Work]) -> None:
            appended = (one for work in written if isinstance(work, Append) for one in work.written)
            if any(RunCompleted in kinds_of(one.event) for one in appended):
                self._now.wait(WAIT)
            tells(writer, written)

        monkeypatch.setattr(Writer, "committed", committed)

    def comes_when_waited_for(self, otherwise: type[Any], method: str) -> None:
        """Say it once a caller waits for it, or has done something else without: then it is late."""
        assert not self._now.is_set()
        waits, does = Frontier.wait_for, getattr(otherwise, method)

        def waiting(frontier: Frontier, position: int, timeout: float) -> bool:
            self._now.set()
            return waits(frontier, position, timeout)

        def doing(*given: Any, **named: Any) -> Any:
            try:
                return does(*given, **named)
            finally:
                self._now.set()

        self._monkeypatch.setattr(Frontier, "wait_for", waiting)
        self._monkeypatch.setattr(otherwise, method, doing)


@pytest.mark.clause("LIMIT-1")
def test_a_run_that_a_caller_has_read_the_end_of_is_counted(
    booth: Booth, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = budgets(each={"per": "person", "tokensPerDay": 100})
    system = booth.start({"main": spends}, {"telegram": MemoryChannel()}, config)
    late = LateWord(monkeypatch)
    run_id = speak(system, wait=None)["runId"]
    until(lambda: system.gateway.call("agent.wait", {"runId": run_id, "timeoutMs": 0})["status"] == "ok")
    late.comes_when_waited_for(Writer, "append")

    assert (
        speak(system)["error"] == "limit: budgets.each.tokensPerDay is 100 and 100 are used, try again later"
    )


@pytest.mark.clause("LOOP-5")
def test_a_chain_counts_a_run_that_its_caller_has_read_the_end_of(
    booth: Booth, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, quiet = Gate(), {"maxPingPongTurns": 0, "announce": "routed", "limits": {"tokens": 100}}
    agents = {"main": gate.saying("done"), "ops": spends}
    system = booth.start(agents, {"telegram": MemoryChannel()}, {"session": {"agentToAgent": quiet}})
    speak(system, wait=None)
    gate.reached()
    late, tools = LateWord(monkeypatch), system.tools(MAIN, of_agent=True)
    asked = {"sessionKey": "agent:ops:main", "message": "one", "timeoutSeconds": 0}
    wait = {"runId": tools.call("sessions_send", asked)["runId"], "timeoutMs": 0}
    until(lambda: system.gateway.call("agent.wait", wait)["status"] == "ok")
    late.comes_when_waited_for(ChainLedger, "reserve")

    refused = tools.call("sessions_send", asked)
    assert (refused["status"], refused["code"]) == ("error", "limit")


@pytest.mark.clause("LIMIT-1")
def test_what_comes_of_a_message_counts_for_its_person_and_the_chat(booth: Booth) -> None:
    def asks(turn: Turn) -> str:
        sent = turn.tools.call("sessions_send", {"sessionKey": "agent:ops:main", "message": "help"})
        return str(sent["status"])

    config = budgets(here={"per": "chat", "match": ["telegram:*"], "tokensPerHour": 100})
    quiet = {"session": {"agentToAgent": {"maxPingPongTurns": 0, "announce": "routed"}}}
    agents = {"main": asks, "ops": spends}
    system = booth.start(agents, {"telegram": MemoryChannel()}, quiet, config)
    assert speak(system)["reply"] == "ok"

    assert speak(system, sender="bob")["status"] == "error"
    assert speak(system, chat_id="43", chat_type="group")["status"] == "ok"


@pytest.mark.clause("LIMIT-3")
def test_callers_are_refused_with_a_code_and_a_receipt(booth: Booth) -> None:
    config = budgets(
        bots={"per": "credential", "runsPerDay": 1}, desk={"per": "agent", "match": ["main"], "runsPerDay": 2}
    )
    system = booth.start({"main": spends}, {"telegram": MemoryChannel()}, config)
    bot = Caller.by_credential("bot", ("agent:*",))

    def send(caller: Caller, key: str) -> Any:
        params = {"sessionKey": MAIN, "message": "hi", "idempotencyKey": key}
        return called_by(caller, system, "chat.send", params)

    assert send(bot, "one")["status"] == "started"
    refused = send(bot, "two")
    assert (refused["status"], refused["code"]) == ("error", "limit")
    assert send(bot, "one")["runId"]
    assert called_by(bot, system, "usage.budgets", {})["code"] == "forbidden"
    assert send(Caller(), "three")["status"] == "started"
    assert send(Caller(), "four")["code"] == "limit"
    tried = system.tools().call("sessions_send", {"sessionKey": MAIN, "message": "hi", "timeoutSeconds": 0})
    assert tried["code"] == "limit"
    assert speak(system)["error"].startswith("limit: budgets.desk.runsPerDay")

    system.gateway.call("sessions.patch", {"key": "main", "displayName": "so that receipts are written"})
    receipts = recorded(system, SendRefused)
    assert [(one.tool, one.limit, one.value, one.allowed, one.credential) for one in receipts] == [
        ("chat.send", "budgets.bots.runsPerDay", 1, 1, "bot"),
        ("chat.send", "budgets.desk.runsPerDay", 2, 2, None),
        ("sessions_send", "budgets.desk.runsPerDay", 2, 2, None),
    ]
    assert decided_alike(system)


@pytest.mark.clause("LIMIT-1")
def test_runs_that_are_asked_for_at_once_share_what_is_left(booth: Booth) -> None:
    gate = Gate()
    config = budgets(each={"per": "person", "runsPerDay": 1})
    system = booth.start({"main": gate.saying("done")}, {"telegram": MemoryChannel()}, config)
    first = speak(system, "one", wait=None)
    gate.reached()

    assert speak(system, "two")["status"] == "error"
    gate.open()
    assert first["status"] == "accepted"
    assert len(recorded(system, RunStarted)) == 1


@pytest.mark.clause("LIMIT-1")
def test_without_budgets_nothing_is_counted_or_recorded(booth: Booth) -> None:
    system = booth.start({"main": spends}, {"telegram": MemoryChannel()})
    speak(system)

    assert system._parts.service.spending._stop is None
    assert not any('"counted"' in item.decision for item in system.log.all())


@pytest.mark.clause("LIMIT-1")
def test_the_command_line_shows_what_is_left(booth: Booth) -> None:
    limits = {"tokensPerDay": 1_000, "runsPerHour": 5}
    system = booth.start(
        {"main": spends}, {"telegram": MemoryChannel()}, budgets(each={"per": "person", **limits})
    )
    speak(system)
    system.close()

    shown = ran("usage", "--left", "--json", "--store", booth.url)
    assert [(one["of"], one["setting"], one["used"], one["left"]) for one in shown.json["budgets"]] == [
        ("telegram:ann", "budgets.each.runsPerHour", 1, 4),
        ("telegram:ann", "budgets.each.tokensPerDay", 100, 900),
    ]
    assert "900" in ran("usage", "--left", "--store", booth.url).out
