"""`intersession verify BUNDLE` says what the bundle's own `verify.py` says, which `bundle --verifier` writes."""

import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from intersession_events.copies.bundles import verify
from support.doors.command_line import DemoLog, ran


@pytest.mark.ci
@pytest.mark.clause("BUNDLE-10")
def test_verify_takes_a_bundle_and_says_the_same_as_the_file_that_is_handed_out(
    demo_log: DemoLog, tmp_path: Path
) -> None:
    bundle, file = tmp_path / "b.zip", tmp_path / "verify.py"
    assert ran("bundle", "--all", "-o", bundle, "--store", demo_log.path).exit_code == 0
    written = ran("bundle", "--verifier", file, "--json")
    assert written.json["sha256"] == sha256(file.read_bytes()).hexdigest()
    assert file.read_bytes() == Path(verify.__file__).read_bytes()

    by_file = subprocess.run(
        [sys.executable, "-I", file, bundle], capture_output=True, text=True, check=False
    )
    by_command = ran("verify", bundle)
    assert (by_file.returncode, by_command.exit_code) == (0, 0)
    assert by_file.stdout == by_command.out
    assert by_file.stdout.startswith("OK: ")

    bundle.write_bytes(bundle.read_bytes()[:-1] + b"!")
    found = ran("verify", bundle, "--json")
    assert (found.exit_code, found.json["ok"], found.json["counts"]) == (4, False, {"archive": 1})
    assert (
        subprocess.run([sys.executable, "-I", file, bundle], capture_output=True, check=False).returncode == 1
    )


@pytest.mark.clause("BUNDLE-10")
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["verify", "nothing.zip"], 1, "can't be read"),
        (["verify", "nothing.zip", "--at", "3"], 2, "no other option"),
        (["bundle"], 2, "-o FILE.zip"),
        (["bundle", "--verifier", "there.py"], 1, "there.py can't be written"),
    ],
)
def test_what_can_not_be_checked_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there.py").write_text("mine", encoding="utf-8")
    refused = ran(*arguments)
    assert refused.exit_code == code
    assert said in refused.err
    assert (tmp_path / "there.py").read_text(encoding="utf-8") == "mine"
