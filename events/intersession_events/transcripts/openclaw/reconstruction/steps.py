"""Cuts a transcript into steps: a message, the agent's calls, and its answer (IMP-4). Pure."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from intersession_events.basics.plain_json import JsonObject, is_object
from intersession_events.facts import Message, RunStatus, ToolCallBlock, Usage, text_of
from intersession_events.transcripts.openclaw.reading.foreign_json import Unreadable, a_text, at, read_object
from intersession_events.transcripts.openclaw.reading.lines import Line
from intersession_events.transcripts.openclaw.reading.stamp import strip_stamp
from intersession_events.transcripts.openclaw.report import Refused

WHITE_SPACE: Final = " \t\r\n"
_TAGS: Final = re.compile(r"\[\[[^\]]*\]\]|<think>.*?</think>", re.DOTALL)
_SYNTHETIC: Final = {"delivery-mirror", "gateway-injected"}
_SILENT: Final = "NO_REPLY"
HANDED: Final = "announce:v1:"
"""What the id of a run begins with that was told that a child is done; the child's key and run follow."""


_MOST_OF_A_REASON: Final = 500
"""Characters of what a tool answered."""


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call and its result, which may be missing. `details` is the result if it is an object, else `{}`."""

    name: str
    line: Line
    arguments: JsonObject
    result: Line | None = None
    details: JsonObject = msgspec.field(default_factory=JsonObject)

    @property
    def status(self) -> str:
        """The status in the tool's answer; empty if it has none."""
        return a_text(self.details.get("status")) or ""

    @property
    def refusal(self) -> Refused:
        """Why the call failed, in the words of its answer."""
        error = a_text(self.details.get("error")) or a_text(self.details.get("message"))
        reason = ": ".join(filter(None, (self.status, error))) or "its answer says of nothing that was begun"
        return Refused(what=self.name, where=str(self.line), reason=reason[:_MOST_OF_A_REASON])


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """A user message and all that the agent did on it, up to the next one.

    Later releases leave some of their own messages out of the transcript (a child is done, the announce step): then
    `message` is the first answer, and `unprompted` the id of its run. `said` is the visible text of the last answer, None if there is none (nothing, white space, `NO_REPLY`); `source`
    the session that the message's provenance names, as written there. `end` is the time of the last answer.
    """

    message: Line
    text: str
    source: str | None
    reply: Line | None
    said: str | None
    status: RunStatus
    error: str | None
    end: int
    usage: Usage | None
    model: str | None
    last_tool_result: str | None
    calls: tuple[Call, ...]
    unprompted: str | None = None

    @property
    def time(self) -> int:
        """When the message came in, in milliseconds."""
        return self.message.time

    @property
    def spoken(self) -> str:
        """The text that the agent was given, without white space around it."""
        return self.text.strip(WHITE_SPACE)


def steps_of(lines: Iterable[Line]) -> Iterator[Step]:
    """Yield the steps of a transcript, in the order of the file."""
    pending: Line | None = None
    following: list[Line] = []
    run: str | None = None
    for line in lines:
        if line.message is None:
            continue
        told = _run_of(line) if _is_answer(line) else None
        another = told is not None and (
            told.startswith(HANDED) or pending is None or (run is not None and run != told)
        )
        if line.message.role == "user" or (another and told != run):
            if pending is not None:
                yield _step(pending, following)
            pending, following = line, [] if line.message.role == "user" else [line]
            run = told
        elif pending is not None:
            following.append(line)
            run = told or run
    if pending is not None:
        yield _step(pending, following)


def calls_of(lines: Iterable[Line]) -> Iterator[Call]:
    """Yield the tool calls of a transcript with their results."""
    messages = [line for line in lines if line.message is not None]
    results: dict[str, Line] = {}
    for line in reversed(messages):
        message = _message(line)
        if message.role == "toolResult" and message.tool_call_id is not None:
            results[message.tool_call_id] = line
    for line in messages:
        message = _message(line)
        if message.role != "assistant" or isinstance(message.content, str):
            continue
        for block in message.content:
            if isinstance(block, ToolCallBlock):
                yield _call(line, block, results.get(block.id))


def mirrors_of(lines: Iterable[Line]) -> Iterator[tuple[Line, str]]:
    """Yield the answers that came from no model: texts that OpenClaw delivered and noted here."""
    for line in lines:
        if line.message is not None and line.message.model == "delivery-mirror":
            yield line, text_of(line.message).strip(WHITE_SPACE)


def visible(message: Message) -> str | None:
    """Return the visible text of an answer; None if there is none (LOOP-6)."""
    text = text_of(message).strip(WHITE_SPACE)
    return None if text in {"", _SILENT} else text


def plain(text: str) -> str:
    """Return a text without the parts that OpenClaw removes from a reply before it passes it on, for comparison."""
    return " ".join(_TAGS.sub("", text).split())


def _step(line: Line, following: Sequence[Line]) -> Step:
    answers = [item for item in following if _is_answer(item)]
    reply = answers[-1] if answers else None
    said, status, error = _outcome(reply)
    provenance = _message(line).provenance
    inter_session = provenance is not None and provenance.kind == "inter_session"
    unprompted = None if _message(line).role == "user" else _run_of(line)
    tool_results = [item for item in following if _message(item).role == "toolResult"]
    return Step(
        message=line,
        text=strip_stamp(text_of(_message(line))) if unprompted is None else "",
        source=provenance.source_session_key if provenance is not None and inter_session else None,
        reply=reply,
        said=said,
        status=status,
        error=error,
        end=reply.time if reply is not None else line.time,
        usage=_sum([_message(item).usage for item in answers]),
        model=next((model for item in reversed(answers) if (model := _message(item).model)), None),
        last_tool_result=text_of(_message(tool_results[-1])) if tool_results else None,
        calls=tuple(calls_of(following)),
        unprompted=unprompted,
    )


def _run_of(line: Line) -> str | None:
    """Return the id of the run that gave an answer, where the release wrote it down."""
    extra = _message(line).extra
    return a_text(at(_object(extra), "__openclaw", "runId")) if extra is not None else None


def _outcome(reply: Line | None) -> tuple[str | None, RunStatus, str | None]:
    if reply is None:
        return None, "interrupted", "the transcript has no answer"
    message = _message(reply)
    said = visible(message)
    match message.stop_reason:
        case "error":
            return None, "error", _error_of(message) or "the model failed"
        case "aborted":
            return None, "aborted", _error_of(message)
        case _:
            return said, "ok", None


def _call(line: Line, block: ToolCallBlock, result: Line | None) -> Call:
    return Call(
        name=block.name,
        line=line,
        arguments=_object(block.arguments),
        result=result,
        details=_details(_message(result)) if result is not None else {},
    )


def _details(message: Message) -> JsonObject:
    """Return a tool's result: the object kept beside the text if there is one, else the text if it is an object."""
    details = _object(message.extra or "{}").get("details")
    return details if is_object(details) else _object(text_of(message))


def _object(source: str) -> JsonObject:
    try:
        return read_object(source.encode())[0]
    except (Unreadable, UnicodeEncodeError):
        return {}


def _error_of(message: Message) -> str | None:
    return a_text(_object(message.extra or "{}").get("errorMessage"))


def _is_answer(line: Line) -> bool:
    message = _message(line)
    return message.role == "assistant" and message.model not in _SYNTHETIC


def _message(line: Line) -> Message:
    if line.message is None:
        raise ValueError(f"{line} is no message")
    return line.message


def _sum(usages: Sequence[Usage | None]) -> Usage | None:
    known = [usage for usage in usages if usage is not None]
    if not known:
        return None
    costs = [usage.cost_micros for usage in known if usage.cost_micros is not None]
    return Usage(
        input=sum(usage.input for usage in known),
        output=sum(usage.output for usage in known),
        cache_read=sum(usage.cache_read for usage in known),
        cache_write=sum(usage.cache_write for usage in known),
        total_tokens=sum(usage.total_tokens for usage in known),
        cost_micros=sum(costs) if costs else None,
    )
