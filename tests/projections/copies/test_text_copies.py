"""ERASE-1: what carries a text is a copy of it, and what only begins like it is not."""

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from intersession_events.facts import Message, MessageRecorded
from intersession_projections.copies.text_copies import Copies

FORM = (
    "What happened, where, and who was there? Fill in all fields of this form, and hand it in at the desk. "
    * 3
)
WORDS = st.text(st.sampled_from("abc xyz.,äß字\n"), min_size=1, max_size=60).filter(str.strip)
BEGINNINGS = st.one_of(
    st.just(FORM),
    st.just("步北" * 150),
    st.text(st.sampled_from("ab ,äß字\n"), min_size=1, max_size=12)
    .filter(str.strip)
    .map(lambda text: (text * 300)[:400]),
)


def found(erased: str, other: str, *, whole: bool = False) -> str | None:
    copies = Copies()
    copies.note([erased], whole=whole)
    message = Message(id="m-1", role="user", content=other, timestamp=1)
    return copies.found_in(MessageRecorded(session_id="one", message=message))


@pytest.mark.clause("ERASE-1")
@given(begun=BEGINNINGS, one=WORDS, other=WORDS, whole=st.booleans())
@example(begun="name: ....." * 30, one=" ann", other=". bob", whole=False)
@example(begun=FORM, one="ann", other="bob", whole=True)
def test_what_only_begins_like_a_text_is_no_copy_of_it(
    *, begun: str, one: str, other: str, whole: bool
) -> None:
    erased, others = (" ".join(f"{begun}{said}".split()).casefold() for said in (one, other))
    assume(len(erased) > 200 and len(others) > 200 and erased not in others and others not in erased)
    assume(others.rstrip(" .") not in erased and ".." not in other)

    assert found(f"{begun}{one}", f"{begun}{other}", whole=whole) != "whole"


@pytest.mark.clause("ERASE-1")
@given(
    BEGINNINGS,
    WORDS,
    st.integers(260, 400),
    st.sampled_from(("…", "...", " [...]", "\n… [17 characters cut]", "***")),
    WORDS,
)
@example("one. two. " * 40, "three", 263, "...", " and so on")
def test_what_has_a_text_whole_or_cut_short_is_a_copy_of_it(
    begun: str, said: str, kept: int, mark: str, other: str
) -> None:
    text = f"{begun}{begun}{said}"
    assume(len(" ".join(text[:kept].split())) > 220 and not text[:kept].endswith("."))

    assert found(text, f"he said: {text} {other}") == "whole"
    assert found(text, f"he said: {text[:kept]}{mark} {other}") == "whole"
    assert found(text, f"he said: {text[:kept]}") == "whole"


@pytest.mark.clause("FORGET-1")
def test_of_what_others_said_to_a_person_no_beginning_is_a_copy() -> None:
    answer = f"{FORM} So much for what bob wrote."

    assert found(answer, FORM, whole=True) is None
    assert found("步北" * 150, "步北" * 100, whole=True) is None
    assert found(answer, f"as I said: {FORM}… and so on", whole=True) == "whole"
