"""A log whose words were erased is decided again wherever no rule looks at words, and what can't be is named."""

from pathlib import Path

import pytest

from intersession_actors.hindsight.replaying.redeciding.deciding_again import redecided_all
from intersession_actors.hindsight.replaying.redeciding.sources import Sources
from support.forks_played import DESK, conversation


@pytest.mark.clause("C7", "ERASE-1")
def test_decisions_upon_words_that_were_erased_are_named_and_all_others_are_as_they_were(
    tmp_path: Path,
) -> None:
    talk = conversation(tmp_path)
    log = talk.log
    before = [*redecided_all(Sources(log.log_id, log.all()))]
    assert all(one.is_same for one in before)

    talk.system.erase(DESK)

    after = [*redecided_all(Sources(log.log_id, log.all()))]
    assert len(after) == len(before)
    assert {one.problem for one in after if not one.is_same} <= {"words that it was decided upon were erased"}
    records = "".join(one.append[0].decision for one in after)
    assert [word for word in ("nine", "sure", "leave") if word in records] == []
    assert sum(one.is_same for one in after) > 1
