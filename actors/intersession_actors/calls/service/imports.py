"""Imports other systems' data into a running system's log, one import at a time; awake sessions then read their streams again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from intersession_actors.calls.service.service import Service
from intersession_actors.owners.session.commands import ReadAgain
from intersession_actors.rules.errors import ToolRefused
from intersession_events.basics.errors import AppendConflict
from intersession_events.basics.ids import SESSIONS
from intersession_events.basics.progress import Progress

if TYPE_CHECKING:
    from intersession_events.transcripts.openclaw.importing import OnTaken
    from intersession_events.transcripts.openclaw.reading.state import OpenClawState
    from intersession_events.transcripts.openclaw.report import ImportReport


class Imports:
    """Appends other systems' data, beside the actors that write to the same log."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._one = threading.Lock()

    def openclaw(
        self,
        directory: Path,
        *,
        on_taken: OnTaken = "beside",
        progress: Progress | None = None,
    ) -> ImportReport:
        """Import an OpenClaw state directory.

        Raises:
            ImportFailed: it is not one, or, with `on_taken="refuse"`, has keys that the log has.
            ToolRefused: another import is under way, or its sessions are written to without a pause (`busy`).
            StoreUnavailable: the store could not take it, or is closed; what was appended stays.
        """
        from intersession_events.transcripts.openclaw.reading.files import read_state  # noqa: PLC0415 - few hosts import anything

        return self._import(partial(read_state, directory), on_taken, progress)

    def framework(
        self,
        framework: str,
        source: str,
        *,
        agent: str | None = None,
        on_taken: OnTaken = "beside",
        progress: Progress | None = None,
    ) -> ImportReport:
        """Import the database of a framework.

        Raises:
            ImportFailed: it can't be read, or, with `on_taken="refuse"`, has sessions that the log has.
            MissingExtra: it is on PostgreSQL, and the extra `postgres` is not installed.
            ToolRefused: as above (`busy`).
            StoreUnavailable: as above.
        """
        from intersession_events.transcripts.foreign.importing import read_framework  # noqa: PLC0415 - as above

        return self._import(partial(read_framework, framework, source, agent), on_taken, progress)

    def _import(
        self, read: Callable[[], OpenClawState], on_taken: OnTaken, progress: Progress | None
    ) -> ImportReport:
        from intersession_actors.owners.session.snapshots import take_snapshots  # noqa: PLC0415 - as above
        from intersession_events.transcripts.openclaw.importing import import_state  # noqa: PLC0415 - as above

        if not self._one.acquire(blocking=False):
            raise ToolRefused("busy", "another import is under way, try again when it is over")
        service, appended = self._service, set[str]()
        try:
            report = import_state(
                read(),
                service.log,
                clock=service.clock.now_ms,
                on_taken=on_taken,
                progress=progress,
                appended=partial(self._tell, appended),
            )
        except AppendConflict as conflict:
            raise ToolRefused(
                "busy", f"{conflict}: it is written to all the time, import again later"
            ) from None
        else:
            take_snapshots(service.log, appended)
            return report
        finally:
            self._one.release()

    def _tell(self, appended: set[str], streams: Collection[str]) -> None:
        appended.update(streams)
        for stream in streams:
            if stream.startswith(SESSIONS):
                self._service.supervisor.tell_awake(stream.removeprefix(SESSIONS), ReadAgain())
