"""What the records of exchanges' and spawns' decisions say alike of what was known, and how it is read again. Pure."""

from intersession_actors.flows.led import Circumstances
from intersession_actors.flows.rules import RecordRead
from intersession_actors.policy import age_s, time_at_age
from intersession_actors.streams import refused_in, refused_of, spent_in, spent_of
from intersession_events.facts import Budget
from intersession_events.plain_json import JsonObject


def knew_of(budget: Budget, now: Circumstances) -> JsonObject:
    """Return what a record says of circumstances; `budget` is the chain's, whose age stands for the time."""
    return {
        "age": age_s(budget, now.now_ms) if now.now_ms else 0,
        "hasRoute": now.has_route,
        "refused": refused_of(now.refused),
        "spent": spent_of(now.spent),
    }


def circumstances_in(read: RecordRead, budget: Budget) -> Circumstances:
    """Return the circumstances that a record tells of."""
    knew = read.record.knew
    return Circumstances(
        log_id=read.log_id,
        now_ms=time_at_age(budget, knew.get("age", 0)),
        has_route=knew.get("hasRoute", False),
        refused=refused_in(knew, read.stream, read.words),
        spent=spent_in(knew),
    )
