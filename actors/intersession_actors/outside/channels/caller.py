"""Calls channels outside of any actor, for the outbox, with one outcome for each call."""

import itertools
import logging
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from typing import Any, Final, NamedTuple, TypeVar, cast

import msgspec

from intersession_actors.outside.channels.channels import (
    AnyChannel,
    Channel,
    Deliver,
    DeliveryRefused,
    Outbound,
    ThreadWanted,
    as_channel,
)
from intersession_actors.outside.channels.drafts import Begun, Drafts
from intersession_actors.outside.channels.fitting import fitted
from intersession_actors.outside.channels.lanes import Lanes, Waiting
from intersession_actors.outside.channels.offered import (
    ChannelResult,
    Offered,
    OfferedText,
    OfferedThread,
    text_offered,
)
from intersession_actors.outside.channels.outcomes import (
    Delivered,
    DeliveryResult,
    NotDelivered,
    ThreadOpened,
    delivery_of,
    thread_of,
)
from intersession_actors.outside.channels.remote import RemoteChannel, RemoteChannels
from intersession_actors.outside.channels.turns import Attempts, Turns
from intersession_actors.rules.gate.values import invalid
from intersession_actors.running.host import actors, calls
from intersession_actors.running.host import calls as host_calls
from intersession_actors.running.host import hosts_loop as host_hosts_loop
from intersession_actors.running.runtime.clock import Clock
from intersession_actors.running.runtime.threads import MachineThreads, Threads
from intersession_actors.running.runtime.timers import Timers
from intersession_events.log.work_queue import CallId, QueuedCall

logger = logging.getLogger("intersession.deliveries")

SEATS: Final = 8
"""Calls of one channel at a time, unless the configuration says otherwise."""
MOST_LOST: Final = 16
"""A channel with this many calls that were given up and have not returned gets no more until one does."""
_MOST_THREADS: Final = 4_096
"""The bound is the seats of each channel; this one is for a machine, not for a channel."""


T = TypeVar("T")


class _UnderWay(NamedTuple):
    """A running call: its channel, and the answer if the channel's code never began."""

    channel: str
    failed: Callable[[NotDelivered], None]


class ChannelCaller:
    """Holds the channels and calls them: sync ones on threads, async ones on an event loop.

    Each channel has `seats` for its calls. With a clock and timers, a call that has not come back `timeout_ms` after it
    began is given up; its seat is free then, while its thread is lost until it does come back (`calls`). Of channels that are
    `sealed` it calls none: they are not here, and threads that they are asked for are withheld (FORK-5).
    """

    def __init__(
        self,
        *,
        seats: int = SEATS,
        clock: Clock | None = None,
        timers: Timers | None = None,
        timeout_ms: int = 60_000,
        hosts_loop: host_hosts_loop.HostsLoop | None = None,
        threads: Threads | None = None,
        sealed: Callable[[str], bool] = lambda _name: False,
        blocking: calls.Blocking | None = None,
    ) -> None:
        threads = threads or MachineThreads()
        self._outside = host_calls.Outside(
            pool_size=_MOST_THREADS,
            keep=SEATS,
            name="channels",
            hosts_loop=hosts_loop,
            threads=threads,
            blocking=blocking,
        )
        self.lanes = Lanes(seats)
        """The seats of each channel. What was started and never called would be in doubt after a crash, so a text has its seat first."""
        self.deliveries: Attempts[DeliveryResult] = Attempts(self._forget)
        """What came of each attempt, by key and number, that is not on record yet."""
        self.drafts = Drafts(self._show, timers)
        """The unfinished answers that are shown while they are said."""
        self.turns = Turns(threads)
        """Which text to a place goes out first."""
        self.threads: Attempts[ThreadOpened | NotDelivered] = Attempts(self._forget)
        """The same of threads, each of which is asked for once."""
        self._clock = clock
        self._timers = timers
        self._timeout_ms = timeout_ms
        self._numbers = itertools.count(1)
        self._changed = threads.changed()
        self._channels: dict[str, Channel] = {}
        self._sealed = sealed
        self._kept_shut: dict[str, Channel] = {}
        self.remote: RemoteChannels | None = None
        """The channels that workers have; None in a fork, and at a worker."""
        self._running: dict[host_calls.Call, _UnderWay] = {}
        self._stopping = False

    def register(self, name: str, channel: AnyChannel) -> None:
        """Register a channel under a name, from the next delivery on.

        Raises:
            ToolRefused: this is no channel.
        """
        try:
            made = as_channel(channel)
        except TypeError as error:
            raise invalid(f"channels[{name!r}]", str(error)) from None
        with self._changed:
            (self._kept_shut if self._sealed(name) else self._channels)[name] = made

    def _find(self, name: str) -> Channel | None:
        """Return the channel of a name: this process's own, else that of workers, which the configuration may put first."""
        remote = self.remote
        if (
            remote is not None
            and not self._sealed(name)
            and (remote.only(name) or name not in self._channels)
        ):
            return remote.get(name)
        return self.own(name)

    def own(self, name: str) -> Channel | None:
        """Return the channel of a name that this process calls itself."""
        with self._changed:
            return self._channels.get(name)

    def has(self, name: str) -> bool:
        """Whether there is a channel of this name."""
        return self._find(name) is not None

    def is_at_workers(self, name: str) -> bool:
        """Whether workers call the channel of this name: what they do goes on while this process stops."""
        return isinstance(self._find(name), RemoteChannel)

    def idempotent(self, name: str) -> bool:
        """Whether the channel shows a text only once for repeated calls with its key; False for a missing one."""
        channel = self._find(name)
        return channel is not None and channel.idempotent

    def edits(self, name: str) -> Channel | None:
        """Return the channel of this name if it can edit a message that it has sent; None if it can't, or is missing."""
        channel = self._find(name)
        return channel if channel is not None and channel.edit is not None else None

    def has_threads(self, name: str) -> bool:
        """Whether the channel can open threads; True for a sealed channel that is not registered."""
        channel = self._find(name) or self._kept_shut.get(name)
        return self._sealed(name) if channel is None else channel.threads is not None

    @property
    def registered(self) -> tuple[str, ...]:
        """The names of all channels, sorted."""
        remote = () if self.remote is None else self.remote.names
        with self._changed:
            return tuple(sorted({*self._channels, *remote}))

    def start(
        self,
        name: str,
        outbound: Outbound,
        done: Callable[[DeliveryResult], None],
        *,
        attempt: int = 1,
        begins: int = 0,
        inside: host_calls.Inside = nullcontext,
        seat: str = "",
        draft: str | None = None,
    ) -> None:
        """Deliver a text, or its next part; `done` gets the outcome, once. Never blocks, never raises.

        What the channel has of it already ends `begins` characters into the text. Each part has a key of its own.
        The channel's code runs `inside` what is given, on the `seat` that was kept for it by the delivery's stream. While the caller
        stops, nothing is called and nothing comes back.

        `draft` is the run whose unfinished answer the channel may have: the text edits that message, once no other call does.
        Where the message is not known, the text goes out anew, behind a line that says so (STREAM-5).
        """
        channel = self._find(name)
        self.deliveries.begin(outbound.key, attempt)

        def came(result: DeliveryResult) -> None:
            if isinstance(result, NotDelivered) and result.pauses_channel:
                self._pause(name, result.later_ms or 0)
            self.deliveries.came(outbound.key, attempt, result)
            _report(done, result)

        if channel is None:
            self.lanes.give_back(seat)
            came(NotDelivered(error=f"no channel {name!r} is registered in this process", retry=True))
            return

        def deliver(begun: Begun) -> None:
            onto = _onto(outbound, begun)
            is_unknown = begun.in_doubt if onto.receipt is None else channel.edit is None
            head = f"{CUT_OFF}\n\n" if is_unknown and not begins else ""
            if isinstance(channel, RemoteChannel):
                offered = text_offered(onto, begins=begins, head=head)
                call = CallId("channel", part_key(outbound.key, begins), attempt)
                self._ask(channel, call, offered, came, key=outbound.key, stream=seat)
            else:
                self.deliver(name, channel, onto, came, begins=begins, head=head, inside=inside, seat=seat)

        if draft is None:
            deliver(Begun())
        else:
            self.drafts.close(draft, deliver)

    def _ask(
        self,
        channel: RemoteChannel,
        call: CallId,
        offered: Offered,
        came: Callable[[Any], None],  # of the outcomes that the call can have
        *,
        key: str,
        stream: str = "",
    ) -> None:
        """Have a worker call its channel, on a seat as any call has one. A stop waits for none: its next process adopts them (WORK-16)."""

        def done(result: ChannelResult) -> None:
            self.lanes.leave(channel.name)
            came(result)

        def begin() -> None:
            channels.ask(channel, call, offered, done, key=key, stream=stream)

        channels = cast("RemoteChannels", self.remote)
        with self._changed:
            if self._stopping:
                return
        self.lanes.enter(channel.name, Waiting(begin, lambda: came(_NOT_CALLED)), stream)

    def deliver(
        self,
        name: str,
        channel: Channel,
        outbound: Outbound,
        came: Callable[[DeliveryResult], None],
        *,
        begins: int = 0,
        head: str = "",
        inside: host_calls.Inside = nullcontext,
        seat: str = "",
    ) -> None:
        """Call a channel with a text, behind a `head` that is not of it; an edit that it refuses is a text of its own."""
        is_edit = outbound.receipt is not None and channel.edit is not None and begins == 0
        function = _as_function(channel.deliver)
        if is_edit and channel.edit is not None:
            function = channel.edit if outbound.unfinished else _edit_or_send(channel.edit, function)
        sent: list[int | None] = [None]

        def part_of(given: Outbound) -> Outbound:
            text, sent[0] = _behind(head, given.text, channel, begins)
            key = part_key(given.key, begins)
            if is_edit and given.files and sent[0] is None:
                sent[0] = len(given.text)  # an edit takes no files: they are a part of their own
            files = given.files if sent[0] is None else ()
            return msgspec.structs.replace(given, text=text, key=key, files=files)

        def deliver(given: Outbound) -> object:
            return function(part_of(given))

        async def deliver_on_loop(given: Outbound) -> object:
            return await cast("Awaitable[object]", function(part_of(given)))

        def came_back(outcome: host_calls.Outcome) -> None:
            result = delivery_of(outcome, sent[0], idempotent=channel.idempotent or is_edit)
            if is_edit and isinstance(result, Delivered) and result.receipt is None:
                known = msgspec.json.encode(outbound.receipt).decode()
                result = msgspec.structs.replace(result, receipt=known)
            came(result)

        self._call(
            name,
            deliver_on_loop if host_calls.is_async(function) else deliver,
            outbound,
            came_back,
            came,
            idempotent=channel.idempotent or is_edit,
            inside=inside,
            seat=seat,
        )

    def _show(
        self,
        channel: Channel,
        outbound: Outbound,
        came: Callable[[DeliveryResult], None],
        *,
        inside: host_calls.Inside,
    ) -> None:
        """Show an unfinished answer (`Drafts`). A worker's is nobody's after a restart: each call has a name of its own."""
        if isinstance(channel, RemoteChannel) and self.remote is not None:
            key = f"{outbound.key}~{self.remote.new_secret()}"

            def shown(result: DeliveryResult) -> None:
                self._forget(key, 1)
                came(result)

            offered = text_offered(outbound, begins=0, head="")
            self._ask(channel, CallId("channel", key, 1), offered, shown, key=key)
            return
        self.deliver(outbound.channel, channel, outbound, came, inside=inside)

    def _forget(self, key: str, attempt: int) -> None:
        """Drop a call whose outcome is on record, or that is nobody's."""
        if self.remote is not None:
            self.remote.recorded(key, attempt)

    def open_thread(
        self,
        name: str,
        wanted: ThreadWanted,
        done: Callable[[ThreadOpened | NotDelivered], None],
        *,
        inside: host_calls.Inside = nullcontext,
        stream: str = "",
    ) -> None:
        """Have a channel open a thread, running its code in the context `inside`; `done` gets the id, or why there is none. Never blocks, never raises.

        `stream` is of the spawn that it is for.
        """
        channel = self._find(name)
        self.threads.begin(wanted.key, 1)

        def came(result: ThreadOpened | NotDelivered) -> None:
            self.threads.came(wanted.key, 1, result)
            _report(done, result)

        if self._sealed(name):
            came(ThreadOpened(thread=wanted.key, withheld=True))
            return
        if channel is None or channel.threads is None:
            came(NotDelivered(error=f"channel {name!r} has no threads", retry=False))
            return
        if isinstance(channel, RemoteChannel):
            call = CallId("channel", wanted.key, 1)
            self._ask(channel, call, OfferedThread(wanted=wanted), came, key=wanted.key, stream=stream)
            return
        self._call(
            name,
            channel.threads,
            wanted,
            lambda outcome: came(thread_of(outcome, channel)),
            came,
            idempotent=channel.idempotent,
            inside=inside,
        )

    def adopt(self, queued: QueuedCall, offered: Offered, key: str, resume: Callable[[], None]) -> None:
        """Go on with a call that a worker has since before this process began; `resume` has its flow look what came of it (WORK-16).

        Where that is not known, it is as if a crash had cut it off.
        """
        is_text = isinstance(offered, OfferedText)
        asked: Attempts[Any] = self.deliveries if is_text else self.threads  # of either kind of outcome
        asked.begin(key, queued.attempt)

        def done(result: ChannelResult) -> None:
            if isinstance(result, NotDelivered) and result.pauses_channel:
                self._pause(queued.name, result.later_ms or 0)
            asked.came(key, queued.attempt, result)
            resume()

        def cut_off(error: str) -> None:
            logger.warning("channel %s, attempt %d of %s: %s", queued.name, queued.attempt, key, error)
            asked.recorded(key, queued.attempt)
            resume()

        if self.remote is not None:
            self.remote.adopt(queued, offered, key=key, done=done, cut_off=cut_off)

    def stop(self, grace: float) -> tuple[str, ...]:
        """Start no more calls, wait up to `grace` seconds for running ones, and return the channels that were cut off.

        What is cut off reports nothing: after the restart it is in doubt, and the outbox says so. What was waiting for a
        seat, for a thread or for its event loop was never called, and is told so.
        """
        with self._changed:
            self._stopping = True
        self.lanes.close()
        with self._changed:
            self._changed.wait_for(lambda: not self._running, timeout=grace)
            left, self._running = self._running, {}
        cut_off: list[str] = []
        for call, under_way in left.items():
            if call.cancel() and call.withdraw():
                under_way.failed(_NOT_CALLED)
            else:
                cut_off.append(under_way.channel)
        self._outside.stop(grace)
        return tuple(cut_off)

    @property
    def zombies(self) -> int:
        """How many calls of channels were given up and have not returned."""
        return sum(calls.lost for calls in self.lanes.calls().values())

    def _call(
        self,
        name: str,
        function: Callable[[T], object],
        argument: T,
        done: Callable[[host_calls.Outcome], None],
        failed: Callable[[NotDelivered], None],
        *,
        idempotent: bool,
        inside: host_calls.Inside = nullcontext,
        seat: str = "",
    ) -> None:
        timer = ("channel", name, str(next(self._numbers)))

        def came_back(outcome: host_calls.Outcome) -> None:
            if self._timers is not None:
                self._timers.cancel(timer)
            done(outcome)
            self._over(name, call)

        def give_up() -> None:
            if call.cancel():
                self.lanes.lose(name, call)
                failed(self._timed_out(name, retry=idempotent, called=not call.withdraw()))
                self._over(name, call)

        def begin() -> None:
            with self._changed:
                self._running[call] = _UnderWay(name, failed)
            # The limit is the channel's own: it counts from here, however long the call had to wait.
            if self._timers is not None and self._clock is not None:
                self._timers.after(self._timeout_ms, timer, give_up)
            self._outside.call(call, function, argument, inside=inside)

        call = host_calls.Call(came_back, _nothing, name=f"channel {name}")
        with self._changed:
            if self._stopping:
                return
        lost = self.lanes.lost(name)
        if lost >= MOST_LOST:
            self.lanes.give_back(seat)
            failed(
                NotDelivered(error=f"busy: {lost} calls of channel {name!r} have not come back", retry=True)
            )
            return
        self.lanes.enter(name, Waiting(begin, lambda: failed(_NOT_CALLED)), seat)

    def _pause(self, name: str, ms: int) -> None:
        """Call a channel for no text, whichever chat it is for, until the service's pause is over (ANN-8)."""
        if self._timers is not None:
            self.lanes.pause(name)
            self._timers.after(ms, ("paused", name), lambda: self.lanes.resume(name))

    def _over(self, name: str, call: host_calls.Call) -> None:
        with self._changed:
            self._running.pop(call, None)
            self._changed.notify_all()
        self.lanes.leave(name)

    def _timed_out(self, name: str, *, retry: bool, called: bool) -> NotDelivered:
        seconds = self._timeout_ms / 1000
        if not called:
            why = "the event loop or the threads that it is called on are held up"
            return NotDelivered(
                error=f"timeout: channel {name!r} could not be called in {seconds:g} s, {why}", retry=True
            )
        return NotDelivered(
            error=f"timeout: channel {name!r} has not come back in {seconds:g} s", retry=retry, in_doubt=True
        )


CUT_OFF: Final = "(An answer that began above may have been cut off. This is the whole of it.)"
"""Stands before an answer that can't edit the message in which it was begun."""


def part_key(key: str, begins: int) -> str:
    """Return the key of the part of a text that begins behind this many characters."""
    return f"{key}+{begins}" if begins else key


def _behind(head: str, text: str, channel: Channel, begins: int) -> tuple[str, int | None]:
    """Return the next part of a text, behind a head where that leaves room for some of it, and how far into the text it reaches."""
    part = fitted(head + text, channel, begins)
    if head and part.sent is not None:
        return (part.text, part.sent - len(head)) if part.sent > len(head) else fitted(text, channel, begins)
    return part


def _onto(outbound: Outbound, begun: Begun) -> Outbound:
    """Return a text as it goes out where the channel may have its beginning."""
    if outbound.receipt is not None or begun == Begun():
        return outbound
    if begun.receipt is not None:
        return msgspec.structs.replace(outbound, receipt=msgspec.json.decode(begun.receipt))
    return outbound


def _edit_or_send(edit: Deliver, send: Deliver) -> Deliver:
    """Return an edit that sends its text anew where the message can't be edited any more: the text is not lost with it."""

    def edited(given: Outbound) -> object:
        try:
            return edit(given)
        except DeliveryRefused:
            return send(msgspec.structs.replace(given, receipt=None))

    async def edited_on_loop(given: Outbound) -> object:
        try:
            return await cast("Awaitable[object]", edit(given))
        except DeliveryRefused:
            return await cast("Awaitable[object]", send(msgspec.structs.replace(given, receipt=None)))

    return edited_on_loop if host_calls.is_async(edit) else edited


def _as_function(deliver: Deliver | actors.HostActor) -> Deliver:
    return actors.asking(deliver) if actors.is_host_actor(deliver) else cast("Deliver", deliver)


_NOT_CALLED: Final = NotDelivered(error="the system stopped before the channel was called", retry=True)


def _report(done: Callable[[T], None], result: T) -> None:
    try:
        done(result)
    except BaseException:
        logger.exception("the outcome of a delivery could not be delivered")


def _nothing(_: host_calls.Outcome) -> None:
    """Do nothing: no caller waits any more."""
