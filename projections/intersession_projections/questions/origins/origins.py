"""Finds where a text came from: the first message that holds it, and each hop by which it reached others (ORIGIN-1).

The log is looked through from its beginning, row by row, and only what may hold the words is read as events. How far that
goes is bounded, and the answer says where it stopped; of a run it is what lies nearest before it that is looked through.
"""

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from intersession_events import facts
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded, parts_in
from intersession_events.log.sql import Row
from intersession_projections.basics.spans import Span
from intersession_projections.basics.speakers import is_openclaws
from intersession_projections.questions.origins.hops import (
    SESSION,
    Hop,
    Reads,
    Says,
    hop_of,
    key_of,
    leading_to,
    linked,
    said_in,
)
from intersession_projections.questions.origins.matching import Match, Phrase, holds, longest_shared

MOST_ROWS: Final = 500_000
"""How many rows are looked through: a hundred thousand take a good third of a second."""

MOST_HOPS: Final = 500
"""How many hops are shown: the first ones, of those that led to a run the last ones."""

Shows = Callable[[str], Reads | None]
"""Returns how the caller reads the texts of a session; None where they may not know of it. Only what they may read is found."""

Named = Callable[[str, str], str]
"""Returns the key of the session that is shown by some name to another one, whose key stands second."""

_PAGE: Final = 2000
_LARGEST_PAGE: Final = 16_000
_TOPICS: Final = facts.SAYING | facts.topics_of(facts.DeliveryDecided)
_GIVEN: Final = facts.topics_of(facts.TranscriptGiven)
_LINES: Final = facts.topics_of(facts.LineImported)


class Origin(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The origin of a text. `first` is None if no message holds it.

    `match` says how they were found, `words` which of them: all that was asked for, of a shared run only that. `hops` are all
    others that hold the same words, in log order. `cut` is the position up to which the log was looked through, where that
    is not all that was asked for, or where there are more hops than are shown. Within a run it is the position from which on:
    what is left out lies between the first and that one, or all of it before the first.
    """

    first: Hop | None
    hops: tuple[Hop, ...] = ()
    match: Match | None = None
    words: str | None = None
    cut: int | None = None


class _Looked(NamedTuple):
    """Positions that hold a whole phrase, as it stands and in any case, and those that may hold some of its words in a row.

    `sharing` is None where that was not looked for to the end.
    """

    exact: list[int]
    folded: list[int]
    sharing: list[int] | None


class Origins:
    """Queries on origins of texts."""

    def __init__(
        self,
        log: Log,
        *,
        shows: Shows | None = None,
        named: Named | None = None,
        most_rows: int = MOST_ROWS,
    ) -> None:
        self._log = log
        self._shows = shows
        self._named = named or _named
        self._most_rows = most_rows

    def of(self, given: str, *, to: int | None = None, within: frozenset[int] | None = None) -> Origin:
        """Return the origin of a text, as the log stood at `to`.

        With `within` it is where those words came from that stand at these positions, in any session.
        """
        phrase = Phrase.of(given)
        last = self._log.head() if to is None else min(to, self._log.head())
        begins = 0 if within is None else max(0, last - self._most_rows)
        part = Span(begins, min(last, begins + self._most_rows))
        cut = part.to if part.to != last else begins or None
        looked = self._looked_at(phrase, part, within)
        whole = self._whole(phrase, looked, within)
        if whole is not None:
            match, found, left = whole
            return _origin(found, match, phrase.given, left or cut)
        words = self._most_shared(phrase, part, within, looked.sharing)
        if words is None:
            return Origin(first=None, cut=cut)
        found, left = self._shared(Phrase.of(" ".join(words)), part, within)
        return _origin(found, "shared", " ".join(words), left or cut)

    def rows_holding(self, words: str, to: int) -> Iterator[Row]:
        """Yield the rows of what was said, sent, handed over or imported up to a position that may hold words, in any case."""
        phrase = Phrase.of(words)
        plain, everything = phrase.plainest(), len(phrase.words) - 1
        for row in self._rows(Span(0, min(to, self._most_rows)), _TOPICS | _GIVEN | _LINES):
            if phrase.may_hold(row[4], plain) or phrase.may_share(row[4], everything):
                yield row

    def _looked_at(self, phrase: Phrase, part: Span, within: frozenset[int] | None) -> "_Looked":
        """Look through a part of the log once, for the whole phrase and for rows that may share words with it."""
        plain, everything, most = phrase.plainest(), len(phrase.words) - 1, phrase.fewest - 1
        fewest = min(most, everything)
        exact, folded, sharing = list[int](), list[int](), list[int]()
        for row in self._rows(part) if phrase.given else ():
            state: bytes = row[4]
            # Once somebody is found who said it as it stands, nobody asks for less, but for what leads to some places.
            may_share = (within is not None or not exact) and phrase.may_share(state, fewest)
            if may_share:
                sharing.append(row[0])
            if phrase.may_hold(state, plain) or (
                may_share and not exact and (fewest == everything or phrase.may_share(state, everything))
            ):
                match = holds(self._said(row), phrase)
                if match is not None:
                    (exact if match == "exact" else folded).append(row[0])
            if within is None and len(exact) > MOST_HOPS + 1:
                break
        is_whole = bool(phrase.given) and (within is not None or not exact)
        return _Looked(exact, folded, sharing if is_whole else None)

    def _whole(
        self, phrase: Phrase, looked: "_Looked", within: frozenset[int] | None
    ) -> tuple[Match, list[Hop], int | None] | None:
        """Return what holds the whole phrase exactly, else what holds it in any case."""
        any_case = sorted((*looked.exact, *looked.folded))
        for match, positions in (("exact", looked.exact), ("folded", any_case)):
            hops, left = self._hops(positions, within, lambda text: holds(text, phrase) is not None)
            if hops:
                return "exact" if match == "exact" else "folded", hops, left
        return None

    def _most_shared(
        self, phrase: Phrase, part: Span, within: frozenset[int] | None, sharing: Sequence[int] | None
    ) -> tuple[str, ...] | None:
        """Return the longest run of words that a message shares; of several the earliest.

        `sharing` are the positions that may hold some, None where that is not known.
        """
        best: tuple[int, int] | None = None
        most = phrase.fewest - 1
        if len(phrase.words) <= most:
            return None
        for row in self._rows(part) if sharing is None else self._rows_at(sharing):
            if (within is None or row[0] in within) and phrase.may_share(row[4], most):
                found = longest_shared(self._said(row), phrase.words, more_than=most)
                if found is not None:
                    best, most = found, found[1] - found[0]
        return None if best is None else phrase.words[best[0] : best[1]]

    def _shared(
        self, words: Phrase, part: Span, within: frozenset[int] | None
    ) -> tuple[list[Hop], int | None]:
        everything = len(words.words) - 1
        positions: list[int] = []
        for row in self._rows(part):
            if words.may_share(row[4], everything):
                if longest_shared(self._said(row), words.words, more_than=everything) is not None:
                    positions.append(row[0])
                if within is None and len(positions) > MOST_HOPS + 1:
                    break
        return self._hops(
            positions,
            within,
            lambda text: longest_shared(text, words.words, more_than=everything) is not None,
        )

    def _hops(
        self, positions: Sequence[int], within: frozenset[int] | None, says: Says
    ) -> tuple[list[Hop], int | None]:
        """Return the first hops at positions, else the first of those that lead to `within` and the last ones, and where more are left out."""
        if within is None:
            found = list(linked(self._shown(self._log.at(positions[: MOST_HOPS + 1]), says)))
            return found, found[-1].position if len(positions) > MOST_HOPS + 1 and found else None
        found = leading_to(linked(self._shown(self._log.at(positions), says)), within)
        if len(found) <= MOST_HOPS + 1:
            return found, None
        return [found[0], *found[-MOST_HOPS:]], found[-MOST_HOPS].position

    def _said(self, row: Row) -> str:
        """Return what a row says to the caller, unproven; nothing, if that is not to be seen."""
        if self._shows is None:
            return said_in(row)
        shown = self._shown(self._log.all(after=row[0] - 1, to=row[0]), lambda _: False)
        return next((hop.text for hop in shown), "")

    def _shown(self, events: Iterable[Recorded], says: Says) -> Iterator[Hop]:
        for recorded in events:
            reads = self._reads(recorded)
            hop = None if reads is None else hop_of(recorded, says, reads)
            if hop is None:
                continue
            if hop.via == "tool" and hop.source is not None:
                hop = replace(hop, source=self._named(hop.source, hop.session_key))
            message = facts.message_in(recorded.event)
            if message is not None and is_openclaws(message):
                hop = replace(hop, source=self._led_by(recorded))
            if isinstance(recorded.event, facts.DeliveryDecided):
                child = self._child_of(recorded.event)
                hop = replace(hop, edited_by=self._editor_of(recorded.event), source=child or hop.source)
            yield hop

    def _led_by(self, recorded: Recorded) -> str | None:
        """Return the session in which stands what led to a message: whose task it hands over, or whose result."""
        cause = recorded.causation
        found = self._log.with_id(cause, limit=1) if cause is not None else ()
        return next((key_of(led) for led in found if led.stream.startswith(SESSION)), None)

    def _reads(self, recorded: Recorded) -> Reads | None:
        event = recorded.event
        key = event.session_key if isinstance(event, facts.DeliveryDecided) else key_of(recorded)
        return str if self._shows is None else self._shows(key)

    def _editor_of(self, delivery: facts.DeliveryDecided) -> str | None:
        """Return who wrote a text without a run, or edited a held announce: the exchange tells, the outbox does not."""
        if delivery.by is not None:
            return delivery.by
        for recorded in parts_in(
            self._log.stream(delivery.owner, backwards=True) if delivery.owner is not None else ()
        ):
            event = recorded.event
            if isinstance(event, facts.AnnounceDecided) and event.delivery_id == delivery.delivery_id:
                return event.edited_by
        return None

    def _child_of(self, delivery: facts.DeliveryDecided) -> str | None:
        """Return the sub-agent whose result a text announces in the name of the session that wanted it; None for any other."""
        if delivery.purpose != "spawn_announce" or delivery.owner is None:
            return None
        first = next(iter(self._log.stream(delivery.owner, to=1)), None)
        return (
            first.event.child if first is not None and isinstance(first.event, facts.SpawnAccepted) else None
        )

    def _rows_at(self, positions: Sequence[int]) -> Iterator[Row]:
        """Yield the rows at rising positions. What lies between is read along, so that it never takes longer than all of them."""
        at = 0
        while at < len(positions):
            page = self._log.rows(after=positions[at] - 1, limit=_PAGE)
            end = bisect_right(positions, page[-1][0]) if page else len(positions)
            wanted = set(positions[at:end])
            yield from (row for row in page if row[0] in wanted)
            at = end

    def _rows(self, part: Span, topics: Collection[str] = _TOPICS) -> Iterator[Row]:
        after, to, size = part.after, part.to or 0, _PAGE
        while after < to and (page := self._log.rows(after=after, limit=min(size, to - after))):
            yield from (row for row in page if row[0] <= to and row[3] in topics)
            after, size = page[-1][0], min(2 * size, _LARGEST_PAGE)


def _named(shown: str, to: str) -> str:
    """Return the key of a session that is shown without its agent to one of the same agent."""
    family, agent = to.split(":")[:2]
    return shown if shown.startswith(f"{family}:") else f"{family}:{agent}:{shown}"


def _origin(found: Sequence[Hop], match: Match, words: str, cut: int | None) -> Origin:
    if not found:
        return Origin(first=None, cut=cut)
    return Origin(first=found[0], hops=tuple(found[1:]), match=match, words=words, cut=cut)
