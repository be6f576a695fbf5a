"""Opens the log that a URL names; of a closed one, gives its place and its writer."""

import os
from collections.abc import Callable, Sequence
from importlib import import_module
from types import ModuleType
from typing import Final, NamedTuple, Protocol

from intersession_events.basics.errors import MissingExtra, NoSuchStore, StoreUnavailable
from intersession_events.basics.machine import machine_entropy, random_id, wall_clock_ms
from intersession_events.basics.progress import Progress
from intersession_events.log.log import Log
from intersession_events.log.other_words import as_it_is
from intersession_events.log.views import InlineView
from intersession_events.log.work_queue import TakesWork
from intersession_events.stores.database import MEMORY
from intersession_events.stores.hosts.host import Hosts
from intersession_events.stores.keys.opening import lost
from intersession_events.stores.keys.records import KeyFile, file_of
from intersession_events.stores.keys.source import Encryption
from intersession_events.stores.portable.filling import Filling
from intersession_events.stores.portable.identity import Holder, Identity
from intersession_events.stores.portable.log import PortableLog
from intersession_events.stores.portable.recent import LAST_EVENTS, recent_of
from intersession_events.stores.sqlite import identity, writer_lock
from intersession_events.stores.sqlite.filling import FileFilling
from intersession_events.stores.sqlite.log import SqliteLog
from intersession_events.stores.url import VARIABLE, is_base_url, is_postgres, sqlite_path

_SHOWN: Final = 128


class Located(NamedTuple):
    """The place of a log."""

    url: str
    """By which it is opened; it may hold a password."""
    shown: str
    """As it may be shown: a path, or a URL without its password."""
    place: str
    """Beside which path lies what is kept in files beside the log (`<place>.forks`); `:memory:` for nowhere."""

    @property
    def is_file(self) -> bool:
        """Whether the log is a file at its place."""
        return self.url == self.place

    def __repr__(self) -> str:
        """Return it without what may be a password."""
        return f"Located({self.shown!r})"


def located(url: str | None = None) -> Located:
    """Return the place of the log that a URL names, else `$INTERSESSION_STORE`, else `./intersession.db`; it need not exist.

    Raises:
        NoSuchStore: the URL names no store.
        MissingExtra: the extra `postgres` is not installed.
    """
    named = url or os.environ.get(VARIABLE)
    if not isinstance(named, str) or not is_postgres(named):
        path = sqlite_path(url, os.environ)
        return Located(path, path, path)
    address = _postgres().address_of(named)
    return Located(named, address.shown, address.place)


def open_log(
    url: str | None = None,
    *,
    inline: Sequence[InlineView] = (),
    read_only: bool = False,
    clock: Callable[[], int] = wall_clock_ms,
    monotonic: Callable[[], float] | None = None,
    entropy: Callable[[int], bytes] = machine_entropy,
    new_log_id: Callable[[], str] = random_id,
    threads: bool = True,
    encryption: Encryption | None = None,
    on_folding: Progress | None = None,
) -> PortableLog:
    """Open the log that a URL names, else `$INTERSESSION_STORE`, else `./intersession.db`. The rest is as `SqliteLog` has it.

    Raises:
        NoSuchStore: the URL names a store that is not here.
        StoreLocked: another process is the writer.
        NotALog: the file, or the schema, is something else.
        LogTooNew: a newer version wrote it; open it with `read_only`.
        StoreUnavailable: the file can't be opened, or the server can't be reached.
        MissingExtra: the extra `postgres` is not installed.
    """
    where = located(url)
    kind: Callable[..., PortableLog] = SqliteLog if where.is_file else _postgres().PostgresLog
    return kind(
        where.url,
        inline=inline,
        read_only=read_only,
        clock=clock,
        monotonic=monotonic,
        entropy=entropy,
        new_log_id=new_log_id,
        threads=threads,
        encryption=encryption,
        on_folding=on_folding,
    )


def check_clear(log: Log) -> None:
    """Check that what is encrypted in a log can be read here: for a host that shows or writes it, or what takes words out of it (CRYPT-2).

    Raises:
        BadKey: the master key is not at hand, or the keys are not where they were.
    """
    log = as_it_is(log)
    if not isinstance(log, PortableLog):
        return
    if log.keys is None and recent_of(log.query(*LAST_EVENTS)).sealed:
        raise lost(KeyFile(file_of(log.place)))
    if log.keys is not None and log.keys.trouble is not None:
        raise log.keys.trouble


def filling_at(url: str) -> Filling:
    """Return the place that a URL names as the target of a copy.

    Raises:
        NoSuchStore: the URL names no store, or memory.
        MissingExtra: the extra `postgres` is not installed.
    """
    where = located(url)
    if where.place == MEMORY:
        raise NoSuchStore(url, "a log in memory ends with this process, so none is moved there")
    filling: Filling = FileFilling(where.url) if where.is_file else _postgres().SchemaFilling(where.url)
    return filling


def gateway_of(url: str | None = None) -> str | None:
    """Return the address of the gateway of the process that writes a log now; None if there is no writer, or no gateway.

    Of a log on a server it is whatever a role that may write there says. So prove a token there, and never send it.

    Raises:
        StoreUnavailable: somebody else than this user could have said where it is, or it can't be reached from here.
    """
    where = located(url)
    if where.is_file:
        return writer_lock.gateway_of(where.url)
    return _reached(where, _postgres().writer_at(where.url))


def writers_gateway(log: PortableLog) -> str | None:
    """Return the same of a log that is open, by its own connections.

    Raises:
        StoreUnavailable: the same.
    """
    where = located(log.path)
    return writer_lock.gateway_of(where.url) if where.is_file else _reached(where, log.written_by())


def _reached(where: Located, holder: Holder | None) -> str | None:
    if holder is None or holder.gateway is None:
        return None
    is_here = holder.host is None and writer_lock.is_loopback(holder.gateway)
    if not is_here and (not is_base_url(holder.gateway) or writer_lock.is_loopback(holder.gateway)):
        raise StoreUnavailable(
            f"{where.shown} is written on {holder.host or 'this machine'}, with a gateway at {holder.gateway[:_SHOWN]!r}, which is "
            "no address for this machine; let that host say one by gateway.advertise, or ask it over the network with its token"
        )
    return holder.gateway


class Waits(Protocol):
    """What a standby asks of a store. Each method raises `StoreUnavailable` where that is away."""

    hosts: Hosts

    def writer(self) -> Holder | None:
        """Return the process that writes the log, as of a moment ago; None if there is none."""
        ...

    def pause(self, seconds: float) -> None:
        """Wait a while, or until the writer has given up the log."""
        ...

    def close(self) -> None:
        """Close what is open."""
        ...


def waiting_at(where: Located) -> Waits:
    """Return what waits beside the writer of a log, and is among its hosts; the log need not be there yet."""
    if where.is_file:
        return writer_lock.Waiting(where.url)
    postgres = _postgres()
    found: Waits = postgres.Waiting(postgres.address_of(where.url))
    return found


def work_at(url: str | None = None) -> TakesWork:
    """Return the calls of a log as a worker takes them from its database, with a role that need have no other right (WORK-3).

    Raises:
        NoSuchStore: the log is in a file, or the URL is invalid.
        MissingExtra: the extra `postgres` is not installed.
    """
    where = located(url)
    if where.is_file:
        raise NoSuchStore(
            where.shown, "the calls of a log in a file are taken through the gateway of its writer: name that"
        )
    taking: TakesWork = _postgres().Taking(where.url)
    return taking


def writer_of(where: Located) -> Holder | None:
    """Return the process that writes a log now; None if there is no writer.

    Raises:
        StoreUnavailable: that can't be looked up.
    """
    if where.is_file:
        return writer_lock.writer_of(where.url)
    found: Holder | None = _postgres().writer_at(where.url)
    return found


def identity_of(where: Located) -> Identity | None:
    """Return the identity of a log that need not be open; None if there is none yet. Errors are those of opening it."""
    if where.is_file:
        return identity.inspect(where.url)
    postgres = _postgres()
    found: Identity | None = postgres.inspect(postgres.address_of(where.url))
    return found


def has_writer(log: Log) -> bool:
    """Whether a process writes a log now: only then does open work in it go on."""
    log = as_it_is(log)
    return isinstance(log, PortableLog) and (log.epoch > 0 or log.written_by() is not None)


def _postgres() -> ModuleType:
    """Load the store only where a URL names one."""
    try:
        return import_module("intersession_events.stores.postgres")
    except ModuleNotFoundError as error:
        raise MissingExtra("a log on PostgreSQL", "psycopg", "postgres") from error
