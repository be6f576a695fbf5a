"""What the log owes those outside: clients and their answers, agents and what they were given, channels and their people."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from intersession_events.facts import (
    DeliveryDecided,
    DeliveryDone,
    DeliveryFailed,
    DeliveryStarted,
    DeliveryUnknown,
    ExchangeAccepted,
    ExchangeReleased,
    RunCompleted,
    RunFailed,
    RunQueued,
    RunStarted,
    message_in,
    text_of,
)
from support.history.evidence import Evidence, Op, Shown, said


def acknowledged_once(evidence: Evidence) -> Iterator[str]:
    """D1, O1: what was acknowledged is there exactly once, and was there when it was acknowledged."""
    queued = Counter(event.run_id for _, event in evidence.of(RunQueued))
    for op in _writes(evidence):
        if op.outcome != "ok" or op.run_id is None:
            continue
        if queued[op.run_id] != 1:
            yield f"{op.call} was acknowledged, and run {op.run_id} is queued {queued[op.run_id]} times"
            continue
        item, run = evidence.queued[op.run_id]
        if item.position > op.position:
            yield f"{op.call} was acknowledged at #{op.position} and recorded at #{item.position}"
        told = [text_of(message) for _, message in evidence.messages.get(run.message_id, ())]
        if op.text is not None and told != [op.text]:
            yield f"{op.call} said {op.text!r}, and the log has {told}"


def said_once(evidence: Evidence) -> Iterator[str]:
    """O1: what is in doubt is there at most once, what was refused not at all."""
    outcomes: defaultdict[str, set[str]] = defaultdict(set)
    for op in _writes(evidence):
        if op.text is not None:
            outcomes[op.text].add(op.outcome)
    found = Counter(
        text
        for item, message in evidence.said
        if message.role == "user"
        and item.stream.startswith("session:")
        and (text := text_of(message)) in outcomes
    )
    for text, how in outcomes.items():
        if found[text] > 1:
            yield f"{text!r} was said once, and is there {found[text]} times"
        elif found[text] == 1 and how == {"fail"}:
            yield f"{text!r} was refused, and is there"


def keys_answer_alike(evidence: Evidence) -> Iterator[str]:
    """O4: a call that is made again has the run that it had, and is not refused."""
    runs: defaultdict[str, set[str]] = defaultdict(set)
    for op in _writes(evidence):
        if op.outcome == "fail" and op.call in runs:
            yield f"{op.call} was accepted, and is refused when it is made again: {dict(op.answer)}"
        if op.outcome == "ok" and op.call is not None and op.run_id is not None:
            runs[op.call].add(op.run_id)
    for call, found in runs.items():
        if len(found) > 1:
            yield f"{call} has {len(found)} runs: {sorted(found)}"
    calls: defaultdict[str, set[str]] = defaultdict(set)
    for call, found in runs.items():
        for run_id in found:
            calls[run_id].add(call)
    for run_id, named in calls.items():
        if len(named) > 1:
            yield f"run {run_id} is the answer of {sorted(named)}"


def reads_grow(evidence: Evidence) -> Iterator[str]:
    """O1: what is read of a session is what its log was at that position, so each read begins with those before it."""
    reads: defaultdict[str, list[Op]] = defaultdict(list)
    for op in evidence.ops:
        if op.kind == "read" and op.outcome == "ok" and op.session_id is not None:
            reads[op.session_id].append(op)
    for session_id, ops in reads.items():
        transcript = evidence.transcripts.get(session_id)
        before: list[str] = []
        for op in sorted(ops, key=lambda op: op.position):
            taken = transcript.taken(op.position) if transcript is not None else []
            waiting = transcript.waiting(op.position) if transcript is not None else []
            if list(op.seen) != taken + waiting:
                yield f"{op.client} read {session_id} at #{op.position} as {op.seen}, and it was {taken + waiting}"
            if list(op.seen[: len(before)]) != before:
                yield f"{op.client} read {session_id} at #{op.position} without what had been read before"
            before = [message_id for message_id in op.seen if message_id not in waiting]


def own_writes_read(evidence: Evidence) -> Iterator[str]:
    """O1: a client reads what was acknowledged to it."""
    acked: defaultdict[str, list[Op]] = defaultdict(list)
    for op in evidence.ops:
        if op.outcome != "ok":
            continue
        if op.kind == "write":
            acked[op.client].append(op)
        elif op.kind == "read":
            for write in acked[op.client]:
                _, run = evidence.queued.get(write.run_id or "", (None, None))
                if run is not None and run.session_id == op.session_id and run.message_id not in op.seen:
                    yield f"{op.client} does not read {write.text!r} at #{op.position}, acknowledged at #{write.position}"


def waits_answer_alike(evidence: Evidence) -> Iterator[str]:
    """O7: a wait has the run's own end for its answer, whenever it is asked for."""
    edited = _edited(evidence)
    for op in evidence.ops:
        if op.outcome != "ok" or op.run_id is None or "status" not in op.answer:
            continue
        status = op.answer["status"]
        item, end = evidence.ends.get(op.run_id, (None, None))
        if status == "ok":
            if not isinstance(end, RunCompleted) or item is None:
                yield f"{op.client} was told that run {op.run_id} is done, and it is {end}"
            elif not _same_reply(op.answer, end) and op.answer.get("reply") not in edited[op.run_id]:
                yield f"{op.client} was told {op.answer.get('reply')!r} of run {op.run_id}: {end.reply!r}"
            elif item.position > op.position:
                yield f"{op.client} was told of run {op.run_id} at #{op.position}, and it ended at #{item.position}"
        elif op.kind == "wait" and status == "error" and not isinstance(end, RunFailed):
            yield f"{op.client} was told that run {op.run_id} failed, and it is {end}"
        elif (
            op.kind == "wait"
            and isinstance(end, RunFailed)
            and status == "error"
            and op.answer["error"] != end.error
        ):
            yield f"{op.client} was told {op.answer['error']!r} of run {op.run_id}: {end.error!r}"


def _edited(evidence: Evidence) -> Mapping[str, set[str | None]]:
    """Return, for the first runs of exchanges, the texts that went on in the place of what they said (LIVE-1)."""
    found: defaultdict[str, set[str | None]] = defaultdict(set)
    for item, released in evidence.of(ExchangeReleased):
        accepted = evidence.streams[item.stream][0].event
        if released.action == "edit" and isinstance(accepted, ExchangeAccepted):
            found[accepted.run_id].add(released.text)
    return found


def _same_reply(answer: Any, end: RunCompleted) -> bool:  # an answer of a tool is JSON
    return answer.get("reply") == end.reply or bool(answer.get("noReply")) or not end.reply


def asked_once(evidence: Evidence) -> Iterator[str]:
    """S4: an agent is asked once for each attempt, after that is stored, and nobody else's answer counts."""
    if evidence.asked is None:
        return
    started = {(event.run_id, event.attempt): item for item, event in evidence.of(RunStarted)}
    for (run_id, attempt), times in Counter((one.run_id, one.attempt) for one in evidence.asked).items():
        if times > 1:
            yield f"run {run_id} is asked {times} times in attempt {attempt}"
    for one in evidence.asked:
        start = started.get((one.run_id, one.attempt))
        if start is None or (one.position is not None and start.position > one.position):
            yield f"run {one.run_id} is asked in attempt {one.attempt} before that is stored"
    made = {(one.run_id, one.attempt) for one in evidence.asked}
    for item, event in evidence.of(RunCompleted):
        if (event.run_id, event.attempt) not in made:
            yield f"#{item.position} answers attempt {event.attempt}, which nobody was asked for"


def answers_of_their_attempt(evidence: Evidence) -> Iterator[str]:
    """S4: the answer of a run is what its agent said in that attempt, not in an earlier one."""
    for item, event in evidence.of(RunCompleted):
        words = evidence.answers.get((event.run_id, event.attempt))
        if words is not None and said(words) != said(event.reply):
            yield f"#{item.position} answers {event.reply!r}, and in attempt {event.attempt} {words!r} was said"


def given_what_is_recorded(evidence: Evidence) -> Iterator[str]:
    """S4, PROV-4: an agent is given the transcript as the log has it, and what the attempts before it had done."""
    done: Counter[str] = Counter()
    recorded: dict[tuple[str, int], tuple[int, int]] = {}
    for item in evidence.events:
        message = message_in(item.event)
        if message is not None and message.run_id is not None:
            done[message.run_id] += 1
        match item.event:
            case RunStarted(run_id=run_id, attempt=attempt):
                recorded[run_id, attempt] = item.position, done[run_id]
            case _:
                pass
    for one in evidence.asked or ():
        if (one.run_id, one.attempt) not in recorded or one.run_id not in evidence.queued:
            continue
        _, partial = recorded[one.run_id, one.attempt]
        # What is said meanwhile stands behind the run; a summary has no place in the transcript, and may be of more when tried again.
        first = one.attempt if _is_compaction(evidence, one.run_id) else 1
        position, _ = recorded[one.run_id, first]
        if one.partial not in {None, partial}:
            yield f"run {one.run_id} was told of {one.partial} steps of {partial}"
        if one.given is not None and list(one.given) != (before := _before(evidence, one.run_id, position)):
            yield f"run {one.run_id} was given {one.given} in attempt {one.attempt}, and the log has {before}"


def _before(evidence: Evidence, run_id: str, position: int) -> list[str]:
    """Return what had been said before a run, without its own message and what it said itself.

    So it is of a run that is tried again once there is room for it: what is summarised for it is what had been said before it.
    """
    _, queued = evidence.queued[run_id]
    own = {run_id}
    if _is_compaction(evidence, run_id):
        own |= {
            event.run_id
            for item, event in evidence.of(RunStarted)
            if item.position < position
            and evidence.queued[event.run_id][1].session_id == queued.session_id
            and (event.run_id not in evidence.ends or evidence.ends[event.run_id][0].position > position)
        }
    asked = {evidence.queued[one][1].message_id for one in own}
    return [
        message_id
        for message_id in evidence.transcripts[queued.session_id].taken(position)
        if message_id not in asked
        and (said_by := evidence.messages[message_id][0][1].run_id) not in own
        and not _is_compaction(evidence, said_by)
    ]


def _is_compaction(evidence: Evidence, run_id: str | None) -> bool:
    """Whether a run is one whose agent leaves nothing in the transcript (CTX-5)."""
    _, queued = evidence.queued.get(run_id or "", (None, None))
    return queued is not None and queued.step == "compaction"


def shown_once(evidence: Evidence) -> Iterator[str]:
    """O3: people see what was delivered once, what is in doubt at most once, and nothing else."""
    if evidence.called is None:
        return
    shown: defaultdict[str, list[Shown]] = defaultdict(list)
    for one in evidence.shown:
        shown[one.key].append(one)
    called = Counter(evidence.called)
    for _, first in evidence.of(DeliveryDecided):
        items = evidence.streams[f"delivery:{first.delivery_id}"]
        stream, last = items[0].stream, items[-1].event
        attempts = sum(isinstance(item.event, DeliveryStarted) for item in items)
        seen = [one.text for one in shown[first.key]]
        if called[first.key] > attempts:
            yield f"{stream} is called {called[first.key]} times in {attempts} attempts"
        if len(seen) > 1:
            yield f"{stream} was shown {len(seen)} times"
        elif isinstance(last, DeliveryDone):
            if seen != [first.text]:
                yield f"{stream} is done, and people saw {seen}"
        elif any(one.said for one in shown[first.key]) and (
            isinstance(last, DeliveryUnknown) or (isinstance(last, DeliveryFailed) and attempts == 1)
        ):
            yield f"{stream} was shown, which the channel said, and ends with {items[-1].topic}"
    for key in (shown.keys() | called.keys()) - {first.key for _, first in evidence.of(DeliveryDecided)}:
        yield f"a channel was called with key {key}, which was never decided"


def _writes(evidence: Evidence) -> list[Op]:
    return [op for op in evidence.ops if op.kind == "write"]
