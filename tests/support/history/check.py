"""The laws, and what breaks them. `broken` is pure; `check_whole` and `check_views` look into the log itself."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from intersession_actors.hindsight.replaying.replayed import replay_events
from intersession_events.log.recorded import Recorded
from intersession_events.log.verifying.verification import verify_log
from intersession_events.stores.portable.log import PortableLog
from intersession_events.stores.sqlite.log import SqliteLog
from intersession_events.stores.view_proof import views_proven
from intersession_projections.views.inline_views import inline_views
from support.history import (
    of_children,
    of_doors,
    of_events,
    of_holds,
    of_outside,
    of_records,
    of_runs,
    of_sessions,
    of_talk,
)
from support.history.evidence import Evidence

Law = Callable[[Evidence], Iterator[str]]


class Finding(NamedTuple):
    """A law that was broken, and where."""

    law: str
    words: str


LAWS: Final[Mapping[str, Law]] = {
    law.__name__: law
    for law in (
        of_events.in_order,
        of_events.after_causes,
        of_events.messages_once,
        of_events.runs_end_once,
        of_events.flows_in_order,
        of_holds.holds_end_once,
        of_holds.holds_stop_once,
        of_holds.edits_go_on,
        of_holds.orders_are_done,
        of_events.turns_once,
        of_events.words_are_theirs,
        of_events.silence_is_said,
        of_events.aborts_are_asked_for,
        of_events.limits_of_time_kept,
        of_events.steps_whole,
        of_events.generations_kept,
        of_events.announced_once,
        of_events.deliveries_in_order,
        of_events.places_in_order,
        of_events.jobs_fire_once,
        of_events.keys_once,
        of_events.budgets_kept,
        of_events.use_kept,
        of_events.chains_go_on,
        of_sessions.one_at_a_time,
        of_sessions.gone_is_gone,
        of_sessions.routes_are_of_people,
        of_sessions.answers_are_said,
        of_sessions.own_output,
        of_sessions.threads_have_their_time,
        of_talk.each_in_turn,
        of_talk.words_go_on,
        of_talk.results_go_on,
        of_talk.loops_end_for_cause,
        of_talk.announced_as_said,
        of_talk.policy_at_each_attempt,
        of_talk.pauses_of_deliveries,
        of_talk.closed_as_it_ended,
        of_talk.announced_where_it_may_be,
        of_children.children_told_as_they_ended,
        of_children.children_are_opened_for_their_requester,
        of_children.children_have_their_hour,
        of_runs.attempts_have_their_time,
        of_runs.people_hear,
        of_runs.late_answers_kept,
        of_outside.acknowledged_once,
        of_outside.said_once,
        of_outside.keys_answer_alike,
        of_outside.reads_grow,
        of_outside.own_writes_read,
        of_outside.waits_answer_alike,
        of_outside.asked_once,
        of_outside.answers_of_their_attempt,
        of_outside.given_what_is_recorded,
        of_outside.shown_once,
        of_records.known_as_it_was,
        of_doors.judged_as_it_was,
        of_events.all_ended,
    )
}


def broken(evidence: Evidence) -> list[Finding]:
    """Return all that is wrong with a history."""
    return [Finding(name, words) for name, law in LAWS.items() for words in law(evidence)]


def check_whole(log: PortableLog) -> list[Finding]:
    """Return what is wrong with the log itself: its chain, its file, events that a view could not take in."""
    report = verify_log(log)
    found = [Finding("verified", str(one)) for one in report.findings]
    if isinstance(log, SqliteLog) and log.query("PRAGMA integrity_check") != [("ok",)]:
        found.append(Finding("verified", "SQLite finds the file damaged"))
    return found + [Finding("set_aside", str(one)) for one in log.set_aside()]


def check_sealed(log_id: str, events: Sequence[Recorded]) -> list[Finding]:
    """Return what of a log its own rules decide otherwise when they are given what came from outside once more (SEAL-2)."""
    differs = replay_events(log_id, events)["firstDifference"]
    return [] if differs is None else [Finding("sealed", differs["text"])]


def check_views(log: PortableLog, views: list[str]) -> list[Finding]:
    """Return which tables are otherwise when they are built anew from the events."""
    if not isinstance(log, SqliteLog):
        found, _ = views_proven(log, [view for view in inline_views() if view.name in views])
        return [Finding("rebuilt", str(one)) for one in found]
    kept = tables_of(log)
    log.rebuild(*views)
    anew = tables_of(log)
    return [
        Finding("rebuilt", f"{name} was {kept.get(name)} and is {anew.get(name)}")
        for name in sorted(kept.keys() | anew.keys())
        if kept.get(name) != anew.get(name)
    ]


def tables_of(log: SqliteLog) -> dict[str, list[Any]]:
    """Return the rows of all views, without indexes of text: how SQLite lays one out depends on how it was filled."""
    names = log.query("SELECT name, sql FROM sqlite_master WHERE type = 'table'")
    own = {"stored_events", "sqlite_sequence", "log_identity", "log_topics"}
    texts = tuple(name for name, sql in names if sql is not None and sql.startswith("CREATE VIRTUAL TABLE"))
    return {
        name: sorted(log.query(f"SELECT * FROM {name}"), key=repr)  # noqa: S608 - our own tables
        for name, _ in names
        if name not in own and name not in texts and not name.startswith(tuple(f"{text}_" for text in texts))
    }
