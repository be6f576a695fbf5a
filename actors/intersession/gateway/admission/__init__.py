"""Who is let in: addresses, credentials, scopes, and the limits of strangers."""

from intersession.gateway.admission.addresses import (
    client_address,
    host_allowed,
    is_this_machine,
    origin_allowed,
    printable,
)
from intersession.gateway.admission.attempts import FailedAttempts
from intersession.gateway.admission.complaints import limited_logger
from intersession.gateway.admission.credentials import Credential, Credentials
from intersession.gateway.admission.limits import (
    ANSWER_BYTES,
    HANDSHAKE_BYTES,
    MOST_FRAGMENTS,
    MOST_IN_FLIGHT,
    MOST_PINGS,
    Limits,
)
from intersession.gateway.admission.proof import Handshake, server_name, token_digest
from intersession.gateway.admission.scopes import all_scopes, granted, needed_scope
from intersession.gateway.admission.shares import Hold, Shares
from intersession.gateway.admission.strangers import Strangers

__all__ = [
    "ANSWER_BYTES",
    "HANDSHAKE_BYTES",
    "MOST_FRAGMENTS",
    "MOST_IN_FLIGHT",
    "MOST_PINGS",
    "Credential",
    "Credentials",
    "FailedAttempts",
    "Handshake",
    "Hold",
    "Limits",
    "Shares",
    "Strangers",
    "all_scopes",
    "client_address",
    "granted",
    "host_allowed",
    "is_this_machine",
    "limited_logger",
    "needed_scope",
    "origin_allowed",
    "printable",
    "server_name",
    "token_digest",
]
