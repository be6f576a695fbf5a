"""`intersession replay --sealed`: a run, or a whole log, decided again by today's rules and held against what was recorded."""

from typing import cast

from intersession.cli.host import reader_of
from intersession.cli.shell import NOT_VERIFIED, OK, Answer, Reading, Screen, safe
from intersession_actors.debugger import Debugger, View
from intersession_actors.replaying import Replayed
from intersession_events.plain_json import JsonObject
from intersession_projections.wording import counted


def replay_sealed(reading: Reading, run: str | None) -> Answer:
    """Replay a run (None: the whole log), and say whether all came out as it was recorded."""
    with reader_of(reading) as reader, Screen().progress("Replaying") as progress:
        found = Debugger(View(reader)).replay(run, progress=progress)
    value = cast("JsonObject", {**found})
    return Answer(value, lambda screen: _show(screen, found), OK if found["same"] else NOT_VERIFIED)


def _show(screen: Screen, found: Replayed) -> None:
    what = "the whole log" if found["run"] is None else f"run {found['run']}"
    differs = found["firstDifference"]
    style, word = ("bold green", "same") if differs is None else ("bold red", "different")
    screen.line(
        safe(f"{word}: ", style),
        f"{what}, {counted(found['events'], 'event')}: {found['decided']} decided again, {found['given']} given as they were",
    )
    if found["walked"]:
        screen.line("  walked: another system decided some of it, and that can't be decided again")
    for times in found["notJudged"]:
        screen.line(f"  not judged: {times}")
    if differs is None:
        return
    screen.line(f"  {differs['text']}")
    for field in differs["fields"]:
        screen.line(safe(f"  {field['path']}", "bold"))
        screen.line(f"    recorded  {field['recorded']!r}")
        screen.line(f"    now       {field['now']!r}")
