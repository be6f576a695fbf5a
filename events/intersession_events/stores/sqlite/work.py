"""The queue of calls for workers in a log's file: each change is work of the log's writer, so that the epoch fences it.

Workers reach it through this process alone, by its gateway.
"""

import re
import threading
from collections.abc import Callable, Collection, Sequence
from typing import Final, Protocol, TypeVar

import msgspec

from intersession_events.basics.errors import WorkRefused
from intersession_events.basics.machine import monotonic_s
from intersession_events.log.recorded import Recorded
from intersession_events.log.sql import Row, SqlValue
from intersession_events.log.tables import WORK_TABLES
from intersession_events.log.work_queue import (
    ALIVE_S,
    FORGOTTEN_S,
    MOST_AT_ONCE,
    Answer,
    CallId,
    Offer,
    QueuedCall,
    Taker,
    Worker,
    checked_content,
    checked_number,
    checked_worker,
    from_row,
)
from intersession_events.stores.database import Cursor
from intersession_events.stores.keys.keyring import Keyring
from intersession_events.stores.portable.reading.events import EventReader

T = TypeVar("T")

_MADE: Final = re.compile("^CREATE (TABLE|INDEX)")
_THIS: Final = "kind=? AND id=? AND attempt=?"
_NAMES: Final = msgspec.json.Decoder(dict[str, str])


class HoldsWork(Protocol):
    """A log in whose file the queue is."""

    gateway: str | None

    def changed(self, work: Callable[[Cursor], T], /, *, patient: bool = False) -> T:
        """Run work as its writer, in the transaction of appends that wait, or, if it is `patient`, of one that soon comes."""
        ...

    def rows_beside(self, statement: str, parameters: Sequence[SqlValue] = (), /) -> list[Row]:
        """Return the rows of a reading statement on tables beside the events."""
        ...

    @property
    def events(self) -> EventReader:
        """What reads its events."""
        ...

    @property
    def keys(self) -> Keyring | None:
        """Its keys, if it is kept encrypted; what it reads comes in clear."""
        ...


class FileWork:
    """The queue as its writer has it, and as workers have it that reach it through this process (`to_take`): one object."""

    def __init__(self, log: HoldsWork, clock: Callable[[], int]) -> None:
        self._log = log
        self._clock = clock
        self.alive_s = ALIVE_S
        """A call is lost to a worker that has not renewed it for this long."""
        self.on_answer: Callable[[Answer], object] | None = None
        """Is told of an answer in time, before that is durable; then `wait` does not return for it."""
        self._is_there = False
        self._changed = threading.Condition()
        self._offered = 0
        """Counts what workers that wait have to look at."""
        self._answered = 0
        """Counts what the writer has to look at."""
        self._seen = 0
        self._is_closed = False

    @property
    def to_take(self) -> "FileWork":
        """The same queue as workers have it that reach it through this process."""
        return self

    def offer(self, offers: Sequence[Offer], takers: Sequence[Taker] = ()) -> Sequence[Sequence[Offer]]:
        """Put attempts into the queue, and take calls for `takers`, in one transaction. One that is there already stays as it is."""
        now = self._clock()
        rows = [
            (
                o.kind,
                o.id,
                o.attempt,
                o.name,
                o.stream,
                o.version,
                o.secret,
                o.context_hash,
                self._sealed(o.content, o.stream),
                o.deadline,
                now,
            )
            for o in offers
        ]

        def put(cursor: Cursor) -> list[list[Offer]]:
            cursor.executemany(
                "INSERT INTO agent_calls (kind, id, attempt, name, stream, version, secret, context_hash, content, deadline, "
                "offered) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                rows,
            )
            taken = list[list[Offer]]()
            for taker in takers:
                try:
                    taken.append(self._take(cursor, *taker))
                except WorkRefused:  # it was forgotten, and is told so as it takes itself
                    taken.append([])
            return taken

        taken = self._change(put)
        if sum(map(len, taken)) < len(offers):
            self._tell(offered=True)
        return taken

    def withdraw(self, calls: Collection[CallId]) -> None:
        """Note that attempts are over. One that nobody has taken goes."""
        now = self._clock()

        def end(cursor: Cursor) -> None:
            cursor.executemany(f"DELETE FROM agent_calls WHERE {_THIS} AND worker IS NULL", [*calls])  # noqa: S608 - a constant
            cursor.executemany(
                f"UPDATE agent_calls SET over=COALESCE(over, ?) WHERE {_THIS}",  # noqa: S608 - the same
                [(now, *call) for call in calls],
            )
            # Its worker has had the time to say late what came of it.
            cursor.execute(
                "DELETE FROM agent_calls WHERE worker IS NOT NULL AND over<?", (now - FORGOTTEN_S * 1000,)
            )

        self._change(end)

    def extend(self, calls: Collection[CallId]) -> None:
        """Give all workers, and those of these calls, their time anew."""
        until = self._until(self._clock())

        def renew(cursor: Cursor) -> None:
            cursor.execute("UPDATE workers SET alive_until=?", (until,))
            cursor.executemany(
                f"UPDATE agent_calls SET alive_until=? WHERE {_THIS} AND alive_until>0 AND answer IS NULL AND over IS NULL",  # noqa: S608 - a constant
                [(until, *call) for call in calls],
            )

        self._change(renew)

    def answers(self) -> Sequence[Answer]:
        """Return all answers that are not yet dropped, oldest first."""
        return [
            from_row(Answer, row)
            for row in self._rows(
                # One that came too late follows what its writer says to that.
                "SELECT kind, id, attempt, worker, answer, over IS NOT NULL FROM agent_calls "
                "WHERE worker IS NOT NULL AND answer IS NOT NULL AND (NOT is_late OR over IS NOT NULL) "
                "ORDER BY answered, number"
            )
        ]

    def drop(self, calls: Collection[CallId]) -> None:
        """Remove the rows of attempts."""
        self._change(lambda cursor: cursor.executemany(f"DELETE FROM agent_calls WHERE {_THIS}", [*calls]))  # noqa: S608 - a constant

    def lapsed(self) -> Sequence[CallId]:
        """Return the attempts whose worker has not said for too long that it lives."""
        return [
            CallId(*row)
            for row in self._rows(
                "SELECT kind, id, attempt FROM agent_calls INDEXED BY agent_calls_taken WHERE worker IS NOT NULL "
                "AND alive_until<=? AND over IS NULL "
                "AND (answer IS NULL OR is_late) ORDER BY number",
                (self._clock(),),
            )
        ]

    def standing(self) -> Sequence[QueuedCall]:
        """Return how every attempt of the queue stands, in the order in which they were offered."""
        return [
            from_row(QueuedCall, row)
            for row in self._rows(
                "SELECT kind, id, attempt, name, stream, offered, secret, worker, COALESCE(alive_until>?, 0), "
                "answer IS NOT NULL, over IS NOT NULL FROM agent_calls ORDER BY number",
                (self._clock(),),
            )
        ]

    def workers(self) -> Sequence[Worker]:
        """Return the workers that are alive, by name."""
        now = self._clock()
        return [
            from_row(Worker, (*row[:3], _NAMES.decode(row[3]), _NAMES.decode(row[4]), *row[5:]))
            for row in self._rows(
                "SELECT name, host, version, agents, channels, seats, is_draining, (SELECT COUNT(*) FROM agent_calls "
                "WHERE worker=workers.name AND answer IS NULL AND over IS NULL AND alive_until>?), since "
                "FROM workers WHERE alive_until>? ORDER BY name",
                (now, now),
            )
        ]

    def wait(self, timeout: float) -> bool:
        """Wait until something was answered, or the workers changed."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._answered != self._seen, timeout)
            before, self._seen = self._seen, self._answered
        return before != self._seen

    def close(self) -> None:
        """Let all that wait go on."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    # As workers have it:

    def announce(self, worker: Worker) -> None:
        """Say that a worker lives, and what it has."""
        checked_worker(worker)
        now = self._clock()
        said = (
            worker.host,
            worker.version,
            msgspec.json.encode(dict(worker.agents)).decode(),
            msgspec.json.encode(dict(worker.channels)).decode(),
            worker.seats,
            int(worker.is_draining),
        )

        def put(cursor: Cursor) -> bool:
            cursor.execute(
                "SELECT host, version, agents, channels, seats, is_draining FROM workers WHERE name=? AND alive_until>?",
                (worker.name, now),
            )
            before = cursor.fetchone()
            if before is None:
                cursor.execute("SELECT COUNT(*) FROM workers WHERE alive_until>?", (now,))
                checked_number(cursor.fetchone()[0])
                cursor.execute(
                    "DELETE FROM workers WHERE name=? OR alive_until<?",
                    (worker.name, now - FORGOTTEN_S * 1000),
                )
            cursor.execute(
                "INSERT INTO workers (name, host, version, agents, channels, seats, is_draining, since, alive_until) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET host=excluded.host, "
                "version=excluded.version, agents=excluded.agents, channels=excluded.channels, seats=excluded.seats, "
                "is_draining=excluded.is_draining, alive_until=excluded.alive_until",
                (worker.name, *said, now, self._until(now)),
            )
            return before is None or tuple(before) != said

        if self._change(put):
            self._tell(answered=True, offered=True)

    def take(self, worker: str, most: int, wait: float) -> Sequence[Offer]:
        """Take up to `most` calls that a worker has the agent or the channel for, oldest first; wait for the first one."""
        until = monotonic_s() + wait
        while True:
            seen = self._offered
            # Looked at first: of many that wait for the same call, one writes.
            if self._waiting(self._rows, worker, min(most, 1)):
                taken = self._change(lambda cursor: self._take(cursor, worker, most))
                if taken:
                    return taken
            if not self._hears_of_more(seen, until):
                return ()

    def renew(self, worker: str, calls: Collection[CallId]) -> Collection[CallId]:
        """Say that a worker lives and has these calls; return those that are no longer its own."""
        now = self._clock()
        until = self._until(now)

        def renew(cursor: Cursor) -> list[CallId]:
            cursor.execute("UPDATE workers SET alive_until=? WHERE name=?", (until, worker))
            lost: list[CallId] = []
            for call in calls:
                cursor.execute(
                    f"UPDATE agent_calls SET alive_until=? WHERE {_THIS} AND worker=? AND alive_until>? AND over IS NULL "  # noqa: S608
                    "RETURNING 1",
                    (until, *call, worker, now),
                )
                if cursor.fetchone() is None:
                    lost.append(call)
            return lost

        return self._change(renew)

    def answer(self, worker: str, call: CallId, content: bytes) -> bool:
        """Say what came of a call, durably; False if it is no longer this worker's."""
        checked_content(content)
        now = self._clock()
        sealed = content
        if self._log.keys is not None:
            for (stream,) in self._rows(f"SELECT stream FROM agent_calls WHERE {_THIS}", call):  # noqa: S608 - a constant
                sealed = self._sealed(content, stream)

        def put(cursor: Cursor) -> bool:
            cursor.execute(
                f"UPDATE agent_calls SET answer=?, answered=?, is_late=(over IS NOT NULL OR alive_until<=?) "  # noqa: S608
                f"WHERE {_THIS} AND worker=? AND answer IS NULL RETURNING is_late",
                (sealed, now, now, *call, worker),
            )
            found = cursor.fetchone()
            if found is not None:
                return not found[0]
            cursor.execute(
                f"SELECT answer, is_late FROM agent_calls WHERE {_THIS} AND worker=?",  # noqa: S608
                (*call, worker),
            )
            found = cursor.fetchone()
            return found is not None and tuple(found) == (content, 0)

        hear = self.on_answer
        is_heard = hear is not None and bool(self._has(worker, call, " AND answer IS NULL"))
        if hear is not None and is_heard:
            # The writer puts on record what came of it, and this is written along with that. Until then the worker keeps it.
            hear(Answer(**call._asdict(), worker=worker, content=content))
        counts = self._change(put, patient=is_heard)
        if not is_heard:
            self._tell(answered=True)
        return counts

    def events(self, worker: str, call: CallId, after: int) -> Sequence[Recorded]:
        """Return the events of the stream of a call that the worker has taken, behind a version, up to the call's own."""
        found = self._has(worker, call)
        if not found:
            raise WorkRefused(
                f"{worker} has no call {call.kind} {call.id}, attempt {call.attempt}: it is over, or lost to it"
            )
        ((stream, version),) = found
        return self._log.events.stream(stream, after=after, to=version, limit=MOST_AT_ONCE)

    def _has(self, worker: str, call: CallId, and_what: str = "") -> list[Row]:
        """Return the stream of a call and its version, if the worker has it."""
        return self._rows(
            f"SELECT stream, version FROM agent_calls WHERE {_THIS} AND worker=? AND alive_until>? AND over IS NULL{and_what}",  # noqa: S608
            (*call, worker, self._clock()),
        )

    def leave(self, worker: str) -> None:
        """Say that a worker ends. Calls that it has not answered are lapsed at once."""

        def end(cursor: Cursor) -> None:
            cursor.execute("DELETE FROM workers WHERE name=?", (worker,))
            cursor.execute(
                "UPDATE agent_calls SET alive_until=0 WHERE worker=? AND answer IS NULL", (worker,)
            )

        self._change(end)
        self._tell(answered=True)

    def gateway(self) -> str | None:
        """Return the address of the gateway of the log's writer; None while there is none."""
        return self._log.gateway

    def _take(self, cursor: Cursor, worker: str, most: int) -> list[Offer]:
        def query(statement: str, parameters: Sequence[SqlValue]) -> list[Row]:
            cursor.execute(statement, parameters)
            return [tuple(row) for row in cursor.fetchall()]

        offers: list[Offer] = []
        for number, *told in self._waiting(query, worker, most):
            cursor.execute(
                "UPDATE agent_calls SET worker=?, alive_until=? WHERE number=?",
                (worker, self._until(self._clock()), number),
            )
            offers.append(from_row(Offer, told))
        return offers

    def _waiting(
        self, query: Callable[[str, Sequence[SqlValue]], list[Row]], worker: str, most: int
    ) -> list[Row]:
        found = query("SELECT agents, channels, is_draining FROM workers WHERE name=?", (worker,))
        if not found:
            raise WorkRefused(f"no worker {worker!r} is announced: announce it, and then take")
        ((agents, channels, is_draining),) = found
        names = [("agent", name) for name in _NAMES.decode(agents)] + [
            ("channel", name) for name in _NAMES.decode(channels)
        ]
        if is_draining or not names:
            return []
        return query(
            "SELECT number, kind, id, attempt, name, stream, version, secret, context_hash, content, deadline "  # noqa: S608 - question marks
            # In the order of the rows: by an index, all that wait would be looked up and sorted.
            "FROM agent_calls NOT INDEXED WHERE worker IS NULL "
            f"AND (kind, name) IN (VALUES {', '.join(['(?, ?)'] * len(names))}) ORDER BY number LIMIT ?",
            [*(part for name in names for part in name), min(most, MOST_AT_ONCE)],
        )

    def _hears_of_more(self, seen: int, until: float) -> bool:
        with self._changed:
            self._changed.wait_for(
                lambda: self._is_closed or self._offered != seen, max(0.0, until - monotonic_s())
            )
            return self._offered != seen and not self._is_closed

    def _sealed(self, content: bytes, stream: str) -> bytes:
        return content if self._log.keys is None else self._log.keys.sealed_call(content, stream)

    def _until(self, now: int) -> int:
        return now + round(self.alive_s * 1000)

    def _tell(self, *, offered: bool = False, answered: bool = False) -> None:
        with self._changed:
            self._offered += offered
            self._answered += answered
            self._changed.notify_all()

    def _change(self, work: Callable[[Cursor], T], *, patient: bool = False) -> T:
        def made(cursor: Cursor) -> T:
            if not self._is_there:  # an older log has none, and few have workers
                for statement in WORK_TABLES.values():
                    cursor.execute(_MADE.sub(r"\g<0> IF NOT EXISTS", statement))
            return work(cursor)

        result = self._log.changed(made, patient=patient)
        self._is_there = True
        return result

    def _rows(self, statement: str, parameters: Sequence[SqlValue] = ()) -> list[Row]:
        if not self._is_there:
            if not self._log.rows_beside("SELECT 1 FROM sqlite_master WHERE name='agent_calls'"):
                return []
            self._is_there = True
        return self._log.rows_beside(statement, parameters)
