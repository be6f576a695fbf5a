"""The context of a run, made anew from the log: what a kept transcript, and the hash on record, are compared with."""

from collections.abc import Iterable

from intersession_actors.prompt import RunContext, TranscriptFold
from intersession_events.log import Recorded


def context_of(recorded: Iterable[Recorded], run_id: str) -> RunContext:
    """Return the context of a run, from its session's stream up to the run's start.

    Raises:
        LookupError: the stream has no such run, or not its message.
    """
    fold = TranscriptFold()
    for item in recorded:
        fold.apply(item)
    return fold.context(run_id)
