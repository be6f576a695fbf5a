"""Unfinished answers on channels that can edit a message: its first words go out, then the whole text so far, again and again (STREAM-5).

The end of such an answer is a delivery like any other: it edits the message that was begun. Nothing here is on record but what
the session's actor is told of.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from intersession_actors.outside.channels.channels import Channel, Outbound
from intersession_actors.outside.channels.fitting import fitted
from intersession_actors.outside.channels.outcomes import Delivered, DeliveryResult
from intersession_actors.running.host import calls
from intersession_actors.running.runtime.timers import Timers
from intersession_events.facts import Fact

NO_RECEIPT: Final = "null"
"""Stands for the receipt of a begun message that is not on record."""
_MOST_CLOSED: Final = 1_024
"""How many answers that are over are remembered, for deliveries that are tried again."""


class Begun(Fact, frozen=True, kw_only=True):
    """What a channel has of an unfinished answer: its `receipt`, nothing, or, where that is not known, `in_doubt`."""

    receipt: str | None = None
    in_doubt: bool = False


class CallDraft(Protocol):
    """Calls a channel: `edit` if the text has the receipt of a message, else `deliver`."""

    def __call__(
        self,
        channel: Channel,
        outbound: Outbound,
        came: Callable[[DeliveryResult], None],
        *,
        inside: calls.Inside,
    ) -> None:
        """Call it with a part of an unfinished answer; `came` gets the outcome, once."""
        ...


class Draft:
    """An unfinished answer. `text` reads what may be shown of it, None once its attempt is over; `begun` is told of the first call.

    It begins once `may_begin` says that no earlier text is to go out at its place.
    """

    def __init__(
        self,
        channel: Channel,
        outbound: Outbound,
        *,
        text: Callable[[], str | None],
        begun: Callable[[DeliveryResult], None],
        may_begin: Callable[[], bool],
        inside: calls.Inside,
    ) -> None:
        self.channel = channel
        self.outbound = outbound
        self.text = text
        self.begun = begun
        self.may_begin = may_begin
        self.inside = inside
        self.shown = ""
        self.state = Begun()
        self.is_busy = False
        self.is_resting = False
        self.is_over = False
        self.waiting: list[Callable[[Begun], None]] = []

    def next(self) -> tuple[str, str] | None:
        """Return the text that is to be shown now, and as what it fits the channel; None for none."""
        if self.is_busy or self.is_resting or self.is_over:
            return None
        text = self.text()
        if not text or (self.outbound.receipt is None and not self.may_begin()):
            return None
        part = fitted(text, self.channel).text
        return None if part == self.shown else (text, part)


class Drafts:
    """The unfinished answers by their runs. Its methods may be called from any thread, and never block."""

    def __init__(self, call: CallDraft, timers: Timers | None) -> None:
        self._call = call
        self._timers = timers
        self._lock = threading.Lock()
        self._drafts: OrderedDict[str, Draft] = OrderedDict()

    def open(self, run_id: str, draft: Draft) -> None:
        """Begin to show an answer, or go on with a message that an earlier attempt has begun."""
        if draft.outbound.receipt is not None:
            draft.state = Begun(receipt=msgspec.json.encode(draft.outbound.receipt).decode())
        with self._lock:
            self._drafts[run_id] = draft
            draft.is_over = draft.text() is None
            if len(self._drafts) > _MOST_CLOSED:
                oldest = next((name for name, one in self._drafts.items() if not one.is_busy), run_id)
                del self._drafts[oldest]
        self.heard(run_id)

    def heard(self, run_id: str) -> None:
        """Show what an agent has said meanwhile, unless that has to wait."""
        if run_id not in self._drafts:
            return
        with self._lock:
            draft = self._drafts.get(run_id)
            found = None if draft is None else draft.next()
            if draft is None or found is None:
                return
            text, part = found
            draft.is_busy = True
            outbound = msgspec.structs.replace(draft.outbound, text=text)
        self._call(
            draft.channel,
            outbound,
            lambda result: self._came(run_id, draft, part, result),
            inside=draft.inside,
        )

    def close(self, run_id: str, then: Callable[[Begun], None]) -> None:
        """Show no more of an answer. `then` is told what the channel has of it, once no call is under way."""
        with self._lock:
            draft = self._drafts.get(run_id)
            if draft is not None:
                draft.is_over = True
                if draft.is_busy:
                    draft.waiting.append(then)
                    return
        then(Begun(in_doubt=True) if draft is None else draft.state)

    def _came(self, run_id: str, draft: Draft, part: str, result: DeliveryResult) -> None:
        is_first = draft.outbound.receipt is None
        pause_ms = round(draft.channel.edit_every * 1000)
        with self._lock:
            draft.is_busy = False
            match result:
                case Delivered(receipt=receipt):
                    draft.shown = part
                    if is_first:
                        draft.state = Begun(receipt=receipt, in_doubt=receipt is None)
                        known = None if receipt is None else msgspec.json.decode(receipt)
                        draft.outbound = msgspec.structs.replace(draft.outbound, receipt=known)
                        draft.is_over = draft.is_over or receipt is None
                case failed:
                    if is_first and failed.in_doubt:
                        draft.state = Begun(in_doubt=True)
                    draft.is_over = draft.is_over or not failed.retry or (is_first and failed.in_doubt)
                    pause_ms = max(pause_ms, failed.later_ms or 0)
            waiting, draft.waiting = draft.waiting, []
            draft.is_resting = not draft.is_over
        if is_first and (draft.is_over or isinstance(result, Delivered)):
            draft.begun(result)
        for then in waiting:
            then(draft.state)
        if draft.is_resting and self._timers is not None:
            self._timers.after(pause_ms, ("draft", run_id), lambda: self._rested(run_id, draft))

    def _rested(self, run_id: str, draft: Draft) -> None:
        draft.is_resting = False
        self.heard(run_id)
