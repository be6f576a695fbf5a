"""Checkpoints of a log under test, taken by hand."""

from intersession_events.copies.checkpoints.taking import CheckpointTaker, append_of
from intersession_events.log.recorded import Recorded
from intersession_events.proofs.signatures import PrivateKey, new_private
from support.any_log import AnyLog


def checkpoint(log: AnyLog, key: PrivateKey | None = None, *, heads: bool = True) -> Recorded:
    """Take a checkpoint of all that a log has, as a process that just started would; return its event."""
    taker = CheckpointTaker(log)
    return taken_by(taker, log, key, heads=heads)


def taken_by(
    taker: CheckpointTaker, log: AnyLog, key: PrivateKey | None = None, *, heads: bool = True
) -> Recorded:
    """Have a taker that follows a log take one of all that the log has."""
    while taker.fold():
        pass
    if heads:
        taker.know_heads()
    (recorded,) = log.append_now([append_of(log.log_id, taker.take(key), time=2_000)]).recorded
    taker.appended(recorded)
    return recorded


def key_of(seed: int) -> PrivateKey:
    """Return a key that is the same each time."""
    return new_private(lambda size: bytes([seed]) * size)
