"""Finds words and files that are older than they may get, by rules of retention (FORGET-4)."""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from intersession_events.facts import LARGEST, has_words
from intersession_events.facts.reasons import counted
from intersession_events.log.erasing import left_of
from intersession_events.log.files import named_files
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded
from intersession_events.log.row_state import Envelope, is_short, opened, time_in
from intersession_events.log.sql import Row
from intersession_events.proofs.apart import is_left_whole, may_think
from intersession_projections.copies.found_words import Words, erasable, thinking_of
from intersession_projections.views.flows.flows import Flows

_PAGE: Final = 1_000
_NEVER: Final = ("log", "clock", "erased:")
"""Streams of the log's own accounts: no rule is for them."""


class Due(NamedTuple):
    """A rule, and the time (ms) up to which it erases."""

    rule: str
    up_to_ms: int


class Latest(NamedTuple):
    """The times (ms) of the last events whose words or files may be due, and whose thinking may be; None where no rule is for that."""

    words_ms: int | None
    thinking_ms: int | None


What = Literal["messages", "toolResults", "thinking", "files"]
DueFor = Callable[[str | None, What], Due | None]
"""Returns the rule for what is of a session, by the session's key."""


class Aged:
    """What is too old in a log, of streams in which nothing is `under_way`; `waiting` are those in which something is.

    The age counts from the event's own time, which an import brings along. Nothing is due that is later than `latest`.
    """

    def __init__(self, log: Log, due: DueFor, under_way: set[str], latest: Latest) -> None:
        self._log = log
        self._due = due
        self._under_way = under_way
        self._latest = latest
        self._of_before = 0
        self._flows = Flows(log)
        self._session_of = lru_cache(4096)(self._session)
        self.waiting: set[str] = set()

    def words(self, last: int) -> Iterator[tuple[str, Words]]:
        """Yield events with words up to a position, each with its rule, in the order of the log."""
        after = 0
        while after < last and (rows := self._log.rows(after=after, limit=_PAGE)):
            after = rows[-1][0]
            may_be = {row[0]: row for row in rows if row[0] <= last and self._may_be(row)}
            for recorded in self._log.at(may_be):
                left = left_of(recorded)
                if left is None:
                    continue
                words = erasable(recorded, left)
                kind: What = "toolResults" if words.kind == "toolResults" else "messages"
                if (rule := self._due_now(recorded, kind)) is not None:
                    yield rule, words
                elif (rule := self._due_now(recorded, "thinking")) is not None:
                    if _of_row(may_be[recorded.position]).apart is not None:
                        yield rule, thinking_of(recorded)
                    else:
                        self._of_before += is_left_whole(bytes(_of_row(may_be[recorded.position]).data))

    def staying(self) -> Iterator[str]:
        """Yield in words what was met that is too old, and can't go by itself."""
        if self._of_before:
            yield (
                f"the thinking in {counted(self._of_before, 'event')} of before a log kept it apart: it goes with their words, by a "
                "rule for messages"
            )

    def files(self) -> dict[str, dict[str, list[str]]]:
        """Return contents of files that only too old events name: by the rule, and by the stream of the last of these."""
        last: dict[str, tuple[str, str] | None] = {}
        for named in named_files(self._log):
            due = self._due_for(named.stream, "files")
            is_due = (
                due is not None
                and self._time_of(named.position) <= due.up_to_ms
                and self._is_over(named.stream)
            )
            gone = last.get(named.file.sha256, ("", "")) is not None
            last[named.file.sha256] = (
                (due.rule, named.stream) if due is not None and is_due and gone else None
            )
        found: dict[str, dict[str, list[str]]] = {}
        for sha256, where in last.items():
            if where is not None and self._log.files.state(sha256) != "missing":
                found.setdefault(where[0], {}).setdefault(where[1], []).append(sha256)
        return found

    def _may_be(self, row: Row) -> bool:
        """Whether a row may have words that were not erased, and are old enough."""
        words_ms, thinking_ms = self._latest
        topic, state = row[3:]
        if not has_words(topic):
            return False
        envelope = None if is_short(state) else _of_row(row)
        time = time_in(state) if envelope is None else envelope.time
        is_due = words_ms is not None and time <= words_ms
        if not is_due and (thinking_ms is None or time > thinking_ms or not may_think(state)):
            return False
        return envelope is None or not envelope.is_erased

    def _due_now(self, recorded: Recorded, kind: What) -> str | None:
        """Return the rule by which something of an event is too old, in a stream where nothing is under way."""
        due = self._due_for(recorded.stream, kind)
        is_old = due is not None and recorded.time <= due.up_to_ms
        return due.rule if due is not None and is_old and self._is_over(recorded.stream) else None

    def _time_of(self, position: int) -> int:
        return next((recorded.time for recorded in self._log.at([position])), LARGEST)

    def _is_over(self, stream: str) -> bool:
        if stream in self._under_way:
            self.waiting.add(stream)
        return stream not in self._under_way

    def _due_for(self, stream: str, kind: What) -> Due | None:
        return None if stream.startswith(_NEVER) else self._due(self._session_of(stream), kind)

    def _session(self, stream: str) -> str | None:
        """Return the session that a stream is of: that a flow began in, or a text came from."""
        kind, _, name = stream.partition(":")
        match kind:
            case "session":
                return name
            case "exchange":
                exchange = self._flows.exchange(name)
                return None if exchange is None else exchange.requester or exchange.target
            case "spawn":
                spawn = self._flows.spawn(name)
                return None if spawn is None else spawn.requester
            case "delivery":
                delivery = self._flows.delivery(name)
                return None if delivery is None else delivery.session_key
            case _:
                return None


def _of_row(row: Row) -> Envelope:
    return opened(row[4], where=(row[1], row[2]))
