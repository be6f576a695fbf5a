"""`sessions.erase` (ERASE-1): what was said in a session is gone wherever it stood, and all goes on."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from intersession import MemoryChannel, Reply, SessionSystem, Turn, echo
from intersession_actors.rules.errors import ToolRefused
from intersession_events.facts import ERASED, DeliveryFailed, Erased, RunCompleted
from intersession_events.log.verifying.verification import verify_log
from intersession_events.log.work_queue import CallId
from intersession_events.stores.portable.log import PortableLog
from intersession_events.stores.view_proof import views_proven
from intersession_projections.views.inline_views import inline_views
from support.running import WAIT, Booth, Gate, at_rest, closed_exchange, recorded, texts, wait_for
from support.told_steps import steps_told
from support.work_queue import offer, worker

CHAT, OPS = "agent:main:telegram:group:42", "agent:ops:main"
SECRET = "my number is 555-0199, tell nobody"
ANSWER = "noted that your number is 555-0199"


def main(turn: Turn) -> str:
    if turn.step == "message" and "ask ops" in turn.message:
        turn.tools.call("sessions_send", {"sessionKey": OPS, "message": SECRET, "timeoutSeconds": WAIT})
        return "ops knows"
    return ANSWER if "555-0199" in turn.message else f"you said {turn.message}"


def ops(turn: Turn) -> str | Reply:
    return f"heard {turn.message}" if turn.step == "message" else Reply.skip()


@pytest.fixture
def told(booth: Booth) -> SessionSystem:
    """A system in which a person has said a secret, and an agent has handed it on to another one."""
    system = booth.start(
        {"main": main, "ops": ops}, {"telegram": MemoryChannel()}, {"transcripts": {"mirror": True}}
    )
    for text in (SECRET, "please ask ops"):
        system.inbound(
            channel="telegram", chat_id="42", chat_type="group", sender="ann", text=text, wait=WAIT
        )
    closed_exchange(system, recorded(system, RunCompleted)[1].run_id)
    at_rest(system)
    return system


def everything(system: SessionSystem) -> str:
    """Return all that doors can read of a system, as one text."""
    shown: list[Any] = [one.event for one in system.log.all()]
    for key in (CHAT, OPS):
        shown += [
            system.gateway.call("chat.history", {"sessionKey": key}),
            system.gateway.call("sessions.preview", {"keys": [key]}),
            system.tools(key).call("sessions_history", {"sessionKey": key, "includeTools": True}),
        ]
    shown.append(system.tools(OPS).call("sessions_list", {"messageLimit": 20}))
    for run in system.service.runs.recent(50):
        shown += [run, [step.words for step in steps_told(system.log, run.run_id)]]
    return msgspec.json.encode(shown).decode()


@pytest.mark.clause("ERASE-1")
def test_what_was_said_in_a_session_is_gone_wherever_it_stood(told: SessionSystem) -> None:
    assert everything(told).count("555-0199") > 10

    answer = told.erase(CHAT, reason="ann asked for it")

    assert "555-0199" not in everything(told)
    assert {CHAT, OPS} <= {stream.partition(":")[2] for stream in answer["streams"]}
    assert {stream.partition(":")[0] for stream in answer["streams"]} >= {"session", "delivery"}
    assert {(one.by, one.reason) for one in recorded(told, Erased)} == {("operator", "ann asked for it")}
    assert texts(told.gateway.call("chat.history", {"sessionKey": CHAT}))[0] == ("user", ERASED)
    log = told.log
    assert isinstance(log, PortableLog)
    report = verify_log(log).with_views(*views_proven(log, inline_views()))
    assert (report.ok, report.erased) == (True, answer["erased"])
    log.rebuild("session_list")
    assert "555-0199" not in everything(told)


@pytest.mark.clause("ERASE-1")
def test_a_session_goes_on_and_its_agent_sees_erased_where_there_were_words(told: SessionSystem) -> None:
    seen: list[str] = []

    def looks(turn: Turn) -> str:
        seen.extend(str(message) for message in turn.transcript)
        return "here"

    told.erase(CHAT)
    told.register_agent("main", looks)
    answer = told.inbound(
        channel="telegram", chat_id="42", chat_type="group", sender="ann", text="still there?", wait=WAIT
    )

    assert answer.get("reply") == "here"
    assert any(ERASED in one for one in seen)
    assert not any("555-0199" in one for one in seen)


@pytest.mark.clause("ERASE-1")
def test_a_session_is_woken_after_a_restart_though_all_its_messages_are_erased(
    booth: Booth, told: SessionSystem
) -> None:
    told.erase(CHAT)
    told.close()

    again = booth.start({"main": main, "ops": ops}, {"telegram": MemoryChannel()})
    answer = again.inbound(
        channel="telegram", chat_id="42", chat_type="group", sender="ann", text="hello", wait=WAIT
    )

    assert answer.get("reply") == "you said hello"
    assert "555-0199" not in everything(again)
    assert (
        again.tools(CHAT).call("sessions_send", {"sessionKey": OPS, "message": "x", "timeoutSeconds": WAIT})[
            "status"
        ]
        == "ok"
    )


@pytest.mark.clause("ERASE-1")
def test_no_file_beside_the_log_keeps_the_words(told: SessionSystem, tmp_path: Path) -> None:
    told.erase(CHAT)
    told.close()

    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.suffix == ".jsonl" and ERASED in path.read_text() for path in files)
    assert [path.name for path in files if b"555-0199" in path.read_bytes()] == []


@pytest.mark.clause("ERASE-3", "FORGET-2")
def test_what_a_worker_was_given_is_gone_from_the_file_while_the_host_goes_on(
    told: SessionSystem, tmp_path: Path
) -> None:
    """Before: it was taken out behind the commit that empties the write-ahead log, and stood in the file until much later."""
    queue = told.log.work
    queue.to_take.announce(worker())
    given = msgspec.structs.replace(offer("a"), content=SECRET.encode())
    queue.offer([given])
    assert [one.id for one in queue.to_take.take("w1", 1, 0)] == [given.id]
    queue.withdraw([CallId(given.kind, given.id, given.attempt)])

    told.erase(CHAT)

    assert queue.standing() == []
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path.name for path in files if b"555-0199" in path.read_bytes()] == []


@pytest.mark.clause("ERASE-1")
def test_one_message_is_erased_alone_with_the_copies_of_it(told: SessionSystem) -> None:
    history = told.gateway.call("chat.history", {"sessionKey": CHAT})
    said = next(one for one in history["messages"] if SECRET in str(one["content"]))

    told.erase(CHAT, message_ids=[said["id"]])

    assert SECRET not in everything(told)
    assert ANSWER in everything(told)
    assert "please ask ops" in everything(told)
    assert told.erase(CHAT, message_ids=[said["id"]])["erased"] == 0


@pytest.mark.clause("ERASE-1")
def test_an_archived_session_can_be_erased(told: SessionSystem) -> None:
    told.gateway.call("sessions.delete", {"key": CHAT})

    assert told.erase(CHAT)["erased"] > 0
    assert "555-0199" not in msgspec.json.encode([one.event for one in told.log.all()]).decode()


@pytest.mark.clause("ERASE-1")
@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"key": "agent:main:telegram:group:43"}, "not_visible"),
        ({"key": CHAT, "messageIds": ["nobody's"]}, "invalid_request"),
        ({"key": CHAT, "messageIds": "all"}, "invalid_request"),
        ({"key": ""}, "invalid_key"),
    ],
)
def test_what_can_not_be_erased_is_refused_and_nothing_is_erased(
    told: SessionSystem, params: dict[str, Any], code: str
) -> None:
    assert told.gateway.call("sessions.erase", params)["code"] == code
    assert recorded(told, Erased) == []


@pytest.mark.clause("ERASE-1")
def test_a_text_for_a_channel_that_nobody_has_is_given_up_where_its_session_is_to_be_erased(
    booth: Booth,
) -> None:
    """Issue 9: it kept its session from being erased for as long as texts may wait."""
    system = booth.start({"main": main})
    run = system.inbound(
        channel="pigeon", chat_id="42", chat_type="group", sender="ann", text=SECRET, wait=WAIT
    )
    key = str(run["sessionKey"])
    (delivery_id,) = [flow.delivery_id for flow in system.service.flows.deliveries_of_session(key)]
    with pytest.raises(ToolRefused, match=r"is still under way .* `giveUp`") as refused:
        system.erase(key)
    assert refused.value.code == "busy"

    answer = system.erase(key, unsent="giveUp")

    delivery = system.service.flows.delivery(delivery_id)
    assert delivery is not None
    assert (delivery.state, answer["ok"]) == ("failed", True)
    (failed,) = recorded(system, DeliveryFailed)
    assert (failed.attempt, failed.error) == (0, ERASED)
    assert "555-0199" not in msgspec.json.encode([one.event for one in system.log.all()]).decode()
    assert system.erase(key, unsent="giveUp")["erased"] == 0


@pytest.mark.clause("ERASE-1")
def test_words_that_are_still_to_be_acted_on_are_not_erased(booth: Booth) -> None:
    gate = Gate()
    system = booth.start({"main": gate.before(echo())}, {"telegram": MemoryChannel()})
    run = system.inbound(channel="telegram", chat_id="42", chat_type="group", sender="ann", text=SECRET)
    gate.reached()
    with pytest.raises(ToolRefused, match="still under way"):
        system.erase(str(run["sessionKey"]))

    gate.open()
    wait_for(system, RunCompleted)
    at_rest(system)
    assert system.erase(str(run["sessionKey"]))["erased"] > 0


@pytest.mark.clause("ERASE-1", "ERASE-2")
def test_a_checkpoint_is_taken_right_behind_an_erasure(told: SessionSystem) -> None:
    answer = told.erase(CHAT, reason="Ann asked")

    assert answer["checkpoint"] >= answer["position"]
    erased = {one.stream for one in told.log.all() if isinstance(one.event, Erased)}
    with told.log.again() as log:  # type: ignore[attr-defined]
        report = verify_log(log)
    assert report.ok
    assert {f"erased:{seen.stream}" for seen in report.erasures} == erased
    assert all(seen.checkpoint is not None and seen.reason == "Ann asked" for seen in report.erasures)
