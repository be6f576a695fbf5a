"""Calls an agent's own tools, each call and its result on record before the agent goes on (TOOL-2)."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final, NamedTuple

import msgspec

from intersession_actors.outside.agents.own_tools.tool import BadArguments, OwnTool, ToolFailed
from intersession_actors.outside.agents.turn import Turn, json_text
from intersession_actors.rules.gate.texts import arguments_in
from intersession_actors.rules.gate.values import storable
from intersession_actors.running.failures.failure import described
from intersession_actors.running.host.own_threads import off_loop
from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts import Message, ToolCallBlock

MOST_RESULT: Final = 100_000
"""Characters of a tool's result that its model is given, and at most as many as its window has tokens, which is about a quarter of it."""


class ModelCall(NamedTuple):
    """A model's call of a tool. `arguments` are the source text that it wrote."""

    id: str
    name: str
    arguments: str


class Outcome(NamedTuple):
    """What a tool's model is told."""

    text: str
    is_error: bool = False


async def answers_to(
    turn: Turn, own: Mapping[str, OwnTool], of_the_system: frozenset[str], calls: Sequence[ModelCall]
) -> list[str]:
    """Make a model's calls and return what it is told of each. The agent's own tools side by side work at the same time."""
    answers: list[str] = []
    for is_own, group in groupby(calls, key=lambda call: bool(own) and call.name not in of_the_system):
        if is_own:
            answers += await _answers_of_own(turn, own, of_the_system, list(group))
        else:
            answers += [await _answer_of_the_system(turn, call) for call in group]
    return answers


async def made_after_all(turn: Turn, own: Mapping[str, OwnTool], of_the_system: frozenset[str]) -> Turn:
    """Make the calls with which an attempt before had waited for a release, and return the turn with their results (ASK-4).

    The model had asked for them, so it is asked on these results: on a mere word of the calls it may forget them.
    """
    blocks = [
        block for message in turn.partial for block in _calls_in(message) if block.id in turn.held_before
    ]
    calls = [ModelCall(block.id, block.name, block.arguments) for block in blocks]
    answers = await answers_to(turn, own, of_the_system, calls)
    results = (
        Message(
            id=f"{turn.run_id}:{call.id}",
            role="toolResult",
            content=answer,
            timestamp=turn.asked.timestamp,
            tool_call_id=call.id,
            tool_name=call.name,
        )
        for call, answer in zip(calls, answers, strict=True)
    )
    return replace(turn, partial=(*turn.partial, *results))


def _calls_in(message: Message) -> list[ToolCallBlock]:
    content = () if isinstance(message.content, str) else message.content
    return [block for block in content if isinstance(block, ToolCallBlock)]


async def _answer_of_the_system(turn: Turn, call: ModelCall) -> str:
    try:
        arguments = msgspec.convert(arguments_in(call.arguments or "{}"), JsonObject)
    except ValueError as error:
        # The tools record their own calls; this one never reaches them.
        result = _refusal(f"the arguments are no JSON object: {error}")
        await off_loop(turn.recorder.tool_call, call.id, call.name, call.arguments)
        await off_loop(turn.recorder.tool_result, call.id, call.name, result, is_error=True)
        return result
    return json_text(await turn.tools.acall(call.name, arguments))


async def _answers_of_own(
    turn: Turn, own: Mapping[str, OwnTool], of_the_system: frozenset[str], calls: Sequence[ModelCall]
) -> list[str]:
    # One message for all: servers take the results of calls that were made together only behind all of these.
    blocks = [ToolCallBlock(id="", name=call.name, arguments=call.arguments or "{}") for call in calls]
    identities = await off_loop(turn.record_calls, blocks)

    async def answer(call: ModelCall, identity: str) -> str:
        async def work(inside: Turn) -> object:
            tool = own.get(call.name)
            if tool is None:
                known = ", ".join([*own, *sorted(of_the_system)])
                raise BadArguments(f"there is no tool {storable(call.name[:64])!r} here, use one of {known}")
            try:
                arguments = msgspec.convert(arguments_in(call.arguments or "{}"), JsonObject)
            except ValueError as error:
                raise BadArguments(f"the arguments are no JSON object: {error}") from None
            return await released(inside, identity, tool._replace(name=call.name), arguments)

        return (await outcome_of(turn, identity, call.name, work)).text

    tasks = [
        asyncio.ensure_future(answer(call, identity))
        for call, identity in zip(calls, identities, strict=True)
    ]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()


async def outcome_of(
    turn: Turn, call_id: str, name: str, work: Callable[[Turn], Awaitable[object]]
) -> Outcome:
    """Return the recorded outcome of a call that an attempt before had ended, else make the call and record its outcome (SEND-13)."""
    made = turn.made_before.get(call_id)
    if made is not None and made.has_ended:
        return Outcome(made.result or "", made.is_error)
    try:
        outcome = Outcome(_cut(turn, _text(await work(replace(turn, call_id=call_id)))))
    except (BadArguments, ToolFailed) as error:
        outcome = Outcome(_cut(turn, _refusal(str(error))), is_error=True)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a tool may raise anything, and in a task SystemExit would end the loop
        outcome = Outcome(_cut(turn, _refusal(described(error))), is_error=True)
    await off_loop(turn.record_result, call_id, name, outcome.text, is_error=outcome.is_error)
    return outcome


async def released(turn: Turn, call_id: str, tool: OwnTool, arguments: JsonObject) -> object:
    """Call a tool, once somebody has released the call where the settings ask for that, and as it was released (ASK).

    Raises:
        ToolFailed: it was refused.
    """
    approval = await turn.aapprove(call_id, tool.name, arguments)
    if approval.refused is not None:
        raise ToolFailed(approval.refused)
    result = await tool.call(turn, {**approval.arguments})
    return result if approval.edited_by is None else approval.told(_text(result))


def _text(value: object) -> str:
    return value if isinstance(value, str) else json_text(value)


def _cut(turn: Turn, text: str) -> str:
    most = min(MOST_RESULT, turn.context_tokens or MOST_RESULT)
    if len(text) > most:
        text = f"{text[:most]}\n… [{len(text) - most} characters cut; ask for less]"
    return storable(text)


def _refusal(error: str) -> str:
    return json_text({"status": "error", "error": error})
