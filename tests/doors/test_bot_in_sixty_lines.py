"""The bot of the documentation in sixty lines runs as it stands there, on a Telegram and a model of a test, and is killed."""

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final

import pytest

from intersession_events.facts import RunCompleted, ToolCallHeld
from intersession_events.stores.opened import open_log
from support.chats import FakeTelegram
from support.endpoint import Endpoint, Said, an_endpoint, calling
from support.paths import DOCS, ROOT

PAGE: Final = DOCS / "howto" / "a-bot.md"
CODE: Final = re.findall(
    r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
)
PICTURE: Final = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360f8cfc0f01f00050001ff"
    "a7d2d4930000000049454e44ae426082"
)
RUN: Final = """
import functools, sys, telegram
telegram.Bot = functools.partial(
    telegram.Bot, base_url=f"http://127.0.0.1:{sys.argv[1]}/bot", base_file_url=f"http://127.0.0.1:{sys.argv[1]}/file/bot"
)
exec(compile(open(sys.argv[2]).read(), "bot.py", "exec"), {"__name__": "__main__"})
"""


@contextlib.contextmanager
def a_bot(folder: Path, service: FakeTelegram, endpoint: Endpoint) -> Generator[None]:
    """Run the bot in a process of its own, which is killed at the end."""
    (folder / "bot.py").write_text(CODE[0])
    variables = {
        "TELEGRAM_TOKEN": "1:token",
        "OWNER": "7",
        "OPENAI_API_KEY": "none",
        "OPENAI_BASE_URL": endpoint.url,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")]),
    }
    bot = subprocess.Popen(
        [sys.executable, "-c", RUN, str(service.port), "bot.py"], cwd=folder, env={**os.environ, **variables}
    )
    try:
        yield
    finally:
        bot.kill()
        bot.wait()


def said(service: FakeTelegram, part: str) -> str:
    """Wait until the bot has said a text with this in it, and return the text."""
    service.until(lambda: any(part in text for _, text in service.shown))
    return next(text for _, text in service.shown if part in text)


def answer(request: Said) -> Said:
    last: Any = request["messages"][-1]
    # Behind what an attempt before had done stands a line of the system's, which says so.
    paid = next((one for one in request["messages"][-2:] if one["role"] == "tool"), None)
    if paid is not None:
        return {"content": f"Done: {paid['content']}"}
    if "image_url" in str(last):
        return {"content": "I see a square."}
    if "refund order 7" in str(last):
        return calling("refund", {"order": 7, "euros": 20.0})
    return {"content": "Good morning, what can I do for you today, on this fine day of the month?"}


def test_it_has_at_most_sixty_lines() -> None:
    (code,) = CODE
    assert len(code.splitlines()) <= 60


@pytest.mark.ci
@pytest.mark.sqlite("it runs as the page has it, on a file")
@pytest.mark.clause("CTX-5", "FILE-1", "STREAM-5", "ASK-3", "ASK-4", "TOOL-1")
def test_it_sees_pictures_shows_its_answer_as_it_grows_and_asks_before_it_pays_also_after_a_kill(
    tmp_path: Path,
) -> None:
    pytest.importorskip("telegram")
    with FakeTelegram() as service, an_endpoint() as endpoint:
        endpoint.say = answer
        with a_bot(tmp_path, service, endpoint):
            service.say("Hello")
            said(service, "Good morning")
            service.contents["p.png"] = PICTURE
            service.say(None, caption="What is it?", photo=[photo("p.png")])
            said(service, "I see a square.")
            service.say("Please refund order 7, 20 euros.")
            asked = said(service, "/approve")
        with a_bot(tmp_path, service, endpoint):
            service.say(f"/approve {re.findall('/approve ([^ ]+)', asked)[0]}")
            assert said(service, "20.00 euros are on their way for order 7.").startswith("Done: ")

    with open_log(f"sqlite:///{tmp_path}/bot.db", read_only=True) as log:
        held = [one.event for one in log.all() if isinstance(one.event, ToolCallHeld)]
        ended = [one.event for one in log.all() if isinstance(one.event, RunCompleted)]
    assert len(held) == 1
    assert len(ended) == 3
    paid = [one for one in endpoint.taken if "20.00 euros are on their way" in str(one["messages"][-2:])]
    assert len(paid) == 1


def photo(name: str) -> dict[str, Any]:
    return {"file_id": name, "file_unique_id": name, "width": 1, "height": 1}
