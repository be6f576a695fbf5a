"""The coroutine of a tool call, which knows whether it was awaited."""

import warnings
from collections.abc import Callable, Coroutine, Generator
from types import TracebackType
from typing import Any, TypeAlias, TypeVar, cast

T = TypeVar("T")
_Sent: TypeAlias = Coroutine[Any, Any, T]  # what passes between a coroutine and its loop is the loop's


class ToolCoroutine(Coroutine[Any, Any, T]):  # what passes between it and its loop is the loop's
    """Does nothing until it is awaited. If it is dropped without that, `forgotten` is called.

    Python's own warning of that names no run and reaches no log, and a coroutine that is put into a text reaches people.
    """

    def __init__(self, what: str, begin: Callable[[], _Sent[T]], forgotten: Callable[[str], None]) -> None:
        self._what = what
        self._begin = begin
        self._forgotten = forgotten
        self._begun: _Sent[T] | None = None
        self._closed = False

    def __await__(self) -> Generator[Any, Any, T]:  # as the protocol of coroutines has it
        """Begin the call, and await its answer."""
        return self._coroutine().__await__()

    def send(self, value: Any) -> Any:  # as the protocol of coroutines has it
        """Continue, called by an event loop."""
        return self._coroutine().send(value)

    def throw(
        self,
        typ: Any,  # as the protocol of coroutines has it
        val: BaseException | object = None,
        tb: TracebackType | None = None,
        /,
    ) -> Any:  # as the protocol of coroutines has it
        """Continue with an exception, such as the cancellation of the awaiting task."""
        del tb  # the exception has it
        return self._coroutine().throw(cast("BaseException", typ if val is None else val))

    def close(self) -> None:
        """Give it up on purpose."""
        self._closed = True
        if self._begun is not None:
            self._begun.close()

    def __repr__(self) -> str:
        return f"<coroutine {self._what}{'' if self._begun else ', not awaited'}>"

    def __del__(self) -> None:
        if self._begun is None and not self._closed:
            self._forgotten(self._what)
            warnings.warn(
                f"coroutine {self._what} was never awaited", RuntimeWarning, stacklevel=2, source=self
            )

    def _coroutine(self) -> _Sent[T]:
        if self._closed:
            raise RuntimeError(f"{self._what} was closed, call it again")
        if self._begun is None:
            self._begun = self._begin()
        return self._begun
