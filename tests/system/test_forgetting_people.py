"""FORGET: a person is forgotten, wherever what they said has gone; a search for canaries finds none but what is named."""

import base64
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from intersession import File, MemoryChannel, Reply, SessionSystem, Turn
from intersession_actors.hindsight.replaying.redeciding.deciding_again import redecided_all
from intersession_actors.hindsight.replaying.redeciding.sources import Sources
from intersession_actors.rules.errors import ToolRefused
from intersession_events.facts import DeliveryFailed, Erased, RunCompleted, encode
from intersession_events.log.verifying.verification import verify_log
from intersession_events.log.work_queue import Offer, Worker
from intersession_events.proofs import Trusted, new_private, write_private
from intersession_events.stores.opened import open_log
from intersession_events.stores.portable.log import PortableLog
from intersession_events.stores.view_proof import views_proven
from intersession_projections.views.inline_views import inline_views
from support.openclaw.samples import header, message, said, write_state
from support.running import WAIT, Booth, Gate, asked, at_rest, recorded, wait_for

DIRECT, GROUP = "agent:main:telegram:direct:ada", "agent:main:telegram:group:42"
OPS, SIDE = "agent:ops:main", "agent:side:main"
PEERS = {"session": {"dmScope": "per-channel-peer"}, "transcripts": {"mirror": True}}
CANARY = b"zqxyjv"


def ada(system: SessionSystem, text: str, *, group: bool = False, **more: Any) -> Any:
    chat: dict[str, Any] = {"chat_id": "42", "chat_type": "group"} if group else {"chat_id": "ada"}
    said = {"channel": "telegram", "sender": "ada", "sender_name": "Zqxyjvada Byron", "wait": WAIT}
    return system.inbound(**{**said, **chat, "text": text, **more})


def bob(system: SessionSystem, text: str) -> Any:
    return system.inbound(
        channel="telegram", chat_id="42", chat_type="group", sender="bob", text=text, wait=WAIT
    )


def main(turn: Turn) -> str | Reply:
    if turn.step != "message":
        return "announced: zqxyjv-announce"
    do, _, text = turn.message.partition(": ")
    match do:
        case "tool":
            call = turn.record_call("find", {"who": "zqxyjv1"})
            turn.record_result(call, "find", "zqxyjv2")
            return "found zqxyjv3"
        case "send":
            turn.tools.call("sessions_send", {"sessionKey": OPS, "message": text, "timeoutSeconds": WAIT})
            return "zqxyjv-sent"
        case "spawn":
            turn.tools.call("sessions_spawn", {"task": text})
            return "zqxyjv-begun"
        case "fail":
            raise ValueError(text)
        case _:
            return f"noted, {text or turn.message}"


def ops(turn: Turn) -> str | Reply:
    return f"ops heard {turn.message}" if turn.step == "message" else Reply.skip()


def side(turn: Turn) -> str | Reply:
    if turn.message == "read":
        return str(turn.tools.call("sessions_history", {"sessionKey": DIRECT, "includeTools": True}))
    return f"side: {turn.message}"


def started(booth: Booth, **given: Any) -> SessionSystem:
    agents = {"main": main, "ops": ops, "side": side}
    return booth.start(agents, {"telegram": MemoryChannel()}, PEERS, **given)


def places(system: SessionSystem) -> list[str]:
    """Where a canary still stands in the log."""
    return sorted(
        f"{one.topic} of {one.stream}"
        for one in system.log.all()
        if CANARY in encode(one.event).lower() or CANARY in one.decision.lower().encode()
    )


WAYS: dict[str, Callable[[SessionSystem], object]] = {
    "a text": lambda system: ada(system, "zqxyjv4"),
    "a text in a group": lambda system: ada(system, "pin zqxyjv5", group=True),
    "a file": lambda system: ada(system, "look", files=[File(data=b"zqxyjv6 zqxyjv7", name="zqxyjv8.txt")]),
    "tools": lambda system: ada(system, "tool: x"),
    "tools in a group": lambda system: ada(system, "tool: x", group=True),
    "an exchange": lambda system: ada(system, "send: zqxyjv9 to ops"),
    "an exchange from a group": lambda system: ada(system, "send: zqxyjv10", group=True),
    "a sub-agent": lambda system: ada(system, "spawn: zqxyjv11"),
    "an error": lambda system: ada(system, "fail: zqxyjv12"),
    "another session reads it": lambda system: asked(system, SIDE, "read"),
    "somebody quotes it": lambda system: (
        ada(system, "the parcel zqxyjv13 lies under the bridge"),
        bob(system, "she said: the parcel zqxyjv13 lies under the bridge"),
    ),
    "a note": lambda system: system.gateway.perform(
        "notes.pin", {"run": ada(system, "zqxyjv14")["runId"], "text": "zqxyjv15"}
    ),
    "a search": lambda system: (
        ada(system, "zqxyjv16"),
        system.gateway.perform("debug.search", {"words": "zqxyjv16"}),
    ),
    "the operator writes to them": lambda system: (
        ada(system, "hello"),
        system.gateway.perform("chat.inject", {"sessionKey": DIRECT, "message": "zqxyjv17"}),
    ),
    "the host sends to them": lambda system: system.gateway.perform(
        "send",
        {
            "channel": "telegram",
            "to": "ada",
            "message": "zqxyjv18",
            "sessionKey": SIDE,
            "idempotencyKey": "s",
        },
    ),
}


def gone(system: SessionSystem, booth: Booth, tmp_path: Path) -> None:
    """Check that nothing has a canary, and that all is as provable, and goes on, as before."""
    assert places(system) == []
    log = system.log
    assert isinstance(log, PortableLog)
    report = verify_log(log).with_views(*views_proven(log, inline_views()))
    assert report.ok, report.findings
    shown = [system.gateway.call("chat.history", {"sessionKey": key}) for key in (DIRECT, GROUP, OPS, SIDE)]
    shown += [
        system.gateway.call("debug.search", {"words": "zqxyjv*"}),
        system.gateway.call("debug.messages", {}),
    ]
    assert CANARY not in msgspec.json.encode(shown).lower()
    system.close()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [str(path) for path in files if CANARY in path.read_bytes().lower()] == []
    again = started(booth)
    assert "noted" in str(ada(again, "hello again", group=True).get("reply"))


@pytest.mark.clause("FORGET-1")
def test_a_person_is_forgotten_by_every_way_that_their_words_went(booth: Booth, tmp_path: Path) -> None:
    system = started(booth)
    bob(system, "the weather is fine today, isn't it, my friends?")
    for go in WAYS.values():
        go(system)
        at_rest(system)
    assert len(places(system)) > 40
    dry = system.forget("telegram:ada", dry_run=True)

    answer = system.forget("telegram:ada", reason="asked for")

    gone_at = {one.event.stream for one in system.log.all() if isinstance(one.event, Erased)}
    assert (dry["erased"], dry["counts"], dry["streams"]) == (
        answer["erased"],
        answer["counts"],
        sorted(gone_at),
    )
    assert {(one.rule, one.reason) for one in recorded(system, Erased)} == {("person", "asked for")}
    assert [list(one.not_reached) for one in recorded(system, Erased) if one.not_reached] == [
        answer["notReached"]
    ]
    history = msgspec.json.encode(system.gateway.call("chat.history", {"sessionKey": GROUP})).decode()
    assert "the weather is fine today" in history, "what others said stays"
    gone(system, booth, tmp_path)


@pytest.mark.clause("FORGET-1")
def test_what_others_said_stays_though_it_was_told_to_the_person(booth: Booth) -> None:
    said = "the meeting is on Friday at noon, in the old library"

    def tells(turn: Turn) -> str:
        return f"bob says: {said}" if turn.message == "what's new?" else "noted"

    system = booth.start({"main": tells}, {"telegram": MemoryChannel()}, PEERS)
    bob(system, said)
    ada(system, "what's new?")
    ada(system, "what's new?", group=True)
    at_rest(system)

    system.forget("telegram:ada")

    texts = [encode(one.event).decode() for one in system.log.stream(f"session:{GROUP}")]
    assert [said in text for text in texts if '"sender":"bob"' in text] == [True]
    assert not any("bob says" in encode(one.event).decode() for one in system.log.all())


@pytest.mark.ci
@pytest.mark.clause("FORGET-1")
@pytest.mark.parametrize("mentions", [False, True])
def test_words_of_others_that_name_the_person_go_if_that_is_wanted(booth: Booth, *, mentions: bool) -> None:
    system = started(booth)
    ada(system, "hello")
    bob(system, "ask Zqxyjvada Byron for it")
    at_rest(system)

    answer = system.forget("telegram:ada", mentions=mentions)

    named = [said for said in answer["notReached"] if said.startswith("words of others that name them")]
    assert (len(named), places(system) == []) == ((0, True) if mentions else (1, False))


@pytest.mark.ci
@pytest.mark.clause("FORGET-1")
def test_all_addresses_of_a_person_are_forgotten_and_a_shared_main_session_keeps_the_rest(
    booth: Booth,
) -> None:
    links = {"session": {"identityLinks": {"lovelace": ["telegram:ada", "discord:7"]}, "dmScope": "main"}}
    system = booth.start({"main": main}, {"telegram": MemoryChannel(), "discord": MemoryChannel()}, links)
    ada(system, "zqxyjv1")
    system.inbound(channel="discord", chat_id="7", sender="7", text="zqxyjv2", wait=WAIT)
    system.inbound(channel="telegram", chat_id="bob", sender="bob", text="this stays", wait=WAIT)
    at_rest(system)

    dry = system.forget("lovelace", dry_run=True)
    answer = system.forget("telegram:ada")

    assert dry["erased"] == answer["erased"]
    assert (answer["addresses"], answer["sessions"]) == (["discord:7", "telegram:ada"], [])
    assert places(system) == []
    assert "noted, this stays" in str(system.gateway.call("chat.history", {"sessionKey": "main"}))


@pytest.mark.ci
@pytest.mark.clause("FORGET-1")
def test_texts_to_the_person_that_wait_are_given_up_or_keep_it_all_from_being_erased(booth: Booth) -> None:
    def away(*_: object) -> None:
        raise ConnectionError("zqxyjv1")

    system = booth.start({"main": main}, {"telegram": away}, PEERS)
    ada(system, "zqxyjv2")
    wait_for(system, DeliveryFailed)

    dry = system.forget("telegram:ada", dry_run=True)
    with pytest.raises(ToolRefused, match=r"give `unsent` as `giveUp` \(`--give-up-unsent`\)") as refused:
        system.forget("telegram:ada")
    assert (refused.value.code, len(dry["waiting"]), bool(places(system))) == ("busy", 1, True)
    system.forget("telegram:ada", unsent="giveUp")
    assert places(system) == []


@pytest.mark.ci
@pytest.mark.clause("FORGET-1")
def test_a_run_for_the_person_is_waited_for(booth: Booth) -> None:
    gate = Gate()
    system = booth.start({"main": gate.saying("zqxyjv1")}, {"telegram": MemoryChannel()}, PEERS)
    ada(system, "zqxyjv2", group=True, wait=None)
    gate.reached()
    with pytest.raises(ToolRefused, match="is still under way, wait for its end or abort it first"):
        system.forget("telegram:ada")
    gate.open()
    wait_for(system, RunCompleted)
    at_rest(system)
    system.forget("telegram:ada")
    assert places(system) == []


@pytest.mark.clause("FORGET-1")
@pytest.mark.parametrize(
    ("person", "said"),
    [
        ("ada", "'ada' is no address of a person, .*: give one such as telegram:ada"),
        ("telegram:adda", "nobody of 'telegram:adda' has said anything here, .*; known are telegram:ada"),
        ("", "person"),
    ],
)
def test_a_person_that_is_not_there_is_refused(booth: Booth, person: str, said: str) -> None:
    system = started(booth)
    ada(system, "hello")
    before = system.log.head()
    with pytest.raises(ToolRefused, match=said) as refused:
        system.forget(person)
    assert (refused.value.code, any(map(bool, recorded(system, Erased)))) == ("invalid_request", False)
    assert before


@pytest.mark.ci
@pytest.mark.clause("FORGET-2", "FORGET-3")
def test_forks_attachments_and_copies_in_the_folder_are_reached_or_named(
    booth: Booth, tmp_path: Path
) -> None:
    system = started(booth)
    run = ada(system, "send: zqxyjv1 to ops")["runId"]
    at_rest(system)
    fork = system.fork(run, at="end")
    fork.close()
    if not booth.url.startswith("postgres"):
        with closing(sqlite3.connect(system.log.path)) as rows:
            rows.execute("VACUUM INTO ?", (str(tmp_path / "old.bak"),))

    answer = system.forget("telegram:ada")

    assert [one["fork"] for one in answer["forks"]] == [Path(fork.log.path).stem]
    if not booth.url.startswith("postgres"):
        assert any("old.bak" in said for said in answer["notReached"])
        (tmp_path / "old.bak").unlink()
    assert any("channel telegram" in said for said in answer["notReached"])
    with open_log(fork.log.path, read_only=True) as log:
        assert verify_log(log).ok
        assert not any(CANARY in encode(one.event).lower() for one in log.all())
    gone(system, booth, tmp_path)


def values_in(log: PortableLog) -> list[bytes]:
    """Return every value of every table of a log on a server, as bytes."""
    if not log.is_remote:
        return []  # the bytes of the file are looked at
    tables = log.query(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()", ()
    )
    rows = [row for (table,) in tables for row in log.query(f'SELECT * FROM "{table}"', ())]  # noqa: S608
    assert len(rows) > 50
    return [value if isinstance(value, bytes) else str(value).encode() for row in rows for value in row]


@pytest.mark.ci
@pytest.mark.clause("FORGET-1", "FORGET-2", "ERASE-2")
def test_all_is_as_proven_after_a_person_was_forgotten_as_before(booth: Booth, tmp_path: Path) -> None:
    """Signed checkpoints, an import, files of a sub-agent that are kept, a restart, a rebuild, a sealed replay."""

    def spawns(turn: Turn) -> str | Reply:
        if turn.message == "spawn":
            file = {"name": "a.txt", "content": "zqxyjv2"}
            turn.tools.call("sessions_spawn", {"task": "zqxyjv3", "attachments": [file], "cleanup": "keep"})
        return "zqxyjv4"

    key = new_private(os.urandom)
    write_private(key, tmp_path / "checkpoints.pem")
    kept = {"enabled": True, "retainOnSessionKeep": True}
    config = {
        "checkpoints": {"keyFile": str(tmp_path / "checkpoints.pem")},
        "tools": {"sessions_spawn": {"attachments": kept}},
    }
    system = booth.start({"main": spawns}, {"telegram": MemoryChannel()}, PEERS, config)
    ada(system, "spawn")
    at_rest(system)
    theirs = "agent:main:telegram:direct:ada:thread:7"
    entries = {theirs: {"sessionId": "s-1", "updatedAt": 1772442000009}}
    lines = [header("s-1"), message("m-1", said("zqxyjv5"), 1)]
    system.import_openclaw(write_state(tmp_path / "old", lines, entries=entries, name="s-1.jsonl"))
    shutil.rmtree(tmp_path / "old")
    system.checkpoint()

    answer = system.forget("telegram:ada")

    assert (answer["counts"]["attachments"], theirs in answer["sessions"]) == (1, True)
    assert places(system) == []
    log = system.log
    assert isinstance(log, PortableLog)
    report = verify_log(log, trusted=Trusted([key.public]))
    assert (report.ok, report.checkpoints.signed_up_to) == (True, answer["checkpoint"])
    assert {one.problem for one in redecided_all(Sources(log.log_id, log.all())) if not one.is_same} <= {
        "words that it was decided upon were erased"
    }
    log.rebuild("session_list")
    assert [value for value in values_in(log) if CANARY in value] == []
    gone(system, booth, tmp_path)


@pytest.mark.ci
@pytest.mark.clause("FORGET-1", "CRYPT-4", "CRYPT-5")
def test_an_encrypted_log_and_its_forks_forget_with_their_keys(booth: Booth, tmp_path: Path) -> None:
    master = tmp_path / "master.key"
    master.touch(mode=0o600)
    master.write_text(base64.b64encode(os.urandom(32)).decode())
    config = {"encryption": {"keys": {"file": str(master)}}, "session": {"dmScope": "per-channel-peer"}}
    system = booth.start({"main": main, "ops": ops}, {"telegram": MemoryChannel()}, config)
    run = ada(system, "send: zqxyjv1 to ops")["runId"]
    at_rest(system)
    fork = system.fork(run, at="end")
    fork.close()

    answer = system.forget("telegram:ada")

    assert answer["counts"]["keys"] > 0
    assert [one["fork"] for one in answer["forks"]] == [Path(fork.log.path).stem]
    assert places(system) == []


@pytest.mark.ci
@pytest.mark.clause("FORGET-2")
def test_what_a_worker_was_given_or_said_too_late_goes_with_the_words(booth: Booth, tmp_path: Path) -> None:
    system = started(booth)
    ada(system, "zqxyjv1")
    at_rest(system)
    queue = system.log.work
    given = Offer(
        kind="channel",
        id="d",
        attempt=1,
        name="far",
        stream="delivery:d",
        version=1,
        secret="s",
        content=b'"zqxyjv2"',
    )
    queue.offer([given])
    queue.to_take.announce(
        Worker(name="w", host="h", version="1", agents={}, channels={"far": "{}"}, seats=1)
    )
    assert [one.call for one in queue.to_take.take("w", 1, 0)] == [given.call]
    queue.to_take.answer("w", given.call, b'"zqxyjv3"')
    queue.withdraw([given.call])
    assert [one.is_over for one in queue.standing()] == [True]

    system.forget("telegram:ada")

    assert queue.standing() == []
    log = system.log
    assert isinstance(log, PortableLog)
    assert [value for value in values_in(log) if CANARY in value] == []
    gone(system, booth, tmp_path)


KILLED = """
import sys
from intersession import MemoryChannel, SessionSystem, echo
from intersession_events.basics.crash_points import arm, kill_at

config = {"session": {"dmScope": "per-channel-peer"}}
with SessionSystem(sys.argv[1], agents={"main": echo()}, channels={"telegram": MemoryChannel()}, config=config) as system:
    arm(kill_at(sys.argv[2], 1))
    system.forget("telegram:ada")
"""


@pytest.mark.ci
@pytest.mark.clause("FORGET-2", "G1")
@pytest.mark.parametrize(
    "point", ["G1", *(pytest.param(point, marks=pytest.mark.nightly) for point in ("E1", "E2", "F2"))]
)
def test_what_a_killed_call_has_left_is_erased_by_the_next(booth: Booth, tmp_path: Path, point: str) -> None:
    system = started(booth)
    run = ada(system, "send: zqxyjv1 to ops", files=[File(data=b"zqxyjv2", name="a.txt")])["runId"]
    at_rest(system)
    system.fork(run, at="end").close()
    system.close()
    died = subprocess.run([sys.executable, "-c", KILLED, booth.url, point], check=False, timeout=60)
    assert died.returncode == -signal.SIGKILL

    again = started(booth)
    again.forget("telegram:ada")

    gone(again, booth, tmp_path)
