"""What is wrong with the hosts of a log beside its writer: calls without a worker, full and outdated workers, doors that lag (HOSTS-2)."""

from collections.abc import Iterator, Sequence
from typing import Final

from intersession_actors.running.failures.findings import Finding, note, warning
from intersession_events.basics.plain_json import JsonMapping, JsonObject
from intersession_events.facts.reasons import counted

_MOST_LAG: Final = 1_000
"""How many events a door may have still to read."""


def host_findings(hosts: JsonMapping) -> Iterator[Finding]:
    """Yield what is wrong with the hosts of a log. `hosts` is what the verb of that name answers."""
    writer: JsonObject | None = hosts["writer"]
    workers: Sequence[JsonObject] = hosts["workers"]
    others = [*hosts["standbys"], *workers, *hosts["doors"]]
    if hosts["unread"] is not None:
        yield note(
            "hosts_unread",
            f"standbys, workers, doors and calls can't be seen: {hosts['unread']}",
            "start the log's writer in this version, or give this role the right to read their tables",
        )
    if writer is None and others:
        yield warning(
            "no_writer",
            f"no process writes the log, and {_named(others)} wait for one",
            "start one: `intersession serve`, or `intersession serve --standby` for one that also waits its turn",
        )
    for served in hosts["calls"]:
        has = [worker for worker in workers if worker["name"] in served["workers"]]
        yield from _served(served, has)
        if served["parked"] and writer is not None and not has:
            yield warning(
                "no_worker",
                f"{counted(served['parked'], 'run')} of the agent {served['name']!r} wait, and neither the writer nor a worker has it",
                f"start a worker: `intersession work --agent {served['name']}`; or give the writer the agent",
            )
    if writer is not None:
        yield from _versions(writer, others)
        if others and not hosts["standbys"]:
            yield note(
                "no_standby",
                f"{_named(others)} need the log's writer, and no standby waits to take its place",
                "start one on another machine: `intersession serve --standby`",
            )
    for door in hosts["doors"]:
        if (door["lag"] or 0) > _MOST_LAG:
            yield warning(
                "door_lags",
                f"the door {door['name']} on {door['host']} has {counted(door['lag'], 'event')} still to read",
                "look at its connection to the log's database and at its processor; its clients wait for what they wrote",
            )


def _served(served: JsonObject, has: Sequence[JsonObject]) -> Iterator[Finding]:
    """Yield what keeps the calls of an agent or a channel waiting."""
    waiting, what = served["waiting"], f"{served['kind']} {served['name']!r}"
    if not waiting:
        return
    wait = f"{counted(waiting, 'call')} of the {what} wait{'s' if waiting == 1 else ''}"
    option = f"--{served['kind']} {served['name']}"
    takes = [worker for worker in has if not worker["draining"]]
    if not takes:
        yield warning(
            "no_worker",
            f"{wait}, and no worker takes calls of it",
            f"start one: `intersession work {option}`",
        )
    elif all(worker["taken"] >= worker["seats"] for worker in takes):
        seats = sum(worker["seats"] for worker in takes)
        yield warning(
            "workers_full",
            f"{wait}: {_named(takes)} have all {counted(seats, 'seat')} taken",
            f"start another worker (`intersession work {option}`), or give them more seats (--seats)",
        )


def _versions(writer: JsonObject, others: Sequence[JsonObject]) -> Iterator[Finding]:
    differing = [host for host in others if host["version"] != writer["version"]]
    if differing and writer["version"]:
        yield note(
            "other_version",
            f"the writer has version {writer['version']}; "
            + ", ".join(f"{host['name']} has {host['version']}" for host in differing[:_NAMED])
            + (f" and {len(differing) - _NAMED} more differ" if len(differing) > _NAMED else ""),
            "during an upgrade nothing; else upgrade them, the workers and doors first, the writer last",
        )


_NAMED: Final = 5


def _named(hosts: Sequence[JsonObject]) -> str:
    names = ", ".join(host["name"] for host in hosts[:_NAMED])
    return names if len(hosts) <= _NAMED else f"{names} and {len(hosts) - _NAMED} more"
