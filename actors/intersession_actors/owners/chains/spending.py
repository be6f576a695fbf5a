"""What people, chats, agents and credentials have used within the last day, where there are budgets (LIMIT). Doors ask it.

All that comes of a person's message counts as the person's: each run counts for whoever began its causal chain, and for the agent of
its session. It is counted from events: from the log when it is first asked, then from the commits. So a restart changes no
verdict. The log tells it of a commit before it tells those who wait for it.
"""

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple, Protocol

from intersession_actors.rules.config.budgets import DAY_MS, Budget, Limit, Per
from intersession_actors.rules.config.messages import INBOUND
from intersession_actors.rules.policy.budgets import Counted
from intersession_events import facts
from intersession_events.basics.ids import SESSIONS
from intersession_events.basics.keys.key import SessionKey
from intersession_events.basics.plain_json import JsonObject
from intersession_events.log.log import Follows
from intersession_events.log.recorded import Recorded

Named = tuple[Per, str]
"""Whose something is: a person, a chat, an agent or a credential, by its name."""

_MINUTE_MS: Final = 60_000
_BACK_MS: Final = 2 * DAY_MS
"""How far back the log is read, and chains are known: a chain that began yesterday may still go on."""

_COUNTED: Final = facts.RunQueued | facts.RunEnd
_TOPICS: Final = facts.topics_of(facts.RunQueued, facts.RunCompleted, facts.RunFailed, facts.RunAborted)
_CREDENTIAL: Final = "credential:"

PersonOf = Callable[[str, str], str]
"""Returns the name of a person from a channel and a sender there."""


class SpendingLog(Follows, Protocol):
    """The log as the ledger reads it."""

    def all(self, *, after: int = 0, topics: Collection[str] = ()) -> Iterator[Recorded]:
        """Read events behind a position, of some stored names."""
        ...


class Spent(NamedTuple):
    """What was used: runs, tokens, and money in micro-units."""

    runs: int = 0
    tokens: int = 0
    cost_micros: int = 0

    def of(self, limit: Limit) -> int:
        """Return the part that a limit is about."""
        match limit.what:
            case "runs":
                return self.runs
            case "tokens":
                return self.tokens
            case "costMicros":
                return self.cost_micros


class _Account:
    """The use of one name, by minute."""

    __slots__ = ("minutes",)

    def __init__(self) -> None:
        self.minutes: deque[tuple[int, Spent]] = deque()

    def add(self, time_ms: int, more: Spent) -> None:
        minute = time_ms // _MINUTE_MS
        if self.minutes and self.minutes[-1][0] >= minute:  # the clock may have been set back
            minute, before = self.minutes.pop()
            more = Spent(*(one + other for one, other in zip(before, more, strict=True)))
        self.minutes.append((minute, more))
        while self.minutes[0][0] < minute - DAY_MS // _MINUTE_MS:
            self.minutes.popleft()

    def since(self, time_ms: int) -> Spent:
        first, runs, tokens, cost = time_ms // _MINUTE_MS, 0, 0, 0
        for minute, spent in reversed(self.minutes):
            if minute <= first:
                break
            runs, tokens, cost = runs + spent.runs, tokens + spent.tokens, cost + spent.cost_micros
        return Spent(runs, tokens, cost)


class SpendingLedger:
    """The use of all names. Its methods may be called from any thread that may wait."""

    def __init__(self, log: SpendingLog, position_at: Callable[[int], int], person_of: PersonOf) -> None:
        self._log = log
        self._position_at = position_at
        self._person_of = person_of
        self._beginning = threading.Lock()
        self._lock = threading.Lock()
        self._accounts: dict[Named, _Account] = {}
        self._roots: OrderedDict[str, tuple[int, tuple[Named, ...]]] = OrderedDict()
        """When each chain began, and whose it is."""
        self._open: dict[str, tuple[Named, ...]] = {}
        """Whose the runs are that have not ended."""
        self._promised: dict[str, tuple[Named, ...]] = {}
        self._heard: list[Recorded] | None = []
        """What was recorded while the log is read; None afterwards."""
        self._read_to = 0
        """The last position that was read: what stands there may be heard of later, and is counted."""
        self._stop: Callable[[], None] | None = None

    @contextmanager
    def asking(
        self, budgets: Mapping[str, Budget], names: tuple[Named, ...], run_id: str, now_ms: int
    ) -> Generator[tuple[Counted, ...]]:
        """Count what holds for a run that is asked for in a block, and count the run for others meanwhile.

        Raises:
            StoreUnavailable: the log can't be read.
        """
        self._begin(now_ms)
        with self._lock:
            counted = tuple(self._counted(budgets, names, now_ms, besides=run_id))
            self._promised[run_id] = names
        try:
            yield counted
        finally:
            with self._lock:
                self._promised.pop(run_id, None)

    def left(self, budgets: Mapping[str, Budget], now_ms: int) -> list[tuple[Named, Counted]]:
        """Return what is used of each limit, for each name that has used anything of it."""
        self._begin(now_ms)
        with self._lock:
            return [
                (name, one)
                for name in sorted(self._accounts)
                for one in self._counted(budgets, (name,), now_ms)
                if one.used
            ]

    def close(self) -> None:
        """Stop listening."""
        if self._stop is not None:
            self._stop()

    def _counted(
        self, budgets: Mapping[str, Budget], names: tuple[Named, ...], now_ms: int, besides: str = ""
    ) -> Iterable[Counted]:
        for named, budget in budgets.items():
            for per, name in names:
                if per != budget.per or not budget.holds_for(name):
                    continue
                account = self._accounts.get((per, name))
                for limit in budget.limits(named):
                    spent = Spent() if account is None else account.since(now_ms - limit.window_ms)
                    used = spent.of(limit)
                    if limit.what == "runs":
                        used += sum((per, name) in of for run, of in self._promised.items() if run != besides)
                    yield Counted(setting=limit.setting, of=name, allowed=limit.most, used=used)

    def _begin(self, now_ms: int) -> None:
        """Read the log, the first time; what is recorded meanwhile is counted behind it, once."""
        with self._beginning:
            if self._heard is None:
                return
            if self._stop is None:
                self._stop = self._log.on_committed(self._committed, _COUNTED, first=True)
            with self._lock:  # a reading that failed has left its part
                self._accounts.clear()
                self._roots.clear()
                self._open.clear()
            for recorded in self._log.all(after=self._position_at(now_ms - _BACK_MS), topics=_TOPICS):
                with self._lock:
                    self._count(recorded)
                    self._read_to = recorded.position
            with self._lock:
                heard, self._heard = self._heard, None
                self._hear(heard)

    def _committed(self, batch: Sequence[Recorded]) -> None:
        with self._lock:
            if self._heard is None:
                self._hear(batch)
            else:
                self._heard.extend(batch)

    def _hear(self, batch: Iterable[Recorded]) -> None:
        for recorded in batch:
            if recorded.position > self._read_to:
                self._count(recorded)

    def _count(self, recorded: Recorded) -> None:
        match recorded.event:
            case facts.RunQueued() as event:
                self._queued(recorded, event)
            case facts.RunCompleted(run_id=run_id, usage=usage):
                of = self._open.pop(run_id, ())
                if usage is not None:
                    # What an agent says that it used can't give anything back.
                    spent = Spent(0, max(usage.tokens, 0), max(usage.cost_micros or 0, 0))
                    self._add(of, recorded.time, spent)
            case facts.RunFailed(run_id=run_id, code="limit", attempt=0):
                self._add(self._open.pop(run_id, ()), recorded.time, Spent(runs=-1))  # it did not begin
            case facts.RunAborted(run_id=run_id, into=str()):
                self._add(self._open.pop(run_id, ()), recorded.time, Spent(runs=-1))  # another run answers it
            case facts.RunFailed(run_id=run_id) | facts.RunAborted(run_id=run_id):
                self._open.pop(run_id, None)
            case _:
                pass

    def _queued(self, recorded: Recorded, event: facts.RunQueued) -> None:
        root = recorded.correlation or event.run_id
        if root == event.run_id:
            self._roots[root] = (recorded.time, self._begun_by(event))
            while next(iter(self._roots.values()))[0] < recorded.time - _BACK_MS:
                self._roots.popitem(last=False)
        began = self._roots.get(root)
        of = (*(() if began is None else began[1]), agent_named(recorded.stream.removeprefix(SESSIONS)))
        self._open[event.run_id] = of
        self._promised.pop(event.run_id, None)
        self._add(of, recorded.time, Spent(runs=1))

    def _begun_by(self, event: facts.RunQueued) -> tuple[Named, ...]:
        caller, message = event.caller or "", event.message
        if caller.startswith(_CREDENTIAL):
            return (("credential", caller.removeprefix(_CREDENTIAL)),)
        said_by = None if message is None else message.provenance
        if caller != INBOUND or said_by is None or said_by.sender is None or event.route is None:
            return ()
        return person_and_chat(self._person_of, event.route, said_by.sender)

    def _add(self, of: Iterable[Named], time_ms: int, spent: Spent) -> None:
        for named in of:
            account = self._accounts.get(named)
            if account is None:
                account = self._accounts[named] = _Account()
            account.add(time_ms, spent)


def left_of(named: Named, one: Counted) -> JsonObject:
    """Return whose a limit is, and what is used and left of it."""
    left = max(one.allowed - one.used, 0)
    return {
        "per": named[0],
        "of": one.of,
        "setting": one.setting,
        "used": one.used,
        "allowed": one.allowed,
        "left": left,
    }


def person_and_chat(person_of: PersonOf, route: facts.Route, sender: str) -> tuple[Named, ...]:
    """Return the names of a person, and of the chat in which the person speaks."""
    return ("person", person_of(route.channel, sender)), ("chat", f"{route.channel}:{route.to}")


def agent_named(key: str) -> Named:
    """Return the name of a session's agent."""
    return "agent", SessionKey.recorded(key).agent_id
