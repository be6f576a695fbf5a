"""The commands that read: the same answers as the tools, at any place in the log, for anybody who may ask."""

import gc
import itertools
import re
from pathlib import Path
from typing import Any

import pytest

from intersession_events.facts import Provenance, RunQueued, SessionArchived, SessionReset, TextBlock
from intersession_events.stores.folding.fold import Fold
from intersession_events.stores.opened import open_log
from intersession_events.stores.portable.inline_views import InlineViews
from intersession_events.stores.sqlite.log import SqliteLog
from intersession_projections.views.inline_views import inline_views
from support.doors.command_line import DemoLog, ran, words
from support.log_drafts import anywhere, said
from support.story import MAIN, PERSON, Story

OPS = "agent:ops:main"


@pytest.fixture
def story_log(tmp_path: Path) -> Path:
    """Return a log with three sessions, one of them a child of another."""
    path = tmp_path / "story.db"
    story = Story(path)
    story.open(MAIN, label="front")
    story.say(MAIN, "hello there", provenance=PERSON)
    story.say(MAIN, (TextBlock(text="hello yourself"),), role="assistant")
    story.open("agent:main:subagent:00000000-0000-4000-8000-00000000000a", spawned_by=MAIN, opened_by="spawn")
    story.open(OPS)
    story.say(OPS, "the token is sk-abcdefghijklmnopqrstuvwxyz0123456789", provenance=PERSON)
    story.say(OPS, "x" * 5_000, role="assistant")
    story.close()
    return path


def rows_of(*tokens: object) -> list[str]:
    return [row["key"] for row in ran("sessions", *tokens, "--json").json["sessions"]]


def test_sessions_lists_what_there_is_the_most_active_first(story_log: Path) -> None:
    done = ran("sessions", "--store", story_log)

    assert done.exit_code == 0
    header, first, *_, last = words(done.out)
    assert header.split() == ["key", "kind", "channel", "updated", "(UTC)", "state", "about"]
    assert first.startswith("agent:ops:main")
    assert last == "3 sessions as of position 7"


def test_the_filters_of_sessions_are_those_of_the_tool(story_log: Path) -> None:
    child = "agent:main:subagent:00000000-0000-4000-8000-00000000000a"

    assert rows_of("--kind", "other", "--store", story_log) == [child]
    assert rows_of("--kind", "other", "--kind", "main", "--store", story_log) == [OPS, child, "main"]
    assert rows_of("--limit", "1", "--store", story_log) == [OPS]
    assert rows_of("--search", "OPS", "--store", story_log) == [OPS]
    assert rows_of("--label", "front", "--store", story_log) == ["main"]
    assert rows_of("--agent", "main", "--store", story_log) == [child, "main"]
    assert rows_of("--active-minutes", "1", "--as-of", "7", "--store", story_log) == [OPS, child, "main"]


@pytest.mark.clause("LIST-8")
def test_as_of_shows_the_list_as_it_stood(story_log: Path) -> None:
    assert rows_of("--as-of", "3", "--store", story_log) == ["main"]
    assert rows_of("--as-of", "1970-01-01T00:16:40.003Z", "--store", story_log) == ["main"]


@pytest.mark.clause("LIST-7")
def test_a_cursor_leads_through_the_list(story_log: Path) -> None:
    first = ran("sessions", "--limit", "2", "--json", "--store", story_log).json
    rest = ran(
        "sessions", "--limit", "2", "--cursor", first["nextCursor"], "--json", "--store", story_log
    ).json

    assert [row["key"] for row in first["sessions"] + rest["sessions"]] == [
        OPS,
        "agent:main:subagent:00000000-0000-4000-8000-00000000000a",
        "main",
    ]


@pytest.mark.clause("VIS-6")
def test_as_a_session_one_sees_what_it_sees(story_log: Path, tmp_path: Path) -> None:
    all_open = tmp_path / "open.json5"
    all_open.write_text(
        "{tools: {sessions: {visibility: 'all'}, agentToAgent: {enabled: true}}}", encoding="utf-8"
    )

    tree = rows_of("--as", "main", "--store", story_log)
    everything = rows_of("--as", "main", "--config", all_open, "--store", story_log)
    refused = ran("history", OPS, "--as", "main", "--json", "--store", story_log)

    assert OPS not in tree
    assert OPS in everything
    assert (refused.exit_code, refused.json["status"], refused.json["code"]) == (1, "forbidden", "forbidden")


@pytest.mark.clause("HIST-4", "HIST-5")
def test_history_hides_secrets_from_strangers_and_cuts_long_texts_and_raw_does_neither(
    story_log: Path, tmp_path: Path
) -> None:
    all_open = tmp_path / "open.json5"
    all_open.write_text(
        "{tools: {sessions: {visibility: 'all'}, agentToAgent: {enabled: true}}}", encoding="utf-8"
    )

    stranger = ran("history", OPS, "--as", "main", "--config", all_open, "--json", "--store", story_log).json
    operator = ran("history", OPS, "--json", "--store", story_log).json
    raw = ran("history", OPS, "--raw", "--json", "--store", story_log).json

    assert stranger["contentRedacted"]
    assert "sk-abcdefghijklmnop" not in str(stranger)
    assert "sk-abcdefghijklmnop" in str(operator)
    assert operator["contentTruncated"]
    assert raw["messages"][-1]["content"] == "x" * 5_000


def test_raw_is_the_operators_alone(story_log: Path) -> None:
    done = ran("history", "main", "--raw", "--as", "main", "--store", story_log)

    assert done.exit_code == 2
    assert "only the operator reads uncut" in done.err


def test_before_pages_back_through_a_history(demo_log: DemoLog) -> None:
    whole = ran("history", "main", "--json", "--store", demo_log.path).json["messages"]

    for raw in ([], ["--raw"]):
        page = ran(
            "history",
            "main",
            "--limit",
            "2",
            "--before",
            whole[-1]["id"],
            *raw,
            "--json",
            "--store",
            demo_log.path,
        )
        ids = [message["id"] for message in page.json["messages"] if message["role"] != "toolResult"]
        assert ids[-1] == whole[-2]["id"]
        assert len(page.json["messages"]) == 2


@pytest.mark.parametrize("raw", [(), ("--raw",)])
def test_an_unknown_message_to_page_from_is_refused(demo_log: DemoLog, raw: tuple[str, ...]) -> None:
    done = ran("history", "main", "--before", "nope", *raw, "--json", "--store", demo_log.path)

    assert (done.exit_code, done.json["code"]) == (1, "invalid_request")


def test_history_says_who_speaks(demo_log: DemoLog) -> None:
    done = ran("history", "agent:research:main", "--tools", "--store", demo_log.path)

    assert [line.split("  ")[0] for line in done.out.splitlines() if line and not line.startswith(" ")][
        :-1
    ] == [
        "ben (discord)",
        "agent",
        "session agent:main:main",
        "agent",
        "session agent:main:main",
        "agent",
        "session agent:main:main",
        "agent",
        "the system",
        "agent",
    ]


def test_runs_lists_what_replay_takes_newest_first(demo_log: DemoLog) -> None:
    found = ran("runs", "--json", "--store", demo_log.path).json["runs"]

    assert [flow["kind"] for flow in found] == ["spawn", "run", "exchange", "run", "run"]
    assert [flow["id"] for flow in found[:4]] == [each["id"] for each in reversed(demo_log.value["replay"])]
    exchange = found[2]
    assert (exchange["state"], exchange["turns"], exchange["maxTurns"]) == ("closed", 5, 5)
    assert (exchange["loopEnd"], exchange["closeReason"]) == ("turn_limit", "announced")
    told = ran("runs", "--store", demo_log.path).out
    assert "5 turns; the limit of turns was reached; announced to discord:lab\n" in told
    assert "task done; announced to telegram:ada\n" in told
    for flow in found:
        assert ran("replay", flow["id"], "--store", demo_log.path).exit_code == 0


def test_runs_keeps_to_its_limit_and_to_what_is_open(demo_log: DemoLog, tmp_path: Path) -> None:
    story = Story(tmp_path / "open.db")
    story.open()
    story.run(MAIN, "r1", "hi", "hello")
    story.close()

    assert ran("runs", "--limit", "2", "--json", "--store", demo_log.path).json["count"] == 2
    assert ran("runs", "--open", "--json", "--store", demo_log.path).json["runs"] == []
    assert ran("runs", "--json", "--store", tmp_path / "open.db").json["runs"][0]["status"] == "ok"
    assert ran("runs", "--limit", "0", "--store", demo_log.path).exit_code == 2


def test_a_ping_pong_is_told_like_a_conversation(demo_log: DemoLog) -> None:
    done = ran("replay", demo_log.exchange, "--store", demo_log.path)

    heads = re.findall(r"^#\d+ +(.*?)  ", done.out, re.MULTILINE)
    assert heads == [
        "main → research · asks",
        "research → main · replies",
        "main → research · turn 1 of 5",
        "research → main · turn 2 of 5",
        "main → research · turn 3 of 5",
        "research → main · turn 4 of 5",
        "main → research · turn 5 of 5",
        "The ping-pong ended after 5 turns: the limit of turns was reached (session.agentToAgent.maxPingPongTurns).",
        "research → discord:lab · announces",
        "Delivered to discord:lab.",
        "The exchange is over: announced.",
    ]


def test_each_beat_has_its_place_and_what_led_to_it(demo_log: DemoLog) -> None:
    beats = ran("replay", demo_log.exchange, "--json", "--store", demo_log.path).json["beats"]

    assert "cause" not in beats[0]
    for before, beat in itertools.pairwise(beats):
        # The end of the loop is said in the event of its last turn.
        assert beat["position"] >= before["position"]
        assert beat["position"] == before["position"] or beat["cause"] == before["position"]


def test_an_exchange_is_found_by_any_run_in_it(demo_log: DemoLog) -> None:
    with open_log(str(demo_log.path), read_only=True) as log:
        queued = (item.event for item in log.all() if isinstance(item.event, RunQueued))
        asked = {event.run_id for event in queued if event.exchange_id == demo_log.exchange}

    assert len(asked) == 7
    for name in (*asked, f"exchange:{demo_log.exchange}"):
        assert ran("replay", name, "--json", "--store", demo_log.path).json["id"] == demo_log.exchange


def test_a_command_leaves_the_collector_of_cycles_as_its_caller_had_it(demo_log: DemoLog) -> None:
    before = gc.get_threshold()
    gc.set_threshold(701, 11, 12)
    try:
        ran("sessions", "--store", demo_log.path)
        ran("why", "nothing-like-it", "--store", demo_log.path)
        assert gc.get_threshold() == (701, 11, 12)
    finally:
        gc.set_threshold(*before)


def test_every_short_name_among_the_steps_of_a_session_is_explained(demo_log: DemoLog) -> None:
    printed = ran("replay", "main", "--steps", "--store", demo_log.path).out
    legend = printed.splitlines()[1]
    told = ran("replay", "main", "--steps", "--json", "--store", demo_log.path).json["steps"]
    named = {
        name for step in told for name in (step["who"], step["to"]) if name and name.startswith("agent:")
    }

    assert len(named) > 2
    assert [name for name in named if f" is {name}" not in legend] == []


def test_the_steps_of_a_flow_are_every_event_of_it(demo_log: DemoLog) -> None:
    value: dict[str, Any] = ran("replay", demo_log.spawn, "--steps", "--json", "--store", demo_log.path).json
    printed = ran("replay", demo_log.spawn, "--steps", "--store", demo_log.path)

    assert len(value["steps"]) > len(value["beats"])
    assert {beat["position"] for beat in value["beats"]} <= {step["position"] for step in value["steps"]}
    assert [line.split()[0] for line in printed.out.splitlines() if line.startswith("#")] == [
        f"#{step['position']}" for step in value["steps"]
    ]


def test_a_session_is_told_with_the_flows_it_was_part_of(demo_log: DemoLog) -> None:
    out = ran("replay", "main", "--store", demo_log.path).out

    assert f"main → research · asks, exchange {demo_log.exchange}" in out
    assert f"The exchange {demo_log.exchange} is over: announced." in out
    assert f"spawns a sub-agent, spawn {demo_log.spawn}" in out
    assert "main calls sessions_send" in out


def test_an_archived_session_and_an_earlier_generation_can_still_be_replayed(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    story = Story(path)
    story.open(session_id="first")
    story.say(MAIN, "before the reset", session_id="first")
    story.put(f"session:{MAIN}", SessionReset(session_id="second", previous_session_id="first"))
    story.say(MAIN, "after the reset", session_id="second")
    story.put(f"session:{MAIN}", SessionArchived(session_id="second", reason="deleted"))
    story.close()

    whole = ran("replay", MAIN, "--store", path).out
    first = ran("replay", "first", "--store", path).out

    assert "before the reset" in whole
    assert "after the reset" in whole
    assert "before the reset" in first
    assert "after the reset" not in first


def test_messages_without_provenance_and_from_other_sessions_say_who_they_are_from(tmp_path: Path) -> None:
    path = tmp_path / "who.db"
    story = Story(path)
    story.open()
    story.say(MAIN, "from nobody known")
    origin = Provenance(kind="inter_session", source_session_key=OPS, source_tool="sessions_send", turn=2)
    story.say(MAIN, "your turn", provenance=origin)
    story.close()

    beats = ran("replay", "main", "--json", "--store", path).json["beats"]

    assert [(beat["who"], beat["how"]) for beat in beats if beat["kind"] == "said"] == [
        ("a person", "says"),
        (OPS, "asks for turn 2"),
    ]


def test_a_command_that_had_to_fold_the_log_says_how_to_have_its_views_for_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the next one folds it again. What is built since the log was opened is not built twice."""
    path, built = tmp_path / "log.db", list[str]()
    with SqliteLog(path) as log:
        log.append_now(
            [anywhere("session:agent:main:main", *(said(f"m{number}") for number in range(2_000)))]
        )
    fold = InlineViews.fold

    def counted(views: InlineViews, name: str) -> Fold:
        built.append(name)
        return fold(views, name)

    monkeypatch.setattr(InlineViews, "fold", counted)

    first, events = ran("runs", "--store", path), ran("events", "--limit", 1, "--store", path)
    ran("rebuild", "--store", path)
    again, before = ran("runs", "--store", path), sorted(built)
    ran("rebuild", "run_outcomes", "--store", path)

    assert first.exit_code == again.exit_code == 0
    assert "`intersession rebuild` makes them for good" in first.err
    assert "rebuild" not in events.err
    assert "rebuild" not in again.err
    assert first.out == again.out
    assert before == sorted(view.name for view in inline_views())
    assert built[len(before) :] == ["run_outcomes"]
