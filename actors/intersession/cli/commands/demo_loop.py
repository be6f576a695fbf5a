"""`intersession demo --loop`: plays the demo many times, and says what memory, threads and files come to."""

import resource
import threading
import time
from pathlib import Path
from typing import Final

from intersession.cli.commands.demo_agents import host
from intersession.cli.commands.demo_play import play_round
from intersession.cli.shell import Answer, Screen
from intersession_actors.channels import Channel
from intersession_actors.disclosure import redact_raw
from intersession_events.plain_json import JsonObject
from intersession_events.stores import located
from intersession_projections.tailed_views import take_in

_MIB: Final = 1024 * 1024
_GROUPS: Final = 50
"""How many groups the people of a loop speak in, one after the other."""


def looped(url: str, rounds: int) -> Answer:
    """Play it many times, with people in groups that take turns, and measure the process when it has warmed up and after each quarter.

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
