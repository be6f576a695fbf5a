"""Forks over the network: a scope of their own, the operator's alone, named like runs, and nothing of the host's to be reached."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from intersession import SessionSystem, echo
from intersession_events.facts import ExchangeClosed, ForkEdited
from intersession_events.log.recorded import parts_in
from intersession_events.stores.opened import open_log
from support.any_log import changed_behind
from support.doors.gateway_live import LiveGateway, credential
from support.forks_played import CONFIG, WAIT, Conversation, conversation
from support.running import merged

pytestmark = pytest.mark.clause("FORK-10")

ALL, ONE, READER, ONLY = (
    "a-token-that-forks-all",
    "a-token-that-forks-one",
    "a-token-that-reads",
    "forks-only",
)


GATEWAY: dict[str, Any] = {
    "gateway": {
        "auth": {
            "token": "the-operators-own-token",
            "credentials": [
                credential("ann", ALL, "*", "operator.fork", "operator.read"),
                credential("bob", ONE, "agent:main:*", "operator.fork", "operator.read"),
                credential("eve", READER, "*", "operator.read", "operator.write"),
                credential("only", ONLY, "*", "operator.fork"),
            ],
        }
    }
}


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Conversation]:
    made = conversation(tmp_path_factory.mktemp("talk"), config=merged(CONFIG, GATEWAY))
    yield made
    made.system.close(grace=0)


@pytest.fixture(scope="module")
def live(talk: Conversation) -> Iterator[LiveGateway]:
    with LiveGateway(talk.system) as gateway:
        yield gateway


def asked(live: LiveGateway, token: str, method: str, **params: Any) -> Any:
    with live.client(token) as client:
        return client.request(method, params)


def made(live: LiveGateway, **params: Any) -> Any:
    answer = asked(live, ALL, "forks.make", **params)
    assert answer["ok"], answer
    return answer["payload"]


def test_a_fork_is_made_carried_on_listed_compared_and_deleted_by_its_name(
    talk: Conversation, live: LiveGateway
) -> None:
    edit = {"kind": "reply", "value": "it was cancelled"}
    came = made(live, run=talk.exchange, at="turn:2", edits=[edit], agents={"*": "recorded"}, loose=True)
    assert (came["state"], came["outcome"]["turns"]) == ("ended", 4)

    forks = asked(live, ALL, "forks.list", run=talk.exchange[:8])["payload"]["forks"]
    (listed,) = [one for one in forks if one["id"] == came["fork"]]
    assert (listed["id"], listed["by"], listed["outcome"]["state"]) == (
        came["fork"],
        "credential:ann",
        "closed",
    )
    differs = asked(live, ALL, "debug.diff", a=talk.exchange, b=came["fork"][:8])["payload"]
    assert differs["firstDivergence"]["turn"] == "turn:2"
    shown = asked(live, ALL, "debug.show", run=f"{came['fork']}@turn:2")["payload"]
    assert "it was cancelled" in str(shown["rows"])
    assert talk.system.debug.diff(came["fork"], came["fork"])["same"]
    with open_log(came["store"], read_only=True) as fork:
        by = [one.event.by for one in fork.stream("log") if isinstance(one.event, ForkEdited)]
    assert by == ["credential:ann"] * 2

    gone = asked(live, ALL, "forks.remove", fork=came["fork"])["payload"]
    assert gone == {"ok": True, "fork": came["fork"], "store": came["store"]}
    assert not Path(came["store"]).exists()


def test_a_fork_is_forked_by_its_name_and_that_fork_again(talk: Conversation, live: LiveGateway) -> None:
    """Its id stood for its run everywhere but here."""
    run, names = talk.exchange, list[str]()
    for at, said in (("turn:1", "at ten?"), ("turn:2", "no, at eleven")):
        edit = {"kind": "reply", "value": said}
        came = made(live, run=run, at=f"{run}@{at}", edits=[edit], agents={"*": "recorded"}, loose=True)
        assert came["state"] == "ended"
        names.append(run := came["fork"])
    with talk.system.fork(run[:13], at="announce", agents={"*": "recorded"}, loose=True) as third:
        assert third.carried_on(WAIT).state == "ended"
        told = str(talk.system.debug.show(third.log.log_id)["rows"])
        assert ("at ten?" in told, "no, at eleven" in told) == (True, True)
    listed = {one["id"] for one in asked(live, ALL, "forks.list")["payload"]["forks"]}
    assert listed >= {*names, third.log.log_id}
    refused = asked(live, ALL, "forks.make", run=names[0], at=f"{names[1]}@turn:2")["error"]["message"]
    assert "of different logs" in refused
    for name in (*names, third.log.log_id):
        asked(live, ALL, "forks.remove", fork=name)


def test_a_fork_asks_for_its_scope_and_for_everything_within_reach(
    talk: Conversation, live: LiveGateway
) -> None:
    for method, params in (("forks.make", {"run": talk.exchange}), ("forks.remove", {"fork": "0000"})):
        assert asked(live, READER, method, **params)["error"]["message"] == "missing scope: operator.fork"
        refused = asked(live, ONE, method, **params)["error"]["details"]["code"]
        assert refused == "forbidden"
    assert asked(live, ONE, "forks.list")["error"]["details"]["code"] == "forbidden"
    assert asked(live, ONLY, "forks.list")["error"]["message"] == "missing scope: operator.read"
    assert (
        asked(live, ONLY, "chat.history", sessionKey="main")["error"]["message"]
        == "missing scope: operator.read"
    )


def test_who_sees_some_sessions_finds_no_fork_by_its_name(talk: Conversation, live: LiveGateway) -> None:
    came = made(live, run=talk.exchange, at="turn:1", carryOn=False)
    nobody = asked(live, ONE, "debug.show", run="00000000")["error"]
    hidden = asked(live, ONE, "debug.show", run=came["fork"][:8])["error"]
    assert hidden["message"].replace(came["fork"][:8], "00000000") == nobody["message"]


def test_a_fork_that_is_only_made_is_not_carried_on(talk: Conversation, live: LiveGateway) -> None:
    came = made(live, run=talk.exchange, at="turn:1", carryOn=False)

    assert "state" not in came
    assert "outcome" not in came
    with open_log(came["store"], read_only=True) as fork:
        began = [one.position for one in fork.all() if one.position > came["from"]["position"]]
        closed = [one for one in parts_in(fork.all()) if isinstance(one.event, ExchangeClosed)]
    assert (len(began) > 0, closed) == (True, [])


def test_a_script_answers_and_whoever_does_not_wait_hears_of_it_later(
    talk: Conversation, live: LiveGateway
) -> None:
    lines = [
        {"step": "reply", "reply": "rather sure"},
        {"step": "announce", "reply": "ANNOUNCE_SKIP"},
        "REPLY_SKIP",
    ]
    agents = {"desk": {"script": lines}, "main": {"script": ["sure?", "REPLY_SKIP"]}}
    came = made(live, run=talk.exchange, at="turn:1", agents=agents, timeoutMs=0)
    assert came["state"] == "running"

    with open_log(came["store"], read_only=True) as fork:
        while True:
            head = fork.head()
            if any(isinstance(one.event, ExchangeClosed) for one in parts_in(fork.all())):
                break
            fork.wait_for(head + 1, timeout=WAIT)
    forks = talk.system.gateway.perform("forks.list")["forks"]
    assert [one["outcome"]["end"] for one in forks if one["id"] == came["fork"]] == ["reply_skip"]


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({"agents": {"main": "os:system"}}, "can't be named from elsewhere"),
        ({"agents": {"main": "script:/etc/passwd"}}, "can't be named from elsewhere"),
        ({"agents": {"ghost": "recorded"}}, "there is no such agent here; there are desk, main"),
        ({"agents": {"main": "nobody"}}, "no agent of the host has that name"),
        ({"agents": {"main": "openai/gpt"}}, "models.providers.openai"),
        ({"agents": {"main": {"script": [{"replay": "x"}]}}}, "agents"),
        ({"agents": {"main": {"script": []}}}, "agents"),
        ({"edits": [{"kind": "frobnicate"}]}, "edits[0].kind"),
        ({"edits": [{"kind": "set", "key": "session.nothing", "value": "1"}]}, "session.nothing"),
        *(
            ({"edits": [{"kind": "set", "key": key, "value": value}]}, says)
            for key, value, says in (
                ("store", "elsewhere.db", "can't be set from elsewhere"),
                ("transcripts.mirror", "true", "can't be set from elsewhere"),
                ("checkpoints.publish.command", '["touch", "x"]', "can't be set from elsewhere"),
                ("models.providers.p.baseUrl", "http://127.0.0.1:9/v1", "can't be set from elsewhere"),
                ("channels.x.deliver", "webhook:http://127.0.0.1:9/", "can't be set from elsewhere"),
                ("agents.defaults.workspace", "elsewhere", "workspaces can't be set from elsewhere"),
                ("agents.list", '[{"id": "main", "workspace": "elsewhere"}]', "workspaces can't be set"),
                ("session.mainKey", "${PATH}", "'${PATH}' can't be a main key"),
                ("session.scope", "[" * 100_000, "session.scope"),
            )
        ),
        ({"edits": [{"kind": "reply", "value": "x"}, {"kind": "skip"}]}, "both replace"),
        ({"edits": [{"kind": "inject", "key": "agent:desk:nobody", "value": "x"}]}, "agent:desk:main"),
        ({"edits": [{"kind": "reply", "value": "x" * (1024 * 1024 + 1)}]}, "at most 1048576 characters"),
        ({"onDivergence": "script:x"}, "onDivergence"),
        ({"at": "noon"}, "at"),
        ({"run": "00000000"}, "run"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_what_is_not_possible_is_refused_in_a_line_and_leaves_no_fork(
    talk: Conversation, live: LiveGateway, params: dict[str, Any], says: str
) -> None:
    directory = Path(f"{talk.log.path}.forks")
    before = set(directory.glob("*.db")) if directory.is_dir() else set()
    asked_for = {"run": talk.exchange, "at": "turn:2", **params}
    error = asked(live, ALL, "forks.make", **asked_for)["error"]
    assert says in error["message"]
    assert "\n" not in error["message"]
    assert (set(directory.glob("*.db")) if directory.is_dir() else set()) == before


def test_a_log_in_memory_has_no_forks() -> None:
    with SessionSystem(":memory:", agents={"main": echo()}) as system:
        run = system.inbound(channel="x", chat_id="1", text="hi", sender="ann", wait=20)["runId"]
        refused: Any = system.gateway.call("forks.make", {"run": run})
        assert (refused["code"], "keep it in a file" in refused["error"]) == ("invalid_request", True)
        assert system.gateway.perform("forks.list") == {"forks": [], "unread": []}


@pytest.mark.clause("FORK-2")
def test_of_what_was_changed_no_fork_is_made_and_the_operator_is_sent_to_verify(tmp_path: Path) -> None:
    talk = conversation(tmp_path, config=merged(CONFIG, GATEWAY))
    with talk.system as system, LiveGateway(system) as live:
        (said, *_) = (one for one in system.log.all() if one.topic == "turn_ended.1")
        changed_behind(
            f"sqlite:///{system.log.place}",
            "UPDATE stored_events SET topic='turn_requested.1' WHERE rowid=?",
            said.position,
        )
        error = asked(live, ALL, "forks.make", run=talk.exchange, at="head", carryOn=False)["error"]
        assert error["details"]["code"] == "unreadable"
        assert f"position {said.position}, " in error["message"]
        assert "`intersession verify`" in error["message"]
        assert asked(live, ALL, "forks.list")["payload"]["forks"] == []
        made = asked(live, ALL, "forks.make", run=talk.exchange, at=said.position - 1, carryOn=False)
        assert made["payload"]["from"]["position"] < said.position
