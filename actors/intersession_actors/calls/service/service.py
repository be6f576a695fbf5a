"""The parts that every door works with: the log, its views, the actors, the ends of runs. Wired by the system."""

from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Final

from intersession_actors.calls.service.pending import LogWriter
from intersession_actors.calls.service.reader import Reader
from intersession_actors.calls.service.receipts import Receipts
from intersession_actors.calls.service.supervisor import Supervisor
from intersession_actors.calls.service.waits import OneAtATime, RunWaits, WaitGraph
from intersession_actors.owners.chains.spending import SpendingLedger
from intersession_actors.owners.streams.world import World
from intersession_actors.rules.config.config import Config
from intersession_actors.rules.errors import UNREADABLE, ToolRefused, refused_by
from intersession_actors.running.runtime.clock import Clock
from intersession_actors.running.runtime.threads import Threads
from intersession_events.basics.errors import ForkedStoreError, StoreUnavailable
from intersession_events.log.log import HostLog
from intersession_projections.views.flows.flows import Flows
from intersession_projections.views.run_outcomes.runs import Runs
from intersession_projections.views.sessions.list import Sessions
from intersession_projections.views.sessions.threads import ThreadBindings

COMMIT_TIMEOUT_S: Final = 30.0
"""How long a door waits for the log to take a command."""


@dataclass(kw_only=True, eq=False)
class Service:
    """The parts that all doors share. The modules of this room use them."""

    log: HostLog
    clock: Clock
    new_id: Callable[[], str]
    world: World
    supervisor: Supervisor
    reader: Reader
    receipts: Receipts
    blocking: Threads
    """How doors wait."""
    writer: LogWriter | None = None
    """Where calls are handed on that this host can't answer, since it only follows the log."""

    def __post_init__(self) -> None:
        self.sessions: Sessions = self.reader.sessions
        self.runs: Runs = self.reader.runs
        self.flows: Flows = self.reader.flows
        self.threads = ThreadBindings(self.log)
        self.spending = SpendingLedger(
            self.log,
            self.reader.positions.position_at,
            self._person_of,
        )
        self.wait_graph = WaitGraph(self.clock.monotonic)
        self.waits = RunWaits(self.log, self.wait_graph.run_ended)
        self.spawning = OneAtATime(self.blocking)
        self.refusing_without_store = _RefusingWithoutStore(self.store_failed)

    def wait_for_listeners(self) -> None:
        """Wait until the ledgers have heard of each commit that the caller can have read.

        A database shows a commit to readers before the writer itself is told of it: a caller that has read there that a run has ended
        would else begin another before the first one's use is counted.

        Raises:
            ToolRefused: they have not heard in time (`unavailable`).
        """
        with self.refusing_without_store:
            if not self.log.wait_for(self.log.head(), timeout=COMMIT_TIMEOUT_S):
                raise StoreUnavailable(
                    f"the writer did not say within {COMMIT_TIMEOUT_S:g} s what it has committed"
                )

    def store_failed(self, error: Exception) -> None:
        """Report that a caller found the store unavailable. A closed system, or one in a forked child, reports nothing."""
        if not self.world.agents.closing and not isinstance(error, ForkedStoreError):
            self.world.reports.store_unread(error)

    def _person_of(self, channel: str, sender: str) -> str:
        return self.config.session.person(channel, sender)

    @property
    def config(self) -> Config:
        """The configuration in force."""
        return self.reader.config


class _RefusingWithoutStore:
    """Turns store errors in a block into the caller's refusal.

    A store that is away, or closed, is `unavailable`; one of whose rows something can't be read is `unreadable`. It keeps nothing,
    so all threads are in the same one.
    """

    def __init__(self, failed: Callable[[Exception], None]) -> None:
        self._failed: Final = failed

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, StoreUnavailable):
            self._failed(error)
            raise ToolRefused("unavailable", f"the store is unavailable: {error}") from error
        if isinstance(error, UNREADABLE):
            self._failed(error)
            raise refused_by(error, f"the log can't be read: {error}") from error
