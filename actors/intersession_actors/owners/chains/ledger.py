"""The ledger of causal chains: a run is reserved here before anything of it is recorded (LOOP-5).

A chain can branch: exchanges and spawns of it go on side by side, under several actors, and each alone stays below every limit.
So they all reserve in one place, under one lock. What is counted is in the log: runs that were queued and what those that have
ended used, fed by the commits and, for a chain that is not known here, read from the log. On top of that come runs that were
reserved and are not recorded yet. After a crash the log is all there is, and gives the same count.

The log tells the ledger of a commit before it tells those who wait for it, so that a decision knows of the run that led to it.

Actors ask the ledger, and never wait for the log: a chain that is not known here is `ChainUnread`, and is read by `read` on a thread
that may block, outside of the lock.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, TypeVar

from intersession_actors.owners.chains.cause import UnderWay
from intersession_actors.rules.policy.chain import Spent, Tripped, check_run
from intersession_events import facts
from intersession_events.basics.errors import Picklable
from intersession_events.log.log import Follows
from intersession_events.log.recorded import Recorded

T = TypeVar("T")

READ: Final = 256
"""How many chains stay known after they were read from the log, even if they are over: their owners ask for them next."""

_COUNTED: Final = (
    facts.RunQueued
    | facts.RunEnd
    | facts.ExchangeAccepted
    | facts.ExchangeClosed
    | facts.SpawnAccepted
    | facts.SpawnClosed
)


class RunUse(NamedTuple):
    """A run of a chain and its usage, which is known when it has ended."""

    run_id: str
    ended: bool
    tokens: int
    cost_micros: int


RunsOf = Callable[[str], Iterable[RunUse]]
"""Reads from the log which runs a chain has had, by its root."""


class ChainUnread(Picklable):
    """The chain is unknown here; have it read (`ChainLedger.read`), and ask again."""

    def __init__(self, root: str) -> None:
        super().__init__(f"the causal chain {root} is not read yet")
        self.root = root


class _Account:
    """The account of one chain. Each run is counted once, however often it is reported."""

    __slots__ = ("cost_micros", "open", "promised", "runs", "tokens")

    def __init__(self) -> None:
        self.runs: dict[str, bool] = {}
        """The runs that were queued, and whether what they used is counted."""
        self.promised: dict[str, str] = {}
        """The run that each flow has reserved last, by the flow; it may be queued by now."""
        self.open: set[str] = set()
        """Runs, exchanges and spawns that are not over: the chain can go on."""
        self.tokens = 0
        self.cost_micros = 0

    def spent(self, besides: str) -> Spent:
        runs = len(self.runs)
        for by, run_id in self.promised.items():
            if by != besides and run_id not in self.runs:
                runs += 1
        return Spent(runs=runs, tokens=self.tokens, cost_micros=self.cost_micros)

    def queued(self, run_id: str) -> None:
        if run_id not in self.runs:
            self.runs[run_id] = False
            self.open.add(run_id)
        self.promised.pop(run_id, None)

    def ended(self, run_id: str, tokens: int = 0, cost_micros: int = 0) -> None:
        self.open.discard(run_id)
        # An abort of all runs of a session stops runs of other chains in the same append: those are not this chain's.
        if self.runs.get(run_id, True) is False:
            self.runs[run_id] = True
            # What an agent says that it used can't make a chain younger.
            self.tokens += max(tokens, 0)
            self.cost_micros += max(cost_micros, 0)


class ChainLedger:
    """The accounts of open chains. Its methods may be called from any thread."""

    def __init__(self, log: Follows, runs_of: RunsOf) -> None:
        self._lock = threading.Lock()
        self._runs_of = runs_of
        self._accounts: dict[str, _Account] = {}
        self._chain_of: dict[str, str] = {}
        """The root of the chain that a run which has not ended is of: its end may be recorded with that of another chain's."""
        self._read: OrderedDict[str, None] = OrderedDict()
        """The chains that were read last."""
        self._heard: dict[object, list[Recorded]] = {}
        """What was recorded since each reading began."""
        self._on_over: Callable[[str], None] | None = None
        self._stop = log.on_committed(self._committed, _COUNTED, first=True)
        self.under_way = UnderWay()
        """Which agents are being called now."""

    def reserve(self, budget: facts.Budget, run_id: str, now_ms: int, *, by: str) -> Tripped | None:
        """Reserve a run of a chain, unless a guard trips. The caller queues it, or releases it.

        `by` is the stream of the flow that asks for the run; a run of no flow is reserved by itself. A flow asks for one run
        at a time: what it reserved before is given back.

        Raises:
            ChainUnread: the chain is not known here.
        """
        with self._lock:
            account = self._of(budget.root, begins=budget.root == run_id)
            account.promised.pop(by, None)
            tripped = None
            if run_id not in account.runs:
                tripped = check_run(budget, account.spent(by), now_ms)
                if tripped is None:
                    account.promised[by] = run_id
            self._forget(budget.root, account)
            return tripped

    def hold(self, root: str, run_id: str, *, by: str) -> None:
        """Reserve a run that was accepted before this process began, and is not queued yet.

        Raises:
            ChainUnread: the chain is not known here.
        """
        with self._lock:
            self._of(root).promised[by] = run_id

    def release(self, root: str, run_id: str, *, by: str) -> None:
        """Return the reservation of a run that will not be queued; may be called again."""
        with self._lock:
            account = self._accounts.get(root)
            if account is not None and account.promised.get(by) == run_id:
                del account.promised[by]
                if not account.open:
                    self._forget(root, account)

    def spent(self, root: str, *, besides: str = "") -> Spent:
        """Return a chain's usage, without (`besides`) this flow's own reservation that is about to be decided anew.

        Raises:
            ChainUnread: the chain is not known here.
        """
        with self._lock:
            account = self._of(root)
            spent = account.spent(besides)
            self._forget(root, account)
            return spent

    def read(self, root: str) -> None:
        """Read a chain from the log. Blocks, without keeping others from the ledger.

        Raises:
            StoreUnavailable: it can't be read.
        """
        reading, heard = object(), list[Recorded]()
        with self._lock:
            if root in self._accounts:
                return
            self._heard[reading] = heard
        uses: tuple[RunUse, ...] | None = None
        try:
            uses = tuple(self._runs_of(root))
        finally:
            with self._lock:  # in one step: what is recorded before the account is there has to be heard of
                del self._heard[reading]
                if uses is not None and root not in self._accounts:
                    self._open(root, uses, heard)

    def after_reading(self, ask: Callable[[], T]) -> T:
        """Ask the ledger, reading an unknown chain first; for doors, which may wait.

        Raises:
            StoreUnavailable: a chain can't be read.
        """
        while True:
            try:
                return ask()
            except ChainUnread as unread:
                self.read(unread.root)

    def on_over(self, listener: Callable[[str], None]) -> None:
        """Call a listener with the root of each chain that nothing can continue: at once, in whatever thread."""
        self._on_over = listener

    def close(self) -> None:
        """Stop listening."""
        self._stop()

    # --- accounts

    def _of(self, root: str, *, begins: bool = False) -> _Account:
        account = self._accounts.get(root)
        if account is None:
            if not begins:
                raise ChainUnread(root)
            account = self._accounts[root] = _Account()
        return account

    def _open(self, root: str, uses: Iterable[RunUse], heard: Iterable[Recorded]) -> None:
        account = self._accounts[root] = _Account()
        for use in uses:
            account.queued(use.run_id)
            if use.ended:
                account.ended(use.run_id, use.tokens, use.cost_micros)
        self._chain_of |= dict.fromkeys(account.open, root)
        self._read[root] = None
        self._count(heard, only=root)  # perhaps not read yet; what was is counted once
        while len(self._read) > READ:
            oldest, _ = self._read.popitem(last=False)
            self._forget(oldest, self._accounts[oldest])

    def _forget(self, root: str, account: _Account) -> None:
        """Close the account of a chain that nothing can continue; the log has its data."""
        if not account.open and not account.promised and root not in self._read:
            self._accounts.pop(root, None)
            if self._on_over is not None:
                self._on_over(root)

    def _committed(self, batch: Sequence[Recorded]) -> None:
        with self._lock:
            for heard in self._heard.values():
                heard.extend(batch)
            self._count(batch)

    def _count(self, batch: Iterable[Recorded], *, only: str | None = None) -> None:
        """Count recorded events, of one chain or of all known ones; a chain begins with its first run."""
        accounts = self._accounts
        for recorded in batch:
            for event in facts.parts_of(recorded.event):
                root = recorded.correlation
                if isinstance(event, facts.RunEnd):
                    root = self._chain_of.pop(event.run_id, root)
                if root is None or (only is not None and root != only):
                    continue
                account = accounts.get(root)
                if account is None and isinstance(event, facts.RunQueued) and event.run_id == root:
                    account = accounts[root] = _Account()
                if account is not None:
                    self._enter(event, recorded.stream, root, account)

    def _enter(self, event: facts.Event, stream: str, root: str, account: _Account) -> None:
        match event:
            case facts.RunQueued(run_id=run_id):
                account.queued(run_id)
                if run_id in account.open:
                    self._chain_of[run_id] = root
            case facts.RunCompleted(run_id=run_id, usage=usage) if usage is not None:
                account.ended(run_id, usage.tokens, usage.cost_micros or 0)
            case _ if isinstance(event, facts.RunEnd):
                account.ended(event.run_id)
            case facts.FlowAccepted():
                account.open.add(stream)
            case facts.FlowClosed():
                account.open.discard(stream)
                account.promised.pop(stream, None)
            case _:
                return
        if not account.open:
            self._forget(root, account)
