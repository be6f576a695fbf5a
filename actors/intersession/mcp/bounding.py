"""Keeps the answers of debugger tools small: a model reads all of an answer, and has no room for a whole log.

Where that is too much with long texts cut, less is asked for, as the tool itself can be asked: so its cursor goes on where the
answer ends. What is too much even so is cut further. The answer begins with what is missing of it (`notGiven`).
"""

from collections.abc import Callable, Collection, Iterator
from typing import Final

import msgspec

from intersession_events.basics.plain_json import JsonMapping, JsonObject, JsonValue, is_list, is_object

MOST_BYTES: Final = 65_536
"""The most that an answer has, as compact JSON."""
_ROOM: Final = 2_048
"""What is kept free to say what is left out."""
_FEWER: Final = ({"messages": 3}, {"messages": 1}, {"messages": 1, "limit": 20}, {"messages": 1, "limit": 8})
"""What is asked for of sessions instead, one after the other."""
_TEXTS: Final = (4_000, 1_000, 300)
"""How many characters of a text are kept, if more would be too much."""


def asked_for_less(
    ask: Callable[[JsonMapping], JsonObject], given: JsonMapping, arguments: type[msgspec.Struct]
) -> JsonObject:
    """Return a verb's answer, or, if that is too large, its answer to a smaller request.

    Raises:
        ToolRefused: the verb refused it.
    """
    answer = ask(given)
    whole = _size(answer)
    known = {field.encode_name for field in msgspec.structs.fields(arguments)}
    instead: JsonObject = {}
    for fewer in _less(answer, known):
        if _size(_with_texts(answer, _TEXTS[0])) <= MOST_BYTES - _ROOM:
            break
        instead = {name: _fewer(given.get(name), most) for name, most in fewer.items()}
        answer = ask({**given, **instead})
    if not instead:
        return answer
    how = " and ".join(f"{name} {value}" for name, value in instead.items())
    more = (
        "`cursor` is for more" if answer.get("cursor") else f"ask with {_narrower(known)} for more of a part"
    )
    return {"notGiven": f"of {whole} bytes what goes beyond {how}; {more}", **answer}


def bounded(answer: JsonMapping) -> JsonMapping:
    """Return an answer as it is, or cut to `MOST_BYTES`, with a note of what was cut."""
    whole = _size(answer)
    if whole <= MOST_BYTES:
        return answer
    shorter: JsonObject = {**answer}
    for characters in _TEXTS:
        shorter = _with_texts(answer, characters)
        if _size(shorter) <= MOST_BYTES - _ROOM:
            return _said(shorter, f"of {whole} bytes the ends of texts of more than {characters} characters")
    what = f"of {whole} bytes the ends of texts of more than {_TEXTS[-1]} characters"
    longest = max(_lengths(shorter), default=0)
    while longest and _size(shorter) > MOST_BYTES - _ROOM:
        longest //= 2
        shorter = {name: _with_items_of(value, longest) for name, value in shorter.items()}
        what = f"{what.partition(', and')[0]}, and the middle of lists of more than {longest} items"
    large = [name for name, value in shorter.items() if _size({name: value}) > _ROOM] if not longest else []
    for name in large:
        del shorter[name]
        what = f"{what}, and all of {name}"
    return _said(shorter, what)


def _less(answer: JsonMapping, known: Collection[str]) -> Iterator[JsonObject]:
    """Yield what to ask for instead: a page of half as many items, and so on; or fewer messages of fewer sessions."""
    if "messages" in known:
        yield from _FEWER
    elif "cursor" in answer:
        items = max((len(value) for value in answer.values() if is_list(value)), default=0)
        while items > 1:
            items //= 2
            yield {"limit": items}


def _fewer(asked: JsonValue, most: int) -> int:
    return min(int(asked), most) if isinstance(asked, int | float) else most


def _narrower(known: Collection[str]) -> str:
    return " or ".join(
        f"`{name}`" for name in ("of", "run", "at", "from", "limit", "messages") if name in known
    )


def _said(answer: JsonMapping, what: str) -> JsonObject:
    before = answer.get("notGiven")
    said = what if before is None else f"{before}; {what}"
    return {"notGiven": said, **{name: value for name, value in answer.items() if name != "notGiven"}}


def _size(answer: JsonMapping) -> int:
    return len(msgspec.json.encode(answer))


def _with_texts(answer: JsonMapping, most: int) -> JsonObject:
    return {name: _with_texts_of(value, most) for name, value in answer.items()}


def _with_texts_of(value: JsonValue, most: int) -> JsonValue:
    if isinstance(value, str):
        return value if len(value) <= most else f"{value[:most]}… [{len(value) - most} characters cut]"
    if is_list(value):
        return [_with_texts_of(item, most) for item in value]
    if is_object(value):
        return {name: _with_texts_of(inner, most) for name, inner in value.items()}
    return value


def _with_items_of(value: JsonValue, most: int) -> JsonValue:
    """Return a value whose lists are cut to a number of items of their beginning and end."""
    if is_list(value):
        kept = value if len(value) <= most else [*value[: (most + 1) // 2], *value[len(value) - most // 2 :]]
        return [_with_items_of(item, most) for item in kept]
    if is_object(value):
        return {name: _with_items_of(inner, most) for name, inner in value.items()}
    return value


def _lengths(value: JsonValue) -> Iterator[int]:
    if is_list(value):
        yield len(value)
    for inner in value if is_list(value) else value.values() if is_object(value) else ():
        yield from _lengths(inner)
