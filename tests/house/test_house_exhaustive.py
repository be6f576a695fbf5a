"""A new event or command fails the type checks until each state and each handler says what it does with it."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.paths import ROOT

OWNERS = "actors/intersession_actors/owners"
FACTS = "events/intersession_events/facts"

# (module, union in it, base of what is planted, modules that must not pass)
UNIONS = [
    (f"{FACTS}/session.py", "SessionEvent", "Fact", [f"{OWNERS}/session/state.py"]),
    (f"{FACTS}/run.py", "RunEvent", "Fact", [f"{OWNERS}/session/state.py"]),
    (
        f"{FACTS}/exchange.py",
        "ExchangeEvent",
        "Fact",
        [f"{OWNERS}/exchange/rules.py"],
    ),
    (f"{FACTS}/spawn.py", "SpawnEvent", "Fact", [f"{OWNERS}/spawn/rules.py"]),
    (
        f"{FACTS}/delivery.py",
        "DeliveryEvent",
        "Fact",
        [f"{OWNERS}/delivery/rules.py", f"{OWNERS}/delivery/effects.py"],
    ),
    (f"{OWNERS}/session/commands.py", "SessionCommand", "Command", [f"{OWNERS}/session/deciding.py"]),
    (f"{OWNERS}/exchange/commands.py", "ExchangeCommand", "Resume", [f"{OWNERS}/exchange/coordinator.py"]),
    (f"{OWNERS}/spawn/commands.py", "SpawnCommand", "FlowCommand", [f"{OWNERS}/spawn/spawner.py"]),
    (f"{OWNERS}/delivery/commands.py", "DeliveryCommand", "FlowCommand", [f"{OWNERS}/delivery/outbox.py"]),
]
HANDLERS = sorted({handler for *_, handlers in UNIONS for handler in handlers})


def plant(path: Path, union: str, base: str) -> None:
    """Put one more member in front of a union."""
    text = path.read_text(encoding="utf-8")
    member = f"Novel{union}"
    # A command derived from another one would be handled as that one is.
    parent = {"Resume": "FlowCommand"}.get(base, base)
    imported = "" if parent in text else f"from intersession_actors.owners.streams.commands import {parent}\n"
    planted = re.sub(
        rf"^{union} = (\(?)",
        f'{imported}\n\nclass {member}({parent}, frozen=True, kw_only=True):\n    """New."""\n\n\n{union} = \\1{member} | ',
        text,
        count=1,
        flags=re.MULTILINE,
    )
    assert planted != text, f"{path} has no {union}"
    path.write_text(planted, encoding="utf-8")


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("planted")
    for each in ("actors", "events", "projections"):
        shutil.copytree(ROOT / each, root / each, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", root)
    for path, union, base, _ in UNIONS:
        plant(root / path, union, base)
    settings = {
        "include": HANDLERS,
        "extraPaths": ["actors", "events", "projections"],
        "typeCheckingMode": "strict",
    }
    (root / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    return root


def checked(root: Path, *command: str) -> str:
    tool = Path(sys.executable).parent / command[0]
    ran = subprocess.run(
        [str(tool), *command[1:]], cwd=root, capture_output=True, text=True, check=False, timeout=100
    )
    said = ran.stdout.replace(f"{root}/", "")
    if command[0] != "pyright":
        return said
    found = json.loads(said)["generalDiagnostics"]
    return "\n".join(f"{each['file']}: {each['message']!r} ({each.get('rule')})" for each in found)


@pytest.mark.types
@pytest.mark.parametrize(
    ("command", "sign"),
    [
        pytest.param(
            ("mypy", "--no-incremental", "--cache-dir", "/dev/null", *HANDLERS), "exhaustive-match", id="mypy"
        ),
        pytest.param(
            ("pyright", "--outputjson", "--pythonpath", sys.executable),
            "reportMatchNotExhaustive",
            id="pyright",
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_a_planted_event_or_command_fails_the_check_of_each_handler(
    copy: Path, command: tuple[str, ...], sign: str
) -> None:
    said = checked(copy, *command)

    for _, union, _, handlers in UNIONS:
        for handler in handlers:
            about = [line for line in said.splitlines() if handler in line and f"Novel{union}" in line]
            assert about, f"{handler} says nothing to a new {union}:\n{said}"
    assert sign in said
