"""Finds tokens by their look, with the rules in `token_rules.json`, which come from gitleaks (MIT, the notice is in the file). Pure.

As in gitleaks, a rule is only tried on a text that has one of its keywords, and what it finds has to look random enough. No
rule looks at more than a bounded number of characters from any place.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Final

import msgspec

from intersession_events.facts import ready

Span = tuple[int, int]

# Where a rule ends in the middle of a word, the rest of the word is the token's, too.
# No token is shorter.
_WORD: Final = re.compile(r"(?<!\S)\S{16,}+")
# What is assigned, and how far away the name of the service may be that it is assigned to (`jira_key = …`).
_VALUE: Final = re.compile(r"[=>:,|][\s\"'`=]{0,5}+[A-Za-z0-9_.~=-]{15,}+")
_AWAY: Final = 48
_LOOKED_AT: Final = 400
_REST: Final = re.compile(r"[A-Za-z0-9_+/=~-]*+")


class TokenRule(msgspec.Struct, frozen=True):
    """The look of one kind of token. `entropy` is in bits a character, 0 for any.

    The keywords are parts of the token; where it is `assigned` they are before it, and nothing else says whose it is.
    """

    id: str
    keywords: tuple[str, ...]
    pattern: str
    entropy: float = 0.0
    assigned: bool = False


@ready
class _File(msgspec.Struct):
    rules: list[TokenRule]


@cache
def token_rules() -> tuple[TokenRule, ...]:
    """Return all rules."""
    read = files(__package__ or "").joinpath("token_rules.json").read_bytes()
    return tuple(msgspec.json.decode(read, type=_File).rules)


@cache
def _by_keyword(*, assigned: bool) -> tuple[tuple[str, tuple[TokenRule, ...]], ...]:
    found: dict[str, list[TokenRule]] = {}
    for rule in token_rules():
        for keyword in rule.keywords if rule.assigned is assigned else ():
            found.setdefault(keyword, []).append(rule)
    return tuple((keyword, tuple(rules)) for keyword, rules in found.items())


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)


def tokens_in(text: str) -> Iterator[Span]:
    """Yield the spans of tokens."""
    words = "\n".join(_WORD.findall(text)).lower()
    values = "\n".join(_before_values(text)).lower()
    tried = {
        rule
        for where, assigned in ((words, False), (values, True))
        if where
        for keyword, rules in _by_keyword(assigned=assigned)
        if keyword in where
        for rule in rules
    }
    for rule in tried:
        yield from _found(rule, text)


def _found(rule: TokenRule, text: str) -> Iterator[Span]:
    pattern, at = _compiled(rule.pattern), 0
    while found := pattern.search(text, at):
        group = next((number for number, value in enumerate(found.groups(), 1) if value), 0)
        start, end = found.span(group)
        rest = _REST.match(text, end)
        at = end = end if rest is None else rest.end()
        if not rule.entropy or _entropy(text[start : min(end, start + _LOOKED_AT)]) > rule.entropy:
            yield start, end


def _before_values(text: str) -> Iterator[str]:
    """Yield the text before each long assigned value: most texts have none."""
    at = 0
    for found in _VALUE.finditer(text):
        yield text[max(at, found.start() - _AWAY) : found.start()]
        at = found.end()


def _entropy(text: str) -> float:
    """Return how many bits a character of a text carries by itself (Shannon)."""
    size = len(text)
    return -sum(count / size * math.log2(count / size) for count in Counter(text).values())
