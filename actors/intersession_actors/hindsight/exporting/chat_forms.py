"""Writes a session as model servers take it: OpenAI's chat completions, its Responses, Anthropic's Messages (OUT-4)."""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from intersession_actors.hindsight.debugger.lens import Lens, lens
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.outside.agents.dialects.anthropic import AnthropicMessages
from intersession_actors.outside.agents.dialects.chat import ChatCompletions
from intersession_actors.outside.agents.dialects.dialect import Dialect
from intersession_actors.outside.agents.dialects.responses import Responses
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.gate.schemas import tool_in
from intersession_actors.rules.prompt.formats import (
    anthropic_messages,
    openai_messages,
    responses_items,
    with_pictures,
)
from intersession_actors.rules.prompt.rendering import senders_shown
from intersession_events.basics.ids import session_stream
from intersession_events.basics.keys.key import SessionKey
from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts import Message, RunStarted
from intersession_events.log.recorded import Recorded
from intersession_projections.basics.speakers import as_read
from intersession_projections.copies.openclaw_state.lives import life_of

_DIALECTS: Final[Mapping[str, tuple[Dialect, Callable[..., list[JsonObject]]]]] = {
    "openai": (ChatCompletions(), openai_messages),
    "responses": (Responses(), responses_items),
    "anthropic": (AnthropicMessages(), anthropic_messages),
}
FORMS: Final = tuple(_DIALECTS)
_UNKNOWN: Final = "unknown"
"""The model of a session whose runs name none: the servers' forms ask for one."""


def chat_body(view: View, key: str, form: str, at: int) -> tuple[bytes, int]:
    """Return the body of a request with what a session's agent has been told and has said up to a position, and the number of messages.

    The system's text, the tools and the model are those of its last run up to there; an import has no runs, and its session none of
    these. What no person typed is fenced, as models are shown it (PROV-3).
    """
    dialect, rendered = _DIALECTS[form]
    recorded = view.log.stream(session_stream(key), to=None)
    recorded = [one for one in recorded if one.position <= at]
    messages = _messages(view, key, recorded)
    system, tools, model, run_id = _given(view, recorded)
    in_group = SessionKey.recorded(key).kind == "group"
    shown = rendered(messages, run_id=run_id, senders=senders_shown(messages, in_group=in_group))
    body = dialect.request(model, system, shown, [tool_in(form, *each) for each in tools])
    return msgspec.json.format(msgspec.json.encode(body), indent=2), len(messages)


def _messages(view: View, key: str, recorded: list[Recorded]) -> list[Message]:
    life = life_of(key, recorded)
    if life is None:
        return []
    generation = life.current or life.generations[-1]
    said = [as_read(line.recorded.event) for line in generation.lines]
    content_of = view.log.files.read
    return [with_pictures(message, content_of) for message in said if message is not None]


def _given(view: View, recorded: list[Recorded]) -> tuple[str, list[tuple[str, str, JsonObject]], str, str]:
    """Return what the last run was given besides: the system's text, its tools, its model; and its id."""
    starts = [event.run_id for one in recorded if isinstance(event := one.event, RunStarted)]
    for run_id in reversed(starts):
        try:
            seen = lens(view, Lens(run=run_id, limit=1))
        except ToolRefused:
            continue  # of a generation that is no longer there
        tools = [
            (
                str(tool.get("title")),
                str(tool.get("description", "")),
                {name: value for name, value in tool.items() if name not in {"title", "description"}},
            )
            for tool in seen["tools"] or ()
        ]
        model = (seen["model"] or _UNKNOWN).partition("/")
        return seen["systemContext"], tools, model[2] or model[0], run_id
    return "", [], _UNKNOWN, ""
