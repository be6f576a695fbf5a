"""What the events of any log owe each other: order, causes, one end each, limits kept."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final

from intersession_actors.rules.policy.chain import budget_of
from intersession_events.facts import (
    AnnounceDecided,
    AnnounceRequested,
    ChildArchived,
    ChildEnded,
    DeliveryDecided,
    DeliveryDone,
    DeliveryFailed,
    DeliveryRetried,
    DeliveryStarted,
    DeliveryUnknown,
    DeliveryWithheld,
    ExchangeAccepted,
    LoopEnded,
    ResultHanded,
    Route,
    RunAborted,
    RunCompleted,
    RunEnd,
    RunFailed,
    RunInterrupted,
    RunQueued,
    RunStarted,
    ScheduleFired,
    ScheduleMissed,
    SpawnAccepted,
    TurnEnded,
    TurnRequested,
    Usage,
)
from intersession_events.log.envelope import FIRST
from intersession_events.log.recorded import Recorded
from support.history.evidence import SLACK_S, Evidence, is_word, said

MOST_TURNS: Final = 5

OPENS: Final[Mapping[str, str]] = {
    "exchange": "exchange_accepted",
    "spawn": "spawn_accepted",
    "delivery": "delivery_decided",
}
CLOSES: Final[Mapping[str, frozenset[str]]] = {
    "exchange": frozenset({"exchange_closed"}),
    "spawn": frozenset({"spawn_closed"}),
    "delivery": frozenset(
        {"delivery_done", "delivery_failed", "delivery_unknown", "delivery_denied", "delivery_withheld"}
    ),
}
AGAIN: Final = frozenset(
    {
        "turn_requested",
        "turn_ended",
        "delivery_started",
        "delivery_failed",
        "delivery_retried",
        "exchange_held",
        "exchange_released",
        "hold_requested",
        "hold_withdrawn",
    }
)
"""What a flow may have more than once."""
AFTER: Final = frozenset(
    {"child_archived", "attachments_removed", "attachment_removal_failed", "delivery_retried"}
)
"""What may come when a flow is over."""
ORDER: Final = (
    "exchange_accepted spawn_accepted delivery_decided",
    "thread_opened attachments_ready",
    "child_ended",
    "turn_ended turn_requested",
    "loop_ended",
    "announce_requested",
    "announce_decided",
    "result_handed",
    "exchange_closed spawn_closed",
    "child_archived attachments_removed attachment_removal_failed",
)
RANK: Final[Mapping[str, int]] = {name: rank for rank, names in enumerate(ORDER) for name in names.split()}


def name_of(item: Recorded) -> str:
    """Return the name of an event without its version."""
    return item.topic.partition(".")[0]


def in_order(evidence: Evidence) -> Iterator[str]:
    """O1: one order of all, no gap in a stream, no fork, each event once, times that never fall."""
    position, epoch, ids = 0, 0, Counter(item.id for item in evidence.events)
    ends: dict[str, tuple[int, str]] = {}
    for item in evidence.events:
        if item.position <= position:
            yield f"#{item.position} stands behind #{position}"
        if item.epoch < epoch:
            yield f"#{item.position} is written by epoch {item.epoch} after {epoch}"
        position, epoch = item.position, item.epoch
        version, head = ends.get(item.stream, (0, FIRST))
        if item.version != version + 1:
            yield f"#{item.position}: version {item.version} of {item.stream} follows {version}"
        elif item.prev != head:
            yield f"#{item.position}: {item.stream} is forked at version {item.version}"
        ends[item.stream] = (item.version, item.hash)
    for event_id, times in ids.items():
        if times > 1:
            yield f"event {event_id} is there {times} times"


def after_causes(evidence: Evidence) -> Iterator[str]:
    """O1: no event before its cause."""
    seen: set[str] = set()
    for item in evidence.events:
        if item.causation is not None and item.causation not in seen:
            yield f"#{item.position} {item.topic} is caused by {item.causation}, which is not before it"
        seen.add(item.id)


def messages_once(evidence: Evidence) -> Iterator[str]:
    """O1: no message twice in a session, and each belongs to the session's generation of that moment."""
    for message_id, found in evidence.messages.items():
        if len(found) > 1:
            yield f"message {message_id} is there {len(found)} times: {[item.position for item, _ in found]}"


def runs_end_once(evidence: Evidence) -> Iterator[str]:
    """O2: a run is queued once, in one session, tried in order, and has one result."""
    for run_id, items in evidence.runs.items():
        names = [name_of(item) for item in items]
        if names[0] != "run_queued" or names.count("run_queued") != 1:
            yield f"run {run_id} is queued {names.count('run_queued')} times: {names}"
        if len({item.stream for item in items}) != 1:
            yield f"run {run_id} is in {sorted({item.stream for item in items})}"
        if (ends := sum(isinstance(item.event, RunEnd) for item in items)) > 1:
            yield f"run {run_id} has {ends} results"
        if (tried := names.count("run_started")) > evidence.attempts:
            yield f"run {run_id} is tried {tried} times"
        yield from _attempts(run_id, [item for item in items if name_of(item) != "late_reply_dropped"])


def _attempts(run_id: str, items: list[Recorded]) -> Iterator[str]:
    attempt, under_way, over = 0, False, False
    for item in items:
        if over:
            yield f"run {run_id} goes on with {item.topic} when it is over"
        match item.event:
            case RunStarted(attempt=number):
                if number != attempt + 1 or under_way:
                    yield f"run {run_id}: attempt {number} begins after {attempt}"
                attempt, under_way = number, True
            case RunInterrupted(attempt=number):
                if number != attempt or not under_way:
                    yield f"run {run_id}: attempt {number} is interrupted, which is not under way"
                under_way = False
            case RunCompleted(attempt=number):
                if number != attempt or not under_way:
                    yield f"run {run_id}: attempt {number} has an answer, and is not under way"
                over = True
            case RunFailed() | RunAborted():
                over = True
            case _:
                pass


def flows_in_order(evidence: Evidence) -> Iterator[str]:
    """O2, O3: a flow begins with its first event, does each thing once and in turn, and nothing when it is over."""
    for kind, first in OPENS.items():
        for items in evidence.flows(f"{kind}:"):
            stream, names = items[0].stream, [name_of(item) for item in items]
            if names[0] != first:
                yield f"{stream} begins with {names[0]}"
            for name, times in Counter(names).items():
                if times > 1 and name not in AGAIN:
                    yield f"{stream} has {name} {times} times"
            deleted = next((at for at, item in enumerate(items) if _is_deleted(item)), len(items))
            ranks = [
                RANK[name]
                for at, name in enumerate(names)
                if name in RANK and not (at >= deleted and name in AFTER)
            ]
            if ranks != sorted(ranks):
                yield f"{stream} is out of order: {' '.join(names)}"
            if kind != "delivery":
                closed = next((at for at, name in enumerate(names) if name in CLOSES[kind]), None)
                if closed is not None and not set(names[closed + 1 :]) <= AFTER:
                    yield f"{stream} goes on when it is closed: {' '.join(names)}"


def _is_deleted(item: Recorded) -> bool:
    """Say whether somebody deleted a child, which may be before its flow is over; its files go then, too."""
    return isinstance(item.event, ChildArchived) and item.event.reason == "deleted"


def turns_once(evidence: Evidence) -> Iterator[str]:
    """O2, L1: turns are counted through, each has one reply, none is beyond the limit."""
    for items in evidence.flows("exchange:"):
        accepted = items[0].event
        if not isinstance(accepted, ExchangeAccepted):
            continue
        asked = [item.event for item in items if isinstance(item.event, TurnRequested)]
        replied = [item.event for item in items if isinstance(item.event, TurnEnded) and item.event.turn]
        if [turn.turn for turn in asked] != list(range(1, len(asked) + 1)):
            yield f"{items[0].stream} asks for turns {[turn.turn for turn in asked]}"
        if len(asked) > min(accepted.settings.max_turns, MOST_TURNS):
            yield f"{items[0].stream} has {len(asked)} turns of {accepted.settings.max_turns}"
        answered = [(turn.turn, turn.run_id) for turn in replied]
        if answered != [(turn.turn, turn.run_id) for turn in asked][: len(answered)]:
            yield f"{items[0].stream} has answers of other turns than were asked for: {answered}"
        if len(asked) > len(replied) + 1:
            yield f"{items[0].stream} asks for a turn before the last was answered"


def words_are_theirs(evidence: Evidence) -> Iterator[str]:
    """O2: what a flow says of a run is what the run said, and said before."""
    told: list[tuple[Recorded, TurnEnded | ChildEnded]] = [
        *evidence.of(TurnEnded),
        *evidence.of(ChildEnded),
    ]
    for item, event in told:
        end = evidence.ends.get(event.run_id)
        reply = evidence.replies.get(event.run_id)
        if end is not None and end[0].position > item.position:
            yield f"#{item.position} knows how run {event.run_id} ends before it does"
        if (event.status == "ok") != (reply is not None):
            yield f"#{item.position} says {event.status} of run {event.run_id}"
        elif reply is not None:
            words = said(reply.reply)
            if isinstance(event, TurnEnded) and not event.turn and is_word(words, "REPLY_SKIP"):
                words = None
            if event.text != words:
                yield f"#{item.position} has other words than run {event.run_id}"
            kind = "nothing" if words is None else "skip" if is_word(words, "REPLY_SKIP") else "text"
            if isinstance(event, TurnEnded) and event.said != kind:
                yield f"#{item.position} takes {words!r} for {event.said}"


def silence_is_said(evidence: Evidence) -> Iterator[str]:
    """LOOP-2, ANN-1: who is taken for silent said the token and nothing else, and who said it is taken for silent."""
    for item, ended in evidence.of(LoopEnded):
        if ended.reason == "reply_skip":
            turns = [
                one.event.text for one in evidence.streams[item.stream] if isinstance(one.event, TurnEnded)
            ]
            if not turns or not is_word(turns[-1], "REPLY_SKIP"):
                yield f"#{item.position} takes {turns[-1:]} for silence"
    for item, decided in evidence.of(AnnounceDecided):
        reply = evidence.replies.get(decided.run_id or "")
        if reply is not None and decided.why in {"text", "announce_skip", "no_text"}:
            why = "no_text" if said(reply.reply) is None else "text"
            why = "announce_skip" if is_word(reply.reply, "ANNOUNCE_SKIP") else why
            if decided.why != why and item.stream.startswith("exchange:"):
                yield f"#{item.position} takes {reply.reply!r} for {decided.why}"


def aborts_are_asked_for(evidence: Evidence) -> Iterator[str]:
    """GATE-4: a run is stopped because somebody asks for that, or by a message that is accepted in the same commit."""
    if evidence.aborts is None:
        return
    for item, aborted in evidence.of(RunAborted):
        key = item.stream.partition(":")[2]
        after = evidence.streams[item.stream][item.version : item.version + 1]
        if aborted.gone or key in evidence.aborts or (after and isinstance(after[0].event, RunQueued)):
            continue
        yield f"#{item.position} stops run {aborted.run_id}, and nobody asked for it"


def limits_of_time_kept(evidence: Evidence) -> Iterator[str]:
    """L8: no run is ended before its time, whatever the wall clock does."""
    for item, failed in evidence.of(RunFailed):
        queued = evidence.queued.get(failed.run_id)
        starts = [one for one in evidence.runs[failed.run_id] if isinstance(one.event, RunStarted)]
        if failed.code != "timeout" or queued is None or not starts or starts[-1].epoch != item.epoch:
            continue
        if starts[-1].position in evidence.passed and item.position in evidence.passed:
            had = evidence.passed[item.position] - evidence.passed[starts[-1].position]
            if had < queued[1].timeout_ms / 1000 - SLACK_S:
                yield f"#{item.position} ends run {failed.run_id} of {queued[1].timeout_ms} ms after {had} s"
    for item, ended in evidence.of(LoopEnded):
        root, queued_root = evidence.queued.get(item.correlation or "", (None, None))
        if ended.reason != "wall_limit" or root is None or queued_root is None or queued_root.budget is None:
            continue
        if root.epoch == item.epoch and {root.position, item.position} <= evidence.passed.keys():
            had, may = (
                evidence.passed[item.position] - evidence.passed[root.position],
                queued_root.budget.limits.wall_seconds,
            )
            if had < may - SLACK_S:
                yield f"#{item.position} ends a chain of {may} s after {had} s"


def steps_whole(evidence: Evidence) -> Iterator[str]:
    """O2: what a flow asks of a session, its message and its run are there together, each once."""
    kinds: tuple[type[Any], ...] = (
        ExchangeAccepted,
        TurnRequested,
        AnnounceRequested,
        SpawnAccepted,
        ResultHanded,
    )
    asked = Counter(
        (event.run_id, event.message_id)
        for kind in kinds
        for item, event in evidence.of(kind)
        if not (isinstance(event, ResultHanded) and event.limit) and not _unstarted(evidence, item)
    )
    queued = Counter(
        (event.run_id, event.message_id) for _, event in evidence.of(RunQueued) if event.flow is not None
    )
    for (run_id, _), times in (asked - queued).items():
        yield f"run {run_id} is asked for and {times} times not queued"
    for (run_id, _), times in (queued - asked).items():
        yield f"run {run_id} is queued {times} times and not asked for"
    for item, event in evidence.of(RunQueued):
        if event.step != "compaction" and event.message_id not in evidence.messages:
            yield f"#{item.position} is to answer message {event.message_id}, which is not there"


def _unstarted(evidence: Evidence, item: Recorded) -> bool:
    """Say whether a spawn's child never began, or has not yet: its files or its thread could not be had."""
    event = item.event
    return isinstance(event, SpawnAccepted) and event.run_id not in evidence.queued


def generations_kept(evidence: Evidence) -> Iterator[str]:
    """HIST-6: what a flow asks for comes to the conversation that was authorised, never to the one in its place."""
    for item, event in evidence.of(RunQueued):
        flow = evidence.streams.get(event.flow or "")
        accepted = flow[0].event if flow else None
        if not isinstance(accepted, ExchangeAccepted):
            continue
        meant = {accepted.target: accepted.target_session_id}
        if accepted.requester is not None and accepted.requester_session_id is not None:
            meant[accepted.requester] = accepted.requester_session_id
        wanted = meant.get(item.stream.partition(":")[2])
        if wanted is not None and event.session_id != wanted:
            yield f"#{item.position} comes to {event.session_id} of {item.stream}, and was meant for {wanted}"
    now: dict[str, str] = {}
    for item in evidence.events:
        if not item.stream.startswith("session:"):
            continue
        match name_of(item):
            case "session_opened" | "session_reset":
                now[item.stream] = getattr(item.event, "session_id")  # noqa: B009 - both have it
            case "message_recorded":
                session_id = getattr(item.event, "session_id")  # noqa: B009 - it has it
                if now.get(item.stream, session_id) != session_id:
                    yield f"#{item.position} is said in {session_id}, and {item.stream} is {now[item.stream]}"
            case _:
                pass


def announced_once(evidence: Evidence) -> Iterator[str]:
    """O3: one delivery for each announce, answer and key."""
    decided = [event for _, event in evidence.of(DeliveryDecided)]
    counted = {
        "key": Counter(event.key for event in decided),
        "flow": Counter(event.owner for event in decided if event.owner is not None),
        "run": Counter(event.run_id for event in decided if event.owner is None and event.run_id is not None),
    }
    for what, found in counted.items():
        for name, times in found.items():
            if times > 1:
                yield f"{what} {name} has {times} deliveries"
    for _, event in evidence.of(AnnounceDecided):
        if event.delivery_id is not None and f"delivery:{event.delivery_id}" not in evidence.streams:
            yield f"delivery {event.delivery_id} was announced and is nowhere"


def deliveries_in_order(evidence: Evidence) -> Iterator[str]:
    """O3: the attempts of a delivery are counted through, and there is none when it is over."""
    for items in evidence.flows("delivery:"):
        attempts = [item.event.attempt for item in items if isinstance(item.event, DeliveryStarted)]
        if attempts != list(range(1, len(attempts) + 1)):
            yield f"{items[0].stream} is tried as {attempts}"
        over = False
        for item in items:
            if over and not isinstance(item.event, DeliveryRetried):
                yield f"{items[0].stream} goes on with {item.topic} when it is over"
            over = ends_delivery(item)


def places_in_order(evidence: Evidence) -> Iterator[str]:
    """ANN-5: no text to a place is on its way before one that was decided, or wanted once more, earlier and is not over."""
    places: dict[str, Route] = {}
    waiting: defaultdict[Route, list[str]] = defaultdict(list)
    for item in evidence.events:
        event = item.event
        if isinstance(event, DeliveryDecided):
            places[item.stream] = event.route
        place = places.get(item.stream)
        if place is None:
            continue
        line = waiting[place]
        if isinstance(event, DeliveryDecided | DeliveryRetried) and item.stream not in line:
            line.append(item.stream)
        elif isinstance(event, DeliveryStarted) and line and line[0] != item.stream:
            yield f"{item.stream} goes out before {line[0]}, which is not over"
        elif (ends_delivery(item) or isinstance(event, DeliveryWithheld)) and item.stream in line:
            line.remove(item.stream)


def jobs_fire_once(evidence: Evidence) -> Iterator[str]:
    """CRON-2: no time of a scheduled job is dealt with twice, and each that fired has its run beside it."""
    queued = {item.event.run_id for item in evidence.events if isinstance(item.event, RunQueued)}
    for items in evidence.flows("schedule:"):
        until = -1
        for item in items:
            event = item.event
            if not isinstance(event, ScheduleFired | ScheduleMissed):
                continue
            if event.due_ms <= until:
                yield f"{item.stream} comes back to {event.due_ms}, and was at {until}"
            until = event.due_ms
            if isinstance(event, ScheduleFired) and event.run_id not in queued:
                yield f"{item.stream} fired at {event.due_ms}, and has no run for it"


def ends_delivery(item: Recorded) -> bool:
    """Say whether a delivery is over with an event: a failure that is tried again is none."""
    event = item.event
    if isinstance(event, DeliveryFailed):
        return event.retry_at_ms is None
    return isinstance(event, DeliveryDone | DeliveryUnknown) or name_of(item) == "delivery_denied"


def keys_once(evidence: Evidence) -> Iterator[str]:
    """O4: one run for each idempotency key of a caller and kind of call."""
    runs: defaultdict[tuple[object, ...], set[str]] = defaultdict(set)
    for item, event in _accepted(evidence):
        if event.idempotency_key is not None:
            runs[item.topic, event.caller, event.idempotency_key].add(event.run_id)
    for (_, caller, key), found in runs.items():
        if len(found) > 1:
            yield f"key {key} of {caller} has {len(found)} runs"


def _accepted(evidence: Evidence) -> list[tuple[Recorded, ExchangeAccepted | SpawnAccepted]]:
    return [*evidence.of(ExchangeAccepted), *evidence.of(SpawnAccepted)]


def budgets_kept(evidence: Evidence) -> Iterator[str]:
    """L2: no causal chain has more runs, hops or returns than it may."""
    runs: Counter[str] = Counter()
    for item, event in evidence.of(RunQueued):
        budget = event.budget
        if budget is None:
            continue
        limits, returns = budget.limits, budget.path.count(budget.path[-1]) - 1 if budget.path else 0
        runs[budget.root] += 1
        for name, used, allowed in (
            ("run", runs[budget.root], limits.runs),
            ("hop", budget.hops, limits.hops),
            ("return", returns, limits.revisits),
        ):
            if 0 < allowed < used:
                yield f"#{item.position} is {name} {used} of {allowed} of chain {budget.root}"
        if budget.root not in (event.run_id, item.correlation):
            yield f"#{item.position} is of chain {budget.root} and is kept under {item.correlation}"


def use_kept(evidence: Evidence) -> Iterator[str]:
    """L2: no run starts when those of its chain that have ended have used all tokens, or all money, that there is.

    What ends while a start is on its way to the store is not known to it. Where nobody has noted what was known, it is what had
    ended before the last event of its session. The run that a chain begins with always starts: a summary that its session needs
    first is of the chain, and may have used all.
    """
    ends: defaultdict[str, list[tuple[int, Usage]]] = defaultdict(list)
    for item, ended in evidence.of(RunCompleted):
        budget = evidence.queued[ended.run_id][1].budget if ended.run_id in evidence.queued else None
        if budget is not None and ended.usage is not None:
            ends[budget.root].append((item.position, ended.usage))
    for item, event in evidence.of(RunStarted):
        budget = evidence.queued[event.run_id][1].budget if event.run_id in evidence.queued else None
        if budget is None or event.attempt != 1 or event.run_id == budget.root:
            continue
        stream = evidence.streams[item.stream]
        before = next((one.position for one in reversed(stream) if one.position < item.position), 0)
        known = evidence.decided.get(event.run_id, before)
        used = [usage for position, usage in ends[budget.root] if position <= known]
        tokens = sum(max(usage.tokens, 0) for usage in used)
        money = sum(max(usage.cost_micros or 0, 0) for usage in used)
        if 0 < budget.limits.tokens <= tokens:
            yield f"#{item.position} starts though chain {budget.root} has used {tokens} tokens"
        if 0 < budget.limits.cost_micros <= money:
            yield f"#{item.position} starts though chain {budget.root} has cost {money} micro-units"


def chains_go_on(evidence: Evidence) -> Iterator[str]:
    """L2: what a run asks for goes on with its chain, one hop farther, whatever it asks for."""
    for item, accepted in _accepted(evidence):
        _, cause = evidence.queued.get(accepted.requester_run_id or "", (None, None))
        if cause is None or cause.budget is None:
            continue
        budget = budget_of(accepted, None, 0)
        if budget.root != cause.budget.root:
            yield f"#{item.position} begins chain {budget.root}, and is of {cause.budget.root}"
        elif budget.hops != cause.budget.hops + 1:
            yield f"#{item.position} is hop {budget.hops} after {cause.budget.hops}"
        elif budget.path[:-1] != cause.budget.path:
            yield f"#{item.position} came by {budget.path}, and was asked for by {cause.budget.path}"
    yield from _of_their_flows(evidence)


def _of_their_flows(evidence: Evidence) -> Iterator[str]:
    """Say which runs, and which messages, are not as far in the chain as the flow that asks for them."""
    for item, queued in evidence.of(RunQueued):
        flow = evidence.streams.get(queued.flow or "")
        begun = flow[0].event if flow else None
        if isinstance(begun, ExchangeAccepted | SpawnAccepted):
            root = budget_of(begun, None, 0).root
            if queued.budget is None or queued.budget.root != root:
                yield f"#{item.position} is of {queued.flow}, and not of its chain {root}"
                continue
            said = [message.provenance for _, message in evidence.messages.get(queued.message_id, ())]
            hops = {one.hops or 0 for one in said if one is not None}
            if not hops <= {queued.budget.hops}:
                yield f"#{item.position} is hop {queued.budget.hops}, and its message says {hops}"


def all_ended(evidence: Evidence) -> Iterator[str]:
    """Liveness: every run and flow that was accepted has come to its end."""
    if not evidence.ended:
        return
    for run_id, items in evidence.runs.items():
        if run_id not in evidence.ends:
            yield f"run {run_id} of {items[0].stream} is open: {' '.join(map(name_of, items))}"
    for kind, closing in CLOSES.items():
        for items in evidence.flows(f"{kind}:"):
            names = [name_of(item) for item in items]
            is_over = ends_delivery(items[-1]) if kind == "delivery" else closing & set(names)
            if not is_over:
                yield f"{items[0].stream} is open: {' '.join(names)}"
    for item, message in evidence.said:
        if item.stream.startswith("session:") and message.role == "assistant" and message.run_id:
            run = evidence.queued.get(message.run_id)
            if run is None:
                yield f"#{item.position} is said by run {message.run_id}, which was never queued"
