"""The web debugger behind the gateway: a browser logs in and gets a cookie; each caller sees what its credential allows."""

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from functools import partial
from typing import Literal, get_args

import msgspec

from intersession.gateway.admission.credentials import Credential
from intersession.gateway.admission.scopes import all_scopes, needed_scope
from intersession.gateway.admission.shares import Hold
from intersession.gateway.door import Door
from intersession.gateway.http.event_stream import Reaches, event_stream
from intersession.web.access import Question
from intersession.web.happened import ForksBeside, StoreNews, all_news, told_erased, told_live
from intersession_actors.rules.errors import ToolRefused
from intersession_events.basics.errors import IntersessionError, LogError, StoreUnavailable
from intersession_events.basics.machine import VERSION
from intersession_events.basics.plain_json import JsonMapping, JsonObject
from intersession_events.facts import AccessRecorded, Erased
from intersession_events.log.recorded import Recorded

DeedName = Literal[
    "calls.release",
    "cron.run",
    "cron.update",
    "deliveries.retry",
    "exchanges.hold",
    "exchanges.release",
    "forks.make",
    "forks.remove",
    "notes.pin",
    "runs.retry",
]
"""Methods that a page can have called."""


class DoorAccess:
    """The access of an admitted caller to the debugger's questions."""

    def __init__(self, door: Door, credential: Credential, hold: Hold) -> None:
        self._door = door
        self._credential = credential
        self._hold = hold

    @property
    def about(self) -> JsonObject:
        """The viewer, and the actions it may do."""
        caller, held = self._credential.caller, all_scopes(self._credential.scopes)
        return {
            "who": caller.name,
            "isOperator": caller.is_operator,
            "readOnly": False,
            "can": [
                *(name for name in get_args(DeedName) if needed_scope(name) in held),
                *(("file", "reveal") if caller.is_operator else ()),
            ],
            "store": self._door.system.log.path if caller.is_operator else None,
            "version": VERSION,
        }

    async def ask(
        self, name: str, given: JsonMapping, question: Question, *, view: str | None = None
    ) -> Mapping[str, object]:
        """Answer a question.

        Raises:
            ToolRefused: it was refused, or this credential may not read (`forbidden`).
        """
        self._check_reads()
        try:
            answer = await self._door.system.gateway.aask(
                name, given, question, caller=self._credential.caller, view=view
            )
        except (IntersessionError, RuntimeError) as error:
            self._door.unread = isinstance(error, StoreUnavailable) or isinstance(
                error.__cause__, StoreUnavailable
            )
            raise self._door.known(error, name) from None
        self._door.unread = False
        return answer

    async def cover(self) -> None:
        """Take a checkpoint of the log as it is now; for a caller that does not see all of it, nothing is done.

        Raises:
            ToolRefused: it can't be taken (`unavailable`).
        """
        caller = self._credential.caller
        if not caller.is_operator:
            return
        try:
            await self._door.system.gateway.aperform("checkpoints.take", caller=caller)
        except (IntersessionError, RuntimeError) as error:
            raise self._door.known(error, "checkpoints.take") from None

    def live(self, after: int | None) -> AsyncIterator[bytes]:
        """Yield positions as they come, except those of receipts: each look leaves one, and would cause another without end.

        Raises:
            ToolRefused: this credential may not read (`forbidden`), or the log can't be read now (`unavailable`).
        """
        self._check_reads()
        try:
            head = self._door.system.log.head()
        except LogError as error:
            self._door.system.service.store_failed(error)
            self._door.unread = isinstance(error, StoreUnavailable)
            raise ToolRefused("unavailable", f"the log can't be read: {error}") from error
        at = head if after is None else min(after, head)
        asked = [StoreNews(lambda: self.is_away).news]
        # Forks hold whole sessions: they are the operator's to know of.
        if self._credential.caller.is_operator:
            asked.append(ForksBeside(self._door.forks).news)
        beside = partial(all_news, *asked)
        return event_stream(self._door, self._credential, self._hold, at, _told, beside=beside)

    @property
    def is_away(self) -> bool:
        """Whether the store can't be read or written now."""
        return self._door.unread or self._door.system.service.world.reports.store_error is not None

    def _check_reads(self) -> None:
        if "operator.read" not in all_scopes(self._credential.scopes):
            raise ToolRefused("forbidden", "missing scope: operator.read")

    def may_ask(self) -> float:
        """Count a request."""
        return self._door.questions.take(self._credential.caller.name)


def _told(page: Iterable[Recorded], credential: Credential, reaches: Reaches) -> Iterator[bytes]:
    """Yield how far a page goes, and before that whether visible texts were erased."""
    del credential
    erased = at = 0
    for one in page:
        if isinstance(one.event, Erased) and reaches(one.event.stream):
            erased = at = one.position
        elif reaches(one.stream) and not isinstance(one.event, AccessRecorded):
            at = one.position
    if erased:
        yield told_erased(erased)
    if at:
        yield told_live(at)


def token_in(body: bytes) -> bytes:
    """Return the token of a login; empty if it has none."""
    try:
        said = msgspec.json.decode(body, type=dict[str, str])
    except msgspec.DecodeError:
        return b""
    return said.get("token", "").encode()
