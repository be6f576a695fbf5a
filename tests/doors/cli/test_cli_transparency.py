"""The page on transparency is run as it stands, with a log and a witness of each of two parties; and a witness is killed at any time."""

import http.client
import json
import re
import shlex
import signal
import subprocess
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
import pytest

from intersession import SessionSystem, echo
from intersession_events.proofs.notes import TreeNote, read_note, signed_note
from intersession_events.proofs.signatures import NamedKey, read_private, write_private
from support.checkpointed import key_of
from support.doors.command_line import environment, process, ran
from support.loopback import free_port
from support.paths import DOCS
from support.running import WAIT

PAGE = (DOCS / "howto" / "transparency.md").read_text(encoding="utf-8")
NONE: Mapping[str, str] = {}
PARTIES = (("acme", "bolt"), ("bolt", "acme"))


def commands() -> dict[str, str]:
    """Return the commands of the page by what they do: by their first words, and an option that tells them apart."""
    lines = re.findall(r"^\$ intersession (.+)$", PAGE, re.MULTILINE)
    names = {
        "keys new acme.pem": "key",
        "keys show": "vkey",
        "checkpoint --note": "note",
        "keys new bolt-witness.pem": "witness key",
        "witness --key": "witness",
        "verify --trust": "verify",
        "verify --evidence": "evidence",
    }
    return {meant: line for begins, meant in names.items() for line in lines if line.startswith(begins)}


def log_of(folder: Path, party: str) -> None:
    with SessionSystem(
        str(folder / f"{party}.db"),
        agents={"main": echo()},
        config={"checkpoints": {"atStop": False}},
    ) as system:
        system.inbound(channel="web", chat_id="1", sender="ann", text="Hello", wait=WAIT)


@pytest.mark.ci
@pytest.mark.sqlite("commands of a page, which name files")
@pytest.mark.clause("TLOG-1", "TLOG-3", "TLOG-4", "TLOG-5", "TLOG-7")
def test_two_parties_witness_each_other_as_the_page_says(  # noqa: PLR0915 - a page has many steps
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page = commands()

    def run(line: str, exit_code: int = 0, variables: Mapping[str, str] = NONE) -> str:
        """Run a command as a shell would: it writes to a file, and takes variables and the contents of files."""
        line = re.sub(r"\$\(cat (\S+)\)", lambda found: Path(found[1]).read_text().strip(), line)
        line = re.sub(r"\$([A-Z]+)", lambda found: variables[found[1]], line)
        line, _, target = line.partition(" > ")
        done = ran(*shlex.split(line))
        assert done.exit_code == exit_code, done.err + done.out
        if target:
            Path(target).write_text(done.out)
        return done.out

    def of(party: str, meant: str) -> str:
        """Return a command of the page for a party: it is written for Acme's log, and Bolt's witness."""
        other = dict(PARTIES)[party]
        swapped = {"acme": party, "bolt": other, "ACME": party.upper(), "BOLT": other.upper()}
        return re.sub("acme|bolt|ACME|BOLT", lambda found: swapped[found[0]], page[meant])

    config = re.search(r"^// acme.json5\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert config is not None
    witnesses: dict[str, tuple[str, str]] = {}
    children: list[subprocess.Popen[str]] = []
    try:
        for party, _ in PARTIES:
            log_of(tmp_path, party)
            for meant in ("key", "vkey", "witness key"):
                run(of(party, meant))
            port = str(free_port())
            line = of(party, "witness").replace("18791", port)
            child = subprocess.Popen(
                process(*line.split()), cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, text=True
            )
            children.append(child)
            witnesses[party] = (f"http://127.0.0.1:{port}", "")
        for (party, other), child in zip(PARTIES, children, strict=True):
            assert child.stdout is not None
            vkey = child.stdout.readline().split()[1]
            assert vkey.startswith(f"{other}.example/witness+")
            witnesses[party] = (witnesses[party][0], vkey)
            assert "of 1 log, at" in child.stdout.readline()
        for party, other in PARTIES:
            url, vkey = witnesses[party]
            text = config[1].replace("acme", party).rstrip().removesuffix("} }").rstrip()
            named = f'witnesses: [{{ url: "{url}", key: "{vkey}" }}]'
            (tmp_path / f"{party}.json5").write_text(
                f'{text.removesuffix("}")}, allowHosts: ["127.0.0.1"] }}, {named} }} }}'
            )
            printed = run(of(party, "note"))
            assert printed.startswith(f"{party}.example/assistant\n")
            cosigned = run(of(party, "note"))
            assert f"\n— {other}.example/witness " in cosigned
            run(of(party, "verify"), variables={other.upper(): vkey})
            mine = witnesses[other][1]
            run(of(party, "verify"), 4, {other.upper(): mine})
            # A proof for other tools, checked without the log.
            (tmp_path / "one.tlog-proof").write_text(
                run(f"verify --prove agent:main:main --form tlog --store {party}.db")
            )
            shown = run(f"verify --check-proof one.tlog-proof --trust {vkey} --quorum 1")
            assert f"cosigned by {other}.example/witness" in shown

        # Acme shows another history of the same length.
        last = read_note(run(of("acme", "note")).encode())
        other_root = msgspec.structs.replace(last, root=bytes(32))
        forged = signed_note(other_root.text, read_private(tmp_path / "acme.pem"), last.origin)
        assert (
            posted(witnesses["acme"][0], 0, str(msgspec.structs.replace(other_root, signatures=(forged,))))
            == 409
        )
        (pair,) = (tmp_path / "bolt-witness.json.evidence").glob("*.txt")
        pair.rename(tmp_path / "pair.txt")
        assert "it shows two histories" in run(page["evidence"])
        assert "NOT proven" in run(page["evidence"].replace("acme.vkey", "bolt.vkey"), 4)
    finally:
        for child in children:
            child.send_signal(signal.SIGTERM)
            child.communicate(timeout=WAIT)


def posted(url: str, old: int, note: str) -> int:
    line = http.client.HTTPConnection(url.removeprefix("http://"), timeout=WAIT)
    try:
        line.request("POST", "/add-checkpoint", f"old {old}\n\n{note}".encode())
        with line.getresponse() as answer:
            return answer.status
    finally:
        line.close()


ORIGIN, KEY = "acme.example/assistant", key_of(1)


def note(size: int, history: int) -> str:
    bare = TreeNote(origin=ORIGIN, size=size, root=bytes([history]) * 32)
    signed = TreeNote(
        origin=ORIGIN, size=size, root=bare.root, signatures=(signed_note(bare.text, KEY, ORIGIN),)
    )
    return str(signed)


@contextmanager
def witness(folder: Path) -> Generator[tuple[str, subprocess.Popen[str]]]:
    command = ("witness", "--key", "w.pem", "--logs", "logs", "--state", "state", "--listen", "127.0.0.1:0")
    child = subprocess.Popen(
        process(*command), cwd=folder, env=environment(), stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    child.stdout.readline()
    try:
        yield child.stdout.readline().split("at ")[1].strip(), child
    finally:
        child.kill()
        child.wait(WAIT)
        child.stdout.close()


@pytest.mark.ci
@pytest.mark.clause("TLOG-5")
def test_a_witness_that_is_killed_at_any_time_cosigns_one_root_of_a_size(tmp_path: Path) -> None:
    """Many ask at once for as many first roots of one size; it is killed while they do, and asked again."""
    write_private(key_of(2), tmp_path / "w.pem")
    (tmp_path / "logs").write_text(f"{NamedKey(ORIGIN, KEY.public)}\n")
    cosigned: set[int] = set()
    for kill_after in (1, 3, 40):
        with witness(tmp_path) as (url, child):
            asked = threading.Semaphore(0)

            def ask(history: int, url: str = url, asked: threading.Semaphore = asked) -> None:
                with suppress(OSError, http.client.HTTPException):
                    if posted(url, 0, note(7, history)) == 200:
                        cosigned.add(history)
                asked.release()

            askers = [threading.Thread(target=ask, args=(history,)) for history in range(40)]
            for asker in askers:
                asker.start()
            for _ in range(kill_after):
                assert asked.acquire(timeout=WAIT)
            child.kill()
            for asker in askers:
                asker.join(WAIT)
    kept = json.loads((tmp_path / "state").read_bytes())["logs"][ORIGIN]

    assert len(cosigned) == 1
    assert {read_note(kept.encode()).root} == {bytes([history]) * 32 for history in cosigned}
