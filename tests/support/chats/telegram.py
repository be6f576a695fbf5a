"""A Telegram: it keeps each message until a `getUpdates` names an offset behind it."""

import asyncio
from collections.abc import Callable
from typing import Any

from aiohttp import web

from support.chats.served import Served

PRIVATE: dict[str, Any] = {"id": 42, "type": "private", "first_name": "Ann"}
GROUP: dict[str, Any] = {"id": -100123, "type": "supergroup", "title": "Lab"}
_LONGEST_POLL_S = 2.0
_MOST = 100


class FakeTelegram(Served):
    """`confirmed` are the texts that it has forgotten; `on_confirmed` is told of them first, on the service's thread."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[dict[str, Any]] = []
        self.confirmed: list[str] = []
        self.on_confirmed: Callable[[list[str]], None] = lambda _: None
        self.moved: dict[str, int] = {}
        """New ids of groups that became supergroups."""
        self.contents: dict[str, bytes] = {}
        self._number = 1000

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/bot"

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/bot{token}/{method}", self._answer),
            web.get("/bot{token}/{method}", self._answer),
            web.get("/file/bot{token}/{name}", self._content),
        ]

    def has(self, name: str, content: bytes) -> dict[str, Any]:
        """Keep a file that somebody sends; return what a message says of it."""
        self.contents[name] = content
        return {"file_id": name, "file_unique_id": name, "file_size": len(content)}

    async def _content(self, request: web.Request) -> web.Response:
        return web.Response(body=self.contents[request.match_info["name"]])

    def say(self, text: str | None, chat: dict[str, Any] = PRIVATE, **more: Any) -> int:
        """Have somebody write, or send a picture with a `caption`; return the id of the message."""
        with self.changed:
            self._number += 1
            number = more.pop("number", self._number)
            person = {"id": more.pop("person", 7), "is_bot": more.pop("is_bot", False), "first_name": "Ann"}
            message = {"message_id": number, "date": 0, "chat": chat, "from": person, **more}
            if text is not None:
                message["text"] = text
            self.waiting.append({"update_id": self._number, "message": message})
            self.changed.notify_all()
            return int(number)

    async def _answer(self, request: web.Request) -> web.Response:
        given = dict(await request.post())
        match request.match_info["method"]:
            case "getMe":
                result: Any = {"id": 1, "is_bot": True, "first_name": "Bot", "username": "the_bot"}
            case "getUpdates":
                result = await self._updates(int(str(given.get("offset") or 0)))
            case "sendMessage" if (new := self.moved.get(str(given["chat_id"]))) is not None:
                told = "Bad Request: group chat was upgraded to a supergroup chat"
                answer = {"ok": False, "error_code": 400, "description": told}
                return web.json_response({**answer, "parameters": {"migrate_to_chat_id": new}}, status=400)
            case "editMessageText":
                text = str(given["text"])
                if text == self.shown[int(str(given["message_id"])) - 900][1]:
                    told = "Bad Request: message is not modified"
                    return web.json_response(
                        {"ok": False, "error_code": 400, "description": told}, status=400
                    )
                self.edit(int(str(given["message_id"])) - 900, text)
                result = True
            case "sendMessage":
                self.show(str(given["chat_id"]), str(given["text"]))
                chat = {"id": int(str(given["chat_id"])), "type": "private"}
                result = {"message_id": 899 + len(self.shown), "date": 0, "chat": chat}
            case "getFile":
                result = {"file_id": "x", "file_unique_id": "x", "file_path": str(given["file_id"])}
            case "sendPhoto" | "sendDocument" as method:
                (part,) = (one for one in given.values() if isinstance(one, web.FileField))
                self.show(str(given["chat_id"]), f"{method} {part.filename} {part.file.read()!r}")
                chat = {"id": int(str(given["chat_id"])), "type": "private"}
                result = {"message_id": 899 + len(self.shown), "date": 0, "chat": chat}
            case method:
                raise AssertionError(method)
        return web.json_response({"ok": True, "result": result})

    async def _updates(self, offset: int) -> list[dict[str, Any]]:
        with self.changed:
            gone = [one["message"].get("text", "") for one in self.waiting if one["update_id"] < offset]
            self.waiting = [one for one in self.waiting if one["update_id"] >= offset]
        if gone:
            await asyncio.to_thread(self.on_confirmed, gone)
            with self.changed:
                self.confirmed += gone
                self.changed.notify_all()
        for _ in range(int(_LONGEST_POLL_S / 0.02)):
            with self.changed:
                if self.waiting:
                    return self.waiting[:_MOST]
            await asyncio.sleep(0.02)
        return []
