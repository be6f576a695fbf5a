"""Access to a log for the web debugger: questions are answered within the caller's rights, and positions come live."""

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Final, Protocol

from intersession_actors.hindsight.debugger.view import View
from intersession_events.basics.plain_json import JsonMapping, JsonObject

ACCESS: Final = "intersession_access"
"""The key of the viewer in a request's state."""

Question = Callable[[View], Mapping[str, object]]


class Access(Protocol):
    """A viewer's access: through a running host, or to a read-only log."""

    @property
    def about(self) -> JsonObject:
        """The viewer, and what they may do: `{who, isOperator, readOnly, can: [action …], store, version}`."""
        ...

    async def ask(
        self, name: str, given: JsonMapping, question: Question, *, view: str | None = None
    ) -> Mapping[str, object]:
        """Answer a question without blocking the event loop; a host records a receipt (VIS-4).

        Questions that say the same of `view` show one thing: asked again, they leave no second receipt.

        Raises:
            ToolRefused: the question was refused.
        """
        ...

    async def cover(self) -> None:
        """Take a checkpoint of the log as it is now, where a host is there to take it: what is handed out is proven by it.

        Raises:
            ToolRefused: it can't be taken (`unavailable`).
        """
        ...

    def live(self, after: int | None) -> AsyncIterator[bytes]:
        """Yield server-sent events: one for each position that the viewer may know.

        Raises:
            ToolRefused: the caller may not read; on the call, before anything is yielded.
        """
        ...

    @property
    def is_away(self) -> bool:
        """Whether the store can't be reached now: the caller may try again."""
        ...

    def may_ask(self) -> float:
        """Count a request; return the seconds to wait first, 0 for none."""
        ...
