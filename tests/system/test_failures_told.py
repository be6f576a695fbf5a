"""Nothing fails in silence: a log line, the host's `on_failure`, the traceback in the log, a word to the person (D1, D2)."""

import asyncio
import logging
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from intersession import (
    Channel,
    Config,
    ConfigError,
    Failure,
    MemoryChannel,
    Outbound,
    SessionSystem,
    Turn,
)
from intersession_actors.owners.session.commands import CheckSend
from intersession_actors.owners.streams.rules_in_force import RulesInForce
from intersession_events.basics.errors import StoreUnavailable
from intersession_events.facts import DeliveryDecided, DeliveryFailed, RunCompleted, RunFailed
from intersession_events.log.log import Moment
from intersession_events.log.sql import SqlValue
from intersession_events.stores.sqlite.log import SqliteLog
from intersession_projections.views.inline_views import inline_views
from support.any_log import log_at
from support.fakes import ManualClock
from support.faulty_store import FAULT, disk_full, faulty
from support.hosts_code import doubts, parrot, refuses
from support.running import (
    QUIET,
    WAIT,
    Booth,
    Gate,
    Heard,
    pass_time,
    pass_time_until,
    recorded,
    speak,
    wait_for,
)

MAIN = "agent:main:main"
SECRET = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"
NOTHING: dict[str, Any] = {"runs": {"failureText": ""}}


@pytest.fixture
def heard() -> Heard:
    return Heard()


def broken(turn: Turn) -> str:
    raise ValueError(f"no answer to {turn.message}: api_key={SECRET}")


def lines_of(caplog: pytest.LogCaptureFixture, logger: str) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.name == f"intersession.{logger}"]


# --- an agent that raises


def test_a_failed_run_is_one_error_line_with_session_run_attempt_and_traceback(
    booth: Booth, caplog: pytest.LogCaptureFixture
) -> None:
    """Before: an agent that failed left no trace."""
    system = booth.start({"main": broken})
    run_id = speak(system)["runId"]
    system.close()

    (record,) = lines_of(caplog, "runs")
    line = logging.Formatter("%(levelname)s %(message)s").format(record)
    first, _, trace = line.partition("\n")
    assert first.startswith(
        f"ERROR run failed: session={MAIN} run={run_id} attempt=1 code=backend: ValueError"
    )
    assert "no answer to hi" in first
    assert "in broken" in trace
    assert SECRET not in line


def test_the_host_hears_of_a_failed_run_as_a_value(booth: Booth, heard: Heard) -> None:
    """Before: an agent that failed left no trace."""
    system = booth.start({"main": broken}, on_failure=heard)
    run_id = speak(system)["runId"]

    failure = heard.next("run_failed")
    assert (failure.level, failure.session_key, failure.run_id, failure.attempt) == ("error", MAIN, run_id, 1)
    assert failure.code == "backend"
    assert failure.traceback is not None
    assert "in broken" in failure.traceback
    assert SECRET not in f"{failure}"


def test_the_traceback_is_kept_with_the_run_and_told_to_nobody_else(booth: Booth) -> None:
    """Before: it survives a restart, and no answer of a tool or a method has it."""
    system = booth.start({"main": parrot, "ops": broken}, None, QUIET)
    sent = system.tools(MAIN).call(
        "sessions_send", {"agentId": "ops", "message": "a", "timeoutSeconds": WAIT}
    )
    waited = system.gateway.call("agent.wait", {"runId": sent["runId"], "timeoutMs": 1000})
    history = system.tools().call("sessions_history", {"sessionKey": "agent:ops:main"})
    system.close()
    again = booth.start({"main": parrot, "ops": broken}, None, QUIET)

    (failed,) = recorded(again, RunFailed)
    assert failed.traceback is not None
    assert "in broken" in failed.traceback
    assert SECRET not in failed.traceback
    assert sent["status"] == "error"
    for answer in (sent, waited, history):
        assert "in broken" not in f"{answer}"


@pytest.mark.parametrize(
    ("agent", "code"),
    [
        (lambda _turn: 42, "bad_reply"),
        (lambda _turn: "x" * 2_000_000, "reply_too_large"),
        (lambda _turn: b"caf\xe9", "bad_reply"),
    ],
)
def test_every_way_to_fail_is_told(booth: Booth, heard: Heard, agent: Any, code: str) -> None:
    """Before: an agent that failed left no trace."""
    system = booth.start({"main": agent}, on_failure=heard)
    speak(system)

    assert heard.next("run_failed").code == code


def test_a_run_that_takes_too_long_is_told_and_its_late_answer_too(booth: Booth, heard: Heard) -> None:
    """Before: an agent that failed left no trace."""
    gate, clock = Gate(), ManualClock()

    slow = gate.saying("at last")

    limit = {"agents": {"defaults": {"timeoutSeconds": 7}}}
    system = booth.start({"main": slow}, None, limit, on_failure=heard, clock=clock)
    run_id = speak(system, wait=None)["runId"]
    gate.reached()
    pass_time(system, clock, 7_000)
    failure = heard.next("run_failed")
    gate.open()

    assert (failure.run_id, failure.code) == (run_id, "timeout")
    assert heard.next("late_reply").run_id == run_id


def test_a_run_that_a_stop_cut_off_is_told_by_the_next_start(booth: Booth, heard: Heard) -> None:
    """Before: an agent that failed left no trace."""
    gate = Gate()
    hangs = gate.saying("late")

    first = booth.start({"main": hangs})
    run_id = speak(first, wait=None)["runId"]
    gate.reached()
    first.close(grace=0)
    booth.start({"main": parrot}, on_failure=heard)
    gate.open()

    failure = heard.next("run_interrupted")
    assert (failure.level, failure.run_id, failure.attempt) == ("warning", run_id, 1)


def test_a_run_without_its_agent_is_told_once(
    booth: Booth, heard: Heard, caplog: pytest.LogCaptureFixture
) -> None:
    """Before: a parked run says nothing to anybody else."""
    system = booth.start(
        {"main": parrot}, None, {"agents": {"list": [{"id": "main"}, {"id": "ops"}]}}, on_failure=heard
    )
    run_id = speak(system, agent_id="ops", wait=None)["runId"]
    failure = heard.next("run_parked")
    speak(system, "again", agent_id="ops", wait=None)
    system.register_agent("ops", parrot)
    wait_for(system, RunCompleted)

    assert (failure.run_id, failure.session_key) == (run_id, "agent:ops:main")
    assert failure.error is not None
    assert "'ops'" in failure.error
    assert len([record for record in lines_of(caplog, "runs") if run_id in record.getMessage()]) == 1


# --- the host's callback


def test_a_callback_that_raises_is_logged_and_harms_nobody(
    booth: Booth, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(failure: Failure) -> None:
        raise SystemExit(f"no pager for {failure.kind}")

    channel = MemoryChannel()
    system = booth.start({"main": broken, "ops": parrot}, {"telegram": channel}, on_failure=fails)
    speak(system)
    answer = speak(system, agent_id="ops")
    channel.wait_for(2, timeout=WAIT)  # a delivery that the stop cuts off is a failure, too
    system.close()

    (record,) = lines_of(caplog, "failures")
    assert record.getMessage() == "on_failure raised SystemExit: no pager for run_failed"
    assert answer["reply"] == "you said hi"


def test_a_callback_that_hangs_keeps_no_run_waiting(booth: Booth) -> None:
    go = threading.Event()

    def hangs(_failure: Failure) -> None:
        go.wait(WAIT)

    system = booth.start({"main": broken}, on_failure=hangs)
    answers = [speak(system, f"{number}")["status"] for number in range(5)]
    go.set()

    assert answers == ["error"] * 5


async def test_an_async_callback_runs_on_the_hosts_loop(log_url: str) -> None:
    told: asyncio.Queue[tuple[Failure, int]] = asyncio.Queue()

    async def hear(failure: Failure) -> None:
        await told.put((failure, threading.get_ident()))

    async with SessionSystem(log_url, agents={"main": broken}, on_failure=hear) as system:
        await system.ainbound(channel="x", chat_id="1", sender="1", text="hi", wait=WAIT)
        failure, thread = await asyncio.wait_for(told.get(), WAIT)

    assert failure.kind == "run_failed"
    assert thread == threading.get_ident()


# --- what the person is told


@pytest.mark.clause("INB-2")
def test_a_person_is_told_that_there_is_no_answer(booth: Booth) -> None:
    """Before: the person got nothing."""
    telegram = MemoryChannel()
    system = booth.start({"main": broken}, {"telegram": telegram})
    speak(system)

    (out,) = telegram.wait_for(1, timeout=WAIT)
    assert out.text == system.config.runs.failure_text
    assert "ValueError" not in out.text
    assert recorded(system, DeliveryDecided)[0].purpose == "failure_notice"


@pytest.mark.clause("INB-2")
def test_a_person_is_told_in_the_words_of_the_setting_also_after_a_timeout(booth: Booth) -> None:
    gate = Gate()
    slow = gate.saying("late")

    telegram = MemoryChannel()
    config = {"runs": {"failureText": "Nobody is here."}, "agents": {"defaults": {"timeoutSeconds": 0.05}}}
    system = booth.start({"main": slow}, {"telegram": telegram}, config)
    speak(system, wait=None)

    assert telegram.wait_for(1, timeout=WAIT)[0].text == "Nobody is here."
    gate.open()


@pytest.mark.clause("INB-2")
def test_with_a_blank_text_a_person_is_told_nothing(booth: Booth) -> None:
    system = booth.start({"main": broken}, {"telegram": MemoryChannel()}, NOTHING)
    speak(system)

    assert recorded(system, DeliveryDecided) == []


@pytest.mark.clause("SEND-6")
def test_a_failed_run_of_a_flow_tells_the_other_agent_and_no_person(booth: Booth) -> None:
    telegram = MemoryChannel()
    system = booth.start({"main": parrot, "ops": broken}, {"telegram": telegram}, QUIET)
    speak(system, agent_id="main")
    sent = system.tools(MAIN).call(
        "sessions_send", {"agentId": "ops", "message": "a", "timeoutSeconds": WAIT}
    )

    assert sent["status"] == "error"
    assert [event.purpose for event in recorded(system, DeliveryDecided)] == ["auto_reply"]


# --- deliveries


def fails(_outbound: Outbound) -> None:
    raise ConnectionError(f"down, token={SECRET}")


@pytest.mark.parametrize(
    ("channel", "kind"),
    [
        (refuses, "delivery_failed"),
        (doubts, "delivery_unknown"),
        (fails, "delivery_retry"),
        (Channel(deliver=doubts, idempotent=True), "delivery_retry"),
    ],
)
def test_a_delivery_that_fails_is_told(
    booth: Booth, heard: Heard, caplog: pytest.LogCaptureFixture, channel: Any, kind: str
) -> None:
    """Before: failed deliveries were invisible."""
    # On a clock that stands: half a second after its failure the next call is 0 seconds away.
    system = booth.start({"main": parrot}, {"telegram": channel}, on_failure=heard, clock=ManualClock())
    run_id = speak(system)["runId"]
    failure = heard.next(kind)

    level = "warning" if kind == "delivery_retry" else "error"
    assert (failure.level, failure.run_id, failure.session_key) == (level, run_id, MAIN)
    assert (failure.channel, failure.attempt) == ("telegram", 1)
    assert (failure.retry_at_ms is not None) == (kind == "delivery_retry")
    record = lines_of(caplog, "deliveries")[0]
    assert record.levelname == level.upper()
    assert run_id in record.getMessage()
    # What the channel said, and when it is called again.
    said = "no such chat" if channel is refuses else "down" if channel is fails else "the line went dead"
    assert said in record.getMessage()
    assert ("again_in=1s" in record.getMessage()) == (kind == "delivery_retry")


def test_a_channel_that_raises_leaves_its_traceback_with_the_delivery(booth: Booth) -> None:
    """Before: failed deliveries were invisible."""
    system = booth.start({"main": parrot}, {"telegram": fails})
    speak(system)

    failed = wait_for(system, DeliveryFailed)
    assert failed.traceback is not None
    assert "in fails" in failed.traceback
    assert SECRET not in failed.traceback


def test_a_delivery_that_the_policy_forbids_is_told(booth: Booth, heard: Heard) -> None:
    """Before: failed deliveries were invisible."""

    def mutes(turn: Turn) -> str:
        system.gateway.call("sessions.patch", {"key": turn.session_key, "sendPolicy": "deny"})
        return "psst"

    system = booth.start({"main": mutes}, {"telegram": MemoryChannel()}, on_failure=heard)
    speak(system)

    assert heard.next("delivery_denied").level == "warning"


def test_a_delivery_to_a_channel_nobody_registered_is_told_once(booth: Booth, heard: Heard) -> None:
    """Before: an unregistered channel shows up nowhere."""
    system = booth.start({"main": parrot}, on_failure=heard)
    speak(system)
    failure = heard.next("delivery_parked")
    system.register_channel("discord", MemoryChannel())
    telegram = MemoryChannel()
    system.register_channel("telegram", telegram)

    assert (failure.level, failure.channel) == ("warning", "telegram")
    assert telegram.wait_for(1, timeout=WAIT)[0].text == "you said hi"


# --- the system itself


def test_a_store_that_is_away_is_told_once_and_again_when_it_is_back(
    log_url: str, heard: Heard, caplog: pytest.LogCaptureFixture
) -> None:
    """Before: the operator sees when it began and that it is over."""
    clock = ManualClock()
    gate = Gate()
    agent = gate.saying("done")

    with log_at(log_url, inline=inline_views(), environment=faulty(log_url), clock=clock.now_ms) as log:
        config = {"runs": {"shutdownGraceSeconds": 0}}
        with SessionSystem(
            log, agents={"main": agent}, config=config, clock=clock, on_failure=heard
        ) as system:
            speak(system, wait=None)
            gate.reached()
            FAULT.down = disk_full()
            gate.open()
            failure = heard.next("store_trouble")
            down = system.status()["store"]
            FAULT.down = None
            pass_time_until(system, clock, 600, RunCompleted)
            up = down
            for _ in range(400):  # the actor hears of its commit after those who follow the log
                up = system.status()["store"]
                if up["available"]:
                    break
                system.log.wait_for(system.log.head() + 1, timeout=WAIT / 400)

    assert failure.level == "error"
    assert (down["available"], up["available"]) == (False, True)
    assert "full" in down["error"]
    assert [record.levelname for record in lines_of(caplog, "store")] == ["ERROR", "WARNING"]


def test_a_configuration_that_is_refused_while_serving_is_told(booth: Booth, heard: Heard) -> None:
    system = booth.start({"main": parrot}, on_failure=heard)

    with pytest.raises(ConfigError):
        system.reload({"session": {"scope": "nowhere"}})

    assert "session.scope" in (heard.next("config_refused").error or "")


def _ruled_by(system: SessionSystem, config: Callable[[], Config]) -> None:
    world = system.service.world
    world.rules = RulesInForce(config, offered=lambda _config, _caller: (), has_channel=world.channels.has)


@pytest.fixture
def worldly(booth: Booth, heard: Heard) -> SessionSystem:
    """On a clock that stands: an actor is given up that fails four times in five seconds."""
    return booth.start({"main": parrot}, on_failure=heard, clock=ManualClock())


def test_an_actor_that_fails_is_told_each_time_and_when_it_is_given_up(
    worldly: SessionSystem, heard: Heard, caplog: pytest.LogCaptureFixture
) -> None:
    speak(worldly)

    def breaks() -> Config:
        raise ZeroDivisionError("the judge is broken")

    _ruled_by(worldly, breaks)
    for _ in range(3):
        worldly.service.supervisor.tell_session(MAIN, _policy_question())
        assert heard.next("actor_restarted").actor == MAIN
    worldly.service.supervisor.tell_session(MAIN, _policy_question())
    failure = heard.next("actor_given_up")
    assert failure.actor == MAIN
    assert "judge is broken" in (failure.error or "")
    assert "breaks" in (failure.traceback or "")
    told = [record for record in lines_of(caplog, "actors") if "failed" in record.getMessage()]
    assert [record.levelname for record in told] == ["ERROR"] * 4


def _policy_question() -> Any:
    return CheckSend(channel=None, answer=lambda _verdict: None)


class Unreadable(SqliteLog):
    """A log whose views can't be read while it is `away`."""

    away = False

    def query(self, statement: str, parameters: Sequence[SqlValue] = ()) -> list[Any]:
        if self.away:
            raise StoreUnavailable("the disk is gone")
        return super().query(statement, parameters)

    @contextmanager
    def moment(self) -> Generator[Moment]:
        if self.away:
            raise StoreUnavailable("the disk is gone")
        with super().moment() as moment:
            yield moment


@pytest.mark.sqlite("a file that can not be read for a while")
def test_a_store_that_a_door_cannot_read_is_one_line_and_another_after_a_minute(
    tmp_path: Path, heard: Heard, caplog: pytest.LogCaptureFixture
) -> None:
    """Before: whoever asked was refused, and nothing said so on the console."""
    clock = ManualClock()
    with (
        Unreadable(tmp_path / "log.db", inline=inline_views()) as log,
        SessionSystem(log, agents={"main": parrot}, clock=clock, on_failure=heard) as system,
    ):

        def asked() -> list[Any]:
            return [
                system.tools().call("sessions_list"),
                system.tools(MAIN).call("sessions_history", {"sessionKey": MAIN}),
                system.gateway.call("sessions.list"),
                asyncio.run(system.tools().acall("sessions_list")),
            ]

        log.away = True
        refused = asked()
        failure = heard.next("store_trouble")
        first = [line.getMessage() for line in lines_of(caplog, "store")]
        clock.advance(59_000)
        asked()
        still = len(lines_of(caplog, "store"))
        clock.advance(2_000)
        asked()
        heard.next("store_trouble")
        log.away = False
        assert system.tools().call("sessions_list")["count"] == 0

    assert {answer["code"] for answer in refused} == {"unavailable"}
    assert failure.error == "StoreUnavailable: the disk is gone"
    assert first == ["store is not available: StoreUnavailable: the disk is gone"]
    assert still == 1
    assert system.tools().call("sessions_list")["code"] == "unavailable"
    assert len(lines_of(caplog, "store")) == 2, "a closed system is no failure"
