"""`intersession demo`: runs a real exchange on a real log, and reads it back from there."""

import io
import resource
import shlex
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from intersession.cli.commands.demo_agents import GREETING, ORDER, QUESTION, host
from intersession.cli.commands.replay import Story, find_subject
from intersession.cli.shell.answer import Answer, Json, UsageError
from intersession.cli.shell.terminal import Screen, safe
from intersession_actors.assembly.system.system import SessionSystem
from intersession_actors.calls.service.reader import Reader
from intersession_actors.outside.channels.channels import Channel, console_channel
from intersession_actors.rules.config.config import load_config
from intersession_actors.rules.disclosure.redaction import redact_raw
from intersession_actors.running.runtime.clock import SystemClock
from intersession_events.basics.errors import NoSuchStore
from intersession_events.basics.plain_json import JsonObject
from intersession_events.stores.opened import Located, located, open_log
from intersession_events.stores.url import VARIABLE
from intersession_projections.views.flows.rows import Position
from intersession_projections.views.inline_views import inline_views
from intersession_projections.views.tailed_views import take_in

_MOST: Final = 50
_INTRO: Final = (
    "Two agents, `main` and `research`, each in a session of its own. Ada asks main something on Telegram; main asks",
    "research with sessions_send. The two then talk it over in turns, and research announces the result to its lab on",
    "Discord. At last Ada orders some work, which main gives to a sub-agent with sessions_spawn. No model is involved.",
)
_CHAPTERS: Final = (
    "Ada asks, and main asks research while she waits",
    "What main and research said to each other",
    "Ada orders some work",
    "The sub-agent does it, and its result is announced",
)


def demo(
    *,
    store: str | None = None,
    loop: int = 0,
    json: Json = False,
) -> Answer:
    """Let two agents talk, and read it back from the log.

    From a person's message to announces on channels. No key and no network is needed. The log stays where it
    is, and the last lines say what to try with it.

    Args:
        store: Where the demo's log is made; it must not be there yet. Default: a temporary file.
        loop: Play it this many times, as fast as it goes, and say what memory, threads and files came to.
    """
    del json
    if loop < 0:
        raise UsageError(f"--loop: {loop} is below 0, give how many times")
    url = store or f"sqlite:///{Path(tempfile.mkdtemp(prefix='intersession-demo-')) / 'demo.db'}"
    where = located(url)
    shown = url if where.is_file else where.shown
    if _is_there(where):
        raise UsageError(f"--store: {shown} is there already, the demo wants a log of its own")
    if loop:
        return looped(url, loop)
    heard = io.StringIO()
    flows = _play(url, heard)
    config = load_config(None).config
    with open_log(url, read_only=True, inline=inline_views()) as log:
        reader = Reader(log, config=lambda: config, clock=SystemClock())
        stories = [Story.of(reader, find_subject(reader, flow)) for flow in flows]
        value = {
            "store": shown,
            "logId": log.log_id,
            "position": log.head(),
            "heard": heard.getvalue().splitlines(),
            "replay": [
                {"title": title, **story.value(steps=False)}
                for title, story in zip(_CHAPTERS, stories, strict=True)
            ],
            "tryNext": _commands(shown, flows),
        }
    return Answer(value, lambda screen: _show(screen, value, stories))


def _is_there(store: Located) -> bool:
    if store.is_file:
        return Path(store.place).exists()
    try:
        open_log(store.url, read_only=True).close()
    except NoSuchStore:
        return False
    return True


def _play(url: str, heard: io.StringIO) -> list[str]:
    """Let it happen; return the ids of what happened, in order."""
    with host(url, channel=console_channel(heard)) as system:
        asked, ordered = play_round(system)
        flows = system.service.flows
        played = Position(0, system.log.head())
        exchanges = [flow.exchange_id for flow in flows.exchanges_at(played, _MOST)]
        spawns = [flow.spawn_id for flow in flows.spawns_at(played, _MOST)]
    return [asked, *exchanges, ordered, *spawns]


def _commands(url: str, flows: list[str]) -> list[str]:
    """Return commands that work on the file the demo left."""
    _, exchange, *_ = flows
    return [
        f"export {VARIABLE}={shlex.quote(url)}",
        "intersession sessions",
        "intersession runs",
        f"intersession replay {exchange} --steps",
        f"intersession why {exchange}",
        f"intersession lens {exchange}@reply",
        'intersession origin "3.5 tonnes"',
        "intersession deliveries --session main",
        "intersession replay main",
        "intersession history agent:research:main --as-of 12",
        "intersession verify",
        'intersession send "And on Sunday?" --agent research --agents intersession.cli.commands.demo_agents:host',
    ]


def _show(screen: Screen, value: JsonObject, stories: list[Story]) -> None:
    for line in (" ".join(_INTRO),) if screen.is_terminal else _INTRO:  # a terminal breaks lines itself
        screen.line(line)
    screen.line()
    screen.line(safe("What people saw on their channels", "bold"))
    for line in value["heard"]:
        screen.line("  ", line)
    screen.line()
    screen.line(
        safe("All of it, read back from the log", "bold"),
        safe(f"  {value['position']} events in {value['store']}", "dim"),
    )
    screen.dim("#12 is a place in the log, ← #12 what led to it.")
    for number, (title, story) in enumerate(zip(_CHAPTERS, stories, strict=True), 1):
        screen.line()
        screen.line(safe(f"{number}. {title}", "bold underline"))
        story.show(screen)
    screen.line()
    screen.line(safe("Try next", "bold underline"))
    for command in (*_findable(), *value["tryNext"]):
        screen.to_copy("  ", command)


def _findable() -> tuple[str, ...]:
    """Return what has a shell find the command by its name, where it was called by its path and no shell does."""
    beside = Path(sys.executable).with_name("intersession")
    if shutil.which(beside.name) is not None or not beside.exists():
        return ()
    return (f'export PATH={shlex.quote(str(beside.parent))}:"$PATH"',)


_MIB: Final = 1024 * 1024
_GROUPS: Final = 50
"""How many groups the people of a loop speak in, one after the other."""


def looped(url: str, rounds: int) -> Answer:
    """Play the demo many times, with people in groups that take turns, and measure the process after warming up and after each quarter.

    Sessions sleep and sub-agents are archived soon, so that what is let go of by then is let go of meanwhile.
    """
    began = time.monotonic()
    points = {max(1, rounds // 10), *(rounds * quarter // 4 for quarter in range(1, 5))} - {0}
    measured: list[JsonObject] = []
    # A channel that kept what it is given would be measured, too.
    nowhere = Channel(deliver=lambda _: None)
    with Screen().progress("Playing") as progress, host(url, channel=nowhere, in_fast_motion=True) as system:
        for number in range(1, rounds + 1):
            name = f"ada{number % _GROUPS}"
            play_round(system, {"chat_id": f"group-{name}", "chat_type": "group", "sender": name})
            progress(number, rounds)
            if number in points:
                measured.append({"round": number, **_of_process()})
        take_in(system.log, redact_raw)
        position, log_id = system.log.head(), system.log.log_id
    store = located(url)
    value: JsonObject = {
        "store": store.shown,
        "logId": log_id,
        "position": position,
        "rounds": rounds,
        "seconds": round(time.monotonic() - began, 3),
        "storeBytes": Path(store.place).stat().st_size if store.is_file else None,
        "measured": measured,
    }
    return Answer(value, lambda screen: _show_loop(screen, value))


def _of_process() -> JsonObject:
    """Return what this process holds: resident memory, where the system tells, its threads, and its open files."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        files: int | None = len(list(Path("/proc/self/fd").iterdir()))
    except OSError:
        return {"memoryBytes": None, "threads": threading.active_count(), "files": None}
    memory = pages * resource.getpagesize()
    return {"memoryBytes": memory, "threads": threading.active_count(), "files": files}


def _show_loop(screen: Screen, value: JsonObject) -> None:
    size = "" if value["storeBytes"] is None else f", {value['storeBytes'] / _MIB:.1f} MiB"
    screen.line(
        f"{value['rounds']} rounds in {value['seconds']:.1f} s: {value['position']} events{size} in {value['store']}"
    )
    for held in value["measured"]:
        memory = (
            "memory not known" if held["memoryBytes"] is None else f"{held['memoryBytes'] / _MIB:.1f} MiB"
        )
        files = "" if held["files"] is None else f", {held['files']} open files"
        screen.line(f"  after round {held['round']}: {memory}, {held['threads']} threads{files}")


_WAIT_S: Final = 20.0
_ADA: Final = {"chat_id": "ada", "sender": "ada"}


def play_round(system: SessionSystem, chat: Mapping[str, str] = _ADA) -> tuple[str, str]:
    """Play it once, with one person in a chat; return the ids of the runs that answered."""
    _say(system, channel="discord", chat_id="lab", sender="ben", text=GREETING, agent_id="research")
    asked = _say(system, channel="telegram", text=QUESTION, **chat)
    _until_over(system)
    ordered = _say(system, channel="telegram", text=ORDER, **chat)
    _until_over(system)
    return asked, ordered


def _say(system: SessionSystem, **message: Any) -> str:  # the arguments of `inbound`
    answer = system.inbound(wait=_WAIT_S, **message)
    run_id = answer.get("runId")
    if answer["status"] != "ok" or run_id is None:
        raise RuntimeError(f"the demo's own agents failed: {answer}")
    return run_id


def _until_over(system: SessionSystem) -> None:
    """Wait until nothing is open any more."""
    flows = system.service.flows
    for _ in system.follow(max(0, system.log.head() - 1), timeout=_WAIT_S):
        if not (flows.open_exchanges() or flows.open_spawns() or flows.open_deliveries()):
            return
