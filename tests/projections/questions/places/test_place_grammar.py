"""What is typed for a place, and what it is read as."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intersession_projections.questions.places.grammar import (
    FORMS,
    AtEvent,
    AtHead,
    AtPosition,
    AtTime,
    InRun,
    Place,
    UnknownPlace,
    parse_place,
)

NOON = 1_795_262_400_000  # 2026-11-21T12:00:00Z
ID = "2ffbb130-9e64-5cf0-8e1a-830de165c600"


@pytest.mark.clause("PLACE-1")
@pytest.mark.parametrize(
    ("typed", "place"),
    [
        ("412", Place(base=AtPosition(412))),
        ("#412", Place(base=AtPosition(412))),
        ("#412-1", Place(base=AtPosition(412), steps=-1)),
        (412, Place(base=AtPosition(412))),
        (412.9, Place(base=AtPosition(412))),
        ("412-1", Place(base=AtPosition(412), steps=-1)),
        ("head", Place(base=AtHead())),
        ("head-2", Place(base=AtHead(), steps=-2)),
        ("-5", Place(base=AtHead(), steps=-5)),
        ("-0", Place(base=AtHead())),
        (f"event:{ID}", Place(base=AtEvent(ID))),
        (f"event:{ID}-1", Place(base=AtEvent(ID), steps=-1)),
        ("event:2ffbb130", Place(base=AtEvent("2ffbb130"))),
        ("event:2ffbb130-9e64", Place(base=AtEvent("2ffbb130-9e64"))),
        ("event:2FFBB130-9E64+2", Place(base=AtEvent("2ffbb130-9e64"), steps=2)),
        ("2026-11-21T12:00:00Z", Place(base=AtTime(NOON))),
        ("2026-11-21 12:00", Place(base=AtTime(NOON))),
        ("2026-11-21T13:00:00+01:00", Place(base=AtTime(NOON))),
        ("2026-11-21T13:00:00+01:00-3", Place(base=AtTime(NOON), steps=-3)),
        ("2026-11-21-1", Place(base=AtTime(NOON - 43_200_000), steps=-1)),
        ("1969-12-31T23:59:59.999Z", Place(base=AtTime(-1))),
        (f"{ID}@start", Place(base=InRun(ID, "start"))),
        ("2ffbb130@turn:2-1", Place(base=InRun("2ffbb130", "turn", 2), steps=-1)),
        ("my@key@end+1", Place(base=InRun("my@key", "end"), steps=1)),
    ],
)
def test_each_form_is_read_as_what_it_says(typed: float | str, place: Place) -> None:
    assert parse_place(typed) == place


@pytest.mark.clause("PLACE-2")
@pytest.mark.parametrize(
    "typed",
    ["", " ", "noon", "#", "##4", "# 4", "#head", "٤", "+5", "+0", "head--5", "412 ", "@end", "x@", "x@turn", "x@turn:", "x@turn:-1", "x@middle", "event:",
     "event: x", "2026-13-01", "2026-11-21T12:00:00Z\n", "\uff12\uff10", ID, True],
)  # fmt: skip
def test_what_names_no_place_is_refused_with_the_forms_there_are(typed: str | bool) -> None:
    with pytest.raises(UnknownPlace) as caught:
        parse_place(typed, field="--at")
    assert str(caught.value).startswith("--at: ")
    assert FORMS in str(caught.value)


@pytest.mark.clause("PLACE-2")
@pytest.mark.parametrize(
    "typed",
    [-1, -0.5, float("inf"), float("nan"), "9" * 5000, 10**5000, -(10**5000), 1e300, -1e300],
    ids=lambda typed: str(typed)[:9] if isinstance(typed, str | float) else typed.bit_length(),
)
def test_a_number_beyond_any_log_is_refused_in_few_words(typed: float | str) -> None:
    with pytest.raises(UnknownPlace) as caught:
        parse_place(typed)
    assert len(str(caught.value)) < 400
    assert str(caught.value).endswith(f". A place is {FORMS}")


@pytest.mark.clause("PLACE-2")
@given(st.text() | st.text("0123456789abcdef-+:@T Zheadturnvsi", max_size=60))
def test_any_text_is_a_place_or_refused(typed: str) -> None:
    try:
        place = parse_place(typed)
    except UnknownPlace:
        return
    assert isinstance(place, Place)
