"""The input of an agent's call: one message to answer, the messages before it, and its tools."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import cached_property, wraps
from pathlib import Path
from typing import Any, Literal, ParamSpec, Self, TypeVar, overload

import msgspec

from intersession_actors.outside.agents.made_calls import MadeCall, OwnCalls
from intersession_actors.outside.attachments.message_files import File
from intersession_actors.outside.attachments.stored import StoredFile
from intersession_actors.outside.attachments.workspaces import Attachment, OwnFiles
from intersession_actors.rules.answers import (
    AgentsAnswer,
    HistoryAnswer,
    ListAnswer,
    SearchedAnswer,
    SendAnswer,
    SpawnAnswer,
)
from intersession_actors.rules.gate.texts import spelled_out
from intersession_actors.rules.prompt.fencing import fence, fence_id
from intersession_actors.rules.prompt.fitting import shown_of
from intersession_actors.rules.prompt.formats import (
    anthropic_messages,
    openai_messages,
    responses_items,
    with_pictures,
)
from intersession_actors.rules.prompt.rendering import render, senders_shown
from intersession_actors.rules.prompt.silence import ANNOUNCE_SKIP, NO_REPLY, REPLY_SKIP
from intersession_actors.running.host.awaited import ToolCoroutine
from intersession_actors.running.host.extras import imported
from intersession_events import facts
from intersession_events.basics.keys.key import SessionKey
from intersession_events.basics.plain_json import JsonList, JsonMapping, JsonObject, JsonValue
from intersession_events.log.files import ReadsFiles

P = ParamSpec("P")
T = TypeVar("T")

ToolArguments = JsonMapping | None
"""The arguments of a tool's call; none are an empty object."""

Dialect = Literal["openai", "responses", "anthropic", "pydantic-ai"]
"""Whose message format a rendering is in."""


class ToolBox:
    """The system's tools, bound to the turn's session. It records its calls and their results.

    This one has no tools; `tools/toolbox.py` has the one that does.
    """

    @overload
    def call(self, name: Literal["sessions_list"], arguments: ToolArguments = None) -> ListAnswer: ...
    @overload
    def call(self, name: Literal["sessions_history"], arguments: ToolArguments = None) -> HistoryAnswer: ...
    @overload
    def call(self, name: Literal["sessions_search"], arguments: ToolArguments = None) -> SearchedAnswer: ...
    @overload
    def call(self, name: Literal["sessions_send"], arguments: ToolArguments = None) -> SendAnswer: ...
    @overload
    def call(self, name: Literal["sessions_spawn"], arguments: ToolArguments = None) -> SpawnAnswer: ...
    @overload
    def call(self, name: Literal["agents_list"], arguments: ToolArguments = None) -> AgentsAnswer: ...
    @overload
    def call(self, name: str, arguments: ToolArguments = None) -> JsonValue: ...
    def call(self, name: str, arguments: ToolArguments = None) -> JsonValue:
        """Call a tool and return its answer, as a model sees it. A refusal is an answer, and never raised.

        Blocks the calling thread, for `sessions_send` up to its timeout.

        Raises:
            CalledOnLoop: this is a coroutine, where `acall` is awaited.
        """
        return self._called(name, arguments)

    @overload
    async def acall(self, name: Literal["sessions_list"], arguments: ToolArguments = None) -> ListAnswer: ...
    @overload
    async def acall(
        self, name: Literal["sessions_history"], arguments: ToolArguments = None
    ) -> HistoryAnswer: ...
    @overload
    async def acall(
        self, name: Literal["sessions_search"], arguments: ToolArguments = None
    ) -> SearchedAnswer: ...
    @overload
    async def acall(self, name: Literal["sessions_send"], arguments: ToolArguments = None) -> SendAnswer: ...
    @overload
    async def acall(
        self, name: Literal["sessions_spawn"], arguments: ToolArguments = None
    ) -> SpawnAnswer: ...
    @overload
    async def acall(self, name: Literal["agents_list"], arguments: ToolArguments = None) -> AgentsAnswer: ...
    @overload
    async def acall(self, name: str, arguments: ToolArguments = None) -> JsonValue: ...
    def acall(self, name: str, arguments: ToolArguments = None) -> Coroutine[object, object, JsonValue]:
        """Call a tool and await its answer, without blocking the event loop.

        Nothing is called until it is awaited. A run whose agent answers and has left that out fails with `bad_reply`.
        """
        return ToolCoroutine(
            f"tools.acall({name!r})", lambda: self._acalled(name, arguments), self.forgotten.append
        )

    @cached_property
    def forgotten(self) -> list[str]:
        """The calls of `acall` that were never awaited and can't be any more, in words."""
        return []

    def schemas(self, dialect: str = "openai") -> list[JsonObject]:
        """Describe the session's tools, for `openai`, `responses`, `anthropic`, `mcp` or plain `json-schema`."""
        del dialect
        return []

    def allowed(self, names: Sequence[str]) -> list[str]:
        """Return which tools of the agent's own the settings let the session have (TOOL-5)."""
        return [*names]

    async def aallowed(self, names: Sequence[str]) -> list[str]:
        """Like `allowed`, without blocking the event loop where the settings are another process's."""
        return self.allowed(names)

    def pass_over(self, name: str, arguments: ToolArguments = None) -> None:
        """Count a skipped call, so that the next one with the same content counts as the one after it."""

    def call_as_then(self, name: str, arguments: ToolArguments, *, ran_out: bool) -> JsonValue:
        """Call a tool with its recorded outcome: a wait ends as it did in the recording, however fast agents are now.

        `ran_out`: then nothing came in time. Else what it waits for is awaited, however long that takes.
        """
        del ran_out
        return self._called(name, arguments)

    def _called(self, name: str, arguments: ToolArguments) -> JsonValue:
        del arguments
        return {"status": "error", "error": f"there is no tool {name!r} here"}

    async def _acalled(self, name: str, arguments: ToolArguments) -> JsonValue:
        return self._called(name, arguments)


class Approval(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the question whether a tool may be called (ASK).

    Call it with `arguments`, as the model gave them or as a person changed them (`edited_by`). With `refused` it is not
    called: the model gets that text in place of a result.
    """

    arguments: JsonMapping
    refused: str | None = None
    edited_by: str | None = None

    def told(self, result: str) -> str:
        """Return a result as the model gets it: one of edited arguments says so."""
        if self.edited_by is None:
            return result
        return f"({self.edited_by} changed the arguments to {json_text(self.arguments)}.)\n{result}"


class AwaitedApproval(msgspec.Struct, frozen=True, kw_only=True):
    """A call that waits for a person: `wait` blocks until it is released; `finish` says how, once `future` is done."""

    future: "Future[Any]"  # only that it is done counts
    finish: Callable[[], Approval]
    wait: Callable[[], Approval]


class Recorder:
    """Records an agent's actions in its session's transcript as they happen, so that a crash does not lose them.

    Each method that records returns once it is durable, so they block: an async agent calls them on a thread. This one is of no session
    and records nothing; `tools/recorder.py` has the one that does.
    """

    def has(self, message_id: str) -> bool:
        """Return whether the session has a message with this id."""
        del message_id
        return False

    def said(self, blocks: Sequence[facts.Block]) -> None:
        """Record the model's output beside a tool call: text, thinking."""

    def tool_call(self, call_id: str, name: str, arguments_json: str) -> None:
        """Record that a tool is about to be called; the arguments are the source text of a JSON object."""

    def tool_calls(self, calls: Sequence[facts.ToolCallBlock]) -> None:
        """Record that several tools are about to be called side by side, as one message."""
        for call in calls:
            self.tool_call(call.id, call.name, call.arguments)

    def tool_result(self, call_id: str, name: str, content: str, is_error: bool) -> None:
        """Record a tool's result."""

    def approval(
        self, call_id: str, name: str, arguments: JsonMapping, *, is_new: bool
    ) -> Approval | AwaitedApproval:
        """Ask whether a recorded call may act, and with which arguments; `is_new` as for `Turn.approve` (ASK)."""
        del call_id, name, is_new
        return Approval(arguments=arguments)


def _unheard(_: str) -> None:
    """Show a piece to nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One message for an agent to answer.

    `asked` is the message with its provenance; `message` is its raw text. `transcript` is what was said before it in
    this session, `context` what the system tells the agent beside it (PROV-1, LOOP-3, ANN-1). `attempt` counts from
    1; from the second on, `partial` is what the interrupted attempts before had recorded; `refused` of those before were refused
    as too long by the model's server (CTX-3). `deadline` is in
    milliseconds since 1970, None is no limit. `model` (`provider/id`) and `thinking` are what the run or its session
    asks for (SPAWN-1, GATE-2), None leaves them to the agent. `settings` are the session's other settings that
    `sessions.patch` sets: verboseLevel, reasoningLevel, elevatedLevel, responseUsage, groupActivation, where set.
    `context_tokens` is the window of its model, as far as anybody said. `fit` is what of all this `prompt` and `messages` leave out,
    where it is more than the model takes; `transcript` and `asked` are whole (CTX-2).
    `call_id`, inside a tool of the agent's own, is the id of its call: the same in each attempt, for another system to know the call by.
    `begun` are the version of the event with which the attempt began, and the hash of its context (PROV-4).
    `held_before` are the ids of calls with which attempts before had waited for a release: these have not acted (ASK-4).
    `summary` stands for the messages of the transcript that are older than what is shown (CTX-5). `runner` is the agent that
    answers, where it is not the session's own.
    `forked`: the log is a fork of another one (FORK-5). Its channels are sealed; tools of the host's own are not, so that an
    agent with such tools looks here before it does something that can't be taken back.
    """

    agent_id: str
    session_key: str
    step: facts.Step
    asked: facts.Message
    run_id: str
    transcript: Sequence[facts.Message] = ()
    context: str = ""
    tools: ToolBox = field(default_factory=ToolBox, repr=False)
    attempt: int = 1
    deadline: int | None = None
    model: str | None = None
    thinking: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    partial: Sequence[facts.Message] = ()
    forked: bool = False
    call_id: str | None = None
    refused: int = 0
    context_tokens: int | None = None
    fit: facts.Fit | None = None
    summary: str | None = None
    held_before: tuple[str, ...] = ()
    runner: str | None = None
    whole_context: str | None = field(default=None, repr=False)
    recorder: Recorder = field(default_factory=Recorder, repr=False)
    begun: tuple[int, str] = field(default=(0, ""), repr=False, compare=False)
    _store: ReadsFiles | None = field(default=None, repr=False, compare=False)
    _own_calls: OwnCalls = field(default_factory=OwnCalls, repr=False, compare=False)
    _own_files: Callable[[], OwnFiles] = field(default=OwnFiles, repr=False, compare=False)
    _takes_images: Callable[[], bool] = field(default=bool, repr=False, compare=False)
    _pieces: Callable[[str], None] = field(default=_unheard, repr=False, compare=False)

    @property
    def takes_images(self) -> bool:
        """Whether its model is given pictures (FILE-4)."""
        return self._takes_images()

    @property
    def message(self) -> str:
        """The text to answer, as its sender typed it: unfenced, so only for an agent that shows it to no model."""
        return facts.text_of(self.asked)

    @property
    def system_context(self) -> str:
        """`context` as it was recorded: `context` cuts quotes that are too long for the model (CTX-2), this does not."""
        return self.context if self.whole_context is None else self.whole_context

    @property
    def skip_word(self) -> str:
        """The word that keeps this turn silent: the answer of `Reply.skip()`."""
        return {"message": NO_REPLY, "reply": REPLY_SKIP, "announce": ANNOUNCE_SKIP, "compaction": NO_REPLY}[
            self.step
        ]

    @property
    def shown(self) -> tuple[facts.Message, ...]:
        """Everything for the model, in order: earlier messages, the message, and an interrupted attempt's actions.

        Of what does not fit the newest is left, and a line before it says how much is not there (CTX-2).

        Then the last message says so, so that the agent knows what it has done already.
        """
        earlier, asked, partial = shown_of(
            self.transcript, self.asked, self.partial, self.fit, run_id=self.run_id, summary=self.summary
        )
        if self.attempt == 1 or (self.refused == self.attempt - 1 and not self.partial):
            return (*earlier, asked)
        note = facts.Message(
            id=f"{self.run_id}:{self.attempt}",
            role="user",
            content=(
                f"The attempt before this one was interrupted; this is attempt {self.attempt}. Above is what it had "
                "done, if anything: that has happened, do not do it again. Go on from there and answer."
            ),
            timestamp=self.asked.timestamp,
            provenance=facts.Provenance(kind="internal_system"),
        )
        return (*earlier, asked, *partial, note)

    @property
    def made_before(self) -> Mapping[str, MadeCall]:
        """The tool calls that earlier attempts had recorded, by id, in order; empty in the first attempt (SEND-13).

        A call of a tool of the agent's own that is in it without a result may have acted, or not.
        """
        return self._own_calls.made(self.partial)

    @property
    def workspace(self) -> Path | None:
        """The agent's directory, links resolved: `agents.list[].workspace`, else `agents.defaults.workspace`, else None (ATT-6).

        For a child that was handed files it is the directory below which they lie, whatever is configured now. Nobody has made a
        configured directory that is not there.
        """
        return self._own_files().workspace

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        """The files from the spawn of this session, in its order; empty for other sessions (ATT-6).

        Looked up in the log when it is read, so an async agent reads it on a thread where the log is far away.

        Raises:
            StoreUnavailable: the log can't be read now.
        """
        return self._own_files().attachments

    @property
    def files(self) -> tuple[StoredFile, ...]:
        """The files of the message to answer, in its order (FILE-3)."""
        return self.files_of(self.asked)

    def files_of(self, message: facts.Message) -> tuple[StoredFile, ...]:
        """Return the files of a message of this session, such as one of `transcript` (FILE-3)."""
        return StoredFile.all(facts.files_of(message), self._store)

    def carrying(self, function: Callable[P, T]) -> Callable[P, T]:
        """Return a function that does the same, and counts as part of this run in any thread (LOOP-5).

        Python hands nothing on to a thread that the agent starts, or to one of a pool: what that says to the system would be
        taken for a person's. Ask for it where the agent is called, not in the other thread.
        """
        context = copy_context()

        @wraps(function)
        def carried(*args: P.args, **kwargs: P.kwargs) -> T:
            return context.copy().run(function, *args, **kwargs)

        return carried

    @property
    def sender(self) -> str | None:
        """The person who wrote the message: the name on the channel, else the id there; None if no person did."""
        said_by = self.asked.provenance
        return None if said_by is None else said_by.sender_name or said_by.sender

    def _senders(self, shown: Sequence[facts.Message]) -> bool:
        in_group = SessionKey.parse(self.session_key).kind == "group"
        return senders_shown(shown, in_group=in_group)

    def prompt(self) -> str:
        """Return everything as one text, context first, for a model that takes a prompt (PROV-3).

        Whatever no person typed is fenced, so that no text can pass for another's or for the system's.
        """
        shown = self.shown
        said = render(shown, run_id=self.run_id, senders=self._senders(shown))
        if not self.context:
            return said
        return f"{fence('system', fence_id(self.run_id, 'context'), {}, self.context)}\n\n{said}"

    def messages(
        self, dialect: Dialect = "openai", *, images: bool | None = None
    ) -> JsonList:  # JSON objects, or objects of pydantic-ai
        """Return `shown` as a list of messages in a dialect; texts that no person typed are fenced (PROV-3).

        With `images`, by default as `takes_images` says, pictures among their files are in it themselves: they are read from the
        store. Of every other file there is its name, its type and its size (FILE-4).

        `openai` is for chat completions, `responses` for OpenAI's Responses and the agents that are built on them. `context` is not
        among them: it goes where the dialect has its system text. For `pydantic-ai` they are its
        `ModelMessage` objects.

        Raises:
            MissingExtra: `pydantic-ai` needs the extra `models`.
        """
        shown = self._with_pictures() if (self.takes_images if images is None else images) else self.shown
        match dialect:
            case "openai":
                return list(openai_messages(shown, run_id=self.run_id, senders=self._senders(shown)))
            case "responses":
                return list(responses_items(shown, run_id=self.run_id, senders=self._senders(shown)))
            case "anthropic":
                return list(anthropic_messages(shown, run_id=self.run_id, senders=self._senders(shown)))
            case "pydantic-ai":
                adapter = imported(
                    "intersession_actors.outside.agents.pydantic_ai",
                    what="a rendering for pydantic-ai",
                    library="pydantic-ai",
                    extra="models",
                )
                rendered: JsonList = adapter.model_messages(
                    self.messages("openai", images=images), self.asked.timestamp
                )
                return rendered

    def stream(self, piece: str) -> None:
        """Show the next piece of the answer to listeners, at once (STREAM-1). It is not recorded: what the agent returns is.

        May be called from any thread, and never blocks. An agent that is a generator need not call it.

        Raises:
            BadPiece: it is no text.
            ReplyTooLarge: the pieces have more than `runs.replyMaxBytes`.
            ToolRefused: the attempt is over.
        """
        self._pieces(piece)

    async def amessages(self, dialect: Dialect = "openai", *, images: bool | None = None) -> JsonList:
        """Like `messages`, without blocking the event loop where pictures are read from the store."""
        shows = self.takes_images if images is None else images
        if shows and any(file.is_picture for message in self.shown for file in facts.files_of(message)):
            from intersession_actors.running.host.own_threads import off_loop  # noqa: PLC0415 - what reads a log loads turns, and no loop

            return await off_loop(lambda: self.messages(dialect, images=True))
        return self.messages(dialect, images=False)

    def _with_pictures(self) -> tuple[facts.Message, ...]:
        store = self._store
        if store is None:
            return self.shown
        return tuple(with_pictures(message, store.read) for message in self.shown)

    def record_call(self, name: str, arguments: JsonMapping, *, call_id: str | None = None) -> str:
        """Record that the agent is about to call one of its own tools; returns the call's id. Blocks until durable.

        The n-th call with the same content in an attempt is that of the attempts before: it has the same id, is not recorded
        twice, and is in `made_before`. So its id tells another system whether it has seen the call (SEND-13).
        """
        return self.record_calls(
            [facts.ToolCallBlock(id=call_id or "", name=name, arguments=json_text(arguments))]
        )[0]

    def record_calls(self, calls: Sequence[facts.ToolCallBlock]) -> list[str]:
        """Record that the agent is about to make several calls side by side; returns their ids, in order. Blocks until durable.

        Each is recognised as in `record_call`; one without an id is given one.
        """
        known: list[str] = []
        new: list[facts.ToolCallBlock] = []
        for call in calls:
            again = self._own_calls.again(self.partial, call)
            if again is None:
                again = call.id or f"call_{self.run_id}_{self.attempt}_{next(self._own_calls.numbers)}"
                new.append(facts.ToolCallBlock(id=again, name=call.name, arguments=call.arguments))
            known.append(again)
        if new:
            self.recorder.tool_calls(new)
        return known

    def approve(self, call_id: str, name: str, arguments: JsonMapping, *, is_new: bool = False) -> Approval:
        """Ask whether a recorded call of the agent's own tool may act; the settings `tools.ask` say which ask a person (ASK).

        Blocks until it is released, which can take days; `aapprove` does not. `call_id` is what `record_call` gave: the
        same call of a later attempt gets the same release. `is_new`: a model made the id up, and gives the call another one
        in a later attempt, which sees what has ended; then the n-th call in the same words is the same.

        Raises:
            ToolRefused: the attempt is over.
        """
        asked = self.recorder.approval(call_id, name, arguments, is_new=is_new)
        return asked if isinstance(asked, Approval) else asked.wait()

    async def aapprove(
        self, call_id: str, name: str, arguments: JsonMapping, *, is_new: bool = False
    ) -> Approval:
        """Like `approve`, without blocking the event loop."""
        import asyncio  # noqa: PLC0415 - what reads a log loads turns, and no loop

        from intersession_actors.running.host.own_threads import off_loop  # noqa: PLC0415 - the same

        asked = await off_loop(self.recorder.approval, call_id, name, arguments, is_new=is_new)
        if isinstance(asked, Approval):
            return asked
        await asyncio.wait([asyncio.wrap_future(asked.future)])
        return await off_loop(asked.finish)

    def record_result(self, call_id: str, name: str, content: object, *, is_error: bool = False) -> None:
        """Record the result of one of the agent's own tools; other values than strings are recorded as JSON. Blocks until durable.

        The first result of a call stays: one that an attempt before had recorded is not recorded again.
        """
        made = self.made_before.get(call_id)
        if made is not None and made.has_ended:
            return
        text = content if isinstance(content, str) else json_text(content)
        self.recorder.tool_result(call_id, name, text, is_error)


@facts.ready
class Reply(msgspec.Struct, frozen=True):
    """An agent's answer, with more than a text.

    `messages` are what it adds to the transcript, where that is more than one message with the text; ids and times
    may be left empty. They are recorded as its own output: a `provenance` given here is not used (PROV-2). `text` None
    is no answer, unless there are `files`: these go out with the text (FILE-6).
    """

    text: str | None = None
    usage: facts.Usage | None = None
    model: str | None = None
    messages: tuple[facts.Message, ...] | None = None
    stop_reason: str | None = None
    skipped: bool = False
    files: tuple[File, ...] = ()

    @classmethod
    def skip(cls) -> Self:
        """Stay silent, by this step's word for it (`Turn.skip_word`)."""
        return cls(skipped=True)


class BadPiece(TypeError):
    """What an agent yields, or streams, is no text, or comes behind its `Reply`: the run fails with `bad_reply`."""


class ReplyTooLarge(ValueError):
    """Longer than an agent's answer may be (`runs.replyMaxBytes`): the run fails with `reply_too_large`."""


AgentFunction = Callable[[Turn], object]
"""A plain agent: `def` or `async def`, gets a `Turn`, returns `str | None | Reply`, or yields pieces of its text (STREAM-1)."""


def is_blank(text: object) -> bool:
    """Whether a model's text is empty: None, or only white space."""
    return text is None or (isinstance(text, str) and not text.strip())


def json_text(value: object) -> str:
    """Return a value as JSON; other types are shown as Python prints them, or spelled out."""
    try:
        return msgspec.json.encode(value, enc_hook=repr, order="sorted").decode()
    except UnicodeEncodeError:
        return spelled_out(value)
    except (ValueError, TypeError, RecursionError, OverflowError) as error:
        return msgspec.json.encode(f"it can't be shown: {type(error).__name__}").decode()
