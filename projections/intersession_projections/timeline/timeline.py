"""The timeline: every step of a flow over all its sessions, in log order, with causes.

It is read from the log itself: the flow's stream names its runs and messages, the run outcomes say where in their
sessions' streams these lie. So it needs no tables, is never behind, and works on a log that is open for reading only.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from intersession_events import facts
from intersession_events.ids import delivery_stream, exchange_stream, session_stream, spawn_stream
from intersession_events.log import Log, Recorded, StreamPart, read_together
from intersession_projections.flows import DeliverySummary, Flows
from intersession_projections.run_outcomes import RunOutcome, Runs
from intersession_projections.sessions import Sessions
from intersession_projections.timeline.steps import Step, steps_of

_BEFORE: Final = 3
"""How far before a run's acceptance its session may have been opened and its route set: they are in the same append."""

_END: Final = 2**62
"""Behind the last version that a stream can have."""
_LATEST: Final = 4096
"""So many events of its session behind its end an answer is looked for that came too late."""
_LAST: Final = "SELECT MAX(originator_version) FROM stored_events WHERE originator_id = ?"
_LATE: Final = (
    "SELECT originator_version FROM stored_events WHERE originator_id = ? AND originator_version > ? "
    "AND originator_version <= ? AND topic LIKE 'late\\_reply\\_dropped.%' ESCAPE '\\' ORDER BY originator_version"
)


class Timeline:
    """Queries on what happened, step by step."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._runs = Runs(log)
        self._flows = Flows(log)
        self._sessions = Sessions(log)

    def of_exchange(self, exchange_id: str) -> list[Step]:
        """Return the steps of an exchange; none for an unknown one."""
        return steps_of(self.events_of_flow(exchange_stream(exchange_id)))

    def of_spawn(self, spawn_id: str) -> list[Step]:
        """Return the steps of a spawn; none for an unknown one."""
        return steps_of(self.events_of_flow(spawn_stream(spawn_id)))

    def of_run(self, run_id: str) -> list[Step]:
        """Return the steps of the exchange or spawn a run belongs to, else those of the run itself."""
        return steps_of(self.events_of_run(run_id))

    def events_of_run(self, run_id: str) -> list[Recorded]:
        """Return the events of the exchange or spawn a run belongs to, else those of the run itself: in any order, some twice.

        Of streams that are no session's they are whole.
        """
        flow = self._flows.flow_of_run(run_id)
        return self.events_of_that_run(run_id) if flow is None else self.events_of_flow(flow)

    def events_of_that_run(self, run_id: str) -> list[Recorded]:
        """Return the events of a run itself, also of one that belongs to an exchange or a spawn, in the same way."""
        outcome, deliveries, taken = read_together(
            self._log,
            lambda log: Runs(log).without_words(run_id),
            lambda log: Flows(log).deliveries_of_run(run_id),
            lambda log: Runs(log).taken_versions([run_id]),
        )
        if outcome is None:
            return []
        (own,), sent = read_together(
            self._log,
            lambda log: Timeline(log).events_of_runs([outcome], taken),
            lambda log: _of_deliveries(log, deliveries),
        )
        return [*own, *sent]

    def events_of_flow(self, stream: str) -> list[Recorded]:
        """Return the events of an exchange or a spawn over all its sessions, in the same way."""
        own = list(self._log.stream(stream))
        found: list[Recorded] = list(own)
        asked = list(_asked(own))
        run_ids = [run_id for run_id, _, _ in asked]
        runs, sent, taken = read_together(
            self._log,
            lambda log: Runs(log).many_without_words(run_ids),
            lambda log: Flows(log).deliveries_of_all([stream], run_ids),
            lambda log: Runs(log).taken_versions(run_ids),
        )
        events, delivered = read_together(
            self._log,
            lambda log: Timeline(log).events_of_runs(list(runs.values()), taken),
            lambda log: _of_deliveries(log, sent),
        )
        of_runs = dict(zip(runs, events, strict=True))
        for run_id, session_key, message_id in asked:
            run = of_runs.get(run_id, [])
            found.extend(run)
            # An imported flow has messages, and no runs; in a fork, a run may begin at a message that was imported.
            if not any(_is_message(recorded, message_id) for recorded in run):
                found.extend(self._message(session_key, message_id))
        for recorded in own:
            if isinstance(recorded.event, facts.ChildArchived):
                found.extend(self._archiving(recorded.event.child))
        found.extend(delivered)
        return found

    def events_of_runs(
        self, outcomes: Sequence[RunOutcome], taken: Mapping[str, int]
    ) -> list[list[Recorded]]:
        """Return the events of runs in their sessions' streams, and those that each was accepted with.

        `taken` are the versions at which they were taken up.
        """
        streams = [session_stream(outcome.session_key) for outcome in outcomes]
        asked = [
            StreamPart(stream, max(0, outcome.first_version - 1 - _BEFORE), outcome.first_version)
            for stream, outcome in zip(streams, outcomes, strict=True)
        ]
        # What happened while it waited in the queue was of other runs.
        begun = {
            outcome.run_id: StreamPart(
                stream, taken[outcome.run_id] - 1, outcome.last_version if outcome.ended else _END
            )
            for stream, outcome in zip(streams, outcomes, strict=True)
            if outcome.run_id in taken
        }
        parts = self._log.parts([*asked, *begun.values()])
        accepted, at_work = parts[: len(asked)], dict(zip(begun, parts[len(asked) :], strict=True))
        return [
            [
                *_accepted(outcome, before),
                *(
                    one
                    for one in at_work.get(outcome.run_id, ())
                    if facts.run_named(one.event) == outcome.run_id
                ),
                *(self._late(outcome) if outcome.run_id in taken else ()),
            ]
            for outcome, before in zip(outcomes, accepted, strict=True)
        ]

    def _late(self, outcome: RunOutcome) -> Iterator[Recorded]:
        """Yield the answers of a run that came when it was over: they stand behind all else of it, among what came since."""
        if not outcome.ended or (outcome.status == "ok" and outcome.attempt == 1):
            return
        stream, last = session_stream(outcome.session_key), outcome.last_version
        for (version,) in self._log.query(_LATE, (stream, last, last + _LATEST)):
            for recorded in self._log.stream(stream, after=version - 1, to=version):
                if facts.run_named(recorded.event) == outcome.run_id:
                    yield recorded

    def _message(self, session_key: str, message_id: str) -> Iterator[Recorded]:
        """Yield a message by its id."""
        for version in reversed(self._sessions.versions_of_message(session_key, message_id)):
            for recorded in self._log.stream(session_stream(session_key), after=version - 1, to=version):
                if _is_message(recorded, message_id):
                    yield recorded

    def _archiving(self, child: str) -> Iterator[Recorded]:
        stream = session_stream(child)
        for (last,) in self._log.query(_LAST, (stream,)):
            for recorded in () if last is None else self._log.stream(stream, after=last - 1, to=last):
                if isinstance(recorded.event, facts.SessionArchived):
                    yield recorded


def _of_deliveries(log: Log, sent: Iterable[DeliverySummary]) -> list[Recorded]:
    streams = [delivery_stream(row.delivery_id) for row in sent]
    return [recorded for events in log.whole(streams) for recorded in events]


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
        match facts.run_asked_in(recorded.event):
            case facts.ExchangeAccepted() as event:
                yield event.run_id, event.target, event.message_id
            case facts.SpawnAccepted() as event:
                yield event.run_id, event.child, event.message_id
            case facts.TurnRequested() | facts.AnnounceRequested() as event:
                yield event.run_id, event.speaker, event.message_id
            case facts.ResultHanded() as event:
                yield event.run_id, event.requester, event.message_id
            case None:
                pass


def _is_message(recorded: Recorded, message_id: str) -> bool:
    message = facts.message_in(recorded.event)
    return message is not None and message.id == message_id
