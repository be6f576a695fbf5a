"""The log as actors have it in a replay: it takes what was recorded, and nothing else."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import msgspec

from intersession_actors.replaying.difference import (
    Difference,
    Field,
    Times,
    changed,
    extra,
    fields_that_differ,
    have_later_rules,
    is_of_times,
    misplaced,
)
from intersession_actors.replaying.recording import Recording, clock_of, derived_id
from intersession_events import facts
from intersession_events.log import (
    Committed,
    Draft,
    Folded,
    Folding,
    Kinds,
    OnCommitted,
    OnLoaded,
    OnOutcome,
    Recorded,
    StreamAppend,
)

S = TypeVar("S")


_GIVEN = {"contextHash", "used", "fit"}
"""What a start says of the text that its agent is given."""


class Durable:
    """An append that is durable at once."""

    has_failed = False

    def hurry(self) -> None:
        """Do nothing: it waits for nothing."""


class SealedStates:
    """Folds streams as far as the replay has come. It keeps no snapshots."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def load(self, stream: str, folding: Folding[S], told: Callable[[Folded[S] | Exception], None]) -> None:
        """Fold a stream, and tell its state."""
        told(self.fold(stream, folding))

    def fold(self, stream: str, folding: Folding[S], *, to: int | None = None) -> Folded[S]:
        """Fold a stream up to a version."""
        begun = self._recording.begun.get(stream)
        if begun is None:
            past = self._recording.happened(stream, to=to)
            return Folded(folding.apply(folding.begin(), past), past[-1] if past else None, 0)
        if to is not None and to < begun.version:
            raise LookupError(
                f"{stream!r} is given from version {begun.version} on, and version {to} is asked for"
            )
        state, past = (
            folding.decode(begun.data, begun.version),
            self._recording.happened(stream, after=begun.version, to=to),
        )
        last = past[-1] if past else self._recording.at(stream, begun.version)
        return Folded(folding.apply(state, past), last, begun.version)

    def walk(self, stream: str, folding: Folding[S], *, since: int = 0) -> Iterator[Folded[S]]:
        """Yield the state of a stream."""
        del since
        yield self.fold(stream, folding)

    def versions(self, stream: str, topic: str) -> Sequence[int]:
        """Return none: there are no snapshots."""
        del stream, topic
        return ()

    def keep(self, stream: str, folding: Folding[S], folded: Folded[S]) -> bool:
        """Keep nothing."""
        del stream, folding, folded
        return True


class SealedLog:
    """Compares each append with what was recorded next in its streams.

    `command` says what led to one in a stream, `differs` hears of the first difference.
    """

    path = place = ":memory:"
    epoch = 0

    def __init__(
        self,
        recording: Recording,
        *,
        command: Callable[[str], str | None],
        differs: Callable[[Difference], None],
    ) -> None:
        self._recording = recording
        self._command = command
        self._differs = differs
        self._listeners: list[OnCommitted] = []
        self.states = SealedStates(recording)
        self.decided = 0
        """How many events were decided anew, and were the same."""
        self.erased = 0
        """How many of those have no text any more, or are of a run that was given such a text: all else of them was compared."""
        self.happened = 0
        """How many events have happened in the replay: those, and the ones that were given."""
        self.times = Times()
        self._also: dict[str, str] = {}
        """What was recorded under another id than it has by later rules."""
        self._older: dict[int, bool] = {}
        self.later: dict[str, None] = {}
        """The later rules by which events differ, in words."""

    @property
    def log_id(self) -> str:
        """The identity of the log that is replayed: ids are derived from it."""
        return self._recording.log_id

    @property
    def forked(self) -> None:
        """None: what is decided again is what was recorded, which sends nothing in any case."""
        return

    def append(
        self,
        batch: Sequence[StreamAppend],
        on_outcome: OnOutcome,
        *,
        patient: bool = False,
        behind: object = None,
    ) -> Durable:
        """Take an append that is what was recorded; another one gets no answer, and the replay ends."""
        del patient, behind
        mine = [part for part in batch if self._recording.has(part.stream)]
        # What a flow decided comes first: that its step differs follows from it.
        mine.sort(key=lambda part: part.stream.startswith("session:"))
        taken: list[Recorded] = []
        for part in mine:
            for offset, draft in enumerate(part.drafts):
                recorded = self._same(part, offset, draft)
                if recorded is None:
                    return Durable()
                taken.append(recorded)
        self.decided += len(taken)
        taken.sort(key=lambda item: item.position)
        self.commit(taken)
        on_outcome(Committed(recorded=tuple(taken)))
        return Durable()

    def commit(self, taken: Sequence[Recorded]) -> None:
        """Let events have happened."""
        self.happened += len(taken)
        for recorded in taken:
            self._recording.came_to(recorded)
        for listener in self._listeners:
            listener(taken)

    def stream(
        self,
        stream: str,
        *,
        after: int = 0,
        to: int | None = None,
        backwards: bool = False,
        limit: int | None = None,
    ) -> Sequence[Recorded]:
        """Read the events of a stream that have happened."""
        past = self._recording.happened(stream, after=after, to=to)
        found = past[::-1] if backwards else past
        return found if limit is None else found[:limit]

    def load(self, stream: str, on_loaded: OnLoaded, *, after: int = 0) -> None:
        """Read a stream, and tell it."""
        on_loaded(self.stream(stream, after=after))

    def on_committed(self, listener: OnCommitted, of: Kinds = None) -> Callable[[], None]:
        """Call a listener with what happens, whatever it asks for."""
        del of
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def check(self) -> None:
        """Find it open: it always is."""

    def _is_older(self, epoch: int) -> bool:
        """Whether a process may have had none of the later rules: where one of its events has what they record, each has."""
        if epoch not in self._older:
            of_epoch = (item for item in self._recording.order_to_come() if epoch and item.epoch == epoch)
            self._older[epoch] = not have_later_rules(of_epoch)
        return self._older[epoch]

    def _same(self, part: StreamAppend, offset: int, draft: Draft) -> Recorded | None:
        recorded = self._recording.at(part.stream, part.expected + 1 + offset)
        if recorded is None:
            if self._recording.is_over(part.stream):
                self._differs(
                    extra(part.stream, part.expected + 1 + offset, draft, self._command(part.stream))
                )
            return None
        if draft.causation in self._also:
            draft = msgspec.structs.replace(draft, causation=self._also[draft.causation])
        is_erased = self._recording.is_erased(recorded)
        if is_erased:
            self.erased += 1
            draft = msgspec.structs.replace(draft, event=facts.unsaid(draft.event))
        if (
            draft.event == recorded.event
            and not misplaced(recorded)
            and (draft.id, draft.causation, draft.correlation)
            == (
                recorded.id,
                recorded.causation,
                recorded.correlation,
            )
        ):
            self.times.same(recorded)
            return recorded
        is_exact = clock_of(recorded.event) is not None
        fields, later = fields_that_differ(
            recorded,
            draft,
            is_exact=is_exact,
            waited_ms=self._recording.waited_ms(recorded),
            behind_ms=lambda: self._recording.behind_ms(recorded),
            is_of_hold=lambda: self._recording.is_of_hold(recorded),
            is_older=lambda: self._is_older(recorded.epoch),
        )
        fields += misplaced(recorded)
        if not is_erased and not self._recording.fits(recorded):
            derived = derived_id(self.log_id, recorded)
            fields.append(Field(path="id", recorded=recorded.id, now=derived))
        if fields and {field["path"] for field in fields} <= _GIVEN and self._recording.has_erased():
            self.erased += 1  # its agent was given what is erased now
        elif fields and not is_exact and is_of_times(fields) and self._recording.stands(recorded):
            self.times.doubt(changed(recorded, draft, fields, self._command(part.stream)))
        elif fields:
            self._differs(changed(recorded, draft, fields, self._command(part.stream)))
            return None
        self._also[draft.id] = recorded.id
        self.later.update(dict.fromkeys(later))
        return recorded
