"""Which log an event was written in, for a log that began as a part of another."""

from pathlib import Path

from intersession_events.basics.ids import derive
from intersession_events.facts import ForkedFrom, ForkEdit
from intersession_events.log.lineage import Lineage
from intersession_events.log.recorded import ANY_VERSION, Draft, StreamAppend
from intersession_events.stores.opened import open_log

FIRST, SECOND, OWN = (f"00000000-0000-4000-8000-00000000000{n}" for n in (1, 2, 3))


def forked(log_id: str, position: int) -> ForkedFrom:
    return ForkedFrom(log_id=log_id, position=position, flow="a run", heads=())


def test_each_event_of_a_fork_of_a_fork_is_hashed_under_the_log_that_wrote_it() -> None:
    lineage = Lineage(OWN, (forked(SECOND, 20), forked(FIRST, 10)))

    written_in = [lineage.log_id_at(position) for position in (1, 10, 11, 20, 21, 0)]

    assert written_in == [FIRST, FIRST, SECOND, SECOND, OWN, OWN]


def test_a_log_says_of_which_log_it_is_a_fork_and_others_say_none(tmp_path: Path) -> None:
    edits = (ForkEdit(kind="reply", place="r@turn:2", value="No."),)
    event = ForkedFrom(
        log_id=FIRST, position=7, flow="r", heads=(("session:a", 3, "0" * 64),), edits=edits, by="ann"
    )
    path = str(tmp_path / "log.db")
    with open_log(path) as log:
        none = log.forked
        draft = Draft(event=event, id=derive(log.log_id, "fork"), time=1)
        log.append_now([StreamAppend(stream="log", expected=ANY_VERSION, drafts=(draft,))])

    with open_log(path, read_only=True) as log:
        assert (none, log.forked) == (None, event)
