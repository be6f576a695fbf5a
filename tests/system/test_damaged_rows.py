"""A damaged row closes what needs it, at every door with the same typed answer, and nothing beside it (finding B5)."""

import asyncio
import json
import logging
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

import pytest

from intersession import CorruptEvent, Failure, MemoryChannel, SessionSystem
from intersession_actors.hindsight.forking.carrying import carry_on
from intersession_events.stores.sqlite.log import SqliteLog
from intersession_projections.views.inline_views import inline_views
from intersession_projections.views.sessions.history import History
from intersession_projections.views.sessions.list import Sessions
from support.any_log import changed_behind
from support.doors.gateway_live import GATEWAY, LiveGateway
from support.doors.mcp_clients import connected, text_of
from support.hosts_code import parrot
from support.running import SEES_ALL, WAIT, merged

MAIN = "agent:main:main"
OTHER = "agent:main:telegram:group:2"
CONFIG = merged(SEES_ALL, GATEWAY)
DAMAGES: Final = {
    "no envelope": "UPDATE stored_events SET state=x'00' WHERE rowid=?",
    "no text": "UPDATE stored_events SET state=CAST(x'04ff01' AS TEXT) WHERE rowid=?",
    "an unknown topic": "UPDATE stored_events SET topic='nothing.known' WHERE rowid=?",
    "elsewhere": "UPDATE stored_events SET originator_version=originator_version+1000 WHERE rowid=?",
}


def said(system: SessionSystem, text: str) -> Any:
    return system.inbound(channel="telegram", chat_id="1", sender="p", text=text, wait=WAIT)


def said_elsewhere(system: SessionSystem, text: str) -> Any:
    return system.inbound(
        channel="telegram", chat_id="2", chat_type="group", sender="p", text=text, wait=WAIT
    )


def damage(path: Path, statement: str, *, message: int) -> None:
    """Damage the message of a number (from 0) in the main session's stream."""
    with closing(sqlite3.connect(path)) as connection, connection:
        rows = connection.execute(
            "SELECT rowid FROM stored_events WHERE originator_id=? AND topic IN ('run_queued.1', 'run_completed.1') ORDER BY rowid",
            (f"session:{MAIN}",),
        ).fetchall()
        connection.execute(statement, rows[message])


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A log of two sessions with four messages and answers each."""
    path = tmp_path / "log.db"
    with SessionSystem(path, agents={"main": parrot}, config=CONFIG) as system:
        for number in range(4):
            said(system, f"hi {number}")
            said_elsewhere(system, f"yo {number}")
    return path


@pytest.mark.clause("D7")
@pytest.mark.parametrize("damaged", DAMAGES)
def test_what_needs_a_damaged_row_is_refused_as_unreadable_and_all_else_goes_on(
    written: Path, damaged: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Before: it came out of tools and methods as an exception, and closed the list of all sessions."""
    damage(written, DAMAGES[damaged], message=3)
    caplog.set_level(logging.ERROR, logger="intersession.store")
    heard: list[Failure] = []
    with SessionSystem(written, agents={"main": parrot}, config=CONFIG, on_failure=heard.append) as system:
        tools, asked = system.tools(), {"sessionKey": MAIN}
        history = tools.call("sessions_history", asked)
        behind = tools.call("sessions_history", asked | {"limit": 4})
        listed = tools.call("sessions_list", {"messageLimit": 20})
        previews = system.gateway.call("sessions.preview", {"keys": [MAIN, OTHER]})["previews"]
        with LiveGateway(system) as live:
            over_http = live.invoke("sessions_history", asked).json()["result"]["details"]
            with live.client() as client:
                over_wire = client.request("chat.history", asked)
        refused: list[Any] = [
            asyncio.run(tools.acall("sessions_history", asked)),
            asyncio.run(over_mcp(system)),
            over_http,
            system.gateway.call("chat.history", asked),
            system.gateway.call("debug.smells"),
            *(said(system, "again") for _ in range(5)),
        ]
        elsewhere = said_elsewhere(system, "and you?")

    assert history["code"] == "unreadable"
    assert "the 4 messages that come behind it can be read, with limit 4" in history["error"]
    assert "`intersession verify`" in history["error"]
    assert [message["content"] for message in behind["messages"] if message["role"] == "user"] == [
        "hi 2",
        "hi 3",
    ]
    rows: dict[str, Any] = {row["key"]: row for row in listed["sessions"]}
    assert (rows["main"]["messages"], rows["main"]["messagesError"]["code"]) == ([], "unreadable")
    assert len(rows[OTHER]["messages"]) == 8
    assert [preview["status"] for preview in previews] == ["error", "ok"]
    assert over_wire["error"]["details"]["code"] == "unreadable"
    assert {answer["code"] for answer in refused} == {"unreadable"}
    assert elsewhere["status"] == "ok"
    assert [failure.kind for failure in heard].count("row_unreadable") == 1


async def over_mcp(system: SessionSystem) -> Any:
    async with connected(system, None) as client:
        return json.loads(text_of(await client.call_tool("sessions_history", {"sessionKey": MAIN})))


@pytest.mark.clause("D7")
@pytest.mark.parametrize(
    "condition", ["originator_version=3", "originator_version=9", "originator_version>=13"]
)
def test_a_message_that_is_missing_is_missed_by_whatever_page_would_have_it(
    written: Path, condition: str
) -> None:
    """Before: between two pages, and behind the last row, no neighbour told of it: the rest was shown as if it were all."""
    changed_behind(written, f"DELETE FROM stored_events WHERE originator_id='session:{MAIN}' AND {condition}")  # noqa: S608 - ours

    with SqliteLog(written, inline=inline_views()) as log:
        session = Sessions(log).get(MAIN)
        assert session is not None
        shown: list[int] = []
        for limit in range(1, 9):
            with suppress(CorruptEvent):
                page = History(log).messages(MAIN, session.session_id, limit=limit, include_tools=False)
                shown.append(len(page.messages))

    assert shown == list(range(1, len(shown) + 1)), "each page is whole or refused"
    assert len(shown) < 8


@pytest.mark.clause("D7", "FORK-8")
def test_what_a_damaged_session_has_to_deliver_is_not_waited_for(written: Path) -> None:
    """Before: a fork of it was waited for, as its texts had still to go out, and nobody could say whether they may."""
    damage(written, DAMAGES["no envelope"], message=3)
    channels = {"telegram": MemoryChannel()}
    with SessionSystem(written, agents={"main": parrot}, channels=channels, config=CONFIG) as system:
        while "degraded" not in said(system, "again")["error"]:
            pass
        carried = carry_on(system.service, "no run", timeout=WAIT / 4)

    assert (carried.state, carried.set_aside) == ("waits", (MAIN,))


def test_a_row_that_is_no_text_does_not_keep_the_writer_from_the_log(written: Path) -> None:
    """Before: one such row among the last 512 of all made the whole log unavailable."""
    with closing(sqlite3.connect(written)) as connection, connection:
        of_main = (f"session:{MAIN}",)
        (last,) = connection.execute(
            "SELECT MAX(rowid) FROM stored_events WHERE originator_id=?", of_main
        ).fetchone()
        connection.execute(DAMAGES["no text"], (last,))

    with SessionSystem(written, agents={"main": parrot}, config=CONFIG) as system:
        here, elsewhere = said(system, "hi"), said_elsewhere(system, "hi")

    assert (here["code"], elsewhere["status"]) == ("unreadable", "ok")
