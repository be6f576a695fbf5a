"""An OpenAI-compatible endpoint in this process, for configurations whose agents ask a model."""

import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from http.server import ThreadingHTTPServer
from typing import Any, ClassVar

from support.loopback import JsonHandler

WAIT = 20.0


class Endpoint(JsonHandler):
    """An OpenAI-compatible endpoint: gives the last message back, or holds it until it is let go."""

    asked: ClassVar[list[dict[str, Any]]] = []
    go_on = threading.Event()
    reached = threading.Event()

    def asked_for(self, request: Any) -> None:
        type(self).asked.append({"path": self.path, "key": self.headers["authorization"], **request})
        last = str(request["messages"][-1]["content"])
        if "hold" in last:
            type(self).reached.set()
            type(self).go_on.wait(WAIT)
        answer = {
            "id": "c",
            "object": "chat.completion",
            "created": 1,
            "model": request["model"],
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "message": {"role": "assistant", "content": f"model says: {last}"},
                }
            ],
            "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
        }
        with suppress(ConnectionError):  # who asked may be gone
            self.give(answer)


@contextmanager
def scripted_endpoint() -> Generator[ThreadingHTTPServer]:
    """Serve it on a port of its own, with nothing asked yet."""
    Endpoint.asked, Endpoint.go_on, Endpoint.reached = [], threading.Event(), threading.Event()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    Endpoint.go_on.set()
    server.shutdown()
    server.server_close()
    thread.join(WAIT)
