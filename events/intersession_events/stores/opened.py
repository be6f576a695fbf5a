"""Opens the log that a URL names."""

import os
from collections.abc import Callable, Sequence

from intersession_events.log import InlineView
from intersession_events.machine import machine_entropy, random_id, wall_clock_ms
from intersession_events.stores.sqlite import SqliteLog
from intersession_events.stores.url import sqlite_path


def open_log(
    url: str | None = None,
    *,
    inline: Sequence[InlineView] = (),
    read_only: bool = False,
    clock: Callable[[], int] = wall_clock_ms,
    entropy: Callable[[int], bytes] = machine_entropy,
    new_log_id: Callable[[], str] = random_id,
    threads: bool = True,
    on_folding: Callable[[int, int], None] | None = None,
) -> SqliteLog:
    """Open the log that a URL names, else `$INTERSESSION_STORE`, else `./intersession.db`. The rest is as `SqliteLog` has it.

    Raises:
        NoSuchStore: the URL names a store that is not here.
        StoreLocked: another process is the writer.
        NotALog: the file is something else, or a copy that lost the log's identity.
        LogTooNew: a newer version wrote it; open it with `read_only`.
        StoreUnavailable: the file can't be opened.
    """
    return SqliteLog(
        sqlite_path(url, os.environ),
        inline=inline,
        read_only=read_only,
        clock=clock,
        entropy=entropy,
        new_log_id=new_log_id,
        threads=threads,
        on_folding=on_folding,
    )
