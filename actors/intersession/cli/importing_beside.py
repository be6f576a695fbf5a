"""An import by the gateway of a log's host, which is asked to read the directory; the log's growth shows how far it is."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import msgspec

from intersession_actors.errors import ToolRefused
from intersession_events.errors import ImportFailed, StoreUnavailable
from intersession_events.log import Log
from intersession_events.transcripts.openclaw import ImportReport, OnTaken

METHOD: Final = "import.openclaw"
_POLL_S: Final = 0.2


def import_beside(
    client: Any,
    log: Log,
    directory: Path,
    *,
    on_taken: OnTaken,
    progress: Callable[[int, int | None], None],
) -> ImportReport:
    """Have a gateway import a directory, and return its report. `log` is the one it writes, open to be read.

    Whoever stops waiting does not stop the import: the gateway brings it to its end.

    Raises:
        ImportFailed: it is no state directory, or has keys that the log has and should be refused.
        StoreUnavailable: the gateway went away or could not write; what was appended stays.
        ToolRefused: the gateway does not let this caller import, or another import is under way.
    """
    before = log.head()
    params = {"directory": os.path.abspath(directory), "onTaken": on_taken}  # noqa: PTH100 - no link is followed here
    asking = ThreadPoolExecutor(1)
    try:
        asked = asking.submit(client.call, METHOD, params, timeout=None)
        while not asked.done():
            progress(log.head() - before, None)
            log.wait_for(log.head() + 1, timeout=_POLL_S)
        return msgspec.convert(asked.result(), ImportReport)
    except ToolRefused as refused:
        raise _as_without_gateway(refused) from None
    finally:
        client.close()
        asking.shutdown()


def _as_without_gateway(refused: ToolRefused) -> Exception:
    """Return what the same trouble is where the command writes the log itself, for one code and one exit code."""
    match refused.code:
        case "import_failed":
            return ImportFailed(refused.error)
        case "unavailable":
            return StoreUnavailable(refused.error)
        case _:
            return refused
