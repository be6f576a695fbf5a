"""Committed events as server-sent events: each with its position as its id, so that `Last-Event-ID` resumes exactly.

Read from the log at the reader's own pace: a slow reader holds nothing but its position.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import Final

import msgspec

from intersession.gateway.admission.credentials import Credential
from intersession.gateway.admission.shares import Hold
from intersession.gateway.door import Door
from intersession.gateway.protocol.run_events import RunEvent
from intersession.web.stopping import server_stops
from intersession_actors.rules.disclosure.redaction import redact_text
from intersession_actors.running.host.own_threads import off_loop
from intersession_events.basics.errors import LogError
from intersession_events.basics.ids import SESSIONS, session_stream
from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts import RunEnd
from intersession_events.log.recorded import Recorded

PAGE: Final = 200


Reaches = Callable[[str], bool]
"""Whether somebody may see what happens in a session's stream."""

RenderPage = Callable[[Iterable[Recorded], Credential, Reaches], Iterable[bytes]]
"""Has of a page what a credential may see, as it is sent."""


async def event_stream(
    door: Door,
    credential: Credential,
    hold: Hold,
    after: int,
    shown: RenderPage,
    *,
    beside: Callable[[], bytes | None] | None = None,
) -> AsyncIterator[bytes]:
    """Yield the committed events behind a position, then new ones, as `shown` renders them for this credential.

    Between them, `delta` has what agents say in pieces, as far as this credential may read it (STREAM-4).

    `beside` is asked from time to time, in a thread, whether there is news of what lies beside the log.

    It ends when the gateway, its system or the server stops, the credential is revoked, or the hold has to give way to others;
    whoever listened goes on behind the last position. After `keep_alive_s` without an event a client is told that the stream is still
    here, however much comes that is not for them: else that silence would tell them that others are at work.
    """
    wake, ending = asyncio.Event(), asyncio.Event()
    deltas = _Deltas(lambda stream: _is_for(door, credential, stream), wake.set)
    now = asyncio.get_running_loop().time

    def give_way() -> None:
        ending.set()
        wake.set()

    def is_over() -> bool:
        stops = door.draining or ending.is_set() or door.system.service.world.agents.closing or server_stops()
        return stops or not door.credentials.count(credential)

    async def told() -> Iterable[bytes]:
        nonlocal after
        page: list[Recorded] = []
        if wake.is_set():
            wake.clear()
            page, after = await off_loop(_next_page, door, after)
            if page:
                wake.set()  # there may be more
        news = None if beside is None else await off_loop(beside)
        seen = shown(page, credential, lambda stream: _is_for(door, credential, stream))
        return chain(seen, deltas.behind(page), () if news is None else (news,))

    hold.give_way = give_way
    stop = door.hub.listen(deltas.hear)
    door.hub.catch_up(deltas.hear)
    try:
        yield b"retry: 1000\n\n"
        silent_until = now() + door.limits.keep_alive_s
        wake.set()
        while not is_over():
            for sent in await told():
                yield sent
                silent_until = now() + door.limits.keep_alive_s
                if ending.is_set():
                    return
                await asyncio.sleep(0)  # so that it is noticed when the reader has gone
            with suppress(TimeoutError):
                async with asyncio.timeout_at(min(silent_until, now() + door.limits.check_s)):
                    await wake.wait()
            if now() >= silent_until:
                yield b": still here\n\n"
                silent_until = now() + door.limits.keep_alive_s
    finally:
        stop()


class _Deltas:
    """What agents have said in pieces, for one reader: the latest of each run, which has the whole text."""

    def __init__(self, reaches: Reaches, wake: Callable[[], None]) -> None:
        self._reaches = reaches
        self._wake = wake
        self._latest: dict[str, RunEvent] = {}

    def hear(self, events: Sequence[RunEvent]) -> None:
        for one in events:
            if one.name == "chat" and one.position is None and self._reaches(session_stream(one.session_key)):
                self._latest[one.payload["runId"]] = one
        self._wake()

    def behind(self, page: Iterable[Recorded]) -> list[bytes]:
        """Return what goes out behind a page: nothing of a run that ends in it. It has no id, since nothing goes on behind it."""
        ended = {one.event.run_id for one in page if isinstance(one.event, RunEnd)}
        latest, self._latest = self._latest, {}
        return [_delta(run_id, told) for run_id, told in latest.items() if run_id not in ended]


def _delta(run_id: str, told: RunEvent) -> bytes:
    # Pages of the web debugger are among the readers: no secret is shown there.
    text, _ = redact_text(told.payload["message"]["content"][0]["text"])
    data = {"runId": run_id, "sessionKey": told.session_key, "text": text}
    return b"event: delta\ndata: %s\n\n" % msgspec.json.encode(data)


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


def _is_for(door: Door, credential: Credential, stream: str) -> bool:
    """Whether a caller may see a stream's events: the operator all, others those of the sessions they may act as."""
    caller = credential.caller
    if caller.is_operator:
        return True
    if not stream.startswith(SESSIONS):
        return False
    return caller.reaches(door.system.service.reader.parse(stream.removeprefix(SESSIONS)))


def shown(page: Iterable[Recorded], credential: Credential, reaches: Reaches) -> Iterator[bytes]:
    """Yield events in the form that is sent; only the operator sees tracebacks."""
    return (
        _sent(recorded, whole=credential.caller.is_operator) for recorded in page if reaches(recorded.stream)
    )


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
