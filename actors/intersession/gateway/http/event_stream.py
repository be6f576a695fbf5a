"""Committed events as server-sent events: each with its position as its id, so that `Last-Event-ID` resumes exactly.

Read from the log at the reader's own pace: a slow reader holds nothing but its position.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import suppress
from typing import Final

import msgspec

from intersession.gateway.admission import Credential, Hold
from intersession.gateway.door import Door
from intersession_events.errors import LogError
from intersession_events.ids import session_stream
from intersession_events.log import Recorded
from intersession_events.plain_json import JsonObject

PAGE: Final = 200
_SESSION: Final = session_stream("")


async def event_stream(
    door: Door,
    credential: Credential,
    hold: Hold,
    after: int,
    shown: Callable[[Iterable[Recorded], Credential], Iterable[bytes]],
) -> AsyncIterator[bytes]:
    """Yield what is committed behind a position, then what comes, as `shown` has what this credential may see of it.

    It ends when the gateway stops, the credential is revoked, or the hold has to give way to others; whoever listened goes on
    behind the last position. Who was sent nothing for `keep_alive_s` is told that the stream is still here, however much
    comes that is not for them: else that silence would tell them that others are at work.
    """
    wake, ending = asyncio.Event(), asyncio.Event()
    now = asyncio.get_running_loop().time

    def give_way() -> None:
        ending.set()
        wake.set()

    hold.give_way = give_way
    stop = door.hub.listen(lambda _events: wake.set())
    try:
        yield b"retry: 1000\n\n"
        silent_until = now() + door.limits.keep_alive_s
        while not (door.draining or ending.is_set()) and door.credentials.count(credential):
            wake.clear()
            page, after = await asyncio.to_thread(_next_page, door, after)
            for sent in shown((one for one in page if _is_for(door, credential, one)), credential):
                yield sent
                silent_until = now() + door.limits.keep_alive_s
                if ending.is_set():
                    return
                await asyncio.sleep(0)  # so that it is noticed when the reader has gone
            if not page and not ending.is_set():
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(silent_until):
                        await wake.wait()
            if now() >= silent_until:
                yield b": still here\n\n"
                silent_until = now() + door.limits.keep_alive_s
    finally:
        stop()


def _next_page(door: Door, after: int) -> tuple[list[Recorded], int]:
    """Return the next events and the position behind them; a row that can't be read is passed over."""
    page: list[Recorded] = []
    try:
        for recorded in door.system.log.all(after=after, limit=PAGE):
            page.append(recorded)
            after = recorded.position
    except LogError as error:
        if error.position is None:
            door.system.service.store_failed(error)
            return page, after
        after = error.position
        door.logger.warning("position %d is in no event stream, it can't be read: %s", after, error)
    return page, after


def _is_for(door: Door, credential: Credential, recorded: Recorded) -> bool:
    """Whether somebody may see an event: the operator every one, others those of the sessions they may act as."""
    caller = credential.caller
    if caller.is_operator:
        return True
    if not recorded.stream.startswith(_SESSION):
        return False
    return caller.reaches(door.system.service.reader.parse(recorded.stream.removeprefix(_SESSION)))


def shown(page: Iterable[Recorded], credential: Credential) -> Iterator[bytes]:
    """Yield events as they are sent; tracebacks are the operator's."""
    return (_sent(recorded, whole=credential.caller.is_operator) for recorded in page)


def _sent(recorded: Recorded, *, whole: bool) -> bytes:
    event: JsonObject = msgspec.to_builtins(recorded.event)
    if not whole:
        event.pop("traceback", None)
    data: JsonObject = {
        "position": recorded.position,
        "stream": recorded.stream,
        "version": recorded.version,
        "topic": recorded.topic,
        "id": recorded.id,
        "time": recorded.time,
        "causation": recorded.causation,
        "correlation": recorded.correlation,
        "event": event,
    }
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (
        recorded.position,
        recorded.topic.encode(),
        msgspec.json.encode(data),
    )
