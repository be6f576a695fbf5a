"""Finds the smells of exchanges, spawns and runs (SMELL-1): the rules that are known here, and those of the host."""

from collections.abc import Iterator, Sequence
from typing import Final

from intersession_events.ids import session_stream
from intersession_events.log import Log, Recorded, parts_in
from intersession_projections.flows import ExchangeSummary, SpawnSummary
from intersession_projections.run_outcomes import Replies, RunOutcome, Runs
from intersession_projections.smells.conversation import duplicate_message, polite_loop, tokens_growing
from intersession_projections.smells.endings import (
    announce_unheard,
    guard_refused,
    late_reply,
    loop_cut,
    retry_changed,
    still_held,
    text_replaced,
)
from intersession_projections.smells.smell import Seen, Smell, SmellRule
from intersession_projections.timeline import Timeline

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

_EARLIER: Final = 64


class Smells:
    """Queries on smells. `rules` are those of the host, beside the ones that are known here."""

    def __init__(self, log: Log, rules: Sequence[SmellRule] = ()) -> None:
        self._log = log
        self._rules = (*SMELLS, *rules)
        self._runs = Runs(log)
        self._timeline = Timeline(log)

    def of(self, work: ExchangeSummary | SpawnSummary | RunOutcome, *, to: int | None = None) -> list[Smell]:
        """Return the smells of an exchange, a spawn or a run that belongs to neither, in log order, as they stood at `to`."""
        match work:
            case ExchangeSummary():
                steps, asked = self._timeline.of_exchange(work.exchange_id), work.target
            case SpawnSummary():
                steps, asked = self._timeline.of_spawn(work.spawn_id), work.child
            case RunOutcome():
                steps, asked = self._timeline.of_run(work.run_id), work.session_key
        positions = (step.position for step in steps if to is None or step.position <= to)
        found = tuple(self._log.at(positions))
        events = tuple(map(Replies(found).told, found))
        return smells_in(Seen(tuple(parts_in(events)), tuple(self._earlier(asked, events))), self._rules)

    def _earlier(self, key: str, events: Sequence[Recorded]) -> Iterator[Recorded]:
        stream = session_stream(key)
        first = next((recorded.version for recorded in events if recorded.stream == stream), 0)
        yield from self._log.stream(stream, after=max(0, first - 1 - _EARLIER), to=max(0, first - 1))


def smells_in(seen: Seen, rules: Sequence[SmellRule] = SMELLS) -> list[Smell]:
    """Return what rules find, in log order. A rule of a host's that raises is its host's to mend: it is not caught."""
    found = (smell for rule in rules for smell in rule(seen))
    return sorted(found, key=lambda smell: (smell.position, smell.code))
