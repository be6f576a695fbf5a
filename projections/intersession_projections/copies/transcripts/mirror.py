"""Mirrors transcripts to files beside the log, one JSONL file for each session id (LIST-5).

Best effort: the log never waits for it, and what can't be shown or written is a warning. Each line says which position
it shows, so that after a crash nothing is written twice; another log's files are never mixed in.
"""

import logging
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from intersession_events.basics.ids import SESSIONS
from intersession_events.facts import Erased, generation_of
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded
from intersession_events.stores.tailing.tail import Tail
from intersession_events.stores.tailing.view import TailedView
from intersession_events.transcripts.openclaw.export import entry_line, header_line
from intersession_projections.copies.transcripts.files import LastLine, Mirrored, TranscriptFiles
from intersession_projections.views.sessions.taken_order import taken_forwards

_BATCH: Final = 500
_KNOWN_FILES: Final = 1_000
logger = logging.getLogger("intersession.transcripts")


class Transcripts(TailedView):
    """The files of one log in one directory, and how far they are: a view for the library's runner, without a database."""

    def __init__(self, log: Log, directory: Path) -> None:
        super().__init__()
        self.said = f"transcripts in {directory}"
        self._log = log
        self._files = TranscriptFiles(directory)
        self._position = 0
        self._remembered = 0
        self._last: OrderedDict[str, LastLine] = OrderedDict()
        self._refused: set[str] = set()
        """Session ids whose files can't be written, which was said once."""

    @property
    def position(self) -> int:
        """How far the files are in the log."""
        return self._position

    def reached(self) -> int:
        """Look how far the files are."""
        if not self._files.directory.exists():
            self._position, self._last = (
                0,
                OrderedDict(),
            )  # somebody took them away: they are all written again
        elif self._position == 0:
            with suppress(OSError):  # the writer is told
                self._resume()
        return self._position

    def take(self, events: Sequence[Recorded], position: int) -> None:
        """Write the lines of events. Each line has its position, so that repeated events are not doubled.

        Raises:
            OSError: the directory can't be written.
        """
        gone = self._position > 0 and not self._files.directory.exists()
        if gone:
            self._position, self._last = 0, OrderedDict()
        if self._position == 0:
            self._resume()
            self._remember()  # whose files these are, before the first one
        if gone:
            return  # what was there before comes first
        if events:
            self._write(events)
        self._position = position
        if self._position - self._remembered >= _BATCH:
            self._remember()

    def close(self) -> None:
        """Store how far the files are. That is only a shortcut: the lines tell it as well."""
        if self._position > self._remembered:
            with suppress(OSError):
                self._remember()

    def _remember(self) -> None:
        self._files.remember(Mirrored(self._log.log_id, self._position))
        self._remembered = self._position

    def _resume(self) -> None:
        """Find out how far the files are; those of another log are put away."""
        self._position, aside = self._files.resume(self._log.log_id)
        if aside is not None:
            logger.warning("%s held transcripts of another log; they are in %s", self._files.directory, aside)

    def _write(self, batch: Sequence[Recorded]) -> None:
        """Append the lines of a batch, each file opened once."""
        for recorded in batch:
            if isinstance(recorded.event, Erased) and recorded.event.stream.startswith(SESSIONS):
                self._begin_anew(recorded.event, batch[-1].position)
        for session_id, messages in self._by_session_id(batch).items():
            try:
                self._append(session_id, messages)
            except OSError as error:
                if not self._files.concerns_one_file(error):
                    raise
                if session_id not in self._refused:
                    self._refused.add(session_id)
                    logger.warning("the transcript of %s can't be written: %s", session_id, error)

    def _begin_anew(self, erased: Erased, to: int) -> None:
        """Rewrite the files with lines of erased messages, up to a position of the log."""
        versions = {version for version, _ in erased.rows}
        if not versions:
            return
        behind = self._log.stream(erased.stream, after=min(versions) - 1, to=max(versions))
        ids = {
            session_id
            for recorded in behind
            if recorded.version in versions and (session_id := generation_of(recorded.event)) is not None
        }
        for session_id in ids:
            self._files.remove(session_id)
            self._last.pop(session_id, None)
        after = 0
        while ids and (page := self._log.stream(erased.stream, after=after, limit=_BATCH)):
            after = page[-1].version
            of_session = self._by_session_id([one for one in page if one.position <= to])
            for session_id in ids & of_session.keys():
                self._append(session_id, of_session[session_id])

    def _by_session_id(self, batch: Sequence[Recorded]) -> dict[str, list[Recorded]]:
        found: dict[str, list[Recorded]] = {}
        for recorded in taken_forwards(batch, self._log):
            if (session_id := generation_of(recorded.event)) is not None:
                found.setdefault(session_id, []).append(recorded)
        return found

    def _append(self, session_id: str, messages: Sequence[Recorded]) -> None:
        found = self._last.pop(session_id, None) or self._files.last_line(session_id)
        last = found or LastLine()
        lines = [] if found is not None else [header_line(session_id, messages[0].time)]
        for recorded in messages:
            if recorded.position <= last.position:
                continue
            entry = _entry(recorded, last.id)
            if entry is not None:
                last = LastLine.at(entry[0], recorded.position)
                lines.append(entry[1])
        self._files.append(session_id, b"".join(lines))
        self._last[session_id] = last
        if len(self._last) > _KNOWN_FILES:
            self._last.popitem(last=False)


def _entry(recorded: Recorded, parent: str | None) -> tuple[str, bytes] | None:
    try:
        return entry_line(recorded, parent)
    except (ValueError, TypeError, RecursionError) as error:
        logger.warning("position %d of the log can't be a line of a transcript: %s", recorded.position, error)
        return None


def transcript_mirror(log: Log, directory: Path) -> Tail[Transcripts]:
    """Return the view that writes the files of a log into a directory."""
    return Tail(log, Transcripts(log, directory))
