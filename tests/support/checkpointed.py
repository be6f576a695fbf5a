"""Checkpoints of a log under test, taken by hand."""

from typing import Any

from intersession import SessionSystem
from intersession_events.copies.checkpoints.taking import CheckpointTaker, append_of
from intersession_events.facts import CheckpointPublished
from intersession_events.log.recorded import Recorded
from intersession_events.log.verifying.report import VerifyReport
from intersession_events.log.verifying.verification import verify_log
from intersession_events.proofs.signatures import PrivateKey, new_private
from intersession_events.stores.portable.log import PortableLog
from support.any_log import AnyLog
from support.running import WAIT


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


def told(system: SessionSystem, text: str = "Hello") -> None:
    """Have a message answered."""
    assert system.inbound(channel="web", chat_id="1", sender="ann", text=text, wait=WAIT)["status"] == "ok"


def published(system: SessionSystem, kind: str | None = None) -> list[CheckpointPublished]:
    """Return what says that a checkpoint was published, in order; of one kind of target, if it is given."""
    events = (one.event for one in system.log.stream("log"))
    return [one for one in events if isinstance(one, CheckpointPublished) and kind in {None, one.to}]


def verified(system: SessionSystem, **given: Any) -> VerifyReport:
    """Verify a system's log, as a reader does."""
    assert isinstance(system.log, PortableLog)
    with system.log.again() as log:
        return verify_log(log, **given)
