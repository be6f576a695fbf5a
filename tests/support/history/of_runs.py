"""What runs owe: the time that they have, and a word to the person who waits for them."""

import json
from collections.abc import Iterator

from intersession_events.facts import (
    ConfigLoaded,
    DeliveryDecided,
    LateReplyDropped,
    RunCompleted,
    RunFailed,
    RunQueued,
    RunStarted,
)
from support.history.evidence import Evidence, is_word, said


def attempts_have_their_time(evidence: Evidence) -> Iterator[str]:
    """LOOP-7: an attempt has the time that its run was given, from its start on, as the record of that decision has it."""
    for item, event in evidence.of(RunStarted):
        _, queued = evidence.queued.get(event.run_id, (None, None))
        if queued is None:
            continue
        items = evidence.streams[item.stream]
        decided = next(one for one in reversed(items[: items.index(item) + 1]) if one.decision)
        now_ms = json.loads(decided.decision).get("knew", {}).get("nowMs", 0)
        until = now_ms + queued.timeout_ms if queued.timeout_ms else 0
        if event.deadline_ms != until:
            yield f"#{item.position} has until {event.deadline_ms}, and its time is up at {until}"


def people_hear(evidence: Evidence) -> Iterator[str]:
    """INB-2: who spoke on a channel hears the answer, or that there is none where the attempt failed."""
    told = {(event.run_id, event.purpose) for _, event in evidence.of(DeliveryDecided)}
    of_people = [run_id for run_id, (_, queued) in evidence.queued.items() if _is_of_a_person(queued)]
    for run_id in of_people:
        reply = evidence.replies.get(run_id)
        if reply is not None:
            text = said(reply.reply)
            skips = is_word(text, "REPLY_SKIP") or is_word(text, "ANNOUNCE_SKIP")
            if text is not None and not skips and (run_id, "auto_reply") not in told:
                yield f"run {run_id} answered {text!r}, and nobody was told"
    # A host can have it told to nobody (INB-2).
    texts = [
        json.loads(one.config).get("runs", {}).get("failureText", "-") for _, one in evidence.of(ConfigLoaded)
    ]
    if not all(text.strip() for text in texts):
        return
    for item, failed in evidence.of(RunFailed):
        began = failed.attempt > 0 and failed.code not in {"target_gone", "limit"}
        is_due = began and failed.run_id in of_people
        if is_due and (failed.run_id, "failure_notice") not in told:
            yield f"#{item.position} ends run {failed.run_id} ({failed.code}), and nobody was told"


def late_answers_kept(evidence: Evidence) -> Iterator[str]:
    """O2: what an agent answers when its attempt is over is kept as a note; no answer is lost to a process that lives on."""
    late = {(event.run_id, event.attempt): item for item, event in evidence.of(LateReplyDropped)}
    for (run_id, attempt), item in late.items():
        end, _ = evidence.ends.get(run_id, (None, None))
        cut_off = any(
            one.position < item.position and getattr(one.event, "attempt", 0) == attempt
            for one in evidence.runs.get(run_id, ())
            if not isinstance(one.event, RunStarted)
        )
        if not cut_off and (end is None or end.position > item.position):
            yield f"#{item.position} drops an answer of run {run_id}, whose attempt {attempt} is under way"
    heard = late.keys() | {(event.run_id, event.attempt) for _, event in evidence.of(RunCompleted)}
    # An answer that is none ends its attempt in its place, such as a summary that is too long (CTX-5).
    heard |= {(one.run_id, one.attempt) for _, one in evidence.of(RunFailed) if one.code == "bad_reply"}
    newest = evidence.events[-1].epoch if evidence.ended and evidence.events else None
    for item, started in evidence.of(RunStarted):
        attempt_of = (started.run_id, started.attempt)
        if item.epoch == newest and attempt_of in evidence.answers and attempt_of not in heard:
            yield f"#{item.position} begins run {started.run_id}, and its answer is nowhere"


def _is_of_a_person(queued: RunQueued) -> bool:
    return queued.route is not None and queued.step == "message" and queued.flow is None
