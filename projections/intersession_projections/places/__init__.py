"""Places in a log: how they are typed, which position each one means, and what it is in words (PLACE)."""

from intersession_projections.places.calling import CallingRun, calling_runs
from intersession_projections.places.described import Described, PlaceWords
from intersession_projections.places.grammar import FORMS, InRun, UnknownPlace, parse_place, parse_time
from intersession_projections.places.located import (
    Located,
    Places,
    ReadFlow,
    read_flow,
    read_flows,
    sessions_of,
    sessions_of_each,
    steps_of_flow,
)
from intersession_projections.places.runs_named import (
    FEWEST,
    Flow,
    RunNames,
    Sees,
    flow_id,
    flow_sessions,
    flow_stream,
    not_recorded,
)
from intersession_projections.places.then import Then

__all__ = [
    "FEWEST",
    "FORMS",
    "CallingRun",
    "Described",
    "Flow",
    "InRun",
    "Located",
    "PlaceWords",
    "Places",
    "ReadFlow",
    "RunNames",
    "Sees",
    "Then",
    "UnknownPlace",
    "calling_runs",
    "flow_id",
    "flow_sessions",
    "flow_stream",
    "not_recorded",
    "parse_place",
    "parse_time",
    "read_flow",
    "read_flows",
    "sessions_of",
    "sessions_of_each",
    "steps_of_flow",
]
