"""`intersession fleet`: many logs at once: how each stands, whether each is as it was written, moves and upgrades."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import App, Parameter
from cyclopts.validators import Number

from intersession.cli.shell.answer import (
    NOT_VERIFIED,
    OK,
    REFUSED,
    UNAVAILABLE,
    Answer,
    Json,
    UsageError,
)
from intersession.cli.shell.terminal import Screen, safe
from intersession.cli.shell.times import moment
from intersession.fleet.fleet import AT_ONCE, Fleet, LogUpgraded, LogVerified
from intersession.fleet.metrics import metrics_of
from intersession.fleet.register import write_whole
from intersession.fleet.standing import LogStanding
from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts.reasons import counted
from intersession_events.stores.opened import located

fleet = App(name="fleet", help="Look after many logs: status, proofs, moves and upgrades.")

File = Annotated[
    Path | None,
    Parameter(
        name="--fleet", help="The file that names the logs. Default: $INTERSESSION_FLEET, else ./fleet.json."
    ),
]
Names = Annotated[str, Parameter(name="NAME", help="Only these logs.")]
Name = Annotated[str, Parameter(name="NAME", help="What the log is called in the file.")]
All = Annotated[bool, Parameter(name="--all", help="All logs of the file.")]
AtOnce = Annotated[int, Parameter(help="How many logs at a time, 64 at most.")]


@fleet.command
def add(
    name: Name,
    store: Annotated[str, Parameter(name="STORE", help="The log: FILE, sqlite:///FILE or postgresql://….")],
    /,
    *,
    create: bool = False,
    file: File = None,
    json: Json = False,
) -> Answer:
    """Name a log in the file of the fleet.

    The file keeps its store, which may hold a password, and its id: another log in its place is told.

    Args:
        create: Make a new log where there is none.
    """
    del json
    logs = Fleet(file)
    entry = logs.add(name, store, create=create)
    shown = located(entry.store).shown
    value: JsonObject = {"ok": True, "name": name, "store": shown, "logId": entry.log_id}
    return Answer(
        value, lambda on: on.line(safe("added: ", "bold green"), f"{name}, the log {entry.log_id} at {shown}")
    )


@fleet.command
def remove(name: Name, /, *, file: File = None, json: Json = False) -> Answer:
    """Take a log out of the file of the fleet; the log itself stays as it is."""
    del json
    entry = Fleet(file).remove(name)
    shown = located(entry.store).shown
    value: JsonObject = {"ok": True, "name": name, "store": shown, "logId": entry.log_id}
    return Answer(
        value, lambda on: on.line(safe("removed: ", "bold green"), f"{name}; the log is at {shown}")
    )


@fleet.command(name="list")
def listed(*, file: File = None, json: Json = False) -> Answer:
    """List the logs of the fleet, without asking them."""
    del json
    logs = Fleet(file)
    rows = [(name, entry.log_id, located(entry.store).shown) for name, entry in logs.logs.items()]
    value: JsonObject = {
        "fleet": str(logs.path),
        "logs": [{"name": name, "logId": log_id, "store": store} for name, log_id, store in rows],
    }

    def show(on: Screen) -> None:
        if rows:
            on.table(("LOG", "ID", "STORE"), rows)
        else:
            on.line(f"{logs.path} names no log; `intersession fleet add NAME STORE` does")

    return Answer(value, show)


@fleet.command
def status(
    *names: Names,
    at_once: AtOnce = AT_ONCE,
    metrics: Annotated[
        Path | None,
        Parameter(help="Write it to this file as metrics, too, for Prometheus' textfile collector."),
    ] = None,
    file: File = None,
    json: Json = False,
) -> Answer:
    """Say how each log stands: its writer, place and version, the runs that are open, and what is wrong.

    Each log is asked by itself, without a lock: one that is away stops none of the others. Exit code 1 if one is away, or is
    another log than was added.
    """
    del json
    logs = Fleet(file)
    with Screen().progress("Asking") as progress:
        found = logs.status(names, at_once=at_once, on_done=progress)
    if metrics is not None:
        write_whole(metrics, metrics_of(found), mode=0o644)
    bad = any(one.is_wrong for one in found)
    value: JsonObject = {
        "ok": not bad,
        "fleet": str(logs.path),
        "logs": msgspec.to_builtins(found),
        "problems": dict(Counter(problem.code for one in found for problem in one.problems)),
    }
    return Answer(value, lambda on: _show_status(on, found), REFUSED if bad else OK)


@fleet.command
def verify(
    *names: Names,
    all_: All = False,
    views: Annotated[bool, Parameter(negative="--events-only")] = True,
    trust: list[str] | None = None,
    quorum: Annotated[int, Parameter(validator=Number(gte=0))] = 0,
    at_once: Annotated[
        int | None, Parameter(help="How many logs at a time. Default: as many as processors.")
    ] = None,
    file: File = None,
    json: Json = False,
) -> Answer:
    """Prove that no log of the fleet was changed.

    Each is verified by `intersession verify` in a process of its own. Exit code 4 if one is not as it was written, 3 if one
    could not be verified.

    Args:
        views: Compare every row of every view as well. --events-only leaves that out.
        trust: A public key whose signatures prove checkpoints, a host's or a witness's, or a file of such keys; may be given several times.
        quorum: How many of the trusted witnesses must have cosigned a checkpoint; 0 is all of them.
    """
    del json
    logs = Fleet(file)
    wanted = _wanted(logs, names, is_all=all_)
    options = [*([] if views else ["--events-only"]), *(f"--trust={given}" for given in trust or ())]
    options += [f"--quorum={quorum}"] if quorum else []
    with Screen().progress("Verifying") as progress:
        found = logs.verify(wanted, at_once=at_once, options=options, on_done=progress)
    failed = [one for one in found if not one.ok and one.code is None]
    away = [one for one in found if one.code is not None]
    value: JsonObject = {
        "ok": not failed and not away,
        "fleet": str(logs.path),
        "logs": msgspec.to_builtins(found),
        "verified": len(found) - len(failed) - len(away),
        "notVerified": len(failed),
        "away": len(away),
        "events": sum(one.events for one in found),
    }
    exit_code = NOT_VERIFIED if failed else UNAVAILABLE if away else OK
    return Answer(value, lambda on: _show_verified(on, found), exit_code)


@fleet.command
def migrate(
    name: Name,
    target: Annotated[
        str, Parameter(name="TO", help="Where to, with nothing there yet: FILE or postgresql://….")
    ],
    /,
    *,
    file: File = None,
    json: Json = False,
) -> Answer:
    """Move a log of the fleet to another store or cluster, and name that in the file.

    As `intersession migrate`: refused while a process writes the log, and a move that was killed goes on when it is run again.
    """
    del json
    logs = Fleet(file)
    with Screen().progress("Moving") as progress:
        done = logs.migrate(name, target, progress=lambda _what, at, of: progress(at, of))
    value: JsonObject = {
        "ok": True,
        "name": name,
        "from": done.source,
        "to": done.target,
        "logId": done.head.log_id,
        "position": done.head.position,
        "events": done.events,
    }

    def show(on: Screen) -> None:
        on.line(
            safe("moved: ", "bold green"),
            f"{name}, {counted(done.events, 'event')}, compared and verified, to {done.target}",
        )
        on.line(f"  {done.source} is as it was: start no host on it any more")

    return Answer(value, show)


@fleet.command
def upgrade(*names: Names, all_: All = False, file: File = None, json: Json = False) -> Answer:
    """Bring logs that another version has left to this one: their views are made anew, one log after the other.

    A log that a process writes is left to the next start of that. Run again, it goes on with what is left. Exit code 1 if one was
    left out.
    """
    del json
    logs = Fleet(file)
    wanted = _wanted(logs, names, is_all=all_)
    with Screen().progress("Upgrading") as progress:
        found = logs.upgrade(wanted, on_done=progress)
    left = [one for one in found if one.state not in {"current", "upgraded"}]
    value: JsonObject = {"ok": not left, "fleet": str(logs.path), "logs": msgspec.to_builtins(found)}
    return Answer(value, lambda on: _show_upgraded(on, found), REFUSED if left else OK)


def _wanted(logs: Fleet, names: Sequence[str], *, is_all: bool) -> Sequence[str]:
    """Return the names of the wanted logs: what takes long is done to all of them only when that is said."""
    if is_all == bool(names):
        raise UsageError("name logs, or give --all" if not names else "give names or --all, not both")
    return names or list(logs.logs)


def _show_status(on: Screen, found: Sequence[LogStanding]) -> None:
    on.table(
        (
            "LOG",
            "WRITER",
            "STANDBYS",
            "WORKERS",
            "VERSION",
            "EPOCH",
            "POSITION",
            "LAST EVENT",
            "OPEN",
            "WAITING",
        ),
        [
            (one.name, "away", *[""] * 8)
            if one.position is None
            else (
                one.name,
                _writer(one),
                str(one.standbys),
                str(one.workers),
                one.version or "",
                str(one.epoch),
                str(one.position),
                "" if one.last_event is None else moment(one.last_event),
                "?" if one.open_runs is None else str(one.open_runs),
                str(sum(one.waiting_calls.values())),
            )
            for one in found
        ],
    )
    for one in found:
        for problem in one.problems:
            on.line(safe(f"{one.name}: ", "bold yellow"), f"{problem.code}: {problem.what}")
            on.indented(f"→ {problem.advice}", 2)


def _writer(one: LogStanding) -> str:
    if one.writer is None:
        return "none"
    return one.writer["gateway"] or f"pid {one.writer['pid']} on {one.writer['host']}"


def _show_verified(on: Screen, found: Sequence[LogVerified]) -> None:
    for one in found:
        if one.code is not None:
            on.line(safe(f"{one.name}: ", "bold red"), f"{one.code}: {one.error}")
        elif not one.ok:
            what = f"NOT verified: {counted(one.findings, 'finding')}"
            on.line(
                safe(f"{one.name}: ", "bold red"), f"{what}; `intersession verify` on its store says more"
            )
    right = [one for one in found if one.ok]
    events = counted(sum(one.events for one in right), "event")
    on.line(safe("verified: ", "bold green"), f"{len(right)} of {counted(len(found), 'log')}, {events}")


def _show_upgraded(on: Screen, found: Sequence[LogUpgraded]) -> None:
    for one in found:
        if one.error is not None:
            on.line(safe(f"{one.name}: ", "bold yellow"), f"{one.state}: {one.error}")
        elif one.state == "upgraded":
            on.line(safe(f"{one.name}: ", "bold green"), f"made anew: {', '.join(one.outdated)}")
    current = sum(one.state in {"current", "upgraded"} for one in found)
    on.line(f"of this version: {current} of {counted(len(found), 'log')}")
