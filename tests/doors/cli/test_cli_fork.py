"""`intersession fork` and `forks`, and forks wherever a run is named."""

import json
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from support.any_log import changed_behind
from support.doors.command_line import DemoLog, ran
from support.every_day import every_day


class Forked(NamedTuple):
    """A log, an exchange of it, and two forks of that: of its second turn, and of the first turn of that fork."""

    path: Path
    run: str
    turn: int
    fork: str
    second: str


@pytest.fixture(scope="module")
def forked(demo_log: DemoLog, tmp_path_factory: pytest.TempPathFactory) -> Forked:
    path = Path(shutil.copy(demo_log.path, tmp_path_factory.mktemp("forked") / "demo.db"))
    made = ran("fork", f"{demo_log.exchange}@turn:2", "--no-run", "--store", path, "--json").json
    again = ran(
        "fork", made["fork"], "--at", f"{made['fork'][:10]}@turn:1", "--no-run", "--store", path, "--json"
    )
    return Forked(path, demo_log.exchange, made["from"]["position"], made["fork"], again.json["fork"])


@pytest.mark.clause("FORK-1", "FORK-9")
def test_a_fork_is_made_beside_the_log_which_is_only_read(demo_log: DemoLog, tmp_path: Path) -> None:
    path = Path(shutil.copy(demo_log.path, tmp_path / "demo.db"))
    before = path.read_bytes()

    made = ran(
        "fork",
        demo_log.exchange[:8],
        "--at",
        f"{demo_log.exchange}@reply",
        "--no-run",
        "--store",
        path,
        "--json",
    )

    assert made.exit_code == 0
    assert set(made.json) == {"fork", "store", "from", "run", "edits"}
    assert (made.json["run"], made.json["edits"]) == (demo_log.exchange, [])
    assert made.json["store"] == str(tmp_path / "demo.db.forks" / f"{made.json['fork']}.db")
    assert path.read_bytes() == before
    assert "forked: " in ran("fork", demo_log.exchange, "--no-run", "--store", path).out


@pytest.mark.clause("FORK-2")
def test_a_fork_of_what_was_changed_is_refused_with_the_position(demo_log: DemoLog, tmp_path: Path) -> None:
    path = Path(shutil.copy(demo_log.path, tmp_path / "demo.db"))
    with closing(sqlite3.connect(path)) as log, log:
        ((at,),) = log.execute(
            "SELECT rowid FROM stored_events WHERE topic='turn_ended.1' LIMIT 1"
        ).fetchall()
        log.execute("UPDATE stored_events SET topic='turn_requested.1' WHERE rowid=?", (at,))

    refused = ran("fork", demo_log.exchange, "--at", at, "--no-run", "--store", path, "--json")
    assert (refused.exit_code, refused.json["code"]) == (4, "corrupt")
    assert f"position {at}, " in refused.json["error"]
    assert "fork before that position; `intersession verify` shows all" in refused.json["error"]
    assert not list(tmp_path.glob("demo.db.forks/*"))
    assert ran("fork", demo_log.exchange, "--at", at - 1, "--no-run", "--store", path).exit_code == 0


@pytest.mark.clause("FORK-9")
@pytest.mark.parametrize(
    "command",
    every_day(
        {
            " ".join(command): (command,)
            for command in [
                ("show", "{fork}"),
                ("show", "{fork}@turn:1"),
                ("show", "{short}", "--at", "{fork}@turn:1"),
                ("replay", "{fork}"),
                ("replay", "{short}@turn:1"),
                ("lens", "{fork}@turn:1"),
                ("lens", "{fork}@turn:2", "--than", "{fork}@turn:1"),
                ("state", "{fork}"),
                ("state", "--at", "{short}@turn:1"),
                ("state", "--from", "{fork}@turn:1", "--to", "{fork}@turn:2"),
                ("why", "{fork}@turn:2"),
                ("why", "{fork}", "--forward"),
                ("smells", "{fork}"),
                ("origin", "ferry", "--run", "{fork}"),
            ]
        },
        "show {fork}",
        "replay {short}@turn:1",
        "lens {fork}@turn:2 --than {fork}@turn:1",
        "state --at {short}@turn:1",
        "why {fork}@turn:2",
    ),
)
def test_a_fork_is_named_by_its_id_wherever_a_run_is(forked: Forked, command: tuple[str, ...]) -> None:
    given = [part.format(fork=forked.fork, short=forked.fork[:9]) for part in command]
    inside = [part.format(fork=forked.run, short=forked.run) for part in command]
    fork = forked.path.parent / "demo.db.forks" / f"{forked.fork}.db"

    asked = ran(*given, "--store", forked.path, "--json")
    directly = ran(*inside, "--store", fork, "--json")

    assert asked.exit_code == directly.exit_code == 0, asked.err
    assert asked.json == directly.json


@pytest.mark.clause("FORK-9", "SEAL-3")
def test_a_test_is_made_of_a_fork_by_its_id(forked: Forked, tmp_path: Path) -> None:
    asked = ran("export-test", forked.fork, "-o", tmp_path / "test_it.py", "--store", forked.path, "--json")
    assert (asked.exit_code, asked.json["run"]) == (0, forked.run), asked.err
    assert forked.fork in (tmp_path / "test_it.jsonl").read_text(encoding="utf-8").partition("\n")[0]


@pytest.mark.clause("FORK-9", "DIFF-1")
def test_a_run_is_compared_with_its_fork_and_forks_with_each_other(forked: Forked) -> None:
    with_fork = ran("diff", forked.run, forked.fork, "--store", forked.path, "--json")
    of_forks = ran("diff", forked.fork[:8], forked.second[:8], "--store", forked.path, "--json")

    assert (with_fork.exit_code, with_fork.json["firstDivergence"]["turn"]) == (1, "turn:3")
    assert (of_forks.exit_code, of_forks.json["firstDivergence"]["turn"]) == (1, "turn:2")
    assert ran("diff", f"{forked.run}@turn:2", forked.fork, "--store", forked.path).exit_code == 0


@pytest.mark.clause("FORK-9")
def test_forks_are_listed_with_their_parent_place_edits_and_outcome(forked: Forked) -> None:
    first, second = ran("forks", "--store", forked.path, "--json").json["forks"]

    assert {"id", "parent", "place", "edits", "outcome"} <= set(first)
    assert (first["id"], first["place"]["position"], first["edits"]) == (forked.fork, forked.turn, [])
    assert set(first["place"]) == {"position", "eventId", "timeMs", "text"}
    assert (first["outcome"]["state"], first["outcome"]["turns"]) == ("open", 2)
    assert (second["id"], second["outcome"]["turns"]) == (forked.second, 1)
    assert len(ran("forks", forked.run[:8], "--store", forked.path, "--json").json["forks"]) == 2
    told = ran("forks", "--store", forked.path).out
    assert forked.fork in told
    assert "no edits; open" in told


@pytest.mark.clause("FORK-2")
def test_a_fork_is_verified_alone_and_with_its_source(forked: Forked, tmp_path: Path) -> None:
    mailed = Path(
        shutil.copy(forked.path.parent / "demo.db.forks" / f"{forked.fork}.db", tmp_path / "bug.db")
    )

    alone = ran("verify", "--store", mailed, "--json")
    both = ran("verify", "--store", mailed, "--source", forked.path, "--json")

    assert alone.exit_code == both.exit_code == 0
    (seen,) = alone.json["prefix"]
    assert seen["position"] == forked.turn
    assert any("is of the log" in said for said in alone.json["unproven"])
    assert not any("is of the log" in said for said in both.json["unproven"])
    changed_behind(mailed, "DELETE FROM stored_events WHERE rowid=(SELECT MIN(rowid) FROM stored_events)")
    found = ran("verify", "--store", mailed, "--source", forked.path, "--json")
    assert found.exit_code == 4
    other = ran("verify", "--store", forked.path, "--source", forked.path, "--json")
    assert (other.exit_code, other.json["counts"]) == (4, {"other_log": 1})


@pytest.mark.clause("FORK-9")
def test_a_fork_is_deleted_with_all_that_was_beside_it(demo_log: DemoLog, tmp_path: Path) -> None:
    path = Path(shutil.copy(demo_log.path, tmp_path / "demo.db"))
    made = ran("fork", demo_log.exchange, "--no-run", "--store", path, "--json").json
    kept = ran("fork", demo_log.exchange, "--no-run", "--store", path, "--json").json
    views = Path(f"{made['store']}.views")
    views.mkdir()
    (views / "usage.db").write_bytes(b"")

    done = ran("forks", "rm", made["fork"][:12], "--store", path, "--json")

    assert (done.exit_code, done.json["fork"]) == (0, made["fork"])
    assert [file.name for file in Path(kept["store"]).parent.iterdir()] == [f"{kept['fork']}.db"]
    assert ran("forks", "rm", made["fork"], "--store", path).exit_code == 2


@pytest.mark.clause("FORK-9")
def test_what_names_no_fork_or_several_is_refused_in_words(forked: Forked) -> None:
    unknown = ran("forks", "rm", "ffffffff-0000", "--store", forked.path)
    different = ran(
        "state", "--from", f"{forked.fork}@turn:1", "--to", f"{forked.second}@turn:1", "--store", forked.path
    )
    no_place = ran("fork", forked.run, "--at", "999999", "--no-run", "--store", forked.path, "--json")

    no_log = ran("forks", "--store", forked.path.parent / "none.db", "--json")

    assert (no_log.exit_code, json.loads(no_log.out)["code"]) == (3, "no_store")
    assert (unknown.exit_code, "no fork of" in unknown.err) == (2, True)
    assert (different.exit_code, "name one, or compare them" in different.err) == (2, True)
    assert (no_place.exit_code, json.loads(no_place.out)["code"]) == (1, "invalid_request")


@pytest.mark.clause("ERASE-1", "FORK-9")
def test_an_erasing_reaches_the_forks_beside_the_log(forked: Forked, tmp_path: Path) -> None:
    path = Path(shutil.copy(forked.path, tmp_path / "demo.db"))
    shutil.copytree(f"{forked.path}.forks", f"{path}.forks")

    told = ran("erase", "agent:research:main", "--yes", "--store", path, "--json").json

    assert {fork["fork"] for fork in told["forks"]} == {forked.fork, forked.second}
    assert all("fork" not in one for one in told["notReached"])


@pytest.mark.clause("FORK-7")
def test_a_fork_goes_on_under_the_settings_that_its_run_was_under(demo_log: DemoLog, tmp_path: Path) -> None:
    store = demo_log.copy(tmp_path)
    edits = ("--reply", "It was cancelled.", "--agent", "*=recorded")

    came = ran("fork", f"{demo_log.exchange}@reply", *edits, "--store", store, "--json")

    assert came.exit_code == 1
    assert '"reply":"It was cancelled."' in came.json["divergence"]["now"], "the send was not forbidden"


@pytest.mark.clause("FORK-4", "FORK-10")
def test_a_configuration_is_put_on_top_of_the_one_that_was_in_force(
    demo_log: DemoLog, tmp_path: Path
) -> None:
    path = Path(shutil.copy(demo_log.path, tmp_path / "demo.db"))
    file = tmp_path / "models.json5"
    file.write_text('{models: {providers: {local: {baseUrl: "http://127.0.0.1:9/v1", models: [{id: "m"}]}}}}')
    asked = ("fork", f"{demo_log.exchange}@start", "--agent", "*=recorded", "--store", path)

    as_it_was = ran(*asked).out.splitlines()[1]
    given = ran(*asked, "--config", file)

    assert given.out.splitlines()[1] == as_it_was
    assert "set otherwise than it was then: models.providers.local." in given.err
    file.write_text(
        "{tools: {agentToAgent: {enabled: false}}, session: {agentToAgent: {maxPingPongTurns: 1}}}"
    )
    changed = ran(*asked, "--config", file, "--json")
    assert "then: session.agentToAgent.maxPingPongTurns, tools.agentToAgent.enabled" in changed.err


@pytest.mark.ci
@pytest.mark.clause("FORK-8")
def test_forks_made_several_times_are_grouped_by_how_they_came_out(demo_log: DemoLog, tmp_path: Path) -> None:
    store = demo_log.copy(tmp_path)
    asked = ("fork", f"{demo_log.exchange}@turn:1", "--agent", "*=recorded", "--store", store)
    many = ("--times", "3", "--parallel", "2")

    (same,) = ran(*asked, *many, "--json").json["outcomes"]
    assert (same["count"], same["state"], len(set(same["forks"]))) == (3, "ended", 3)
    assert same["durationMs"] >= 0
    shown = ran(*asked, *many).out.splitlines()
    assert re.split(r" {2,}", shown[0]) == [
        *("times", "end", "turns", "tokens", "cost", "time"),
        *("one of them", "announced"),
    ]
    lines = [json.loads(line) for line in ran(*asked, *many, "--jsonl").out.splitlines()]
    assert [line["state"] for line in lines] == ["ended"] * 3
    assert {line["run"] for line in lines} == {demo_log.exchange}


@pytest.mark.clause("FORK-8")
def test_what_goes_wrong_alike_in_many_forks_is_told_once(demo_log: DemoLog, tmp_path: Path) -> None:
    store, script = demo_log.copy(tmp_path), tmp_path / "short.txt"
    script.write_text("No more.\n")
    asked = ("fork", f"{demo_log.exchange}@reply", "--agent", f"*=script:{script}", "--store", store)
    (once, many) = (ran(*asked, "--times", times).err.splitlines() for times in ("1", "3"))
    assert once
    assert {re.sub(r"[0-9a-f-]{36}", "", line) for line in many} == {
        re.sub(r"[0-9a-f-]{36}", "", line) for line in once
    }
    assert len(many) == len({re.sub(r"[0-9a-f-]{36}", "", line) for line in many})


@pytest.mark.clause("FORK-8")
def test_forks_that_are_only_made_are_all_named(demo_log: DemoLog, tmp_path: Path) -> None:
    store = demo_log.copy(tmp_path)
    asked = ("fork", f"{demo_log.exchange}@turn:1", "--no-run", "--times", "3", "--store", store)
    assert ran(*asked).out.count("forked: ") == 3
    (made,) = ran(*asked, "--json").json["outcomes"]
    assert (made["count"], made["state"], len(made["forks"])) == (3, "made", 3)


@pytest.mark.clause("FORK-8")
def test_an_answer_and_an_announce_of_a_fork_are_called_what_they_are(
    demo_log: DemoLog, tmp_path: Path
) -> None:
    store = demo_log.copy(tmp_path)
    (run, *_) = ran("runs", "--kind", "run", "--json", "--store", store).json["runs"]
    said = ("--reply", "No.", "--agent", "*=recorded", "--loose", "--store", store)
    assert "answers: No." in ran("fork", f"{run['id']}@reply", *said).out
    assert "would announce: No." in ran("fork", f"{demo_log.exchange}@announce", *said).out


@pytest.mark.clause("FORK-4")
def test_the_announce_of_a_spawn_is_replaced_like_any_answer(demo_log: DemoLog, tmp_path: Path) -> None:
    """What a spawn decides of its announce names no run."""
    store = demo_log.copy(tmp_path)
    (spawn,) = ran("runs", "--kind", "spawn", "--json", "--store", store).json["runs"]
    for edit, end in ((("--reply", "42 km"), "withheld"), (("--skip",), "silent"), (("--drop",), "withheld")):
        asked = ("fork", f"{spawn['id']}@announce", *edit, "--agent", "*=recorded", "--store", store)
        came = ran(*asked, "--json").json
        assert (came["state"], came["outcome"]["end"]) == ("ended", end)
        assert ("42 km" in str(came["outcome"]["announced"])) == (edit[0] == "--reply")


@pytest.mark.clause("FORK-4", "LIVE-1")
def test_a_fork_that_is_held_says_at_which_turn_and_what_releases_it(
    demo_log: DemoLog, tmp_path: Path
) -> None:
    store = demo_log.copy(tmp_path)
    edits = ("--set", "session.agentToAgent.hold=every-turn", "--agent", "*=recorded")
    came = ran("fork", f"{demo_log.exchange}@turn:1", *edits, "--store", store)

    assert came.exit_code == 0
    assert "held at turn 1" in came.out
    release = came.out[came.out.index("intersession release") :].split("\n")[0].split()[1:]
    assert ran(*release).exit_code == 0


@pytest.mark.clause("FORK-4")
def test_a_fork_tells_of_agents_that_are_not_known_and_of_settings_without_effect(
    demo_log: DemoLog, tmp_path: Path
) -> None:
    script = tmp_path / "script.txt"
    script.write_text("hello\n", encoding="utf-8")
    path = tmp_path / "log.db"
    shutil.copy(demo_log.path, path)
    given = ("--agent", f"newcomer=script:{script}", "--set", "session.agentToAgent.oneWay=[]", "--no-run")
    made = ran("fork", f"{demo_log.exchange}@turn:2", *given, "--store", str(path), "--json").json
    shown = ran("fork", f"{demo_log.exchange}@turn:2", *given, "--store", str(path)).out

    *_, newcomer, one_way = made["notes"]
    assert newcomer.startswith("agent 'newcomer': nobody was called that up to here")
    assert one_way.startswith(
        "--set session.agentToAgent.oneWay: what had begun before the cut goes on as it was"
    )
    assert f"  note: {newcomer}" in shown


@pytest.mark.clause("FORK-4")
@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("--times", "0"), "--times"),
        (("--times", "10001"), "--times"),
        (("--times", "1000000000"), "--times"),
        (("--parallel", "0"), "--parallel"),
        (("--parallel", "33"), "--parallel"),
        (("--agent", "main=recorded", "--agent", "main=os:path"), "--agent: 'main' is given twice"),
        (("--agent", "main=script:/dev/zero"), "it has more than 16777216 bytes"),
        (("--agent", "main=script:/nowhere"), "it can't be read (No such file or directory)"),
        (("--set", "models.providers.p.apiKey=sk-1"), "it is a secret"),
        (("--set", "channels.x.deliver=webhook:http://127.0.0.1:9/"), "it is a secret"),
        (("--agent", "main"), "--agent: 'main' is no pair"),
        (("--agent", "ghost=recorded"), "there is no such agent here; there are"),
        (("--agent", "main=nobody"), "give recorded, script:FILE, module:name"),
        (("--agent", "main=nobody/m"), "models.providers.nobody"),
        (("--agent", "main=os:path"), "it is a module and no agent"),
        (("--agent", "main=no.such:agent"), "it can't be loaded"),
        (("--agent", "main=script:{bad}"), "line 2: it is no JSON"),
        (("--agent", "main=script:{binary}"), "it is no UTF-8 text"),
        (("--agent", "main=script:{empty}"), "it has no line"),
        (("--agent", "main=script:{unknown}"), "line 1: Object contains unknown field `replay`"),
        (("--agent", "*=recorded", "--on-divergence", "perhaps"), "stop, live or script:FILE"),
        (("--agent", "*=recorded", "--on-divergence", "script:{bad}"), "line 2: it is no JSON"),
        (("--set", "session.nothing=1"), "session.nothing"),
        (("--inject", "agent:main:nobody=hi"), "no session 'agent:main:nobody' in the fork"),
        (("--deliver", "pigeon"), "channels.pigeon.deliver is not configured"),
        (("--reply", "x", "--skip"), "both replace"),
        (("--message", "x"), "RUN@start"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_a_fork_can_not_have_is_refused_in_a_line_and_leaves_nothing(
    scripts: dict[str, Path], forked: Forked, given: tuple[str, ...], says: str
) -> None:
    directory = Path(f"{forked.path}.forks")
    before = sorted(directory.iterdir())
    typed = [one.format(**scripts) for one in given]
    often = () if "--times" in given else ("--times", "2")
    refused = ran("fork", f"{forked.run}@turn:1", *typed, *often, "--store", forked.path)
    assert refused.exit_code in {1, 2}
    assert says in refused.err
    assert len(refused.err.splitlines()) == 1
    assert sorted(directory.iterdir()) == before


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("scripts")
    written = {
        "bad": b'{"reply": "a"}\nplain\n',
        "binary": b"\xff\xfe\x00",
        "empty": b"\n\n",
        "unknown": b'{"replay": "a"}\n',
    }
    for name, source in written.items():
        (folder / name).write_bytes(source)
    return {name: folder / name for name in written}


@pytest.mark.clause("FORK-7", "FORK-9")
def test_a_fork_that_left_its_recording_says_where_and_what_differs(
    demo_log: DemoLog, tmp_path: Path
) -> None:
    path = Path(shutil.copy(demo_log.path, tmp_path / "demo.db"))
    edits = ("--reply", "It was cancelled.", "--agent", "*=recorded", "--store", path)

    left = ran("fork", f"{demo_log.exchange}@turn:1", *edits)
    assert left.exit_code == 1
    assert "left the recording: " in left.out
    assert "  differs: message" in left.out
    assert "    now   user: It was cancelled." in left.out

    told = ran("fork", f"{demo_log.exchange}@turn:1", *edits, "--json").json
    parts = {part["part"]: part["now"] for part in told["divergence"]["differs"]}
    assert (parts["message"], told["divergence"]["goesOn"]) == ("user: It was cancelled.", False)

    listed = ran("forks", "--store", path)
    assert "diverged; " in listed.out
    assert "  left the recording at turn 2 of " in listed.out
    rows = ran("forks", "--store", path, "--json").json["forks"]
    (row,) = [row for row in rows if row["id"] == told["fork"]]
    assert (row["outcome"]["state"], row["outcome"]["left"]["turn"]) == ("diverged", 2)
    assert {part["part"] for part in row["outcome"]["left"]["differs"]} == set(parts)

    (often,) = ran("fork", f"{demo_log.exchange}@turn:1", *edits, "--times", 2, "--json").json["outcomes"]
    assert (often["count"], often["state"], often["left"]) == (2, "diverged", row["outcome"]["left"]["text"])
