"""Translates gitleaks' rules for tokens (Go's RE2) into ours (Python's `re`): `python tests/support/pages/token_rules.py --write`.

The source is gitleaks' own `config/gitleaks.toml` (MIT, `tests/data/gitleaks/`). To take a newer one, put it there, change
`VERSION`, write, and look at the rates on `docs/reference/redaction.md`.
"""

import json
import re
import sys
import tomllib
from typing import Any, Final

from support.paths import DATA, ROOT

VERSION: Final = "8.30.1"
SOURCE: Final = DATA / "gitleaks" / f"gitleaks-{VERSION}.toml"
LICENCE: Final = DATA / "gitleaks" / "LICENSE"
TARGET: Final = ROOT / "actors" / "intersession_actors" / "rules" / "disclosure" / "token_rules.json"
COMMAND: Final = "python tests/support/pages/token_rules.py --write"

LEFT_OUT: Final = {
    "curl-auth-header": "headers are found everywhere, `structures.py`",
    "curl-auth-user": "`structures.py`, without going back over what it took",
    "freemius-secret-key": "an assignment like any other",
    "generic-api-key": "assignments to names that say so, `secrets.py`",
    "hashicorp-tf-password": "an assignment like any other",
    "jwt": "`secrets.py`",
    "jwt-base64": "a JWT inside base64 inside a text is not looked for",
    "kubernetes-secret-yaml": "`structures.py` has YAML",
    "nuget-config-password": "`structures.py` has XML",
    "pkcs12-file": "a file's name",
    "private-key": "`secrets.py`, also where it is cut off",
    "sidekiq-sensitive-url": "`secrets.py` has URLs",
}
"""Rules that are not translated, and why. Neither are those of ids and public keys, which are no secrets."""

PUBLIC: Final = re.compile(r"client-id$|public-key$|pub-api-key$|-key-id$")
LONGEST: Final = 400
"""Where a repetition has no end. What is found is extended to the end of its word anyway."""

KEYWORDS: Final = {
    "airtable-personnal-access-token": ["pat"],
    "facebook-access-token": ["|", "%"],
    "sourcegraph-access-token": ["sgp_"],
    "intra42-client-secret": ["s-s4t2ud-", "s-s4t2af-"],
    "cloudflare-origin-ca-key": ["v1.0-"],
}
"""Keywords of ours, where gitleaks looks for the name of the service anywhere in a file."""

SPLIT: Final = {
    rule["id"]: [
        "(?i)" + rule["regex"].partition(r"|\b")[0].removeprefix("(?i)"),
        r"\b" + rule["regex"].partition(r"|\b")[2],
    ]
    for rule in tomllib.loads(SOURCE.read_text(encoding="utf-8"))["rules"]
    if rule["id"] == "atlassian-api-token"
}
"""Rules for two looks of a token, one of which is assigned."""

_ASSIGNED: Final = "(?:=|>|:{1,3}="
_END: Final = re.compile(r"\(\?:\[\\x60'\"\\s;\]\|\\\\\[nr\]\|\$(?:\|\\b)?\)|\(\?:\[\^[^\]]*\]\|\\z\)")
_BEFORE: Final = re.compile(r"^(\(\?i\))?\[\\w\.-\]\{0,50\}\?")
_OPEN: Final = re.compile(r"(\{[0-9]+),\}")


def translated(pattern: str) -> str:
    """Return a pattern as Python takes it, and bounded: so many characters are looked at from any place, and no more."""
    pattern = _END.sub(r"(?![\\w-])", pattern)
    pattern = _BEFORE.sub(lambda found: found[1] or "", pattern)
    pattern = pattern.replace(r"(?i:[\w.-]{0,50}?", "(?i:").replace("[[:alnum:]]", "[A-Za-z0-9]")
    pattern = _OPEN.sub(rf"\1,{LONGEST}}}", pattern)
    pattern = re.sub(r"(?<=[\]\)dw])\+(?![+?])", f"{{1,{LONGEST}}}", pattern)
    pattern = re.sub(r"(?<=\])\*(?![+?])", f"{{0,{LONGEST}}}", pattern)
    pattern = re.sub(r",([0-9]{4,})\}", f",{LONGEST}}}", pattern)
    return _scoped(pattern)


def _scoped(pattern: str) -> str:
    """Give an inline `(?i)` a group of its own up to the end of the group that it stands in: Python has no other."""
    at = pattern.find("(?i)")
    if at < 0:
        return pattern
    depth, end, in_class = 0, len(pattern), False
    index = at + 4
    while index < len(pattern):
        match pattern[index]:
            case "\\":
                index += 1
            case "[" if not in_class:
                in_class = True
            case "]" if in_class:
                in_class = False
            case "(" if not in_class:
                depth += 1
            case ")" if not in_class:
                if depth == 0:
                    end = index
                    break
                depth -= 1
            case _:
                pass
        index += 1
    return f"{pattern[:at]}(?i:{_scoped(pattern[at + 4 : end])}){pattern[end:]}"


def rules() -> list[dict[str, Any]]:
    """Return all rules that are translated."""
    found: list[dict[str, Any]] = []
    for rule in tomllib.loads(SOURCE.read_text(encoding="utf-8"))["rules"]:
        if rule["id"] in LEFT_OUT or PUBLIC.search(rule["id"]):
            continue
        keywords = KEYWORDS.get(rule["id"], rule["keywords"])
        for part in SPLIT.get(rule["id"], [rule["regex"]]):
            pattern = translated(part)
            re.compile(pattern, re.ASCII)
            entry = {"id": rule["id"], "keywords": keywords, "pattern": pattern}
            entry |= {"entropy": rule["entropy"]} if "entropy" in rule else {}
            found.append(entry | ({"assigned": True} if _ASSIGNED in pattern else {}))
    return found


def current_file() -> str:
    """Return what the file has to be."""
    content = {
        "provenance": f"made of config/gitleaks.toml of gitleaks {VERSION} (https://github.com/gitleaks/gitleaks) by `{COMMAND}`",
        "licence": LICENCE.read_text(encoding="utf-8"),
        "rules": rules(),
    }
    return json.dumps(content, indent=1) + "\n"


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        TARGET.write_text(current_file(), encoding="utf-8")
    elif TARGET.read_text(encoding="utf-8") != current_file():
        sys.exit(f"{TARGET} is not made of {SOURCE}; run: {COMMAND}")
