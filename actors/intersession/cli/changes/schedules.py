"""`intersession schedules`: the scheduled jobs, with a host or without; and `run`, `runs`, `pause`, `resume`."""

from typing import Annotated

from cyclopts import App, Parameter
from cyclopts.validators import Number

from intersession.cli.changes.sessions import changed
from intersession.cli.host.beside import host_beside
from intersession.cli.host.reading import reader_of
from intersession.cli.shell.answer import READING, Answer, Reading
from intersession.cli.shell.terminal import Screen
from intersession.cli.shell.times import moment
from intersession_actors.assembly.schedules.reading import entries, job_value
from intersession_events.basics.plain_json import JsonMapping, JsonObject

schedules = App(name="schedules")

Job = Annotated[str, Parameter(help="The job, by its id in `cron.jobs` of the configuration.")]


@schedules.default
def listed(*, reading: Reading = READING) -> Answer:
    """List scheduled jobs: when each runs, and how it came out.

    They are those of the log's host, or of --config where it has none.
    """
    beside = host_beside(reading)
    if beside is None:
        with reader_of(reading) as reader:
            jobs = [job_value(reader, name, job) for name, job in sorted(reader.config.cron.jobs.items())]
    else:
        with beside:
            jobs = beside.call("cron.list", {})["jobs"]

    def show(screen: Screen) -> None:
        if not jobs:
            screen.dim("no jobs: `cron.jobs` of the configuration has them; give it with --config")
            return
        screen.table(
            ["job", "when", "next (UTC)", "last (UTC)", "outcome", "session"],
            [
                (
                    job["id"],
                    _when(job["schedule"]),
                    _next(job),
                    _moment(job["state"]["lastRunAtMs"]),
                    _outcome(job["state"]),
                    job["sessionKey"] or "agent not here",
                )
                for job in jobs
            ],
        )

    return Answer({"count": len(jobs), "jobs": jobs}, show)


@schedules.command(name="runs")
def runs(
    job: Job,
    /,
    *,
    limit: Annotated[
        int, Parameter(help="At most this many, the newest first.", validator=Number(gte=1, lte=1_000))
    ] = 20,
    reading: Reading = READING,
) -> Answer:
    """Say what came of a job's times: runs, and times that passed without one."""
    with reader_of(reading) as reader:
        found = entries(reader, job, limit)

    def show(screen: Screen) -> None:
        if not found:
            screen.dim(f"nothing came of {job} yet")
            return
        screen.table(
            ["due (UTC)", "outcome", "run", "for"],
            [
                (
                    moment(entry["dueMs"]),
                    " ".join(filter(None, (entry["status"], entry.get("reason"), entry["error"]))),
                    entry.get("runId") or "",
                    _stands_for(entry),
                )
                for entry in found
            ],
        )

    return Answer({"jobId": job, "entries": found}, show)


@schedules.command(name="run")
def run(job: Job, /, *, reading: Reading = READING) -> Answer:
    """Run a job now, whatever its schedule says."""
    return changed(
        reading, "cron.run", lambda _: {"jobId": job}, lambda answer: f"{job} runs: {answer['runId']}"
    )


@schedules.command(name="pause")
def pause(job: Job, /, *, reading: Reading = READING) -> Answer:
    """Let the times of a job pass, until `schedules resume`."""
    return _switched(reading, job, enabled=False)


@schedules.command(name="resume")
def resume(job: Job, /, *, reading: Reading = READING) -> Answer:
    """Let a paused job go on. What passed meanwhile is not made up for."""
    return _switched(reading, job, enabled=True)


def _switched(reading: Reading, job: str, *, enabled: bool) -> Answer:
    def told(answer: JsonMapping) -> str:
        now = "goes on" if enabled else "is paused"
        return f"{job} {now}" if answer["changed"] else f"{job} {now} already"

    params: JsonObject = {"jobId": job, "patch": {"enabled": enabled}}
    return changed(reading, "cron.update", lambda _: params, told)


def _stands_for(entry: JsonMapping) -> str:
    times = entry.get("times", 1) + entry.get("missed", 0)
    return "" if times == 1 else f"{times} times"


def _when(schedule: JsonMapping) -> str:
    match schedule["kind"]:
        case "cron":
            return f"{schedule['expr']} {schedule.get('tz', 'UTC')}"
        case "every":
            return f"every {schedule['everyMs'] / 1000:g} s"
        case _:
            return f"at {schedule['at']}"


def _next(job: JsonMapping) -> str:
    if not job["enabled"] or job["paused"]:
        return "disabled" if not job["enabled"] else "paused"
    return _moment(job["state"]["nextRunAtMs"])


def _moment(ms: int | None) -> str:
    return "" if ms is None else moment(ms)


def _outcome(state: JsonMapping) -> str:
    return " ".join(filter(None, (state["lastStatus"], state["lastError"])))
