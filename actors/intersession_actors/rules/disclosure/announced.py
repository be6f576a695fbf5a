"""Finds secrets announced by the words before them: in a sentence, a command, a line of settings, a statement of SQL (HIST-5). Pure.

Each form is looked for where its signs are. Linear like `secrets.py`: what is repeated is bounded, and taken for good.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from intersession_actors.rules.disclosure.secret_names import is_secret_name
from intersession_actors.rules.disclosure.structures import is_code, is_reference
from intersession_events.basics.patterns import later

Span = tuple[int, int]

_Q: Final = r"[\"'`]?"
_QUOTED: Final = r"[\"'`\u00ab\u201c\u201e\u2018\u201a]?[ \u00a0]?"
"""Quotes of any language."""
_VALUE: Final = r"(?P<value>[^\s\"'`]{4,256}+)"
_FLAGS: Final = r"(?:--?[A-Za-z][A-Za-z-]{0,32}+(?:=\S{1,64}+)?[ \t]{1,8}+){0,6}+"


class _Form(NamedTuple):
    """What a form looks like, and of what stands one in each text (in small letters) that has it.

    A `name` in the pattern has to be one of a secret. What is only `likely` a secret counts where it is no word.
    """

    signs: tuple[tuple[str, ...], ...]
    pattern: re.Pattern[str]
    likely: bool = False


def _form(*signs: str, pattern: str, likely: bool = False) -> _Form:
    return _Form(
        tuple(tuple(sign.split("|")) for sign in signs),
        later(pattern, re.IGNORECASE | re.MULTILINE),
        likely,
    )


_FORMS: Final = (
    # in a sentence
    _form(
        "pass",
        pattern=r"(?<!\w)(?:password|passphrase|passcode)[ \t]{1,4}+(?:(?:is|was|to|as|will be|[-:\u2013])[ \t]{1,4}+)"
        rf"{_Q}{_VALUE}",
        likely=True,
    ),
    _form(
        " key|-key",
        pattern=r"(?<!\w)(?:api|access|secret|private|signing|encryption)[ -]key[ \t]{0,4}+(?:(?:is|was)[ \t]|[:=])[ \t]{0,4}+"
        rf"{_Q}{_VALUE}",
        likely=True,
    ),
    _form(
        " token|-token",
        pattern=r"(?<!\w)(?:api|access|auth|secret|bot|bearer)[ -]token[ \t]{0,4}+(?:(?:is|was)[ \t]|[:=])[ \t]{0,4}+"
        rf"{_Q}{_VALUE}",
        likely=True,
    ),
    _form(
        "credential",
        "/",
        pattern=rf"(?<!\w)credentials?:[ \t]{{1,4}}+\S{{1,64}}+[ \t]{{1,4}}+/[ \t]{{1,4}}+{_VALUE}",
        likely=True,
    ),
    # in sentences of other languages
    _form(
        "passw|kennw|losung",
        pattern=r"(?<!\w)(?:passwor[dt]e?|kennwort|zugangscode|losungswort)[ \t]{1,4}+(?:(?:dafür|dazu|hier|jetzt|nun)[ \t]{1,4}+)?"
        rf"(?:ist|lautet|heißt|heisst|war|sei|bleibt|wird|auf|=)[ \t:]{{1,4}}+(?:jetzt[ \t]{{1,4}}+)?{_QUOTED}{_VALUE}",
        likely=True,
    ),
    _form(
        "mot de passe|mots de passe|mdp|clé",
        pattern=r"(?<!\w)(?:mots?[ -]de[ -]passe|mdp|clé (?:api|secrète))[ \t]{1,4}+(?:(?:est|était|sera|c['\u2019]est|devient)[ \t:]{1,4}+|à[ \t]{1,4}+)"
        rf"{_QUOTED}{_VALUE}",
        likely=True,
    ),
    _form(
        "contrase|clave|password|parola|senha|palavra",
        pattern=r"(?<!\w)(?:contraseñas?|contrasenas?|clave(?: de acceso| secreta)?|password|parola d['\u2019]ordine|senha|palavra-passe)[ \t]{1,4}+"
        rf"(?:es|era|será|è|é|ora è|agora é|fica|per)[ \t:]{{1,4}}+{_QUOTED}{_VALUE}",
        likely=True,
    ),
    _form(
        "wachtwoord|hasło|heslo|lösenord|adgangskode|passord|salasana|пароль",
        pattern=r"(?<!\w)(?:wachtwoord|hasło(?: to)?|heslo|lösenord(?:et)?|adgangskoden?|passord(?:et)?|salasana|пароль)[ \t]{1,4}+"
        rf"(?:(?:is|to|je|är|er|on|это|[-\u2013\u2014])[ \t:]{{1,4}}+)?{_QUOTED}{_VALUE}",
        likely=True,
    ),
    # in PowerShell, and in commands of Windows
    _form(
        "securestring",
        pattern=r"\bConvertTo-SecureString[ \t]{1,4}+(?:-(?:AsPlainText|Force|String)[ \t]{1,4}+){0,3}+[\"'](?!\$)(?P<value>[^\"'\n]{1,256}+)",
    ),
    _form(
        "securestring",
        "|",
        pattern=r"[\"'](?P<value>[^\"'\n]{4,256}+)[\"'][ \t]{0,4}+\|[ \t]{0,4}+ConvertTo-SecureString",
    ),
    _form(
        "setenvironmentvariable",
        pattern=r"SetEnvironmentVariable\([ \t]{0,4}+[\"'](?P<name>[A-Za-z0-9_]{1,128}+)[\"'][ \t]{0,4}+,[ \t]{0,4}+[\"'](?P<value>[^\"'\n]{4,256}+)",
    ),
    _form(
        "env:",
        pattern=r"\b(?:Set|New)-(?:Item|Content|Variable)[ \t]{1,4}+(?:-(?:Path|Name)[ \t]{1,4}+)?[\"']?(?:env:\\{0,2}+)?(?P<name>[A-Za-z0-9_]{1,128}+)[\"']?[ \t]{1,4}+"
        rf"(?:-Value[ \t]{{1,4}}+)?{_Q}(?![-$]){_VALUE}",
    ),
    _form(
        "net user|net1 user|net.exe user",
        pattern=r"\bnet1?(?:\.exe)?[ \t]{1,4}+user[ \t]{1,4}+[\"']?[^\s\"'/*]{1,64}+[\"']?[ \t]{1,4}+[\"']?(?P<value>[^\s\"'/*][^\s\"']{0,127}+)",
    ),
    _form(
        "/p:|/pass:|/password:|/rp",
        pattern=rf"(?<!\S)/(?:pass(?:word)?:|rp[ \t]{{1,4}}+|p:){_Q}(?![*%]){_VALUE}",
    ),
    _form(
        "rasdial",
        pattern=rf"\brasdial[ \t]{{1,4}}+(?:\"[^\"\n]{{1,64}}+\"|\S{{1,64}}+)[ \t]{{1,4}}+[^\s/]\S{{0,64}}+[ \t]{{1,4}}+{_Q}(?!/){_VALUE}",
    ),
    _form("keymaterial", pattern=rf"\bkeyMaterial[=>]{_Q}{_VALUE}"),
    _form("plink|pscp|psftp|putty|kitty", "-pw", pattern=rf"(?<!\S)-pw[ \t]{{1,4}}+{_Q}(?!-){_VALUE}"),
    _form(
        "psexec",
        "-p",
        pattern=rf"\bpsexec(?:64)?(?:\.exe)?[ \t][^\n]{{0,200}}?[ \t]-p[ \t]{{1,4}}+{_Q}(?!-){_VALUE}",
    ),
    # of users, keys and networks
    _form(
        "ssh-keygen",
        "-n|-p",
        pattern=rf"\bssh-keygen[ \t](?:[^\n]{{0,200}}?[ \t])?(?-i:-[NP])[ \t]{{0,4}}+{_Q}(?![-\"']){_VALUE}",
    ),
    _form(
        "ssh-keygen",
        "-n|-p",
        pattern=r"\bssh-keygen[ \t](?:[^\n]{0,200}?[ \t])?(?-i:-[NP])[ \t]{0,4}+(?:\"(?=[^\"\n]{1,256}+\")|'(?=[^'\n]{1,256}+'))(?P<value>[^\"'\n]{1,256}+)",
    ),
    _form(
        "chpasswd",
        pattern=r"[\"'\s](?:[A-Za-z_][A-Za-z0-9_.-]{0,32}+|\$\{?\w{1,32}+\}?):(?P<value>[^\s\"'|:]{1,256}+)[\"']?[ \t]{0,4}+\|[^\n|]{0,40}?\bchpasswd",
    ),
    _form(
        "passwd --stdin|cryptsetup|smbpasswd",
        pattern=r"\b(?:echo|printf)[ \t]{1,4}+(?:-[ne]{1,2}+[ \t]{1,4}+)?[\"']?(?P<value>[^\s\"'|$]{4,256}+)[\"']?[ \t]{0,4}+\|"
        r"[^\n|]{0,40}?(?:passwd[ \t]{1,4}+--stdin|\bcryptsetup|smbpasswd)",
    ),
    _form(
        "wpa_passphrase",
        pattern=rf"\bwpa_passphrase[ \t]{{1,4}}+(?:\"[^\"\n]{{1,64}}+\"|\S{{1,64}}+)[ \t]{{1,4}}+{_Q}{_VALUE}",
    ),
    _form(
        "nmcli", " password ", pattern=rf"\bnmcli[ \t][^\n]{{0,200}}?[ \t]password[ \t]{{1,4}}+{_Q}{_VALUE}"
    ),
    _form(
        "rabbitmqctl",
        pattern=rf"\brabbitmqctl[ \t]{{1,4}}+(?:-\S{{1,32}}+[ \t]{{1,4}}+){{0,3}}+(?:add_user|change_password)[ \t]{{1,4}}+\S{{1,64}}+[ \t]{{1,4}}+{_Q}{_VALUE}",
    ),
    _form(
        "mosquitto_passwd",
        "-b",
        pattern=rf"\bmosquitto_passwd[ \t]{{1,4}}+(?:-c[ \t]{{1,4}}+)?-b[ \t]{{1,4}}+\S{{1,128}}+[ \t]{{1,4}}+\S{{1,64}}+[ \t]{{1,4}}+{_Q}{_VALUE}",
    ),
    _form(
        "mosquitto_pub|mosquitto_sub",
        pattern=rf"\bmosquitto_[ps]ub[ \t][^\n]{{0,200}}?[ \t](?-i:-P)[ \t]{{1,4}}+{_Q}{_VALUE}",
    ),
    _form("from-literal", pattern=rf"--from-literal[= \t]{{1,4}}+{_Q}[A-Za-z0-9_.-]{{1,128}}+={_Q}{_VALUE}"),
    _form("put-parameter", "securestring", pattern=rf"--value[= \t]{{1,4}}+{_Q}{_VALUE}"),
    _form("secret-string", pattern=rf"--secret-string[= \t]{{1,4}}+{_Q}(?!file:){_VALUE}"),
    _form("keyvault", "secret set", pattern=rf"--value[= \t]{{1,4}}+{_Q}{_VALUE}"),
    _form("add-generic-password|add-internet-password", pattern=rf"[ \t]-w[ \t]{{1,4}}+{_Q}{_VALUE}"),
    _form(
        "doppler", "secrets set", pattern=rf"\bsecrets[ \t]{{1,4}}+set[ \t]{{1,4}}+\w{{1,128}}+={_Q}{_VALUE}"
    ),
    # in SQL
    _form(
        "identified",
        pattern=r"\b(?:user|role|alter|create|grant|to)\b[^\n;]{0,120}?\bidentified\s{1,4}+(?:with\s{1,4}+\S{1,40}+\s{1,4}+)?by\s{1,4}+(?:password\s{1,4}+)?[\"'](?P<value>[^\"'\n]{1,256}+)",
    ),
    _form("password", pattern=r"\bpassword\s{1,4}+[\"'](?P<value>[^\s\"'\n]{4,256}+)[\"']", likely=True),
    # in code
    _form(
        ":",
        "=",
        pattern=r"(?<![A-Za-z0-9_])(?P<name>[A-Za-z_][A-Za-z0-9_]{1,127}+):[ \t]{0,4}+[A-Za-z_][A-Za-z0-9_.,|\[\]]{0,64}+[ \t]{0,4}+=[ \t]{0,4}+"
        r"[\"'](?P<value>[^\"'\n]{4,256}+)",
    ),
    _form(
        "in(|authenticate(",
        pattern=r"(?<![A-Za-z0-9])(?:log_?in|sign_?in|authenticate)\(\s{0,8}+[\"'][^\s\"',]{1,128}+[\"']\s{0,8}+,\s{0,8}+[\"']"
        r"(?P<value>[^\"'\n]{4,256}+)[\"']",
        likely=True,
    ),
    _form(
        "variable",
        "default",
        pattern=r"\bvariable\s{1,4}+\"(?P<name>[A-Za-z0-9_-]{1,128}+)\"\s{0,4}+\{(?:(?!default)[^{}\"]){0,256}+default\s{0,8}+=\s{0,8}+\""
        r"(?P<value>[^\"\n]{4,256}+)",
    ),
    _form(
        "![cdata[",
        pattern=r"<(?P<name>[A-Za-z][A-Za-z0-9_.:-]{0,127}+)><!\[CDATA\[(?P<value>[^\]\n]{1,1024}+)",
    ),
    _form(
        "<input",
        "password",
        pattern=r"<input\b(?=[^<>]{0,300}type=[\"']?password)(?:(?!value=)[^<>]){0,300}+value=[\"'](?P<value>[^\"'<>]{1,256}+)",
    ),
    _form(
        "digest",
        "response",
        pattern=r"\bDigest\b(?:(?!response)[^\n]){0,512}+response=\"(?P<value>[0-9A-Za-z]{16,128}+)\"",
    ),
    _form("key=", pattern=r"[?&]key=(?P<value>[A-Za-z0-9_-]{16,256}+)(?=[&\s\"'#<>)]|$)", likely=True),
    # in files of settings
    _form(
        "requirepass|masterauth|authtoken",
        pattern=rf"^[ \t]{{0,8}}+(?:requirepass|masterauth|authtoken:?)[ \t]{{1,8}}+{_Q}{_VALUE}",
    ),
    _form(
        "user ",
        " >",
        pattern=r"\buser[ \t]{1,4}+\S{1,64}+[ \t]{1,4}+on[ \t](?:[^>\n]{0,64}+[ \t])?>(?P<value>\S{1,256}+)",
    ),
    _form(
        "username",
        pattern=r"^[ \t]{0,8}+username[ \t]{1,4}+\S{1,64}+[ \t]{1,4}+(?:privilege[ \t]{1,4}+[0-9]{1,2}+[ \t]{1,4}+)?(?:password|secret)"
        r"[ \t]{1,4}+(?:[0-9][ \t]{1,4}+)?(?P<value>\S{1,256}+)[ \t]{0,4}+$",
    ),
    _form(
        "enable ",
        pattern=r"\benable[ \t]{1,4}+(?:secret|password)[ \t]{1,4}+(?:[0-9][ \t]{1,4}+)?(?P<value>\S{4,256}+)",
        likely=True,
    ),
    _form(
        ":",
        pattern=r"^(?=[^\n:]{0,64}[A-Za-z*])[A-Za-z0-9_.*-]{1,128}+:(?:[0-9]{4,5}+|\*):[^\s:]{1,64}+:[^\s:]{1,64}+:(?P<value>[^\s:]{1,256}+)[ \t]{0,4}+$",
    ),
    _form(
        "$",
        pattern=r"\$(?:1|2[abxy]|[567y]|apr1|argon2(?:id|[id])|scrypt|pbkdf2-sha(?:1|256|512))\$(?P<value>[^\s:\"'`;<>]{12,512}+)",
    ),
    _form(
        "private-lines",
        pattern=r"^Private-Lines:[ \t]{0,4}+[0-9]{1,4}+\r?\n(?P<value>(?:[A-Za-z0-9+/=]{1,128}+\r?\n?){1,128}+)",
    ),
    # in commands
    _form(
        "env |setx |config",
        pattern=r"(?<![A-Za-z0-9_.-])(?:ENV|setx|(?:git|npm|pnpm|yarn|poetry|composer)[ \t]{1,4}+config(?:[ \t]{1,4}+set)?)[ \t]{1,8}+"
        rf"{_FLAGS}(?P<name>[A-Za-z0-9_.:/-]{{1,128}}+)[ \t]{{1,8}}+{_Q}(?!-){_VALUE}",
    ),
    _form("rclone", pattern=rf"\brclone[ \t][^\n]{{0,200}}?[ \t]pass[ \t]{{1,4}}+{_Q}{_VALUE}"),
    _form(
        "ngrok",
        pattern=rf"\bngrok[ \t]{{1,4}}+(?:config[ \t]{{1,4}}+add-)?authtoken[ \t]{{1,4}}+{_Q}{_VALUE}",
    ),
    _form(
        "cargo", "login", pattern=rf"\bcargo[ \t]{{1,4}}+login[ \t]{{1,4}}+{_FLAGS}(?!-){_VALUE}", likely=True
    ),
    _form(
        "fly",
        "auth",
        pattern=rf"\bfly(?:ctl)?[ \t]{{1,4}}+auth[ \t]{{1,4}}+token[ \t]{{1,4}}+(?!-){_VALUE}",
        likely=True,
    ),
    _form(
        "doctl",
        pattern=rf"\bdoctl[ \t]{{1,4}}+auth[ \t]{{1,4}}+init[ \t]{{1,4}}+(?:-t|--access-token)[ \t=]{{1,4}}+{_VALUE}",
    ),
    _form(
        "cloudflared",
        "install",
        pattern=rf"\bcloudflared[ \t]{{1,4}}+service[ \t]{{1,4}}+install[ \t]{{1,4}}+{_VALUE}",
    ),
    _form(
        "fly",
        "secrets",
        pattern=r"\bfly(?:ctl)?[ \t]{1,4}+secrets[ \t]{1,4}+(?:set|import)[ \t]{1,4}+\w{1,64}+="
        + _Q
        + _VALUE,
    ),
    _form(
        "secret set",
        pattern=rf"\bsecret[ \t]{{1,4}}+set[ \t]{{1,4}}+\w{{1,128}}+[ \t]{{1,4}}+(?:-b|--body)[ \t=]{{1,4}}+{_Q}{_VALUE}",
    ),
    _form(
        "secret",
        "<<<",
        pattern=rf"\bsecret[ \t]{{1,4}}+put[ \t]{{1,4}}+\S{{1,128}}+[ \t]{{1,4}}+<<<[ \t]{{0,4}}+{_Q}{_VALUE}",
    ),
    _form(
        "password-stdin|passwordstdin|with-token|sudo -s",
        pattern=r"\b(?:echo|printf)[ \t]{1,4}+(?:-n[ \t]{1,4}+|['\"]?%s['\"]?[ \t]{1,4}+)?['\"]?(?P<value>[^\s\"'|$]{4,256}+)['\"]?[ \t]{0,4}+\|"
        r"[^\n|]{0,200}?(?:--?password-?stdin|--with-token|\bsudo[ \t]{1,4}+-S)",
    ),
    _form(
        "7z|rar",
        "-p|-hp",
        pattern=r"\b(?:7z[az]?|7zz|rar|unrar)[ \t](?:[^\n\"']{0,200}?[ \t])?-h?p(?P<value>[^\s\"'-][^\s\"']{0,256}+)",
    ),
    _form("rdesktop", pattern=rf"\brdesktop[ \t](?:[^\n]{{0,200}}?[ \t])?-p[ \t]{{1,4}}+{_Q}(?!-){_VALUE}"),
    _form("freerdp", "/p:", pattern=rf"\b[xw]freerdp[^\n]{{0,200}}?[ \t]/p:{_Q}{_VALUE}"),
    _form(
        "htpasswd",
        pattern=rf"\bhtpasswd[ \t]{{1,4}}+-[A-Za-z]{{0,6}}b[A-Za-z]{{0,6}}+[ \t]{{1,4}}+(?:[^\s-]\S{{0,128}}+[ \t]{{1,4}}+){{1,2}}{_Q}{_VALUE}[ \t]{{0,4}}+$",
    ),
    _form(
        "net use",
        "/user:",
        pattern=rf"\bnet[ \t]{{1,4}}+use[ \t][^\n]{{0,100}}?\\\\\S{{1,128}}+[ \t]{{1,4}}+{_Q}{_VALUE}[ \t]{{1,4}}+/user:",
    ),
    _form(
        "sqlplus|sqlldr|expdp|impdp|connect ",
        "@",
        pattern=r"\b(?:sqlplus|sqlldr|expdp|impdp|connect)[ \t]{1,4}+[\"']?[A-Za-z][A-Za-z0-9_$#]{0,64}+/(?P<value>[^\s@/\"']{1,128}+)@",
    ),
)

_BY_SIGN: Final = {
    sign: tuple(form for form in _FORMS if sign in form.signs[0]) for form in _FORMS for sign in form.signs[0]
}
"""The forms whose first sign each is: most texts have few of them."""

_OF_A_SECRET: Final = 6
_ALGORITHM: Final = later(
    r"(?:sha|md|base|utf|bcrypt|argon|pbkdf|oauth|aes|rsa|ed|hs|rs|es|scrypt|fido|webauthn|tls|ssl|iso|rfc|v)[-_]?[0-9]{1,5}+.{0,16}+",
    re.IGNORECASE,
)


def announced(text: str) -> Iterator[Span]:
    """Yield the spans of secrets that are announced by the words before them."""
    lower = text.lower()
    tried = {form for sign in filter(lower.__contains__, _BY_SIGN) for form in _BY_SIGN[sign]}
    for form in tried:
        if not all(any(sign in lower for sign in either) for either in form.signs[1:]):
            continue
        for found in form.pattern.finditer(text):
            if "name" in form.pattern.groupindex and not is_secret_name(found["name"]):
                continue
            value = found["value"]
            if is_reference(value.rstrip(",;")) or is_code(value) or (form.likely and not _is_likely(value)):
                continue
            yield found.span("value")


def _is_likely(value: str) -> bool:
    """Whether something is no word: of some length, with digits among letters, and no algorithm's name."""
    bare = value.rstrip(".,;:!?)]}\u00bb\u201d\u201c\u2019")
    return (
        len(bare) >= _OF_A_SECRET
        and any(character.isdigit() for character in bare)
        and any(character.isalpha() for character in bare)
        and "://" not in bare
        and _ALGORITHM.fullmatch(bare) is None
    )
