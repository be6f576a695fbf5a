"""How one log of a fleet stands: its writer, its place, and what is wrong with it, asked of the store alone (FLEET-2)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, Literal

import msgspec

from intersession.fleet.register import FleetLog
from intersession_events.basics.errors import IntersessionError
from intersession_events.facts import LogOpened
from intersession_events.facts.reasons import counted
from intersession_events.log.recorded import Reads, StreamPart
from intersession_events.stores.opened import located, open_log
from intersession_events.stores.portable.log import FUNCTIONS, PortableLog
from intersession_projections.views.inline_views import inline_views

_LAST_OPENED: Final = (
    "SELECT MAX(originator_version) FROM stored_events WHERE originator_id='log' AND topic='log_opened.1'"
)
_OPEN: Final = "SELECT COUNT(*) FROM run_outcomes WHERE ended = 0"

ProblemCode = Literal["away", "another_log", "nobody_at_work", "outdated"]


class FleetProblem(msgspec.Struct, frozen=True):
    """What is wrong with a log of a fleet, and what to do about it."""

    code: ProblemCode
    what: str


class FleetWriter(msgspec.Struct, frozen=True):
    """The process that writes a log: its machine, where that need not be this one, and the address of its gateway."""

    pid: int
    host: str | None
    gateway: str | None


class LogStanding(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How a log stands. `store` has no password. Of a log that is away there is nothing but its problem.

    `last_event` is the time of its last event in milliseconds since 1970, `version` that of the software which opened it last to
    write, `outdated` what the next writer of this version makes anew. `standbys`, `doors` and `workers` are how many are alive,
    `waiting_calls` how many calls no worker has taken, by agent or channel.
    """

    name: str
    store: str
    log_id: str
    position: int | None = None
    last_event: int | None = None
    epoch: int | None = None
    version: str | None = None
    writer: FleetWriter | None = None
    standbys: int = 0
    doors: int = 0
    workers: int = 0
    open_runs: int | None = None
    waiting_calls: Mapping[str, int] = {}
    outdated: Sequence[str] = ()
    problems: Sequence[FleetProblem] = ()

    @property
    def is_away(self) -> bool:
        """Whether it could not be asked."""
        return self.position is None


def standing_of(name: str, entry: FleetLog) -> LogStanding:
    """Ask one log how it stands. What keeps it from answering is its problem, and raises nothing."""
    shown = ""
    try:
        shown = located(entry.store).shown
        with open_log(entry.store, read_only=True) as log:
            return _asked(name, shown, entry, log)
    except (IntersessionError, OSError) as error:
        away = FleetProblem("away", f"{error}")
        return LogStanding(name=name, store=shown, log_id=entry.log_id, problems=(away,))


def _asked(name: str, shown: str, entry: FleetLog, log: PortableLog) -> LogStanding:
    head, outdated, writer = log.head(), log.outdated(inline_views()), log.written_by()
    ((epoch,),), ((opened,),) = log.each([("SELECT epoch FROM log_identity", ()), (_LAST_OPENED, ())])
    # What stands beside the events is made with the functions.
    is_made = FUNCTIONS not in outdated
    beside = Counter(host.kind for host in log.hosts.alive()) if is_made else Counter[str]()
    calls = log.work.standing() if is_made else ()
    # A view of another version need not have the column that is asked for.
    ((open_runs,),) = [(None,)] if "run_outcomes" in outdated else log.query(_OPEN)
    wanted = [] if opened is None else [StreamPart("log", opened - 1, opened)]
    found = log.gather(Reads(positions=[head] if head else [], parts=wanted))
    version = [one.event.version for (one,) in found.parts if isinstance(one.event, LogOpened)]
    return LogStanding(
        name=name,
        store=shown,
        log_id=log.log_id,
        position=head,
        last_event=found.events[0].time if found.events else None,
        epoch=epoch,
        version=version[0] if version else None,
        writer=None if writer is None else FleetWriter(writer.pid, writer.host, writer.gateway),
        standbys=beside["standby"],
        doors=beside["door"],
        workers=len(log.work.workers()) if is_made else 0,
        open_runs=open_runs,
        waiting_calls=Counter(call.name for call in calls if call.worker is None and not call.is_over),
        outdated=outdated,
        problems=[
            *_another(entry, log),
            *_idle(open_runs, is_written=writer is not None),
            *_old(outdated),
        ],
    )


def _another(entry: FleetLog, log: PortableLog) -> list[FleetProblem]:
    if log.log_id == entry.log_id:
        return []
    return [FleetProblem("another_log", another_log(log.log_id, entry))]


def another_log(found: str, entry: FleetLog) -> str:
    """Say that another log is where one was added."""
    return f"the log {found} is there, and {entry.log_id} was added: put that back, or remove and add it anew"


def _idle(open_runs: int | None, *, is_written: bool) -> list[FleetProblem]:
    if is_written or not open_runs:
        return []
    what = f"{counted(open_runs, 'run')} open, and no process writes it: start its host"
    return [FleetProblem("nobody_at_work", what)]


def _old(outdated: Sequence[str]) -> list[FleetProblem]:
    if not outdated:
        return []
    what = f"of another version: {', '.join(outdated)}; `intersession fleet upgrade` makes them anew"
    return [FleetProblem("outdated", what)]
