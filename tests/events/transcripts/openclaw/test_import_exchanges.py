"""Sends, turns and announces are put together again, marked as inferred, with their evidence (IMP-4)."""

import json
from pathlib import Path
from typing import Any

import pytest

from intersession_events.basics import ids
from intersession_events.facts import (
    AnnounceDecided,
    AnnounceRequested,
    Event,
    ExchangeAccepted,
    ExchangeClosed,
    LoopEnded,
    MessageRecorded,
    TurnEnded,
    TurnRequested,
)
from intersession_events.transcripts.openclaw.plan import ImportPlan
from support.openclaw.samples import (
    DESK,
    HOME,
    HOUSEHOLD,
    all_events,
    all_states,
    drafts_of,
    header,
    message,
    planned,
    session_of,
    write_state,
)


def exchange(found: ImportPlan, text: str) -> list[Event]:
    """The events of the exchange that began with a text."""
    [accepted] = [event for event in all_events(found, ExchangeAccepted) if event.message == text]
    return [draft.event for draft in drafts_of(found, ids.exchange_stream(accepted.exchange_id))]


def accepted_of(found: ImportPlan, text: str) -> ExchangeAccepted:
    first = exchange(found, text)[0]
    assert isinstance(first, ExchangeAccepted)
    return first


@pytest.mark.clause("IMP-4")
def test_a_ping_pong_of_five_turns_says_who_said_what_and_why_it_ended() -> None:
    events = exchange(planned(HOUSEHOLD), "What is the plan?")

    assert [type(event) for event in events] == [
        ExchangeAccepted,
        TurnEnded,
        *[TurnRequested, TurnEnded] * 5,
        LoopEnded,
        AnnounceRequested,
        AnnounceDecided,
        ExchangeClosed,
    ]
    replies = [
        (event.turn, event.speaker, event.text)
        for event in events
        if isinstance(event, TurnEnded) and event.turn
    ]
    assert replies == [
        (1, HOME, "Why A?"),
        (2, DESK, "It is shorter."),
        (3, HOME, "How much?"),
        (4, DESK, "A mile."),
        (5, HOME, "Good."),
    ]
    [ended] = [event for event in events if isinstance(event, LoopEnded)]
    assert (ended.reason, ended.turns, ended.limit) == (
        "turn_limit",
        5,
        "session.agentToAgent.maxPingPongTurns",
    )
    [decided] = [event for event in events if isinstance(event, AnnounceDecided)]
    assert decided.text == "We take plan A."
    closed = events[-1]
    assert isinstance(closed, ExchangeClosed)
    assert closed.reason == "announced"
    assert "noted as delivered" in (closed.note or "")


@pytest.mark.clause("IMP-4")
def test_an_exchange_is_marked_as_inferred_and_names_its_lines() -> None:
    accepted = accepted_of(planned(HOUSEHOLD), "What is the plan?")

    assert accepted.inferred
    assert (accepted.run_id, accepted.requester, accepted.target) == (
        "aaaaaaaa-0000-4000-8000-000000000001",
        HOME,
        DESK,
    )
    assert (accepted.timeout_ms, accepted.settings.max_turns) == (20_000, 5)
    evidence: dict[str, Any] = json.loads(accepted.evidence or "")
    home, desk = (f"agents/{agent}/sessions" for agent in ("home", "desk"))
    assert evidence["call"] == {
        "file": f"{home}/00000001-1111-4111-8111-000000000001.jsonl",
        "line": 6,
        "entry": "01000005",
    }
    assert evidence["message"]["file"] == f"{desk}/00000002-1111-4111-8111-000000000002.jsonl"
    assert evidence["message"]["entry"] == accepted.message_id
    assert len(evidence["turns"]) == 5
    assert evidence["announce"]["reply"]["line"] == 9


@pytest.mark.clause("IMP-4")
@pytest.mark.parametrize("state", all_states())
def test_every_message_that_an_exchange_names_is_in_its_session(state: Path) -> None:
    found = planned(state)
    recorded = {
        (item.stream, item.draft.event.message.id)
        for item in found.planned
        if isinstance(item.draft.event, MessageRecorded)
    }

    asked = [(event.target, event.message_id) for event in all_events(found, ExchangeAccepted)]
    asked += [(event.speaker, event.message_id) for event in all_events(found, TurnRequested)]
    asked += [(event.speaker, event.message_id) for event in all_events(found, AnnounceRequested)]
    assert {(ids.session_stream(key), message_id) for key, message_id in asked} <= recorded


@pytest.mark.clause("IMP-4")
@pytest.mark.parametrize("state", all_states())
def test_every_exchange_is_closed_once_and_nothing_comes_after_it(state: Path) -> None:
    found = planned(state)

    for event in all_events(found, ExchangeAccepted):
        kinds = [type(draft.event) for draft in drafts_of(found, ids.exchange_stream(event.exchange_id))]
        assert kinds[0] is ExchangeAccepted
        assert kinds[-1] is ExchangeClosed
        assert kinds.count(ExchangeClosed) == 1


@pytest.mark.clause("IMP-4")
@pytest.mark.parametrize("state", all_states())
def test_all_inter_session_messages_are_attributed_or_counted(state: Path) -> None:
    report = planned(state).report

    left = [item for item in report.unattributed if item.what in {"inter-session message", "announce step"}]
    assert report.attributed + len(left) == report.inter_session


@pytest.mark.clause("IMP-4")
def test_reply_skip_ends_a_loop_and_announce_skip_keeps_it_silent() -> None:
    events = exchange(planned(HOUSEHOLD), "Thanks.")

    [ended] = [event for event in events if isinstance(event, LoopEnded)]
    assert (ended.reason, ended.turns) == ("reply_skip", 2)
    [decided] = [event for event in events if isinstance(event, AnnounceDecided)]
    assert (decided.text, decided.why) == (None, "announce_skip")
    assert events[-1] == ExchangeClosed(reason="silent")


@pytest.mark.clause("IMP-4")
def test_an_older_text_that_was_handed_on_is_evidence_of_its_own() -> None:
    found = planned(HOUSEHOLD)

    events = exchange(found, "FYI: rain.")

    assert [event.text for event in events if isinstance(event, TurnEnded) and event.turn] == [
        None,
        "REPLY_SKIP",
    ]
    evidence: dict[str, Any] = json.loads(accepted_of(found, "FYI: rain.").evidence or "")
    assert [turn.get("stale") for turn in evidence["turns"]] == [None, True]
    assert accepted_of(found, "FYI: rain.").timeout_ms == 0


@pytest.mark.clause("IMP-4")
def test_a_late_reply_is_kept_and_begins_no_loop() -> None:
    events = exchange(planned(HOUSEHOLD), "Slow?")

    [ended] = [event for event in events if isinstance(event, TurnEnded)]
    assert (ended.status, ended.text) == ("ok", "Yes, slow.")
    [loop] = [event for event in events if isinstance(event, LoopEnded)]
    assert (loop.reason, loop.turns) == ("inferred", 0)
    assert events[-1] == ExchangeClosed(reason="inferred", note="no announce step is in the transcripts")


@pytest.mark.clause("IMP-4")
def test_a_failed_run_closes_its_exchange() -> None:
    events = exchange(planned(HOUSEHOLD), "Break.")

    assert [type(event) for event in events] == [ExchangeAccepted, TurnEnded, ExchangeClosed]
    assert events[-1] == ExchangeClosed(reason="run_failed", note="400 bad")


@pytest.mark.clause("IMP-4")
def test_a_message_whose_call_no_transcript_shows_begins_an_exchange_all_the_same() -> None:
    found = planned(HOUSEHOLD)

    accepted = accepted_of(found, "From the control panel.")

    assert accepted.requester == HOME
    assert json.loads(accepted.evidence or "")["call"] is None
    assert found.report.exchanges_without_call == 1


@pytest.mark.clause("IMP-4")
def test_what_belongs_to_no_exchange_is_counted_with_its_place() -> None:
    report = planned(HOUSEHOLD).report

    [item] = report.unattributed
    assert item.what == "inter-session message"
    assert item.where == "agents/desk/sessions/00000002-1111-4111-8111-000000000002.jsonl:28"
    assert report.refused_sends == 1
    (refused,) = [one for one in report.refused if one.what == "sessions_send"]
    assert refused.where.startswith("agents/")
    assert refused.where.rpartition(":")[2].isdigit()
    assert len(report.refused) == report.refused_sends + report.refused_spawns
    assert refused.reason


@pytest.mark.clause("IMP-4")
def test_a_message_goes_back_to_the_person_over_both_sessions() -> None:
    found = planned(HOUSEHOLD)
    by_id = {item.draft.id: item.draft for item in found.planned}
    [announce] = [
        event for event in exchange(found, "What is the plan?") if isinstance(event, AnnounceRequested)
    ]
    [draft] = [
        draft
        for draft in session_of(found, DESK)
        if isinstance(draft.event, MessageRecorded) and draft.event.message.id == announce.message_id
    ]

    path = [draft]
    while (cause := path[-1].causation) is not None:
        path.append(by_id[cause])

    person = path[-1].event
    assert isinstance(person, MessageRecorded)
    assert "ask the desk for the plan" in str(person.message.content)
    assert {item.correlation for item in path} == {path[-1].id}


@pytest.mark.clause("IMP-4", "IMP-3")
def test_an_exchange_interleaves_in_time_with_its_sessions() -> None:
    found = planned(HOUSEHOLD)
    accepted = accepted_of(found, "What is the plan?")
    stream = ids.exchange_stream(accepted.exchange_id)

    order = [
        (item.stream == stream, type(item.draft.event).__name__)
        for item in found.planned
        if item.stream in {stream, ids.session_stream(DESK)}
        and 1772442010000 <= item.draft.time <= 1772442018000
    ]

    assert order == [
        (False, "SessionOpened"),
        (False, "LineImported"),
        (False, "MessageRecorded"),
        (True, "ExchangeAccepted"),
        (False, "MessageRecorded"),
        (True, "TurnEnded"),
        (True, "TurnRequested"),
        (True, "TurnEnded"),
        (False, "MessageRecorded"),
        (True, "TurnRequested"),
        (False, "MessageRecorded"),
        (True, "TurnEnded"),
    ]


def call(entry_id: str, second: int, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    block = {"type": "toolCall", "id": f"call-{entry_id}", "name": name, "arguments": arguments}
    return message(entry_id, {"role": "assistant", "content": [block], "stopReason": "toolUse"}, second)


def result(entry_id: str, second: int, to: str, details: dict[str, Any]) -> dict[str, Any]:
    body = {"role": "toolResult", "toolCallId": f"call-{to}", "toolName": "x", "content": json.dumps(details)}
    return message(entry_id, body, second)


def sent(entry_id: str, second: int, text: str, source: str) -> dict[str, Any]:
    provenance = {"kind": "inter_session", "sourceSessionKey": source, "sourceTool": "sessions_send"}
    return message(entry_id, {"role": "user", "content": text, "provenance": provenance}, second)


def answer(entry_id: str, second: int, text: str, **fields: Any) -> dict[str, Any]:
    return message(entry_id, {"role": "assistant", "content": text, "stopReason": "stop", **fields}, second)


def user(entry_id: str, second: int, text: str) -> dict[str, Any]:
    return message(entry_id, {"role": "user", "content": text}, second)


def two_sessions(root: Path, one: list[dict[str, Any]], other: list[dict[str, Any]]) -> ImportPlan:
    entries = {"agent:main:main": {"sessionId": "s-1"}, "agent:main:other": {"sessionId": "s-2"}}
    write_state(root, [header("s-1"), *one], name="s-1.jsonl", entries=entries)
    write_state(root, [header("s-2"), *other], name="s-2.jsonl")
    return planned(root)


OTHER = "agent:main:other"
MAIN = "agent:main:main"


@pytest.mark.clause("IMP-4")
def test_a_result_without_details_is_read_from_its_text(tmp_path: Path) -> None:
    ok = {"status": "ok", "runId": "r-1", "reply": "pong", "sessionKey": OTHER}
    one = [user("a1", 1, "go"), call("a2", 2, "sessions_send", {"sessionKey": OTHER, "message": " ping "})]
    found = two_sessions(
        tmp_path,
        [*one, result("a3", 5, "a2", ok)],
        [sent("b1", 3, "ping", MAIN), answer("b2", 4, "pong")],
    )

    assert accepted_of(found, "ping").run_id == "r-1"


@pytest.mark.clause("IMP-4")
def test_an_empty_reply_closes_without_loop_and_announce(tmp_path: Path) -> None:
    ok = {"status": "ok", "runId": "r-1", "sessionKey": OTHER}
    one = [user("a1", 1, "go"), call("a2", 2, "sessions_send", {"sessionKey": OTHER, "message": "ping"})]
    found = two_sessions(
        tmp_path,
        [*one, result("a3", 5, "a2", ok)],
        [sent("b1", 3, "ping", MAIN), answer("b2", 4, "NO_REPLY")],
    )

    events = exchange(found, "ping")
    assert [type(event) for event in events] == [ExchangeAccepted, TurnEnded, ExchangeClosed]
    assert events[-1] == ExchangeClosed(reason="no_reply")


@pytest.mark.clause("IMP-4")
def test_a_turn_that_took_longer_than_it_was_waited_for_is_a_timeout(tmp_path: Path) -> None:
    ok = {"status": "ok", "runId": "r-1", "reply": "pong", "sessionKey": OTHER}
    arguments = {"sessionKey": OTHER, "message": "ping", "timeoutSeconds": 2}
    found = two_sessions(
        tmp_path,
        [
            user("a1", 1, "go"),
            call("a2", 2, "sessions_send", arguments),
            result("a3", 5, "a2", ok),
            sent("a4", 6, "pong", OTHER),
            answer("a5", 16, "at last"),
        ],
        [
            sent("b1", 3, "ping", MAIN),
            answer("b2", 4, "pong"),
            sent("b3", 9, "Agent-to-agent announce step.", MAIN),
            answer("b4", 10, "ANNOUNCE_SKIP"),
        ],
    )

    events = exchange(found, "ping")
    [replied] = [event for event in events if isinstance(event, TurnEnded) and event.turn]
    assert (replied.status, replied.text) == ("timeout", None)
    [ended] = [event for event in events if isinstance(event, LoopEnded)]
    assert ended.reason == "turn_timeout"
    assert [type(event) for event in events][-4:] == [
        LoopEnded,
        AnnounceRequested,
        AnnounceDecided,
        ExchangeClosed,
    ]


@pytest.mark.clause("IMP-4")
def test_two_exchanges_of_one_pair_at_once_are_told_apart(tmp_path: Path) -> None:
    def ok(number: int) -> dict[str, Any]:
        return {"status": "accepted", "runId": f"r-{number}", "sessionKey": OTHER}

    def send(text: str) -> dict[str, Any]:
        return {"sessionKey": OTHER, "message": text, "timeoutSeconds": 0}

    found = two_sessions(
        tmp_path,
        [
            user("a1", 1, "go"),
            call("a2", 2, "sessions_send", send("one")),
            result("a3", 3, "a2", ok(1)),
            call("a4", 4, "sessions_send", send("two")),
            result("a5", 5, "a4", ok(2)),
            answer("a6", 6, "sent both"),
            sent("a7", 12, "second", OTHER),
            answer("a8", 13, "REPLY_SKIP"),
            sent("a9", 14, "first", OTHER),
            answer("aa", 15, "tell me more"),
        ],
        [
            sent("b1", 7, "one", MAIN),
            answer("b2", 8, "first"),
            sent("b3", 9, "two", MAIN),
            answer("b4", 10, "second"),
            sent("b5", 16, "tell me more", MAIN),
            answer("b6", 17, "REPLY_SKIP"),
        ],
    )

    said = [event.text for event in exchange(found, "one") if isinstance(event, TurnEnded) and event.turn]
    assert said == ["tell me more", "REPLY_SKIP"]
    assert [
        event.text for event in exchange(found, "two") if isinstance(event, TurnEnded) and event.turn
    ] == ["REPLY_SKIP"]


@pytest.mark.clause("IMP-4")
def test_a_send_within_a_turn_prolongs_the_chain(tmp_path: Path) -> None:
    inner = {"status": "timeout", "runId": "r-2", "sessionKey": MAIN}
    outer = {"status": "ok", "runId": "r-1", "reply": "done", "sessionKey": OTHER}
    found = two_sessions(
        tmp_path,
        [
            user("a1", 1, "go"),
            call("a2", 2, "sessions_send", {"sessionKey": OTHER, "message": "ask me back"}),
            result("a3", 9, "a2", outer),
            answer("a4", 10, "ok"),
            sent("a5", 11, "a question back", OTHER),
            answer("a6", 12, "an answer"),
        ],
        [
            sent("b1", 3, "ask me back", MAIN),
            call(
                "b2",
                4,
                "sessions_send",
                {"sessionKey": MAIN, "message": "a question back", "timeoutSeconds": 2},
            ),
            result("b3", 7, "b2", inner),
            answer("b4", 8, "done"),
        ],
    )

    accepted = accepted_of(found, "a question back")
    assert accepted.budget is not None
    assert accepted.budget.path == (MAIN, OTHER, MAIN)
    assert (accepted.hops, accepted.budget.root, accepted.requester_run_id) == (2, "r-1", "r-1")


@pytest.mark.clause("IMP-4")
def test_a_send_whose_message_never_came_is_counted(tmp_path: Path) -> None:
    lost = {"status": "timeout", "runId": "r-1", "sessionKey": OTHER}
    one = [user("a1", 1, "go"), call("a2", 2, "sessions_send", {"sessionKey": OTHER, "message": "ping"})]
    found = two_sessions(tmp_path, [*one, result("a3", 5, "a2", lost)], [])

    [item] = found.report.unattributed
    assert (item.what, item.where) == ("sessions_send", "agents/main/sessions/s-1.jsonl:3")
    assert all_events(found, ExchangeAccepted) == []


@pytest.mark.clause("IMP-4")
def test_a_reset_by_message_is_recognised_by_its_greeting(tmp_path: Path) -> None:
    ok = {"status": "ok", "runId": "r-1", "reply": "hello", "sessionKey": OTHER}
    one = [user("a1", 1, "go"), call("a2", 2, "sessions_send", {"sessionKey": OTHER, "message": "/new"})]
    greeting = "A new session was started via /new or /reset. Execute your startup sequence."
    found = two_sessions(
        tmp_path,
        [*one, result("a3", 5, "a2", ok)],
        [sent("b1", 3, greeting, MAIN), answer("b2", 4, "hello")],
    )

    assert accepted_of(found, "/new").run_id == "r-1"


@pytest.mark.clause("IMP-4")
def test_what_a_fork_copied_happened_once(tmp_path: Path) -> None:
    ok = {"status": "ok", "runId": "r-1", "reply": "pong", "sessionKey": OTHER}
    asked = [sent("b1", 3, "ping", MAIN), answer("b2", 4, "pong")]
    one = [user("a1", 1, "go"), call("a2", 2, "sessions_send", {"sessionKey": OTHER, "message": "ping"})]
    two_sessions(tmp_path, [*one, result("a3", 5, "a2", ok)], asked)
    forked = header("s-3", timestamp="2026-03-02T09:00:30.000Z", parentSession="s-2.jsonl")
    entries = {
        "agent:main:main": {"sessionId": "s-1"},
        OTHER: {"sessionId": "s-2"},
        "agent:main:fork": {"sessionId": "s-3"},
    }
    write_state(tmp_path, [forked, *asked, user("c1", 31, "go on")], name="s-3.jsonl", entries=entries)

    found = planned(tmp_path)

    assert (found.report.exchanges, found.report.inter_session, found.report.unattributed) == (1, 1, ())
    assert (
        len(
            [
                draft
                for draft in session_of(found, "agent:main:fork")
                if isinstance(draft.event, MessageRecorded)
            ]
        )
        == 3
    )
    assert any("copies of another transcript's" in note.what for note in found.report.notes)


@pytest.mark.clause("IMP-4")
@pytest.mark.parametrize("named", [{"sessionKey": OTHER}, {"label": "the other"}, {"agentId": "main"}])
@pytest.mark.parametrize("answered", [True, False])
def test_a_send_that_was_cut_off_is_told_once(tmp_path: Path, named: dict[str, Any], answered: bool) -> None:
    """Before: its call belonged to no exchange, and its exchange was without a call."""
    arguments = {**named, "message": "ping", "timeoutSeconds": 7}
    one = [user("a1", 1, "go"), call("a2", 2, "sessions_send", arguments)]
    other = [sent("b1", 3, "ping", MAIN), *([answer("b2", 4, "pong")] if answered else [])]
    found = two_sessions(tmp_path, one, other)

    [accepted] = all_events(found, ExchangeAccepted)
    by_id = {item.draft.id: item.draft for item in found.planned}
    [draft] = [item.draft for item in found.planned if item.draft.event is accepted]
    evidence = json.loads(accepted.evidence or "")

    assert found.report.unattributed == ()
    assert (accepted.target, accepted.message, accepted.timeout_ms) == (OTHER, "ping", 7_000)
    assert accepted.requester_session_id == "s-1"
    assert (evidence["call"]["line"], evidence["result"], evidence["message"]["line"]) == (3, None, 2)
    cause = by_id[draft.causation or ""].event
    assert isinstance(cause, MessageRecorded)
    assert cause.message.id == "a2"


@pytest.mark.clause("IMP-4")
@pytest.mark.parametrize(
    ("text", "key", "second"),
    [("pang", OTHER, 3), ("ping", "agent:main:third", 3), ("ping", OTHER, 1)],
)
def test_a_send_that_was_cut_off_is_not_taken_for_another_message(
    tmp_path: Path, text: str, key: str, second: int
) -> None:
    arguments = {"sessionKey": key, "message": "ping"}
    one = [user("a1", 1, "go"), call("a2", 2, "sessions_send", arguments)]
    found = two_sessions(tmp_path, one, [sent("b1", second, text, MAIN)])

    [accepted] = all_events(found, ExchangeAccepted)
    [left] = found.report.unattributed
    assert json.loads(accepted.evidence or "")["call"] is None
    assert left.what == "sessions_send"


@pytest.mark.clause("IMP-4")
def test_the_turns_after_a_send_that_was_cut_off_are_its_turns(tmp_path: Path) -> None:
    one = [
        user("a1", 1, "go"),
        call("a2", 2, "sessions_send", {"sessionKey": OTHER, "message": "ping"}),
        sent("a3", 5, "pong", OTHER),
        answer("a4", 6, "and again"),
    ]
    other = [
        sent("b1", 3, "ping", MAIN),
        answer("b2", 4, "pong"),
        sent("b3", 7, "and again", MAIN),
        answer("b4", 8, "REPLY_SKIP"),
    ]
    found = two_sessions(tmp_path, one, other)

    assert found.report.unattributed == ()
    assert len(all_events(found, ExchangeAccepted)) == 1
    assert [event.text for event in all_events(found, TurnEnded)][1:] == ["and again", "REPLY_SKIP"]
