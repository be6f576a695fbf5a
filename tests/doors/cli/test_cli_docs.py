"""Every command and every option has help, and is on the page of the command line."""

import re
from collections.abc import Iterator

import pytest
from cyclopts import App

from intersession.cli.app import app
from support.paths import DOCS

PAGE = (DOCS / "reference" / "command-line.md").read_text(encoding="utf-8")
BUILT_IN = {"--help", "-h", "--version"}


def commands(parent: App, path: tuple[str, ...] = ()) -> Iterator[tuple[str, App]]:
    """Yield every command that does something, by its words."""
    for name in parent:
        if name in BUILT_IN:
            continue
        command = parent[name]
        yield from commands(command, (*path, name))
        if command.default_command is not None:
            yield " ".join((*path, name)), command


COMMANDS = dict(commands(app))
SERVERS = {"mcp", "serve", "witness", "work"}
"""Commands that speak a protocol of their own for as long as they last, or work until a signal comes."""


def options(command: App) -> dict[str, str | None]:
    """Return the options of a command, each with its help."""
    arguments = command.assemble_argument_collection(
        default_parameter=app.default_parameter, parse_docstring=True
    )
    return {
        name: argument.parameter.help
        for argument in arguments
        if argument.show
        for name in argument.names
        if name.startswith("--")
    }


def section(command: str) -> str:
    found = re.search(rf"^## intersession {command}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None, f"docs/reference/command-line.md has no section `## intersession {command}`"
    return found[1]


def test_there_are_the_commands_that_the_page_has_sections_for() -> None:
    assert sorted(re.findall(r"^## intersession (.+)$", PAGE, re.MULTILINE)) == sorted(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_says_what_it_does(command: str) -> None:
    assert COMMANDS[command].help.strip()


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_of_a_command_has_help_and_is_on_the_page_and_no_other_is(command: str) -> None:
    given = options(COMMANDS[command])
    table = re.findall(r"^\| ((?:`--[\w-]+`(?:, )?)+) \| ", section(command), re.MULTILINE)

    assert [name for name, text in given.items() if not text] == []
    assert sorted(given) == sorted(name for cell in table for name in re.findall(r"--[\w-]+", cell))


@pytest.mark.parametrize("command", sorted(COMMANDS.keys() - SERVERS))
def test_every_command_can_answer_in_json(command: str) -> None:
    assert "--json" in options(COMMANDS[command])


def test_no_page_names_a_command_that_there_is_not() -> None:
    known = {command.split()[0] for command in COMMANDS}
    named = re.compile(r"(?:`|^\$ )intersession ([a-z][a-z-]+)", re.MULTILINE)
    unknown = {
        f"{page.relative_to(DOCS)}: {name}"
        for page in DOCS.rglob("*.md")
        for name in named.findall(page.read_text(encoding="utf-8"))
        if name not in known
    }

    assert unknown == set()
