"""Help says what each command is for, and shells can complete them."""

import itertools
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from intersession.cli.app import COMMANDS, GROUPS, app, overview
from support.doors.command_line import ran, ran_as_process
from support.every_day import every_day

NAMES = [name for name in app if not name.startswith("-")]


@pytest.mark.parametrize("tokens", [(), ("--help",), ("-h",)])
def test_help_says_a_line_of_each_command(tokens: tuple[str, ...]) -> None:
    """Before: 13 commands stood there without a word."""
    told = ran_as_process(*tokens).out
    lines = {line.strip("│ ").split("  ")[0]: line.strip("│ ") for line in told.splitlines()}
    for name in NAMES:
        assert len(lines[name].split()) > 3, name


def test_the_line_of_a_command_is_the_first_of_its_own_help() -> None:
    """Before: help on all commands loads none of them, so the lines stand in the table, too."""
    brief = overview()
    assert {name: brief[name].help for name in NAMES} == {
        name: (app[name].help or str(app[name].default_command.__doc__)).strip().splitlines()[0]
        for name in NAMES
    }


@pytest.mark.parametrize(("typed", "meant"), [("status", "doctor"), ("ls", "sessions"), ("stop", "abort")])
def test_the_command_that_is_meant_is_suggested(typed: str, meant: str) -> None:
    """For `status` it was `state`, which only looks like it."""
    told = ran(typed)

    assert (told.exit_code, f'Did you mean "{meant}"?' in told.err) == (2, True)


_CLAUSE = re.compile(r"\b[A-Z]{3,}-\d+\b")
_ROOM = 63
"""So much of a line is left for what a command does, on a terminal of 80 characters."""


@pytest.mark.parametrize("name", NAMES)
def test_help_is_a_line_for_each_command_and_names_no_clause(name: str) -> None:
    """Before: it took up to three lines, and clauses stood in it."""
    assert len(overview()[name].help) <= _ROOM
    told = ran(name, "--help").out
    assert _CLAUSE.findall(told) == []


def test_a_paragraph_of_help_is_as_wide_as_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before: lines broke in the middle, where the source has its own."""
    monkeypatch.setenv("COLUMNS", "70")
    told = ran("serve", "--help").out.split("\n\n")
    (lines,) = [paragraph.splitlines() for paragraph in told if paragraph.startswith("It listens")]

    for line, following in itertools.pairwise(lines):
        assert len(f"{line.strip()} {following.split()[0]}") > 70


@pytest.mark.parametrize("shell", every_day(["bash", "zsh", "fish"], "fish"))
def test_a_shell_gets_a_script_that_knows_every_command(shell: str) -> None:
    """Before: there was no completion."""
    script = ran("completion", shell).out
    assert [name for name in NAMES if name not in script] == []


BASH = shutil.which("bash")


@pytest.mark.skipif(BASH is None, reason="there is no bash")
def test_bash_can_read_its_script(tmp_path: Path) -> None:
    script = tmp_path / "completion"
    script.write_text(ran("completion", "bash", "--json").json["script"], encoding="utf-8")
    subprocess.run([BASH or "", "-n", str(script)], check=True, timeout=60)


def test_each_command_stands_under_one_heading_of_the_help() -> None:
    assert Counter(name for names in GROUPS.values() for name in names) == Counter(COMMANDS.keys())
    told = ran("--help").out
    places = [told.index(heading) for heading in GROUPS]
    assert places == sorted(places)
    assert [len(names) for names in GROUPS.values() if len(names) > 12] == []
