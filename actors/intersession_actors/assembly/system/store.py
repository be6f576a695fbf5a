"""Opens the log that a system is given by name, and says how far views are that have to be built anew first."""

import logging
from pathlib import Path
from typing import Final

from intersession_actors.rules.gate.values import invalid
from intersession_actors.running.runtime.clock import Clock
from intersession_actors.running.runtime.runtime import Runtime
from intersession_events.log.log import HostLog
from intersession_events.stores.opened import open_log
from intersession_projections.views.inline_views import inline_views

_FOLDING: Final = logging.getLogger("intersession.log")
_PAGE: Final = 500
_TOLD_EVERY: Final = 100_000
"""Positions between two lines about views that are built anew."""


def checked_store(store: str | Path | HostLog | None) -> str | Path | HostLog | None:
    """Return the log that a host gives, or what it is called.

    Raises:
        ToolRefused: it is neither.
    """
    if store is None or isinstance(store, str | Path) or hasattr(store, "append_now"):
        return store
    raise invalid(
        "store", f"it is no log but {type(store).__name__}, give a URL, a path, or a log that is open"
    )


def open_store(store: str | Path | None, clock: Clock, runtime: Runtime) -> HostLog:
    """Open a log for writing, with the views that all calls need. In a simulation it draws what the simulation's seed gives.

    Raises:
        StoreLocked: another process is the writer of this log.
        StoreUnavailable: the log can't be opened.
    """
    url = f"sqlite:///{store}" if isinstance(store, Path) else store
    return open_log(
        url,
        inline=inline_views(),
        clock=clock.now_ms,
        monotonic=clock.monotonic,
        entropy=runtime.entropy,
        new_log_id=runtime.new_id,
        threads=not runtime.threads.by_hand,
        on_folding=_tell_folding,
    )


def _tell_folding(position: int, head: int) -> None:
    if position >= head or position % _TOLD_EVERY < _PAGE:
        _FOLDING.info("views that another version wrote are built anew: position %d of %d", position, head)
