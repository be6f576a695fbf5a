"""What agents have said so far in attempts under way, piece by piece, for listeners; and agents that are generators (STREAM-1).

Pieces are no events: the end of a run is. They are kept until that is on record.
"""

import inspect
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import aclosing, closing
from functools import wraps
from typing import Final, NamedTuple, cast

import msgspec

from intersession_actors.outside.agents.turn import AgentFunction, BadPiece, Reply, ReplyTooLarge, Turn
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.gate.values import plain_text, storable


class Utterance(NamedTuple):
    """The text that an attempt has shown so far."""

    session_key: str
    attempt: int
    text: str


Watcher = Callable[[str], None]
"""Is told of a run that has said more, or whose attempt is over. It must not block."""


class _Attempt:
    """The pieces of one attempt. Joined only when somebody reads them: there may be many."""

    def __init__(self, session_key: str, attempt: int) -> None:
        self.session_key = session_key
        self.attempt = attempt
        self.size = 0
        self.pieces: list[str] = []

    @property
    def text(self) -> str:
        if len(self.pieces) > 1:
            self.pieces[:] = ["".join(self.pieces)]
        return self.pieces[0] if self.pieces else ""


class Pieces:
    """The pieces of all attempts under way. Its methods may be called from any thread.

    `is_running` says whether an agent works on an attempt: what comes later is refused.
    """

    def __init__(self, is_running: Callable[[str, int], bool], most_bytes: int) -> None:
        self._is_running = is_running
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._said: dict[str, _Attempt] = {}
        self._watchers: dict[int, tuple[str | None, Watcher]] = {}
        self._numbers = 0

    def add(self, session_key: str, run_id: str, attempt: int, piece: str, *, is_shown: bool = True) -> None:
        """Take the next piece of an attempt of a session's run. One that is not shown to anybody counts all the same.

        Raises:
            BadPiece: it is no text.
            ReplyTooLarge: there are more than an agent may answer.
            ToolRefused: the attempt is over.
        """
        piece = _text(piece)
        with self._lock:
            if not self._is_running(run_id, attempt):
                raise ToolRefused("invalid_request", "run: this attempt is over, stop working on it")
            said = self._said.get(run_id)
            if said is None or said.attempt != attempt:
                said = self._said[run_id] = _Attempt(session_key, attempt)
            said.size += len(piece.encode(errors="surrogatepass"))
            if said.size > self._most_bytes:
                raise ReplyTooLarge(f"said a text of more than {self._most_bytes} bytes")
            if not is_shown:
                return
            said.pieces.append(piece)
        self._tell(run_id)

    def heard(self, session_key: str, run_id: str, attempt: int, text: str) -> None:
        """Take all that an attempt at the log's writer has shown so far, which this host only passes on."""
        with self._lock:
            before = self._said.get(run_id)
            if before is not None and before.attempt > attempt:
                return
            said = self._said[run_id] = _Attempt(session_key, attempt)
            said.pieces.append(text)
        self._tell(run_id)

    def of(self, run_id: str) -> Utterance | None:
        """Return what the attempt under way has said in pieces; None if that is nothing."""
        if run_id not in self._said:
            return None
        with self._lock:
            said = self._said.get(run_id)
            return None if said is None else Utterance(said.session_key, said.attempt, storable(said.text))

    @property
    def runs(self) -> tuple[str, ...]:
        """The runs whose attempts have said something in pieces."""
        with self._lock:
            return tuple(self._said)

    def over(self, run_id: str, attempt: int) -> None:
        """Forget an attempt that is over: its end is on record, or it was cut off."""
        if run_id not in self._said:
            return
        with self._lock:
            said = self._said.get(run_id)
            if said is None or said.attempt > attempt:
                return
            del self._said[run_id]
        self._tell(run_id)

    def watch(self, watcher: Watcher, run_id: str | None = None) -> Callable[[], None]:
        """Tell a watcher of a run, or of all. Returns a function that ends it."""
        with self._lock:
            self._numbers += 1
            number = self._numbers
            self._watchers[number] = (run_id, watcher)

        def stop() -> None:
            with self._lock:
                self._watchers.pop(number, None)

        return stop

    def _tell(self, run_id: str) -> None:
        with self._lock:
            told = [watcher for wanted, watcher in self._watchers.values() if wanted in {None, run_id}]
        for watcher in told:
            watcher(run_id)


_YIELDS: Final = "an agent yields texts, and at the end a Reply if it has more to say than these"


def _text(piece: object) -> str:
    if not isinstance(piece, str):
        raise BadPiece(f"yielded {type(piece).__name__}; {_YIELDS}")
    return plain_text(piece)


def of_generator(function: AgentFunction) -> AgentFunction:
    """Return an agent that yields as one that answers: each piece is shown, and all together are its text (STREAM-1).

    Any other agent is returned as it is. A generator is closed when its run is over.
    """
    called = function if inspect.isroutine(function) else getattr(function, "__call__", function)  # noqa: B004 - what it yields
    if inspect.isasyncgenfunction(function) or inspect.isasyncgenfunction(called):

        @wraps(function)
        async def awaited(turn: Turn) -> object:
            joined = _Joined(turn)
            async with aclosing(cast("AsyncGenerator[object]", function(turn))) as generator:
                async for piece in generator:
                    joined.take(piece)
            return joined.reply(None)

        return awaited
    if inspect.isgeneratorfunction(function) or inspect.isgeneratorfunction(called):

        @wraps(function)
        def answered(turn: Turn) -> object:
            joined, returned = _Joined(turn), None
            with closing(cast("Generator[object, None, object]", function(turn))) as generator:
                while True:
                    try:
                        piece = next(generator)
                    except StopIteration as end:
                        returned = end.value
                        break
                    joined.take(piece)
            return joined.reply(returned)

        return answered
    return function


class _Joined:
    """The pieces of a generator, which are its text, unless it ends with a `Reply`."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._pieces: list[str] = []
        self._reply: Reply | None = None

    def take(self, piece: object) -> None:
        if self._reply is not None:
            raise BadPiece(f"yielded something behind its Reply; {_YIELDS}")
        if isinstance(piece, Reply):
            self._reply = piece
            return
        text = _text(piece)
        self._turn.stream(text)
        self._pieces.append(text)

    def reply(self, returned: object) -> object:
        """Return the answer: what the generator returned or yielded last, else its pieces."""
        if returned is not None and self._reply is not None:
            raise BadPiece("yielded a Reply and returned something, too; give one of the two")
        answer = self._reply if returned is None else returned
        text = "".join(self._pieces) if self._pieces else None
        if answer is None:
            return text
        if isinstance(answer, Reply) and answer.text is None and not answer.skipped:
            return msgspec.structs.replace(answer, text=text)
        return answer
