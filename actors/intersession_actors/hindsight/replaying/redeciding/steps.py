"""The step of a flow as a session was told it, rebuilt from the flow's own events. Pure."""

from msgspec.structs import replace

from intersession_actors.hindsight.replaying.redeciding.sources import Sources
from intersession_actors.owners.exchange import commands as exchange_commands
from intersession_actors.owners.exchange import exchange
from intersession_actors.owners.exchange import records as exchange_records
from intersession_actors.owners.exchange import steps as exchange_steps
from intersession_actors.owners.session import commands as session_commands
from intersession_actors.owners.spawn import records as spawn_records
from intersession_actors.owners.spawn import steps as spawn_steps
from intersession_actors.owners.streams.effects import Through
from intersession_actors.owners.streams.records import record_in
from intersession_events import facts
from intersession_events.log.recorded import Recorded, StreamAppend

Step = session_commands.Enqueue | session_commands.Archive


def step_again(sources: Sources, first: Recorded, carried: StreamAppend | None, said: Step) -> Step | None:
    """Return a flow's message to a session whose append carried the flow's own, or to a door; None if it is missing.

    Of what the session `said` that it was told only those parts stay that the flow or the door had from outside, such as how the
    session is opened, and when it was said.
    """
    if carried is None:
        return _at_door(sources, first, said) if isinstance(said, session_commands.Enqueue) else said
    through = _asked(sources, carried, said)
    if through is None:
        return said
    told: object = through((_as_told(carried, said),))[1]
    if isinstance(told, session_commands.Enqueue):
        return replace(told, carried=(carried,))
    return replace(told, carried=(carried,)) if isinstance(told, session_commands.Archive) else said


def _at_door(
    sources: Sources, first: Recorded, said: session_commands.Enqueue
) -> session_commands.Enqueue | None:
    """Return a message with the budget that a door begins a causal chain with, or goes on with (LOOP-5)."""
    queue, settings = said.queue, sources.settings
    if queue is None:
        return said
    if queue.flow is not None:
        return None if queue.flow in sources.streams else said
    limits = [config.session.limits for config in settings.around(first.position)] if settings else []
    key, budget = first.stream.partition(":")[2], said.budget
    path = (key,) if budget.root == queue.run_id else (*budget.path[:-1], key)
    given = budget.limits if not limits or budget.limits in limits else limits[0]
    return replace(said, budget=replace(budget, path=path, limits=given))


def _asked(sources: Sources, carried: StreamAppend, said: Step) -> Through | None:
    stream, first = carried.stream, carried.drafts[0]
    past = [one for one in sources.streams[stream] if one.version <= carried.expected + len(carried.drafts)]
    if stream.startswith("exchange:"):
        state = exchange_records.RULES.state_in(past)
        if state is None:
            return None
        state = replace(state, accepted=sources.accepted_as(state.accepted, past[-1]))
        if isinstance(first.event, facts.ExchangeAccepted) and isinstance(said, session_commands.Enqueue):
            return lambda appends: exchange_steps.primary_step(_opened(state, said), appends)
        return exchange_steps.step_asked(state, first.event, sources)
    spawned = spawn_records.RULES.state_in(past)
    if spawned is None:
        return None
    given = said.given if isinstance(said, session_commands.Enqueue) else None
    accepted = spawned.accepted
    if given is not None and accepted.given_to and not accepted.given:
        # The child's stream alone has the messages that it began with.
        spawned = replace(spawned, accepted=replace(accepted, given=given.given))
    path = record_in(first.decision).knew.get("transcriptPath") if first.decision else None
    return spawn_steps.step_asked(spawned, first.event, sources, first.causation, path)


def _opened(state: exchange.Exchange, said: session_commands.Enqueue) -> exchange_commands.OpenExchange:
    return exchange_commands.OpenExchange(
        accepted=replace(state.accepted, message=facts.text_of(said.message)),
        budget=state.budget,
        opening=said.opening,
        run_timeout_ms=0 if said.queue is None else said.queue.timeout_ms,
        at_most=said.at_most,
    )


def _as_told(carried: StreamAppend, said: Step) -> StreamAppend:
    """Return the append as it was handed to the session: its time is the message's, and may be another than the log's."""
    if not isinstance(said, session_commands.Enqueue):
        return carried
    return replace(
        carried, drafts=tuple(replace(draft, time=said.message.timestamp) for draft in carried.drafts)
    )
