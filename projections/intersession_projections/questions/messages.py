"""Messages by sender and session over the whole log, newest first, and the cost of each person's messages (FIND-2)."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from intersession_events.basics.ids import SESSIONS, session_stream
from intersession_events.facts import SAYING, Message, Provenance, RunQueued, Usage, is_imported
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded, StreamPart
from intersession_events.log.sql import Row
from intersession_projections.basics.row_prefilter import Holding, chain_of, prefiltered
from intersession_projections.basics.spans import Span, backwards
from intersession_projections.basics.speakers import as_read, called, is_openclaws, recorded_speaker
from intersession_projections.views.flows.flows import Flows
from intersession_projections.views.flows.rows import DeliverySummary
from intersession_projections.views.run_outcomes.outcome import RunOutcome
from intersession_projections.views.run_outcomes.runs import Runs
from intersession_projections.views.usage import DAY_MS, Sums, Used, days_of, sums_of, used_in

_FIRST: Final = 32
_MOST: Final = 512
"""For this many messages, first and at most, the related rows are read at once: a page may need no more."""


class MessageFilter(NamedTuple):
    """A filter for messages: all set fields must match.

    `sender` and `target` are keys of sessions. `person` is whoever it was said for, by the id or the name that the channel
    gave.
    """

    inter_session: bool = False
    sender: str | None = None
    target: str | None = None
    person: str | None = None
    span: Span = Span()


class IncomingMessage(NamedTuple):
    """A message that came into a session from outside of it. `message` has its provenance, `time_ms` is when it was recorded.

    `imported` says that another system recorded it. `run` is the run that answered it; None where nobody was
    to. `began` is the message that the causal chain began with, itself too; None where an import does not
    show it. On whose behalf it was said is what that one's provenance says.
    """

    position: int
    time_ms: int
    target: str
    message: Message
    run: RunOutcome | None
    began: "tuple[int, str, Message] | None"
    imported: bool = False

    @property
    def person(self) -> Provenance | None:
        """The place at which the person speaks for whom it was sent; None if there is no person."""
        if self.began is None:
            return None
        found = self.began[2].provenance
        return found if found is not None and found.kind == "external_user" else None


class Messages:
    """Queries on messages to sessions. Those of one session are read from its own stream, else from the whole log."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._runs = Runs(log)
        self._flows = Flows(log)

    def said(self, wanted: MessageFilter) -> Iterator[IncomingMessage]:
        """Yield the matches, newest first, read as they are consumed."""
        began_by: BegunBy | None = None
        if wanted.person is not None:
            began_by = BegunBy(
                self._log, self, wanted.person, everywhere=wanted.target is None and not wanted.span.after
            )
            if not began_by.has_any():
                return
        found = (
            (recorded, message)
            for recorded in self._recorded(wanted, began_by)
            if (message := as_read(recorded.event)) is not None and _may_be(message, wanted)
        )
        size = _FIRST
        while some := list(islice(found, size)):
            yield from self._said(some if began_by is None else began_by.those_said(some))
            size = min(2 * size, _MOST)

    def deliveries_of(self, found: Sequence[IncomingMessage]) -> list[list[DeliverySummary]]:
        """Return the deliveries that messages led to: those of each one's run, and of its exchange or spawn."""
        runs = [said.run.run_id for said in found if said.run is not None]
        flows = self._flows.flows_of_runs(runs)
        of_run: dict[str | None, list[DeliverySummary]] = {}
        of_flow: dict[str | None, list[DeliverySummary]] = {}
        for row in self._flows.deliveries_of_all(dict.fromkeys(flows.values()), runs):
            of_run.setdefault(row.run_id, []).append(row)
            if row.owner is not None:
                of_flow.setdefault(row.owner, []).append(row)
        told: list[list[DeliverySummary]] = []
        for said in found:
            run = None if said.run is None else said.run.run_id
            rows = [] if run is None else [*of_run.get(run, ()), *of_flow.get(flows.get(run), ())]
            each = {row.delivery_id: row for row in rows}
            told.append(sorted(each.values(), key=lambda row: row.accepted))
        return told

    def _said(self, found: Sequence[tuple[Recorded, Message]]) -> list[IncomingMessage]:
        """Return messages with related facts from elsewhere: read for many at once."""
        runs = self._runs.many(
            recorded.event.run_id for recorded, _ in found if isinstance(recorded.event, RunQueued)
        )
        roots = {recorded.correlation for recorded, message in found if _is_led_to(message)}
        began = self.beginnings(root for root in roots if root is not None)
        told: list[IncomingMessage] = []
        for recorded, message in found:
            event, target = recorded.event, recorded.stream.removeprefix(SESSIONS)
            run = runs.get(event.run_id) if isinstance(event, RunQueued) else None
            first: tuple[int, str, Message] | None = (recorded.position, target, message)
            if _is_led_to(message):
                first = began.get(recorded.correlation or "")
            imported = is_imported(event)
            told.append(
                IncomingMessage(recorded.position, recorded.time, target, message, run, first, imported)
            )
        return told

    def began_by(self, roots: Iterable[str]) -> dict[str, str]:
        """Return the person whose message began each causal chain, by its root, as people are shown; chains that began otherwise are left out."""
        found = self.beginnings(roots)
        return {root: recorded_speaker(said[2]) for root, said in found.items() if said is not None}

    def beginnings(self, roots: Iterable[str]) -> dict[str, tuple[int, str, Message] | None]:
        """Return the message that each causal chain began with, by its root, with its position and its session."""
        runs = self._runs.many_without_words(roots)
        return dict(zip(runs, self.of_runs(list(runs.values())), strict=True))

    def of_runs(self, runs: Sequence[RunOutcome]) -> list[tuple[int, str, Message] | None]:
        """Return the message that each of some runs answers, with its position and its session."""
        parts = [
            # It is recorded with its run; in a fork, an imported one right before.
            StreamPart(session_stream(run.session_key), max(0, run.first_version - 2), run.first_version)
            for run in runs
        ]
        found: dict[str, tuple[int, str, Message]] = {}
        for run, events in zip(runs, self._log.parts(parts), strict=True):
            for recorded in events:
                message = as_read(recorded.event)
                if message is not None and message.id == run.message_id:
                    found[run.run_id] = (recorded.position, run.session_key, message)
        return [found.get(run.run_id) for run in runs]

    def _recorded(self, wanted: MessageFilter, began_by: "BegunBy | None") -> Iterator[Recorded]:
        if wanted.target is not None:
            # Where in the stream the part ends, the next run behind it tells.
            later = self._runs.next_of_session(wanted.target, wanted.span.last(self._log.head()))
            to = None if later is None else later.first_version
            yield from backwards(self._log, wanted.span, session_stream(wanted.target), to_version=to)
            return
        needed = [b'"user"', *([b"inter_session"] if wanted.inter_session else [])]
        yield from prefiltered(
            self._log,
            wanted.span,
            lambda row: (
                _is_message(row)
                and all(part in row[4] for part in needed)
                and (began_by is None or began_by.may_be(row))
            ),
            ahead=None if began_by is None else began_by.look_at,
        )


class BegunBy:
    """The causal chains that a person's message began; the person is given by the id or the name that the channel reported.

    For one question: it remembers what it has found. Asked about the end of the log first. `everywhere` says that all of the log is
    asked about: then it looks first whether the person ever spoke.
    """

    def __init__(self, log: Log, messages: Messages, name: str, *, everywhere: bool) -> None:
        self._runs = Runs(log)
        self._messages = messages
        self._name = name
        self._holding = Holding.of_person(log, name)
        self._everywhere = everywhere
        self._known: dict[str, bool] = {}

    def has_any(self) -> bool:
        """Whether there may be one; always True for a part of a log."""
        return not self._everywhere or self._holding.is_anywhere()

    def is_of(self, root: str | None) -> bool:
        """Whether a chain, by its root, is one of them."""
        self.learn([root])
        return self._known.get(root or "", False)

    def learn(self, roots: Iterable[str | None]) -> None:
        """Find out for several chains at once: one by one, each would wait for the database."""
        new = [root for root in dict.fromkeys(roots) if root is not None and root not in self._known]
        if not new or not self.has_any():
            return
        runs = self._runs.many_without_words(new)
        may_be = [run for run in runs.values() if self._may_be(run)]
        began = zip(may_be, self._messages.of_runs(may_be), strict=True)
        self._known |= dict.fromkeys(new, False) | {run.run_id: self._is(asked) for run, asked in began}

    def those_said(self, found: Sequence[tuple[Recorded, Message]]) -> list[tuple[Recorded, Message]]:
        """Return those messages that are the person's, or were sent on the person's behalf."""
        self.learn(recorded.correlation for recorded, message in found if _is_led_to(message))
        return [one for one in found if self._said(*one)]

    def _said(self, recorded: Recorded, message: Message) -> bool:
        return (
            self.is_of(recorded.correlation) if _is_led_to(message) else _is(message.provenance, self._name)
        )

    def look_at(self, rows: Iterable[Row]) -> None:
        """Find out at once for the chains of the messages among some rows."""
        self.learn(chain_of(row) for row in rows if _is_message(row) and not self._holding.is_in(row))

    def may_be(self, row: Row) -> bool:
        """Whether a row may be a message of the person's, or one on the person's behalf."""
        return self._holding.is_in(row) or self.is_of(chain_of(row))

    def _may_be(self, run: RunOutcome) -> bool:
        return self._holding.may_be_in(run.accepted, run.accepted, run.run_id)

    def _is(self, asked: "tuple[int, str, Message] | None") -> bool:
        return asked is not None and _is(asked[2].provenance, self._name)


def _is_led_to(message: Message) -> bool:
    """Whether something else led to a message: then a chain began before it."""
    return message.provenance is not None and message.provenance.kind != "external_user"


def _is_message(row: Row) -> bool:
    stream: str = row[1]
    return stream.startswith(SESSIONS) and row[3] in SAYING


def _may_be(message: Message, wanted: MessageFilter) -> bool:
    """Whether a message can be one that is wanted, as far as it says itself."""
    if message.role != "user":
        return False
    provenance = None if is_openclaws(message) else message.provenance
    kind = None if provenance is None else provenance.kind
    source = None if provenance is None else provenance.source_session_key
    if (wanted.inter_session or wanted.sender is not None) and kind != "inter_session":
        return False  # what the system says of a session's request names that one, too, and is not its word
    return wanted.sender is None or source == wanted.sender


def _is(person: Provenance | None, name: str) -> bool:
    return person is not None and name.casefold() in {text.casefold() for text in called(person)}


def used_by_person(log: Log, *, since_ms: int | None = None, until_ms: int | None = None) -> list[Used]:
    """Return the usage of each model by day, session and person: each causal chain counts for the person who began it.

    `person` is empty for what no message is known to have begun. The log is read for it.
    """
    messages = Messages(log)
    sums: dict[tuple[str, int, str, str], Sums] = {}
    found = _used_in_days(log, *days_of(since_ms, until_ms))
    while some := list(islice(found, _AT_ONCE)):
        began = messages.began_by({one.correlation for one, _, _ in some if one.correlation is not None})
        for recorded, usage, model in some:
            session = recorded.stream.removeprefix(SESSIONS)
            place = model, recorded.time // DAY_MS, session, began.get(recorded.correlation or "", "")
            sums[place] = sums.get(place, Sums()).and_also(sums_of(usage))
    return [
        Used(model, added, day=day, session_key=session, person=person)
        for (model, day, session, person), added in sums.items()
    ]


def _used_in_days(log: Log, first: int, last: int) -> Iterator[tuple[Recorded, Usage, str]]:
    for recorded in prefiltered(log, Span(), _may_have_used):
        found = used_in(recorded)
        if found is not None and first <= recorded.time // DAY_MS <= last:
            yield recorded, *found


def _may_have_used(row: Row) -> bool:
    return row[3] in SAYING and b"usage" in row[4]


_AT_ONCE: Final = 500
