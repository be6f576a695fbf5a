"""What simulated logs are decided again by that is not as it was: other rules, and records that say something else."""

from collections.abc import Collection, Iterator
from functools import lru_cache
from types import ModuleType
from typing import Any, Final

import msgspec

from intersession_actors.hindsight.replaying.redeciding.deciding_again import redecided, redecided_all
from intersession_actors.hindsight.replaying.redeciding.sources import Sources
from intersession_actors.owners.delivery import rules as delivery_rules
from intersession_actors.owners.exchange import holds as hold_rules
from intersession_actors.owners.exchange import rules as exchange_rules
from intersession_actors.owners.session import rules as session_rules
from intersession_actors.owners.spawn import rules as spawn_rules
from intersession_actors.rules.policy import chain
from intersession_events.log.recorded import Recorded
from simulation.seed import Kept, recorded_in

RULES: Final[dict[str, tuple[ModuleType, str, str]]] = {
    "a turn more": (exchange_rules, "state.turn >= settings.max_turns", "state.turn > settings.max_turns"),
    "an absent agent is asked": (exchange_rules, "if not now.requester_has_agent:", "if False:"),
    "another id": (
        exchange_rules,
        'ids.derive(now.log_id, "run", accepted.exchange_id, "turn", turn)',
        'ids.derive(now.log_id, "run", accepted.exchange_id, "turned", turn)',
    ),
    "a chain may last": (chain, "used < allowed", 'name == "wallSeconds" or used < allowed'),
    "a chain may have runs": (chain, "used < allowed", 'name == "runs" or used < allowed'),
    "what is denied goes out": (delivery_rules, "if not verdict.allowed:", "if False:"),
    "what was cut off is never tried again": (delivery_rules, "if idempotent:", "if False:"),
    "twice the pause before another attempt": (
        delivery_rules,
        "FIRST_RETRY_MS: Final = 1_000",
        "FIRST_RETRY_MS: Final = 2_000",
    ),
    "a child that broke is asked again": (
        spawn_rules,
        'if outcome.status != "ok" or asked.run_id in now.refused:',
        "if asked.run_id in now.refused:",
    ),
    "what is held before the announce is held before replies": (
        hold_rules,
        'order.before in {"next", step}',
        'order.before in {"next", "announce", step}',
    ),
    "what is held once is held twice": (
        hold_rules,
        'order.before in {"next", step} and order.order not in served',
        'order.before in {"next", step}',
    ),
    "an attempt that was cut off is made once less": (
        session_rules,
        "counted <= now.retries",
        "counted < now.retries",
    ),
    "a run may last longer": (session_rules, "now_ms + queued.timeout_ms", "now_ms + queued.timeout_ms + 1"),
    "nobody hears of a failure": (
        session_rules,
        "return _of_the_run(state, decided, notice)",
        "return _of_the_run(state, decided)",
    ),
    "a run starts that its chain can't pay": (session_rules, "if tripped is not None:", "if False:"),
}
"""Rules that say something else: where the rule is, what it says, and what it would say."""

RECORDS: Final = (
    *("DeliveryReturned knew nowMs", "DeliveryReturned with attempt", "DeliveryReturned with error"),
    *("DeliveryReturned with inDoubt", "DeliveryReturned with receipt", "DeliveryReturned with retry"),
    "Enqueue knew threadLeft",
    *("HoldExchange with before", "HoldExchange with by", "OpenExchange knew spent"),
    *("Prepared with manifestSha256", "ReleaseExchange knew hasRoute", "ReleaseExchange knew heldMs"),
    *("ReleaseExchange with action", "ReleaseExchange with by"),
    *("RunEnded knew age", "RunEnded knew hasRoute", "RunEnded knew refused", "RunEnded knew spent"),
    *("RunEnded knew wallMs", "RunReturned knew nowMs"),
    *("SendChecked with after", "SendChecked with denied", "SendChecked with rule"),
    *("StartNext knew nowMs", "StartNext knew spent", "TooOld knew cutOff", "TooOld knew tooOldS"),
    *("Unbind knew threadLeft", "Wake knew ageMs", "Wake knew failureText", "Wake knew retries"),
)
"""What a record can say otherwise, by its command."""


@lru_cache(maxsize=64)
def log_of(seed: int) -> Kept:
    """Return the log of a seed, which is the same each time."""
    return recorded_in(seed)


def differing(kept: Kept) -> list[str]:
    """Return what is decided otherwise from its record than it was."""
    return [
        f"{one.append[0].stream} version {one.append[0].version}: {one.problem or one.now}"
        for one in redecided_all(Sources(*kept))
        if not one.is_same
    ]


def seen_of(kept: Kept, names: Collection[str]) -> set[str]:
    """Return which of the fields make a difference where one record of a log says them otherwise."""
    log_id, events = kept
    seen: set[str] = set()
    for name, stream, doctored in _doctored(events, names):
        if name not in seen and not all(one.is_same for one in redecided(Sources(log_id, doctored), stream)):
            seen.add(name)
    return seen


def _doctored(events: list[Recorded], names: Collection[str]) -> Iterator[tuple[str, str, list[Recorded]]]:
    """Yield what is doctored, in which stream, and the events with one field of one record that says something else."""
    for number, event in enumerate(events):
        record: dict[str, Any] = msgspec.json.decode(event.decision) if event.decision else {}
        for part in ("knew", "with"):
            for field, value in record.get(part, {}).items():
                name = f"{record['asked']} {part} {field}"
                if name not in names:
                    continue
                changed = {**record, part: {**record[part], field: _other(value)}}
                decision = msgspec.json.encode(changed, order="sorted").decode()
                doctored = msgspec.structs.replace(event, decision=decision)
                yield name, event.stream, [*events[:number], doctored, *events[number + 1 :]]


def _other(value: Any) -> Any:
    match value:
        case bool():
            return not value
        case int():
            return value + 1_000_000
        case str():
            return f"{value}x"
        case {"runs": int()}:
            return {
                name: _other(used) for name, used in value.items()
            }  # less than was used is never refused at a door
        case _:
            return type(value)()
