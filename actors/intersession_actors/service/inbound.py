"""Takes a person's message from a channel, for hosts and Pykka actors: the chat's session records it, and one run answers (INB)."""

from typing import Final, Literal

import msgspec

from intersession_actors.errors import ToolRefused, refusing_without_store
from intersession_actors.policy import parse_send_command
from intersession_actors.service.arguments import invalid, read_arguments
from intersession_actors.service.asking import ask_session
from intersession_actors.service.deliveries import delivery_of
from intersession_actors.service.openings import opening
from intersession_actors.service.pending import BlockingThreads, Pending, Result, afinished, finished
from intersession_actors.service.run_waits import RunDoor
from intersession_actors.service.service import Service
from intersession_actors.session import Enqueue, message_for
from intersession_events import ids
from intersession_events.errors import InvalidKey
from intersession_events.facts import (
    ChatType,
    MessageRecorded,
    Provenance,
    Route,
    RouteChanged,
    RunQueued,
    SessionPatched,
    ready,
)
from intersession_events.keys import SessionKey, parse_agent_id
from intersession_events.log import StreamAppend
from intersession_events.plain_json import JsonMapping, JsonObject

Command = Literal["allow", "deny", "inherit"]

LOOK_BACK: Final = 200
"""Events of a session that are searched for a message that a channel may have told twice."""


@ready
class InboundMessage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a channel knows of a person's message (INB-1)."""

    channel: str
    chat_id: str
    text: str
    sender: str
    sender_name: str | None = None
    chat_type: ChatType = "direct"
    chat_name: str | None = None
    account: str | None = None
    thread: str | None = None
    agent_id: str | None = None
    owner: bool = False
    message_id: str | None = None
    deliver: bool = True


class InboundAccepted(msgspec.Struct, frozen=True, kw_only=True):
    """The message is durable. `runs` False: no run was started (`/send`, or `deliver: false`)."""

    run_id: str
    session_key: str
    runs: bool = True

    def as_result(self) -> JsonObject:
        """Return the answer a door gives."""
        return {"runId": self.run_id, "sessionKey": self.session_key, "status": "accepted"}


def receive(service: Service, message: InboundMessage) -> InboundAccepted:
    """Record a person's message and queue its run.

    Raises:
        ToolRefused: it is no message for anybody here (`invalid_request`, `unknown_agent`), or not durable (`busy`,
            `unavailable`).
    """
    _refuse_blank(message)
    bound = _bound(service, message)
    if bound is not None:
        try:
            return _receive(service, message, bound[0], thread=bound[1])
        except ToolRefused as refused:
            if refused.code != "not_visible":
                raise
    return _receive(service, message, session_key_of(service, message))


def _refuse_blank(message: InboundMessage) -> None:
    needed = {
        "channel": message.channel,
        "chat_id": message.chat_id,
        "text": message.text,
        "sender": message.sender,
    }
    for field, value in needed.items():
        if not value.strip():
            raise invalid(field, "blank, give it")


def _bound(service: Service, message: InboundMessage) -> tuple[SessionKey, Route] | None:
    """Return the session that a thread belongs to, and the thread (SPAWN-12)."""
    route = _route(message)
    owner = service.threads.session_of(route)
    return None if owner is None else (service.reader.parse(owner), route)


def _route(message: InboundMessage) -> Route:
    return Route(channel=message.channel, to=message.chat_id, account=message.account, thread=message.thread)


def _receive(
    service: Service, message: InboundMessage, key: SessionKey, *, thread: Route | None = None
) -> InboundAccepted:
    log_id, now = service.log.log_id, service.clock.now_ms()
    run_id = service.new_id()
    if message.message_id is not None:
        run_id = ids.derive(
            log_id,
            "run",
            "inbound",
            message.channel,
            message.account or "",
            message.chat_id,
            message.message_id,
        )
        if service.runs.get(run_id) is not None or _is_recorded(service, key, run_id):
            return InboundAccepted(run_id=run_id, session_key=str(key))
    command = parse_send_command(message.text) if message.owner else None
    route = _route(message)
    queued = RunQueued(
        run_id=run_id,
        session_id="",
        step="message",
        message_id=ids.derive(log_id, "message", run_id),
        timeout_ms=service.config.run_timeout_ms(),
        route=route,
        caller="inbound",
        idempotency_key=run_id if message.message_id is not None else None,
        chain=(str(key),),
    )
    said_by = Provenance(
        kind="external_user",
        source_channel=message.channel,
        sender=message.sender,
        sender_name=message.sender_name,
    )
    runs = message.deliver and command is None
    ask_session(
        service,
        str(key),
        Enqueue(
            message=message_for(queued, message.text, said_by, now),
            queue=queued if runs else None,
            opening=opening(service, key, by="person", chat_type=message.chat_type, channel=message.channel)
            if thread is None
            else None,
            route=RouteChanged(route=route, display_name=message.chat_name, chat_type=message.chat_type)
            if thread is None
            else None,
            only_bound=thread,
            patch=None if command is None else _patch(command, by=f"{message.channel}:{message.sender}"),
            carried=() if command is None else (_answer(service, key, command, route, run_id),),
            at_most=service.config.runs.inbox_max,
            correlation=run_id,
        ),
    )
    return InboundAccepted(run_id=run_id, session_key=str(key), runs=runs)


def _is_recorded(service: Service, key: SessionKey, run_id: str) -> bool:
    """Whether a message that starts no run was recorded before, by its channel's own id for it."""
    message_id = ids.derive(service.log.log_id, "message", run_id)
    stream = service.log.stream(ids.session_stream(str(key)), backwards=True, limit=LOOK_BACK)
    return any(
        isinstance(item.event, MessageRecorded) and item.event.message.id == message_id for item in stream
    )


def _patch(command: Command, *, by: str) -> SessionPatched:
    """Return what an owner's `/send on|off|inherit` changes (POL-2)."""
    if command == "inherit":
        return SessionPatched(cleared=("sendPolicy",), by=by)
    return SessionPatched(values={"sendPolicy": command}, by=by)


def _answer(service: Service, key: SessionKey, command: Command, route: Route, run_id: str) -> StreamAppend:
    """Return the answer to the person, as a delivery that is decided together with the change (INB-3)."""
    word = {"allow": "on", "deny": "off", "inherit": "as configured"}[command]
    text = f"Sending from this session is {word}."
    return delivery_of(service, key=key, route=route, text=text, run_id=run_id, purpose="command_reply")


def session_key_of(service: Service, message: InboundMessage) -> SessionKey:
    """Return the session that a chat belongs to, by `session.dmScope` for direct ones (INB-1).

    Raises:
        ToolRefused: a part of the address can't be in a key, or the agent is not known.
    """
    _refuse_blank(message)
    try:
        agent_id = (
            service.config.default_agent if message.agent_id is None else parse_agent_id(message.agent_id)
        )
        if agent_id not in service.config.agent_ids:
            raise ToolRefused(
                "unknown_agent",
                f"agent_id: {agent_id!r} is not configured, use one of {', '.join(service.config.agent_ids)}",
            )
        channel, thread = message.channel, message.thread
        match message.chat_type:
            case "group":
                return SessionKey.group(agent_id, channel, message.chat_id, thread)
            case "channel":
                return SessionKey.channel_room(agent_id, channel, message.chat_id, thread)
            case "direct":
                return _direct(service, agent_id, message)
    except InvalidKey as error:
        raise invalid("chat_id", str(error)) from None


def _direct(service: Service, agent_id: str, message: InboundMessage) -> SessionKey:
    peer = _linked(service, message)
    match service.config.session.dm_scope:
        case "main":
            return service.reader.main_key(agent_id)
        case "per-peer":
            return SessionKey.direct(agent_id, None, None, peer)
        case "per-channel-peer":
            return SessionKey.direct(agent_id, message.channel, None, peer)
        case "per-account-channel-peer":
            return SessionKey.direct(agent_id, message.channel, message.account or "default", peer)


def _linked(service: Service, message: InboundMessage) -> str:
    """Return the one name of a person who is known under several (`session.identityLinks`)."""
    for name, peers in service.config.session.identity_links.items():
        if f"{message.channel}:{message.sender}" in peers or message.sender in peers:
            return name
    return message.sender


class ChatDoor:
    """A person speaks; the doors of Python and of Pykka actors. `threads` block for its coroutines."""

    def __init__(self, service: Service, runs: RunDoor, threads: BlockingThreads) -> None:
        self._service = service
        self._runs = runs
        self._threads = threads

    def begin(self, given: JsonMapping, wait: float | None) -> Result | Pending:
        """Take a person's message (INB-1), and begin to wait `wait` seconds for its run.

        Raises:
            ToolRefused: it was refused, and left nothing behind.
            StoreUnavailable: the store is away.
        """
        accepted = receive(self._service, read_arguments(InboundMessage, given))
        if wait is None or not accepted.runs:
            return accepted.as_result()
        begun = self._runs.begin(accepted.run_id, wait)
        session = {"sessionKey": accepted.session_key}
        return begun.with_fields(**session) if isinstance(begun, Pending) else begun | session

    def inbound(self, given: JsonMapping, wait: float | None = None) -> Result:
        """Take a person's message, and wait for its run on the calling thread. A refusal is an answer."""
        try:
            with refusing_without_store():
                return finished(self.begin(given, wait))
        except ToolRefused as refused:
            return dict(refused.as_result())

    async def ainbound(self, given: JsonMapping, wait: float | None) -> Result:
        """Take a person's message as `inbound` does, without blocking the event loop."""
        try:
            with refusing_without_store():
                begun = await self._threads.run(lambda: self.begin(given, wait))
                return await afinished(begun, self._threads)
        except ToolRefused as refused:
            return dict(refused.as_result())
