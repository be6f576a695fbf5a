"""The context of a run, made anew from the log: what a kept transcript, and the hash on record, are compared with."""

from collections.abc import Iterable

from intersession_actors.rules.prompt.transcript import RunContext, TranscriptFold, hash_as_recorded
from intersession_events.facts import Erased, RunStarted
from intersession_events.log.log import Log
from intersession_events.log.recorded import Recorded


def context_of(recorded: Iterable[Recorded], run_id: str) -> RunContext:
    """Return the context of a run, from its session's stream up to the run's start.

    Raises:
        LookupError: the stream has no such run, or not its message.
    """
    fold = TranscriptFold()
    for item in recorded:
        fold.apply(item)
    return fold.context(run_id)


def is_made_up(context_hash: str) -> bool:
    """Whether it is the hash of a run that a test told of and nobody ran."""
    return len({*context_hash}) == 1


def differing(log: Log, most: int = 5_000) -> list[str]:
    """Return the runs of a log whose context, made anew from the log, has another hash than was recorded (LENS-1).

    Only the first so many events are looked at.
    """
    folds: dict[str, TranscriptFold] = {}
    found: list[str] = []
    for item in log.all(limit=most):
        if isinstance(item.event, Erased):
            return []  # what runs were given is gone, and is meant to be
        if not item.stream.startswith("session:"):
            continue
        fold = folds.setdefault(item.stream, TranscriptFold())
        if isinstance(item.event, RunStarted):
            rebuilt = hash_as_recorded(fold.context(item.event.run_id), item.event)
            if rebuilt != item.event.context_hash and not is_made_up(item.event.context_hash):
                found.append(f"{item.event.run_id} in {item.stream}, attempt {item.event.attempt}")
        fold.apply(item)
    return found
