"""What a view stores small is read again as it was, whole or as changes."""

from typing import Any, Final

import pytest
from msgspec.structs import replace

from intersession_events.facts import Route, Usage
from intersession_projections.basics.columns import Packing, pack, packed, ranges, unpacked
from intersession_projections.views.run_outcomes.outcome import RunOutcome
from intersession_projections.views.sessions.row import STORED, SessionRow

_ID: Final = "0b7c0f2e-3b1a-5c57-9a55-0f0e3c1d2a4b"
_ROW: Final = SessionRow(
    key="agent:main:main",
    session_id=_ID,
    agent_id="main",
    opened_by="send",
    updated_at=5,
    position=7,
    version=3,
)
_ROUTED: Final = replace(
    _ROW,
    route=Route(channel="telegram", to=_ID, account=None, thread="9"),
    running=_ID,
    system_sent=True,
    position=9,
)


@pytest.mark.parametrize("row", [_ROW, _ROUTED], ids=["plain", "with a route"])
def test_a_row_is_read_as_it_was_stored(row: SessionRow) -> None:
    assert STORED.restored(pack(STORED.small(row)), key=row.key, position=row.position) == row


@pytest.mark.parametrize(("before", "after"), [(_ROW, _ROUTED), (_ROUTED, _ROW)], ids=["set", "taken back"])
def test_a_change_makes_the_next_row_of_the_one_before(before: SessionRow, after: SessionRow) -> None:
    small = STORED.small(before) | STORED.small(after, since=before)
    assert STORED.restored(pack(small), key=after.key, position=after.position) == after


def test_a_struct_and_a_tuple_within_a_row_keep_their_types() -> None:
    stored: Packing[Any] = Packing(RunOutcome, nested={"usage": Usage})  # of any kind
    outcome = RunOutcome(
        run_id=_ID,
        session_key="agent:main:main",
        session_id=_ID,
        step="message",
        message_id="m-1",
        status="ok",
        queued_ms=1,
        accepted=2,
        position=3,
        first_version=4,
        last_version=5,
        usage=Usage(input=3, output=4),
        chain=("agent:main:main", _ID),
    )
    assert stored.restored(pack(stored.small(outcome))) == outcome


@pytest.mark.parametrize("text", [_ID, _ID.upper(), _ID[:-1], "", "agent:main:main"])
def test_any_text_is_unpacked_as_it_was(text: str) -> None:
    assert unpacked(packed(text)) == text


def test_the_beginning_of_an_id_finds_it_in_its_packed_form() -> None:
    stored = packed(_ID)
    assert any(
        type(low) is type(stored) and low <= stored <= high  # type: ignore[operator]  # both texts, or both bytes
        for low, high in ranges(_ID[:6])
    )
