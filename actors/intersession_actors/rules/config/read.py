"""Reads a configuration file: bytes in, plain JSON values out, or a `ConfigError` with place and reason."""

import json
import math
from pathlib import Path
from typing import Final, NoReturn

import json5

from intersession_actors.rules.errors import ConfigError, ConfigProblem
from intersession_actors.rules.gate.limits import SETTING
from intersession_events.basics.plain_json import JsonObject, JsonValue, is_list_like, is_object

MAX_BYTES: Final = 1_048_576
# The JSON5 reader is written in Python: this many bytes take it some seconds.
MAX_JSON5_BYTES: Final = 131_072
MAX_DEPTH: Final = 32
MAX_INTEGER: Final = 2**53


def read_config_file(path: Path) -> JsonValue:
    """Return the content of a JSON5 file.

    Raises:
        ConfigError: it can't be read, is too large, or is no JSON5.
    """
    try:
        if not path.is_file():
            _refuse(f"{path} is no file; give the path of a configuration file")
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        _refuse(f"{str(path)!r} can't be read: {error}")
    if len(content) > MAX_BYTES:
        _refuse(f"{path} is larger than {MAX_BYTES} bytes; no configuration is")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        _refuse(f"{path} is not UTF-8 at byte {error.start}; save it as UTF-8")
    return _parse(text, str(path))


def check_plain(value: object) -> None:
    """Refuse values that are not plain JSON: other types, invalid Unicode, numbers out of range, too deep nesting.

    Raises:
        ConfigError: naming the path of the first such value.
    """
    # Not recursive, so that no depth and no cycle of a host's own dict can exhaust the stack.
    left: list[tuple[str, JsonValue, int]] = [("", value, 0)]
    while left:
        path, item, depth = left.pop()
        if depth > MAX_DEPTH:
            _refuse(f"nested deeper than {MAX_DEPTH} levels", path)
        if is_object(item):
            left.extend((_below(path, key), inner, depth + 1) for key, inner in item.items())
        elif is_list_like(item):
            left.extend((f"{path}[{index}]", inner, depth + 1) for index, inner in enumerate(item))
        else:
            _check_leaf(path, item)


def _below(path: str, key: object) -> str:
    if not isinstance(key, str):
        _refuse(f"the key {key!r} is no string", path)
    _check_text(key, path)
    return f"{path}.{key}" if path else key


def _check_leaf(path: str, item: object) -> None:
    match item:
        case str():
            _check_text(item, path)
        case float() if not math.isfinite(item):
            _refuse("NaN and infinity are no settings; use a number", path)
        case int() if abs(item) >= MAX_INTEGER:
            _refuse("the number is too large", path)
        case bool() | int() | float() | None:
            pass
        case _:
            _refuse(f"a {type(item).__name__} is nothing that JSON has", path)


def _parse(text: str, path: str) -> JsonValue:
    try:
        # Most files are plain JSON, which the C reader takes in no time.
        return json.loads(text, object_pairs_hook=_without_duplicates)
    except RecursionError:
        _refuse(f"{path} is nested deeper than {MAX_DEPTH} levels")
    except ValueError:
        pass
    if len(text) > MAX_JSON5_BYTES:
        _refuse(
            f"{path} is no plain JSON and, for JSON5, larger than {MAX_JSON5_BYTES} characters; write plain JSON"
        )
    try:
        return json5.loads(text, allow_duplicate_keys=False)
    except RecursionError:
        _refuse(f"{path} is nested deeper than {MAX_DEPTH} levels")
    except ValueError as error:
        _refuse(f"{path}: {str(error).removeprefix('<string>:')}")


def _without_duplicates(pairs: list[tuple[str, JsonValue]]) -> JsonObject:
    found = dict(pairs)
    if len(found) < len(pairs):
        # Falls through to the JSON5 reader, which names the key.
        raise ValueError("duplicate key")
    return found


def _check_text(text: str, path: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        _refuse("holds half of a surrogate pair, which is no Unicode text", path)
    if len(text) > SETTING.most:
        _refuse(f"the text is longer than {SETTING.most} characters; no setting is", path)


def _refuse(what: str, path: str = "") -> NoReturn:
    raise ConfigError([ConfigProblem(path, what)])
