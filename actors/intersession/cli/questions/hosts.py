"""`intersession hosts`: the hosts of a log now, and what they do."""

from collections.abc import Iterator, Sequence
from typing import Final

from intersession.cli.host.verb_call import VerbCall, asks, at_most
from intersession.cli.shell.answer import Answer
from intersession.cli.shell.terminal import Screen, safe
from intersession.cli.shell.times import moment
from intersession_actors.hindsight.debugger.lists.hosts import HostsAnswer, PresentAnswer
from intersession_actors.hindsight.debugger.verbs.verbs import HOSTS
from intersession_events.facts.reasons import counted

_NAMED: Final = 8
_STATES: Final = {
    "waiting": "waits",
    "underWay": "under way",
    "silent": "its worker is silent",
    "answered": "answered",
}


@asks(HOSTS, options={"limit": at_most("At most this many calls, the oldest first. Default: 50.")})
def hosts(asked: VerbCall[HostsAnswer]) -> Answer:
    """Show the hosts of a log now, and what they do.

    Its writer, standbys, workers and doors, and the calls under way. Calls are attempts of runs and of deliveries that workers make for the writer. How many of each agent and channel wait says
    whether more workers are needed. Works on a log that is in use and on one that is not.
    """
    with asked.answered() as (found, _):
        return Answer(dict(found), lambda screen: _show(screen, found))


def _show(screen: Screen, found: HostsAnswer) -> None:
    rows = list(_hosts(found))
    if rows:
        screen.table(["host", "name", "where", "version", "since (UTC)", "does"], rows)
    if found["writer"] is None:
        screen.line(safe("no process writes the log", "yellow"))
    if found["unread"] is not None:
        screen.note(safe(f"note: only the writer is shown: {found['unread']}", "yellow"))
    if found["calls"]:
        screen.line()
        screen.table(
            ["calls of", "waiting", "under way", "parked", "workers"],
            [
                (
                    f"{each['kind']} {each['name']}",
                    str(each["waiting"]),
                    str(each["underWay"] + each["silent"]),
                    str(each["parked"]),
                    _some(each["workers"]) or "none",
                )
                for each in found["calls"]
            ],
        )
    if found["underWay"]:
        screen.line()
        screen.table(
            ["call", "of", "offered (UTC)", "state", "worker"],
            [
                (
                    f"{call['id']} attempt {call['attempt']}",
                    call["sessionKey"] or f"channel {call['name']}",
                    moment(call["offeredMs"]),
                    _STATES[call["state"]],
                    call["worker"] or "",
                )
                for call in found["underWay"]
            ],
        )
    if found["count"] > len(found["underWay"]):
        screen.dim(
            f"the oldest {len(found['underWay'])} of {counted(found['count'], 'call')}; --limit shows more"
        )


def _hosts(found: HostsAnswer) -> Iterator[tuple[str, ...]]:
    writer = found["writer"]
    if writer is not None:
        does = f"epoch {writer['epoch']}{_gateway(writer['gateway']) or ', without a gateway'}"
        yield "writer", "", f"{writer['host']} {writer['pid']}", writer["version"], "", does
    for standby in found["standbys"]:
        yield "standby", *_present(standby), "waits for the log"
    for worker in found["workers"]:
        has = _some([*worker["agents"], *(f"channel {name}" for name in worker["channels"])])
        does = f"{worker['taken']} of {counted(worker['seats'], 'seat')} taken: {has}"
        yield (
            "worker",
            worker["name"],
            worker["host"],
            worker["version"],
            moment(worker["sinceMs"]),
            f"{does}; takes no more" if worker["draining"] else does,
        )
    for door in found["doors"]:
        yield (
            "door",
            *_present(door),
            f"{counted(door['lag'] or 0, 'event')} behind{_gateway(door['gateway'])}",
        )


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_NAMED])
    return shown if len(names) <= _NAMED else f"{shown} and {len(names) - _NAMED} more"


def _gateway(address: str | None) -> str:
    return "" if address is None else f", gateway at {address}"


def _present(host: PresentAnswer) -> tuple[str, str, str, str]:
    return host["name"], f"{host['host']} {host['pid']}", host["version"], moment(host["sinceMs"])
