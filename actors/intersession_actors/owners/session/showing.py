"""An answer that is shown on its channel while it is said (STREAM-5): when it begins, and how its message ends.

Only answers to a person on a channel that can edit a message are. The decisions are pure; `rules.py` asks them.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from intersession_actors.outside.channels.drafts import NO_RECEIPT
from intersession_actors.owners.session import commands
from intersession_actors.owners.session.answers import has_asker
from intersession_actors.owners.session.state import Running, Session, is_current
from intersession_actors.owners.streams.commands import Refused
from intersession_actors.owners.streams.drafting import into_outbox
from intersession_actors.owners.streams.effects import Effect, Plan
from intersession_actors.rules.policy.sending import Verdict
from intersession_events import facts
from intersession_events.basics import ids
from intersession_events.log.recorded import StreamAppend

STOPPED: Final = "[stopped]"
"""Ends a message that was begun, where no other words come in its place."""


class ShowDraft(Effect, frozen=True):
    """Have the channel show what the attempt under way says, from a message on that was begun before, if there is one."""

    running: Running


def decide_show(
    state: Session, command: commands.ShowAnswer, verdict: Verdict | None
) -> list[facts.AnswerShown]:
    """Return the event before the first words go out; none if they may not, or if an attempt before has begun a message."""
    running = state.running
    if running is None or not is_current(state, command.run_id, command.attempt):
        return []
    if (
        running.waiting.shown is not None
        or not has_asker(running)
        or not (verdict is None or verdict.allowed)
    ):
        return []
    return [facts.AnswerShown(run_id=command.run_id, attempt=command.attempt)]


def decide_taken(state: Session, command: commands.AnswerTaken) -> list[facts.AnswerShown]:
    """Return the record of what came of the first words; none if the run is over, which tells its delivery itself."""
    running = state.running
    if running is None or running.waiting.shown is None or running.waiting.shown.receipt is not None:
        return []
    if not is_current(state, command.run_id, command.attempt):
        return []
    return [
        facts.AnswerShown(
            run_id=command.run_id, attempt=command.attempt, receipt=command.receipt, error=command.error
        )
    ]


def goes_on(state: Session, command: commands.ShowAnswer) -> Sequence[Effect]:
    """Return the effect of an attempt that goes on with the message that one before it has begun."""
    running = state.running
    if running is None or not is_current(state, command.run_id, command.attempt):
        return ()
    shown = running.waiting.shown
    return () if shown is None or shown.receipt is None else (ShowDraft(running),)


def message_ended(
    state: Session, plan: Plan | Refused, *, key: str, log_id: str, now_ms: int
) -> Plan | Refused:
    """Return a plan in which the end of the run under way ends the message that was begun: the text for the person edits it.

    Where there is no such text, it ends in words, behind what it had shown.
    """
    running = state.running
    if isinstance(plan, Refused) or running is None or running.waiting.shown is None:
        return plan
    queued = running.waiting.queued
    end = next(
        (one for one in plan.events if isinstance(one, facts.RunEnd) and one.run_id == queued.run_id), None
    )
    if end is None or queued.route is None:
        return plan
    said = None if isinstance(end, facts.RunCompleted) else end.partial
    edits = running.waiting.shown.receipt or NO_RECEIPT
    carried = list[StreamAppend]()
    is_told = False
    for append in plan.carried:
        decided = append.drafts[0].event
        if isinstance(decided, facts.DeliveryDecided) and decided.run_id == queued.run_id:
            is_told = True
            is_answer = decided.purpose == "auto_reply"
            text = decided.text if is_answer or said is None else f"{said}\n\n{decided.text}"
            text = text or STOPPED  # of an answer of nothing but files
            decided = msgspec.structs.replace(decided, text=text, edits=edits)
            append = into_outbox(  # noqa: PLW2901 - the same, with what it edits
                log_id, decided, budget=running.waiting.budget, time=now_ms, causation=running.cause
            )
        carried.append(append)
    if not is_told:
        delivery_id = ids.derive(log_id, "delivery", queued.run_id, "failure_notice")
        ended = facts.DeliveryDecided(
            delivery_id=delivery_id,
            session_key=key,
            route=queued.route,
            text=STOPPED if said is None else f"{said}\n\n{STOPPED}",
            key=delivery_id,
            purpose="failure_notice",
            run_id=queued.run_id,
            edits=edits,
        )
        carried.append(
            into_outbox(log_id, ended, budget=running.waiting.budget, time=now_ms, causation=running.cause)
        )
    return msgspec.structs.replace(plan, carried=tuple(carried))
