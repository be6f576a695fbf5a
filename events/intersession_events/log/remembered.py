"""A log for as long as one question lasts: what was read of it once is not asked of the store again.

Who answers a question asks the same of the log in many places, for none of them knows of the others. Where a way to the store
costs, each thing is read once; so an answer is also of one state of it, whatever is appended meanwhile.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, TypeVar, cast

from intersession_events.log.log import Gathers, Log, Moment
from intersession_events.log.other_words import RewordedLog
from intersession_events.log.recorded import Gathered, Reads, Recorded, StreamEnd, StreamPart

T = TypeVar("T")

_FEW: Final = 8
"""So many positions in a row are asked for one by one, together with those of others."""
_END: Final = 2**62
"""Behind the last version that a stream can have."""
MOST: Final = 10_000
"""So many rows and events are remembered; then all of them are forgotten, and it begins anew."""


def remembering(log: Log) -> Log:
    """Return the log for one question, where a way to its store costs; else itself. Keep it no longer than the question lasts."""
    if isinstance(log, RememberedLog) or not log.takes_many:
        return log
    return cast("Log", RememberedLog(log))


def as_it_is(log: Log) -> Log:
    """Return the log itself, of one that is remembered or told in other words: for what asks more of it than reading."""
    return as_it_is(log.log) if isinstance(log, RememberedLog | RewordedLog) else log


class RememberedLog(Gathers):
    """The reading half of a log, out of what was read of it before; what is not known is read then."""

    takes_many = True

    def __init__(self, log: Log, *, most: int = MOST) -> None:
        self.log = log
        self._most = most
        self._known: tuple[dict[Any, Any], ...] = ({}, {}, {}, {}, {})  # each of one kind
        """What was read of each kind that `Reads` has."""
        self._once: dict[tuple[object, ...], Any] = {}  # whatever the log returned
        self._held = 0

    def gather(self, wanted: Reads, /) -> Gathered:
        """Read several things at once, as far as they are not known."""
        if self._held > self._most:
            self._held = 0
            for known in self._known:
                known.clear()
        questions = [(statement, tuple(given)) for statement, given in wanted.questions]
        asked = Reads(questions, sorted(set(wanted.positions)), *wanted[2:])
        kinds = list(zip(asked, self._known, strict=True))
        missing = Reads(*(_missing(of, known) for of, known in kinds))
        if any(missing):
            self.read(missing)
        rows, events, *rest = ([known[one] for one in of] for of, known in kinds)
        return Gathered(rows, [recorded for recorded in events if recorded is not None], *rest)

    def read(self, missing: Reads) -> None:
        """Come to know what nobody has asked for yet."""
        rows, events, *rest = self.log.gather(missing)
        at = {recorded.position: recorded for recorded in events}
        found = (rows, [at.get(position) for position in missing.positions], *rest)
        for known, of, answers in zip(self._known, missing, found, strict=True):
            known.update(zip(of, answers, strict=True))
            self._held += sum(1 + len(one) if isinstance(one, list) else 1 for one in answers)

    def moment(self) -> AbstractContextManager[Moment]:
        """Lend a way to query that sees the log as it is now: what is remembered is of other moments."""
        return self.log.moment()

    def stream(
        self,
        stream: str,
        *,
        after: int = 0,
        to: int | None = None,
        backwards: bool = False,
        limit: int | None = None,
    ) -> Sequence[Recorded]:
        """Read the events of a stream with `after < version <= to`."""
        if limit is not None:
            return self.gather(Reads(ends=[StreamEnd(stream, after, to, backwards, limit)])).ends[0]
        if after == 0 and to is None:
            (found,) = self.whole([stream])
        else:
            (found,) = self.parts([StreamPart(stream, after, _END if to is None else to)])
        return found[::-1] if backwards else found

    def all(
        self,
        *,
        after: int = 0,
        to: int | None = None,
        limit: int | None = None,
        topics: Collection[str] = (),
    ) -> Iterator[Recorded]:
        """Read all events with `after < position <= to`, in order; only those of some stored names, if any are given."""
        if to is not None and to - after <= _FEW and limit is None and not topics:
            return self.at(range(after + 1, to + 1))
        if limit is not None and limit <= _FEW:
            asked = ("all", after, to, limit, *topics)
            few: list[Recorded] = self.once(
                asked, lambda: list(self.log.all(after=after, to=to, limit=limit, topics=topics))
            )
            return iter(few)
        return self.many(after=after, to=to, limit=limit, topics=topics)

    def many(
        self, *, after: int, to: int | None, limit: int | None, topics: Collection[str]
    ) -> Iterator[Recorded]:
        """Read events of which there may be too many to remember them."""
        return self.log.all(after=after, to=to, limit=limit, topics=topics)

    def head(self) -> int:
        """Return the position of the last committed event, as it was when somebody asked first."""
        found: int = self.once(("head",), self.log.head)
        return found

    def __getattr__(self, name: str) -> Any:  # as the log has it
        return getattr(self.log, name)

    def once(self, asked: tuple[object, ...], read: Callable[[], T]) -> T:
        """Return what nobody can ask together with others: it is read at once, and once for all."""
        if asked not in self._once:
            self._once[asked] = read()
        found: T = self._once[asked]
        return found


def _missing(of: Iterable[object], known: Mapping[Any, object]) -> list[Any]:  # all of one kind
    return list(dict.fromkeys(one for one in of if one not in known))
