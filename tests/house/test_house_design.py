"""The page of the design shows the tree as it is: every room and every module beside the rooms, and nothing else."""

import re
from pathlib import Path

from support.paths import ROOT

PAGE = ROOT / "docs/explanation/design.md"
GROUPS = ("basics", "copies", "questions", "rules", "views")
"""Those that have modules beside their rooms."""
LINE = re.compile(r"(?P<indent> *)(?P<names>[\w/]+(?: {2}[\w/]+)*)(?: {3,}|$)")


def shown() -> set[str]:
    """Return the paths of the page's tree: rooms without the stroke at their end, modules without `.py`."""
    tree = next(
        block
        for block in PAGE.read_text().split("```")
        if block.startswith("text\nevents/intersession_events/")
    )
    above: dict[int, str] = {}
    paths = set[str]()
    for line in tree.splitlines()[1:]:
        if (found := LINE.match(line)) is None:
            continue
        indent = len(found["indent"])
        for name in re.split(r" {2,}", found["names"]):
            above[indent] = name.rstrip("/") if indent == 0 else f"{above[indent - 2]}/{name.rstrip('/')}"
            paths.add(above[indent])
    return paths


def built() -> set[str]:
    """Return the rooms of the source, and the modules that stand directly in a package or a group."""
    packages = [path.parent for path in ROOT.glob("*/intersession*/__init__.py")]
    rooms = {face.parent for package in packages for face in package.rglob("__init__.py")}
    loose = [*packages, *(package / group for package in packages for group in GROUPS)]
    modules = {module for folder in loose for module in folder.glob("*.py") if module.stem != "__init__"}
    return {_name(path) for path in rooms | modules} - {"events/intersession_events/transcripts"}


def _name(path: Path) -> str:
    return path.relative_to(ROOT).with_suffix("").as_posix()


def test_the_design_shows_every_room() -> None:
    assert sorted(built() - shown()) == []


def test_the_design_shows_no_room_that_is_gone() -> None:
    assert sorted(shown() - built()) == []
