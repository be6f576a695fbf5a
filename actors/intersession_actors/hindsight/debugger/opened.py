"""Opens a log for reading, with the debugger on it: for notebooks, scripts and tests, beside the log's writer."""

from collections.abc import Sequence
from pathlib import Path

from intersession_actors.calls.service.reader import Reader
from intersession_actors.hindsight.debugger.debugger import Debugger
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.rules.config.config import Config, load_config
from intersession_actors.running.runtime.clock import SystemClock
from intersession_events.basics.closing import Closing
from intersession_events.basics.plain_json import JsonMapping
from intersession_events.log.log import HostLog
from intersession_events.stores.opened import open_log as open_store
from intersession_projections.questions.smells.smell import SmellRule
from intersession_projections.views.inline_views import inline_views


class OpenLog(Closing):
    """A log that is open for reading only. Use it as a context manager, or close it."""

    def __init__(self, log: HostLog, config: Config, smells: Sequence[SmellRule] = ()) -> None:
        self.log = log
        self._reader = Reader(log, config=lambda: config, clock=SystemClock(), smells=smells)

    @property
    def debug(self) -> Debugger:
        """The operator's debugger on the log."""
        return Debugger(View(self._reader))

    def close(self) -> None:
        """Close it."""
        self.log.close()


def open_log(
    store: str | Path | None = None,
    *,
    config: Config | JsonMapping | Path | str | None = None,
    smells: Sequence[SmellRule] = (),
) -> OpenLog:
    """Open a log for reading, beside a process that writes it: `open_log("host.db").debug.state(at="head")`.

    `store` is a file or a URL; without one the configuration's, `$INTERSESSION_STORE`, else `./intersession.db`. `config` is whose
    rules hold where the log does not say which were in force. `smells` are rules of the host's own for what is seldom meant.

    Raises:
        NoSuchStore: it is not there; nothing was made.
        NotALog: it is something else.
        StoreUnavailable: it can't be read.
        ConfigError: the configuration was refused.
    """
    loaded = load_config(config).config
    url = loaded.store if store is None else str(store) if isinstance(store, Path) else store
    encryption = loaded.encryption.wanted
    log = open_store(url, read_only=True, inline=inline_views(), encryption=encryption)
    return OpenLog(log, loaded, smells)
