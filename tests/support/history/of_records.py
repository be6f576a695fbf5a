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
            if item.stream.startswith("session:"):
                yield from _wrong_of_session(evidence, before, item, record, held)


def _wrong_of_session(
    evidence: Evidence, before: Sequence[Recorded], item: Recorded, record: dict[str, Any], held: Held
) -> Iterator[str]:
    """Say what a session knew otherwise than it was: the time, its chain, how often it tries, what a person is told."""
    knew: dict[str, Any] = record.get("knew", {})
    if knew.get("nowMs", held.now_ms) != held.now_ms:
        yield f"the clock said {held.now_ms}"
    runs = {one.event.run_id: one.event for one in before if isinstance(one.event, RunQueued)}
    queued = runs.get(getattr(item.event, "run_id", ""))
    if queued is None:
        return
    limits = None if queued.budget is None else queued.budget.limits
    counts = limits is not None and bool(limits.tokens or limits.cost_micros)
    match record["asked"]:
        case "StartNext" if counts:
            yield from _wrong_use(evidence, item.correlation, knew, held)
        case "Wake":
            may_retry = 0 if knew.get("notCalled") else evidence.attempts - 1
            if knew.get("retries", 0) != may_retry:
                yield f"an attempt may be made again {may_retry} times"
        case _:
            pass
    if record["asked"] in {"Wake", "DeadlinePassed"}:
        is_asked = queued.route is not None and queued.step == "message" and queued.flow is None
        if is_asked != ("failureText" in knew):
            yield f"the route of run {queued.run_id} was {queued.route}"


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
