"""The result of one call of an agent, from whatever the agent returned or raised."""

import inspect
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final, cast

import msgspec

from intersession_actors.outside.agents.too_long import is_too_long
from intersession_actors.outside.agents.turn import BadPiece, Reply, ReplyTooLarge, Turn
from intersession_actors.outside.attachments.checks import blocks_without_contents
from intersession_actors.rules.gate import answers, limits, texts, values
from intersession_actors.running.failures.failure import described, traced
from intersession_actors.running.host.calls import Came, Outcome, Raised
from intersession_actors.running.host.hosts_loop import LoopEnded
from intersession_events.basics.errors import IntersessionError
from intersession_events.facts import (
    Fact,
    FailureCode,
    FileBlock,
    Message,
    ToolCallBlock,
    Usage,
    check_unknown,
    ready,
)

DEFAULT_REPLY_BYTES: Final = 1 << 20

_COROUTINE: Final = re.compile(
    r"<(coroutine|async_generator) object [^<>\s]+(<locals>[^<>\s]+)* at 0x[0-9a-fA-F]+>"
)
"""How Python prints what was not awaited. A text that has this among other words may be one about Python."""


_MOST_NOTES: Final = 64


class Answered(Fact, frozen=True, kw_only=True):
    """The agent answered. `text` None is no text at all; `notes` tell how it differs from the agent's own."""

    text: str | None
    usage: Usage | None = None
    model: str | None = None
    messages: tuple[Message, ...] | None = None
    stop_reason: str | None = None
    notes: tuple[str, ...] = ()
    files: tuple[FileBlock, ...] = ()


class Broke(Fact, frozen=True, kw_only=True):
    """The agent did not return a valid answer; `error` is for people, `traceback` for the operator."""

    code: FailureCode
    error: str
    traceback: str | None = None
    too_long: bool = False
    """The model's server refused what it was given as too long (CTX-3)."""


AgentResult = Answered | Broke


@ready
class _SentResult(msgspec.Struct, frozen=True, omit_defaults=True):
    answered: Answered | None = None
    broke: Broke | None = None


def sent_result(result: AgentResult) -> bytes:
    """Return a result as JSON, for the process that has asked for it."""
    if isinstance(result, Broke):
        return msgspec.json.encode(_SentResult(broke=result))
    # Of the files in a call's arguments the log never has the contents, and neither has the queue beside it (ATT-4).
    messages = tuple(
        one
        if isinstance(one.content, str)
        else msgspec.structs.replace(one, content=blocks_without_contents(one.content))
        for one in result.messages or ()
    )
    if result.messages is not None:
        result = msgspec.structs.replace(result, messages=messages)
    return msgspec.json.encode(_SentResult(answered=result))


def received_result(content: bytes) -> AgentResult:
    """Return a result that another process has sent.

    Raises:
        ValueError: it is no result.
    """
    sent = msgspec.json.decode(content, type=_SentResult)
    result = sent.answered or sent.broke
    if result is None:
        raise ValueError("it is neither `answered` nor `broke`")
    return result


def result_of(outcome: Outcome, turn: Turn, *, most_bytes: int = DEFAULT_REPLY_BYTES) -> AgentResult:
    """Turn an outcome into a result. Total: it returns for every input."""
    match outcome:
        case Raised(error):
            return _raised(error, turn)
        case Came(Broke() as broke):
            return broke  # an agent that does again what another did
        case Came(Answered() as answered):
            return _told(answered, turn, most_bytes)
        case Came() if turn.tools.forgotten:
            what = ", ".join(dict.fromkeys(turn.tools.forgotten))
            return _bad(turn, f"never awaited {what}, so that nothing was called: write `await` before it")
        case Came(None):
            return Answered(text=None)
        case Came(str() as text):
            return _checked(Reply(values.plain_text(text)), turn, most_bytes)
        case Came(Reply() as reply):
            return _checked(reply, turn, most_bytes)
        case Came(value):
            is_unrun = inspect.isgenerator(value) or inspect.isasyncgen(value)
            hint = (
                "register the function that yields itself"
                if is_unrun
                else "an agent returns str, None or Reply"
            )
            return _bad(turn, f"returned {type(value).__name__}; {hint}")


def _told(answered: Answered, turn: Turn, most_bytes: int) -> AgentResult:
    """Return the answer of an agent that another process called, held against the same limits here."""
    said = Reply(
        answered.text,
        usage=answered.usage,
        model=answered.model,
        messages=answered.messages,
        stop_reason=answered.stop_reason,
    )
    checked = _checked(said, turn, most_bytes)
    if isinstance(checked, Broke):
        return checked
    notes = (note[: limits.ERROR.most] for note in answered.notes[:_MOST_NOTES])
    return msgspec.structs.replace(
        checked, notes=tuple(dict.fromkeys((*notes, *checked.notes))), files=answered.files
    )


def _raised(error: BaseException, turn: Turn) -> Broke:
    match error:
        case LoopEnded():
            return Broke(code="interrupted", error=f"interrupted: {described(error)}")
        case ReplyTooLarge():
            return Broke(code="reply_too_large", error=f"agent {turn.agent_id!r} {error}")
        case BadPiece():
            return _bad(turn, str(error))
        case _:
            return Broke(
                code="backend", error=described(error), traceback=traced(error), too_long=is_too_long(error)
            )


def _checked(reply: Reply, turn: Turn, most_bytes: int) -> AgentResult:
    if reply.files:  # they are stored apart
        reply = msgspec.structs.replace(reply, files=())
    if reply.skipped:
        reply = msgspec.structs.replace(reply, text=turn.skip_word)
    # A text of the host's own kind may have methods of its own, which raise.
    if isinstance(reply.text, str) and _COROUTINE.fullmatch(str.strip(reply.text)):
        return _bad(turn, f"returned {str.strip(reply.text)} as a text: write `await` before what gave it")
    notes: list[str] = []
    try:
        # A Reply checks nothing when it is made; the log must never see what it can't store.
        plain = msgspec.to_builtins(_counted(_sized(reply, most_bytes), notes), enc_hook=_plain)
        try:
            reply = msgspec.convert(plain, Reply, strict=True)
            msgspec.json.encode(reply)
        except UnicodeEncodeError:
            reply = _with_arguments(msgspec.convert(values.storable_value(plain), Reply, strict=True))
            notes.append("halves of surrogate pairs were spelled out")
        for message in reply.messages or ():
            check_unknown(message)
    except ReplyTooLarge as error:
        return Broke(code="reply_too_large", error=f"agent {turn.agent_id!r} {error}")
    except Exception as error:  # noqa: BLE001 - it holds what the host put into it
        return _bad(turn, f"returned something that is no valid Reply: {described(error)}")
    for message in reply.messages or ():
        flaw = answers.flaw_of_message(message)
        if flaw is not None:
            return _bad(turn, f"returned a message that could not be read again: {flaw}")
    return _fitted(reply, turn, notes)


def _with_arguments(reply: Reply) -> Reply:
    """Return a reply in whose calls of tools half of a surrogate pair is spelled out as a text of JSON, and not as its escape."""
    messages = tuple(
        message
        if isinstance(message.content, str)
        else msgspec.structs.replace(
            message,
            content=tuple(
                msgspec.structs.replace(block, arguments=texts.arguments_of(block.arguments))
                if isinstance(block, ToolCallBlock)
                else block
                for block in message.content
            ),
        )
        for message in reply.messages or ()
    )
    return reply if reply.messages is None else msgspec.structs.replace(reply, messages=messages)


def _named(messages: Iterable[Message], turn: Turn, notes: list[str]) -> Iterator[Message]:
    """Yield messages of which none has an id that another one of the session has: pages of a history end before one (HIST-4)."""
    taken: set[str] = set()
    for message in messages:
        if message.id and (message.id in taken or _has(turn, message.id)):
            notes.append("the id of a message was that of another one, given another")
            yield msgspec.structs.replace(message, id="")
        else:
            taken.add(message.id)
            yield message


def _has(turn: Turn, message_id: str) -> bool:
    """Return whether the session may have a message with an id: in doubt, the message gets a new one."""
    try:
        return turn.recorder.has(message_id)
    except IntersessionError:
        return True


def _counted(reply: Reply, notes: list[str]) -> Reply:
    """Return a reply with valid numbers; `notes` get the invalid ones."""

    def counted(usage: Usage | None) -> Usage | None:
        if not isinstance(usage, Usage):
            return usage
        fitted = answers.fit_usage(usage)
        notes.extend(fitted.notes)
        return fitted.value

    def dated(time: int) -> int:
        if type(time) is not int:
            return time
        fitted = answers.fit_time(time)
        notes.extend(fitted.notes)
        return fitted.value

    return msgspec.structs.replace(
        reply,
        usage=counted(reply.usage),
        messages=reply.messages
        and tuple(
            msgspec.structs.replace(each, usage=counted(each.usage), timestamp=dated(each.timestamp))
            for each in reply.messages
        ),
    )


def _fitted(reply: Reply, turn: Turn, notes: list[str]) -> Answered:
    """Return the answer in recordable form: parts beside the text never fail the run. `notes` are on its usage."""
    model, reason = answers.fit_word("model", reply.model), answers.fit_word("stopReason", reply.stop_reason)
    messages = [answers.fit_message(message) for message in reply.messages or ()]
    named = tuple(_named((message.value for message in messages), turn, notes))
    return Answered(
        text=reply.text,
        usage=reply.usage,
        model=model.value,
        messages=None if reply.messages is None else named,
        stop_reason=reason.value,
        notes=tuple(
            dict.fromkeys(chain(notes, model.notes, reason.notes, *(message.notes for message in messages)))
        ),
    )


def _bad(turn: Turn, what: str) -> Broke:
    return Broke(code="bad_reply", error=f"agent {turn.agent_id!r} {what}")


def _sized(reply: Reply, most_bytes: int) -> Reply:
    """Check the text and each message against the bound, without copying one that is far too long."""
    if reply.text is not None:
        _text_sized(reply.text, most_bytes)
    _messages_of(reply.messages)
    if len(reply.messages or ()) > limits.REPLY_MESSAGES.most:
        raise ValueError(f"more than {limits.REPLY_MESSAGES.most} messages")
    for message in reply.messages or ():
        if isinstance(message.content, str):
            _text_sized(message.content, most_bytes)
        if _size_of(message) > most_bytes:
            raise ReplyTooLarge(f"returned a message of more than {most_bytes} bytes")
    return reply


def _size_of(message: Message) -> int:
    """Return how many bytes a message has as JSON."""
    try:
        return len(msgspec.json.encode(message, enc_hook=_plain))
    except UnicodeEncodeError:
        return len(msgspec.json.encode(values.storable_value(msgspec.to_builtins(message, enc_hook=_plain))))


def _messages_of(given: object) -> None:
    """Refuse what a host has put there in place of messages, in words that say what to give."""
    if given is None:
        return
    if not isinstance(given, tuple | list):
        raise TypeError(f"its messages are {type(given).__name__}, give a tuple of Message")
    for each in cast("Sequence[object]", given):
        if not isinstance(each, Message):
            raise TypeError(f"its messages have a {type(each).__name__}, give Message in its place")


def _plain(value: object) -> str:
    """Return a text of a class of the host's own as a plain one; there is no other value of a reply that has to be made fit."""
    if isinstance(value, str):
        return values.plain_text(value)
    raise TypeError(f"a {type(value).__name__} is no text, number, list or object")


def _text_sized(text: object, most_bytes: int) -> None:
    if not isinstance(text, str):
        hint = ", write `await` before what gave it" if inspect.isawaitable(text) else ""
        raise TypeError(f"its text is {type(text).__name__}{hint}")
    text = values.plain_text(text)
    if len(text) > most_bytes or len(text.encode("utf-8", "surrogatepass")) > most_bytes:
        raise ReplyTooLarge(f"returned a text of more than {most_bytes} bytes")
