"""`Fleet`: the logs of a file, asked and verified side by side, moved, and brought to this version one by one (FLEET)."""

import os
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Final, Literal, TypeVar

import msgspec

from intersession.fleet.register import DEFAULT_PATH, VARIABLE, FleetLog, FleetRefused, Register, checked
from intersession.fleet.standing import LogStanding, another_log, standing_of
from intersession_events.basics.errors import IntersessionError, StoreLocked
from intersession_events.copies.migrating import Migrated, Progress, migrate
from intersession_events.facts import ready
from intersession_events.stores.database import MEMORY
from intersession_events.stores.opened import Located, located, open_log
from intersession_events.stores.url import VARIABLE as STORE
from intersession_projections.views.inline_views import inline_views

T = TypeVar("T")

AT_ONCE: Final = 8
"""How many logs are asked at once how they stand."""
_MOST_AT_ONCE: Final = 64
_NEAR: Final = 5

OnDone = Callable[[int, int], None]
"""Gets how many logs are done, and of how many."""


class LogVerified(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What `verify` says of a log. `code` and `error` are set where it could not be verified at all."""

    name: str
    ok: bool
    events: int = 0
    streams: int = 0
    findings: int = 0
    exit_code: int = 0
    code: str | None = None
    error: str | None = None


Upgraded = Literal["current", "upgraded", "written", "refused"]


class LogUpgraded(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How an upgrade of a log ended; `outdated` is what was made anew, or still is to be.

    A log that is `written` is brought to this version by the next start of its own host.
    """

    name: str
    state: Upgraded
    outdated: Sequence[str] = ()
    error: str | None = None


@ready
class _Head(msgspec.Struct, rename="camel"):
    log_id: str


@ready
class _Report(msgspec.Struct):
    """What is read of what `intersession verify --json` prints."""

    ok: bool = False
    events: int = 0
    streams: int = 0
    counts: dict[str, int] = {}
    head: _Head | None = None
    code: str | None = None
    error: str | None = None


class Fleet:
    """The logs that a file names: `fleet.json`, else what `$INTERSESSION_FLEET` names.

    Logs are separate: no session of one can send to one of another. Each is asked by itself, so one that is away stops none of
    the others. Without `names`, a method is about all logs. `on_done` gets how many logs are done.

    Raises:
        FleetRefused: by each method, where the file, a name or a log is invalid. Nothing is changed then.
        StoreUnavailable: the file can't be read or written.
    """

    def __init__(self, file: str | os.PathLike[str] | None = None) -> None:
        self._register = Register(Path(file or os.environ.get(VARIABLE) or DEFAULT_PATH))

    @property
    def path(self) -> Path:
        """The file."""
        return self._register.path

    @property
    def logs(self) -> Mapping[str, FleetLog]:
        """The logs by name, sorted; none where there is no file."""
        return self._register.logs()

    def named(self, names: Collection[str] = ()) -> Mapping[str, FleetLog]:
        """Return the named logs, or all.

        Raises:
            FleetRefused: the file does not name one of them.
        """
        logs = self.logs
        for name in names:
            if name not in logs:
                raise FleetRefused(_unknown(name, logs, self.path))
        return {name: logs[name] for name in logs if not names or name in names}

    def add(self, name: str, store: str, *, create: bool = False) -> FleetLog:
        """Name the log of a store. With `create` a new log is made where there is none.

        Raises:
            FleetRefused: the name, or the log, is in the file already; or the store is in memory.
            LogError: the log is not there, or can't be read.
        """
        checked(name)
        where = located(store)
        if where.place == MEMORY:
            raise FleetRefused(
                "a log in memory ends with its process: name a file, or a schema of a database"
            )
        url = _from_anywhere(where)
        # A name that is taken is told before a log is made.
        self._check_free(name, self.logs)
        if create:
            open_log(url, inline=inline_views()).close()
        with open_log(url, read_only=True) as log:
            entry = FleetLog(store=url, log_id=log.log_id)
        with self._register.changed() as logs:
            self._check_free(name, logs)
            same = next((other for other, known in logs.items() if known.log_id == entry.log_id), None)
            if same is not None:
                raise FleetRefused(f"{where.shown} is the log {entry.log_id}, which is there as {same!r}")
            logs[name] = entry
        return entry

    def remove(self, name: str) -> FleetLog:
        """Take a log out of the file. The log itself stays as it is."""
        with self._register.changed() as logs:
            if name not in logs:
                raise FleetRefused(_unknown(name, logs, self.path))
            return logs.pop(name)

    def status(
        self, names: Collection[str] = (), *, at_once: int = AT_ONCE, on_done: OnDone | None = None
    ) -> Sequence[LogStanding]:
        """Return how logs stand, by name; `at_once` are asked at a time."""
        return _side_by_side(standing_of, self.named(names), at_once, on_done)

    def verify(
        self,
        names: Collection[str] = (),
        *,
        at_once: int | None = None,
        options: Sequence[str] = (),
        on_done: OnDone | None = None,
    ) -> Sequence[LogVerified]:
        """Verify logs, each by `intersession verify` in a process of its own, and return what that says, by name.

        `at_once` is how many processes there are at a time, as many as processors if it is not given; `options` are
        further ones of the command (`--events-only`, `--trust`).
        """

        def one(name: str, entry: FleetLog) -> LogVerified:
            return _verified(name, entry, options)

        return _side_by_side(
            one, self.named(names), os.cpu_count() or 1 if at_once is None else at_once, on_done
        )

    def upgrade(self, names: Collection[str] = (), *, on_done: OnDone | None = None) -> Sequence[LogUpgraded]:
        """Open each log that another version has left to write, one by one, so that its views are made anew.

        Run again after it was killed, it goes on with the logs that are left.
        """
        return _side_by_side(_upgraded, self.named(names), 1, on_done)

    def migrate(self, name: str, target: str, *, progress: Progress | None = None) -> Migrated:
        """Move a log to another store, and name that in the file. It is refused while a process writes the log.

        Killed at whatever point, it goes on when it is run again.

        Raises:
            MigrationFailed, StoreLocked, LogError: as `copies.migrating.migrate`.
        """
        source = self.named([name])[name]
        url = _from_anywhere(located(target))
        _look(source)
        moved = migrate(source.store, url, progress=progress)
        open_log(url, inline=inline_views()).close()
        with self._register.changed() as logs:
            if logs.get(name) != source:
                raise FleetRefused(
                    f"{name!r} was changed meanwhile: the log is moved, and {self.path} is not"
                )
            logs[name] = FleetLog(store=url, log_id=moved.head.log_id)
        return moved

    def _check_free(self, name: str, logs: Mapping[str, FleetLog]) -> None:
        if name in logs:
            raise FleetRefused(f"{self.path} has a log {name!r}: take another name, or remove that one")


def _unknown(name: str, logs: Mapping[str, FleetLog], path: Path) -> str:
    some = ", ".join(list(logs)[:_NEAR]) or "none"
    return f"{path} names no log {ascii(name)[:66]}; there are {some}{', …' if len(logs) > _NEAR else ''}"


def _side_by_side(
    ask: Callable[[str, FleetLog], T], logs: Mapping[str, FleetLog], at_once: int, on_done: OnDone | None
) -> Sequence[T]:
    """Return what is made of each log, in their order; at most `at_once` at a time."""
    if not isinstance(at_once, int) or not 1 <= at_once <= _MOST_AT_ONCE:  # pyright: ignore[reportUnnecessaryIsInstance] - a host gives what it likes
        raise FleetRefused(f"at_once: {at_once!r} is not between 1 and {_MOST_AT_ONCE}")
    with ThreadPoolExecutor(at_once) as pool:
        asked = [pool.submit(ask, name, entry) for name, entry in logs.items()]
        try:
            for done, _ in enumerate(as_completed(asked), 1):
                if on_done is not None:
                    on_done(done, len(asked))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
        return [one.result() for one in asked]


def _verified(name: str, entry: FleetLog, options: Sequence[str]) -> LogVerified:
    # A process of its own: Python uses one processor, and a log that takes all memory ends no other one's proof. The URL
    # goes by the environment, for a command line is visible to all.
    done = subprocess.run(  # noqa: S603 - no shell reads what it is given
        [sys.executable, "-m", "intersession", "verify", "--json", *options],
        env={**os.environ, STORE: entry.store},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    try:
        report = msgspec.json.decode(done.stdout, type=_Report)
    except msgspec.MsgspecError:
        said = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        report = _Report(code="internal", error=said or f"the process ended with {done.returncode}")
    if report.head is not None and report.head.log_id != entry.log_id:
        report = _Report(code="another_log", error=another_log(report.head.log_id, entry))
    return LogVerified(
        name=name,
        ok=report.ok and done.returncode == 0,
        events=report.events,
        streams=report.streams,
        findings=sum(report.counts.values()),
        exit_code=done.returncode,
        code=report.code,
        error=report.error,
    )


def _look(entry: FleetLog) -> Sequence[str]:
    """Return what of a log is of another version.

    Raises:
        FleetRefused: it is not the log that was added.
    """
    with open_log(entry.store, read_only=True) as log:
        if log.log_id != entry.log_id:
            raise FleetRefused(another_log(log.log_id, entry))
        return log.outdated(inline_views())


def _upgraded(name: str, entry: FleetLog) -> LogUpgraded:
    outdated: Sequence[str] = ()
    try:
        outdated = _look(entry)
        if not outdated:
            return LogUpgraded(name=name, state="current")
        open_log(entry.store, inline=inline_views()).close()
    except StoreLocked as error:
        return LogUpgraded(name=name, state="written", outdated=outdated, error=f"{error}")
    except (IntersessionError, OSError) as error:
        return LogUpgraded(name=name, state="refused", outdated=outdated, error=f"{error}")
    return LogUpgraded(name=name, state="upgraded", outdated=outdated)


def _from_anywhere(where: Located) -> str:
    """Return a URL that names the same log in whichever directory it is read."""
    return os.path.abspath(where.url) if where.is_file else where.url  # noqa: PTH100 - no link is followed here
