"""`intersession demo`: runs a real exchange on a real log, and reads all of it back from there."""

import io
import shlex
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from intersession.cli.commands.demo_agents import host
from intersession.cli.commands.demo_loop import looped
from intersession.cli.commands.demo_play import play_round
from intersession.cli.commands.replay import Story
from intersession.cli.shell import Answer, Json, Screen, UsageError, safe
from intersession.cli.story import find_subject
from intersession_actors.channels import console_channel
from intersession_actors.config import load_config
from intersession_actors.runtime import SystemClock
from intersession_actors.service import Reader
from intersession_events.errors import NoSuchStore
from intersession_events.plain_json import JsonObject
from intersession_events.stores import VARIABLE, Located, located, open_log
from intersession_projections.flows import Position
from intersession_projections.inline_views import inline_views

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
    store: Annotated[
        str | None,
        Parameter(help="Where the demo's log is made; it must not be there yet. Default: a temporary file."),
    ] = None,
    loop: Annotated[
        int,
        Parameter(
            help="Play it this many times, as fast as it goes, and say what memory, threads and files came to."
        ),
    ] = 0,
    json: Json = False,
) -> Answer:
    """Let two agents talk, and read it back from the log.

    From a person's message to announces on channels. No key and no network is needed. The log stays where it
    is, and the last lines say what to try with it.
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
    screen.line(safe("#12 is a place in the log, ← #12 what led to it.", "dim"))
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
