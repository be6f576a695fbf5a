"""Sealed replay of forks that carry an import on: what was imported and what the fork added is given, the rest decided again."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from intersession import SessionSystem, Turn
from intersession_actors.hindsight.replaying.recordings import Recordings
from intersession_actors.hindsight.replaying.replayed import Replayed, replay_file
from intersession_events.basics.ids import derive
from intersession_events.facts import ForkEdit, LogOpened, RunQueued
from intersession_projections.questions.places.runs_named import Flow
from intersession_projections.views.flows.rows import Position
from support.every_day import every_day
from support.golden_logs import golden_logs
from support.resealed import read_lines, write_resealed
from support.running import SEES_ALL, WAIT

pytestmark = pytest.mark.clause("SEAL-4", "FORK-10")


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SessionSystem]:
    """Yield a host on a log into which another host's state was imported: one spawn, and one exchange of one turn."""
    (golden,) = [one for one in golden_logs() if one.name == "restricted"]
    with SessionSystem(
        golden.unpack(tmp_path_factory.mktemp("imported")), agents={}, config=SEES_ALL
    ) as system:
        yield system


def named(system: SessionSystem, kind: str) -> str:
    flows, all_of_it = system.service.flows, Position(0, system.log.head())
    if kind == "exchange":
        return flows.exchanges_at(all_of_it, 50)[0].exchange_id
    return flows.spawns_at(all_of_it, 50)[0].spawn_id


def says(turn: Turn) -> str:
    """Answer with the step, and with the message."""
    return f"{turn.step}: {turn.message}"


def replays(fork: SessionSystem, directory: Path) -> list[Replayed]:
    """Return what comes of a replay of all of a fork that was carried on, of its run, and of that run in a file."""
    assert fork.carried_on(WAIT).state == "ended"
    assert fork.log.forked is not None
    run = fork.log.forked.flow
    flow: Flow | None = fork.service.flows.exchange(run) or fork.service.flows.spawn(run)
    assert flow is not None
    file = directory / f"{fork.log.log_id}.jsonl"
    Recordings(fork.log).write(flow, file)
    return [fork.debug.replay(), fork.debug.replay(run), replay_file(file)]


def decided_behind_the_opening(fork: SessionSystem) -> int:
    """Return how many events of actors a fork has since it was first opened."""
    assert fork.log.forked is not None
    behind = list(fork.log.all(after=fork.log.forked.position))
    opened = next(one.position for one in behind if isinstance(one.event, LogOpened))
    return sum(one.position > opened and one.stream != "log" for one in behind)


@pytest.mark.parametrize(
    ("kind", "at", "edit"),
    every_day(
        {
            "from the start": ("exchange", "start", None),
            "from the first reply": ("exchange", "reply", None),
            "from a turn": ("exchange", "turn:1", None),
            "a reply is dropped": ("exchange", "reply", ForkEdit(kind="drop")),
            "another reply": ("exchange", "turn:1", ForkEdit(kind="reply", value="no, five")),
            "a turn is skipped": ("exchange", "turn:1", ForkEdit(kind="skip")),
            "another announce": ("exchange", "announce", ForkEdit(kind="reply", value="It is five.")),
            "a message is put in": (
                "exchange",
                "reply",
                ForkEdit(kind="inject", key="agent:main:main", value="be brief"),
            ),
            "a spawn from the start": ("spawn", "start", None),
            "a spawn from its reply": ("spawn", "reply", None),
            "another reply of a child": ("spawn", "reply", ForkEdit(kind="reply", value="seven")),
        },
        "from the start",
        "another reply",
        "a message is put in",
        "another reply of a child",
    ),
)
def test_what_a_fork_of_an_import_decided_is_decided_again_and_the_rest_is_walked(
    imported: SessionSystem, tmp_path: Path, kind: str, at: str, edit: ForkEdit | None
) -> None:
    edits = [] if edit is None else [edit]
    with imported.fork(named(imported, kind), at=at, edits=edits, agents={"*": says}) as fork:
        found = replays(fork, tmp_path)
        decided = decided_behind_the_opening(fork)

    assert [one["firstDifference"] for one in found] == [None] * 3
    assert [one["walked"] for one in found] == [True] * 3
    assert decided >= 1
    assert [one["decided"] for one in found] == [decided] * 3


def test_another_message_begins_an_exchange_that_was_not_imported(
    imported: SessionSystem, tmp_path: Path
) -> None:
    edits = [ForkEdit(kind="message", value="how many?")]
    with imported.fork(named(imported, "exchange"), at="start", edits=edits, agents={"*": says}) as fork:
        found = replays(fork, tmp_path)

    assert [(one["firstDifference"], one["walked"]) for one in found] == [(None, False)] * 3


@pytest.mark.parametrize("at", ["turn:1", "turn:2", "announce"])
def test_a_fork_of_such_a_fork_is_decided_again_as_well(
    imported: SessionSystem, tmp_path: Path, at: str
) -> None:
    """What the first fork decided stands above the cut of the second one."""
    with imported.fork(named(imported, "exchange"), at="reply", agents={"*": says}) as fork:
        assert fork.carried_on(WAIT).state == "ended"
        edits = [ForkEdit(kind="reply", value="said otherwise")]
        with fork.fork(named(fork, "exchange"), at=at, edits=edits, agents={"*": says}) as second:
            found = replays(second, tmp_path)

    assert [(one["firstDifference"], one["walked"]) for one in found] == [(None, True)] * 3


@pytest.mark.parametrize("at", ["start", "reply", "end-3", "end"])
def test_a_fork_of_a_fork_of_a_spawn_goes_on_from_its_announce_as_well(
    imported: SessionSystem, tmp_path: Path, at: str
) -> None:
    """Imports show no announce of a child; the first fork asked for one, and the second is cut around it."""
    with imported.fork(named(imported, "spawn"), at="start", agents={"*": says}) as fork:
        assert fork.carried_on(WAIT).state == "ended"
        with fork.fork(named(fork, "spawn"), at=at, agents={"*": says}) as second:
            found = replays(second, tmp_path)
            assert second.log.forked is not None
            asked = [
                one.event.run_id
                for one in second.log.all()
                if isinstance(one.event, RunQueued) and one.event.step == "announce"
            ]

    assert [one["firstDifference"] for one in found] == [None] * 3
    assert len(asked) == 1  # once, also where it was asked for above the cut


def test_what_differs_behind_the_cut_is_found(imported: SessionSystem, tmp_path: Path) -> None:
    """The flow is an imported one, and yet what rules decided in it is judged."""
    with imported.fork(named(imported, "exchange"), at="reply", agents={"*": says}) as fork:
        replays(fork, tmp_path)
    (file,) = tmp_path.iterdir()
    lines = read_lines(file)
    (second,) = [
        line for line in lines[1:] if line["topic"].startswith("turn_ended.") and line["event"]["turn"] == 1
    ]
    second["event"]["then"]["turnRequested"]["turn"] = 3
    second["id"] = derive(imported.log.log_id, "event", "other rules")
    write_resealed(file, lines)

    found = replay_file(file)

    assert found["firstDifference"] is not None
    assert found["firstDifference"]["position"] == second["position"]
    assert [field["path"] for field in found["firstDifference"]["fields"]] == [
        "then.turnRequested.turn",
        "id",
    ]
