"""Tells a log what happened, in a few words: real SQLite, ids counted up, a clock that stands where it is put."""

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from intersession_actors.calls.service.reader import Reader
from intersession_actors.owners.session.answers import with_messages
from intersession_actors.rules.config.config import load_config
from intersession_events.facts import (
    Event,
    Message,
    MessageRecorded,
    Provenance,
    Role,
    RunCompleted,
    RunQueued,
    RunStarted,
    SessionOpened,
)
from intersession_events.facts.message import Content
from intersession_events.log.recorded import ANY_VERSION, Draft, Recorded, StreamAppend
from intersession_events.log.views import InlineView
from intersession_projections.views.inline_views import inline_views
from intersession_projections.views.sessions.list import Sessions
from intersession_projections.views.sessions.row import SessionRow
from support.any_log import AnyLog, log_at

LOG_ID = "00000000-0000-4000-8000-000000000001"
MAIN = "agent:main:main"


def listed(sessions: Sessions, as_of: int | None = None) -> Iterator[SessionRow]:
    """Yield the rows of the whole session list as it stood at a position, in its order."""
    order = sessions.order(as_of)
    return order.rows(order.places())


class StillClock:
    """A clock that a test sets."""

    def __init__(self, now: int = 1_000_000) -> None:
        self.now = now

    def now_ms(self) -> int:
        return self.now

    def monotonic(self) -> float:
        return self.now / 1000


class Story:
    """A log, and the words to fill it. Each event takes one millisecond unless the clock is set."""

    def __init__(self, path: Path | str = ":memory:", *, inline: Sequence[InlineView] | None = None) -> None:
        self.clock = StillClock()
        self._ids = itertools.count(1)
        self.log: AnyLog = log_at(
            path,
            inline=inline_views() if inline is None else inline,
            clock=self.clock.now_ms,
            monotonic=self.clock.monotonic,
            entropy=bytes,
            new_log_id=lambda: LOG_ID,
        )

    def close(self) -> None:
        self.log.close()

    def put(
        self,
        stream: str,
        *events: Event,
        time: int | None = None,
        causation: str | None = None,
        correlation: str | None = None,
    ) -> Recorded:
        """Record events in one append; return the last."""
        if time is None:
            self.clock.now += 1
        at = self.clock.now if time is None else time
        drafts = tuple(
            Draft(
                event=event,
                id=f"e{next(self._ids)}",
                time=at,
                causation=causation,
                correlation=correlation,
                is_dated=time is not None,
            )
            for event in events
        )
        append = StreamAppend(stream=stream, expected=ANY_VERSION, drafts=drafts)
        return self.log.append_now((append,)).recorded[-1]

    def open(self, key: str = MAIN, **fields: Any) -> Recorded:
        """Open a session."""
        given = {
            "session_id": f"s-{key.replace(':', '-')}",
            "agent_id": key.split(":")[1],
            "opened_by": "person",
        }
        return self.put(f"session:{key}", SessionOpened(key=key, **{**given, **fields}))

    def say(
        self,
        key: str,
        content: Content,
        *,
        role: Role = "user",
        session_id: str | None = None,
        source: str | None = None,
        time: int | None = None,
        **fields: Any,
    ) -> str:
        """Record a message; return its id."""
        message_id = f"m{next(self._ids)}"
        message = Message(id=message_id, role=role, content=content, timestamp=self.clock.now, **fields)
        generation = session_id or f"s-{key.replace(':', '-')}"
        self.put(
            f"session:{key}",
            MessageRecorded(session_id=generation, message=message, source=source),
            time=time,
        )
        return message_id

    def run(self, key: str, run_id: str, text: str, reply: str | None, **queued: Any) -> None:
        """Let a session answer a message in a run of its own."""
        session_id = f"s-{key.replace(':', '-')}"
        message = Message(id=f"{run_id}-in", role="user", content=text, timestamp=self.clock.now)
        answer = Message(
            id=f"{run_id}-out", role="assistant", content=reply or "", timestamp=self.clock.now, run_id=run_id
        )
        root = queued.pop("correlation", None)
        queue = RunQueued(run_id=run_id, session_id=session_id, step="message", message=message, **queued)
        stream = f"session:{key}"
        self.put(stream, queue, correlation=root)
        self.put(stream, RunStarted(run_id=run_id, attempt=1, context_hash="h"), correlation=root)
        end = RunCompleted(run_id=run_id, attempt=1, text=reply)
        self.put(stream, *with_messages(end, session_id, [answer]), correlation=root)

    def reader(self, config: dict[str, Any] | None = None, **given: Any) -> Reader:
        """Return the reading half of a system on this log."""
        loaded = load_config(config).config
        return Reader(self.log, config=lambda: loaded, clock=self.clock, **given)


PERSON = Provenance(kind="external_user")
