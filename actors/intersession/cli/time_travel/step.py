"""`intersession step`: goes through a run event by event, on a screen of its own (extra `tui`)."""

import os
import sys
from typing import Annotated

from cyclopts import Parameter

from intersession.cli.host.forks import in_fork
from intersession.cli.host.reading import store_of
from intersession.cli.shell.answer import READING, Answer, Reading, UsageError
from intersession.cli.time_travel.show import At, debugger_of
from intersession_actors.running.host.extras import imported
from intersession_events.stores.url import VARIABLE


def step(
    run: Annotated[
        str, Parameter(name="RUN", help="An exchange, a spawn or a run, by any name that is shown.")
    ],
    /,
    *,
    at: At = None,
    follow: Annotated[bool, Parameter(help="Keep up with what comes.")] = False,
    reading: Reading = READING,
) -> Answer:
    """Step through a run on a screen: forwards, back, by causes.

    By answers, too, to a place, and on or back to a breakpoint. Left is the diagram, right are the
    transcripts as they stood, below them the event and what it changed. `?` says the keys.
    """
    if reading.json:
        raise UsageError("--json: a screen has none, use `intersession show --json` or `state --json`")
    screens = imported(
        "intersession.cli.time_travel.screen", what="intersession step", library="textual", extra="tui"
    )
    inside, named = in_fork(reading, run, at)
    with debugger_of(inside) as debugger:
        store = store_of(inside)
        if not store.is_file:
            # The screen shows commands, and a password may be in the URL: those that it runs find the log here.
            os.environ[VARIABLE] = store.url
        log = ["--store", store.url] if store.is_file else []
        log += [] if inside.config is None else ["--config", str(inside.config)]
        screen = screens.StepScreen(debugger, named(run), at=named(at), follow=follow, log=log)
        if not (sys.stdin.isatty() and sys.stderr.isatty()):  # it would wait for keys that never come
            raise UsageError(
                f"a screen needs a terminal: `intersession show {run}` draws the run without one"
            )
        screen.run()
    return Answer({"ok": True}, lambda _: None)
