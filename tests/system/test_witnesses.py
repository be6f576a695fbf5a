"""Checkpoints as notes, cosigned by witnesses and stamped with the time: what is recorded, published and proven of them."""

import base64
import http.client
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from intersession import ConfigError, Failure, SessionSystem, echo
from intersession_events.log.recorded import ANY_VERSION, Draft, StreamAppend
from intersession_events.proofs.notes import PublishedNote
from intersession_events.proofs.published import published_in
from intersession_events.proofs.signatures import trusted_keys, write_private
from support.checkpointed import published, told, verified
from support.fakes import ManualClock, look_at_clock
from support.running import WAIT, Booth, Heard, wait_until
from support.witnessing import HOST_KEY, ORIGIN, LiveWitness, live_witness

AGENTS = {"main": echo()}


def has_cosigned(system: SessionSystem, times: int) -> bool:
    return len(published(system, "witness")) == times


def cosigned_in_file(system: SessionSystem) -> int:
    """Return the position of the last checkpoint that the file has with its cosignatures."""
    return max((one.position for one in published(system, "file") if one.receipt is not None), default=0)


def configured(folder: Path, *witnesses: LiveWitness, **more: Any) -> dict[str, Any]:
    key = folder / "host.pem"
    if not key.exists():
        write_private(HOST_KEY, key)
    settings = {
        "everyEvents": 0,
        "everySeconds": 0,
        "atStop": False,
        "keyFile": str(key),
        "origin": ORIGIN,
        "witnesses": [{"url": witness.url, "key": witness.vkey} for witness in witnesses],
        "publish": {"file": str(folder / "notes.txt"), "form": "note", "allowHosts": ["127.0.0.1"]},
    }
    return {"checkpoints": {**settings, **more}}


def notes(folder: Path) -> list[PublishedNote]:
    found = published_in((folder / "notes.txt").read_bytes())
    return [one for one in found if isinstance(one, PublishedNote)]


@pytest.mark.clause("TLOG-1", "TLOG-2", "TLOG-3", "TLOG-4")
def test_witnesses_cosign_each_checkpoint_and_prove_it_with_their_keys_alone(
    booth: Booth, tmp_path: Path
) -> None:
    with (
        live_witness(tmp_path / "one") as one,
        live_witness(tmp_path / "two", seed=9, name="witness.example/w2") as two,
        booth.start(AGENTS, {}, configured(tmp_path, one, two)) as system,
    ):
        for number in (1, 2):
            told(system, f"text {number}")
            last = system.checkpoint()
            wait_until(system, partial(has_cosigned, system, 2 * number))
        wait_until(system, lambda: cosigned_in_file(system) == last["position"])
        both = trusted_keys([one.vkey, two.vkey])
        report = verified(system, trusted=both)
        assert (report.ok, report.findings) == (True, ())
        assert report.checkpoints.cosigned_up_to == last["position"]
        assert report.checkpoints.cosigned_ms > 0
        assert report.checkpoints.witnesses == dict.fromkeys(
            ("witness.example/w1", "witness.example/w2"), last["position"]
        )
        assert system.status()["checkpoints"]["unpublished"] == {
            "file": 0,
            "witness witness.example/w1": 0,
            "witness witness.example/w2": 0,
        }
        again = system.checkpoint()
        assert again["note"].count("\n— ") == 3
        assert again["note"].startswith(f"{ORIGIN}\n{last['count']}\n")
        assert verified(system, trusted=trusted_keys([one.vkey], quorum=1)).ok

    noted = notes(tmp_path)
    assert [note.position for note in noted][-1] == last["position"]
    assert len(noted[-1].note.signatures) == 3
    assert noted[-1].hash == last["hash"]


@pytest.mark.ci
@pytest.mark.clause("TLOG-3")
def test_cosignatures_from_before_a_stop_count_for_the_quorum(booth: Booth, tmp_path: Path) -> None:
    clock, heard = ManualClock(), Heard()
    with live_witness(tmp_path / "two", seed=9, name="witness.example/w2") as gone:
        pass
    with live_witness(tmp_path / "one") as one:
        settings = configured(tmp_path, one, gone)
        with booth.start(AGENTS, {}, settings, clock=clock, on_failure=heard) as system:
            told(system)
            last = system.checkpoint()
            wait_until(system, lambda: has_cosigned(system, 1) and bool(published(system, "file")))
            heard.next("checkpoint_unpublished")
        assert [len(note.note.signatures) for note in notes(tmp_path)] == [1]
        back = live_witness(tmp_path / "two", seed=9, name="witness.example/w2", port=gone.address[1])
        with back, booth.start(AGENTS, {}, settings, clock=clock) as system:
            wait_until(system, lambda: cosigned_in_file(system) == last["position"])
    (note,) = [note for note in notes(tmp_path) if note.hash == last["hash"]]
    assert len(note.note.signatures) == 3


@pytest.mark.ci
@pytest.mark.clause("TLOG-3")
def test_a_note_whose_cosignatures_reached_no_target_goes_there_at_the_next_start_and_once(
    booth: Booth, tmp_path: Path
) -> None:
    clock, heard = ManualClock(), Heard()
    file, kept = tmp_path / "notes.txt", tmp_path / "kept.txt"
    with live_witness(tmp_path / "one") as gone:
        settings = configured(tmp_path, gone)
    with booth.start(AGENTS, {}, settings, clock=clock, on_failure=heard) as system:
        told(system)
        system.checkpoint()
        heard.next("checkpoint_unpublished")
        wait_until(system, lambda: bool(published(system, "file")))
        file.rename(kept)
        file.mkdir()  # nothing can be added to it
        with live_witness(tmp_path / "one", port=gone.address[1]):
            while not published(system, "witness"):
                clock.advance(300_000)
                look_at_clock(system._parts.timers)
                system.log.wait_for(system.log.head() + 1, timeout=0.05)
    file.rmdir()
    kept.rename(file)
    for _ in range(2):
        with booth.start(AGENTS, {}, settings, clock=clock) as system:
            wait_until(system, lambda: len(published(system, "file")) == 2)
    with booth.start(AGENTS, {}, settings, clock=clock) as system:
        assert verified(system, trusted=trusted_keys([gone.vkey], quorum=1)).ok
    assert file.read_text().count("\n\u2014 ") == 1 + 2


@pytest.mark.ci
@pytest.mark.clause("TLOG-4")
def test_a_log_that_was_made_anew_with_the_host_s_key_has_no_cosignatures(
    booth: Booth, tmp_path: Path
) -> None:
    """Nor those of the log before: a cosignature is of one tree."""
    with live_witness(tmp_path / "one") as one, booth.start(AGENTS, {}, configured(tmp_path, one)) as system:
        told(system)
        system.checkpoint()
        wait_until(system, lambda: bool(published(system, "witness")))
        (old,) = published(system, "witness")
        trusted = trusted_keys([one.vkey, str(HOST_KEY.public)])
        assert verified(system, trusted=trusted).ok
    with SessionSystem(str(tmp_path / "anew.db"), agents=AGENTS, config=configured(tmp_path)) as system:
        told(system, "What was never said")
        last = system.checkpoint()
        alone = verified(system, trusted=trusted)
        assert (dict(alone.counts), alone.checkpoints.signed_up_to) == (
            {"checkpoint_unsigned": 1},
            last["position"],
        )
        forged = msgspec.structs.replace(old, position=last["position"])
        draft = Draft(event=forged, id="forged", time=1)
        system.log.append_now([StreamAppend(stream="log", expected=ANY_VERSION, drafts=(draft,))])
        assert "checkpoint_forged" in verified(system, trusted=trusted).counts


@pytest.mark.ci
@pytest.mark.clause("TLOG-3")
def test_a_witness_that_does_not_answer_holds_nothing_up_and_is_tried_again(
    booth: Booth, tmp_path: Path
) -> None:
    clock, heard = ManualClock(), Heard()
    with live_witness(tmp_path / "one") as gone:
        settings = configured(tmp_path, gone)
    with booth.start(AGENTS, {}, settings, clock=clock, on_failure=heard) as system:
        told(system)
        system.checkpoint()
        heard.next("checkpoint_unpublished")
        told(system, "the log goes on")
        last = system.checkpoint()
        wait_until(system, lambda: len(published(system, "file")) >= 1)
        status = system.status()["checkpoints"]
        assert status["unpublished"]["witness witness.example/w1"] == 1
        assert "witness witness.example/w1" in status["publishErrors"]
        with live_witness(tmp_path / "one", port=gone.address[1]):
            while not published(system, "witness"):
                clock.advance(300_000)
                look_at_clock(system._parts.timers)
                system.log.wait_for(system.log.head() + 1, timeout=0.05)
        assert published(system, "witness")[-1].position == last["position"]


HISTORIES: dict[str, tuple[int, list[int], str]] = {
    "set back": (3, [1], "was the log set back"),
    "another log": (2, [4], "has no checkpoint of as many"),
    "rewritten": (1, [1, 2], "the log was rewritten"),
    "of the same length": (1, [1], "has seen another log"),
}
"""How much the witness has seen, what the log has instead between its checkpoints, and what is said of it."""


@pytest.mark.ci
@pytest.mark.clause("TLOG-3", "TLOG-5")
@pytest.mark.parametrize("history", HISTORIES)
def test_another_history_is_refused_by_the_witness_of_the_first(
    booth: Booth, tmp_path: Path, history: str
) -> None:
    first, then, problem = HISTORIES[history]
    heard, failures = Heard(), list[Failure]()
    with live_witness(tmp_path / "one") as one:
        settings = configured(tmp_path, one)
        with SessionSystem(":memory:", agents=AGENTS, config=settings) as system:
            for _ in range(first):
                told(system)
            system.checkpoint()
            wait_until(system, lambda: bool(published(system, "witness")))
        with booth.start(AGENTS, {}, settings, on_failure=heard) as system:
            for number in then:
                for _ in range(number):
                    told(system, "otherwise")
                system.checkpoint()
                failures.append(heard.next("checkpoint_unpublished"))
            assert published(system, "witness") == []
        seen = asked(one, "GET", "/")[1]
    assert problem in (failures[-1].error or "")
    assert ("two roots of one size" in seen) is (history in {"rewritten", "of the same length"})


@pytest.mark.ci
@pytest.mark.clause("TLOG-6")
def test_an_authority_stamps_the_hash_of_a_checkpoint_and_openssl_verifies_it(
    booth: Booth, tmp_path: Path
) -> None:
    authority = tsa(tmp_path)
    with booth.start(AGENTS, {}, configured(tmp_path, timestamp={"command": authority})) as system:
        told(system)
        last = system.checkpoint()
        wait_until(system, lambda: bool(published(system, "timestamp")))
        stamped = system.checkpoint()
        told(system, "later")
        later = system.checkpoint()
        assert verified(system).ok

    response = tmp_path / "response.tsr"
    response.write_bytes(base64.b64decode(stamped["timestamp"]))
    verify = ("ts", "-verify", "-in", str(response), "-CAfile", str(tmp_path / "tsa.crt"), "-digest")
    assert openssl(*verify, last["hash"]).returncode == 0
    assert openssl(*verify, later["hash"]).returncode != 0


@pytest.mark.ci
@pytest.mark.parametrize(
    ("program", "problem"),
    [
        ("print('no response')", "no response of RFC 3161"),
        ("sys.stdout.buffer.write(bytes.fromhex('30053003020102'))", "refused it (status 02)"),
        ("sys.stdout.buffer.write(bytes.fromhex('30053003020100'))", "of another hash"),
        ("sys.exit('no seal today')", "no seal today"),
    ],
)
def test_what_is_no_timestamp_is_not_kept(booth: Booth, tmp_path: Path, program: str, problem: str) -> None:
    heard = Heard()
    settings = configured(tmp_path, timestamp={"command": [sys.executable, "-c", f"import sys; {program}"]})
    with booth.start(AGENTS, {}, settings, on_failure=heard) as system:
        told(system)
        system.checkpoint()
        failure = heard.next("checkpoint_unpublished")
        assert published(system, "timestamp") == []
    assert problem in (failure.error or "")


def openssl(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("needs openssl")
    return subprocess.run([program, *arguments], capture_output=True, timeout=60, check=False)


def tsa(folder: Path) -> list[str]:
    """Return the command of an authority with a certificate of its own."""
    config, key, certificate = (folder / name for name in ("tsa.cnf", "tsa.key", "tsa.crt"))
    config.write_text(
        "[req]\ndistinguished_name = name\n[name]\n[tsa]\ndefault_tsa = here\n[here]\n"
        f"serial = {folder}/serial\ndefault_policy = 1.2.3.4.1\ndigests = sha256\nsigner_digest = sha256\n"
        "ess_cert_id_alg = sha256\naccuracy = secs:1\n"
    )
    (folder / "serial").write_text("01\n")
    made = openssl(
        *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"),
        *("-subj", "/CN=An authority", "-addext", "extendedKeyUsage=critical,timeStamping"),
        *("-config", str(config), "-keyout", str(key), "-out", str(certificate)),
    )
    assert made.returncode == 0, made.stderr
    return [
        *("openssl", "ts", "-reply", "-config", str(config), "-queryfile", "/dev/stdin"),
        *("-signer", str(certificate), "-inkey", str(key)),
    ]


@pytest.mark.sqlite("what is refused opens no log")
@pytest.mark.parametrize(
    ("settings", "path"),
    [
        ({"witnesses": [{"url": "https://w.example", "key": "nothing"}]}, "checkpoints.witnesses[0].key"),
        ({"origin": "two words"}, "checkpoints.origin"),
        ({"quorum": 1}, "checkpoints.quorum"),
        ({"publish": {"form": "note", "file": "x"}}, "checkpoints.keyFile"),
        ({"publish": {"form": "both"}}, "checkpoints.publish.form"),
    ],
)
def test_what_can_t_be_published_so_is_refused_at_the_start(settings: dict[str, Any], path: str) -> None:
    with pytest.raises(ConfigError) as refused:
        SessionSystem(":memory:", agents=AGENTS, config={"checkpoints": settings})

    assert path in [problem.path for problem in refused.value.problems]


@pytest.mark.sqlite("what is refused opens no log")
def test_a_witness_counts_once(tmp_path: Path) -> None:
    with live_witness(tmp_path / "one") as one:
        twice = configured(tmp_path, one, one)
    with pytest.raises(ConfigError, match="given twice"):
        SessionSystem(":memory:", agents=AGENTS, config=twice)


@pytest.mark.clause("TLOG-5")
def test_a_witness_serves_people_and_refuses_what_is_hostile(tmp_path: Path) -> None:
    with live_witness(tmp_path / "one") as one:
        assert asked(one, "GET", "/")[0] == 200
        assert one.vkey in asked(one, "GET", "/")[1]
        assert asked(one, "GET", "/etc/passwd")[0] == 404
        assert asked(one, "POST", "/add-checkpoint", b"nothing")[0] == 400
        assert asked(one, "POST", "/elsewhere", b"nothing")[0] == 404
        for length in ("", "-1", "131073", "9" * 5_000):
            assert asked(one, "POST", "/add-checkpoint", b"", **{"Content-Length": length})[0] == 413


@pytest.mark.sqlite("a log that gives one note")
@pytest.mark.clause("TLOG-5")
def test_what_can_t_be_kept_is_not_cosigned_and_one_process_has_the_file(tmp_path: Path) -> None:
    state = tmp_path / "folder" / "state"
    state.parent.mkdir()
    with live_witness(state) as one:
        with pytest.raises(BlockingIOError), live_witness(state):
            pass
        (state.parent / "state.new").mkdir()  # in its way
        with SessionSystem(":memory:", agents=AGENTS, config=configured(tmp_path)) as system:
            told(system)
            note = system.checkpoint()["note"]
        assert asked(one, "POST", "/add-checkpoint", f"old 0\n\n{note}".encode())[0] == 500
        assert "nothing yet" in asked(one, "GET", "/")[1]
        (state.parent / "state.new").rmdir()
        status, line = asked(one, "POST", "/add-checkpoint", f"old 0\n\n{note}".encode())
        assert (status, line.startswith("— witness.example/w1 ")) == (200, True)
    with live_witness(state) as one:
        assert asked(one, "POST", "/add-checkpoint", f"old 0\n\n{note}".encode())[0] == 409


def asked(witness: LiveWitness, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, str]:
    line = http.client.HTTPConnection(*witness.address, timeout=WAIT)
    line.request(method, path, body, headers)
    with line.getresponse() as answer:
        content = answer.read().decode()
    line.close()
    return answer.status, content
