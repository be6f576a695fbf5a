"""`intersession lens`: the exact input of an agent in an attempt of a run."""

import json

from intersession.cli.host.verb_call import VerbCall, asks
from intersession.cli.shell.answer import NOT_VERIFIED, OK, Answer
from intersession.cli.shell.terminal import Screen, safe
from intersession.cli.shell.times import clock
from intersession.cli.story.printing import show_message
from intersession.cli.time_travel.show import show_place
from intersession_actors.hindsight.debugger.lens import LensAnswer
from intersession_actors.hindsight.debugger.verbs.verbs import LENS
from intersession_events.facts.reasons import counted


@asks(LENS, run="RUN", forks=["run", "than"])
def lens(asked: VerbCall[LensAnswer]) -> Answer:
    """Show exactly what an agent was given in a run.

    System context, the end of the transcript, message, tools, model, deadline. It is rebuilt from the log and
    held against the hash that was recorded when the attempt began. Exit code 4 says that the log no longer
    gives what was recorded. Of an import, it is what the session had been told, as its record has it.
    """
    with asked.answered() as (found, _):
        code = OK if found["asRecorded"] or "imported" in found else NOT_VERIFIED
        return Answer(dict(found), lambda screen: _show_lens(screen, found), code)


def _show_lens(screen: Screen, found: LensAnswer) -> None:
    show_place(screen, found["place"])
    named = "" if found["run"].startswith("#") else f"run {found['run']}, attempt {found['attempt']}, "
    screen.line(safe(f"{named}in {found['sessionKey']}", "dim"))
    if "imported" in found:
        screen.line(safe(found.get("problem", ""), "yellow"))
    elif found["asRecorded"]:
        screen.line(safe(f"as recorded: {found['contextHash']}", "green"))
    else:
        screen.line(safe(f"not as recorded: {found.get('problem', 'the hashes differ')}", "red"))
        screen.line(
            safe(f"  recorded {found['contextHash']}, rebuilt {found['rebuiltHash'] or 'nothing'}", "dim")
        )
    if found["leftOut"] is not None:
        screen.line(safe(found["leftOut"]["told"], "yellow"))
    if "prompt" in found:
        screen.line()
        screen.indented(found["prompt"], 0)
        return
    if "rendered" in found:
        screen.line()
        screen.indented(json.dumps(found["rendered"], ensure_ascii=False, indent=2), 0)
        return
    _show_parts(screen, found)


def _show_parts(screen: Screen, found: LensAnswer) -> None:
    if "fresh" in found:
        _head(screen, f"what the other run had not seen: {counted(len(found['fresh']), 'message')}")
        if found["fresh"][:1] == found["messages"][:1]:  # more of it may stand before
            _show_more(screen, found)
        for message in found["fresh"]:
            show_message(screen, message, indent=2)
        return
    if "summary" in found:
        summary = found["summary"]
        _head(
            screen,
            f"summary of the first {counted(summary['messages'], 'message')}, by run {summary['run']}",
        )
        screen.indented(summary["text"], 2)
    _head(screen, "system context")
    screen.indented(found["systemContext"] or ("(not recorded)" if "imported" in found else "(none)"), 2)
    _head(screen, f"transcript: {counted(len(found['messages']), 'message')}{_of_all(found)}")
    _show_more(screen, found)
    for message in found["messages"]:
        show_message(screen, message, indent=2)
    _head(screen, "message to answer")
    if found["message"] is not None:
        show_message(screen, found["message"], indent=2)
    if found["partial"]:
        _head(screen, "done since" if "imported" in found else "what the attempt before had done")
        for message in found["partial"]:
            show_message(screen, message, indent=2)
    if "imported" in found:
        _head(screen, f"model of the answer: {found['model'] or 'not recorded'}")
        return
    tools = found["tools"]
    named = "not recorded" if tools is None else ", ".join(str(tool["title"]) for tool in tools) or "none"
    _head(screen, f"tools: {named}")
    settings = {"model": found["model"], "thinking": found["thinking"], **found["settings"]}
    asked = ", ".join(f"{name}: {value}" for name, value in settings.items() if value)
    screen.line(safe(f"asked for: {asked or 'nothing, the agent has its own model'}", "dim"))
    until = "no deadline" if found["deadlineMs"] is None else f"deadline {clock(found['deadlineMs'])} UTC"
    screen.line(safe(until, "dim"))


def _of_all(found: LensAnswer) -> str:
    if "before" not in found or "total" not in found:
        return ""
    return f", {found['before'] + 1} to {found['before'] + len(found['messages'])} of {found['total']}"


def _show_more(screen: Screen, found: LensAnswer) -> None:
    before = found.get("before")
    if before:
        words = f"{counted(before, 'message')} before: --before {before}; whole: --all"
        screen.line(safe(f"  {words}", "dim"))


def _head(screen: Screen, words: str) -> None:
    screen.line()
    screen.line(safe(words, "bold"))
