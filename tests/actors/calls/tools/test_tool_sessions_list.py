"""`sessions_list`: every clause of it, on a real log."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from intersession_actors.calls.service.reader import Reader
from intersession_actors.calls.tools.sessions_list import list_sessions
from intersession_actors.rules.errors import ToolRefused
from intersession_events.facts import (
    Route,
    RouteChanged,
    RunQueued,
    SessionArchived,
    SessionPatched,
    ThinkingBlock,
)
from intersession_projections.views.inline_views import inline_views
from support.any_log import log_at
from support.story import MAIN, Story

ALL = {"tools": {"sessions": {"visibility": "all"}, "agentToAgent": {"enabled": True}}}
AGENTS = {"agents": {"list": [{"id": "main"}, {"id": "ops"}]}}
GROUP = "agent:main:telegram:group:-100"
CRON = "agent:main:cron:daily"
CHILD = "agent:main:subagent:6a4d280b-fc53-4c01-9c8c-4d77a60bfa97"
OPS = "agent:ops:main"


@pytest.fixture
def story(passing_url: str) -> Iterator[Story]:
    told = Story(passing_url)
    yield told
    told.close()


@pytest.fixture
def full(story: Story) -> Story:
    """Return a log with a session of each kind; the last opened is the last updated."""
    for key in (OPS, CHILD, "agent:main:hook:mail", "agent:main:node-pi", CRON, GROUP, MAIN):
        story.open(key, spawned_by=MAIN if key == CHILD else None)
    return story


def listed(
    story: Story, requester: str | None = None, config: dict[str, Any] | None = None, **arguments: Any
) -> dict[str, Any]:
    reader = story.reader({**AGENTS, **(config or {})})
    answer, _ = list_sessions(reader, reader.requester(requester), arguments)
    return answer


def keys(answer: dict[str, Any]) -> list[str]:
    return [row["key"] for row in answer["sessions"]]


def refused(story: Story, **arguments: Any) -> str:
    with pytest.raises(ToolRefused) as caught:
        listed(story, **arguments)
    assert caught.value.code == "invalid_request"
    return caught.value.error


@pytest.mark.clause("LIST-1", "X5")
@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"limit": True}, "limit"),
        ({"limit": "5"}, "limit"),
        ({"limit": float("nan")}, "limit"),
        ({"limit": float("inf")}, "limit"),
        ({"activeMinutes": "soon"}, "activeMinutes"),
        ({"messageLimit": [1]}, "messageLimit"),
        ({"kinds": "main"}, "kinds"),
        ({"kinds": ["main", "dm"]}, "kinds[1]"),
        ({"search": 1}, "search"),
        ({"label": ["a"]}, "label"),
        ({"agentId": "Not an agent"}, "agentId"),
        ({"asOf": True}, "asOf"),
        ({"asOf": 10_000}, "asOf"),
        ({"asOf": -1}, "asOf"),
        ({"asOf": 1e400}, "asOf"),
        ({"asOf": "yesterday"}, "asOf"),
        ({"asOf": "2300-01-01"}, "asOf"),
        ({"cursor": "nonsense"}, "cursor"),
        ({"cursor": 5}, "cursor"),
        ({"spawnedBy": MAIN}, "spawnedBy"),
    ],
)
def test_a_wrong_argument_is_refused_by_name(full: Story, arguments: dict[str, Any], field: str) -> None:
    assert refused(full, **arguments).startswith(f"{field}: ")


@pytest.mark.clause("LIST-1", "LIST-2")
@pytest.mark.parametrize(
    ("limit", "count"), [(2.9, 2), (0, 1), (-3, 1), (0.5, 1), (1_000_000_000, 7), (None, 7), (3, 3)]
)
def test_limits_are_floored_and_clamped(full: Story, limit: float | None, count: int) -> None:
    answer = listed(full, limit=limit)
    assert answer["count"] == len(answer["sessions"]) == count


@pytest.mark.clause("LIST-2")
def test_the_limit_is_fifty_if_not_given_and_two_hundred_at_most(story: Story) -> None:
    for number in range(210):
        story.open(f"agent:main:n{number}")
    assert [listed(story, limit=limit)["count"] for limit in (None, 200, 201, 9e9)] == [50, 200, 200, 200]


@pytest.mark.clause("LIST-2", "VIS-2")
def test_filters_and_visibility_apply_before_the_limit(full: Story) -> None:
    assert keys(listed(full, MAIN, limit=1)) == ["main"]
    assert keys(listed(full, CHILD, limit=5)) == [CHILD]
    assert keys(listed(full, MAIN, kinds=["other"], limit=1)) == [CHILD]
    assert keys(listed(full, OPS, limit=1)) == ["main"]


@pytest.mark.clause("LIST-2", "VIS-2", "VIS-4")
def test_each_level_of_visibility_shows_more_and_counts_what_it_hides(full: Story) -> None:
    counts = []
    for visibility in ("self", "tree", "agent", "all"):
        config = {"tools": {"sessions": {"visibility": visibility}, "agentToAgent": {"enabled": True}}}
        reader = full.reader({**AGENTS, **config})
        answer, summary = list_sessions(reader, reader.requester(MAIN), {})
        assert len(summary.keys) == answer["count"]
        counts.append((answer["count"], summary.denied))
    assert counts == [(1, 6), (2, 5), (6, 1), (7, 0)]


@pytest.mark.clause("LIST-1", "KEY-7")
def test_kinds_filter_and_none_at_all_is_no_filter(full: Story) -> None:
    assert keys(listed(full, kinds=["cron", "group"])) == [GROUP, "cron:daily"]
    assert keys(listed(full, kinds=["hook", "node"])) == ["node-pi", "hook:mail"]
    assert keys(listed(full, kinds=[])) == keys(listed(full))
    assert {row["kind"] for row in listed(full)["sessions"]} == {
        "main",
        "group",
        "cron",
        "hook",
        "node",
        "other",
    }


@pytest.mark.clause("LIST-3")
def test_rows_come_last_updated_first(full: Story) -> None:
    assert keys(listed(full))[:2] == ["main", GROUP]
    full.say(CRON, "tick")
    assert keys(listed(full))[0] == "cron:daily"


@pytest.mark.clause("LIST-3")
def test_active_minutes_counts_back_from_now_or_from_as_of(story: Story) -> None:
    story.clock.now = 1_795_262_400_000  # 2026-11-21T12:00:00Z
    noon = story.clock.now
    story.open(MAIN)
    story.clock.now = noon + 10 * 60_000
    story.open(GROUP)
    position = story.log.head()
    story.clock.now = noon + 60 * 60_000
    assert keys(listed(story, activeMinutes=1)) == []
    assert keys(listed(story, activeMinutes=55.9)) == [GROUP]
    assert keys(listed(story, activeMinutes=61)) == [GROUP, "main"]
    assert keys(listed(story, activeMinutes=3.6e16)) == [GROUP, "main"]
    assert keys(listed(story, activeMinutes=0.2, asOf="2026-11-21T12:00:30Z")) == ["main"]
    assert keys(listed(story, activeMinutes=5, asOf=position)) == [GROUP]


AGENT_NOTE, LABEL_NOTE = (
    "agentId: you see no session of that agent",
    "label: you see no session with that label",
)


@pytest.mark.clause("LIST-7", "HIST-6")
@pytest.mark.parametrize(
    ("filters", "note"),
    [
        ({"agentId": "ghost"}, AGENT_NOTE),
        ({"label": "ghost"}, LABEL_NOTE),
        ({"agentId": "ghost", "label": "ghost"}, f"{AGENT_NOTE}; {LABEL_NOTE}"),
        ({"agentId": "ops", "label": "ghost"}, LABEL_NOTE),
        ({"agentId": "ops", "kinds": ["cron"]}, None),
        ({"agentId": "ops", "search": "ghost"}, None),
        ({"search": "ghost"}, None),
    ],
)
def test_an_empty_list_says_which_filter_leaves_nothing(
    full: Story, filters: dict[str, Any], note: str | None
) -> None:
    answer = listed(full, **filters)

    assert (answer["count"], answer.get("note")) == (0, note)


@pytest.mark.clause("LIST-7", "HIST-6")
def test_what_is_not_seen_is_as_silent_as_what_is_not_there(full: Story) -> None:
    full.put(f"session:{OPS}", SessionPatched(values={"label": "vault"}))

    for field, there, absent in (("agentId", "ops", "nobody"), ("label", "vault", "vaunt")):
        hidden, nothing = (listed(full, MAIN, None, **{field: given}) for given in (there, absent))
        assert hidden == nothing
        assert hidden["note"]
        assert "note" not in listed(full, None, None, **{field: there})


@pytest.mark.clause("LIST-4")
def test_label_is_exact_and_search_is_any_part_in_any_case(story: Story) -> None:
    story.open(MAIN, label="Alpha")
    story.open(GROUP, display_name="Straße Team")
    assert keys(listed(story, label="Alpha")) == ["main"]
    assert keys(listed(story, label="alpha")) == keys(listed(story, label="Alph")) == []
    assert keys(listed(story, search="LPH")) == ["main"]
    assert keys(listed(story, search="strasse")) == [GROUP]
    assert keys(listed(story, search="GROUP:-1")) == [GROUP]
    assert keys(listed(story, search="agent:MAIN:main")) == ["main"]


@pytest.mark.clause("LIST-1")
def test_agent_id_keeps_the_sessions_of_one_agent(full: Story) -> None:
    assert keys(listed(full, agentId=" OPS ")) == ["agent:ops:main"]
    assert listed(full, agentId="nobody")["count"] == 0


@pytest.mark.clause("LIST-5")
def test_a_fresh_row_has_all_fields_that_are_always_there_and_no_other(story: Story) -> None:
    opened = story.open()
    assert listed(story)["sessions"] == [
        {
            "key": "main",
            "kind": "main",
            "channel": "unknown",
            "sessionId": "s-agent-main-main",
            "updatedAt": story.clock.now,
            "model": None,
            "contextTokens": None,
            "totalTokens": None,
            "thinkingLevel": None,
            "verboseLevel": None,
            "systemSent": False,
            "abortedLastRun": False,
            "runState": "idle",
            "position": opened.position,
        }
    ]


@pytest.mark.clause("LIST-5")
def test_a_row_shows_what_there_is(story: Story, tmp_path: Path) -> None:
    story.open(CHILD, spawned_by=MAIN, label="l", display_name="d")
    stream = f"session:{CHILD}"
    route = Route(channel="whatsapp", to="1", account="work", thread="t")
    story.put(stream, RouteChanged(route=route))
    story.put(stream, SessionPatched(values={"sendPolicy": "deny", "thinkingLevel": "high"}))
    story.put(stream, RunQueued(run_id="r", session_id="s", step="message", answers="m"))
    reader = story.reader(transcripts=tmp_path)
    answer, _ = list_sessions(reader, reader.requester(None), {})
    row = answer["sessions"][0]
    assert {name: row[name] for name in list(row)[14:]} == {
        "displayName": "d",
        "label": "l",
        "sendPolicy": "deny",
        "lastChannel": "whatsapp",
        "lastTo": "1",
        "deliveryContext": {"channel": "whatsapp", "to": "1", "accountId": "work", "threadId": "t"},
        "spawnedBy": "main",
        "transcriptPath": f"{tmp_path}/s-{CHILD.replace(':', '-')}.jsonl",
    }
    assert (row["runState"], row["thinkingLevel"], row["channel"]) == ("queued", "high", "whatsapp")


@pytest.mark.clause("LIST-6")
def test_the_channel_comes_from_the_session_the_key_or_the_last_person(full: Story) -> None:
    full.open("agent:main:discord:channel:7", channel="matrix")
    full.put(f"session:{MAIN}", RouteChanged(route=Route(channel="signal", to="1")))
    channels = {row["key"]: row["channel"] for row in listed(full)["sessions"]}
    assert channels == {
        "agent:main:discord:channel:7": "matrix",
        GROUP: "telegram",
        "main": "signal",
        "cron:daily": "internal",
        "hook:mail": "internal",
        "node-pi": "internal",
        CHILD: "unknown",
        OPS: "unknown",
    }


@pytest.mark.clause("LIST-6")
def test_a_direct_chat_is_of_the_channel_of_its_last_person_else_of_its_key(story: Story) -> None:
    peer, bare = "agent:main:telegram:direct:42", "agent:main:direct:42"
    for key in (peer, bare):
        story.open(key)
    shown = [{row["key"]: row["channel"] for row in listed(story)["sessions"]}]
    for key in (peer, bare):
        story.put(f"session:{key}", RouteChanged(route=Route(channel="irc", to="1")))
    shown.append({row["key"]: row["channel"] for row in listed(story)["sessions"]})
    assert shown == [{peer: "telegram", bare: "unknown"}, {peer: "irc", bare: "irc"}]


@pytest.mark.clause("CFG-2")
def test_older_dialects_name_the_channel_and_the_groups_as_they_did(full: Story) -> None:
    full.put(f"session:{MAIN}", RouteChanged(route=Route(channel="signal", to="1")))
    for dialect, last in (("surface", "lastChannel"), ("provider", "lastProvider")):
        answer = listed(
            full, MAIN, {"session": {"dialect": dialect}, "tools": {"sessions": {"visibility": "agent"}}}
        )
        rows = {row["key"]: row for row in answer["sessions"]}
        assert rows["telegram:group:-100"]["provider"] == "telegram"
        assert rows["main"][last] == "signal"
        assert "channel" not in rows["main"]


@pytest.mark.clause("KEY-2", "KEY-3")
def test_keys_are_shown_short_to_their_own_agent_only(full: Story) -> None:
    assert "main" in keys(listed(full, OPS, ALL))
    shown = keys(listed(full, OPS, ALL))
    assert {"agent:main:main", "agent:main:cron:daily", GROUP} < set(shown)


@pytest.mark.clause("KEY-4")
def test_the_one_global_session_is_shown_as_main(story: Story) -> None:
    story.open(MAIN)
    answer = listed(story, config={"session": {"scope": "global"}})
    assert [(row["key"], row["kind"]) for row in answer["sessions"]] == [("main", "main")]
    assert "global" not in json.dumps(answer)


@pytest.mark.clause("LIST-4")
def test_without_a_message_limit_there_is_no_messages_field(full: Story) -> None:
    for arguments in ({}, {"messageLimit": 0}, {"messageLimit": 0.9}, {"messageLimit": -1}):
        answer = listed(full, **arguments)
        assert all("messages" not in row for row in answer["sessions"])
        assert "messageLimitApplied" not in answer


@pytest.mark.clause("LIST-4")
def test_the_last_messages_are_counted_without_tool_results_and_clamped_aloud(story: Story) -> None:
    story.open()
    for number in range(25):
        story.say(MAIN, str(number))
        story.say(MAIN, "result", role="toolResult", tool_call_id="1")
    two = listed(story, messageLimit=2.7)
    assert [message["content"] for message in two["sessions"][0]["messages"]] == ["23", "24"]
    assert "messageLimitApplied" not in two
    many = listed(story, messageLimit=21)
    assert len(many["sessions"][0]["messages"]) == many["messageLimitApplied"] == 20


@pytest.mark.clause("LIST-4", "HIST-4", "HIST-5")
def test_messages_are_redacted_for_strangers_and_cut_for_all(story: Story) -> None:
    story.open(MAIN)
    story.open(GROUP)
    story.say(GROUP, "password=hunter2hunter2hunter2")
    story.say(GROUP, (ThinkingBlock(thinking="x" * 5000, thinking_signature="s"),), role="assistant")
    config = {"tools": {"sessions": {"visibility": "agent"}}}
    strange = listed(story, MAIN, config, messageLimit=5, kinds=["group"])
    own = listed(story, GROUP, config, messageLimit=5, kinds=["group"])
    assert "hunter2hunter2hunter2" not in json.dumps(strange)
    assert (strange["contentRedacted"], strange["contentTruncated"]) == (True, True)
    assert (own["contentRedacted"], own["contentTruncated"]) == (False, True)
    assert own["sessions"][0]["messages"][0]["content"] == "password=hunter2hunter2hunter2"


@pytest.mark.clause("LIST-4")
def test_the_whole_list_stays_small_by_dropping_the_oldest_messages_and_saying_so(story: Story) -> None:
    for number in range(40):
        key = f"agent:main:n{number}"
        story.open(key)
        for at in range(10):
            story.say(key, f"{at}" * 3000)
    answer = listed(story, messageLimit=10)
    assert len(msgspec.json.encode(answer)) <= 256 * 1024
    assert answer["count"] == 40
    assert answer["truncated"] is True
    assert all(row["messagesDropped"] == 10 - len(row["messages"]) > 0 for row in answer["sessions"])
    assert all(row["messages"][-1]["content"] == "9" * 3000 for row in answer["sessions"])


@pytest.mark.clause("LIST-4", "LIST-7")
def test_rows_that_do_not_fit_come_with_the_next_page(story: Story) -> None:
    for number in range(150):
        story.open(f"agent:main:n{number}", display_name="d" * 4000)
    seen: list[str] = []
    page = listed(story, limit=200)
    while True:
        assert len(msgspec.json.encode(page)) <= 256 * 1024
        seen += keys(page)
        if "nextCursor" not in page:
            break
        page = listed(story, limit=200, cursor=page["nextCursor"])
    assert sorted(seen) == sorted(f"agent:main:n{number}" for number in range(150))


@pytest.mark.clause("LIST-7")
def test_pages_show_the_list_as_it_stood_while_writes_go_on(story: Story) -> None:
    for number in range(25):
        story.open(f"agent:main:n{number}")
    expected = keys(listed(story, limit=200))
    page = listed(story, limit=10)
    as_of = page["asOf"]
    seen = keys(page)
    while "nextCursor" in page:
        story.say(f"agent:main:n{len(seen) - 5}", "moves to the top")
        story.say(f"agent:main:n{24 - len(seen)}", "moves to the top")
        story.open(f"agent:main:new{len(seen)}")
        story.put("session:agent:main:n0", SessionArchived(session_id="s-agent-main-n0", reason="deleted"))
        page = listed(story, limit=10, cursor=page["nextCursor"])
        assert page["asOf"] == as_of
        seen += keys(page)
    assert seen == expected


@pytest.mark.clause("LIST-7")
def test_rows_updated_in_the_same_millisecond_are_not_lost_between_pages(story: Story) -> None:
    for number in range(9):
        story.open(f"agent:main:n{number}", opened_by="import")
    page, seen = listed(story, limit=4), []
    while True:
        seen += keys(page)
        if "nextCursor" not in page:
            break
        page = listed(story, limit=4, cursor=page["nextCursor"])
    assert seen == [f"agent:main:n{number}" for number in range(9)]


@pytest.mark.clause("LIST-7")
def test_active_minutes_stays_where_the_first_page_put_it(story: Story) -> None:
    for number in range(4):
        story.open(f"agent:main:n{number}")
    page = listed(story, limit=2, activeMinutes=1)
    story.clock.now += 3_600_000
    assert listed(story, limit=2, activeMinutes=1, cursor=page["nextCursor"])["count"] == 2


@pytest.mark.clause("LIST-7")
def test_a_cursor_with_other_filters_is_an_error(full: Story) -> None:
    cursor = listed(full, limit=2, kinds=["group", "hook", "cron"])["nextCursor"]
    assert keys(listed(full, kinds=["cron", "hook", "group"], cursor=cursor)) == ["hook:mail"]
    for others in ({}, {"kinds": ["cron"]}, {"kinds": ["group", "hook", "cron"], "search": "a"}):
        assert refused(full, cursor=cursor, **others).startswith("cursor: it was made for other filters")
    head = full.log.head()
    same = {"kinds": ["group", "hook", "cron"], "cursor": cursor}
    assert listed(full, asOf=head, **same)["count"] == 1
    assert refused(full, asOf=head - 1, **same).startswith("cursor: it was made for asOf")


@pytest.mark.clause("LIST-7", "X7")
@pytest.mark.parametrize(
    "inside",
    [
        b"{}",
        b'{"position":1e9,"reference_ms":0,"updated_at":0,"key":"","filters":""}',
        b'{"position":-1,"reference_ms":0,"updated_at":0,"key":"","filters":""}',
        b'{"position":99999,"reference_ms":0,"updated_at":0,"key":"","filters":""}',
        b'{"position":1,"reference_ms":0,"updated_at":9223372036854775808,"key":"","filters":""}',
        b'{"position":1,"reference_ms":-1,"updated_at":0,"key":"","filters":""}',
        b"[" * 3_000,
        b"\xff\xfe",
    ],
)
def test_a_forged_cursor_is_refused(full: Story, inside: bytes) -> None:
    assert refused(full, cursor=base64.urlsafe_b64encode(inside).decode()).startswith(
        "cursor: it is no cursor"
    )


@pytest.mark.clause("LIST-8")
def test_as_of_a_position_shows_the_list_as_it_stood_there(full: Story) -> None:
    position = full.log.head()
    before = listed(full, messageLimit=3)
    full.say(MAIN, "later")
    full.put(f"session:{GROUP}", SessionArchived(session_id=f"s-{GROUP.replace(':', '-')}", reason="deleted"))
    full.open("agent:main:new")
    assert listed(full, asOf=position, messageLimit=3) == before
    assert listed(full, asOf=position + 0.9) == listed(full, asOf=position)
    assert GROUP not in keys(listed(full))
    assert listed(full, asOf=0)["count"] == 0


@pytest.mark.clause("HIST-7", "LIST-2")
def test_archived_sessions_are_not_listed(full: Story) -> None:
    full.put(f"session:{GROUP}", SessionArchived(session_id=f"s-{GROUP.replace(':', '-')}", reason="cleanup"))
    assert GROUP not in keys(listed(full))


@pytest.mark.clause("VIS-5")
def test_a_sandboxed_session_sees_its_tree_whatever_the_setting(story: Story) -> None:
    story.open(MAIN)
    story.open(GROUP, sandboxed=True)
    story.open(CHILD, spawned_by=GROUP)
    assert keys(listed(story, GROUP, ALL)) == [CHILD, GROUP]
    open_to_all = {
        **ALL,
        "agents": {**AGENTS["agents"], "defaults": {"sandbox": {"sessionToolsVisibility": "all"}}},
    }
    assert listed(story, GROUP, open_to_all)["count"] == 3


def test_a_reader_without_a_writer_lists_too(log_url: str) -> None:
    told = Story(log_url)
    told.open()
    log = log_at(log_url, inline=inline_views(), read_only=True)
    config = told.reader().config
    reader = Reader(log, config=lambda: config, clock=told.clock)
    assert keys(list_sessions(reader, reader.requester(None), {})[0]) == ["main"]
    log.close()
    told.close()


@pytest.mark.clause("GATE-2", "LIST-2")
def test_only_what_one_session_spawned_itself_is_listed_before_the_limit(story: Story) -> None:
    """Before: the gateway read all pages to find the children of one session."""
    story.open(MAIN)
    children = [f"agent:ops:subagent:{number:08d}-fc53-4c01-9c8c-4d77a60bfa97" for number in range(5)]
    for child in children:
        story.open(child, spawned_by=MAIN)
    story.open(CHILD, spawned_by=children[0])
    for number in range(30):
        story.open(f"agent:main:later-{number}")
    reader = story.reader({**AGENTS, **ALL})

    def of(parent: str, limit: int = 50) -> list[str]:
        answer, _ = list_sessions(reader, reader.requester(None), {"limit": limit}, parent=parent)
        return keys(answer)

    assert of(MAIN) == children[::-1]
    assert of(MAIN, 2) == children[:2:-1]
    assert of(children[0]) == [CHILD]
    assert of(CHILD) == of("agent:main:nobody") == []
