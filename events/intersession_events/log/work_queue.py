"""The calls that workers make for the writer of a log: which agent or channel is called for what, which worker has it, and what came of it (WORK-1).

The log says what was decided: an attempt began, an attempt ended. A row of the queue says who is at work on it in between, and keeps
the answer until that is on record. Rows are for one attempt each. They are no events: nothing that was decided is lost with them.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeVar

import msgspec

from intersession_events.basics.errors import WorkRefused
from intersession_events.log.recorded import Recorded

S = TypeVar("S", bound=msgspec.Struct)

CallKind = Literal["agent", "channel"]

ALIVE_S: Final = 15.0
"""A call is lost to its worker once that has said nothing for this many seconds, unless the writer was told otherwise."""
FORGOTTEN_S: Final = 3600
"""A call that is over, and a worker that says nothing, are forgotten after this time: no late answer is expected any more."""
MOST_AT_ONCE: Final = 1000
"""The number of calls that are taken, and of events that are read, at once."""
MOST_BYTES: Final = 2**27
"""The size of what a worker says came of a call."""
MOST_NAMES: Final = 1000
"""The number of agents, and of channels, that a worker has."""
MOST_WORKERS: Final = 1000
"""The number of workers that live at once."""
MOST_LETTERS: Final = 256
"""The length of a name that a worker says."""
MOST_SAID: Final = 65_536
"""The length of what a worker says of an agent or a channel."""


class CallId(NamedTuple):
    """One attempt: of a run of an agent (`run_id`), or of a delivery to a channel (`delivery_id`)."""

    kind: CallKind
    id: str
    attempt: int


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt that began, for a worker that has the agent or the channel `name`.

    `stream` and `version` are of the event that began it, so that a worker makes the turn of an agent from the log, and
    `context_hash` proves that it is the right one. `content` is JSON: the input of a channel; of an agent's call, what its writer takes (WORK-19). `secret`
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

    `is_alive`: its worker has said so lately. `secret` is empty for a reader of a log on a server. `offered` is in milliseconds since 1970, by the store's clock.
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


class Taker(NamedTuple):
    """A worker that waits for up to `most` calls."""

    worker: str
    most: int


class WorkQueue(Protocol):
    """The queue as the log's one writer has it. Every change is refused to a writer that another one has taken over from.

    Any thread may call it; each method blocks, and raises `StoreUnavailable` where the store is away.
    """

    alive_s: float
    """A call is lost to its worker once that has not renewed it for this many seconds; it may be set before the first offer."""
    on_answer: Callable[[Answer], object] | None
    """Is told of an answer in time that comes through this process, before it is durable. On PostgreSQL `wait` returns instead."""

    def offer(self, offers: Sequence[Offer], takers: Sequence[Taker] = ()) -> Sequence[Sequence[Offer]]:
        """Put attempts into the queue. One that is there already stays as it is: it is adopted (WORK-4).

        Calls are taken for `takers` at once, in turn, as by `take`. Returns those of each: none where that is refused.
        """
        ...

    def withdraw(self, calls: Collection[CallId]) -> None:
        """Note that attempts are over. One that nobody has taken goes; the worker of another is told when it next asks."""
        ...

    def extend(self, calls: Collection[CallId]) -> None:
        """Give all workers, and those of these calls, their time anew: without a writer they may not have reached the queue.

        One that has left is not there again.
        """
        ...

    def answers(self) -> Sequence[Answer]:
        """Return all answers that are not yet dropped, oldest first; the same ones again until then.

        One that came too late is among them once its attempt was withdrawn.
        """
        ...

    def drop(self, calls: Collection[CallId]) -> None:
        """Remove the rows of attempts whose answer is on record, or of which no answer is expected."""
        ...

    def lapsed(self) -> Sequence[CallId]:
        """Return the attempts whose worker has not said for too long that it lives, and that are neither answered in time nor over."""
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

    def close(self) -> None:
        """Let all that wait go on. The log does so when it is closed."""
        ...

    @property
    def to_take(self) -> "TakesWork":
        """The same queue as workers have it that reach it through this process."""
        ...


class TakesWork(Protocol):
    """The queue as workers have it: in a table of the log's database, or through its writer's gateway (WORK-2).

    Each method blocks, and raises `StoreUnavailable` where the queue can't be reached: the worker goes on with what it has, and
    asks again. It raises `WorkRefused` for what the worker may not do, and for what no queue takes.
    """

    @property
    def alive_s(self) -> float:
        """A call is lost to its worker once that has not renewed it for this many seconds."""
        ...

    def announce(self, worker: Worker) -> None:
        """Say that a worker lives, and what it has; again with each change, and before `alive_s` seconds are over."""
        ...

    def take(self, worker: str, most: int, wait: float) -> Sequence[Offer]:
        """Take up to `most` calls that an announced worker has the agent or the channel for, oldest first; wait for the first one.

        Raises:
            WorkRefused: the worker is not announced, or was forgotten.
        """
        ...

    def renew(self, worker: str, calls: Collection[CallId]) -> Collection[CallId]:
        """Say that a worker lives and has these calls; return those that are no longer its own: over, or lost to it."""
        ...

    def answer(self, worker: str, call: CallId, content: bytes) -> bool:
        """Say what came of a call, durably; False if it is no longer this worker's. The same answer again counts once.

        An answer to an attempt that is over, or lost, is kept all the same, so that it is put on record as late.
        """
        ...

    def events(self, worker: str, call: CallId, after: int) -> Sequence[Recorded]:
        """Return the events of the stream of a call that the worker has taken, behind a version, up to the call's own.

        May return only the first of them: then more are behind the last.

        Raises:
            WorkRefused: it does not have the call, or no longer.
        """
        ...

    def leave(self, worker: str) -> None:
        """Say that a worker ends. Calls that it has not answered are lapsed at once."""
        ...

    def gateway(self) -> str | None:
        """Return the address of the gateway of the log's writer; None while there is none."""
        ...

    def close(self) -> None:
        """Let a `take` that waits end, and close what is open. What a log lends is closed with it."""
        ...


def from_row(kind: type[S], row: Sequence[Any]) -> S:  # what the columns hold
    """Return what a store has in a row: its fields in their order, 0 and 1 for truths."""
    fields = dict(zip(kind.__struct_fields__, row, strict=True))
    return msgspec.convert(fields, kind, strict=False, builtin_types=(bytes,))


def checked_worker(worker: Worker) -> None:
    """Check what a worker says of itself.

    Raises:
        WorkRefused: it is too long, or too much.
    """
    for what, names in (("agents", worker.agents), ("channels", worker.channels)):
        if len(names) > MOST_NAMES:
            raise WorkRefused(f"{len(names)} {what}: a worker has at most {MOST_NAMES}, so start several")
        for name, said in names.items():
            if len(said) > MOST_SAID:
                raise WorkRefused(
                    f"{len(said)} characters about {name[:MOST_LETTERS]!r}: at most {MOST_SAID} are taken"
                )
    for name in (worker.name, worker.host, worker.version, *worker.agents, *worker.channels):
        if not 0 < len(name) <= MOST_LETTERS or not name.isprintable():
            raise WorkRefused(
                f"{name[:MOST_LETTERS]!r} is no name: give 1 to {MOST_LETTERS} characters that can be printed"
            )
    if not 0 < worker.seats <= MOST_AT_ONCE:
        raise WorkRefused(f"{worker.seats} seats: a worker makes from 1 to {MOST_AT_ONCE} calls at once")


def checked_content(content: bytes) -> None:
    """Check the size of what a worker says came of a call.

    Raises:
        WorkRefused: it is too large.
    """
    if len(content) > MOST_BYTES:
        raise WorkRefused(f"an answer of {len(content)} bytes: at most {MOST_BYTES} are taken")


def checked_number(alive: int) -> None:
    """Check, as a worker comes, that not too many live already.

    Raises:
        WorkRefused: they do.
    """
    if alive >= MOST_WORKERS:
        raise WorkRefused(f"{alive} workers live already: at most {MOST_WORKERS} do, so give each more seats")
