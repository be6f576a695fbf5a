"""The view of runs: the state of each, from its acceptance to its end, and its idempotency key (GATE-3, SEND-11)."""

from collections.abc import Collection, Iterable, Sequence
from typing import Final

import msgspec

from intersession_events.facts import FlowAccepted, RunAttempt, RunQueued
from intersession_events.log.log import Moment
from intersession_events.log.recorded import Recorded
from intersession_events.log.sql import Question, Row, Sql, among
from intersession_events.log.views import Coming, Known, Memory
from intersession_projections.basics.columns import Small, hashed, pack, packed, to_text, unpack, unpacked
from intersession_projections.views.run_outcomes.outcome import RunOutcome, begin_run, evolve_run
from intersession_projections.views.run_outcomes.stored import COLUMNS, FAILED, STORED, restored


class RunOutcomesView:
    """Stores a row per run, without its texts (the log has them), and the idempotency keys."""

    name = "run_outcomes"
    shape = 4

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
        sql.execute(
            f"CREATE INDEX IF NOT EXISTS run_outcomes_failed ON run_outcomes (accepted) WHERE {FAILED}"
        )
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

    def carry_over(self, sql: Sql, source: Moment, *, at: int, here: Collection[int]) -> Iterable[int]:
        """Copy the runs that had ended, and all keys; return the positions at which the others were accepted."""
        left: list[int] = []
        rows = source.query("SELECT * FROM run_outcomes WHERE accepted <= ?", (at,))
        for row in rows:
            accepted, _, _, ended, _, position, *_ = row
            if accepted not in here:
                continue
            if ended and position <= at:
                sql.execute(_CARRIED_RUN, row)
            else:
                left.append(accepted)
        for row in source.query("SELECT * FROM run_keys WHERE position <= ?", (at,)):
            if row[3] in here:
                sql.execute("INSERT INTO run_keys VALUES (?, ?, ?, ?, ?)", row)
        return left

    def questions(self, coming: Sequence[Coming], memory: Memory) -> Sequence[Question]:
        """Ask for the runs that events concern, except those that are known to be open."""
        runs: set[str] = set()
        for _, event in coming:
            if isinstance(event, _OF_RUNS) and event.run_id not in memory:
                runs.add(event.run_id)
        if not runs:
            return []
        return among(
            f"SELECT {COLUMNS} FROM run_outcomes WHERE run_id IN ({{}})",  # noqa: S608 - our own words
            map(packed, sorted(runs)),
        )

    def apply_answered(self, sql: Sql, events: Sequence[Recorded], known: Known) -> None:
        """Take events in: each run is read once and written once."""
        memory = known.memory
        for rows in known.answers:
            memory.update((unpacked(row[1]), _CurrentRun.restored(row)) for row in rows)
        taking = _Taking(sql, memory)
        for recorded in events:
            if isinstance(recorded.event, _TAKEN):
                taking.take(recorded)
        taking.store()
        memory.bounded(_REMEMBERED)


_REMEMBERED: Final = 4_096
"""The number of open runs in memory, four or five megabytes."""


_OF_RUNS: Final = (RunQueued, RunAttempt)
_TAKEN: Final = (*_OF_RUNS, FlowAccepted)


_CARRIED_RUN: Final = "INSERT INTO run_outcomes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


class _CurrentRun(msgspec.Struct):
    """A run's present state. Its stored form grows with each event, however many are taken in at once."""

    row: RunOutcome
    small: Small
    is_stored: bool = False
    taken_version: int | None = None
    """Where in its session's stream its message was taken, if it was so since it was stored."""

    @classmethod
    def restored(cls, row: Row) -> "_CurrentRun":
        return cls(restored(row), unpack(row[-1]), is_stored=True)


class _Taking:
    """One batch of events."""

    def __init__(self, sql: Sql, memory: Memory) -> None:
        self._sql = sql
        self._memory = memory
        self._changed: dict[str, _CurrentRun] = {}

    def take(self, recorded: Recorded) -> None:
        event = recorded.event
        match event:
            case RunQueued():
                if event.run_id not in self._memory:
                    row = begin_run(recorded, event)
                    self._memory[event.run_id] = _CurrentRun(row, STORED.small(row))
                self._changed[event.run_id] = self._memory[event.run_id]
                _keep_key(self._sql, recorded, event, event.caller)
            case FlowAccepted():
                _keep_key(self._sql, recorded, event, event.caller)
            case RunAttempt():
                self._go_on(recorded, event)
            case _:
                pass

    def _go_on(self, recorded: Recorded, event: RunAttempt) -> None:
        kept: _CurrentRun | None = self._memory.get(event.run_id)
        if kept is None:
            return
        self._changed[event.run_id] = kept
        if kept.row.ended:
            return
        before, kept.row = kept.row, evolve_run(kept.row, recorded, event)
        kept.small.update(STORED.small(kept.row, since=before))
        # It is taken when it starts, or ends without a start; or later, where the view has set its start aside (J3).
        kept.taken_version = kept.taken_version or recorded.version

    def store(self) -> None:
        for run_id, kept in self._changed.items():
            _store(self._sql, kept)
            kept.is_stored, kept.taken_version = True, None
            if kept.row.ended:
                del self._memory[run_id]


def _store(sql: Sql, kept: _CurrentRun) -> None:
    outcome, usage = kept.row, kept.row.usage
    tokens, cost = (0, 0) if usage is None else (usage.tokens, usage.cost_micros or 0)
    changing = (
        int(outcome.ended),
        outcome.status,
        outcome.position,
        tokens,
        cost,
        kept.taken_version,
        pack(kept.small),
    )
    if not kept.is_stored:
        sql.execute(
            "INSERT INTO run_outcomes (ended, status, position, tokens, cost_micros, taken_version, state, accepted, "
            "run_id, session, root) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *changing,
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
        (*changing, outcome.accepted),
    )


def _keep_key(sql: Sql, recorded: Recorded, event: RunQueued | FlowAccepted, caller: str | None) -> None:
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
