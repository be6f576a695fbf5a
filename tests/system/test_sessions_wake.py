"""Sessions that talk for long: their actors have snapshots taken, and go on from them after a stop and after a sleep."""

import shutil
from itertools import pairwise
from pathlib import Path

import pytest

from intersession import SessionSystem, Turn
from intersession_actors.owners.session.folding import SHAPE
from intersession_actors.owners.session.snapshots import snapshots_compared
from intersession_events.facts import RunCompleted, RunStarted
from intersession_events.stores.opened import open_log
from support.run_context import context_of
from support.running import QUIET, Booth, Gate, wait_for_number
from support.transacting import transact

OFTEN = 20
STREAM = "session:agent:main:main"


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a snapshot taken every few events: a session that talks for long would take long."""
    monkeypatch.setattr("intersession_actors.owners.session.actor.EVERY", OFTEN)
    monkeypatch.setattr("intersession_events.stores.portable.snapshots.states.EVERY", OFTEN)


def says(system: SessionSystem, text: str) -> str:
    answer = system.inbound(channel="x", chat_id="1", sender="1", text=text)
    assert answer["status"] == "accepted", answer
    return str(answer["runId"])


def counting(turn: Turn) -> str:
    return f"{len(turn.transcript)}: {turn.transcript[0].content if turn.transcript else None}"


def hashes(system: SessionSystem) -> list[tuple[str, str]]:
    """Return each run's hash of its context, and the one that the whole log gives."""
    whole = system.log.stream(STREAM)
    return [
        (item.event.context_hash, context_of(whole[: item.version - 1], item.event.run_id).hash)
        for item in whole
        if isinstance(item.event, RunStarted)
    ]


def test_a_session_that_talks_for_long_has_snapshots_and_goes_on_from_them(booth: Booth) -> None:
    """Before: waking a session folded its whole stream, twice."""
    with booth.start({"main": counting}, None, QUIET) as system:
        for number in range(30):
            says(system, str(number))
        wait_for_number(system, RunCompleted, 30)
        transact(system.log, lambda _: None)  # what was kept before is in the file then
        versions = list(system.log.states.versions(STREAM, SHAPE))
        assert snapshots_compared(system.log) == ([], [])
    with booth.start({"main": counting}, None, QUIET, {"runs": {"idleSeconds": 0}}) as system:
        says(system, "30")
        wait_for_number(system, RunCompleted, 31)
        says(system, "31")
        wait_for_number(system, RunCompleted, 32)
        replies = [
            item.event.reply for item in system.log.stream(STREAM) if isinstance(item.event, RunCompleted)
        ]
        recorded = hashes(system)

    assert len(versions) >= 3
    assert all(later - one >= OFTEN for one, later in pairwise(versions))
    assert replies[-2:] == ["60: 0", "62: 0"]
    assert [one for one, _ in recorded] == [other for _, other in recorded]


def test_a_state_that_is_too_large_is_kept_when_it_is_small_again(booth: Booth) -> None:
    gate = Gate()
    slow = gate.saying("done")

    with booth.start({"main": slow}, None, QUIET) as system:
        for number in range(OFTEN):
            says(system, f"{number} " + "x" * (65_536 // 8))
        gate.reached()
        large = list(system.log.states.versions(STREAM, SHAPE))
        gate.open()
        wait_for_number(system, RunCompleted, OFTEN)
        says(system, "and?")
        wait_for_number(system, RunCompleted, OFTEN + 1)
        transact(system.log, lambda _: None)
        small = list(system.log.states.versions(STREAM, SHAPE))
        longest = system.log.query("SELECT MAX(length(state)) FROM stored_snapshots")[0][0]

    assert large == []
    assert small
    assert longest < 65_536 + 1_000


@pytest.mark.sqlite("copies the file; a server that is killed is in tests/crash/test_postgres_lost.py")
def test_what_a_crash_leaves_is_gone_on_with_whatever_snapshots_it_lost(booth: Booth, tmp_path: Path) -> None:
    """A crash at any moment: the files as they are then, beside the process that goes on."""
    (tmp_path / "crashed").mkdir()
    with booth.start({"main": counting}, None, QUIET) as system:
        for number in range(12):
            says(system, str(number))
        wait_for_number(system, RunCompleted, 12)
        for end in ("", "-wal"):
            shutil.copy(f"{system.log.path}{end}", tmp_path / "crashed" / f"log.db{end}")

    crashed = f"sqlite:///{tmp_path / 'crashed' / 'log.db'}"
    with open_log(crashed) as log:
        assert snapshots_compared(log) == ([], [])
        assert all(
            version <= log.stream(STREAM)[-1].version for version in log.states.versions(STREAM, SHAPE)
        )
    with Booth(crashed) as again, again.start({"main": counting}, None, QUIET) as system:
        says(system, "12")
        wait_for_number(system, RunCompleted, 13)
        recorded = hashes(system)

    assert [one for one, _ in recorded] == [other for _, other in recorded]
