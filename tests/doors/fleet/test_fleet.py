"""A fleet of logs: which there are, how each stands, whether each is as it was written, moves and upgrades."""

import json
import stat
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from intersession import Fleet, FleetLog, FleetRefused, NoSuchStore, SessionSystem, StoreLocked, echo
from intersession.fleet.register import Register
from intersession_events.basics.machine import VERSION
from intersession_events.copies.migrating import migrate
from intersession_events.log.work_queue import Offer, Worker
from intersession_events.proofs.signatures import NamedKey
from intersession_events.stores.hosts.announcing import this_host
from intersession_events.stores.hosts.host import HostKind
from intersession_events.stores.opened import open_log
from intersession_projections.views.inline_views import inline_views
from support.any_log import Logs, changed_behind
from support.checkpointed import key_of
from support.doors.command_line import ran
from support.log_drafts import anywhere, said
from support.running import WAIT

OLD_VIEW = "UPDATE inline_views SET shape = shape - 1 WHERE name = 'run_outcomes'"
"""Leaves a log as a version with another view of runs has left it."""


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path / "fleet.json")


@pytest.fixture
def at(logs: Logs, tmp_path: Path) -> Callable[[str], str]:
    """Where the log of a name lies."""
    return lambda name: logs.at(tmp_path, name)


Stores = Callable[[str], str]


def spoken(url: str, *texts: str) -> None:
    """Let a host answer on a log."""
    with SessionSystem(url, agents={"main": echo("heard: ")}) as system:
        for text in texts:
            system.inbound(channel="telegram", chat_id="1", sender="ada", text=text, wait=WAIT)


@pytest.mark.clause("FLEET-1")
def test_a_fleet_names_logs_by_store_and_id(fleet: Fleet, at: Stores) -> None:
    added = fleet.add("acme", at("acme"), create=True)
    fleet.add("zoo", at("zoo"), create=True)

    with open_log(at("acme"), read_only=True) as log:
        assert added.log_id == log.log_id
    assert list(fleet.logs) == ["acme", "zoo"]
    assert stat.S_IMODE(fleet.path.stat().st_mode) == 0o600
    assert fleet.remove("acme") == added
    assert list(Fleet(fleet.path).logs) == ["zoo"]
    open_log(at("acme"), read_only=True).close()  # the log itself is left


@pytest.mark.clause("FLEET-1")
def test_what_can_not_be_added_is_refused_and_nothing_is_changed(fleet: Fleet, at: Stores) -> None:
    fleet.add("acme", at("acme"), create=True)
    before = fleet.path.read_bytes()

    for name, store, problem in (
        ("acme", at("other"), "take another name"),
        ("again", at("acme"), "which is there as 'acme'"),
        ("Acme Ltd", at("other"), "is no name of a log"),
        ("a" * 65, at("other"), "at most 64"),
        ("", at("other"), "is no name of a log"),
        ("memory", ":memory:", "name a file"),
    ):
        with pytest.raises(FleetRefused, match=problem):
            fleet.add(name, store, create=name == "acme")
    with pytest.raises(NoSuchStore):
        fleet.add("typo", at("typo"))
    with pytest.raises(FleetRefused, match=r"names no log 'nobody'; there are acme"):
        fleet.remove("nobody")
    with pytest.raises(NoSuchStore):
        open_log(at("other"), read_only=True)  # none was made for a name that is taken

    assert fleet.path.read_bytes() == before


@pytest.mark.clause("FLEET-1")
def test_what_a_host_gives_is_looked_at(fleet: Fleet, at: Stores) -> None:
    odd: Any = 5
    for ask in (
        lambda: fleet.add(odd, at("acme")),
        lambda: fleet.status(at_once=odd * 1.5),
        lambda: fleet.status(at_once=65),
        lambda: fleet.verify(["nobody"]),
        lambda: fleet.migrate(odd, at("new")),
    ):
        with pytest.raises(FleetRefused):
            ask()


@pytest.mark.clause("FLEET-1")
@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "{",
        '{"logs": []}',
        '{"logs": {"a": "sqlite:///a.db"}}',
        '{"logs": {"a": {"store": "a.db"}}}',
        '{"logs": {"a": {"store": "a.db", "logId": "x", "tenant": 1}}}',
        '{"logs": {"../a": {"store": "a.db", "logId": "x"}}}',
        '{"tenants": {}}',
        "\x00",
        "[" * 100_000,
    ],
)
def test_what_is_no_file_of_a_fleet_is_refused(fleet: Fleet, text: str) -> None:
    fleet.path.write_text(text, encoding="utf-8")

    for ask in (lambda: fleet.logs, fleet.status, lambda: fleet.remove("a")):
        with pytest.raises(FleetRefused, match=r"fleet\.json|name of a log"):
            ask()
    assert fleet.path.read_text(encoding="utf-8") == text


@pytest.mark.clause("FLEET-1")
def test_two_that_add_at_once_lose_none(fleet: Fleet) -> None:
    register = Register(fleet.path)

    def add(number: int) -> None:
        with register.changed() as logs:
            logs[f"log{number}"] = FleetLog(store=f"/srv/{number}.db", log_id=f"{number}")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(40)))

    assert sorted(fleet.logs) == sorted(f"log{number}" for number in range(40))


@pytest.mark.clause("FLEET-1")
@given(st.lists(st.tuples(st.booleans(), st.sampled_from("abc"))))
def test_a_file_says_what_was_added_and_not_removed(changes: list[tuple[bool, str]]) -> None:
    expected: dict[str, FleetLog] = {}
    with tempfile.TemporaryDirectory() as folder:
        register = Register(Path(folder) / "fleet.json")
        for number, (is_added, name) in enumerate(changes):
            entry = FleetLog(store=f"/{name}.db", log_id=f"{number}")
            with register.changed() as logs:
                for known in (logs, expected):
                    if is_added:
                        known[name] = entry
                    else:
                        known.pop(name, None)

        assert list(register.logs().items()) == sorted(expected.items())


@pytest.mark.clause("FLEET-2")
def test_a_log_says_who_writes_it_and_how_far_it_is(fleet: Fleet, at: Stores) -> None:
    spoken(at("idle"), "one")
    fleet.add("idle", at("idle"))
    with SessionSystem(at("live"), agents={"main": echo()}) as system:
        fleet.add("live", at("live"))
        idle, live = fleet.status()
        with open_log(at("idle"), read_only=True) as log:
            *_, last = log.all()

        assert (idle.name, idle.position) == ("idle", last.position)
        assert (idle.last_event, idle.version) == (last.time, VERSION)
        assert (idle.writer, idle.open_runs, idle.problems) == (None, 0, [])
        assert live.writer is not None
        assert (live.epoch, live.log_id) == (system.log.epoch, system.log.log_id)


@pytest.mark.clause("FLEET-2")
def test_one_that_is_away_or_is_another_one_stops_none_of_the_others(
    fleet: Fleet, at: Stores, tmp_path: Path
) -> None:
    for name in ("acme", "gone", "swapped"):
        fleet.add(name, at(name), create=True)
    logs = json.loads(fleet.path.read_text(encoding="utf-8"))
    logs["logs"]["gone"]["store"] = str(tmp_path / "nowhere.db")
    logs["logs"]["swapped"]["store"] = logs["logs"]["acme"]["store"]
    fleet.path.write_text(json.dumps(logs), encoding="utf-8")
    done: list[tuple[int, int]] = []

    acme, gone, swapped = fleet.status(on_done=lambda *of: done.append(of))

    assert acme.problems == []
    assert ([one.code for one in gone.problems], gone.is_wrong) == (["away"], True)
    assert [one.code for one in swapped.problems] == ["another_log"]
    assert done == [(1, 3), (2, 3), (3, 3)]
    assert [one.state for one in fleet.upgrade()] == ["current", "refused", "refused"]
    refused = ran("fleet", "status", "--fleet", fleet.path, "--json")
    assert (refused.exit_code, refused.json["problems"]) == (1, {"away": 1, "another_log": 1})


@pytest.mark.clause("FLEET-2")
def test_hosts_beside_the_writer_and_calls_that_wait_are_counted(fleet: Fleet, at: Stores) -> None:
    offer = Offer(kind="agent", id="run", attempt=1, name="research", stream="s", version=1, secret="s")
    with open_log(at("acme"), inline=inline_views()) as log:
        fleet.add("acme", at("acme"))
        kinds: list[HostKind] = ["standby", "standby", "door"]
        for kind in kinds:
            log.hosts.announce(this_host(kind))
        log.work.to_take.announce(
            Worker(name="w", host="h", version="1", agents={"other": ""}, channels={}, seats=1)
        )
        log.work.offer([offer])

        (acme,) = fleet.status()

    assert (acme.standbys, acme.doors, acme.workers) == (2, 1, 1)
    assert acme.waiting_calls == {"research": 1}
    assert [one.code for one in acme.problems] == ["no_worker"]  # as `doctor` says it


@pytest.mark.clause("FLEET-2")
def test_runs_that_nobody_goes_on_with_are_told(fleet: Fleet, at: Stores) -> None:
    with SessionSystem(at("acme"), config={"agents": {"list": [{"id": "main"}]}}) as system:
        system.inbound(channel="telegram", chat_id="1", sender="ada", text="Anybody?")
    fleet.add("acme", at("acme"))

    (acme,) = fleet.status()

    assert (acme.open_runs, [one.code for one in acme.problems]) == (1, ["nobody_at_work"])
    assert "nobody_at_work: 1 run open" in ran("fleet", "status", "--fleet", fleet.path).out


@pytest.mark.clause("FLEET-3")
@pytest.mark.long
def test_each_log_is_verified_and_the_altered_one_is_named(fleet: Fleet, at: Stores) -> None:
    spoken(at("acme"), "one")
    with open_log(at("zoo")) as log:
        log.append_now([anywhere("s", said("I owe you 5"))])
    for name in ("acme", "zoo"):
        fleet.add(name, at(name))
    changed_behind(at("zoo"), "UPDATE stored_events SET originator_version = 7")

    done = ran("fleet", "verify", "--all", "--events-only", "--fleet", fleet.path, "--json")

    assert done.exit_code == 4
    assert (done.json["verified"], done.json["notVerified"], done.json["away"]) == (1, 1, 0)
    acme, zoo = done.json["logs"]
    assert (acme["ok"], zoo["ok"], zoo["findings"] > 0) == (True, False, True)


@pytest.mark.clause("FLEET-3")
def test_a_log_that_can_not_be_verified_is_no_proof(fleet: Fleet, at: Stores) -> None:
    fleet.add("acme", at("acme"), create=True)
    fleet.add("other", at("other"), create=True)
    text = fleet.path.read_text(encoding="utf-8")
    with open_log(at("acme"), read_only=True) as log:
        fleet.path.write_text(
            text.replace(log.log_id, "6a4d280b-fc53-4c01-9c8c-4d77a60bfa97"), encoding="utf-8"
        )

    done = ran("fleet", "verify", "acme", "--events-only", "--fleet", fleet.path, "--json")

    assert (done.exit_code, done.json["away"], done.json["logs"][0]["code"]) == (3, 1, "another_log")
    witness = str(NamedKey("w.example", key_of(1).public, is_witness=True))
    unseen = ran(
        "fleet",
        "verify",
        "other",
        "--events-only",
        "--trust",
        witness,
        "--quorum",
        "2",
        "--fleet",
        fleet.path,
        "--json",
    )
    assert (unseen.exit_code, unseen.json["logs"][0]["code"]) == (3, "bad_key")
    for wrong in (("verify",), ("verify", "acme", "--all"), ("upgrade",)):
        assert ran("fleet", *wrong, "--fleet", fleet.path).exit_code == 2
    refused = ran("fleet", "verify", "acme", "--at-once", "0", "--fleet", fleet.path, "--json")
    assert (refused.exit_code, refused.json["code"]) == (1, "fleet_refused")


@pytest.mark.clause("FLEET-4")
def test_a_log_is_moved_and_the_fleet_knows_where(fleet: Fleet, at: Stores) -> None:
    spoken(at("acme"), "one")
    before = fleet.add("acme", at("acme"))
    with SessionSystem(at("acme"), agents={"main": echo()}), pytest.raises(StoreLocked):
        fleet.migrate("acme", at("new"))
    assert fleet.logs["acme"] == before

    moved = ran("fleet", "migrate", "acme", at("new"), "--fleet", fleet.path, "--json")

    assert (moved.exit_code, moved.json["logId"]) == (0, before.log_id)
    assert fleet.logs["acme"].store != before.store
    (acme,) = fleet.status()
    assert (acme.log_id, acme.position, acme.problems) == (before.log_id, moved.json["position"], [])


@pytest.mark.clause("FLEET-4")
def test_a_move_that_ended_before_the_file_knew_goes_on(fleet: Fleet, at: Stores) -> None:
    spoken(at("acme"), "one")
    fleet.add("acme", at("acme"))
    migrate(at("acme"), at("new"))  # killed here

    moved = fleet.migrate("acme", at("new"))

    assert moved.resumed_at == moved.head.position
    assert [log.problems for log in fleet.status()] == [[]]


@pytest.mark.clause("FLEET-5")
def test_an_upgrade_makes_anew_what_another_version_made_and_goes_on_where_it_ended(
    fleet: Fleet, at: Stores
) -> None:
    for name in ("acme", "busy", "zoo"):
        spoken(at(name), "one")
        fleet.add(name, at(name))
    for name in ("acme", "busy"):
        changed_behind(at(name), OLD_VIEW)
    assert [[one.code for one in log.problems] for log in fleet.status()] == [["outdated"], ["outdated"], []]

    with open_log(at("busy")):  # a writer that keeps no views: its host would make them
        found = fleet.upgrade()

    assert [(one.name, one.state) for one in found] == [
        ("acme", "upgraded"),
        ("busy", "written"),
        ("zoo", "current"),
    ]
    assert found[0].outdated == ["run_outcomes"]
    again = ran("fleet", "upgrade", "--all", "--fleet", fleet.path, "--json")
    assert (again.exit_code, [one["state"] for one in again.json["logs"]]) == (
        0,
        ["current", "upgraded", "current"],
    )
    assert [log.problems for log in fleet.status()] == [[], [], []]


@pytest.mark.clause("FLEET-5")
@pytest.mark.postgres
def test_functions_of_another_version_are_outdated(fleet: Fleet, postgres_url: str) -> None:
    fleet.add("acme", postgres_url, create=True)
    changed_behind(postgres_url, "COMMENT ON FUNCTION append_events IS 'earlier'")

    (acme,) = fleet.status()

    assert acme.outdated == ["functions"]
    assert [one.state for one in fleet.upgrade()] == ["upgraded"]
    assert fleet.status()[0].outdated == []


@pytest.mark.postgres
def test_no_answer_shows_a_password(fleet: Fleet, postgres_url: str) -> None:
    secret = postgres_url.replace("postgres@", "postgres:s3cr3t@", 1)
    fleet.add("acme", secret, create=True)

    shown = [ran("fleet", *words, "--fleet", fleet.path) for words in (("list",), ("status", "--json"))]

    assert "s3cr3t" in fleet.path.read_text(encoding="utf-8")
    assert "s3cr3t" not in f"{shown}{fleet.logs}"


@pytest.mark.clause("FLEET-6")
@pytest.mark.parametrize(
    "typed",
    [
        "acme:agent:main:main",
        "ACME:Agent:main:main",
        "acme/agent:main:main",
        "postgresql://db/bots?schema=acme",
    ],
)
def test_a_session_of_another_log_is_refused_in_words(at: Stores, typed: str) -> None:
    with SessionSystem(at("log"), agents={"main": echo()}) as system:
        system.inbound(channel="telegram", chat_id="1", sender="ada", text="Hello", wait=WAIT)
        answer = system.tools("agent:main:main").call(
            "sessions_send", {"sessionKey": typed, "message": "Hello"}
        )

    assert (answer["status"], answer["code"]) == ("error", "invalid_key")
    assert "logs are separate" in answer["error"]


@pytest.mark.clause("FLEET-6")
def test_an_id_that_only_looks_so_is_a_key(at: Stores) -> None:
    with SessionSystem(at("log"), agents={"main": echo()}) as system:
        told = system.tools().call("sessions_history", {"sessionKey": "telegram:group:a/agent"})

    assert told["code"] == "not_visible"


def test_people_see_a_line_for_each_log(fleet: Fleet, at: Stores) -> None:
    assert "names no log" in ran("fleet", "list", "--fleet", fleet.path).out
    assert "added: acme" in ran("fleet", "add", "acme", at("acme"), "--create", "--fleet", fleet.path).out
    assert "acme" in ran("fleet", "list", "--fleet", fleet.path).out
    told = ran("fleet", "status", "--fleet", fleet.path).out
    assert told.startswith("LOG ")
    assert "acme  none    0         0" in told
    assert ran("fleet", "upgrade", "acme", "--fleet", fleet.path).out == "of this version: 1 of 1 log\n"
    assert "removed: acme" in ran("fleet", "remove", "acme", "--fleet", fleet.path).out


@pytest.mark.clause("FLEET-7")
def test_how_logs_stand_is_written_as_metrics(fleet: Fleet, at: Stores, tmp_path: Path) -> None:
    fleet.add("acme", at("acme"), create=True)
    file = tmp_path / "fleet.prom"
    lost = msgspec.json.decode(fleet.path.read_bytes())
    lost["logs"]["gone"] = {"store": str(tmp_path / "gone.db"), "logId": "0" * 8}
    fleet.path.write_bytes(msgspec.json.encode(lost))

    ran("fleet", "status", "--metrics", file, "--fleet", fleet.path)
    done = ran("fleet", "status", "--metrics", file, "--fleet", fleet.path)  # in the place of the first
    found = {
        (sample.name.removeprefix("intersession_fleet_"), sample.labels["log"]): sample.value
        for family in text_string_to_metric_families(file.read_text())
        for sample in family.samples
    }
    refused = ran("fleet", "status", "--metrics", tmp_path / "no" / "where", "--fleet", fleet.path)

    assert done.exit_code == 1
    assert (found["up", "acme"], found["up", "gone"]) == (1, 0)
    assert (found["position", "acme"], found["problems", "gone"]) == (fleet.status(["acme"])[0].position, 1)
    assert ("position", "gone") not in found
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    assert refused.exit_code == 3
    assert [path.name for path in tmp_path.iterdir() if "prom" in path.name] == ["fleet.prom"]
