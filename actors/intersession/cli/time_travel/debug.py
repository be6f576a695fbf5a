"""`intersession debug`: the web debugger on a read-only log, in this machine's browser."""

import os
import tempfile
import webbrowser
from collections.abc import Callable, Generator
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Annotated, TypeAlias
from urllib.parse import quote

from cyclopts import Parameter
from cyclopts.validators import Number

from intersession.cli.host.hosting import forking_beside
from intersession.cli.host.reading import reader_of
from intersession.cli.shell.answer import READING, Answer, Reading
from intersession.cli.shell.terminal import Screen
from intersession_actors.calls.service.reader import Reader
from intersession_actors.hindsight.debugger.named import run_named
from intersession_actors.owners.session.snapshots import take_snapshots
from intersession_actors.running.host.extras import imported
from intersession_actors.running.runtime.clock import SystemClock
from intersession_events.basics.plain_json import JsonMapping, JsonObject
from intersession_events.stores.opened import open_log
from intersession_events.transcripts.openclaw.importing import import_openclaw
from intersession_projections.views.inline_views import inline_views

Deed: TypeAlias = Callable[[str, JsonMapping], JsonObject]
"""Calls a method of forks by its name."""


def debug(
    what: str | None = None,
    /,
    *,
    port: Annotated[int, Parameter(validator=Number(gte=0, lte=65_535))] = 0,
    no_browser: Annotated[bool, Parameter(name="--no-browser")] = False,
    reading: Reading = READING,
) -> Answer:
    """Open a log in the browser: who said what, and why it ended so.

    The log is only read, also beside a host that writes it: then what comes is shown as it comes. A fork that
    is made here is a file beside it, in which agents of the configuration answer. An OpenClaw state directory
    is imported to a temporary log first; the page and the terminal show how far it is. It listens on this
    machine alone, and the address that it prints lets in once: keep it to yourself. Ctrl-C ends it.

    Args:
        what: What to open: a store's file or URL, an OpenClaw state directory, or a run of the store. Default: the store.
        port: Listen on this port of the loopback. Default: any free one.
        no_browser: Print the address, and open no browser.
    """
    screen = Screen()
    server = imported(
        "intersession.gateway.process", what="intersession debug", library="litestar", extra="web"
    )
    page, opened = ["runs"], list[Path]()

    @contextmanager
    def opens(progress: Callable[[int, int | None], None]) -> Generator[tuple[Reader, Deed]]:
        with (
            _store(what, reading, screen, progress) as (store, run),
            reader_of(store) as reader,
            forking_beside(reader, store) as fork,
        ):
            if run is not None:
                page[:] = [f"run/{quote(run_named(reader, run))}"]
            yield reader, fork

    def ready(address: str, word: str) -> None:
        url = f"{address}/debug/{page[0]}#token={word}"
        if reading.json:
            screen.json_line({"url": url})
        else:
            screen.to_copy(url)
        screen.flush()
        if not no_browser:
            opened.append(_page_to(url))
            webbrowser.open(opened[0].as_uri())

    try:
        server.debug_alone(opens, server.listen("127.0.0.1", port), ready=ready, what=what)
    finally:
        for file in opened:
            file.unlink(missing_ok=True)
    return Answer(None, lambda _: None)


def _page_to(url: str) -> Path:
    """Return a file that redirects a browser to an address: a browser's command line is visible to all users here.

    Only its owner reads the file; it is removed once the debugger ends, and the word in it counts once.
    """
    handle, name = tempfile.mkstemp(prefix="intersession-debug-", suffix=".html")  # 0600
    os.close(handle)
    said = escape(url, quote=True)
    Path(name).write_text(
        '<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>Intersession</title>'
        f'<meta http-equiv="refresh" content="0;url={said}"><p><a href="{said}">Open the debugger</a></p>\n',
        encoding="utf-8",
    )
    return Path(name)


@contextmanager
def _store(
    what: str | None, reading: Reading, screen: Screen, progress: Callable[[int, int | None], None]
) -> Generator[tuple[Reading, str | None]]:
    """Yield which store is meant, and the run of it, if one is. A state directory is imported first: `progress` is told how far."""
    if what is None:
        yield reading, None
    elif Path(what).is_dir():
        with tempfile.TemporaryDirectory(prefix="intersession-debug-") as folder:
            url = f"sqlite:///{Path(folder) / 'imported.db'}"
            with (
                screen.progress(f"Importing {what}") as bar,
                open_log(url, inline=inline_views()) as log,
            ):

                def moved(done: int, of: int | None) -> None:
                    bar(done, of)
                    progress(done, of)

                appended = set[str]()
                import_openclaw(
                    Path(what), log, clock=SystemClock().now_ms, progress=moved, appended=appended.update
                )
                take_snapshots(log, appended)
            yield Reading(store=url, config=reading.config), None
    elif "://" in what or Path(what).is_file() or Path(what).name != what or Path(what).suffix == ".db":
        # No run has that name: if a file was meant, say which one is missing.
        yield Reading(store=what, config=reading.config), None
    else:
        yield reading, what
