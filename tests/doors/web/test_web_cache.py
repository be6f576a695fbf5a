"""Parts of a run that pages ask for at once are made once."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import pytest

from intersession.web.questions.cache import LruCache, Same

A: Same = ("log", "run", 7)


def test_what_several_ask_for_at_a_time_is_made_once_and_in_the_way_of_nothing_else() -> None:
    kept = LruCache[str](8)
    made: list[str] = []
    begun, other_is_there = Event(), Event()
    all_ask = Barrier(4, timeout=30)

    def slowly() -> str:
        begun.set()
        assert other_is_there.wait(30)
        made.append("a")
        return "a"

    def ask() -> str:
        all_ask.wait()
        return kept.of(A, slowly)

    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(ask) for _ in range(4)]
        assert begun.wait(30)
        assert kept.of(("log", "other", 7), lambda: "b") == "b"
        other_is_there.set()
        assert [one.result(30) for one in asked] == ["a"] * 4

    assert made == ["a"]


def test_what_could_not_be_made_is_made_for_the_next_who_asks() -> None:
    kept = LruCache[str](8)

    with pytest.raises(ZeroDivisionError):
        kept.of(A, lambda: str(1 // 0))

    assert kept.of(A, lambda: "a") == "a"
    assert kept.of(A, lambda: "b") == "a"
    assert kept.of(("log", "run", 8), lambda: "b") == "b", "it has gone on"
