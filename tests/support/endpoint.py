"""An endpoint of each API on a real socket, whose model takes so many tokens and refuses more, as real ones do."""

import json
import re
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

from support.endpoint_dialects import events_of, in_dialect
from support.loopback import JsonHandler

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
        self.streams = True
        """Whether it gives its answer in chunks where it is asked to."""
        self.between: Callable[[], object] = lambda: None
        """Is called between two chunks."""
        self.breaks_off = False
        """Whether it ends without the last chunks."""
        self.hung_up = Event()
        """Is set once a client has closed the connection in the middle of an answer."""
        self.instead: Said | None = None
        """What it says in place of an answer, with the status of one."""
        self.taken: list[Said] = []
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.refused: list[Said] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def answer(self, request: Said) -> tuple[int, Said]:
        """Return the status and the body of an answer."""
        tokens = (
            sum(len(json.dumps(message)) for message in request.get("messages") or request["input"])
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


class _Answering(JsonHandler):
    server: Endpoint  # pyright: ignore[reportIncompatibleVariableOverride]

    def asked_for(self, request: Any) -> None:
        self.server.headers.append({name.lower(): value for name, value in self.headers.items()})
        self.server.paths.append(self.path)
        status, answer = self.server.answer(request)
        is_chat = self.path == "/v1/chat/completions"
        if status == 200 and not is_chat:
            answer = in_dialect(self.path, answer)
        answer = self.server.instead or answer
        if status == 200 and request.get("stream") and self.server.streams:
            (self._stream if is_chat else self._events)(answer)
            return
        # No client has to be closed, on whatever loop it was used.
        self.give(answer, status=status, headers={"Connection": "close"})

    def _stream(self, answer: Said) -> None:
        """Give the answer in chunks, as real ones do: its text by words, a call's name first, the usage behind all."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        choice = answer["choices"][0]
        try:
            for delta in deltas_of(choice["message"]):
                self._chunk(answer, [{"index": 0, "delta": delta, "finish_reason": None}])
                self.server.between()
            if self.server.breaks_off:
                return
            self._chunk(answer, [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}])
            self._chunk(answer, [], usage=answer["usage"])
            self.wfile.write(b"data: [DONE]\n\n")
        except OSError:
            self.server.hung_up.set()

    def _events(self, body: Said) -> None:
        """Give the answer as the events of its API."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        *first, last = events_of(body)
        for event in first if self.server.breaks_off else [*first, last]:
            self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())

    def _chunk(self, answer: Said, choices: list[Said], **more: Any) -> None:
        head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": answer["model"]}
        self.wfile.write(b"data: " + json.dumps({**head, "choices": choices, **more}).encode() + b"\n\n")
        self.wfile.flush()


def deltas_of(message: Said) -> Iterator[Said]:
    """Yield a message in the pieces in which it is streamed."""
    yield {"role": "assistant", "content": ""}
    for field in ("content", "refusal"):
        for word in re.findall(r"\S+\s*|\s+", message.get(field) or ""):
            yield {field: word}
    for index, call in enumerate(message.get("tool_calls") or []):
        function = call["function"]
        head = {"name": function["name"], "arguments": ""}
        yield {"tool_calls": [{"index": index, "id": call["id"], "type": "function", "function": head}]}
        for letter in function["arguments"]:
            yield {"tool_calls": [{"index": index, "function": {"arguments": letter}}]}


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
        try:
            yield served
        finally:
            served.shutdown()
            thread.join()
