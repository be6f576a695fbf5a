"""The tail: feeds views in log order, in batches, and remembers how far each got in the same transaction as its rows.

An event that a view can't take in is set aside with its reason, and the tail goes on (J3). Setting right is rebuilding:
what came after the event may depend on it.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Final, NamedTuple, Self

from intersession_events.errors import LogError, StoreUnavailable
from intersession_events.log import InlineView, Log, Recorded, Sql

_BATCH: Final = 500
_RETRY_SECONDS: Final = 1.0
_log = logging.getLogger(__name__)


class SetAside(NamedTuple):
    """An event that a view could not take in, and why."""

    view: str
    position: int
    reason: str


class Tail:
    """Keeps views up with a log. `catch_up` works in the caller's thread; `start` gives the tail its own.

    The log must be open for writing. A view's name is its identity: two tails must not feed the same one.
    """

    def __init__(self, log: Log, views: Sequence[InlineView]) -> None:
        self._log = log
        self._views = tuple(views)
        self._moved = threading.Condition()
        self._work = threading.Lock()  # one feeder at a time
        self._positions: dict[str, int] = {}
        self._committed = False
        self._stopping = False
        self._thread: threading.Thread | None = None
        self._unsubscribe: Callable[[], None] | None = None
        log.transact(self._prepare)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Follow the log in a thread of the tail's own, woken by each commit."""
        if self._thread is not None:
            return
        self._unsubscribe = self._log.on_committed(self._wake)
        self._thread = threading.Thread(target=self._follow, name="intersession-tail", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop following; the batch at work is finished. Does nothing where nothing was started."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        if self._unsubscribe is not None:
            self._unsubscribe()
        with self._moved:
            self._stopping = True
            self._moved.notify_all()
        thread.join()
        self._stopping = False

    def catch_up(self) -> int:
        """Feed all that the log has to all views; return the position reached.

        Raises:
            StoreUnavailable: the store could not take a batch; nothing of that batch was kept.
        """
        while self._step():
            pass
        return self.position

    @property
    def position(self) -> int:
        """The position all views have reached."""
        with self._moved:
            return min(self._positions.values(), default=0)

    def wait(self, position: int, *, timeout: float) -> bool:
        """Wait until all views have taken in a position; False if they have not in time. Needs `start`."""
        with self._moved:
            return self._moved.wait_for(lambda: min(self._positions.values(), default=0) >= position, timeout)

    def set_aside(self) -> list[SetAside]:
        """Return the events that views could not take in, in log order."""
        rows = self._log.query("SELECT view, position, reason FROM tail_set_aside ORDER BY position, view")
        names = {view.name for view in self._views}
        return [SetAside(*row) for row in rows if row[0] in names]

    def rebuild(self, name: str) -> None:
        """Drop a view and feed it the whole log again; what was set aside for it gets its second chance.

        Raises:
            KeyError: this tail feeds no such view.
            StoreUnavailable: the store could not take it; the tail will go on from where it got to.
        """
        view = {view.name: view for view in self._views}[name]
        with self._work:
            self._log.transact(lambda sql: _begin(sql, view))
            with self._moved:
                self._positions[name] = 0
        self.catch_up()

    def _prepare(self, sql: Sql) -> None:
        sql.execute(
            "CREATE TABLE IF NOT EXISTS tail_positions "
            "(view TEXT PRIMARY KEY, shape BIGINT NOT NULL, position BIGINT NOT NULL)"
        )
        sql.execute(
            "CREATE TABLE IF NOT EXISTS tail_set_aside "
            "(view TEXT NOT NULL, position BIGINT NOT NULL, reason TEXT NOT NULL, PRIMARY KEY (view, position))"
        )
        for view in self._views:
            found = sql.execute(
                "SELECT shape, position FROM tail_positions WHERE view = ?", (view.name,)
            ).fetchone()
            if found is None or found[0] != view.shape:
                _begin(sql, view)
                found = (view.shape, 0)
            self._positions[view.name] = found[1]

    def _step(self) -> bool:
        """Feed one batch, starting with the view that is furthest behind; return whether there was one."""
        with self._work:
            after = self.position
            batch, unreadable = _read(self._log, after)
            if not batch and not unreadable:
                return False
            reached = max([*(recorded.position for recorded in batch), *unreadable])
            try:
                self._log.transact(lambda sql: self._feed(sql, batch, unreadable, reached, careful=False))
            except StoreUnavailable:
                raise
            except Exception:  # noqa: BLE001 - whatever a view raises is found and set aside in the second try
                self._log.transact(lambda sql: self._feed(sql, batch, unreadable, reached, careful=True))
            with self._moved:
                for view in self._views:
                    self._positions[view.name] = max(self._positions[view.name], reached)
                self._moved.notify_all()
            return True

    def _feed(
        self,
        sql: Sql,
        batch: Sequence[Recorded],
        unreadable: dict[int, str],
        reached: int,
        *,
        careful: bool,
    ) -> None:
        for view in self._views:
            position = self._positions[view.name]
            if position >= reached:
                continue
            for at, reason in unreadable.items():
                if at > position:
                    _put_aside(sql, view, at, reason)
            for recorded in batch:
                if recorded.position <= position:
                    continue
                if careful:
                    _apply_or_put_aside(sql, view, recorded)
                else:
                    view.apply(sql, recorded)
            sql.execute("UPDATE tail_positions SET position = ? WHERE view = ?", (reached, view.name))

    def _wake(self, _committed: Sequence[Recorded]) -> None:
        with self._moved:
            self._committed = True
            self._moved.notify_all()

    def _follow(self) -> None:
        while True:
            with self._moved:
                self._committed = False
            try:
                self.catch_up()
            except LogError as error:
                _log.warning("the tail could not go on, it tries again: %s", error)
                with self._moved:
                    self._moved.wait_for(lambda: self._stopping, _RETRY_SECONDS)
                    self._committed = True
            with self._moved:
                self._moved.wait_for(lambda: self._stopping or self._committed)
                if self._stopping:
                    return


def _read(log: Log, after: int) -> tuple[list[Recorded], dict[int, str]]:
    """Return the next batch. It ends at the first row that can't be read, which is given with the reason."""
    try:
        return list(log.all(after=after, limit=_BATCH)), {}
    except LogError as error:
        if error.position is None:
            raise
        return list(log.all(after=after, to=error.position - 1)), {error.position: _reason(error)}


def _begin(sql: Sql, view: InlineView) -> None:
    view.drop(sql)
    view.create(sql)
    sql.execute("DELETE FROM tail_set_aside WHERE view = ?", (view.name,))
    sql.execute(
        "INSERT INTO tail_positions (view, shape, position) VALUES (?, ?, 0) "
        "ON CONFLICT (view) DO UPDATE SET shape = excluded.shape, position = 0",
        (view.name, view.shape),
    )


def _apply_or_put_aside(sql: Sql, view: InlineView, recorded: Recorded) -> None:
    sql.execute("SAVEPOINT one_event")
    try:
        view.apply(sql, recorded)
    except Exception as error:  # noqa: BLE001 - a poison event may raise anything, and the tail goes on
        sql.execute("ROLLBACK TO SAVEPOINT one_event")
        _put_aside(sql, view, recorded.position, _reason(error))
    sql.execute("RELEASE SAVEPOINT one_event")


def _put_aside(sql: Sql, view: InlineView, position: int, reason: str) -> None:
    sql.execute(
        "INSERT INTO tail_set_aside (view, position, reason) VALUES (?, ?, ?) "
        "ON CONFLICT (view, position) DO UPDATE SET reason = excluded.reason",
        (view.name, position, reason),
    )
    _log.warning("view %s set the event at position %d aside: %s", view.name, position, reason)


def _reason(error: Exception) -> str:
    """Say what went wrong; no NUL, which PostgreSQL's text refuses."""
    return f"{type(error).__name__}: {error}".replace("\0", "\\0")[:500]
