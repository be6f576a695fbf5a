"""Writes access receipts: the requester, what it asked to see or reach, and the verdict (VIS-4).

A receipt is appended without waiting for it: it shares the sync of whatever is appended next to it, and the answer it is about
does not wait.
"""

import hashlib
import logging
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from intersession_actors.calls.service.callers import AccessSummary, Caller
from intersession_actors.owners.streams.judgements import judgement_record, said_by
from intersession_actors.rules.errors import Judgement
from intersession_actors.rules.gate.limits import FILTERS
from intersession_actors.rules.gate.values import storable
from intersession_events.basics import ids
from intersession_events.basics.plain_json import JsonMapping, JsonValue
from intersession_events.facts import AccessEvent, AccessRecorded
from intersession_events.log.log import Appends
from intersession_events.log.recorded import ANY_VERSION, Draft, Outcome, StreamAppend, Unavailable

logger = logging.getLogger("intersession.store")

_A_VIEW_MS: Final = 3_600_000
_MOST_VIEWS: Final = 4_096


class Receipts:
    """Writes receipts; `level` says which: all, denied, off (`audit.access`)."""

    def __init__(
        self, log: Appends, *, now_ms: Callable[[], int], new_id: Callable[[], str], level: Callable[[], str]
    ) -> None:
        self._log = log
        self._now_ms = now_ms
        self._new_id = new_id
        self._level = level
        self._views = _Views()

    def keep(
        self,
        caller: Caller,
        called: str,
        arguments: JsonMapping,
        summary: AccessSummary,
        *,
        view: str | None = None,
    ) -> None:
        """Record the access decisions of one call, as far as `audit.access` asks for it.

        With a `view`, what shows the same sessions in it to the same caller within an hour is recorded once: a page that follows
        the log asks again each time that something comes.
        """
        level = self._level()
        denied = max(summary.denied, len(summary.denied_targets))
        if level == "off" or (level == "denied" and not denied):
            return
        if view is not None and not denied:
            seen = (caller.name, view, keys_digest(summary.keys))
            if self._views.was_seen(seen, self._now_ms()):
                return
        event = AccessRecorded(
            requester=caller.key,
            tool=called,
            filters=filters_of(arguments),
            allowed=len(summary.keys),
            denied_count=denied,
            keys_digest=keys_digest(summary.keys) if summary.keys else None,
            denied=summary.denied_targets,
            credential=caller.credential,
            door=caller.door,
        )
        asking = caller.key
        if asking is None and caller.credential is not None:
            asking = f"credential:{caller.credential}"
        root = caller.run.budget.root if caller.run is not None else None
        self.record(asking, event, correlation=root, judged=summary.judged)

    def record(
        self,
        requester: str | None,
        event: AccessEvent,
        *,
        correlation: str | None = None,
        judged: Judgement | None = None,
    ) -> None:
        """Append an access event of a requester: a session, a credential, or None, the operator.

        `judged` is what was asked and known, which its decision record says as far as the event does not.
        """
        decision = "" if judged is None else judgement_record(judged, said_by(event))
        draft = Draft(
            event=event,
            id=self._new_id(),
            time=self._now_ms(),
            correlation=correlation,
            decision=decision,
        )
        stream = ids.access_stream(requester)
        self._log.append(
            (StreamAppend(stream=stream, expected=ANY_VERSION, drafts=(draft,)),), _note, patient=True
        )


class _Views:
    """Which views were looked at lately. Where there are too many, all are forgotten: one receipt more does no harm."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str, str], int] = {}

    def was_seen(self, view: tuple[str, str, str], now_ms: int) -> bool:
        """Whether a view was looked at within the last hour; if not, it is now."""
        last = self._seen.get(view)
        if last is not None and 0 <= now_ms - last < _A_VIEW_MS:
            return True
        if len(self._seen) >= _MOST_VIEWS:
            self._seen = {}
        self._seen[view] = now_ms
        return False


def _note(outcome: Outcome) -> None:
    if isinstance(outcome, Unavailable):
        logger.warning("an access receipt could not be recorded: %s", outcome.error)


_WORDS: Final = frozenset({"message", "task", "attachments", "text", "extraSystemPrompt", "edits", "agents"})
_SOUGHT: Final = frozenset({"words", "query", "search", "args", "result"})
"""What somebody looks for is what somebody has said, or may have: it would stay in a receipt when the words themselves are erased."""
_MOST_OF_ONE: Final = FILTERS.most // 8


def filters_of(arguments: JsonMapping) -> str:
    """Return the source text of a call's arguments without message texts and search words.

    What is long is left out with its size, so that no caller makes the log grow by what it asks. Total: a call that was
    refused may hold what no JSON can say.
    """
    shown = {
        storable(str(name)): _sought(value) if name in _SOUGHT else value
        for name, value in arguments.items()
        if name not in _WORDS
    }
    source = _source(shown)
    if len(source) > FILTERS.most:
        source = _source({name[:_MOST_OF_ONE]: _short(value) for name, value in shown.items()})
    if len(source) > FILTERS.most:
        source = _source({"omitted": True, "bytes": len(source)})
    return source.decode()


def _sought(value: JsonValue) -> JsonValue:
    return {"omitted": True, "characters": len(value)} if isinstance(value, str) else value


def _short(value: JsonValue) -> JsonValue:
    source = _source(value)
    return value if len(source) <= _MOST_OF_ONE else {"omitted": True, "bytes": len(source)}


def _source(value: JsonValue) -> bytes:
    try:
        return msgspec.json.encode(value, order="sorted")
    except (TypeError, ValueError, RecursionError, OverflowError):
        return msgspec.json.encode({"unreadable": type(value).__name__})


def keys_digest(keys: Sequence[str]) -> str:
    """Return the SHA-256 of the keys that a call returned, in order of keys."""
    return hashlib.sha256(msgspec.json.encode(sorted(keys))).hexdigest()
