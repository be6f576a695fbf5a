"""Times each step of a coroutine of the host's: between two of its awaits nothing else runs on its event loop."""

from collections.abc import Awaitable, Callable, Coroutine, Generator
from functools import partial
from types import coroutine
from typing import Final, NamedTuple, TypeVar

T = TypeVar("T")

LONG_S: Final = 1.0
"""A step that takes so long has blocked the loop: it computes, sleeps, or waits for a client that blocks."""


class Blocking(NamedTuple):
    """Who is told of code that blocks an event loop: what it is called, and for how many seconds. `monotonic` is the clock."""

    monotonic: Callable[[], float]
    tell: Callable[[str, float], None]

    async def watched(self, name: str, awaitable: Awaitable[T]) -> T:
        """Await something, and tell of the first of its steps that takes long."""

        async def whole() -> T:
            return await awaitable

        told = False

        def took(seconds: float) -> None:
            nonlocal told
            if seconds >= LONG_S and not told:
                told = True
                self.tell(name, seconds)

        return await _stepped(whole(), self.monotonic, took)


@coroutine
def _stepped(
    whole: Coroutine[object, object, T], monotonic: Callable[[], float], took: Callable[[float], None]
) -> Generator[object, object, T]:
    resume: Callable[[], object] = partial(whole.send, None)
    while True:
        began = monotonic()
        try:
            awaited = resume()
        except StopIteration as end:
            found: T = end.value
            return found
        finally:
            took(monotonic() - began)
        try:
            resume = partial(whole.send, (yield awaited))
        except BaseException as error:  # noqa: BLE001 - a cancellation above all: the coroutine decides on it
            resume = partial(whole.throw, error)
