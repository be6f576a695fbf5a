"""Derived ids are UUIDs of version 5, as anybody can derive them again."""

import uuid

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from intersession_events.basics import ids

PARTS = st.lists(st.text(st.characters(codec="utf-8")) | st.integers(-(2**53), 2**53), max_size=5)


@given(log_id=st.uuids(), parts=PARTS)
def test_an_id_is_the_uuid5_of_its_parts_as_a_json_array(log_id: uuid.UUID, parts: list[str | int]) -> None:
    name = msgspec.json.encode(parts).decode()

    assert ids.derive(str(log_id), *parts) == str(uuid.uuid5(log_id, name))


@given(one=PARTS, other=PARTS)
def test_other_parts_give_another_id(one: list[str | int], other: list[str | int]) -> None:
    log_id = "00000000-0000-4000-8000-000000000001"

    assert (ids.derive(log_id, *one) == ids.derive(log_id, *other)) == (one == other)
