"""What managers of flows look at beside their own streams: the time of a chain, what it has used, who holds, who is here.

None of it is in the stream that is decided upon, and some of it is nowhere in the log: which agents a host had, what others had
reserved, what a clock said. Where the recorded decision shows it, it was so. What the log does have is taken as it stood at some
moment between the last word that led to a decision and its record: nobody knows when it was looked at.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from intersession_actors.chains import ChainLedger, RunsOf, RunUse
from intersession_actors.exchange import stops
from intersession_actors.holding import HeldSessions, order_in
from intersession_actors.policy import (
    MONEY,
    RUNS,
    TOKENS,
    WALL,
    HoldOrder,
    Spent,
    Tripped,
    check_run,
    used_when_stopped,
)
from intersession_actors.replaying.outside import RecordedClock, stream_at_hand
from intersession_actors.replaying.recording import Recording
from intersession_actors.replaying.refusals import REFUSED, Refusals
from intersession_actors.runtime import Stopwatch
from intersession_actors.streams import BoundThreads, Generations, World
from intersession_events import facts
from intersession_events.facts import Budget
from intersession_events.ids import session_stream
from intersession_events.log import Log, Recorded

TOO_OLD: Final = "(deliveries.maxAgeSeconds)"
"""How the error of a delivery ends that was given up because of its age."""

_MOST_LATE: Final = 16
"""Of more runs that ended at once it is not worked out what some of them used together: each more doubles the work."""


class RecordedStopwatch(Stopwatch):
    """Says how long ago something began. The log has the times of a clock that can be set, and what was decided by another one.

    Where the recorded decision shows that something had lasted long enough, or had not, it had, or had not: at the very limit,
    so that a rule with another limit is seen. `oldest_ms` says how old a delivery may be.
    """

    def __init__(self, clock: RecordedClock, recording: Recording, *, oldest_ms: Callable[[], int]) -> None:
        super().__init__(clock)
        self._recording = recording
        self._oldest_ms = oldest_ms

    def elapsed_ms(self, *key: str, since_ms: int) -> int:
        """Return how long ago something began, as far as what was decided shows it."""
        elapsed = super().elapsed_ms(*key, since_ms=since_ms)
        coming = self._recording.ahead(stream_at_hand())
        match key[0], coming.event if coming is not None else None:
            case "attempt", facts.RunInterrupted() | facts.RunFailed(code="interrupted"):
                return 0  # its time was not over, else that would be why it ended
            case "held", facts.ExchangeReleased(held_ms=held_ms):
                return held_ms
            case "decided", facts.DeliveryFailed(error=error) if error.endswith(TOO_OLD):
                return max(elapsed, self._oldest_ms())
            case "decided", facts.DeliveryStarted():
                return min(elapsed, self._oldest_ms() - 1)
            case _:
                return elapsed


@dataclass(kw_only=True, eq=False)
class RecordedWorld(World):
    """The world as it was recorded."""

    recording: Recording
    refusals: Refusals

    def now_of(self, budget: Budget) -> int:
        """Return the time as a causal chain counted it: what was decided shows whether it had run out (LOOP-5)."""
        now = super().now_of(budget)
        allowed = budget.limits.wall_seconds
        if not allowed or not budget.started_ms:
            return now
        stream = stream_at_hand()
        ahead = self.recording.append_ahead(stream)
        began = budget.started_ms + self._held_ms(stream, budget, ahead)
        used = _used(ahead, WALL)
        if self.refusals.comes(stream, ahead):
            return min(now, began + allowed * 1000 - 1)  # else nobody would have been asked
        if used is not None:
            return began + max(used, allowed) * 1000
        if ahead and _says_nothing(ahead[-1].event):
            # With a clock that was set back, the chain may be older than the log can tell, and a guard may be why.
            return began + allowed * 1000 if self.recording.stands(ahead[-1]) else now
        if not ahead:
            return now
        return min(now, began + allowed * 1000 - 1)

    def _held_ms(self, stream: str, budget: Budget, ahead: Sequence[Recorded]) -> int:
        """Return for how long a chain had been held once what comes next is decided: before and after a release it is one moment."""
        past = self.recording.past(stream)
        accepted = past[0].event if past else None
        if not isinstance(accepted, facts.ExchangeAccepted) or accepted.budget is None:
            return budget.held_ms
        released = (item.event for item in (*past, *ahead))
        return accepted.budget.held_ms + sum(
            event.held_ms for event in released if isinstance(event, facts.ExchangeReleased)
        )


class RecordedLedger(ChainLedger):
    """What a chain has used. Runs of other branches that were only reserved are not in the log before they are queued."""

    def __init__(self, log: Log, runs_of: RunsOf, recording: Recording, refusals: Refusals) -> None:
        super().__init__(log, runs_of)
        self._recording = recording
        self._refusals = refusals

    def spent(self, root: str, *, besides: str = "") -> Spent:
        """Return what a chain has used, as far as what was decided on it shows it."""
        known = super().spent(root, besides=besides)
        stream = stream_at_hand()
        ahead = self._recording.append_ahead(stream)
        if not ahead:
            return known
        since = self._recording.looked_since(stream)
        late_cost = self._recording.used_in(root, since=since)
        known = self._costs(known, ahead, late_cost, was_asked=self._refusals.comes(stream, ahead))
        if stream.startswith("session:"):
            return known
        late, open_ = self._recording.queued_in(root, since=since)
        accepted = ahead[0].event
        used = accepted.chain_runs if isinstance(accepted, facts.ExchangeAccepted) else _used(ahead, RUNS)
        if used is None and _says_nothing(ahead[-1].event):
            return msgspec.structs.replace(known, runs=known.runs + open_)
        if used is None or self._refusals.comes(stream, ahead):
            return msgspec.structs.replace(known, runs=max(known.runs - late, 0))
        used = used or self._allowed(stream, ahead) or known.runs
        return msgspec.structs.replace(known, runs=min(max(used, known.runs - late), known.runs + open_))

    @staticmethod
    def _costs(
        known: Spent, ahead: Sequence[Recorded], late: Sequence[tuple[int, int]], *, was_asked: bool
    ) -> Spent:
        """Return what a chain's runs had cost, of which some have ended so `late` that perhaps nobody knew it yet.

        Where a number was recorded, that is what was looked at, if the log can have shown just that then. `was_asked` is whether
        a session refuses next what it is asked for now: no guard had tripped then, and what follows was decided later.
        """
        accepted = ahead[0].event
        if isinstance(accepted, facts.ExchangeAccepted):
            tokens, money = accepted.chain_tokens, accepted.chain_cost_micros
        elif was_asked:
            tokens, money = 0, 0
        else:
            tokens, money = (
                _used_or_all(ahead, TOKENS, known.tokens),
                _used_or_all(ahead, MONEY, known.cost_micros),
            )
        return msgspec.structs.replace(
            known,
            tokens=_used_then(tokens, known.tokens, [one[0] for one in late]),
            cost_micros=_used_then(money, known.cost_micros, [one[1] for one in late]),
        )

    def _allowed(self, stream: str, ahead: Sequence[Recorded]) -> int:
        """Return how many runs the chain of a flow may have, where it is known that it had as many; else 0."""
        past = self._recording.past(stream)
        accepted = past[0].event if past else None
        if not isinstance(accepted, facts.ExchangeAccepted | facts.SpawnAccepted) or accepted.budget is None:
            return 0
        return accepted.budget.limits.runs if _used(ahead, RUNS) is not None else 0

    def restart(self) -> None:
        """Forget what was only reserved, as the end of a process does."""
        self._accounts.clear()

    def reserve(self, budget: Budget, run_id: str, now_ms: int, *, by: str) -> Tripped | None:
        """Reserve a run, unless a guard trips by what was used then."""
        super().reserve(budget, run_id, now_ms, by=by)
        if any(use.run_id == run_id for use in self._runs_of(budget.root)):
            return None
        return check_run(budget, self.spent(budget.root, besides=by), now_ms)


class RunsOfChains:
    """Which runs the causal chains have had, as far as the replay has come."""

    def __init__(self, recording: Recording) -> None:
        self._runs: dict[str, dict[str, RunUse]] = {}
        self.take(recording.order_so_far())

    def take(self, recorded: Sequence[Recorded]) -> None:
        """Take note of what happened."""
        for item in recorded:
            runs = self._runs.setdefault(item.correlation or "", {})
            match item.event:
                case facts.RunQueued(run_id=run_id):
                    runs[run_id] = RunUse(run_id, False, 0, 0)
                case facts.RunCompleted() as event if event.run_id in runs:
                    usage = event.usage
                    used = (0, 0) if usage is None else (usage.tokens, usage.cost_micros or 0)
                    runs[event.run_id] = RunUse(event.run_id, True, *used)
                case (facts.RunFailed() | facts.RunAborted()) as event if event.run_id in runs:
                    runs[event.run_id] = RunUse(event.run_id, True, 0, 0)
                case _:
                    pass

    def of(self, root: str) -> list[RunUse]:
        """Return the runs of a chain."""
        return list(self._runs.get(root, {}).values())


class RecordedGenerations(Generations):
    """Which conversations were over, as far as the coordinator had heard: what was decided shows it."""

    def __init__(self, recording: Recording) -> None:
        super().__init__()
        self._recording = recording

    def is_over(self, key: str, session_id: str) -> bool:
        """Whether a loop ended because of it, or the first reply was not held for it that ended the loop for another reason."""
        stream = stream_at_hand()
        coming = [item.event for item in self._recording.append_ahead(stream)]
        ends = {event.reason for event in coming if isinstance(event, facts.LoopEnded)}
        accepted = next((item.event for item in self._recording.past(stream)), None)
        if not isinstance(accepted, facts.ExchangeAccepted):
            return False
        if key == accepted.target:
            return "target_gone" in ends
        if "requester_gone" in ends:
            return True
        return bool(ends) and self._was_over(key, session_id)

    def _was_over(self, key: str, session_id: str) -> bool:
        over = False
        for recorded in self._recording.past(session_stream(key)):
            match recorded.event:
                case facts.SessionOpened() | facts.SessionReset() as event:
                    over = event.session_id != session_id
                case facts.SessionArchived():
                    over = True
                case _:
                    pass
        return over


class OwnThreads(BoundThreads):
    """Whose threads were: each its session's own. Where one was not, what was decided says that there is none."""

    def claim(self, route: facts.Route, key: str) -> bool:
        """Say yes."""
        del route, key
        return True


class RecordedHolds(HeldSessions):
    """Which sessions are held: as it stood at some moment since the last word that led to what is decided now."""

    def __init__(self, recording: Recording, refusals: Refusals) -> None:
        super().__init__()
        self._recording = recording
        self._history: dict[str, list[tuple[int, HoldOrder | None]]] = {}
        self._refusals = refusals

    def take(self, batch: Sequence[Recorded]) -> None:
        """Take in what was recorded."""
        super().take(batch)
        for recorded in batch:
            if (found := order_in(recorded)) is not None:
                key = recorded.stream.partition(":")[2]
                self._history.setdefault(key, []).append((recorded.position, *found))

    def orders(self, *keys: str | None) -> tuple[HoldOrder, ...]:
        """Return what was wanted of the exchanges of some sessions."""
        stream = stream_at_hand()
        decided = [item.event for item in self._recording.append_ahead(stream)]
        named = {event.order for event in decided if isinstance(event, facts.ExchangeHeld)}
        past = [item.event for item in self._recording.past(stream)]
        served = {event.order for event in past if isinstance(event, facts.ExchangeHeld)}
        step = _step_decided(decided)
        since = self._recording.looked_since(stream)
        is_later = self._is_later(stream, decided)
        was_asked = not self._refusals.came(stream) and any(
            isinstance(event, facts.LoopEnded) and event.reason in REFUSED for event in decided
        )
        found: list[HoldOrder | None] = []
        for stood in (self._stood(key, since) for key in keys if key is not None):
            stopped = next((order for order in stood if order is not None and order.order in named), None)
            let_go = [order for order in stood if order is None or not stops(order, step, served)]
            if is_later and let_go:
                stopped = None
            if was_asked and not let_go:
                continue  # it was not known yet, as after a commit whose answer was lost
            if stopped is not None or None in let_go:
                found.append(stopped)
            else:  # one that let the step go on is given to the rule, which has to say so again
                found.append((let_go or stood)[-1])
        return tuple(order for order in found if order is not None)

    def _is_later(self, stream: str, decided: Sequence[facts.Event]) -> bool:
        """Whether what holds a reply came only after its step had been asked for, and refused: it is asked for now.

        Without a refusal before, the step would be named in the hold. It is refused again once the reply is released.
        """
        held = decided[-1] if decided else None
        if not isinstance(held, facts.ExchangeHeld):
            return False
        if held.next_end is not None:
            return self._refusals.come_before(stream, held)
        if not _says_nothing(held):
            return False
        first, then = (self._recording.ahead(stream, len(decided) + further) for further in range(2))
        refused = (
            first is not None
            and isinstance(first.event, facts.ExchangeReleased)
            and then is not None
            and isinstance(then.event, facts.LoopEnded)
            and then.event.reason in REFUSED
        )
        return refused and not self._refusals.came(stream)

    def _stood(self, key: str, since: int) -> list[HoldOrder | None]:
        """Return what a session wanted at a position and since then, the present last."""
        history = self._history.get(key, [])
        before = [order for position, order in history if position <= since][-1:] or [None]
        return [*before, *(order for position, order in history if position > since)]


def _step_decided(decided: Sequence[facts.Event]) -> facts.HeldText:
    """Return before which step an exchange could have been held by a decision: a reply is recorded with the decision on it."""
    first = decided[0] if decided else None
    return "announce" if isinstance(first, facts.AnnounceDecided | facts.ExchangeHeld) else "reply"


def _says_nothing(event: object) -> bool:
    """Whether an event does not tell why nothing would follow it, as in a log written before: a guard tripped, perhaps."""
    return isinstance(event, facts.ExchangeHeld) and (event.next_turn, event.next_end) == (None, None)


def _used_or_all(ahead: Sequence[Recorded], setting: str, known: int) -> int:
    """Return how much a chain had used when a guard tripped: all that is known where it only says that it did, 0 where it did not."""
    used = _used(ahead, setting)
    return 0 if used is None else used or known


def _used_then(said: int, known: int, late: Sequence[int]) -> int:
    """Return the number that was recorded where the chain can have used that: all but what some of the `late` runs used.

    Less than without any of them is taken for that, more than is known for all, and what no runs add up to as well.
    """
    least = max(known - sum(late), 0)
    used = min(max(said, least), known)
    if used in {least, known} or len(late) > _MOST_LATE:
        return used
    sums = {0}
    for one in late:
        sums |= {one + other for other in sums}
    return used if known - used in sums else known


def _used(ahead: Sequence[Recorded], setting: str) -> int | None:
    return used_when_stopped((item.event for item in ahead), setting)
