"""JSON documents as they are printed: inert in a terminal."""

import json
import re
from typing import Final

_UNUSUAL: Final = re.compile(r"[^ -~\n]+")


def json_text(value: object, encoding: str | None, *, indent: int | None = 2) -> str:
    """Return a JSON document that is inert in a terminal: what is not printable is escaped.

    Nothing but ASCII goes to what is not UTF-8. Without an indent it is one line.
    """
    text = _compact_or_indented(value, ensure_ascii=not _is_utf8(encoding), indent=indent)
    return text if text.replace("\n", "").isprintable() else _UNUSUAL.sub(_escaped, text)


def _compact_or_indented(value: object, *, ensure_ascii: bool, indent: int | None) -> str:
    text = json.dumps(value, ensure_ascii=ensure_ascii)
    if indent is None:
        return text
    import msgspec  # noqa: PLC0415 - help prints no document

    try:
        return msgspec.json.format(text, indent=indent)
    except (UnicodeEncodeError, msgspec.DecodeError):
        # Half a pair of surrogates, or NaN. `json` has a way with them, in Python and three times as slow.
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent)


def _escaped(found: re.Match[str]) -> str:
    return "".join(
        character if character.isprintable() else json.dumps(character)[1:-1] for character in found.group()
    )


def _is_utf8(encoding: str | None) -> bool:
    return (encoding or "").lower().replace("-", "").replace("_", "") == "utf8"
