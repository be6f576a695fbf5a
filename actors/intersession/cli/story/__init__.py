"""Tells flows and sessions as conversations, for `replay`, `runs` and `demo`."""

from intersession_events.faces import on_demand

with on_demand(globals()):
    from intersession.cli.story.beat import Beat
    from intersession.cli.story.differing import change_in_words, difference_lines
    from intersession.cli.story.flow import FlowStory
    from intersession.cli.story.names import Names, live_names, names_of
    from intersession.cli.story.printing import BeatPrinter, names_in, show_legend
    from intersession.cli.story.raw_messages import parts, show_message, speaker
    from intersession.cli.story.reasons import show_effects, show_why
    from intersession.cli.story.session import SessionStory
    from intersession.cli.story.standing import can_be_retried, delivery_in_words, standing_in_words
    from intersession.cli.story.subject import (
        FlowSubject,
        SessionSubject,
        Subject,
        events_of_session,
        find_subject,
    )
    from intersession.cli.story.unknown import (
        Unknown,
        tell_unknown,
        unknown_names,
        unknown_stream,
    )
    from intersession_projections.flow_summary import began_ms, flow_value, in_words, kind_of

__all__ = [
    "Beat",
    "BeatPrinter",
    "FlowStory",
    "FlowSubject",
    "Names",
    "SessionStory",
    "SessionSubject",
    "Subject",
    "Unknown",
    "began_ms",
    "can_be_retried",
    "change_in_words",
    "delivery_in_words",
    "difference_lines",
    "events_of_session",
    "find_subject",
    "flow_value",
    "in_words",
    "kind_of",
    "live_names",
    "names_in",
    "names_of",
    "parts",
    "show_effects",
    "show_legend",
    "show_message",
    "show_why",
    "speaker",
    "standing_in_words",
    "tell_unknown",
    "unknown_names",
    "unknown_stream",
]
