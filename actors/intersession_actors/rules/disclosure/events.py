"""Events for readers from whom secrets are hidden: no text made from one has a secret (HIST-5). Pure.

They are hidden before anything is drawn, cut or searched: half a secret is not recognised, nor is one without the name that it
stands under.
"""

from typing import Any, TypeVar, cast

import msgspec

from intersession_actors.rules.disclosure.redaction import redact_text, redact_value
from intersession_events import facts
from intersession_events.basics.plain_json import JsonObject

S = TypeVar("S", bound=msgspec.Struct)


def hidden_event(event: facts.Event) -> facts.Event:
    """Return an event without secrets; the same object if it has none."""
    event = facts.with_parts(event, lambda part: cast("facts.Part", hidden_event(part)))
    match event:
        case facts.ForkEdited():
            return _changed(event, edit=_edit(event.edit))
        case facts.ForkedFrom():
            return _changed(event, edits=tuple(map(_edit, event.edits)))
        case facts.SessionPatched():
            return _changed(event, values=redact_value(event.values)[0])
        case _:
            held = facts.held_by(type(event))
            texts = (*held.texts, *held.digests)
            changes: dict[str, object] = {name: _words(getattr(event, name)) for name in texts}
            changes |= {name: _source(getattr(event, name)) for name in held.sources}
            changes |= {name: tuple(map(_file, getattr(event, name))) for name in held.files}
            changes |= {name: tuple(map(hidden_message, getattr(event, name))) for name in held.given}
            if (message := facts.message_in(event)) is not None:
                changes["message"] = hidden_message(message)
            return _changed(event, **changes)


def hidden_message(message: facts.Message) -> facts.Message:
    """Return a message without secrets; the same object if it has none."""
    content, origin = message.content, message.provenance
    if origin is not None:
        origin = _changed(origin, sender_name=_words(origin.sender_name))
    return _changed(
        message,
        content=_words(content) if isinstance(content, str) else tuple(map(_block, content)),
        provenance=origin,
        extra=_source(message.extra),
    )


def _block(block: facts.Block) -> facts.Block:
    match block:
        case facts.TextBlock():
            return _changed(block, text=_words(block.text), extra=_source(block.extra))
        case facts.ThinkingBlock():
            return _changed(block, thinking=_words(block.thinking), extra=_source(block.extra))
        case facts.ToolCallBlock():
            return _changed(block, arguments=_source(block.arguments), extra=_source(block.extra))
        case facts.OtherBlock():
            return _changed(block, json=_source(block.json))
        case facts.FileBlock():
            return _file(block)
        case facts.ImageBlock():
            return _changed(block, extra=_source(block.extra))


def _file(file: facts.FileBlock) -> facts.FileBlock:
    shown = {name: _words(value) for name, value in msgspec.structs.asdict(file).items() if name != "size"}
    return _changed(file, **shown)


def _edit(edit: facts.ForkEdit) -> facts.ForkEdit:
    named: JsonObject = redact_value({edit.key or "value": edit.value})[0]
    return _changed(edit, value=next(iter(named.values())))  # the key may be a secret, too


def _words(
    said: str | tuple[str, ...] | facts.Instructions | None,
) -> str | tuple[str, ...] | facts.Instructions | None:
    if said is None:
        return None
    if isinstance(said, facts.Instructions):
        texts = {name: text for name in said.TEXTS if isinstance(text := getattr(said, name), str)}
        return _changed(said, **{name: redact_text(text)[0] for name, text in texts.items()})
    return redact_text(said)[0] if isinstance(said, str) else tuple(redact_text(text)[0] for text in said)


def _source(source: str | None) -> str | None:
    """Return the source text of JSON without secrets, which may be one by the name that they stand under; else a text."""
    if source is None:
        return None
    try:
        value: object = msgspec.json.decode(source)
    except (ValueError, RecursionError):
        return redact_text(source)[0]
    shown, found = redact_value(value)
    return msgspec.json.encode(shown).decode() if found else source


def _changed(struct: S, **fields: Any) -> S:  # each of its field's own type
    if all(getattr(struct, name) == value for name, value in fields.items()):
        return struct
    return msgspec.structs.replace(struct, **fields)
