"""What a worker and its writer say to each other of a channel: each reads what the other wrote, and believes no nonsense."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intersession_actors.outside.channels.channels import Channel, MemoryChannel, Outbound, ThreadWanted
from intersession_actors.outside.channels.offered import (
    Abilities,
    ChannelResult,
    OfferedText,
    OfferedThread,
    abilities_in,
    abilities_of,
    answer_of,
    content_of,
    offered_in,
    result_in,
    text_offered,
    whole,
)
from intersession_actors.outside.channels.outcomes import Delivered, NotDelivered, ThreadOpened
from intersession_events.facts import FileBlock

TEXT = "a text of some length"
PAUSE = st.none() | st.integers(1_000, 31 * 86_400_000)
RECEIPT = st.none() | st.sampled_from(['"m1"', '{"id":1}', "[1,2]", "7", '"\\n"'])
ERROR = st.text(st.characters(exclude_categories=["Cs"]), max_size=2_000)
DELIVERED = st.builds(Delivered, receipt=RECEIPT, sent=st.none() | st.integers(3, len(TEXT)))
FAILED = st.builds(
    NotDelivered,
    error=ERROR,
    retry=st.booleans(),
    in_doubt=st.booleans(),
    traceback=st.none() | ERROR,
    later_ms=PAUSE,
    pauses_channel=st.booleans(),
)


def offered(text: str = TEXT, begins: int = 2) -> OfferedText:
    return text_offered(
        Outbound(channel="telegram", to="42", text=text, key="d1", number=3), begins=begins, head=""
    )


@pytest.mark.clause("WORK-15")
@given(result=DELIVERED | FAILED)
def test_an_outcome_is_the_same_on_both_sides(result: ChannelResult) -> None:
    assert result_in(answer_of(result), offered(), idempotent=False) == result


@pytest.mark.clause("WORK-17")
@given(content=st.binary(max_size=200) | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps).map(str.encode))  # fmt: skip
def test_whatever_a_worker_answers_is_an_outcome(content: bytes) -> None:
    result = result_in(content, offered(), idempotent=True)

    assert isinstance(result, NotDelivered)
    assert (result.in_doubt, result.retry) == (True, True)


@pytest.mark.clause("WORK-17")
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b'{"delivered":{"sent":2}}',
        b'{"delivered":{"sent":99}}',
        b'{"delivered":{"receipt":"{"}}',
        b'{"delivered":{},"notDelivered":{"error":"x","retry":true}}',
        b'{"thread":{"thread":"t1"}}',
        b'{"delivered":{"receipt":7}}',
    ],
)
def test_an_outcome_that_no_channel_could_have_is_none(content: bytes) -> None:
    assert isinstance(result_in(content, offered(), idempotent=False), NotDelivered)


@pytest.mark.clause("WORK-17")
def test_a_writer_records_no_more_of_an_answer_than_of_a_channel() -> None:
    said = NotDelivered(error="e" * 9_000, retry=True, traceback="t" * 90_000, later_ms=-5)
    result = result_in(answer_of(said), offered(), idempotent=False)

    assert isinstance(result, NotDelivered)
    assert (len(result.error), len(result.traceback or ""), result.later_ms) == (2_000, 8_192, 1_000)


@pytest.mark.clause("WORK-15")
def test_a_text_is_offered_whole_and_its_files_by_name() -> None:
    block = FileBlock(sha256="0" * 64, size=3, name="a.txt", mime_type="text/plain")
    text = offered_in(
        content_of(OfferedText(outbound=offered().outbound, begins=2, head="h", files=(block,)))
    )
    assert isinstance(text, OfferedText)
    (file,) = whole(text, None).files

    assert (text.outbound, text.begins, text.head) == (offered().outbound, 2, "h")
    assert (file.name, file.size, file.sha256, file.mime_type) == ("a.txt", 3, "0" * 64, "text/plain")


@pytest.mark.clause("WORK-15", "SPAWN-12")
def test_a_thread_with_an_id_that_can_not_be_recorded_was_not_opened() -> None:
    wanted = OfferedThread(wanted=ThreadWanted(channel="telegram", to="42", title="x", key="t"))
    assert offered_in(content_of(wanted)) == wanted
    opened = result_in(answer_of(ThreadOpened(thread="t1", withheld=True)), wanted, idempotent=False)
    bad = result_in(answer_of(ThreadOpened(thread="t" * 600)), wanted, idempotent=False)

    assert opened == ThreadOpened(thread="t1")
    assert isinstance(bad, NotDelivered)


@pytest.mark.clause("WORK-15")
def test_a_channel_can_what_all_workers_that_have_it_can() -> None:
    plain = abilities_of(Channel(deliver=MemoryChannel().deliver, idempotent=True, max_chars=100))
    edits = abilities_of(Channel(deliver=print, edit=print, edit_every=3, idempotent=True))

    assert abilities_in([edits]) == Abilities(idempotent=True, edits=True, edit_every=3.0)
    assert abilities_in([plain, edits]) == Abilities(idempotent=True, max_chars=100, edit_every=3.0)
    for nonsense in ("", "{", '{"maxChars":0,"idempotent":true}', '{"editEvery":-1,"idempotent":true}'):
        assert abilities_in([edits, nonsense]).idempotent is False
