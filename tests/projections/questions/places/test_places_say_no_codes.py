"""A place is said in words that people use: no code of a reason, an end or a status stands in it (PLACE-5)."""

import re
from collections.abc import Iterator
from typing import Any, get_args

import pytest

from intersession_events import facts
from intersession_events.facts.parts import words_of
from intersession_events.facts.words import Frame

SIDES = Frame(key="agent:main:main", asker="main", asked="research")
CODE = re.compile(r"\b[a-z]+_[a-z_]+\b|\((?:ok|error|timeout|aborted|silent|announced)\)")


def ended(
    kind: type[Any], codes: object, **given: object
) -> Iterator[facts.Event]:  # Any: each struct has its own fields
    """Yield an event of a kind with each of its codes; the field that has none yet is the code's."""
    (field,) = {"reason", "status", "code"} & {*kind.__struct_fields__} - {*given}
    for code in get_args(codes):
        yield kind(**{field: code}, **given)


EVENTS = [
    *ended(facts.ExchangeClosed, facts.CloseReason),
    *ended(facts.SpawnClosed, facts.SpawnClose, code=None),
    *ended(facts.LoopEnded, facts.LoopEnd, turns=2),
    *ended(facts.ChildEnded, facts.RunStatus, run_id="r", text=None),
    *ended(facts.TurnEnded, facts.RunStatus, turn=0, speaker="agent:main:main", run_id="r", text=None),
    *ended(facts.TurnEnded, facts.RunStatus, turn=1, speaker="agent:main:main", run_id="r", text=None),
    *ended(facts.ChildArchived, facts.ArchiveReason, child="agent:main:subagent:1"),
    *ended(facts.RunFailed, facts.FailureCode, run_id="r", attempt=1, error="it was cut"),
]


@pytest.mark.clause("PLACE-5")
def test_no_place_is_said_by_a_code() -> None:
    assert len(EVENTS) > 40
    for event in EVENTS:
        said = words_of(event, SIDES)
        for words in (said.after, said.step):
            assert words is None or not CODE.search(words), words
