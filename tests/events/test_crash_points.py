"""Crash points: silent until armed."""

import pytest

from intersession_events.basics.crash_points import VARIABLE, arm, crash_point, from_environment


class Died(BaseException):
    pass


def test_a_point_is_passed_silently_until_a_hook_is_armed() -> None:
    passed: list[str] = []
    crash_point("S6")
    disarm = arm(passed.append)

    crash_point("S6")
    crash_point("K2")
    disarm()
    crash_point("S7")

    assert passed == ["S6", "K2"]


def test_a_hook_may_not_let_us_go_on() -> None:
    def die(name: str) -> None:
        raise Died(name)

    disarm = arm(die)
    try:
        with pytest.raises(Died):
            crash_point("A1")
    finally:
        disarm()


def test_the_environment_names_a_point_and_a_passing() -> None:
    assert from_environment({}) is None
    assert from_environment({VARIABLE: ""}) is None
    hook = from_environment({VARIABLE: "S1:2"})
    assert hook is not None
    hook("S1")  # the first passing
    hook("S2")


@pytest.mark.parametrize("text", ["S1:two", "S1:1:2"])
def test_a_point_that_is_misspelt_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=VARIABLE):
        from_environment({VARIABLE: text})
