"""What differs between two JSON values: by the names of fields, and by the ids of what a list has."""

from collections.abc import Iterator, Mapping
from typing import Final, TypedDict

from intersession_events.plain_json import JsonValue, is_list, is_object

_NAMES: Final = {
    "sessions": "key",
    "transcript": "id",
    "runs": "runId",
    "exchanges": "exchangeId",
    "spawns": "spawnId",
    "deliveries": "deliveryId",
}
"""What the items of each list are told apart by."""


class Change(TypedDict):
    """One difference. `path` says where, from the name of a list on by ids; a side is None where it had nothing there."""

    path: str
    before: JsonValue
    after: JsonValue


def differences(before: JsonValue, after: JsonValue, path: str = "", name: str = "") -> Iterator[Change]:
    """Yield what differs between two values, in the order of the first one; `name` is what they are called, at `path`."""
    if before == after:
        return
    old, new = _by_name(before, name), _by_name(after, name)
    if old is None or new is None:
        yield {"path": path, "before": before, "after": after}
        return
    for inner in dict.fromkeys((*old, *new)):
        where = f"{path}/{_escaped(inner)}" if path else inner
        yield from differences(old.get(inner), new.get(inner), where, inner)


def _escaped(name: str) -> str:
    """Return a name as JSON pointers have it (RFC 6901), so that the parts of a path can be told apart."""
    return name.replace("~", "~0").replace("/", "~1")


def _by_name(value: JsonValue, name: str) -> Mapping[str, JsonValue] | None:
    """Return what has names inside a value: fields of an object, items of a list by their ids."""
    if is_object(value):
        return value
    if is_list(value) and name in _NAMES:
        # What is open is listed by ids alone.
        return {str(item[_NAMES[name]] if is_object(item) else item): item for item in value}
    return None
