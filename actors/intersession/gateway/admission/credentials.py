"""Looks up whom a token stands for: the operator, by the shared secret, or a credential for some sessions only (VIS-6).

Only SHA-256 digests are compared, each with each, in constant time. A changed configuration counts from the next look on.
"""

import hashlib
import hmac
from collections.abc import Callable

import msgspec

from intersession.gateway.admission.scopes import EVERY_SCOPE
from intersession_actors.config import GatewayAuth, OperatorScope
from intersession_actors.service import OPERATOR, Caller


class Credential(msgspec.Struct, frozen=True):
    """Somebody who is in: for which sessions, and to do what."""

    digest: bytes
    caller: Caller
    scopes: frozenset[OperatorScope]

    def __repr__(self) -> str:
        return f"Credential({self.caller.name!r})"


class Credentials:
    """Looks tokens up in the configuration in force."""

    def __init__(self, auth: Callable[[], GatewayAuth]) -> None:
        self._auth = auth
        self._read: GatewayAuth | None = None
        self._known: tuple[Credential, ...] = ()

    @property
    def known(self) -> tuple[Credential, ...]:
        """All credentials that count now."""
        auth = self._auth()
        if auth is not self._read:
            self._known, self._read = _credentials(auth), auth
        return self._known

    def match(self, token: bytes) -> Credential | None:
        """Return who has a token; nobody has an empty one."""
        digest = hashlib.sha256(token).digest()
        found: Credential | None = None
        for credential in self.known:
            if hmac.compare_digest(digest, credential.digest):
                found = credential
        return found if token else None

    def count(self, credential: Credential) -> bool:
        """Whether somebody who came in would still be let in with the same rights."""
        return credential in self.known


def _credentials(auth: GatewayAuth) -> tuple[Credential, ...]:
    found: list[Credential] = []
    if auth.secret:
        found.append(Credential(_digest(auth.secret), OPERATOR, EVERY_SCOPE))
    for each in auth.credentials:
        caller = Caller.by_credential(each.name, each.act_as)
        found.append(Credential(_digest(each.token), caller, frozenset(each.scopes)))
    return tuple(found)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
