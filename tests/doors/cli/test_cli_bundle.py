"""`intersession bundle`, and the answers of other commands as bundles."""

import json
import resource
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from support.doors.command_line import ran
from support.paths import DATA
from support.story import MAIN, Story

STATE = DATA / "openclaw" / "household"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    story = Story(tmp_path / "log.db")
    story.open(MAIN)
    story.say(MAIN, "Is it safe?")
    story.close()
    return tmp_path / "log.db"


@pytest.mark.clause("BUNDLE-7")
@pytest.mark.clause("BUNDLE-8")
def test_an_answer_is_written_as_a_bundle_that_is_checked_without_us(store: Path, tmp_path: Path) -> None:
    done = ran("search", "safe", "--bundle", tmp_path / "answer.zip", "--store", store, "--json")

    said = json.loads(done.out)
    assert said["bundle"]["file"] == str(tmp_path / "answer.zip")
    with zipfile.ZipFile(tmp_path / "answer.zip") as archive:
        (tmp_path / "verify.py").write_bytes(archive.read("verify.py"))
        answer = json.loads(archive.read("answer.json"))
    assert answer["answer"]["hits"] == said["hits"]
    checked = subprocess.run(
        [sys.executable, "-I", tmp_path / "verify.py", tmp_path / "answer.zip"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (checked.returncode, checked.stdout[:2]) == (0, "OK")


@pytest.mark.clause("BUNDLE-7", "BUNDLE-21")
def test_the_bundle_of_an_answer_withholds_what_is_asked(store: Path, tmp_path: Path) -> None:
    file = tmp_path / "words.zip"
    done = ran("search", "safe", "--bundle", file, "--redact", "words", "--store", store, "--json")
    alone = ran("search", "safe", "--redact", "words", "--store", store)

    assert done.exit_code == 0
    with zipfile.ZipFile(file) as archive:
        assert json.loads(archive.read("manifest.json"))["redacted"] == "words"
        assert all(b"Is it safe" not in archive.read(name) for name in archive.namelist())
    assert (alone.exit_code, "give --bundle FILE with it" in alone.err) == (2, True)


@pytest.mark.clause("BUNDLE-5")
@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        (("--all", "-o", "log.db"), 1, "is there already"),
        (("--all", "-o", "nowhere/new.zip"), 1, "is no directory"),
        (("-o", "new.zip"), 1, "or everything (`--all`)"),
        (("--all", "--run", "x", "-o", "new.zip"), 1, "these are 2"),
        (("--all",), 2, "-o FILE.zip"),
        (("--all", "-o", "new.zip", "--key", "none.pem"), 1, "none.pem"),
    ],
)
def test_a_bundle_that_can_not_be_made_leaves_nothing(
    store: Path,
    tmp_path: Path,
    given: tuple[str, ...],
    code: int,
    said: str,
) -> None:
    refused = ran("bundle", *given, "--store", store)

    assert (refused.exit_code, said in refused.err) == (code, True)
    assert not list(tmp_path.glob("*new.zip*"))


@pytest.mark.clause("BUNDLE-5")
def test_a_disk_without_room_leaves_nothing_of_a_bundle(store: Path, tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (34_000, before[1]))
    try:
        refused = ran("bundle", "--all", "-o", "new.zip", "--store", store)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    assert (refused.exit_code, "free some space" in refused.err) == (1, True)
    assert not list(tmp_path.glob("*new.zip*"))


def test_what_a_checkpoint_leaves_behind_itself_is_not_told_as_unproven(store: Path) -> None:
    before = ran("bundle", "--all", "-o", "before.zip", "--store", store)
    ran("checkpoint", "--store", store)

    after = ran("bundle", "--all", "-o", "after.zip", "--store", store)

    assert ("not proven" in before.out, "not proven" in after.out) == (True, False)


def test_one_event_of_one_stream_is_told_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ran("import", "openclaw", STATE, "--store", "imported.db")

    done = ran("imports", "--bundle", "imports.zip", "--store", "imported.db")

    with zipfile.ZipFile("imports.zip") as archive:
        readme, report = (archive.read(name).decode() for name in ("README.txt", "report.html"))
    for text in (done.out, readme, report):
        assert "1 event of 1 stream" in text
        assert "1 events" not in text
