"""The turn of an agent at a worker: its tools, its record, its pieces and its files are acts that the log's writer does (WORK-12)."""

import asyncio
import base64
import hashlib
import threading
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from intersession_actors.calls.service.asking import digest_of
from intersession_actors.calls.tools.made_before import words_of
from intersession_actors.calls.tools.registry import TOOLS, schemas
from intersession_actors.outside.agents import acts
from intersession_actors.outside.agents.turn import (
    Approval,
    AwaitedApproval,
    Recorder,
    ToolArguments,
    ToolBox,
)
from intersession_actors.outside.attachments.message_files import MessageFile
from intersession_actors.owners.chains.cause import Times
from intersession_actors.rules.errors import ToolRefused, not_on_a_loop
from intersession_actors.rules.gate.answers import fit_block
from intersession_actors.rules.gate.texts import arguments_of
from intersession_actors.rules.gate.values import flaw_of, storable, storable_value
from intersession_events.basics.errors import CorruptEvent, StoreUnavailable
from intersession_events.basics.plain_json import JsonMapping, JsonObject, JsonValue, is_object
from intersession_events.facts import Block, FileBlock, ToolCallBlock
from intersession_events.log.work_queue import Offer

if TYPE_CHECKING:
    from intersession.gateway.protocol.line import Line

LOOKUP_S: Final = 10.0
"""How long a question waits whose answer another value can stand for."""


class Acts:
    """The acts of one attempt. Its methods may be called from any thread.

    `is_over` is called when the writer says that the attempt is over.
    """

    def __init__(self, line: "Line", offer: Offer, is_over: Callable[[], None]) -> None:
        self._line = line
        self._call = {"kind": offer.kind, "id": offer.id, "attempt": offer.attempt, "secret": offer.secret}
        self._is_over = is_over
        self._lock = threading.Lock()
        self._asked: set[Future[JsonObject]] = set()
        self._ended = False
        self._times = Times()
        has_places = (
            offer.kind == "agent" and msgspec.json.decode(offer.content or b"{}", type=acts.Edition).acts > 1
        )
        self._places = Times() if has_places else None

    def number(self, *words: Hashable) -> int:
        """Count one more act in these words."""
        return self._times.next(words)

    def place(self, kind: str) -> int | None:
        """Count one more act of a kind, in whatever words; None for a writer that knows no places."""
        return None if self._places is None else self._places.next(kind)

    def ask(self, act: acts.Act) -> "Future[JsonObject]":
        """Have the writer do something; its future has the answer, or a `ToolRefused`.

        While no writer answers it waits: for the next one, or for the end of the attempt.
        """
        asked = self._line.ask("worker.act", {**self._call, "act": msgspec.to_builtins(act)})
        told: Future[JsonObject] = Future()
        with self._lock:
            ended = self._ended
            if not ended:
                self._asked.add(told)
        if ended:
            asked.cancel()
            told.set_exception(_over())
            return told
        told.add_done_callback(lambda _: self._given_up(told, asked))
        asked.add_done_callback(lambda _: self._answered(asked, told))
        return told

    def now(self, act: acts.Act, timeout: float | None = None) -> JsonObject:
        """Have the writer do something, and wait for its answer.

        Raises:
            ToolRefused: it refused, or the attempt is over.
            StoreUnavailable: it did not answer in time.
        """
        asked = self.ask(act)
        try:
            return asked.result(timeout)
        except TimeoutError:
            asked.cancel()
            raise StoreUnavailable("the log's writer did not answer in time") from None

    def end(self) -> None:
        """Ask no more: the attempt is over. What waits for an answer is refused."""
        with self._lock:
            self._ended = True
            asked = tuple(self._asked)
        for told in asked:
            self._settle(told, _over())

    def _given_up(self, told: "Future[JsonObject]", asked: "Future[JsonObject]") -> None:
        """Forget what has an answer, or whose answer nobody waits for any more."""
        self._asked.discard(told)
        asked.cancel()

    def _answered(self, asked: "Future[JsonObject]", told: "Future[JsonObject]") -> None:
        if asked.cancelled():
            return
        error = asked.exception()
        self._settle(told, asked.result() if error is None else error)
        if isinstance(error, ToolRefused) and error.code == "run_over":
            self._is_over()

    def _settle(self, told: "Future[JsonObject]", answer: JsonObject | BaseException) -> None:
        with self._lock:
            if told not in self._asked:
                return
            self._asked.discard(told)
        if not told.set_running_or_notify_cancel():
            return
        if isinstance(answer, BaseException):
            told.set_exception(answer)
        else:
            told.set_result(answer)


def _over() -> ToolRefused:
    return ToolRefused("run_over", "run: this attempt is over, stop working on it")


class RemoteTools(ToolBox):
    """The session's tools, which the writer calls. `names` are those of the attempt, as its start has them on record (LENS-1).

    `waiting` lets other agents run while one waits in a tool.
    """

    def __init__(
        self,
        told: Acts,
        names: Sequence[str] | None,
        waiting: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._acts = told
        self._names = None if names is None else [name for name in names if name in TOOLS]
        self._waiting = waiting

    def schemas(self, dialect: str = "openai") -> list[JsonObject]:
        """Describe the session's tools, for `openai`, `responses`, `anthropic`, `mcp` or plain `json-schema`."""
        if self._names is not None:
            return schemas(self._names, dialect)
        described: list[JsonObject] = self._acts.now(acts.DescribeTools(dialect=dialect))["tools"]
        return described

    def allowed(self, names: Sequence[str]) -> list[str]:
        """Return which tools of the agent's own the writer's settings let the session have (TOOL-5)."""
        return _names(self._acts.now(acts.AllowTools(names=tuple(names)))) if names else []

    async def aallowed(self, names: Sequence[str]) -> list[str]:
        """Like `allowed`, without blocking the event loop."""
        if not names:
            return []
        answer: JsonObject = await asyncio.wrap_future(self._acts.ask(acts.AllowTools(names=tuple(names))))
        return _names(answer)

    def _called(self, name: str, arguments: ToolArguments) -> JsonValue:
        not_on_a_loop("tools.call(…)", "await tools.acall(…)")
        with self._waiting():
            try:
                return self._begun(name, arguments).result()["result"]
            except ToolRefused as refused:
                return dict(refused.as_result())

    async def _acalled(self, name: str, arguments: ToolArguments) -> JsonValue:
        try:
            return (await asyncio.wrap_future(self._begun(name, arguments)))["result"]
        except ToolRefused as refused:
            return dict(refused.as_result())

    def _begun(self, name: str, arguments: ToolArguments) -> "Future[JsonObject]":
        given: JsonValue = {} if arguments is None else arguments
        try:
            flaw = flaw_of(given) if is_object(given) else None
            if flaw is None:
                given = msgspec.to_builtins(given)
                number = self._acts.number("call", words_of(name, given))
                place = self._acts.place("call")
                return self._acts.ask(
                    acts.CallTool(name=storable(name), args=given, number=number, place=place)
                )
            # It would not get there as it is.
            problem = ToolRefused(flaw.code, f"{flaw.field}: {flaw.what}")
        except (TypeError, ValueError, RecursionError) as error:
            problem = ToolRefused("invalid_request", f"arguments: they are not JSON ({error}), send JSON")
        refusal: Future[JsonObject] = Future()
        refusal.set_exception(problem)
        return refusal


def _names(answer: JsonMapping) -> list[str]:
    return [*answer["names"]]


class RemoteRecorder(Recorder):
    """Records in the session's transcript what the agent does; each method returns once the writer has it durable.

    Each method raises `ToolRefused`: the attempt is over, or what is to be recorded can't be.
    """

    def __init__(self, told: Acts) -> None:
        self._acts = told

    def has(self, message_id: str) -> bool:
        """Return whether the session has a message with this id."""
        return bool(self._acts.now(acts.FindMessage(message_id=message_id), LOOKUP_S)["has"])

    def said(self, blocks: Sequence[Block]) -> None:
        """Record the model's output beside a tool call: text, thinking."""
        fitted = tuple(fit_block(block) for block in blocks)
        number = self._acts.number("said", digest_of([*fitted]))
        self._acts.now(acts.Say(blocks=fitted, number=number, place=self._acts.place("said")))

    def tool_call(self, call_id: str, name: str, arguments_json: str) -> None:
        """Record that a tool is about to be called; the arguments are the source text of a JSON object."""
        self.tool_calls((ToolCallBlock(id=call_id, name=name, arguments=arguments_json),))

    def tool_calls(self, calls: Sequence[ToolCallBlock]) -> None:
        """Record that several tools are about to be called side by side, as one message."""
        number = self._acts.number("toolCalls", calls[0].id)
        fitted = tuple(
            ToolCallBlock(
                id=storable(call.id), name=storable(call.name), arguments=arguments_of(call.arguments)
            )
            for call in calls
        )
        self._acts.now(acts.RecordCalls(calls=fitted, number=number))

    def tool_result(self, call_id: str, name: str, content: str, is_error: bool) -> None:
        """Record a tool's result."""
        number = self._acts.number("toolResult", call_id)
        self._acts.now(
            acts.RecordResult(
                call_id=storable(call_id),
                name=storable(name),
                content=storable(content),
                is_error=bool(is_error),
                number=number,
            )
        )

    def approval(
        self, call_id: str, name: str, arguments: JsonMapping, *, is_new: bool
    ) -> Approval | AwaitedApproval:
        """Ask whether a recorded call may act, and with which arguments (ASK)."""
        args: JsonObject = storable_value(msgspec.to_builtins({**arguments}, enc_hook=repr))
        words = words_of(name, args), "" if is_new else call_id
        act = acts.AskApproval(
            call_id=storable(call_id),
            name=storable(name),
            args=args,
            is_new=is_new,
            number=self._acts.number("approval", *words),
            place=self._acts.place("approval"),
        )
        future = self._acts.ask(act)

        def finish() -> Approval:
            answer = future.result()
            return Approval(
                arguments=answer["arguments"],
                refused=answer.get("refused"),
                edited_by=answer.get("editedBy"),
            )

        return AwaitedApproval(future=future, finish=finish, wait=finish)


class RemotePieces:
    """Shows pieces of an answer, in order: what is said while one is on its way goes together with the next."""

    def __init__(self, told: Acts) -> None:
        self._acts = told
        self._lock = threading.Lock()
        self._said: list[str] = []
        self._is_sending = False
        self._number = 0

    def say(self, piece: str) -> None:
        """Show a piece; never blocks."""
        with self._lock:
            self._said.append(piece)
            if self._is_sending:
                return
            self._is_sending = True
        self._next()

    def _next(self) -> None:
        with self._lock:
            text = "".join(self._said)
            self._said.clear()
            self._is_sending = bool(text)
            self._number += 1
            number = self._number
        if text:
            shown = self._acts.ask(acts.ShowPiece(text=storable(text), number=number))
            shown.add_done_callback(self._shown)

    def _shown(self, shown: "Future[JsonObject]") -> None:
        if not shown.cancelled() and shown.exception() is None:
            self._next()


class RemoteFiles:
    """The contents of the session's files, read by the writer."""

    def __init__(self, told: Acts) -> None:
        self._acts = told

    def read(self, sha256: str) -> bytes | None:
        """Return a content; None where it is not there.

        Raises:
            CorruptEvent: it is not what was written.
            StoreUnavailable: it can't be read.
        """
        try:
            return self._whole(lambda at: acts.ReadContent(sha256=sha256, at=at), sha256)
        except ToolRefused as refused:
            raise StoreUnavailable(refused.error) from None

    def _whole(self, part_at: Callable[[int], acts.Act], sha256: str) -> bytes | None:
        """Read a file part by part."""
        data = bytearray()
        while True:
            part = msgspec.convert(self._acts.now(part_at(len(data))), acts.Part)
            if part.content is None:
                return None
            read = base64.b64decode(part.content)
            data += read
            if len(data) >= part.size or not read:
                break
        if hashlib.sha256(data).hexdigest() != sha256:
            raise CorruptEvent(f"the content {sha256} came otherwise than it was written")
        return bytes(data)

    def path(self, sha256: str) -> Path | None:
        """Return None: it is in no file here."""
        del sha256
        return None

    def store(self, files: Sequence[MessageFile]) -> Sequence[FileBlock]:
        """Store the files of an answer with the writer.

        Raises:
            ToolRefused: one can't be taken.
        """
        return [self._stored(file) for file in files]

    def _stored(self, file: MessageFile) -> FileBlock:
        block = file.block
        answer = self._acts.now(
            acts.PutContent(
                content=base64.b64encode(file.content).decode(),
                name=block.name,
                mime_type=block.claimed or block.mime_type,
            )
        )
        return msgspec.convert(answer, acts.Stored).file

    def attached(self) -> acts.Attachments:
        """Return what files a spawn handed to the session."""
        return msgspec.convert(self._acts.now(acts.ListAttachments()), acts.Attachments)

    def attachment(self, file: acts.AttachedFile) -> bytes | None:
        """Return the content of one of them; None where it is there no more."""
        return self._whole(lambda at: acts.ReadAttachment(name=file.name, at=at), file.sha256)
