"""What of a context is shown where all of it is more than a model takes: whole turns, calls with their results, the newest."""

import json
import sys
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intersession_actors.rules.prompt.fencing import fence
from intersession_actors.rules.prompt.fitting import (
    NotAtHand,
    context_shown,
    fit,
    shown_of,
    tokens_in,
    tokens_of,
)
from intersession_actors.rules.prompt.transcript import RunContext
from intersession_events.facts import ImageBlock, Message, Provenance, ToolCallBlock, text_of

PERSON: Final = Provenance(kind="external_user")


def asked(text: str, name: str = "m") -> Message:
    return Message(id=name, role="user", content=text, timestamp=0, provenance=PERSON)


def said(text: str) -> Message:
    return Message(id="a", role="assistant", content=text, timestamp=0)


def called(call_id: str, arguments: str = "{}") -> Message:
    block = ToolCallBlock(id=call_id, name="look", arguments=arguments)
    return Message(id=f"c{call_id}", role="assistant", content=(block,), timestamp=0)


def gave(call_id: str, text: str) -> Message:
    return Message(id=f"r{call_id}", role="toolResult", content=text, timestamp=0, tool_call_id=call_id)


def context(
    transcript: tuple[Message, ...], message: Message, partial: tuple[Message, ...] = (), system: str = ""
) -> RunContext:
    used = sum(map(tokens_of, (*transcript, message, *partial))) + tokens_in(system)
    return RunContext(
        message=message,
        transcript=transcript,
        partial=partial,
        system_context=system,
        hash="h",
        version=1,
        used=used,
    )


def shown(whole: RunContext, room: int) -> tuple[Message, ...]:
    fitted = whole.fitted(room, may_read=True)
    assert fitted is not None
    earlier, message, done = shown_of(
        whole.transcript, whole.message, whole.partial, fitted.fit, run_id="run"
    )
    return (*earlier, message, *done)


def turns(number: int) -> tuple[Message, ...]:
    return tuple(
        one
        for turn in range(number)
        for one in (asked(f"{turn}?"), called(f"{turn}"), gave(f"{turn}", "much " * 30), said(f"{turn}."))
    )


@pytest.mark.clause("CTX-1")
@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("hello", 2), ("hello world ok", 5), ("HTTP 404", 8), ("今天", 3), ("naïve", 3), ("😀", 2)],
)
def test_tokens_are_counted_by_kinds_of_characters(text: str, tokens: int) -> None:
    assert tokens_in(text) == tokens


@pytest.mark.clause("CTX-1")
def test_a_picture_is_two_thousand_tokens_whatever_its_bytes() -> None:
    small, large = (
        Message(id="m", role="user", content=(ImageBlock(data=data),), timestamp=0)
        for data in ("QQ==", "Q" * 9_000)
    )

    assert tokens_of(small) == tokens_of(large) >= 2_000


@pytest.mark.clause("CTX-2")
def test_what_fits_is_shown_as_it_is_under_the_same_hash() -> None:
    whole = context(turns(3), asked("and now?"))

    assert whole.fitted(100_000, may_read=True) is whole
    assert whole.fitted(None, may_read=True) is whole


@pytest.mark.clause("CTX-2")
@given(number=st.integers(1, 12), room=st.integers(150, 3_000))
def test_the_newest_whole_turns_are_shown_and_no_call_without_its_result(number: int, room: int) -> None:
    whole = context(turns(number), asked("and now?"))

    seen = shown(whole, room)

    assert seen[-1] == whole.message
    calls = [
        block.id
        for one in seen
        if isinstance(one.content, tuple)
        for block in one.content
        if isinstance(block, ToolCallBlock)
    ]
    assert calls == [one.tool_call_id for one in seen if one.role == "toolResult"]
    kept = [text_of(one) for one in seen if one.role == "user"]
    if whole.used > room:
        assert "left out here" in kept[0]
        assert kept[1:] == [f"{turn}?" for turn in range(number - len(kept) + 2, number)] + ["and now?"]
        assert sum(map(tokens_of, seen)) <= max(room, 300)


@pytest.mark.clause("CTX-2")
def test_a_call_whose_result_came_behind_a_word_of_a_person_is_not_parted_from_it() -> None:
    interrupted = (asked("look"), called("1"), asked("hurry"), gave("1", "found"), said("it is there"))
    whole = context((*turns(4), *interrupted), asked("thanks"))

    for room in range(200, whole.used, 40):
        seen = shown(whole, room)
        results = [one.tool_call_id for one in seen if one.role == "toolResult"]
        calls = [
            block.id
            for one in seen
            if isinstance(one.content, tuple)
            for block in one.content
            if isinstance(block, ToolCallBlock)
        ]
        assert set(results) <= set(calls)


@pytest.mark.clause("CTX-2")
def test_one_large_result_does_not_cost_what_was_said_before_it() -> None:
    whole = context(
        (
            asked("my name is Ann"),
            said("Hello Ann"),
            asked("look"),
            called("1"),
            gave("1", "x" * 50_000),
            said("ok"),
        ),
        asked("who am I?"),
    )

    seen = shown(whole, 2_000)

    assert "my name is Ann" in [text_of(one) for one in seen]
    result = next(one for one in seen if one.role == "toolResult")
    assert "characters are left out here" in text_of(result)


@pytest.mark.clause("CTX-2")
def test_of_what_interrupted_attempts_did_the_newest_is_shown_and_large_arguments_stay_an_object() -> None:
    done = tuple(
        one
        for number in range(40)
        for one in (
            called(f"{number}", json.dumps({"text": "y" * 5_000})),
            gave(f"{number}", f"result {number}"),
        )
    )
    whole = context(turns(2), asked("go"), done)

    seen = shown(whole, 2_000)

    assert text_of(seen[-1]) == "result 39"
    calls = [
        block
        for one in seen
        if isinstance(one.content, tuple)
        for block in one.content
        if isinstance(block, ToolCallBlock)
    ]
    assert 1 <= len(calls) == sum(one.role == "toolResult" for one in seen)
    assert all("leftOut" in json.loads(call.arguments) for call in calls)


@pytest.mark.clause("CTX-2")
def test_quotes_in_the_instructions_are_cut_inside_of_their_fences() -> None:
    quoted = fence("quote", "0123456789abcdef", {"what": "task"}, "dig " * 3_000)
    whole = context((), asked("announce"), system=f"Before.\n{quoted}\nAfter.")

    fitted = whole.fitted(1_000, may_read=True)
    assert fitted is not None
    cut = context_shown(whole.system_context, fitted.fit)

    assert cut.startswith('Before.\n[[quote 0123456789abcdef {"characters":')
    assert cut.endswith("\n[[end 0123456789abcdef]]\nAfter.")
    inside = cut.split("\n", 2)[2].rpartition("\n[[end")[0]
    assert f'"characters":{len(inside)},' in cut
    assert tokens_in(cut) < 1_000


@pytest.mark.clause("CTX-2")
def test_other_parts_left_out_are_another_context_hash() -> None:
    whole = context(turns(12), asked("and now?"))
    hashes = {fitted.hash for room in (300, 700, 1_100) if (fitted := whole.fitted(room, may_read=True))}

    assert len(hashes) == 3
    assert "h" not in hashes


@pytest.mark.clause("CTX-2")
def test_what_fits_of_a_long_transcript_is_found_without_going_through_its_messages() -> None:
    """Before: each run of a session that is longer than its window counted the tokens of all that there was room for."""
    transcript = turns(1_000)
    tokens = [tokens_of(one) for one in transcript]
    calls = 0

    def count(_frame: object, event: str, _what: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        found = fit(transcript, asked("now?"), (), "", room=sum(tokens) // 2, at_hand=(0, tokens))
    finally:
        sys.setprofile(None)

    assert 1_900 < found.left_out < 2_100
    assert calls < 60


@pytest.mark.clause("CTX-2")
@given(hand=st.integers(0, 48), room=st.integers(300, 4_000))
def test_what_fits_does_not_depend_on_what_is_at_hand(hand: int, room: int) -> None:
    transcript, message = turns(12), asked("now?")
    whole = fit(transcript, message, (), "", room=room)
    at_hand = (hand, [tokens_of(one) for one in transcript[hand:]])

    assert fit(transcript, message, (), "", room=room, at_hand=at_hand) == whole
    try:
        found = fit(transcript, message, (), "", room=room, at_hand=at_hand, may_read=False)
    except NotAtHand:
        assert hand > 0
        assert whole.left_out < hand + 4, "all that is at hand fits, and perhaps more"
    else:
        assert found == whole
        assert hand == 0 or whole.left_out > hand
