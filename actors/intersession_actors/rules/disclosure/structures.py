"""Finds secrets by the form around them: pairs, lists of arguments, cookies, YAML, XML, command lines (HIST-5). Pure.

Linear like `secrets.py`: every repetition takes what it takes for good, and is bounded where it may begin at many places.
"""

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Final

from intersession_actors.rules.disclosure.secret_names import is_secret_name
from intersession_events.basics.patterns import later
from intersession_events.basics.plain_json import JsonList, JsonMapping

Span = tuple[int, int]

_Q: Final = r"\\{0,8}+[\"'`]"
"""A quote, perhaps escaped."""

VALUES: Final = {
    '"': later(r'(?:[^"\\\n]|\\[^\n])++'),
    "'": later(r"(?:[^'\\\n]|\\[^\n])++"),
    "`": later(r"[^`\n]++"),
    "\\": later(r"[^\"'\\\n]++"),
}
"""What a value is, by what opens it."""

BARE: Final = later(r"[^\s\"'`\\&]++")
_SCHEME: Final = r"(?:(?i:bearer|basic|digest|token|bot)[ \t]{1,8}+)?"
_REFERENCE: Final = later(
    r"\$[A-Z_][A-Z0-9_]{0,128}+|\$\{[A-Za-z_][^}]{0,128}+\}|\$\{\{.{0,128}+|\{\{.{0,128}+|%[A-Za-z_]{1,64}+%|%[sdvr]|\$\(.{0,128}+"
    r"|<[A-Za-z][A-Za-z0-9 _.-]{0,64}+>|\*{3,64}+|[xX]{4,64}+|\.{3}|…"
)
_CODE: Final = later(
    r"(?:await|new|yield|async)|(?:process\.env|os\.environ|os\.getenv|getenv|import\.meta\.env|secrets|vars|env|self|settings|config|args)[.(\[].{0,256}+"
    r"|[a-z_]{1,64}+(?:\.[a-z_]{1,64}+){0,8}+[\[(].{0,256}+"
)
_NAMED: Final = later(
    rf"(?<![A-Za-z0-9_])(?:name|key|header|variable)(?:{_Q})?[ \t]{{0,16}}+[:=][ \t]{{0,16}}+(?:{_Q})?"
    rf"(?P<name>[A-Za-z0-9_.-]{{1,128}}+)(?:{_Q})?[ \t]{{0,16}}+,?\s{{0,64}}+(?:{_Q})?value(?:{_Q})?"
    rf"[ \t]{{0,16}}+[:=][ \t]{{0,16}}+(?P<quote>\\{{0,8}}+[\"'`]?){_SCHEME}",
    re.IGNORECASE,
)
_PAIR: Final = later(
    rf"{_Q}(?P<name>--?[A-Za-z][A-Za-z0-9_.-]{{0,127}}+|[A-Za-z][A-Za-z0-9-]{{0,127}}+){_Q}\s{{0,16}}+[,:]?\s{{0,16}}+"
    rf"(?P<quote>{_Q}){_SCHEME}"
)
# `setenv("TOKEN", "…")`, `os.environ["TOKEN"] = "…"`: what is set is no list of names.
_SET: Final = later(
    rf"(?:(?<![A-Za-z0-9])(?:set|setx|hset|setenv|putenv|put|set_?default|set_?item|set_?secret|put_?secret|set_?property"
    rf"|set_?value|define)\(\s{{0,8}}+{_Q}(?P<name>[A-Za-z][A-Za-z0-9_.-]{{0,127}}+){_Q}\s{{0,8}}+,"
    rf"|\[\s{{0,8}}+{_Q}(?P<key>[A-Za-z][A-Za-z0-9_.-]{{0,127}}+){_Q}\s{{0,8}}+\]\s{{0,8}}+=(?!=))\s{{0,8}}+"
    rf"[bBuUrR]{{0,2}}+(?P<quote>{_Q})",
    re.IGNORECASE,
)
_SET_BY_COMMAND: Final = later(
    r"(?<![A-Za-z0-9_-])(?:configure|config|secrets?|env|variable|parameter)[ \t:]{1,4}+set[ \t]{1,8}+"
    rf"(?P<name>[A-Za-z0-9_.:/-]{{1,128}}+)[ \t]{{1,8}}+(?P<quote>{_Q}|)(?!-)",
    re.IGNORECASE,
)
_USER_AND: Final = later(
    rf"(?<![A-Za-z0-9@])(?:(?:http_?)?basic_?auth|http(?:digest|proxy)auth|auth|credentials)\s{{0,4}}+[=:]?\s{{0,4}}+[(\[]\s{{0,8}}+"
    rf"{_Q}[^\s\"'`,]{{1,128}}+{_Q}\s{{0,8}}+,\s{{0,8}}+(?P<quote>{_Q})",
    re.IGNORECASE,
)
_IN_OTHER_LANGUAGES: Final = later(
    r"(?<!\w)(?:passwort|kennwort|contraseña|mot de passe|senha|wachtwoord|hasło|heslo|lösenord|пароль|密码|密碼|口令|パスワード|비밀번호)"
    r"[ \t]{0,8}+[:=\uff1a][ \t]{0,8}+(?P<value>[^\s\"'`]{4,256}+)",
    re.IGNORECASE,
)
_OTHER_WORDS: Final = ("passwort", "kennwort", "mot de passe", "senha", "wachtwoord", "heslo")
"""Those of them that have no letters beyond ASCII."""

_HEADER_NAME: Final = later(r"[A-Z][a-z]{1,32}+(?:-[A-Z][a-z]{1,32}+){0,6}+")
# What is followed by a colon is a name itself: `{"name": "Authorization", "value": …}`.
_IS_NAME: Final = later(rf"{_Q}\s{{0,8}}+:")
_COOKIES: Final = later(
    rf"(?<![A-Za-z0-9_-])(?:set-)?cookie(?:{_Q})?[ \t]{{0,8}}+[:=,][ \t]{{0,8}}+(?:{_Q})?(?P<all>[^\r\n\"'`\\]{{3,4096}}+)",
    re.IGNORECASE,
)
_COOKIE: Final = later(r"(?P<name>[^=;\s]{1,128}+)=(?P<value>[^;\s]++)")
COOKIE_HEADERS: Final = frozenset({"cookie", "set-cookie"})
_ATTRIBUTES: Final = frozenset({"path", "domain", "expires", "max-age", "samesite", "priority"})
_BLOCK: Final = later(
    r"^(?P<indent>[ \t]{0,64}+)(?:- )?[\"']?(?P<name>[A-Za-z0-9_.-]{1,128}+)[\"']?:[ \t]{1,16}+[|>][+0-9-]{0,3}+[ \t]{0,16}+\n",
    re.MULTILINE,
)
_LINE: Final = later(r"(?P<indent>[ \t]*+)(?P<text>[^\n]*+)\n?")
_XML: Final = later(
    r"<(?P<name>[A-Za-z][A-Za-z0-9_.:-]{0,127}+)(?:[ \t][^<>\n]{0,256}+)?>(?P<value>[^<>\n]{1,1024}+)</"
)
_NETRC: Final = later(
    r"\b(?:machine\s{1,8}+\S{1,256}+|default)\s{1,8}+login\s{1,8}+\S{1,128}+\s{1,8}+password\s{1,8}+(?P<value>[^\s\"'`]{1,256}+)"
)
_DSN: Final = later(
    r"(?<![^\s\"'`=])[A-Za-z0-9_.-]{1,64}+:(?P<value>[^\s:@/\"'`]{1,256}+)@(?:tcp|unix|udp)\("
)
_SIGNED: Final = later(
    r"(?<![A-Za-z0-9_-])(?i:sig|signature|x-amz-signature|x-goog-signature|x-amz-security-token)=(?P<value>[A-Za-z0-9%+/=._-]{12,2048}+)"
)
_COMMAND: Final = later(
    r"(?<![A-Za-z0-9_.-])(?P<name>curl|wget|https?|xh|sshpass|redis-cli|mysql(?:dump|admin|import)?|mariadb(?:-dump)?"
    r"|(?:docker|podman|helm registry|az|oc)[\s\"',]{1,6}+login|mongo(?:sh|dump|restore|export|import)?|twine"
    r"|ldap(?:search|add|modify|delete|passwd|whoami)|sqlcmd|bcp|unzip|zip|smbclient|openssl|vault[\s\"',]{1,6}+login)(?=[\s\"',])"
)
_COMMAND_LENGTH: Final = 2_000
_GAP: Final = r"[\s\"'`,=\\]{0,8}+"
_HTTP: Final = ("curl", "wget", "http", "https", "xh")
_USER: Final = later(
    rf"(?<![A-Za-z0-9_-])(?:-[a-zA-Z]{{0,6}}?[uUa]|--user|--proxy-user|--auth){_GAP}[^\s\"'`:,]{{0,128}}+:(?!//)(?P<value>[^\s\"'`,]{{1,256}}+)"
)
_ATTACHED: Final = later(r"(?<![A-Za-z0-9_-])-p[\"']?(?P<value>[^\s\"'`,]{1,256}+)")


def _after(flag: str) -> re.Pattern[str]:
    return later(rf"(?<![A-Za-z0-9_-]){flag}{_GAP}(?P<value>[^\s\"'`,-][^\s\"'`,]{{0,256}}+)")


_AFTER_P: Final = _after("-p")
_TAKES: Final = (
    (("redis-cli",), _after("-a")),
    (("ldap",), _after("-w")),
    (("sqlcmd", "bcp", "unzip", "zip"), _after("-P")),
    (
        ("smbclient",),
        later(r"(?<![A-Za-z0-9_-])-U[ \t\"',]{0,4}+[^\s%\"',]{1,64}+%(?P<value>[^\s\"',]{1,256}+)"),
    ),
    (("openssl",), later(r"(?:-k[ \t\"',]{1,4}+|\bpass:)(?P<value>[^\s\"',-][^\s\"',]{0,256}+)")),
    (("vault",), later(r"\A[\s\"',]{1,6}+(?P<value>[^\s\"'`,=-][^\s\"'`,=]{7,256}+)(?=[\s\"',]|\Z)")),
)
"""The password of some commands, by what they begin with."""

_FLAGS: Final = (
    "-u",
    "-U",
    "-p",
    "-P",
    "-a",
    "-w",
    "-k",
    "pass:",
    "login",
    "--user",
    "--proxy-user",
    "--auth",
)
_FORMS: Final = (
    (("</",), _XML),
    (("login", "password"), _NETRC),
    (("@", "("), _DSN),
    (("sig", "="), _SIGNED),
    (("x-amz-security-token=",), _SIGNED),
)


def is_reference(value: str) -> bool:
    """Whether a value is a reference or a placeholder: `${TOKEN}`, `<your key>`, `***`."""
    return _REFERENCE.fullmatch(value) is not None


def is_code(value: str) -> bool:
    """Whether an unquoted value is an expression that reads the secret: `os.environ["TOKEN"]`."""
    return _CODE.fullmatch(value) is not None


def structured(text: str) -> Iterator[Span]:
    """Yield the spans of secrets found by their form. A form is only searched if its signs are there."""
    lower = text.lower()
    if "value" in lower and ("name" in lower or "key" in lower or "header" in lower or "variable" in lower):
        yield from _pairs(text, _NAMED, is_secret_name)
    if ("," in text or ":" in text) and ('"' in text or "'" in text or "`" in text):
        yield from _pairs(text, _PAIR, announces)
    yield from _said_otherwise(text, lower)
    if "cookie" in lower:
        yield from _cookies(text)
    if ": |" in text or ": >" in text:
        yield from _blocks(text)
    if "curl" in lower or any(map(text.__contains__, _FLAGS)):
        yield from _commands(text)
    for signs, pattern in _FORMS:
        if all(sign in lower for sign in signs):
            yield from _values(text, pattern)


def _said_otherwise(text: str, lower: str) -> Iterator[Span]:
    """Find secrets set in code or by a command, passwords beside a user, and passwords in other languages."""
    if "set" in lower or "put" in lower or "define" in lower or "] =" in text or "]=" in text:
        yield from _settings(text)
    if "auth" in lower or "credentials" in lower:
        for found in _USER_AND.finditer(text):
            value = VALUES[found["quote"][:1]].match(text, found.end())
            yield from () if value is None else _shown_if_secret(text, value.span())
    is_other = not lower.isascii() or any(map(lower.__contains__, _OTHER_WORDS))
    for found in _IN_OTHER_LANGUAGES.finditer(text) if is_other else ():
        if not found["value"].isalpha():  # else it is what is said of one
            yield found.span("value")


def _settings(text: str) -> Iterator[Span]:
    """Find values set by a call, by a subscript or by a command."""
    for pattern in (_SET, _SET_BY_COMMAND):
        for found in pattern.finditer(text):
            name = found["name"] or found["key"]
            value = VALUES.get(found["quote"][:1], BARE).match(text, found.end())
            # What has blanks is said to people.
            if value is not None and is_secret_name(name) and " " not in value[0] and not announces(value[0]):
                yield from _shown_if_secret(text, value.span())


def _values(text: str, pattern: re.Pattern[str]) -> Iterator[Span]:
    for found in pattern.finditer(text):
        if "name" not in found.re.groupindex or is_secret_name(found["name"]):
            yield from _shown_if_secret(text, found.span("value"))


def _shown_if_secret(text: str, span: Span) -> Iterator[Span]:
    if not is_reference(text[slice(*span)]):
        yield span


def _pairs(text: str, pattern: re.Pattern[str], counts: Callable[[str], bool]) -> Iterator[Span]:
    at = 0
    while found := pattern.search(text, at):
        at = max(found.end("name"), at + 1)
        if not counts(found["name"]):
            continue
        value = VALUES.get(found["quote"][:1], BARE).match(text, found.end())
        if value is None or announces(value[0]) or _IS_NAME.match(text, value.end()):
            continue
        if found["name"].startswith("-") or not _HEADER_NAME.fullmatch(value[0]):
            yield from _shown_if_secret(text, value.span())


def announces(word: str) -> bool:
    """Whether the item after a word in a list is a secret: the word is a flag or a header's name that announces one."""
    if word.startswith("-"):
        return is_secret_name(word) and "=" not in word
    return is_secret_name(word) and ("-" in word or word.lower() == "authorization")


def _cookies(text: str) -> Iterator[Span]:
    for found in _COOKIES.finditer(text):
        for cookie in _COOKIE.finditer(text, found.start("all"), found.end("all")):
            if cookie["name"].lower() not in _ATTRIBUTES:
                yield from _shown_if_secret(text, cookie.span("value"))


def _blocks(text: str) -> Iterator[Span]:
    """Find YAML's blocks: all lines that are indented deeper than their name."""
    at = 0
    while found := _BLOCK.search(text, at):
        at = found.end()
        if not is_secret_name(found["name"]):
            continue
        start = end = at
        while end < len(text) and (line := _LINE.match(text, end)):
            if line["text"] and len(line["indent"]) <= len(found["indent"]):
                break
            if line["text"]:
                start = line.start("text") if start == at else start
                at = line.end("text")
            end = line.end()
        if start < at and text[start:at].strip():
            yield start, at


def _commands(text: str) -> Iterator[Span]:
    """Find the passwords that some commands take by flags of one letter."""
    command = _COMMAND.search(text)
    while command is not None:
        at = command.end()
        after = _COMMAND.search(text, at)
        end = _end_of_command(text, at, len(text) if after is None else after.start())
        name = command["name"]
        if name in _HTTP:
            pattern = _USER
        elif name.startswith(("mysql", "mariadb")):
            pattern = _ATTACHED
        else:
            pattern = next((takes for begins, takes in _TAKES if name.startswith(begins)), _AFTER_P)
        for found in pattern.finditer(text[at:end]):
            start, last = found.span("value")
            yield from _shown_if_secret(text, (at + start, at + last))
        command = after


def _end_of_command(text: str, at: int, most: int) -> int:
    """Return where a command line ends, at `most` there; a backslash before the line's end carries it on."""
    most = min(most, at + _COMMAND_LENGTH)
    while (end := text.find("\n", at, most)) >= 0:
        if text[end - 1] != "\\":
            return end
        at = end + 1
    return most


# --- in JSON


def named_in_object(fields: JsonMapping) -> dict[str | int, str]:
    """Return the name of a field whose name is another field's value: `{"name": "Authorization", "value": …}`."""
    for given in ("name", "key", "header", "variable", "Name", "Key"):
        name = fields.get(given)
        if isinstance(name, str) and (is_secret_name(name) or name.lower() in COOKIE_HEADERS):
            return {field: name for field in ("value", "val", "Value") if isinstance(fields.get(field), str)}
    return {}


def named_in_list(items: JsonList) -> dict[str | int, str]:
    """Return the names of a list's items: the flag or header before each, and the secrets of `-u` and `-p`."""
    found: dict[str | int, str] = {}
    words = [item if isinstance(item, str) else "" for item in items]
    for index, (word, after) in enumerate(pairwise(words), 1):
        if (
            1 < len(word) <= _LONGEST_WORD
            and announces(word)
            and after
            and not after.startswith("-")
            and not announces(after)
        ):
            found[index] = word
    command = next((word for word in words[:3] if _is_command(word)), None)
    if command is not None:
        line = '", "'.join(words)
        spans = list(_commands(f'{line}"'))
        at = 0
        for index, word in enumerate(words):
            if any(at <= start < at + len(word) for start, _ in spans):
                found[index] = "--password"
            at += len(word) + 4
    return found


_LONGEST_WORD: Final = 128


def _is_command(word: str) -> bool:
    return 0 < len(word) <= _LONGEST_WORD and _COMMAND.search(f"{word} login ") is not None
