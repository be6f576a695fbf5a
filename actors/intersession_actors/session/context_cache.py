"""Keeps the transcripts of the sessions that talk, so that each run reads only what is new since the one before.

A transcript is folded from the log and can be dropped at any time; the least recently used go first.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final

from intersession_actors.prompt import RunContext, TranscriptFold
from intersession_events import ids
from intersession_events.facts import Message, RunQueued
from intersession_events.log import Log, Recorded

MOST_SESSIONS: Final = 256
MOST_JUST_READ: Final = 16
"""How many streams that an actor has just read wait here for their first context."""

MOST_BYTES: Final = 64 * 1024 * 1024
"""How much all transcripts that are kept may have, as JSON. The one that was used last is always kept."""

OnContext = Callable[[RunContext | Exception], None]


class ContextCache:
    """Reads the contexts of runs. One context of a session at a time."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._lock = threading.Lock()
        self._folds: OrderedDict[str, TranscriptFold] = OrderedDict()
        self._bytes = 0
        self._just_read: OrderedDict[str, Sequence[Recorded]] = OrderedDict()

    def offer(self, key: str, recorded: Sequence[Recorded]) -> None:
        """Take the whole stream of a session that its actor has just read, for the context of the run that it woke for.

        What comes after it is read when that is asked for; it is not read twice. A few are kept, until they are used.
        """
        with self._lock:
            if recorded and key not in self._folds:
                self._just_read[key] = recorded
                self._just_read.move_to_end(key)
                if len(self._just_read) > MOST_JUST_READ:
                    self._just_read.popitem(last=False)

    def read(self, key: str, run_id: str, on_context: OnContext, *, version: int) -> None:
        """Have a run's context read as of a version of its stream, off this thread; never blocks.

        What is here already is given back at once.
        """
        with self._lock:
            fold = self._taken_out(key) or TranscriptFold()
            begin = self._just_read.pop(key, ()) if fold.version == 0 else ()
        if fold.version == version:
            on_context(self._built(key, run_id, fold, ()))
            return

        def loaded(recorded: Sequence[Recorded] | Exception) -> None:
            whole = recorded if isinstance(recorded, Exception) else (*begin, *recorded)
            on_context(self._built(key, run_id, fold, whole))

        self._log.load(ids.session_stream(key), loaded, after=begin[-1].version if begin else fold.version)

    def at(self, key: str, run_id: str, version: int) -> RunContext | None:
        """Return a run's context as of a version of its stream, if the transcript that is here is of that version.

        Raises:
            LookupError: no such run waits in the stream.
        """
        with self._lock:
            fold = self._folds.get(key)
            if fold is None or fold.version != version:
                return None
            before = fold.size
            try:
                return fold.context(run_id)
            finally:
                self._bytes += fold.size - before

    def ahead(
        self, key: str, queued: RunQueued, message: Message, *, at: int, version: int
    ) -> RunContext | None:
        """Return the context of a run that is about to be queued as `version` of a stream that stands `at` an earlier one.

        None if the transcript that is here is not of that version: then the context is read once the run is queued.
        """
        with self._lock:
            fold = self._folds.get(key)
            if fold is None or fold.version != at:
                return None
            before = fold.size
            try:
                return fold.context_ahead(queued, message, version)
            finally:
                self._bytes += fold.size - before

    def take(self, key: str, recorded: Sequence[Recorded]) -> None:
        """Take in what a session's actor has just recorded, if it follows on what is here."""
        with self._lock:
            fold = self._folds.get(key)
            if fold is not None and recorded and recorded[0].version == fold.version + 1:
                before = fold.size
                for item in recorded:
                    fold.apply(item)
                self._bytes += fold.size - before

    def forget(self, key: str) -> None:
        """Drop a session's transcript."""
        with self._lock:
            self._taken_out(key)
            self._just_read.pop(key, None)

    def _built(
        self, key: str, run_id: str, fold: TranscriptFold, recorded: Sequence[Recorded] | Exception
    ) -> RunContext | Exception:
        if isinstance(recorded, Exception):
            return recorded
        try:
            for item in recorded:
                fold.apply(item)
            context = fold.context(run_id)
        except Exception as error:  # noqa: BLE001 - told to the actor, whose failure it is
            return error
        with self._lock:
            self._taken_out(key)
            self._folds[key] = fold
            self._bytes += fold.size
            self._make_room()
        return context

    def _taken_out(self, key: str) -> TranscriptFold | None:
        fold = self._folds.pop(key, None)
        if fold is not None:
            self._bytes -= fold.size
        return fold

    def _make_room(self) -> None:
        while len(self._folds) > MOST_SESSIONS or (self._bytes > MOST_BYTES and len(self._folds) > 1):
            self._taken_out(next(iter(self._folds)))
