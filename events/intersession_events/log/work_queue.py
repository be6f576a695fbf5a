"""The calls that workers make for the writer of a log: which agent or channel is called for what, which worker has it, and what came of it (WORK-1).

The log says what was decided: an attempt began, an attempt ended. A row of the queue says who is at work on it in between, and keeps
the answer until that is on record. Rows are for one attempt each. They are no events: nothing that was decided is lost with them.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

import msgspec

from intersession_events.log.recorded import Recorded

CallKind = Literal["agent", "channel"]


class CallId(NamedTuple):
    """One attempt: of a run of an agent (`run_id`), or of a delivery to a channel (`delivery_id`)."""

    kind: CallKind
    id: str
    attempt: int


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt that began, for a worker that has the agent or the channel `name`.

    `stream` and `version` are of the event that began it, so that a worker makes the turn of an agent from the log, and
    `context_hash` proves that it is the right one. `content` is the input of a channel, as JSON; an agent's is empty. `secret`
    proves to the writer's gateway that the caller has taken the call. `deadline` is in milliseconds since 1970.
    """

    kind: CallKind
    id: str
    attempt: int
    name: str
    stream: str
    version: int
    secret: str
    context_hash: str = ""
    content: bytes = b""
    deadline: int | None = None

    @property
    def call(self) -> CallId:
        """Which attempt it is."""
        return CallId(self.kind, self.id, self.attempt)


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker says that came of an attempt, as JSON. `is_late`: the attempt was over by then."""

    kind: CallKind
    id: str
    attempt: int
    worker: str
    content: bytes
    is_late: bool = False

    @property
    def call(self) -> CallId:
        """Which attempt it is."""
        return CallId(self.kind, self.id, self.attempt)


class QueuedCall(msgspec.Struct, frozen=True, kw_only=True):
    """How an attempt stands: it waits (`worker` is None), a worker has it, it was answered; or it is over.

    `is_alive`: its worker has said so lately. `offered` is in milliseconds since 1970, by the store's clock.
    """

    kind: CallKind
    id: str
    attempt: int
    name: str
    stream: str
    offered: int
    secret: str
    worker: str | None = None
    is_alive: bool = False
    is_answered: bool = False
    is_over: bool = False

    @property
    def call(self) -> CallId:
        """Which attempt it is."""
        return CallId(self.kind, self.id, self.attempt)


class Worker(msgspec.Struct, frozen=True, kw_only=True):
    """A process that makes calls. `agents` and `channels` give by name what it says of each, as JSON text (an agent's window).

    `seats` is how many calls it makes at once, `taken` how many it makes now. `since` is in milliseconds since 1970.
    """

    name: str
    host: str
    version: str
    agents: Mapping[str, str]
    channels: Mapping[str, str]
    seats: int
    is_draining: bool = False
    taken: int = 0
    since: int = 0


class WorkQueue(Protocol):
    """The queue as the log's one writer has it. Every change is refused to a writer that another one has taken over from.

    Any thread may call it; each method blocks, and raises `StoreUnavailable` where the store is away.
    """

    def offer(self, offers: Sequence[Offer]) -> None:
        """Put attempts into the queue. One that is there already stays as it is: it is adopted (WORK-4)."""
        ...

    def withdraw(self, calls: Collection[CallId]) -> None:
        """Note that attempts are over. One that nobody has taken goes; the worker of another is told when it next asks."""
        ...

    def answers(self) -> Sequence[Answer]:
        """Return all answers that are not yet dropped, oldest first; the same ones again until then."""
        ...

    def drop(self, calls: Collection[CallId]) -> None:
        """Remove the rows of attempts whose answer is on record, or of which no answer is expected."""
        ...

    def lapsed(self) -> Sequence[CallId]:
        """Return the attempts whose worker has not said for too long that it lives, and that are neither answered nor over."""
        ...

    def standing(self) -> Sequence[QueuedCall]:
        """Return how every attempt of the queue stands, in the order in which they were offered."""
        ...

    def workers(self) -> Sequence[Worker]:
        """Return the workers that are alive, by name."""
        ...

    def wait(self, timeout: float) -> bool:
        """Wait until something was answered, or the workers changed, for `timeout` seconds at most; return whether it was."""
        ...

    @property
    def to_take(self) -> "TakesWork":
        """The same queue as workers have it that reach it through this process."""
        ...


class TakesWork(Protocol):
    """The queue as workers have it: in a table of the log's database, or through its writer's gateway (WORK-2).

    Each method blocks, and raises `StoreUnavailable` where the queue can't be reached: the worker goes on with what it has, and
    asks again. A call is lost to its worker once that has not renewed it for `alive_s` seconds.
    """

    def announce(self, worker: Worker) -> None:
        """Say that a worker lives, and what it has; again with each change, and before `alive_s` seconds are over."""
        ...

    def take(self, worker: str, most: int, wait: float) -> Sequence[Offer]:
        """Take up to `most` calls that an announced worker has the agent or the channel for, oldest first; wait for the first one."""
        ...

    def renew(self, worker: str, calls: Collection[CallId]) -> Collection[CallId]:
        """Say that a worker lives and has these calls; return those that are no longer its own: over, or lost to it."""
        ...

    def answer(self, worker: str, call: CallId, content: bytes) -> bool:
        """Say what came of a call, durably; False if it is no longer this worker's. The same answer again counts once.

        An answer to an attempt that is over is taken, so that it is put on record as late.
        """
        ...

    def events(self, worker: str, call: CallId, after: int) -> Sequence[Recorded]:
        """Return the events of the stream of a call that the worker has taken, behind a version, up to the call's own.

        May return only the first of them: then more are behind the last.
        """
        ...

    def leave(self, worker: str) -> None:
        """Say that a worker ends. Calls that it has not answered are lapsed at once."""
        ...

    def gateway(self) -> str | None:
        """Return the address of the gateway of the log's writer; None while there is none."""
        ...
