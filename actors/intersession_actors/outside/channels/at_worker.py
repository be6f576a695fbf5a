"""The channels of a worker: what it says of them, and how it makes the calls that it has taken (WORK-15)."""

from collections.abc import Callable, Mapping

from intersession_actors.outside.channels.caller import ChannelCaller
from intersession_actors.outside.channels.channels import AnyChannel
from intersession_actors.outside.channels.offered import (
    ChannelResult,
    OfferedText,
    OfferedThread,
    abilities_of,
    answer_of,
    offered_in,
    whole,
)
from intersession_actors.outside.channels.outcomes import NotDelivered
from intersession_actors.running.failures.failure import described
from intersession_events.log.files import ReadsFiles
from intersession_events.log.work_queue import Offer


class ChannelsAtWorker:
    """Calls the channels of a worker by its own caller, whose seats and timeout hold.

    Raises:
        ToolRefused: one of the channels is no channel.
    """

    def __init__(self, caller: ChannelCaller, channels: Mapping[str, AnyChannel]) -> None:
        self._caller = caller
        for name, channel in channels.items():
            caller.register(name, channel)

    @property
    def said(self) -> dict[str, str]:
        """What the worker says of each channel (`Worker.channels`)."""
        found = {name: self._caller.own(name) for name in self._caller.registered}
        return {name: abilities_of(channel) for name, channel in found.items() if channel is not None}

    def start(self, offer: Offer, files: ReadsFiles, answer: Callable[[bytes], None]) -> None:
        """Make a call, with contents from `files`; `answer` gets the content of its answer, once. Never blocks, never raises."""

        def came(result: ChannelResult) -> None:
            answer(answer_of(result))

        channel = self._caller.own(offer.name)
        try:
            offered = offered_in(offer.content)
        except ValueError as error:
            came(NotDelivered(error=f"this worker can't read what it took: {described(error)}", retry=True))
            return
        if channel is None:
            came(NotDelivered(error=f"this worker has no channel {offer.name!r}", retry=True))
            return
        match offered:
            case OfferedText():
                text = whole(offered, files)
                self._caller.deliver(
                    offer.name, channel, text, came, begins=offered.begins, head=offered.head
                )
            case OfferedThread(wanted=wanted):

                def opened(result: ChannelResult) -> None:
                    self._caller.threads.recorded(wanted.key, 1)  # the writer keeps it until it is on record
                    came(result)

                self._caller.open_thread(offer.name, wanted, opened)
