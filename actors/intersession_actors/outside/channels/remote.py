"""Channels at workers: what the workers that live say they have, and the calls that they make for the caller (WORK-15, WORK-16).

A worker fits a text to its channel, calls that, and says what came of it. Seats, order and retries stay with this process.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final, Literal, NamedTuple, Never, Protocol

from intersession_actors.outside.channels.channels import Channel
from intersession_actors.outside.channels.offered import (
    Abilities,
    ChannelResult,
    Offered,
    OfferedText,
    abilities_in,
    content_of,
    result_in,
)
from intersession_actors.outside.channels.outcomes import NotDelivered
from intersession_actors.running.runtime.timers import Timers
from intersession_events.log.work_queue import CallId, Offer, QueuedCall, Worker


class RemoteChannel(Channel):
    """A channel that workers have. `ask` offers a call of it: its functions are never called here."""

    def __init__(self, name: str, can: Abilities) -> None:
        super().__init__(
            deliver=_at_a_worker,
            idempotent=can.idempotent,
            threads=_at_a_worker if can.threads else None,
            max_chars=can.max_chars,
            edit=_at_a_worker if can.edits else None,
            edit_every=can.edit_every,
        )
        self.name = name


_State = Literal["offered", "taken", "withdrawn"]

_WITHDRAWN_MS: Final = 1_000
"""How long it takes to take a call back, before it is looked whether a worker was quicker."""

Standing = Callable[[Callable[[Sequence[QueuedCall] | Exception], None]], None]
"""Reads how all calls of the queue stand, outside of any actor, and hands that on."""


class OffersCalls(Protocol):
    """Offers calls to workers (`Desk`). It blocks nothing."""

    def offer(self, offer: Offer, told: Callable[[bytes | None], None]) -> None:
        """Have a call made. `told` gets what its worker answers, or None once that has said nothing for too long."""
        ...

    def withdraw(self, call: CallId) -> None:
        """Note that a call is over: nothing is told of it any more."""
        ...

    def done(self, calls: Iterable[CallId]) -> None:
        """Note that nothing more is expected of calls."""
        ...


class _UnderWay(NamedTuple):
    """A call without an outcome. `cut_off` is told instead of `done` where its worker may have called the channel or not."""

    name: str
    offered: Offered
    idempotent: bool
    done: Callable[[ChannelResult], None]
    cut_off: Callable[[str], None]


class RemoteChannels:
    """The channels of workers by name, and the calls under way. Its methods may be called from any thread, and never block.

    A call that no worker takes within `timeout_ms` is taken back. One that a worker has taken is given up after as long again: the
    worker itself gives up a channel that does not come back before that.
    """

    def __init__(
        self,
        desk: OffersCalls,
        *,
        timers: Timers,
        timeout_ms: int,
        standing: Standing,
        new_secret: Callable[[], str],
        only: Callable[[str], bool] = lambda _name: False,
    ) -> None:
        self._desk = desk
        self._timers = timers
        self._timeout_ms = timeout_ms
        self._standing = standing
        self.new_secret = new_secret
        self.only = only
        """Says of a name whether workers alone call its channel, whatever this process has (`channels.<name>.worker`)."""
        self.wake: Callable[[str], None] = _nobody
        """Has the texts for a channel go on: nobody, before the calls of the process before are adopted."""
        self._channels: dict[str, RemoteChannel] = {}
        self._under_way: dict[CallId, _UnderWay] = {}
        self._rows: dict[tuple[str, int], CallId] = {}
        """The calls of which no outcome is on record, by the key and the attempt of that."""

    def get(self, name: str) -> RemoteChannel | None:
        """Return the channel of a name, if a living worker has one and takes calls."""
        return self._channels.get(name)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all channels that living workers have."""
        return tuple(self._channels)

    def heard(self, workers: Iterable[Worker]) -> None:
        """Take in which workers live; texts for a channel that no worker had before go on."""
        said: dict[str, list[str]] = {}
        for worker in workers:
            if not worker.is_draining:
                for name, abilities in worker.channels.items():
                    said.setdefault(name, []).append(abilities)
        before = self._channels
        self._channels = {name: RemoteChannel(name, abilities_in(each)) for name, each in said.items()}
        for name in self._channels:
            if name not in before:
                self.wake(name)

    def ask(
        self,
        channel: RemoteChannel,
        call: CallId,
        offered: Offered,
        done: Callable[[ChannelResult], None],
        *,
        key: str,
        stream: str = "",
    ) -> None:
        """Offer a call to the workers that have the channel. `done` gets its outcome, once; `key` is that of the outcome (`recorded`).

        `stream` is of the flow that the call is for, which adopts it after a restart; without one it is nobody's then.
        """

        def cut_off(error: str) -> None:
            done(NotDelivered(error=error, retry=channel.idempotent, in_doubt=True))

        self._begin(call, _UnderWay(channel.name, offered, channel.idempotent, done, cut_off), key, stream)

    def adopt(
        self,
        queued: QueuedCall,
        offered: Offered,
        *,
        key: str,
        done: Callable[[ChannelResult], None],
        cut_off: Callable[[str], None],
    ) -> None:
        """Go on with a call that a process before this one has offered; `offered` is what that was."""
        under_way = _UnderWay(queued.name, offered, False, done, cut_off)
        self._begin(queued.call, under_way, key, queued.stream)

    def text_of(self, call: CallId) -> OfferedText | None:
        """Return the text of a call under way; None for any other call."""
        under_way = self._under_way.get(call)
        offered = None if under_way is None else under_way.offered
        return offered if isinstance(offered, OfferedText) else None

    def recorded(self, key: str, attempt: int) -> None:
        """Forget a call whose outcome is on record, or is not expected any more."""
        row = self._rows.pop((key, attempt), None)
        if row is not None:
            self._desk.done((row,))

    def _begin(self, call: CallId, under_way: _UnderWay, key: str, stream: str) -> None:
        self._rows[key, call.attempt] = call
        self._under_way[call] = under_way
        self._watch(call, "offered")
        offer = Offer(
            kind=call.kind,
            id=call.id,
            attempt=call.attempt,
            name=under_way.name,
            stream=stream,
            version=0,
            secret=self.new_secret(),
            content=content_of(under_way.offered),
        )
        self._desk.offer(offer, partial(self._came, call))

    def _watch(self, call: CallId, state: _State) -> None:
        def looked(standing: Sequence[QueuedCall] | Exception) -> None:
            if isinstance(standing, Exception):
                self._watch(call, state)
            else:
                self._looked(call, next((one for one in standing if one.call == call), None), state)

        pause_ms = _WITHDRAWN_MS if state == "withdrawn" else self._timeout_ms
        self._timers.after(pause_ms, ("worker", *map(str, call)), partial(self._standing, looked))

    def _looked(self, call: CallId, row: QueuedCall | None, state: _State) -> None:
        """Give up a call whose time is up. One that no worker has taken has not gone out; of another one nobody knows."""
        under_way, seconds = self._under_way.get(call), self._timeout_ms / 1000
        if under_way is None:
            return
        if row is not None and (row.worker is None or (state == "taken" and not row.is_answered)):
            self._desk.withdraw(call)
            self._watch(call, "withdrawn")
        elif state != "withdrawn":
            self._watch(call, "offered" if row is None or row.is_answered else "taken")
        elif row is not None and self._over(call):
            error = f"the worker that called channel {under_way.name!r} has said nothing in {seconds:g} s"
            under_way.cut_off(f"timeout: {error}")
        elif self._over(call):
            error = f"timeout: no worker has taken it for channel {under_way.name!r} in {seconds:g} s"
            under_way.done(NotDelivered(error=error, retry=True))

    def _came(self, call: CallId, content: bytes | None) -> None:
        under_way = self._under_way.get(call)
        if under_way is None or not self._over(call):
            return  # late: what came of it was decided without
        if content is None:
            under_way.cut_off(
                f"the worker that called channel {under_way.name!r} has not said for too long that it lives"
            )
        else:
            under_way.done(result_in(content, under_way.offered, idempotent=under_way.idempotent))

    def _over(self, call: CallId) -> bool:
        """End a call; False if it has ended already."""
        self._timers.cancel(("worker", *map(str, call)))
        return self._under_way.pop(call, None) is not None


def _nobody(_: str) -> None:
    """Wake nobody: a start tells all flows itself."""


def _at_a_worker(_: object) -> Never:
    raise NotImplementedError("a channel of workers is called by them")
