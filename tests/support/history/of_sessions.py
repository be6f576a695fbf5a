"""What the stream of a session owes: one run at a time and in turn, nothing in one that is gone, routes of people, words that were said."""

from collections.abc import Iterator

from intersession_events.facts import (
    LateReplyDropped,
    RouteChanged,
    RunAborted,
    RunCompleted,
    RunFailed,
    RunInterrupted,
    RunQueued,
    RunStarted,
    SessionArchived,
    SessionOpened,
    SessionReset,
    ThreadBound,
    ThreadUnbound,
    message_in,
    text_of,
)
from intersession_events.log.recorded import Recorded
from support.history.evidence import LATE_S, SLACK_S, Evidence, said


def one_at_a_time(evidence: Evidence) -> Iterator[str]:
    """SEND-10: a session has one run at a time, in order of arrival; one that was cut off comes first again."""
    for items in evidence.flows("session:"):
        line = _Line()
        for item in items:
            if (wrong := line.take(item.event)) is not None:
                yield f"#{item.position} {item.topic} of {item.stream}: {wrong}"


class _Line:
    """The runs of a session: which is under way, and which wait."""

    def __init__(self) -> None:
        self._under_way: str | None = None
        self._waiting: list[str] = []

    def take(self, event: object) -> str | None:
        """Take an event in; return what is wrong with it."""
        wrong: str | None = None
        match event:
            case RunQueued(run_id=run_id, step="compaction"):  # it goes ahead of all (CTX-5)
                self._waiting = [run_id, *self._waiting]
            case RunQueued(run_id=run_id):
                self._waiting.append(run_id)
            case RunStarted(run_id=run_id):
                if self._under_way is not None:
                    wrong = f"it is at {self._under_way}"
                elif self._waiting[:1] != [run_id]:
                    wrong = f"it is for {self._waiting[:1]} to start"
                self._leave(run_id)
                self._under_way = run_id
            case RunInterrupted(run_id=run_id):
                self._leave(run_id)
                self._waiting = [run_id, *self._waiting]
            case RunCompleted(run_id=run_id) | RunFailed(run_id=run_id) | RunAborted(run_id=run_id):
                self._leave(run_id)
            case SessionReset() | SessionArchived() if self._under_way is not None or self._waiting:
                wrong = f"it has {self._under_way} and {self._waiting} to do"
            case _:
                pass
        return wrong

    def _leave(self, run_id: str) -> None:
        self._under_way = None if self._under_way == run_id else self._under_way
        self._waiting = [one for one in self._waiting if one != run_id]


def gone_is_gone(evidence: Evidence) -> Iterator[str]:
    """HIST-7: in a session that is archived nothing happens any more, until it is opened anew."""
    for items in evidence.flows("session:"):
        archived: int | None = None
        for item in items:
            if isinstance(item.event, SessionOpened):
                archived = None
            elif archived is not None and not isinstance(item.event, LateReplyDropped):
                yield f"#{item.position} {item.topic} is in {item.stream}, which was archived at #{archived}"
            elif isinstance(item.event, SessionArchived):
                archived = item.position


def routes_are_of_people(evidence: Evidence) -> Iterator[str]:
    """INB-1: a route changes with what a person said, and with nothing else."""
    for item, _ in evidence.of(RouteChanged):
        after = [one.event for one in evidence.streams[item.stream][item.version :]]
        said = next((message for event in after if (message := message_in(event)) is not None), None)
        if said is None or said.provenance is None or said.provenance.kind != "external_user":
            yield f"#{item.position} changes the route of {item.stream}, and no person spoke"


def answers_are_said(evidence: Evidence) -> Iterator[str]:
    """HIST-3: the answer of a run stands in its session as what its agent said last."""
    for item, end in evidence.of(RunCompleted):
        if said(end.reply) is None or end.covers is not None:  # a summary is no message (CTX-5)
            continue
        words = (
            text_of(message)
            for one in reversed(evidence.streams[item.stream][: item.version])
            if (message := message_in(one.event)) is not None
            and (message.run_id, message.role) == (end.run_id, "assistant")
        )
        if (last := next(words, None)) != end.reply:
            yield f"#{item.position} answers {end.reply!r} and said {last!r}"


def own_output(evidence: Evidence) -> Iterator[str]:
    """PROV-2: what an agent gives as somebody else's words is recorded as its own session's."""
    for item, message in evidence.said:
        origin = message.provenance
        if message.run_id is None or message.role in {"assistant", "toolResult"}:
            continue
        own = item.stream.partition(":")[2]
        if origin is None or (origin.kind, origin.source_session_key) != ("inter_session", own):
            yield f"#{item.position} is said by run {message.run_id} as if it came from {origin}"


def threads_have_their_time(evidence: Evidence) -> Iterator[str]:
    """SPAWN-12: a thread belongs to its session until nothing was said there for so long, or it is so old, and no longer."""
    for items in evidence.flows("session:"):
        bound: Recorded | None = None
        last: Recorded | None = None
        for item in items:
            match item.event:
                case ThreadBound():
                    bound = last = item
                case ThreadUnbound(reason=reason):
                    if bound is not None and last is not None and reason in {"idle", "max_age"}:
                        yield from _given_up(evidence, bound, last, item)
                    bound = None
                case _ if message_in(item.event) is not None:
                    last = item
                case _:
                    pass
        if bound is not None and last is not None:
            yield from _kept_on(evidence, bound, last)


def _given_up(evidence: Evidence, bound: Recorded, last: Recorded, item: Recorded) -> Iterator[str]:
    assert isinstance(item.event, ThreadUnbound)
    for since, allowed_s, reason in _times(bound, last):
        had_s = evidence.seconds_between(since, item)
        if reason == item.event.reason and had_s is not None and had_s < allowed_s - SLACK_S:
            yield f"#{item.position} takes the thread of {item.stream} ({reason}) after {had_s} s of {allowed_s}"


def _kept_on(evidence: Evidence, bound: Recorded, last: Recorded) -> Iterator[str]:
    for since, allowed_s, reason in _times(bound, last):
        had_s = evidence.seconds_since(since)
        if allowed_s and had_s is not None and had_s > allowed_s + LATE_S:
            yield f"{bound.stream} has its thread ({reason}) after {had_s} s of {allowed_s}"


def _times(bound: Recorded, last: Recorded) -> tuple[tuple[Recorded, float, str], ...]:
    assert isinstance(bound.event, ThreadBound)
    return (
        (bound, bound.event.max_age_ms / 1000, "max_age"),
        (last, bound.event.idle_ms / 1000, "idle"),
    )
