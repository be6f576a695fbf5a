"""The web debugger's own modules and style sheets are written to be read: there is no build step that anybody else reads.

They lie in folders by subject, and import one way, as the packages do.
"""

import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

from support.paths import ROOT

STATIC = ROOT / "actors" / "intersession" / "web" / "static"
FOLDERS = ("base", "asking", "parts", "lists", "deeds", "run", "compare", "frame", "pages")
"""The folders of the scripts, from below: a module imports from its own folder and from those before it."""

FIRST = "app.js"
IMPORTED = re.compile(r"^import (?:[^']* from )?'(\.[^']+)';$", re.MULTILINE)
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


CLASS = re.compile(r"[.#]([a-zA-Z][\w-]*)")
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
SELECTORS = re.compile(r"(?:^|[{}])([^{};@]+)(?=\{)")
MADE_OF_PARTS = re.compile(r"c-(?:h\d+|channel)|deep-[1-4]")
"""Classes whose names scripts put together, of a number or of a kind."""


def test_the_page_names_each_style_sheet_once_as_its_folder_lies() -> None:
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    named = re.findall(r'<link rel="stylesheet" href="\{files\}([^"]+)">', page)

    assert sorted(named) == sorted(path.relative_to(STATIC).as_posix() for path in STATIC.rglob("*.css"))
    assert named == sorted(named, key=folder_of), "a sheet may change what those of lower folders say"
    assert named[0] == "base/tokens.css"


def test_each_class_of_a_style_sheet_is_named_by_a_script() -> None:
    scripts = "".join(line for _, line in lines_of(".js")) + (STATIC / "index.html").read_text(
        encoding="utf-8"
    )
    words = set(re.findall(r"[\w-]+", scripts))

    unused = [
        f"{path.relative_to(STATIC)}: {name}"
        for path in sorted(STATIC.rglob("*.css"))
        for selectors in SELECTORS.findall(COMMENT.sub("", path.read_text(encoding="utf-8")))
        for name in CLASS.findall(selectors)
        if name not in words and not MADE_OF_PARTS.fullmatch(name)
    ]
    assert unused == []


def own_modules() -> dict[str, list[str]]:
    """Return every module of ours with those that it imports, by their paths."""
    found: dict[str, list[str]] = {}
    for path in sorted(STATIC.rglob("*.js")):
        imported = IMPORTED.findall(path.read_text(encoding="utf-8"))
        paths = [(path.parent / other).resolve().relative_to(STATIC).as_posix() for other in imported]
        found[path.relative_to(STATIC).as_posix()] = [
            other for other in paths if not other.startswith("vendor/")
        ]
    return found


def folder_of(module: str) -> int:
    """Return how high a module lies: all that is imported lies below, or beside it."""
    return len(FOLDERS) if module == FIRST else FOLDERS.index(module.split("/", maxsplit=1)[0])


def test_every_script_lies_in_a_folder_and_imports_from_no_higher_one() -> None:
    modules = own_modules()

    up = [
        f"{module} imports {other}"
        for module, imported in modules.items()
        for other in imported
        if folder_of(other) > folder_of(module)
    ]
    assert up == []
    assert {module.split("/")[0] for module in modules} == {*FOLDERS, FIRST}


def test_no_script_imports_itself_over_others_and_each_is_reached_from_the_first() -> None:
    modules = own_modules()
    below_first = [FIRST]
    for module in below_first:
        below_first.extend(other for other in modules[module] if other not in below_first)

    assert sorted(TopologicalSorter(modules).static_order()) == sorted(modules)
    assert sorted(below_first) == sorted(modules)
