"""A line that is nested too deep for readers comes into the log verbatim, unread (finding B5)."""

import pytest

from intersession_events.transcripts.openclaw.reading.foreign_json import Unreadable, read_object


def nested(levels: int) -> bytes:
    return b'{"a":' * levels + b"1" + b"}" * levels


@pytest.mark.clause("IMP-1")
@pytest.mark.parametrize("levels", [65, 500, 940])
def test_an_object_that_is_nested_too_deep_is_not_read(levels: int) -> None:
    with pytest.raises(Unreadable, match="nested too deep"):
        read_object(nested(levels))


@pytest.mark.clause("IMP-1")
def test_one_that_is_just_as_deep_as_may_be_is() -> None:
    values, raws = read_object(nested(64))

    assert values.keys() == raws.keys() == {"a"}
    assert read_object(b'{"a":[' + b"[]," * 500 + b"[]]}")[0]["a"] == [[]] * 501


@pytest.mark.clause("IMP-1")
def test_one_entry_that_is_too_deep_is_not_the_whole_file() -> None:
    _, raws = read_object(b'{"good":{},"deep":' + nested(70) + b"}", of_objects=True)

    assert raws.keys() == {"good", "deep"}
