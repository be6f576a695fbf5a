"""The verb `lens`: an agent's exact input in an attempt, rebuilt from the log and checked against its hash (LENS-1)."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Annotated, Literal, NamedTuple, NotRequired, TypedDict

import msgspec

from intersession_actors.hindsight.debugger.answers import PlaceAnswer
from intersession_actors.hindsight.debugger.inputs.attempts import Attempt, attempt_named
from intersession_actors.hindsight.debugger.lists.paging import most_of
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.rules.gate.limits import KeyText
from intersession_actors.rules.prompt.fitting import context_shown
from intersession_actors.rules.prompt.transcript import RunContext, context_hash, hash_as_recorded
from intersession_actors.rules.prompt.window import Transcript
from intersession_events.basics.plain_json import JsonObject, JsonValue
from intersession_events.facts import (
    ConfigLoaded,
    Fit,
    Message,
    ready,
)
from intersession_events.facts.reasons import counted

LensDialect = Literal["prompt", "openai", "responses", "anthropic", "json"]


@ready
class Lens(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The arguments of `lens`; null counts as missing."""

    run: Annotated[
        KeyText,
        msgspec.Meta(
            description=(
                "A run by any name that is shown, or one of an exchange: RUN@turn:3, RUN@reply, RUN@announce; or an event of "
                "one, or an imported message, by its position: #412."
            )
        ),
    ]
    attempt: Annotated[
        Annotated[int, msgspec.Meta(ge=1)] | None,
        msgspec.Meta(description="Which attempt, from 1 on. Default: the last."),
    ] = None
    dialect: Annotated[
        LensDialect | None,
        msgspec.Meta(description="Also as a model got it: one prompt, or messages for openai or anthropic."),
    ] = None
    than: Annotated[
        KeyText | None,
        msgspec.Meta(description="Another run: only what this one saw that that one did not."),
    ] = None
    before: Annotated[
        Annotated[int, msgspec.Meta(ge=1)] | None,
        msgspec.Meta(
            description="Only this many messages from the beginning on: the `before` of an answer is for the page before."
        ),
    ] = None
    all: Annotated[
        bool | None, msgspec.Meta(description="All messages of the transcript, whatever the limit.")
    ] = None
    limit: Annotated[
        float | None,
        msgspec.Meta(description="At most this many messages, the newest, 1 to 1000; 50 if not given."),
    ] = None


class MadeBefore(TypedDict):
    """A tool call that an earlier attempt had recorded (SEND-13); its text is in `partial`."""

    callId: str
    name: str
    ordinal: int
    hasEnded: bool


class StandingSummary(TypedDict):
    """What the agent was shown in the place of the first `messages` of the transcript (CTX-5): the summary of the run `run`."""

    run: str
    messages: int
    text: str


class LeftOut(TypedDict):
    """The part of a context that its model was not shown (CTX-2): the oldest `messages` of it, and of earlier attempts the first `partial`.

    Each remaining text was cut to a number of characters: `earlierChars`, and `messageChars` of the message and of what
    the system quotes; None is all. `told` says all that in words.
    """

    messages: int
    partial: int
    earlierChars: int | None
    messageChars: int | None
    told: str


class LensAnswer(TypedDict):
    """The input of an agent in an attempt of a run.

    `asRecorded` says whether all of it has the hash that was recorded when the attempt began (`contextHash`); `rebuiltHash` is
    what it has now. `madeBefore` are the calls in `partial`, which are not made again. `tools` are as they were described to models
    then; None was not recorded. `messages` are a page of the transcript. Where it has more of them, `total` says how many, and
    `before` how many stand before the page: given back, it gives the page before. `prompt` or `rendered` is there where a dialect was
    asked for: of the whole, whatever the page, but for what `leftOut` says. `contextTokens` is the window of the model, `usedTokens`
    how many tokens all of it has at most; None in logs written before. `summary` is there where one stands for the oldest
    messages of the transcript. `fresh` is there where another run was asked for: of
    `messages`, `message` and `partial` those that that one had not seen.

    `imported`: it is what an import has of the session up to there, with what the agent had done since the `message` in
    `partial`, and the `model` of its answer. Nothing was recorded to hold it against, and `problem` says what is not known.
    """

    run: str
    attempt: int
    place: PlaceAnswer
    sessionKey: str
    asRecorded: bool
    contextHash: str | None
    rebuiltHash: str | None
    systemContext: str
    total: NotRequired[int]
    before: NotRequired[int]
    messages: list[JsonValue]
    message: JsonValue
    partial: list[JsonValue]
    madeBefore: list[MadeBefore]
    tools: list[JsonObject] | None
    model: str | None
    thinking: str | None
    settings: dict[str, str]
    deadlineMs: int | None
    contextTokens: int | None
    usedTokens: int | None
    leftOut: "LeftOut | None"
    summary: NotRequired[StandingSummary]
    prompt: NotRequired[str]
    rendered: NotRequired[list[JsonValue]]
    fresh: NotRequired[list[JsonValue]]
    imported: NotRequired[bool]
    problem: NotRequired[str]


def lens(view: View, given: Lens) -> LensAnswer:
    """Return an agent's input.

    Raises:
        ToolRefused: there is no such run within reach, it did not start, or not so often.
    """
    seen = attempt_named(view, given.run, given.attempt, field="run")
    page = _page(seen, given)
    answer = _answer(view, seen, page)
    if given.dialect == "prompt":
        answer["prompt"] = _readable(view, seen.key, seen.turn(seen.readable).prompt())
    elif given.dialect is not None and given.dialect != "json":
        answer["rendered"] = _rendered(view, seen, given.dialect)
    if given.than is not None:
        other = attempt_named(view, given.than, None, field="than")
        answer["fresh"] = _messages(view, seen, _fresh(seen, other, page))
    return answer


class _Page(NamedTuple):
    """The messages of a transcript that are shown, and the number of the first."""

    first: int
    messages: Sequence[Message]


def _page(seen: "Attempt", given: Lens) -> _Page:
    """Return the shown part of the transcript: of a long one, nothing else is read."""
    limit = most_of(given.limit)
    stop = len(seen.transcript) if given.before is None else min(given.before, len(seen.transcript))
    first = 0 if given.all else max(stop - limit, 0)
    return _Page(first, seen.transcript[first:stop])


def _fresh(seen: "Attempt", other: "Attempt", page: _Page) -> list[Message]:
    """Return what of all that is shown the other attempt had not been given.

    Of one session id, the transcript of one run is the beginning of that of a later one: there the other's is read from where
    this one ends, as long as something of what is shown may stand there yet.
    """
    known = _alike(seen, other)
    shown = [*page.messages[max(known - page.first, 0) :], *seen.behind]
    unseen = {one.id for one in shown}
    there = map(other.transcript.__getitem__, range(known, len(other.transcript)))
    for one in chain(other.behind, there if known else other.transcript):
        unseen.discard(one.id)
        if not unseen:
            break
    return [one for one in shown if one.id in unseen]


def _alike(seen: "Attempt", other: "Attempt") -> int:
    """Return how many messages both transcripts begin with, as far as that is known without a look at them."""
    one, two = seen.transcript, other.transcript
    if seen.key != other.key or not (isinstance(one, Transcript) and isinstance(two, Transcript)):
        return 0
    return min(len(one), len(two)) if one.began == two.began else 0


def _answer(view: View, seen: Attempt, page: _Page) -> LensAnswer:
    context, started = seen.context, seen.started
    rebuilt = None if context is None else _hash(seen, context)
    answer: LensAnswer = {
        "run": seen.run_id,
        "attempt": started.attempt,
        "place": view.at(seen.start.position),
        "sessionKey": seen.key,
        "asRecorded": rebuilt == started.context_hash,
        "contextHash": started.context_hash or None,
        "rebuiltHash": rebuilt,
        "systemContext": ""
        if context is None
        else _readable(view, seen.key, context_shown(context.system_context, started.fit)),
        "messages": _messages(view, seen, page.messages),
        "message": None if context is None else _messages(view, seen, [context.message])[0],
        "partial": [] if context is None else _messages(view, seen, context.partial),
        "madeBefore": [
            {"callId": made.call_id, "name": made.name, "ordinal": made.ordinal, "hasEnded": made.has_ended}
            for made in (() if context is None else seen.turn(()).made_before.values())
        ],
        "tools": _tools(view, seen),
        "model": started.model,
        "thinking": started.thinking,
        "settings": started.settings,
        "deadlineMs": started.deadline_ms or None,
        "contextTokens": started.context_tokens,
        "usedTokens": started.used,
        "leftOut": None if started.fit is None else _left_out(started.fit),
    }
    if len(page.messages) < len(seen.transcript):
        answer["total"], answer["before"] = len(seen.transcript), page.first
    if context is not None and context.summary is not None:
        summary = context.summary
        answer["summary"] = {
            "run": summary.run_id,
            "messages": summary.messages,
            "text": _readable(view, seen.key, summary.text),
        }
    if seen.is_imported:
        answer["imported"] = True
    if seen.problem is not None:
        answer["problem"] = seen.problem
    return answer


def _hash(seen: Attempt, context: RunContext) -> str:
    if seen.is_imported:
        return context_hash(context.transcript, context.message, context.partial, context.system_context)
    return hash_as_recorded(context, seen.started)


def _left_out(fit: Fit) -> LeftOut:
    return {
        "messages": fit.left_out,
        "partial": fit.partial_left_out,
        "earlierChars": fit.earlier_chars,
        "messageChars": fit.asked_chars,
        "told": _told(fit),
    }


def _told(fit: Fit) -> str:
    parts = [*_parts_left_out(fit)]
    left_out = f"not shown to the model, since it is too long for it: {'; '.join(parts)}" if parts else ""
    if not fit.summarised:
        return left_out
    stands = f"a summary stands for the first {counted(fit.summarised, 'message')} of the transcript"
    return f"{stands}; {left_out}" if left_out else stands


def _parts_left_out(fit: Fit) -> Iterator[str]:
    if lost := fit.left_out - fit.summarised:
        first = f"{counted(lost, 'message')} of the transcript"
        yield f"{first} behind those" if fit.summarised else f"the first {first}"
    if fit.partial_left_out:
        yield f"the first {counted(fit.partial_left_out, 'message')} of what earlier attempts did"
    if fit.earlier_chars is not None:
        yield f"of texts before the message what is beyond {fit.earlier_chars} characters"
    if fit.asked_chars is not None:
        yield f"of the message and of quotes what is beyond {fit.asked_chars} characters"


def _tools(view: View, seen: Attempt) -> list[JsonObject] | None:
    """Return the tools that the attempt had, as they were described then."""
    names = seen.started.tools
    if names is None:
        return None
    loaded: ConfigLoaded | None = view.recorded_config(seen.start.position)
    described: list[JsonObject] = (
        [] if loaded is None or loaded.tools is None else msgspec.json.decode(loaded.tools)
    )
    by_name = {tool.get("title"): tool for tool in described}
    return [by_name.get(name, {"title": name}) for name in names]


def _messages(view: View, seen: Attempt, messages: Sequence[Message]) -> list[JsonValue]:
    return [view.shown_value(_json(seen.read(message)), seen.key) for message in messages]


def _json(message: Message) -> JsonValue:
    """Return a message as JSON has it: lists, where a struct has tuples."""
    value: JsonValue = msgspec.json.decode(msgspec.json.encode(message))
    return value


def _rendered(
    view: View, seen: Attempt, dialect: Literal["openai", "responses", "anthropic"]
) -> list[JsonValue]:
    return [view.shown_value(message, seen.key) for message in seen.turn(seen.readable).messages(dialect)]


def _readable(view: View, key: str, text: str) -> str:
    return view.shown(text, key) or ""
