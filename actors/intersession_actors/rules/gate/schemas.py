"""JSON schemas of tools' arguments, and how each API of models has a tool described."""

import msgspec

from intersession_actors.rules.gate.values import invalid
from intersession_events.basics.plain_json import JsonList, JsonMapping, JsonObject, JsonValue


def tool_in(dialect: str, name: str, description: str, schema: JsonObject) -> JsonObject:
    """Describe a tool in an API's form: `openai`, `responses`, `anthropic`, `mcp`, or `json-schema` (name and plain schema).

    Raises:
        ToolRefused: there is no such dialect (`invalid_request`).
    """
    match dialect:
        case "openai":
            function = {"name": name, "description": description, "parameters": schema}
            return {"type": "function", "function": function}
        case "responses":
            return {
                "type": "function",
                "name": name,
                "description": description,
                "parameters": schema,
                "strict": False,
            }
        case "anthropic":
            return {"name": name, "description": description, "input_schema": schema}
        case "mcp":
            return {"name": name, "description": description, "inputSchema": schema}
        case "json-schema":
            return {"title": name, "description": description, **schema}
        case _:
            raise invalid("dialect", f"no {dialect!r}, use openai, responses, anthropic, mcp or json-schema")


def schema_of(arguments: type[msgspec.Struct]) -> JsonObject:
    """Return the self-contained JSON schema of an arguments struct: models' APIs take no references.

    Raises:
        TypeError: a field's type has no JSON schema.
        RecursionError: a field's type contains itself.
    """
    (schema,), parts = msgspec.json.schema_components([arguments], ref_template="{name}")
    resolved = _resolved(schema, parts)
    # Its name and docstring are for readers of the code; the tool has a name and a description of its own.
    return {name: value for name, value in resolved.items() if name not in {"title", "description"}}


def _resolved(value: object, parts: JsonMapping) -> JsonValue:
    match value:
        case dict():
            known: JsonObject = value  # pyright: ignore[reportUnknownVariableType] - a schema is JSON
            if "$ref" in known:
                beside = {name: item for name, item in known.items() if name != "$ref"}
                return {**_resolved(parts[known["$ref"]], parts), **beside}
            return {name: _resolved(item, parts) for name, item in known.items()}
        case list():
            items: JsonList = value  # pyright: ignore[reportUnknownVariableType]
            return [_resolved(item, parts) for item in items]
        case _:
            return value
