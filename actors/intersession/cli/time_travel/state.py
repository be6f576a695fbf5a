"""`intersession state`: everything at a place of the log."""

from typing import cast

from intersession.cli.host.verb_call import VerbCall, asks
from intersession.cli.shell.answer import Answer
from intersession.cli.shell.terminal import Screen, one_line, safe
from intersession.cli.story.names import Names, names_of
from intersession.cli.story.printing import show_message
from intersession.cli.time_travel.diff import change_in_words
from intersession.cli.time_travel.show import At, show_place
from intersession_actors.hindsight.debugger.answers import StateAnswer
from intersession_actors.hindsight.debugger.state import ChangesAnswer
from intersession_actors.hindsight.debugger.verbs.verbs import STATE
from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts.reasons import counted


@asks(STATE, of="KEY|RUN", forks=["of", "at", "from", "to"], options={"at": At})
def state(asked: VerbCall[StateAnswer | ChangesAnswer]) -> Answer:
    """Show everything as it stood at a place of the log.

    With --from and --to, what differs between two. Sessions with their transcripts, how far each run,
    exchange and spawn had got, what was open, the configuration in force. A place is always after the event
    that it names; what comes next stands beside it.
    """
    with asked.answered() as (found, view):
        names = names_of(view.log, found)
        value: JsonObject = {**found}
    if "changes" in value:
        return Answer(value, lambda screen: _show_changes(screen, cast("ChangesAnswer", value), names))
    return Answer(value, lambda screen: _show(screen, cast("StateAnswer", value), names))


def _show(screen: Screen, found: StateAnswer, names: Names) -> None:
    show_place(screen, found["place"], found["next"])
    for session in found["sessions"]:
        screen.line()
        screen.one_line(safe(session["key"], "bold"), "  ", safe(_about(session), "dim"))
        if "earlier" in session:
            screen.dim("  … older messages are left out (--messages)")
        for message in session["transcript"]:
            show_message(screen, message, indent=2, briefly=True)
    screen.line()
    for exchange in found["exchanges"]:
        between = f"{names.of(exchange['requester'])} → {names.of(exchange['target'])}"
        turns = f"{exchange['turns']} of {counted(exchange['maxTurns'], 'turn')}"
        screen.one_line(f"exchange {exchange['exchangeId']}  {between}  {turns}, {_how(exchange)}")
    for spawn in found["spawns"]:
        between = f"{names.of(spawn['requester'])} → {names.of(spawn['child'])}"
        screen.one_line(f"spawn {spawn['spawnId']}  {between}  {_how(spawn)}")
    for run in found["runs"]:
        turn = f" {run['turn']}" if "turn" in run else ""
        screen.one_line(
            f"run {run['runId']}  {names.of(run['sessionKey'])}  {run['step']}{turn}: {run['status']}{_frozen(run)}"
        )
    for delivery in found["deliveries"]:
        how = f"{delivery['state']}{_frozen(delivery)}"
        screen.one_line(f"delivery {delivery['deliveryId']}  {delivery['channel']}  {how}")
    if "more" in found:
        screen.dim(f"… older {', '.join(found['more'])} are left out (--limit)")
    opened = found["open"]
    open_ = {
        "run": opened["runs"],
        "exchange": opened["exchanges"],
        "spawn": opened["spawns"],
        "outgoing text": opened["deliveries"],
    }
    parts = ", ".join(counted(len(ids), what) for what, ids in open_.items() if ids)
    screen.dim(f"open: {parts or 'nothing'}")


def _about(session: JsonObject) -> str:
    parts = [session["runState"], session.get("model"), session.get("label")]
    if session["queued"]:
        parts.append(f"{session['queued']} waiting")
    if session["sendPolicy"]["action"] == "deny":
        parts.append(f"words stay inside ({session['sendPolicy']['rule']})")
    if "archived" in session:
        by = f" by {session['archivedBy']}" if "archivedBy" in session else ""
        parts.append(f"archived ({session['archived']}{by})")
    return ", ".join(part for part in parts if part)


def _frozen(one: JsonObject) -> str:
    return ", FROZEN in this fork" if one.get("frozen") else ""


def _how(flow: JsonObject) -> str:
    if "held" in flow:
        held = flow["held"]
        return f"HELD, as {held['by']} wants: {one_line(held['text'], 60)}"
    if flow["state"] == "open":
        phase = flow.get("phase", "open")
        return (f"{phase}: waits for run {flow['awaits']}" if "awaits" in flow else phase) + _frozen(flow)
    reasons = [flow.get("loopEnd"), flow.get("closeReason")]
    return ", ".join(reason for reason in reasons if reason)


def _show_changes(screen: Screen, found: ChangesAnswer, names: Names) -> None:
    show_place(screen, found["from"])
    show_place(screen, found["to"])
    for change in found["changes"]:
        path, how = change_in_words(change, names)
        screen.one_line(safe(path, "bold"), f"  {how}")
    screen.dim(counted(len(found["changes"]), "difference") if found["changes"] else "no difference")
