"""Encrypts, where it stands, what a log has in clear: what was written before it was kept encrypted (CRYPT-7)."""

from functools import partial
from typing import Final

from intersession_events.basics.crash_points import crash_point
from intersession_events.basics.errors import BadKey
from intersession_events.basics.progress import Progress
from intersession_events.stores.keys.keyring import encrypt_calls, encrypt_page
from intersession_events.stores.portable.log import PortableLog

PAGE: Final = 1_000
"""The number of rows in a transaction."""


def encrypted_in_place(
    log: PortableLog, progress: Progress | None = None, *, page: int = PAGE
) -> tuple[int, int]:
    """Encrypt all words of a log that is open to write, and return how many payloads and contents of files were in clear.

    Each page of rows is a transaction of its writer's, behind its keys. A row that is encrypted has the hash that it had, so a
    log of which some rows are is whole: who is killed runs it again. What the database keeps of the replaced rows, `let_go` is for.

    Raises:
        BadKey: it is not kept encrypted.
        CorruptEvent: a row can't be read; it, and what is behind it, is as it was.
        WriterSuperseded: another writer has taken over.
        StoreUnavailable: it can't be written.
    """
    if log.keys is None:
        raise BadKey(f"{log.path} is not kept encrypted: name its master key as it is opened")
    payloads, after, head = 0, 0, log.head()
    while after < head:
        after, changed = log.changed(partial(encrypt_page, log.keys, after, page))
        payloads += changed
        crash_point("Y3")
        if progress is not None:
            progress(after, head)
    if log.work.standing():
        log.changed(partial(encrypt_calls, log.keys))
    log.states.drop()
    return payloads, log.files.encrypt()
