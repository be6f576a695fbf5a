"""What happened, step by step: the timelines of exchanges, spawns, runs and sessions, and every event in words."""

from intersession_projections.timeline.reasons import (
    CLOSES,
    FAILURES,
    HELD_BEFORE,
    HELD_TEXTS,
    LOOP_ENDS,
    RELEASES,
    counted,
    told_more,
)
from intersession_projections.timeline.steps import Step, steps_of
from intersession_projections.timeline.timeline import Timeline, recorded_at
from intersession_projections.timeline.words import (
    Kind,
    Words,
    asker_of,
    person,
    route_text,
    speaker,
    words_in,
    words_of,
    words_of_message,
)

__all__ = [
    "CLOSES",
    "FAILURES",
    "HELD_BEFORE",
    "HELD_TEXTS",
    "LOOP_ENDS",
    "RELEASES",
    "Kind",
    "Step",
    "Timeline",
    "Words",
    "asker_of",
    "counted",
    "person",
    "recorded_at",
    "route_text",
    "speaker",
    "steps_of",
    "told_more",
    "words_in",
    "words_of",
    "words_of_message",
]
