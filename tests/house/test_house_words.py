"""The project speaks of itself alone: no path of one machine, nothing that only its writers could know."""

import re
import subprocess

import pytest

from support.paths import ROOT

KEPT_OUT = {".git", ".venv", "dist", "build", "node_modules"}
# Data of other systems is quoted as it was found, and the checks know where they look for samples.
QUOTED = ("tests/data/", ".ci/run")

MACHINE_PATH = re.compile(r"(?<![\w.~$}\-/])/(?:tmp|work|root|farm|home|Users|opt)/[A-Za-z0-9]")
OF_ITS_MAKING = re.compile(
    r"\b(?:the brief|(?:another|other) helpers?|sub-?task \d|as instructed)\b", re.IGNORECASE
)


def tracked() -> list[str]:
    """Return the names of all files that belong to the project; without git, of all that look like it."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z"],  # noqa: S607 - whichever git there is
            cwd=ROOT,
            capture_output=True,
            check=True,
        )
        return [name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()]
    except (OSError, subprocess.CalledProcessError):
        return [
            str(path)
            for path in (each.relative_to(ROOT) for each in ROOT.rglob("*") if each.is_file())
            if not any(part in KEPT_OUT or part.startswith(".") for part in path.parts)
        ]


def texts() -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for name in tracked():
        try:
            found.append((name, (ROOT / name).read_text(encoding="utf-8")))
        except UnicodeDecodeError:
            continue
    return found


def findings(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{name}:{number}: {line.strip()[:120]}"
        for name, text in texts()
        if not name.startswith(QUOTED) and name != "tests/house/test_house_words.py"
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]


def test_no_file_names_a_path_of_one_machine() -> None:
    assert findings(MACHINE_PATH) == []


def test_no_file_speaks_of_how_it_was_made() -> None:
    assert findings(OF_ITS_MAKING) == []


@pytest.mark.parametrize("line", ["see /tmp/notes", "cd /home/ann/project", 'open("/root/x")'])
def test_a_planted_path_is_seen(line: str) -> None:
    assert MACHINE_PATH.search(line)


@pytest.mark.parametrize(
    "line", ["sqlite:////srv/notes.db", "a/tmp/b", "$HOME/.cache", "https://x.org/work/it"]
)
def test_what_is_no_path_of_a_machine_is_let_be(line: str) -> None:
    assert not MACHINE_PATH.search(line)
