"""The outcome of a fork, and the agents that it may call (FORK-8)."""

from collections.abc import Callable

import msgspec

from intersession_actors.calls.service.reader import Reader
from intersession_actors.outside.agents.runners import runner_of
from intersession_events import facts
from intersession_events.basics import ids
from intersession_events.basics.keys.key import SessionKey
from intersession_events.log.recorded import parts_in
from intersession_projections.views.flows.held import held_ms, holds_in
from intersession_projections.views.run_outcomes.outcome import RunOutcome
from intersession_projections.views.run_outcomes.replies import told_in


class Outcome(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The outcome of the forked work. `end` is why its loop ended, else why it is over; None while it is open.

    `announced` is the text that is, or would be, told outside. Tokens and money are those of all its runs. `duration_ms` is the
    time from the cut to the last event, without what it was held.
    """

    end: str | None
    turns: int
    tokens: int
    cost_micros: int
    announced: str | None
    duration_ms: int = 0


def outcome_of(reader: Reader, run: str) -> Outcome:
    """Return the outcome of an exchange, a spawn or a run, by its id."""
    exchange, spawn, alone = reader.flows.exchange(run), reader.flows.spawn(run), reader.runs.get(run)
    end: str | None
    if exchange is not None:
        stream, end, turns = exchange.stream, exchange.end_reason or exchange.close_reason, exchange.turns
        if exchange.is_open:
            end = None
    elif spawn is not None:
        stream, end, turns = spawn.stream, spawn.close_reason, 0
    else:
        return _of_run(reader, alone)
    used = facts.Usage()
    announced: str | None = None
    ended_ms = 0
    events = told_in(reader.log, reader.log.stream(stream))
    for recorded in parts_in(events):
        ended_ms = recorded.time
        match recorded.event:
            case facts.FlowAnswered(usage=usage):
                used = _added(used, usage)
            case facts.AnnounceDecided(usage=usage, text=text):
                used, announced = _added(used, usage), text
            case _:
                pass
    since_cut = _since_cut(reader)
    return Outcome(
        end=end,
        turns=turns,
        tokens=used.total_tokens,
        cost_micros=used.cost_micros or 0,
        announced=announced,
        duration_ms=since_cut(ended_ms) - held_ms(holds_in(events), since_cut),
    )


def _since_cut(reader: Reader) -> Callable[[int], int]:
    """Return what says how long after the cut something was; in a log that is no fork, 0."""
    forked = reader.log.forked
    born = None if forked is None else next(reader.log.all(after=forked.position, limit=1), None)
    return lambda time_ms: 0 if born is None else max(time_ms - born.time, 0)


def _of_run(reader: Reader, run: RunOutcome | None) -> Outcome:
    if run is None:
        return Outcome(end=None, turns=0, tokens=0, cost_micros=0, announced=None)
    used = _added(facts.Usage(), run.usage)
    return Outcome(
        end=run.code or run.status if run.ended else None,
        turns=0,
        tokens=used.total_tokens,
        cost_micros=used.cost_micros or 0,
        announced=run.reply,
        duration_ms=_since_cut(reader)(run.ended_ms or 0),
    )


def _added(used: facts.Usage, more: facts.Usage | None) -> facts.Usage:
    if more is None:
        return used
    return facts.Usage(
        total_tokens=used.total_tokens + more.tokens,
        cost_micros=(used.cost_micros or 0) + (more.cost_micros or 0),
    )


def agent_ids(reader: Reader) -> tuple[str, ...]:
    """Return the ids of the agents that a log can call: those of its sessions, and the configured ones.

    A runtime that ran sub-agents is among them, as `runtime:acp`.
    """
    prefix = ids.session_stream("")
    keys = [stream.removeprefix(prefix) for stream in reader.log.streams(prefix)]
    known = {SessionKey.recorded(key).agent_id for key in keys} | {runner_of(key) for key in keys}
    return tuple(sorted(known | set(reader.config.agent_ids)))
