"""Access receipts: who asked to see or reach what, and what was answered (VIS-4).

A receipt is appended without waiting for it: it shares the sync of whatever is appended next to it, and the answer it is about
does not wait.
"""

import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from intersession_actors.service.arguments import shown_arguments
from intersession_events import ids
from intersession_events.facts import AccessEvent, AccessRecorded
from intersession_events.log import ANY_VERSION, Draft, Log, Outcome, StreamAppend, Unavailable


class AccessSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The canonical keys that were returned, and how many sessions were there and not seen.

    `denied_targets` are single targets that were refused, as given, and why.
    """

    keys: tuple[str, ...] = ()
    denied: int = 0
    denied_targets: tuple[tuple[str, str], ...] = ()


logger = logging.getLogger(__name__)


class Receipts:
    """Writes receipts; `level` says how much: all, denied, off (`audit.access`)."""

    def __init__(
        self, log: Log, *, now_ms: Callable[[], int], new_id: Callable[[], str], level: Callable[[], str]
    ) -> None:
        self._log = log
        self._now_ms = now_ms
        self._new_id = new_id
        self._level = level

    def keep(
        self,
        requester: str | None,
        tool: str,
        arguments: Mapping[str, Any],
        summary: AccessSummary,
        *,
        correlation: str | None = None,
        credential: str | None = None,
    ) -> None:
        """Record the decisions of one call, as far as `audit.access` wants them."""
        level = self._level()
        denied = max(summary.denied, len(summary.denied_targets))
        if level == "off" or (level == "denied" and not denied):
            return
        event = AccessRecorded(
            requester=requester,
            tool=tool,
            filters=msgspec.json.encode(shown_arguments(arguments), order="sorted").decode(),
            allowed=len(summary.keys),
            denied_count=denied,
            keys_digest=keys_digest(summary.keys) if summary.keys else None,
            denied=summary.denied_targets,
            credential=credential,
        )
        asking = f"credential:{credential}" if requester is None and credential is not None else requester
        self.record(asking, event, correlation=correlation)

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
