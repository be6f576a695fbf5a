"""The log's writer, as a host that only follows the log has it: what the host can't answer itself is handed on (DOOR-1)."""

import logging
from concurrent.futures import Future
from typing import Final, NamedTuple, Protocol

from intersession_actors.calls.service.callers import Caller
from intersession_actors.calls.service.pending import Pending, Result
from intersession_actors.rules.errors import ToolRefused
from intersession_events.basics.plain_json import JsonMapping, JsonObject
from intersession_events.log.log import Appends, Follows

logger = logging.getLogger("intersession.door")

INVOKE: Final = "tools.invoke"
"""The name under which a tool is handed on, with `{name, args}`."""

BEHIND_S: Final = 10.0
"""How long an answer waits until this host has read what it reports."""

_AS_LONG_AS_IT_TAKES_S: Final = 1e9


class Handed(NamedTuple):
    """What the writer answered, and up to which position of the log that is recorded; or why the call was refused."""

    result: Result
    position: int = 0
    refused: ToolRefused | None = None


class LogWriter(Appends, Protocol):
    """The way to the process that writes the log, whichever that is by then. What is appended are access receipts."""

    def ask(self, caller: Caller, method: str, params: JsonMapping) -> "Future[Handed]":
        """Have a method called for a caller. The future always has a result; a call that is sent again counts once."""
        ...

    @property
    def standing(self) -> JsonObject:
        """The state of the connection, for `status`: `{address, isConnected, waiting}`."""
        ...

    def close(self) -> None:
        """Give up the connection; what waits is refused."""
        ...


def handed_on(log: Follows, writer: LogWriter, caller: Caller, method: str, params: JsonMapping) -> Pending:
    """Hand a call on to the writer; its answer comes when this host has read what it reports (DOOR-3)."""
    asked = writer.ask(caller, method, params)

    def finish() -> Result:
        handed = asked.result()
        if handed.position and not log.wait_for(handed.position, timeout=BEHIND_S):
            logger.warning(
                "position %d has not come here in %g s, the log lags behind", handed.position, BEHIND_S
            )
        if handed.refused is not None:
            raise handed.refused
        return handed.result

    return Pending(future=asked, timeout=_AS_LONG_AS_IT_TAKES_S, finish=finish, over=lambda: None)
