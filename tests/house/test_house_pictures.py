"""The pictures of the pages show what commands print today."""

from pathlib import Path

import pytest

from support.pages.pictures import PICTURES, outputs, picture, words


@pytest.fixture(scope="module")
def today(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    found = outputs(Path(tmp_path_factory.mktemp("pictures")))
    return {name: words(picture(name, command, lines)) for name, (command, lines) in found.items()}


def test_each_picture_has_the_lines_that_are_printed_today(today: dict[str, list[str]]) -> None:
    for name, lines in today.items():
        drawn = words((PICTURES / f"{name}.svg").read_text(encoding="utf-8"))
        # What two agents do at the same time is printed in either order.
        assert sorted(drawn) == sorted(lines), f"{name}: run python tests/support/pages/pictures.py --write"


def test_nothing_in_a_picture_is_fetched_from_elsewhere() -> None:
    pictures = sorted(PICTURES.glob("*.svg"))

    assert pictures
    for path in pictures:
        drawn = path.read_text(encoding="utf-8")
        assert "http" not in drawn.replace('xmlns="http://www.w3.org/2000/svg"', "")
