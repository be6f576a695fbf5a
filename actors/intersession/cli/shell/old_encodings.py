"""Shows the signs that we draw with in ASCII where a terminal's encoding has none of them; other characters become escapes."""

import codecs
from collections.abc import Mapping
from typing import Final

LEGIBLE: Final = "intersession.legible"
"""The name of this error handler, for `errors` of a file."""

_SIGNS: Final[Mapping[str, str]] = {
    "…": "~", "→": ">", "←": "<", "⏎": "/", "≠": "!", "·": ".", "•": "*", "✗": "x", "✓": "v", "⚙": "%", "■": "#",
    "╭": "+", "╮": "+", "╰": "+", "╯": "+", "▔": "-", "▁": "_", "▂": "_", "▃": "_", "▄": "_", "▅": "#", "▆": "#",
    "▇": "#", "█": "#", "▊": "|", "▌": "|", "▍": "|", "▎": "|",
    "─": "-", "│": "|", "├": "+", "┤": "+", "┊": ":", "⋮": ":", "▶": ">", "◀": "<",
}  # fmt: skip
"""Each is as wide as what stands for it, so that columns and lanes stay where they are."""


def _legible(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    letters = error.object[error.start : error.end]
    told = (_SIGNS.get(letter) or letter.encode("ascii", "backslashreplace").decode() for letter in letters)
    return "".join(told), error.end


codecs.register_error(LEGIBLE, _legible)
