"""The protocol's clauses and the marks of the tests fit together."""

import ast

from support import hostile
from support.pages import clauses


def test_the_page_of_clauses_is_current() -> None:
    assert clauses.CLAUSES.read_text(encoding="utf-8") == clauses.current_page(), (
        f"docs/clauses.md is not what the marks say; run: {clauses.COMMAND}"
    )


def test_every_mark_names_a_clause() -> None:
    known = {clause for section in clauses.all_clauses().values() for clause in section}
    unknown = {clause: names for clause, names in clauses.marked().items() if clause not in known}
    assert not unknown


def test_clauses_are_read_from_the_protocol() -> None:
    text = "1. no clause\n## One (ONE)\n1. first\n   2. not one\n2. second\n\n## Else\n1. no\n## Two (TWO)\n10. tenth\n"
    assert clauses.protocol_clauses(text) == {"One": ["ONE-1", "ONE-2"], "Two": ["TWO-10"]}
    assert clauses.reliability_clauses(
        "## Facts\n| F1 | z |\n## Goals\n|---|\n| D1 | x |\n| PG2 | y |\n## Goals of later versions\n| E1 | x |\n"
    ) == ["D1", "PG2"]


def test_marks_are_read_from_tests_classes_modules_and_parameters() -> None:
    source = (
        "pytestmark = pytest.mark.clause('A-1')\n"
        "@pytest.mark.clause('A-2', 'A-3')\n"
        "class TestThings:\n"
        "    @pytest.mark.clause('A-4')\n"
        "    async def test_one(self): ...\n"
        "@pytest.mark.parametrize('x', [pytest.param(1, marks=pytest.mark.clause('A-5'))])\n"
        "def test_two(x): ...\n"
    )
    assert list(clauses._marks(ast.parse(source), "f.py")) == [
        ("f.py", "A-1"),
        ("f.py::TestThings::test_one", "A-4"),
        ("f.py::TestThings", "A-2"),
        ("f.py::TestThings", "A-3"),
        ("f.py::test_two", "A-5"),
    ]


def test_a_clause_without_a_test_shows() -> None:
    page = clauses.page({"One": ["ONE-1", "ONE-2"]}, {"ONE-1": ["tests/a/test_x.py::test_y"]})

    assert "1 of 2 clauses have a test." in page
    assert "Without a test: ONE-2." in page
    assert "| ONE-1 | `a/test_x` |\n" in page
    assert "| ONE-2 | no test |\n" in page


def test_a_file_with_several_tests_of_a_clause_stands_once() -> None:
    names = ["tests/test_x.py::test_y", "tests/test_z.py::test_y", "tests/test_z.py::test_y2"]
    page = clauses.page({"One": ["ONE-1"]}, {"ONE-1": names})

    assert "| ONE-1 | `test_z`&nbsp;(2), `test_x` |\n" in page


def test_every_hostile_row_has_an_id_of_its_own_and_an_input() -> None:
    rows = [row for area in "KVPTNAGWRBS" for row in hostile.rows(area)]

    assert len({row["id"] for row in rows}) == len(rows) == len(hostile._ROWS)
    assert all(("input" in row) != ("gen" in row) for row in rows)
