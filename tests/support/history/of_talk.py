"""What exchanges, spawns and deliveries owe those who talk: who speaks, in which words, why it ends, and what people are shown."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Final

from intersession_actors.calls.service.asking import digest_of
from intersession_events.facts import (
    AnnounceDecided,
    AnnounceRequested,
    DeliveryDecided,
    DeliveryDenied,
    DeliveryDone,
    DeliveryFailed,
    DeliveryStarted,
    DeliveryUnknown,
    DeliveryWithheld,
    ExchangeAccepted,
    ExchangeClosed,
    ExchangeHeld,
    ExchangeReleased,
    LoopEnded,
    Message,
    ResultHanded,
    RunAsked,
    RunQueued,
    SessionArchived,
    SessionImported,
    SessionOpened,
    SessionPatched,
    SessionReset,
    SpawnAccepted,
    SpawnClosed,
    TurnEnded,
    TurnRequested,
    same_request,
    text_of,
)
from intersession_events.log.recorded import Recorded
from support.history.evidence import Evidence, is_word, said


def each_in_turn(evidence: Evidence) -> Iterator[str]:
    """LOOP-1, ANN-1, SPAWN-9: the one whose turn it is speaks, in the session of its own."""
    where = {event.run_id: item.stream for item, event in evidence.of(RunQueued)}
    for items in [*evidence.flows("exchange:"), *evidence.flows("spawn:")]:
        accepted = items[0].event
        if not isinstance(accepted, ExchangeAccepted | SpawnAccepted):
            continue
        for item in items:
            event = item.event
            speaker = _speaker(accepted, event) if isinstance(event, RunAsked) else None
            if not isinstance(event, RunAsked) or speaker is None:
                continue
            if isinstance(event, TurnRequested | AnnounceRequested) and event.speaker != speaker:
                yield f"#{item.position} asks {event.speaker}, and it is for {speaker} to speak"
            if where.get(event.run_id, f"session:{speaker}") != f"session:{speaker}":
                yield f"#{item.position} asks {speaker}, and the run is in {where[event.run_id]}"


def _speaker(accepted: ExchangeAccepted | SpawnAccepted, event: RunAsked) -> str | None:
    """Return who is to speak: the requester in odd turns, and on a result."""
    match accepted, event:
        case ExchangeAccepted(), TurnRequested(turn=turn) if turn % 2:
            return accepted.requester
        case ExchangeAccepted(), _:
            return accepted.target
        case SpawnAccepted(), ResultHanded():
            return accepted.requester
        case _:
            return accepted.child


def words_go_on(evidence: Evidence) -> Iterator[str]:
    """LOOP-1, PROV-2, LIVE-1: what one is given is what the other said last, or who released it wrote, and it says from whom."""
    for items in evidence.flows("exchange:"):
        accepted = items[0].event
        if not isinstance(accepted, ExchangeAccepted):
            continue
        latest: str | None = accepted.message
        edited_by: str | None = None
        for item in items:
            event = item.event
            match event:
                case TurnEnded(text=text):
                    latest, edited_by = text, None
                case ExchangeHeld(step="reply", text=text) if text != latest:
                    yield f"#{item.position} holds {text!r}, and {latest!r} was said"
                case ExchangeReleased(action="edit", text=text, by=by):
                    latest, edited_by = text, by
                case ExchangeAccepted() | TurnRequested():
                    turn = 0 if isinstance(event, ExchangeAccepted) else event.turn
                    yield from _given(evidence, item, accepted, turn, (latest, edited_by))
                case _:
                    pass


def _given(
    evidence: Evidence,
    item: Recorded,
    accepted: ExchangeAccepted,
    turn: int,
    latest: tuple[str | None, str | None],
) -> Iterator[str]:
    event = item.event
    given = _message(evidence, event) if isinstance(event, RunAsked) else None
    if given is None:
        return
    words, edited_by = latest
    digests = [one for one in accepted.digests if one] if isinstance(event, ExchangeAccepted) else []
    if digests and not same_request(digests, (digest_of([accepted.target, text_of(given)]),)):
        yield f"#{item.position} gives {text_of(given)!r}, and something else was asked"
    if text_of(given) != words:
        yield f"#{item.position} gives {text_of(given)!r}, and {words!r} was said"
    origin = given.provenance
    other = accepted.target if turn % 2 else accepted.requester
    wanted = ("inter_session", other, accepted.exchange_id, turn, edited_by)
    told = (
        (origin.kind, origin.source_session_key, origin.exchange_id, origin.turn, origin.edited_by)
        if origin is not None
        else None
    )
    if told != wanted:
        yield f"#{item.position} gives what is from {wanted} as from {told}"


def results_go_on(evidence: Evidence) -> Iterator[str]:
    """SPAWN-9, PROV-2: a child is given its task, and its requester what is announced, each with a word on whom it is from."""
    for items in evidence.flows("spawn:"):
        accepted, words = items[0].event, None
        if not isinstance(accepted, SpawnAccepted):
            continue
        for item in items:
            event = item.event
            if isinstance(event, AnnounceDecided):
                words = event.text
            if not isinstance(event, SpawnAccepted | ResultHanded):
                continue
            given = _message(evidence, event)
            if given is None:
                continue
            begins = isinstance(event, SpawnAccepted)
            source, text = (accepted.requester, accepted.task) if begins else (accepted.child, words)
            if text_of(given) != text:
                yield f"#{item.position} gives {text_of(given)!r}, and {text!r} was said"
            origin = given.provenance
            if origin is None or (origin.kind, origin.source_session_key) != ("inter_session", source):
                yield f"#{item.position} gives what is from {source} as from {origin}"


def _message(evidence: Evidence, event: RunAsked) -> Message | None:
    found = evidence.messages.get(event.message_id)
    return found[0][1] if found else None


def loops_end_for_cause(evidence: Evidence) -> Iterator[str]:
    """LOOP-2: why a loop ends is what happened last, and it goes on where nothing of that did."""
    for items in evidence.flows("exchange:"):
        accepted = items[0].event
        if not isinstance(accepted, ExchangeAccepted):
            continue
        for index, item in enumerate(items):
            if not isinstance(item.event, LoopEnded | TurnRequested):
                continue
            turns = sum(isinstance(one.event, TurnRequested) for one in items[:index])
            may = _reasons(accepted, items[:index], turns)
            if isinstance(item.event, TurnRequested):
                if not may >= GUARDS:
                    yield f"#{item.position} asks for a turn, and the loop was to end by {sorted(may)}"
                continue
            if item.event.turns != turns:
                yield f"#{item.position} counts {item.event.turns} turns of {turns}"
            if item.event.reason not in may:
                yield f"#{item.position} ends the loop by {item.event.reason}, and it is for {sorted(may)} to"
            if not _is_gone(evidence, accepted, item):
                yield f"#{item.position} ends the loop by {item.event.reason}, and nobody is gone"


GUARDS: Final = frozenset(
    {"hop_limit", "revisit_limit", "run_limit", "token_limit", "cost_limit", "wall_limit"}
)
REFUSED: Final = frozenset({"policy_denied", "requester_gone", "target_gone", "turn_failed", "no_agent"})
"""Why a turn is not asked for though the last one has text: its session does not take it, or nobody is there."""


def _reasons(accepted: ExchangeAccepted, before: list[Recorded], turns: int) -> frozenset[str]:
    """Return by what a loop may end after so many turns; where it may go on, by a guard or a refusal alone."""
    last = next((one.event for one in reversed(before) if isinstance(one.event, TurnEnded)), None)
    released = [one.event for one in before if isinstance(one.event, ExchangeReleased)]
    is_released = bool(released) and isinstance(before[-1].event, ExchangeReleased)
    if is_released and released[-1].action in {"drop", "end"}:
        return frozenset({"dropped" if released[-1].action == "drop" else "ended"})
    if last is not None and last.turn:
        if last.status != "ok":
            gone = frozenset({"requester_gone", "target_gone"})
            reason = {"timeout": "turn_timeout", "aborted": "aborted"}.get(last.status, "turn_failed")
            return gone | {reason}
        if last.text is None:
            return frozenset({"no_text"})
        if is_word(last.text, "REPLY_SKIP"):
            return frozenset({"reply_skip"})
    if not accepted.loop or accepted.requester is None:
        return frozenset({accepted.loop_reason or "no_requester"})
    if turns >= accepted.settings.max_turns:
        return frozenset({"turn_limit"})
    return GUARDS | REFUSED


def _is_gone(evidence: Evidence, accepted: ExchangeAccepted, item: Recorded) -> bool:
    """Say whether one whose end ends a loop has ended, or has another conversation (HIST-6)."""
    event = item.event
    if not isinstance(event, LoopEnded) or event.reason not in {"requester_gone", "target_gone"}:
        return True
    of_requester = event.reason == "requester_gone"
    key = accepted.requester if of_requester else accepted.target
    meant = accepted.requester_session_id if of_requester else accepted.target_session_id
    now = None
    for one in evidence.streams.get(f"session:{key}", ()):
        if one.position > item.position:
            break
        match one.event:
            case SessionOpened(session_id=session_id) | SessionReset(session_id=session_id):
                now = session_id
            case SessionArchived():
                now = None
            case _:
                pass
    return now is None or now != meant


def announced_where_it_may_be(evidence: Evidence) -> Iterator[str]:
    """ANN-2: where only what has a route is announced, nobody is asked to announce to nobody."""
    for items in evidence.flows("exchange:"):
        accepted = items[0].event
        if isinstance(accepted, ExchangeAccepted) and accepted.settings.announce == "routed":
            for item, _ in evidence.of(AnnounceRequested) if accepted.route is None else ():
                if item.stream == items[0].stream:
                    yield f"#{item.position} asks for an announce, and there is nobody to hear it"


def announced_as_said(evidence: Evidence) -> Iterator[str]:
    """ANN-1, ANN-2, INB-2: what goes out is what was said for it, in the name of whoever said it, and to its own route."""
    for item, decided in evidence.of(AnnounceDecided):
        items = evidence.streams[item.stream]
        reply = evidence.replies.get(decided.run_id or "")
        if item.stream.startswith("exchange:") and decided.text is not None and decided.edited_by is None:
            words = said(reply.reply) if reply is not None else None
            if words != decided.text:
                yield f"#{item.position} announces {decided.text!r}, and {words!r} was said"
        if decided.edited_by is not None and not _edited(items, decided):
            yield f"#{item.position} announces what nobody wrote: {decided.text!r}"
    for item, event in evidence.of(DeliveryDecided):
        owner = evidence.streams.get(event.owner or "")
        if owner is not None:
            yield from _announced(item, event, owner)
        elif event.purpose == "auto_reply":
            yield from _answered(evidence, item, event)


def _edited(items: list[Recorded], decided: AnnounceDecided) -> bool:
    return any(
        isinstance(one.event, ExchangeReleased)
        and (one.event.action, one.event.text, one.event.by) == ("edit", decided.text, decided.edited_by)
        for one in items
    )


def _announced(item: Recorded, event: DeliveryDecided, owner: list[Recorded]) -> Iterator[str]:
    accepted = owner[0].event
    texts = [one.event.text for one in owner if isinstance(one.event, AnnounceDecided)]
    if texts != [event.text]:
        yield f"#{item.position} is to show {event.text!r}, and {texts} was decided"
    if not isinstance(accepted, ExchangeAccepted | SpawnAccepted):
        return
    speaker = accepted.target if isinstance(accepted, ExchangeAccepted) else accepted.requester
    threaded = isinstance(accepted, SpawnAccepted) and accepted.thread is not None
    if not threaded and accepted.route is not None and event.route != accepted.route:
        yield f"#{item.position} goes to {event.route}, and was meant for {accepted.route}"
    if not threaded and event.session_key != speaker:
        yield f"#{item.position} goes out in the name of {event.session_key}, and {speaker} speaks"


def _answered(evidence: Evidence, item: Recorded, event: DeliveryDecided) -> Iterator[str]:
    reply, (asked, queued) = (
        evidence.replies.get(event.run_id or ""),
        evidence.queued.get(event.run_id or "", (None, None)),
    )
    if reply is None or asked is None or queued is None:
        yield f"#{item.position} is the answer of run {event.run_id}, which has none"
        return
    if said(reply.reply) != event.text:
        yield f"#{item.position} is to show {event.text!r}, and {reply.reply!r} was said"
    if event.route != queued.route:
        yield f"#{item.position} goes to {event.route}, and was meant for {queued.route}"
    if f"session:{event.session_key}" != asked.stream:
        yield f"#{item.position} goes out in the name of {event.session_key}, and {asked.stream} speaks"


NO_RULE: Final = "no rule of session.sendPolicy matches: allow"
OWN: Final = "the session's own sendPolicy: "


def policy_at_each_attempt(evidence: Evidence) -> Iterator[str]:
    """POL-3: the send policy is asked before each attempt; its word is of between the event before and the attempt."""
    for items in evidence.flows("delivery:"):
        decided = items[0].event
        if not isinstance(decided, DeliveryDecided):
            continue
        for before, item in pairwise(items):
            match item.event:
                case DeliveryStarted(rule=str(rule)) | DeliveryDenied(rule=str(rule)):
                    pass
                case _:
                    continue
            if isinstance(item.event, DeliveryDenied) != (": deny" in rule):
                yield f"#{item.position} is {type(item.event).__name__} by {rule!r}"
            if rule != NO_RULE and not rule.startswith(OWN):
                continue  # a rule of the configuration, or the answer to a command
            own = rule.removeprefix(OWN) if rule.startswith(OWN) else None
            stood = _own_policies(evidence, f"session:{decided.session_key}", before.position, item.position)
            if own not in stood:
                yield f"#{item.position} goes by {rule!r}, and the session's own setting was {stood}"


def _own_policies(evidence: Evidence, stream: str, since: int, until: int) -> list[str | None]:
    """Return what a session's own send policy was, from one position to another."""
    stood: list[str | None] = [None]
    for item in evidence.streams.get(stream, ()):
        if item.position >= until:
            break
        match item.event:
            case SessionPatched(values=values, cleared=cleared) if "sendPolicy" in {*values, *cleared}:
                now = values.get("sendPolicy")
            case SessionImported(send_policy=now):
                pass
            case SessionOpened():
                now = None
            case _:
                continue
        stood = [*stood, now] if item.position > since else [now]
    return stood


PAUSES_MS: Final = (1_000, 4_000, 16_000, 64_000, 256_000)
LONGEST_PAUSE_MS: Final = 300_000
MOST_CUT_OFF: Final = 5


def pauses_of_deliveries(evidence: Evidence) -> Iterator[str]:
    """ANN-3: a text waits after each failure as the protocol says, or as its channel asks, and is not cut off for ever."""
    for items in evidence.flows("delivery:"):
        cut_off = 0
        for item in items:
            match item.event:
                case DeliveryStarted():
                    cut_off += 1
                    if cut_off > MOST_CUT_OFF:
                        yield f"#{item.position} is attempt {cut_off} in a row that has no outcome"
                case DeliveryFailed(retry_at_ms=int(due), failed_ms=int(failed)) as event:
                    cut_off = 0
                    grown = [*PAUSES_MS[event.attempt - 1 : event.attempt], LONGEST_PAUSE_MS][0]
                    pause = grown if event.later_ms is None else event.later_ms
                    if due - failed != pause:
                        yield f"#{item.position} waits for {due - failed} ms behind attempt {event.attempt}, not {pause}"
                case _:
                    cut_off = 0


DELIVERED: Final[Mapping[str, tuple[type[object], ...]]] = {
    "announced": (DeliveryDone,),
    "announce_failed": (DeliveryFailed,),
    "announce_denied": (DeliveryDenied,),
    "delivery_unknown": (DeliveryUnknown,),
    "withheld": (DeliveryWithheld,),
    "no_route": (DeliveryDone,),
}
"""How the delivery ended of a flow that is closed so."""


def closed_as_it_ended(evidence: Evidence) -> Iterator[str]:
    """SEND-5, ANN-1 to ANN-3, SPAWN-9: how a flow is closed is what became of it."""
    closes: list[tuple[Recorded, ExchangeClosed | SpawnClosed]] = [
        *evidence.of(ExchangeClosed),
        *evidence.of(SpawnClosed),
    ]
    for item, closed in closes:
        before = evidence.streams[item.stream]
        before = before[: before.index(item)]
        decided = next((one.event for one in before if isinstance(one.event, AnnounceDecided)), None)
        if decided is not None and decided.delivery_id is not None:
            kinds = DELIVERED.get(closed.reason, ())
            ended = evidence.streams.get(f"delivery:{decided.delivery_id}", [])
            if not any(isinstance(one.event, kinds) and one.position < item.position for one in ended):
                yield f"#{item.position} is closed as {closed.reason}, and its delivery is not"
        elif closed.reason not in (may := _closings(before, decided)):
            yield f"#{item.position} is closed as {closed.reason}, and that is for {sorted(may)}"


def _closings(before: list[Recorded], decided: AnnounceDecided | None) -> frozenset[str]:
    """Return how a flow may be closed of which nothing goes to a channel."""
    last = before[-1].event
    if isinstance(before[0].event, SpawnAccepted):
        if decided is None:
            return frozenset({"not_started"})
        if decided.text is None:
            return frozenset({"silent"})
        return frozenset(
            {"handed_over"} if isinstance(last, ResultHanded) else {"no_route", "requester_gone"}
        )
    if isinstance(last, TurnEnded):
        if last.status != "ok":
            return frozenset({"aborted" if last.status == "aborted" else "run_failed"})
        return frozenset({"no_reply"} if last.text is None else ())
    if decided is not None:
        accepted = before[0].event
        has_route = isinstance(accepted, ExchangeAccepted) and accepted.route is not None
        return UNSENT[decided.why] - {"no_route" if has_route else ""}
    released = next((one.event for one in reversed(before) if isinstance(one.event, ExchangeReleased)), None)
    return frozenset({"dropped"} if released is not None and released.action == "drop" else {"ended"})


UNSENT: Final[Mapping[str, frozenset[str]]] = {
    "text": frozenset({"no_route"}),
    "not_routed": frozenset({"no_route"}),
    "announce_skip": frozenset({"silent"}),
    "no_text": frozenset({"silent"}),
    "dropped": frozenset({"silent", "ended"}),
    "run_failed": frozenset({"announce_failed", "target_gone"}),
    "limit": frozenset({"announce_failed"}),
}
"""How an exchange is closed whose announce goes nowhere, by why it does not."""
