"""A host whose log is kept encrypted (CRYPT): no word of it lies in clear anywhere, and keys that are destroyed are gone from backups."""

import hashlib
import json
import shutil
import signal
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from intersession import Channel, File, MemoryChannel, Outbound, Reply, SessionSystem, Turn
from intersession.gateway.copied import GatewaySource
from intersession_actors.rules.errors import ConfigError
from intersession_events.basics.errors import BadKey
from intersession_events.copies.encrypting import encrypted_in_place
from intersession_events.copies.following.taking import LogCopy
from intersession_events.copies.forks.files import forks_beside
from intersession_events.copies.migrating import migrate
from intersession_events.facts import ForkEdit, RunCompleted, RunFailed, may_say
from intersession_events.log.recorded import Draft
from intersession_events.log.verifying.files import files_compared
from intersession_events.log.verifying.report import VerifyReport
from intersession_events.log.verifying.verification import verify_log
from intersession_events.log.work_queue import Offer, Worker
from intersession_events.stores.backup import back_up
from intersession_events.stores.keys.opening import keys_at
from intersession_events.stores.keys.records import KeyFile, file_of
from intersession_events.stores.keys.source import Encryption, Source
from intersession_events.stores.opened import located, open_log
from intersession_events.stores.portable.log import PortableLog
from support.any_log import changed_behind
from support.beside import beside
from support.doors.command_line import environment, ran
from support.doors.following import door, with_door, writing
from support.doors.gateway_live import LiveGateway
from support.encrypted import master_key, source, where, with_key
from support.log_drafts import anywhere
from support.processes.forked import ForkedCommand
from support.running import WAIT, Booth, at_rest, closed_exchange, merged, recorded
from support.soaking import until

MAIN, OPS = "agent:main:main", "agent:ops:main"
CANARY = "zanzibar"
LOG_ID = "00000000-0000-4000-8000-000000000001"
PICTURE = b"\x89PNG\r\n\x1a\n" + CANARY.encode() * 3


def main(turn: Turn) -> str:
    if turn.step == "message" and "ask ops" in turn.message:
        turn.tools.call(
            "sessions_send", {"sessionKey": OPS, "message": f"where is {CANARY}?", "timeoutSeconds": WAIT}
        )
    return f"it is {CANARY}" if turn.step == "message" else "ANNOUNCE_SKIP"


def ops(turn: Turn) -> str | Reply:
    return f"{CANARY} is an island" if turn.step == "message" else Reply.skip()


AGENTS = {"main": main, "ops": ops}


def said(system: SessionSystem, *texts: str, **more: Any) -> None:
    for text in texts:
        system.inbound(channel="chat", chat_id="42", sender="ann", text=text, wait=WAIT, **more)


def words(url: str) -> str:
    """Return all events of a log as one text."""
    with open_log(url, read_only=True) as log:
        return msgspec.json.encode([one.event for one in log.all()]).decode()


def verified(system: SessionSystem) -> VerifyReport:
    return verify_log(cast("PortableLog", system.log))


def held_keys(url: str) -> list[str]:
    """Return the owners of keys that are there."""
    keys = keys_at(KeyFile(file_of(located(url).place)), writes=False)
    assert keys is not None
    return [key.owner for key in keys.all() if key.destroyed is None]


@pytest.mark.clause("CRYPT-1", "CRYPT-5")
def test_no_word_of_an_encrypted_log_lies_in_clear_anywhere(booth: Booth, tmp_path: Path) -> None:
    config = with_key(master_key(tmp_path))
    system = booth.start(AGENTS, {"chat": MemoryChannel()}, config)
    said(system, f"tell me of {CANARY}", "please ask ops")
    said(system, f"{CANARY} again", files=[File(data=PICTURE, name=f"{CANARY}.png")])
    closed_exchange(system, recorded(system, RunCompleted)[1].run_id)
    system.debug.search(f"{CANARY}")
    with system.fork(recorded(system, RunCompleted)[-1].run_id, at="end", agents={"main": main}) as fork:
        assert CANARY in words(fork.log.path)
        assert fork.log.files.read(hashlib.sha256(PICTURE).hexdigest()) == PICTURE
        assert verified(fork).ok
    edit = (ForkEdit(kind="reply", value=f"not {CANARY}"),)
    with system.fork(recorded(system, RunCompleted)[-1].run_id, at="reply", edits=edit) as fork:
        path = fork.log.path
        assert f"not {CANARY}" in words(path)
    with open_log(path, read_only=True) as log:  # as another process sees what it began with
        assert log.forked is not None
        assert log.forked.edits[0].value == f"not {CANARY}"
    at_rest(system)
    assert CANARY in words(booth.url)
    assert verified(system).ok
    assert where(booth.url, tmp_path, CANARY.encode()) == []
    name = hashlib.sha256(PICTURE).hexdigest()
    assert system.log.files.read(name) == PICTURE
    assert where(booth.url, tmp_path, name.encode()) == []
    assert files_compared(system.log)[0].right == 1
    system.close()
    assert where(booth.url, tmp_path, CANARY.encode()) == []

    again = booth.start(AGENTS, {"chat": MemoryChannel()})  # the log says where its keys are
    said(again, f"and {CANARY} once more")
    again.close()
    assert where(booth.url, tmp_path, CANARY.encode()) == []


@pytest.mark.clause("CRYPT-1")
def test_a_stream_has_a_key_from_its_first_words_on(log_url: str, tmp_path: Path) -> None:
    with open_log(log_url, encryption=Encryption(source(master_key(tmp_path)))) as log:
        failed = RunFailed(run_id=LOG_ID, attempt=1, code="timeout", error="")
        log.append_now([anywhere("session:x", Draft(event=failed, id="1", time=1))])
        assert held_keys(log_url) == []
        words = msgspec.structs.replace(failed, attempt=2, error=CANARY)
        log.append_now([anywhere("session:x", Draft(event=words, id="2", time=1))])
    assert held_keys(log_url) == ["session:x"]


@pytest.mark.clause("CRYPT-4", "CRYPT-6")
def test_words_whose_keys_are_destroyed_are_gone_from_backups(
    booth: Booth, tmp_path: Path, logs: Any
) -> None:
    if not logs.are_files:
        pytest.skip("a copy of a log on a server is a dump")
    system = booth.start(AGENTS, {"chat": MemoryChannel()}, with_key(master_key(tmp_path)))
    said(system, f"tell me of {CANARY}")
    at_rest(system)
    backup = tmp_path / "backup.db"
    back_up(open_log(booth.url, read_only=True), backup)
    shutil.copy(f"{located(booth.url).place}.keys", f"{backup}.keys")
    assert CANARY in words(str(backup))
    answer = system.erase(MAIN, reason="Ann asked for it")
    assert answer["counts"]["keys"] == len(answer["streams"]) == 2
    assert "copies of its keys" in answer["notReached"][0]
    assert held_keys(booth.url) == []
    shutil.copy(f"{located(booth.url).place}.keys", f"{backup}.keys")
    with open_log(str(backup), read_only=True) as restored:
        report = verify_log(restored)
    assert report.ok
    assert report.encrypted == 4
    assert any("their keys were destroyed" in one for one in report.unproven)
    assert "[encrypted]" in words(str(backup))
    said(system, "we begin anew")
    assert held_keys(booth.url)[0] == f"session:{MAIN}"
    assert verified(system).ok


@pytest.mark.clause("CRYPT-4")
def test_one_command_forgets_a_session_and_names_what_backups_keep_of_it(
    booth: Booth, tmp_path: Path, logs: Any
) -> None:
    system = booth.start(AGENTS, {"chat": MemoryChannel()}, with_key(master_key(tmp_path)))
    for number, text in enumerate((f"where is {CANARY}?", "how are you?")):
        sent = {"sessionKey": OPS, "message": text, "idempotencyKey": str(number)}
        system.gateway.call("agent.wait", {"runId": system.gateway.call("chat.send", sent).get("runId", "")})
    said(system, "please ask ops")
    closed_exchange(system, recorded(system, RunCompleted)[2].run_id)
    at_rest(system)
    if logs.are_files:
        back_up(open_log(booth.url, read_only=True), tmp_path / "backup.db")

    planned = system.erase(MAIN, dry_run=True)
    answer = system.erase(MAIN, reason="Ann asked for it")

    assert planned["notReached"] == answer["notReached"]
    assert planned["counts"]["keys"] == answer["counts"]["keys"] == len(answer["streams"]) - 1
    assert f"in backups, what was said in session:{OPS}: other words" in answer["notReached"][1]
    assert [one for one in held_keys(booth.url) if "exchange:" not in one] == [f"session:{OPS}"]
    if logs.are_files:
        shutil.copy(f"{located(booth.url).place}.keys", tmp_path / "backup.db.keys")
        with open_log(str(tmp_path / "backup.db"), read_only=True) as backup:
            shown = {one.stream for one in backup.all() if CANARY in str(one.event)}
        assert shown == {f"session:{OPS}"}


@pytest.mark.clause("CRYPT-4")
def test_the_key_of_words_that_are_left_stays(booth: Booth, tmp_path: Path) -> None:
    system = booth.start(
        {"main": lambda turn: f"you said {turn.message}"}, {}, with_key(master_key(tmp_path))
    )
    for number in (1, 2):
        sent = {
            "sessionKey": MAIN,
            "message": f"message number {number} of us",
            "idempotencyKey": str(number),
        }
        run = system.gateway.call("chat.send", sent)
        system.gateway.call("agent.wait", {"runId": run.get("runId", "")})
    first = system.gateway.call("chat.history", {"sessionKey": MAIN}).get("messages", [])[0]
    answer = system.erase(MAIN, message_ids=[first["id"]])
    assert answer["counts"]["keys"] == 0
    assert "number 2" in words(booth.url)


@pytest.mark.clause("CRYPT-2")
def test_without_its_master_key_a_log_is_not_written_and_read_without_its_words(
    booth: Booth, tmp_path: Path
) -> None:
    master = master_key(tmp_path)
    system = booth.start(AGENTS, {"chat": MemoryChannel()}, with_key(master))
    said(system, f"tell me of {CANARY}")
    system.close()
    master.rename(tmp_path / "elsewhere")
    with pytest.raises(BadKey, match=r"master\.key, with the master key, can't be read"):
        booth.start(AGENTS)
    with open_log(booth.url, read_only=True) as log:
        report = verify_log(log)
        assert report.ok
        assert report.encrypted > 0
        assert any("their keys are not at hand" in one for one in report.unproven)
    told = ran("verify", "--store", booth.url)
    assert f"{report.encrypted} payloads encrypted, and not seen" in told.out
    assert told.err.count("note: what is encrypted can't be read: the file") == 1
    read = words(booth.url)
    assert CANARY not in read
    assert "[encrypted]" in read
    master_key(tmp_path, byte=8)
    with pytest.raises(BadKey, match="is not the master key of"):
        booth.start(AGENTS)


@pytest.mark.clause("CRYPT-2")
def test_a_log_whose_wrapped_keys_are_lost_is_not_written(booth: Booth, tmp_path: Path) -> None:
    config = with_key(master_key(tmp_path))
    system = booth.start(AGENTS, {"chat": MemoryChannel()}, config)
    said(system, f"tell me of {CANARY}")
    system.close()
    Path(f"{located(booth.url).place}.keys").unlink()
    for configs in ((), (config,)):  # neither as if it were plain, nor with new keys
        with pytest.raises(BadKey, match="its keys are not at"):
            booth.start(AGENTS, {}, *configs)
    assert "[encrypted]" in words(booth.url)
    assert "its keys are not at" in ran("encryption", "show", "--store", booth.url).err
    found = ran("doctor", "--store", booth.url, "--json").json["findings"]
    assert "keys_away" in [one["code"] for one in found]


@pytest.mark.clause("CRYPT-6")
def test_a_changed_ciphertext_is_found(booth: Booth, tmp_path: Path) -> None:
    system = booth.start(AGENTS, {"chat": MemoryChannel()}, with_key(master_key(tmp_path)))
    said(system, f"tell me of {CANARY}")
    system.close()
    asked = (
        "SELECT rowid, state FROM stored_events"
        if booth.url.startswith("sqlite")
        else ("SELECT notification_id, state FROM stored_events")
    )
    position, state = next(row for row in changed_behind(booth.url, asked) if b'"sealed":"' in row[1])
    at = state.index(b'"sealed":"') + 60
    other = b"A" if state[at : at + 1] != b"A" else b"B"
    column = asked.split()[1].rstrip(",")
    changed_behind(
        booth.url,
        f"UPDATE stored_events SET state=? WHERE {column}=?",  # noqa: S608 - ours
        state[:at] + other + state[at + 1 :],
        position,
    )
    with open_log(booth.url, read_only=True) as log:
        report = verify_log(log)
    assert report.counts.get("changed") == 1
    assert report.findings[0].problem == "the encrypted payload was changed"


@pytest.mark.ci
@pytest.mark.clause("CRYPT-1")
def test_encryption_begins_when_it_is_turned_on_and_may_be_of_some_sessions(
    booth: Booth, tmp_path: Path
) -> None:
    system = booth.start(AGENTS, {"chat": MemoryChannel()}, {"transcripts": {"mirror": True}})
    said(system, "tell me of the weather")
    assert system.debug.search("weather")["hits"]
    system.close()
    assert len(where(booth.url, tmp_path, b"weather")) > 1
    config = with_key(master_key(tmp_path), sessions=["agent:ops:*"])
    system = booth.start(AGENTS, {"chat": MemoryChannel()}, config)
    sent = {"sessionKey": OPS, "message": f"about {CANARY}", "idempotencyKey": "1"}
    system.gateway.call("agent.wait", {"runId": system.gateway.call("chat.send", sent).get("runId", "")})
    said(system, "plain words of main's")
    at_rest(system)
    assert [
        name for name in where(booth.url, tmp_path, b"weather") if "search" in name or "said" in name
    ] == []
    system.erase(OPS)
    assert verified(system).ok
    system.close()
    assert where(booth.url, tmp_path, f"about {CANARY}".encode()) == []
    assert where(booth.url, tmp_path, b"plain words of main's") != []
    system = booth.start(AGENTS, {"chat": MemoryChannel()}, with_key(tmp_path / "master.key", sessions=[]))
    said(system, f"once more {CANARY}")
    said(system, "of the winter")
    system.close()
    assert where(booth.url, tmp_path, b"of the winter") != []


@pytest.mark.clause("CRYPT-5")
@pytest.mark.ci
def test_a_moved_log_is_encrypted_with_keys_of_its_own(booth: Booth, tmp_path: Path, logs: Any) -> None:
    system = booth.start(AGENTS, {"chat": MemoryChannel()}, with_key(master_key(tmp_path)))
    said(system, f"tell me of {CANARY}", files=[File(data=PICTURE)])
    at_rest(system)
    system.fork(recorded(system, RunCompleted)[-1].run_id, at="end").close()
    system.close()
    target = logs.at(tmp_path, "moved")
    assert migrate(booth.url, target).taken.forks == 1
    (fork,) = forks_beside(located(target).place)
    assert CANARY in words(str(fork))
    assert CANARY in words(target)
    assert where(target, tmp_path, CANARY.encode()) == []
    with open_log(target, read_only=True) as log:
        assert verify_log(log).ok
        assert log.files.read(hashlib.sha256(PICTURE).hexdigest()) == PICTURE
    assert not {*map(str, _ids(booth.url))} & {*map(str, _ids(target))}


def _ids(url: str) -> list[str]:
    keys = keys_at(KeyFile(file_of(located(url).place)), writes=False)
    assert keys is not None
    return [key.id for key in keys.all()]


@pytest.mark.ci
@pytest.mark.clause("CRYPT-3")
def test_a_rotated_master_key_opens_the_same_words(booth: Booth, tmp_path: Path) -> None:
    old = master_key(tmp_path)
    system = booth.start(AGENTS, {"chat": MemoryChannel()}, with_key(old))
    said(system, f"tell me of {CANARY}")
    new = Source(file=str(master_key(tmp_path, byte=9, name="new.key")))
    keys = keys_at(KeyFile(file_of(located(booth.url).place)), writes=False)
    assert keys is not None
    assert keys.rotate(new, new.key()) == 2
    old.unlink()
    said(system, "a host that runs goes on")  # and has the new one from now on
    assert CANARY in words(booth.url)
    assert verified(system).ok


@pytest.mark.clause("CRYPT-1")
def test_what_would_have_the_words_beside_the_log_is_refused(booth: Booth, tmp_path: Path) -> None:
    config = with_key(master_key(tmp_path))
    with pytest.raises(ConfigError, match="mirrored transcripts are not encrypted"):
        booth.start(AGENTS, {}, config, {"transcripts": {"mirror": True}})
    with pytest.raises(ConfigError, match="name one place of the master key"):
        booth.start(AGENTS, {}, {"encryption": {"keys": {}}})
    with pytest.raises(ConfigError, match=r"it needs encryption\.keys"):
        booth.start(AGENTS, {}, {"encryption": {"sessions": ["agent:*"]}})


@pytest.mark.clause("CRYPT-1")
def test_words_of_an_encrypted_log_go_to_no_mirror(booth: Booth, tmp_path: Path) -> None:
    booth.start(AGENTS, {}, with_key(master_key(tmp_path))).close()
    with pytest.raises(ConfigError, match="the log is kept encrypted"):
        booth.start(AGENTS, {}, {"transcripts": {"mirror": True}})


@pytest.mark.clause("WORK-18", "CRYPT-1")
def test_a_worker_without_a_key_is_given_the_words_of_its_calls_and_leaves_none(
    log_url: str, tmp_path: Path
) -> None:
    seen: list[tuple[object, str, bytes]] = []
    lying = list[str]()

    def at_work(turn: Turn) -> str | Reply:
        lying.extend(where(log_url, tmp_path, CANARY.encode()))
        answer = main(turn)
        if turn.files:
            seen.append((turn.transcript[0].content, turn.message, turn.files[0].read()))
        return Reply(answer, files=(File(data=PICTURE, name=f"{CANARY}.png"),))

    def deliver(outbound: Outbound) -> None:
        lying.extend(where(log_url, tmp_path, CANARY.encode()))
        seen.append(("chat", outbound.text, outbound.files[0].read()))

    with beside(log_url, {"main": at_work, "ops": ops}, config=with_key(master_key(tmp_path))) as writer:
        writer.worker({}, channels={"chat": Channel(deliver=deliver)})
        writer.ask(f"please ask ops of {CANARY}")
        at_rest(writer.system)  # its answer goes out beside whatever is asked next
        said(writer.system, f"{CANARY} again", files=[File(data=PICTURE)])
        at_rest(writer.system)
        assert verified(writer.system).ok

    assert seen == [
        ("chat", f"it is {CANARY}", PICTURE),
        (f"please ask ops of {CANARY}", f"{CANARY} again", PICTURE),
        ("chat", f"it is {CANARY}", PICTURE),
    ]
    assert lying == []
    assert where(log_url, tmp_path, CANARY.encode()) == []


@pytest.mark.clause("CRYPT-2", "CRYPT-4")
def test_a_door_with_the_keys_shows_the_words_until_they_are_forgotten(booth: Booth, tmp_path: Path) -> None:
    config = with_door(with_key(master_key(tmp_path)))
    system = booth.start(AGENTS, {"chat": MemoryChannel()}, config)
    said(system, f"tell me of {CANARY}")
    at_rest(system)
    with writing(system), door(booth.url, config) as front:
        assert CANARY in words(booth.url)
        assert front.system.debug.search(CANARY)["hits"]
        answer = system.erase(MAIN)
        assert not any("backups" in one for one in answer["notReached"])  # nor what a server has archived
        front.system.log.wait_for(system.log.head(), timeout=WAIT)
        assert front.system.debug.search(CANARY)["hits"] == []
        history = str(front.system.gateway.call("chat.history", {"sessionKey": MAIN}))
        assert (history.count("[erased]"), history.count(CANARY)) == (2, 0)
    other = merged(config, with_key(master_key(tmp_path, byte=8, name="other.key")))
    with writing(system), pytest.raises(BadKey, match="is not the master key of"), door(booth.url, other):
        pass


@pytest.mark.ci
@pytest.mark.clause("CRYPT-2")
@pytest.mark.parametrize("how", ["--standby", "--follow"])
def test_a_host_beside_the_writer_is_refused_at_once_without_the_keys(
    booth: Booth, tmp_path: Path, how: str
) -> None:
    config = with_door(with_key(master_key(tmp_path)))
    system = booth.start(AGENTS, {"chat": MemoryChannel()}, config)
    said(system, f"tell me of {CANARY}")
    given, keys = tmp_path / "host.json", Path(f"{located(booth.url).place}.keys")

    def refused(**encryption: Any) -> str:
        given.write_text(json.dumps(merged(config, encryption)), encoding="utf-8")
        host = ForkedCommand(
            ["serve", how, "--config", str(given), "--store", booth.url, "--port", "0"], environment()
        )
        out, error = host.communicate(timeout=WAIT)
        assert host.returncode == 1, out
        return f"{out}{error}"

    with writing(system):
        assert "is not the master key of" in refused(**with_key(master_key(tmp_path, byte=8, name="other")))
        lost = keys.rename(tmp_path / "lost.keys")
        assert f"its keys are not at {keys}" in refused()
        lost.rename(keys)


KILLED = """
import sys
from intersession import SessionSystem
from intersession_events.basics import crash_points
url, point = sys.argv[1:]
with SessionSystem(url, agents={"main": lambda turn: "heard"}) as system:
    crash_points.arm(crash_points.kill_at(point, 1))
    if point == "Y1":
        sent = {"sessionKey": "agent:main:other", "message": "zanzibar", "idempotencyKey": "1"}
        system.gateway.call("chat.send", sent)
    else:
        system.erase("agent:main:main")
"""


@pytest.mark.ci
@pytest.mark.clause("CRYPT-4", "Y1", "Y2")
@pytest.mark.parametrize("point", ["Y1", "Y2"])
def test_a_writer_that_dies_beside_its_keys_leaves_none_that_should_be_gone(
    booth: Booth, tmp_path: Path, point: str
) -> None:
    system = booth.start(AGENTS, {"chat": MemoryChannel()}, with_key(master_key(tmp_path)))
    said(system, f"tell me of {CANARY}")
    at_rest(system)
    system.close()
    died = subprocess.run([sys.executable, "-c", KILLED, booth.url, point], check=False, timeout=60)
    assert died.returncode == -signal.SIGKILL
    assert "agent:main:main" in " ".join(held_keys(booth.url))

    again = booth.start(AGENTS, {"chat": MemoryChannel()})
    left = [owner for owner in held_keys(booth.url) if "agent:main:main" in owner]
    assert left == ([f"session:{MAIN}"] if point == "Y1" else [])
    assert verified(again).ok
    said(again, "and we go on")
    assert where(booth.url, tmp_path, CANARY.encode()) == []


@pytest.mark.clause("CRYPT-4")
def test_rows_are_copied_encrypted_where_a_backup_has_to_forget(booth: Booth, tmp_path: Path) -> None:
    system = booth.start(AGENTS, {"chat": MemoryChannel()}, with_key(master_key(tmp_path)))
    said(system, f"tell me of {CANARY}")
    log = cast("PortableLog", system.log)
    with log.as_stored():
        assert not any(CANARY.encode() in row[4] for row in log.rows())
    assert any(CANARY.encode() in row[4] for row in log.rows())


@pytest.mark.ci
@pytest.mark.clause("CRYPT-6")
def test_what_takes_words_out_of_a_log_has_them_or_is_not_made(booth: Booth, tmp_path: Path) -> None:
    master = master_key(tmp_path)
    system = booth.start(AGENTS, {"chat": MemoryChannel()}, with_key(master))
    said(system, f"tell me of {CANARY}")
    run = recorded(system, RunCompleted)[0].run_id
    system.close()
    made = ran("bundle", "--all", "-o", tmp_path / "with.zip", "--store", booth.url, "--json")
    assert made.exit_code == 0
    assert CANARY in zipfile.ZipFile(tmp_path / "with.zip").read("events.jsonl").decode()
    checked = ran("verify", tmp_path / "with.zip")
    assert checked.exit_code == 0
    master.unlink()
    out = tmp_path / "without"
    for command in (
        ("bundle", "--all", "-o", out),
        ("export", "--to", "cloudevents", out),
        ("export", "openclaw", out),
        ("export-test", run, "-o", f"{out}.py"),
    ):
        refused = ran(*command, "--store", booth.url, "--json")
        assert refused.exit_code == 1
        assert "master.key, with the master key, can't be read" in refused.out + refused.err
        assert [*tmp_path.glob("without*")] == []
    refused = ran("fork", run, "--at", "end", "--store", booth.url, "--json")
    assert "their key" in refused.out + refused.err


def written_in_clear(booth: Booth) -> None:
    """Write a log with a file, a fork and an index of its words."""
    system = booth.start(AGENTS, {"chat": MemoryChannel()})
    said(system, f"tell me of {CANARY}", "please ask ops")
    said(system, f"{CANARY} again", files=[File(data=PICTURE, name=f"{CANARY}.png")])
    closed_exchange(system, recorded(system, RunCompleted)[1].run_id)
    at_rest(system)
    assert system.debug.search(CANARY)["hits"]
    with system.fork(recorded(system, RunCompleted)[-1].run_id, at="end", agents={"main": main}):
        pass
    system.close()


@pytest.mark.ci
@pytest.mark.clause("CRYPT-7")
def test_what_is_in_clear_from_before_is_told(booth: Booth, tmp_path: Path) -> None:
    written_in_clear(booth)
    booth.start(AGENTS, {}, with_key(master_key(tmp_path))).close()

    shown, found = ran("encryption", "show", "--store", booth.url), ran("doctor", "--store", booth.url)
    first = ran("encryption", "show", "--store", booth.url, "--json").json["clearFrom"]

    with open_log(booth.url, read_only=True) as log:
        assert min(one.position for one in log.all() if may_say(one.event)) == first
    assert [f"from #{first} on" in shown.out, f"from position {first} on" in found.out] == [True, True]
    applied(booth, tmp_path)
    assert ran("encryption", "show", "--store", booth.url, "--json").json["clearFrom"] is None
    assert "in clear" not in ran("doctor", "--store", booth.url).out


def applied(booth: Booth, folder: Path) -> Any:
    given = folder / "host.json"
    given.write_text(json.dumps(with_key(master_key(folder))))
    return ran("encryption", "apply", "--store", booth.url, "--config", given, "--json")


@pytest.mark.clause("CRYPT-7")
def test_what_was_written_before_is_encrypted_where_it_stands(booth: Booth, tmp_path: Path) -> None:
    written_in_clear(booth)
    assert where(booth.url, tmp_path, CANARY.encode()) != []
    with open_log(booth.url, read_only=True) as log:
        before = [(one.position, one.hash) for one in log.all()]

    done = applied(booth, tmp_path)

    assert (done.exit_code, done.json["ok"], done.json["files"] > 0, done.json["forks"]) == (0, True, True, 1)
    assert where(booth.url, tmp_path, CANARY.encode(), hashlib.sha256(PICTURE).hexdigest().encode()) == []
    assert CANARY in words(booth.url)
    with open_log(booth.url, read_only=True) as log:
        assert [(one.position, one.hash) for one in log.all()] == before
        assert log.files.read(hashlib.sha256(PICTURE).hexdigest()) == PICTURE
    clear = Path(f"{located(booth.url).place}.files") / hashlib.sha256(PICTURE).hexdigest()
    if is_left := clear.parent.is_dir():
        clear.write_bytes(PICTURE)  # as a kill leaves it, which its encryption has already
    again = applied(booth, tmp_path).json
    assert (again["payloads"], again["files"], clear.exists()) == (0, is_left, False)
    system = booth.start(AGENTS, {"chat": MemoryChannel()})
    said(system, f"and {CANARY} once more")
    at_rest(system)
    assert verified(system).ok
    assert system.erase(MAIN)["counts"]["keys"] > 1
    assert where(booth.url, tmp_path, CANARY.encode()) == []


@pytest.mark.ci
@pytest.mark.clause("CRYPT-7", "COPY-1")
def test_copies_in_the_folder_that_are_in_clear_are_named(booth: Booth, tmp_path: Path) -> None:
    written_in_clear(booth)
    with open_log(booth.url, read_only=True) as log:
        if log.is_remote:
            return  # a database has no copies beside it
        folder = Path(log.place).parent
        back_up(log, folder / "before.db")

    done = applied(booth, tmp_path)

    assert [one for one in done.json["notReached"] if "in its folder" in one] == [
        "copies of the log in its folder, delete them: before.db"
    ]
    with open_log(booth.url, read_only=True) as log:
        back_up(log, folder / "behind.db")
        first = min(one.position for one in log.all() if may_say(one.event))
    before, behind = (
        ran("backup", folder / f"{name}.db", "--store", booth.url, "--json") for name in ("before", "behind")
    )
    assert (before.json["clearFrom"], behind.json["clearFrom"]) == (first, None)
    assert f"it has words in clear, from #{first} on" in before.err
    assert "in clear" not in behind.err
    (folder / "before.db").unlink()
    assert not any("in its folder" in one for one in applied(booth, tmp_path).json["notReached"])


@pytest.mark.ci
@pytest.mark.clause("CRYPT-7")
def test_calls_that_wait_are_encrypted_where_they_stand(booth: Booth, tmp_path: Path) -> None:
    master = source(master_key(tmp_path))
    offer = Offer(
        kind="channel",
        id=LOG_ID,
        attempt=1,
        name="chat",
        stream="delivery:1",
        version=1,
        secret="s",
        content=f'{{"text":"{CANARY}"}}'.encode(),
    )
    with open_log(booth.url) as log:
        log.work.offer([offer])
        worker = Worker(name="w", host="h", version="1", agents={}, channels={"chat": "{}"}, seats=1)
        log.work.to_take.announce(worker)
        log.work.to_take.take("w", 1, 0)
        log.work.to_take.answer("w", offer.call, f'{{"said":"{CANARY}"}}'.encode())
    assert where(booth.url, tmp_path, CANARY.encode()) != []
    with open_log(booth.url, encryption=Encryption(master)) as log:
        assert encrypted_in_place(log) == (0, 0)
        assert log.let_go(anew=True) == []
        assert [CANARY in str(one.content) for one in log.work.answers()] == [True]
    assert where(booth.url, tmp_path, CANARY.encode()) == []


@pytest.mark.clause("CRYPT-7")
def test_nothing_is_encrypted_without_a_master_key_or_beside_a_host(booth: Booth, tmp_path: Path) -> None:
    nothing = ran("encryption", "apply", "--store", booth.url, "--json")
    assert (nothing.exit_code, nothing.json["code"]) == (3, "no_store")
    system = booth.start(AGENTS)
    beside_a_host = applied(booth, tmp_path)
    assert (beside_a_host.exit_code, beside_a_host.json["code"]) == (3, "store_locked")
    system.close()
    nameless = ran("encryption", "apply", "--store", booth.url, "--json")
    assert (nameless.exit_code, "encryption.keys" in nameless.json["error"]) == (2, True)
    assert applied(booth, tmp_path).exit_code == 0
    master_key(tmp_path, byte=8)
    other = ran("encryption", "apply", "--store", booth.url, "--json")
    assert "is not the master key of" in other.json["error"]


APPLIED = """
import sys
from intersession_events.basics import crash_points
from intersession_events.copies.encrypting import encrypted_in_place
from intersession_events.stores.keys.source import Encryption, Source
from intersession_events.stores.opened import open_log
url, master, times = sys.argv[1:]
crash_points.arm(crash_points.kill_at("Y3", int(times)))
with open_log(url, encryption=Encryption(Source(file=master))) as log:
    encrypted_in_place(log, page=5)
"""


@pytest.mark.ci
@pytest.mark.clause("CRYPT-7", "Y3")
def test_a_log_whose_encryption_was_killed_is_whole_and_is_encrypted_by_the_next(
    booth: Booth, tmp_path: Path
) -> None:
    written_in_clear(booth)
    master = str(master_key(tmp_path))
    for times in ("1", "3"):
        died = subprocess.run(
            [sys.executable, "-c", APPLIED, booth.url, master, times], check=False, timeout=60
        )
        assert died.returncode == -signal.SIGKILL
        with open_log(booth.url, read_only=True) as log:
            assert verify_log(log).ok
    system = booth.start(AGENTS, {"chat": MemoryChannel()})
    said(system, "and we go on")
    at_rest(system)
    system.close()
    assert applied(booth, tmp_path).json["payloads"] > 0
    assert where(booth.url, tmp_path, CANARY.encode()) == []
    assert CANARY in words(booth.url)


@pytest.mark.ci
@pytest.mark.clause("CRYPT-8", "CRYPT-4")
def test_a_copy_without_keys_follows_an_encrypted_log_and_proves_it(booth: Booth, tmp_path: Path) -> None:
    token = "a-token-for-copies-0123456789"
    of_copies = {
        "gateway": {"auth": {"credentials": [{"name": "copies", "token": token, "scopes": ["copy"]}]}}
    }
    config = merged(with_key(master_key(tmp_path)), of_copies)
    system = booth.start(AGENTS, {"chat": MemoryChannel()}, config)
    mirror = LogCopy(tmp_path / "there" / "copy.db")
    mirror.path.parent.mkdir()
    with LiveGateway(system) as live:
        said(system, f"tell me of {CANARY}", files=[File(data=PICTURE)])
        at_rest(system)
        system.checkpoint()
        first = mirror.take(GatewaySource(live.address, token))
        report = ran("verify", "--store", mirror.path, "--json").json
        assert (first.checked > 0, first.files, report["findings"]) == (True, 1, [])
        assert (report["ok"], report["encrypted"] >= 4) == (True, True), report
        # That it was taken is on record, under a key of its own, before the keys are copied.
        until(lambda: system.log.stream("access:credential:copies"))
        shutil.copy(f"{located(booth.url).place}.keys", f"{mirror.path}.keys")
        assert CANARY in words(str(mirror.path))  # whoever has the keys and the master key reads it
        system.erase(MAIN)
        mirror.take(GatewaySource(live.address, token))
    with open_log(str(mirror.path), read_only=True) as log:
        assert verify_log(log).ok
    assert CANARY not in words(str(mirror.path))
    assert where(booth.url, tmp_path, CANARY.encode()) == []


@pytest.mark.ci
@pytest.mark.clause("CRYPT-2", "CRYPT-3")
def test_commands_show_and_rotate_keys_and_say_what_is_missing(booth: Booth, tmp_path: Path) -> None:
    plain = ran("encryption", "show", "--store", booth.url)
    assert plain.exit_code != 0  # there is no log yet
    system = booth.start(AGENTS, {"chat": MemoryChannel()}, with_key(master_key(tmp_path)))
    said(system, f"tell me of {CANARY}")
    system.close()
    shown = ran("encryption", "show", "--store", booth.url, "--json").json
    assert (shown["encrypted"], shown["keys"], shown["destroyed"], shown["sessions"]) == (True, 2, 0, "all")
    assert shown["masterKey"] == f"the file {tmp_path / 'master.key'}"
    none = ran("encryption", "rotate", "--store", booth.url)
    assert "give one of --file, --keyring and --command" in none.out + none.err
    refused = ran("rebuild", "search", "--store", booth.url)
    assert "the log is encrypted, and each process makes it in memory" in refused.out + refused.err
    assert ran("rebuild", "--store", booth.url).exit_code == 0
    assert where(booth.url, tmp_path, CANARY.encode()) == []
    new = master_key(tmp_path, byte=9, name="new.key")
    assert ran("encryption", "rotate", "--file", new, "--store", booth.url, "--json").json["keys"] == 2
    (tmp_path / "master.key").unlink()
    assert CANARY in ran("history", "main", "--store", booth.url).out
    new.unlink()
    found = ran("doctor", "--store", booth.url, "--json").json["findings"]
    assert "keys_away" in [one["code"] for one in found]
    assert "can't be read" in ran("encryption", "show", "--store", booth.url).out


@pytest.mark.ci
def test_a_plain_log_has_no_keys_to_be_shown_or_rotated(booth: Booth, tmp_path: Path) -> None:
    booth.start(AGENTS).close()
    assert "it is not kept encrypted" in ran("encryption", "show", "--store", booth.url).out
    new = master_key(tmp_path)
    refused = ran("encryption", "rotate", "--file", new, "--store", booth.url)
    assert "is not kept encrypted, so it has no keys" in refused.out + refused.err


@pytest.mark.ci
@pytest.mark.clause("CRYPT-2", "CRYPT-4")
def test_a_backup_is_restored_beside_its_keys_and_without_what_was_forgotten_since(
    booth: Booth, tmp_path: Path, logs: Any
) -> None:
    system = booth.start(AGENTS, {"chat": MemoryChannel()}, with_key(master_key(tmp_path)))
    said(system, f"tell me of {CANARY}", files=[File(data=PICTURE)])
    sent = {"sessionKey": OPS, "message": f"about {CANARY}", "idempotencyKey": "1"}
    system.gateway.call("agent.wait", {"runId": system.gateway.call("chat.send", sent).get("runId", "")})
    at_rest(system)
    rows = () if logs.are_files else ("--rows",)  # else it is a dump
    made = ran("backup", tmp_path / "copy.db", "--store", booth.url, *rows)
    assert rows or f"keep a copy of {located(booth.url).place}.keys" in made.out
    system.erase(MAIN)
    said(system, "we begin anew")
    system.close()
    target = logs.at(tmp_path / "there", "restored")
    place = Path(f"{located(target).place}.keys")
    place.parent.mkdir(parents=True, exist_ok=True)
    refused = ran("restore", tmp_path / "copy.db", "--store", target)
    assert "its keys are not at" in refused.out + refused.err
    shutil.copy(f"{located(booth.url).place}.keys", place)
    restored = ran("restore", tmp_path / "copy.db", "--store", target)
    assert (restored.exit_code, restored.err) == (0, "")
    assert words(target).count(CANARY) == 2  # to ops, and of it: nobody has these forgotten
    assert "[encrypted]" in words(target)
    assert where(target, tmp_path, CANARY.encode()) == []
    assert ran("verify", "--store", target).exit_code == 0
