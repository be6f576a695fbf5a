"""An OpenAI-compatible endpoint on a real socket, whose model takes so many tokens and refuses more, as real ones do."""

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

Said = dict[str, Any]


class Endpoint(ThreadingHTTPServer):
    """Counts four characters of the request's messages and tools as a token, and refuses what is longer than its window.

    `refusal` gives status and body of that; `say` what its model answers to a request.
    """

    daemon_threads = True

    def __init__(self, window: int, refusal: Callable[[int, int], tuple[int, Said]]) -> None:
        super().__init__(("127.0.0.1", 0), _Answering)
        self.window = window
        self.refusal = refusal
        self.say: Callable[[Said], Said] = lambda _: {"content": "Yes."}
        self.finish = "stop"
        self.taken: list[Said] = []
        self.refused: list[Said] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def answer(self, request: Said) -> tuple[int, Said]:
        """Return the status and the body of an answer."""
        tokens = (
            sum(len(json.dumps(message)) for message in request["messages"])
            + len(json.dumps(request.get("tools", [])))
        ) // 4
        if tokens > self.window:
            self.refused.append(request)
            return self.refusal(self.window, tokens)
        self.taken.append(request)
        said = {"role": "assistant", **self.say(request)}
        finish = "tool_calls" if said.get("tool_calls") else self.finish
        return 200, {
            "id": "c",
            "object": "chat.completion",
            "created": 1,
            "model": "served",
            "choices": [{"index": 0, "message": said, "finish_reason": finish}],
            "usage": {"prompt_tokens": tokens, "completion_tokens": 1, "total_tokens": tokens + 1},
        }


class _Answering(BaseHTTPRequestHandler):
    server: Endpoint  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_POST(self) -> None:
        status, answer = self.server.answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        encoded = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(encoded)))
        self.send_header("Connection", "close")  # no client has to be closed, on whatever loop it was used
        self.end_headers()
        self.wfile.write(encoded)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the library's
        """Say nothing."""


def as_openai(window: int, tokens: int) -> tuple[int, Said]:
    """Return what OpenAI's service says."""
    told = f"This model's maximum context length is {window} tokens. However, your messages resulted in {tokens} tokens."
    return 400, {
        "error": {"message": told, "type": "invalid_request_error", "code": "context_length_exceeded"}
    }


def calling(name: str, arguments: Said, call_id: str = "c1") -> Said:
    """Return what a model says that calls a tool."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"content": None, "tool_calls": [{"id": call_id, "type": "function", "function": function}]}


@contextmanager
def an_endpoint(
    window: int = 1 << 30, refusal: Callable[[int, int], tuple[int, Said]] = as_openai
) -> Generator[Endpoint]:
    """Serve an endpoint as long as the block lasts."""
    with Endpoint(window, refusal) as served:
        thread = Thread(target=served.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield served
        served.shutdown()
        thread.join()
