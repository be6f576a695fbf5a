"""A pooler before a server of tests, as PgBouncer is one: it lends its connections for a transaction, or for as long as a client stays."""

import socket
import struct
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Literal

_SIZE: Final = 65_536
_NO_SECRETS: Final = frozenset({80_877_103, 80_877_104})
"""What a client asks for that wants the connection to be encrypted."""
_USER: Final = b"user\0postgres\0database\0postgres\0\0"
_OWN_KEY: Final = b"K" + struct.pack("!iii", 12, 1, 1)


class _Wire:
    """One end of a connection, message by message."""

    def __init__(self, ours: socket.socket) -> None:
        self.socket = ours
        self._read = b""

    def take(self, size: int) -> bytes:
        while len(self._read) < size:
            said = self.socket.recv(_SIZE)
            if not said:
                raise OSError
            self._read += said
        taken, self._read = self._read[:size], self._read[size:]
        return taken

    def message(self) -> bytes:
        head = self.take(5)
        return head + self.take(int.from_bytes(head[1:], "big") - 4)

    def until_ready(self) -> list[bytes]:
        said = [self.message()]
        while said[-1][:1] != b"Z":
            said.append(self.message())
        return said


class Pooler:
    """Takes clients on a port of this machine. What a client has set stays on the connection, for whoever has it next."""

    def __init__(self, to: Path, mode: Literal["transaction", "session"]) -> None:
        self._to = to
        self._mode = mode
        self._idle: list[_Wire] = []
        self._servers: list[socket.socket] = []
        self._greeting: list[bytes] = []
        self._idle.append(self._connected())
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def url(self, schema: str, **settings: str) -> str:
        """Return the URL of a log behind this pooler."""
        more = "".join(f"&{key}={value}" for key, value in settings.items())
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres?schema={schema}{more}"

    def close(self) -> None:
        """End it."""
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for server in self._servers:
            server.close()

    def _connected(self) -> _Wire:
        server = _Wire(socket.socket(socket.AF_UNIX))
        self._servers.append(server.socket)
        server.socket.connect(str(self._to / ".s.PGSQL.5432"))
        server.socket.sendall(struct.pack("!ii", 8 + len(_USER), 196_608) + _USER)
        self._greeting = [said for said in server.until_ready() if said[:1] in {b"R", b"S"}]
        return server

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(_Wire(client),), daemon=True).start()

    def _serve(self, client: _Wire) -> None:
        server: _Wire | None = None
        try:
            while True:
                size, code = struct.unpack("!ii", client.take(8))
                client.take(size - 8)
                if code not in _NO_SECRETS:
                    break
                client.socket.sendall(b"N")
            client.socket.sendall(b"".join((*self._greeting, _OWN_KEY, b"Z\0\0\0\5I")))
            while (asked := client.message())[:1] != b"X":
                if server is None:
                    server = self._idle.pop() if self._idle else self._connected()
                server.socket.sendall(asked)
                if asked[:1] in {b"Q", b"S"}:
                    said = server.until_ready()
                    # It is free before its client hears so: else who asks next is given another one.
                    if self._mode == "transaction" and said[-1][-1:] == b"I":
                        self._idle.append(server)
                        server = None
                    client.socket.sendall(b"".join(said))
        except OSError:
            pass
        finally:
            client.socket.close()
            if server is not None:
                server.socket.close()


@contextmanager
def pooler(to: Path, mode: Literal["transaction", "session"]) -> Generator[Pooler]:
    """Put a pooler before the server in a directory."""
    made = Pooler(to, mode)
    try:
        yield made
    finally:
        made.close()
