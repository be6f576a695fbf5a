"""A process that is an OpenAI-compatible endpoint which answers at once, streamed or whole: `python -m benchmarks.rivals.instant_model`.

It prints its port, and serves until its standard input ends.
"""

import json
import sys
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_USAGE = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
_SAYS = {"role": "assistant", "content": "It is done."}


class InstantModel(BaseHTTPRequestHandler):
    """Give one answer to whatever is asked, in one write."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 65_536

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        kind, body = _streamed(asked["model"]) if asked.get("stream") else _whole(asked["model"])
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        """Say nothing."""


def _whole(model: str) -> tuple[str, bytes]:
    choice = {"index": 0, "finish_reason": "stop", "message": _SAYS}
    answer = {**_head(model, "chat.completion"), "choices": [choice], "usage": _USAGE}
    return "application/json", json.dumps(answer).encode()


def _streamed(model: str) -> tuple[str, bytes]:
    head = _head(model, "chat.completion.chunk")
    chunks: list[Mapping[str, Any]] = [  # JSON
        {**head, "choices": [{"index": 0, "delta": _SAYS, "finish_reason": None}]},
        {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": _USAGE},
    ]
    lines = [json.dumps(chunk) for chunk in chunks]
    return "text/event-stream", "".join(f"data: {line}\n\n" for line in (*lines, "[DONE]")).encode()


def _head(model: str, kind: str) -> Mapping[str, Any]:
    return {"id": "c", "object": kind, "created": 1, "model": model}


if __name__ == "__main__":
    served = ThreadingHTTPServer(("127.0.0.1", 0), InstantModel)
    served.daemon_threads = True
    threading.Thread(target=served.serve_forever, daemon=True).start()
    print(served.server_port, flush=True)  # noqa: T201 - who started it reads that
    sys.stdin.read()
