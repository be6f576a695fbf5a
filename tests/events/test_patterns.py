"""A pattern that is compiled later is the pattern."""

import re

import pytest

from intersession_events.basics.patterns import later


def test_it_has_all_that_the_compiled_one_has() -> None:
    there, compiled = later(r"(?P<name>a+)b", re.IGNORECASE), re.compile(r"(?P<name>a+)b", re.IGNORECASE)
    assert there.pattern == compiled.pattern

    for name in (each for each in dir(compiled) if not each.startswith("_")):
        found, expected = getattr(there, name), getattr(compiled, name)
        assert callable(expected) or found == expected, name

    assert [found["name"] for found in there.finditer("xAAb ab")] == ["AA", "a"]
    assert there.search("aab", 1) is not None
    assert there.fullmatch("aabc") is None


def test_what_is_no_pattern_is_refused_when_it_is_looked_for() -> None:
    broken = later("(")

    with pytest.raises(re.error):
        broken.search("")
