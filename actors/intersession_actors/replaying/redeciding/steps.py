"""The step of a flow as it was told to a session, made again from the flow's own events. Pure."""

from collections.abc import Iterable

from msgspec.structs import replace

from intersession_actors import exchange, session, spawn
from intersession_actors.replaying.redeciding.sources import Sources
from intersession_actors.streams import Through
from intersession_events import facts
from intersession_events.log import StreamAppend

Step = session.Enqueue | session.Archive


def step_again(sources: Sources, carried: StreamAppend, said: Step) -> Step:
    """Return what a flow told a session whose append carried the flow's own.

    Of what the session `said` that it was told only those parts stay that the flow had from outside, such as how the session
    is opened, and when it was said.
    """
    through = _asked(sources, carried, said)
    if through is None:
        return said
    told: object = through((_as_told(carried, said),))[1]
    if isinstance(told, session.Enqueue):
        return replace(told, carried=(carried,))
    return replace(told, carried=(carried,)) if isinstance(told, session.Archive) else said


def _asked(sources: Sources, carried: StreamAppend, said: Step) -> Through | None:
    stream, first = carried.stream, carried.drafts[0]
    past = [one for one in sources.streams[stream] if one.version <= carried.expected + len(carried.drafts)]
    if stream.startswith("exchange:"):
        state = exchange.RULES.state_in(past)
        if state is None:
            return None
        state = replace(state, accepted=sources.accepted_as(state.accepted, past[-1]))
        if isinstance(first.event, facts.ExchangeAccepted) and isinstance(said, session.Enqueue):
            return lambda appends: exchange.primary_step(_opened(state, said), appends)
        return _first(exchange.step_asked(state, draft.event, first.causation) for draft in carried.drafts)
    spawned = spawn.RULES.state_in(past)
    if spawned is None:
        return None
    return _first(spawn.step_asked(spawned, draft.event, first.causation) for draft in carried.drafts)


def _first(asked: Iterable[Through | None]) -> Through | None:
    return next((one for one in asked if one is not None), None)


def _opened(state: exchange.Exchange, said: session.Enqueue) -> exchange.OpenExchange:
    return exchange.OpenExchange(
        accepted=state.accepted,
        budget=state.budget,
        opening=said.opening,
        run_timeout_ms=0 if said.queue is None else said.queue.timeout_ms,
        at_most=said.at_most,
    )


def _as_told(carried: StreamAppend, said: Step) -> StreamAppend:
    """Return the append as it was handed to the session: its time is the message's, and may be another than the log's."""
    if not isinstance(said, session.Enqueue):
        return carried
    return replace(
        carried, drafts=tuple(replace(draft, time=said.message.timestamp) for draft in carried.drafts)
    )
