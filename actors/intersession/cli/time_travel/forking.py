"""What `intersession fork` can be asked for beside the place: edits, agents, what-if, many times. And how it came out, in words."""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import msgspec
from cyclopts import Parameter

from intersession.cli.shell import Screen, UsageError, safe
from intersession_actors.agents import Agent, ConfiguredAgent, configured_agents
from intersession_actors.config import Config
from intersession_actors.debugger import View
from intersession_actors.forking import Carried, Forker, MadeFork, Outcome, Wanted
from intersession_actors.service import Reader
from intersession_actors.system import SessionSystem
from intersession_events.facts import ForkEdit
from intersession_events.machine import machine_entropy, random_id
from intersession_events.plain_json import JsonObject
from intersession_events.stores import SqliteLog
from intersession_projections.timeline import counted


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Otherwise:
    """How a fork is edited, and which agents answer in it."""

    reply: Annotated[str | None, Parameter(help="Another answer in this place.")] = None
    message: Annotated[str | None, Parameter(help="Another message in this place, such as RUN@start.")] = None
    skip: Annotated[
        bool, Parameter(negative="", help="Say nothing in this place, as an agent that skips.")
    ] = False
    drop: Annotated[bool, Parameter(negative="", help="Leave the answer of this place out.")] = False
    agent: Annotated[
        tuple[str, ...],
        Parameter(
            negative="",
            help="ID=SPEC: who answers. SPEC is recorded, script:FILE, module:name, a model (provider/model) or a "
            "configured agent's id; ID may be * for all others. Can be given several times.",
        ),
    ] = ()
    set: Annotated[
        tuple[str, ...],
        Parameter(
            negative="", help="PATH=VALUE: another setting, such as session.agentToAgent.maxPingPongTurns=2."
        ),
    ] = ()
    inject: Annotated[
        tuple[str, ...], Parameter(negative="", help="KEY=TEXT: a further message in a session.")
    ] = ()
    on_divergence: Annotated[
        str,
        Parameter(
            help="Where a recorded agent is given something else than then: stop, live, or script:FILE."
        ),
    ] = "stop"
    loose: Annotated[
        bool,
        Parameter(negative="", help="Recorded answers by their place alone, whatever the agent is given."),
    ] = False
    deliver: Annotated[
        tuple[str, ...], Parameter(negative="", help="A channel that is not sealed: texts really go out.")
    ] = ()
    times: Annotated[
        int, Parameter(help="Fork and carry on so many times, and compare how they come out.")
    ] = 1
    parallel: Annotated[int, Parameter(help="So many of them at once.")] = 1

    def edits(self) -> tuple[ForkEdit, ...]:
        """Return the edits, in the order in which they are written."""
        found: list[ForkEdit] = []
        if self.reply is not None:
            found.append(ForkEdit(kind="reply", value=self.reply))
        if self.message is not None:
            found.append(ForkEdit(kind="message", value=self.message))
        if self.skip:
            found.append(ForkEdit(kind="skip"))
        if self.drop:
            found.append(ForkEdit(kind="drop"))
        found += [ForkEdit(kind="set", key=key, value=value) for key, value in _pairs("--set", self.set)]
        found += [
            ForkEdit(kind="inject", key=key, value=value) for key, value in _pairs("--inject", self.inject)
        ]
        return tuple(found)

    def agents(self) -> dict[str, str]:
        """Return who answers, by agent id."""
        return dict(_pairs("--agent", self.agent))


OTHERWISE = Otherwise()


def _pairs(option: str, given: Iterable[str]) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for one in given:
        name, found, value = one.partition("=")
        if not found or not name:
            raise UsageError(f"{option}: {one[:64]!r} is no pair, give NAME=VALUE")
        pairs.append((name, value))
    return pairs


class Came(NamedTuple):
    """A fork, and how it came out; None where it was only made."""

    made: MadeFork
    carried: Carried | None
    divergence: JsonObject | None = None


def forked(
    source: SqliteLog, reader: Reader, config: Config, wanted: Wanted, otherwise: Otherwise, *, run: bool
) -> list[Came]:
    """Make forks, and carry them on."""
    if otherwise.times < 1 or otherwise.parallel < 1:
        raise UsageError("--times, --parallel: give a number from 1 on")
    agents, edits = otherwise.agents(), otherwise.edits()
    forker = Forker(
        source,
        reader,
        new_id=random_id,
        entropy=machine_entropy,
        named=_named(config, agents, otherwise.on_divergence),
        models=lambda model: _of_model(config, model),
    )
    made = [
        forker.make(wanted._replace(edits=edits, exact=not run and not edits and not agents), agents)
        for _ in range(otherwise.times)
    ]
    if not run:
        return [Came(one, None) for one in made]

    def carry(one: MadeFork) -> Came:
        return _carry(forker, one, agents, otherwise, config)

    if otherwise.parallel == 1:
        return [carry(one) for one in made]
    with ThreadPoolExecutor(otherwise.parallel, thread_name_prefix="forks") as threads:
        return list(threads.map(carry, made))


def _carry(
    forker: Forker, made: MadeFork, agents: dict[str, str], otherwise: Otherwise, config: Config
) -> Came:
    cast = forker.cast(made, agents, on_divergence=otherwise.on_divergence, loose=otherwise.loose)
    system = SessionSystem(
        made.path, agents=cast.agents, config=config, deliver=otherwise.deliver, stopping=cast.stopping
    )
    try:
        carried = system.carried_on()
        return Came(made, carried, _divergence(system, carried))
    finally:
        system.close(grace=0)


def _divergence(system: SessionSystem, carried: Carried) -> JsonObject | None:
    found = carried.divergence
    if found is None:
        return None
    run = system.service.reader.runs.get(found.run_id)
    view = View(system.service.reader)
    place = view.at(run.position if run is not None else system.log.head())
    return {"place": place, "kind": found.kind, "recorded": found.recorded, "now": found.now}


def _named(config: Config, agents: dict[str, str], on_divergence: str) -> dict[str, Agent]:
    """Return the configured agents, if one of them is asked for: they may need a library."""
    specs = {*agents.values()}
    if on_divergence != "live" and not specs & {*config.agent_ids}:
        return {}
    return dict(configured_agents(config).agents)


def _of_model(config: Config, model: str) -> Agent:
    return ConfiguredAgent(config, model)


def outcomes(came: Sequence[Came]) -> list[JsonObject]:
    """Return how forks came out, the most frequent first: `{count, end, turns, tokens, costMicros, announced, forks}`.

    Those are one that end alike, after as many turns, with the same text. Tokens and money are the average of them.
    """
    groups: dict[tuple[str | None, int, str | None], list[tuple[Outcome, str]]] = {}
    for one in came:
        if one.carried is not None:
            out = one.carried.outcome
            groups.setdefault((out.end, out.turns, out.announced), []).append((out, one.made.id))
    return [
        {
            "count": len(group),
            "end": end,
            "turns": turns,
            "tokens": round(sum(out.tokens for out, _ in group) / len(group)),
            "costMicros": round(sum(out.cost_micros for out, _ in group) / len(group)),
            "announced": announced,
            "forks": [fork for _, fork in group],
        }
        for (end, turns, announced), group in sorted(groups.items(), key=lambda item: -len(item[1]))
    ]


def value_of(came: Came) -> JsonObject:
    """Return a fork as `--json` prints it."""
    made = came.made
    value: JsonObject = {
        "fork": made.id,
        "store": made.path,
        "from": {"logId": made.source, "position": made.position},
        "run": made.run,
        "edits": [
            {"kind": one.kind, "place": one.place, "key": one.key, "value": one.value} for one in made.edits
        ],
    }
    if came.carried is not None:
        value["state"] = came.carried.state
        value["outcome"] = msgspec.to_builtins(came.carried.outcome)
        value["missing"] = list(came.carried.missing)
    if came.divergence is not None:
        value["divergence"] = came.divergence
    return value


def show(screen: Screen, came: Came) -> None:
    """Say what was made, how it came out, and what to try with it."""
    made, carried = came.made, came.carried
    screen.line(safe("forked: ", "bold green"), f"at position {made.position}, in {made.path}")
    if carried is not None:
        out = carried.outcome
        if came.divergence is not None:
            screen.line(safe(f"left the recording: {came.divergence['place']['text']}", "yellow"))
            screen.line(f"  then: {came.divergence['recorded']}")
            screen.line(f"  now:  {came.divergence['now']}")
        if carried.missing:
            screen.line(safe(f"waits for {', '.join(carried.missing)}: give --agent ID=SPEC", "yellow"))
        elif carried.state == "ended":
            announced = "" if out.announced is None else f", would announce: {out.announced}"
            screen.line(f"ended: {out.end}, {counted(out.turns, 'turn')}, {out.tokens} tokens{announced}")
    screen.to_copy(f"  intersession replay {made.id}")


def show_outcomes(screen: Screen, rows: Sequence[JsonObject]) -> None:
    """Say how often forks came out how."""
    screen.table(
        ["times", "end", "turns", "tokens", "announced"],
        [
            (
                str(row["count"]),
                row["end"] or "open",
                str(row["turns"]),
                str(row["tokens"]),
                row["announced"] or "",
            )
            for row in rows
        ],
    )
