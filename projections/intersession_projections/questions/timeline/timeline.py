"""The timeline: every step of a flow over all its sessions, in log order, with causes.

It is read from the log itself: the flow's stream names its runs and messages, the run outcomes say where in their
sessions' streams these lie. So it needs no tables, is never behind, and works on a log that is open for reading only.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final, NamedTuple

from intersession_events import facts
from intersession_events.basics.ids import session_stream
from intersession_events.log.log import Log
from intersession_events.log.recorded import Reads, Recorded, StreamPart
from intersession_events.log.sql import Question
from intersession_projections.views.flows.flows import Flows
from intersession_projections.views.flows.rows import ExchangeSummary, SpawnSummary
from intersession_projections.views.run_outcomes.outcome import RunOutcome
from intersession_projections.views.run_outcomes.runs import Runs
from intersession_projections.views.sessions.list import Sessions

_BEFORE: Final = 3
"""How far before a run's acceptance its session may have been opened and its route set: they are in the same append."""

_END: Final = 2**62
"""Behind the last version that a stream can have."""
_LATEST: Final = 4096
"""The number of a session's events after a run's end that are searched for a late answer."""
_LAST: Final = "SELECT MAX(originator_version) FROM stored_events WHERE originator_id = ?"
_LATE: Final = (
    "SELECT originator_version FROM stored_events WHERE originator_id = ? AND originator_version > ? "
    "AND originator_version <= ? AND topic LIKE 'late\\_reply\\_dropped.%' ESCAPE '\\' ORDER BY originator_version"
)


class Timeline:
    """Queries on the events of flows and runs."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._runs = Runs(log)
        self._flows = Flows(log)
        self._sessions = Sessions(log)

    def events_of_each(
        self, flows: Iterable[ExchangeSummary | SpawnSummary | RunOutcome]
    ) -> list[list[Recorded]]:
        """Return the events of each exchange, spawn or run, of a run those of what it belongs to: in any order, some twice.

        Of streams that are no session's they are whole.
        """
        each = list(flows)
        runs = iter(self._whose([flow.run_id for flow in each if isinstance(flow, RunOutcome)]))
        return self._events(
            [next(runs) if isinstance(flow, RunOutcome) else _Whose(flow.stream) for flow in each]
        )

    def events_of_runs(self, run_ids: Iterable[str]) -> list[list[Recorded]]:
        """Return the events of runs themselves, also of those that belong to an exchange or a spawn, in the same way."""
        return self._events([_Whose(None, run_id) for run_id in run_ids])

    def _whose(self, run_ids: Sequence[str]) -> list["_Whose"]:
        flows = self._flows.flows_of_runs(run_ids) if run_ids else {}
        return [_Whose(flows.get(run_id), run_id) for run_id in run_ids]

    def _events(self, whose: Sequence["_Whose"]) -> list[list[Recorded]]:
        """Return the events of each: first what is its own, then the rows of its runs and texts, then what these say where to read."""
        streams = list(dict.fromkeys(one.stream for one in whose if one.stream is not None))
        own = dict(zip(streams, self._log.whole(streams), strict=True)) if streams else {}
        asked = {
            one: [(one.run_id or "", "", "")] if one.stream is None else list(_asked(own[one.stream]))
            for one in whose
        }
        run_ids = list(dict.fromkeys(run_id for runs in asked.values() for run_id, _, _ in runs))
        runs, taken, sent = self._log.answers(
            self._runs.ask_without_words(run_ids),
            self._runs.ask_taken_versions(run_ids),
            self._flows.ask_deliveries_of_all(streams, run_ids),
        )
        gone = {stream: list(_archived(events)) for stream, events in own.items()}
        children = list(dict.fromkeys(chain.from_iterable(gone.values())))
        parts = [part for run in runs.values() for part in _parts_of(run, taken.get(run.run_id))]
        # Whoever answered at the first attempt has no other answer that may have come when it was over.
        over = (run for run in runs.values() if run.ended and not (run.status == "ok" and run.attempt == 1))
        late = [run for run in over if run.run_id in taken]
        rows, _, found, delivered, _ = self._log.gather(
            Reads(
                questions=[
                    *(_late(run) for run in late),
                    *((_LAST, (session_stream(child),)) for child in children),
                ],
                parts=parts,
                streams=[row.stream for row in sent],
            )
        )
        at_work = dict(zip(parts, found, strict=True))
        of_runs = {
            run_id: list(_of_run(run, [at_work[part] for part in _parts_of(run, taken.get(run_id))]))
            for run_id, run in runs.items()
        }
        beside = self._beside(
            [
                *(
                    (session_stream(run.session_key), version)
                    for run, versions in zip(late, rows[: len(late)], strict=True)
                    for (version,) in versions
                ),
                *(
                    (session_stream(child), last)
                    for child, ((last,),) in zip(children, rows[len(late) :], strict=True)
                    if last is not None
                ),
            ],
            # An imported flow has messages, and no runs; in a fork, a run may begin at a message that was imported.
            [
                (session_key, message_id)
                for runs_asked in asked.values()
                for run_id, session_key, message_id in runs_asked
                if session_key and not any(_is_message(one, message_id) for one in of_runs.get(run_id, ()))
            ],
        )
        of_texts: dict[str | None, list[Recorded]] = {}
        for row, events in zip(sent, delivered, strict=True):
            for name in {row.owner, row.run_id}:
                of_texts.setdefault(name, []).extend(events)
        return [
            [
                *own.get(one.stream or "", ()),
                *of_texts.get(one.stream or "", ()),
                *chain.from_iterable(
                    [
                        *of_runs.get(run_id, ()),
                        *(of_texts.get(run_id, ()) if one.stream is not None or run_id in runs else ()),
                        *beside.get((run_id,), ()),
                        *beside.get((session_stream(session_key), message_id), ()),
                    ]
                    for run_id, session_key, message_id in asked[one]
                ),
                *chain.from_iterable(
                    beside.get((session_stream(child),), ()) for child in gone.get(one.stream or "", ())
                ),
            ]
            for one in whose
        ]

    def _beside(
        self, versions: Iterable[tuple[str, int]], messages: Sequence[tuple[str, str]]
    ) -> dict[tuple[str, ...], list[Recorded]]:
        """Return late answers by their runs, ends of sessions by their streams, messages by stream and id.

        They stand at some versions of streams, or have some messages of sessions.
        """
        parts = [StreamPart(stream, version - 1, version) for stream, version in versions]
        if messages:
            of_each = self._sessions.versions_of_messages(messages)
            parts += [
                StreamPart(session_stream(key), version - 1, version)
                for (key, _), each in zip(messages, of_each, strict=True)
                for version in each
            ]
        found: dict[tuple[str, ...], list[Recorded]] = {}
        for recorded in chain.from_iterable(self._log.parts(parts) if parts else ()):
            event, message = recorded.event, facts.message_in(recorded.event)
            if isinstance(event, facts.LateReplyDropped):
                found.setdefault((event.run_id,), []).append(recorded)
            elif isinstance(event, facts.SessionArchived):
                found.setdefault((recorded.stream,), []).append(recorded)
            elif message is not None:
                found.setdefault((recorded.stream, message.id), []).append(recorded)
        return found


class _Whose(NamedTuple):
    """Whose events are looked for: those of an exchange or a spawn, by its stream, else of one run."""

    stream: str | None
    run_id: str | None = None


def _parts_of(run: RunOutcome, taken: int | None) -> list[StreamPart]:
    """Return where in its session's stream a run was accepted, and where it was at work, if it was taken up at a version.

    What happened while it waited in the queue was of other runs.
    """
    stream = session_stream(run.session_key)
    accepted = StreamPart(stream, max(0, run.first_version - 1 - _BEFORE), run.first_version)
    if taken is None:
        return [accepted]
    return [accepted, StreamPart(stream, taken - 1, run.last_version if run.ended else _END)]


def _of_run(run: RunOutcome, parts: Sequence[Sequence[Recorded]]) -> Iterator[Recorded]:
    """Yield the events of a run among those of its parts."""
    accepted, *at_work = parts
    yield from _accepted(run, accepted)
    for events in at_work:
        yield from (one for one in events if facts.run_named(one.event) == run.run_id)


def _late(run: RunOutcome) -> Question:
    """Ask where the answers of a run stand that came when it was over: behind all else of it, among what came since."""
    return _LATE, (session_stream(run.session_key), run.last_version, run.last_version + _LATEST)


def _archived(own: Iterable[Recorded]) -> Iterator[str]:
    """Yield the children whose end a spawn tells of."""
    for recorded in own:
        if isinstance(recorded.event, facts.ChildArchived):
            yield recorded.event.child


def _accepted(outcome: RunOutcome, before: Sequence[Recorded]) -> Iterator[Recorded]:
    """Yield the event by which a run was accepted, and those of the same append that belong to it.

    One append has consecutive positions and one time: what else stands there is another's.
    """
    position = before[-1].position if before else 0
    for recorded in before[:-1]:
        beside = position - recorded.position == outcome.first_version - recorded.version
        came_with = isinstance(recorded.event, facts.SessionOpened | facts.RouteChanged)
        if beside and came_with and recorded.time == before[-1].time:
            yield recorded
    yield from before[-1:]


def _asked(own: Iterable[Recorded]) -> Iterator[tuple[str, str, str]]:
    """Yield (run, session, message) for each run a flow has asked for."""
    for recorded in own:
        if (asked := facts.run_asked_in(recorded.event)) is not None:
            yield asked.run_id, asked.asked, asked.message_id


def _is_message(recorded: Recorded, message_id: str) -> bool:
    message = facts.message_in(recorded.event)
    return message is not None and message.id == message_id
