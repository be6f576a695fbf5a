"""Every hostile row at every door that it can come to (X5): the same answer everywhere, and the one that is expected."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from intersession import SessionSystem, Turn
from support.any_log import Logs
from support.doors.every import LONGEST_CLAIM, NAMES, Door, NoRequest, Unsayable, open_doors
from support.doors.full_house import (
    BOARD,
    CHILD,
    CONFIG,
    MAIN,
    NEW_PAGE,
    OPS,
    SIBLING,
    STRANGER,
    full_house,
)
from support.hostile import given, row_id, rows
from support.oracle import uuid
from support.paths import TESTS
from support.running import merged

Said = dict[str, Any]

OPEN = merged(
    CONFIG,
    {
        "tools": {
            "sessions": {"visibility": "all"},
            "agentToAgent": {"enabled": True},
            "sessions_spawn": {"attachments": {"enabled": True}},
        },
        "session": {"agentToAgent": {"announce": "routed"}},
    },
)
"""All see all, and sub-agents may be given files."""


@pytest.fixture(scope="module")
def closed(logs: Logs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Door]]:
    """Doors of a house where each session sees its tree."""
    folder = tmp_path_factory.mktemp("closed")
    story = full_house(logs.at(folder))
    with (
        SessionSystem(story.log, config=CONFIG, clock=story.clock) as system,
        open_doors(system, CONFIG, folder) as opened,
    ):
        yield opened
    story.close()


class Host:
    """A system whose agents answer, and its doors."""

    def __init__(self, system: SessionSystem, doors: Mapping[str, Door]) -> None:
        self.system = system
        self.doors = doors


@pytest.fixture(scope="module")
def host(logs: Logs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    folder = tmp_path_factory.mktemp("open")

    def agent(turn: Turn) -> str:
        return "REPLY_SKIP" if turn.step == "reply" else "heard"

    with (
        SessionSystem(logs.at(folder), agents={"main": agent, "ops": agent}, config=OPEN) as system,
        open_doors(system, OPEN, folder) as opened,
    ):
        system.inbound(channel="webchat", chat_id="1", text="hi", sender="ann", deliver=False)
        system.tools(MAIN).call("sessions_send", {"sessionKey": OPS, "message": "hi"})
        yield Host(system, opened)


NEAR = tuple(name for name in NAMES if name != "MCP passed on")
"""All doors but the one that passes on to another of them, which takes its time and has the keys to show that it does."""


def everywhere(
    doors: Mapping[str, Door],
    requester: str | None,
    tool: str,
    args: Mapping[str, Any],
    names: tuple[str, ...] = NEAR,
) -> dict[str, bytes]:
    """Return the answers of all doors; what was no request to a door is an answer of its own."""
    answers: dict[str, bytes] = {}
    for name in names:
        try:
            answers[name] = doors[name].ask(requester, tool, args)
        except NoRequest:
            answers[name] = NO_REQUEST
        except Unsayable:
            continue
    return answers


NO_REQUEST = b'{"status":"error","code":"invalid_request"}'


def codes(answers: Mapping[str, bytes]) -> set[str]:
    return {str(json.loads(answer).get("code")) for answer in answers.values()}


# --- keys

KEYS = rows("K")


@pytest.mark.clause("X3", "X5", "KEY-6")
@pytest.mark.parametrize("tool", ["sessions_history", pytest.param("sessions_send", marks=pytest.mark.ci)])
@pytest.mark.parametrize("row", KEYS, ids=row_id)
def test_a_hostile_key_names_the_same_session_or_none_at_every_door(
    closed: Mapping[str, Door], row: dict[str, Any], tool: str
) -> None:
    more = {"message": "hi", "timeoutSeconds": 0} if tool == "sessions_send" else {}
    # A key that another agent owns is forbidden, whatever is behind it; the operator is told that nothing is.
    requester = None if row["id"] == "K37" else MAIN
    names = NAMES if tool == "sessions_history" else NEAR

    answers = everywhere(closed, requester, tool, {"sessionKey": given(row), **more}, names)

    assert len(set(answers.values())) == 1
    assert len(answers) >= 5
    meant = row["expect"].removeprefix("canonical:")
    if meant == row["expect"]:
        assert codes(answers) == {row["expect"]}
    else:
        assert answers["python"] == closed["python"].ask(requester, tool, {"sessionKey": meant, **more})


@pytest.mark.clause("VIS-6", "X3", "X5", "KEY-6")
@pytest.mark.parametrize("row", KEYS, ids=row_id)
def test_a_hostile_key_is_the_same_session_or_none_for_who_claims_to_be_it(
    closed: Mapping[str, Door], row: dict[str, Any]
) -> None:
    answers: dict[str, bytes] = {}
    for name in ("HTTP", "WebSocket", "MCP over HTTP", "command line"):
        try:
            answers[name] = closed[name].ask(given(row), "sessions_list", {})
        except Unsayable:
            assert name == "command line" or len(given(row)) > LONGEST_CLAIM
            continue

    meant = row["expect"].removeprefix("canonical:")
    if meant == row["expect"]:
        assert codes(answers) == {row["expect"]}
    else:
        assert set(answers.values()) == {closed["python"].ask(meant, "sessions_list", {})}


@pytest.mark.clause("VIS-6", "KEY-6", "X14")
@pytest.mark.parametrize("claim", ["", " ", "\t", "\N{NO-BREAK SPACE}"])
def test_an_empty_claim_is_not_the_operators(closed: Mapping[str, Door], claim: str) -> None:
    answers = {
        name: closed[name].ask(claim, "sessions_list", {})
        for name in ("HTTP", "WebSocket", "MCP over HTTP", "command line")
    }

    assert codes(answers) == {"invalid_key"}


# --- visibility


@pytest.mark.clause("HIST-6", "VIS-5", "X2", "X5")
def test_a_sandboxed_child_reads_its_parent_by_no_name(closed: Mapping[str, Door]) -> None:
    """V01, V04: the check comes after the id is resolved, and a session that is there looks like one that is not."""
    there = everywhere(closed, STRANGER, "sessions_history", {"sessionKey": NEW_PAGE})
    absent = everywhere(closed, STRANGER, "sessions_history", {"sessionKey": uuid(777)})

    assert codes(there) == {"not_visible"}
    assert len(set(there.values())) == len(set(absent.values())) == 1
    assert there["python"].replace(NEW_PAGE.encode(), uuid(777).encode()) == absent["python"]


@pytest.mark.clause("VIS-2", "X2", "X5")
@pytest.mark.parametrize("target", [SIBLING, BOARD, CHILD])
def test_a_sandboxed_child_sends_to_no_sibling(closed: Mapping[str, Door], target: str) -> None:
    """V02."""
    answers = everywhere(closed, STRANGER, "sessions_send", {"sessionKey": target, "message": "hi"})

    assert codes(answers) == {"not_visible"}
    assert len(set(answers.values())) == 1


@pytest.mark.clause("SEND-1", "X2", "X5")
def test_the_label_of_an_invisible_session_is_like_one_that_nobody_has(closed: Mapping[str, Door]) -> None:
    """V05."""
    there = everywhere(closed, STRANGER, "sessions_send", {"label": "room", "message": "hi"})
    absent = everywhere(closed, STRANGER, "sessions_send", {"label": "moor", "message": "hi"})

    assert codes(there) == {"not_visible"}
    assert {answer.replace(b"room", b"moor") for answer in there.values()} == set(absent.values())
    assert len(set(absent.values())) == 1


@pytest.mark.clause("VIS-2", "X5")
def test_to_see_all_is_not_to_reach_other_agents(host: Host) -> None:
    """V07."""
    host.system.reload(merged(OPEN, {"tools": {"agentToAgent": {"enabled": False}}}))
    answers = everywhere(host.doors, MAIN, "sessions_send", {"sessionKey": OPS, "message": "hi"})
    host.system.reload(OPEN)

    assert codes(answers) == {"forbidden"}
    assert len(set(answers.values())) == 1


# --- messages

SAID = list(rows("P", field="message")) + rows("T", field="request message")


@pytest.mark.clause("PROV-1", "PROV-2", "X4", "X5")
@pytest.mark.parametrize("row", SAID, ids=row_id)
def test_a_hostile_message_is_stored_as_it_came_and_is_another_sessions(
    host: Host, row: dict[str, Any]
) -> None:
    text = str(given(row))
    before = len(history_of_ops(host))
    answers = everywhere(host.doors, MAIN, "sessions_send", {"sessionKey": OPS, "message": text})
    stored = [m for m in history_of_ops(host)[before:] if m["role"] == "user" and m["content"] == text]

    assert {json.loads(answer)["reply"] for answer in answers.values()} == {"heard"}
    assert len(stored) == len(answers) >= len(NEAR) - 1
    assert {m["provenance"]["kind"] for m in stored} == {"inter_session"}
    assert {m["provenance"]["sourceSessionKey"] for m in stored} == {MAIN}


def history_of_ops(host: Host) -> list[Said]:
    found: list[Said] = host.system.gateway.call("chat.history", {"sessionKey": OPS, "limit": 1000})[
        "messages"
    ]
    return found


@pytest.mark.clause("SEND-1", "X5")
@pytest.mark.parametrize("field", ["message", "sessionKey", "label", "agentId", "idempotencyKey"])
def test_half_a_character_is_refused_at_every_door(host: Host, field: str) -> None:
    """P17."""
    target = {} if field in {"sessionKey", "label", "agentId"} else {"sessionKey": OPS}

    answers = everywhere(host.doors, MAIN, "sessions_send", {"message": "hi", **target, field: "\ud800"})

    assert codes(answers) == {"invalid_request"}
    assert len(answers) == len(NEAR) - 1  # no argument of a process has one


# --- numbers


@pytest.mark.clause("SEND-1", "X5")
@pytest.mark.parametrize("row", rows("N", field="timeoutSeconds"), ids=row_id)
def test_a_hostile_timeout_is_refused_at_every_door(host: Host, row: dict[str, Any]) -> None:
    args = {"sessionKey": OPS, "message": "hi", "timeoutSeconds": given(row)}

    answers = everywhere(host.doors, MAIN, "sessions_send", args)

    assert codes(answers) == {"invalid_request"}
    assert len(set(answers.values())) == 1


@pytest.mark.clause("LIST-2", "HIST-1", "X5")
@pytest.mark.parametrize("tool", ["sessions_list", "sessions_history"])
@pytest.mark.parametrize("row", rows("N", field="limit"), ids=row_id)
def test_a_hostile_limit_is_clamped_at_every_door(
    closed: Mapping[str, Door], row: dict[str, Any], tool: str
) -> None:
    most = {"sessions_list": 200, "sessions_history": 1000}[tool]
    args = {"sessionKey": MAIN} if tool == "sessions_history" else {}

    answers = everywhere(closed, MAIN, tool, {**args, "limit": given(row)})
    asked_for_most = json.loads(closed["python"].ask(MAIN, tool, {**args, "limit": most}))

    (answer,) = {json.dumps(json.loads(answer), sort_keys=True) for answer in answers.values()}
    assert json.loads(answer) in ({**asked_for_most, "limitApplied": most}, asked_for_most)


# --- attachments


def files(row: dict[str, Any]) -> list[Said]:
    if row["field"] == "attachments":
        return [{"name": f"{number}", "content": "x"} for number in range(51)]
    value = given(row)
    match row["field"]:
        case "attachments[].content (base64)":
            return [{"name": "a", "content": value, "encoding": "base64"}]
        case "attachments[].encoding":
            return [{"name": "a", "content": "x", "encoding": value}]
        case _:
            return [{"name": name, "content": "x"} for name in value.split(" and ")]


FILES = [
    row for row in rows("A") if row["field"].startswith("attachments") and row["field"] != "attachments zip"
]


@pytest.mark.clause("ATT-2", "X5", "X9")
@pytest.mark.parametrize("row", FILES, ids=row_id)
def test_a_hostile_file_is_refused_or_taken_literally_at_every_door(host: Host, row: dict[str, Any]) -> None:
    answers = everywhere(host.doors, MAIN, "sessions_spawn", {"task": "count", "attachments": files(row)})

    assert len(answers) == len(NEAR) - 1  # the command line spawns nothing
    if row["expect"].startswith("accepted"):
        names = [json.loads(answer)["attachments"]["files"][0]["name"] for answer in answers.values()]
        assert set(names) == {given(row)}
    else:
        assert codes(answers) == {row["expect"]}
        assert len(set(answers.values())) == 1


# --- and all the others

HERE = {
    row["id"] for row in (*KEYS, *SAID, *FILES, *rows("N", field="timeoutSeconds"), *rows("N", field="limit"))
} | {
    "V01",
    "V02",
    "V04",
    "V05",
    "V07",
    "P17",
}
ELSEWHERE = {
    # Settings are read at start, races are between actors: no door comes near.
    "V08": "actors/rules/config/test_config.py test_a_visibility_that_is_none_stops_the_start_and_names_those_there_are",
    "V16": "actors/owners/session/test_rules_session.py test_a_send_is_bound_to_the_generation_that_was_authorised",
    "N08": "actors/rules/config/test_config.py test_too_many_or_half_turns_are_brought_into_range_with_a_notice",
    # At every door, among the calls that the twins compare.
    **dict.fromkeys(
        ("V10", "V11", "V13", "V14", "V17"),
        "conformance/test_doors_agree_writing.py test_every_door_answers_the_same_and_leaves_the_same_log",
    ),
    # Bytes and headers, at every door that reads them.
    **dict.fromkeys(
        ("N10", "N11", "N13", "N14", "N16", "N17", "N19", "N20"),
        "conformance/test_hostile_bytes_at_doors.py test_a_frame_that_is_no_request_is_refused",
    ),
    **dict.fromkeys(
        ("G01", "G02", "G04", "G05", "G07", "G08", "G10", "G11", "G22"),
        "conformance/test_hostile_bytes_at_doors.py test_who_may_not_come_in_may_not_by_mcp_either",
    ),
    "P16": "conformance/test_hostile_bytes_at_doors.py test_what_a_client_says_of_itself_gives_it_nothing",
    "G13": "doors/gateway/test_gateway_socket.py test_scopes_come_from_the_credential_alone",
    "G14": "doors/gateway/test_gateway_socket.py test_who_is_not_known_is_told_why_and_sent_away",
    "G16": "doors/gateway/test_gateway_events.py test_addresses_that_are_one_have_one_bucket",
    "G17": "doors/gateway/test_gateway_socket.py test_a_large_frame_before_the_handshake_is_too_large",
    "G19": "doors/gateway/test_gateway_http.py test_a_body_that_takes_too_long_is_given_up",
    "G20": "doors/gateway/test_gateway_http.py test_a_new_token_counts_at_once",
    "G23": "doors/gateway/test_gateway_http.py test_what_a_stranger_writes_stays_one_line_of_the_log",
    "G25": "doors/mcp/test_mcp_http.py test_a_token_that_was_issued_for_another_server_is_none",
    # What an agent answers comes in by no door.
    **{
        row["id"]: "actors/owners/exchange/test_rules_exchange.py test_only_the_exact_skip_word_ends_the_loop"
        for row in rows("T", field="reply in ping-pong step")
    },
    "T16": "actors/owners/exchange/test_rules_exchange.py test_the_loops_skip_word_is_announced_as_text",
    **dict.fromkeys(
        ("B01", "B02", "B04"), "system/test_runs.py test_an_agent_that_breaks_ends_its_run_and_nothing_else"
    ),
    "B05": "system/test_runs.py test_an_agent_that_hangs_is_given_up_and_its_place_is_free_at_once",
    "B07": "actors/owners/session/test_rules_session.py test_an_answer_of_another_attempt_is_kept_and_not_used",
    "B08": "system/test_send.py test_a_session_cannot_send_to_itself",
    "B10": "system/spawn/test_spawn_limits.py test_no_more_than_the_limit_come_through_when_many_are_asked_for_at_once",
    # Files are the workspace's affair once they are taken; what is shown is the terminal's.
    "A34": "system/spawn/test_spawn_attachments.py test_an_archive_is_bytes_like_any_other_and_is_never_unpacked",
    "A35": "system/spawn/test_spawn_attachments.py test_a_link_in_the_workspace_refuses_the_spawn_and_leaves_nothing",
    "A37": "system/spawn/test_spawn_attachments.py test_a_directory_that_became_a_link_is_removed_and_its_target_is_not",
    **{
        row["id"]: "doors/cli/test_cli_terminal.py test_hostile_words_come_out_of_a_command_as_escapes"
        for row in rows("R")
    },
    **{
        row["id"]: "events/log/test_integrity.py test_every_hostile_store_is_seen_through"
        for row in rows("S")
    },
    **{
        row[
            "id"
        ]: "actors/outside/channels/test_webhook.py test_a_url_that_leads_to_a_private_place_is_refused_before_anything_is_connected"
        for row in rows("W")
        if row["id"] not in {"W10", "W11"}
    },
    "W10": "actors/outside/channels/test_webhook.py test_a_name_is_resolved_once_so_that_a_second_answer_leads_nowhere",
    "W11": "actors/outside/channels/test_webhook.py test_a_redirect_is_not_followed",
}
"""Where a row is shown that is not shown above: the file and the test."""


@pytest.mark.clause("X5")
def test_every_hostile_row_is_shown_somewhere() -> None:
    every = {row["id"] for area in "KVPTNAGWRBS" for row in rows(area)}

    assert HERE | ELSEWHERE.keys() == every
    assert HERE & ELSEWHERE.keys() == set()


@pytest.mark.parametrize("named", sorted(set(ELSEWHERE.values())))
def test_what_shows_a_hostile_row_is_there(named: str) -> None:
    file, _, test = named.partition(" ")

    assert f"def {test}(" in (TESTS / file).read_text()
