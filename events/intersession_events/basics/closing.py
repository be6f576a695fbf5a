"""What is closed at the end of a `with` block."""

from types import TracebackType
from typing import Self


class Closing:
    """Has `close`, which a `with` block calls at its end, however it ends."""

    def close(self) -> None:
        """End it; nothing of it is used any more."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
