"""The bot hosts do all that a bot does, are killed at any moment, and started again: nothing is lost, nothing shown twice unsaid.

Pictures in and out, streamed answers, a tool call that is approved, and a schedule, on services that limit their callers and
are away for a while. What happened is read from what people saw, and from the log.
"""

import random
import re
import subprocess
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from intersession_actors.outside.channels.caller import CUT_OFF
from intersession_events import facts
from intersession_events.stores.opened import open_log
from support.chats import FakeDiscord, FakeSlack, FakeTelegram
from support.chats.hosts import HOSTS, started
from support.chats.served import Served, Trouble
from support.chats.shop import CHATS, END, PNG, a_model, paid
from support.chats.telegram import GROUP, PRIVATE
from support.endpoint import Endpoint, an_endpoint
from support.history.check import broken
from support.history.evidence import Evidence
from support.running import WAIT

OWNER: Final = {"Telegram": 4711, "Discord": 4711, "Slack": "U4711"}
FAKES: Final[dict[str, type[Served]]] = {
    "Telegram": FakeTelegram, "Discord": FakeDiscord, "Slack": FakeSlack,
}  # fmt: skip
LIBRARIES: Final = {"Telegram": "telegram", "Discord": "discord", "Slack": "slack_sdk"}
LIMITS: Final = {
    "Telegram": Trouble(
        429,
        None,
        {},
        {
            "ok": False,
            "error_code": 429,
            "description": "Too Many Requests: retry after 1",
            "parameters": {"retry_after": 1},
        },
    ),
    "Discord": Trouble(
        429,
        None,
        {"Retry-After": "1", "Via": "1.1 edge"},
        {"message": "You are being rate limited.", "retry_after": 0.5, "global": False},
    ),
    "Slack": Trouble(429, None, {"Retry-After": "1"}, {"ok": False, "error": "ratelimited"}),
}
_LOOKS_S: Final = 0.1


class Said(NamedTuple):
    """What a person said: its name, the chat, and what it asks for."""

    name: str
    chat: str
    kind: str


class Talk:
    """What people say to a host, each thing with the next name; they approve what they are asked to."""

    def __init__(self, title: str, service: Served) -> None:
        self.title = title
        self.service: Any = service
        self.said: list[Said] = []
        self._approved: set[str] = set()

    def say(self, kind: str, room: int = 0) -> str:
        one = Said(f"q{len(self.said) + 1}", CHATS[self.title][room], kind)
        self.said.append(one)
        self._put(f"{one.name} {kind} please", room, picture=one.name if kind == "look" else None)
        return one.name

    def approve(self, held: Iterable[str] = ()) -> None:
        asked = [name for _, text in self.service.shown for name in re.findall(r"/approve (\S+)", text)]
        for name in {*asked, *held} - self._approved:
            self._approved.add(name)
            self._put(f"/approve {name}", 0)

    def _put(self, text: str, room: int, picture: str | None = None) -> None:
        service: Any = self.service
        name = f"{picture}-in.png"
        file = None if picture is None else service.has(name, PNG + picture.encode())
        match self.title:
            case "Telegram":
                size = {"width": 1, "height": 1}
                chat, person = (GROUP, 7) if room else (PRIVATE, OWNER[self.title])
                if file is None:
                    service.say(text, chat, person=person)
                else:
                    service.say(None, chat, person=person, caption=text, photo=[file | size])
            case "Discord":
                person = 7 if room else OWNER[self.title]
                more = dict[str, Any]() if file is None else {"attachments": [file]}
                service.say(text, CHATS[self.title][room], person=person, **more)
            case _:
                user = "U7" if room else OWNER[self.title]
                told = dict[str, Any]() if file is None else {"files": [file], "subtype": "file_share"}
                service.say(text, CHATS[self.title][room], user=user, **told)


class Host:
    """A host that is killed, and started again whenever it has ended."""

    def __init__(self, title: str, service: Served, folder: Path, endpoint: Endpoint) -> None:
        self._start = partial(started, title, service, folder, shop=endpoint.url)
        self._process: subprocess.Popen[bytes] | None = None

    def runs(self) -> None:
        """Have it run; by itself it ends where its service is away at its start."""
        if self._process is None or self._process.poll() is not None:
            self._process = self._start()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@contextmanager
def at_work(title: str, folder: Path) -> Generator[tuple[Host, Talk, Served]]:
    """Have a host, its service, and a model that takes its time."""
    with FAKES[title]() as service, an_endpoint() as endpoint:
        endpoint.say = a_model()
        pace = threading.Event()

        def between() -> None:
            service.moment()
            pace.wait(0.005)

        endpoint.between = between
        service.limit = (23, LIMITS[title])
        host = Host(title, service, folder, endpoint)
        try:
            yield host, Talk(title, service), service
        finally:
            host.kill()


class Story:
    """What the log says."""

    def __init__(self, folder: Path) -> None:
        with open_log(f"sqlite:///{folder}/bot.db", read_only=True) as log:
            self.items = list(log.all())
        self.events = [item.event for item in self.items]

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def open_deliveries(self) -> set[str]:
        """The deliveries that are neither done nor given up."""
        ends = (
            facts.DeliveryDone,
            facts.DeliveryUnknown,
            facts.DeliveryDenied,
            facts.DeliveryWithheld,
        )
        ended = {one.delivery_id for kind in ends for one in self.of(kind)}
        return {one.delivery_id for one in self.of(facts.DeliveryDecided)} - ended

    @property
    def open_runs(self) -> set[str]:
        """The runs of people's messages that have not ended."""
        ended = {one.run_id for kind in (facts.RunCompleted, facts.RunFailed) for one in self.of(kind)}
        people = [one.run_id for one in self.of(facts.RunQueued) if name_of(one)]
        return {*people} - ended

    @property
    def in_doubt(self) -> set[str]:
        """The texts of which the log says that nobody knows whether they were shown."""
        decided = {one.delivery_id: str(one.text) for one in self.of(facts.DeliveryDecided)}
        return {decided[one.delivery_id] for one in self.of(facts.DeliveryUnknown)}


def name_of(queued: facts.RunQueued) -> str | None:
    """Return the name of the message that a run answers."""
    found = re.match(r"q\d+", "" if queued.message is None else facts.text_of(queued.message))
    return None if found is None else found[0]


def settled(talk: Talk, folder: Path) -> Story | None:
    """Return the story once everything that was said is answered and has left; None before."""
    story = Story(folder)
    held = [one.hold_id for one in story.of(facts.ToolCallHeld)]
    talk.approve(held)
    heard = {name_of(one) for one in story.of(facts.RunQueued)}
    # The schedule goes on, so its latest text may be on its way.
    done = heard >= {one.name for one in talk.said} and not story.open_runs
    decided = {one.delivery_id: one for one in story.of(facts.DeliveryDecided)}
    of_people = [one for one in story.open_deliveries if "Tick" not in str(decided[one].text)]
    return story if done and not of_people else None


def played(title: str, folder: Path, seed: int, kills: int) -> tuple[Talk, Served, Story]:
    """Play a talk with a host that is killed so many times; return what came of it."""
    rng = random.Random(seed)  # noqa: S311 - the same moments each time
    with at_work(title, folder) as (host, talk, service):
        host.runs()
        if not isinstance(service, FakeTelegram):
            service.until(lambda: service.sockets)  # type: ignore[attr-defined]
        for room in (0, 1):  # what was said before the log began is nobody's
            name = talk.say("talk", room)
            service.until(lambda name=name: any(whole(name, text) for _, text in service.shown))  # type: ignore[misc]
        for number in range(kills):
            host.runs()
            for kind in ("look", "draw", "refund", "talk") if number % 2 else ("talk", "look"):
                talk.say(kind, 0 if kind == "refund" else rng.randrange(2))
            talk.approve()
            if number % 3 == 1:
                service.away(502, times=12)
            mark = service.moments + rng.randrange(1, 120)
            while service.moments < mark:
                host.runs()
                with service.changed:
                    service.changed.wait(_LOOKS_S)
            host.kill()
        service.back()
        host.runs()
        deadline, story = time.monotonic() + 3 * WAIT, None
        while story is None:
            assert time.monotonic() < deadline, (talk.said, service.shown[-20:])
            threading.Event().wait(_LOOKS_S)
            host.runs()
            if isinstance(service, FakeSlack):
                service.send_again()
            story = settled(talk, folder)
        host.kill()
        return talk, service, Story(folder)


def whole(name: str, text: str) -> bool:
    """Whether a text that people see has all of an answer."""
    return f"Re {name}:" in text and END in text


@pytest.mark.nightly
@pytest.mark.timeout(600)
@pytest.mark.sqlite("the hosts of the page are on a file")
@pytest.mark.clause("INB-1", "D1", "ANN-3", "FILE-2", "FILE-6", "STREAM-5", "ASK-3", "TOOL-4", "CRON-2")
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("title", HOSTS)
def test_a_whole_bot_that_is_killed_again_and_again_loses_nothing(
    title: str, seed: int, tmp_path: Path
) -> None:
    pytest.importorskip(LIBRARIES[title])
    check(*played(title, tmp_path, seed, kills=10), tmp_path)


@pytest.mark.ci
@pytest.mark.sqlite("the hosts of the page are on a file")
@pytest.mark.clause("INB-1", "D1", "ANN-3", "FILE-2", "FILE-6", "STREAM-5", "ASK-3", "TOOL-4", "CRON-2")
@pytest.mark.parametrize("title", ["Telegram", "Discord"])
def test_a_whole_bot_comes_through_a_kill(title: str, tmp_path: Path) -> None:
    pytest.importorskip(LIBRARIES[title])
    check(*played(title, tmp_path, 3, kills=2), tmp_path)


def check(talk: Talk, service: Served, story: Story, folder: Path) -> None:
    """Say what has to be true at the end of a talk."""
    doubted = " ".join(story.in_doubt)
    heard = Counter(name_of(one) for one in story.of(facts.RunQueued) if name_of(one))
    assert heard == Counter(one.name for one in talk.said), "each message is one run"
    assert story.of(facts.RunFailed) == []

    order: dict[str, list[int]] = defaultdict(list)
    for one in talk.said:
        seen = [text for chat, text in service.shown if chat == one.chat and whole(one.name, text)]
        anew = [text for text in seen if CUT_OFF in text]
        is_doubted = f"Re {one.name}:" in doubted
        assert seen or is_doubted, f"{one} has no answer"
        assert len(seen) - len(anew) <= 1, f"{one} is answered twice, and nothing says so: {seen}"
        if one.kind == "look":
            assert is_doubted or all(f"I see {one.name}," in text for text in seen), seen
        if one.kind == "draw":
            sent = [text for _, text in service.shown if f"{one.name}.png" in text]
            assert len(sent) == 1 or (not sent and is_doubted), f"the picture of {one}: {sent}"
            assert all(repr(PNG + one.name.encode()) in text for text in sent)
    for chat, text in service.shown:
        named = re.search(r"Re q(\d+):", text)
        if named is not None and END in text:
            order[chat].append(int(named[1]))
    for chat, numbers in order.items():
        assert numbers == sorted(numbers), f"out of order in {chat}"

    assert paid(folder) == sorted(one.name for one in talk.said if one.kind == "refund")

    fired = [one.due_ms for one in story.of(facts.ScheduleFired)]
    assert len(fired) == len({*fired}) > 0
    ticks = Counter(re.findall(r"Tick \d+", " ".join(text for _, text in service.shown)))
    assert all(times == 1 for times in ticks.values()), ticks
    assert broken(Evidence(events=story.items, attempts=101)) == []
