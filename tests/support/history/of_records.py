"""What decision records owe: what one says was known is what the world held when it was decided."""

import json
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any

from intersession_events.basics.ids import session_stream
from intersession_events.facts import (
    AnnounceDecided,
    AnnounceRequested,
    DeliveryDecided,
    Event,
    ExchangeAccepted,
    RunCompleted,
    RunQueued,
    RunStarted,
    SessionArchived,
    SessionOpened,
    SessionReset,
    ThreadBound,
    ThreadUnbound,
)
from intersession_events.log.recorded import Recorded
from support.history.evidence import Evidence, Held

_OUTCOMES = {"RunEnded", "ReleaseExchange", "Resume"}


def known_as_it_was(evidence: Evidence) -> Iterator[str]:
    """C8: what a decision record says was known is what the log, the agents and the channels held at that moment."""
    for name, items in evidence.streams.items():
        for number, item in enumerate(items):
            if not item.decision or (number and items[number - 1].version == item.version):
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
    yield from _wrong_thread(evidence, before, knew, held)
    yield from _wrong_room(evidence, item, knew, held)
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
            yield from _wrong_age(evidence, before, queued, knew, held)
        case _:
            pass
    if record["asked"] in {"Wake", "DeadlinePassed"}:
        is_asked = queued.route is not None and queued.step == "message" and queued.flow is None
        if is_asked != ("failureText" in knew):
            yield f"the route of run {queued.run_id} was {queued.route}"


def _wrong_age(
    evidence: Evidence, before: Sequence[Recorded], queued: RunQueued, knew: dict[str, Any], held: Held
) -> Iterator[str]:
    """Say where the age of an attempt is another one that a sub-agent has been cut off in."""
    (start,) = [
        one
        for one in before
        if isinstance(one.event, RunStarted) and one.event.run_id == queued.run_id and one.event.deadline_ms
    ][-1:] or (None,)
    if start is None or None in {queued.spawn_id, queued.caller} or queued.step != "message":
        if "ageMs" in knew:
            yield "it was not the task of a sub-agent that has so long"
        return
    assert isinstance(start.event, RunStarted)
    began_ms = start.event.deadline_ms - queued.timeout_ms
    age_ms = _since(evidence, before, start, began_ms, held)
    if age_ms is not None and knew.get("ageMs", 0) != age_ms:
        yield f"the attempt had gone on for {age_ms} ms"


def _wrong_thread(
    evidence: Evidence, before: Sequence[Recorded], knew: dict[str, Any], held: Held
) -> Iterator[str]:
    """Say where a thread was bound to the session for longer, or for less, than it was taken to be."""
    bound: Recorded | None = None
    last: Recorded | None = None
    for one in before:
        match one.event:
            case ThreadBound():
                bound = one
            case ThreadUnbound():
                bound = None
            case _:
                last = one if _is_said(one) else last
    if "threadLeft" not in knew:
        return
    if bound is None or not isinstance(bound.event, ThreadBound):
        yield "no thread was bound to it"
        return
    age_ms = _since(evidence, before, bound, bound.time, held)
    quiet_ms = age_ms if last is None else _since(evidence, before, last, last.time, held)
    if age_ms is None or quiet_ms is None:
        return
    limits: list[tuple[int, str]] = []
    if bound.event.max_age_ms:
        limits.append((bound.event.max_age_ms - age_ms, "max_age"))
    if bound.event.idle_ms:
        limits.append((bound.event.idle_ms - min(age_ms, quiet_ms), "idle"))
    left, why = min(limits)
    if (knew["threadLeft"].get("ms", 0), knew["threadLeft"]["why"]) != (left, why):
        yield f"its thread was its own for {left} ms ({why})"


def _is_said(item: Recorded) -> bool:
    """Say whether an event of a session has a message."""
    return getattr(item.event, "message", None) is not None


def _since(
    evidence: Evidence, before: Sequence[Recorded], item: Recorded, time_ms: int, held: Held
) -> int | None:
    """Return how many milliseconds ago an event of a stream was decided; None where the world can't say.

    What this process has seen begin is measured by the clock that nobody sets, and what was there before it by the wall clock. What
    the log says of a time that was yet to come when this process began is measured from when it first looked, which nobody noted.
    """
    if item.position <= held.begun:
        return None if held.was_set or time_ms > held.begun_ms else held.now_ms - time_ms
    for one in reversed(before[: before.index(item) + 1]):
        if (then := evidence.held.get((one.stream, one.version, one.decision))) is not None:
            return round((held.seconds - then.asked) * 1000)
    return None


def _wrong_room(evidence: Evidence, item: Recorded, knew: dict[str, Any], held: Held) -> Iterator[str]:
    """Say where there was room for the tools of a session that it did not get, or none for those that it got (CTX-3)."""
    rest = evidence.streams[item.stream][item.version :]
    append = [item, *takewhile(lambda one: not one.decision, rest)]
    start = next((one.event for one in append if isinstance(one.event, RunStarted)), None)
    if start is None or held.tools is None or start.covers is not None:
        return
    window = evidence.windows.get(item.stream.split(":")[2], 128_000)
    tools = len(held.tools)
    withheld = 0 if window - min(window // 4, 8_192) - 750 * tools >= 1_024 else tools
    if knew.get("withheld", 0) != withheld:
        yield f"there was no room for {withheld} tools of {tools} in a window of {window} tokens"


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
