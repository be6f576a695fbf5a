"""Queries on runs: by id, by the caller's idempotency key, by session or by chain."""

from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from typing import NamedTuple

import msgspec

from intersession_events.basics.ids import retry_of
from intersession_events.facts import Event, FlowAccepted, RunEnd, RunQueued
from intersession_events.log.log import Log
from intersession_events.log.sql import Ask, Row, SqlValue, among
from intersession_projections.basics.columns import beginning_with, hashed, packed, to_text, unpacked
from intersession_projections.views.flows.rows import Position
from intersession_projections.views.run_outcomes.outcome import RunOutcome, RunRequest, asked_in, end_of
from intersession_projections.views.run_outcomes.stored import COLUMNS, FAILED, restored


class KeyUse(NamedTuple):
    """The run of an idempotency key, and the digests of its request (`same_request`)."""

    run_id: str
    digests: tuple[str | None, ...]


class RunOfChain(NamedTuple):
    """A run of a causal chain, and its usage, which is known when it has ended (LOOP-5)."""

    run_id: str
    ended: bool
    tokens: int
    cost_micros: int


class Runs:
    """Queries on runs: by id, by the caller's own key, all that are open, the latest."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def get(self, run_id: str) -> RunOutcome | None:
        """Return the state of a run; None for an unknown one."""
        found = self._select("WHERE run_id = ?", (packed(run_id),))
        return found[0] if found else None

    def many(self, run_ids: Iterable[str]) -> dict[str, RunOutcome]:
        """Return the states of some runs, by their ids; unknown ones are left out."""
        return {run.run_id: run for run in self.with_words(self.many_without_words(run_ids).values())}

    def many_without_words(self, run_ids: Iterable[str]) -> dict[str, RunOutcome]:
        """Return the same without texts."""
        (found,) = self._log.answers(self.ask_without_words(run_ids))
        return found

    def ask_without_words(self, run_ids: Iterable[str]) -> Ask[dict[str, RunOutcome]]:
        """Ask for the states of some runs, by their ids, without texts; unknown ones are left out."""
        return Ask(
            among(f"SELECT {COLUMNS} FROM run_outcomes WHERE run_id IN ({{}})", map(packed, run_ids)),  # noqa: S608 - our own words
            lambda rows: {run.run_id: run for run in map(restored, chain.from_iterable(rows))},
        )

    def without_words(self, run_id: str) -> RunOutcome | None:
        """Return the state of a run without its texts, which are stored elsewhere; None for an unknown one."""
        rows = self._log.query(f"SELECT {COLUMNS} FROM run_outcomes WHERE run_id = ?", (packed(run_id),))  # noqa: S608 - our own words
        return restored(rows[0]) if rows else None

    def retry_of(self, run_id: str) -> RunOutcome | None:
        """Return the run that retries a failed one (GATE-6); None if there is none."""
        return self.retries_of([run_id]).get(run_id)

    def retries_of(self, run_ids: Iterable[str]) -> dict[str, RunOutcome]:
        """Return the same for several runs, by their ids."""
        called = {run_id: self._retries(run_id) for run_id in run_ids}
        found = self.many(again for names in called.values() for again in names)
        return {
            run_id: found[again]
            for run_id, names in called.items()
            for again in reversed(names)
            if again in found
        }

    def taken_version(self, run_id: str) -> int | None:
        """Return the version of its session's stream at which a run first started, or was given up; None if it waits or is unknown."""
        return self.taken_versions([run_id]).get(run_id)

    def taken_versions(self, run_ids: Iterable[str]) -> dict[str, int]:
        """Return the same for several runs, by their ids; waiting ones are left out."""
        (found,) = self._log.answers(self.ask_taken_versions(run_ids))
        return found

    def ask_taken_versions(self, run_ids: Iterable[str]) -> Ask[dict[str, int]]:
        """Ask the same."""
        statement = "SELECT run_id, taken_version FROM run_outcomes WHERE run_id IN ({})"
        return Ask(
            among(statement, map(packed, run_ids)),
            lambda rows: {
                unpacked(run_id): taken for run_id, taken in chain.from_iterable(rows) if taken is not None
            },
        )

    def has_ended(self, run_id: str) -> bool:
        """Whether a run has come to its end; False for an unknown one."""
        return bool(
            self._log.query("SELECT 1 FROM run_outcomes WHERE run_id = ? AND ended = 1", (packed(run_id),))
        )

    def by_idempotency_key(self, caller: str, key: str) -> KeyUse | None:
        """Return the run of a caller's idempotency key: always the first one that it was used for (SEND-11)."""
        rows = self._log.query(
            "SELECT run_id, digest, position FROM run_keys WHERE key = ? AND caller = ? ORDER BY position, run_id LIMIT 1",
            (to_text(key), caller),
        )
        for run_id, digest, position in rows:
            # An erasure takes the digests out of the event: so no view has them.
            found = () if digest is not None else self._log.at([position])
            digests = next(
                (one.event.digests for one in found if isinstance(one.event, RunQueued | FlowAccepted)),
                (digest,),
            )
            return KeyUse(unpacked(run_id), digests)
        return None

    def by_any_key(self, key: str, caller: str | None = None) -> str | None:
        """Return the run id of a caller's own idempotency key (GATE-1); without a caller, of its first use by any caller."""
        return next((run_id for used_by, run_id in self.under_key(key) if caller in {None, used_by}), None)

    def under_key(self, key: str) -> list[tuple[str, str]]:
        """Return the callers that used an idempotency key, and their runs, in the order of its uses."""
        (found,) = self._log.answers(self.ask_under_key(key))
        return found

    def ask_under_key(self, key: str) -> Ask[list[tuple[str, str]]]:
        """Ask the same."""
        statement = "SELECT caller, run_id FROM run_keys WHERE key = ? ORDER BY position, run_id"
        return Ask(
            [(statement, (to_text(key),))],
            lambda rows: [(caller, unpacked(run_id)) for caller, run_id in rows[0]],
        )

    def asked(self, run_id: str) -> RunRequest | None:
        """Return the caller of a run and its key, like `asked_in`; None for an unknown one as well."""
        rows = self._log.query("SELECT accepted FROM run_outcomes WHERE run_id = ?", (packed(run_id),))
        for (position,) in rows:
            for recorded in self._log.all(after=position - 1, to=position):
                if isinstance(recorded.event, RunQueued):
                    return asked_in(recorded.event)
        return None

    def open_runs(self) -> list[RunOutcome]:
        """Return all open runs, in the order they were accepted."""
        (found,) = self._log.answers(self.ask_open())
        return found

    def open_by_status(self) -> dict[str, int]:
        """Return how many runs wait and how many are under way."""
        rows = self._log.query("SELECT status, COUNT(*) FROM run_outcomes WHERE ended = 0 GROUP BY 1")
        return {str(status): int(number) for status, number in rows}

    def recent(self, limit: int) -> list[RunOutcome]:
        """Return the runs accepted last, newest first."""
        return self._select("ORDER BY accepted DESC LIMIT ?", (limit,))

    def failed_lately(self, among: int) -> list[RunOutcome]:
        """Return the failed runs without a retry, `among` the newest, without their texts; newest first."""
        (newest,) = self._log.answers(self.ask_newest(among))
        return self.not_retried(newest)

    def ask_newest(self, number: int) -> Ask[list[RunOutcome]]:
        """Ask for a number of the newest runs, without their texts; newest first."""
        return self._ask("ORDER BY accepted DESC LIMIT ?", (number,))

    def ask_open(self) -> Ask[list[RunOutcome]]:
        """Ask for all open runs, in the order they were accepted."""
        return self._ask("WHERE ended = 0 ORDER BY accepted")

    def not_retried(self, runs: Iterable[RunOutcome]) -> list[RunOutcome]:
        """Return those of some runs that failed and have no retry."""
        failed = {run.run_id: run for run in runs if run.failed}
        if not failed:
            return []
        again = {run_id: self._retries(run_id) for run_id in failed}
        there = {
            unpacked(run_id)
            for (run_id,) in self._among(
                "SELECT run_id FROM run_outcomes WHERE run_id IN ({})", chain.from_iterable(again.values())
            )
        }
        return [run for run_id, run in failed.items() if there.isdisjoint(again[run_id])]

    def next_of_session(self, session_key: str, position: int) -> RunOutcome | None:
        """Return the first run that a session accepted behind a position."""
        found = self._select(
            "WHERE session = ? AND accepted > ? ORDER BY accepted LIMIT 1", (hashed(session_key), position)
        )
        return found[0] if found else None

    def last_of_session(self, session_key: str, position: int) -> RunOutcome | None:
        """Return the last run that a session accepted before a position."""
        found = self._select(
            "WHERE session = ? AND accepted < ? ORDER BY accepted DESC LIMIT 1",
            (hashed(session_key), position),
        )
        return found[0] if found else None

    def alone(self, where: Position, limit: int) -> list[RunOutcome]:
        """Return runs of a part of the log outside of exchanges and spawns, newest first and without their texts."""
        condition = (
            "accepted > ? AND accepted <= ? AND NOT EXISTS "
            "(SELECT 1 FROM flow_runs WHERE flow_runs.run_id = run_outcomes.run_id)"
        )
        parameters: tuple[SqlValue, ...] = (where.after, where.to)
        if where.is_open:
            condition += " AND ended = 0"
        if where.may_have_failed:
            these = "SELECT accepted FROM run_outcomes WHERE "
            condition += f" AND accepted IN ({these}ended = 0 UNION {these}{FAILED})"
        if where.session_key is not None:
            condition += " AND session = ?"
            parameters += (hashed(where.session_key),)
        rows = self._log.query(
            f"SELECT {COLUMNS} FROM run_outcomes WHERE {condition} ORDER BY accepted DESC LIMIT ?",  # noqa: S608 - our own words
            (*parameters, limit),
        )
        return [restored(row) for row in rows]

    def ids(self, beginning: str, limit: int) -> list[str]:
        """Return the ids of runs that begin with a text."""
        statement = "SELECT run_id FROM run_outcomes WHERE run_id BETWEEN ? AND ? ORDER BY run_id LIMIT ?"
        return beginning_with(self._log.query, statement, beginning, limit)

    def of_chain(self, root: str) -> list[RunOfChain]:
        """Return the runs of a causal chain, in the order they were accepted; `root` is its correlation id."""
        rows = self._log.query(
            "SELECT run_id, ended, tokens, cost_micros FROM run_outcomes WHERE root = ? ORDER BY accepted",
            (packed(root),),
        )
        return [
            RunOfChain(unpacked(run_id), bool(ended), tokens, cost) for run_id, ended, tokens, cost in rows
        ]

    def sessions_of_chain(self, root: str, since: int) -> list[str]:
        """Return the sessions, by key, that had runs of a causal chain from a position on."""
        return list(dict.fromkeys(run.session_key for run in self.whole_chain(root, since)))

    def statuses_of_chain(self, root: str, after: int) -> dict[str, int]:
        """Return how many runs of a causal chain that were accepted behind a position have each status."""
        rows = self._log.query(
            "SELECT status, COUNT(*) FROM run_outcomes WHERE root = ? AND accepted > ? GROUP BY status",
            (packed(root), after),
        )
        return {str(status): int(number) for status, number in rows}

    def whole_chain(self, root: str, since: int = 0) -> list[RunOutcome]:
        """Return the states of a causal chain's runs from a position on, in the order they were accepted, without their texts."""
        rows = self._log.query(
            f"SELECT {COLUMNS} FROM run_outcomes WHERE root = ? AND accepted >= ? ORDER BY accepted",  # noqa: S608 - our own words
            (packed(root), since),
        )
        return [*map(restored, rows)]

    def _retries(self, run_id: str) -> list[str]:
        """Return the ids of the run that retries another: in a fork, also the id in its source log."""
        return [retry_of(log_id, run_id) for log_id in self._log.log_ids]

    def _among(self, statement: str, run_ids: Iterable[str]) -> list[Row]:
        return list(chain.from_iterable(self._log.each(among(statement, map(packed, run_ids)))))

    def _select(self, condition: str, parameters: Sequence[SqlValue] = ()) -> list[RunOutcome]:
        (found,) = self._log.answers(self._ask(condition, parameters))
        return self.with_words(found)

    def _ask(self, condition: str, parameters: Sequence[SqlValue] = ()) -> Ask[list[RunOutcome]]:
        return Ask(
            [(f"SELECT {COLUMNS} FROM run_outcomes {condition}", parameters)],  # noqa: S608 - our own words
            lambda rows: [*map(restored, rows[0])],
        )

    def with_words(self, outcomes: Collection[RunOutcome]) -> list[RunOutcome]:
        """Add the replies and errors from the events that ended the runs: the rows have no copy of the texts."""
        ends = {
            recorded.position: recorded.event
            for recorded in self._log.at(outcome.position for outcome in outcomes if outcome.ended)
        }
        return [_with_words(outcome, ends.get(outcome.position)) for outcome in outcomes]


def _with_words(outcome: RunOutcome, end: Event | None) -> RunOutcome:
    if not isinstance(end, RunEnd):
        return outcome
    _, error, reply = end_of(end)
    return msgspec.structs.replace(outcome, error=error, reply=reply)
