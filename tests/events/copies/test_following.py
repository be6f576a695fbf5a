"""Copies that are continued: what is new is proven, what was erased goes, and a log that was changed is refused."""

import base64
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from intersession import File, MemoryChannel, SessionSystem, echo
from intersession_events.basics.errors import BackupFailed, LogRewritten
from intersession_events.copies.following.source import LogSource, Reads
from intersession_events.copies.following.taking import Continued, LogCopy
from intersession_events.facts import DeliveryDone
from intersession_events.log.verifying.verification import verify_log
from intersession_events.proofs import new_private, published_in, write_private
from intersession_events.proofs.signatures import Trusted
from intersession_events.proofs.statement import Checkpoint
from intersession_events.stores.backup import back_up
from intersession_events.stores.opened import open_log
from support.any_log import Logs
from support.log_drafts import anywhere, said
from support.running import wait_for_number

WAIT = 20
CANARY = "the canary of Monday sings"


def speak(system: SessionSystem, *texts: str) -> None:
    for text in texts:
        system.inbound(channel="telegram", chat_id="1", sender="ada", text=text, wait=WAIT)


def taken(url: str, copy: LogCopy) -> Continued:
    with open_log(url, read_only=True) as log:
        return copy.take(LogSource(log))


def rows(url: str) -> list[tuple[object, ...]]:
    with open_log(url, read_only=True) as log:
        return [tuple(row) for row in log.rows(limit=100_000)]


@pytest.fixture
def url(logs: Logs, tmp_path: Path) -> str:
    return logs.at(tmp_path)


@pytest.mark.clause("COPY-1")
def test_a_copy_has_each_time_all_that_the_log_has(url: str, tmp_path: Path) -> None:
    copy = LogCopy(tmp_path / "copy.db")
    with SessionSystem(url, agents={"main": echo()}, channels={"telegram": MemoryChannel()}) as system:
        speak(system, CANARY, "two")
        system.checkpoint()
        first = taken(url, copy)
        speak(system, "three")
        system.checkpoint()
        second = taken(url, copy)
        again = taken(url, LogCopy(copy.path))
        system.erase("agent:main:main", unsent="giveUp", reason="asked for")
        third = taken(url, copy)
    last = taken(url, copy)

    assert (first.before, first.position > 10, first.checked > 10) == (0, True, True)
    assert (second.before, second.position > first.position) == (first.position, True)
    assert (again.before, again.erased) == (second.position, 0)
    assert third.erased > 3
    assert last.position >= third.position
    assert rows(str(copy.path)) == rows(url)
    with open_log(str(copy.path), read_only=True) as log:
        report = verify_log(log)
    assert (report.ok, report.erased >= third.erased) == (True, True)
    assert all(CANARY.encode() not in file.read_bytes() for file in tmp_path.glob("copy.db*"))


@pytest.mark.clause("COPY-1")
def test_a_whole_backup_is_continued_and_keeps_no_snapshot_and_no_call_of_a_worker(tmp_path: Path) -> None:
    url = str(tmp_path / "log.db")
    with SessionSystem(url, agents={"main": echo()}, channels={"telegram": MemoryChannel()}) as system:
        speak(system, CANARY)
        with open_log(url, read_only=True) as log:
            back_up(log, tmp_path / "copy.db")
        speak(system, "two")
        done = taken(url, LogCopy(tmp_path / "copy.db"))
    assert done.before > 0
    with SessionSystem(str(tmp_path / "copy.db"), agents={"main": echo()}) as restored:
        assert restored.tools().call("sessions_history", {"sessionKey": "agent:main:main"})["messages"]


@pytest.mark.clause("COPY-1", "B3")
def test_files_that_were_erased_are_gone_from_a_copy_whatever_becomes_of_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before: they were removed behind the commit, and after a kill there no later backup looked for them."""
    url, copy = str(tmp_path / "log.db"), LogCopy(tmp_path / "copy.db")
    with SessionSystem(url, agents={"main": echo()}, channels={"telegram": MemoryChannel()}) as system:
        paper = File(data=f"%PDF-1.4 {CANARY}".encode(), mime_type="application/pdf", name="a.pdf")
        system.inbound(channel="telegram", chat_id="1", sender="ada", text="see", files=[paper], wait=WAIT)
        wait_for_number(system, DeliveryDone, 1)
        assert taken(url, copy).files == 1
        system.erase("agent:main:main", reason="asked for")

    def dies(point: str) -> None:
        if point == "B4":
            raise KeyboardInterrupt

    with monkeypatch.context() as killed:
        killed.setattr("intersession_events.copies.following.taking.crash_point", dies)
        with pytest.raises(KeyboardInterrupt):
            taken(url, copy)
    assert taken(url, LogCopy(copy.path)).erased == 0
    assert list(Path(f"{copy.path}.files").iterdir()) == []


@pytest.mark.clause("COPY-2")
def test_a_copy_is_held_against_what_was_published_and_signed(url: str, tmp_path: Path) -> None:
    key = new_private(lambda size: b"k" * size)
    write_private(key, tmp_path / "key.pem")
    lines = tmp_path / "lines.jsonl"
    signed = {"checkpoints": {"keyFile": str(tmp_path / "key.pem"), "publish": {"file": str(lines)}}}
    channels = {"telegram": MemoryChannel()}
    with SessionSystem(url, agents={"main": echo()}, channels=channels, config=signed) as system:
        speak(system, "one")
        system.checkpoint()
        speak(system, "two")
        system.checkpoint()
    published = published_in(lines.read_bytes())
    done = taken(url, LogCopy(tmp_path / "copy.db", published=published, trusted=Trusted([key.public])))
    assert done.signed == done.checked >= done.published == published[-1].position > 0
    learning = LogCopy(tmp_path / "l.db")
    assert taken(url, learning).published == 0
    learning.know(published)
    assert taken(url, learning).published == published[-1].position
    learning.know([msgspec.structs.replace(published[-1], position=10**6)])
    with pytest.raises(LogRewritten, match="1000000 was published"):
        taken(url, learning)
    gone = msgspec.structs.replace(published[-1], position=published[-1].position - 1)
    with pytest.raises(LogRewritten, match="that was published is not in the log"):
        taken(url, LogCopy(learning.path, published=[gone]))
    following = LogCopy(tmp_path / "f.db", trusted=Trusted([key.public]))
    before = taken(url, following)
    with (
        pytest.raises(BackupFailed, match="is a copy of the log"),
        open_log(str(tmp_path / "else.db")) as other_log,
    ):
        following.take(LogSource(other_log))
    assert taken(url, following).signed == before.signed > 0

    other = new_private(lambda size: b"o" * size).public
    last = published[-1]
    assert isinstance(last, Checkpoint)
    forged = msgspec.structs.replace(last, rolling="0" * 64)
    with pytest.raises(LogRewritten, match=r"another checkpoint of position \d+ was published"):
        taken(url, LogCopy(tmp_path / "b.db", published=[forged]))
    beyond = msgspec.structs.replace(last, position=10**6)
    with pytest.raises(LogRewritten, match="1000000 was published, and the log ends at"):
        taken(url, LogCopy(tmp_path / "c.db", published=[beyond]))
    assert taken(url, LogCopy(tmp_path / "d.db", trusted=Trusted([other]))).signed == 0


def changed(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as database:
        for statement in statements:
            database.execute(statement)
        database.commit()


TAMPERED: dict[str, tuple[str, ...]] = {
    "its end was cut off": ("DELETE FROM stored_events WHERE rowid > 3",),
    "another event stands at position 5": (
        "UPDATE stored_events SET state=(SELECT state FROM stored_events WHERE rowid=2) WHERE rowid=5",
    ),
    "position 7: ": ("UPDATE stored_events SET topic='run_started.1' WHERE rowid=7",),
    "does not follow the event before it": ("DELETE FROM stored_events WHERE rowid=6",),
    "the hash is another one": ("UPDATE stored_events SET originator_id='session:y' WHERE rowid=8",),
}


@pytest.mark.sqlite("changes the file")
@pytest.mark.clause("COPY-2")
@pytest.mark.parametrize("problem", TAMPERED)
def test_a_log_that_was_changed_is_refused_and_the_copy_stays(tmp_path: Path, problem: str) -> None:
    path = tmp_path / "log.db"
    copy = LogCopy(tmp_path / "copy.db")
    with open_log(str(path)) as log:
        log.append_now([anywhere("session:x", *(said(f"m{number}") for number in range(5)))])
        log.append_now([anywhere("session:x", *(said(f"n{number}") for number in range(0)))])
    taken(str(path), copy)
    with open_log(str(path)) as log:
        log.append_now([anywhere("session:x", *(said(f"o{number}") for number in range(5)))])
    before = rows(str(copy.path))
    changed(path, *TAMPERED[problem])

    with pytest.raises(LogRewritten, match=problem):
        taken(str(path), copy)
    assert rows(str(copy.path)) == before


@pytest.mark.sqlite("damages the file")
@pytest.mark.clause("COPY-2")
@given(st.data())
def test_no_byte_of_a_new_event_is_copied_that_is_not_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("bytes")
    with open_log(str(folder / "log.db")) as log:
        log.append_now([anywhere("session:x", *(said(f"m{number}") for number in range(4)))])
    position = data.draw(st.integers(1, 4))
    with closing(sqlite3.connect(folder / "log.db")) as database:
        ((state,),) = database.execute("SELECT state FROM stored_events WHERE rowid=?", (position,))
        at = data.draw(st.integers(0, len(state) - 1))
        bit = 1 << data.draw(st.integers(0, 7))
        state = state[:at] + bytes([state[at] ^ bit]) + state[at + 1 :]
        database.execute("UPDATE stored_events SET state=? WHERE rowid=?", (state, position))
        database.commit()

    with pytest.raises(BackupFailed):
        taken(str(folder / "log.db"), LogCopy(folder / "copy.db"))


@pytest.mark.clause("COPY-1")
def test_what_is_no_copy_of_this_log_is_refused(tmp_path: Path) -> None:
    for name in ("log.db", "other.db"):
        with open_log(str(tmp_path / name)) as log:
            log.append_now([anywhere("session:x", said("a"))])
    (tmp_path / "text.db").write_text("mine", encoding="utf-8")
    source = str(tmp_path / "log.db")

    with pytest.raises(BackupFailed, match=r"is a copy of the log .*: name another file"):
        taken(source, LogCopy(tmp_path / "other.db"))
    with pytest.raises(BackupFailed, match="is no copy that can be continued"):
        taken(source, LogCopy(tmp_path / "text.db"))
    taken(source, LogCopy(tmp_path / "copy.db"))
    with open_log(str(tmp_path / "copy.db")) as busy:
        busy.append_now([anywhere("session:y", said("b"))])
        with pytest.raises(BackupFailed, match="a process writes to"):
            taken(source, LogCopy(tmp_path / "copy.db"))
    with pytest.raises(LogRewritten, match="it ends at position 1, and the copy has 2"):
        taken(source, LogCopy(tmp_path / "copy.db"))


class Earlier(LogSource):
    """Says of a log what was so before its last events, as a gateway does that writes while it is asked."""

    @contextmanager
    def reading(self) -> Generator[Reads]:
        with super().reading() as seen:
            earlier = partial(seen.known()._replace, topics=())
            with patch.object(seen, "known", earlier):
                yield seen


@pytest.mark.clause("COPY-1")
def test_events_of_kinds_that_came_while_it_was_copied_are_in_a_copy_that_verifies(
    log_url: str, tmp_path: Path
) -> None:
    with open_log(log_url) as log:
        log.append_now([anywhere("session:x", said("a"))])
        LogCopy(tmp_path / "copy.db").take(Earlier(log))
    with open_log(str(tmp_path / "copy.db"), read_only=True) as copied:
        assert verify_log(copied).findings == ()


@pytest.mark.clause("COPY-1", "CRYPT-4", "CRYPT-5")
def test_what_is_encrypted_is_so_in_copies_and_needs_no_key_to_be_copied(tmp_path: Path) -> None:
    master = tmp_path / "master.key"
    master.touch(mode=0o600)
    master.write_text(base64.b64encode(b"m" * 32).decode(), encoding="utf-8")
    config = {"encryption": {"keys": {"file": str(master)}}}
    url, whole, copy = str(tmp_path / "log.db"), tmp_path / "whole.db", LogCopy(tmp_path / "copy.db")
    channels = {"telegram": MemoryChannel()}
    with SessionSystem(url, agents={"main": echo()}, channels=channels, config=config) as system:
        photo = File(data=f"%PDF-1.4 {CANARY}".encode(), mime_type="application/pdf", name="a.pdf")
        system.inbound(channel="telegram", chat_id="1", sender="ada", text=CANARY, files=[photo], wait=WAIT)
        with open_log(url, read_only=True) as log:
            back_up(log, whole)
        first = taken(url, copy)
        copied = [
            sorted(file.name for file in Path(f"{one}.files").iterdir()) for one in (url, whole, copy.path)
        ]
        wait_for_number(system, DeliveryDone, 1)
        system.erase("agent:main:main", reason="asked for")
        second = taken(url, copy)

    assert (first.files, len(copied[0])) == (1, 1)
    assert copied[0] == copied[1] == copied[2]
    assert second.erased > 0
    assert list(Path(f"{copy.path}.files").iterdir()) == []
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or CANARY.encode() not in file.read_bytes(), file
    with open_log(str(copy.path), read_only=True) as log:
        assert verify_log(log).ok
