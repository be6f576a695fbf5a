"""The door for hosts built of Pykka actors: tool calls and people's messages as messages to one actor reference."""

import asyncio
import logging
import queue
import threading
from collections.abc import Callable, Hashable
from contextlib import suppress
from contextvars import Context
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

import msgspec
import pykka

from intersession_actors.assembly.system.pykka_actor import SystemActor
from intersession_actors.calls.service.inbound import ChatDoor, InboundMessage
from intersession_actors.calls.service.pending import Result, afinished
from intersession_actors.calls.tools.registry import TOOLS
from intersession_actors.calls.tools.toolbox import Tools
from intersession_actors.outside.attachments.message_files import File
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.gate.values import invalid
from intersession_actors.running.host.door_threads import DoorThreads
from intersession_actors.running.host.hosts_loop import OwnLoop
from intersession_actors.running.runtime.actor import Handler
from intersession_actors.running.runtime.reply import ReplyFuture
from intersession_actors.running.runtime.runtime import ThreadingRuntime
from intersession_events.basics.errors import InvalidKey
from intersession_events.basics.plain_json import JsonObject

logger = logging.getLogger("intersession.actors")

STOP_S: Final = 5.0
_NAME_OF: Final = {tool.arguments: tool.name for tool in TOOLS.values()}


class _Filled(msgspec.StructMeta):
    """Structs that a host fills in: missing and unknown fields are refused in the words of every other door."""

    if not TYPE_CHECKING:  # the makings of a struct are what type checkers know

        def __call__(self, *unnamed: object, **given: object) -> object:
            known = {field.name: field.required for field in msgspec.structs.fields(self)}
            missing = [name for name, required in known.items() if required and name not in given]
            unknown = [name for name in given if name not in known]
            if unnamed:
                raise invalid(
                    "arguments", f"each field has a name, give {', '.join(f'{name}=…' for name in known)}"
                )
            if missing:
                raise invalid(missing[0], "required, give it")
            if unknown:
                raise invalid(unknown[0], f"unknown field, leave it out (known: {', '.join(known)})")
            return super().__call__(**given)


class As(msgspec.Struct, frozen=True):
    """A tool call by a session, or by the operator (None): `As("agent:main:main", SessionsSend(message="…", …))`.

    `call` is the arguments of one of the tools. The answer is the dict that `SessionSystem.tools(session_key).call` gives.
    """

    session_key: str | None
    call: msgspec.Struct


class Inbound(InboundMessage, frozen=True, kw_only=True, metaclass=_Filled):
    """A person's message (INB-1). The answer is that of `SessionSystem.inbound`; `wait` is in seconds.

    Raises:
        ToolRefused: a field is missing, unknown or given without its name.
    """

    files: tuple[File, ...] = ()
    wait: float | None = None


class PykkaDoor:
    """Keeps one actor in Pykka's registry; stopping that actor calls `close`, which stops this door too.

    Calls of one session are begun in the order in which they were told, and so are the messages of one chat. None
    waits for the answer of another.
    """

    def __init__(
        self,
        *,
        tools: Callable[..., Tools],
        chat: ChatDoor,
        threads: DoorThreads,
        close: Callable[[], None],
        check: Callable[[], None],
    ) -> None:
        self._tools = tools
        self._chat = chat
        self._threads = threads
        self._loop = OwnLoop(name="pykka-door")
        self._lanes: WeakValueDictionary[Hashable, asyncio.Lock] = WeakValueDictionary()
        self._tasks: set[asyncio.Task[None]] = set()
        self._close = close
        self._closing_thread: int | None = None
        self._runtime = ThreadingRuntime()
        ref = self._runtime.start(SystemActor, self._take, self._stopped, check, name="intersession")
        self.ref: pykka.ActorRef[Handler] = ref.actor_ref
        pykka.ActorRegistry.register(self.ref)

    def stop(self) -> None:
        """Take no more messages, give up waiting ones, and leave the registry. Also while the actor stops."""
        pykka.ActorRegistry.unregister(self.ref)
        if threading.get_ident() != self._closing_thread:
            self._runtime.stop(STOP_S)
        self._loop.stop(STOP_S)

    def _stopped(self) -> None:
        self._closing_thread = threading.get_ident()
        self._close()

    # --- one message

    def _take(self, message: object, reply: ReplyFuture | None, context: Context) -> None:
        self._loop.get().call_soon_threadsafe(self._begin, message, reply, context=context)

    def _begin(self, message: object, reply: ReplyFuture | None) -> None:
        task = asyncio.get_running_loop().create_task(self._finish(message, reply))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _finish(self, message: object, reply: ReplyFuture | None) -> None:
        try:
            answer = await self._answer(message)
        except ToolRefused as refused:
            answer = dict(refused.as_result())
        except Exception as error:
            if reply is None:
                logger.exception("nobody waits for the answer to %s, which failed", type(message).__name__)
                return
            with suppress(queue.Full):  # the actor has ended, and whoever asked was told so
                reply.set_exception((type(error), error, error.__traceback__))
            return
        if reply is not None:
            with suppress(queue.Full):
                reply.set(answer)
        elif answer.get("status") in {"error", "forbidden"}:
            logger.warning("nobody waits for the answer to %s: %s", type(message).__name__, answer["error"])

    async def _answer(self, message: object) -> Result:
        match message:
            case As(session_key=key, call=call) if type(call) in _NAME_OF:
                return await self._call(key, call)
            case Inbound():
                return await self._inbound(message)
            case _:
                raise TypeError(
                    f"{message!r} is nothing to be done; tell As(session_key, SessionsSend(…)), the arguments of another "
                    "tool in its place, or Inbound(…)"
                )

    async def _call(self, key: str | None, call: msgspec.Struct) -> Result:
        try:
            tools = self._tools(key, of_agent=key is not None)
        except InvalidKey as error:
            raise ToolRefused("invalid_key", f"session_key: {error}") from None
        async with self._lane(key):
            answer = await tools.abegin(_NAME_OF[type(call)], _given(call))
        return await answer

    async def _inbound(self, message: Inbound) -> Result:
        given = _given(msgspec.structs.replace(message, files=()))
        given.pop("wait", None)
        if message.files:
            given["files"] = message.files  # as they are: the door for chats reads them
        chat = (message.channel, message.account, message.chat_id)
        async with self._lane(chat):
            begun = await self._threads.run(lambda: self._chat.begin(given, message.wait), chat)
        return await afinished(begun, self._threads, chat)

    def _lane(self, key: Hashable) -> asyncio.Lock:
        return self._lanes.setdefault(key, asyncio.Lock())


def _given(call: msgspec.Struct) -> JsonObject:
    """Return the given fields of a call, in the form of a door that reads JSON.

    Raises:
        ToolRefused: it holds what JSON has no form for, or is nested too deep to look at.
    """
    try:
        values: JsonObject = msgspec.to_builtins(call)
    except (TypeError, ValueError, RecursionError) as error:
        raise invalid("arguments", f"they are not a JSON object ({type(error).__name__}), send one") from None
    return {
        field.encode_name: values[field.encode_name]
        for field in msgspec.structs.fields(call)
        if field.required or getattr(call, field.name) != field.default
    }
