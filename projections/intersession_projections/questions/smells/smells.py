"""Finds the smells of exchanges, spawns and runs (SMELL-1): the rules that are known here, and those of the host."""

from collections.abc import Iterable, Sequence
from typing import Final

from intersession_events.basics.ids import session_stream
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded, StreamPart, parts_in
from intersession_projections.questions.smells.conversation import (
    duplicate_message,
    polite_loop,
    tokens_growing,
)
from intersession_projections.questions.smells.endings import (
    announce_unheard,
    guard_refused,
    late_reply,
    loop_cut,
    retry_changed,
    still_held,
    text_replaced,
)
from intersession_projections.questions.smells.smell import Seen, Smell, SmellRule
from intersession_projections.views.flows.rows import ExchangeSummary, SpawnSummary
from intersession_projections.views.run_outcomes.outcome import RunOutcome
from intersession_projections.views.run_outcomes.replies import Replies

SMELLS: Final[tuple[SmellRule, ...]] = (
    polite_loop,
    late_reply,
    duplicate_message,
    loop_cut,
    guard_refused,
    retry_changed,
    announce_unheard,
    tokens_growing,
    text_replaced,
    still_held,
)
"""The rules that every log is looked at with."""

_NAMES: Final = {
    "late_reply": "late reply dropped",
    "loop_cut": "cut by a limit",
    "guard_refused": "a guard refused",
    "retry_changed": "retry changed the answer",
    "announce_unheard": "nobody got the announce",
    "announce_in_doubt": "announce in doubt",
    "tokens_growing": "prompt grows",
}


def smell_name(code: str) -> str:
    """Return what a smell is called in a list, in a few words."""
    return _NAMES.get(code) or code.replace("_", " ")


_EARLIER: Final = 64

Work = ExchangeSummary | SpawnSummary | RunOutcome


class Smells:
    """Queries on smells. `rules` are those of the host, beside the ones that are known here."""

    def __init__(self, log: Log, rules: Sequence[SmellRule] = ()) -> None:
        self._log = log
        self._rules = (*SMELLS, *rules)

    def of_each(
        self, works: Sequence[tuple[Work, Sequence[Recorded]]], *, to: int | None = None
    ) -> list[list[Smell]]:
        """Return the smells of exchanges, spawns and runs that belong to neither, each with its events, in log order, as they stood at `to`."""
        each = [_told(events, to) for _, events in works]
        earlier = self._log.parts([_earlier(work, told) for (work, _), told in zip(works, each, strict=True)])
        return [
            smells_in(Seen(tuple(parts_in(events)), tuple(before)), self._rules)
            for events, before in zip(each, earlier, strict=True)
        ]


def _told(found: Iterable[Recorded], to: int | None) -> list[Recorded]:
    """Return events in log order, each once, with the texts of the runs that they name."""
    once = {recorded.position: recorded for recorded in found}
    replies = Replies(once.values())
    return [replies.with_texts(once[position]) for position in sorted(once) if to is None or position <= to]


def _earlier(work: Work, events: Iterable[Recorded]) -> StreamPart:
    """Return where the events of the session that was asked stand that came before."""
    match work:
        case ExchangeSummary():
            asked = work.target
        case SpawnSummary():
            asked = work.child
        case RunOutcome():
            asked = work.session_key
    stream = session_stream(asked)
    first = next((recorded.version for recorded in events if recorded.stream == stream), 0)
    return StreamPart(stream, max(0, first - 1 - _EARLIER), max(0, first - 1))


def smells_in(seen: Seen, rules: Sequence[SmellRule] = SMELLS) -> list[Smell]:
    """Return what rules find, in log order. A rule of a host's that raises is its host's to mend: it is not caught."""
    found = (smell for rule in rules for smell in rule(seen))
    return sorted(found, key=lambda smell: (smell.position, smell.code))
