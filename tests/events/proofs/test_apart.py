"""FORGET-6: a model's thinking stands beside a payload, and whatever was said comes together again to the byte."""

import json
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intersession_events.facts import (
    Block,
    Message,
    MessageRecorded,
    OtherBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    TranscriptGiven,
    decode,
    encode,
    unsaid,
)
from intersession_events.proofs.apart import has_thinking, parted, problem_of, whole

SALT: Final = b"s" * 16
KINDS: Final = ("thinking", "redacted_thinking", "reasoning")
ODD: Final = (
    '{"thinking":"x","type":"thinking"}',
    '{"apart":["',
    '","type":"thinking"}',
    '\\"',
    "\n",
    "é",
    ',"source":"x"}',
)
TEXTS: Final = st.lists(
    st.sampled_from(ODD) | st.text(st.characters(exclude_categories=["Cs"]), max_size=5), max_size=4
).map("".join)
EXTRAS: Final = st.none() | st.dictionaries(TEXTS, TEXTS, max_size=1).map(json.dumps)
BLOCKS: Final = st.one_of(
    st.builds(ThinkingBlock, thinking=TEXTS, thinking_signature=st.none() | TEXTS, extra=EXTRAS),
    st.builds(TextBlock, text=TEXTS, extra=EXTRAS),
    st.builds(ToolCallBlock, id=st.just("c"), name=st.just("thinking"), arguments=TEXTS),
    st.builds(
        OtherBlock,
        json=st.builds(
            lambda kind, text: json.dumps({"type": kind, "x": text}), st.sampled_from((*KINDS, "odd")), TEXTS
        ),
    ),
)
MESSAGES: Final = st.lists(BLOCKS, max_size=4).map(
    lambda content: Message(id="m", role="assistant", content=tuple(content), timestamp=1)
)
EVENTS: Final = st.builds(
    MessageRecorded, session_id=st.just("s"), message=MESSAGES, source=st.none() | TEXTS
) | st.builds(
    lambda given: TranscriptGiven(session_id="s", requester="r", version=1, given=tuple(given)),
    st.lists(MESSAGES, max_size=2),
)


def thinks(block: Block) -> bool:
    if isinstance(block, OtherBlock):
        return json.loads(block.json)["type"] in KINDS
    return isinstance(block, ThinkingBlock)


@pytest.mark.clause("FORGET-6")
@given(EVENTS)
def test_what_is_parted_is_whole_again_and_without_thinking_it_is_an_event_as_it_was(
    event: MessageRecorded | TranscriptGiven,
) -> None:
    payload = encode(event)
    messages = (event.message,) if isinstance(event, MessageRecorded) else event.given
    blocks = [block for one in messages if isinstance(one.content, tuple) for block in one.content]
    thoughts = sum(map(thinks, blocks))
    assert has_thinking(payload) == (thoughts > 0)
    if not thoughts:
        return
    data, apart = parted(payload, SALT)
    has_line = isinstance(event, MessageRecorded) and event.source is not None
    assert len(apart.pieces) == thoughts + has_line
    assert (whole(data, apart), problem_of(data, apart)) == (payload, None)
    left = decode(event.topic, whole(data, None))
    assert encode(unsaid(left)) == encode(unsaid(event))
    assert not isinstance(left, MessageRecorded) or left.source is None
