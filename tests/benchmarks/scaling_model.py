"""What one writer bears, and what a fleet costs, beyond this machine: a model on measured inputs, which docs/scaling.md quotes.

`python -m tests.benchmarks scaling` measures the inputs; `python tests/benchmarks/scaling_model.py` prints the tables.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

_DAY_S: Final = 86_400
_KIB_A_GIB: Final = 1024 * 1024


class Measured(NamedTuple):
    """What `scaling` has measured."""

    writer_ms_a_turn: float = 1.0
    """Processor time of the writer for a turn of a ping-pong, 64 pairs or more."""
    server_ms_a_turn: float = 0.3
    """Processor time of PostgreSQL for the same."""
    kib_a_turn: float = 4.6
    """What a turn with short texts takes on disk, views among it."""
    events_a_turn: float = 4.9
    view_us_an_event: float = 82
    verify_us_an_event: float = 30
    kib_awake: float = 4.4
    kib_a_session: float = 2.0
    """What a session that is asleep takes on disk, with one message."""
    empty_log_kib: float = 964
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

    text_kib: float = 2
    """A message of a model. It stands in the log where it was said and where it was heard."""
    model_s: float = 5
    """How long a model thinks."""
    peak: float = 4
    """The busiest hour, as a multiple of the average one."""
    most: float = 0.7
    """The share of a processor that a writer may have in that hour."""
    turns_a_session: int = 20
    """What an active session has in a day."""


class Load(NamedTuple):
    """What a number of turns a day means for one writer."""

    turns: int
    sessions: int
    a_second: float
    processor: float
    at_once: float
    gib_a_day: float
    tib_a_year: float
    views_h: float
    verify_h: float

    @property
    def gives_out(self) -> str:
        """What gives out first."""
        if self.processor > ASSUMED.most:
            return "processor"
        if self.tib_a_year > _MOST_TIB:
            return "disk"
        return "views" if self.views_h > _MOST_H else "nothing"


MEASURED: Final = Measured()
ASSUMED: Final = Assumed()
LOADS: Final = (10_000, 100_000, 300_000, 1_000_000, 10_000_000, 20_000_000)
_MOST_TIB: Final = 2
_MOST_H: Final = 8
_YEAR: Final = 365


def load(turns: int, measured: Measured = MEASURED, assumed: Assumed = ASSUMED) -> Load:
    """Return what so many turns a day mean."""
    a_second = turns / _DAY_S * assumed.peak
    gib = turns * (measured.kib_a_turn + 2 * assumed.text_kib) / _KIB_A_GIB
    events = turns * _YEAR * measured.events_a_turn
    return Load(
        turns=turns,
        sessions=turns // assumed.turns_a_session,
        a_second=a_second,
        processor=a_second * measured.writer_ms_a_turn / 1000,
        at_once=a_second * assumed.model_s,
        gib_a_day=gib,
        tib_a_year=gib * _YEAR / 1024,
        views_h=events * measured.view_us_an_event / 1e6 / 3600,
        verify_h=events * measured.verify_us_an_event / 1e6 / 3600,
    )


def most_turns(measured: Measured = MEASURED, assumed: Assumed = ASSUMED) -> float:
    """Return how many turns a second one writer bears in its busiest hour."""
    return assumed.most * 1000 / measured.writer_ms_a_turn


def of_one_writer() -> Iterator[Sequence[str]]:
    """Yield the rows of the table of one writer."""
    for one in map(load, LOADS):
        yield (
            f"{one.turns:,}",
            f"{one.sessions:,}",
            _short(one.a_second),
            f"{_short(one.processor * 100)} %",
            f"{one.at_once:,.0f}",
            f"{_short(one.gib_a_day)} GiB",
            f"{_short(one.tib_a_year)} TiB",
            f"{_short(one.verify_h)} h",
            f"{_short(one.views_h)} h",
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
