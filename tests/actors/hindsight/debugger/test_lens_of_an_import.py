"""What an agent of another system had been told: its lens, as far as the import's record has it (LENS-3)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from intersession import SessionSystem, ToolRefused, open_log
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
from support.foreign.recording import recorded
from support.openclaw.samples import HOUSEHOLD, header, message, said, write_state
from support.running import SEES_ALL, merged

HOME, DESK = "agent:home:main", "agent:desk:main"


def imported(state: Any, url: str) -> OpenLog:
    with opened.open_log(url, inline=inline_views()) as log:
        import_state(state, log, clock=lambda: 1_795_300_000_000)
    return open_log(url)


@pytest.fixture(scope="module")
def household(logs: Logs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenLog]:
    with imported(read_state(HOUSEHOLD), logs.at(tmp_path_factory.mktemp("household"))) as log:
        yield log


def given(lens: Any) -> list[str]:
    """Return the ids of all messages that a lens has, in their order."""
    return [one["id"] for one in (*lens["messages"], *filter(None, [lens["message"]]), *lens["partial"])]


def texts(lens: Any) -> list[str]:
    found = [lens["message"], *lens["partial"]]
    return [one["content"] if isinstance(one["content"], str) else "call" for one in found]


@pytest.mark.clause("LENS-3")
def test_of_each_imported_answer_the_lens_is_what_its_session_had_been_told(household: OpenLog) -> None:
    """The law: an answer's input is all of its generation before it, and of another message also that one."""
    before: dict[str, list[str]] = {}
    looked_at = 0
    for one in household.debug.view.log.all():
        if not isinstance(one.event, facts.MessageRecorded):
            continue
        known = before.setdefault(one.event.session_id, [])
        is_answer = one.event.message.role == "assistant"
        wanted = [*known] if is_answer else [*known, one.event.message.id]
        known.append(one.event.message.id)
        lens = household.debug.lens(f"#{one.position}", all=True)
        looked_at += 1
        assert given(lens) == wanted, one.position
        assert (lens["run"], lens["asRecorded"], lens["contextHash"]) == (f"#{one.position}", False, None)
        assert lens["imported"]
        assert "not byte for byte" in lens["problem"]
    assert looked_at > 90


@pytest.mark.clause("LENS-3")
def test_a_turn_of_an_imported_exchange_is_named_as_any_other(household: OpenLog) -> None:
    lens = household.debug.lens
    exchange = next(
        one.event.exchange_id
        for one in household.debug.view.log.all()
        if isinstance(one.event, facts.ExchangeAccepted)
    )
    first, turn, last = (lens(f"{exchange[:8]}@{at}") for at in ("reply", "turn:2", "announce"))

    assert first == lens(exchange) == lens(first["run"]) == lens(f"#{first['place']['position'] + 1}")
    assert [one["sessionKey"] for one in (first, turn, last)] == [DESK, DESK, DESK]
    assert "Why A?" in str(turn["message"])
    assert [one["id"] for one in turn["messages"]][:1] == [first["message"]["id"]]
    assert given(lens(turn["run"], than=first["run"]))[:1] == [first["message"]["id"]]
    assert [one["id"] for one in lens(turn["run"], than=first["run"])["fresh"]] == given(turn)[1:]
    assert "Why A?" in lens(turn["run"], dialect="prompt")["prompt"]
    assert "Why A?" in str(lens(turn["run"], dialect="anthropic")["rendered"])
    page = lens(last["run"], limit=2)
    assert (page["total"], page["before"]) == (len(last["messages"]), len(last["messages"]) - 2)


@pytest.mark.clause("LENS-3")
@pytest.mark.parametrize(
    ("typed", "more", "why"),
    [
        ("#1", {}, "#1 is no event of a run, and no imported message"),
        ("#99999", {}, "99999 is beyond the log's end"),
        ("#11", {"attempt": 2}, "has attempt 1 alone"),
        ("nobody", {}, "no exchange, spawn or run is called"),
        ("2026-03-02T09:01:00Z", {}, "no exchange, spawn or run is called"),
    ],
)
def test_what_is_no_message_and_no_run_is_refused(
    household: OpenLog, typed: str, more: dict[str, Any], why: str
) -> None:
    with pytest.raises(ToolRefused, match=why):
        household.debug.lens(typed, **more)


@pytest.mark.clause("LENS-3", "VIS-1")
def test_a_message_of_another_session_is_as_if_it_were_not_there(household: OpenLog) -> None:
    reader = household.debug.view.reader
    desk = Debugger(View(reader, reader.requester(DESK), within=lambda key: key == DESK))
    own = next(one for one in reader.log.stream(f"session:{DESK}") if facts.is_imported(one.event))
    others = next(one for one in reader.log.stream(f"session:{HOME}") if facts.is_imported(one.event))

    assert desk.lens(f"#{own.position}")["sessionKey"] == DESK
    with pytest.raises(ToolRefused, match=f"#{others.position} is no event of a run"):
        desk.lens(f"#{others.position}")


@pytest.mark.clause("LENS-3", "IN-2")
def test_a_graphs_lens_has_what_its_state_had_at_that_step(logs: Logs, tmp_path: Path) -> None:
    """A message that an update took out of the state is not in it; a subgraph has what its thread gave it."""
    state = read_framework("langgraph", str(recorded("langgraph", tmp_path)))
    with imported(state, logs.at(tmp_path)) as log:
        answers = [
            one
            for one in log.debug.view.log.all()
            if isinstance(one.event, facts.MessageRecorded) and one.event.message.role == "assistant"
        ]
        lenses = [log.debug.lens(f"#{one.position}") for one in answers]

    assert [texts(lens) for lens in lenses] == [
        ["weather in Rome?"],
        ["weather in Paris?"],
        ["weather in Paris?", "call", "rain in Rome"],
        ["weather in Paris?", "call", "rain in Rome", "It is rain in Rome"],
        ["weather in Paris?", "call", "rain in Rome", "It is rain in Rome"],
    ]
    assert all(lens["messages"] == [] for lens in lenses)
    assert "3 messages that its thread gave it stand in a branch that was given up" in lenses[0]["problem"]
    assert "given up" not in lenses[3]["problem"]
    assert [lens["model"] for lens in lenses] == [None, None, "m1", None, None]


@pytest.mark.clause("LENS-3", "IN-3")
def test_an_answer_of_an_agents_session_has_its_model_and_its_tools_results(
    logs: Logs, tmp_path: Path
) -> None:
    state = read_framework("openai-agents", str(recorded("agents-plain", tmp_path)))
    with imported(state, logs.at(tmp_path)) as log:
        last = max(one.position for one in log.debug.view.log.all() if facts.is_imported(one.event))
        lens = log.debug.lens(f"#{last}", dialect="openai")
        prompt = log.debug.lens(f"#{last}", dialect="prompt")["prompt"]

    assert texts(lens)[1:] == ["call", "rain in Rome"]
    asked, call, result = lens["rendered"][-3:]
    assert (asked["role"], call["role"], result["role"]) == ("user", "assistant", "tool")
    assert result["tool_call_id"] == call["tool_calls"][0]["id"]
    assert "rain in Rome" in prompt


@pytest.mark.clause("LENS-3")
def test_behind_a_compaction_its_summary_stands_for_the_first_messages(logs: Logs, tmp_path: Path) -> None:
    lines = [
        header(),
        message("m1", said("one"), 1),
        message("m2", said("two", "assistant"), 2),
        message("m3", said("three"), 3),
        {"type": "compaction", "id": "c1", "summary": "one, two", "firstKeptEntryId": "m3"},
        message("m4", said("four", "assistant"), 5),
    ]
    with imported(read_state(write_state(tmp_path / "state", lines)), logs.at(tmp_path)) as log:
        places = {
            one.event.message.id: one.position
            for one in log.debug.view.log.all()
            if isinstance(one.event, facts.MessageRecorded)
        }
        before, behind = (log.debug.lens(f"#{places[name]}", dialect="openai") for name in ("m3", "m4"))

    assert "summary" not in before
    assert behind["summary"] == {"run": "c1", "messages": 2, "text": "one, two"}
    assert given(behind) == ["m1", "m2", "m3"]
    assert "one, two" in str(behind["rendered"])
    assert "'two'" not in str(behind["rendered"])


@pytest.mark.clause("LENS-1")
def test_a_run_is_named_by_any_event_of_it_too(log_url: str) -> None:
    with SessionSystem(log_url, agents={"main": lambda _: "fine"}, config=merged(SEES_ALL)) as system:
        run = system.inbound(channel="x", chat_id="1", text="hi", sender="ann", wait=20)["runId"]
        own = [one for one in system.log.all() if facts.run_named(one.event) == run]

        assert len(own) > 2
        assert all(system.debug.lens(f"#{one.position}")["run"] == run for one in own)
        assert system.debug.lens(f"event:{own[0].id}") == system.debug.lens(run)
