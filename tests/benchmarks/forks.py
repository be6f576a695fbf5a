"""What a fork of a run takes: finding what has to go along, and writing it, in logs of any size."""

from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path

from benchmarks.figures import Figure, progress, spread, timed, worked
from benchmarks.logs import START_MS, Told, crowd_told, opening, saying, session_id, write_directly
from intersession_actors.hindsight.forking.making import Wanted, make_fork
from intersession_events.basics import ids
from intersession_events.basics.machine import random_id
from intersession_events.copies.checkpoints.taking import CheckpointTaker, append_of
from intersession_events.facts import Event, ExchangeAccepted, ExchangeClosed, LoopEnded, TurnEnded
from intersession_events.stores.sqlite.log import SqliteLog
from intersession_projections.copies.forks.closure import closed_streams, roots_of
from intersession_projections.views.flows.flows import Flows
from intersession_projections.views.inline_views import inline_views

NAME = "forks"
_EXCHANGE = ids.derive("6a4d280b-fc53-4c01-9c8c-4d77a60bfa97", "exchange")
_ASKER, _TARGET = "agent:ask:main", "agent:told:main"
_EVERY = 1_000


def measure(directory: Path, *, events: int = 10_000, others: int = 5_000, times: int = 5) -> list[Figure]:
    """Fork a run of so many events, in a log with `others` sessions beside, two events each; and open the fork to go on in it."""
    path = directory / "log.db"
    progress(f"writes {events + 2 * others:,} events")
    write_directly(path, chain(crowd_told(others), _run_told(events)))
    progress("builds its views")
    with SqliteLog(path, inline=inline_views()) as log:
        progress("takes its checkpoints")
        taker = CheckpointTaker(log)
        while taker.fold():
            if taker.fresh >= _EVERY:
                taken = log.append_now([append_of(log.log_id, taker.take(), time=START_MS)])
                taker.appended(taken.recorded[0])
        flow = Flows(log).exchange(_EXCHANGE)
        assert flow is not None
        find = partial(closed_streams, log, roots_of(log, flow), log.head())
        streams = find()

        made: list[str] = []

        def fork() -> None:
            wanted = Wanted(_EXCHANGE, log.head())
            came = make_fork(
                log,
                wanted,
                fork_id=random_id(),
                now_ms=START_MS,
                directory=directory / "forks",
            )
            made.append(came.path)

        def go_on() -> None:
            with SqliteLog(made.pop(), inline=inline_views()) as going_on:
                Flows(going_on).open_exchanges()

        size = f"of {events:,} events in a log of {log.head():,}"
        progress("forks")
        return [
            *spread(NAME, f"find what goes along, {size}", timed(find, times)),
            *spread(NAME, f"fork, {size}, {len(streams)} streams", timed(fork, times)),
            *spread(NAME, "processor time of that", worked(fork, times)),
            *spread(NAME, "open a fork to go on", timed(go_on, times)),
        ]


def _run_told(events: int) -> Iterator[Told]:
    """Yield an exchange between two sessions that say a lot."""
    streams = {key: ids.session_stream(key) for key in (_ASKER, _TARGET)}
    for key, stream in streams.items():
        yield Told(stream, opening(key), START_MS)
    own = ids.exchange_stream(_EXCHANGE)
    accepted = ExchangeAccepted(
        exchange_id=_EXCHANGE,
        run_id=_EXCHANGE,
        target=_TARGET,
        target_session_id=session_id(_TARGET),
        message_id="m",
        message="m",
        requester=_ASKER,
    )
    yield Told(own, accepted, START_MS)
    for number in range(events - 6):
        key = (_ASKER, _TARGET)[number % 2]
        yield Told(streams[key], saying(key, f"run-{number}", "hello" * 20), START_MS)
    ends: tuple[Event, ...] = (
        TurnEnded(turn=0, speaker=_TARGET, run_id=_EXCHANGE, status="ok", text="m"),
        LoopEnded(reason="reply_skip", turns=0),
        ExchangeClosed(reason="silent"),
    )
    for event in ends:
        yield Told(own, event, START_MS)
