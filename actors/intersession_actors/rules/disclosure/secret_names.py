"""Decides which names of fields, variables and flags announce a secret (HIST-5). Pure."""

import re
from functools import lru_cache
from typing import Final


def listed(words: str) -> frozenset[str]:
    """Return the words of a list that is written as a text."""
    return frozenset(words.split())


_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_LONGEST: Final = 128
_SECRETS: Final = listed(
    """
    secret secrets password passwd passphrase passcode pwd pw psk authkey credential credentials apikey apitoken
    authtoken accesstoken refreshtoken accesskey privatekey secretkey clientsecret authorization
    passwords passwds passphrases passcodes pwds apikeys apitokens authtokens accesstokens refreshtokens accesskeys
    privatekeys secretkeys clientsecrets storepass keypass
    """
)
_LAST: Final = listed("token pass auth bearer jwt sshpass dockerconfigjson")
# A word that is written together with what it is for: PGPASSWORD, dbpassword.
_ENDS: Final = ("password", "passwd", "passphrase", "apikey", "secretkey", "authtoken", "accesstoken")
# A name that ends so names something about a secret, not the secret: passwordFile, secretName.
_ABOUT: Final = listed(
    """
    name names id ids count length len size type kind url uri path file dir field label hint policy expiry
    expires ttl age min max required enabled valid provider helper store manager reset changed created
    updated at ref format mode endpoint header prefix limit limits usage used budget price rotation
    version
    """
)
# A key is a secret only with one of these before it: most keys, a session's own among them, are names.
_KEYS: Final = listed(
    """
    access account admin api app auth client deploy encryption hmac master private secret service shared
    signing ssh preshared function functions host license project subscription team user storage webhook
    """
)
_TOKENS: Final = listed("access api auth bearer bot refresh secret session")
_LISTED: Final = listed("account admin app client functions host project storage subscription team user")
"""Keys of these, where there are several, are names more often than not."""
_OF_DIGITS: Final = listed(
    "password passwords passwd passwds passcode passcodes passphrase pwd pwds secret secrets"
)
_PIN: Final = 4
_COUNTED: Final = 10
_NO_SECRETS: Final = listed("public session idempotency main primary foreign sort cache")


def is_secret_name(name: str) -> bool:
    """Whether a value of this name is hidden, as with `apiKey`, `GITHUB_TOKEN` or `--db-password`.

    A variable in capitals that ends in `KEY` is a secret too.
    """
    return _is_secret(name[-_LONGEST:])


@lru_cache(maxsize=4096)
def _is_secret(name: str) -> bool:
    words = [word.lower() for word in _WORDS.findall(name)]
    if not words:
        return False
    if words[-1] in _ABOUT:
        return False
    if not _SECRETS.isdisjoint(words) or words[-1] in _LAST or words[-1].endswith(_ENDS):
        return True
    before = words[-2] if len(words) > 1 else ""
    if words[-1] == "tokens":
        return before in _TOKENS
    if words[-1] == "keys":
        return before in _KEYS - _LISTED
    if words[-1] != "key":
        return False
    return before in _KEYS or (name.isupper() and before not in _NO_SECRETS)


def counts_digits(name: str, number: str) -> bool:
    """Whether a number under a secret's name is a secret: a numeric password has the length of a PIN, other secrets exceed counters."""
    words = [word.lower() for word in _WORDS.findall(name[-_LONGEST:])]
    most = _PIN if words and not _OF_DIGITS.isdisjoint(words) else _COUNTED
    return len(number.lstrip("-")) >= most
