"""What a turn, a waited send and an append cost, on one processor: of any tree, so that two can be measured by turns.

Run as a script it prints the figures of one part for `against`, a line each, of the packages that Python's path names. So
it needs nothing but what a host imports, and, for the appends, the tree's own benchmark of them.
"""

import itertools
import json
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from intersession import MemoryChannel, SessionSystem

TURNS = 7
"""Of an exchange: the run that answers the message, five turns of the loop, and the announce."""
WAIT_S = 120
Rows = Iterator[tuple[str, str, float]]
"""The name of a figure, its unit, its value."""

_IMPORTED = """
import sys
import time
began = time.perf_counter()
from intersession import SessionSystem
with SessionSystem(sys.argv[1], agents={"main": lambda turn: "yes"}):
    print(time.perf_counter() - began)
"""


def _names(number: int) -> list[str]:
    return [f"a{each}" for each in range(number)]


@contextmanager
def _system(directory: str, agents: int, turns: int) -> Generator[SessionSystem]:
    """Yield a system of agents that answer at once, for exchanges of so many turns; with none there is no announce either."""
    config = {
        "tools": {"sessions": {"visibility": "all"}, "agentToAgent": {"enabled": True}},
        "agents": {"list": [{"id": name, "default": name == "a0"} for name in _names(agents)]},
        "session": {"agentToAgent": {"maxPingPongTurns": turns, "announce": "routed", "limits": {"runs": 0}}},
    }
    handlers: dict[str, Callable[[Any], str]] = dict.fromkeys(_names(agents), lambda _turn: "It is done.")
    with SessionSystem(
        f"{directory}/log.db", agents=handlers, config=config, channels={"x": MemoryChannel()}
    ) as system:
        for number, name in enumerate(_names(agents) if turns else ()):  # so they have a route to announce to
            system.inbound(
                channel="x", chat_id=str(number), sender="p", text="open", agent_id=name, deliver=False
            )
        _calm(system)
        yield system


def _calm(system: SessionSystem) -> None:
    """Wait until nothing has been recorded for half a second, which every tree can be asked for."""
    over, head, since = time.monotonic() + WAIT_S, -1, time.monotonic()
    while time.monotonic() - since < 0.5:
        if time.monotonic() > over:
            raise RuntimeError(f"not all was over after {WAIT_S} s")
        time.sleep(0.05)
        if system.log.head() != head:
            head, since = system.log.head(), time.monotonic()


def _send(system: SessionSystem, pair: int, times: int) -> None:
    tools = system.tools(f"agent:a{2 * pair}:main")
    arguments = {
        "agentId": f"a{2 * pair + 1}",
        "message": "Is it done?",
        "timeoutSeconds": WAIT_S,
    }
    for _ in range(times):
        answer = tools.call("sessions_send", arguments)
        if answer["status"] != "ok":
            raise RuntimeError(f"the send was not answered: {answer}")


def _together(system: SessionSystem, pairs: int, times: int, *, calm: bool = True) -> None:
    threads = [
        threading.Thread(target=_send, args=(system, pair, times), daemon=True) for pair in range(pairs)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if calm:
        _calm(system)


def _written() -> int:
    """Return how many bytes this process has handed to the disk; 0 where the system does not say."""
    counts = Path("/proc/self/io")
    if not counts.exists():
        return 0
    return next(
        int(line.split()[1]) for line in counts.read_text().splitlines() if line.startswith("write_bytes")
    )


def _stored(directory: str, behind: int) -> tuple[int, int]:
    """Return how many events stand behind a position, and the bytes of all that is stored of them."""
    connection = sqlite3.connect(f"file:{directory}/log.db?mode=ro", uri=True)
    cursor = connection.execute("SELECT * FROM stored_events WHERE rowid > ?", (behind,))
    sizes = [
        sum(len(value) if isinstance(value, str | bytes) else 8 for value in row if value is not None)
        for row in cursor
    ]
    connection.close()
    return len(sizes), sum(sizes)


def turns(pairs: int, exchanges: int) -> Rows:
    """Measure reply-back loops of so many pairs at once: time, events, bytes, and switches of threads, a turn."""
    with tempfile.TemporaryDirectory() as directory, _system(directory, 2 * pairs, 5) as system:
        _together(system, pairs, 1)
        head, written, before = (
            system.log.head(),
            _written(),
            resource.getrusage(resource.RUSAGE_SELF),
        )
        cpu = time.process_time()
        _together(system, pairs, exchanges)
        made = pairs * exchanges * TURNS
        yield f"a turn, {pairs} pairs", "ms cpu", 1000 * (time.process_time() - cpu) / made
        after = resource.getrusage(resource.RUSAGE_SELF)
        switches = after.ru_nvcsw + after.ru_nivcsw - before.ru_nvcsw - before.ru_nivcsw
        number, size = _stored(directory, head)
        yield f"switches of threads a turn, {pairs} pairs", "", switches / made
        if pairs > 1:
            yield "events a turn", "", number / made
            yield "stored of them a turn", "KiB", size / made / 1024
            yield f"written a turn, {pairs} pairs", "KiB", (_written() - written) / made / 1024


def calls(pairs: int) -> Rows:
    """Count the calls of Python's own functions a turn, and the modules of ours that one waited send runs."""
    counter = itertools.count()
    files: set[str] = set()

    def profile(frame: Any, event: str, _arg: Any) -> None:
        if event == "call":
            next(counter)
            files.add(frame.f_code.co_filename)

    threading.setprofile(profile)
    with tempfile.TemporaryDirectory() as directory, _system(directory, 2 * pairs, 5) as system:
        _together(system, pairs, 1)
        before = next(counter)
        _together(system, pairs, 4)
        yield "calls of functions a turn", "", (next(counter) - before) / (pairs * 4 * TURNS)
    with tempfile.TemporaryDirectory() as directory, _system(directory, 2, 0) as system:
        _together(system, 1, 1)
        files.clear()
        _together(system, 1, 1)
        ours = {name for name in files if "/intersession" in name}
        yield "modules run for a waited send", "", len(ours)
    threading.setprofile(None)


def sends(senders: int, times: int) -> Rows:
    """Measure sends that wait for their answer, with no loop behind."""
    with tempfile.TemporaryDirectory() as directory, _system(directory, 2 * senders, 0) as system:
        _together(system, senders, 2)
        cpu = time.process_time()
        _together(system, senders, times, calm=False)
        spent = time.process_time() - cpu
        _calm(system)
    yield f"a waited send, {senders} senders", "ms cpu", 1000 * spent / (senders * times)


def appends(number: int) -> Rows:
    """Measure appends with the views that stand in their transaction, by the tree's own benchmark."""
    from benchmarks.appends import SESSIONS, Sessions  # noqa: PLC0415 - of the tree that is measured
    from benchmarks.logs import open_sessions, session_key  # noqa: PLC0415

    open_log, inline_views = _log_and_views()
    keys = [session_key(each) for each in range(max(SESSIONS))]
    with (
        tempfile.TemporaryDirectory() as directory,
        open_log(f"{directory}/log.db", inline=inline_views()) as log,
    ):
        open_sessions(log, keys)
        for writing in SESSIONS:
            cpu, made = time.process_time(), max(writing, number // (10 if writing == 1 else 1))
            Sessions(log, keys[:writing], made).run()
            yield (
                f"an append with views, {writing} writing",
                "ms cpu",
                1000 * (time.process_time() - cpu) / made,
            )


def _log_and_views() -> tuple[Any, Any]:
    """Return the log and its views, from where the tree that is measured has them."""
    log = _first(
        "intersession_events.stores.sqlite.log", "intersession_events.stores.sqlite", name="SqliteLog"
    )
    views = _first(
        "intersession_projections.views.inline_views",
        "intersession_projections.inline_views",
        "intersession_projections.inline",
        name="inline_views",
    )
    return log, views


def _first(*modules: str, name: str) -> Any:
    for module in modules:
        try:
            return getattr(import_module(module), name)
        except (AttributeError, ModuleNotFoundError):
            continue
    raise LookupError(name)


def awake(sessions: int) -> Rows:
    """Measure the memory of a session that is awake and has nothing to do, by the tree's own benchmark."""
    from benchmarks.actors import measure  # noqa: PLC0415 - of the tree that is measured

    with tempfile.TemporaryDirectory() as directory:
        yield "memory of a session that is awake", "KiB", measure(Path(directory), actors=sessions)[0].value


def imported(times: int) -> Rows:
    """Measure how long it takes until a system is there, from nothing imported."""

    # The first time writes the bytecode, of an unpacked commit too: else it would be compiled each time.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

    def took() -> float:
        with tempfile.TemporaryDirectory() as directory:
            command = [sys.executable, "-c", _IMPORTED, f"{directory}/log.db"]
            made = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
        return float(made.stdout)

    yield "import, and a system made", "s", min(took() for _ in range(times))


def written_lines() -> Rows:
    """Count the lines and the modules of the four packages."""
    import intersession_actors  # noqa: PLC0415 - where the tree stands
    import intersession_events  # noqa: PLC0415
    import intersession_projections  # noqa: PLC0415

    folders = [
        Path(str(each.__file__)).parent
        for each in (
            sys.modules["intersession"],
            intersession_actors,
            intersession_events,
            intersession_projections,
        )
    ]
    modules = [module for folder in folders for module in folder.rglob("*.py")]
    yield "lines", "", sum(len(module.read_bytes().splitlines()) for module in modules)
    yield "modules", "", len(modules)


PARTS: Mapping[str, Callable[[float], Rows]] = {
    "64 pairs": lambda scale: turns(64, _some(6 * scale)),
    "1 pair": lambda scale: turns(1, _some(60 * scale)),
    "64 senders": lambda scale: sends(64, _some(12 * scale)),
    "1 sender": lambda scale: sends(1, _some(200 * scale)),
    "appends": lambda scale: appends(_some(8_000 * scale)),
    "calls": lambda scale: calls(_some(8 * scale)),
    "memory": lambda scale: awake(_some(20_000 * scale)),
    "import": lambda scale: imported(_some(3 * scale)),
    "lines": lambda _scale: written_lines(),
}
"""What can be measured, each in a process of its own: a minute or so at scale 1, all of them."""


def _some(number: float) -> int:
    return max(1, int(number))


if __name__ == "__main__":
    for row in PARTS[sys.argv[1]](float(sys.argv[2])):
        print(json.dumps(row), flush=True)  # noqa: T201 - what `against` reads
