"""Looks up the holder of a token, or of its proof: the operator, or a credential for some sessions only (VIS-6).

Only SHA-256 digests are compared, each with each, in constant time. A changed configuration counts from the next look on.
"""

import hmac
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

import msgspec

from intersession.gateway.admission.proof import Handshake, token_digest
from intersession.gateway.admission.scopes import EVERY_SCOPE
from intersession_actors.calls.service.callers import OPERATOR, Caller
from intersession_actors.rules.config.host import GatewayAuth, OperatorScope

MOST_TICKETS: Final = 1_000
"""Tickets that count; the oldest is forgotten, and its owner proves itself again."""


class Credential(msgspec.Struct, frozen=True):
    """An admitted caller: its sessions and scopes."""

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
        self._tickets: OrderedDict[bytes, Credential] = OrderedDict()

    @property
    def known(self) -> tuple[Credential, ...]:
        """All valid credentials."""
        auth = self._auth()
        if auth is not self._read:
            self._known, self._read = _credentials(auth), auth
        return self._known

    def match(self, token: bytes) -> Credential | None:
        """Return the credential of a token or a ticket; an empty one has none."""
        digest = token_digest(token)
        found = self.of_ticket(digest)
        for credential in self.known:
            if hmac.compare_digest(digest, credential.digest):
                found = credential
        return found if token else None

    def proven(self, handshake: Handshake, said: str) -> Credential | None:
        """Return the credential whose token was proven."""
        found: Credential | None = None
        for credential in self.known:
            if handshake.proves(credential.digest, "client", said):
                found = credential
        return found

    def of_ticket(self, digest: bytes) -> Credential | None:
        """Return the credential of a ticket, by its digest; a token is not a ticket."""
        found = self._tickets.get(digest)
        return found if found is not None and self.count(found) else None

    def forget(self, digest: bytes) -> None:
        """Invalidate a ticket."""
        self._tickets.pop(digest, None)

    def keep(self, digest: bytes, credential: Credential) -> None:
        """Make a ticket valid for a credential: a browser has one in place of a token."""
        self._tickets[digest] = credential
        if len(self._tickets) > MOST_TICKETS:
            self._tickets.popitem(last=False)

    def count(self, credential: Credential) -> bool:
        """Whether a credential would still be admitted with the same rights."""
        return credential in self.known


def _credentials(auth: GatewayAuth) -> tuple[Credential, ...]:
    found: list[Credential] = []
    if auth.secret:
        found.append(Credential(token_digest(auth.secret.encode()), OPERATOR, EVERY_SCOPE))
    for each in auth.credentials:
        caller = Caller.by_credential(
            each.name,
            each.act_as,
            of_agent=each.of_agent,
            sees=each.sees,
            agents=each.agents,
            channels=each.channels,
            copies="copy" in each.scopes,
        )
        found.append(Credential(token_digest(each.token.encode()), caller, frozenset(each.scopes)))
    return tuple(found)
