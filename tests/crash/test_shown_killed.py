"""A host that is killed while its channel shows an answer that grows: nothing is lost, and nothing is shown twice unsaid."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from intersession import open_log
from intersession_actors.outside.channels.caller import CUT_OFF
from intersession_events.facts import DeliveryDone, DeliveryUnknown
from support.paths import ROOT
from support.running import WAIT

HOST = """
import json, os, signal, sys, threading
from pathlib import Path
from intersession import Channel, SessionSystem
from intersession_events.facts import DeliveryDone, DeliveryUnknown

store, chat, number, moment = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
calls, called = [], threading.Semaphore(0)


def passing(now):
    if len(calls) == number and now == moment:
        os.kill(os.getpid(), signal.SIGKILL)


def take(out, at):
    calls.append(out.text)
    passing("before")
    messages = json.loads(chat.read_text()) if chat.exists() else []
    messages[at:] = [out.text] if at is not None else [*messages, out.text]
    new = chat.with_suffix(".new")
    new.write_text(json.dumps(messages))
    new.replace(chat)
    passing("after")
    called.release()
    return {"id": len(messages) - 1}


def deliver(out):
    return take(out, len(json.loads(chat.read_text())) if chat.exists() else 0)


def edit(out):
    take(out, out.receipt["id"])


def agent(turn):
    for word in ("One ", "two ", "three."):
        yield word
        called.acquire(timeout=0.5)  # a message that can't be edited is called once more in the end


channels = {"chat": Channel(deliver=deliver, edit=edit, edit_every=0.0)}
with SessionSystem(store, agents={"main": agent}, channels=channels) as system:
    system.inbound(channel="chat", chat_id="42", sender="ann", text="Count", message_id="1")
    for item in system.follow(0, timeout=20):
        if isinstance(item.event, DeliveryDone | DeliveryUnknown):
            break
"""


@pytest.mark.ci
@pytest.mark.clause("STREAM-5")
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize(
    "number", [1, 2, pytest.param(3, marks=pytest.mark.nightly), pytest.param(4, marks=pytest.mark.nightly)]
)
def test_an_answer_that_grows_comes_through_a_kill_at_each_of_its_calls(
    log_url: str, tmp_path: Path, number: int, moment: str
) -> None:
    chat = tmp_path / "chat.json"

    def host(at: int) -> int:
        given = [sys.executable, "-c", HOST, log_url, str(chat), str(at), moment]
        return subprocess.run(given, cwd=ROOT, timeout=3 * WAIT, check=False, capture_output=True).returncode

    was_killed = host(number) != 0
    assert host(0) == 0

    messages = json.loads(chat.read_text())
    whole = "One two three."
    assert was_killed or number == 4
    assert messages[-1] in {whole, f"{CUT_OFF}\n\n{whole}"}
    assert len(messages) == 1 or (len(messages) == 2 and messages[-1].startswith(CUT_OFF))
    with open_log(log_url) as log:
        ends = [one.event for one in log.log.all() if isinstance(one.event, DeliveryDone | DeliveryUnknown)]
        assert log.debug.replay()["firstDifference"] is None
    assert [type(end) for end in ends] == [DeliveryDone]
