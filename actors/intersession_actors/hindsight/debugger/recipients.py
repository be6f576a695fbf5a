"""The recipients of some words: sessions, runs whose input held them, chats, and calls that showed such a session. For the verb `origin` (ANS-3)."""

import heapq
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec

from intersession_actors.hindsight.debugger.inputs.imported import ImportedSession
from intersession_actors.hindsight.debugger.origin import (
    LookAnswer,
    OutsideAnswer,
    SeenAnswer,
    SeenInSession,
    SeenWhen,
)
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.owners.session.folding import session_at
from intersession_actors.rules.disclosure.events import hidden_message
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.prompt.fencing import shortened
from intersession_actors.rules.prompt.fitting import context_shown, shown_of, summarised
from intersession_actors.rules.prompt.transcript import RunContext
from intersession_actors.rules.prompt.window import Transcript
from intersession_events.basics.ids import session_stream
from intersession_events.basics.plain_json import is_list, is_object, present
from intersession_events.facts import AccessRecorded, Fit, LineImported, Message, RunStarted, is_imported
from intersession_events.facts.delivery import DeliveryState
from intersession_events.log.log import Log
from intersession_events.log.other_words import as_it_is
from intersession_events.log.recorded import Recorded
from intersession_projections.basics.spans import Span
from intersession_projections.questions.origins.holders import Holder, all_of, holders
from intersession_projections.questions.origins.matching import holds_as
from intersession_projections.questions.origins.origins import Origin, Origins, Shows
from intersession_projections.questions.places.then import Then
from intersession_projections.views.access_receipts import Wanted, receipts
from intersession_projections.views.flows.rows import DeliverySummary
from intersession_projections.views.flows.stored import DELIVERY

_PAGE: Final = 512
"""Events of a session that are read at a time."""
_AGENTS: Final = "agent:"
_NAMING: Final = ("sessionKey", "key", "keys")
"""Fields in which a call names sessions."""


class Recipients:
    """The recipients of the words of an answer, as the log stood at a position; of the given ones, if nobody said them."""

    def __init__(self, view: View, found: Origin, given: str, to: int, shows: Shows | None) -> None:
        self._view = view
        self._to = to
        words = found.words or given
        self._says = holds_as(found.match or "folded", words)
        self._sessions: dict[str, list[Holder]] = {}
        self._sent: dict[str, list[Holder]] = {}
        rows = Origins(view.log).rows_holding(words, to)
        for holder in holders(view.log, rows, self._says, shows):
            view.is_seen(holder.session_key)
            if holder.route is None:
                self._sessions.setdefault(holder.session_key, []).append(holder)
            else:
                self._sent.setdefault(holder.route.text, []).append(holder)

    def sessions(self) -> list[SeenInSession]:
        """Return the sessions with the words in their history, the first one first."""
        found: list[SeenInSession] = []
        for key, some in self._sessions.items():
            when, tools = _when(some), sorted({one.tool for one in some if one.tool is not None})
            session: SeenInSession = {
                "sessionKey": key,
                "ways": list(dict.fromkeys(way for one in some for way in one.ways)),
                "count": when["count"],
                "first": when["first"],
                "last": when["last"],
            }
            if tools:
                session["tools"] = tools
            if any(map(_is_of_import, some)):
                session["imported"] = True
            found.append(session)
        return found

    def outside(self) -> list[OutsideAnswer]:
        """Return the chats that the words went to, or should have, the first one first."""
        log, flows = self._view.log, self._view.reader.flows
        is_past = self._to < log.head()
        found: list[OutsideAnswer] = []
        for some in self._sent.values():
            ids = [one.recorded.stream.partition(":")[2] for one in some]
            rows = [row for row in flows.many({DELIVERY: ids}).values() if isinstance(row, DeliverySummary)]
            states: list[DeliveryState] = [
                row.state for row in (Then(log, self._to).deliveries(rows) if is_past else rows)
            ]
            counts: dict[DeliveryState, int] = {state: states.count(state) for state in states}
            found.append(
                {
                    "route": present(msgspec.structs.asdict(some[0].route)) if some[0].route else {},
                    "sessions": list(dict.fromkeys(one.session_key for one in some)),
                    "states": counts,
                    **_when(some),
                }
            )
        return found

    def looks(self) -> list[LookAnswer]:
        """Return the calls of people and programs that named a session with the words in it, the last one first.

        A receipt says which sessions were shown, and not which words. What agents were shown stands in what their tools gave.
        """
        since = {key: some[0].recorded.position for key, some in self._sessions.items()}
        if not since or not self._view.is_operator:
            return []
        found: list[LookAnswer] = []
        for receipt in receipts(self._view.log, Wanted(span=Span(min(since.values()), self._to))):
            event = receipt.event
            if receipt.who.startswith(_AGENTS) or not isinstance(event, AccessRecorded) or not event.allowed:
                continue
            keys = [
                key for key in self._keys_in(event.filters) if since.get(key, self._to) < receipt.position
            ]
            if keys:
                found.append(
                    {
                        "position": receipt.position,
                        "timeMs": receipt.time_ms,
                        "who": receipt.who,
                        "call": event.tool,
                        "sessions": keys,
                    }
                )
        return found

    def _keys_in(self, filters: str) -> list[str]:
        """Return the keys of the sessions that a call named."""
        try:
            given: object = msgspec.json.decode(filters)
        except msgspec.DecodeError:
            return []
        named = [given.get(field) for field in _NAMING] if is_object(given) else []
        keys: list[str] = []
        for name in [each for one in named for each in (one if is_list(one) else [one])]:
            try:
                keys += [self._view.session(name)] if isinstance(name, str) else []
            except ToolRefused:
                continue  # it is gone, or was never there
        return keys

    def runs(self, before: int | None) -> Iterator[SeenAnswer]:
        """Yield the runs and imported answers whose agents had the words in their input, newest first: each input is that of `lens`."""
        last = self._to if before is None else min(self._to, before - 1)
        found = (self._runs_of(key, some[0].recorded, last) for key, some in self._sessions.items())
        imported = (self._answers_of(key, first, last) for key, first in self._imported().items())
        return heapq.merge(*map(reversed, found), *imported, key=lambda run: -run["position"])

    def _imported(self) -> dict[str, int]:
        """Return the sessions whose imported answers may have had the words, each with the first position of these.

        A subgraph is given messages that stand in its thread alone (IN-2).
        """
        found: dict[str, int] = {}
        for key, some in self._sessions.items():
            first = next((one.recorded.position for one in some if _is_of_import(one)), None)
            if first is not None:
                for each in (key, *sorted(self._view.reader.sessions.descendants(key))):
                    found[each] = min(first, found.get(each, first))
        sees = self._view.sees
        return found if sees is None else {key: first for key, first in found.items() if sees(key)}

    def _answers_of(self, key: str, first: int, last: int) -> Iterator[SeenAnswer]:
        """Yield the imported answers of a session behind a position whose input had the words, newest first."""
        log = as_it_is(self._view.log) if self._view.hides else self._view.log
        session = ImportedSession(log, session_stream(key))
        given = _ImportedInputs(self._says, self._view, key, session.messages)
        for answer in reversed(session.answers):
            context = session.input(answer).context if first < answer.position <= last else None
            if context is None:
                continue
            summary, name = context.summary, f"#{answer.position}"
            fit = None if summary is None else summarised(summary)
            within, tools = given.within(
                context, RunStarted(run_id=name, attempt=1, context_hash="", fit=fit)
            )
            if within and self._view.is_seen(key):
                seen: SeenAnswer = {
                    "position": answer.position,
                    "timeMs": answer.time,
                    "sessionKey": key,
                    "runId": name,
                    "attempt": 1,
                    "within": within,
                    "imported": True,
                }
                if tools:
                    seen["tools"] = tools
                yield seen

    def _runs_of(self, key: str, first: Recorded, last: int) -> list[SeenAnswer]:
        """Return the runs of a session, each by its last attempt that was given the words. The stream is folded once for all."""
        log = as_it_is(self._view.log) if self._view.hides else self._view.log
        given = _Inputs(self._says, self._view, key)
        fold = session_at(log, session_stream(key), first.version - 1).transcript
        found: dict[str, SeenAnswer] = {}
        for recorded in _behind(log, session_stream(key), first.version - 1, last):
            event = recorded.event
            if isinstance(event, RunStarted) and fold.has(event.run_id):
                context = fold.context(event.run_id)
                within, tools = given.within(context, event)
                if within:
                    found.pop(event.run_id, None)  # in the order of positions
                    run: SeenAnswer = {
                        "position": recorded.position,
                        "timeMs": recorded.time,
                        "sessionKey": key,
                        "runId": event.run_id,
                        "attempt": event.attempt,
                        "within": within,
                    }
                    if tools:
                        run["tools"] = tools
                    if context.compacts:
                        run["summarises"] = True
                    found[event.run_id] = run
            fold.apply(recorded)
        return list(found.values())


class _Inputs:
    """Finds the words in the inputs of a session's runs, one after the other: each message of the transcript is looked at once."""

    def __init__(self, says: Callable[[str], bool], view: View, key: str) -> None:
        self._says = says
        self._view = view
        self._key = key
        self._began = -1
        self._known = 0
        self._found: list[tuple[int, Message]] = []
        """The messages of the transcript that hold the words, by their numbers."""

    def within(self, context: RunContext, started: RunStarted) -> tuple[list[str], list[str]]:
        """Return the parts of an attempt's input that held the words, and which tools had given them."""
        fit, summary = started.fit, context.summary
        notes, asked, partial = shown_of(
            (),
            context.message,
            context.partial,
            fit,
            run_id=started.run_id,
            summary=None if summary is None else summary.text,
        )
        held = self._held(context, fit)
        done = [one for one in partial if self._is_in(one)]
        parts = {
            "transcript": bool(held),
            "summary": any(map(self._is_in, notes)),
            "message": self._is_in(asked),
            "partial": bool(done),
            "systemContext": self._says(
                self._view.shown(context_shown(context.system_context, fit), self._key) or ""
            ),
        }
        tools = {one.tool_name for one in (*held, *done) if one.role == "toolResult"}
        return [name for name, is_held in parts.items() if is_held], sorted(filter(None, tools))

    def _held(self, context: RunContext, fit: Fit | None) -> list[Message]:
        """Return the messages with the words of the shown part of the transcript."""
        transcript = context.transcript
        began, end = transcript.began if isinstance(transcript, Transcript) else 0, len(transcript)
        if began != self._began or end < self._known:
            self._began, self._known, self._found = began, 0, []
        fresh = enumerate(transcript[self._known :], self._known)
        self._found += [(number, one) for number, one in fresh if self._is_in(one)]
        self._known = end
        if fit is None:
            return [one for _, one in self._found]
        first, stop = (
            bisect_left(self._found, number, key=lambda pair: pair[0])
            for number in (fit.left_out, end if fit.until is None else fit.until)
        )
        shown, most = [one for _, one in self._found[first:stop]], fit.earlier_chars
        return shown if most is None else [one for one in shown if self._is_in(shortened(one, most))]

    def _is_in(self, message: Message) -> bool:
        hides = self._view.is_stranger(self._key)
        return self._says(all_of(hidden_message(message) if hides else message, str))


class _ImportedInputs(_Inputs):
    """The same of an import: of a graph, an input may lack messages that an earlier one had. So each is looked at beforehand."""

    def __init__(
        self, says: Callable[[str], bool], view: View, key: str, messages: Iterable[Message]
    ) -> None:
        super().__init__(says, view, key)
        self._holding = {id(one) for one in messages if self._is_in(one)}
        """Which they are: the session keeps them, so that no other object takes such an identity."""

    def _held(self, context: RunContext, fit: Fit | None) -> list[Message]:
        shown = context.transcript[fit.left_out if fit else 0 :]
        has_none = self._holding.isdisjoint(map(id, shown))
        return [] if has_none else [one for one in shown if id(one) in self._holding]


def _behind(log: Log, stream: str, version: int, last: int) -> Iterator[Recorded]:
    """Yield the events of a stream behind a version, up to a position of the log."""
    while page := log.stream(stream, after=version, limit=_PAGE):
        for recorded in page:
            if recorded.position > last:
                return
            yield recorded
        version = page[-1].version


def _is_of_import(holder: Holder) -> bool:
    event = holder.recorded.event
    return is_imported(event) or isinstance(event, LineImported)


def _when(some: Iterable[Holder]) -> SeenWhen:
    found = [one.recorded for one in some]
    return {
        "count": len(found),
        "first": {"position": found[0].position, "timeMs": found[0].time},
        "last": {"position": found[-1].position, "timeMs": found[-1].time},
    }
