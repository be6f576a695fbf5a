"""`intersession fork`: a run as it stood at a place, as a log of its own. And `forks`: the forks and their outcomes."""

import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Final

from cyclopts import App, Parameter
from cyclopts.validators import Number

from intersession.cli.host.forks import fork_file, in_fork
from intersession.cli.host.hosting import forker_of, opened_fork
from intersession.cli.host.reading import reader_of, reading_log, store_of
from intersession.cli.shell.answer import OK, READING, REFUSED, Answer, Reading, UsageError
from intersession.cli.shell.run import saying_once
from intersession.cli.shell.terminal import Screen, safe
from intersession.cli.shell.times import clock, duration
from intersession.cli.time_travel.show import At
from intersession_actors.calls.service.reader import Reader
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.hindsight.forking.carrying import Carried
from intersession_actors.hindsight.forking.describing import ForkResult, describe_fork, describe_outcomes
from intersession_actors.hindsight.forking.listing import Listed, forks_of
from intersession_actors.hindsight.forking.making import Wanted
from intersession_actors.hindsight.forking.playing import Playing
from intersession_actors.outside.agents.agents import Agent
from intersession_actors.outside.agents.configured import configured_agents
from intersession_actors.outside.channels.configured import configured_channels
from intersession_actors.rules.config.config import Config, load_config
from intersession_actors.rules.gate.limits import PARALLEL, TIMES
from intersession_events.basics.plain_json import JsonObject
from intersession_events.copies.forks.files import remove_fork
from intersession_events.facts import ForkEdit
from intersession_events.facts.reasons import counted
from intersession_projections.copies.forks.summary import parts_of
from intersession_projections.questions.places.runs_named import flow_id


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Otherwise:
    """The changes of a fork: its edits, and the agents that answer in it.

    Args:
        reply: Another answer in this place.
        message: Another message in this place, such as RUN@start.
        skip: Say nothing in this place, as an agent that skips.
        drop: Leave the answer of this place out.
        agent: ID=SPEC: the agent that answers. SPEC is recorded, script:FILE, module:name, a model (provider/model) or a configured agent's id; ID may be * for all others. Can be given several times.
        set: PATH=VALUE: another setting, such as session.agentToAgent.maxPingPongTurns=2.
        inject: KEY=TEXT: a further message in a session.
        on_divergence: Where a recorded agent is given something else than then: stop, live, or script:FILE.
        loose: Recorded answers by their place alone, whatever the agent is given.
        deliver: A channel that is not sealed: texts really go out.
        times: The number of forks to make and carry on, and to compare.
        parallel: The number of forks that run at once.
        jsonl: Print JSON, a fork a line: for tools that evaluate how they came out.
    """

    reply: str | None = None
    message: str | None = None
    skip: bool = False
    drop: bool = False
    agent: tuple[str, ...] = ()
    set: tuple[str, ...] = ()
    inject: tuple[str, ...] = ()
    on_divergence: str = "stop"
    loose: bool = False
    deliver: tuple[str, ...] = ()
    times: Annotated[int, Parameter(validator=Number(gte=1, lte=TIMES.most))] = 1
    parallel: Annotated[int, Parameter(validator=Number(gte=1, lte=PARALLEL.most))] = 1
    jsonl: bool = False

    def edits(self) -> tuple[ForkEdit, ...]:
        """Return the edits, in the order in which they are written."""
        return (
            *(() if self.reply is None else (ForkEdit(kind="reply", value=self.reply),)),
            *(() if self.message is None else (ForkEdit(kind="message", value=self.message),)),
            *([ForkEdit(kind="skip")] * self.skip),
            *([ForkEdit(kind="drop")] * self.drop),
            *(ForkEdit(kind="set", key=key, value=value) for key, value in _pairs("--set", self.set)),
            *(
                ForkEdit(kind="inject", key=key, value=value)
                for key, value in _pairs("--inject", self.inject)
            ),
        )

    def agents(self) -> dict[str, str]:
        """Return the agents that answer, by agent id."""
        pairs = _pairs("--agent", self.agent)
        given = dict(pairs)
        if len(given) < len(pairs):
            twice = next(name for number, (name, _) in enumerate(pairs) if name in dict(pairs[:number]))
            raise UsageError(f"--agent: {twice[:64]!r} is given twice, give it once")
        return given


OTHERWISE = Otherwise()


def _pairs(option: str, given: Iterable[str]) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for one in given:
        name, found, value = one.partition("=")
        if not found or not name:
            raise UsageError(f"{option}: {one[:64]!r} is no pair, give NAME=VALUE")
        pairs.append((name, value))
    return pairs


def forked(
    reader: Reader, reading: Reading, wanted: Wanted, otherwise: Otherwise, *, run: bool
) -> list[ForkResult]:
    """Make forks, and continue them, with a progress bar."""
    agents, edits = otherwise.agents(), otherwise.edits()
    playing = Playing(agents, otherwise.on_divergence, otherwise.loose)
    config = load_config(reading.config).config
    channels = _deliverable(config, otherwise.deliver)
    named = _named(config, {*agents.values()}, live=otherwise.on_divergence == "live")
    forker = forker_of(reader, reading, named)
    asked = wanted._replace(edits=edits, exact=not run and not edits and not agents)

    opened = partial(opened_fork, deliver=channels)

    def play(_: int) -> ForkResult:
        made = forker.make(asked, agents)
        return forker.carry(made, playing, opened) if run else ForkResult(made)

    with (
        saying_once(),
        Screen().progress("Forking") as move,
        ThreadPoolExecutor(otherwise.parallel, thread_name_prefix="forks") as threads,
    ):
        coming = [threads.submit(play, number) for number in range(otherwise.times)]
        try:
            for done, one in enumerate(as_completed(coming), 1):
                one.result()
                if otherwise.times > 1:
                    move(done, otherwise.times)
        finally:
            threads.shutdown(cancel_futures=True)
        came = [one.result() for one in coming]
    if run and reading.config is not None:
        changed = forker.configured(came[0].made.position).changed
        Screen().note(f"--config: set otherwise than it was then: {', '.join(changed) or 'nothing'}")
    return came


def _deliverable(config: Config, names: Sequence[str]) -> tuple[str, ...]:
    """Return the channels that are not sealed, as far as they are available here."""
    known = configured_channels(config)
    for name in names:
        if name not in known:
            there = f"; there are {', '.join(sorted(known))}" if known else ""
            raise UsageError(f"--deliver: channels.{name[:64]}.deliver is not configured (--config){there}")
    return tuple(names)


def _named(config: Config, specs: Collection[str], *, live: bool) -> dict[str, Agent]:
    """Return the configured agents, if one of them is asked for: they may need a library."""
    if not live and not {*specs} & {*config.agent_ids}:
        return {}
    return dict(configured_agents(config).agents)


_SAID: Final[Mapping[str, tuple[str, str]]] = {
    "context": ("answered then", "is asked now"),
    "missing": ("answered then", "is asked now"),
    "open": ("was asked then", "is asked now"),
    "tool": ("its tool gave then", "its tool gives now"),
}
"""What a divergence of each kind holds against each other."""


def show(screen: Screen, came: ForkResult) -> None:
    """Show a fork, its outcome, and next commands to try."""
    made, carried = came.made, came.carried
    screen.line(safe("forked: ", "bold green"), f"at position {made.position}, in {made.path}")
    for note in made.notes:
        screen.line(safe(f"  note: {note}", "yellow"))
    if carried is not None:
        _show_end(screen, came, carried)
    screen.to_copy(f"  intersession replay {made.id}")


def _show_end(screen: Screen, came: ForkResult, carried: Carried) -> None:
    out, left = carried.outcome, carried.divergence
    if left is not None and came.diverged is not None:
        how = "went on past a difference" if left.goes_on else "left the recording"
        screen.line(safe(f"{how}: {came.diverged['text']}", "yellow"))
        then, now = _SAID[left.kind]
        if left.recorded is not None:
            screen.line(f"  {then}: {left.recorded}")
        screen.line(f"  {now}: {left.now}")
        for part in parts_of(left):
            screen.line(safe(f"  differs: {part.part}", "bold"))
            screen.one_line(safe("    then  ", "dim"), part.then or "nothing")
            screen.one_line(safe("    now   ", "dim"), part.now or "nothing")
    if carried.missing:
        screen.line(safe(f"waits for {', '.join(carried.missing)}: give --agent ID=SPEC", "yellow"))
    for held in carried.held:
        where = f"turn {held.turn}" if held.step == "reply" else "its announce"
        screen.line(safe(f"held at {where}: nothing goes on there until it is released", "yellow"))
        screen.to_copy(f"  intersession release {held.run} --store {shlex.quote(came.made.path)}")
    for name in carried.set_aside:
        screen.line(safe(f"{name} went wrong, and does not go on", "red"))
    for stream in carried.imported:
        screen.line(
            safe(
                f"{stream} was imported: what was under way there can only be read, not carried on", "yellow"
            )
        )
    if carried.imported:
        screen.to_copy(
            f"  intersession send TEXT --to KEY --agents module:NAME --store {shlex.quote(came.made.path)}"
        )
    if carried.state == "ended":
        does = {"handed_over": "hands over", "ok": "answers"}.get(out.end or "", "would announce")
        announced = "" if out.announced is None else f", {does}: {out.announced}"
        turns = f"{counted(out.turns, 'turn')}, " if out.turns else ""
        screen.line(f"ended: {out.end}, {turns}{out.tokens} tokens{announced}")


def show_outcomes(screen: Screen, rows: Sequence[JsonObject]) -> None:
    """Show the outcomes of forks with their counts, and an example of each."""
    screen.table(
        ["times", "end", "turns", "tokens", "cost", "time", "one of them", "announced"],
        [
            (
                str(row["count"]),
                row["end"] or row["state"],
                str(row["turns"]),
                str(row["tokens"]),
                str(row["costMicros"]),
                duration(row["durationMs"]),
                row["forks"][0][:8],
                row["announced"] or row["left"] or "",
            )
            for row in rows
        ],
    )


def fork(
    run: Annotated[str, Parameter(name="RUN")],
    /,
    *,
    at: At = None,
    no_run: Annotated[bool, Parameter(name="--no-run")] = False,
    otherwise: Otherwise = OTHERWISE,
    reading: Reading = READING,
) -> Answer:
    """Fork a run at a place, with something otherwise.

    All that the run touches goes along: sessions with their whole transcripts, exchanges, spawns, deliveries, and whatever
    those refer to. The log itself is only read, also while somebody writes to it. The fork is a small file beside it, that proves
    by itself where it comes from (`verify`), and that every command takes in the place of a run.

    It is carried on to its end where every agent that it needs is given, else it waits and says which are missing. Its channels
    are sealed, and what else was open is frozen. Exit code 1 says that a recording ended (--agent '*=recorded').

    Args:
        run: An exchange, a spawn or a run, by any name that is shown, or a place of it: RUN@turn:2. Or a fork.
        no_run: Only make it.
    """
    inside, named = in_fork(reading, run, at)
    with reader_of(inside) as reader:
        view = View(reader)
        name, place = view.parted(named(run), named(at), field="run")
        what = reader.log.head() if place is None else place
        flow = view.flow(name)
        came = forked(reader, inside, Wanted(flow_id(flow), what), otherwise, run=not no_run)
    diverged = any(one.carried is not None and one.carried.state == "diverged" for one in came)
    code = REFUSED if diverged else OK
    rows = describe_outcomes(came)
    value = describe_fork(came[0]) if len(came) == 1 else {"outcomes": rows}

    def told(screen: Screen) -> None:
        if otherwise.jsonl:
            for one in came:
                screen.json_line(describe_fork(one))
        elif len(came) == 1 or no_run:
            for one in came:
                show(screen, one)
        else:
            show_outcomes(screen, rows)

    return Answer(value, told, code)


_FORKS_HELP: Final = "List forks, or those of a run; `forks rm ID` deletes one."

forks = App(name="forks", help=_FORKS_HELP)


@forks.default
def listed(
    run: Annotated[
        str | None, Parameter(name="RUN", help="Only forks of this run, by any name that is shown.")
    ] = None,
    /,
    *,
    reading: Reading = READING,
) -> Answer:
    """List the forks of a log, or of a run.

    Each with its source log, where it was cut, its edits, and how it ended. Forks of forks are among them.
    """
    path = store_of(reading).place
    wanted = None
    if run is not None:
        with reader_of(reading) as reader:
            wanted = flow_id(View(reader).flow(run))
    listed = forks_of(path, wanted)
    if run is None and not (listed.forks or listed.unread):
        with reading_log(reading):
            pass  # a log that is not there has no forks either, and is not to be taken for one that is
    return Answer(listed.as_json(), lambda screen: _show(screen, listed))


@forks.command(name="rm")
def remove(
    fork_id: Annotated[str, Parameter(name="ID", help="The fork's id, or the beginning of it.")],
    /,
    *,
    reading: Reading = READING,
) -> Answer:
    """Delete a fork: its file, and all that was kept beside it. Nothing else is changed."""
    file = fork_file(reading, fork_id)
    remove_fork(file)
    return Answer(
        {"ok": True, "fork": file.stem, "store": str(file)},
        lambda screen: screen.line(safe("deleted: ", "bold green"), str(file)),
    )


def _show(screen: Screen, listed: Listed) -> None:
    for told in listed.forks:
        how = ", ".join(part for part in (told.outcome.state, told.outcome.end, told.outcome.close) if part)
        edits = ", ".join(f"{one.kind} {one.key}".strip() for one in told.edits) or "no edits"
        screen.one_line(
            safe(told.id, "bold"), f"  {clock(told.time_ms)}  of {told.run} at #{told.place.position}"
        )
        screen.one_line(f"  {edits}; {how}; {counted(told.outcome.events, 'event')} of its own")
        if told.outcome.left is not None:
            screen.one_line(safe(f"  {told.outcome.left.text}", "yellow"))
    for file, error in listed.unread:
        screen.one_line(safe(file.stem, "bold"), safe(f"  can't be read: {error}", "red"))
    if not (listed.forks or listed.unread):
        screen.dim("no forks; `intersession fork RUN --at PLACE --no-run` makes one")
