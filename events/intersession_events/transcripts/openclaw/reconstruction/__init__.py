"""Finds the sessions, exchanges and spawns of an OpenClaw state again, and says on what evidence."""

from intersession_events.transcripts.openclaw.reconstruction.drafts import Links, Planned, planned_id
from intersession_events.transcripts.openclaw.reconstruction.exchange_events import (
    Chain,
    World,
    exchange_facts,
)
from intersession_events.transcripts.openclaw.reconstruction.exchanges import (
    Found,
    Stepped,
    find_exchanges,
    inter_session,
)
from intersession_events.transcripts.openclaw.reconstruction.session_events import (
    Lineage,
    archived_step,
    planned_lines,
    reset_step,
    route_of,
    session_facts,
)
from intersession_events.transcripts.openclaw.reconstruction.sessions import Session, Survey, survey
from intersession_events.transcripts.openclaw.reconstruction.spawn_events import is_cleaned_up, spawn_facts
from intersession_events.transcripts.openclaw.reconstruction.spawns import FoundSpawns, Spawn, find_spawns
from intersession_events.transcripts.openclaw.reconstruction.steps import mirrors_of, steps_of

__all__ = [
    "Chain",
    "Found",
    "FoundSpawns",
    "Lineage",
    "Links",
    "Planned",
    "Session",
    "Spawn",
    "Stepped",
    "Survey",
    "World",
    "archived_step",
    "exchange_facts",
    "find_exchanges",
    "find_spawns",
    "inter_session",
    "is_cleaned_up",
    "mirrors_of",
    "planned_id",
    "planned_lines",
    "reset_step",
    "route_of",
    "session_facts",
    "spawn_facts",
    "steps_of",
    "survey",
]
