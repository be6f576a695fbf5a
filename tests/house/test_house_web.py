"""The web debugger's own modules and style sheets are written to be read: there is no build step that anybody else reads."""

import re
from collections.abc import Iterator
from pathlib import Path

from support.paths import ROOT

STATIC = ROOT / "actors" / "intersession" / "web" / "static"
MOST_LETTERS = 120
SECOND_STATEMENT = re.compile(r";\s+(?:(?:const|let|return|if|for|while|throw|await)\b|[\w.]+(?:\(| = ))")


def lines_of(*kinds: str) -> Iterator[tuple[str, str]]:
    """Yield every line that is ours, with where it stands; what is vendored is its authors'."""
    for path in sorted(STATIC.rglob("*")):
        if path.suffix in kinds and "vendor" not in path.parts:
            yield from _lines(path)


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        yield f"{path.relative_to(STATIC)}:{number}", line


def test_lines_of_scripts_and_styles_are_short() -> None:
    assert [where for where, line in lines_of(".js", ".css") if len(line) > MOST_LETTERS] == []


def test_a_line_of_a_script_has_one_statement() -> None:
    lines = [(where, line.partition("//")[0]) for where, line in lines_of(".js") if "for (" not in line]
    assert [where for where, line in lines if SECOND_STATEMENT.search(line)] == []


def test_a_line_of_a_style_sheet_has_one_declaration() -> None:
    assert [where for where, line in lines_of(".css") if line.count(";") > 1] == []
