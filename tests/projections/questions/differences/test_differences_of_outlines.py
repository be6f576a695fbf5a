"""What differs between two runs, by their parts: laws that hold for any two, and which words are marked (DIFF)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intersession_projections.questions.differences.comparing import compare
from intersession_projections.questions.differences.parts import Outline, Part, Totals
from intersession_projections.questions.differences.wording import Marked, marked

WORDS = st.text(st.sampled_from("ab .\n"), max_size=12)
IDS = st.sampled_from([f"{number:08}-0000-4000-8000-000000000000" for number in range(4)])
MIRRORED = {"same": "same", "changed": "changed", "only_a": "only_b", "only_b": "only_a"}


def parts(inner: st.SearchStrategy[Part] | None = None) -> st.SearchStrategy[Part]:
    def part(name: str, text: str, run: str, position: int, within: list[Part]) -> Part:
        said = {"text": f"{text} {run}"}
        return Part(
            name=name, likeness=text, position=position, fields=said, ids={"run": run}, parts=tuple(within)
        )

    names = st.sampled_from(["start", "turn:1", "turn:2", "sessions_send", "end"])
    within = st.just([]) if inner is None else st.lists(inner, max_size=3)
    return st.builds(part, names, WORDS, IDS, st.integers(1, 99), within)


OUTLINES = st.lists(parts(parts()), max_size=5).map(
    lambda found: Outline(kind="run", parts=tuple(found), lanes={}, totals=Totals())
)


@pytest.mark.clause("DIFF-1", "DIFF-2")
@settings(max_examples=40)
@given(OUTLINES)
def test_a_run_does_not_differ_from_itself(run: Outline) -> None:
    for exact in (False, True):
        found = compare(run, run, exact=exact)
        assert found.same
        assert all(row.kind == "same" and row.a == row.b for row in found.rows)


@pytest.mark.clause("DIFF-1", "DIFF-2")
@settings(max_examples=60)
@given(OUTLINES, OUTLINES)
def test_every_part_is_told_once_and_alike_the_other_way_round(a: Outline, b: Outline) -> None:
    def count(found: tuple[Part, ...]) -> int:
        return sum(1 + count(part.parts) for part in found)

    there, back = compare(a, b), compare(b, a)
    assert {(row.path, MIRRORED[row.kind]) for row in there.rows} == {
        (row.path, row.kind) for row in back.rows
    }
    assert len({row.path for row in there.rows}) == len(there.rows)
    assert sum(row.a is not None for row in there.rows) == count(a.parts)
    assert sum(row.b is not None for row in there.rows) == count(b.parts)
    assert there.same == back.same == all(row.kind == "same" for row in there.rows)
    if there.first is not None and back.first is not None:
        assert (there.first.path, there.first.a, there.first.b) == (
            back.first.path,
            back.first.b,
            back.first.a,
        )


@pytest.mark.clause("DIFF-1")
@given(WORDS, WORDS)
def test_marked_words_are_the_words_of_both_texts(a: str, b: str) -> None:
    found = marked(a, b)
    other = {"a": "b", "b": "a", "both": "both"}
    for side, text in (("a", a), ("b", b)):
        assert "".join(one.text for one in found if one.of in {side, "both"}) == text
        back = [Marked("both", one.text) for one in found if one.of == "both"]
        assert back == [one for one in marked(b, a) if one.of == "both"]
        assert {(other[one.of], one.text) for one in found} == {(one.of, one.text) for one in marked(b, a)}


@pytest.mark.clause("DIFF-1")
def test_a_changed_word_is_marked_among_those_that_stay() -> None:
    assert marked("Up to 3.5 tonnes, not more.", "Up to 2.8 tonnes, not more.") == (
        Marked("both", "Up to "),
        Marked("a", "3.5"),
        Marked("b", "2.8"),
        Marked("both", " tonnes, not more."),
    )
    assert marked("The dam is shut.", "Ask me later, please.") == (
        Marked("a", "The dam is shut."),
        Marked("b", "Ask me later, please."),
    )


@pytest.mark.clause("DIFF-1")
def test_a_text_of_any_length_is_compared_soon() -> None:
    """The work of looking at words one by one grows with their square: it is bounded."""
    many = "word " * 20_000
    found = marked(f"one {many}", f"{many} two")
    assert "".join(one.text for one in found if one.of != "b") == f"one {many}"


@pytest.mark.clause("DIFF-1")
def test_a_call_that_came_between_is_the_only_difference() -> None:
    def called(*asked: str) -> Outline:
        calls = [
            Part(name="read", likeness=what, position=at, fields={"arguments": what})
            for at, what in enumerate(asked, 2)
        ]
        reply = Part(name="reply", position=9, fields={"text": "done"}, parts=tuple(calls))
        return Outline(kind="run", parts=(reply,), lanes={}, totals=Totals())

    found = compare(called("x", "z"), called("x", "y", "z"))

    assert [(row.path, row.kind) for row in found.rows] == [
        ("reply", "same"),
        ("reply/read:1", "same"),
        ("reply/read:2", "only_b"),
        ("reply/read:3", "same"),
    ]


@pytest.mark.clause("DIFF-2")
@pytest.mark.parametrize("outcome", ["announced", "announce_failed", "announce_denied", "delivery_unknown"])
def test_that_a_fork_sends_nothing_is_no_difference(outcome: str) -> None:
    def ended(state: str, reason: str) -> Outline:
        sent = Part(name="delivery", position=1, fields={"state": state, "text": "Open."})
        end = Part(name="end", position=2, fields={"reason": reason})
        return Outline(kind="exchange", parts=(sent, end), lanes={}, totals=Totals())

    assert compare(ended("done", outcome), ended("withheld", "withheld")).same
    assert not compare(ended("done", "silent"), ended("withheld", "withheld")).same
    assert not compare(ended("done", "announced"), ended("failed", "announce_failed")).same
