"""FORK-1: a fork begins with the views that its start asks, as its events make them; the others are folded beside it once they are asked."""

import random
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from intersession_actors.hindsight.forking.making import MadeFork, Wanted, make_fork
from intersession_events.basics.machine import random_id
from intersession_events.copies.forks.files import remove_fork
from intersession_events.facts import SessionOpened
from intersession_events.log.recorded import Outcome
from intersession_events.log.verifying.verification import verify_log
from intersession_events.stores.opened import open_log
from intersession_events.stores.portable.log import PortableLog
from intersession_events.stores.view_proof import views_proven
from intersession_projections.questions.places.runs_named import flow_id
from intersession_projections.views.inline_views import inline_views
from intersession_projections.views.run_outcomes.runs import Runs
from intersession_projections.views.sessions.list import Sessions
from support.any_log import changed_behind
from support.every_day import every_day
from support.forked_everywhere import flows_of
from support.golden_logs import golden_logs
from support.log_drafts import draft, to
from support.random_runs import random_runs

CARRIED = ["held_calls", "held_sessions", "open_flows", "run_outcomes", "thread_bindings"]
WAITING = ["positions", "session_list"]
SOME = 12
"""So many forks of each log."""


def made_at(log: PortableLog, run: str, at: int) -> MadeFork:
    return make_fork(
        log,
        Wanted(run, at, exact=True),
        fork_id=random_id(),
        now_ms=1,
    )


def stored(path: str) -> dict[str, int]:
    with closing(sqlite3.connect(path)) as file:
        return dict(file.execute("SELECT name, position FROM inline_views ORDER BY name"))


def try_some(path: Path, some: int) -> int:
    """Fork at some positions; return how many of them were in the middle of something."""
    open_at_cut = 0
    with open_log(str(path), inline=inline_views()):
        pass
    with open_log(str(path), read_only=True, inline=inline_views()) as log:
        cuts = [(flow, at) for flow in flows_of(log) for at in range(flow.accepted, flow.position + 1)]
        for flow, at in random.Random(11).sample(cuts, min(some, len(cuts))):  # noqa: S311 - the same ones each time
            fork = made_at(log, flow_id(flow), at)
            assert stored(fork.path) == dict.fromkeys(CARRIED, at), (flow, at)
            with open_log(fork.path, read_only=True, inline=inline_views()) as seen:
                findings, _ = views_proven(seen, inline_views())
                assert findings == [], (flow, at, findings[:3])
            with open_log(fork.path, inline=inline_views()) as going_on:
                assert set(stored(fork.path)) == set(CARRIED)
                open_at_cut += bool(Runs(going_on).open_runs())
                findings, _ = views_proven(going_on, inline_views())
                assert findings == [], (flow, at, findings[:3])
            remove_fork(Path(fork.path))
    return open_at_cut


@pytest.mark.clause("FORK-1")
@pytest.mark.parametrize("name", every_day(["demo", "restricted"], "demo"))
def test_the_views_of_a_fork_of_a_log_of_0_1_0_are_as_its_events_make_them(name: str, tmp_path: Path) -> None:
    (golden,) = (one for one in golden_logs() if one.name == name)
    try_some(golden.unpack(tmp_path), SOME)


@pytest.mark.clause("FORK-1")
@pytest.mark.parametrize("seed", every_day([3, 4], 4))
def test_the_views_of_a_fork_are_as_its_events_make_them(seed: int, tmp_path: Path) -> None:
    assert try_some(random_runs(tmp_path / "log.db", seed, asked=4), SOME) > 0


@pytest.mark.clause("FORK-1")
def test_a_view_that_a_fork_does_not_begin_with_is_folded_beside_it_and_follows(tmp_path: Path) -> None:
    path = random_runs(tmp_path / "log.db", 3, asked=2)
    with open_log(str(path), read_only=True, inline=inline_views()) as log:
        fork = made_at(log, flow_id(next(flows_of(log))), log.head())
        known = Sessions(log).keys_beginning("")
    with open_log(fork.path, inline=inline_views()) as going_on:
        there = stored(fork.path)
        keys = Sessions(going_on).keys_beginning("")
        # Who else took part in it is as chance had it.
        assert keys == [key for key in known if f"session:{key}" in set(going_on.streams("session:"))]
        assert "agent:alone:main" not in keys
        assert len(keys) > 1
        opened = draft(
            SessionOpened(key="agent:new:main", session_id="new", agent_id="new", opened_by="person"), "new"
        )
        going_on.append_now([to("session:agent:new:main", 0, opened)])
        assert "agent:new:main" in Sessions(going_on).keys_beginning("")
        assert going_on.set_aside() == []
        assert stored(fork.path).keys() == there.keys()
        going_on.rebuild(*WAITING)
        assert sorted(stored(fork.path)) == sorted([*CARRIED, *WAITING])
        assert "agent:new:main" in Sessions(going_on).keys_beginning("")
        assert verify_log(going_on).ok


@pytest.mark.clause("FORK-1")
def test_a_fork_may_be_asked_while_its_writer_waits_for_who_asks(tmp_path: Path) -> None:
    """The writer tells what it has written to whoever counts a chain, under a lock that somebody may hold who asks a view."""
    path = random_runs(tmp_path / "log.db", 3, asked=2)
    with open_log(str(path), read_only=True, inline=inline_views()) as log:
        fork = made_at(log, flow_id(next(flows_of(log))), log.head())
    counting, told = threading.Lock(), threading.Event()

    def count(_: object) -> None:
        told.set()
        with counting:
            pass

    with open_log(fork.path, inline=inline_views()) as going_on, ThreadPoolExecutor(1) as asking:
        going_on.on_committed(count)
        opened = draft(
            SessionOpened(key="agent:new:main", session_id="new", agent_id="new", opened_by="person"), "new"
        )
        with counting:
            outcomes: list[Outcome] = []
            going_on.append([to("session:agent:new:main", 0, opened)], outcomes.append)
            assert told.wait(20)
            found = asking.submit(Sessions(going_on).keys_beginning, "").result(20)
    assert "agent:new:main" in found


@pytest.mark.clause("FORK-1")
def test_who_only_reads_a_fork_is_told_the_same_and_writes_nothing(tmp_path: Path) -> None:
    path = random_runs(tmp_path / "log.db", 3, asked=2)
    with open_log(str(path), read_only=True, inline=inline_views()) as log:
        fork = made_at(log, flow_id(next(flows_of(log))), log.head())
    with open_log(fork.path, inline=inline_views()):
        there = stored(fork.path)  # taken up to the head
    asked = partial(open_log, fork.path, inline=inline_views())
    with asked(read_only=True) as seen:
        read = Sessions(seen).keys_beginning(""), [run.run_id for run in Runs(seen).recent(99)]
    assert stored(fork.path) == there
    with asked() as built:
        assert read == (Sessions(built).keys_beginning(""), [run.run_id for run in Runs(built).recent(99)])


@pytest.mark.clause("FORK-1")
def test_a_view_that_left_something_out_in_the_source_is_built_of_the_events(tmp_path: Path) -> None:
    path = random_runs(tmp_path / "log.db", 3, asked=2)
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("INSERT INTO set_aside VALUES ('open_flows', 1, 's', 1, 't', 'poison')")
        file.execute("UPDATE inline_views SET position = (SELECT MAX(rowid) FROM stored_events)")
    with open_log(str(path), read_only=True, inline=inline_views()) as log:
        fork = made_at(log, flow_id(next(flows_of(log))), log.head())
    assert "open_flows" not in stored(fork.path)
    with open_log(fork.path, inline=inline_views()) as going_on:
        assert "open_flows" in stored(fork.path)
        assert views_proven(going_on, inline_views())[0] == []


@pytest.mark.clause("FORK-1")
def test_a_view_that_somebody_wrote_into_is_built_of_the_events(tmp_path: Path) -> None:
    path = random_runs(tmp_path / "log.db", 3, asked=2)
    with open_log(str(path), inline=inline_views()) as log:
        changed_behind(path, "UPDATE run_outcomes SET status = 'wrong'")
        fork = made_at(log, flow_id(next(flows_of(log))), log.head())
    assert "run_outcomes" not in stored(fork.path)
    with open_log(fork.path, inline=inline_views()) as going_on:
        assert views_proven(going_on, inline_views())[0] == []
