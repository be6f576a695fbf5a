"""Finds the keys of a log as it is opened, and makes them where a configuration wants it encrypted from now on (CRYPT-1)."""

import os
from collections.abc import Callable
from typing import Final

from intersession_events.basics.errors import BadKey
from intersession_events.basics.machine import machine_entropy
from intersession_events.log.log import Log
from intersession_events.stores.keys.keyring import ENCRYPTED_ROWS, Keyring
from intersession_events.stores.keys.records import KeyFile, KeyRecords
from intersession_events.stores.keys.source import Encryption, of_environment
from intersession_events.stores.keys.wrapped_keys import Known
from intersession_events.stores.keys.wrapping import header_of

_KNOWN: Final[dict[str, Known]] = {}
"""What this process knows of master keys, by the places of wrapped ones: it opens a log more than once."""


def learn(records: KeyFile, wanted: Encryption | None) -> None:
    """Remember, for this process, where a configuration says that the master key of a log is."""
    known = _KNOWN.get(records.shown)
    if wanted is not None and (known is None or known.source != wanted.source):
        _KNOWN[records.shown] = Known(wanted.source)


def keys_at(
    records: KeyFile,
    wanted: Encryption | None = None,
    *,
    writes: bool,
    entropy: Callable[[int], bytes] = machine_entropy,
    has_encrypted: Callable[[], bool] = lambda: False,
) -> Keyring | None:
    """Return the keys of a log; None for one that is not kept encrypted. `has_encrypted` says whether a row of it is.

    A log has them as soon as it was opened to write as it is `wanted`. From then on each writer keeps it so, until another
    configuration says otherwise.

    Raises:
        BadKey: it is opened to write, and its master key can't be had, or its keys are not where they were.
        StoreUnavailable: the keys can't be read, or made.
        MissingExtra: the extra `encrypt` is not installed.
    """
    learn(records, wanted)
    if records.stamp() is None:
        if wanted is None or not writes:
            return None
        if has_encrypted():
            raise lost(records)
        header = header_of(wanted.source, wanted.source.key(), wanted.sessions, entropy)
        records.write(KeyRecords(header, ()))
    known = _KNOWN.get(records.shown) or Known(of_environment(os.environ))
    found = Keyring(records, entropy, known=known)
    if not writes:
        return found
    if found.trouble is not None:
        raise found.trouble
    if wanted is not None:
        found.change(wanted.sessions)
    return found


def lost(records: KeyFile) -> BadKey:
    """Return the error of a log with encrypted rows, whose keys are not there."""
    return BadKey(
        f"the log is kept encrypted, and its keys are not at {records.shown}: bring them back from their copy. Until then it can be "
        "read, but for what is encrypted in it"
    )


def check_keys(copy: Log, records: KeyFile) -> None:
    """Check that keys are where a copy of a log is to be put, if it has encrypted rows: without them no host would start there.

    Raises:
        BadKey: they are not.
    """
    if records.stamp() is None and copy.query(*ENCRYPTED_ROWS):
        raise lost(records)


def new_keys(
    records: KeyFile, like: Keyring, *, entropy: Callable[[int], bytes] = machine_entropy
) -> Keyring:
    """Return keys for a copy of a log, wrapped by the same master key; those of an earlier attempt, if there are some.

    Raises:
        BadKey: the master key can't be had.
        StoreUnavailable: the keys can't be made.
    """
    if records.stamp() is None:
        records.write(KeyRecords(like.header, ()))
    return Keyring(records, entropy, known=Known(like.source))
