"""Records an agent's actions during a run in its session's transcript; for its tools and for runners of models."""

from collections.abc import Sequence
from typing import Literal

from intersession_actors.calls.service.approvals import begin_approval
from intersession_actors.calls.service.asking import ask_session, digest_of
from intersession_actors.calls.service.callers import CallingRun
from intersession_actors.calls.service.service import Service
from intersession_actors.calls.tools.made_before import calls_in, words_in, words_of
from intersession_actors.outside.agents.turn import Approval, AwaitedApproval, Recorder
from intersession_actors.outside.attachments.checks import blocks_without_contents
from intersession_actors.owners.chains.cause import Times
from intersession_actors.owners.session.commands import RecordMessages
from intersession_actors.rules.errors import Judgement
from intersession_actors.rules.gate.answers import fit_block
from intersession_actors.rules.gate.texts import id_of, word_of
from intersession_actors.rules.gate.values import invalid, json_or_text, storable
from intersession_events.basics import ids
from intersession_events.basics.plain_json import JsonMapping
from intersession_events.facts import (
    Block,
    Message,
    TextBlock,
    ToolCallBlock,
    ToolCallHeld,
    check_unknown,
    message_in,
)


class RunRecorder(Recorder):
    """Records messages of one attempt of a run. Each is durable before the agent goes on.

    `done` is what the attempts before had recorded: what the model says again in the same words is there (SEND-13).

    What an agent or its model gives is made fit first: long texts are cut, what can't be recorded is spelled out. Each
    method raises `ToolRefused`: the attempt is over, or a block has a known field among its unknown ones (`invalid_request`).
    """

    def __init__(self, service: Service, key: str, run: CallingRun, done: Sequence[Message] = ()) -> None:
        self._service = service
        self._key = key
        self._run = run
        self._done = done
        self._times = Times()
        self._asked = Times()
        self._numbers = Times()
        self._looked = 0
        """How far in the session's stream this run's messages were looked for; 0 if nobody has looked yet."""
        self._given: set[str] = set()
        """The ids of those, with the ids of what else was said meanwhile."""

    def has(self, message_id: str) -> bool:
        """Return whether the session has a message with this id."""
        return bool(self._service.sessions.versions_of_message(self._key, message_id))

    # Where a worker makes the turn it says the numbers: this process may not know what was before (WORK-6).

    def said(self, blocks: Sequence[Block], numbered: tuple[int, int] | None = None) -> None:
        """Record the model's text beside a tool call; `numbered`: which one in these words it is, and which of all in the attempt."""
        words = _words(tuple(fit_block(block) for block in blocks))
        time, number = numbered or (self._times.next(words), self._numbers.next("said"))
        before = sum(_words(one.content) == words for one in self._done if one.role == "assistant")
        own = ids.derive(
            self._service.log.log_id, "message", self._run.run_id, self._run.attempt, "said", number
        )
        if time > before and not (numbered and self._has_given(own)):
            self._record(own, "assistant", tuple(blocks))

    def tool_call(self, call_id: str, name: str, arguments_json: str) -> None:
        """Record that a tool is about to be called."""
        self.tool_calls((ToolCallBlock(id=call_id, name=name, arguments=arguments_json),))

    def tool_calls(self, calls: Sequence[ToolCallBlock], number: int | None = None) -> None:
        """Record that several tools are about to be called side by side: one message, by the id of the first call."""
        message_id = self._message_id(f"call:{calls[0].id}", number)
        if message_id is not None:
            self._record(message_id, "assistant", tuple(calls))

    def tool_result(
        self,
        call_id: str,
        name: str,
        content: str,
        is_error: bool,
        judged: Judgement | None = None,
        *,
        number: int | None = None,
    ) -> None:
        """Record a tool's result; `judged` has a refusal's inputs."""
        message_id = self._message_id(f"result:{call_id}", number)
        if message_id is None:
            return
        self._record(
            message_id,
            "toolResult",
            (TextBlock(text=content),),
            tool_call_id=id_of(call_id),
            tool_name=word_of(name),
            is_error=bool(is_error),
            judged=judged,
        )

    def approval(
        self,
        call_id: str,
        name: str,
        arguments: JsonMapping,
        *,
        is_new: bool,
        numbered: tuple[int, int] | None = None,
    ) -> Approval | AwaitedApproval:
        """Ask whether a recorded call of an own tool may act (ASK); `numbered` as in `said`."""
        said = words_of(name, {**arguments})
        words = digest_of(["own", "" if is_new else call_id, said])
        time, number = numbered or (self._asked.next(words), self._numbers.next("approval"))

        def hold_of() -> str:
            # What earlier attempts have ended is not called again, so its releases are used up.
            which = time + (self._ended(said) if is_new else 0)
            log_ids, run_id = self._service.log.log_ids, self._run.run_id
            own = ids.derive(log_ids[0], "hold", run_id, self._run.attempt, number)
            first = {ids.derive(log_id, "hold", run_id, words, which) for log_id in log_ids}
            held = self._held()
            same = [
                one.hold_id
                for one in held
                if one.attempt < self._run.attempt
                and one.is_new == is_new
                and (is_new or one.call_id == id_of(call_id))
                and words_of(one.tool, json_or_text(one.arguments)) == said
            ]
            known = (one.hold_id for one in held if one.hold_id == own or one.hold_id in first)
            return next(known, same[which - 1] if which <= len(same) else own)

        return begin_approval(
            self._service, self._key, self._run, call_id, name, arguments, hold_of, is_new=is_new
        )

    def _held(self) -> Sequence[ToolCallHeld]:
        """Return the holds of the run, in their order; in the first logs a hold's id was made of the call's words."""
        service, run_id = self._service, self._run.run_id
        since = service.reader.runs.taken_version(run_id) or 0
        stream = service.log.stream(ids.session_stream(self._key), after=since)
        held = (one.event for one in stream if isinstance(one.event, ToolCallHeld))
        return [one for one in held if one.run_id == run_id]

    def _ended(self, words: str) -> int:
        """Return how many calls in these words earlier attempts had ended."""
        results = {message.tool_call_id for message in self._done if not self._is_own(message)}
        made = (block for block in calls_in(self._done) if block.id in results)
        return sum(words_in(block) == words for block in made)

    def _is_own(self, result: Message) -> bool:
        """Whether this attempt has recorded a result: a worker goes on with it, and another process began it."""
        place = (self._service.log.log_id, "message", self._run.run_id, self._run.attempt)
        return result.id == ids.derive(*place, storable(f"result:{result.tool_call_id}"))

    def _message_id(self, what: str, number: int | None = None) -> str | None:
        """Return the id of a message that the same attempt gives to the same thing; another one where that was there before.

        There are models that call each of their calls by the same id. Of the n-th such thing it is None where that was there before.
        """
        place = (self._service.log.log_id, "message", self._run.run_id, self._run.attempt)
        found = ids.derive(*place, storable(what))
        if number is not None:
            numbered = found if number == 1 else ids.derive(*place, storable(what), number)
            return None if self._has_given(numbered) else numbered
        again = 1
        while self._has_given(found):
            again += 1
            found = ids.derive(*place, storable(what), again)
        return found

    def _has_given(self, message_id: str) -> bool:
        """Whether the run has a message of an id that is derived of it: only itself can have given it, since it began.

        So the list of sessions is not asked where each message lies: a fork would have to be folded for that.
        """
        service, run_id = self._service, self._run.run_id
        since = self._looked or service.reader.runs.taken_version(run_id)
        if since is None:
            return self.has(message_id)  # the view of runs has set it aside
        found = service.log.stream(ids.session_stream(self._key), after=since)
        said = (message_in(recorded.event) for recorded in found)
        self._given.update(message.id for message in said if message is not None)
        self._looked = found[-1].version if found else since
        return message_id in self._given

    def _record(
        self,
        message_id: str,
        role: Literal["assistant", "toolResult"],
        content: tuple[Block, ...],
        *,
        tool_call_id: str | None = None,
        tool_name: str | None = None,
        is_error: bool | None = None,
        judged: Judgement | None = None,
    ) -> None:
        run = self._run
        message = Message(
            id=message_id,
            role=role,
            content=tuple(fit_block(block) for block in blocks_without_contents(content)),
            timestamp=self._service.clock.now_ms(),
            run_id=run.run_id,
            tool_call_id=tool_call_id,
            tool_name=tool_name,
            is_error=is_error,
        )
        try:
            check_unknown(message)
        except ValueError as error:
            raise invalid("blocks", f"{error}, leave it out") from None
        anew = run.attempt if run.attempt > 1 else None
        told = RecordMessages(
            run_id=run.run_id, attempt=run.attempt, messages=(message,), anew=anew, judged=judged
        )
        ask_session(self._service, self._key, told)


def _words(content: str | Sequence[Block]) -> str:
    return digest_of([TextBlock(text=content)] if isinstance(content, str) else content)
