"""`intersession replay`: a run, an exchange or a whole session, read back from the log as a conversation."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple, cast

import msgspec
from cyclopts import Parameter

from intersession.cli.host.forks import in_fork
from intersession.cli.host.reading import reader_of
from intersession.cli.shell.answer import NOT_VERIFIED, OK, READING, Answer, AsOf, Reading, UsageError
from intersession.cli.shell.terminal import Screen, one_line, safe
from intersession.cli.shell.times import clock, day, duration, moment
from intersession.cli.story.names import Names, names_of
from intersession.cli.story.printing import BeatPrinter, names_in, show_legend
from intersession.cli.story.standing import delivery_in_words, standing_in_words
from intersession.cli.story.telling import Beat, FlowStory, SessionStory
from intersession_actors.calls.service.reader import Reader
from intersession_actors.hindsight.debugger.debugger import Debugger
from intersession_actors.hindsight.debugger.lists.deliveries import delivery_value
from intersession_actors.hindsight.debugger.lists.runs import Stands
from intersession_actors.hindsight.debugger.named import as_key
from intersession_actors.hindsight.debugger.smells import SmellAnswer, smells_of_all
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.rules.errors import ToolRefused
from intersession_events.basics import ids
from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts import SessionReset, generation_of
from intersession_events.log.recorded import Recorded
from intersession_events.stores.opened import has_writer
from intersession_projections.copies.forks.pauses import pauses_in, without_pauses
from intersession_projections.questions.places.located import read_flow
from intersession_projections.questions.places.runs_named import Flow, flow_id
from intersession_projections.questions.places.then import Then
from intersession_projections.questions.timeline.steps import Step, steps_of
from intersession_projections.views.flows.held import Hold, held_ms, holds_in
from intersession_projections.views.flows.rows import DeliverySummary, Position
from intersession_projections.views.run_outcomes.outcome import RunOutcome
from intersession_projections.views.run_outcomes.replies import told_in
from intersession_projections.views.sessions.row import SessionRow

if TYPE_CHECKING:
    from intersession_actors.hindsight.replaying.replayed import Replayed  # a story needs no actors
from intersession_events.facts.reasons import counted

_MOST_FLOWS: Final = 1_000_000
_PAGE: Final = 1_000
"""The number of events of a stream that are read at once."""


def replay(
    what: str | None = None,
    /,
    *,
    sealed: bool = False,
    all_of_it: Annotated[bool, Parameter(name="--all")] = False,
    steps: bool = False,
    tools: bool = False,
    as_of: AsOf = None,
    reading: Reading = READING,
) -> Answer:
    """Tell a run, an exchange or a session as it happened.

    Who said what to whom, and why it ended. Each line has its position in the log, and behind the arrow the position of what led to it.

    With --sealed a run, or with --all the whole log, is decided again by today's rules and actors: messages of people, answers of
    agents, receipts of channels, times and ids are as they were recorded, and nothing else can be reached. Exit code 4 at the
    first event that comes out differently.

    Args:
        what: The id of an exchange, a spawn or a run (see `intersession runs`), a session's key, or a session id.
        sealed: Decide it again by today's rules, with the recorded inputs and nothing else, and compare every event.
        all_of_it: The whole log, with --sealed.
        steps: Every event instead of the conversation: stream, name, cause.
        tools: All that tools were given and gave, uncut.
    """
    if all_of_it and (what is not None or not sealed):
        raise UsageError("--all goes with --sealed, and in place of a run")
    if sealed:
        if what is None and not all_of_it:
            raise UsageError("--sealed: name a run (see `intersession runs`), or give --all")
        if steps or tools or as_of is not None:
            raise UsageError("--sealed goes with no option of the story")
        return _sealed(reading, what)
    if what is None:
        raise UsageError("name a run or a session (see `intersession runs`)")
    inside, named = in_fork(reading, what, as_of)
    with reader_of(inside) as reader:
        what, at = View(reader).parted(named(what), named(as_of), field="what")
        subject = find_subject(reader, what)
        position = None if at is None else reader.place(at, field="--at").position
        # The table of steps has no beats, and those of a long session take as long as reading it.
        with_beats = reading.json or not steps
        story = Story.of(reader, subject, at=position, with_beats=with_beats, with_steps=steps)
        # Only a program gets all of it.
        value = story.value(steps=steps) if reading.json else None
    return Answer(value, lambda screen: story.show(screen, steps=steps, whole=tools))


class SessionSubject(NamedTuple):
    """A session. `generation` is set if one of its transcripts is meant, by its id."""

    row: SessionRow
    generation: str | None = None


Subject = Flow | SessionSubject


class Story(msgspec.Struct, frozen=True, kw_only=True):
    """A run, an exchange, a spawn or a session, with its whole story."""

    about: JsonObject
    """What it is, and how it stands."""
    head: Callable[[Screen], None]
    """Prints the same."""
    beats: tuple[Beat, ...]
    names: Names
    """How those who take part are called."""
    steps: tuple[Step, ...] = ()
    """Every event."""
    today: str = ""
    """The day that the head says."""
    smells: Sequence[SmellAnswer] = ()
    waiting: Sequence[str] = ()
    """What did not reach people outside, of a session, in words."""

    @classmethod
    def of(
        cls,
        reader: Reader,
        subject: Subject,
        *,
        at: int | None = None,
        with_beats: bool = True,
        with_steps: bool = False,
    ) -> "Story":
        """Read a subject's story from the log, up to a position. A flow always has beats and steps."""
        # Who is at work now says nothing of what stood then.
        at_work = at is not None or has_writer(reader.log)
        if not isinstance(subject, SessionSubject):
            return cls._of_flow(reader, subject, at_work=at_work, at=at)
        row, generation = subject
        stood = Then(reader.log, reader.log.head() if at is None else at)
        sent = reader.flows.deliveries_of_session(row.key)
        waiting = [(text, reader.flows.note_of(text)) for text in stood.deliveries(sent) if text.is_open]
        events = told_in(reader.log, events_of_session(reader, subject, to=stood.position, sent=sent))
        session = SessionStory(row.key)
        beats = tuple(beat for recorded in (events if with_beats else ()) for beat in session.tell(recorded))
        steps = tuple(steps_of(events)) if with_steps else ()
        session_id = generation or row.session_id
        about: JsonObject = {"id": row.key, "kind": "session", "sessionId": session_id}
        if waiting:
            about["undelivered"] = [delivery_value(*each, View(reader)) for each in waiting]
        return cls(
            about=about,
            head=lambda screen: screen.line(
                safe(f"session {row.key}", "bold"), safe(f"  {session_id}", "dim")
            ),
            beats=beats,
            names=_names(reader, beats, steps),
            steps=steps,
            waiting=[delivery_in_words(*each, at_work=at_work) for each in waiting],
        )

    @classmethod
    def _of_flow(cls, reader: Reader, flow: Flow, *, at_work: bool, at: int | None) -> "Story":
        whole = read_flow(reader.log, flow)
        found, steps = whole.events, tuple(steps_of(whole.events))
        if at is not None:
            stood = Then(reader.log, at).flows([flow])
            if not stood:
                raise ToolRefused("invalid_request", f"--at: {flow_id(flow)} had not begun there")
            (flow,) = stood
            whole = whole._replace(flow=flow)
            found = [recorded for recorded in found if recorded.position <= at]
            steps = tuple(step for step in steps if step.position <= at)
        story, events = FlowStory(alone=isinstance(flow, RunOutcome)), told_in(reader.log, found)
        beats = tuple(beat for recorded in events for beat in story.tell(recorded))
        view = View(reader)
        (smells,) = smells_of_all(view, [whole], at)
        standing = Stands.of_all(reader, [flow], at_work=at_work, at=at)[0]._replace(smells=tuple(smells))
        pauses = without_pauses(pauses_in(reader.log))
        return cls(
            about=standing.value(view),
            head=lambda screen: _show_flow_head(screen, standing, _took(flow, pauses, holds_in(events))),
            beats=beats,
            names=_names(reader, beats, steps),
            steps=steps,
            today=day(flow.accepted_ms),
            smells=smells,
        )

    def value(self, *, steps: bool) -> JsonObject:
        """Return what `--json` prints."""
        found = {"beats": self.beats} | ({"steps": self.steps} if steps else {})
        return self.about | {name: msgspec.to_builtins(each) for name, each in found.items()}

    def show(self, screen: Screen, *, steps: bool = False, whole: bool = False) -> None:
        """Print the story, or its steps."""
        names = names_in(self.steps if steps else self.beats, self.names)
        self.head(screen)
        show_legend(screen, names)
        if steps:
            _show_steps(screen, self.steps, names)
        else:
            BeatPrinter(screen, names, whole=whole, today=self.today).print_all(self.beats)
        if self.smells:
            screen.line()
            screen.line(safe("seldom meant", "bold"))
        for smell in self.smells:
            where = f"  #{smell['place']['position']}"
            screen.one_line(safe(f"  {smell['code']}: ", "yellow"), smell["text"], safe(where, "dim"))
        if self.waiting:
            screen.line()
            for words in self.waiting:
                screen.line(safe(f"  a text {words}", "yellow"))


def _names(reader: Reader, beats: Iterable[Beat], steps: Iterable[Step]) -> Names:
    keys = {name for beat in beats for name in (beat.who, beat.to)}
    keys |= {name for step in steps for name in (step.who, step.to, step.stream.removeprefix("session:"))}
    return names_of(reader.log, [*keys])


def _took(flow: Flow, since: Callable[[int], int], holds: Sequence[Hold]) -> str:
    """Say how long a flow has lasted that is over, in a fork without the time before that was made (`since`).

    What it was held, waiting for a release, is no time that it took, and is said beside.
    """
    ended, held = flow.ended_ms if isinstance(flow, RunOutcome) else flow.closed_ms, held_ms(holds, since)
    took = "" if ended is None else f", took {duration(since(ended) - since(flow.accepted_ms) - held)}"
    return f"{took}, was held for {duration(held)}" if held else took


def _show_flow_head(screen: Screen, standing: Stands, took: str) -> None:
    """Print the flow, its time, its duration if it is over, and its state."""
    flow = standing.flow
    screen.line(safe(f"{flow.kind} {flow_id(flow)}", "bold"))
    screen.dim(f"  {moment(flow.accepted_ms)} UTC{took}; {standing_in_words(standing)}")
    if not isinstance(flow, RunOutcome) and flow.inferred:
        screen.dim("  put together from an imported record; it may be incomplete")


def _show_steps(screen: Screen, steps: Iterable[Step], names: Names) -> None:
    between, stream = cache(names.between), cache(partial(_stream, names=names))
    screen.table(
        ["position", "time (UTC)", "event", "in", "who", "words", "cause"],
        [
            (
                f"#{step.position}",
                clock(step.time),
                step.event,
                stream(step.stream),
                between(step.who, step.to),
                one_line(step.words, 80),
                "" if step.cause is None else f"← #{step.cause}",
            )
            for step in steps
        ],
    )


def _stream(stream: str, names: Names) -> str:
    kind, _, name = stream.partition(":")
    return f"{kind} {names.of(name) if kind == 'session' else name.partition('-')[0]}"


def _sealed(reading: Reading, run: str | None) -> Answer:
    """Replay a run (None: the whole log), and say whether all came out as it was recorded."""
    with reader_of(reading) as reader, Screen().progress("Replaying") as progress:
        found = Debugger(View(reader)).replay(run, progress=progress)
    value = cast("JsonObject", {**found})
    return Answer(value, lambda screen: _show(screen, found), OK if found["same"] else NOT_VERIFIED)


def _show(screen: Screen, found: "Replayed") -> None:
    what = "the whole log" if found["run"] is None else f"run {found['run']}"
    differs = found["firstDifference"]
    style, word = ("bold green", "same") if differs is None else ("bold red", "different")
    screen.line(
        safe(f"{word}: ", style),
        f"{what}, {counted(found['events'], 'event')}: {found['decided']} decided again, {found['given']} given as they were",
    )
    if found["walked"]:
        screen.line("  walked: another system decided some of it, and that can't be decided again")
    for times in found["notJudged"]:
        screen.line(f"  not judged: {times}")
    if differs is None:
        return
    screen.line(f"  {differs['text']}")
    for field in differs["fields"]:
        screen.line(safe(f"  {field['path']}", "bold"))
        screen.line(f"    recorded  {field['recorded']!r}")
        screen.line(f"    now       {field['now']!r}")


def find_subject(reader: Reader, name: str) -> Subject:
    """Return the subject of a name: an id of an exchange, a spawn or a run, a session's key in any form, or a session id.

    The operator asks, who sees what is archived too.
    """
    found = View(reader).session_or_flow(name, field="run")
    if not isinstance(found, str):
        return found
    row, session_id = reader.sessions.get(found), as_key(reader, name)
    assert row is not None  # noqa: S101 - it was named a moment ago
    is_earlier = session_id != row.session_id and reader.sessions.by_session_id(session_id) is not None
    return SessionSubject(row, session_id if is_earlier else None)


def events_of_session(
    reader: Reader, subject: SessionSubject, *, to: int, sent: Sequence[DeliverySummary]
) -> list[Recorded]:
    """Return the events of a session's story, up to a position: its own stream, and the streams of its flows.

    `sent` are all texts that went out in its name.
    """
    key, stream = subject.row.key, ids.session_stream(subject.row.key)
    if subject.generation is not None:
        span = reader.sessions.span(key, subject.generation)
        events = (
            ()
            if span is None
            else _up_to(reader, stream, to, after=span.from_version - 1, last=span.to_version)
        )
        return [recorded for recorded in events if _of_generation(recorded, subject.generation)]
    found = list(_up_to(reader, stream, to))
    for of_flow in reader.log.whole(_streams_of_flows(reader, key, to, sent)):
        found.extend(recorded for recorded in of_flow if recorded.position <= to)
    return sorted(found, key=lambda recorded: recorded.position)


def _up_to(
    reader: Reader, stream: str, to: int, *, after: int = 0, last: int | None = None
) -> Iterator[Recorded]:
    """Yield the events of a stream up to a position; of a long one, not all that came since is read."""
    known = 0
    while page := reader.log.stream(stream, after=after, to=last, limit=_PAGE):
        yield from (recorded for recorded in page[known:] if recorded.position <= to)
        if len(page) < _PAGE or page[-1].position > to:
            return
        # The last of a page is read again: that the next one follows it is proven then.
        after, known = page[-1].version - 1, 1


def _of_generation(recorded: Recorded, session_id: str) -> bool:
    event = recorded.event
    found = event.previous_session_id if isinstance(event, SessionReset) else generation_of(event)
    return found == session_id


def _streams_of_flows(reader: Reader, key: str, to: int, sent: Sequence[DeliverySummary]) -> list[str]:
    """Return the streams of a session's flows (asked for, asked in, spawned by), and of the texts that went out in its name.

    Only what had begun at a position.
    """
    names = dict.fromkeys(
        flow.stream
        for flow in reader.flows.exchanges_at(Position(0, to, key), _MOST_FLOWS)
        if key in {flow.requester, flow.target}
    )
    names |= dict.fromkeys(ids.delivery_stream(row.delivery_id) for row in sent if row.accepted <= to)
    names |= dict.fromkeys(flow.stream for flow in reader.flows.spawns_of(key) if flow.accepted <= to)
    own = reader.flows.spawn_of_child(key)
    if own is not None and own.accepted <= to:
        names[own.stream] = None
    return list(names)
