"""What one writer bears, and what a fleet of logs costs: the measured inputs of the model in `scaling_model.py` (docs/scaling.md).

Processor time, and not wall time, wherever both can be had: the machine may be busy with something else.
"""

import gc
import multiprocessing
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Final

import psycopg

from benchmarks.figures import Figure, per_second, progress
from benchmarks.logs import crowd_told, open_sessions, session_key, write_directly
from benchmarks.pingpong import TURNS, talk
from benchmarks.systems import FULL_LOOP, answers_at_once, system
from intersession import SessionSystem
from intersession_events.log.log import ReadsViews
from intersession_events.proofs.stream_heads import StreamHeads
from intersession_events.stores.opened import open_log
from intersession_events.stores.sqlite.log import SqliteLog
from intersession_projections.views.inline_views import inline_views
from support.postgres.server import Server, postgres_server

NAME: Final = "scaling"
PAIRS: Final = (1, 8, 64, 512)
_PEOPLE: Final = 64
_KIB: Final = 1024
_MIB: Final = 1024 * 1024


def measure(
    directory: Path,
    *,
    exchanges: int = 1_024,
    pairs: int = PAIRS[-1],
    sessions: int = 100_000,
    schemas: int = 100,
    systems: int = 20,
) -> list[Figure]:
    """Measure turns, sizes, starts and idle hosts, on a file and on a server of its own."""
    figures: list[Figure] = []
    with postgres_server() as server:
        for store, url in (("SQLite", None), ("PostgreSQL", f"{server.url}&schema=talk")):
            of_server = (lambda: _cpu_below(server)) if url else (lambda: 0.0)
            figures += _turns(
                directory / store, store, url, exchanges=exchanges, most=pairs, of_server=of_server
            )
            progress(f"turns on {store}")
        figures += _starts(directory, most=sessions)
        progress("starts")
        figures += _heads(sessions * 40)
        figures += _schemas(server.url, schemas)
        progress("schemas")
        for store in ("SQLite", "PostgreSQL"):
            with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
                urls = [
                    f"{server.url}&schema=idle{number}"
                    if store == "PostgreSQL"
                    else f"sqlite:///{directory / f'idle{number}.db'}"
                    for number in range(systems)
                ]
                figures += pool.submit(_idle, store, urls).result()
            progress(f"idle hosts on {store}")
    return figures


def _turns(
    folder: Path, store: str, url: str | None, *, exchanges: int, most: int, of_server: Callable[[], float]
) -> list[Figure]:
    folder.mkdir()
    agents = {"main": answers_at_once, "desk": answers_at_once}
    with system(folder, agents, FULL_LOOP, store=url) as running:
        running.register_channel("telegram", lambda _outbound: None)

        def taken(name: str, turns: int, work: Callable[[], float]) -> list[Figure]:
            before, worked, served = _sizes(running.log), time.process_time(), of_server()
            seconds = work()
            worked, served = time.process_time() - worked, of_server() - served
            size, events, streams = (a - b for a, b in zip(_sizes(running.log), before, strict=True))
            more = [("events", events / turns, ""), ("streams", streams / turns, "")]
            if url:
                more.append(("the server", served * 1000 / turns, "ms cpu"))
            return [
                Figure(
                    benchmark=NAME,
                    name=f"{store}, {name}",
                    value=per_second(turns, seconds),
                    unit="turns/s",
                    cpu_ms=worked * 1000 / turns,
                    kib=size / _KIB / turns,
                ),
                *(
                    Figure(benchmark=NAME, name=f"{store}, {name}: {what} a turn", value=value, unit=unit)
                    for what, value, unit in more
                ),
            ]

        left = [session_key(number, "main") for number in range(most)]
        right = [session_key(number, "desk") for number in range(most)]
        open_sessions(running.log, [*left, *right])
        everybody = list(zip(left, right, strict=True))
        talk(running, everybody, 1)
        figures: list[Figure] = []
        for pairs in (number for number in PAIRS if number <= most):
            rounds = max(1, min(exchanges, 32 * pairs) // pairs)
            pairing = partial(talk, running, everybody[:pairs], rounds)
            figures += taken(f"{pairs} pairs", rounds * pairs * TURNS, pairing)
        people = min(_PEOPLE, most)
        _chat(running, people, people)
        return figures + taken(
            f"{people} people", exchanges * TURNS, partial(_chat, running, people, exchanges * TURNS)
        )


def _chat(running: SessionSystem, people: int, messages: int) -> float:
    """Have people write to an agent side by side, and each wait for its answer; return the seconds."""

    def ask(number: int) -> None:
        chat = f"{number % people}"
        running.inbound(channel="telegram", chat_id=chat, sender=chat, text="Is it done?", wait=60)

    began = time.perf_counter()
    with ThreadPoolExecutor(people) as pool:
        for _ in pool.map(ask, range(messages)):
            pass
    return time.perf_counter() - began


def _cpu_below(server: Server) -> float:
    """Return the seconds of processor time of a server's processes, ended ones as well."""
    first = (server.directory / "data" / "postmaster.pid").read_text(encoding="ascii").split("\n")[0]
    ticks = 0
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = file.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            if fields[1] == first:  # a child: what ended ones took is the first one's
                ticks += int(fields[11]) + int(fields[12])
            elif file.parent.name == first:
                ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _sizes(log: ReadsViews) -> tuple[int, int, int]:
    """Return the bytes of a log with its views, as the store lays them out, its events and its streams."""
    if log.is_remote:
        asked = (
            "SELECT SUM(pg_total_relation_size(oid))::bigint FROM pg_class "
            "WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'"
        )
    else:
        asked = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
    streams = "SELECT COUNT(*) FROM stored_events WHERE originator_version = 1"
    ((size,),), ((events,),), ((first,),) = (
        log.query(one) for one in (asked, "SELECT MAX(rowid) FROM stored_events", streams)
    )
    return int(size), int(events), int(first)


def _starts(directory: Path, *, most: int) -> list[Figure]:
    """Open logs of several sizes whose views are current, and one whose views are of another version."""
    figures: list[Figure] = []
    for sessions in (number for number in (1_000, 10_000, 100_000) if number <= most):
        path = directory / f"of{sessions}.db"
        write_directly(path, crowd_told(sessions, 9))
        built = _cpu(lambda path=path: SqliteLog(path, inline=inline_views()).close())  # type: ignore[misc]  # bound
        opened = min(_cpu(lambda path=path: SqliteLog(path, inline=inline_views()).close()) for _ in range(5))  # type: ignore[misc]  # bound
        events = sessions * 10
        figures += [
            Figure(benchmark=NAME, name=f"opened, {events:,} events", value=opened * 1000, unit="ms cpu"),
            Figure(
                benchmark=NAME,
                name=f"views of {events:,} events built anew, an event",
                value=built * 1e6 / events,
                unit="µs cpu",
            ),
            Figure(
                benchmark=NAME,
                name=f"{events:,} events in {sessions:,} sessions, an event",
                value=path.stat().st_size / _KIB / events,
                unit="KiB",
            ),
        ]
    return figures


def _heads(most: int) -> list[Figure]:
    """Hold the ends of streams, as a writer does for its checkpoints; move a thousand of them."""
    figures: list[Figure] = []
    heads, before, told = StreamHeads(), _private(), 0
    for streams in (number for number in (100_000, 1_000_000, 4_000_000) if number <= max(most, 100_000)):
        for number in range(told, streams):
            heads.tell(f"exchange:{number:036d}", 1, "ab" * 32)
        told = heads.streams
        bytes_each = (_private() - before) / told

        def move(streams: int = streams) -> None:
            for number in range(1_000):
                heads.tell(f"exchange:{number * streams // 1_000:036d}", 2, "cd" * 32)
            if not heads.root:
                raise RuntimeError("no root")

        figures += [
            Figure(benchmark=NAME, name=f"{streams:,} streams, each", value=bytes_each, unit="bytes"),
            Figure(
                benchmark=NAME,
                name=f"{streams:,} streams, one that moves",
                value=_cpu(move) * 1000,
                unit="µs cpu",
            ),
        ]
    return figures


def _cpu(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def _schemas(url: str, number: int) -> list[Figure]:
    """Make logs in schemas of one database; say what each takes on disk, in catalogs, and to open."""
    with psycopg.connect(url, autocommit=True) as connection:

        def asked(statement: str) -> int:
            row = connection.execute(statement.encode()).fetchone()
            return int(row[0]) if row else 0

        size = "SELECT pg_database_size(current_database())"
        catalog = (
            "SELECT SUM(pg_total_relation_size(oid))::bigint FROM pg_class "
            "WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind = 'r'"
        )
        relations = "SELECT COUNT(*) FROM pg_class WHERE relnamespace = 'many1'::regnamespace"
        before, catalogs = asked(size), asked(catalog)
        made, opened = 0.0, 0.0
        for one in range(number):
            store = f"{url}&schema=many{one}"
            began = time.perf_counter()
            open_log(store, inline=inline_views()).close()
            made += time.perf_counter() - began
        for one in range(number):
            store = f"{url}&schema=many{one}"
            began = time.perf_counter()
            open_log(store, inline=inline_views()).close()
            opened += time.perf_counter() - began
        return [
            Figure(benchmark=NAME, name=f"{name}, of {number} schemas", value=value, unit=unit)
            for name, value, unit in (
                ("a log without events", (asked(size) - before) / _KIB / number, "KiB"),
                ("of that in catalogs", (asked(catalog) - catalogs) / _KIB / number, "KiB"),
                ("tables and indexes a log", asked(relations) if number > 1 else 0, ""),
                ("a log made", made * 1000 / number, "ms"),
                ("a log opened", opened * 1000 / number, "ms"),
            )
        ]


def _idle(store: str, urls: list[str]) -> list[Figure]:
    """Start systems that have nothing to do, in one process; say what the first and each other one holds."""
    bare = _private()
    with ExitStack() as stack:
        before, threads = 0, threading.active_count()
        for number, url in enumerate(urls):
            stack.enter_context(system(Path(url), {"main": answers_at_once}, store=url))
            if number == 0:
                before, threads = _private(), threading.active_count()
        time.sleep(1)
        after = _private()
        others = max(len(urls) - 1, 1)
        figures = [
            ("a process with what it imports", bare / _MIB, "MiB"),
            ("the first idle host of a process", (before - bare) / _MIB, "MiB"),
            ("each other one of the same process", (after - before) / _MIB / others, "MiB"),
            ("threads of each other one", (threading.active_count() - threads) / others, ""),
            ("open files of each", sum(1 for _ in Path("/proc/self/fd").iterdir()) / len(urls), ""),
        ]
        if store == "PostgreSQL":
            with psycopg.connect(urls[0].rpartition("&")[0], autocommit=True) as connection:
                asked = "SELECT COUNT(*) FROM pg_stat_activity WHERE application_name = 'intersession'"
                row = connection.execute(asked).fetchone()
                figures.append(("connections of each", (row[0] if row else 0) / len(urls), ""))
    return [
        Figure(benchmark=NAME, name=f"{store}: {name}, of {len(urls)}", value=value, unit=unit)
        for name, value, unit in figures
    ]


def _private() -> int:
    """Return the bytes of memory that only this process holds."""
    gc.collect()
    text = Path("/proc/self/smaps_rollup").read_text(encoding="ascii")
    return sum(
        int(line.split()[1]) * _KIB
        for line in text.splitlines()
        if line.startswith(("Private_", "Pss_Anon")) and not line.startswith("Pss_")
    )
