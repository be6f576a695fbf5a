"""Erases what was found in one log: its rows, and the contents of files that nothing else names (ERASE-1, FILE-7)."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from intersession_actors.outside.attachments.contents import named_in
from intersession_events.basics.crash_points import crash_point
from intersession_events.facts import Erased
from intersession_events.log.erasing import erased_stream
from intersession_events.log.files import named_files
from intersession_events.log.log import HostLog
from intersession_events.log.recorded import ANY_VERSION, Draft, StreamAppend
from intersession_projections.copies.found_words import Words

TOGETHER: Final = 1_000
"""The most events erased in one append, with one event for each of their streams."""


class Order(NamedTuple):
    """The caller, the reason and the rule of an erasure; what it does not reach, in words."""

    by: str
    reason: str
    rule: str = ""
    not_reached: tuple[str, ...] = ()
    at_once: int = TOGETHER


class InLog:
    """Erases in one log. Each append is whole, and copies go first: after a crash in between, the same call erases what is left."""

    def __init__(self, log: HostLog, *, new_id: Callable[[], str], now_ms: Callable[[], int]) -> None:
        self._log = log
        self._new_id = new_id
        self._now_ms = now_ms
        self.destroyed = 0
        """The number of keys that the last erasure destroyed (CRYPT-4)."""

    def files_going(self, found: Sequence[Words]) -> set[str]:
        """Return the contents of files that nothing else names, and that did not go by their age (FILE-7)."""
        going = {sha256 for words in found for sha256 in words.files}
        if not going:
            return set()
        places = {(words.stream, words.version) for words in found}
        for named in named_files(self._log):
            if (named.stream, named.version) not in places:
                going.discard(named.file.sha256)
        return {sha256 for sha256 in going if self._log.files.state(sha256) != "missing"}

    def erase(
        self, found: Sequence[Words], files: set[str], order: Order, erased: Callable[[str], None]
    ) -> int | None:
        """Erase words, and the contents of files with them; return the position of the last event that says so.

        `erased` is told the streams of each append.
        """
        left, position, first = {*files}, None, None
        self._log.files.doubt(files)
        for start in range(0, len(found), order.at_once):
            drafts = [*self._drafts(found[start : start + order.at_once], left, order, first)]
            first = first or drafts[0][1].id
            position = self._log.append_now(
                [
                    StreamAppend(stream=erased_stream(stream), expected=ANY_VERSION, drafts=(draft,))
                    for stream, draft in drafts
                ]
            ).position
            for stream, _ in drafts:
                erased(stream)
        if files:
            crash_point("F2")
            self.settle()
        self.destroyed = self._log.destroy_keys({words.stream for words in found})
        return position

    def erase_files(self, contents: Mapping[str, Sequence[str]], order: Order) -> int:
        """Remove contents of files that stay named, each under the stream of an event that names it; return the position of the last event.

        After a crash in between they are there, and found again.
        """
        gone = {sha256 for some in contents.values() for sha256 in some}
        self._log.files.doubt(gone)
        now, first = self._now_ms(), None
        appends: list[StreamAppend] = []
        for stream, some in contents.items():
            event = Erased(
                stream=stream,
                rows=(),
                by=order.by,
                reason=order.reason,
                files=len(some),
                rule=order.rule,
                not_reached=order.not_reached if first is None else (),
                contents=tuple(sorted(some)),
            )
            draft = Draft(event=event, id=self._new_id(), time=now, causation=first)
            first = first or draft.id
            appends.append(StreamAppend(stream=erased_stream(stream), expected=ANY_VERSION, drafts=(draft,)))
        position = self._log.append_now(appends).position
        self._log.files.settle(lambda some, since: named_in(self._log, {*some} - gone, since))
        return position

    def settle(self) -> None:
        """Remove the contents of files that no event names any more."""
        self._log.files.settle(partial(named_in, self._log))

    def _drafts(
        self, batch: Sequence[Words], files: set[str], order: Order, first: str | None
    ) -> Iterator[tuple[str, Draft]]:
        rows: dict[tuple[str, bool], list[tuple[int, str]]] = {}
        gone = Counter[str]()
        for words in batch:
            rows.setdefault((words.stream, words.kind == "thinking"), []).append((words.version, words.left))
            fresh = files.intersection(words.files)  # each counts once
            gone[words.stream] += len(fresh)
            files -= fresh
        now = self._now_ms()
        for (stream, thinking), named in rows.items():
            event = Erased(
                stream=stream,
                rows=tuple(named),
                by=order.by,
                reason=order.reason,
                files=gone[stream],
                rule=order.rule,
                not_reached=order.not_reached if first is None else (),
                thinking=thinking,
            )
            draft = Draft(event=event, id=self._new_id(), time=now, causation=first)
            first = first or draft.id
            yield stream, draft
