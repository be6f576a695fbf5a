"""What one writer bears, and what a fleet costs, beyond this machine: a model on measured inputs, which docs/scaling.md quotes.

`python -m tests.benchmarks scaling` measures the inputs; `python tests/benchmarks/scaling_model.py` prints the tables.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

_DAY_S: Final = 86_400
_KIB_A_GIB: Final = 1024 * 1024


class Measured(NamedTuple):
    """What `scaling` has measured."""

    writer_ms: tuple[float, float] = (1.0, 4.0)
    """Processor time of the writer for a turn: between two agents, and of an agent that answers a person."""
    kib: tuple[float, float] = (4.5, 6.6)
    """What that takes on disk, views among it, with short texts."""
    events: tuple[float, float] = (3.7, 7.0)
    streams: tuple[float, float] = (0.14, 1.0)
    """The new streams of such a turn: of an exchange, of a delivery."""
    stream_bytes: int = 64
    """What each stream of the log has in the writer's memory, for checkpoints."""
    moved_us: float = 10
    moved_us_a_million: float = 11.5
    """Processor time of a checkpoint for a stream that has moved; and more, for each million of streams."""
    view_us_an_event: float = 82
    verify_us_an_event: float = 30
    kib_awake: float = 4.4
    kib_a_session: float = 2.0
    """What a session takes on disk, with one message."""
    empty_log_kib: float = 1_178
    """A schema without events; a third of it is in the catalogs."""
    process_mib: float = 38
    """A process that hosts logs, before it opens one."""
    host_mib: float = 0.5
    """Each idle host in it."""
    serve_mib: float = 64
    """A process of `intersession serve`."""
    connections: int = 2
    """Of an idle host."""
    backend_mib: float = 2.7
    """What the server has for a connection."""
    open_ms: float = 31


class Assumed(NamedTuple):
    """What is assumed of those who use it."""

    people: float = 0.5
    """The share of turns that answer a person."""
    text_kib: float = 2
    """A message of a model. It stands in the log where it was said and where it was heard."""
    model_s: float = 5
    """How long a model thinks."""
    peak: float = 4
    """The busiest hour, as a multiple of the average one."""
    turns_a_session: int = 20
    """What an active session has in a day."""


class Most(NamedTuple):
    """Beyond what something has given out."""

    processor: float = 0.7
    """The share of a processor that a writer may have in its busiest hour."""
    disk_tib: float = 2
    memory_gib: float = 8
    views_h: float = 8


MEASURED: Final = Measured()
ASSUMED: Final = Assumed()
MOST: Final = Most()
LOADS: Final = (10_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
_YEAR: Final = 365


class Load(NamedTuple):
    """What a number of turns a day means for one writer. What a year makes of it is of a log that was begun a year ago."""

    turns: int
    sessions: int
    a_second: float
    processor: float
    processor_year: float
    at_once: float
    gib_a_day: float
    tib_a_year: float
    memory_gib: float
    views_h: float
    verify_h: float

    @property
    def gives_out(self) -> str:
        """What gives out first, and in what order the rest."""
        over = {
            "processor": self.processor_year / MOST.processor,
            "disk": self.tib_a_year / MOST.disk_tib,
            "memory": self.memory_gib / MOST.memory_gib,
            "views": self.views_h / MOST.views_h,
        }
        return (
            ", ".join(name for name in sorted(over, key=lambda one: -over[one]) if over[name] > 1)
            or "nothing"
        )


def load(turns: int, measured: Measured = MEASURED, assumed: Assumed = ASSUMED) -> Load:
    """Return what a number of turns a day means."""

    def mean(of: tuple[float, float]) -> float:
        return of[0] * (1 - assumed.people) + of[1] * assumed.people

    a_second = turns / _DAY_S * assumed.peak
    gib = turns * (mean(measured.kib) + 2 * assumed.text_kib) / _KIB_A_GIB
    events, streams = (turns * _YEAR * mean(of) for of in (measured.events, measured.streams))
    ms = mean(measured.writer_ms)
    # What was measured had few streams. A turn moves one, or so.
    more_ms = measured.moved_us_a_million * streams / 1e6 / 1000
    return Load(
        turns=turns,
        sessions=turns // assumed.turns_a_session,
        a_second=a_second,
        processor=a_second * ms / 1000,
        processor_year=a_second * (ms + more_ms) / 1000,
        at_once=a_second * assumed.model_s,
        gib_a_day=gib,
        tib_a_year=gib * _YEAR / 1024,
        memory_gib=streams * measured.stream_bytes / 1024**3,
        views_h=events * measured.view_us_an_event / 1e6 / 3600,
        verify_h=events * measured.verify_us_an_event / 1e6 / 3600,
    )


def most_turns(measured: Measured = MEASURED, assumed: Assumed = ASSUMED) -> float:
    """Return how many turns a second one writer of a young log bears in its busiest hour."""
    return MOST.processor / load(_DAY_S, measured, assumed._replace(peak=1)).processor


def of_one_writer() -> Iterator[Sequence[str]]:
    """Yield the rows of the table of one writer."""
    for one in map(load, LOADS):
        yield (
            f"{one.turns:,}",
            f"{one.sessions:,}",
            _short(one.a_second),
            f"{one.at_once:,.0f}",
            f"{_short(one.processor * 100)}, {_short(one.processor_year * 100)} %",
            f"{_short(one.gib_a_day)} GiB",
            f"{_short(one.tib_a_year)} TiB",
            f"{_short(one.memory_gib)} GiB",
            f"{_short(one.verify_h)}, {_short(one.views_h)} h",
            one.gives_out,
        )


def of_a_fleet(
    logs: int = 1_000, sessions: int = 10_000_000, events: int = 10, measured: Measured = MEASURED
) -> Iterator[Sequence[str]]:
    """Yield what a fleet takes, by what is asked: of sessions that sleep, with so many events each."""
    kib_an_event = 0.67
    kept = sessions * events * kib_an_event / _KIB_A_GIB
    empty = logs * measured.empty_log_kib / _KIB_A_GIB
    connections = logs * measured.connections
    together = 20
    yield "disk: what was said", f"{kept:,.0f} GiB"
    yield "disk: the logs themselves, a third of that in catalogs", f"{empty:.1f} GiB"
    yield (
        "memory: `intersession serve`, a process for each log",
        f"{logs * measured.serve_mib / 1024:,.0f} GiB",
    )
    shared = (together * measured.process_mib + logs * measured.host_mib) / 1024
    yield f"memory: {together} processes of yours with {logs // together} hosts each", f"{shared:.1f} GiB"
    yield "connections, idle", f"{connections:,}"
    yield "memory: PostgreSQL, for these", f"{connections * measured.backend_mib / 1024:.1f} GiB"
    yield "all opened, one by one", f"{logs * measured.open_ms / 1000:,.0f} s"
    ends = sessions * measured.stream_bytes / 1024**2
    yield "memory: the ends of the sessions' streams, for checkpoints", f"{ends:,.0f} MiB"
    active = sessions // 100
    yield "memory: a hundredth of the sessions awake", f"{active * measured.kib_awake / 1024:,.0f} MiB"
    yield f"turns a second of these {together} processes, a processor each", f"{together * most_turns():,.0f}"


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.1f}" if number >= 1 else f"{number:.2f}"


def rows(table: Iterator[Sequence[str]]) -> str:
    """Return the rows of a table of Markdown."""
    return "\n".join(f"| {' | '.join(row)} |" for row in table)


if __name__ == "__main__":
    print(rows(of_one_writer()), rows(of_a_fleet()), sep="\n\n")  # noqa: T201 - it is a script
