"""V1: the verifier that the page on reading the log prints, which needs none of our code, on logs of each kind."""

import re
import shutil
import zipfile
from pathlib import Path

import pytest

from intersession import SessionSystem, echo
from intersession_actors.hindsight.bundling.bundle import make_bundle
from intersession_actors.hindsight.bundling.wanted import BundleWanted
from support.any_log import changed_behind
from support.paths import DOCS

PAGE = (DOCS / "howto" / "read-the-log.md").read_text(encoding="utf-8")
(RECIPE,) = (one for one in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "def parts_of" in one)


@pytest.mark.clause("V1")
@pytest.mark.parametrize("kind", ["erased", "fork", "bundle"])
def test_the_recipe_proves_logs_with_erasures_forks_and_bundles_and_finds_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with SessionSystem("sqlite:///log.db", agents={"main": echo()}) as system:
        sent = {"sessionKey": "main", "message": "hello", "idempotencyKey": "1"}
        run = system.gateway.perform("chat.send", sent)
        system.gateway.perform("agent.wait", {"runId": run["runId"]})
        with system.fork(run["runId"], at="end") as fork:
            path = Path(fork.log.path)
        system.erase("agent:main:main")
        system.checkpoint()
        wanted = BundleWanted(session="agent:main:main")
        bundle = make_bundle(system.debug.view, wanted, tmp_path / "bundle.zip").path
    if kind == "bundle":
        with zipfile.ZipFile(bundle) as archive:
            Path("host.db").write_bytes(archive.read("log.db"))
    else:
        shutil.copy(path if kind == "fork" else "log.db", "host.db")

    exec(RECIPE, {})  # noqa: S102 - of our own page
    changed_behind(
        "host.db",
        "UPDATE stored_events SET topic='run_failed.1' WHERE rowid=(SELECT MAX(rowid) FROM stored_events)",
    )
    with pytest.raises(AssertionError):
        exec(RECIPE, {})  # noqa: S102 - the same
