"""What OpenClaw itself tells its agents. Its transcripts hold that as words of a user, or of the session that had asked. Pure."""

import re
from typing import Final

from intersession_events import facts
from intersession_events.transcripts.openclaw.reading.stamp import strip_stamp

OPENCLAW: Final = "OpenClaw"
"""What it is called where such words are told."""

_ITS_OWN: Final = re.compile(
    r"OpenClaw runtime context \(internal\):"  # a sub-agent is done
    r"|\[Subagent Context\] You are running as a subagent"  # a task is handed to one
    r"|Agent-to-agent announce step\."
    r"|\[cron:\S"
    r"|Task: [^\n]* \| Job ID: \S+ \| Received: "  # a hook was called
)


def is_openclaws(message: facts.Message) -> bool:
    """Whether the words of an imported message are OpenClaw's own: known by how they begin, for nothing else tells.

    Every message of our own says where it came from, so nobody's words here are taken for such.
    """
    origin = message.provenance
    as_sent = origin is not None and origin.kind == "inter_session" and origin.source_tool == "sessions_send"
    if message.role != "user" or not (origin is None or (as_sent and origin.exchange_id is None)):
        return False
    return begins_as_openclaws(facts.text_of(message))


def begins_as_openclaws(text: str) -> bool:
    """Whether a text of an import begins as OpenClaw's own words do."""
    return _ITS_OWN.match(strip_stamp(text)) is not None
