"""Where a fork stands: whether it is still running, which agents it waits for, and how it ended (FORK-8)."""

from collections.abc import Callable

import msgspec

from intersession_actors.service import Reader
from intersession_events import facts, ids
from intersession_events.keys import SessionKey
from intersession_projections.run_outcomes import RunOutcome


class Outcome(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How what was forked came out. `end` is why its loop ended, else why it is over; None while it is open.

    `announced` is the text that is, or would be, told outside. Tokens and money are those of all its runs.
    """

    end: str | None
    turns: int
    tokens: int
    cost_micros: int
    announced: str | None


def outcome_of(reader: Reader, run: str) -> Outcome:
    """Return how an exchange, a spawn or a run came out, by its id."""
    exchange, spawn, alone = reader.flows.exchange(run), reader.flows.spawn(run), reader.runs.get(run)
    end: str | None
    if exchange is not None:
        stream, end, turns = exchange.stream, exchange.end_reason or exchange.close_reason, exchange.turns
        if exchange.is_open:
            end = None
    elif spawn is not None:
        stream, end, turns = spawn.stream, spawn.close_reason, 0
    else:
        return _of_run(alone)
    used = facts.Usage()
    announced: str | None = None
    for recorded in reader.log.stream(stream):
        match recorded.event:
            case (
                facts.PrimaryEnded(usage=usage)
                | facts.TurnReplied(usage=usage)
                | facts.ChildEnded(usage=usage)
            ):
                used = _added(used, usage)
            case facts.AnnounceDecided(usage=usage, text=text):
                used, announced = _added(used, usage), text
            case _:
                pass
    return Outcome(
        end=end, turns=turns, tokens=used.total_tokens, cost_micros=used.cost_micros or 0, announced=announced
    )


def _of_run(run: RunOutcome | None) -> Outcome:
    if run is None:
        return Outcome(end=None, turns=0, tokens=0, cost_micros=0, announced=None)
    used = _added(facts.Usage(), run.usage)
    return Outcome(
        end=run.code or run.status if run.ended else None,
        turns=0,
        tokens=used.total_tokens,
        cost_micros=used.cost_micros or 0,
        announced=run.reply,
    )


def _added(used: facts.Usage, more: facts.Usage | None) -> facts.Usage:
    if more is None:
        return used
    return facts.Usage(
        total_tokens=used.total_tokens + more.tokens,
        cost_micros=(used.cost_micros or 0) + (more.cost_micros or 0),
    )


def is_at_rest(reader: Reader, has_agent: Callable[[str], bool]) -> bool:
    """Whether nothing happens any more in a fork: all that goes on has ended, or waits for agents that are not here.

    `has_agent` is asked for the key of a session.
    """
    frozen = reader.frozen()
    runs = [run for run in reader.runs.open_runs() if run.run_id not in frozen.runs]
    waiting = [run for run in runs if run.status == "queued" and not has_agent(run.session_key)]
    if runs:
        return len(waiting) == len(runs)
    flows = reader.flows
    open_streams = (*flows.open_exchanges(), *flows.open_spawns(), *flows.open_deliveries())
    return all(stream in frozen.flows for stream in open_streams)


def missing_agents(reader: Reader, has_agent: Callable[[str], bool]) -> tuple[str, ...]:
    """Return the ids of the agents that a fork waits for."""
    frozen = reader.frozen().runs
    return tuple(
        sorted(
            {
                SessionKey.recorded(run.session_key).agent_id
                for run in reader.runs.open_runs()
                if run.run_id not in frozen and not has_agent(run.session_key)
            }
        )
    )


def agent_ids(reader: Reader) -> tuple[str, ...]:
    """Return the ids of the agents that can be asked in a log: those of its sessions, and those that are configured."""
    prefix = ids.session_stream("")
    keys = [stream.removeprefix(prefix) for stream in reader.log.streams(prefix)]
    known = {SessionKey.recorded(key).agent_id for key in keys}
    return tuple(sorted(known | set(reader.config.agent_ids)))
