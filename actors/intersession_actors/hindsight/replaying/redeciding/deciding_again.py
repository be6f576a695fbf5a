"""Decides each append of a session, an exchange, a spawn or a delivery again, from the prior state and its decision record. Pure.

Nothing else is looked at: no actor, no clock, no chance, and no event of the append but for words, which a record only names.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from itertools import chain, starmap, zip_longest
from operator import attrgetter
from typing import Final, Literal, NamedTuple, TypeVar

from msgspec.structs import replace

from intersession_actors.hindsight.replaying.redeciding.doors import sent_today, spawned_today
from intersession_actors.hindsight.replaying.redeciding.judging_again import judged_again
from intersession_actors.hindsight.replaying.redeciding.schedules_again import decided_again
from intersession_actors.hindsight.replaying.redeciding.sources import Sources, are_erased
from intersession_actors.hindsight.replaying.redeciding.steps import step_again
from intersession_actors.owners.delivery import records as delivery_records
from intersession_actors.owners.exchange import commands as exchange_commands
from intersession_actors.owners.exchange import exchange
from intersession_actors.owners.exchange import records as exchange_records
from intersession_actors.owners.exchange import rules as exchange_rules
from intersession_actors.owners.exchange import steps as exchange_steps
from intersession_actors.owners.flows.led import Led
from intersession_actors.owners.flows.rules import RecordRead, Rules
from intersession_actors.owners.flows.steps import announce_of
from intersession_actors.owners.session import commands as session_commands
from intersession_actors.owners.session import folding as session_folding
from intersession_actors.owners.session import records as session_records
from intersession_actors.owners.session import rules as session_rules
from intersession_actors.owners.session import state as session_state
from intersession_actors.owners.spawn import records as spawn_records
from intersession_actors.owners.spawn import rules as spawn_rules
from intersession_actors.owners.spawn import steps as spawn_steps
from intersession_actors.owners.streams.commands import DeliveryEnded, Refused, Resume, RunEnded
from intersession_actors.owners.streams.drafting import append_of, caused_by
from intersession_actors.owners.streams.effects import Plan
from intersession_actors.owners.streams.records import Record, appends_in, record_in, words_of
from intersession_actors.rules.prompt.transcript import TranscriptFold
from intersession_actors.rules.schedules.deciding import Job
from intersession_actors.rules.schedules.deciding import evolve as evolve_job
from intersession_events import facts
from intersession_events.basics.ids import first_event_id
from intersession_events.log.recorded import Draft, Recorded, StreamAppend

S = TypeVar("S")
C = TypeVar("C")
N = TypeVar("N")


class Redecided(NamedTuple):
    """A recorded append, and the appends that today's rules decide: the stream's own, and those it carries.

    `problem` says in words why it could not be decided again, and `kind` what that is: today it is `refused`, its record says
    nothing that could be decided upon (`failed`), it has none or what it was asked is not here (`missing`), or words that it
    was decided upon are not there any more (`erased`); or a door would say something else (`judged`). `asked` is the command's name.
    """

    append: tuple[Recorded, ...]
    appends: tuple[StreamAppend, ...] = ()
    carried: tuple[Recorded, ...] = ()
    """What was recorded in the places of what is carried."""
    problem: str | None = None
    kind: Literal["refused", "failed", "missing", "erased", "judged"] | None = None
    asked: str | None = None
    refused: Refused | None = None
    judged: tuple[str | None, str | None] | None = None
    """The code of a door's refusal as it was and as it is today, where the event is of a door; None is that it lets in."""

    @property
    def recorded(self) -> tuple[facts.Event, ...]:
        """The recorded events."""
        return tuple(one.event for one in self.append)

    @property
    def now(self) -> tuple[facts.Event, ...]:
        """The stream's events by today's rules."""
        return tuple(draft.event for draft in self.appends[0].drafts) if self.appends else ()

    @property
    def pairs(self) -> Iterator[tuple[Recorded | None, Draft | None]]:
        """Each recorded event with today's in its place; None for a missing one."""
        if not self.appends:
            return
        own, *carried = self.appends
        yield from zip_longest(self.append, own.drafts)
        there = {(one.stream, one.version): one for one in self.carried}
        now = {
            (append.stream, version): draft
            for append in carried
            for version, draft in enumerate(append.drafts, append.expected + 1)
        }
        for place in dict.fromkeys((*there, *now)):
            yield there.get(place), now.get(place)

    @property
    def is_same(self) -> bool:
        """Whether today's rules decide the recorded events."""
        return self.problem is None and all(starmap(is_as_recorded, self.pairs))


def is_as_recorded(recorded: Recorded | None, draft: Draft | None) -> bool:
    """Whether an event equals its record, its cause included."""
    return (
        recorded is not None
        and draft is not None
        and recorded.event == draft.event
        and (recorded.id, recorded.causation, recorded.correlation)
        == (draft.id, draft.causation, draft.correlation)
    )


_Decided = tuple[object, Plan | Refused] | None
"""The command that was decided upon, and what it leads to now; None where the command is not to be had."""


def redecided_all(sources: Sources) -> Iterator[Redecided]:
    """Decide all appends of sessions, exchanges, spawns and deliveries again, and all judgements of doors."""
    return chain.from_iterable(redecided(sources, stream) for stream in sources.streams)


def redecided(sources: Sources, stream: str) -> Iterator[Redecided]:
    """Decide a stream's appends again that end after the replay's beginning; none for streams of another kind, imported, or begun by another's append."""
    match stream.partition(":")[0]:
        case "session":
            yield from _of_session(sources, stream)
        case "exchange":
            yield from _again(sources, stream, exchange_records.RULES)
        case "spawn":
            yield from _again(sources, stream, spawn_records.RULES)
        case "delivery":
            yield from _again(sources, stream, delivery_records.RULES)
        case "schedule":
            yield from _of_schedule(sources, stream)
        case _:
            for recorded in sources.streams[stream]:
                if recorded.position > sources.begins:
                    yield from _judged(sources, recorded)


def _judged(sources: Sources, recorded: Recorded) -> Iterator[Redecided]:
    """Judge again what doors judged, as an event has the record of it."""
    for judged in judged_again(recorded, sources.listed):
        kind: Literal["failed", "judged"] = "failed" if judged.judgement is None else "judged"
        problem = judged.problem
        yield Redecided(
            (recorded,),
            problem=problem,
            kind=None if problem is None else kind,
            judged=(judged.was, judged.now),
        )


_NO_RECORD: Final = "it has no decision record"
_NOT_HERE: Final = "what it was asked is not in this log"
_ERASED: Final = "words that it was decided upon were erased"


def _again(sources: Sources, stream: str, rules: Rules[S, C, N]) -> Iterator[Redecided]:
    state: S | None = None
    for append in appends_in(sources.streams[stream]):
        if append[-1].position > sources.begins:
            if append[0].decision:
                decide = _begun if state is None else partial(_decided, state=state, rules=rules)
                yield _redecided(sources, append, decide)
            elif state is not None:
                yield Redecided(append, problem=_NO_RECORD, kind="missing")
        try:
            state = reduce(rules.fold, append, state)
        except Exception as error:  # noqa: BLE001 - what can follow on nothing that is there
            yield Redecided(append, problem=_no_fold(error), kind="failed")
            return


def _no_fold(error: Exception) -> str:
    return f"it can't have happened where it stands: {error!r}"


def _of_session(sources: Sources, stream: str) -> Iterator[Redecided]:
    begun = sources.begun.get(stream)
    now = session_folding.begun_in(
        b"" if begun is None else begun.data, 0 if begun is None else begun.version
    )
    state, transcript = now.session, now.transcript
    for append in appends_in(sources.streams[stream]):
        is_behind = begun is None or append[0].version > begun.version
        if append[0].decision and append[-1].position > sources.begins and is_behind:
            yield _redecided(
                sources, append, partial(_decided_in_session, state=state, transcript=transcript)
            )
        try:
            for one in append:
                if begun is None or one.version > begun.version:
                    state = session_state.evolve(state, one)
                    transcript.apply(one)
        except Exception as error:  # noqa: BLE001 - as above
            yield Redecided(append, problem=_no_fold(error), kind="failed")
            return


def _of_schedule(sources: Sources, stream: str) -> Iterator[Redecided]:
    job = Job(job_id=stream.partition(":")[2])
    for append in appends_in(sources.streams[stream]):
        if append[0].decision and append[-1].position > sources.begins:
            yield _redecided(sources, append, partial(decided_again, job=job))
        job = reduce(evolve_job, append, job)


def _redecided(
    sources: Sources,
    append: tuple[Recorded, ...],
    decide: Callable[[Sources, tuple[Recorded, ...], RecordRead], _Decided],
) -> Redecided:
    first = append[0]
    try:
        carried = sorted(sources.texts_with(append), key=attrgetter("stream"))
        words = words_of(one.event for one in (*append, *carried))
        read = RecordRead(record_in(first.decision), first.stream, sources.log_id_of(first), words)
        found = _compared(sources, append, decide(sources, append, read))._replace(asked=read.record.asked)
    except Exception as error:  # noqa: BLE001 - a record that was made up can say anything
        problem = f"its decision record says nothing that could be decided upon: {error!r}"
        return Redecided(append, problem=problem, kind="failed")
    # What it was told of a judgement is judged again beside it.
    judged = _judged(sources, first) if found.is_same else iter(())
    otherwise = next((one for one in judged if one.problem is not None), None)
    return found if otherwise is None else otherwise._replace(asked=found.asked)


def _begun(sources: Sources, append: tuple[Recorded, ...], read: RecordRead) -> _Decided:
    """Decide the beginning of an exchange or a spawn: the event is the door's, with its chain's budget."""
    first, record = append[0], read.record
    match first.event:
        case facts.ExchangeAccepted(budget=facts.Budget() as budget) as accepted:
            sent = sent_today(sources, first, accepted, record)
            if isinstance(sent, Refused):
                return accepted, sent
            opened: facts.Event = exchange_rules.decide_open(sent, sent.budget or budget)
        case facts.SpawnAccepted(budget=facts.Budget() as budget) as accepted:
            spawned = spawned_today(sources, first, accepted, record)
            if isinstance(spawned, Refused):
                return accepted, spawned
            opened = spawn_rules.decide_open(spawned, spawned.budget or budget)
        case _:
            return None
    return accepted, Plan(events=(opened,), cause=append[0].causation, correlation=budget.root)


def _decided_in_session(
    sources: Sources,
    append: tuple[Recorded, ...],
    read: RecordRead,
    *,
    state: session_state.Session,
    transcript: TranscriptFold,
) -> _Decided:
    state, carried = session_state.without(state, sources.frozen), sources.step_with(append)
    command = session_records.command_in(read.record, append, carried, state, read.log_id)
    if command is None:
        return None
    if isinstance(command, session_commands.Enqueue | session_commands.Archive):
        told = step_again(sources, append[0], carried, command)
        if told is None:
            return None
        command = told
    now = session_records.circumstances_in(
        read.record,
        append,
        state,
        transcript,
        log_id=read.log_id,
        words=read.words,
        tools_of=partial(sources.tools_at, append[-1].position),
    )
    return command, session_rules.decide(state, command, now)


def _decided(
    sources: Sources, append: tuple[Recorded, ...], read: RecordRead, *, state: S, rules: Rules[S, C, N]
) -> _Decided:
    first = append[0]
    if isinstance(state, exchange.Exchange):
        state = replace(state, accepted=sources.accepted_as(state.accepted, first))
    command = rules.command_in(read) or _outcome(sources, read.record, first)
    if not rules.takes(command):
        return None
    now = rules.circumstances_in(read, state)
    decided = rules.decide(state, command, now)
    if isinstance(decided, Refused):
        return command, decided
    after = reduce(lambda so_far, event: rules.fold(so_far, replace(first, event=event)), decided, state)
    events: Sequence[facts.Event] = decided
    if isinstance(after, spawn_rules.Spawn) and isinstance(now, spawn_rules.Circumstances):
        events = spawn_rules.with_text(after, decided, sources, now.transcript_path)
    past = sources.streams[first.stream]
    plan = Plan(
        events=facts.joined(events),
        cause=_cause(command, events, past[first.version - 2]),
        correlation=past[0].correlation,
    )
    told = [event for event in events if isinstance(event, facts.AnnounceDecided) and event.delivery_id]
    if not told or not isinstance(after, Led):
        return command, plan
    way = (
        (exchange_steps.route_of(after.accepted), after.accepted.target)
        if isinstance(after.accepted, facts.ExchangeAccepted)
        else spawn_steps.way_out(after.accepted, command)
    )
    text = ""
    if isinstance(after, exchange.Exchange):
        text = exchange_steps.announced_text(after, told[0], sources)
    elif isinstance(after, spawn_rules.Spawn) and isinstance(now, spawn_rules.Circumstances):
        text = spawn_rules.announced_text(after, told[0], sources, now.transcript_path)
    carried = announce_of(after, told[0], text, way, log_id=read.log_id, time=first.time, cause=plan.cause)
    # What was held is decided at its release: that is what leads to the text, not what was held.
    was_held = isinstance(events[0], facts.ExchangeReleased)
    return command, replace(plan, carried=(carried,), carried_by_last=was_held)


def _cause(command: object, events: Sequence[facts.Event], last: Recorded) -> str | None:
    """Return the cause of a flow's events: a message, its own last event, or a request from outside."""
    match command:
        case RunEnded() | DeliveryEnded():
            return command.cause
        case exchange_commands.HoldExchange():
            return None
        case exchange_commands.ReleaseExchange():
            # A release goes on with what was held, so that causes lead on to what was said (WHY-1).
            return last.id if events and isinstance(events[0], facts.ExchangeReleased) else None
        case _:
            return last.id


def _outcome(sources: Sources, record: Record, first: Recorded) -> object:
    """Return what a flow was told, where events say it; None where they are not here."""
    match record.asked:
        case "RunEnded":
            ended, thread = sources.run_ended(first), record.inputs.get("thread")
            return ended if ended is None or thread is None else replace(ended, thread=facts.Route(**thread))
        case "DeliveryEnded":
            return sources.delivery_ended(first)
        case "Resume":
            return Resume(stream=first.stream)
        case _:
            return None


def _compared(sources: Sources, append: tuple[Recorded, ...], decided: _Decided) -> Redecided:
    first = append[0]
    if decided is None:
        return Redecided(append, problem=_NOT_HERE, kind="missing")
    command, plan = decided
    if isinstance(plan, Refused):
        return Redecided(append, problem=f"it would be refused: {plan.error}", kind="refused", refused=plan)
    own = append_of(
        sources.log_id_of(first),
        first.stream,
        first.version - 1,
        plan.events,
        time=first.time,
        causation=plan.cause,
        correlation=plan.correlation,
    )
    carried = plan.carried
    if plan.carried_by_last:
        carried = tuple(caused_by(own.drafts[-1].id, part) for part in carried)
    if sources.has_gap(append):
        carried = tuple(part for part in carried if part.stream in sources.streams)
    there = [one for part in carried for one in sources.at(part)] + [*sources.texts_with(append)]
    now = _as_recorded(sources, (own, *carried), (*append, *there))
    found = Redecided(append, now, tuple(there))
    if not found.is_same and (are_erased((*append, *there), command) or sources.has_erased(append)):
        return found._replace(problem=_ERASED, kind="erased")
    return found


def _as_recorded(
    sources: Sources, appends: tuple[StreamAppend, ...], there: Sequence[Recorded]
) -> tuple[StreamAppend, ...]:
    """Return appends with the ids of the first logs where such a log was written, and without the texts that were erased from their records.

    Everything else is compared.
    """
    recorded = {(one.stream, one.version): one for one in there}
    ids: dict[str | None, str] = {}
    found: list[StreamAppend] = []
    for append in appends:
        drafts: list[Draft] = []
        for version, draft in enumerate(append.drafts, append.expected + 1):
            one = recorded.get((append.stream, version))
            then = replace(draft, causation=ids.get(draft.causation, draft.causation)) if ids else draft
            if one is not None and sources.is_erased(one):
                ids[draft.id] = one.id
                then = replace(then, event=sources.without_words(one, draft.event), id=one.id)
            elif one is not None and one.id != draft.id and _is_of_first_logs(sources, one, draft):
                ids[draft.id] = one.id
                then = replace(then, id=one.id)
            drafts.append(then)
        found.append(replace(append, drafts=tuple(drafts)))
    return tuple(found)


def _is_of_first_logs(sources: Sources, recorded: Recorded, draft: Draft) -> bool:
    return recorded.id == first_event_id(
        sources.log_id_of(recorded),
        recorded.stream,
        recorded.version,
        recorded.topic,
        facts.encode(draft.event),
    )
