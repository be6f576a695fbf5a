"""An auditor's way on the command line: keys, checkpoints, what was published, and what `verify` makes of them."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from intersession import SessionSystem, echo
from support.doors.command_line import DemoLog, ran
from support.doors.gateway_live import LiveGateway
from support.rows import edited
from support.running import WAIT, Booth, Gate


def configured(folder: Path, **checkpoints: Any) -> Path:
    file = folder / "config.json5"
    file.write_text(json.dumps({"checkpoints": checkpoints}))
    return file


def new_key(folder: Path, name: str = "key.pem") -> tuple[Path, str]:
    file = folder / name
    made = ran("keys", "new", file, "--json")
    assert made.exit_code == 0, made.err
    return file, made.json["keys"][0]["publicKey"]


@pytest.mark.clause("CHECK-2")
def test_a_new_key_is_for_its_owner_alone_and_never_written_over(tmp_path: Path) -> None:
    file, public = new_key(tmp_path)
    before = file.read_bytes()

    again = ran("keys", "new", file)
    shown = ran("keys", "show", file, public)

    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert (again.exit_code, file.read_bytes()) == (2, before)
    assert "exists already" in again.err
    assert [line.split()[0] for line in shown.out.splitlines()] == [public, public]
    assert b"PRIVATE" not in shown.out.encode()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("ed25519:short", "no public key"),
        ("nothing of the kind", "no public key"),
        ("", "holds no public key"),
        ("-----BEGIN PRIVATE KEY-----\n", "is a private key"),
        ("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "no public key in PEM"),
    ],
)
def test_what_is_no_key_is_refused_in_words(demo_log: DemoLog, tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "trusted"
    file.write_text(text)

    done = ran("verify", "--trust", file, "--store", demo_log.path, "--json")

    assert (done.exit_code, done.json["code"]) == (1, "bad_key")
    assert told in done.json["error"]


@pytest.mark.clause("CHECK-1", "CHECK-2", "CHECK-4")
def test_a_checkpoint_taken_by_hand_is_signed_and_proves_the_log_with_its_public_key(
    demo_log: DemoLog, tmp_path: Path
) -> None:
    store = demo_log.copy(tmp_path)
    file, public = new_key(tmp_path)
    config = configured(tmp_path, keyFile=str(file), publish={"file": str(tmp_path / "published")})

    taken = ran("checkpoint", "--store", store, "--config", config, "--json")
    signed = ran("verify", "--trust", public, "--store", store, "--json")
    unchecked = ran("verify", "--events-only", "--store", store)
    published = ran("verify", "--published", tmp_path / "published", "--trust", public, "--store", store)
    listed = ran("keys", "list", "--store", store, "--json")

    assert (taken.exit_code, signed.exit_code, published.exit_code) == (0, 0, 0)
    assert taken.json["keyId"] == listed.json["keys"][-1]["keyId"]
    assert signed.json["checkpoints"]["signedUpTo"] >= taken.json["position"]
    assert "those signatures were not checked" in unchecked.out
    assert "as published up to" in published.out


@pytest.mark.clause("CHECK-1")
def test_a_checkpoint_that_is_neither_signed_nor_published_says_so(booth: Booth, tmp_path: Path) -> None:
    """Without the host's configuration it looked like one of the host's."""
    gate = Gate()
    system = booth.start({"main": gate.saying("held")})
    system.inbound(channel="x", chat_id="1", sender="ann", text="hold")
    gate.reached()
    system.close(grace=0)
    gate.open()
    file, _ = new_key(tmp_path)
    config = configured(tmp_path, keyFile=str(file), publish={"file": str(tmp_path / "published")})

    plain = ran("checkpoint", "--store", booth.url, "--json")
    made = ran("checkpoint", "--store", booth.url, "--config", config)

    assert plain.exit_code == made.exit_code == 0
    assert "it is not signed: name a key as checkpoints.keyFile in the file of --config" in plain.err
    assert "it is published nowhere" in plain.err
    assert "went on with 1 open run as far as it has their agents" in plain.err
    assert "it is" not in made.err


@pytest.mark.clause("CHECK-4")
def test_a_demo_s_log_ends_with_a_checkpoint_and_a_cut_shows_with_what_was_published(
    demo_log: DemoLog, tmp_path: Path
) -> None:
    store, published = demo_log.copy(tmp_path), tmp_path / "published"
    ran("checkpoint", "--store", store, "--config", configured(tmp_path, publish={"file": str(published)}))
    with edited(store) as database:
        (last,) = database.execute("SELECT MAX(rowid) FROM stored_events").fetchone()
        database.execute("DELETE FROM stored_events WHERE rowid > ?", (last - 6,))
        database.execute("UPDATE sqlite_sequence SET seq = (SELECT MAX(rowid) FROM stored_events)")

    found = ran("verify", "--published", published, "--events-only", "--store", store, "--json")

    assert found.exit_code == 4
    assert "tail_cut" in found.json["counts"]


def test_what_is_neither_a_head_nor_published_is_refused(demo_log: DemoLog, tmp_path: Path) -> None:
    for text in ("", "[]", '{"position": 1}', "x\n"):
        file = tmp_path / "head"
        file.write_text(text)
        done = ran("verify", "--head", file, "--store", demo_log.path)
        assert done.exit_code == 2
        assert "neither an exported head" in done.err
    done = ran("verify", "--published", tmp_path / "nowhere", "--store", demo_log.path)
    assert (done.exit_code, "--published: " in done.err) == (2, True)


def test_a_configuration_is_checked_with_its_key_and_places(tmp_path: Path) -> None:
    config = configured(
        tmp_path, keyFile=str(tmp_path / "none"), publish={"webhook": "https://hooks.example.com/T0/secret"}
    )

    checked = ran("config", "check", config, "--json")
    shown = ran("doctor", "--store", tmp_path / "log.db", "--config", config)

    assert [problem["path"] for problem in checked.json["problems"]] == ["checkpoints.keyFile"]
    assert "T0/secret" not in checked.out + shown.out


def told(system: SessionSystem) -> None:
    system.inbound(channel="web", chat_id="1", sender="ann", text="Hello", wait=WAIT)


TOKEN = {"gateway": {"auth": {"token": "the-token-of-this-test"}}}


@pytest.mark.clause("CHECK-1")
def test_beside_a_host_its_gateway_takes_the_checkpoint(
    booth: Booth, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INTERSESSION_GATEWAY_TOKEN", "the-token-of-this-test")
    with booth.start({"main": echo()}, {}, TOKEN, {"checkpoints": {"atStop": False}}) as system:
        told(system)
        with LiveGateway(system) as live:
            system.log.announce_gateway(live.address)
            done = ran("checkpoint", "--store", booth.url, "--json")
        again = system.checkpoint()

    assert (done.exit_code, done.json) == (0, again)


@pytest.mark.clause("CHECK-3")
def test_the_doctor_names_what_is_not_published(booth: Booth, tmp_path: Path) -> None:
    place = tmp_path / "published"
    config = configured(tmp_path, publish={"file": str(place)})
    with booth.start({"main": echo()}, {}, {"checkpoints": {"publish": {"file": str(place)}}}) as system:
        told(system)
        place.mkdir()
        system.checkpoint()
    place.rmdir()

    done = ran("doctor", "--store", booth.url, "--config", config, "--json")

    assert [one["what"] for one in done.json["findings"] if one["code"] == "checkpoints_unpublished"] == [
        "1 checkpoint not published to the file yet"
    ]


@pytest.mark.clause("CHECK-5")
def test_a_proof_is_made_on_the_log_and_checked_without_it(demo_log: DemoLog, tmp_path: Path) -> None:
    store, (file, public) = demo_log.copy(tmp_path), new_key(tmp_path)
    first = ran("checkpoint", "--store", store, "--json").json["position"]
    ran("checkpoint", "--store", store, "--config", configured(tmp_path, keyFile=str(file)))
    proof, growth = tmp_path / "proof.json", tmp_path / "growth.json"
    proof.write_text(ran("verify", "--prove", "agent:research:main", "--store", store).out)
    growth.write_text(ran("verify", "--prove-since", first, "--store", store, "--json").out)
    store.unlink()

    shown = ran("verify", "--check-proof", proof, "--trust", public)
    of_growth = ran("verify", "--check-proof", growth, "--trust", public, "--json")
    proof.write_text(proof.read_text().replace("agent:research", "agent:another"))
    forged = ran("verify", "--check-proof", proof, "--trust", public, "--json")

    assert shown.exit_code == 0
    assert "proven: session:agent:research:main, up to its last version" in shown.out
    assert "Not proven by this:\n  nothing" in shown.out
    assert (of_growth.exit_code, of_growth.json["ok"]) == (0, True)
    assert len(of_growth.json["unproven"]) == 1  # the first one is not signed
    assert (forged.exit_code, forged.json["shows"]) == (4, "")


@pytest.mark.clause("CHECK-5")
def test_what_is_proven_can_be_named_as_it_is_shown(demo_log: DemoLog) -> None:
    """A short name of a session, and the beginning of the id of an exchange, were no streams."""
    work = ran("runs", "--kind", "exchange", "--limit", "1", "--store", demo_log.path, "--json").json["runs"][
        0
    ]
    streams = {
        typed: ran("verify", "--prove", typed, "--store", demo_log.path, "--json").json["event"]["stream"]
        for typed in ("research", work["id"][:8])
    }
    assert streams == {"research": "session:agent:research:main", work["id"][:8]: f"exchange:{work['id']}"}


@pytest.mark.parametrize(
    "options", [("--prove", "a", "--prove-since", "1"), ("--at", "5"), ("--check-proof", "/nowhere")]
)
def test_options_that_do_not_fit_are_refused(demo_log: DemoLog, options: tuple[str, ...]) -> None:
    assert ran("verify", *options, "--store", demo_log.path).exit_code == 2


def test_a_stream_that_is_not_there_is_no_traceback(demo_log: DemoLog) -> None:
    done = ran("verify", "--prove", "nobody", "--store", demo_log.path, "--json")

    assert (done.exit_code, done.json["code"]) == (1, "bad_checkpoint")
