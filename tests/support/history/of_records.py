"""What decision records owe: what one says was known is what the world held when it was decided."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from intersession_events.facts import (
    AnnounceDecided,
    AnnounceRequested,
    DeliveryDecided,
    Event,
    ExchangeAccepted,
    RunCompleted,
    RunQueued,
    SessionArchived,
    SessionOpened,
    SessionReset,
)
from intersession_events.ids import session_stream
from intersession_events.log import Recorded
from support.history.evidence import Evidence, Held

_OUTCOMES = {"RunEnded", "ReleaseExchange", "Resume"}


def known_as_it_was(evidence: Evidence) -> Iterator[str]:
    """C8: what a decision record says was known is what the log, the agents and the channels held at that moment."""
    for name, items in evidence.streams.items():
        for number, item in enumerate(items):
            if not item.decision:
                continue
            known = evidence.held.get((name, item.version, item.decision))
            if known is None:
                continue  # nobody noted that moment
            record = json.loads(item.decision)
            for words in _wrong(evidence, items[:number], item, record, known):
                yield f"#{item.position} of {name} knew {record.get('knew', {})}, and {words}"


def _wrong(
    evidence: Evidence, before: Sequence[Recorded], item: Recorded, record: dict[str, Any], held: Held
) -> Iterator[str]:
    knew: dict[str, Any] = record.get("knew", {})
    first = before[0].event if before else None
    asked = record["asked"]
    match first:
        case ExchangeAccepted() if asked in _OUTCOMES and not _has(before, AnnounceRequested):
            yield from _wrong_use(evidence, item.correlation, knew, held)
            yield from _wrong_people(evidence, before[0], first, knew, held)
        case ExchangeAccepted(route=route) if asked in _OUTCOMES and not _has(before, AnnounceDecided):
            if knew.get("hasRoute", False) != (route is not None):
                yield f"the exchange was accepted with the route {route}"
        case DeliveryDecided(route=route) if asked == "Resume" and not {"sealed", "tooOldS"} & knew.keys():
            if knew.get("idempotent", False) != (route.channel == "keyed"):
                yield f"it goes to {route.channel}"
        case _:
            if item.stream.startswith("spawn:") and asked == "RunEnded":
                yield from _wrong_use(evidence, item.correlation, knew, held)


def _has(before: Sequence[Recorded], kind: type[Event]) -> bool:
    return any(isinstance(one.event, kind) for one in before)


def _wrong_use(evidence: Evidence, root: str | None, knew: dict[str, Any], held: Held) -> Iterator[str]:
    spent: dict[str, int] = knew.get("spent", {})
    runs = {
        event.run_id
        for item, event in evidence.of(RunQueued)
        if item.correlation == root and item.position <= held.head
    }
    used = [
        event.usage
        for item, event in evidence.of(RunCompleted)
        if event.run_id in runs and item.position <= held.head and event.usage is not None
    ]
    tokens, cost = sum(one.tokens for one in used), sum(one.cost_micros or 0 for one in used)
    if spent.get("runs", 0) < len(runs):
        yield f"the chain had {len(runs)} runs"
    if (spent.get("tokens", 0), spent.get("costMicros", 0)) != (tokens, cost):
        yield f"the chain had used {tokens} tokens and {cost} micros"


def _wrong_people(
    evidence: Evidence, begun: Recorded, accepted: ExchangeAccepted, knew: dict[str, Any], held: Held
) -> Iterator[str]:
    gone: list[str] = knew.get("gone", [])
    two = (
        ("target_gone", accepted.target, accepted.target_session_id),
        ("requester_gone", accepted.requester, accepted.requester_session_id),
    )
    for word, key, session_id in two:
        if key is None or session_id is None:
            continue
        now, since = session_id, 0
        for item in evidence.streams.get(session_stream(key), ()):
            match item.event:
                case SessionOpened(session_id=other) | SessionReset(session_id=other) if (
                    item.position <= held.head
                ):
                    now, since = other, item.position
                case SessionArchived() if item.position <= held.head:
                    now, since = "", item.position
                case _:
                    pass
        if word in gone and now == session_id:
            yield f"{key} was there"
        if word not in gone and now != session_id and since > begun.position:
            yield f"{key} was {now or 'nowhere'} since #{since}, not {session_id}"
    requester = accepted.requester
    if requester is not None and knew.get("noAgent", False) != (requester.split(":")[1] in held.absent):
        yield f"the agents that were not there were {sorted(held.absent)}"
