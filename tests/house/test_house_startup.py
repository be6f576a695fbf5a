"""What is imported before anybody asks for it: extras are, one by one, when they are first used (finding E10)."""

import json
import subprocess
import sys
from collections.abc import Iterable
from typing import Any

import pytest

from support.paths import ROOT

OURS = {"intersession", "intersession_actors", "intersession_events", "intersession_projections"}
BASE = {"eventsourcing", "json5", "msgspec", "pykka", "typing_extensions"}
HELP = {"attr", "attrs", "cyclopts", "docstring_parser", "rich"}
SHELL = BASE | HELP
WHEN_USED = {
    "apprise",
    "httpx",
    "httpx2",
    "mcp",
    "mcp_types",
    "openai",
    "pydantic",
    "pydantic_ai",
    "pydantic_core",
    "sse_starlette",
}
"""What takes seconds and tens of megabytes together. A gateway that nobody has asked for it has none of it."""

LISTS = [
    "audit",
    "deliveries",
    "events",
    "history",
    "messages",
    "replay",
    "runs",
    "sessions",
    "tail",
    "usage",
]
"""Commands that list and tell what a log has. They take no longer to start than to answer."""
WRITING = {
    "agents",
    "attachments",
    "channels",
    "delivery",
    "exchange",
    "forking",
    "host",
    "methods",
    "replaying",
    "session",
    "spawn",
    "streams",
}
"""The rooms of whoever writes a log: commands that read it need none of them."""

VERBS_NEED: dict[str, set[str]] = {
    "diff": {"exchange", "spawn", "streams"},
    "lens": {"agents", "attachments", "session", "streams"},
    "origin": set(),
    "search": set(),
    "show": set(),
    "smells": set(),
    "state": {"exchange", "spawn", "streams"},
}
"""Commands of one verb of the debugger, and the rooms of whoever writes a log whose rules or folding they ask."""

ROOMS = """
import json, os, sys
from intersession.cli.app import app

found = {}
for name in json.loads(sys.argv[1]):
    ours, theirs = os.pipe()
    if os.fork() == 0:
        app[name]  # that loads its module
        if sys.argv[2:]:
            from intersession_actors.hindsight.debugger.verbs.verbs import VERBS
            VERBS[name].arguments  # and that what the verb does
        with open(theirs, "w", encoding="utf-8") as told:
            json.dump(sorted(sys.modules), told)
        os._exit(0)
    os.close(theirs)
    with open(ours, encoding="utf-8") as told:
        found[name] = json.load(told)
    os.wait()
print(json.dumps(found))
"""

SCRIPT = """
import json, os, signal, sys, tempfile
from importlib import import_module

def loaded():
    return sorted({name.partition(".")[0] for name in sys.modules} - sys.stdlib_module_names)

def said(step):
    seen[step] = loaded()

seen, before = {}, set(loaded())
import intersession
said("import intersession")

import contextlib, io
from intersession.cli import main
with contextlib.redirect_stdout(io.StringIO()) as told:
    assert main(["--help"]) == 0
assert "Let two agents talk" in told.getvalue()
said("--help")

intersession.SessionSystem
said("SessionSystem")

from intersession.cli.app import app
for name in app:
    if not name.startswith("-"):
        app[name]  # that loads its module
        said(name)

from intersession.gateway import process
from intersession_actors.outside.agents.configured import configured_agents
settings = {
    "gateway": {"auth": {"token": "t" * 32}},
    "models": {"providers": {"lab": {"baseUrl": "http://127.0.0.1:9/v1", "api": "openai-completions"}}},
    "agents": {"defaults": {"model": "lab/m"}},
}
config = intersession.load_config(settings).config
agents = configured_agents(config).agents
assert list(agents) == ["main"], agents

def ready(address):
    list(process.startup_lines(system, address, config_file=None))
    said("serving")
    os.kill(os.getpid(), signal.SIGTERM)

with tempfile.TemporaryDirectory() as folder:
    with intersession.SessionSystem(f"sqlite:///{folder}/log.db", agents=agents, config=settings) as system:
        process.serve(system, port=0, ready=ready)

print(json.dumps({step: [name for name in names if name not in before] for step, names in seen.items()}))
"""


@pytest.fixture(scope="module")
def loaded() -> dict[str, set[str]]:
    """Say which libraries a fresh process has loaded after each step."""
    asked = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert asked.returncode == 0, asked.stderr
    steps: dict[str, Any] = json.loads(asked.stdout.splitlines()[-1])
    return {
        step: {name for name in names if not name.startswith("_")} - OURS for step, names in steps.items()
    }


def test_the_package_and_help_on_all_commands_load_no_library_of_the_systems(
    loaded: dict[str, set[str]],
) -> None:
    assert loaded["import intersession"] == set()
    assert loaded["--help"] <= HELP


def test_the_system_loads_the_libraries_that_it_cannot_be_without(loaded: dict[str, set[str]]) -> None:
    assert loaded["SessionSystem"] <= SHELL


def test_the_command_line_adds_its_shell_alone_whichever_command_it_is(loaded: dict[str, set[str]]) -> None:
    commands = loaded.keys() - {"import intersession", "--help", "SessionSystem", "serving"}
    assert {"demo", "serve", "mcp", "verify"} <= commands
    assert {step: loaded[step] - SHELL for step in commands if loaded[step] - SHELL} == {}


def test_a_gateway_that_serves_has_not_loaded_what_nobody_has_asked_for(loaded: dict[str, set[str]]) -> None:
    assert {"litestar", "uvicorn"} <= loaded["serving"]
    assert loaded["serving"] & WHEN_USED == set()


def loaded_by(commands: Iterable[str], *further: str) -> dict[str, list[str]]:
    """Say which modules each of some commands loads before it is called; `verb`: with the verb that it calls."""
    asked = subprocess.run(
        [sys.executable, "-c", ROOMS, json.dumps([*commands]), *further],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
    )
    modules: dict[str, list[str]] = json.loads(asked.stdout)
    assert list(modules) == [*commands]
    return modules


def rooms_of_writers(names: Iterable[str]) -> set[str]:
    return {
        name.split(".")[2]
        for name in names
        if name.startswith("intersession_actors.") and name.count(".") > 1
    } & WRITING


def test_a_command_that_lists_loads_nothing_of_what_writes() -> None:
    """A face that loads its names on demand keeps it so: one import of what writes brings half a system with it."""
    for command, names in loaded_by(LISTS).items():
        assert "intersession_actors.calls.service.reader" in names, command
        assert rooms_of_writers(names) == set(), command
        assert {"asyncio", "pykka", "email", "ssl"} & {*names} == set(), command


@pytest.mark.ci
def test_a_verb_loads_what_it_needs_and_no_other_verb_does() -> None:
    """All of them together are half as much again: sealed replay alone has every actor."""
    for command, names in loaded_by(VERBS_NEED, "verb").items():
        assert f"intersession_actors.hindsight.debugger.{command}" in names, command
        assert rooms_of_writers(names) - {"host"} == VERBS_NEED[command], command
        assert {"asyncio", "pykka", "ssl"} & {*names} == set(), command
        assert not any(name.endswith((".coordinator", ".spawner", ".outbox", ".actor")) for name in names), (
            command
        )
