"""The view of runs: what became of each, from its acceptance to its end, and its idempotency key (GATE-3, SEND-11)."""

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

import msgspec

from intersession_events.facts import (
    ExchangeAccepted,
    RunAborted,
    RunCompleted,
    RunEnd,
    RunFailed,
    RunInterrupted,
    RunQueued,
    RunStarted,
    SpawnAccepted,
    Step,
    Usage,
    ready,
)
from intersession_events.ids import retry_of
from intersession_events.log import Log, Recorded, Row, Sql, SqlValue
from intersession_projections.columns import Packing, beginning_with, hashed, packed, to_text, unpacked
from intersession_projections.flows import Position

RunStatus = Literal["queued", "running", "ok", "error", "timeout", "aborted"]

_STREAM: Final = "session:"


@ready
class RunOutcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A run as far as it got. Times in ms; `started_ms` is the start of attempt `attempt`.

    `reply` is the run's own final text and None is no text; for a run that failed or was aborted it is what the
    agent had said until then. `status` "timeout" is a failure with the code `timeout`. `accepted` and `position` are the
    positions of the run's first and last event, the versions their places in the session's stream; `root` is the
    chain's root (the event's correlation id). `retry_of` is the failed run that this one tries again.
    """

    run_id: str
    session_key: str
    session_id: str
    step: Step
    message_id: str
    status: RunStatus
    queued_ms: int
    accepted: int
    position: int
    first_version: int
    last_version: int
    attempt: int = 0
    started_ms: int | None = None
    ended_ms: int | None = None
    code: str | None = None
    error: str | None = None
    reply: str | None = None
    usage: Usage | None = None
    model: str | None = None
    caller: str | None = None
    exchange_id: str | None = None
    spawn_id: str | None = None
    turn: int | None = None
    chain: tuple[str, ...] = ()
    hops: int = 0
    timeout_ms: int = 0
    root: str | None = None
    retry_of: str | None = None

    @property
    def ended(self) -> bool:
        """Whether nothing more will come of it."""
        return self.status not in {"queued", "running"}

    @property
    def is_alone(self) -> bool:
        """Whether it is a run by itself, no part of an exchange or a spawn."""
        return self.exchange_id is None and self.spawn_id is None

    @property
    def failed(self) -> bool:
        """Whether it ended without an answer, and nobody had stopped it."""
        return self.status in {"error", "timeout"}


_STORED: Final = Packing(
    RunOutcome, apart=("run_id", "accepted", "position", "status", "root"), nested={"usage": Usage}
)
_COLUMNS: Final = "accepted, run_id, status, position, root, state"


def _restored(row: Row) -> RunOutcome:
    accepted, run_id, status, position, root, state = row
    return _STORED.restored(
        state,
        accepted=accepted,
        run_id=unpacked(run_id),
        status=status,
        position=position,
        root=None if root is None else unpacked(root),
    )


class KeyUse(NamedTuple):
    """The run an idempotency key stands for, and the digest of the request it came with."""

    run_id: str
    digest: str | None


class Asked(NamedTuple):
    """Who asked for a run by itself, and under which idempotency key."""

    caller: str
    key: str


def asked_in(event: RunQueued) -> Asked | None:
    """Return who asked for a run; None where nobody gave a key, or where it is part of an exchange or a spawn."""
    if event.idempotency_key is None or event.flow is not None:
        return None
    return Asked(event.caller or "operator", event.idempotency_key)


class RunOfChain(NamedTuple):
    """A run of a causal chain, and what it has used; nothing is known of that before it has ended (LOOP-5)."""

    run_id: str
    ended: bool
    tokens: int
    cost_micros: int


class RunOutcomesView:
    """Keeps a row per run, without its words (the log has them), and the idempotency keys."""

    name = "run_outcomes"
    shape = 2

    def create(self, sql: Sql) -> None:
        """Create the tables.

        `taken_version` is where in its session's stream a run first started, or was given up in the queue: there its
        message is taken.
        """
        sql.execute(
            "CREATE TABLE IF NOT EXISTS run_outcomes (accepted INTEGER PRIMARY KEY, run_id BLOB NOT NULL UNIQUE, "
            "session INTEGER NOT NULL, ended INTEGER NOT NULL, status TEXT NOT NULL, position INTEGER NOT NULL, "
            "root BLOB, tokens INTEGER NOT NULL, cost_micros INTEGER NOT NULL, "
            "taken_version INTEGER, state BLOB NOT NULL)"
        )
        sql.execute("CREATE INDEX IF NOT EXISTS run_outcomes_open ON run_outcomes (accepted) WHERE ended = 0")
        sql.execute("CREATE INDEX IF NOT EXISTS run_outcomes_session ON run_outcomes (session)")
        sql.execute("CREATE INDEX IF NOT EXISTS run_outcomes_root ON run_outcomes (root)")
        sql.execute(
            "CREATE TABLE IF NOT EXISTS run_keys (key TEXT NOT NULL, caller TEXT NOT NULL, run_id BLOB NOT NULL, "
            "position INTEGER NOT NULL, digest TEXT, PRIMARY KEY (key, caller, run_id)) WITHOUT ROWID"
        )

    def drop(self, sql: Sql) -> None:
        """Drop the tables."""
        for table in ("run_outcomes", "run_keys"):
            sql.execute(f"DROP TABLE IF EXISTS {table}")

    def apply(self, sql: Sql, events: Sequence[Recorded]) -> None:
        """Take events in: a run is read once for all of them, and written once."""
        taking = _Taking(sql)
        for recorded in events:
            taking.take(recorded)
        taking.store()


class _Kept(msgspec.Struct):
    """A run while events are taken in: as it is stored, and as it is now."""

    stored: RunOutcome | None
    now: RunOutcome | None
    taken_version: int | None = None
    """Where in its session's stream its message was taken, if it was so by one of the events."""


class _Taking:
    """One batch of events."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self._kept: dict[str, _Kept] = {}

    def take(self, recorded: Recorded) -> None:
        event = recorded.event
        match event:
            case RunQueued():
                kept = self._found(event.run_id)
                kept.now = kept.now or begin_run(recorded, event)
                _keep_key(self._sql, recorded, event, event.caller)
            case ExchangeAccepted() | SpawnAccepted():
                _keep_key(self._sql, recorded, event, event.caller)
            case RunStarted() | RunInterrupted() | RunCompleted() | RunFailed() | RunAborted():
                kept = self._found(event.run_id)
                if kept.now is None or kept.now.ended:
                    return
                kept.now = evolve_run(kept.now, recorded, event)
                match event:
                    case RunStarted(attempt=1) | RunAborted(attempt=0) | RunFailed(attempt=0):
                        kept.taken_version = kept.taken_version or recorded.version
                    case _:
                        pass
            case _:
                pass

    def store(self) -> None:
        for kept in self._kept.values():
            if kept.now is not None and kept.now is not kept.stored:
                _store(self._sql, kept.now, kept.taken_version, is_new=kept.stored is None)

    def _found(self, run_id: str) -> _Kept:
        kept = self._kept.get(run_id)
        if kept is None:
            found = self._sql.execute(
                f"SELECT {_COLUMNS} FROM run_outcomes WHERE run_id = ?",  # noqa: S608 - our own words
                (packed(run_id),),
            ).fetchone()
            row = None if found is None else _restored(found)
            kept = self._kept[run_id] = _Kept(row, row)
        return kept


class Runs:
    """Queries on runs: by id, by the caller's own key, all that are open, the latest."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def get(self, run_id: str) -> RunOutcome | None:
        """Return what became of a run; None for an unknown one."""
        found = self._select("WHERE run_id = ?", (packed(run_id),))
        return found[0] if found else None

    def retry_of(self, run_id: str) -> RunOutcome | None:
        """Return the run that tries a failed one again (GATE-6); None where nobody has asked for that."""
        return self.get(retry_of(self._log.log_id, run_id))

    def taken_version(self, run_id: str) -> int | None:
        """Return where in its session's stream a run first started, or was given up; None while it waits, or for an unknown one."""
        rows = self._log.query("SELECT taken_version FROM run_outcomes WHERE run_id = ?", (packed(run_id),))
        return rows[0][0] if rows else None

    def has_ended(self, run_id: str) -> bool:
        """Whether a run has come to its end; False for an unknown one."""
        return bool(
            self._log.query("SELECT 1 FROM run_outcomes WHERE run_id = ? AND ended = 1", (packed(run_id),))
        )

    def by_idempotency_key(self, caller: str, key: str) -> KeyUse | None:
        """Return the run this caller's key stands for; the first it was used for, for ever (SEND-11)."""
        rows = self._log.query(
            "SELECT run_id, digest FROM run_keys WHERE key = ? AND caller = ? ORDER BY position, run_id LIMIT 1",
            (to_text(key), caller),
        )
        return next((KeyUse(unpacked(run_id), digest) for run_id, digest in rows), None)

    def by_any_key(self, key: str, caller: str | None = None) -> str | None:
        """Return the run id of a caller's own idempotency key (GATE-1); without a caller, of its first use by anybody."""
        return next((run_id for used_by, run_id in self.under_key(key) if caller in {None, used_by}), None)

    def under_key(self, key: str) -> list[tuple[str, str]]:
        """Return who used an idempotency key, and the run that it stands for, in the order of its uses."""
        rows = self._log.query(
            "SELECT caller, run_id FROM run_keys WHERE key = ? ORDER BY position, run_id", (to_text(key),)
        )
        return [(caller, unpacked(run_id)) for caller, run_id in rows]

    def asked(self, run_id: str) -> Asked | None:
        """Return who asked for a run and under which key, as `asked_in` has it; None for an unknown one, too."""
        rows = self._log.query("SELECT accepted FROM run_outcomes WHERE run_id = ?", (packed(run_id),))
        for (position,) in rows:
            for recorded in self._log.all(after=position - 1, to=position):
                if isinstance(recorded.event, RunQueued):
                    return asked_in(recorded.event)
        return None

    def open_runs(self) -> list[RunOutcome]:
        """Return all runs that have not ended, in the order they were accepted."""
        return self._select("WHERE ended = 0 ORDER BY accepted")

    def open_by_status(self) -> dict[str, int]:
        """Return how many runs wait and how many are under way."""
        rows = self._log.query("SELECT status, COUNT(*) FROM run_outcomes WHERE ended = 0 GROUP BY 1")
        return {str(status): int(number) for status, number in rows}

    def recent(self, limit: int) -> list[RunOutcome]:
        """Return the runs accepted last, newest first."""
        return self._select("ORDER BY accepted DESC LIMIT ?", (limit,))

    def failed_lately(self, among: int) -> list[RunOutcome]:
        """Return the runs that failed and that nobody has tried again, among so many of the newest; newest first."""
        return [run for run in self.recent(among) if run.failed and self.retry_of(run.run_id) is None]

    def next_of_session(self, session_key: str, position: int) -> RunOutcome | None:
        """Return the first run that a session accepted behind a position."""
        found = self._select(
            "WHERE session = ? AND accepted > ? ORDER BY accepted LIMIT 1", (hashed(session_key), position)
        )
        return found[0] if found else None

    def alone(self, where: Position, limit: int) -> list[RunOutcome]:
        """Return runs of a part of the log that belong to no exchange and no spawn, newest first and without their words."""
        condition = (
            "accepted > ? AND accepted <= ? AND NOT EXISTS "
            "(SELECT 1 FROM flow_runs WHERE flow_runs.run_id = run_outcomes.run_id)"
        )
        parameters: tuple[SqlValue, ...] = (where.after, where.to)
        if where.is_open:
            condition += " AND ended = 0"
        if where.session_key is not None:
            condition += " AND session = ?"
            parameters += (hashed(where.session_key),)
        rows = self._log.query(
            f"SELECT {_COLUMNS} FROM run_outcomes WHERE {condition} ORDER BY accepted DESC LIMIT ?",  # noqa: S608 - our own words
            (*parameters, limit),
        )
        return [_restored(row) for row in rows]

    def ids(self, beginning: str, limit: int) -> list[str]:
        """Return the ids of runs that begin with a text."""
        statement = "SELECT run_id FROM run_outcomes WHERE run_id BETWEEN ? AND ? ORDER BY run_id LIMIT ?"
        return beginning_with(self._log.query, statement, beginning, limit)

    def of_chain(self, root: str) -> list[RunOfChain]:
        """Return the runs that a causal chain has had, in the order they were accepted; `root` is its correlation id."""
        rows = self._log.query(
            "SELECT run_id, ended, tokens, cost_micros FROM run_outcomes WHERE root = ? ORDER BY accepted",
            (packed(root),),
        )
        return [
            RunOfChain(unpacked(run_id), bool(ended), tokens, cost) for run_id, ended, tokens, cost in rows
        ]

    def _select(self, condition: str, parameters: Sequence[SqlValue] = ()) -> list[RunOutcome]:
        rows = self._log.query(f"SELECT {_COLUMNS} FROM run_outcomes {condition}", parameters)  # noqa: S608 - our own words
        return [self._with_words(_restored(row)) for row in rows]

    def _with_words(self, outcome: RunOutcome) -> RunOutcome:
        """Add the reply or the error from the event that ended the run: the row has no copy of the text."""
        if not outcome.ended:
            return outcome
        for recorded in self._log.all(after=outcome.position - 1, to=outcome.position):
            match recorded.event:
                case RunCompleted() as event:
                    return msgspec.structs.replace(outcome, reply=event.reply)
                case RunFailed() as event:
                    return msgspec.structs.replace(outcome, error=event.error, reply=event.partial)
                case RunAborted() as event:
                    return msgspec.structs.replace(
                        outcome, error=f"aborted by {event.by}", reply=event.partial
                    )
                case _:
                    pass
        return outcome


def begin_run(recorded: Recorded, event: RunQueued) -> RunOutcome:
    """Return the row of a run that is accepted."""
    return RunOutcome(
        run_id=event.run_id,
        session_key=recorded.stream.removeprefix(_STREAM),
        session_id=event.session_id,
        step=event.step,
        message_id=event.message_id,
        status="queued",
        queued_ms=recorded.time,
        accepted=recorded.position,
        position=recorded.position,
        first_version=recorded.version,
        last_version=recorded.version,
        caller=event.caller,
        exchange_id=event.exchange_id,
        spawn_id=event.spawn_id,
        turn=event.turn,
        chain=event.chain,
        hops=event.hops,
        model=event.model,
        timeout_ms=event.timeout_ms,
        root=recorded.correlation,
        retry_of=event.retry_of,
    )


def _store(sql: Sql, outcome: RunOutcome, taken_version: int | None, *, is_new: bool) -> None:
    usage = outcome.usage
    tokens, cost = (0, 0) if usage is None else (usage.tokens, usage.cost_micros or 0)
    changing = (int(outcome.ended), outcome.status, outcome.position, tokens, cost, taken_version)
    state = _STORED.whole(outcome)
    if is_new:
        sql.execute(
            "INSERT INTO run_outcomes (ended, status, position, tokens, cost_micros, taken_version, state, accepted, "
            "run_id, session, root) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *changing,
                state,
                outcome.accepted,
                packed(outcome.run_id),
                hashed(outcome.session_key),
                None if outcome.root is None else packed(outcome.root),
            ),
        )
        return
    sql.execute(
        "UPDATE run_outcomes SET ended = ?, status = ?, position = ?, tokens = ?, cost_micros = ?, "
        "taken_version = COALESCE(taken_version, ?), state = ? WHERE accepted = ?",
        (*changing, state, outcome.accepted),
    )


def _keep_key(
    sql: Sql, recorded: Recorded, event: RunQueued | ExchangeAccepted | SpawnAccepted, caller: str | None
) -> None:
    if event.idempotency_key is None:
        return
    sql.execute(
        "INSERT INTO run_keys (key, caller, run_id, position, digest) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (key, caller, run_id) DO UPDATE SET digest = COALESCE(run_keys.digest, excluded.digest)",
        (
            to_text(event.idempotency_key),
            caller or "operator",
            packed(event.run_id),
            recorded.position,
            event.request_digest,
        ),
    )


def evolve_run(
    before: RunOutcome, recorded: Recorded, event: RunStarted | RunInterrupted | RunEnd
) -> RunOutcome:
    """Return where a run stands after an event of it."""
    replace = msgspec.structs.replace
    row = replace(before, position=recorded.position, last_version=recorded.version, attempt=event.attempt)
    match event:
        case RunStarted():
            return replace(row, status="running", started_ms=recorded.time)
        case RunInterrupted():
            return replace(row, status="queued")
        case RunCompleted():
            return replace(
                row, status="ok", ended_ms=recorded.time, usage=event.usage, model=event.model or row.model
            )
        case RunFailed():
            status: RunStatus = "timeout" if event.code == "timeout" else "error"
            return replace(row, status=status, ended_ms=recorded.time, code=event.code)
        case RunAborted():
            return replace(row, status="aborted", ended_ms=recorded.time)
