"""The queue as workers have it, by connections of their own: with a role that may call its functions and nothing else (WORK-3)."""

import time
from collections.abc import Collection, Sequence
from typing import Final

from intersession_events.facts import ForkedFrom
from intersession_events.log.envelope import Authorised, unseal
from intersession_events.log.lineage import Lineage
from intersession_events.log.recorded import Recorded
from intersession_events.log.sql import Row
from intersession_events.log.work_queue import (
    FORGOTTEN_S,
    MOST_AT_ONCE,
    CallId,
    Offer,
    Worker,
    checked_content,
    checked_worker,
    from_row,
)
from intersession_events.stores.keys.keyring import Keyring
from intersession_events.stores.library.mapper import Erasures
from intersession_events.stores.portable.reading.events import check_neighbours
from intersession_events.stores.postgres.address import address_of
from intersession_events.stores.postgres.queue.asking import Asking, columns_of
from intersession_events.stores.postgres.queue.statements import answers_channel, offers_channel

_ANNOUNCE: Final = "SELECT announce_worker(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_TAKE: Final = "SELECT * FROM take_calls(?, ?)"
_RENEW: Final = "SELECT lost, of_alive FROM renew_calls(?, ?, ?, ?) ORDER BY lost"
_STREAM: Final = "SELECT stream FROM agent_calls WHERE kind=? AND id=? AND attempt=?"
_ANSWER: Final = "SELECT answer_call(?, ?, ?, ?, ?)"
_EVENTS: Final = "SELECT * FROM events_of_call(?, ?, ?, ?, ?, ?, ?)"
_LEAVE: Final = "SELECT leave_work(?)"
_PLACE: Final = "SELECT gateway, alive_s, log_id, log_ids, positions FROM work_place()"


class Taking:
    """A `TakesWork` on the log's database."""

    def __init__(self, url: str, keys: Keyring | None = None) -> None:
        """Prepare to take the calls of the log at a URL; nothing is asked yet. The keys are those of its writer's process.

        Raises:
            NoSuchStore: it is no URL of a log on PostgreSQL.
        """
        address = address_of(url)
        self._asking = Asking(address, offers_channel(address.schema), keys)
        self._tell = f"SELECT pg_notify('{answers_channel(address.schema)}', '')"
        self._alive_s: float | None = None
        self._lineage: Lineage | None = None

    @property
    def alive_s(self) -> float:
        """A call is lost to its worker once that has not renewed it for this many seconds."""
        alive_s = self._alive_s
        if alive_s is None:
            alive_s = self._alive_s = float(self._place()[1])
        return alive_s

    def announce(self, worker: Worker) -> None:
        """Say that a worker lives, and what it has."""
        checked_worker(worker)
        self._asking.rows(
            _ANNOUNCE,
            worker.name,
            worker.host,
            worker.version,
            list(worker.agents),
            list(worker.agents.values()),
            list(worker.channels),
            list(worker.channels.values()),
            worker.seats,
            worker.is_draining,
            float(FORGOTTEN_S),
        )
        self._alive_s = None

    def take(self, worker: str, most: int, wait: float) -> Sequence[Offer]:
        """Take up to `most` calls that a worker has the agent or the channel for, oldest first; wait for the first one."""
        until = time.monotonic() + wait
        while not self._asking.is_closed:
            taken = self._asking.rows(_TAKE, worker, min(most, MOST_AT_ONCE)) if most > 0 else ()
            left = until - time.monotonic()
            if taken or left <= 0:
                return [from_row(Offer, row) for row in taken]
            self._asking.hear(left)
        return ()

    def renew(self, worker: str, calls: Collection[CallId]) -> Collection[CallId]:
        """Say that a worker lives and has these calls; return those that are no longer its own."""
        mine: list[CallId] = [*calls]
        kinds, ids, attempts = columns_of(mine) if mine else ([""], [""], [0])
        # The first row counts none: it says of how long a silence a call is lost.
        told, *lost = self._asking.rows(_RENEW, worker, kinds, ids, attempts)
        self._alive_s = told[1]
        return [mine[int(row[0]) - 1] for row in lost if mine]

    def answer(self, worker: str, call: CallId, content: bytes) -> bool:
        """Say what came of a call, durably; False if it is no longer this worker's."""
        checked_content(content)
        if (keys := self._asking.keys) is not None:
            for (stream,) in self._asking.rows(_STREAM, *call):
                content = keys.sealed_call(content, stream)
        ((counts,),) = self._asking.rows(_ANSWER, worker, *call, content)
        # In a transaction of its own: those that notify are committed one after the other, with the disk's time of each.
        self._asking.rows(self._tell)
        is_counted: bool = counts
        return is_counted

    def events(self, worker: str, call: CallId, after: int) -> Sequence[Recorded]:
        """Return the events of the stream of a call that the worker has taken, behind a version, up to the call's own.

        Raises:
            WorkRefused: it does not have the call, or no longer.
            CorruptEvent: one of them was changed or is missing.
            UnknownTopic: one of them is of a newer version.
        """
        if self._lineage is None:
            _, _, log_id, log_ids, positions = self._place()
            forks = zip(log_ids, positions, strict=True)
            self._lineage = Lineage(
                log_id, tuple(ForkedFrom(log_id=of, position=at, flow="", heads=()) for of, at in forks)
            )

        lineage = self._lineage

        def erasures(_: str) -> Sequence[Recorded]:
            rows = self._asking.rows(_EVENTS, worker, *call, True, 0, MOST_AT_ONCE * MOST_AT_ONCE)
            return [_proven(row, lineage, _nothing) for row in rows]

        authorised = Erasures(erasures)
        rows = self._asking.rows(_EVENTS, worker, *call, False, after, MOST_AT_ONCE)
        found = [_proven(row, lineage, authorised) for row in rows]
        check_neighbours(found, after, lineage)
        return found

    def leave(self, worker: str) -> None:
        """Say that a worker ends. Calls that it has not answered are lapsed at once."""
        self._asking.rows(_LEAVE, worker)

    def gateway(self) -> str | None:
        """Return the address of the gateway of the log's writer; None while there is none."""
        gateway: str | None = self._place()[0]
        return gateway

    def close(self) -> None:
        """Close the connections; a `take` that waits returns soon."""
        self._asking.close()

    def _place(self) -> Row:
        (found,) = self._asking.rows(_PLACE)
        return found


def _proven(row: Row, lineage: Lineage, authorised: Authorised) -> Recorded:
    position, stream, version, topic, state = row
    return unseal(
        log_id=lineage.log_id_at(position),
        position=position,
        stream=stream,
        version=version,
        topic=topic,
        state=state,
        authorised=authorised,
    )


def _nothing(_: str, _at: int, _stands: str) -> None:
    return None
