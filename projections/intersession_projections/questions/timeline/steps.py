"""One event as a step of a timeline: where it stands in the log, who does what to whom, and what led to it. Pure."""

from collections.abc import Iterable

import msgspec

from intersession_events.log.recorded import Recorded
from intersession_projections.views.run_outcomes.replies import Replies


class Step(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An event as it is shown: `event` is its stored name without the version.

    `who` acts and `to` is acted on: session keys, routes, `operator`; None where the event has none. `words` is raw
    text of anybody's making: whoever prints it makes it harmless first. `cause` is the position of the step that
    caused it, where that is among the steps shown.
    """

    position: int
    time: int
    stream: str
    event: str
    id: str
    who: str | None
    to: str | None
    words: str
    cause: int | None = None


def steps_of(found: Iterable[Recorded]) -> list[Step]:
    """Return events as steps, each once, in log order, with their causes as far as these are among them."""
    events = {recorded.position: recorded for recorded in found}
    replies = Replies(events.values())
    positions = {recorded.id: position for position, recorded in events.items()}
    steps: list[Step] = []
    for position in sorted(events):
        recorded = events[position]
        who, to, words, *_ = replies.with_texts(recorded).in_words()
        steps.append(
            Step(
                position=position,
                time=recorded.time,
                stream=recorded.stream,
                event=recorded.kind,
                id=recorded.id,
                who=who,
                to=to,
                words=words,
                cause=positions.get(recorded.causation or ""),
            )
        )
    return steps
