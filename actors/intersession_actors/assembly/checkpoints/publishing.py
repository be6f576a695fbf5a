"""Publishes checkpoints to each target independently: in order, retried until it takes them, recorded when it has (V1).

What is still to be published is in the log, so that nothing is forgotten by a stop: the checkpoints behind the last one
that a `CheckpointPublished` names for a target. A target that is new gets the last checkpoint, which covers all before it.

A note that as many witnesses have cosigned as the quorum wants goes once more to the targets of notes, with their signatures;
its `CheckpointPublished` has them as the receipt.
"""

import logging
from collections import deque
from collections.abc import Collection, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Final

import msgspec

from intersession_actors.assembly.checkpoints.targets import Target
from intersession_actors.running.failures.failure import described
from intersession_actors.running.failures.reports import Reports
from intersession_actors.running.host.threads import Job, Workers
from intersession_actors.running.runtime.clock import Clock
from intersession_actors.running.runtime.threads import MachineThreads, Threads
from intersession_actors.running.runtime.timers import Timers
from intersession_events.basics.errors import LogError
from intersession_events.basics.ids import derive
from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts import CheckpointPublished, CheckpointTaken
from intersession_events.log.held_checkpoints import cosignatures_in, receipts_of
from intersession_events.log.log import HostLog, Log
from intersession_events.log.recorded import ANY_VERSION, Draft, StreamAppend
from intersession_events.proofs.statement import PUBLISHED, STREAM, TAKEN, Checkpoint, checkpoint_of

logger = logging.getLogger("intersession.checkpoints")

MOST_WAITING: Final = 1_000
"""The most checkpoints that wait for one target; older ones are left out, since each covers all before it."""

_RECENT: Final = 100
"""The number of recent publications that are read: a target without one is new."""

_VERSIONS: Final = (
    "SELECT originator_version FROM stored_events WHERE originator_id=? AND topic=? "
    "ORDER BY originator_version DESC LIMIT ?"
)

_GATHERING: Final = "cosignatures"

_FIRST_PAUSE_MS: Final = 1_000
_LONGEST_PAUSE_MS: Final = 300_000


def pause_ms(failures: int) -> int:
    """Return how long to wait after several failures in a row: from a second to five minutes."""
    return int(min(_FIRST_PAUSE_MS * 2 ** min(failures - 1, 20), _LONGEST_PAUSE_MS))


def published_up_to(target: str, published: Sequence[CheckpointPublished]) -> int | None:
    """Return the position up to which a target has all checkpoints, from events in any order; None if it never had one."""
    return max((event.position for event in published if event.target == target), default=None)


class Publisher:
    """Publishes checkpoints to their targets, on a thread of its own. Its methods may be called from any thread."""

    def __init__(
        self,
        log: HostLog,
        targets: Sequence[Target],
        *,
        clock: Clock,
        timers: Timers,
        reports: Reports,
        quorum: int = 0,
        threads: Threads | None = None,
    ) -> None:
        self._log = log
        self._clock = clock
        self._timers = timers
        self._reports = reports
        self._lanes = [_Lane(target) for target in targets]
        self._quorum = quorum or sum(target.kind == "witness" for target in targets)
        self._cosigned = ""
        """The hash of the checkpoint that was published with cosignatures last."""
        self._threads = threads or MachineThreads()
        self._workers = Workers(
            max(len(targets), 1), keep=0, per_lane=1, name="publishing", threads=self._threads
        )

    def begin(self) -> None:
        """Find out from the log what each target lacks, and continue with that.

        Raises:
            LogError: the log can't be read.
        """
        for lane in self._lanes:
            lane.waiting.extendleft(unpublished(self._log, lane.target))
            self._go_on(lane)
        for event in _newest(self._log, TAKEN, 1) if self._quorum else ():
            if isinstance(event, CheckpointTaken):
                self._gather(checkpoint_of(self._log.log_id, event))

    def add(self, checkpoint: Checkpoint) -> None:
        """Publish a checkpoint that is now in the log."""
        for lane in self._lanes:
            if takes(lane.target, checkpoint):
                lane.waiting.append(checkpoint)
                self._go_on(lane)

    def stop(self, seconds: float) -> None:
        """Give running work this many seconds; the rest is published after the next start."""
        until = self._clock.monotonic() + seconds
        ids = [lane.target.id for lane in self._lanes]
        # What witnesses answer is gathered, and what was gathered goes to the targets of notes.
        for lanes in (ids, [_GATHERING], ids):
            ended: list[Future[None]] = []
            for lane in lanes:
                done: Future[None] = Future()
                self._workers.submit(Job(partial(done.set_result, None), lane=lane))
                ended.append(done)
            for done in ended:
                self._threads.wait(done, max(until - self._clock.monotonic(), 0.0))
        self._workers.stop()

    @property
    def waiting(self) -> dict[str, int]:
        """How many checkpoints are unpublished, by target."""
        return {lane.target.label: len(lane.waiting) for lane in self._lanes}

    def unanswered(self, answered: Collection[str]) -> list[str]:
        """Return the targets whose answers are kept, but for those whose ids have `answered`."""
        targets = [lane.target for lane in self._lanes if lane.target.wants_last]
        return [target.label for target in targets if target.id not in answered]

    @property
    def errors(self) -> JsonObject:
        """The last error of each target, if its last try failed."""
        return {lane.target.label: lane.error for lane in self._lanes if lane.error is not None}

    def _go_on(self, lane: "_Lane") -> None:
        if lane.waiting and not lane.busy:
            # Two threads may come here at once. The jobs of a lane run one after the other; the second finds nothing to do.
            lane.busy = True
            try:
                self._workers.submit(Job(lambda: self._publish(lane), lane=lane.target.id))
            except RuntimeError:
                lane.busy = False  # the system stops

    def _publish(self, lane: "_Lane") -> None:
        taken: dict[bool, tuple[Checkpoint, str | None]] = {}
        try:
            while lane.waiting:
                checkpoint = lane.waiting[0]
                receipt = lane.target.put(checkpoint, self._log)
                taken[_is_cosigned(checkpoint)] = checkpoint, receipt or _cosignatures(checkpoint)
                with suppress(ValueError):  # while it was on its way, it may have been dropped for newer ones
                    lane.waiting.remove(checkpoint)
        except Exception as error:  # noqa: BLE001 - whatever a target raises, it did not take it
            lane.failed(described(error))
        else:
            lane.failed(None)
        finally:
            lane.busy = False
        for last, received in taken.values():
            self._record(lane.target, last, received)
            if received is not None and lane.target.kind == "witness":
                self._gather(last)
        if lane.error is None:
            self._go_on(lane)  # what came while it was busy
        else:  # told last: whoever hears of it finds the next try set
            again = partial(self._go_on, lane)
            self._timers.after(pause_ms(lane.failures), ("publish", lane.target.id), again)
            self._reports.tell("checkpoint_unpublished", error=f"{lane.target.label}: {lane.error}")

    def _gather(self, checkpoint: Checkpoint) -> None:
        """Publish a note with its cosignatures, once they are a quorum: as the log has them, some from before a stop."""

        def add() -> None:
            try:
                received = receipts_of(self._log.query, after=checkpoint.position)
            except LogError as error:
                logger.warning("cosignatures could not be read, their note is not published again: %s", error)
                return
            given = cosignatures_in(received).get(checkpoint.position, ())
            if len(given) < self._quorum or checkpoint.hash == self._cosigned:
                return
            self._cosigned = checkpoint.hash
            lines = "".join(one.line for one in given)
            whole = msgspec.structs.replace(checkpoint, note=(checkpoint.note or "") + lines)
            have = {one.target for one in received if one.position == checkpoint.position}
            for lane in self._lanes:
                if lane.target.has_notes and not lane.target.wants_last and lane.target.id not in have:
                    lane.waiting.append(whole)
                    self._go_on(lane)

        with suppress(RuntimeError):  # the system stops
            self._workers.submit(Job(add, lane=_GATHERING))  # two witnesses may answer at once

    def _record(self, target: Target, last: Checkpoint, receipt: str | None) -> None:
        event = CheckpointPublished(position=last.position, to=target.kind, target=target.id, receipt=receipt)
        draft = Draft(
            event=event,
            id=derive(
                self._log.log_id, "cosigned" if _is_cosigned(last) else "published", target.id, last.position
            ),
            time=self._clock.now_ms(),
        )
        try:
            self._log.append_now((StreamAppend(stream=STREAM, expected=ANY_VERSION, drafts=(draft,)),))
        except LogError as error:
            logger.warning("that a checkpoint was published could not be recorded: %s", error)


class _Lane:
    """A target, and the checkpoints on their way there. One job at a time touches its front."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.waiting: deque[Checkpoint] = deque(maxlen=1 if target.wants_last else MOST_WAITING)
        self.busy = False
        self.failures = 0
        self.error: str | None = None

    def failed(self, error: str | None) -> None:
        self.error = error
        self.failures = self.failures + 1 if error is not None else 0


def takes(target: Target, checkpoint: Checkpoint) -> bool:
    """Whether a target can have a checkpoint: one from before there was a key has no note, and the next one covers it."""
    return checkpoint.note is not None or not target.has_notes


def _is_cosigned(checkpoint: Checkpoint) -> bool:
    """Whether it is a note that was published before, without its cosignatures."""
    return _cosignatures(checkpoint) is not None


def _cosignatures(checkpoint: Checkpoint) -> str | None:
    return (checkpoint.note or "").partition("\n")[2] or None


def unpublished(log: Log, target: Target) -> Sequence[Checkpoint]:
    """Return the checkpoints after the last one that a target got, newest first; only the last one if it never got any.

    Raises:
        LogError: the log can't be read.
    """
    published = [
        event for event in _newest(log, PUBLISHED, _RECENT) if isinstance(event, CheckpointPublished)
    ]
    position = published_up_to(target.id, published)
    found: list[Checkpoint] = []
    for event in _newest(log, TAKEN, 1 if position is None or target.wants_last else MOST_WAITING):
        if not isinstance(event, CheckpointTaken) or (position is not None and event.position <= position):
            break
        checkpoint = checkpoint_of(log.log_id, event)
        if takes(target, checkpoint):
            found.append(checkpoint)
    return found


def _newest(log: Log, topic: str, most: int) -> Sequence[object]:
    versions = log.query(_VERSIONS, (STREAM, topic, most))
    return [log.stream(STREAM, after=version - 1, to=version)[0].event for (version,) in versions]
