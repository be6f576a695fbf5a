"""Who saw some words of an import: its answers whose input held them, as their lenses have it, and its lines that are no message."""

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest

from intersession import open_log
from intersession_actors.hindsight.debugger.debugger import Debugger
from intersession_actors.hindsight.debugger.opened import OpenLog
from intersession_actors.hindsight.debugger.view import View
from intersession_events import facts
from intersession_events.stores import opened
from intersession_events.transcripts.foreign.importing import read_framework
from intersession_events.transcripts.openclaw.importing import import_state
from intersession_events.transcripts.openclaw.reading.files import read_state
from intersession_projections.views.inline_views import inline_views
from support.any_log import Logs
from support.doors.command_line import ran
from support.foreign.recording import recorded
from support.openclaw.samples import HOUSEHOLD, header, message, said, write_state

MAIN: Final = "agent:main:archived-s-1"
_LINES: Final = [
    header(),
    message("m1", said("the harbour code is nine"), 1),
    message("m2", said("noted, harbour", "assistant"), 2),
    {"type": "compaction", "id": "c1", "summary": "They spoke of basalt.", "firstKeptEntryId": "m3"},
    message("m3", said("and now?"), 3),
    {"type": "compaction", "id": "c2", "summary": "They spoke of basalt.", "firstKeptEntryId": "m3"},
    {"type": "custom", "id": "x1", "data": {"note": "a cobalt heron"}},
    message("m4", said("four", "assistant"), 5),
]
_MADE: Final[dict[str, Callable[[Path], Any]]] = {
    "household": lambda _: read_state(HOUSEHOLD),
    "langgraph": lambda folder: read_framework("langgraph", str(recorded("langgraph", folder))),
    "openai-agents": lambda folder: read_framework("openai-agents", str(recorded("agents-plain", folder))),
    "compacted": lambda folder: read_state(write_state(folder / "state", _LINES)),
}


def imported(name: str, logs: Logs, folder: Path) -> str:
    url = logs.at(folder)
    with opened.open_log(url, inline=inline_views()) as log:
        import_state(_MADE[name](folder), log, clock=lambda: 1_795_300_000_000)
    return url


@pytest.fixture(scope="module")
def url(logs: Logs, tmp_path_factory: pytest.TempPathFactory) -> str:
    return imported("compacted", logs, tmp_path_factory.mktemp("compacted"))


@pytest.fixture
def compacted(url: str) -> Iterator[OpenLog]:
    with open_log(url) as log:
        yield log


def seen(debug: Debugger, words: str) -> list[Any]:
    found: list[Any] = []
    page: Any = {"cursor": None}
    while not found or page["cursor"] is not None:
        page = debug.origin(words, seen=True, limit=3, cursor=page["cursor"])
        found += page["seen"]
        if not page["seen"]:
            break
    return found


@pytest.mark.clause("ANS-3", "LENS-3")
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.ci if name == "household" else ()) for name in _MADE],
)
def test_the_imported_answers_that_saw_words_are_those_whose_lens_has_them(
    name: str, logs: Logs, tmp_path: Path
) -> None:
    with open_log(imported(name, logs, tmp_path)) as log:
        said_there = [
            (f"#{one.position}", one.event.message)
            for one in log.debug.view.log.all()
            if isinstance(one.event, facts.MessageRecorded) and facts.is_imported(one.event)
        ]
        texts = [facts.text_of(message) for _, message in said_there]
        phrases = {" ".join(two) for text in texts for two in pairwise(re.findall(r"\w+", text)[:6])}
        lens = log.debug.lens
        given = {
            place: " ".join(lens(place, dialect="prompt", all=True).get("prompt", "").split()).casefold()
            for place, message in said_there
            if message.role == "assistant" and lens(place)["message"] is not None
        }
        found = 0
        for phrase in sorted(phrases)[:: max(1, len(phrases) // 12)]:
            if log.debug.origin(phrase)["match"] not in {"exact", "folded"}:
                continue
            rows = seen(log.debug, phrase)
            assert {one["runId"] for one in rows} == {
                one for one, prompt in given.items() if phrase.casefold() in prompt
            }, phrase
            assert [one["position"] for one in rows] == sorted(
                (one["position"] for one in rows), reverse=True
            )
            assert all(one["imported"] and one["runId"] == f"#{one['position']}" for one in rows)
            found += len(rows)
    assert found


@pytest.mark.clause("ANS-3", "LENS-3")
def test_an_answer_behind_a_summary_was_given_the_summary_and_not_what_it_stands_for(
    compacted: OpenLog,
) -> None:
    harbour, basalt = (seen(compacted.debug, words) for words in ("the harbour code", "spoke of basalt"))

    assert [(one["within"], one["sessionKey"]) for one in harbour] == [(["message"], MAIN)]
    assert [one["within"] for one in basalt] == [["summary"]]
    assert harbour[0]["position"] < basalt[0]["position"]


@pytest.mark.clause("ANS-3")
def test_words_that_stand_in_no_message_of_an_import_do_not_read_as_seen_by_nobody(
    url: str, compacted: OpenLog
) -> None:
    found = compacted.debug.origin("a Cobalt heron", seen=True)
    (session,) = found["sessions"]

    assert (found["first"], found["seen"]) == (None, [])
    assert (session["sessionKey"], session["ways"], session["imported"]) == (MAIN, ["line"], True)
    shown = ran("origin", "a cobalt heron", "--seen", "--store", url)
    assert "archived-s-1: by a line of its import that is no message" in shown.out
    assert "imported: what agents there were given besides messages is not known" in shown.out
    assert (
        ran("origin", "spoke of basalt", "--seen", "--store", url).out.count("an imported answer: summary")
        == 1
    )


@pytest.mark.clause("ANS-3", "FIND-1")
def test_a_limited_caller_is_shown_no_line_that_is_no_part_of_a_transcript(compacted: OpenLog) -> None:
    reader = compacted.debug.view.reader
    main = Debugger(View(reader, reader.requester(MAIN), within=lambda key: key == MAIN))

    assert main.origin("a cobalt heron", seen=True)["sessions"] == []
    assert [one["within"] for one in seen(main, "spoke of basalt")] == [["summary"]]
