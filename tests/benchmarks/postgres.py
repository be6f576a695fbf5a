"""(p) Durable appends a second on PostgreSQL: ours beside the library's own recorder and pgbench, on one server, by turns.

The same again with a network between that takes a millisecond or five there and back: it is a process of its own. With one
caller there is a bare row as well, inserted by the quickest call that psycopg has: no Python can be quicker. Each has turns of
a second, in three rounds, which takes two minutes in all; what is found is said as it comes.
"""

import multiprocessing
import re
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from statistics import median
from typing import Final, NamedTuple

import psycopg
from eventsourcing.persistence import StoredEvent
from eventsourcing.postgres import PostgresApplicationRecorder, PostgresFactory
from eventsourcing.utils import Environment
from psycopg.pq import ExecStatus, Format

from benchmarks.figures import Figure, per_second, progress
from intersession_events.log.recorded import Committed, Outcome, StreamAppend
from intersession_events.stores.postgres.log import PostgresLog
from intersession_events.stores.postgres.wire import BYTE_STRING, NUMBER, TEXT, number
from support.log_drafts import anywhere, said
from support.postgres.network import network
from support.postgres.server import Server, postgres_server

NAME: Final = "postgres"
CALLERS: Final = (1, 8, 64)
ROUND_TRIPS_MS: Final = (0, 1, 5)
ROUNDS: Final = 3
SECONDS: Final = 1
OURS: Final = "ours, told as actors are"
WAITING: Final = "ours, a thread each that waits"
LIBRARY: Final = "the library's recorder"
PGBENCH: Final = "pgbench, a row a commit"
BARE: Final = "a bare row a commit, by psycopg"

_STATE: Final = b"x" * 620
"""As long as a message of 200 characters is with us."""
_TEXT: Final = "x" * 200


class Rate(NamedTuple):
    """How many appends a second, and the milliseconds of the processor that the client had for each."""

    a_second: float
    cpu_ms: float


def measure(directory: Path, *, seconds: int = SECONDS, rounds: int = ROUNDS) -> list[Figure]:
    del directory  # the server's own user can't go everywhere
    figures: list[Figure] = []
    with postgres_server() as server:
        for trip_ms in ROUND_TRIPS_MS:
            with ExitStack() as stack:
                port = stack.enter_context(far_from(server, trip_ms)) if trip_ms else None
                contenders = stack.enter_context(_contenders(server, port))
                for callers in CALLERS:
                    rates: dict[str, list[Rate]] = {name: [] for name in contenders}
                    if callers > 1:
                        del rates[BARE]
                    for _ in range(rounds):
                        for name, turns in rates.items():
                            turns.append(contenders[name](callers, seconds))
                    found = _figures(rates, f"{callers} at once, {trip_ms} ms away")
                    for figure in found:
                        beside = "".join(f", {ratio:.1f} of {of}" for of, ratio in figure.ratios.items())
                        progress(f"{figure.name}: {figure.value:,.0f} a second{beside}")
                    figures += found
    return figures


def _figures(rates: Mapping[str, list[Rate]], where: str) -> list[Figure]:
    middle = {name: median(rate.a_second for rate in found) for name, found in rates.items()}
    return [
        Figure(
            benchmark=NAME,
            name=f"{name}, {where}",
            value=middle[name],
            unit="a second",
            cpu_ms=median(rate.cpu_ms for rate in found) if name != PGBENCH else None,
            ratios={
                other: middle[name] / middle[other]
                for other in (LIBRARY, PGBENCH, BARE)
                if name != other and middle.get(other) and name in {OURS, WAITING, BARE}
            },
        )
        for name, found in rates.items()
    ]


Contender = Callable[[int, int], Rate]


@contextmanager
def _contenders(server: Server, port: int | None) -> Generator[dict[str, Contender]]:
    host, at = (str(server.directory), "") if port is None else ("127.0.0.1", str(port))
    numbers = count(time.time_ns())
    library = PostgresFactory(
        Environment(
            env={
                "POSTGRES_DBNAME": "postgres",
                "POSTGRES_HOST": host,
                "POSTGRES_PORT": at or "5432",
                "POSTGRES_USER": "postgres",
                "POSTGRES_PASSWORD": "",
                "ORIGINATOR_ID_TYPE": "text",
                "POSTGRES_POOL_SIZE": str(max(CALLERS)),
                "POSTGRES_CONNECT_TIMEOUT": "60",
            }
        )
    )
    recorder = library.application_recorder()
    assert isinstance(recorder, PostgresApplicationRecorder)
    url = f"postgresql://postgres@/postgres?host={host}&schema=bench{f'&port={at}' if at else ''}"
    with PostgresLog(url) as log:

        def drafted(stream: str) -> StreamAppend:
            return anywhere(stream, said(f"{next(numbers)}", _TEXT))

        def waiting(stream: str, _version: int) -> None:
            log.append_now([drafted(stream)], timeout=120)

        def theirs(stream: str, version: int) -> None:
            recorder.insert_events([StoredEvent(stream, version, "message_recorded.1", _STATE)])

        def bare(callers: int, seconds: int) -> Rate:
            return _pgbench(server, ("-h", host, *(("-p", at) if at else ())), callers, seconds)

        _make_bare(server)
        yield {
            OURS: lambda callers, seconds: _in_flight(log, drafted, callers, seconds, next(numbers)),
            WAITING: lambda callers, seconds: _together(waiting, callers, seconds, next(numbers)),
            BARE: lambda _, seconds: _bare(
                f"host={host} port={at or 5432} user=postgres", next(numbers), seconds
            ),
            LIBRARY: lambda callers, seconds: _together(theirs, callers, seconds, next(numbers)),
            PGBENCH: bare,
        }
    library.close()


def _in_flight(
    log: PostgresLog, drafted: Callable[[str], StreamAppend], callers: int, seconds: int, name: int
) -> Rate:
    """Have so many append one after the other, each once the one before is durable; none has a thread."""
    ready: SimpleQueue[int] = SimpleQueue()
    done = 0

    def append(caller: int) -> None:
        def told(outcome: Outcome) -> None:
            assert isinstance(outcome, Committed), outcome
            ready.put(caller)

        log.append([drafted(f"s-{name}-{caller}")], told)

    began, worked = time.monotonic(), time.process_time()
    for caller in range(callers):
        append(caller)
    while time.monotonic() - began < seconds:
        caller = ready.get(timeout=120)
        done += 1
        append(caller)
    for _ in range(callers):
        ready.get(timeout=120)
        done += 1
    return Rate(per_second(done, time.monotonic() - began), 1000 * (time.process_time() - worked) / done)


def _together(append: Callable[[str, int], None], callers: int, seconds: int, name: int) -> Rate:
    done = [0] * callers
    began, worked = time.monotonic(), time.process_time()

    def run(number: int) -> None:
        while time.monotonic() - began < seconds:
            done[number] += 1
            append(f"s-{name}-{number}", done[number])

    threads = [threading.Thread(target=run, args=(number,)) for number in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    all_done = sum(done)
    return Rate(
        per_second(all_done, time.monotonic() - began), 1000 * (time.process_time() - worked) / all_done
    )


def _make_bare(server: Server) -> None:
    """Make the table for rows that nothing is to be known of."""
    server.run(
        *("psql", "-h", str(server.directory), "-U", "postgres", "-d", "postgres", "-q", "-c"),
        "CREATE TABLE IF NOT EXISTS bare (originator_id text NOT NULL, originator_version bigint NOT NULL, "
        "topic text NOT NULL, state bytea NOT NULL, notification_id bigserial PRIMARY KEY, "
        "UNIQUE (originator_id, originator_version))",
    )


def _bare(conninfo: str, name: int, seconds: int) -> Rate:
    """Insert one row after the other as libpq does it by itself: prepared, in binary, one round trip and one sync each."""
    with psycopg.connect(conninfo, autocommit=True) as connection:
        to = connection.pgconn
        to.prepare(
            b"bare",
            b"INSERT INTO bare (originator_id, originator_version, topic, state) VALUES ($1, $2, $3, $4)",
            (TEXT, NUMBER, TEXT, BYTE_STRING),
        )
        stream, topic, done = f"s-{name}".encode(), b"message_recorded.1", 0
        began, worked = time.monotonic(), time.process_time()
        while time.monotonic() - began < seconds:
            done += 1
            values = (stream, number(done), topic, _STATE)
            result = to.exec_prepared(b"bare", values, [Format.BINARY] * len(values), Format.BINARY)
            assert result.status == ExecStatus.COMMAND_OK, result.error_message
        return Rate(per_second(done, time.monotonic() - began), 1000 * (time.process_time() - worked) / done)


def _pgbench(server: Server, to: tuple[str, ...], callers: int, seconds: int) -> Rate:
    script = server.directory / "one_row.sql"
    script.write_text(
        "\\set stream random(1, 1000000000)\n"
        "\\set version random(1, 1000000000)\n"
        "INSERT INTO bare (originator_id, originator_version, topic, state) "
        f"VALUES (:stream::text, :version, 'message_recorded.1', '\\x{_STATE.hex()}') ON CONFLICT DO NOTHING;\n"
    )
    script.chmod(0o644)
    said_by = server.run(
        *("pgbench", *to, "-U", "postgres", "-n", "-M", "prepared", "-c", str(callers)),
        *("-j", "2", "-T", str(seconds), "-f", str(script), "postgres"),
    )
    found = re.search(r"tps = ([0-9.]+)", said_by)
    assert found is not None or "actually processed: 0" in said_by, said_by
    return Rate(float(found[1]) if found is not None else 0.0, 0.0)


@contextmanager
def far_from(server: Server, trip_ms: int) -> Generator[int]:
    """Put a network before a server in a process of its own; yields its port."""
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=_be_slow, args=(server.directory, trip_ms / 2000, theirs), daemon=True)
    process.start()
    try:
        yield ours.recv()
    finally:
        ours.close()
        process.terminate()
        process.join()


def _be_slow(to: Path, delay_s: float, told: Connection) -> None:
    with network(to, delay_s=delay_s) as between:
        told.send(between.port)
        threading.Event().wait()
