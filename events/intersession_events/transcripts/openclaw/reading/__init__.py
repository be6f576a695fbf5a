"""Reads an OpenClaw state directory: its files, their lines, messages, keys and stamps."""

from intersession_events.faces import on_demand

with on_demand(globals()):
    from intersession_events.transcripts.openclaw.reading.files import agent_id_of, read_state
    from intersession_events.transcripts.openclaw.reading.foreign_json import (
        Unreadable,
        a_count,
        a_list,
        a_text,
        at,
        read_object,
    )
    from intersession_events.transcripts.openclaw.reading.keys import (
        canonical,
        is_run_alias,
        kept_aside,
        mentioned,
    )
    from intersession_events.transcripts.openclaw.reading.lines import (
        Line,
        Transcript,
        evidence_of,
        read_transcript,
    )
    from intersession_events.transcripts.openclaw.reading.stamp import strip_stamp
    from intersession_events.transcripts.openclaw.reading.state import (
        Closing,
        Entry,
        Exported,
        OpenClawState,
        RunRecord,
    )

__all__ = [
    "Closing",
    "Entry",
    "Exported",
    "Line",
    "OpenClawState",
    "RunRecord",
    "Transcript",
    "Unreadable",
    "a_count",
    "a_list",
    "a_text",
    "agent_id_of",
    "at",
    "canonical",
    "evidence_of",
    "is_run_alias",
    "kept_aside",
    "mentioned",
    "read_object",
    "read_state",
    "read_transcript",
    "strip_stamp",
]
