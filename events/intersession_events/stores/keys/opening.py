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
    """Return the keys of a log; None for one that has none, or none yet. `has_encrypted` says whether a row of it is encrypted.

    Raises:
        BadKey: it is opened to write, and its master key can't be had, or its keys are not where they were.
        StoreUnavailable: the keys can't be read.
        MissingExtra: the extra `encrypt` is not installed.
    """
    learn(records, wanted)
    if records.stamp() is None:
        if wanted is not None and writes and has_encrypted():
            raise lost(records)
        return None
    found = Keyring(records, entropy, known=_KNOWN.get(records.shown) or Known(of_environment(os.environ)))
    if writes and found.trouble is not None:
        raise found.trouble
    return found


def keys_to_write(
    records: KeyFile,
    found: Keyring | None,
    wanted: Encryption | None,
    *,
    entropy: Callable[[int], bytes] = machine_entropy,
) -> Keyring | None:
    """Return the keys of a log whose one writer this process has become: made, if it is `wanted` encrypted and has none.

    From then on each writer keeps it so, until another configuration says otherwise. Whoever is refused the log changes nothing.

    Raises:
        BadKey: the master key can't be had.
        StoreUnavailable: the keys can't be made.
        MissingExtra: the extra `encrypt` is not installed.
    """
    if wanted is None:
        return found
    if found is None and records.stamp() is None:
        header = header_of(wanted.source, wanted.source.key(), wanted.sessions, entropy)
        records.write(KeyRecords(header, ()))
    found = found or keys_at(records, wanted, writes=True, entropy=entropy)
    if found is not None:
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
