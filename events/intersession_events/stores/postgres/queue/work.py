"""The queue as the log's writer has it: what it changes is checked against its epoch in the same statement."""

import time
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final, Protocol

from intersession_events.basics.errors import StoreUnavailable, WorkRefused
from intersession_events.log.lineage import Lineage
from intersession_events.log.sql import Row, SqlValue
from intersession_events.log.work_queue import (
    ALIVE_S,
    FORGOTTEN_S,
    Answer,
    CallId,
    Offer,
    QueuedCall,
    Taker,
    Worker,
    from_row,
)
from intersession_events.stores.keys.keyring import Keyring
from intersession_events.stores.postgres.address import address_of
from intersession_events.stores.postgres.queue.asking import Asking, columns_of
from intersession_events.stores.postgres.queue.statements import answers_channel
from intersession_events.stores.postgres.queue.taking import Taking

_SET_UP: Final = "SELECT set_up_work(?, ?, ?, ?::text[]::bigint[])"
_SEAL: Final = "SELECT seal_work(?)"
_OFFER: Final = "SELECT offer_calls(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_WITHDRAW: Final = "SELECT withdraw_calls(?, ?, ?, ?, ?)"
_EXTEND: Final = "SELECT extend_calls(?, ?, ?, ?, ?)"
_DROP: Final = "SELECT drop_calls(?, ?, ?, ?)"
# One that came too late follows what its writer says to that.
_ANSWERS: Final = (
    "SELECT kind, id, attempt, worker, answer, over IS NOT NULL FROM agent_calls "
    "WHERE worker IS NOT NULL AND answer IS NOT NULL AND (NOT is_late OR over IS NOT NULL) ORDER BY answered, number"
)
_LAPSED: Final = (
    "SELECT kind, id, attempt FROM agent_calls WHERE worker IS NOT NULL AND alive_until <= clock_timestamp() "
    "AND over IS NULL AND (answer IS NULL OR is_late) ORDER BY number"
)
_STANDING: Final = (
    "SELECT kind, id, attempt, name, stream, (extract(epoch FROM offered) * 1000)::bigint, secret, worker, "
    "coalesce(alive_until > clock_timestamp(), false), answer IS NOT NULL, over IS NOT NULL FROM agent_calls ORDER BY number"
)
_SHOWN: Final = _STANDING.replace(" secret,", " '',")
"""The same for a reader, whose role may not see a secret: a worker's acts are taken by it."""
_WORKERS: Final = (
    "SELECT name, host, version, agents, of_agents, channels, of_channels, seats, is_draining, "
    "(SELECT count(*) FROM agent_calls WHERE worker = workers.name AND answer IS NULL AND over IS NULL "
    "AND alive_until > clock_timestamp()), (extract(epoch FROM since) * 1000)::bigint "
    "FROM workers WHERE alive_until > clock_timestamp() ORDER BY name"
)
_STATE: Final = (
    "SELECT (SELECT max(answered)::text FROM agent_calls WHERE worker IS NOT NULL), (SELECT string_agg(name || since || is_draining, ' ' ORDER BY name) "
    "FROM workers WHERE alive_until > clock_timestamp())"
)
_IS_THERE: Final = "SELECT to_regclass('agent_calls') IS NOT NULL"


class LogOfWork(Protocol):
    """A log in whose schema the queue is."""

    epoch: int
    path: str
    keys: Keyring | None

    @property
    def lineage(self) -> Lineage:
        """Which log each event was written in."""
        ...

    def kept_rows(self, statement: str, parameters: Sequence[SqlValue] = (), /) -> list[Row]:
        """Return the rows of a reading statement."""
        ...


class SchemaWork:
    """A `WorkQueue` in the log's schema."""

    def __init__(self, log: LogOfWork, url: str, *, writes: bool) -> None:
        self._log = log
        self._standing = _STANDING if writes else _SHOWN
        address = address_of(url)
        self._asking = Asking(address, answers_channel(address.schema), log.keys)
        self._taking = Taking(url, log.keys)
        self.alive_s = ALIVE_S
        """A call is lost to a worker that has not renewed it for this many seconds."""
        self.on_answer: Callable[[Answer], object] | None = None
        """Nobody calls it: answers come from elsewhere."""
        self._told_s: float | None = None
        """What workers were told of that: with the next offer, or as the writer next waits."""
        self._is_there = False
        self._state: Row | None = None
        """How answers and workers stood when they were last looked at."""

    @property
    def to_take(self) -> Taking:
        """The same queue as workers have it that reach it through this process."""
        return self._taking

    def offer(self, offers: Sequence[Offer], takers: Sequence[Taker] = ()) -> Sequence[Sequence[Offer]]:
        """Put attempts into the queue, and take calls for `takers`. One that is there already stays as it is."""
        if offers:
            keys = self._log.keys
            self._set_up()
            self._change(
                _OFFER,
                *columns_of([one.call for one in offers]),
                [one.name for one in offers],
                [one.stream for one in offers],
                [one.version for one in offers],
                [one.secret for one in offers],
                [one.context_hash for one in offers],
                [
                    one.content if keys is None else keys.sealed_call(one.content, one.stream)
                    for one in offers
                ],
                [-1 if one.deadline is None else one.deadline for one in offers],
            )
        return [self._taken(*taker) for taker in takers]

    def _taken(self, worker: str, most: int) -> Sequence[Offer]:
        try:
            return self._taking.take(worker, most, 0.0)
        except (WorkRefused, StoreUnavailable):  # it is told so as it takes itself
            return ()

    def withdraw(self, calls: Collection[CallId]) -> None:
        """Note that attempts are over. One that nobody has taken goes."""
        self._change(_WITHDRAW, *columns_of(calls or [_NONE]), float(FORGOTTEN_S))

    def extend(self, calls: Collection[CallId]) -> None:
        """Give all workers, and those of these calls, their time anew."""
        self._set_up()
        self._change(_EXTEND, *columns_of(calls or [_NONE]), float(self.alive_s))

    def answers(self) -> Sequence[Answer]:
        """Return all answers that are not yet dropped, oldest first."""
        return [from_row(Answer, row) for row in self._rows(_ANSWERS)]

    def drop(self, calls: Collection[CallId]) -> None:
        """Remove the rows of attempts."""
        if calls:
            self._change(_DROP, *columns_of(calls))

    def lapsed(self) -> Sequence[CallId]:
        """Return the attempts whose worker has not said for too long that it lives."""
        return [CallId(*row) for row in self._rows(_LAPSED)]

    def standing(self) -> Sequence[QueuedCall]:
        """Return how every attempt of the queue stands, in the order in which they were offered."""
        return [from_row(QueuedCall, row) for row in self._rows(self._standing, often=False)]

    def workers(self) -> Sequence[Worker]:
        """Return the workers that are alive, by name."""
        return [
            from_row(
                Worker,
                (
                    *row[:3],
                    dict(zip(row[3], row[4], strict=True)),
                    dict(zip(row[5], row[6], strict=True)),
                    *row[7:],
                ),
            )
            for row in self._rows(_WORKERS)
        ]

    def wait(self, timeout: float) -> bool:
        """Wait until something was answered, or the workers changed."""
        if self._log.epoch:
            self._set_up()
        until = time.monotonic() + timeout
        while not self._asking.is_closed:
            if self._asking.hear(until - time.monotonic()):
                return True
            if (state := self._asking.rows(_STATE)[0]) != self._state:
                self._state = state
                return True
            if time.monotonic() >= until:
                return False
        return False

    def close(self) -> None:
        """Let all that wait go on, and close the connections."""
        self._asking.close()
        self._taking.close()

    def _set_up(self) -> None:
        """Say to workers when a call is lost, and in which logs the events were written."""
        if self._told_s != (alive_s := self.alive_s):
            forks = self._log.lineage.forks
            self._change(
                _SET_UP,
                float(alive_s),
                [fork.log_id for fork in forks],
                [str(fork.position) for fork in forks],
            )
            if self._log.keys is not None:
                self._change(_SEAL)
            self._told_s = alive_s

    def _change(self, statement: str, *parameters: Any) -> None:  # what a function takes
        if not self._log.epoch:
            raise StoreUnavailable(f"{self._log.path} is open for reading only")
        self._asking.rows(statement, self._log.epoch, *parameters, epoch=self._log.epoch)

    def _rows(self, statement: str, *, often: bool = True) -> list[Row]:
        """Return rows; what is not read `often` needs no connection of the queue's own, so that a host without workers has none."""
        if not self._is_there:  # an older log, which its owner has not opened with this version
            self._is_there = self._log.kept_rows(_IS_THERE) == [(True,)]
        if often and self._log.epoch and self._is_there:
            return self._asking.rows(statement)
        return self._log.kept_rows(statement) if self._is_there else []


_NONE: Final = CallId("agent", "", 0)
"""No attempt has that number."""
