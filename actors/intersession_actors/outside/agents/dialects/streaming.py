"""An answer of an endpoint in pieces: shown as they come, and put together for `openai.py` (STREAM-1)."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from openai import AsyncStream

from intersession_actors.outside.agents.dialects.dialect import Chunks, is_json_object
from intersession_actors.outside.agents.turn import Turn


class Streamed(NamedTuple):
    """What an endpoint said, and whether its text has been shown."""

    said: object
    is_shown: bool


async def streamed(
    ask: Callable[..., Awaitable[Any]],  # the client's `post`, which knows only endpoints that stream
    turn: Turn,
    chunks: Chunks,
) -> Streamed:
    """Ask for an answer in pieces, show its text, and return the whole; an endpoint that gives no pieces is understood, too.

    The response is closed when the run is over.

    Raises:
        ConnectionError: the pieces ended before the answer did.
    """
    given = await ask(stream=True, stream_cls=AsyncStream[object])
    try:
        if given.response.headers.get("content-type", "").startswith("application/json"):
            await given.response.aread()
            return Streamed(given.response.json(), is_shown=False)
        async for chunk in given:
            text = chunks.take(chunk) if is_json_object(chunk) else ""
            if text:
                turn.stream(text)
    finally:
        # An end of the run that comes while the response is closed would leave it open: its model would go on, and be paid.
        await asyncio.shield(asyncio.ensure_future(given.close()))
    whole = chunks.whole()
    if whole is None:
        raise ConnectionError("the endpoint's stream ended before the answer did")
    return Streamed(whole, is_shown=True)
