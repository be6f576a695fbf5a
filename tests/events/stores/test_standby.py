"""A standby waits for the log beside its writer, takes it over when that is gone, and one that was paused writes nothing (STBY)."""

import os
import re
import signal
import threading
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec
import pytest

from intersession_events.basics.errors import LogTooNew, StoreLocked
from intersession_events.basics.machine import VERSION
from intersession_events.stores.hosts.announcing import announced, this_host
from intersession_events.stores.hosts.host import Host
from intersession_events.stores.opened import located, open_log
from intersession_events.stores.postgres.address import address_of
from intersession_events.stores.standby import when_free
from support.any_log import changed_behind, log_at
from support.postgres.network import network
from support.postgres.server import Server
from support.processes.forked import Forked

SCRIPT = Path(__file__).parents[2] / "support" / "processes" / "standing_by.py"
PATIENCE_S = 60.0


class Waiter:
    """A host that waits for a log, and writes it once it has it."""

    def __init__(self, url: str, lines: Path) -> None:
        self._lines = lines
        self.process = Forked(SCRIPT, url, str(lines), says=lines.with_suffix(".err"))

    @property
    def lines(self) -> list[str]:
        return self._lines.read_text().splitlines() if self._lines.exists() else []

    def acknowledged(self) -> set[str]:
        return {line for line in self.lines if line.startswith("id-")}

    def said(self, line: str) -> int:
        """Return how many of its lines begin so."""
        return sum(1 for each in self.lines if each.startswith(line))

    def waits_for(self, wanted: int, *, line: str = "id-", before: int | None = None) -> None:
        """Wait until it has said that many lines more that begin so, than now or than `before`."""
        before = self.said(line) if before is None else before
        until = time.monotonic() + PATIENCE_S
        while self.said(line) < before + wanted:
            assert self.process.wait(0.01) is None, self.process.said
            assert time.monotonic() < until, (self.lines[-3:], self.process.said)

    def signal(self, number: int) -> None:
        assert self.process.pid is not None
        os.kill(self.process.pid, number)


@contextmanager
def waiters(url: str, folder: Path, number: int) -> Generator[list[Waiter]]:
    with ExitStack() as held:
        made = [Waiter(url, folder / f"{name}.lines") for name in "abcdef"[:number]]
        for one in made:
            held.enter_context(one.process)
        yield made


def hosts_at(url: str, number: int) -> list[Host]:
    """Wait until so many hosts are beside the writer of a log, and return them."""
    until = time.monotonic() + PATIENCE_S
    with log_at(url, read_only=True) as log:
        while len(found := list(log.hosts.alive())) != number:
            assert time.monotonic() < until, found
            threading.Event().wait(0.01)
    return found


@pytest.mark.clause("STBY-1", "STBY-5")
def test_a_standby_takes_a_log_over_whose_writer_was_killed(log_url: str, tmp_path: Path) -> None:
    with waiters(log_url, tmp_path, 1) as (first,):
        first.waits_for(20)
        standby = Waiter(log_url, tmp_path / "standby.lines")
        with standby.process:
            (host,) = hosts_at(log_url, 1)
            assert (host.kind, host.pid) == ("standby", standby.process.pid)
            assert standby.lines == []

            first.process.kill()
            first.process.wait(PATIENCE_S)
            standby.waits_for(20)
            acknowledged = first.acknowledged() | standby.acknowledged()
            hosts_at(log_url, 0)
            with log_at(log_url, read_only=True) as log:
                events = {event.id: event.epoch for event in log.all()}

    assert standby.lines[0] == "has 2"
    assert acknowledged <= events.keys()
    assert {events[name] for name in first.acknowledged()} == {1}


@pytest.mark.clause("STBY-1")
def test_of_several_standbys_one_gets_a_log_that_is_closed(log_url: str, tmp_path: Path) -> None:
    with open_log(log_url) as log, waiters(log_url, tmp_path, 3) as standbys:
        hosts_at(log_url, 3)
        log.close()
        until = time.monotonic() + PATIENCE_S
        while not (have := [one for one in standbys if one.lines]):
            assert time.monotonic() < until
        (winner,) = have
        winner.waits_for(5)

        assert len(hosts_at(log_url, 2)) == 2
        assert [one.lines for one in standbys if one is not winner] == [[], []]


@pytest.mark.clause("STBY-2")
def test_a_standby_ends_when_it_is_told_to(log_url: str) -> None:
    stopping = threading.Event()
    with open_log(log_url):
        with pytest.raises(StoreLocked, match="in this process already"):
            when_free(located(log_url), lambda: open_log(log_url), stopping=threading.Event())
        stopping.set()
        assert when_free(located(log_url), lambda: open_log(log_url), stopping=stopping) is None
    with open_log(log_url) as log:
        assert log.epoch == 2


@pytest.mark.ci
@pytest.mark.clause("STBY-2")
def test_a_standby_of_an_older_version_is_refused_before_it_waits(log_url: str, tmp_path: Path) -> None:
    with waiters(log_url, tmp_path, 1) as (writer,):
        writer.waits_for(1)
        changed_behind(log_url, "INSERT INTO log_topics VALUES ('dreamt.1')")
        changed_behind(
            log_url,
            "UPDATE stored_events SET topic='dreamt.1' WHERE originator_id='session:0' AND originator_version=1",
        )
        told = f"dreamt.1, unknown to this version ({VERSION})"
        with pytest.raises(LogTooNew, match=re.escape(told)):
            when_free(located(log_url), lambda: open_log(log_url), stopping=threading.Event())


@pytest.mark.clause("STBY-5")
def test_hosts_are_seen_beside_a_log_for_as_long_as_they_are_there(log_url: str) -> None:
    with open_log(log_url) as log, log_at(log_url, read_only=True) as follower:
        assert log.hosts.alive() == []
        door, other = this_host("door", address="http://10.0.0.7:18789"), this_host("door")
        at = 3
        with announced(follower.hosts, lambda: msgspec.structs.replace(door, position=at), every_s=0.01):
            with announced(log.hosts, lambda: other):
                assert {host.name for host in hosts_at(log_url, 2)} == {door.name, other.name}
            at = 7
            until = time.monotonic() + PATIENCE_S
            while (found := log.hosts.alive()[0]).position != at:
                assert time.monotonic() < until
            assert (found.name, found.kind, found.address) == (door.name, "door", "http://10.0.0.7:18789")
            assert found.since > 0
        assert log.hosts.alive() == []


@pytest.mark.postgres
@pytest.mark.clause("STBY-3", "STBY-4")
@pytest.mark.parametrize("rounds", [3, pytest.param(200, marks=pytest.mark.nightly)])
def test_a_writer_that_was_paused_writes_nothing_when_it_wakes(
    postgres_url: str, tmp_path: Path, rounds: int
) -> None:
    """Stopped, taken over, woken: it gives up, and waits as the standby of the one that it has now."""
    with waiters(postgres_url, tmp_path, 2) as (one, other):
        until = time.monotonic() + PATIENCE_S
        while not (one.lines or other.lines):
            assert time.monotonic() < until
        writer, standby = (one, other) if one.lines else (other, one)
        for _ in range(rounds):
            hosts_at(postgres_url, 1)
            writer.waits_for(3)
            writer.signal(signal.SIGSTOP)
            # As its lease runs out by itself, in a moment and not in 15 seconds.
            changed_behind(postgres_url, "UPDATE log_writer SET alive_until = '-infinity'")
            standby.waits_for(3)
            gone = writer.said("gone")
            writer.signal(signal.SIGCONT)
            writer.waits_for(1, line="gone", before=gone)
            writer, standby = standby, writer
        acknowledged = one.acknowledged() | other.acknowledged()
        with log_at(postgres_url, read_only=True) as log:
            events = {event.id: event.epoch for event in log.all()}

    assert acknowledged <= events.keys()
    assert all(name == f"id-{epoch}-{name.rpartition('-')[2]}" for name, epoch in events.items())
    assert max(events.values()) == rounds + 1


@pytest.mark.nightly
@pytest.mark.postgres
@pytest.mark.clause("STBY-1", "STBY-4")
@pytest.mark.parametrize("how", ["paused", "cut off"])
def test_a_writer_of_another_machine_is_taken_over_when_its_lease_is_over(
    postgres: Server, postgres_url: str, tmp_path: Path, how: str
) -> None:
    """By the clock of the server alone: its process is alive, or can't be looked at."""
    with ExitStack() as held:
        between = held.enter_context(network(postgres.directory))
        writer = Waiter(between.url(address_of(postgres_url).schema), tmp_path / "writer.lines")
        held.enter_context(writer.process)
        writer.waits_for(5)
        standby = Waiter(postgres_url, tmp_path / "standby.lines")
        held.enter_context(standby.process)
        hosts_at(postgres_url, 1)
        if how == "paused":
            writer.signal(signal.SIGSTOP)
        else:
            between.stall()
        standby.waits_for(5)
        assert standby.lines[0] == "has 2"
        if how == "paused":
            writer.signal(signal.SIGCONT)
        else:
            between.flow()
        writer.waits_for(1, line="gone", before=0)
        acknowledged = writer.acknowledged() | standby.acknowledged()
        with log_at(postgres_url, read_only=True) as log:
            assert acknowledged <= {event.id for event in log.all()}
