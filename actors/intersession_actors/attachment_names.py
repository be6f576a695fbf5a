"""Which name a file for a sub-agent may have: one plain file name on every system, or none. Pure (ATT-2).

Nothing is repaired or decoded: `%2e` is three characters of a name.
"""

import re
import unicodedata
from typing import Final

MOST_NAME_BYTES: Final = 255

MANIFEST: Final = ".manifest.json"
"""The file that lists the others; the last one to be written."""

_RESERVED: Final = frozenset({MANIFEST, "manifest.json"})
_FORBIDDEN: Final = frozenset('/\\:<>"|?*')
# Windows takes these for devices, whatever follows a dot, and reads the superscript digits as digits.
_DEVICE: Final = re.compile(r"(con|prn|aux|nul|clock\$|conin\$|conout\$|(com|lpt)[0-9¹²³])", re.IGNORECASE)


def name_problem(name: str) -> str | None:
    """Return what is wrong with a file's name, or None."""
    if not name.strip():
        return "it is blank"
    if len(name.encode("utf-8", "surrogatepass")) > MOST_NAME_BYTES:
        return f"it is longer than {MOST_NAME_BYTES} bytes"
    if not name.isprintable():
        return "it has characters that can't be seen (controls, formatting, unassigned)"
    if _FORBIDDEN & set(name):
        return "it has one of " + " ".join(sorted(_FORBIDDEN))
    if name in {".", ".."} or name[-1] in ". " or name[0] == " ":
        return "it begins or ends with a space, or ends with a dot"
    if _DEVICE.fullmatch(name.partition(".")[0].rstrip(" ")):
        return "it is the name of a device on Windows"
    if one_name(name) in _RESERVED:
        return f"{MANIFEST} and manifest.json are reserved"
    return None


def one_name(name: str) -> str:
    """Return what two names have in common that are one file on some system: case and composition folded."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
