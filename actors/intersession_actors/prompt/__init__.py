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
    from intersession_actors.prompt.fitting import context_shown, shown_of, tokens_in, tokens_of
    from intersession_actors.prompt.formats import anthropic_messages, openai_messages, responses_items
    from intersession_actors.prompt.instructions import (
        ANNOUNCE_PROMPT,
        SPAWN_ANNOUNCE_PROMPT,
        FilesTold,
        Parties,
        announce_context,
        child_context,
        primary_context,
        result_context,
        spawn_announce_context,
        turn_context,
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
    from intersession_actors.prompt.window import Earlier, Window, nothing_earlier

__all__ = [
    "ANNOUNCE_PROMPT",
    "ANNOUNCE_SKIP",
    "NO_REPLY",
    "REPLY_SKIP",
    "SPAWN_ANNOUNCE_PROMPT",
    "Earlier",
    "FilesTold",
    "GivenWords",
    "Meanings",
    "Part",
    "Parties",
    "RunContext",
    "TranscriptFold",
    "TranscriptState",
    "Window",
    "announce_context",
    "anthropic_messages",
    "brief",
    "child_context",
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
    "primary_context",
    "prompts_differing",
    "render",
    "responses_items",
    "result_context",
    "results_differing",
    "senders_shown",
    "shown_of",
    "spawn_announce_context",
    "spoken",
    "text_meaning",
    "tokens_in",
    "tokens_of",
    "tool_meaning",
    "turn_context",
    "visible_text",
]
