"""What the list's view remembers of its own rows holds for no transaction that was undone."""

from collections.abc import Iterator

import pytest

from benchmarks.logs import SECOND_MS, START_MS, draft, open_sessions, saying, session_key, to
from intersession_events.errors import StoreFull
from intersession_events.stores import PortableLog, views_proven
from intersession_projections.inline_views import inline_views
from support.any_log import log_at
from support.faulty_store import FAULT, disk_full, faulty


@pytest.fixture
def fails() -> Iterator[None]:
    yield
    FAULT.before = FAULT.after = None


def say(log: PortableLog, key: str, number: int) -> None:
    name, time = f"{key}-{number}", START_MS + (100 + number) * SECOND_MS
    log.append_now([to(key, draft(saying(key, name, "Is it done?", time), name, time))])


@pytest.mark.clause("LIST-8", "J1")
@pytest.mark.usefixtures("fails")
def test_since_when_a_place_is_held_is_not_taken_from_a_commit_that_failed(log_url: str) -> None:
    first, second = session_key(1), session_key(2)
    with log_at(log_url, inline=inline_views(), environment=faulty(log_url)) as log:
        open_sessions(log, [first, second])
        for number in range(1, 4):
            say(log, first, number)
        FAULT.before = disk_full()
        with pytest.raises(StoreFull):
            say(log, second, 4)
        # The same positions again, but another session's.
        for number in range(5, 8):
            say(log, first, number)
            say(log, second, number)

        assert views_proven(log, inline_views()) == ([], [])
