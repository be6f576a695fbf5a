"""The bot hosts of the documentation run, with the libraries they are for and chat services that are not the real ones.

What a person writes goes in as the service tells it, and the answer comes out as the service takes it. What a service has
forgotten, since the host confirmed it, is in the log: also where the host is killed.
"""

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from intersession import File, Reply, SessionSystem, Turn
from intersession_events.facts import DeliveryDone, DeliveryFailed, message_in, text_of
from intersession_events.stores.opened import open_log
from support.chats import FakeDiscord, FakeSlack, FakeTelegram
from support.chats.hosts import HOSTS, TOKENS, connected, names_of, started
from support.chats.served import Served
from support.chats.telegram import GROUP
from support.running import WAIT, Gate, all_said, recorded

OWNER = {"Telegram": 4711, "Discord": 4711, "Slack": "U4711"}
FAKES: dict[str, type[Served]] = {"Telegram": FakeTelegram, "Discord": FakeDiscord, "Slack": FakeSlack}
SORRY = "I can't take that message."


def needs(title: str) -> None:
    """Skip where the library of a host is not installed."""
    for library in {"Telegram": ["telegram"], "Discord": ["discord"], "Slack": ["slack_sdk"]}[title]:
        pytest.importorskip(library)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], dict[str, Any]]]:
    """Run the code of a host as an import would, in a folder of its own; its system is closed in the end."""
    opened: list[dict[str, Any]] = []
    monkeypatch.chdir(tmp_path)
    for name in TOKENS:
        monkeypatch.setenv(name, "1:token")
    monkeypatch.setenv("PTB_TIMEDELTA", "true")  # else the library warns that it will do so one day

    def run(title: str) -> dict[str, Any]:
        needs(title)
        opened.append(names_of(title))
        return opened[-1]

    yield run
    for names in opened:
        names["system"].close(grace=0)


@contextlib.asynccontextmanager
async def at_work(title: str, names: dict[str, Any], service: Served) -> AsyncGenerator[SessionSystem]:
    """Have a host at work; when the block ends it is cut off in the middle, as by a crash of its process."""
    with connected(title, names, service.port) as host:
        working = asyncio.create_task(host)
        try:
            yield names["system"]
        finally:
            working.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await working


def said_in(system: SessionSystem) -> list[str]:
    """Return what people said, from the log."""
    return [text_of(event.message) for event in all_said(system) if event.message.role == "user"]


def sessions(system: SessionSystem) -> list[str]:
    return sorted(row["key"] for row in system.tools().call("sessions_list", {})["sessions"])


def receipts(system: SessionSystem) -> set[str | None]:
    return {event.receipt for event in recorded(system, DeliveryDone)}


async def until(service: Served, true: Callable[[], object]) -> None:
    await asyncio.to_thread(service.until, true)


@pytest.mark.parametrize("title", HOSTS)
def test_a_host_is_short(title: str) -> None:
    lines = [line for line in HOSTS[title].splitlines() if line.strip()]

    assert len(lines) <= 165
    assert max(map(len, lines)) <= 120


def test_there_are_three_hosts() -> None:
    assert [*HOSTS] == ["Telegram", "Discord", "Slack"]


# --- what each of them hears and says


async def test_telegram(run: Callable[[str], dict[str, Any]]) -> None:
    names = run("Telegram")
    with FakeTelegram() as service:
        number = service.say("hello")
        service.say("hello", number=number)  # told twice
        service.say("I am a bot", GROUP, is_bot=True)
        service.say("in a topic", GROUP, message_thread_id=5, is_topic_message=True)
        service.say("/send off")  # not the owner: said like all else
        async with at_work("Telegram", names, service) as system:
            await until(service, lambda: len(service.shown) == 3)
            service.say("/send off", person=OWNER["Telegram"])
            await until(service, lambda: len(service.shown) == 4)
            found = await asyncio.to_thread(sessions, system)
            taken = await asyncio.to_thread(receipts, system)

    assert sorted(service.shown[:3]) == [("-100123", "in a topic"), ("42", "/send off"), ("42", "hello")]
    assert "off" in service.shown[3][1]
    assert found == ["agent:main:telegram:group:-100123:thread:5", "main"]
    assert taken <= {f'{{"messageId":{number}}}' for number in range(900, 904)}


async def test_discord(run: Callable[[str], dict[str, Any]]) -> None:
    names = run("Discord")
    with FakeDiscord() as service:
        async with at_work("Discord", names, service) as system:
            await until(service, lambda: service.sockets)
            number = int(service.say("hello"))
            service.say("hello", number=number)  # told twice
            service.say("I am a bot", is_bot=True)
            service.say("in a room", "300")
            service.say("in a thread", "301")
            await until(service, lambda: len(service.shown) == 3)
            service.say("/send off", person=OWNER["Discord"])
            await until(service, lambda: len(service.shown) == 4)
            found = await asyncio.to_thread(sessions, system)

    assert sorted(service.shown[:3]) == [("300", "in a room"), ("301", "in a thread"), ("42", "hello")]
    assert "off" in service.shown[3][1]
    assert found == ["agent:main:discord:channel:300", "agent:main:discord:channel:300:thread:301", "main"]


async def test_slack(run: Callable[[str], dict[str, Any]]) -> None:
    names = run("Slack")
    with FakeSlack() as service:
        async with at_work("Slack", names, service) as system:
            await until(service, lambda: service.sockets)
            ts = service.say("a &lt; b")
            service.say("a &lt; b", ts=ts)  # told twice
            service.say("I am a bot", "C1", bot_id="B2")
            service.say("changed", "C1", subtype="message_changed")
            service.say("in a thread", "C1", thread_ts="4.5")
            await until(service, lambda: len(service.shown) == 2)
            service.say("/send off", user=OWNER["Slack"])
            await until(service, lambda: len(service.shown) == 3 and not service.envelopes)
            found = await asyncio.to_thread(sessions, system)
            said = await asyncio.to_thread(said_in, system)

    assert sorted(service.shown[:2]) == [("C1", "in a thread"), ("D1", "a &lt; b")]
    assert "off" in service.shown[2][1]
    assert "a < b" in said
    assert found == ["agent:main:slack:channel:C1:thread:4.5", "main"]


# --- what is confirmed is in the log


@pytest.mark.ci
@pytest.mark.clause("INB-1")
async def test_telegram_is_told_to_forget_a_message_when_it_is_in_the_log(
    run: Callable[[str], dict[str, Any]],
) -> None:
    names = run("Telegram")
    early: list[str] = []
    with FakeTelegram() as service:

        def forgotten(texts: list[str]) -> None:
            said = {*said_in(names["system"])}  # once: each look reads the whole log
            early.extend(text for text in texts if text not in said)

        service.on_confirmed = forgotten
        for number in range(150):
            service.say(f"text {number}")
        async with at_work("Telegram", names, service):
            await until(service, lambda: len(service.confirmed) == 150)

    assert early == []


@pytest.mark.clause("INB-1")
async def test_slack_has_an_event_acknowledged_when_it_is_in_the_log(
    run: Callable[[str], dict[str, Any]],
) -> None:
    names = run("Slack")
    early: list[str] = []
    with FakeSlack() as service:

        def acknowledged(text: str) -> None:
            early.extend([] if text in said_in(names["system"]) else [text])

        service.on_acknowledged = acknowledged
        for number in range(30):
            service.say(f"text {number}")
        async with at_work("Slack", names, service) as system:
            await until(service, lambda: len(service.acknowledged) == 30)
            said = said_in(system)

    assert early == []
    assert sorted(said) == sorted(f"text {number}" for number in range(30))


def flooded(names: dict[str, Any]) -> Gate:
    """Give a host a system whose session has room for one message: the next is refused as busy until the gate is open."""
    names["system"].close(grace=0)
    gate = Gate()
    settings = {"runs": {"inboxMax": 1, "shutdownGraceSeconds": 0}}
    names["system"] = SessionSystem("sqlite:///bot.db", agents={"main": gate.saying("ok")}, config=settings)
    return gate


@pytest.mark.ci
@pytest.mark.clause("INB-1")
@pytest.mark.parametrize("title", HOSTS)
async def test_what_is_refused_for_now_is_taken_later_in_order_and_nobody_is_told(
    run: Callable[[str], dict[str, Any]], title: str
) -> None:
    names = run(title)
    gate = flooded(names)
    texts = [f"text {number}" for number in range(6)]
    with FAKES[title]() as service:
        async with at_work(title, names, service) as system:
            if not isinstance(service, FakeTelegram):
                await until(service, lambda: service.sockets)  # type: ignore[attr-defined]
            for text in texts:
                service.say(text)  # type: ignore[attr-defined]
            await asyncio.to_thread(gate.reached)
            taken_first = said_in(system)
            gate.open()
            await until(service, lambda: len(service.shown) == len(texts))
            said = said_in(system)

    assert len(taken_first) < len(texts)
    assert said == texts
    assert {text for _, text in service.shown} == {"ok"}


@pytest.mark.clause("INB-1")
@pytest.mark.parametrize("title", HOSTS)
async def test_what_is_refused_for_good_is_said_once_and_holds_up_nothing(
    run: Callable[[str], dict[str, Any]], title: str
) -> None:
    names = run(title)
    with FAKES[title]() as service:
        async with at_work(title, names, service) as system:
            if not isinstance(service, FakeTelegram):
                await until(service, lambda: service.sockets)  # type: ignore[attr-defined]
            service.say("   ")  # type: ignore[attr-defined]
            service.say("hello")  # type: ignore[attr-defined]
            await until(service, lambda: len(service.shown) == 2)
            said = said_in(system)

    assert said == ["hello"]
    assert sorted(text for _, text in service.shown) == [SORRY, "hello"]


# --- a service that is away, and one that asks for a pause


@pytest.mark.ci
@pytest.mark.clause("ANN-3", "ANN-5")
@pytest.mark.parametrize(
    ("title", "trouble"),
    [
        ("Telegram", {"status": 502}),
        (
            "Telegram",
            {
                "status": 429,
                "body": {
                    "ok": False,
                    "error_code": 429,
                    "description": "Too Many Requests: retry after 1",
                    "parameters": {"retry_after": 1},
                },
            },
        ),
        (
            "Slack",
            {"status": 429, "headers": {"Retry-After": "1"}, "body": {"ok": False, "error": "ratelimited"}},
        ),
    ],
)
async def test_answers_to_a_service_that_is_away_arrive_later_once_and_in_order(
    run: Callable[[str], dict[str, Any]], title: str, trouble: dict[str, Any]
) -> None:
    names = run(title)
    texts = [f"text {number}" for number in range(4)]
    with FAKES[title]() as service:
        async with at_work(title, names, service) as system:
            if isinstance(service, FakeSlack):
                await until(service, lambda: service.sockets)
            service.say("first")  # type: ignore[attr-defined]
            await until(service, lambda: service.shown)
            chat = dict(system_chat(title))
            service.away(**trouble)
            for text in texts:
                answer = await system.ainbound(**chat, text=text, wait=WAIT)
                assert answer["status"] == "ok"
            await asyncio.to_thread(wait_for_failure, system)
            service.back()
            await until(service, lambda: len(service.shown) == 5)
            failed = recorded(system, DeliveryFailed)

    assert [text for _, text in service.shown] == ["first", *texts]
    assert len({event.delivery_id for event in failed}) == 1
    if trouble["status"] == 429:
        assert {event.later_ms for event in failed} == {1_000}


def system_chat(title: str) -> dict[str, Any]:
    if title == "Slack":
        return {"channel": "slack", "account": "T1", "chat_id": "D1", "sender": "U7"}
    return {"channel": "telegram", "account": "the_bot", "chat_id": "42", "sender": "7"}


@pytest.mark.clause("STREAM-5")
@pytest.mark.parametrize("title", HOSTS)
async def test_an_answer_grows_and_a_service_that_asks_for_a_pause_has_all_of_it_in_the_end(
    run: Callable[[str], dict[str, Any]], title: str
) -> None:
    names = run(title)
    trouble: dict[str, Any] = {
        "Telegram": {
            "status": 429,
            "times": 1,
            "body": {
                "ok": False,
                "error_code": 429,
                "description": "Too Many",
                "parameters": {"retry_after": 1},
            },
        },
        "Discord": {"status": 429, "times": 1, "headers": {"Retry-After": "1"}, "body": {"retry_after": 1.0}},
        "Slack": {
            "status": 429,
            "times": 1,
            "headers": {"Retry-After": "1"},
            "body": {"ok": False, "error": "ratelimited"},
        },
    }
    with FAKES[title]() as service:
        said = asyncio.Event()

        async def growing(turn: Turn) -> AsyncIterator[str]:
            del turn
            yield "Good "
            await said.wait()
            yield "morning & night."

        async with at_work(title, names, service) as system:
            system.register_agent("main", growing)
            if isinstance(service, FakeDiscord | FakeSlack):
                await until(service, lambda: service.sockets)
            service.say("hello")  # type: ignore[attr-defined]
            await until(service, lambda: service.shown and service.shown[0][1] == "Good ")
            service.away(**trouble[title])
            said.set()
            amp = "&amp;" if title == "Slack" else "&"
            await until(service, lambda: service.shown[0][1] == f"Good morning {amp} night.")

    assert len(service.shown) == 1
    assert service.refused_calls == 1


def wait_for_failure(system: SessionSystem) -> None:
    for item in system.follow(0, timeout=WAIT):
        if isinstance(item.event, DeliveryFailed):
            return
    raise AssertionError("nothing failed")


# --- connections and processes that end


@pytest.mark.clause("INB-1")
@pytest.mark.parametrize("resumes", [True, pytest.param(False, marks=pytest.mark.ci)])
async def test_discord_misses_nothing_when_its_connection_ends(
    run: Callable[[str], dict[str, Any]], *, resumes: bool
) -> None:
    names = run("Discord")
    with FakeDiscord() as service:
        service.resumes = resumes
        async with at_work("Discord", names, service) as system:
            await until(service, lambda: service.sockets)
            service.say("before")
            await until(service, lambda: len(service.shown) == 1)
            service.cut()
            service.say("meanwhile", "300")
            service.say("meanwhile, too")
            service.let_in()
            await until(service, lambda: len(service.shown) == 3)
            service.say("after")
            await until(service, lambda: len(service.shown) == 4)
            said = said_in(system)

    assert sorted(said) == ["after", "before", "meanwhile", "meanwhile, too"]
    assert (service.resumed > 0) is resumes


@pytest.mark.clause("INB-1")
@pytest.mark.parametrize("title", ["Discord", "Slack"])
async def test_what_was_said_while_no_host_was_there_is_read_at_the_next_start(
    run: Callable[[str], dict[str, Any]], title: str
) -> None:
    first = run(title)
    room = {"Discord": "300", "Slack": "C1"}[title]
    with FAKES[title]() as service:
        assert isinstance(service, FakeDiscord | FakeSlack)
        service.say("long before the bot was there", room, **({} if title == "Discord" else {"told": False}))
        async with at_work(title, first, service):
            await until(service, lambda: service.sockets)
            service.say("hello")
            await until(service, lambda: len(service.shown) == 1)
        first["system"].close(grace=0)
        told: dict[str, Any] = {} if title == "Discord" else {"told": False}
        service.say("in a room", room, **told)
        service.say("   ", room, **told)
        service.say("to the bot alone", **told)
        second = run(title)
        async with at_work(title, second, service) as system:
            await until(service, lambda: len(service.shown) >= 3)
            service.say("back", room)
            await until(service, lambda: ("back") in [text for _, text in service.shown])
            said = said_in(system)

    assert sorted(said).count("hello") == 1
    assert {"in a room", "to the bot alone", "back"} <= {*said}
    assert len(said) == len({*said})
    assert SORRY not in [text for _, text in service.shown]


async def test_what_stands_beside_a_picture_is_heard_in_telegram(
    run: Callable[[str], dict[str, Any]],
) -> None:
    names = run("Telegram")
    with FakeTelegram() as service:
        service.say(None, caption="what does this bill say?")
        service.say(None)  # a picture alone
        async with at_work("Telegram", names, service):
            await until(service, lambda: service.shown)

    assert service.shown == [("42", "what does this bill say?")]


PNG = b"\x89PNG\r\n\x1a\n picture"


def drawing(turn: Turn) -> Reply:
    (file,) = turn.files
    return Reply(f"{file.mime_type} {turn.message}", files=(File(data=file.read()[::-1], name="back.bin"),))


def said_by(service: Served) -> str:
    return " ".join(text for _, text in service.shown)


@pytest.mark.clause("FILE-2", "FILE-6")
@pytest.mark.parametrize("title", HOSTS)
async def test_a_picture_goes_in_and_a_file_comes_out(
    run: Callable[[str], dict[str, Any]], title: str
) -> None:
    names = run(title)
    names["system"].register_agent("main", drawing)
    with FAKES[title]() as service:
        async with at_work(title, names, service):
            if isinstance(service, FakeTelegram):
                size = {"width": 1, "height": 1}
                service.say(None, photo=[service.has("small", b"x") | size, service.has("big", PNG) | size])
                service.say(None, caption="and", document=service.has("a.bin", PNG) | {"file_name": "a.png"})
            elif isinstance(service, FakeDiscord):
                await until(service, lambda: service.sockets)
                service.say("and", attachments=[service.has("a.png", PNG)])
            elif isinstance(service, FakeSlack):
                await until(service, lambda: service.sockets)
                service.say("and", subtype="file_share", files=[service.has("a.png", PNG)])
            wanted = ("image/png and", repr(PNG[::-1]))
            await until(service, lambda: all(one in said_by(service) for one in wanted))


@pytest.mark.clause("ANN-3")
async def test_what_goes_to_a_group_that_telegram_has_moved_arrives_there(
    run: Callable[[str], dict[str, Any]],
) -> None:
    names = run("Telegram")
    with FakeTelegram() as service:
        service.moved["-5"] = -1005
        async with at_work("Telegram", names, service):
            service.say("hello", {"id": -5, "type": "group", "title": "Lab"})
            await until(service, lambda: service.shown)

    assert service.shown == [("-1005", "hello")]


@pytest.mark.clause("INB-1")
@pytest.mark.parametrize("error", ["missing_scope", "channel_not_found"])
async def test_slack_is_not_deaf_because_one_conversation_can_not_be_read(
    run: Callable[[str], dict[str, Any]], error: str
) -> None:
    first = run("Slack")
    with FakeSlack() as service:
        async with at_work("Slack", first, service):
            await until(service, lambda: service.sockets)
            service.say("hello")
            await until(service, lambda: service.shown)
        first["system"].close(grace=0)
        service.say("missed", "C1", told=False)
        service.refused["D1"] = error
        async with at_work("Slack", run("Slack"), service):
            await until(service, lambda: ("C1", "missed") in service.shown)
            service.say("are you there?")
            await until(service, lambda: ("D1", "are you there?") in service.shown)


@pytest.mark.clause("INB-1")
async def test_slack_tells_of_a_missing_scope_at_its_first_start(
    run: Callable[[str], dict[str, Any]],
) -> None:
    names = run("Slack")
    with FakeSlack() as service:
        service.refused["users.conversations"] = "missing_scope"
        with connected("Slack", names, service.port) as host, pytest.raises(Exception, match="missing_scope"):
            await asyncio.wait_for(host, WAIT)


@pytest.mark.parametrize("kind", ["file_share", "me_message", "thread_broadcast"])
async def test_slack_hears_what_people_say_in_other_kinds_of_messages(
    run: Callable[[str], dict[str, Any]], kind: str
) -> None:
    names = run("Slack")
    with FakeSlack() as service:
        async with at_work("Slack", names, service):
            await until(service, lambda: service.sockets)
            service.say("what does this bill say?", subtype=kind)
            await until(service, lambda: service.shown)

    assert service.shown == [("D1", "what does this bill say?")]


@pytest.mark.clause("INB-1")
@pytest.mark.parametrize("title", [pytest.param("Discord", marks=pytest.mark.ci), "Slack"])
async def test_what_was_said_before_the_bot_came_stays_unanswered_when_a_connection_ends(
    run: Callable[[str], dict[str, Any]], title: str
) -> None:
    names = run(title)
    before = time.time() - 1_800
    with FAKES[title]() as service:
        assert isinstance(service, FakeDiscord | FakeSlack)
        if isinstance(service, FakeSlack):
            room, told = "C1", {"told": False}
            service.say("half an hour ago", room, told=False, ts=f"{before:.6f}")
        else:
            room, told = "300", {}
            service.resumes = False
            service.say("half an hour ago", room, number=discord_id(before))
        async with at_work(title, names, service) as system:
            await until(service, lambda: service.sockets)
            service.say("hello", room)
            await until(service, lambda: len(service.shown) == 1)
            service.cut(**({"let_in": False} if title == "Slack" else {}))
            async with asyncio.timeout(WAIT):
                while caught_up(names).is_set():  # noqa: ASYNC110 - nobody is told that it is cleared
                    await asyncio.sleep(0)
            service.say("meanwhile", room, **told)
            service.let_go()
            await until(service, lambda: (room, "meanwhile") in service.shown)
            said = said_in(system)

    assert said == ["hello", "meanwhile"]


@pytest.mark.ci
@pytest.mark.clause("INB-1")
async def test_discord_reads_again_when_a_connection_ends_while_it_reads(
    run: Callable[[str], dict[str, Any]],
) -> None:
    first = run("Discord")
    with FakeDiscord() as service:
        service.resumes = False
        async with at_work("Discord", first, service):
            await until(service, lambda: service.sockets)
            service.say("hello")
            await until(service, lambda: service.shown)
        first["system"].close(grace=0)
        service.read.clear()
        goes_on = threading.Event()

        def held_up(place: str) -> None:
            if place == "301":
                goes_on.wait(WAIT)

        service.before_read = held_up
        names = run("Discord")
        async with at_work("Discord", names, service):
            await until(service, lambda: "300" in service.read)  # and 301 is read now
            service.cut()
            service.say("behind what was read", "300")
            goes_on.set()
            await until(service, lambda: "42" in service.read)  # the last place
            service.let_in()
            await until(service, lambda: ("300", "behind what was read") in service.shown)


@pytest.mark.clause("INB-1")
async def test_discord_is_not_deaf_because_somebody_is_gone_and_a_read_is_cut_off(
    run: Callable[[str], dict[str, Any]],
) -> None:
    first = run("Discord")
    with FakeDiscord() as service:
        async with at_work("Discord", first, service):
            await until(service, lambda: service.sockets)
            service.say("hello", person=7)
            await until(service, lambda: service.shown)
        first["system"].close(grace=0)
        service.gone.add("7")
        cut = [ConnectionResetError()]

        def cut_once(_: str) -> None:
            if cut:
                raise cut.pop()

        service.before_read = cut_once
        async with at_work("Discord", run("Discord"), service):
            await until(service, lambda: service.identified == 2)
            service.say("are you there?", "300")
            await until(service, lambda: ("300", "are you there?") in service.shown)

    assert cut == []


def caught_up(names: dict[str, Any]) -> asyncio.Event:
    """Return what a host sets when nothing is missed any more."""
    event: asyncio.Event = names["client"].caught_up if "client" in names else names["caught_up"]
    return event


def discord_id(seconds: float) -> int:
    """Return an id of a message that was written at a time."""
    return (int(seconds * 1000) - 1_420_070_400_000) << 22


@contextlib.contextmanager
def killed_again_and_again(
    title: str, service: Served, folder: Path, progress: Callable[[], int], marks: list[int]
) -> Generator[None]:
    """Start a host and kill it (SIGKILL) when so much is confirmed, for each mark; then start it for good."""
    for mark in marks:
        process = started(title, service, folder)
        try:
            service.until(lambda mark=mark: progress() >= mark)  # type: ignore[misc]
        finally:
            process.kill()
            process.wait()
    process = started(title, service, folder)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def said_in_log(folder: Path) -> list[str]:
    """Return what people said, from the log that a killed host has left."""
    log = open_log(f"sqlite:///{folder}/bot.db", read_only=True)
    try:
        return [
            text_of(message)
            for item in log.all()
            if (message := message_in(item.event)) is not None and message.role == "user"
        ]
    finally:
        log.close()


@pytest.mark.ci
@pytest.mark.clause("INB-1", "D1")
@pytest.mark.parametrize("title", ["Telegram", "Slack"])
def test_a_host_that_is_killed_under_a_burst_loses_nothing_that_it_had_confirmed(
    title: str, tmp_path: Path
) -> None:
    needs(title)
    texts = [f"text {number}" for number in range(200)]
    with FAKES[title]() as service:
        assert isinstance(service, FakeTelegram | FakeSlack)

        def confirmed() -> list[str]:
            return service.confirmed if isinstance(service, FakeTelegram) else service.acknowledged

        for text in texts:
            service.say(text)
        lost: list[str] = []
        marks = [1, 60, 120] if title == "Telegram" else [1, 40, 90]
        with killed_again_and_again(title, service, tmp_path, lambda: len({*confirmed()}), marks):
            service.until(lambda: {*confirmed()} >= {*texts})
        said = said_in_log(tmp_path)
        lost = [text for text in confirmed() if text not in said]

    assert lost == []
    assert sorted(said) == sorted(texts)


@pytest.mark.ci
@pytest.mark.clause("INB-1", "D1")
def test_a_discord_host_that_is_killed_under_a_burst_reads_what_it_missed(tmp_path: Path) -> None:
    needs("Discord")
    with FakeDiscord() as service:
        for round_ in range(3):
            process = started("Discord", service, tmp_path)
            try:
                service.until(lambda: service.sockets)
                shown = len(service.shown)
                for number in range(40):
                    service.say(f"text {round_}.{number}", "300" if number % 2 else "42")
                service.until(lambda shown=shown: len(service.shown) > shown)  # type: ignore[misc]
            finally:
                process.kill()
                process.wait()
            service.sockets.clear()
        process = started("Discord", service, tmp_path)
        try:
            deadline = time.monotonic() + 3 * WAIT
            while len(said_in_log(tmp_path)) < 120 and time.monotonic() < deadline:
                service.until(lambda: True)
        finally:
            process.kill()
            process.wait()
        said = said_in_log(tmp_path)

    assert sorted(said) == sorted(f"text {round_}.{number}" for round_ in range(3) for number in range(40))
