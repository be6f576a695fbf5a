"""Finds the secrets in a text (HIST-5). Pure, and linear in the text's length whatever it contains.

Every pattern either begins at the edge of a run of characters that it then takes whole, or looks at a bounded
number of them; all quantifiers are possessive. So no text makes the search go over the same characters again.
"""

import re
from collections.abc import Iterator
from typing import Final

from intersession_actors.disclosure.secret_names import is_secret_name

Span = tuple[int, int]

_TOKENS: Final = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"(?:sk|pplx|xai|glpat|rk|pk)-[A-Za-z0-9_-]{8,}+"
    r"|(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{8,}+"
    r"|gh[opusr]_[A-Za-z0-9]{16,}+"
    r"|github_pat_[A-Za-z0-9_]{16,}+"
    r"|xox[a-z]-[A-Za-z0-9-]{8,}+"
    r"|xapp-[A-Za-z0-9-]{8,}+"
    r"|(?:gsk|npm|hf|r8|whsec|shpat|dop_v1)_[A-Za-z0-9_-]{10,}+"
    r"|AIza[A-Za-z0-9_-]{16,}+"
    r"|(?:AKIA|ASIA)[A-Z0-9]{12,}+"
    r"|ya29\.[A-Za-z0-9_-]{10,}+"
    r"|SG\.[A-Za-z0-9_-]{10,64}+\.[A-Za-z0-9_-]{10,}+"
    r"|AGE-SECRET-KEY-[A-Z0-9]{16,}+"
    r")"
)
_TELEGRAM: Final = re.compile(r"(?<![0-9])[0-9]{6,16}+:[A-Za-z0-9_-]{20,}+")
_JWT: Final = re.compile(r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]*+")
_BEARER: Final = re.compile(r"(?<![A-Za-z0-9])[Bb](?:earer|EARER)[ \t]{1,8}+([A-Za-z0-9._~+/=-]{8,}+)")
_URL: Final = re.compile(r"://[^\s/:@]{0,128}+:([^\s/@]{1,256}+)@")
# A flag and a blank, or a name, what may close its quotes and a sign; then a scheme and what opens the value's quotes.
_ASSIGNED: Final = re.compile(
    r"(?<![A-Za-z0-9_.-])(?:"
    r"(?P<flag>--?[A-Za-z][A-Za-z0-9_.-]*+)[ \t]{1,16}+(?!-)"
    r"|(?P<name>[A-Za-z0-9_.-]++)\\{0,8}+[\"'`]?[ \t]{0,16}+(?:=>|:=|[:=])\s{0,16}+"
    r")"
    r"(?P<quote>\\{0,8}+[\"'`]?)"
    r"(?:(?i:bearer|basic|digest|token|bot)[ \t]{1,8}+)?"
)
_BARE: Final = re.compile(r"[^\s\"'`\\&]++")
_QUOTED: Final = {
    '"': re.compile(r'(?:[^"\\\n]|\\[^\n])++'),
    "'": re.compile(r"(?:[^'\\\n]|\\[^\n])++"),
    "`": re.compile(r"[^`\n]++"),
    "\\": re.compile(r"[^\"'\\\n]++"),
}
_NO_VALUE: Final = frozenset({"null", "true", "false", "none", "undefined", "{", "[", "***"})
_PEM_BEGIN: Final = re.compile(r"-----BEGIN [A-Z0-9 ]{0,32}?PRIVATE KEY[A-Z ]{0,16}+-----")
_PEM_END: Final = "-----END "
_SURELY_RANDOM: Final = 18
_LONGEST_FLAG: Final = 64


def secret_spans(text: str) -> list[Span]:
    """Return where secrets stand, in order and without overlap."""
    found = sorted((*_pem(text), *_assigned(text), *_by_look(text)))
    merged: list[Span] = []
    for start, end in found:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _by_look(text: str) -> Iterator[Span]:
    for pattern in (_TOKENS, _TELEGRAM, _JWT):
        for found in pattern.finditer(text):
            yield found.span()
    for found in _URL.finditer(text):
        yield found.span(1)
    for found in _BEARER.finditer(text):
        # "a bearer instrument" is no header
        if len(found[1]) >= _SURELY_RANDOM or any(character.isdigit() for character in found[1]):
            yield found.span(1)


def _assigned(text: str) -> Iterator[Span]:
    """Find values of names that say so: variables, fields, headers, flags."""
    at = 0
    while found := _ASSIGNED.search(text, at):
        name = "flag" if found["name"] is None else "name"
        at = found.end(name)
        if not is_secret_name(found[name]):
            continue
        value = _QUOTED.get(found["quote"][:1], _BARE).match(text, found.end())
        if value is None or value[0].lower().rstrip(",;)}]") in _NO_VALUE:
            continue
        # What looks like a flag may be one, with a secret behind it.
        is_flag = value[0].startswith("-") and len(value[0]) <= _LONGEST_FLAG
        at = value.start() if is_flag else value.end()
        yield value.span()


def _pem(text: str) -> Iterator[Span]:
    """Find what stands between the lines of a private key; one that is cut off goes on to the end."""
    at = 0
    while begin := _PEM_BEGIN.search(text, at):
        end = text.find(_PEM_END, begin.end())
        if end < 0:
            end = len(text)
        if end > begin.end():
            yield begin.end(), end
        at = end
