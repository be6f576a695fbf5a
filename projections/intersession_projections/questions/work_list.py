"""The work of a whole log, newest first: exchanges, spawns, and runs outside of both, for `intersession runs` (FIND-2)."""

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, Literal, NamedTuple

from intersession_events.basics.errors import LogError
from intersession_events.facts import (
    CloseReason,
    FailureCode,
    Frame,
    LoopEnd,
    RunStatus,
    SpawnClose,
    decode,
    parts_of,
    topic_of,
)
from intersession_events.facts.parts import words_of
from intersession_events.facts.words import OF_RUN
from intersession_events.log.log import Log
from intersession_events.log.row_state import payload_in
from intersession_events.log.sql import Ask, Row
from intersession_projections.basics.row_prefilter import Holding
from intersession_projections.basics.spans import Span
from intersession_projections.questions.messages import BegunBy, Messages
from intersession_projections.questions.places.runs_named import Flow, flow_sessions
from intersession_projections.questions.places.then import Then
from intersession_projections.questions.timeline.steps import steps_of
from intersession_projections.questions.timeline.timeline import Timeline
from intersession_projections.views.flows.flows import Flows
from intersession_projections.views.flows.rows import (
    DeliveriesWanted,
    DeliverySummary,
    ExchangeSummary,
    Position,
    SpawnSummary,
)
from intersession_projections.views.run_outcomes.outcome import RunOutcome
from intersession_projections.views.run_outcomes.runs import Runs

WorkKind = Literal["exchange", "spawn", "run"]
WorkEnd = Literal[RunStatus, FailureCode, LoopEnd, CloseReason, SpawnClose]
"""How something can have ended: its run and why that failed, its ping-pong, or all of it."""

_PAGE: Final = 64
_LARGEST_PAGE: Final = 2048
"""The sizes of the first and the largest page that is read: a filter that reads on matches few rows in each."""
_SPOKEN: Final = frozenset(
    {
        "message_recorded",
        "run_queued",
        "exchange_accepted",
        "turn_ended",
        "announce_decided",
        "exchange_released",
        "spawn_accepted",
        "child_ended",
        "run_completed",
        "run_failed",
        "delivery_decided",
    }
)
"""Events whose words are somebody's; those of the others are ours."""

_BESIDE: Final = 3
"""The most events of its append before a run's first one."""


class WorkFilter(NamedTuple):
    """A filter for work: all set fields must match. No kinds mean all kinds; no ends mean any end or none. `held` waits for a release.

    `session_key` and `other_key` took part: asked, was asked, or is the child. `agent_id` is of a session that took part.
    `channel` is where a text of it went, or where it was asked for. `person` is on whose behalf, by the id or the name that
    the channel gave. `words` were said in it, all of them at once. `span` is where its first event stands.
    """

    kinds: tuple[WorkKind, ...] = ()
    ends: tuple[WorkEnd, ...] = ()
    is_open: bool = False
    failed: bool = False
    held: bool = False
    session_key: str | None = None
    other_key: str | None = None
    agent_id: str | None = None
    channel: str | None = None
    person: str | None = None
    words: str | None = None
    span: Span = Span()


class WorkList:
    """Queries on exchanges, spawns and runs together, as they are or `stood`. Rows are read as they are consumed."""

    def __init__(
        self, log: Log, stood: Then | None = None, *, sees: Callable[[str], bool] | None = None
    ) -> None:
        """Find work within the caller's rights: `sees` tells of a session's canonical key; None sees all."""
        self._log = log
        self._sees = sees
        self._flows = Flows(log)
        self._runs = Runs(log)
        self._messages = Messages(log)
        self._holding: Holding | None = None
        self._began_by: BegunBy | None = None
        self._began_on: dict[str | None, str | None] = {}
        """By the root of a chain, on which channel somebody spoke to begin it."""
        self._stood = stood
        self._head = log.head() if stood is None else stood.position

    def newest(self, wanted: WorkFilter) -> Iterator[Flow]:
        """Yield the matches, newest first."""
        person = wanted.person
        everywhere = not (wanted.span.after or wanted.session_key or wanted.other_key)
        self._began_by = (
            None if person is None else BegunBy(self._log, self._messages, person, everywhere=everywhere)
        )
        self._holding = None if wanted.words is None else _holding(self._log, wanted.words)
        kinds = wanted.kinds or (("exchange",) if wanted.held else ("exchange", "spawn", "run"))
        sources: list[Iterator[tuple[Flow, _Ahead]]] = []
        if "exchange" in kinds:
            sources.append(self._pages(wanted, self._flows.exchanges_at))
        if "spawn" in kinds:
            sources.append(self._pages(wanted, self._flows.spawns_at))
        if "run" in kinds:
            sources.append(self._pages(wanted, self._runs.alone))
        if self._only_failed(wanted):
            undelivered = self._undelivered(wanted, kinds)
            sources.append(self._pages(wanted, lambda _, size: [*islice(undelivered, size)]))
        before = None
        for work, ahead in heapq.merge(*sources, key=lambda pair: -pair[0].accepted):
            # What failed itself may have a text that reached nobody, too.
            if work.accepted != before and self._is_wanted(work, wanted, ahead):
                yield ahead.worded[work.accepted]
            before = work.accepted

    def _only_failed(self, wanted: WorkFilter) -> bool:
        """Whether the rest need not be read: what has failed now had perhaps not failed then."""
        return wanted.failed and self._stood is None

    def _undelivered(self, wanted: WorkFilter, kinds: Sequence[WorkKind]) -> Iterator[Flow]:
        """Yield the works with an undelivered text, newest first.

        A text goes out behind the first event of its work. So whoever has read the deliveries of a part of the log knows all
        works that begin in that part.
        """
        to, key = wanted.span.last(self._head), wanted.session_key or wanted.other_key
        waiting: dict[int, Flow] = {}
        last, size = self._head, _PAGE
        while True:
            span = Span(wanted.span.after, last)
            page = self._flows.deliveries(DeliveriesWanted(failed=True, span=span), size)
            for work in self._works_of(page):
                is_asked_for = key is None or key in flow_sessions(work)
                if wanted.span.after < work.accepted <= to and is_asked_for and work.kind in kinds:
                    waiting[work.accepted] = work
            is_last = len(page) < size
            known = sorted((at for at in waiting if is_last or at > page[-1].accepted), reverse=True)
            yield from map(waiting.pop, known)
            if is_last:
                return
            last, size = page[-1].accepted - 1, min(2 * size, _LARGEST_PAGE)

    def _works_of(self, deliveries: Sequence[DeliverySummary]) -> Iterator[Flow]:
        """Yield the works of some deliveries: exchanges and spawns, and runs outside of both."""
        owners: dict[str, list[str]] = {}
        for kind, _, name in (one.owner.partition(":") for one in deliveries if one.owner is not None):
            owners.setdefault(kind, []).append(name)
        runs = {one.run_id for one in deliveries if one.owner is None and one.run_id is not None}
        runs -= self._flows.flows_of_runs(runs).keys()
        yield from (flow for flow in self._flows.many(owners).values() if isinstance(flow, Flow))
        yield from self._runs.many_without_words(runs).values()

    def _pages(
        self, wanted: WorkFilter, select: Callable[[Position, int], Sequence[Flow]]
    ) -> Iterator[tuple[Flow, "_Ahead"]]:
        last, size = wanted.span.last(self._head), _PAGE
        key = wanted.session_key or wanted.other_key
        failed = self._only_failed(wanted)
        while last > wanted.span.after:
            # What is over now may have been open then.
            only_open = (wanted.is_open or wanted.held) and self._stood is None
            page = select(Position(wanted.span.after, last, key, only_open, failed), size)
            stood: list[Flow] = [*page] if self._stood is None else self._stood.flows(page)
            found = [work for work in stood if _may_be(work, wanted)]
            ahead = self._ahead(found, wanted)
            yield from ((work, ahead) for work in found)
            if len(page) < size:
                return
            last, size = page[-1].accepted - 1, min(2 * size, _LARGEST_PAGE)

    def _ahead(self, page: list[Flow], wanted: WorkFilter) -> "_Ahead":
        """Read the inputs of the filters for a whole page at once: one by one, each would wait for the database."""
        ahead = _Ahead({}, {}, {}, set())
        if self._began_by is not None:
            self._began_by.learn(work.root for work in page)
        if wanted.words is not None:
            ahead.saying.update(self._saying(page, wanted.words))
        if wanted.ends:
            asked = self._runs.many_without_words(
                work.run_id for work in page if not isinstance(work, RunOutcome)
            )
            runs = list(asked.values()) if self._stood is None else self._stood.flows(list(asked.values()))
            ahead.codes.update(
                {
                    run.run_id: run.code
                    for run in runs
                    if isinstance(run, RunOutcome) and self._is_seen(run.session_key)
                }
            )
        if wanted.failed or wanted.channel is not None:
            (sent,) = self._log.answers(ask_deliveries_of_each(self._flows, page))
            if self._stood is not None:
                sent = self._stood.deliveries_of_each(sent)
            sent = [[row for row in rows if self._is_seen(row.session_key)] for rows in sent]
            ahead.sent.update(zip((work.accepted for work in page), sent, strict=True))
        if wanted.channel is not None:
            self._find_channels(page)
        # Which are shown is known already: with what runs said.
        shown = [work for work in page if self._is_wanted(work, wanted, ahead)]
        ahead.worded.update({work.accepted: work for work in self._worded(shown)})
        return ahead

    def _is_seen(self, key: str) -> bool:
        return self._sees is None or self._sees(key)

    def _worded(self, found: list[Flow]) -> list[Flow]:
        """Add the texts of runs, which are read only for shown ones."""
        if self._stood is not None:
            return found  # whoever says how it stood has read that
        runs = [work for work in found if isinstance(work, RunOutcome)]
        worded = {run.run_id: run for run in self._runs.with_words(runs)}
        return [worded[work.run_id] if isinstance(work, RunOutcome) else work for work in found]

    def _is_wanted(self, work: Flow, wanted: WorkFilter, ahead: "_Ahead") -> bool:
        """Whether a work that may be wanted is, by what stands elsewhere."""
        if wanted.ends and not (set(wanted.ends) & _ends(work, ahead.codes.get(work.run_id))):
            return False
        sent = ahead.sent.get(work.accepted, ())
        if wanted.failed and not has_failed(work, sent):
            return False
        if wanted.channel is not None and not (
            any(row.channel == wanted.channel for row in sent) or self._began_on[work.root] == wanted.channel
        ):
            return False
        if self._began_by is not None and not self._began_by.is_of(work.root):
            return False
        return wanted.words is None or work.accepted in ahead.saying

    def _saying(self, page: list[Flow], words: str) -> Iterator[int]:
        """Yield the positions of the works that contain some words."""
        holding = self._holding
        may_be = [
            work
            for work in page
            if holding is None or holding.may_be_in(work.accepted - _BESIDE, work.position, work.root)
        ]
        wanted = words.casefold().split()
        last = None if self._stood is None else self._stood.position
        for work, events in zip(may_be, Timeline(self._log).events_of_each(may_be), strict=True):
            told = (step for step in steps_of(events) if last is None or step.position <= last)
            said = (step.words.casefold() for step in told if step.event in _SPOKEN)
            if any(all(word in text for word in wanted) for text in said):
                yield work.accepted

    def _find_channels(self, page: list[Flow]) -> None:
        """Find out on which channels chains began: each is asked once for all that came of it."""
        new = dict.fromkeys(work.root for work in page if work.root not in self._began_on)
        # Most runs of people are the root of a chain themselves.
        runs = {work.run_id: work for work in page if isinstance(work, RunOutcome) and work.run_id in new}
        runs |= self._runs.many_without_words(root for root in new if root is not None and root not in runs)
        asked = dict(zip(runs, self._messages.of_runs(list(runs.values())), strict=True))
        for root in new:
            message = None if root is None else asked.get(root)
            provenance = None if message is None else message[2].provenance
            self._began_on[root] = None if provenance is None else provenance.source_channel


class _Ahead(NamedTuple):
    """The data read for a page of works: deliveries and texts by position, failures of first runs by id.

    `saying` are the positions of those in which somebody said what is asked for.
    """

    sent: dict[int, list[DeliverySummary]]
    codes: dict[str, str | None]
    worded: dict[int, Flow]
    saying: set[int]


def _may_be(work: Flow, wanted: WorkFilter) -> bool:
    """Whether a work is wanted, as far as its row tells."""
    sessions = flow_sessions(work)
    if wanted.is_open and not work.is_open:
        return False
    if wanted.agent_id is not None and not any(
        key.startswith(f"agent:{wanted.agent_id}:") for key in sessions
    ):
        return False
    if wanted.session_key and wanted.other_key and wanted.other_key not in sessions:
        return False
    return not wanted.held or (isinstance(work, ExchangeSummary) and work.held is not None)


def _ends(work: Flow, code: str | None) -> set[str | None]:
    """Return how a work has ended; `code` is why its first run failed."""
    match work:
        case ExchangeSummary():
            return {work.primary_status, work.end_reason, work.close_reason, code}
        case SpawnSummary():
            return {work.status, work.close_reason, code}
        case RunOutcome():
            return {work.status, work.code}


def has_failed(work: Flow, sent: Iterable[DeliverySummary]) -> bool:
    """Whether a work, or the delivery of one of its texts, failed."""
    return work.failed or any(row.failed for row in sent)


def _holding(log: Log, words: str) -> Holding:
    """Return a scan for messages with some words, all of them at once."""
    wanted = words.casefold().split()

    def is_spoken(row: Row) -> bool:
        return row[3].partition(".")[0] in _SPOKEN

    def says(row: Row) -> bool:
        stored, (kind, _, name) = payload_in(row[4]), row[1].partition(":")
        try:
            event = None if stored is None else decode(row[3], stored)
        except LogError:
            event = None  # reading it as an event says what is wrong with it
        if event is None:
            return True
        spoken = [part for part in parts_of(event) if topic_of(part).partition(".")[0] in _SPOKEN]
        texts = (words_of(part, Frame(key=name if kind == "session" else None)).brief for part in spoken)
        texts = (text for text in texts if text != OF_RUN)
        said = " ".join(texts).casefold()
        return all(word in said for word in wanted)

    return Holding.of_words(log, wanted, is_spoken, says)


def ask_deliveries_of_each(flows: Flows, found: Sequence[Flow]) -> Ask[list[list[DeliverySummary]]]:
    """Ask for the deliveries of exchanges, spawns and runs outside of both: of each, oldest first."""
    runs = [work.run_id for work in found if isinstance(work, RunOutcome)]
    streams = [work.stream for work in found if not isinstance(work, RunOutcome)]
    ask = flows.ask_deliveries_of_all(streams, runs)

    def told(rows: list[list[Row]]) -> list[list[DeliverySummary]]:
        of_run: dict[str | None, list[DeliverySummary]] = {}
        of_flow: dict[str | None, list[DeliverySummary]] = {}
        for row in ask.told(rows):
            of_run.setdefault(row.run_id, []).append(row)
            of_flow.setdefault(row.owner, []).append(row)
        return [
            of_run.get(work.run_id, []) if isinstance(work, RunOutcome) else of_flow.get(work.stream, [])
            for work in found
        ]

    return Ask(ask.questions, told)
