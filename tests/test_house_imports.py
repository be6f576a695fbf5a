"""The import contracts of pyproject.toml hold, and each of them would notice what it forbids."""

import ast
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
SOURCE_ROOTS = ("actors", "events", "projections")
CONFIG: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

# (contract, module that breaks it, line planted there)
PLANTS = [
    ("Imports point one way", "events/intersession_events/keys.py", "import intersession_projections.rows"),
    ("Imports point one way", "events/intersession_events/fact.py", "import intersession_actors.clock"),
    (
        "Imports point one way",
        "projections/intersession_projections/rows.py",
        "import intersession_actors.codes",
    ),
    ("Imports point one way", "actors/intersession_actors/clock.py", "import intersession"),
    ("Events and projections know nothing", "events/intersession_events/keys.py", "import pykka"),
    ("Events and projections know nothing", "projections/intersession_projections/rows.py", "import pykka"),
    (
        "Actors and rules never read a view",
        "actors/intersession_actors/exchange_rules.py",
        "import intersession_projections.rows",
    ),
    ("Rules are pure", "actors/intersession_actors/spawn_rules.py", "import time"),
    ("Rules are pure", "actors/intersession_actors/session_rules.py", "import threading"),
    ("Only the store knows", "projections/intersession_projections/rows.py", "import eventsourcing.sqlite"),
    ("Only the command line prints", "actors/intersession_actors/channels.py", "import rich"),
]


def lint(root: Path) -> subprocess.CompletedProcess[str]:
    """Run the contracts of a copy of the project, whatever is installed beside it."""
    return subprocess.run(
        [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"],
        cwd=root,
        env={
            "PYTHONPATH": os.pathsep.join(str(root / each) for each in SOURCE_ROOTS),
            "PATH": os.environ["PATH"],
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for each in SOURCE_ROOTS:
        shutil.copytree(ROOT / each, tmp_path / each, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_every_import_contract_is_kept(copy: Path) -> None:
    linted = lint(copy)

    assert linted.returncode == 0, linted.stdout


def test_every_import_contract_breaks_on_an_import_it_forbids(copy: Path) -> None:
    for _, path, planted in PLANTS:
        module = copy / path
        text = module.read_text(encoding="utf-8")
        module.write_text(f"{text}\n{planted}\n", encoding="utf-8")

    linted = lint(copy)

    report = " ".join(linted.stdout.split())
    assert linted.returncode == 1
    for contract, path, planted in PLANTS:
        importer = ".".join(Path(path).with_suffix("").parts[1:])
        imported = planted.removeprefix("import ")
        _, _, of_contract = linted.stdout.partition("Broken contracts")
        assert contract in of_contract
        chain = f"{importer} -> {imported if imported.startswith('intersession') else imported.split('.')[0]}"
        assert f"{chain} (l." in report, f"{contract}: {chain} was not noticed"


def test_every_contract_has_an_import_that_breaks_it() -> None:
    contracts = [contract["name"] for contract in CONFIG["tool"]["importlinter"]["contracts"]]

    unproven = [name for name in contracts if not any(name.startswith(planted) for planted, _, _ in PLANTS)]

    assert not unproven


def test_every_actor_and_every_module_of_rules_is_under_a_contract() -> None:
    """Whoever adds an actor or a rule adds its module to the contract in pyproject.toml."""
    contract = next(
        each
        for each in CONFIG["tool"]["importlinter"]["contracts"]
        if each["name"] == "Actors and rules never read a view"
    )
    package = ROOT / "actors" / "intersession_actors"
    deciding = {
        f"intersession_actors.{module.stem}"
        for module in package.glob("*.py")
        if not module.stem.startswith("config_")
        and (module.stem.endswith(("_rules", "_steps")) or _defines_an_actor(module))
    }

    assert deciding <= set(contract["source_modules"])


def _defines_an_actor(module: Path) -> bool:
    bases = {"Handler", "ProcessManager"}
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef) and any(
            isinstance(name, ast.Name) and name.id in bases for base in node.bases for name in ast.walk(base)
        ):
            return True
    return False
