"""What the web debugger takes in a real browser: to open a log, to step from key to paint, to scroll a run (section 7 of its figures)."""

import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from queue import Queue
from time import process_time
from typing import Any, Final

from playwright.sync_api import Page, ViewportSize

from benchmarks.figures import Figure, quantile, spread
from benchmarks.logs import (
    MAIN,
    START_MS,
    Told,
    long_session_told,
    opening,
    saying,
    session_id,
    write_directly,
)
from intersession.gateway.process.alone import debug_alone
from intersession.gateway.process.server import listen
from intersession_actors.calls.service.reader import Reader
from intersession_actors.rules.config.config import load_config
from intersession_actors.running.runtime.clock import SystemClock
from intersession_events.basics import ids
from intersession_events.facts import (
    Message,
    MessageRecorded,
    RunCompleted,
    RunQueued,
    RunStarted,
)
from intersession_events.stores.opened import open_log
from intersession_projections.views.inline_views import inline_views
from support.doors.chromium import chromium

_WIDE: Final[ViewportSize] = {"width": 1280, "height": 800}
_LINE: Final = "Is the lake crossing open on Saturday, and for a van of 3.2 tonnes?"

# From a key that is pressed to the frame in which the slider stands elsewhere.
_STEPS: Final = """async times => {
  const slider = document.querySelector('input[type=range]'), taken = [];
  for (let number = 0; number < times; number++) {
    const before = slider.value, began = performance.now();
    dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowLeft', bubbles: true}));
    document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowLeft', bubbles: true}));
    while (slider.value === before && performance.now() - began < 5000) await new Promise(requestAnimationFrame);
    await new Promise(done => requestAnimationFrame(() => { const paint = new MessageChannel(); paint.port1.onmessage = done; paint.port2.postMessage(0); }));
    taken.push(performance.now() - began);
    await new Promise(done => setTimeout(done, 120));
  }
  return taken;
}"""

# How long each frame lasts while the diagram is scrolled from end to end.
_SCROLL: Final = """async frames => {
  const box = document.querySelector('.left .scroll'), lasted = [];
  let last = await new Promise(requestAnimationFrame);
  for (let number = 0; number < frames; number++) {
    box.scrollTop = number % 2 ? box.scrollTop + 120 : box.scrollTop + 90;
    const now = await new Promise(requestAnimationFrame);
    lasted.push(now - last);
    last = now;
  }
  return lasted;
}"""


def measure(
    directory: Path, *, events: int = 1_000, long: int = 10_000, log: int = 100_000, times: int = 30
) -> list[Figure]:
    """Measure a run of `events`, one that is `long`, and a `log` of so many events."""
    figures: list[Figure] = []
    with chromium() as browser:
        page = browser.new_page(viewport=_WIDE, reduced_motion="reduce")
        if events:
            write_directly(directory / "run.db", long_run_told(events))
            with served(directory / "run.db") as address:
                opened = _opened(page, address, "run/run-0", "svg.dg .row")
                with own_time(page) as spent:
                    steps: list[float] = page.evaluate(_STEPS, times)
            figures.append(_figure(f"a run of {events:,} events, processor time of a step", spent[0] / times))
            figures.append(_figure(f"a run of {events:,} events opens", opened))
            figures += spread("browser", f"a run of {events:,} events, key to paint", steps)
        if long:
            write_directly(directory / "long.db", long_run_told(long))
            with served(directory / "long.db") as address:
                _opened(page, address, "run/run-0", "svg.dg .row")
                with own_time(page) as spent:
                    frames: list[float] = page.evaluate(_SCROLL, times * 8)
            drawn = spent[0] / len(frames)
            figures.append(_figure(f"a run of {long:,} events, processor time of a scrolled frame", drawn))
            figures.append(
                Figure(
                    benchmark="browser",
                    name=f"a run of {long:,} events, frames while it is scrolled",
                    value=1000 * len(frames) / sum(frames),
                    unit="a second",
                )
            )
            figures.append(_figure(f"a run of {long:,} events, longest frame of 20", quantile(frames, 0.95)))
        write_directly(directory / "log.db", long_session_told(log * 2 // 5))
        with served(directory / "log.db") as address:
            figures.append(
                _figure(
                    f"a log of {log:,} events opens", _opened(page, address, "runs", "tbody tr:not(.day)")
                )
            )
            before = process_time()
            _opened(page, address, "runs", "tbody tr:not(.day)")
            asked = 1000 * (process_time() - before)
            figures.append(_figure(f"a log of {log:,} events opens, processor time of its server", asked))
            again = _opened(page, address, "log", "tbody tr")
        figures.append(_figure(f"a log of {log:,} events, event by event", again))
    return figures


def long_run_told(events: int, key: str = MAIN) -> Iterator[Told]:
    """Yield one run that does much: it calls a tool, and is told what came of it, again and again."""
    stream, run = ids.session_stream(key), "run-0"
    yield Told(stream, opening(key), START_MS)
    asked = saying(key, "ask", _LINE).message
    queued = RunQueued(run_id=run, session_id=session_id(key), step="message", message=asked)
    yield Told(stream, queued, START_MS)
    yield Told(stream, RunStarted(run_id=run, attempt=1, context_hash="0" * 64), START_MS)
    for number in range(events - 3):
        time = START_MS + number * 800
        said = Message(
            id=f"said-{number}", role="assistant", content=f"{number}: {_LINE}", timestamp=time, run_id=run
        )
        yield Told(stream, MessageRecorded(session_id=session_id(key), message=said), time)
    ended = START_MS + events * 800
    yield Told(stream, RunCompleted(run_id=run, attempt=1, text=_LINE), ended)


@contextmanager
def served(path: Path) -> Generator[str]:
    """Serve a log that is only read; yield the address that lets in once. Its views are built first, as a host's are."""
    with open_log(str(path), inline=inline_views()):
        pass
    ready = Queue[str]()
    log = open_log(str(path), read_only=True, inline=inline_views())
    config = load_config({}).config
    reader = Reader(log, config=lambda: config, clock=SystemClock())
    serving = threading.Thread(
        target=lambda: debug_alone(
            lambda _progress: nullcontext((reader, None)),
            listen("127.0.0.1", 0),
            ready=lambda address, word: ready.put(f"{address}#token={word}"),
        ),
        daemon=True,  # it ends with the process that measures
    )
    serving.start()
    yield ready.get(timeout=60)


@contextmanager
def own_time(page: Page) -> Generator[list[float]]:
    """Yield a list that has, afterwards, the milliseconds of processor time that the page's thread took: others' load is not in it."""
    spent: list[float] = []
    asked = page.context.new_cdp_session(page)
    asked.send("Performance.enable", {"timeDomain": "threadTicks"})

    def taken() -> float:
        metrics: Any = asked.send("Performance.getMetrics")["metrics"]
        return next(float(one["value"]) * 1000 for one in metrics if one["name"] == "TaskDuration")

    before = taken()
    yield spent
    spent.append(taken() - before)
    asked.detach()


def _opened(page: Page, address: str, path: str, drawn: str) -> float:
    """Return the milliseconds until something is drawn on a page of whoever is in already."""
    base, _, word = address.partition("#")
    if not page.url.startswith(base):
        page.goto(f"{base}/debug/settings#{word}")
        page.locator("tbody tr").first.wait_for(timeout=600_000)
    page.goto("about:blank")
    page.goto(f"{base}/debug/{path}", wait_until="commit")
    taken: Any = page.evaluate(
        """async drawn => { while (!document.querySelector(drawn)) await new Promise(requestAnimationFrame); return performance.now(); }""",
        drawn,
    )
    return float(taken)


def _figure(name: str, milliseconds: float) -> Figure:
    return Figure(benchmark="browser", name=name, value=milliseconds, unit="ms")
