"""Takes a person's message from a channel, for hosts and Pykka actors: the chat's session records it, and one run answers (INB)."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Required, TypedDict, cast

import msgspec
from msgspec.structs import replace

from intersession_actors.calls.service import asking
from intersession_actors.calls.service.approvals import release_call
from intersession_actors.calls.service.arguments import read_arguments
from intersession_actors.calls.service.callers import OPERATOR
from intersession_actors.calls.service.deliveries import delivery_of
from intersession_actors.calls.service.pending import Pending, Result, afinished, finished
from intersession_actors.calls.service.run_waits import RunDoor
from intersession_actors.calls.service.service import Service
from intersession_actors.outside.attachments.contents import storing
from intersession_actors.outside.attachments.message_files import File, MessageFile, check_files
from intersession_actors.owners.chains.spending import person_and_chat
from intersession_actors.owners.session.commands import Compact, Enqueue, message_for
from intersession_actors.owners.streams.drafting import append_of
from intersession_actors.rules.answers import InboundAnswer
from intersession_actors.rules.config.messages import INBOUND, queueing_of
from intersession_actors.rules.errors import ToolRefused, not_on_a_loop
from intersession_actors.rules.gate.limits import AgentId, Identity, MessageText
from intersession_actors.rules.gate.texts import shown_name
from intersession_actors.rules.gate.values import invalid, seconds_of
from intersession_actors.rules.policy.owner_commands import parse_compact, parse_owner_command
from intersession_actors.rules.policy.resetting import Renewal, parse_reset, renewal_of
from intersession_actors.rules.policy.sending import ApprovalCommand, parse_approval
from intersession_actors.running.host.door_threads import DoorThreads
from intersession_events import facts
from intersession_events.basics import ids
from intersession_events.basics.errors import InvalidKey
from intersession_events.basics.keys.key import SessionKey
from intersession_events.basics.keys.references import parse_agent_id
from intersession_events.basics.plain_json import JsonMapping, JsonObject
from intersession_events.log.recorded import StreamAppend

BEGUN: Final = "A new conversation has begun."
"""The answer to an owner's bare `/new` (RESET-3)."""

_CALLER: Final = INBOUND
"""Under whose name the ids of channels' messages are kept as keys."""


@facts.ready
class InboundMessage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A person's message as a channel reports it (INB-1)."""

    channel: Identity
    chat_id: Identity
    text: MessageText
    sender: Identity
    sender_name: str | None = None
    chat_type: facts.ChatType = "direct"
    chat_name: str | None = None
    account: Identity | None = None
    thread: Identity | None = None
    agent_id: AgentId | None = None
    owner: bool = False
    message_id: Identity | None = None
    deliver: bool = True


class InboundFields(TypedDict, total=False):
    """The fields of a person's message for `SessionSystem.inbound`, and the seconds to wait."""

    channel: Required[str]
    chat_id: Required[str]
    text: Required[str]
    sender: Required[str]
    sender_name: str | None
    chat_type: facts.ChatType
    chat_name: str | None
    account: str | None
    thread: str | None
    agent_id: str | None
    owner: bool
    message_id: str | None
    deliver: bool
    files: Sequence[File]
    wait: float | None


class InboundAccepted(msgspec.Struct, frozen=True, kw_only=True):
    """The message is durable. `message_id` is its id if no run was started (`/send`, or `deliver: false`)."""

    run_id: str
    session_key: str
    message_id: str | None = None

    @property
    def runs(self) -> bool:
        """Whether a run was started."""
        return self.message_id is None

    def as_result(self) -> JsonObject:
        """Return a door's answer: it names the run only if there is one."""
        named = {"runId": self.run_id} if self.runs else {"messageId": self.message_id}
        return {**named, "sessionKey": self.session_key, "status": "accepted"}


def receive(service: Service, message: InboundMessage, files: Sequence[MessageFile] = ()) -> InboundAccepted:
    """Record a person's message, with its files, and queue its run.

    Raises:
        ToolRefused: it is no message for anybody here (`invalid_request`, `unknown_agent`), or not durable (`busy`,
            `unavailable`).
    """
    _refuse_blank(message, has_files=bool(files))
    named = _named(service, message, files)
    taken = _taken_before(service, named) if named.for_ever else None
    if taken is not None:
        return taken
    bound = _bound(service, message)
    if bound is not None:
        try:
            return _receive(service, message, bound[0], named, files, thread=bound[1])
        except ToolRefused as refused:
            if refused.code != "not_visible":
                raise
    return _receive(service, message, session_key_of(service, message, files), named, files)


class _Named(NamedTuple):
    """The id of a message's run, the digests of all of it and of its place, its text and files. `for_ever`: the same message has the same id."""

    run_id: str
    digest: str
    place: str
    said: tuple[str, tuple[str, ...]]
    for_ever: bool = True


def _named(service: Service, message: InboundMessage, files: Sequence[MessageFile]) -> _Named:
    """Return the id of a message's run: the same for the same message of a channel, for ever (INB-1).

    So it is for one that code of the host's says for a run or a delivery that is tried again (SEND-13).
    """
    own = _Named("", *_digests_of(message, files), (message.text, tuple(file.block.sha256 for file in files)))
    if message.message_id is None:

        def is_same(event: facts.Event) -> bool:
            match event:
                case facts.RunQueued(digests=digests):
                    return facts.same_request(digests, (own.digest,))
                case facts.InboundTaken():
                    return _says(service, event, own)
                case _:
                    return False

        within = asking.asked_within(service, OPERATOR, "inbound", lambda: own.digest, is_same)
        return (
            own._replace(run_id=service.new_id(), for_ever=False)
            if within is None
            else own._replace(run_id=within[0])
        )
    parts = (message.channel, message.account or "", message.chat_id, message.message_id)
    own, *before = (
        own._replace(run_id=ids.derive(log_id, "run", "inbound", *parts)) for log_id in service.log.log_ids
    )
    return next((named for named in before if _taken_before(service, named) is not None), own)


def _digests_of(message: InboundMessage, files: Sequence[MessageFile]) -> tuple[str, str]:
    """Return the digest of the text with its files, its sender and its place, and that of the last two alone.

    Before a message is told again the names that are shown may have changed, and to which agent and route its chat belongs.
    """
    said = replace(message, sender_name=None, chat_name=None, agent_id=None, deliver=True)
    whole = asking.digest_of([said, [file.block for file in files]] if files else said)
    return whole, asking.digest_of(replace(said, text=""))


def _taken_before(service: Service, named: _Named) -> InboundAccepted | None:
    """Return the outcome of a repeated channel message, in whichever session it was.

    Raises:
        ToolRefused: something else was told under its `message_id` (`idempotency_conflict`).
    """
    run_id = named.run_id
    run = service.runs.get(run_id)
    if run is not None:
        known = service.runs.by_idempotency_key(_CALLER, run_id)
        if known is None or not facts.same_request(known.digests, (named.digest,)):
            raise _used_before()
        return InboundAccepted(run_id=run_id, session_key=run.session_key)
    for item in service.log.stream(ids.inbound_stream(run_id), to=1):
        if isinstance(item.event, facts.InboundTaken):
            if item.event.request_digest != named.digest and not _says(service, item.event, named):
                raise _used_before()
            return InboundAccepted(
                run_id=run_id, session_key=item.event.session_key, message_id=item.event.message_id
            )
    return None


def _says(service: Service, taken: facts.InboundTaken, named: _Named) -> bool:
    """Whether a message is the one that was recorded; of one that was erased the words are not compared (ERASE-4)."""
    if taken.request_digest != named.place:
        return False
    stream = ids.session_stream(taken.session_key)
    for version in service.sessions.versions_of_message(taken.session_key, taken.message_id):
        for item in service.log.stream(stream, after=version - 1, to=version):
            message = facts.message_in(item.event)
            if message is not None and message.id == taken.message_id:
                said = facts.text_of(message), tuple(file.sha256 for file in facts.files_of(message))
                return said[0] == facts.ERASED or said == named.said
    return True


def _used_before() -> ToolRefused:
    """Return the refusal of another message under an id that was used."""
    return ToolRefused(
        "idempotency_conflict",
        "message_id: it was used for a message with another text, file, sender or thread, or that went elsewhere; give each its own",
    )


def _refuse_blank(message: InboundMessage, *, has_files: bool) -> None:
    for field in ("channel", "chat_id", "sender", "text"):
        if not getattr(message, field).strip() and not (field == "text" and has_files):
            raise invalid(field, "blank, give it")


def _bound(service: Service, message: InboundMessage) -> tuple[SessionKey, facts.Route] | None:
    """Return the session that a thread belongs to, and the thread (SPAWN-12)."""
    route = _route(message)
    owner = service.threads.session_of(route)
    return None if owner is None else (service.reader.parse(owner), route)


def _route(message: InboundMessage) -> facts.Route:
    return facts.Route(
        channel=message.channel, to=message.chat_id, account=message.account, thread=message.thread
    )


def _receive(
    service: Service,
    message: InboundMessage,
    key: SessionKey,
    named: _Named,
    files: Sequence[MessageFile],
    *,
    thread: facts.Route | None = None,
) -> InboundAccepted:
    spent_by = person_and_chat(service.config.session.person, _route(message), message.sender)
    asked = asking.MessageRequest(
        named.run_id, str(key), tool="inbound", field="text", runs=message.deliver, spent_by=spent_by
    )
    with asking.reserving(service, OPERATOR, asked) as origin, storing(service.log, files) as blocks:
        return _recorded(service, message, key, named, origin, files=blocks, thread=thread)


def _recorded(
    service: Service,
    message: InboundMessage,
    key: SessionKey,
    named: _Named,
    origin: asking.Origin,
    *,
    files: Sequence[facts.FileBlock],
    thread: facts.Route | None,
) -> InboundAccepted:
    """Record a message, and queue its run. One that a run or a delivery of ours led to is no person's (PROV-2)."""
    log_id, now, run_id = service.log.log_id, service.clock.now_ms(), named.run_id
    route, by_person = _route(message), origin.begins
    is_owners = message.owner and by_person
    command = parse_owner_command(message.text) if is_owners else None
    approval = parse_approval(message.text) if is_owners else None
    told = None if command is None else command.answer
    if approval is not None:
        told = _released(service, approval, by=f"{message.channel}:{message.sender}")
    wish = parse_compact(message.text) if is_owners else None
    if wish is not None:
        told = _compacted(service, str(key), run_id, wish, by=f"{message.channel}:{message.sender}")
    # A bound thread ends in its own time (SPAWN-12); a release begins nothing anew, and neither does a summary.
    renews = by_person and thread is None and approval is None and wish is None
    renewal, text = _renewal(service, message, now) if renews else (None, message.text)
    queued = facts.RunQueued(
        run_id=run_id,
        session_id="",
        step="message",
        answers=ids.derive(log_id, "message", run_id),
        timeout_ms=service.config.run_timeout_ms(),
        route=route,
        caller=_CALLER,
        idempotency_key=run_id if named.for_ever else None,
        request_digests=(named.digest,) if named.for_ever else (),
    )
    said_by = origin.provenance(message.channel)
    if by_person:
        if service.config.has_tools_by_sender:
            budget = replace(origin.budget, sender=f"{message.channel}:{message.sender}")
            origin = origin._replace(budget=budget)
        said_by = replace(said_by, sender=message.sender, sender_name=shown_name(message.sender_name))
    said = bool(text or files)
    runs = message.deliver and told is None and said
    change = facts.RouteChanged(
        route=route, display_name=shown_name(message.chat_name), chat_type=message.chat_type
    )
    if not said:
        told = BEGUN
    carried = () if told is None else (_answer(service, key, told, route, origin.budget),)
    if not runs and named.for_ever:
        carried = (*carried, _taken(log_id, key, queued.message_id, named, origin.budget.root, now))
    accepted = asking.ask_session(
        service,
        str(key),
        Enqueue(
            budget=origin.budget,
            message=message_for(queued, text if runs else message.text, said_by, now, files),
            queue=queued if runs else None,
            opening=asking.opening(
                service,
                key,
                by="person" if by_person else "send",
                chat_type=message.chat_type,
                channel=message.channel,
            )
            if thread is None
            else None,
            route=change if thread is None and by_person else None,
            only_bound=thread,
            patch=None if command is None else command.patch(f"{message.channel}:{message.sender}"),
            carried=carried,
            renewal=renewal,
            counted=origin.counted,
            queueing=queueing_of(service.config.messages, message.channel) if by_person else None,
            at_most=service.config.runs.inbox_max,
            causation=origin.causation,
        ),
    )
    recorded = None if runs else queued.message_id
    answer = InboundAccepted(run_id=run_id, session_key=str(key), message_id=recorded)
    if accepted.recorded:
        return answer
    # Told twice at once, and this was the second time.
    return _taken_before(service, named) or replace(answer, message_id=queued.message_id)


def _taken(  # noqa: PLR0917 - one append
    log_id: str, key: SessionKey, message_id: str, named: _Named, root: str, now: int
) -> StreamAppend:
    """Return the append that a message which starts no run is known by: a second one conflicts with it."""
    taken = facts.InboundTaken(session_key=str(key), message_id=message_id, request_digest=named.place)
    stream = ids.inbound_stream(named.run_id)
    return append_of(log_id, stream, 0, (taken,), time=now, causation=None, correlation=root)


def _renewal(service: Service, message: InboundMessage, now_ms: int) -> tuple[Renewal | None, str]:
    """Return what can begin a chat's session anew, and the message's text behind an owner's command (RESET)."""
    settings = service.config.session
    asked = parse_reset(message.text, settings.reset_triggers) if message.owner else None
    if asked is not None:
        return Renewal(command=asked.command, by=f"{message.channel}:{message.sender}"), asked.rest
    renewal = renewal_of(
        settings,
        chat_type=message.chat_type,
        in_thread=message.thread is not None,
        channel=message.channel,
        now_ms=now_ms,
    )
    return renewal, message.text


def _released(service: Service, approval: ApprovalCommand, *, by: str) -> str:
    """Release a held call as an owner says, and return what the owner is told (ASK-3)."""
    action: facts.CallRelease = "go_on" if approval.approves else "refuse"
    try:
        answer = release_call(service, OPERATOR, approval.hold_id, action, text=approval.text, by=by)
    except ToolRefused as refused:
        if refused.code != "invalid_request":
            raise
        return f"Nothing was released: {refused}"
    return f"{answer['tool']} goes on." if approval.approves else f"{answer['tool']} is refused."


def _compacted(service: Service, key: str, run_id: str, wish: str, *, by: str) -> str:
    """Have the older turns summarised as an owner says, and return what the owner is told (CTX-6).

    `run_id` is the one that the message is known by, so that a repeated message asks for no second summary.
    """
    asked = Compact(
        run_id=ids.derive(service.log.log_id, "compact", run_id), by=by, wish=wish or None, session_id=None
    )
    try:
        asking.ask_session(service, key, asked)
    except ToolRefused as refused:
        if refused.code != "not_visible":
            raise
        return "There is nothing to summarise yet."
    return "What was said earlier here is being summarised."


def _answer(
    service: Service, key: SessionKey, text: str, route: facts.Route, budget: facts.Budget
) -> StreamAppend:
    """Return the answer to the person, as a delivery that is decided together with the change (INB-3)."""
    return delivery_of(
        service, key=key, route=route, text=text, run_id=budget.root, budget=budget, purpose="command_reply"
    )


def session_key_of(
    service: Service, message: InboundMessage, files: Sequence[MessageFile] = ()
) -> SessionKey:
    """Return the session of a chat, by `session.dmScope` for direct ones (INB-1).

    Raises:
        ToolRefused: a part of the address can't be in a key, or the agent is not known.
    """
    _refuse_blank(message, has_files=bool(files))
    agent_id = _agent_of(service, message)
    channel, thread = message.channel, message.thread
    try:
        match message.chat_type:
            case "group":
                return SessionKey.group(agent_id, channel, message.chat_id, thread)
            case "channel":
                return SessionKey.channel_room(agent_id, channel, message.chat_id, thread)
            case "direct":
                return _direct(service, agent_id, message)
    except InvalidKey as error:
        raise invalid("chat_id", str(error)) from None


def _agent_of(service: Service, message: InboundMessage) -> str:
    if message.agent_id is None:
        return service.config.default_agent
    try:
        agent_id = parse_agent_id(message.agent_id)
    except InvalidKey as error:
        raise invalid("agent_id", str(error)) from None
    if agent_id not in service.config.agent_ids:
        raise ToolRefused(
            "unknown_agent",
            f"agent_id: {agent_id!r} is not configured, use one of {', '.join(service.config.agent_ids)}",
        )
    return agent_id


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
    """Return the one name of a person with several (`session.identityLinks`)."""
    for name, peers in service.config.session.identity_links.items():
        if f"{message.channel}:{message.sender}" in peers or message.sender in peers:
            return name
    return message.sender


def lane_of(given: Mapping[str, object]) -> tuple[str, ...]:
    """Return the chat of a message, whose channel calls take turns with those of other chats."""
    return tuple(repr(given.get(field)) for field in ("channel", "account", "chat_id"))


class ChatDoor:
    """The doors for a person's message, in Python and Pykka. `threads` block for its coroutines."""

    def __init__(self, service: Service, runs: RunDoor, threads: DoorThreads) -> None:
        self._service = service
        self._runs = runs
        self._threads = threads

    def begin(self, given: JsonMapping, wait: float | None) -> Result | Pending:
        """Take a person's message (INB-1), and begin to wait `wait` seconds for its run.

        Raises:
            ToolRefused: it was refused, and left nothing behind.
            StoreUnavailable: the store is away.
        """
        seconds = None if wait is None else seconds_of("wait", wait)
        rest = {name: value for name, value in given.items() if name != "files"}
        message = read_arguments(InboundMessage, rest)
        accepted = receive(
            self._service, message, check_files(given.get("files"), self._service.config.files)
        )
        if seconds is None or not accepted.runs:
            return accepted.as_result()
        begun = self._runs.begin(accepted.run_id, seconds)
        session = {"sessionKey": accepted.session_key}
        return begun.with_fields(**session) if isinstance(begun, Pending) else begun | session

    def inbound(self, unnamed: Sequence[object], given: Mapping[str, object]) -> InboundAnswer:
        """Take a person's message, and wait for its run on the calling thread. A refusal is an answer.

        Raises:
            CalledOnLoop: this is a coroutine.
        """
        not_on_a_loop("system.inbound(…)", "await system.ainbound(…)")
        try:
            message, wait = _said(unnamed, given)
            with self._service.refusing_without_store:
                answer = finished(self.begin(message, wait), self._service.blocking)
        except ToolRefused as refused:
            answer = dict(refused.as_result())
        return cast("InboundAnswer", answer)

    async def ainbound(self, unnamed: Sequence[object], given: Mapping[str, object]) -> InboundAnswer:
        """Like `inbound`, without blocking the event loop."""
        try:
            message, wait = _said(unnamed, given)
            with self._service.refusing_without_store:
                begun = await self._threads.run(lambda: self.begin(message, wait), lane_of(message))
                answer = await afinished(begun, self._threads, lane_of(message))
        except ToolRefused as refused:
            answer = dict(refused.as_result())
        return cast("InboundAnswer", answer)


def _said(unnamed: Sequence[object], given: Mapping[str, object]) -> tuple[JsonMapping, float | None]:
    """Return the fields of a message, and how long its caller waits.

    Raises:
        ToolRefused: a field was given without its name.
    """
    if unnamed:
        raise invalid(
            "arguments", "each field of a message has a name, give channel=…, chat_id=…, text=…, sender=…"
        )
    message = dict(given)
    wait = cast("float | None", message.pop("wait", None))
    return message, wait
