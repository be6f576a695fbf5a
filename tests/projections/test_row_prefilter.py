"""Rows are looked through as they lie, and nothing is passed over that is asked for (FIND-2)."""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intersession_events.facts import Provenance
from intersession_events.log.recorded import Recorded
from intersession_events.log.sql import Row
from intersession_events.stores.opened import open_log
from intersession_events.stores.portable.log import PortableLog
from intersession_projections.basics.row_prefilter import Holding, prefiltered
from intersession_projections.basics.spans import Span, backwards
from intersession_projections.questions.messages import MessageFilter, Messages
from intersession_projections.questions.places.located import steps_of_flow
from intersession_projections.questions.work_list import WorkFilter, WorkList
from intersession_projections.views.inline_views import inline_views
from support.golden_logs import GoldenLog
from support.story import MAIN, Story


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PortableLog]:
    path: Path = GoldenLog("0.1.0", "base").unpack(tmp_path_factory.mktemp("prefilter"))
    with open_log(f"sqlite:///{path}", read_only=True, inline=inline_views()) as opened:
        yield opened


@pytest.mark.clause("FIND-2")
@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2500), st.integers(0, 2500), st.sampled_from(["message_", "exchange_", "run_", ""]))
def test_what_passes_is_what_reading_all_and_choosing_gives(
    log: PortableLog, after: int, to: int, kind: str
) -> None:
    def may(row: Row) -> bool:
        return bool(row[3].startswith(kind))

    span = Span(after=after, to=to)
    assert list(prefiltered(log, span, may)) == [
        one for one in backwards(log, span) if one.topic.startswith(kind)
    ]


WORDS = st.text(st.sampled_from('aBß Kéüя1_"\\\n.日'), min_size=1, max_size=6)


@pytest.mark.clause("FIND-2")
@settings(max_examples=40, deadline=None)
@given(st.lists(WORDS, min_size=1, max_size=4), st.data())
def test_a_row_that_says_words_is_never_passed_over(texts: list[str], data: st.DataObject) -> None:
    story = Story()
    try:
        story.open()
        said = [story.say(MAIN, text) for text in texts]
        assert said
        number = data.draw(st.integers(0, len(texts) - 1))
        own = texts[number].split()
        words = [word[data.draw(st.integers(0, len(word) - 1)) :] for word in own]
        words = [word.upper() if data.draw(st.booleans()) else word for word in words]
        folded = texts[number].casefold()
        if all(word.casefold() in folded for word in words):
            holding = Holding.of_words(story.log, words)
            position = story.log.head() - len(texts) + 1 + number
            assert holding.may_be_in(position, position, None)
    finally:
        story.close()


@pytest.mark.clause("FIND-2")
@settings(max_examples=30, deadline=None)
@given(WORDS.filter(str.strip))
def test_who_is_asked_for_is_found_in_any_case(name: str) -> None:
    story = Story()
    try:
        story.open()
        by = Provenance(kind="external_user", source_channel="telegram", sender=name)
        story.say(MAIN, "hello", provenance=by)
        story.say(MAIN, "hello", provenance=Provenance(kind="external_user", source_channel="telegram"))
        for typed in {name, name.casefold()}:
            found = list(Messages(story.log).said(MessageFilter(person=typed)))
            assert [said.person for said in found] == [by]
    finally:
        story.close()


class Read:
    """A log that counts how many rows and events were read of it."""

    def __init__(self, log: PortableLog) -> None:
        self._log = log
        self.rows_read = self.events_read = 0

    def __getattr__(self, name: str) -> Any:  # whatever else a log has
        return getattr(self._log, name)

    def rows(self, *, after: int | None = 0, limit: int = 1000) -> Sequence[Row]:
        found = self._log.rows(after=after, limit=limit)
        self.rows_read += len(found)
        return found

    def all(
        self,
        *,
        after: int = 0,
        to: int | None = None,
        limit: int | None = None,
        topics: Collection[str] = (),
    ) -> Iterator[Recorded]:
        for recorded in self._log.all(after=after, to=to, limit=limit, topics=topics):
            self.events_read += 1
            yield recorded


@pytest.mark.clause("FIND-2")
def test_who_never_spoke_is_looked_for_once_and_no_event_is_read_for_it(log: PortableLog) -> None:
    """All messages of the log were read as events, and the chain of each looked up: seconds (issue 10)."""
    for ask in (
        lambda read: Messages(read).said(MessageFilter(person="nobody")),
        lambda read: WorkList(read).newest(WorkFilter(person="nobody")),
    ):
        read = Read(log)
        assert list(ask(read)) == []
        assert read.events_read == 0
        assert read.rows_read <= 2 * log.head()  # the last window may go over the end of the one before


@pytest.mark.clause("FIND-2")
def test_runs_with_words_are_those_whose_events_say_them(log: PortableLog) -> None:
    """Each run was read from its first event to its last, to find that nobody said the word in any: ten seconds."""
    everything = list(WorkList(log).newest(WorkFilter()))
    for words in ("alice", "LLM:rr", "final ANSWER", "zebra", "toolResult", "!?", "message_id"):
        wanted = words.casefold().split()
        expected = [
            work.accepted
            for work in everything
            if any(
                all(word in step.words.casefold() for word in wanted)
                for step in steps_of_flow(log, work)
                if step.event in _SPOKEN
            )
        ]
        assert [work.accepted for work in WorkList(log).newest(WorkFilter(words=words))] == expected
        assert (expected == []) == (words in {"zebra", "toolResult", "!?", "message_id"}), words


_SPOKEN = {
    "message_recorded",
    "exchange_accepted",
    "turn_ended",
    "announce_decided",
    "exchange_released",
    "spawn_accepted",
    "child_ended",
    "run_completed",
    "run_failed",
    "delivery_decided",
}
