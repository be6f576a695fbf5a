"""Ports of this machine, and a web server that keeps what it is asked and answers as a test says."""

import json
import socket
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self

WAIT = 20.0

_held: list[socket.socket] = []


def free_port() -> int:
    """Return a port of 127.0.0.1 on which nobody listens, for this process and its children: no other one is given it.

    A socket that is bound and does not listen keeps it out of what the system gives who asks for any port, and lets who asks for
    this one have it, again and again.
    """
    holding = socket.socket()
    holding.bind(("127.0.0.1", 0))
    holding.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    _held.append(holding)
    return int(holding.getsockname()[1])


class Quiet(BaseHTTPRequestHandler):
    """Prints nothing of what it is asked."""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
        """Say nothing."""


class JsonHandler(Quiet):
    """Takes calls whose bodies are JSON, and gives JSON back."""

    def do_POST(self) -> None:
        self.asked_for(json.loads(self.rfile.read(int(self.headers["content-length"]))))

    def asked_for(self, request: Any) -> None:
        """Answer a call, by what its body says."""
        raise NotImplementedError

    def give(self, answer: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        """Give an answer."""
        body = json.dumps(answer).encode()
        self.send_response(status)
        own = {"Content-Type": "application/json", "Content-Length": str(len(body))}
        for name, value in (own | dict(headers or {})).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


class Asked(NamedTuple):
    """One request."""

    path: str
    headers: dict[str, str]
    body: bytes


class Answer(NamedTuple):
    """What is answered."""

    status: int = 200
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()


class Loopback:
    """Answers POST and GET; `answer` may return None to close the connection without a word."""

    def __init__(self, answer: Callable[[Asked], Answer | None] = lambda _: Answer()) -> None:
        self.asked: list[Asked] = []
        outer = self

        class Handler(Quiet):
            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                asked = Asked(self.path, dict(self.headers.items()), self.rfile.read(length))
                outer.asked.append(asked)
                given = answer(asked)
                if given is None:
                    self.close_connection = True
                    return
                # With a time of its own, unless the answer has one.
                send = self.send_response_only if "Date" in dict(given.headers) else self.send_response
                send(given.status)
                for name, value in (*given.headers, ("Content-Length", str(len(given.body)))):
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(given.body)

            do_GET = do_POST  # noqa: N815 - the library's names

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    @property
    def port(self) -> int:
        """Where it listens, on 127.0.0.1."""
        return int(self._server.server_address[1])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(WAIT)
