"""A conversation that is many times as long as its model's window, killed with its host again and again."""

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from intersession import SessionSystem
from intersession_events.facts import RunCompleted, RunFailed, RunQueued, RunStarted
from intersession_events.log.verifying.verification import verify_log
from intersession_events.stores.opened import open_log
from support.endpoint import Said, an_endpoint
from support.paths import ROOT

HOST = "support.processes.long_talk"


def killed_talking(store: str, endpoint: str, messages: int, kills: int, seed: int) -> int:
    """Have all messages said, in a process that is killed that often; return how often it was begun."""
    chance = random.Random(seed)  # noqa: S311 - when to kill
    said, begun = 0, 0
    while said < messages:
        command = [sys.executable, "-m", HOST, store, endpoint, str(messages)]
        host = subprocess.Popen(command, cwd=ROOT / "tests", stdout=subprocess.PIPE, text=True)
        begun += 1
        # It is killed on its way: behind some more messages, a moment later.
        until = (
            said + chance.randrange(messages // kills * 2 // 3, messages // kills)
            if begun <= kills
            else messages
        )
        assert host.stdout is not None
        for line in host.stdout:
            number, status = line.split()
            assert status == "ok", line
            said = max(said, int(number) + 1)
            if said >= until and begun <= kills:
                break
        if begun <= kills:
            host.kill()
        host.wait()
        host.stdout.close()
        assert begun <= kills or said == messages
    return begun


@pytest.mark.sqlite("its host is killed as a process that has the file")
@pytest.mark.clause("CTX-5", "CTX-2", "SEAL-1", "FORK-1")
@pytest.mark.parametrize(
    ("messages", "kills"),
    [
        pytest.param(120, 3, marks=pytest.mark.ci),
        pytest.param(5_000, 30, marks=[pytest.mark.nightly, pytest.mark.timeout(3_600)]),
    ],
)
def test_each_of_many_messages_is_answered_once_within_the_window(
    tmp_path: Path, messages: int, kills: int
) -> None:
    store = f"sqlite:///{tmp_path}/log.db"

    def say(request: Said) -> Said:
        is_summary = "Summary step" in str(request["messages"][-1])
        return {"content": "Ann asks about the weather in the north." if is_summary else "It rains there."}

    with an_endpoint(8_000) as endpoint:
        endpoint.say = say
        begun = killed_talking(store, endpoint.url, messages, kills, 1)
        refused = endpoint.refused
    with open_log(store, read_only=True) as log:
        events: list[Any] = [one.event for one in log.all()]
        report = verify_log(log, final=True)
        asked = [one for one in events if isinstance(one, RunQueued) and one.step == "message"]
        ended = [one for one in events if isinstance(one, RunCompleted)]
        starts = [one for one in events if isinstance(one, RunStarted)]
    with SessionSystem(store) as system:
        history = system.gateway.call("chat.history", {"sessionKey": "main", "limit": 1_000})["messages"]
        replayed = system.debug.replay()
        middle = asked[len(asked) // 2].run_id
        lens = system.debug.lens(middle, dialect="openai")
        with system.fork(middle, at="reply") as fork:
            again = fork.debug.lens(middle, dialect="openai")

    assert begun == kills + 1
    assert refused == []
    assert len(asked) == messages
    assert {one.run_id for one in asked} <= {one.run_id for one in ended}
    assert [one for one in events if isinstance(one, RunFailed)] == []
    assert len({one.run_id for one in ended}) == len(ended)
    assert all(one.fit is None or one.fit.lost == 0 for one in starts)
    assert sum(one.covers is not None for one in ended) >= messages // 40
    assert report.ok, report
    assert replayed["same"], replayed
    assert len(history) == min(2 * messages, 1_000)
    assert lens["asRecorded"]
    assert again["asRecorded"]
    assert again.get("rendered") == lens.get("rendered")
