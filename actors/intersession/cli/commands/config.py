"""`intersession config`: what the system would say of a configuration file, without starting anything."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from intersession.cli.shell import REFUSED, Answer, Json, Screen, safe
from intersession_actors.errors import ConfigError
from intersession_actors.system import prepared

config = App(name="config", help="Look at configurations.")


@config.command
def check(
    file: Annotated[Path, Parameter(help="The configuration file (JSON5).")], /, *, json: Json = False
) -> Answer:
    """Check a configuration file as a start would: every unknown key and bad value with its path.

    Exit code 1 if it would be refused.
    """
    del json
    try:
        loaded = prepared(file)
    except ConfigError as error:
        problems = [{"path": problem.path, "what": problem.what} for problem in error.problems]
        value = {"ok": False, "file": str(file), "problems": problems, "notices": []}
        lines = [str(problem) for problem in error.problems]
        return Answer(value, lambda screen: _show(screen, file, lines, ()), REFUSED)
    value = {
        "ok": True,
        "file": str(file),
        "problems": [],
        "notices": list(loaded.notices),
        "digest": loaded.config.digest(),
    }
    return Answer(value, lambda screen: _show(screen, file, (), loaded.notices))


def _show(
    screen: Screen, file: Path, problems: list[str] | tuple[str, ...], notices: tuple[str, ...]
) -> None:
    if problems:
        screen.line(safe("refused: ", "bold red"), str(file))
    else:
        screen.line(safe("good: ", "bold green"), str(file))
    for problem in problems:
        screen.indented(problem, 2)
    for notice in notices:
        screen.line(safe("  notice: ", "yellow"), notice)
