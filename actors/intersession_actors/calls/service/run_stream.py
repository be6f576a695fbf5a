"""A run's answer while its agent says it, for a host: what it has said in pieces, and how it ended (STREAM-2)."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from types import TracebackType
from typing import Final, Self, cast

from intersession_actors.calls.service.pending import Pending, Result
from intersession_actors.calls.service.run_waits import RunDoor
from intersession_actors.calls.service.service import Service
from intersession_actors.rules.answers import StreamAnswer
from intersession_actors.rules.errors import not_on_a_loop
from intersession_actors.rules.gate.limits import IDENTITY
from intersession_actors.rules.gate.texts import checked
from intersession_actors.rules.prompt.silence import shown_text
from intersession_actors.running.host.own_threads import off_loop

_HOWEVER_LATE_S: Final = 31 * 86_400.0
_STATES: Final = {"ok": "final", "aborted": "aborted"}


class RunStream:
    """The parts of a run's answer, for `for` and `async for`. Each iteration begins with the text so far.

    A reader that is slow gets the latest text; no agent waits for it.

    Raises:
        ToolRefused: there is no such run (`unknown_run`).
    """

    def __init__(self, service: Service, runs: RunDoor, run_id: str) -> None:
        self._service = service
        self._begin = runs.begin
        self.run_id = runs.known(checked("runId", run_id, most=IDENTITY.most))

    def __iter__(self) -> Iterator[StreamAnswer]:
        """Iterate on this thread.

        Raises:
            CalledOnLoop: this is a coroutine, where `async for` is used.
        """
        not_on_a_loop("for … in system.stream(…)", "async for … in system.stream(…)")
        return self._parts()

    def _parts(self) -> Iterator[StreamAnswer]:
        with self._reader() as reader:
            while not reader.is_over:
                news = reader.news
                part = reader.ask() if reader.has_to_ask else reader.next()
                if part is None:
                    self._service.blocking.wait(news, _HOWEVER_LATE_S)
                else:
                    yield part

    async def __aiter__(self) -> AsyncIterator[StreamAnswer]:
        """Iterate on the event loop; waiting holds no thread."""
        with await off_loop(self._reader) as reader:
            while not reader.is_over:
                news = reader.news
                part = await off_loop(reader.ask) if reader.has_to_ask else reader.next()
                if part is None:
                    await asyncio.wait([asyncio.wrap_future(news)])
                else:
                    yield part

    def _reader(self) -> "_Reader":
        return _Reader(self._service, self.run_id, self._begin(self.run_id, _HOWEVER_LATE_S))


class _Reader:
    """How far one iteration has got."""

    def __init__(self, service: Service, run_id: str, begun: Result | Pending) -> None:
        self._pieces = service.world.agents.pieces
        self._runs = service.runs
        self._run_id = run_id
        self._begun = begun
        self._lock = threading.Lock()
        self._attempt = 0
        self._text = ""
        self.news: Future[None] = Future()
        """Is done once there may be more to read. Take it before looking."""
        self.is_over = False
        self._stop: Callable[[], None] = self._pieces.watch(self._wake, run_id)
        if isinstance(begun, Pending):
            begun.future.add_done_callback(self._wake)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()
        if isinstance(self._begun, Pending):
            self._begun.over()

    @property
    def has_to_ask(self) -> bool:
        """Whether the log has to be asked for what comes next: the run may have ended, or its attempt was cut off."""
        is_done = not isinstance(self._begun, Pending) or self._begun.future.done()
        return is_done or (bool(self._text) and self._pieces.of(self._run_id) is None)

    def next(self) -> StreamAnswer | None:
        """Return what was said since the last part; None if that is nothing."""
        shown = self._pieces.of(self._run_id)
        if shown is None:
            return None
        text = shown_text(shown.text)
        if shown.attempt != self._attempt and self._text:
            return self._restarted()
        self._attempt = shown.attempt
        if text == self._text:
            return None
        delta, self._text = text.removeprefix(self._text), text
        return {
            "state": "delta",
            "runId": self._run_id,
            "attempt": self._attempt,
            "text": text,
            "delta": delta,
        }

    def ask(self) -> StreamAnswer | None:
        """Return the end of the run, or that what was shown counts no more; None if its end is about to be told."""
        if isinstance(self._begun, Pending) and not self._begun.future.done():
            return None if self._runs.has_ended(self._run_id) else self._restarted()
        outcome = self._runs.get(self._run_id)
        if self._text and outcome is not None and outcome.attempt != self._attempt:
            return self._restarted()  # and it has ended meanwhile
        answer = cast("Result", self._begun.finish() if isinstance(self._begun, Pending) else self._begun)
        self.is_over = True
        return cast("StreamAnswer", {"state": _STATES.get(answer["status"], "error"), **answer})

    def _restarted(self) -> StreamAnswer:
        self._text = ""
        return {"state": "restarted", "runId": self._run_id, "attempt": self._attempt}

    def _wake(self, _: object) -> None:
        with self._lock:
            news, self.news = self.news, Future()
        news.set_result(None)
