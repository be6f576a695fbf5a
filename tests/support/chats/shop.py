"""A shop behind a bot host of the documentation: an agent that streams, sees pictures, draws, and pays money back.

Each message of a person has a name (`q7`), and its answer begins with it. `hosts.py` runs the shop in a process; the model is
on an endpoint of the test, and what it paid is in files of the working directory.
"""

import base64
import itertools
import os
import re
from collections.abc import Callable
from contextlib import suppress
from functools import partial, wraps
from pathlib import Path
from typing import Any, Final

import intersession
from intersession import Channel, File, Reply, SessionSystem, Turn, openai_agent
from support.endpoint import Said, calling

ENDPOINT: Final = "SHOP_ENDPOINT"
CHATS: Final = {"Telegram": ("42", "-100123"), "Discord": ("42", "300"), "Slack": ("D1", "C1")}
"""The chat of the owner, and a room."""
PNG: Final = b"\x89PNG\r\n\x1a\n picture "
END: Final = "and that is all there is to say of it today."


def config(title: str) -> dict[str, Any]:
    """Return the configuration: a tool that is held, and a job each three seconds that tells the room."""
    tick = {
        "schedule": {"kind": "cron", "expr": "*/3 * * * * *"},
        "payload": {"message": "What time is it?"},
        "delivery": {"channel": title.lower(), "to": CHATS[title][1]},
    }
    return {
        "tools": {"ask": ["refund"]},
        "runs": {"retryInterrupted": 100},
        "cron": {"jobs": {"tick": tick}},
    }


def refund(turn: Turn, order: str) -> str:
    """Pay money back for an order, once for each call."""
    with suppress(FileExistsError):
        os.close(os.open(f"paid-{order}-{abs(hash_of(turn.call_id))}", os.O_CREAT | os.O_EXCL))
    return f"{order} is paid back,"


def hash_of(name: str | None) -> int:
    """Return a number for an id, the same in each process."""
    return int.from_bytes((name or "").encode()) % 1_000_000_007


def paid(folder: Path) -> list[str]:
    """Return the orders that were paid back, one for each payment."""
    return sorted(path.name.split("-")[1] for path in folder.glob("paid-*"))


def an_agent() -> Any:
    """Return the shop's agent: a model on an endpoint, whose answer to `draw` has a picture."""
    model: Any = openai_agent(
        model="served",
        base_url=os.environ[ENDPOINT],
        api_key="none",
        stream=True,
        images=True,
        context_tokens=1_000_000,
        tools=[refund],
    )

    @wraps(model)  # it says what the model takes
    async def shop(turn: Turn) -> object:
        answer = await model(turn)
        drawn = re.search(r"(q\d+) draw", turn.message) if turn.step == "message" else None
        if drawn is None:
            return answer
        assert isinstance(answer, Reply)
        return Reply(answer.text, files=(File(data=PNG + drawn[1].encode(), name=f"{drawn[1]}.png"),))

    return shop


def serve(title: str) -> None:
    """Have the host's code, which is yet to run, serve the shop in place of its echo; what grows is shown at once."""

    def system(store: str, **_: Any) -> SessionSystem:
        return SessionSystem(store, agents={"main": an_agent()}, config=config(title))

    def channel(**given: Any) -> Channel:
        return Channel(**{**given, "edit_every": 0.02})

    setattr(intersession, "SessionSystem", system)  # noqa: B010 - the name of a class, for a function
    setattr(intersession, "Channel", channel)  # noqa: B010 - the same


def a_model() -> Callable[[Said], Said]:
    """Return what the shop's model says to a request."""
    return partial(_said, itertools.count(1))


def _said(ticks: "itertools.count[int]", request: Said) -> Said:
    messages: list[Any] = request["messages"]
    asked = next(one for one in reversed(messages) if one["role"] == "user" and _is_said(_words(one)))
    words = _words(asked)
    name = re.findall(r"\bq\d+\b", words)
    if not name:
        return {"content": f"Tick {next(ticks)}: {END}"}
    # Behind what an attempt before had done stands a line of the system's, which says so.
    done = next((one for one in messages[-2:] if one["role"] == "tool"), None)
    if done is not None:
        return {"content": f"Re {name[-1]}: {done['content']} {END}"}
    if "refund" in words:
        return calling("refund", {"order": name[-1]}, f"call-{name[-1]}")
    seen = [
        base64.b64decode(part["image_url"]["url"].partition(",")[2])[len(PNG) :].decode()
        for part in (asked["content"] if isinstance(asked["content"], list) else ())
        if part["type"] == "image_url"
    ]
    return {"content": f"Re {name[-1]}: {'I see ' + ' '.join(seen) + ', ' if seen else ''}{END}"}


def _words(message: Any) -> str:
    """Return the text of a message that may have pictures."""
    content: Any = message["content"]
    return content if isinstance(content, str) else " ".join(part.get("text", "") for part in content)


def _is_said(message: str) -> bool:
    return re.search(r"\bq\d+\b|What time is it", message) is not None
