"""Smells of how things end: too late, cut by a limit, refused, changed by a retry, heard by nobody. Pure."""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from intersession_events import facts
from intersession_projections.questions.smells.likeness import likeness
from intersession_projections.questions.smells.smell import Seen, Smell

SAME_ANSWER: Final = 0.8
"""Two answers that share less of their words are two answers."""

_GUARDS: Final = frozenset({"limit", "cycle"})
_UNHEARD: Final[Mapping[str, str]] = {
    "no_route": "there was nowhere to announce it to",
    "announce_failed": "its channel did not take it",
    "announce_denied": "the send policy forbade it",
}


@facts.ready
class _Answer(msgspec.Struct):
    """What is looked at of a tool's answer."""

    code: str | None = None
    error: str | None = None


def late_reply(seen: Seen) -> Iterator[Smell]:
    """Find answers that came when their attempt was over, and were used nowhere."""
    for recorded in seen.events:
        if isinstance(recorded.event, facts.LateReplyDropped):
            yield Smell(
                "late_reply",
                recorded.position,
                f"the answer of attempt {recorded.event.attempt} came too late",
            )


def loop_cut(seen: Seen) -> Iterator[Smell]:
    """Find loops that a limit ended, while both still spoke."""
    for recorded in seen.events:
        match recorded.event:
            case facts.LoopEnded(limit=str() as limit, turns=turns):
                when = f"after turn {turns}" if turns else "before the first turn"
                yield Smell("loop_cut", recorded.position, f"{limit} ended the loop {when}")
            case _:
                pass


def guard_refused(seen: Seen) -> Iterator[Smell]:
    """Find what a guard over the causal chain refused, or kept from being asked for."""
    for recorded in seen.events:
        message = facts.message_in(recorded.event)
        if message is not None and message.role == "toolResult":
            answer = _answer(facts.text_of(message))
            if answer is not None and answer.code in _GUARDS:
                tool = message.tool_name or "a tool"
                text = f"{tool} was refused ({answer.code}): {answer.error or 'no reason given'}"
                yield Smell("guard_refused", recorded.position, text)
        match recorded.event:
            case facts.RunFailed(code="limit", error=error):
                yield Smell("guard_refused", recorded.position, f"a run was not started: {error}")
            case facts.ResultHanded(limit=str() as limit) | facts.FlowClosed(limit=str() as limit):
                yield Smell("guard_refused", recorded.position, f"{limit} kept a run from being asked for")
            case _:
                pass


def text_replaced(seen: Seen) -> Iterator[Smell]:
    """Find texts that somebody held, and wrote anew or left out: what an agent said is not what was heard."""
    for recorded in seen.events:
        match recorded.event:
            case facts.ExchangeReleased(action="edit" | "drop" as action, by=by):
                what = "wrote it anew" if action == "edit" else "left it out"
                yield Smell("text_replaced", recorded.position, f"a text was held, and {by} {what}")
            case _:
                pass


def still_held(seen: Seen) -> Iterator[Smell]:
    """Find exchanges that have stopped, and wait for a release."""
    held = next(
        (
            recorded
            for recorded in reversed(seen.events)
            if isinstance(recorded.event, facts.ExchangeHeld | facts.ExchangeReleased)
        ),
        None,
    )
    if held is not None and isinstance(held.event, facts.ExchangeHeld):
        yield Smell("still_held", held.position, f"held by {held.event.by}, and not released yet")


def retry_changed(seen: Seen) -> Iterator[Smell]:
    """Find runs of which one attempt answered this and another that. Of an answer that was erased nobody can say which it was."""
    answers: dict[str, list[tuple[int, str]]] = {}
    for recorded in seen.events:
        match recorded.event:
            case (
                facts.RunCompleted(run_id=run_id, reply=str() as reply)
                | facts.LateReplyDropped(run_id=run_id, reply=str() as reply)
                | facts.RunFailed(run_id=run_id, partial=str() as reply)
            ):
                if reply != facts.ERASED:
                    answers.setdefault(run_id, []).append((recorded.position, reply))
            case _:
                pass
    for said in answers.values():
        first = said[0][1]
        for position, other in said[1:]:
            if likeness(first, other) < SAME_ANSWER:
                yield Smell("retry_changed", position, "two attempts of one run gave two answers")
                break


def announce_unheard(seen: Seen) -> Iterator[Smell]:
    """Find announces that nobody got, or perhaps nobody: a channel may have one that it said nothing of."""
    announced: str | None = None
    taken: set[str] = set()
    for recorded in seen.events:
        match recorded.event:
            case facts.AnnounceDecided(silent=False, delivery_id=delivery_id):
                announced = delivery_id or ""
            case facts.AnnounceDecided():
                announced = None
            case facts.DeliveryFact(state="done"):
                taken.add(
                    recorded.stream.partition(":")[2]
                )  # without a route, a host that listens for itself
            case facts.FlowClosed(reason=reason, note=note):
                if announced is None or announced in taken:
                    continue
                if reason in _UNHEARD:
                    # The channel's own words, or that somebody gave the text up, or that nobody delivers for the channel.
                    why = note if reason == "announce_failed" and note else _UNHEARD[reason]
                    yield Smell("announce_unheard", recorded.position, f"nobody got the announce: {why}")
                elif reason == "delivery_unknown":
                    text = "it is not known whether anybody got the announce"
                    yield Smell("announce_in_doubt", recorded.position, text)
            case _:
                pass


def _answer(text: str) -> _Answer | None:
    try:
        return msgspec.json.decode(text, type=_Answer)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
