"""The wrapped keys of a log, and what they encrypt (CRYPT): rows come back as they were, and nothing that was changed does."""

import base64
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intersession_events.basics.errors import BadKey, StoreUnavailable
from intersession_events.facts import Event, RunFailed, encode, topic_of
from intersession_events.log.envelope import FIRST, seal, unseal
from intersession_events.log.recorded import Draft
from intersession_events.log.row_state import opened
from intersession_events.stores.keys.keyring import Keyring
from intersession_events.stores.keys.opening import keys_at, keys_to_write
from intersession_events.stores.keys.records import KeyFile, KeyRecords
from intersession_events.stores.keys.source import VARIABLE, Encryption, Source
from intersession_events.stores.keys.wrapping import header_of
from support.encrypted import master_key, source

LOG = "00000000-0000-4000-8000-000000000001"
STREAM = "session:agent:main:main"


@pytest.fixture
def file(tmp_path: Path) -> KeyFile:
    return KeyFile(tmp_path / "log.db.keys")


@pytest.fixture
def keys(tmp_path: Path, file: KeyFile) -> Keyring:
    return made(tmp_path, file)


def made(folder: Path, file: KeyFile) -> Keyring:
    found = written(file, Encryption(source(master_key(folder))))
    assert found is not None
    return found


def written(file: KeyFile, wanted: Encryption) -> Keyring | None:
    return keys_to_write(file, keys_at(file, wanted, writes=True), wanted)


def again(file: KeyFile) -> Keyring:
    found = keys_at(file, writes=False)
    assert found is not None
    return found


def stored(keys: Keyring, event: Event, *, id_: str = LOG) -> tuple[bytes, bytes]:
    """Return the state of an event's row, as it is and encrypted."""
    state, recorded = seal(
        Draft(event=event, id=id_, time=1),
        topic_of(event),
        encode(event),
        log_id=LOG,
        stream=STREAM,
        version=1,
        epoch=1,
        prev=FIRST,
        salt=bytes(range(16)),
    )
    return state, keys.sealed(state, recorded)


def failed(words: str) -> Event:
    return RunFailed(run_id=LOG, attempt=1, code="timeout", error=words)


@pytest.mark.clause("CRYPT-1")
@settings(max_examples=15, deadline=None)
@given(
    words=st.text(min_size=1, max_size=60).filter(lambda text: text.isprintable()),
    id_=st.sampled_from([LOG, "x"]),
)
def test_a_row_comes_back_as_it_was_byte_for_byte(
    tmp_path_factory: pytest.TempPathFactory, words: str, id_: str
) -> None:
    folder = tmp_path_factory.mktemp("keys")
    keys = made(folder, KeyFile(folder / "log.db.keys"))
    state, sealed = stored(keys, failed(words), id_=id_)
    assert sealed != state
    assert keys.clear(sealed) == state
    assert encode(failed(words))[10:] not in sealed
    assert opened(sealed, where="it").hash == opened(state, where="it").hash


@pytest.mark.clause("CRYPT-1", "WORK-18")
@settings(max_examples=15, deadline=None)
@given(one=st.binary(max_size=40), other=st.binary(max_size=40))
def test_data_beside_rows_comes_back_and_no_nonce_twice_but_with_the_same_data(
    tmp_path_factory: pytest.TempPathFactory, one: bytes, other: bytes
) -> None:
    folder = tmp_path_factory.mktemp("keys")
    keys = made(folder, KeyFile(folder / "log.db.keys"))
    first, second = keys.locked(one, STREAM), keys.locked(other, STREAM)
    nonce = slice(16, 28)  # behind the id of the key
    assert (keys.unlocked(first), keys.unlocked(second)) == (one, other)
    assert (first == second) == (first[nonce] == second[nonce]) == (one == other)
    assert keys.locked(one, "another")[nonce] != first[nonce]


@pytest.mark.clause("CRYPT-4")
def test_a_key_is_destroyed_without_reading_all_others_again_however_it_is_written(
    keys: Keyring, file: KeyFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys.prepare(["session:a", "session:b", "session:c"])
    header, first, *others = Path(file.shown).read_text().splitlines(keepends=True)
    turned = json.dumps(dict(reversed(json.loads(first).items())), separators=(",", ":")) + "\n"
    Path(file.shown).write_text("".join([header, turned, *others]))
    assert keys.of("session:a") is not None
    keys.all()
    monkeypatch.setattr(KeyFile, "load", None)
    keys.destroy(keys.ids(["session:a", "session:b"]), 1)
    assert [keys.of(f"session:{name}") is None for name in "abc"] == [True, True, False]
    monkeypatch.undo()
    assert [key.owner for key in again(file).all() if key.destroyed is None] == ["session:c"]


@pytest.mark.clause("CRYPT-6")
def test_each_changed_letter_of_a_ciphertext_is_noticed(keys: Keyring) -> None:
    _, sealed = stored(keys, failed("the words"))
    envelope = opened(sealed, where="it")
    for at in range(len(envelope.sealed)):
        letter = "A" if envelope.sealed[at] != "A" else "B"
        altered = envelope.sealed[:at] + letter + envelope.sealed[at + 1 :]
        state = sealed.replace(envelope.sealed.encode(), altered.encode())
        assert keys.clear(state) == state
        assert keys.look(opened(state, where="it")) not in {"away", "destroyed"}


@pytest.mark.clause("CRYPT-1")
def test_an_event_without_words_is_stored_as_ever(keys: Keyring) -> None:
    state, sealed = stored(keys, RunFailed(run_id=LOG, attempt=1, code="timeout", error=""))
    assert sealed == state
    assert keys.all() == ()


@pytest.mark.clause("CRYPT-3", "CRYPT-4")
def test_no_key_is_left_by_a_change_that_was_killed_once_it_is_destroyed(
    tmp_path: Path, file: KeyFile, keys: Keyring
) -> None:
    name, _ = keys.key_of(STREAM)
    part = tmp_path / "log.db.keys.part"
    shutil.copy(file.shown, part)  # as whoever rotated them has left it

    keys.destroy([name], 9)

    assert not part.exists()


@pytest.mark.clause("CRYPT-2")
def test_without_its_key_a_row_is_read_without_its_words(keys: Keyring) -> None:
    _, sealed = stored(keys, failed("the words"))
    found = unseal(log_id=LOG, position=1, stream=STREAM, version=1, topic=topic_of(failed("")), state=sealed)
    assert found.event == failed("[encrypted]")


@pytest.mark.clause("CRYPT-4")
def test_a_destroyed_key_is_written_over_where_it_stood(keys: Keyring, file: KeyFile) -> None:
    _, sealed = stored(keys, failed("the words"))
    keys.prepare(["session:other"])
    before = Path(file.shown).read_text()
    wrapped = keys.all()[0]
    keys.destroy([wrapped.id], 1_700_000_000_000)
    after = Path(file.shown).read_text()
    assert len(after) == len(before)
    assert wrapped.key not in after
    assert keys.clear(sealed) == sealed
    assert keys.look(opened(sealed, where="it")) == "destroyed"
    assert [key.destroyed for key in again(file).all()] == [1_700_000_000_000, None]
    _, other = stored(keys, failed("later words"))
    assert opened(other, where="it").sealed[:16] != opened(sealed, where="it").sealed[:16]
    assert keys.clear(other) != other


@pytest.mark.clause("CRYPT-1")
def test_a_line_that_a_crash_cut_short_is_no_key(keys: Keyring, file: KeyFile) -> None:
    state, sealed = stored(keys, failed("the words"))
    with Path(file.shown).open("a") as torn:
        torn.write('{"id":"00')
    keys = again(file)
    keys.prepare(["session:other"])
    assert again(file).clear(sealed) == state
    assert [key.owner for key in again(file).all()] == [STREAM, "session:other"]


@pytest.mark.clause("CRYPT-3")
def test_a_host_that_runs_goes_on_with_a_rotated_master_key(
    keys: Keyring, file: KeyFile, tmp_path: Path
) -> None:
    state, sealed = stored(keys, failed("the words"))
    new = source(master_key(tmp_path, byte=9, name="new.key"))
    assert again(file).rotate(new, new.key()) == 1
    (tmp_path / "master.key").unlink()
    keys.prepare(["session:other"])
    found = again(file)
    assert found.source == new
    assert found.clear(sealed) == state
    assert found.ids(["session:other"]) != []


@pytest.mark.clause("CRYPT-2")
@pytest.mark.parametrize(
    ("text", "mode", "problem"),
    [
        ("not base64!", 0o600, "holds no master key: it is the base64 of 32 random bytes"),
        (base64.b64encode(b"short").decode(), 0o600, "holds no master key"),
        (base64.b64encode(bytes(32)).decode(), 0o640, r"can be read by others \(mode 640\): chmod 600"),
    ],
)
def test_an_invalid_master_key_is_refused_with_words(
    tmp_path: Path, text: str, mode: int, problem: str
) -> None:
    path = tmp_path / "master.key"
    path.write_text(text)
    path.chmod(mode)
    with pytest.raises(BadKey, match=problem):
        source(path).key()


@pytest.mark.clause("CRYPT-2")
def test_a_command_prints_the_master_key_and_no_file_says_which(
    file: KeyFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = base64.b64encode(bytes(32)).decode()
    command = Source(command=(sys.executable, "-c", f"print('{text}')"))
    assert command.key() == bytes(32)
    header = header_of(command, bytes(32), "all", bytes)
    file.write(KeyRecords(header, ()))
    assert text not in Path(file.shown).read_text()
    found = keys_at(file, writes=False)
    assert found is not None
    assert "comes from a command: name that in encryption.keys, or in $INTERSESSION_KEYS" in str(
        found.trouble
    )
    with pytest.raises(StoreUnavailable, match="comes from a command"):
        found.prepare(["session:one"])
    monkeypatch.setenv(VARIABLE, json.dumps({"command": [*command.command]}))
    assert again(file).trouble is None
    with pytest.raises(BadKey, match="ended with 3: no such secret"):
        Source(command=("sh", "-c", "echo no such secret >&2; exit 3")).key()
    with pytest.raises(BadKey, match="printed no master key: FileNotFoundError"):
        Source(command=("/no/such/program",)).key()
    monkeypatch.setenv(VARIABLE, "{}")
    with pytest.raises(BadKey, match="name one source of the master key"):
        keys_at(file, writes=False)


@pytest.mark.clause("CRYPT-3")
def test_nobody_without_the_master_key_says_which_comes_after_it(
    keys: Keyring, file: KeyFile, tmp_path: Path
) -> None:
    told = Encryption(source(tmp_path / "master.key"))
    theirs = source(master_key(tmp_path, byte=66, name="theirs.key"))
    forged = header_of(theirs, theirs.key(), "all", bytes, before=bytes(32))
    file.write(KeyRecords(forged, keys.all()))
    with pytest.raises(BadKey, match=r"master\.key is not the master key of"):
        keys_at(file, told, writes=True)
    with pytest.raises(StoreUnavailable, match="is not the master key of"):
        keys.prepare(["session:new"])


@pytest.mark.clause("CRYPT-3")
def test_sessions_are_kept_encrypted_whatever_somebody_writes_there(tmp_path: Path, file: KeyFile) -> None:
    made(tmp_path, file)
    altered = Path(file.shown).read_text().replace('"sessions":"all"', '"sessions":[]')
    Path(file.shown).write_text(altered)
    with pytest.raises(BadKey, match="is not the master key of"):
        keys_at(file, writes=True)


@pytest.mark.ci
@pytest.mark.clause("CRYPT-3")
def test_a_configuration_may_name_the_old_key_until_that_is_destroyed(
    keys: Keyring, file: KeyFile, tmp_path: Path
) -> None:
    told = Encryption(source(tmp_path / "master.key"))
    state, sealed = stored(keys, failed("the words"))
    new = source(master_key(tmp_path, byte=9, name="new.key"))
    again(file).rotate(new, new.key())
    found = written(file, told)
    assert found is not None
    assert (found.source, found.clear(sealed)) == (new, state)
    (tmp_path / "master.key").unlink()
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from intersession_events.stores.keys.opening import keys_at\n"
        "from intersession_events.stores.keys.records import KeyFile\n"
        "from intersession_events.stores.keys.source import Encryption, Source\n"
        "keys_at(KeyFile(Path(sys.argv[1])), Encryption(Source(file=sys.argv[2])), writes=True)\n"
    )
    run = [sys.executable, "-c", program, file.shown]
    started = subprocess.run(
        [*run, str(tmp_path / "master.key")], capture_output=True, text=True, check=False
    )
    assert "master.key, with the master key, can't be read" in started.stderr
    assert subprocess.run([*run, str(tmp_path / "new.key")], check=False).returncode == 0


@pytest.mark.clause("CRYPT-2")
def test_a_command_is_run_once_however_many_keys_come(tmp_path: Path, file: KeyFile) -> None:
    count = tmp_path / "count"
    text = base64.b64encode(bytes(32)).decode()
    command = Source(command=("sh", "-c", f"echo run >> {count}; echo {text}"))
    writer = written(file, Encryption(command))
    assert writer is not None
    reader = again(file)
    runs = len(count.read_text().split())
    for number in range(5):
        writer.prepare([f"session:{number}"])
        assert reader.of(f"session:{number}") == writer.of(f"session:{number}")
        writer.destroy(writer.ids([f"session:{number}"]), 1)
    assert len(count.read_text().split()) == runs


@pytest.mark.clause("CRYPT-2")
@pytest.mark.parametrize("text", ["", "{}", '{"format": "intersession keys 2"}', "[]\n"])
def test_another_file_in_the_place_of_the_keys_is_refused(file: KeyFile, text: str) -> None:
    Path(file.shown).write_text(text)
    with pytest.raises(BadKey, match=r"log\.db\.keys"):
        keys_at(file, writes=False)
    assert Path(file.shown).read_text() == text


@pytest.mark.clause("CRYPT-1")
@pytest.mark.ci
def test_keys_are_whole_however_many_processes_make_and_rotate_them(
    keys: Keyring, file: KeyFile, tmp_path: Path
) -> None:
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from intersession_events.stores.keys.opening import keys_at\n"
        "from intersession_events.stores.keys.records import KeyFile\n"
        "keys = keys_at(KeyFile(Path(sys.argv[1])), writes=False)\n"
        "for n in range(20): keys.prepare([f'{sys.argv[2]}:{n}'])\n"
    )
    made_by = [subprocess.Popen([sys.executable, "-c", program, file.shown, name]) for name in "ab"]
    for byte in range(10, 14):
        new = source(master_key(tmp_path, byte=byte, name=f"{byte}.key"))
        keys.rotate(new, new.key())
    assert [one.wait(60) for one in made_by] == [0, 0]
    found = again(file)
    assert {key.owner for key in found.all()} == {f"{name}:{n}" for name in "ab" for n in range(20)}
    assert all(found.must(key.id) for key in found.all())
