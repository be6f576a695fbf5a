"""The bot hosts of the documentation run, with the libraries they are for and services that are not there.

What a person writes goes in as the service tells it, and the answer comes out as the service takes it.
"""

import asyncio
import contextlib
import json
import re
import warnings
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from intersession import SessionSystem
from intersession_events.facts import DeliveryDone
from support.loopback import Answer, Asked, Loopback
from support.paths import DOCS
from support.running import WAIT

PAGE = DOCS / "howto" / "bot-hosts.md"
HOSTS = dict(
    re.findall(
        r"^## (\w+)\n.*?^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
)


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], dict[str, Any]]]:
    """Run the code of a host as an import would, in a folder of its own; its system is closed in the end."""
    opened: list[dict[str, Any]] = []
    for name in ("TELEGRAM_TOKEN", "DISCORD_TOKEN", "SLACK_BOT_TOKEN", "SLACK_APP_TOKEN"):
        monkeypatch.setenv(name, "1:token")

    def run(title: str) -> dict[str, Any]:
        names: dict[str, Any] = {"__name__": "host"}
        with contextlib.chdir(tmp_path), warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of the libraries, while they are imported
            opened.append(names)
            exec(compile(HOSTS[title], f"{PAGE.name}: {title}", "exec"), names)  # noqa: S102 - the page's own code
        return names

    yield run
    for names in opened:
        if "system" in names:
            names["system"].close(grace=0)


def elsewhere(system: SessionSystem, name: str, arguments: dict[str, Any]) -> Any:
    """Call a tool on another thread: some of these tests are coroutines, where it may not block."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(system.tools().call, name, arguments).result()


def sessions(system: SessionSystem) -> list[str]:
    listed = elsewhere(system, "sessions_list", {})
    return sorted(row["key"] for row in listed["sessions"])


def users(system: SessionSystem, key: str) -> list[str]:
    history = elsewhere(system, "sessions_history", {"sessionKey": key})
    return [message["content"] for message in history["messages"] if message["role"] == "user"]


@pytest.mark.parametrize("title", HOSTS)
def test_a_host_fits_on_a_screen(title: str) -> None:
    lines = [line for line in HOSTS[title].splitlines() if line.strip()]

    assert len(lines) <= 50
    assert max(map(len, lines)) <= 120


def test_there_are_three_hosts() -> None:
    assert [*HOSTS] == ["Telegram", "Discord", "Slack"]


# --- Telegram


@contextlib.asynccontextmanager
async def telegram(names: dict[str, Any], sent: asyncio.Queue[dict[str, Any]]) -> AsyncGenerator[Any]:
    """Start the host with a Telegram that takes what it sends."""
    from telegram.ext import ExtBot  # noqa: PLC0415 - only where it is installed
    from telegram.request import BaseRequest, RequestData  # noqa: PLC0415

    class Service(BaseRequest):
        @property
        def read_timeout(self) -> float:
            return 1.0

        async def initialize(self) -> None:
            """Open nothing."""

        async def shutdown(self) -> None:
            """Close nothing."""

        async def do_request(
            self, url: str, method: str, request_data: RequestData | None = None, *_: Any, **__: Any
        ) -> tuple[int, bytes]:
            del method
            if url.endswith("/getMe"):
                result: Any = {"id": 1, "is_bot": True, "first_name": "Bot", "username": "the_bot"}
            else:
                assert url.endswith("/sendMessage")
                assert request_data is not None
                sent.put_nowait(request_data.parameters)
                result = {"message_id": 900, "date": 0, "chat": {"id": 42, "type": "private"}}
            return 200, json.dumps({"ok": True, "result": result}).encode()

    app = names["app"]
    app.bot = app.updater.bot = ExtBot("1:token", request=Service(), get_updates_request=Service())
    async with app:
        await app.post_init(app)
        yield app


def update(number: int, text: str, chat: dict[str, Any], **more: Any) -> dict[str, Any]:
    person = {"id": more.pop("person", 7), "is_bot": more.pop("is_bot", False), "first_name": "Ann"}
    message = {"message_id": number, "date": 0, "chat": chat, "from": person, "text": text, **more}
    return {"update_id": 1000 + number, "message": message}


PRIVATE = {"id": 42, "type": "private", "first_name": "Ann"}
GROUP = {"id": -100123, "type": "supergroup", "title": "Lab"}


async def test_telegram(host: Callable[[str], dict[str, Any]]) -> None:
    library = pytest.importorskip("telegram")
    names = host("Telegram")
    system: SessionSystem = names["system"]
    sent: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    async with telegram(names, sent) as app:

        async def heard(given: dict[str, Any]) -> None:
            await app.process_update(library.Update.de_json(given, app.bot))

        await heard(update(1, "hello", PRIVATE))
        await heard(update(1, "hello", PRIVATE))  # told twice
        answer = await asyncio.wait_for(sent.get(), WAIT)
        assert (answer["chat_id"], answer["text"]) == (42, "hello")

        await heard(update(2, "I am a bot", GROUP, is_bot=True))
        await heard(update(3, "in a topic", GROUP, message_thread_id=5, is_topic_message=True))
        answer = await asyncio.wait_for(sent.get(), WAIT)
        assert (answer["chat_id"], answer["message_thread_id"], answer["text"]) == (-100123, 5, "in a topic")

        await heard({"update_id": 4, "edited_message": update(1, "edited", PRIVATE)["message"]})
        await heard(update(5, "/send off", PRIVATE, person=7))
        assert (await asyncio.wait_for(sent.get(), WAIT))[
            "text"
        ] == "/send off"  # not the owner: said like all else
        await heard(update(6, "/send off", PRIVATE, person=names["OWNER"]))
        assert "off" in (await asyncio.wait_for(sent.get(), WAIT))["text"]
        await asyncio.to_thread(system.close)

    assert sent.empty()


async def test_telegram_has_its_sessions_and_receipts(host: Callable[[str], dict[str, Any]]) -> None:
    library = pytest.importorskip("telegram")
    names = host("Telegram")
    system: SessionSystem = names["system"]
    sent: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    async with telegram(names, sent) as app:
        for given in (update(1, "hello", PRIVATE), update(2, "lab", GROUP)):
            await app.process_update(library.Update.de_json(given, app.bot))
            await asyncio.wait_for(sent.get(), WAIT)
        await asyncio.to_thread(done, system, 2)

    assert sessions(system) == ["agent:main:telegram:group:-100123", "main"]
    assert done(system, 1) == ['{"messageId":900}']


def done(system: SessionSystem, number: int) -> list[str]:
    """Wait for deliveries that are done; return their receipts."""
    receipts: list[str] = []
    for recorded in system.follow(0, timeout=WAIT):
        if isinstance(recorded.event, DeliveryDone):
            receipts.append(recorded.event.receipt or "")
            if len(receipts) == number:
                break
    return receipts


# --- Discord


async def test_discord(host: Callable[[str], dict[str, Any]]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pytest.importorskip("discord")
    names = host("Discord")
    system: SessionSystem = names["system"]
    client = names["client"]
    sent: asyncio.Queue[tuple[str, dict[str, Any]]] = asyncio.Queue()

    async def service(route: Any, **given: Any) -> Any:
        assert (route.method, route.path) == ("POST", "/channels/{channel_id}/messages")
        sent.put_nowait((route.url.rpartition("/channels/")[2].partition("/")[0], given["json"]))
        return message(900, str(given["json"]["content"]), person=1, bot=True)

    async with client:
        client.http.request = service
        client._connection.application_id = 1
        client._connection.parse_ready(READY)
        client._connection.parse_guild_create(GUILD)
        await client.setup_hook()

        def heard(given: dict[str, Any]) -> None:
            client._connection.parse_message_create(given)

        heard(message(11, "hello"))
        heard(message(11, "hello"))  # told twice
        where, answer = await asyncio.wait_for(sent.get(), WAIT)
        assert (where, answer["content"], answer["allowed_mentions"]) == ("42", "hello", {"parse": []})

        heard(message(12, "I am a bot", bot=True))
        heard(message(13, "in a room", channel_id="300", guild_id="200"))
        where, answer = await asyncio.wait_for(sent.get(), WAIT)
        assert (where, answer["content"]) == ("300", "in a room")
        heard(message(14, "in a thread", channel_id="301", guild_id="200"))
        where, answer = await asyncio.wait_for(sent.get(), WAIT)
        assert (where, answer["content"]) == ("301", "in a thread")
        heard(message(15, "/send off", person=names["OWNER"]))
        assert "off" in (await asyncio.wait_for(sent.get(), WAIT))[1]["content"]

        receipts = await asyncio.to_thread(done, system, 4)
        assert receipts == ['{"messageId":"900"}'] * 4
        found = await asyncio.to_thread(sessions, system)
        await asyncio.to_thread(system.close)

    assert sent.empty()
    assert found == ["agent:main:discord:channel:300", "agent:main:discord:channel:300:thread:301", "main"]


READY: Any = {
    "user": {"id": "1", "username": "bot", "discriminator": "0000", "avatar": None},
    "application": {"id": "1", "flags": 0},
    "guilds": [{"id": "200", "unavailable": True}],
    "session_id": "s",
    "resume_gateway_url": "wss://gateway.example",
}
GUILD: Any = {
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


def message(number: int, text: str, **more: Any) -> dict[str, Any]:
    author = {
        "id": str(more.pop("person", 7)),
        "username": "ann",
        "discriminator": "0000",
        "avatar": None,
        "bot": more.pop("bot", False),
    }
    return {
        "id": str(number),
        "channel_id": "42",
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
        **more,
    }


# --- Slack


async def test_slack(host: Callable[[str], dict[str, Any]]) -> None:
    pytest.importorskip("slack_bolt")
    pytest.importorskip("aiohttp")
    from slack_bolt.async_app import AsyncBoltRequest  # noqa: PLC0415 - only where it is installed

    def service(_: Asked) -> Answer:
        given: Any = {
            "ok": True,
            "ts": "900.1",
            "team_id": "T1",
            "user_id": "U1",
            "bot_id": "B1",
            "bot_user_id": "U1",
        }
        return Answer(200, json.dumps(given).encode(), (("Content-Type", "application/json"),))

    def posted() -> list[dict[str, Any]]:
        return [json.loads(asked.body) for asked in server.asked if asked.path == "/chat.postMessage"]

    with Loopback(service) as server:
        names = host("Slack")
        system: SessionSystem = names["system"]
        app = names["app"]
        app.client.base_url = f"http://127.0.0.1:{server.port}/"
        async with system:
            system.register_channel("slack", names["Channel"](deliver=names["deliver"], max_chars=4000))

            async def heard(event: dict[str, Any]) -> None:
                body = {"type": "event_callback", "team_id": "T1", "event": {"type": "message", **event}}
                taken = await app.async_dispatch(AsyncBoltRequest(body=body, mode="socket_mode"))
                assert taken.status in {200, 404}  # 404: of no interest

            direct = {"channel": "D1", "channel_type": "im", "user": "U7", "text": "a &lt; b", "ts": "1.0"}
            room = {"channel": "C1", "channel_type": "channel", "user": "U7"}
            await heard(direct)
            await heard(direct)  # told twice
            await heard({**room, "text": "I am a bot", "ts": "2.0", "bot_id": "B2"})
            await heard({**room, "text": "my own", "ts": "3.0", "user": "U1", "bot_id": "B1"})
            await heard({**room, "subtype": "message_changed", "ts": "4.0"})
            await heard({**room, "text": "in a thread", "ts": "5.0", "thread_ts": "4.5"})
            await asyncio.to_thread(done, system, 2)
            await heard({**direct, "text": "/send off", "ts": "6.0", "user": names["OWNER"]})
            receipts = await asyncio.to_thread(done, system, 3)
            found = await asyncio.to_thread(sessions, system)
            said = await asyncio.to_thread(users, system, "main")

    assert receipts == ['{"ts":"900.1"}'] * 3
    answers = [(answer["channel"], answer.get("thread_ts"), answer["text"]) for answer in posted()]
    assert sorted(answers[:2]) == [("C1", "4.5", "in a thread"), ("D1", None, "a &lt; b")]
    assert "off" in answers[2][2]
    assert said[0] == "a < b"
    assert found == ["agent:main:slack:channel:C1:thread:4.5", "main"]
