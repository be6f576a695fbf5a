"""Where words came from, and by which hops they reached others (ORIGIN-1)."""

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intersession_events.facts import DeliveryDecided, Provenance, Route, ToolCallBlock
from intersession_projections.questions.origins.matching import FOLDED_TO_ASCII, Phrase, holds, longest_shared
from intersession_projections.questions.origins.origins import Origins
from support.story import MAIN, Story

OPS = "agent:ops:main"
CLAIM = "the bridge closes at 17 m/s"


def sent(story: Story, source: str, target: str, text: str) -> str:
    return story.say(
        target,
        text,
        provenance=Provenance(kind="inter_session", source_session_key=source, source_tool="sessions_send"),
    )


def claimed(story: Story) -> list[int]:
    """Tell how a claim of one agent reached another and a chat; return the positions where it is."""
    before = story.log.head()
    story.say(OPS, "Is it open?")
    story.say(OPS, f"I think {CLAIM}.", role="assistant")
    sent(story, OPS, MAIN, f"I think {CLAIM}.")
    story.say(MAIN, f"Research says that {CLAIM}!", role="assistant")
    story.put(
        "delivery:d",
        DeliveryDecided(
            delivery_id="d",
            session_key=MAIN,
            route=Route(channel="telegram", to="ada"),
            text=f"Note that {CLAIM}.",
            key="d",
            purpose="auto_reply",
        ),
    )
    return [before + offset for offset in (2, 3, 4, 5)]


@pytest.mark.clause("ORIGIN-1")
def test_the_first_who_said_it_is_named_and_each_hop_from_there(story: Story) -> None:
    said, told, repeated, delivered = claimed(story)

    found = Origins(story.log).of(CLAIM)

    assert found.first is not None
    assert (found.match, found.words, found.cut) == ("exact", CLAIM, None)
    assert (found.first.position, found.first.who, found.first.via, found.first.cause) == (
        said,
        OPS,
        "agent",
        None,
    )
    assert [(hop.position, hop.cause, hop.via, hop.session_key, hop.to) for hop in found.hops] == [
        (told, said, "sessions_send", MAIN, MAIN),
        (repeated, told, "agent", MAIN, None),
        (delivered, repeated, "delivery", MAIN, "telegram:ada"),
    ]


@pytest.mark.clause("ORIGIN-1")
def test_words_in_other_case_and_white_space_are_found_when_nobody_said_them_so(story: Story) -> None:
    claimed(story)

    found = Origins(story.log).of(" THE bridge\n closes  at 17 M/S ")

    assert found.match == "folded"
    assert found.first is not None
    assert found.first.who == OPS


@pytest.mark.clause("ORIGIN-1")
def test_the_longest_run_that_anybody_said_stands_in_for_what_nobody_did(story: Story) -> None:
    story.say(MAIN, "They say the bridge closes early.")
    positions = claimed(story)

    found = Origins(story.log).of("everybody knows the bridge closes at 17 every day")

    assert (found.match, found.words) == ("shared", "the bridge closes at 17")
    assert found.first is not None
    assert found.first.position == positions[0]


@pytest.mark.clause("ORIGIN-1")
def test_what_nobody_said_has_no_origin(story: Story) -> None:
    claimed(story)

    for words in ("zebra", "a zebra at night", "zebra of the"):
        assert Origins(story.log).of(words).first is None


@pytest.mark.clause("ORIGIN-1")
def test_what_tools_were_given_and_gave_counts_as_said(story: Story) -> None:
    quoted = 'say "the dam\nholds" to all'
    call = ToolCallBlock(id="c", name="sessions_send", arguments=json.dumps({"message": quoted}))
    story.say(MAIN, (call,), role="assistant")
    answer = json.dumps({"status": "ok", "sessionKey": OPS, "reply": "no, the dam leaks badly"})
    story.say(OPS, "no, the dam leaks badly", role="assistant")
    story.say(MAIN, answer, role="toolResult", tool_name="sessions_send", tool_call_id="c")

    given_, gave = Origins(story.log).of(quoted), Origins(story.log).of("the dam leaks badly")

    assert given_.first is not None
    assert (given_.first.position, given_.first.who, given_.match) == (1, MAIN, "exact")
    assert gave.first is not None
    assert gave.first.who == OPS
    assert [(hop.via, hop.who, hop.cause) for hop in gave.hops] == [("tool", "sessions_send", 2)]


@pytest.mark.clause("ORIGIN-1")
def test_a_person_who_says_it_again_has_it_from_nobody(story: Story) -> None:
    person = Provenance(kind="external_user", sender="ada")
    story.say(MAIN, CLAIM, provenance=person)
    story.say(OPS, CLAIM, provenance=person)

    found = Origins(story.log).of(CLAIM)

    assert [hop.cause for hop in found.hops] == [None]


@pytest.mark.clause("ORIGIN-1")
def test_within_a_run_only_what_led_there_is_shown(story: Story) -> None:
    said, told, repeated, _delivered = claimed(story)
    story.say("agent:other:main", f"By the way, {CLAIM}.", role="assistant")

    found = Origins(story.log).of(CLAIM, within=frozenset({repeated}))

    assert found.first is not None
    assert [found.first.position, *(hop.position for hop in found.hops)] == [said, told, repeated]
    assert Origins(story.log).of(CLAIM, within=frozenset({1})).first is None


@pytest.mark.clause("ORIGIN-1")
def test_a_search_that_is_given_up_says_where(story: Story) -> None:
    for _ in range(5):
        story.say(MAIN, "nothing yet")
    claimed(story)

    found = Origins(story.log, most_rows=5).of(CLAIM)

    assert (found.first, found.cut) == (None, 5)


@pytest.mark.clause("ORIGIN-1")
def test_more_hops_than_are_shown_are_cut_and_said(story: Story) -> None:
    for _ in range(520):
        story.say(MAIN, CLAIM)

    found = Origins(story.log).of(CLAIM)

    assert len(found.hops) == 500
    assert found.cut == 501


@pytest.mark.clause("ORIGIN-1")
def test_of_a_run_what_lies_nearest_is_shown_however_often_it_was_said_before(story: Story) -> None:
    """The first 500 hops were shown, and the run's own were not among them."""
    for _ in range(520):
        story.say(MAIN, CLAIM, role="assistant")
    last = story.log.head()

    found = Origins(story.log).of(CLAIM, within=frozenset({last}))

    assert found.first is not None
    assert [hop.position for hop in found.hops][-2:] == [last - 1, last]
    assert (len(found.hops), found.cut) == (500, found.hops[0].position)
    assert found.hops[0].cause == found.hops[0].position - 1
    near = Origins(story.log, most_rows=5).of(CLAIM, within=frozenset({last}), to=last)
    assert near.first is not None
    assert (near.cut, near.first.position, len(near.hops)) == (last - 5, last - 4, 4)


@pytest.mark.clause("ORIGIN-1")
def test_a_place_before_it_was_said_knows_nothing_of_it(story: Story) -> None:
    said, *_ = claimed(story)

    assert Origins(story.log).of(CLAIM, to=said - 1).first is None
    assert Origins(story.log).of(CLAIM, to=said).hops == ()


@pytest.mark.clause("ORIGIN-1")
def test_what_may_not_be_read_is_not_found_by_it(story: Story) -> None:
    claimed(story)

    found = Origins(story.log, shows=lambda key: str if key == MAIN else None).of(CLAIM)
    hidden = Origins(story.log, shows=lambda _: lambda text: text.replace(CLAIM, "[hidden]")).of(CLAIM)

    assert found.first is not None
    assert found.first.session_key == MAIN
    assert hidden.first is None


@pytest.mark.clause("ORIGIN-1")
@given(
    st.text(max_size=40),
    st.text(max_size=40),
    st.text(min_size=1, max_size=40) | st.sampled_from(["café closed", "a/b c", "🙂 here"]),
    st.booleans(),
    st.booleans(),
)
def test_what_holds_a_phrase_exactly_is_never_passed_over_unread(
    before: str, after: str, words: str, numbered: bool, slashed: bool
) -> None:
    """Also in JSON of others: a tool of Python's writes letters as numbers, one of PHP's slashes with a sign before."""
    phrase = Phrase.of(words)
    source = json.dumps({"content": f"{before}{phrase.given}{after}"}, ensure_ascii=numbered)
    source = source.replace("/", "\\/") if slashed else source
    stored = json.dumps(source, ensure_ascii=False).encode("utf-8", "surrogatepass")

    assert phrase.may_hold(stored, phrase.plainest())


@pytest.mark.clause("ORIGIN-1")
@given(
    st.lists(
        st.text(st.sampled_from("askKIißẞ\u017f\u212aİﬁﬀé"), min_size=1, max_size=6), min_size=1, max_size=4
    ).map(" ".join),
    st.sampled_from([str.upper, str.lower, str.casefold, str.title]),
)
def test_what_holds_a_phrase_in_any_case_is_never_passed_over_unread(
    words: str, written: Callable[[str], str]
) -> None:
    phrase = Phrase.of(words)
    if not phrase.words or holds(written(words), phrase) is None:
        return
    stored = json.dumps({"content": written(words)}, ensure_ascii=False).encode()

    assert phrase.may_share(stored, len(phrase.words) - 1)


@pytest.mark.clause("ORIGIN-1")
@pytest.mark.parametrize(
    ("said", "asked", "match"),
    [
        ('{"note": "das Caf\\u00e9 ist zu"}', "das Café ist zu", "exact"),
        ('{"url": "https:\\/\\/a.example\\/x"}', "https://a.example/x", "exact"),
        ("die straße ist zu", "die Straße ist zu", "folded"),
        ("DIE STRASSE IST ZU", "die Straße ist zu", "folded"),
        ("die Straße ist zu", "die Strasse ist zu", "folded"),
    ],
)
def test_words_are_found_however_their_letters_were_written(
    story: Story, said: str, asked: str, match: str
) -> None:
    story.say(MAIN, said, role="toolResult", tool_call_id="c", tool_name="look")
    at = story.log.head()
    found = Origins(story.log).of(asked)
    assert found.first is not None
    assert (found.first.position, found.match) == (at, match)

    story.say(MAIN, asked, role="assistant")  # what is there as it was asked for hides nothing
    found = Origins(story.log).of(asked)
    assert found.first is not None
    assert (found.first.position == at, found.match) == (match == "exact", "exact")


@pytest.mark.clause("ORIGIN-1")
def test_what_has_no_word_in_it_is_found_as_it_was_given(story: Story) -> None:
    story.say(MAIN, "fine \N{WAVING HAND SIGN}!")
    first = Origins(story.log).of("\N{WAVING HAND SIGN}").first
    assert first is not None
    assert first.text == "fine \N{WAVING HAND SIGN}!"
    assert Origins(story.log).of("\N{SNOWMAN}").first is None
    assert Origins(story.log).of(" ").first is None


def test_each_letter_that_becomes_one_of_ascii_in_small_letters_is_known() -> None:
    letters = map(chr, [*range(0x80, 0xD800), *range(0xE000, sys.maxunicode + 1)])
    assert set(FOLDED_TO_ASCII) == {one for one in letters if any(map(str.isascii, one.casefold()))}


@given(
    st.lists(st.sampled_from("abcdef"), max_size=12),
    st.lists(st.sampled_from("abcdef"), min_size=1, max_size=8),
)
def test_the_longest_shared_run_is_the_longest(said: list[str], words: list[str]) -> None:
    found = longest_shared(" ".join(said), words, more_than=0)

    runs = [
        end - begin
        for begin in range(len(words))
        for end in range(begin + 1, len(words) + 1)
        if any(said[at : at + end - begin] == words[begin:end] for at in range(len(said)))
    ]
    assert (0 if found is None else found[1] - found[0]) == max(runs, default=0)


@pytest.mark.clause("ORIGIN-1")
def test_a_log_is_looked_through_once_where_nobody_said_the_words(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(30):
        story.say(MAIN, f"hello {number}")
    looked = 0
    rows = type(story.log).rows

    def counted(log: Any, **given: Any) -> Any:
        nonlocal looked
        page = rows(log, **given)
        looked += len(page)
        return page

    monkeypatch.setattr(type(story.log), "rows", counted)

    assert Origins(story.log).of("nobody ever said this").first is None
    assert looked == story.log.head()
