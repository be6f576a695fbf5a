"""Caches the transcripts of awake sessions, so that each run reads only what is new since the last one.

Of each it keeps how far it has come, which is little, and its last messages, as long as there is room. All of it is folded from the
log. A reader of dropped messages reads them from there.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from intersession_actors.owners.session.folding import Awake, EarlierMessages, SessionFolding
from intersession_actors.rules.prompt.fitting import NotAtHand
from intersession_actors.rules.prompt.transcript import RunContext, TranscriptFold
from intersession_actors.rules.prompt.window import Window
from intersession_events.basics import ids
from intersession_events.basics.errors import CorruptEvent
from intersession_events.facts import Message
from intersession_events.log.log import ReadsEvents
from intersession_events.log.recorded import Recorded
from intersession_events.log.states import Folded

MOST_OF_ONE: Final = 1024 * 1024
"""How much of the messages of one transcript is kept at hand, in bytes of JSON: more than most models take."""

MOST_BYTES: Final = 64 * 1024 * 1024
"""How much of the messages of all transcripts together is. What was used least recently goes first."""

OnContext = Callable[[RunContext | Exception], None]


class ContextCache:
    """Reads the contexts of runs. One context of a session at a time."""

    def __init__(self, log: ReadsEvents) -> None:
        self._log = log
        self._lock = threading.Lock()
        self._folds: dict[str, TranscriptFold] = {}
        self._bytes = 0
        self._used: OrderedDict[str, None] = OrderedDict()
        """The sessions that have messages at hand, the one that was used last behind."""
        self._readers: dict[str, EarlierMessages] = {}
        self._forgotten = 0
        """How often something was forgotten: what was being read meanwhile is used once, and not kept."""
        self.erasures = 0
        """How often words were erased. A transcript is offered with what this was before it was read."""

    def folding(self, key: str) -> SessionFolding:
        """Return the folding of a session's stream for an actor that wakes; it offers the transcript here."""
        return SessionFolding(room=MOST_OF_ONE, earlier=partial(ContextCache._earlier, self, key))

    def offer(self, key: str, transcript: TranscriptFold, erasures: int) -> None:
        """Take a session's transcript that its actor has just read, unless words were erased meanwhile: it may have them."""
        with self._lock:
            if erasures == self.erasures:
                self._keep(key, transcript)

    def read(
        self,
        key: str,
        run_id: str,
        on_context: OnContext,
        *,
        version: int,
        room: int | None = None,
        keep: int = 0,
    ) -> None:
        """Have a run's context read as of a version of its stream, on another thread; never blocks.

        `room` is in tokens, and so is what a compaction leaves alone (`keep`).

        What is here already is given back at once.
        """
        try:
            context = self.at(key, run_id, version, room, keep=keep)
        except CorruptEvent as error:
            on_context(error)
            return
        if context is not None:
            on_context(context)
            return

        forgotten = self._forgotten

        def loaded(folded: Folded[Awake] | Exception) -> None:
            if isinstance(folded, Exception):
                on_context(folded)
                return
            try:
                context = folded.state.transcript.context(run_id)
                context = context.fitted(room, may_read=True, keep=keep) or context
            except Exception as error:  # noqa: BLE001 - told to the actor, whose failure it is
                on_context(error)
                return
            with self._lock:
                if forgotten == self._forgotten:
                    self._keep(key, folded.state.transcript)
            on_context(context)

        self._log.states.load(ids.session_stream(key), self.folding(key), loaded)

    def at(
        self,
        key: str,
        run_id: str,
        version: int,
        room: int | None = None,
        fresh: Sequence[Recorded] = (),
        *,
        keep: int = 0,
    ) -> RunContext | None:
        """Return a run's context as of a version of its stream, if the cached transcript has that version.

        It is as it is behind `fresh`, events that come next but may come to nothing. None is returned, too, where it has to be
        read what of it there is room for, or what it quotes.

        Raises:
            CorruptEvent: no such run waits in the stream, or its message is not there.
        """
        with self._lock:
            fold = self._at(key, version)
            if fold is None:
                return None
            before = fold.window.size
            try:
                return fold.context_behind(fresh, run_id, room, keep)
            except NotAtHand:
                return None
            finally:
                self._bytes += fold.window.size - before
                self._use(key)

    def transcript_at(self, key: str, version: int) -> TranscriptFold | None:
        """Return a session's transcript, if the cached one has that version: for its actor, in its own thread."""
        with self._lock:
            return self._at(key, version)

    def take(self, key: str, recorded: Sequence[Recorded]) -> None:
        """Take in newly recorded events of a session, if they follow the cached ones."""
        with self._lock:
            fold = self._folds.get(key)
            if fold is not None and recorded and recorded[0].version == fold.version + 1:
                before = fold.window.size
                for item in recorded:
                    fold.apply(item)
                self._bytes += fold.window.size - before
                self._use(key)

    def forget(self, key: str) -> None:
        """Drop a session's transcript: it is read from the log the next time."""
        with self._lock:
            self._forgotten += 1
            self._take_out(key)

    def erased(self, key: str) -> None:
        """Drop the transcript of a session in which words were erased, also where it is being read just now."""
        with self._lock:
            self.erasures += 1
        self.forget(key)

    def _earlier(self, key: str, window: Window, start: int, stop: int) -> Iterator[Message]:
        """Yield earlier messages from the log. Those right before the window are kept, if there is room."""
        messages: list[Message] = []
        sizes: list[int] = []
        left = MOST_OF_ONE
        for message, size in self._reader(key, window).read(start, stop):
            yield message
            left -= size
            if left >= 0:
                messages.append(message)
                sizes.append(size)
        with self._lock:
            fold = self._folds.get(key)
            here = fold is not None and fold.window is window and window.start == stop
            if left >= 0 and here and window.put_before(messages, sizes):
                self._bytes += sum(sizes)
                self._use(key)

    def _reader(self, key: str, window: Window) -> EarlierMessages:
        with self._lock:
            reader = self._readers.get(key)
            if reader is None or reader.began != window.began:
                reader = EarlierMessages(self._log, ids.session_stream(key), window.began)
                if key in self._folds:
                    self._readers[key] = reader
            return reader

    def _at(self, key: str, version: int) -> TranscriptFold | None:
        fold = self._folds.get(key)
        return fold if fold is not None and fold.version == version else None

    def _keep(self, key: str, transcript: TranscriptFold) -> None:
        self._take_out(key)
        self._folds[key] = transcript
        self._bytes += transcript.window.size
        self._use(key)

    def _take_out(self, key: str) -> None:
        fold = self._folds.pop(key, None)
        if fold is not None:
            self._bytes -= fold.window.size
            self._used.pop(key, None)
            self._readers.pop(key, None)

    def _use(self, key: str) -> None:
        """Note that a transcript is used, and let go of messages where all of them together are too many."""
        self._used[key] = None
        self._used.move_to_end(key)
        while self._bytes > MOST_BYTES and len(self._used) > 1:
            least, _ = self._used.popitem(last=False)
            window = self._folds[least].window
            self._bytes -= window.size
            window.shrink(0)
