"""Writes access receipts: who asked to see or reach what, and what was answered (VIS-4).

A receipt is appended without waiting for it: it shares the sync of whatever is appended next to it, and the answer it is about
does not wait.
"""

import hashlib
import logging
from collections.abc import Callable, Sequence

import msgspec

from intersession_actors.service.arguments import shown_arguments
from intersession_actors.service.callers import AccessSummary, Caller
from intersession_events import ids
from intersession_events.facts import AccessEvent, AccessRecorded
from intersession_events.log import ANY_VERSION, Draft, Log, Outcome, StreamAppend, Unavailable
from intersession_events.plain_json import JsonMapping

logger = logging.getLogger("intersession.store")


class Receipts:
    """Writes receipts; `level` says how much: all, denied, off (`audit.access`)."""

    def __init__(
        self, log: Log, *, now_ms: Callable[[], int], new_id: Callable[[], str], level: Callable[[], str]
    ) -> None:
        self._log = log
        self._now_ms = now_ms
        self._new_id = new_id
        self._level = level

    def keep(self, caller: Caller, called: str, arguments: JsonMapping, summary: AccessSummary) -> None:
        """Record the decisions of one call of a tool or a method, as far as `audit.access` wants them."""
        level = self._level()
        denied = max(summary.denied, len(summary.denied_targets))
        if level == "off" or (level == "denied" and not denied):
            return
        event = AccessRecorded(
            requester=caller.key,
            tool=called,
            filters=msgspec.json.encode(shown_arguments(arguments), order="sorted").decode(),
            allowed=len(summary.keys),
            denied_count=denied,
            keys_digest=keys_digest(summary.keys) if summary.keys else None,
            denied=summary.denied_targets,
            credential=caller.credential,
        )
        asking = caller.key
        if asking is None and caller.credential is not None:
            asking = f"credential:{caller.credential}"
        self.record(asking, event, correlation=caller.run.budget.root if caller.run is not None else None)

    def record(self, requester: str | None, event: AccessEvent, *, correlation: str | None = None) -> None:
        """Append an access event of whoever asked: a session, a credential, or None, the operator."""
        draft = Draft(event=event, id=self._new_id(), time=self._now_ms(), correlation=correlation)
        stream = ids.access_stream(requester)
        self._log.append(
            (StreamAppend(stream=stream, expected=ANY_VERSION, drafts=(draft,)),), _note, patient=True
        )


def _note(outcome: Outcome) -> None:
    if isinstance(outcome, Unavailable):
        logger.warning("an access receipt could not be recorded: %s", outcome.error)


def keys_digest(keys: Sequence[str]) -> str:
    """Return the SHA-256 of the keys that a call returned, in order of keys."""
    return hashlib.sha256(msgspec.json.encode(sorted(keys))).hexdigest()
