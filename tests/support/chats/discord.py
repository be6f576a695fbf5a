"""A Discord: its gateway sends again what a session missed when that is resumed, and nothing to a new one."""

import asyncio
import contextlib
import json
import threading
import time
from collections.abc import Callable
from typing import Any

from aiohttp import WSMsgType, web

from support.chats.served import Served
from support.running import WAIT

_EPOCH_MS = 1_420_070_400_000
HELLO, DISPATCH, IDENTIFY, RESUME, HEARTBEAT, ACK, INVALID = 10, 0, 2, 6, 1, 11, 9
BOT: dict[str, Any] = {"id": "1", "username": "bot", "discriminator": "0000", "avatar": None}
GUILD: dict[str, Any] = {
    "id": "200",
    "name": "Lab",
    "channels": [{"id": "300", "type": 0, "name": "room", "position": 0, "permission_overwrites": []}],
    "threads": [
        {
            "id": "301",
            "type": 11,
            "name": "thread",
            "parent_id": "300",
            "owner_id": "7",
            "guild_id": "200",
            "message_count": 0,
            "member_count": 1,
            "rate_limit_per_user": 0,
            "thread_metadata": {"archived": False, "auto_archive_duration": 60, "archive_timestamp": None},
        }
    ],
    "members": [],
    "roles": [],
    "emojis": [],
    "stickers": [],
}
ROOMS = {"300", "301"}


class FakeDiscord(Served):
    """`sockets` are the connections there are; a session that `resumes` is given what it missed."""

    def __init__(self) -> None:
        super().__init__()
        self.resumes = True
        self.identified = 0
        self.resumed = 0
        self.sockets: list[web.WebSocketResponse] = []
        self.said: dict[str, list[dict[str, Any]]] = {}
        self.read: list[str] = []
        """The places whose messages were asked for."""
        self.before_read: Callable[[str], None] = lambda _: None
        """Called first, on a thread of its own; where it raises, the connection ends without an answer."""
        self.gone: set[str] = set()
        """People that are not there any more."""
        self._events: list[dict[str, Any]] = []
        self._last = 0
        self.contents: dict[str, bytes] = {}
        self._let_in = threading.Event()
        self._let_in.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/api"

    @property
    def gateway(self) -> str:
        return f"ws://127.0.0.1:{self.port}/gateway"

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/gateway", self._gateway),
            web.get("/api/users/@me", self._me),
            web.get("/api/oauth2/applications/@me", self._application),
            web.get("/api/users/{person}", self._person),
            web.post("/api/users/@me/channels", self._direct),
            web.get("/api/channels/{place}/messages", self._history),
            web.post("/api/channels/{place}/messages", self._post),
            web.patch("/api/channels/{place}/messages/{number}", self._edit),
            web.get("/file/{name}", self._content),
        ]

    def say(self, text: str, place: str = "42", *, number: int | None = None, **more: Any) -> str:
        """Have somebody write; return the id of the message."""
        with self.changed:
            now = (int(time.time() * 1000) - _EPOCH_MS) << 22
            self._last = max(now, self._last + 1) if number is None else number
            message = self._message(str(self._last), text, place, **more)
            self.said.setdefault(place, []).append(message)
            self._events.append({"op": DISPATCH, "t": "MESSAGE_CREATE", "d": message})
            sockets, sequence = list(self.sockets), len(self._events)
        for socket in sockets:
            self.do(_sent(socket, {**self._events[sequence - 1], "s": sequence}))
        return str(message["id"])

    def cut(self) -> None:
        """End all connections, as a network does; there are no new ones before `let_in`."""
        self._let_in.clear()
        with self.changed:
            sockets, self.sockets = self.sockets, []
        for socket in sockets:
            self.do(socket.close(code=4000))

    def let_in(self) -> None:
        """Take new connections."""
        self._let_in.set()

    def let_go(self) -> None:
        self.let_in()

    def _message(self, number: str, text: str, place: str, **more: Any) -> dict[str, Any]:
        author = {
            **BOT,
            "id": str(more.pop("person", 7)),
            "username": "ann",
            "bot": more.pop("is_bot", False),
        }
        return {
            "id": number,
            "channel_id": place,
            "author": author,
            "content": text,
            "timestamp": "2026-01-01T00:00:00+00:00",
            "edited_timestamp": None,
            "tts": False,
            "mention_everyone": False,
            "mentions": [],
            "mention_roles": [],
            "attachments": [],
            "embeds": [],
            "pinned": False,
            "type": 0,
            **({"guild_id": "200"} if place in ROOMS else {}),
            **more,
        }

    # --- the gateway

    async def _gateway(self, request: web.Request) -> web.WebSocketResponse:
        await asyncio.to_thread(self._let_in.wait, WAIT)
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_json({"op": HELLO, "d": {"heartbeat_interval": 41_250}})
        async for message in socket:
            if message.type is not WSMsgType.TEXT:
                break
            asked = message.json()
            if asked["op"] == HEARTBEAT:
                await socket.send_json({"op": ACK})
            elif asked["op"] == IDENTIFY:
                await self._ready(socket)
            elif asked["op"] == RESUME:
                await self._resume(socket, int(asked["d"]["seq"] or 0))
        if socket in self.sockets:
            self.sockets.remove(socket)
        return socket

    async def _ready(self, socket: web.WebSocketResponse) -> None:
        ready = {
            "user": BOT,
            "application": {"id": "1", "flags": 0},
            "guilds": [{"id": "200", "unavailable": True}],
            "session_id": "s",
            "resume_gateway_url": self.gateway,
        }
        sequence = len(self._events)
        await socket.send_json({"op": DISPATCH, "t": "READY", "s": sequence, "d": ready})
        await socket.send_json({"op": DISPATCH, "t": "GUILD_CREATE", "s": sequence, "d": GUILD})
        with self.changed:
            self.sockets.append(socket)
            self.identified += 1
            self.changed.notify_all()

    async def _resume(self, socket: web.WebSocketResponse, sequence: int) -> None:
        if not self.resumes:
            await socket.send_json({"op": INVALID, "d": False})
            return
        with self.changed:
            missed = [
                {**event, "s": number} for number, event in enumerate(self._events, 1) if number > sequence
            ]
            self.sockets.append(socket)
        for event in missed:
            await socket.send_json(event)
        await socket.send_json({"op": DISPATCH, "t": "RESUMED", "s": len(self._events), "d": {}})
        with self.changed:
            self.resumed += 1
            self.changed.notify_all()

    # --- what is asked over HTTP

    async def _me(self, _: web.Request) -> web.Response:
        return _json(BOT)

    async def _application(self, _: web.Request) -> web.Response:
        about = {"id": "1", "name": "bot", "icon": None, "description": "", "bot_public": True}
        more = {"bot_require_code_grant": False, "owner": BOT, "verify_key": "", "summary": "", "flags": 0}
        return _json(about | more)

    async def _person(self, request: web.Request) -> web.Response:
        if request.match_info["person"] in self.gone:
            return web.json_response({"code": 10013, "message": "Unknown User"}, status=404)
        return _json({**BOT, "id": request.match_info["person"], "username": "ann"})

    async def _direct(self, request: web.Request) -> web.Response:
        person = str((await request.json())["recipient_id"])
        return _json({"id": "42", "type": 1, "recipients": [{**BOT, "id": person, "username": "ann"}]})

    async def _history(self, request: web.Request) -> web.Response:
        place, after = request.match_info["place"], int(request.query.get("after", 0))
        try:
            await asyncio.to_thread(self.before_read, place)
        except ConnectionError:
            assert request.transport is not None
            request.transport.close()
        with self.changed:
            self.read.append(place)
            self.changed.notify_all()
            found = [one for one in self.said.get(place, []) if int(one["id"]) > after]
        return _json(found[: int(request.query.get("limit", 50))][::-1])

    def has(self, name: str, content: bytes) -> dict[str, Any]:
        """Keep a file that somebody sends; return what a message says of it."""
        self.contents[name] = content
        url = f"http://127.0.0.1:{self.port}/file/{name}"
        return {"id": "5", "filename": name, "size": len(content), "url": url, "proxy_url": url}

    async def _content(self, request: web.Request) -> web.Response:
        return web.Response(body=self.contents[request.match_info["name"]])

    async def _post(self, request: web.Request) -> web.Response:
        place = request.match_info["place"]
        if request.content_type == "application/json":
            given = await request.json()
        else:
            form = await request.post()
            given = json.loads(str(form["payload_json"]))
            for part in form.values():
                if isinstance(part, web.FileField):
                    self.show(place, f"{part.filename} {part.file.read()!r}")
        self.show(place, given.get("content") or "")
        number = str(899 + len(self.shown))
        return _json(self._message(number, given.get("content") or "", place, person=1, is_bot=True))

    async def _edit(self, request: web.Request) -> web.Response:
        given, number = await request.json(), request.match_info["number"]
        self.edit(int(number) - 900, given["content"])
        place = request.match_info["place"]
        return _json(self._message(number, given["content"], place, person=1, is_bot=True))


def _json(value: Any) -> web.Response:
    # The client takes exactly this type, without a charset.
    return web.Response(body=json.dumps(value).encode(), content_type="application/json")


async def _sent(socket: web.WebSocketResponse, event: dict[str, Any]) -> None:
    with contextlib.suppress(ConnectionError, RuntimeError):  # it is gone; a resumed session is sent it again
        await socket.send_json(event)
