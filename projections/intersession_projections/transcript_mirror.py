"""Mirrors transcripts to files beside the log, one JSONL file a session id, for whoever reads files (LIST-5).

Best effort: the log never waits for it, and what can't be shown or written is a warning. Each line says which position
it shows, so that after a crash nothing is written twice; another log's files are never mixed in.
"""

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, cast

from intersession_events.errors import LogError
from intersession_events.facts import Erased, LineImported, MessageRecorded
from intersession_events.log import Log, Recorded
from intersession_events.stores import MEMORY
from intersession_events.transcripts.openclaw import entry_line, header_line
from intersession_projections.sessions import taken_forwards
from intersession_projections.transcript_files import LastLine, Mirrored, TranscriptFiles

_BATCH: Final = 500
_SESSION: Final = "session:"
_MOST_KEPT: Final = 2_000
"""Events that are kept for it in memory; one that is further behind reads the log."""
_KNOWN_FILES: Final = 1_000
_COALESCE_S: Final = 0.1
logger = logging.getLogger("intersession.transcripts")


class TranscriptMirror:
    """Writes the files of one log into one directory."""

    def __init__(self, log: Log, directory: Path) -> None:
        self._log = log
        self._files = TranscriptFiles(directory)
        self._position = 0
        self._remembered = 0
        self._last: OrderedDict[str, LastLine] = OrderedDict()
        self._refused: set[str] = set()
        """Session ids whose files can't be written, which was said once."""
        self._changed = threading.Condition()
        self._moved = False
        self._committed: list[Recorded] = []
        """What was committed since it was last looked at, as long as it is not too much to be kept."""
        self._stopping = False
        self._thread: threading.Thread | None = None
        self._unsubscribe: Callable[[], None] | None = None

    def start(self) -> None:
        """Follow the log in a thread of its own."""
        self._unsubscribe = self._log.on_committed(self._wake)
        self._thread = threading.Thread(target=self._follow, name="transcripts", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Write what is committed and stop."""
        if self._unsubscribe is not None:
            self._unsubscribe()
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._position > self._remembered:
            with suppress(OSError):  # it is only a shortcut: the lines themselves say how far they are
                self._remember()

    def catch_up(self) -> int:
        """Write all that the log has; return the position reached.

        Raises:
            OSError: the directory can't be written.
        """
        if not self._files.directory.exists():
            # Somebody took them away: they are all written again.
            self._position, self._last = 0, OrderedDict()
        if self._position == 0:
            self._position = self._resume()
            self._remember()  # whose files these are is said before the first one is written
        for batch, position in self._batches():
            self._write(batch)
            self._position = position
            if self._position - self._remembered >= _BATCH:
                self._remember()
        return self._position

    def _follow(self) -> None:
        while True:
            with self._changed:
                self._moved = False
                stopping = self._stopping
            try:
                self.catch_up()
            except (OSError, LogError) as error:
                logger.warning("transcripts in %s are behind: %s", self._files.directory, error)
            if stopping:
                return
            with self._changed:
                self._changed.wait_for(lambda: self._stopping or self._moved)
                # Files are for people and other tools: many small commits make one write.
                self._changed.wait_for(lambda: self._stopping, _COALESCE_S)

    def _wake(self, committed: Sequence[Recorded]) -> None:
        with self._changed:
            if len(self._committed) + len(committed) <= _MOST_KEPT:
                self._committed += committed
            else:
                self._committed = []  # it is read from the log instead
            if not self._moved:
                self._moved = True
                self._changed.notify_all()

    def _batches(self) -> Iterator[tuple[list[Recorded], int]]:
        """Yield what the log has behind the position, and how far that goes; rows that can't be read are passed over.

        What was just committed is at hand. It is taken if it follows on the position without a gap, else the log is read.
        """
        with self._changed:
            committed, self._committed = self._committed, []
        batch = [recorded for recorded in committed if recorded.position > self._position]
        position = self._position
        if batch and batch[0].position == position + 1 and batch[-1].position == position + len(batch):
            yield batch, position + len(batch)
            position += len(batch)
        batch = list[Recorded]()
        while position < self._log.head():
            try:
                for recorded in self._log.all(after=position, limit=_BATCH - len(batch)):
                    batch.append(recorded)
                    position = recorded.position
            except LogError as error:
                if error.position is None:
                    raise
                position = error.position
                logger.warning("position %d of the log is in no transcript: %s", position, error)
                continue
            yield batch, position
            batch = []

    def _resume(self) -> int:
        """Return how far the files are; files of another log are put away."""
        position, aside = self._files.resume(self._log.log_id)
        if aside is not None:
            logger.warning("%s held transcripts of another log; they are in %s", self._files.directory, aside)
        return position

    def _remember(self) -> None:
        self._files.remember(Mirrored(self._log.log_id, self._position))
        self._remembered = self._position

    def _write(self, batch: Sequence[Recorded]) -> None:
        """Append the lines of a batch, each file opened once."""
        for recorded in batch:
            if isinstance(recorded.event, Erased) and recorded.event.stream.startswith(_SESSION):
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
        """Write the files anew that have lines of what was erased, up to a position of the log."""
        versions = {version for version, _ in erased.rows}
        behind = self._log.stream(erased.stream, after=min(versions) - 1, to=max(versions))
        ids = {
            recorded.event.session_id
            for recorded in behind
            if recorded.version in versions and isinstance(recorded.event, MessageRecorded | LineImported)
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
            event = cast("MessageRecorded | LineImported", recorded.event)
            found.setdefault(event.session_id, []).append(recorded)
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


def mirror_directory(log: Log, *, wanted: bool) -> Path | None:
    """Return where transcripts are mirrored: `<store>.transcripts` beside a log that is a file, if `transcripts.mirror` is on."""
    path = getattr(log, "path", MEMORY)
    return Path(f"{path}.transcripts") if wanted and path != MEMORY else None
