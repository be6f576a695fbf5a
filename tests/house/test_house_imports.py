"""The import contracts of pyproject.toml hold, and each of them would notice what it forbids."""

import ast
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.paths import ROOT

SOURCE_ROOTS = ("actors", "events", "projections")
MOST_MODULES = 16
CONFIG: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

# (contract, module that breaks it, line planted there)
PLANTS = [
    (
        "Imports point one way",
        "events/intersession_events/basics/keys/key.py",
        "import intersession_projections.basics.columns",
    ),
    (
        "Imports point one way",
        "events/intersession_events/facts/base.py",
        "import intersession_actors.running.runtime",
    ),
    (
        "Imports point one way",
        "projections/intersession_projections/basics/columns.py",
        "import intersession_actors.rules.errors",
    ),
    ("Imports point one way", "actors/intersession_actors/running/runtime/clock.py", "import intersession"),
    ("Events and projections know nothing", "events/intersession_events/basics/keys/key.py", "import pykka"),
    (
        "Events and projections know nothing",
        "projections/intersession_projections/basics/columns.py",
        "import pykka",
    ),
    (
        "An actor never reads a view",
        "actors/intersession_actors/owners/exchange/rules.py",
        "import intersession_projections.basics.columns",
    ),
    ("Rules are pure", "actors/intersession_actors/owners/spawn/rules.py", "import time"),
    ("Threads, clocks and chance", "actors/intersession_actors/calls/service/reader.py", "import time"),
    ("Threads, clocks and chance", "events/intersession_events/log/recorded.py", "import secrets"),
    (
        "Threads, clocks and chance",
        "projections/intersession_projections/views/positions.py",
        "import threading",
    ),
    ("Rules are pure", "actors/intersession_actors/owners/session/rules.py", "import threading"),
    (
        "Only the store knows",
        "projections/intersession_projections/basics/columns.py",
        "import eventsourcing.sqlite",
    ),
    (
        "Only the room of PostgreSQL",
        "events/intersession_events/stores/opened.py",
        "import psycopg",
    ),
    (
        "Only the command line prints",
        "actors/intersession_actors/outside/channels/channels.py",
        "import rich",
    ),
]


CONTRACTS: list[dict[str, Any]] = CONFIG["tool"]["importlinter"]["contracts"]


def folder_of(room: str) -> Path:
    """Return the folder of a package of ours."""
    return next(found for each in SOURCE_ROOTS if (found := ROOT / each / room.replace(".", "/")).is_dir())


def floor_plants() -> Iterator[tuple[str, str, str]]:
    """Plant an import of the highest floor in the lowest one, for each list of rooms."""
    for contract in CONTRACTS:
        for container in contract.get("containers", ()):
            lowest, highest = (contract["layers"][at].split(" | ")[0] for at in (-1, 0))
            room = folder_of(container) / lowest
            module = room / "__init__.py" if room.is_dir() else room.with_suffix(".py")
            yield contract["name"], str(module.relative_to(ROOT)), f"import {container}.{highest}"


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


@pytest.mark.ci
def test_every_import_contract_breaks_on_an_import_it_forbids(copy: Path) -> None:
    plants = [*PLANTS, *floor_plants()]
    for _, path, planted in plants:
        module = copy / path
        text = module.read_text(encoding="utf-8")
        module.write_text(f"{text}\n{planted}\n", encoding="utf-8")

    linted = lint(copy)

    report = " ".join(linted.stdout.split())
    assert linted.returncode == 1
    for contract, path, planted in plants:
        importer = ".".join(Path(path).with_suffix("").parts[1:]).removesuffix(".__init__")
        imported = planted.removeprefix("import ")
        _, _, of_contract = linted.stdout.partition("Broken contracts")
        assert contract in of_contract
        chain = f"{importer} -> {imported if imported.startswith('intersession') else imported.split('.')[0]}"
        assert f"{chain} (l." in report, f"{contract}: {chain} was not noticed"


def test_every_contract_has_an_import_that_breaks_it() -> None:
    plants = [*PLANTS, *floor_plants()]
    unproven = [
        contract["name"]
        for contract in CONTRACTS
        if not any(contract["name"].startswith(planted) for planted, _, _ in plants)
    ]

    assert not unproven


EXHAUSTIVE = [(each["name"], each["containers"][0]) for each in CONTRACTS if each.get("exhaustive")]


@pytest.mark.ci
def test_a_module_that_is_in_no_room_is_noticed(copy: Path) -> None:
    for _, container in EXHAUSTIVE:
        stray = copy / folder_of(container).relative_to(ROOT) / "stray.py"
        stray.write_text('"""In no room."""\n', encoding="utf-8")

    linted = lint(copy)

    _, _, broken = linted.stdout.partition("Broken contracts")
    for name, container in EXHAUSTIVE:
        assert name in broken
        assert f"{container}.stray" in " ".join(broken.split()), container


FACES = {
    "intersession": "what a host imports",
    "intersession.cli": "the command's entry point",
    "intersession.gateway": "what a host mounts",
    "intersession.gateway.process": "loaded by its name, where the extra is installed",
    "intersession_events.facts": "the vocabulary: what adds an event adds its name",
    "intersession_events.log": "what the docs show",
    "intersession_events.proofs": "what the docs show",
    "intersession_events.stores": "what the docs show",
    "intersession_events.stores.postgres": "loaded by its name, where the extra is installed",
}
"""Packages that give names of their modules, and for whom. All others are imported from module by module."""


def test_only_packages_that_somebody_outside_enters_repeat_names_of_their_modules() -> None:
    packages = {
        ".".join(init.parent.relative_to(ROOT).parts[1:]): ast.parse(init.read_text(encoding="utf-8"))
        for each in SOURCE_ROOTS
        for init in (ROOT / each).rglob("__init__.py")
    }

    assert all(ast.get_docstring(parsed) for parsed in packages.values())
    assert {name for name, parsed in packages.items() if len(parsed.body) > 1} == set(FACES)


def test_every_list_of_rooms_is_whole() -> None:
    lists = {"intersession", "intersession.cli", "intersession.gateway"}
    lists |= {"intersession_actors", "intersession_events", "intersession_projections"}

    assert lists <= {container for _, container in EXHAUSTIVE}


def test_no_folder_has_more_modules_than_a_reader_takes_in() -> None:
    crowded = {
        str(folder.relative_to(ROOT)): count
        for each in SOURCE_ROOTS
        for folder in (ROOT / each).rglob("*/")
        if (count := len([module for module in folder.glob("*.py") if module.stem != "__init__"]))
        > MOST_MODULES
    }

    assert not crowded
