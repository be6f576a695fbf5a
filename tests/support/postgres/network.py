"""A network between a client and a server of tests: it can be slow, stall, and be cut at any moment, in the middle of a commit too."""

import socket
import struct
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Queue
from typing import Final

_SIZE: Final = 65_536
_NOW: Final = struct.pack("ii", 1, 0)
"""As `SO_LINGER`: closed by a reset, with nothing said."""


class Network:
    """Takes connections on a port of this machine, and passes all that is said on to a server's socket.

    `delay_s` is what each direction takes. `to` may be set to another server, for connections to come.
    """

    def __init__(self, to: Path, *, delay_s: float = 0.0) -> None:
        self.to = to
        self._delay_s = delay_s
        self._open: set[tuple[socket.socket, socket.socket]] = set()
        self._changing = threading.Lock()
        self._flows = threading.Event()
        self._flows.set()
        self._answers = threading.Event()
        self._answers.set()
        self._on_answer: Callable[[bytes], bool] | None = None
        self.instead: tuple[bytes, bytes] = (b"", b"")
        """What the server says, and what its clients hear instead, of the same length."""
        self._on_question: Callable[[bytes], bool] | None = None
        self._gone_at: int | None = None
        self._kept_back: tuple[socket.socket, bytes] | None = None
        self._said_to_nobody: Queue[bytes] = Queue()
        self.answered = 0
        """How often somebody waited for the server: whatever was sent at once is one answer, the end of a reading transaction none."""
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def url(self, schema: str, **settings: str) -> str:
        """Return the URL of a log behind this network."""
        more = "".join(f"&{key}={value}" for key, value in settings.items())
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres?schema={schema}{more}"

    def cut(self, *, reset: bool = False) -> None:
        """End all connections, by a reset or in an orderly way."""
        with self._changing:
            ended, self._open = self._open, set()
        for client, server in ended:
            if reset:
                with suppress(OSError):  # it has just ended
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NOW)
            for side in (client, server):
                _end(side)

    def stall(self) -> None:
        """Let nothing through, either way, until it `flows`."""
        self._flows.clear()

    def keep_answers(self) -> None:
        """Let nothing of the server's through any more: half open. What is asked still gets there."""
        self._answers.clear()

    def flow(self) -> None:
        """Let everything through again."""
        self._flows.set()
        self._answers.set()

    def cut_instead_of(self, answer: Callable[[bytes], bool]) -> None:
        """End a connection once, in the place of an answer of the server's: what was asked has been done."""
        self._on_answer = answer

    def gone_after(self, answers: int) -> None:
        """Have the server gone in the place of an answer, the first, second or later one from now on, until `to` is set anew."""
        self._gone_at = self.answered + answers

    @property
    def is_gone(self) -> bool:
        """Whether the server has gone since it was told `gone_after`."""
        return self._gone_at is None

    def cut_before(self, question: Callable[[bytes], bool]) -> None:
        """End a client's connection once, as it asks something: the server gets that only when it is `let_in`."""
        self._on_question = question

    def let_in(self) -> bytes:
        """Give the server what was kept back, and return what it answers to nobody."""
        assert self._kept_back is not None
        server, question = self._kept_back
        server.sendall(question)
        return self._said_to_nobody.get(timeout=20)

    def close(self) -> None:
        """End it."""
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self.flow()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(str(self.to / ".s.PGSQL.5432"))
            except OSError:
                client.close()
                server.close()
                continue
            pair = (client, server)
            with self._changing:
                self._open.add(pair)
            threading.Thread(target=self._pass, args=(client, server, False), daemon=True).start()
            threading.Thread(target=self._pass, args=(server, client, True), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, is_answer: bool) -> None:
        answers = _Answers()
        with suppress(OSError):
            while said := source.recv(_SIZE):
                if is_answer:
                    self.answered += answers.ended_by(said)
                    if self._gone_at is not None and self.answered >= self._gone_at:
                        self._gone_at, self.to = None, self.to / "gone"
                        self.cut()
                        break
                if self._delay_s:
                    time.sleep(self._delay_s)
                self._flows.wait()
                if is_answer:
                    if self._kept_back is not None and self._kept_back[0] is source:
                        self._said_to_nobody.put(said)
                        break
                    self._answers.wait()
                    cuts = self._on_answer
                    if cuts is not None and cuts(said):
                        self._on_answer = None
                        break
                elif self._on_question is not None and self._on_question(said):
                    self._on_question, self._kept_back = None, (target, said)
                    _end(source)
                    return  # the server goes on
                target.sendall(said.replace(*self.instead) if is_answer and self.instead[0] else said)
        for side in (source, target):
            _end(side)


class _Answers:
    """Counts the answers in what a server says on one connection."""

    def __init__(self) -> None:
        self._left = b""
        self._is_of_end = False
        self._is_first = True

    def ended_by(self, said: bytes) -> int:
        """Return how many answers end in what comes next, but for those to a ROLLBACK alone."""
        if self._is_first:  # one letter, whether there is TLS
            said, self._is_first = said.removeprefix(b"N"), False
        self._left += said
        ended = at = 0
        while len(self._left) >= at + 5:
            size = 1 + int.from_bytes(self._left[at + 1 : at + 5])
            if len(self._left) < at + size:
                break
            message = self._left[at : at + size]
            if message[:1] == b"Z":
                ended += not self._is_of_end
            self._is_of_end = message[:1] == b"C" and message[5:] == b"ROLLBACK\0"
            at += size
        self._left = self._left[at:]
        return ended


def _end(side: socket.socket) -> None:
    with suppress(OSError):
        side.shutdown(socket.SHUT_RDWR)
    side.close()


@contextmanager
def network(to: Path, *, delay_s: float = 0.0) -> Generator[Network]:
    """Put a network before the server in a directory."""
    made = Network(to, delay_s=delay_s)
    try:
        yield made
    finally:
        made.close()
