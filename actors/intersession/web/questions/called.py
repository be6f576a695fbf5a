"""Names for pages: sub-agents by their labels, OpenClaw where an import has its texts as a user's, imported answers by their places."""

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final

import msgspec

from intersession_actors.hindsight.debugger.view import View
from intersession_events.basics.ids import session_stream
from intersession_events.basics.keys.short_names import short_name
from intersession_events.basics.plain_json import JsonObject, is_list, is_object
from intersession_events.facts import Message, MessageRecorded, is_imported
from intersession_events.log.recorded import StreamPart
from intersession_projections.basics.speakers import is_openclaws
from intersession_projections.views.sessions.names import SessionNames

_SUB_AGENT: Final = re.compile(r"agent:[^:\s\"\\]{1,64}:subagent:[0-9a-f-]{36}(?![\w:-])")
_MOST: Final = 500


def with_names(view: View, answer: Mapping[str, object]) -> Mapping[str, object]:
    """Return an answer with names that its keys alone don't tell.

    `names` are those of the sub-agents in it that have a label, by their keys. `openClaws` are the ids of messages in
    it whose words are OpenClaw's own, whoever an imported transcript has them from. `position` of an imported answer
    in a transcript names it for `lens` (LENS-3), since it has no run.
    """
    found: JsonObject = {}
    _place(view, answer)
    if names := _names(view, answer):
        found["names"] = names
    if openclaws := [message.id for message in _messages(answer) if is_openclaws(message)]:
        found["openClaws"] = openclaws
    return {**answer, **found} if found else answer


def _names(view: View, answer: Mapping[str, object]) -> dict[str, str]:
    keys = dict.fromkeys(
        match[0] for match in _SUB_AGENT.finditer(msgspec.json.encode(answer).decode(errors="replace"))
    )
    if not keys:
        return {}
    called = SessionNames(view.log, view.sees).of(islice(keys, _MOST))
    return {key: name for key, name in called.items() if name != short_name(key)}


def _place(view: View, answer: Mapping[str, object]) -> None:
    sessions = answer.get("sessions")
    found: list[tuple[str, JsonObject]] = [
        (str(one["key"]), said)
        for one in (sessions if is_list(sessions) else ())
        if is_object(one) and is_list(transcript := one.get("transcript"))
        for said in transcript
        if is_object(said) and said.get("role") == "assistant" and "runId" not in said
    ]
    named = [(key, str(said["id"])) for key, said in found]
    versions = view.reader.sessions.versions_of_messages(named) if named else ()
    parts = [
        StreamPart(session_stream(key), version - 1, version)
        for (key, _), each in zip(named, versions, strict=True)
        for version in each
    ]
    places = {
        (one.stream, one.event.message.id): one.position
        for events in (view.log.parts(parts) if parts else ())
        for one in events
        if isinstance(one.event, MessageRecorded) and is_imported(one.event)
    }
    for key, said in found:
        position = places.get((session_stream(key), str(said["id"])))
        if position is not None:
            said["position"] = position


def _messages(answer: Mapping[str, object]) -> Iterator[Message]:
    """Yield the user messages in an answer: of sessions' transcripts, or of an agent's input."""
    sessions = answer.get("sessions")
    listed = [one.get("transcript") for one in sessions if is_object(one)] if is_list(sessions) else []
    for some in (*listed, answer.get("messages"), [answer.get("message")]):
        for raw in some if is_list(some) else ():
            if is_object(raw) and raw.get("role") == "user":
                try:
                    yield msgspec.convert(raw, Message)
                except msgspec.ValidationError:
                    continue  # one of which a part was left out, for it is long
