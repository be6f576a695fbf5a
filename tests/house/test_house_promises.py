"""Each sentence of the pages that promise something is judged: it promises nothing, or names the tests that hold it."""

import pytest

from support.pages import promises
from support.paths import ROOT


@pytest.mark.parametrize("page", promises.PAGES)
def test_each_sentence_of_a_page_is_judged(page: str) -> None:
    now = promises.sentences((ROOT / page).read_text(encoding="utf-8"))

    assert [entry.sentence for entry in promises.judged(page)] == now, f"run: {promises.COMMAND}"
    unjudged = [entry.sentence for entry in promises.judged(page) if entry.verdict not in {"=", "-"}]
    assert not unjudged, (
        f"say in {promises.list_of(page)} which tests hold these, or that they promise nothing"
    )


@pytest.mark.parametrize("page", promises.PAGES)
def test_each_promise_names_tests_that_are_there(page: str) -> None:
    bare = [entry.sentence for entry in promises.judged(page) if entry.verdict == "=" and not entry.tests]
    assert not bare
    missing = {test for entry in promises.judged(page) for test in entry.tests} - promises.tests()
    assert not missing
    talkative = [entry.sentence for entry in promises.judged(page) if entry.verdict == "-" and entry.tests]
    assert not talkative, "what promises nothing has no test to name"


def test_sentences_are_read_from_paragraphs_items_and_tables() -> None:
    text = (
        "# Title\n\nOne is so. Two is [a link](x.md), too.\n**Three.** Four\ngoes on.\n\n"
        "```sh\nno sentence. None.\n```\n\n"
        "| head | it |\n| --- | --- |\n| a `row` | says it |\n\n- An item. With two.\n  1. Inner one.\n"
    )
    assert promises.sentences(text) == [
        "One is so.",
        "Two is a link, too.",
        "Three.",
        "Four goes on.",
        "a `row` | says it",
        "An item.",
        "With two.",
        "Inner one.",
    ]


def test_a_changed_sentence_is_to_be_judged_again() -> None:
    known = [
        promises.Judged("=", "Nothing that was answered is lost by a crash.", ["tests/test_x.py::test_y"])
    ]
    assert promises.written(known) == (
        "= Nothing that was answered is lost by a crash.\n  tests/test_x.py::test_y\n"
    )
