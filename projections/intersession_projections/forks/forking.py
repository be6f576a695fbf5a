"""Forks a run, an exchange or a spawn: finds what goes along, and has the log write it (FORK-1)."""

from collections.abc import Collection, Sequence
from typing import Protocol

from intersession_events.facts import ForkEdit
from intersession_events.forks import Fork
from intersession_events.log import Log
from intersession_projections.forks.closure import closed_streams, roots_of
from intersession_projections.places import Flow, flow_id


class Forkable(Protocol):
    """A log that makes forks of itself."""

    def fork(
        self,
        streams: Collection[str],
        *,
        at: int,
        flow: str,
        edits: Sequence[ForkEdit] = (),
        by: str = "operator",
        directory: str | None = None,
    ) -> Fork:
        """Make some streams, up to the position `at`, a log of its own."""
        ...


def fork_flow(
    source: Forkable,
    log: Log,
    flow: Flow,
    *,
    at: int,
    edits: Sequence[ForkEdit] = (),
    by: str = "operator",
    directory: str | None = None,
) -> Fork:
    """Make a fork of all that a run, an exchange or a spawn touches, as it stood at a position. The log is only read.

    `source` writes the file; `log` is the same one, with its views. The file lies in `directory`, else with all forks of the log.

    Raises:
        ForkFailed: the position is none of the log, the file can't be written, or a log in memory has no directory.
        CorruptEvent: a row that is needed can't be read; `verify` says more.
        StoreUnavailable: the log can't be read.
    """
    streams = closed_streams(log, roots_of(log, flow), at)
    return source.fork(streams, at=at, flow=flow_id(flow), edits=edits, by=by, directory=directory)
