"""Each event is taken by a view, or stands here as one that none takes: a new one can't be passed over by chance."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from intersession_events import facts
from support.paths import ROOT

VIEWS = ROOT / "projections" / "intersession_projections" / "views"
NONE_TAKES = {
    "AttachmentsReady",
    "CheckpointPublished",
    "CheckpointTaken",
    "ClockStepped",
    "ConfigLoaded",
    "ForkEdited",
    "ForkedFrom",
    "ImportReported",
    "InboundTaken",
    "LateReplyDropped",
    "LogOpened",
    "NotePinned",
    "RecordingLeft",
    "ScheduleFired",
    "ScheduleMissed",
    "ScheduleSet",
    "SpawnClaimed",
    "ThreadOpened",
    "TranscriptGiven",
}
"""They are found by the streams that they stand in, or by the run that they name."""


def taken_in(module: Path) -> Iterator[str]:
    """Yield the events that a module names: by their class, by one that they have in common, or by a union of them."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    names |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    for name in names & {*vars(facts)} - {"Deciding", "Event", "Fact"}:
        named = getattr(facts, name)
        for kind in get_args(named) or (named,):
            if isinstance(kind, type) and issubclass(kind, facts.Fact):
                yield from (event.__name__ for event in facts.TOPICS.values() if issubclass(event, kind))


def test_each_event_is_taken_by_a_view_or_known_as_one_that_none_takes() -> None:
    taken = {name for module in VIEWS.rglob("*.py") for name in taken_in(module)}

    assert {event.__name__ for event in facts.TOPICS.values()} - taken == NONE_TAKES
