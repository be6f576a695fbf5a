"""Mirrors transcripts to files beside the log, one JSONL file a session id, for whoever reads files (LIST-5).

Best effort: the log never waits for it, and a directory that can't be written is a warning. Each line says which position
it shows, so that after a crash nothing is written twice; another log's files are never mixed in.
"""

import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from intersession_events.errors import LogError
from intersession_events.facts import LineImported, MessageRecorded, ready
from intersession_events.log import Log, Recorded
from intersession_events.stores import MEMORY
from intersession_events.transcripts.openclaw import entry_line, header_line

_BATCH: Final = 500
_KNOWN_FILES: Final = 1_000
_COALESCE_S: Final = 0.1
_STATE: Final = ".mirror.json"
_TAIL_BYTES: Final = 1 << 20
logger = logging.getLogger("intersession.transcripts")


@ready
class Mirrored(msgspec.Struct, frozen=True, rename="camel"):
    """How far a directory's files are, of which log."""

    log_id: str
    position: int = 0


class _Shown(msgspec.Struct):
    position: int = 0


@ready
class _LastLine(msgspec.Struct):
    """What is read back of the last line of a file."""

    id: str | None = None
    intersession: _Shown = msgspec.field(default_factory=_Shown)


class TranscriptMirror:
    """Writes the files of one log into one directory."""

    def __init__(self, log: Log, directory: Path) -> None:
        self._log = log
        self._directory = directory
        self._position = 0
        self._remembered = 0
        self._last: OrderedDict[str, _LastLine] = OrderedDict()
        self._changed = threading.Condition()
        self._moved = False
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
        if self._position == 0:
            self._position = self._resume()
            self._remember()  # whose files these are is said before the first one is written
        while batch := list(self._log.all(after=self._position, limit=_BATCH)):
            self._write(batch)
            self._position = batch[-1].position
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
                logger.warning("transcripts in %s are behind: %s", self._directory, error)
            if stopping:
                return
            with self._changed:
                self._changed.wait_for(lambda: self._stopping or self._moved)
                # Files are for people and other tools: many small commits make one write.
                self._changed.wait_for(lambda: self._stopping, _COALESCE_S)

    def _wake(self, _committed: Sequence[Recorded]) -> None:
        if self._moved:
            return  # it knows, and is only waiting for more
        with self._changed:
            self._moved = True
            self._changed.notify_all()

    def _resume(self) -> int:
        """Return how far the files are; files of another log are put away."""
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            found = msgspec.json.decode((self._directory / _STATE).read_bytes(), type=Mirrored)
        except (FileNotFoundError, ValueError):
            found = Mirrored(self._log.log_id)
        if found.log_id != self._log.log_id:
            aside = self._directory.with_name(f"{self._directory.name}.{found.log_id}")
            self._directory.rename(aside)
            logger.warning("%s held transcripts of another log; they are in %s now", self._directory, aside)
            self._directory.mkdir(mode=0o700)
            return 0
        return found.position

    def _remember(self) -> None:
        state = self._directory / _STATE
        partial = state.with_suffix(".new")
        partial.write_bytes(msgspec.json.encode(Mirrored(self._log.log_id, self._position)))
        partial.replace(state)
        self._remembered = self._position

    def _write(self, batch: Sequence[Recorded]) -> None:
        """Append the lines of a batch, each file opened once."""
        of_session: dict[str, list[Recorded]] = {}
        for recorded in batch:
            if isinstance(recorded.event, MessageRecorded | LineImported):
                of_session.setdefault(recorded.event.session_id, []).append(recorded)
        for session_id, messages in of_session.items():
            self._append(session_id, messages)

    def _append(self, session_id: str, messages: Sequence[Recorded]) -> None:
        path = self._directory / f"{session_id}.jsonl"
        last = self._last.pop(session_id, None) or _last_line(path)
        lines = [] if path.exists() else [header_line(session_id, messages[0].time)]
        for recorded in messages:
            if recorded.position <= last.intersession.position:
                continue
            entry = entry_line(recorded, last.id)
            if entry is not None:
                last = _LastLine(entry[0], _Shown(recorded.position))
                lines.append(entry[1])
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "ab") as file:
            file.write(b"".join(lines))
        self._last[session_id] = last
        if len(self._last) > _KNOWN_FILES:
            self._last.popitem(last=False)


def _last_line(path: Path) -> _LastLine:
    """Return the last whole line of a file; a line that a crash cut short is cut off."""
    try:
        with path.open("r+b") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL_BYTES))
            tail = file.read()
            whole = tail.rfind(b"\n") + 1
            if whole != len(tail):
                file.truncate(size - len(tail) + whole)
    except FileNotFoundError:
        return _LastLine()
    lines = tail[:whole].splitlines()
    try:
        return msgspec.json.decode(lines[-1], type=_LastLine) if lines else _LastLine()
    except ValueError:
        return _LastLine()


def mirror_directory(log: Log, *, wanted: bool | None) -> Path | None:
    """Return where transcripts are mirrored: beside a log that is a file, unless `transcripts.mirror` is off."""
    path = getattr(log, "path", MEMORY)
    if wanted is False or path == MEMORY:
        return None
    return Path(path).parent / "transcripts"
