"""Describes a fork and its outcome for every door: command line, gateway, MCP (FORK-8, FORK-9)."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from intersession_actors.hindsight.debugger.answers import PlaceAnswer
from intersession_actors.hindsight.forking.carrying import Carried
from intersession_actors.hindsight.forking.making import MadeFork
from intersession_actors.hindsight.forking.outcomes import Outcome
from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts import ForkEdit
from intersession_projections.copies.forks.summary import left_in_words, parts_of

_NOTHING: Final = Outcome(end=None, turns=0, tokens=0, cost_micros=0, announced=None)


class ForkResult(NamedTuple):
    """A fork and its outcome; None if it was only made, or is running. `diverged` is where it left its recording."""

    made: MadeFork
    carried: Carried | None = None
    diverged: PlaceAnswer | None = None


def describe_fork(came: ForkResult) -> JsonObject:
    """Return a fork for programs: `{fork, store, from, run, edits}`, with `state`, `outcome` and so on after it was continued."""
    made, carried = came.made, came.carried
    value: JsonObject = {
        "fork": made.id,
        "store": made.path,
        "from": {"logId": made.source, "position": made.position},
        "run": made.run,
        "edits": describe_edits(made.edits),
    }
    if made.notes:
        value["notes"] = list(made.notes)
    if carried is None:
        return value
    value["state"] = carried.state
    value["outcome"] = msgspec.to_builtins(carried.outcome)
    value["missing"] = list(carried.missing)
    if carried.set_aside:
        value["setAside"] = list(carried.set_aside)
    if carried.imported:
        value["imported"] = list(carried.imported)
    if carried.held:
        value["held"] = msgspec.to_builtins(carried.held)
    found = carried.divergence
    if found is not None:
        value["divergence"] = {
            "place": came.diverged,
            "kind": found.kind,
            "recorded": found.recorded,
            "now": found.now,
            "differs": msgspec.to_builtins(parts_of(found)),
            "goesOn": found.goes_on,
        }
    return value


def describe_edits(edits: Sequence[ForkEdit]) -> list[JsonObject]:
    """Return edits with all their fields, also empty ones."""
    return [{"kind": one.kind, "place": one.place, "key": one.key, "value": one.value} for one in edits]


def describe_outcomes(came: Sequence[ForkResult]) -> list[JsonObject]:
    """Return the outcomes of forks, the most frequent first: `{count, state, end, turns, tokens, costMicros, durationMs, announced, left, forks}`.

    Those are one that end alike, after as many turns, with the same text. `left` says where they left the recording, None if nowhere. Tokens, money and time are the average of them.
    Those that were only made have the state `made`.
    """
    groups: dict[tuple[str, str | None, int, str | None, str | None], list[tuple[Outcome, str]]] = {}
    for one in came:
        state, out = ("made", _NOTHING) if one.carried is None else (one.carried.state, one.carried.outcome)
        found = None if one.carried is None else one.carried.divergence
        left = None if found is None else left_in_words(found)
        alike = (state, out.end, out.turns, out.announced, left)
        groups.setdefault(alike, []).append((out, one.made.id))
    return [
        {
            "count": len(group),
            "state": state,
            "end": end,
            "turns": turns,
            "tokens": round(sum(out.tokens for out, _ in group) / len(group)),
            "costMicros": round(sum(out.cost_micros for out, _ in group) / len(group)),
            "durationMs": round(sum(out.duration_ms for out, _ in group) / len(group)),
            "announced": announced,
            "left": left,
            "forks": [fork for _, fork in group],
        }
        for (state, end, turns, announced, left), group in sorted(
            groups.items(), key=lambda item: -len(item[1])
        )
    ]
