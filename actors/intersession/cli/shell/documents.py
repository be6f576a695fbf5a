"""JSON documents as they are printed: inert in a terminal."""

import json
import re
from typing import Final, cast

_UNUSUAL: Final = re.compile(r"[^ -~\n]+")
_DELETE: Final = "\x7f"
"""The one character of ASCII that a terminal acts on and JSON does not escape."""


def json_text(value: object, encoding: str | None, *, indent: int | None = 2) -> str:
    """Return a JSON document that is inert in a terminal: what is not printable is escaped.

    Nothing but ASCII goes to what is not UTF-8. Without an indent it is one line. Structs may stand in it: an object with a long
    tuple of them takes a third of the time that their plain JSON would.
    """
    ensure_ascii = not _is_utf8(encoding)
    text = _one_line(value, ensure_ascii=ensure_ascii)
    inert = _DELETE not in text if text.isascii() else text.isprintable()
    if indent is not None:
        text = _indented(text, value, ensure_ascii=ensure_ascii, indent=indent)
    return text if inert else _UNUSUAL.sub(_escaped, text)


def _one_line(value: object, *, ensure_ascii: bool) -> str:
    document = _object_in(value)
    if not ensure_ascii and any(map(_are_structs, document.values())):
        import msgspec  # noqa: PLC0415 - help prints no document

        try:
            parts = {
                name: each if _are_structs(each) else msgspec.Raw(_plain(each).encode())
                for name, each in document.items()
            }
            return msgspec.json.format(msgspec.json.encode(parts), indent=0).decode()
        except UnicodeEncodeError:
            pass  # half a pair of surrogates
    return _plain(value, ensure_ascii=ensure_ascii)


def _object_in(value: object) -> dict[str, object]:
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def _are_structs(value: object) -> bool:
    if not isinstance(value, tuple):
        return False
    each = cast("tuple[object, ...]", value)
    return bool(each) and hasattr(each[0], "__struct_fields__")


def _plain(value: object, *, ensure_ascii: bool = False, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, default=_as_plain)


def _as_plain(value: object) -> object:
    import msgspec  # noqa: PLC0415 - the same

    return msgspec.to_builtins(value)


def _indented(text: str, value: object, *, ensure_ascii: bool, indent: int) -> str:
    import msgspec  # noqa: PLC0415 - the same

    try:
        return msgspec.json.format(text, indent=indent)
    except (UnicodeEncodeError, msgspec.DecodeError):
        # Half a pair of surrogates, or NaN. `json` has a way with them, in Python and three times as slow.
        return _plain(value, ensure_ascii=ensure_ascii, indent=indent)


def _escaped(found: re.Match[str]) -> str:
    return "".join(
        character if character.isprintable() else json.dumps(character)[1:-1] for character in found.group()
    )


def _is_utf8(encoding: str | None) -> bool:
    return (encoding or "").lower().replace("-", "").replace("_", "") == "utf8"
