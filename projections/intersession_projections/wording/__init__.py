"""Every event in words, the reasons that events name, and the short names of sessions: what all that tells a log reads from."""

from intersession_projections.wording.events import words_in, words_of
from intersession_projections.wording.of_flows import asker_of
from intersession_projections.wording.of_sessions import (
    BY_METHOD,
    as_read,
    called,
    caller_of,
    is_by_method,
    person,
    recorded_speaker,
    speaker,
    without_stamp,
    words_of_message,
    writer_of,
)
from intersession_projections.wording.openclaw import OPENCLAW, begins_as_openclaws, is_openclaws
from intersession_projections.wording.reasons import (
    CLOSES,
    FAILURES,
    HELD_BEFORE,
    HELD_TEXTS,
    LOOP_ENDS,
    RELEASES,
    STATUSES,
    closed,
    counted,
    plain_note,
    told_more,
)
from intersession_projections.wording.short_names import short_name
from intersession_projections.wording.words import OF_RUN, Kind, Naming, Sides, Words, route_text

__all__ = [
    "BY_METHOD",
    "CLOSES",
    "FAILURES",
    "HELD_BEFORE",
    "HELD_TEXTS",
    "LOOP_ENDS",
    "OF_RUN",
    "OPENCLAW",
    "RELEASES",
    "STATUSES",
    "Kind",
    "Naming",
    "Sides",
    "Words",
    "as_read",
    "asker_of",
    "begins_as_openclaws",
    "called",
    "caller_of",
    "closed",
    "counted",
    "is_by_method",
    "is_openclaws",
    "person",
    "plain_note",
    "recorded_speaker",
    "route_text",
    "short_name",
    "speaker",
    "told_more",
    "without_stamp",
    "words_in",
    "words_of",
    "words_of_message",
    "writer_of",
]
