"""`intersession work`: what it is given, how it begins, and how it ends."""

import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from intersession import SessionSystem
from intersession_events.facts import RunInterrupted
from support.beside import WITH_WORKERS, WORKER
from support.doors.command_line import ran
from support.doors.gateway_live import LiveGateway
from support.running import SEES_ALL, WAIT, merged, wait_for
from support.working import Working

AGENTS = "support.processes.agents_at_work:AGENTS"
CHANNELS = "support.processes.channels_at_work:CHANNELS"
NOWHERE = "http://127.0.0.1:9"


@pytest.mark.parametrize(
    ("tokens", "says"),
    [
        ([], "--gateway: where is the log's writer"),
        (["--store", "bots.db"], "--store: 'bots.db' is no PostgreSQL database"),
        (["--gateway", NOWHERE, "--agents", "nowhere:AGENTS"], "--agents: 'nowhere:AGENTS'"),
        (["--gateway", NOWHERE, "--agents", AGENTS, "--agent", "ops"], "--agent: --agents has no ops"),
        (["--gateway", NOWHERE, "--agents", AGENTS], "INTERSESSION_WORKER_TOKEN"),
        (["--gateway", NOWHERE, "--channel", "telegram"], "channels.telegram.deliver: is missing"),
        (["--gateway", NOWHERE, "--channels", "nowhere:CHANNELS"], "--channels: 'nowhere:CHANNELS'"),
        (["--gateway", NOWHERE, "--channels", f"{__name__}:NOWHERE"], "is a str; give module:NAME"),
        (
            ["--gateway", NOWHERE, "--channels", CHANNELS, "--channel", "x"],
            "--channel: --channels has no x; it has telegram, keyed",
        ),
        (["--gateway", NOWHERE, "--agents", AGENTS, "--seats", "0"], "--seats: 0 is no number"),
        (["--gateway", NOWHERE], "--agents: there are none with a model"),
    ],
)
def test_what_makes_no_worker_is_refused_in_terms_of_what_was_typed(
    monkeypatch: pytest.MonkeyPatch, tokens: list[str], says: str
) -> None:
    monkeypatch.delenv("INTERSESSION_WORKER_TOKEN", raising=False)

    said = ran("work", *tokens)

    assert said.exit_code in {1, 2}
    assert says in said.err


@pytest.mark.clause("WORK-10")
@pytest.mark.ci
@pytest.mark.parametrize("signals", [1, 2])
def test_a_signal_lets_a_worker_end_what_it_has_and_a_second_one_ends_it(
    tmp_path: Path, signals: int
) -> None:
    config = merged(SEES_ALL, WITH_WORKERS)
    with SessionSystem(tmp_path / "log.db", config=config) as system, LiveGateway(system) as live:
        worker = Working(
            *("--gateway", live.address, "--agents", AGENTS, "--name", "one", "--seats", 2),
            variables={"INTERSESSION_WORKER_TOKEN": WORKER, "AT_WORK": str(tmp_path)},
        )
        run = system.inbound(channel="chat", chat_id="1", sender="mia", text="wait for go")["runId"]
        until((tmp_path / "began").exists)
        worker.signal()
        if signals == 2:  # one that comes before the first was heard is none
            until(lambda: all(one.is_draining for one in system.log.work.workers()))
            worker.signal()
        else:
            (tmp_path / "go").touch()
            answer = system.gateway.call("agent.wait", {"runId": run, "timeoutMs": int(WAIT * 1000)})
            assert answer["reply"] == "went"
        code, _ = worker.end()
        if signals == 2:
            wait_for(system, RunInterrupted)

    assert worker.said == "one calls main, 2 at once\n"
    assert code == (0 if signals == 1 else 128 + signal.SIGTERM)


def until(is_so: Callable[[], bool]) -> None:
    """Wait until another process has done something."""
    assert any(is_so() or threading.Event().wait(0.01) for _ in range(2_000))
