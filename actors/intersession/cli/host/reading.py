"""Opens a log for commands that only read: without a lock or a receipt, beside a writer or not."""

from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final

from intersession.cli.shell.answer import Common, Reading
from intersession.cli.shell.run import searching_after
from intersession.cli.shell.terminal import Screen
from intersession_actors.calls.service.reader import Reader
from intersession_actors.calls.service.resolve import resolve_target
from intersession_actors.hindsight.debugger.named import as_key
from intersession_actors.rules.config.config import Config, load_config
from intersession_actors.rules.policy.access import Operation, Requester
from intersession_actors.running.runtime.clock import SystemClock
from intersession_events.basics.progress import Progress
from intersession_events.log.views import InlineView
from intersession_events.stores.opened import Located, located, open_log
from intersession_events.stores.portable.log import PortableLog
from intersession_projections.copies.transcripts.files import mirror_directory
from intersession_projections.views.inline_views import inline_views

_MANY: Final = 2_000
"""Events that it takes a moment to make views of."""

_OBJECTS: Final = 300_000
"""The number of new objects, some thirty megabytes, after which Python searches for garbage; by itself it does after 700.

An answer takes up to a million objects. None is garbage, and the searches would take a sixth of its time.
"""

_FOR_THIS_COMMAND: Final = (
    "note: this log's views are of another version, changed by somebody else, or missing: they were made anew for this "
    "command alone. `intersession rebuild` makes them for good."
)


@contextmanager
def reading_log(
    common: Common, *, config: Config | None = None, views: Sequence[InlineView] = ()
) -> Generator[PortableLog]:
    """Open the named log, else the configuration's, else the default one, for reading.

    Raises:
        NoSuchStore: it is not there; nothing was made.
        NotALog: it is something else.
        StoreUnavailable: it can't be read.
    """
    url = store_url(common, config)
    encryption = None if config is None else config.encryption.wanted
    with (
        folding(beside=True) as on_folding,
        open_log(url, read_only=True, inline=views, encryption=encryption, on_folding=on_folding) as log,
        searching_after(_OBJECTS),
    ):
        if log.keys is not None and log.keys.trouble is not None:
            Screen().note(f"note: what is encrypted can't be read: {log.keys.trouble}")
        yield log


@contextmanager
def folding(*, beside: bool = False) -> Generator[Progress]:
    """Show the progress of folding views for the time of a block; answers can be shown afterwards.

    `beside` the log they are built for this command alone: where that takes long, it is said how to have them for good.
    """
    with ExitStack() as shown:
        moved: Progress | None = None
        told = not beside

        def move(position: int, head: int) -> None:
            nonlocal moved, told
            if moved is None:
                moved = shown.enter_context(Screen().progress("Building the views anew"))
            moved(position, head)
            if position >= head:
                shown.close()
                moved = None
                if not told and head >= _MANY:
                    told = True
                    Screen().note(_FOR_THIS_COMMAND)

        yield move


@contextmanager
def reader_of(reading: Reading) -> Generator[Reader]:
    """Open the log for reading, with its views and the configuration's rules."""
    config = load_config(reading.config).config
    with reading_log(reading, config=config, views=inline_views()) as log:
        transcripts = mirror_directory(log, wanted=config.transcripts.mirror)
        yield Reader(log, config=lambda: config, clock=SystemClock(), transcripts=transcripts)


def store_url(common: Common, config: Config | None = None) -> str | None:
    """Return the log's URL, None for the default one."""
    return common.store or (config.store if config is not None else None)


def store_of(reading: Reading) -> Located:
    """Return the place of the named log, else the configuration's, else the default one; it need not exist."""
    return located(store_url(reading, load_config(reading.config).config))


def acting_as(reader: Reader, key: str | None) -> Requester:
    """Return the caller: the operator, or the session it acts as (VIS-6)."""
    return reader.requester(None if key is None else key_of(reader, key, field="--as"))


def key_of(reader: Reader, typed: str, operation: Operation = "send", *, field: str) -> str:
    """Return the key of the session that an option names, for the operator's commands."""
    operator = reader.requester(None)
    return str(resolve_target(reader, operator, as_key(reader, typed), operation, field=field).key)
