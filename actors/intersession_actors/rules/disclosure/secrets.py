"""Finds the secrets in a text (HIST-5). Pure, and linear in the text's length whatever it contains.

Every pattern either begins at the edge of a run of characters that it then takes whole, or looks at a bounded
number of them; all quantifiers are possessive. So no text makes the search go over the same characters again.
"""

import re
from collections.abc import Iterator
from typing import Final

from intersession_actors.rules.disclosure.announced import announced
from intersession_actors.rules.disclosure.proven import proven
from intersession_actors.rules.disclosure.secret_names import counts_digits, is_secret_name, listed
from intersession_actors.rules.disclosure.structures import BARE, VALUES, is_code, is_reference, structured
from intersession_actors.rules.disclosure.token_rules import tokens_in
from intersession_events.basics.patterns import later

Span = tuple[int, int]

_TOKENS: Final = later(
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
    r"|dckr_(?:pat|oat)_[A-Za-z0-9_-]{16,}+"
    r"|NR(?:AK|II|JS|RA|BR|SP)-[A-Za-z0-9]{16,}+"
    r"|hv[sbr]\.[A-Za-z0-9_-]{20,}+"
    r"|(?:nfp|sbp|sntrys|rnd|pscale_tkn|pscale_pw|lsv2_pt|lsv2_sk|figd|pat_na1|glc|rpa|tvly|fc|sess|cfut|cfat|dp_pt|gitlabci)[_-][A-Za-z0-9_-]{20,}+"
    r"|tskey-(?:auth|api|client)-[A-Za-z0-9-]{16,}+"
    r"|EAA[A-Za-z0-9]{60,}+"
    r"|ATATT3[A-Za-z0-9_=-]{40,}+"
    r")"
)
_BEGINNINGS: Final = (
    "sk-", "pplx-", "xai-", "glpat-", "rk-", "pk-", "_live_", "_test_", "gho_", "ghp_", "ghu_", "ghs_", "ghr_", "github_pat_",
    "xox", "xapp-", "gsk_", "npm_", "hf_", "r8_", "whsec_", "shpat_", "dop_v1_", "AIza", "AKIA", "ASIA", "ya29.", "SG.",
    "AGE-SECRET-KEY-", "dckr_", "NRAK-", "NRII-", "NRJS-", "NRRA-", "NRBR-", "NRSP-", "hvs.", "hvb.", "hvr.", "nfp", "sbp",
    "sntrys", "rnd-", "rnd_", "pscale_", "lsv2_", "figd", "pat_na1", "glc-", "glc_", "rpa-", "rpa_", "tvly", "fc-", "fc_",
    "sess-", "sess_", "cfut", "cfat", "dp_pt", "gitlabci", "tskey-", "EAA", "ATATT3",
)  # fmt: skip
# What stands before each is looked at behind its first letters: a search for letters goes fast over what has none of them.
_TELEGRAM: Final = later(r"[0-9](?<![0-9]{2})[0-9]{5,15}+:[A-Za-z0-9_-]{20,}+")
_JWT: Final = later(r"eyJ(?<![A-Za-z0-9_-]eyJ)[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]{8,}+\.[A-Za-z0-9_-]*+")
_BEARER: Final = later(r"(?<![A-Za-z0-9])[Bb](?:earer|EARER)[ \t]{1,8}+([A-Za-z0-9._~+/=-]{8,}+)")
# The last @ before the path ends the password, which may have others.
_USER_INFO: Final = later(r"://[^\s/:@\"'`<>]{0,128}+:(?![0-9]{1,5}+/)(?P<value>[^\s\"'`<>@]{1,256}+)@")
_STORE: Final = later(
    r"(?<![A-Za-z])(?:rediss?|valkeys?|amqps?|mqtts?|postgres(?:ql)?|mysql|mariadb|mongodb(?:\+srv)?|cockroachdb|clickhouse|ldaps?|smtps?"
    r"|s?ftps?|ssh|nats|kafka|memcached|couchbases?|neo4j(?:\+s)?|bolt)(?:\+[a-z0-9]{1,16}+)?\Z",
    re.IGNORECASE,
)
_LONGEST_SCHEME: Final = 32
_HOOK: Final = later(
    r"(?:discord(?:app)?\.com/api/(?:v[0-9]{1,2}+/)?webhooks/[0-9]{15,20}+|hooks\.slack\.com/(?:services|workflows|triggers)/[A-Z0-9]{6,16}+"
    r"|webhook\.office\.com/webhookb2|maker\.ifttt\.com/trigger/[A-Za-z0-9_-]{1,64}+/(?:json/)?with/key"
    r"|hooks\.zapier\.com/hooks/catch/[0-9]{1,12}+|open\.feishu\.cn/open-apis/bot/v2/hook|open\.larksuite\.com/open-apis/bot/v2/hook"
    r"|api\.pushover\.net/1|events\.pagerduty\.com/integration|hook\.(?:eu|us)[0-9]{1,2}+\.make\.com)"
    r"/(?P<value>[A-Za-z0-9_@./-]{12,512}+)",
    re.IGNORECASE,
)
"""A hook's address is enough to post there: its last part is the password."""
_HOSTS_OF_HOOKS: Final = (
    "discord", "hooks.slack", "webhook.office", "maker.ifttt", "hooks.zapier", "open.feishu", "open.larksuite", "api.pushover",
    "events.pagerduty", ".make.com",
)  # fmt: skip
_URL: Final = later(r"://[^\s/:@]{0,128}+:([^\s/\"'`<>]{1,256}?)@(?=[^\s/@\"'`<>]{0,256}+(?:[\s/\"'`<>]|$))")
# A flag and a blank, or a name, what may close its quotes and a sign; then a scheme and what opens the value's quotes.
_ASSIGNED: Final = later(
    r"(?<![A-Za-z0-9_.-])(?:"
    r"(?P<flag>--?[A-Za-z][A-Za-z0-9_.-]*+)[ \t]{1,16}+(?!-)"
    r"|(?P<name>[A-Za-z0-9_.-]++)\\{0,8}+[\"'`]?[ \t]{0,16}+(?:=>|:=|[:=](?!=))\s{0,16}+"
    r")"
    r"(?:[bBuUrR]{1,2}+(?=[\"']))?(?P<quote>\\{0,8}+[\"'`]?)"
    r"(?:(?i:bearer|basic|digest|token|bot)[ \t]{1,8}+)?"
)
_NO_VALUE: Final = listed("null nil true false none undefined { [ *** | > yes no on off")
_OF_A_PAGE: Final = frozenset({"same-origin", "include", "omit"})
"""What `credentials` are in a request of a page."""

_SAID: Final = listed(
    """
    string str int bool optional required unset bearer basic digest oauth oauth2 jwt files compat systemd
    prompt stdin flag flags option argument parameter variable field header is or and not again wrong
    missing expired invalid incorrect empty changed ok unknown
    """
)
"""Kinds of secrets and what is said of one. They count where nothing but a colon or a blank stands before them."""

_PEM_BEGIN: Final = later(r"-----BEGIN [A-Z0-9 ]{0,32}?PRIVATE KEY[A-Z ]{0,16}+-----")
_PEM_END: Final = "-----END "
_FEWEST: Final = len("pw=a")
"""No text that gives a secret away has fewer characters."""
_SURELY_RANDOM: Final = 18
_PART: Final = 8
_LONG_PART: Final = 20
_LONGEST_NAME: Final = 64
_COUNTED: Final = 4
"""A number of up to this many digits is a count, as in "pass: 34"."""
_MAY_NAME: Final = later(r"[-=:]")


_NAME: Final = later(
    r"(?P<quote>\\{0,8}+[\"'])(?P<name>[A-Za-z][A-Za-z0-9_.-]{1,127}+)(?P=quote)\s{0,16}+:\s{0,16}+(?=[\[{])"
)
_TOKEN: Final = later(r"[\[{]|[\]}]|\\{0,8}+[\"']|-?[0-9]{4,64}+|[^\[\]{}\"'\\0-9-]++|.", re.DOTALL)
_FARTHEST: Final = 4_096


def nested(text: str) -> Iterator[Span]:
    """Yield the spans of secrets inside values with a telling name."""
    at = 0
    while found := _NAME.search(text, at):
        at = found.end()
        if is_secret_name(found["name"]):
            spans, at = _inside(text, at, found["quote"], found["name"])
            yield from spans


def _inside(text: str, at: int, quote: str, name: str) -> tuple[list[Span], int]:
    """Return the strings and numbers up to where the list or the object ends, and where that is; without keys."""
    spans: list[Span] = []
    opened, end = "", min(len(text), at + _FARTHEST)
    while at < end:
        part = _TOKEN.match(text, at)
        if part is None:
            break
        at = part.end()
        if part[0] in {"[", "{"}:
            opened += part[0]
        elif part[0] in {"]", "}"}:
            opened = opened[:-1]
            if not opened:
                break
        elif part[0] == quote:
            last = _closing(text, at, quote)
            is_key = text[last + len(quote) : last + len(quote) + 16].lstrip().startswith(":")
            if not is_key and _may_be(text[at:last], in_object="{" in opened):
                spans.append((at, last))
            at = last + len(quote)
        elif part[0].lstrip("-").isdigit() and counts_digits(name, part[0]):
            spans.append(part.span())
    return spans, at


def _may_be(value: str, *, in_object: bool) -> bool:
    """Whether a value is a secret, and not a description of one: a field of an object may give its type or length."""
    if not value or is_reference(value):
        return False
    return not in_object or (
        " " not in value and not (value.isalpha() and (value.islower() or value.istitle()))
    )


def _closing(text: str, at: int, quote: str) -> int:
    """Return where a string ends: before the next quote of its kind that is not escaped; else where the text does."""
    while (last := text.find(quote, at)) >= 0:
        before = last
        while len(quote) == 1 and before > at and text[before - 1] == "\\":
            before -= 1
        if (last - before) % 2 == 0:
            return last
        at = last + 1
    return len(text)


def secret_spans(text: str) -> list[Span]:
    """Return the spans of secrets, in order and without overlap."""
    if len(text) < _FEWEST:
        return []
    found = sorted(
        (
            *_pem(text),
            *_assigned(text),
            *_by_look(text),
            *structured(text),
            *announced(text),
            *nested(text),
            *proven(text),
            *tokens_in(text),
        )
    )
    merged: list[Span] = []
    for start, end in found:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _by_look(text: str) -> Iterator[Span]:
    if any(map(text.__contains__, _BEGINNINGS)):
        for found in _TOKENS.finditer(text):
            if _is_random(found[0]):
                yield found.span()
    for sign, pattern in ((":", _TELEGRAM), ("eyJ", _JWT)):
        if sign in text:
            yield from (found.span() for found in pattern.finditer(text))
    if "://" in text:
        yield from (found.span(1) for found in _URL.finditer(text))
        yield from _passwords_of_stores(text)
    lower = text.lower()
    if any(map(lower.__contains__, _HOSTS_OF_HOOKS)):
        yield from (found.span("value") for found in _HOOK.finditer(text))
    for found in _BEARER.finditer(text) if "earer" in text or "EARER" in text else ():
        # "a bearer instrument" is no header
        if len(found[1]) >= _SURELY_RANDOM or any(character.isdigit() for character in found[1]):
            yield found.span(1)


def _passwords_of_stores(text: str) -> Iterator[Span]:
    at = 0
    while found := _USER_INFO.search(text, at):
        # After the scheme, the address of something else may contain a store's.
        at = found.start() + len("://")
        # One character more, for what may not stand before it.
        before = text[max(0, found.start() - _LONGEST_SCHEME - 1) : found.start()]
        if _STORE.search(before):
            at = found.end()
            yield found.span("value")


def _is_random(token: str) -> bool:
    """Whether something that begins as tokens do is one: `sk-learn-pipelines` and `npm_config_registry` are words."""
    parts = re.split(r"[-_.]", token)
    parts = parts[1:] or parts
    return any(len(part) >= _LONG_PART or (len(part) >= _PART and _is_mixed(part)) for part in parts)


def _is_mixed(part: str) -> bool:
    """Whether digits or capitals stand where words have none."""
    return not part.isalpha() or not (part.islower() or part.istitle())


def says_nothing(name: str, value: str) -> bool:
    """Whether the value under a secret's name is not a secret: it is empty, a reference, or a mode."""
    bare = value.rstrip(",;)}]")
    if (
        bare.lower() in _NO_VALUE
        or is_reference(value.rstrip(",;"))
        or (bare.lower() in _OF_A_PAGE and "credential" in name.lower())
    ):
        return True
    if name.lower() in {"pass", "token"} and bare.isdigit() and len(bare) <= _COUNTED:
        return True
    return name.lower() in {"pwd", "oldpwd"} and value.startswith(("/", "~", "$", ".", "C:"))


def _is_said(value: str, *, assigned: bool) -> bool:
    """Whether a value without quotes is an expression, or a word that is said of a secret where nothing is assigned."""
    return is_code(value) or (not assigned and value.lower().rstrip(",;.)}]") in _SAID)


def _assigned(text: str) -> Iterator[Span]:
    """Find values of names that say so: variables, fields, headers, flags."""
    at = 0
    while found := _ASSIGNED.search(text, at):
        name = "flag" if found["name"] is None else "name"
        at = found.end(name)
        if not is_secret_name(found[name]):
            continue
        value = VALUES.get(found["quote"][:1], BARE).match(text, found.end())
        if value is None or says_nothing(found[name], value[0]):
            continue
        if not found["quote"] and _is_said(value[0], assigned="=" in text[at : found.end()]):
            continue
        # What looks like a flag or a name may be one, with a secret behind it: a name without a value comes before another.
        last = max(value.start(), value.end() - _LONGEST_NAME)
        at = last if _MAY_NAME.search(text, last, value.end()) else value.end()
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
