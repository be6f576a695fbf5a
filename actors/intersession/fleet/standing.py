"""How one log of a fleet stands: its hosts, its place, and what is wrong with it, asked of the store alone (FLEET-2)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from intersession.fleet.register import FleetLog
from intersession_actors.hindsight.debugger.lists.hosts import HostsAnswer, WriterAnswer, hosts_of
from intersession_actors.running.failures.findings import Finding, warning, wrong
from intersession_actors.running.failures.host_findings import host_findings
from intersession_events.basics.errors import IntersessionError
from intersession_events.facts import LogOpened
from intersession_events.facts.reasons import counted
from intersession_events.log.recorded import Reads, StreamPart
from intersession_events.stores.opened import located, open_log
from intersession_events.stores.portable.log import FUNCTIONS, PortableLog
from intersession_projections.views.inline_views import inline_views
from intersession_projections.views.run_outcomes.runs import Runs

_LAST_OPENED: Final = (
    "SELECT MAX(originator_version) FROM stored_events WHERE originator_id='log' AND topic='log_opened.1'"
)
_RUNS: Final = "run_outcomes"
"""The view of runs. One of another version need not have the columns that are asked for."""


class LogStanding(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How a log stands. `store` has no password. Of a log that is away there is nothing but its problem.

    `last_event` is the time of its last event in milliseconds since 1970, `version` that of the software which opened it last to
    write, `outdated` what the next writer of this version makes anew. `standbys`, `doors` and `workers` are how many are alive,
    `waiting_calls` how many calls no worker has taken, by agent or channel. `open_runs` is unknown where views are outdated.
    `problems` are what `doctor` would say, too, of its hosts.
    """

    name: str
    store: str
    log_id: str
    position: int | None = None
    last_event: int | None = None
    epoch: int | None = None
    version: str | None = None
    writer: WriterAnswer | None = None
    standbys: int = 0
    doors: int = 0
    workers: int = 0
    open_runs: int | None = None
    waiting_calls: Mapping[str, int] = {}
    outdated: Sequence[str] = ()
    problems: Sequence[Finding] = ()

    @property
    def is_wrong(self) -> bool:
        """Whether it could not be asked, or is not the log that was added."""
        return any(problem.level == "error" for problem in self.problems)


def standing_of(name: str, entry: FleetLog) -> LogStanding:
    """Ask one log how it stands. What keeps it from answering is its problem, and raises nothing."""
    shown = ""
    try:
        shown = located(entry.store).shown
        with open_log(entry.store, read_only=True) as log:
            return _asked(name, shown, entry, log)
    except (IntersessionError, OSError) as error:
        advice = "see to it that its store is there and takes this user"
        return LogStanding(
            name=name, store=shown, log_id=entry.log_id, problems=[wrong("away", f"{error}", advice)]
        )


def _asked(name: str, shown: str, entry: FleetLog, log: PortableLog) -> LogStanding:
    head, outdated = log.head(), log.outdated(inline_views())
    open_runs = None if _RUNS in outdated else Runs(log).open_runs()
    # What stands beside the events on a server is made with its functions.
    hosts = None if FUNCTIONS in outdated else hosts_of(log, open_runs or (), most=1)
    ((epoch,),), ((opened,),) = log.each([("SELECT epoch FROM log_identity", ()), (_LAST_OPENED, ())])
    wanted = [] if opened is None else [StreamPart("log", opened - 1, opened)]
    found = log.gather(Reads(positions=[head] if head else [], parts=wanted))
    version = [one.event.version for (one,) in found.parts if isinstance(one.event, LogOpened)]
    standing = LogStanding(
        name=name,
        store=shown,
        log_id=log.log_id,
        position=head,
        last_event=found.events[0].time if found.events else None,
        epoch=epoch,
        version=version[0] if version else None,
        open_runs=None if open_runs is None else len(open_runs),
        outdated=outdated,
    )
    if hosts is not None:
        standing = msgspec.structs.replace(
            standing,
            writer=hosts["writer"],
            standbys=len(hosts["standbys"]),
            doors=len(hosts["doors"]),
            workers=len(hosts["workers"]),
            waiting_calls={one["name"]: one["waiting"] for one in hosts["calls"] if one["waiting"]},
        )
    return msgspec.structs.replace(standing, problems=[*_problems(standing, entry, hosts)])


def _problems(standing: LogStanding, entry: FleetLog, hosts: HostsAnswer | None) -> Iterator[Finding]:
    if standing.log_id != entry.log_id:
        yield wrong(
            "another_log", another_log(standing.log_id, entry), "put that back, or remove and add it anew"
        )
    if standing.outdated:
        yield warning(
            "outdated",
            f"of another version: {', '.join(standing.outdated)}",
            "`intersession fleet upgrade` makes them anew, or the next start of its host",
        )
    if hosts is not None:
        if standing.writer is None and standing.open_runs:
            what = f"{counted(standing.open_runs, 'run')} open, and no process writes it"
            yield warning("nobody_at_work", what, "start its host: it goes on with them")
        yield from (found for found in host_findings({**hosts}) if found.level != "note")


def another_log(found: str, entry: FleetLog) -> str:
    """Say that another log is where one was added."""
    return f"the log {found} is there, and {entry.log_id} was added"
