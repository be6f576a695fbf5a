"""`intersession why`: the causes and effects of an event, and why things ended, were refused or reached nobody."""

from collections.abc import Iterable
from typing import Annotated, cast, get_args

import msgspec
from cyclopts import Parameter

from intersession.cli.host.verb_call import VerbCall, asks
from intersession.cli.shell.answer import Answer
from intersession.cli.shell.terminal import Screen, one_line, safe
from intersession.cli.shell.times import clock, day, duration, moment
from intersession.cli.story.names import Names, names_of
from intersession_actors.hindsight.debugger.verbs.verbs import WHY
from intersession_actors.hindsight.debugger.why import (
    DescribedEvent,
    EffectAnswer,
    EffectsAnswer,
    RootAnswer,
    WhyAnswer,
)
from intersession_actors.hindsight.explaining.rules.failures import Waiting
from intersession_events.basics.plain_json import JsonObject, JsonValue
from intersession_events.facts.reasons import counted
from intersession_events.stores.opened import has_writer


@asks(WHY, of="EVENT|PLACE", forks=["of"])
def why(
    asked: VerbCall[WhyAnswer | EffectsAnswer],
    *,
    steps: Annotated[
        bool, Parameter(help="Every event, also those by which a text was only carried.")
    ] = False,
) -> Answer:
    """Say why something is so: what led to it, which rule ended it.

    The causes go back over all sessions to a person, a call, a timer or a start. What ended, was refused or reached nobody is
    explained: the rule, what it looked at and who set that, and what would have changed it. Of an exchange, a spawn or a run,
    everything of that is. --forward shows what came of it instead.
    """
    with asked.answered() as (found, view):
        at_work, names = has_writer(view.log), names_of(view.log, found)
        value: JsonObject = {**found}
    if "forward" in asked.given:
        effects = cast("EffectsAnswer", value)
        return Answer(value, lambda screen: show_effects(screen, effects, names, steps=steps))
    answer = cast("WhyAnswer", value)
    return Answer(value, lambda screen: show_why(screen, answer, names, steps=steps, at_work=at_work))


_TEXT = 100
_NOBODY_AT_WORK = (
    "No process writes this log now: nobody is at work on what is not over. The next start goes on with it."
)
_WAITING = frozenset(get_args(Waiting))
_ROOTS = {
    "person": "a person said so",
    "operator": "somebody asked for it, by a command or a method",
    "timer": "its time had come",
    "start": "the system was started",
    "import": "the import shows no more",
    "system": "the system does so of its own accord",
}

_CALLED = {"person": "said so, by a method", "operator": "asked for it, by a command or a method"}
"""What is said of who called, where that is known."""


def show_why(
    screen: Screen, found: WhyAnswer, names: Names, *, steps: bool = False, at_work: bool = True
) -> None:
    """Print an explanation. `at_work`: a process writes the log, and continues open work."""
    if "waits" in found:
        waits, last = found["waits"], found["event"]
        screen.line(safe(f"{waits.get('text', 'It is not over')}.", "bold"), _times(waits, at_work=at_work))
        screen.dim(f"The last of it is #{last['position']}, {moment(last['timeMs'])} UTC.")
    else:
        _line(screen, names, found["event"])
    for explanation in found["explanations"]:
        screen.line()
        _show_explanation(screen, explanation)
    if not at_work and any(one["code"] in _WAITING for one in found["explanations"]):
        screen.line()
        screen.line(safe(_NOBODY_AT_WORK, "yellow"))
    causes = found["causes"] if steps else list(filter(_is_told, found["causes"]))
    if causes:
        screen.line()
        screen.line(safe("because", "bold"))
        for cause in causes:
            _line(screen, names, cause, indent=2)
    root = found["root"]
    screen.line()
    if root is None:
        screen.dim("What it began with is beyond reach.")
        return
    began = f"#{root['position']}  {moment(root['timeMs'])} UTC"
    screen.dim(f"It began with {began}: {_root(names, root)}.")
    if "begun" in found:
        first = found["begun"]
        kind = found["event"]["stream"].partition(":")[0]
        ended = kind if kind in {"exchange", "spawn"} else "run"
        screen.dim(f"The {ended} itself had begun with:")
        _line(screen, names, first, indent=2)


def _times(waits: JsonObject, *, at_work: bool) -> str:
    """Return since when something is waited for, and until when at most, if a process works on it."""
    since, until = waits.get("sinceMs"), waits.get("untilMs") if at_work else None
    times = [
        *(() if since is None else (f"since {moment(since)} UTC",)),
        *(() if until is None else (f"until {moment(until)} UTC at most",)),
    ]
    return f"  {', '.join(times)}"


def _root(names: Names, root: RootAnswer) -> str:
    """Return the beginning of a chain; if a call began it, its caller."""
    caller, kind = root["by"], root["kind"]
    if caller is None or kind not in _CALLED:
        return _ROOTS[kind]
    who = "the operator" if caller == "operator" else names.of(caller)
    return f"{who} {_CALLED[kind]}"


def _show_explanation(screen: Screen, explanation: JsonObject) -> None:
    how = {True: "", False: "; the rules of today say otherwise", None: ""}[explanation["asDecided"]]
    head = f"  #{explanation['position']}  {explanation['rule']} {explanation['code']}{how}"
    screen.one_line(safe(f"why the {explanation['about']}", "bold"), safe(head, "dim"))
    screen.indented(explanation["text"], 2)
    for given in explanation["inputs"]:
        set_at = "" if given.get("position") is None else f", #{given['position']}"
        value = _value_of(given["value"], given.get("unit"))
        screen.one_line(f"    {given['name']} = ", value, safe(f"  ({given['setBy']}{set_at})", "dim"))
    for other in explanation["instead"]:
        verdict = "" if "verdict" not in other else f" → {other['verdict']}"
        change = safe(f"{other['change']}{verdict}")
        screen.indented(safe("otherwise: ", "dim").append_text(change), 4)


def _value_of(value: JsonValue, unit: JsonValue) -> str:
    match value, unit:
        case None, _:
            return "nothing"
        case int(), "time":
            return f"{day(value)} {clock(value)} UTC"
        case int(), "duration":
            return duration(value)
        case str(), _:
            return one_line(value, _TEXT)
        case float(), _:
            return f"{value:g}"
        case _:
            return one_line(msgspec.json.encode(value).decode(), _TEXT)


def show_effects(screen: Screen, found: EffectsAnswer, names: Names, *, steps: bool = False) -> None:
    """Print the effects of something, as a tree."""
    _line(screen, names, found["event"])
    _show_tree(screen, names, found["effects"], steps=steps)
    screen.line()
    opened = ", ".join(f"{one['kind']} {one['id']} (#{one['position']})" for one in found["open"])
    screen.dim(f"still open: {opened or 'nothing'}")


def _show_tree(screen: Screen, names: Names, effects: Iterable[EffectAnswer], *, steps: bool) -> None:
    """Print a tree. What follows from one thing alone stands below it, at the same depth: only branches go in."""
    left = [(effect, 1) for effect in reversed(list(effects))]
    while left:
        effect, level = left.pop()
        if steps or _is_told(effect):
            _line(screen, names, effect, indent=2 * level)
        if effect["more"]:
            more = counted(effect["more"], "more event")
            screen.dim(f"{'  ' * (level + 1)}… {more}: why {effect['position']} --forward")
        below = effect["effects"]
        inner = level + 1 if len(below) > 1 else level
        left.extend((one, inner) for one in reversed(below))


def _is_told(event: DescribedEvent) -> bool:
    return (bool(event["how"]) or event["way"] == "said") and not event["carried"]


def _line(screen: Screen, names: Names, event: DescribedEvent, *, indent: int = 0) -> None:
    head = safe(f"{' ' * indent}#{event['position']}  {clock(event['timeMs'])}  ", "dim")
    who = None if event["who"] is None else names.of(event["who"])
    if event["way"] == "said":
        between, how = safe(names.between(event["who"], event["to"]), "bold"), f" {event['how']}".rstrip()
        screen.one_line(head, between, f"{how}: ", one_line(event["text"], _TEXT))
        return
    words = event["how"] or f"{event['topic'].rpartition('.')[0]}: {one_line(event['text'], _TEXT)}"
    if event["how"][:1].islower():  # what follows is said of whose session it is
        who = names.of(event["stream"].partition(":")[2]) if event["stream"].startswith("session:") else who
    elif event["how"]:
        who = None
    screen.one_line(head, safe(f"{who} ", "bold") if who is not None else "", words)
