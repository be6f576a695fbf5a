"""What differs between a run and a fork of it begins at the edit, whatever is edited, wherever, and however it goes on (DIFF)."""

from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from intersession_actors.hindsight.debugger.diff import DiffAnswer
from intersession_actors.hindsight.forking.making import Wanted, make_fork
from intersession_events.basics.machine import random_id
from intersession_events.facts import ForkEdit
from support.fakes import ManualClock
from support.forks_played import WAIT, Conversation, Played, conversation, play

TURNS = 4
ANSWERS = {
    "reply": "at nine",
    **{
        f"turn:{number}": "quite sure" if number % 2 == 0 else "are you sure?"
        for number in range(1, TURNS + 1)
    },
    "announce": "it leaves at nine",
}
"""What was answered at each place of the exchange, which is what the part is called in a comparison."""
TEXTS = st.sampled_from([*sorted(set(ANSWERS.values())), "REPLY_SKIP"]) | st.text(
    st.characters(codec="utf-8", exclude_categories=["C"]), min_size=1, max_size=30
).filter(lambda text: text.strip() == text)


class Edited(NamedTuple):
    """An edit, the place of it, and the part of the exchange that it stands in place of."""

    at: str
    edit: ForkEdit

    @property
    def changes(self) -> bool:
        """Whether what it says is anything else than what was said."""
        return self.edit.kind != "reply" or self.edit.value != ANSWERS[self.at]


ANSWERED = st.builds(
    Edited,
    st.sampled_from(sorted(ANSWERS)),
    st.sampled_from([ForkEdit(kind="skip"), ForkEdit(kind="drop")])
    | TEXTS.map(lambda text: ForkEdit(kind="reply", value=text)),
)
ASKED = TEXTS.map(lambda text: Edited("start", ForkEdit(kind="message", value=text)))


def begins_at_the_edit(found: DiffAnswer, edited: Edited) -> None:
    first, parts = found["firstDivergence"], [row["turn"] for row in found["turns"]]
    at = parts.index(edited.at)
    assert [row["turn"] for row in found["turns"][:at] if row["kind"] != "same"] == []
    if edited.changes:
        assert first is not None
        assert first["turn"] == edited.at
    else:
        # What becomes of an announce may not have been decided yet in a fork that was only made.
        assert "text" not in [one["field"] for one in found["turns"][at].get("differs", ())]


@pytest.mark.clause("DIFF-1")
@given(ANSWERED | ASKED)
@example(Edited("turn:4", ForkEdit(kind="reply", value=ANSWERS["turn:4"])))
@example(Edited("announce", ForkEdit(kind="reply", value=ANSWERS["announce"])))
def test_a_fork_that_was_only_made_differs_from_its_run_from_the_edit_on(
    talk: Conversation, edited: Edited
) -> None:
    system = talk.system
    made = make_fork(
        talk.log,
        Wanted(talk.exchange, edited.at, [edited.edit]),
        fork_id=random_id(),
        now_ms=system.service.clock.now_ms(),
    )
    begins_at_the_edit(system.debug.diff(talk.exchange, made.id), edited)


@pytest.mark.clause("DIFF-1")
@settings(max_examples=4)
@given(edited=ANSWERED, recorded=st.booleans())
def test_a_fork_that_was_carried_on_differs_from_its_run_from_the_edit_on(
    talk: Conversation, edited: Edited, *, recorded: bool
) -> None:
    agents = {"*": "recorded"} if recorded else {"main": "asks", "desk": "answers"}
    played = play(talk, talk.exchange, edited.at, edited.edit, agents=agents)
    begins_at_the_edit(diff_of(talk, played), edited)


@pytest.mark.clause("DIFF-1")
@settings(max_examples=4)
@given(st.sampled_from(sorted(ANSWERS)), st.integers(0, TURNS + 1))
def test_what_is_added_at_a_place_changes_nothing_before_it(talk: Conversation, at: str, turns: int) -> None:
    edit = ForkEdit(kind="set", key="session.agentToAgent.maxPingPongTurns", value=str(min(turns, 5)))
    played = play(talk, talk.exchange, at, edit, agents={"main": "asks", "desk": "answers"})
    found = diff_of(talk, played)
    for row in found["turns"]:
        a = row["a"]
        if a is not None and a["place"]["position"] <= played.made.position:
            assert row["kind"] == "same", row["turn"]


def diff_of(talk: Conversation, played: Played) -> DiffAnswer:
    return talk.system.debug.diff(talk.exchange, played.made.id)


@pytest.mark.clause("DIFF-1", "FORK-4")
def test_a_fork_took_no_longer_for_the_time_before_it_was_made(tmp_path: Path) -> None:
    """A fork of last night's run, made in the morning, took all night."""
    clock = ManualClock()
    night = conversation(tmp_path, clock=clock)
    clock.advance(10 * 3_600_000)
    with night.system.fork(night.exchange, at="turn:2", agents={"*": "recorded"}) as fork:
        assert fork.carried_on(WAIT).state == "ended"
        found = night.system.debug.diff(night.exchange, fork.log.log_id)
        before_it = night.system.debug.diff(night.exchange, f"{fork.log.log_id}@turn:1")
    night.system.close(grace=0)
    assert found["totals"]["b"]["durationMs"] == found["totals"]["a"]["durationMs"]
    assert 0 <= before_it["totals"]["b"]["durationMs"] <= found["totals"]["a"]["durationMs"]
