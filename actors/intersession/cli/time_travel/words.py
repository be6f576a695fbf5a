"""`intersession search` and `origin`: where a text was said, who said it first, and how it reached others."""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Final

from cyclopts import Parameter
from rich.text import Text

from intersession.cli.host.verb_call import VerbCall, asks, at_most
from intersession.cli.shell.answer import OK, REFUSED, Answer
from intersession.cli.shell.terminal import Screen, one_line, safe
from intersession.cli.shell.times import clock, day, moment
from intersession.cli.story.names import Names, names_of
from intersession.cli.time_travel.show import At
from intersession_actors.hindsight.debugger.origin import HopAnswer, OriginAnswer, SeenAnswer, SeenWhen
from intersession_actors.hindsight.debugger.search import SearchAnswer
from intersession_actors.hindsight.debugger.verbs.verbs import ORIGIN, SEARCH
from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts import Route
from intersession_events.facts.delivery import STATES
from intersession_events.facts.reasons import counted
from intersession_projections.questions.origins.holders import Way

_WORDS = Annotated[tuple[str, ...], Parameter(name="WORDS", help="What to search for.")]
_LIMIT = at_most("At most this many, the newest. Default: 50.", 1000)
_NO_INDEX = (
    "all events were looked through: there is no index of the words. A host keeps one, and `intersession rebuild search` "
    "makes one, if SQLite has FTS5."
)


@asks(SEARCH, words="WORDS", options={"words": _WORDS, "limit": _LIMIT})
def search(asked: VerbCall[SearchAnswer]) -> Answer:
    """Find where words were said, in all transcripts and events.

    Newest first. All of the words have to be there, in any case and order; `word*` is any word that begins so. An index
    of the words is kept in `<store>.views`, and brought up to date first; where there is none, the events are looked through,
    which takes some three seconds for a million. What was said is in a transcript, and in the exchange or the spawn it belongs
    to: `--kind run_queued` shows what agents were asked, `--kind run_completed` what they answered.
    """
    asked.given["words"] = " ".join(asked.given["words"])
    with asked.view() as view:
        with (
            Screen().progress("Reading the words") as progress,
            view.reader.full_text.up_to_date(progress, for_all=True),
        ):
            pass
        found = asked.of(view)
        names = names_of(view.log, [hit["sessionKey"] for hit in found["hits"]])
    return Answer(dict(found), lambda screen: _show(screen, found, names))


def _show(screen: Screen, found: SearchAnswer, names: Names) -> None:
    for hit in found["hits"]:
        where = hit["kind"] if hit["sessionKey"] is None else f"{names.of(hit['sessionKey'])}  {hit['kind']}"
        run = "" if hit["runId"] is None else f"  run {hit['runId']}"
        screen.one_line(safe(f"#{hit['position']}  {moment(hit['timeMs'])}  {where}{run}", "dim"))
        screen.line("  ", hit["snippet"])
    count = counted(len(found["hits"]), "hit") if found["hits"] else "no hits"
    screen.dim(count)
    if not found["indexed"]:
        screen.dim(_NO_INDEX)
    screen.more(found["cursor"])


_WAYS: Final[Mapping[Way, str]] = {
    "told": "what it was told",
    "own": "its own words",
    "tool": "a tool",
    "search": "a look at sessions",
    "inherited": "the transcript that it began with",
    "system": "the system",
    "summary": "a summary",
    "line": "a line of its import that is no message",
    "sent": "a channel",
}
_SEEN = at_most("With --seen: at most this many runs. Default: 50.")
_TEXT = 160
_BEFORE = 40
_HOW = {
    "person": "says",
    "agent": "says",
    "sessions_send": "tells",
    "sessions_spawn": "hands over",
    "subagents": "steers with",
    "tool": "gives",
    "delivery": "sends",
    "system": "asks",
}
_FOUND = {
    "exact": "",
    "folded": "nobody said it like that; in other case or white space:",
    "shared": "nobody said all of it; the longest part that somebody said:",
}


@asks(ORIGIN, words="PHRASE", forks=["run", "at"], options={"at": At, "limit": _SEEN})
def origin(asked: VerbCall[OriginAnswer]) -> Answer:
    """Say who said some words first, and how they reached others.

    The first message of the log that holds them, and all others that do, over all sessions, tools and channels; behind the
    arrow stands where each had them from. Words that nobody said so are looked for in any case and white space, then by the
    longest run of them that anybody said. The exit code is 1 where nobody did.
    """
    with asked.answered() as (found, view):
        names = names_of(view.log, found)
    code = OK if found["first"] is not None else REFUSED
    within = "run" in asked.given
    return Answer(dict(found), lambda screen: _show_origin(screen, found, names, within=within), code)


def _show_origin(screen: Screen, found: OriginAnswer, names: Names, *, within: bool) -> None:
    if found["first"] is None:
        screen.line("Nobody said that." + _up_to(found, within=within))
    else:
        _show_hops(screen, names, found, found["first"], within=within)
    if "seen" in found and (found["first"] is not None or found.get("sessions")):
        _show_seen(screen, names, found["seen"], found.get("cursor"))
        _show_recipients(screen, names, found)


def _show_hops(screen: Screen, names: Names, found: OriginAnswer, first: HopAnswer, *, within: bool) -> None:
    if found["match"] is not None and _FOUND[found["match"]]:
        screen.one_line(safe(f"{_FOUND[found['match']]} ", "yellow"), found["words"] or "")
    screen.line(safe(f"first said, {day(first['timeMs'])} (times are UTC)", "bold"))
    words = found["words"] or ""
    _line(screen, names, first, words)
    if found["hops"]:
        screen.line(safe("from there", "bold"))
    for hop in found["hops"]:
        _line(screen, names, hop, words)
    screen.dim(f"{counted(len(found['hops']), 'hop')}.{_up_to(found, within=within)}")


def _show_seen(screen: Screen, names: Names, runs: Sequence[SeenAnswer], cursor: str | None) -> None:
    screen.line(safe("given to", "bold"))
    for run in runs:
        tools = f", from {', '.join(run['tools'])}" if "tools" in run else ""
        summarises = "; its answer is a summary of that" if "summarises" in run else ""
        run_id = f"run {run['runId']}, attempt {run['attempt']}"
        which = "an imported answer" if "imported" in run else run_id
        screen.one_line(
            safe(f"  #{run['position']}  {clock(run['timeMs'])}  ", "dim"),
            safe(names.of(run["sessionKey"]), "bold"),
            f" in {which}: {', '.join(run['within'])}{tools}{summarises}",
        )
    imported = [run["runId"] for run in runs if "imported" in run]
    number = counted(len(runs) - len(imported), "run")
    if imported:
        shown = f"`intersession lens '{imported[0]}'` shows what one was given"
        number = f"{number}, {counted(len(imported), 'imported answer')}; {shown}"
    screen.dim(number)
    screen.more(cursor)


def _show_recipients(screen: Screen, names: Names, found: OriginAnswer) -> None:
    """Show the sessions, the chats and the looks, which the first page has."""
    if sessions := found.get("sessions"):
        screen.line(safe("in the history of", "bold"))
    for each in sessions or ():
        tools = f" ({', '.join(each['tools'])})" if "tools" in each else ""
        imported = "; imported" if "imported" in each else ""
        screen.one_line(
            _span(each),
            safe(names.of(each["sessionKey"]), "bold"),
            f": by {', '.join(_WAYS[way] for way in sorted(each['ways'], key=_BY_TOOLS.__contains__))}{tools}{imported}",
        )
    if any("imported" in each for each in sessions or ()):
        screen.dim("imported: what agents there were given besides messages is not known")
    if outside := found.get("outside"):
        screen.line(safe("sent to", "bold"))
    for chat in outside or ():
        stand = ", ".join(f"{count} {STATES[state]}" for state, count in chat["states"].items())
        whose = ", ".join(map(names.of, chat["sessions"]))
        screen.one_line(_span(chat), safe(_place(chat["route"]), "bold"), f" from {whose}: {stand}")
    if looks := found.get("looks"):
        screen.line(safe("these sessions were looked at, and perhaps the words", "bold"))
    for look in looks or ():
        shown = ", ".join(map(names.of, look["sessions"]))
        screen.one_line(
            safe(f"  #{look['position']}  {clock(look['timeMs'])}  ", "dim"),
            f"{look['who']} by {look['call']}: {shown}",
        )
    if "leftOut" in found:
        screen.dim(f"{found['leftOut']} more of these are left out.")


def _span(found: SeenWhen) -> Text:
    first, last = found["first"], found["last"]
    until = "" if first == last else f" to #{last['position']}  {clock(last['timeMs'])}"
    return safe(f"  #{first['position']}  {clock(first['timeMs'])}{until}  ", "dim")


def _place(route: JsonObject) -> str:
    return Route(
        channel=route["channel"], to=route["to"], account=route.get("account"), thread=route.get("thread")
    ).text


def _up_to(found: OriginAnswer, *, within: bool) -> str:
    cut, first = found["cut"], found["first"]
    if cut is None:
        return ""
    if within and first is not None and first["position"] < cut:
        return f" Others before #{cut} are left out."
    part = f"from #{cut} on" if within else f"up to #{cut}"
    return f" Only the log {part} was looked through."


_BY_TOOLS: Final = frozenset[Way](("tool", "search"))
"""They are told last, before the names of the tools."""


def _line(screen: Screen, names: Names, hop: HopAnswer, words: str) -> None:
    writer = f", in the words of {hop['editedBy']}" if "editedBy" in hop else ""
    cause = "" if hop["cause"] is None else f"  ← #{hop['cause']}"
    screen.one_line(
        safe(f"  #{hop['position']}  {clock(hop['timeMs'])}  ", "dim"),
        safe(names.between(hop["who"], hop["to"]), "bold"),
        safe(f" {_HOW[hop['via']]}{writer}: "),
        one_line(_around(hop, words), _TEXT),
        safe(cause, "dim"),
    )


def _around(hop: HopAnswer, words: str) -> str:
    """Return the part of a hop's text that has the words: of what a tool gave, the line they are in."""
    folded = re.compile(r"\s+".join(map(re.escape, words.split())), re.IGNORECASE)
    text = hop["text"]
    if hop["via"] == "tool":
        text = next((line for line in text.split("\n") if folded.search(line)), text)
    found = folded.search(text)
    begins = 0 if found is None or found.end() <= _TEXT else max(0, found.start() - _BEFORE)
    return f"…{text[begins:]}" if begins else text
