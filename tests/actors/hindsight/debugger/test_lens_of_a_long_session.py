"""A lens costs what it shows: of a long session the end of the prompt, and what stands before, page by page."""

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from intersession import Debugger, MemoryChannel, SessionSystem, ToolRefused, Turn, open_log
from intersession_events.facts import SessionOpened
from intersession_events.stores.sqlite.log import SqliteLog
from intersession_projections.views.inline_views import inline_views
from support.log_drafts import anywhere, draft, said

MAIN = "agent:main:main"
STREAM = f"session:{MAIN}"
EARLIER = 5_000
TURNS = 40
EVERY = 250
"""After so many events of a stream its state is kept (docs/explanation/design.md)."""

USUAL = 50


class LongSession:
    """A log with a session of thousands of messages, the runs of its last turns, and what their agents got."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.runs: list[str] = []
        self.got: dict[str, list[Any]] = {}
        self.rendered: dict[str, Any] = {}

    def __call__(self, turn: Turn) -> str:
        if len(self.runs) % 13 == 0:
            self.got[turn.run_id] = msgspec.json.decode(msgspec.json.encode(list(turn.transcript)))
            self.rendered[turn.run_id] = turn.messages("openai")
        return f"this is answer {len(self.runs)}"

    def play(self) -> None:
        opened = SessionOpened(key=MAIN, session_id="s", agent_id="main", opened_by="person")
        with SqliteLog(self.path, inline=inline_views()) as log:
            words = (said(f"m{number}", f"this was said before: {number}") for number in range(EARLIER))
            log.append_now((anywhere(STREAM, draft(opened, "o"), *words),))
        with SessionSystem(self.path, agents={"main": self}, channels={"x": MemoryChannel()}) as system:
            for number in range(TURNS):
                text = f"this is question {number}"
                asked = system.inbound(channel="x", chat_id="1", text=text, sender="ann", wait=20)
                self.runs.append(asked["runId"])


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> LongSession:
    made = LongSession(tmp_path_factory.mktemp("long") / "log.db")
    made.play()
    return made


@pytest.fixture(scope="module")
def debug(long: LongSession) -> Iterator[Debugger]:
    with open_log(long.path) as log:
        yield log.debug


def pages_of(debug: Debugger, run: str, limit: int, before: int | None = None) -> list[Any]:
    """Return all messages from a place on back to the first, a page at a time."""
    found: list[Any] = []
    while before is None or before > 0:
        page = debug.lens(run, limit=limit, before=before)
        assert page["asRecorded"]
        assert len(page["messages"]) <= limit
        found[:0] = page["messages"]
        before = page.get("before", 0)
    return found


@pytest.mark.clause("LENS-2")
def test_the_end_of_the_prompt_is_shown_and_how_much_stands_before(
    long: LongSession, debug: Debugger
) -> None:
    lens = debug.lens(long.runs[-1])

    assert lens["asRecorded"]
    assert lens["rebuiltHash"] == lens["contextHash"]
    assert lens["message"]["content"] == f"this is question {TURNS - 1}"
    assert lens["messages"] == long.got[long.runs[-1]][-USUAL:]
    assert (lens.get("total"), lens.get("before")) == (EARLIER + 2 * (TURNS - 1), EARLIER + 28)


@pytest.mark.clause("LENS-2", "PLACE-4")
@pytest.mark.parametrize("given", [{}, {"before": 1_500}, {"before": 20}, {"limit": 1}, {"attempt": 1}])
@pytest.mark.parametrize("number", [-1, 0])
def test_only_what_is_shown_is_read_and_told(
    long: LongSession, debug: Debugger, rows_read: Counter[str], given: Any, number: int
) -> None:
    """Before: all of the session, for any run of it: seconds, and megabytes."""
    lens = debug.lens(long.runs[number], **given)

    assert lens["asRecorded"]
    assert rows_read[STREAM] <= 3 * EVERY
    assert len(msgspec.json.encode(lens)) < 25_000


@pytest.mark.ci
@for_all(number=st.sampled_from([0, 13, 26, TURNS - 1]), limit=st.integers(100, 1_000))
@pytest.mark.clause("LENS-2")
def test_all_pages_together_are_the_whole_transcript(
    long: LongSession, debug: Debugger, number: int, limit: int
) -> None:
    run = long.runs[number]
    assert pages_of(debug, run, limit) == long.got[run]


@for_all(before=st.integers(1, EARLIER + 200), limit=st.integers(1, 1_000))
@pytest.mark.clause("LENS-2")
def test_a_page_is_what_stands_before_its_place(
    long: LongSession, debug: Debugger, before: int, limit: int
) -> None:
    whole = long.got[long.runs[-1]]
    page = debug.lens(long.runs[-1], before=before, limit=limit)

    assert page["messages"] == whole[:before][-limit:]
    assert page.get("before") == len(whole[:before]) - len(page["messages"])


@pytest.mark.clause("LENS-1", "LENS-2")
def test_all_of_it_is_there_for_who_asks_for_all(long: LongSession, debug: Debugger) -> None:
    run = long.runs[-1]
    lens = debug.lens(run, all=True, limit=1)

    assert lens["messages"] == long.got[run]
    assert not {"total", "before"} & lens.keys()


@pytest.mark.clause("LENS-1", "LENS-2")
def test_a_dialect_is_of_the_whole_prompt_whatever_page_is_shown(long: LongSession, debug: Debugger) -> None:
    for run, rendered in long.rendered.items():
        lens = debug.lens(run, dialect="openai", limit=2, before=9)
        assert lens.get("rendered") == rendered
        assert lens["messages"] == long.got[run][7:9]


@pytest.mark.clause("LENS-2", "CTX-2")
def test_what_its_model_was_not_shown_is_not_read_to_render_it(
    long: LongSession, debug: Debugger, rows_read: Counter[str]
) -> None:
    run = long.runs[-1]
    lens = debug.lens(run, dialect="openai")

    assert lens.get("rendered") == long.rendered[run]
    assert lens["leftOut"] is not None
    assert lens["leftOut"]["messages"] > 2 * EVERY
    assert rows_read[STREAM] < EARLIER + 4 * TURNS - lens["leftOut"]["messages"] + 3 * EVERY


@pytest.mark.clause("LENS-1", "LENS-2")
@pytest.mark.parametrize(("number", "other"), [(-1, -4), (-1, 0), (0, -1), (5, 5), (-1, -40)])
def test_of_what_is_shown_it_says_what_another_run_had_not_seen_and_reads_no_more(
    long: LongSession, debug: Debugger, rows_read: Counter[str], number: int, other: int
) -> None:
    run, than = long.runs[number], long.runs[other]
    whole = debug.lens(than, all=True)
    known = {one["id"] for one in (*whole["messages"], whole["message"])}
    rows_read.clear()

    lens = debug.lens(run, than=than)

    shown = [*lens["messages"], lens["message"]]
    assert lens.get("fresh") == [one for one in shown if one["id"] not in known]
    assert rows_read[STREAM] <= 6 * EVERY


@pytest.mark.clause("LENS-1", "LENS-2", "ERASE-1")
def test_what_was_erased_long_before_the_page_is_told(long: LongSession, tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    shutil.copy(long.path, path)
    with SessionSystem(path, agents={"main": lambda _: "fine"}) as system:
        system.erase(MAIN, message_ids=["m7"])

        lens = system.debug.lens(long.runs[-1])

        assert not lens["asRecorded"]
        assert "erased" in lens["problem"]
        assert lens["messages"] == long.got[long.runs[-1]][-USUAL:]


@pytest.mark.parametrize(
    ("given", "said_of_it"), [({"before": 0}, "before"), ({"limit": "many"}, "limit"), ({"all": 3}, "all")]
)
def test_what_is_no_page_is_refused(long: LongSession, debug: Debugger, given: Any, said_of_it: str) -> None:
    with pytest.raises(ToolRefused, match=said_of_it):
        debug.lens(long.runs[0], **given)
