"""The web debugger's questions over HTTP: paged, described, kept to what a credential reaches, with receipts, not too often."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from intersession import SessionSystem, Turn
from intersession.web.rate import Rates
from intersession_events.facts import AccessRecorded, ArchiveReason, DeliveryState, EditKind, HoldBefore
from intersession_events.stores.opened import has_writer, open_log
from intersession_projections.questions.work_list import WorkEnd
from support.doors.gateway_live import GATEWAY, READER, TOKEN, LiveGateway
from support.doors.web_log import played
from support.pages.answers import ANSWERS, check_typed
from support.running import Gate
from support.soaking import until

Served = tuple[SessionSystem, LiveGateway]


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with played() as found:
        yield found


def asked(served: Served, question: str, token: str | None = TOKEN, **given: Any) -> Any:
    with served[1].http(token) as client:
        answer = client.get(f"/debug/api/{question}", params=given or None)
        assert answer.status_code == 200, answer.text
        found = answer.json()
        check_typed(question, found)
        return found


def the_exchange(served: Served) -> str:
    found: str = asked(served, "runs", kind="exchange")["runs"][0]["id"]
    return found


def test_every_answer_is_of_the_type_that_the_scripts_are_checked_against(tmp_path: Path) -> None:
    with played(store=tmp_path / "demo.db") as made:
        run = the_exchange(made)
        edit = {"kind": "reply", "value": "Not on Saturday."}
        params = {"run": run, "at": f"{run}@turn:2", "edits": [edit], "agents": {"*": "recorded"}}
        with made[1].http() as client:
            deed = {"method": "forks.make", "params": {**params, "onDivergence": "live"}}
            fork = client.post("/debug/api/do", json=deed, timeout=60).json()["result"]["fork"]
            note = {"run": run, "at": f"{run}@turn:4", "text": "It never tells Ada."}
            client.post("/debug/api/do", json={"method": "notes.pin", "params": note})
        runs = [one["id"] for one in asked(made, "runs")["runs"]]
        given: dict[str, list[dict[str, Any]]] = {
            "compare": [{"a": run, "b": run, "other": fork}],
            "event": [{"at": at} for at in range(1, 100)],
            "integrity": [{"verify": "true"}],
            "lens": [{"run": one} for one in runs],
            "origin": [{"words": "ferry"}],
            "place": [{"run": run, "at": "turn:2"}, {"at": "head"}],
            "search": [{"words": "ferry"}],
            "told": [{"person": "ada"}],
            "state": [{"of": run}, {"of": run, "from": 40, "to": 60}],
            "why": [{"of": 60}, {"of": run}, {"of": 60, "forward": "true"}],
            **{name: [{"run": one} for one in runs] for name in ("run", "rows", "steps", "notes")},
        }
        for question in ANSWERS:
            for one in given.get(question, [{}]):
                asked(made, question, **one)


def test_runs_are_listed_newest_first_in_pages_with_their_outline(served: Served) -> None:
    first = asked(served, "runs", limit=2)
    rest = asked(served, "runs", limit=50, cursor=first["cursor"])
    accepted = [run["accepted"] for run in (*first["runs"], *rest["runs"])]

    assert len(first["runs"]) == 2
    assert rest["cursor"] is None
    assert accepted == sorted(accepted, reverse=True)
    (exchange,) = asked(served, "runs", kind="exchange")["runs"]
    assert exchange["title"] == "Is the lake crossing open on Saturday?"
    assert [letter for letter, *_ in exchange["outline"]] == [*"pudcududu", "e", "c", "e"]
    assert [lane["kind"] for lane in exchange["lanes"]] == ["person", "session", "session", "channel"]
    assert [smell["code"] for smell in exchange["smells"]] == ["loop_cut"]


def test_the_server_says_what_failed_how_it_ended_and_what_its_smells_and_ends_are_called(
    served: Served,
) -> None:
    """Before: the pages had the rules and the words once more, and a rule that changed here did not change there."""
    every = asked(served, "runs", limit=200)["runs"]
    failed = asked(served, "runs", limit=200, failed="true")["runs"]
    about = asked(served, "about")

    assert {run["id"] for run in every if run.get("failed")} == {run["id"] for run in failed}
    (exchange,) = [run for run in every if run["kind"] == "exchange"]
    assert exchange["ended"] == ["the limit of turns was reached", "announced"]
    assert [smell["name"] for smell in exchange["smells"]] == ["cut by a limit"]
    assert about["ends"]["turn_limit"] == "limit of turns"
    assert set(about["ends"]) <= set(get_args(WorkEnd))
    assert set(about["archivals"]) == set(get_args(ArchiveReason))
    assert set(about["deliveryStates"]) == set(get_args(DeliveryState))
    assert set(about["edits"]) <= set(get_args(EditKind))
    assert set(about["heldBefore"]) == set(get_args(HoldBefore))


def test_an_event_that_stands_for_an_answer_is_listed_and_shown_with_it(served: Served) -> None:
    """Before: an answer stood once, in its session, and the log page said of its turn `the text of its run`."""
    turns = asked(served, "events", kind="turn_ended")["events"]
    said = [asked(served, "event", at=turn["position"])["said"] for turn in turns]

    assert [turn["text"] for turn in turns if "the text of its run" in turn["text"]] == []
    assert all(said)
    assert all(turn["text"].startswith(words) for turn, words in zip(turns, said, strict=True))


def test_a_run_that_failed_says_so(tmp_path: Path) -> None:
    def broken(turn: Turn) -> str:
        raise ValueError(turn.run_id)

    agents = {"main": broken, "other": lambda _: "At eight."}
    with (
        SessionSystem(tmp_path / "log.db", agents=agents, config=GATEWAY) as system,
        LiveGateway(system) as gateway,
    ):
        for name in agents:
            asking = {"message": "When?", "sessionKey": f"agent:{name}:main", "idempotencyKey": name}
            system.gateway.call("agent", asking)
        until(lambda: {run["state"] for run in asked((system, gateway), "runs")["runs"]} == {"closed"})
        every = asked((system, gateway), "runs")["runs"]
        failed = asked((system, gateway), "runs", failed="true")["runs"]

    assert {run["target"]: run.get("failed") for run in every} == {
        "agent:main:main": True,
        "agent:other:main": None,
    }
    assert [run["target"] for run in failed] == ["agent:main:main"]


@pytest.mark.clause("WHY-1")
def test_a_run_that_is_not_over_says_what_it_waits_for_and_only_to_the_operator(tmp_path: Path) -> None:
    gate = Gate()
    store, agents = tmp_path / "log.db", {"main": gate.saying("At eight.")}
    with SessionSystem(store, agents=agents, config=GATEWAY) as system, LiveGateway(system) as gateway:
        asking = {"message": "When?", "sessionKey": "agent:main:main", "idempotencyKey": "k"}
        system.gateway.call("agent", asking)
        gate.reached()
        (run,) = asked((system, gateway), "runs", open="true")["runs"]
        (alike,) = asked((system, gateway), "runs", token=READER)["runs"]
        with open_log(str(store), read_only=True) as log:
            written = has_writer(log)
        gate.open()
        assert system.gateway.call("agent.wait", {"runId": run["runId"]})["status"] == "ok"
        (over,) = asked((system, gateway), "runs")["runs"]

    with open_log(str(store), read_only=True) as log:
        assert (written, has_writer(log)) == (True, False)
    assert (run["told"], run["waits"]["code"]) == ("at work", "under_way")
    assert isinstance(run["waits"]["sinceMs"], int)
    assert alike["waits"] == {"code": "under_way"}
    assert (over["told"], over.get("waits")) == ("answered", None)


@pytest.mark.clause("SHOW-1")
def test_a_sub_agent_is_called_by_its_label_and_found_by_that_name(served: Served) -> None:
    (spawn,) = asked(served, "runs", kind="spawn")["runs"]
    whole = asked(served, "run", run=spawn["id"])
    (child,) = [lane for lane in whole["lanes"] if lane["kind"] == "sub"]
    place = asked(served, "place", at="end", run=spawn["id"])["place"]["text"]

    assert child["name"] == "main/detour"
    assert place == "after the end: the spawn of main/detour is over, announced"
    assert served[0].debug.state("main/detour")["sessions"][0]["key"] == child["id"]
    for question in ("events", "sessions", "runs"):
        assert asked(served, question, limit=200)["names"] == {child["id"]: "main/detour"}, (
            "so does every page call it"
        )


def test_a_run_is_given_in_parts_that_agree_with_the_drawing_of_the_command_line(served: Served) -> None:
    run = the_exchange(served)
    whole = asked(served, "run", run=run)
    rows = [
        row
        for first in range(0, 20, 5)
        for row in asked(served, f"rows?from={first}&limit=5&run={run}")["rows"]
    ]
    steps = asked(served, "steps", run=run)["steps"]
    drawn = served[0].debug.show(run)

    assert rows == [*drawn["rows"]]
    assert [lane["id"] for lane in whole["lanes"]] == [lane["id"] for lane in drawn["lanes"]]
    assert whole["kinds"] == "".join(row["row"][0] for row in rows)
    assert (len(steps), steps[0]["position"], steps[-1]["position"]) == (
        whole["steps"],
        whole["first"],
        whole["last"],
    )


def test_a_place_of_a_run_is_said_in_words_and_counted_in_its_events(served: Served) -> None:
    run = the_exchange(served)
    found = asked(served, "place", run=run, at="turn:2")
    steps = asked(served, "steps", run=run)["steps"]

    assert found["place"]["text"] == "after turn 2: research has answered, main has not yet"
    assert found["next"]["text"] == "main is asked for turn 3"
    assert steps[found["index"] - 1]["position"] == found["place"]["position"]


def test_an_event_has_its_payload_and_hashes_that_hold(served: Served) -> None:
    (event,) = asked(served, "events", kind="loop_ended", limit=1)["events"]
    whole = asked(served, "event", at=event["position"])

    ended = whole["data"]["then"]["loopEnded"]
    assert (ended["reason"], ended["turns"]) == ("turn_limit", 5)
    assert whole["holds"] is True
    assert len(whole["hash"]) == len(whole["prev"]) == 64
    assert asked(served, "event", at=whole["linkedTo"])["hash"] == whole["prev"]


@pytest.mark.clause("VIS-4")
def test_receipts_of_looks_are_left_out_of_the_log_where_nobody_asks_for_them(served: Served) -> None:
    system, _ = served
    for number in range(3):
        asked(served, "search", words=f"a look of its own {'x' * (353 + number)}")
    until(lambda: len(receipts_of(system, '"characters":37')) == 3)

    everything = [event["kind"] for event in asked(served, "events", limit=500)["events"]]
    without = [event["kind"] for event in asked(served, "events", limit=500, receipts="false")["events"]]

    assert without == [kind for kind in everything if kind != "access_recorded"]
    assert len(everything) >= len(without) + 3


def test_the_whole_log_is_verified_and_says_what_it_rests_on(served: Served) -> None:
    found = asked(served, "integrity", verify="true")

    assert (found["ok"], found["findings"]) == (True, [])
    assert 0 < found["verifiedTo"] <= found["head"]
    assert found["unproven"]


@pytest.mark.parametrize("question", ["integrity", "settings"])
def test_what_is_of_the_whole_host_is_the_operators(served: Served, question: str) -> None:
    with served[1].http(READER) as client:
        answer = client.get(f"/debug/api/{question}")

    assert (answer.status_code, answer.json()["error"]["type"]) == (403, "forbidden")
    assert asked(served, question)


@pytest.mark.clause("VIS-6")
def test_a_limited_credential_sees_its_sessions_alone(served: Served) -> None:
    """The reader may act as main's sessions: what is research's own is as if it were not there."""
    everything = asked(served, "runs")["runs"]
    seen = asked(served, "runs", token=READER)["runs"]
    events = asked(served, "events", token=READER, limit=500)["events"]

    assert {run["id"] for run in seen} < {run["id"] for run in everything}
    assert all(any(lane["id"].startswith("agent:main:") for lane in run["lanes"]) for run in seen)
    assert not [event for event in events if event["stream"] == "session:agent:research:main"]
    assert {
        row["canonical"].split(":")[1] for row in asked(served, "sessions", token=READER)["sessions"]
    } == {"main"}
    assert {row["sessionKey"] for row in asked(served, "deliveries", token=READER)["deliveries"]} == {
        "agent:main:main"
    }
    with served[1].http(READER) as client:
        answer = client.get("/debug/api/state", params={"of": "agent:research:main"})
    assert answer.status_code == 403


@pytest.mark.clause("VIS-4")
def test_what_shows_a_session_leaves_a_receipt_and_what_shows_none_leaves_none(served: Served) -> None:
    system, _ = served
    run = the_exchange(served)[:12]  # a view of its own: other tests look at the run, too

    asked(served, "integrity")
    asked(served, "run", token=READER, run=run)
    until(lambda: receipts_of(system, f'"{run}"'))

    assert receipts_of(system, f'"{run}"') == ["debug.run"]
    assert "debug.integrity" not in receipts_of(system, "")


def receipts_of(system: SessionSystem, asked_for: str) -> list[str]:
    """Return of which questions there are receipts that have a text among what was asked for."""
    return [
        one.event.tool
        for one in system.log.all()
        if isinstance(one.event, AccessRecorded) and asked_for in one.event.filters
    ]


@pytest.mark.clause("VIS-4")
def test_a_page_that_asks_again_and_again_leaves_one_receipt_for_a_view_of_a_place(served: Served) -> None:
    """Of a run: what is asked for its parts and for the way to a place is one view; what stood at a place is one a place."""
    system, _ = served
    run = the_exchange(served)[:16]  # a view of its own: other tests look at the run, too

    for at in ("turn:1", "turn:2", "turn:1"):
        asked(served, "run", run=run)
        asked(served, "steps", run=run)
        asked(served, "rows", run=run)
        asked(served, "place", run=run, at=at)
        asked(served, "state", of=run, at=f"{run}@{at}")
    asked(served, "lens", run=run)
    until(lambda: "debug.lens" in receipts_of(system, f'"{run}"'))

    assert receipts_of(system, f'"{run}"') == ["debug.run", "debug.state", "debug.state", "debug.lens"]


@pytest.mark.parametrize(
    ("question", "given", "said"),
    [
        ("run", {"run": "nothing"}, "run: no exchange, spawn or run is called 'nothing'"),
        ("runs", {"limit": "many"}, "Expected `int"),
        ("runs", {"cursor": "x"}, "cursor: it is no cursor"),
        ("events", {"kind": "no_such"}, "kind: no event is called 'no_such'"),
        ("place", {"at": "noon"}, "at: 'noon'"),
        ("event", {"at": "0"}, "at: there is no event"),
        ("lens", {}, "Missing required query parameter 'run'"),
        ("runs", {"sesion": "agent:main:main"}, "'sesion' means nothing here, give agent, at, channel"),
        ("about", {"at": "5"}, "'at' means nothing here, there is nothing to give"),
        ("live", {"since": "5"}, "'since' means nothing here, give after"),
        ("file", {"run": "x", "what": "log", "form": "zip"}, "'form' means nothing here"),
    ],
)
def test_what_can_not_be_asked_is_refused_in_words(
    served: Served, question: str, given: dict[str, str], said: str
) -> None:
    with served[1].http() as client:
        answer = client.get(f"/debug/api/{question}", params=given)

    assert answer.status_code == 400
    assert said.replace("`", "") in answer.json()["error"]["message"]


def test_every_question_is_described_with_its_arguments(served: Served) -> None:
    with served[1].http(None) as client:
        paths = client.get("/openapi.json").json()["paths"]
    described = {
        path.removeprefix("/debug/api/"): each.get("get", {})
        for path, each in paths.items()
        if "/debug/" in path
    }

    assert {
        "about",
        "live",
        "run",
        "runs",
        "rows",
        "steps",
        "state",
        "lens",
        "why",
        "search",
    } <= described.keys()
    state = {one["name"]: one for one in described["state"]["parameters"]}
    assert {"of", "at", "from", "to", "as", "limit", "messages", "fork"} == state.keys()
    assert all(one.get("description") for each in described.values() for one in each.get("parameters", ()))


def test_who_asks_too_much_waits_and_then_goes_on() -> None:
    now = [0.0]
    rates = Rates(lambda: now[0], burst=3, a_second=2)

    assert [rates.take("ann") > 0 for _ in range(5)] == [False, False, False, True, True]
    assert rates.take("ben") == 0
    now[0] = 0.5
    assert rates.take("ann") == 0
    assert rates.take("ann") > 0


def test_a_flood_of_questions_is_told_to_wait(served: Served) -> None:
    system, gateway = served
    known, gateway.door.questions = gateway.door.questions, Rates(lambda: 0.0, burst=2)
    try:
        with gateway.http() as client:
            answers = [client.get("/debug/api/about") for _ in range(3)]
    finally:
        gateway.door.questions = known

    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert int(answers[-1].headers["retry-after"]) >= 1
    assert system.log.head() > 0


def test_what_comes_is_told_by_position_and_goes_on_behind_the_last_one(served: Served) -> None:
    system, gateway = served
    head = system.log.head()
    with (
        gateway.http() as client,
        client.stream("GET", "/debug/api/live", headers={"last-event-id": str(head)}) as answer,
    ):
        system.inbound(
            channel="telegram", chat_id="ada", text="still there?", sender="ada", agent_id="main", wait=20
        )
        lines = answer.iter_lines()
        told = next(line for line in lines if line.startswith("id: "))

    assert int(told.removeprefix("id: ")) > head


@pytest.mark.clause("VIS-4")
@pytest.mark.clause("HIST-5")
def test_a_secret_is_hidden_whoever_looks_and_revealing_it_leaves_a_receipt_each_time(served: Served) -> None:
    system, gateway = served
    secret = "sk-proj-" + "a1B2c3D4e5F6g7H8" * 3
    told: dict[str, Any] = {"channel": "telegram", "chat_id": "ada", "sender": "ada", "agent_id": "main"}
    system.inbound(text=f"The key is {secret}.", wait=20, **told)
    (event, *_) = [one for one in system.log.all() if secret in str(one.event)]

    shown = asked(served, "event", at=event.position)
    state = asked(served, "state", of="agent:main:main")
    with gateway.http() as client:
        revealed = client.post("/debug/api/reveal", json={"at": event.position}).json()
        again = client.post("/debug/api/reveal", json={"at": event.position}).status_code
    with gateway.http(READER) as client:
        refused = client.post("/debug/api/reveal", json={"at": event.position}).status_code
    asked_for = f'{{"at":{event.position}}}'
    until(lambda: receipts_of(system, asked_for).count("debug.reveal") == 2)

    assert shown["redacted"] is True
    assert secret not in str(shown) + str(state) + str(asked(served, "events", limit=500))
    assert secret in str(revealed)
    assert (again, refused) == (200, 403)


@pytest.mark.clause("VIS-4")
def test_an_event_of_an_exchange_leaves_a_receipt_though_its_stream_is_no_sessions(served: Served) -> None:
    """What an exchange says is of its sessions: revealed, or asked for, it is recorded like a message of theirs."""
    system, gateway = served
    (event, *_) = [one for one in system.log.all() if one.kind == "exchange_accepted"]
    with gateway.http() as client:
        client.post("/debug/api/reveal", json={"at": event.position}).raise_for_status()
    until(lambda: receipts_of(system, f'{{"at":{event.position}}}'))

    assert receipts_of(system, f'{{"at":{event.position}}}') == ["debug.reveal"]


@pytest.mark.clause("ERASE-1")
def test_what_was_erased_is_in_no_drawing_that_was_made_before() -> None:
    with played() as served:
        run, words = the_exchange(served), "Up to 3.5 tonnes"
        assert words in str(asked(served, "rows", run=run))
        served[0].erase("agent:research:main")
        assert words not in str(asked(served, "rows", run=run))
        assert words not in str(asked(served, "runs"))
