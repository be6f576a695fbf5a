"""What an agent is given of its session: the transcript, fenced and in its model's format, and the instructions."""

from intersession_events.faces import on_demand

with on_demand(globals()):
    from intersession_actors.prompt.differing import (
        GivenWords,
        Part,
        brief,
        given_then,
        prompts_differing,
        results_differing,
    )
    from intersession_actors.prompt.fencing import fence, fence_id
    from intersession_actors.prompt.fitting import NotAtHand, context_shown, shown_of, tokens_in, tokens_of
    from intersession_actors.prompt.formats import anthropic_messages, openai_messages, responses_items
    from intersession_actors.prompt.instructions import (
        ANNOUNCE_PROMPT,
        SPAWN_ANNOUNCE_PROMPT,
        told_by,
    )
    from intersession_actors.prompt.meaning import Meanings, text_meaning, tool_meaning
    from intersession_actors.prompt.rendering import render, senders_shown
    from intersession_actors.prompt.silence import (
        ANNOUNCE_SKIP,
        NO_REPLY,
        REPLY_SKIP,
        is_announce_skip,
        is_reply_skip,
        is_withheld,
        spoken,
        visible_text,
    )
    from intersession_actors.prompt.transcript import (
        RunContext,
        TranscriptFold,
        TranscriptState,
        context_hash,
        fitted_hash,
    )
    from intersession_actors.prompt.window import Earlier, Transcript, Window, nothing_earlier

__all__ = [
    "ANNOUNCE_PROMPT",
    "ANNOUNCE_SKIP",
    "NO_REPLY",
    "REPLY_SKIP",
    "SPAWN_ANNOUNCE_PROMPT",
    "Earlier",
    "GivenWords",
    "Meanings",
    "NotAtHand",
    "Part",
    "RunContext",
    "Transcript",
    "TranscriptFold",
    "TranscriptState",
    "Window",
    "anthropic_messages",
    "brief",
    "context_hash",
    "context_shown",
    "fence",
    "fence_id",
    "fitted_hash",
    "given_then",
    "is_announce_skip",
    "is_reply_skip",
    "is_withheld",
    "nothing_earlier",
    "openai_messages",
    "prompts_differing",
    "render",
    "responses_items",
    "results_differing",
    "senders_shown",
    "shown_of",
    "spoken",
    "text_meaning",
    "tokens_in",
    "tokens_of",
    "told_by",
    "tool_meaning",
    "visible_text",
]
