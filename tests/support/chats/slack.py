"""A Slack in socket mode: it sends an event again that was not acknowledged, at most three times."""

import asyncio
import itertools
import json
import threading
import time
from collections.abc import Callable
from typing import Any

from aiohttp import WSMsgType, web

from support.chats.served import Served
from support.running import WAIT

_MOST_SENT = 4


class FakeSlack(Served):
    """`acknowledged` are the texts of events that it does not send again; `on_acknowledged` is told of each first."""

    def __init__(self) -> None:
        super().__init__()
        self.acknowledged: list[str] = []
        self.on_acknowledged: Callable[[str], None] = lambda _: None
        self.sockets: list[web.WebSocketResponse] = []
        self.said: dict[str, list[dict[str, Any]]] = {"D1": [], "C1": []}
        self.envelopes: dict[str, dict[str, Any]] = {}
        self.sent: dict[str, int] = {}
        self.refused: dict[str, str] = {}
        """Errors by the name of a method, or by the conversation that is to be read."""
        self._numbers = itertools.count(1)
        self._last = 0.0
        self.contents: dict[str, bytes] = {}
        self._let_in = threading.Event()
        self._let_in.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/api/"

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/link", self._link),
            web.get("/file/{name}", self._content),
            web.post("/upload/{name}", self._upload),
            web.post("/api/{method}", self._answer),
            web.get("/api/{method}", self._answer),
        ]

    def say(self, text: str, place: str = "D1", *, told: bool = True, **more: Any) -> str:
        """Have somebody write; return the message's `ts`. With `told=False` no event is made of it: Slack gave that up."""
        name = f"e{next(self._numbers)}"
        with self.changed:
            self._last = max(time.time(), self._last + 0.001)
            ts = str(more.pop("ts", f"{self._last:.6f}"))
            message = {"type": "message", "user": more.pop("user", "U7"), "text": text, "ts": ts, **more}
            if not any(one["ts"] == ts for one in self.said[place]):
                self.said[place].append(message)
            if told:
                kind = "im" if place == "D1" else "channel"
                event = {**message, "channel": place, "channel_type": kind}
                payload = {"type": "event_callback", "team_id": "T1", "event": event}
                self.envelopes[name] = {
                    "type": "events_api",
                    "envelope_id": name,
                    "payload": payload,
                    "accepts_response_payload": False,
                }
        if told:
            self.do(self._send(name))
        return ts

    def send_again(self) -> None:
        """Send what is not acknowledged once more, as Slack does after a while."""
        for name in list(self.envelopes):
            self.do(self._send(name))

    def cut(self, *, let_in: bool = True) -> None:
        """End all connections; unless they are let in, there are no new ones before `let_go`."""
        if not let_in:
            self._let_in.clear()
        for socket in list(self.sockets):
            self.do(socket.close(code=1001))

    def let_go(self) -> None:
        """Take new connections."""
        self._let_in.set()

    async def _send(self, name: str) -> None:
        envelope = self.envelopes.get(name)
        for socket in self.sockets[-1:]:
            if envelope is not None and self.sent.get(name, 0) < _MOST_SENT:
                self.sent[name] = self.sent.get(name, 0) + 1
                await socket.send_json(envelope)

    async def _link(self, request: web.Request) -> web.WebSocketResponse:
        await asyncio.to_thread(self._let_in.wait, WAIT)
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_json({"type": "hello", "num_connections": 1})
        with self.changed:
            self.sockets.append(socket)
            self.changed.notify_all()
        for name in list(self.envelopes):
            await self._send(name)
        async for message in socket:
            if message.type is not WSMsgType.TEXT:
                break
            envelope = self.envelopes.get(message.json().get("envelope_id"))
            if envelope is not None:
                text = envelope["payload"]["event"].get("text", "")
                await asyncio.to_thread(self.on_acknowledged, text)
                with self.changed:
                    self.envelopes.pop(envelope["envelope_id"], None)
                    self.acknowledged.append(text)
                    self.changed.notify_all()
        if socket in self.sockets:
            self.sockets.remove(socket)
        return socket

    def has(self, name: str, content: bytes) -> dict[str, Any]:
        """Keep a file that somebody sends; return what a message says of it."""
        self.contents[name] = content
        url = f"http://127.0.0.1:{self.port}/file/{name}"
        return {"id": "F1", "name": name, "mimetype": "image/png", "url_private_download": url}

    async def _content(self, request: web.Request) -> web.Response:
        assert request.headers["Authorization"] == "Bearer 1:token"
        return web.Response(body=self.contents[request.match_info["name"]])

    async def _upload(self, request: web.Request) -> web.Response:
        self.contents[request.match_info["name"]] = await request.read()
        return web.Response(text="OK")

    async def _answer(self, request: web.Request) -> web.Response:  # noqa: C901, PLR0912 - one case a method
        given: dict[str, Any] = {**request.query, **(await request.post())}
        if request.content_type == "application/json":
            given |= await request.json()
        result: dict[str, Any] = {"ok": True}
        method, place = request.match_info["method"], str(given.get("channel"))
        if error := self.refused.get(method) or (method != "chat.postMessage" and self.refused.get(place)):
            return web.json_response({"ok": False, "error": error})
        match method:
            case "apps.connections.open":
                result["url"] = f"ws://127.0.0.1:{self.port}/link"
            case "auth.test":
                result |= {"team_id": "T1", "user_id": "U1", "bot_id": "B1"}
            case "users.conversations":
                result["channels"] = [{"id": "D1", "is_im": True}, {"id": "C1"}]
            case "conversations.history":
                found = [one for one in self.said[str(given["channel"])] if _is_top(one)]
                result["messages"] = [one for one in found if one["ts"] > str(given["oldest"])][::-1]
            case "conversations.replies":
                found = [
                    one for one in self.said[str(given["channel"])] if one.get("thread_ts") == given["ts"]
                ]
                result["messages"] = found
            case "files.getUploadURLExternal":
                name = str(given["filename"])
                result |= {"file_id": name, "upload_url": f"http://127.0.0.1:{self.port}/upload/{name}"}
            case "files.completeUploadExternal":
                for one in json.loads(str(given["files"])):
                    content = self.contents[one["id"]]
                    self.show(
                        str(given["channel_id"]), f"{one['id']} {content!r} {given.get('initial_comment')}"
                    )
                result["files"] = []
            case "chat.postMessage":
                self.show(str(given["channel"]), str(given["text"]))
                result["ts"] = f"900.{len(self.shown):06d}"
            case "chat.update":
                number = int(str(given["ts"]).removeprefix("900.")) - 1
                if not 0 <= number < len(self.shown):
                    return web.json_response({"ok": False, "error": "message_not_found"})
                self.edit(number, str(given["text"]))
                result |= {"ts": given["ts"], "text": given["text"]}
            case _:
                raise AssertionError(method)
        return web.json_response(result)


def _is_top(message: dict[str, Any]) -> bool:
    return message.get("thread_ts") in {None, message["ts"]}
