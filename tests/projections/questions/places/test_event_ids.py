"""Events are found by their ids, and by the beginning of one, in every form of a row."""

from pathlib import Path

import pytest

from intersession_events.log.recorded import Draft
from intersession_events.stores.sqlite.log import SqliteLog
from intersession_projections.questions.places.grammar import AtEvent, Place, UnknownPlace
from intersession_projections.questions.places.located import Places
from intersession_projections.views.inline_views import inline_views
from support.golden_logs import golden_logs
from support.log_drafts import to
from support.story import Story


@pytest.mark.clause("PLACE-1")
@pytest.mark.parametrize("digits", [8, 9, 13, 14, 18, 23, 27, 36])
def test_the_beginning_of_an_id_is_enough(digits: int, tmp_path: Path) -> None:
    golden = next(one for one in golden_logs() if one.name == "demo")
    views = inline_views()
    with (
        SqliteLog(golden.unpack(tmp_path), read_only=True, inline=views) as old,
        SqliteLog(":memory:", inline=views) as new,
    ):
        events = list(old.all(limit=20))
        for item in events[:5]:
            draft = Draft(event=item.event, id=item.id, time=1)
            new.append_now([to(item.stream, item.version - 1, draft)])
        for log, kept in ((old, events), (new, events[:5])):
            found = [
                Places(log, now_ms=10**13).find(Place(base=AtEvent(item.id[:digits]))).position
                for item in kept
            ]
            assert found == [item.position for item in kept]


@pytest.mark.clause("PLACE-1")
def test_an_id_that_no_event_has_is_refused() -> None:
    story = Story()
    try:
        with pytest.raises(UnknownPlace, match="no event has the id"):
            Places(story.log, now_ms=10**13).find(Place(base=AtEvent("0" * 36)))
    finally:
        story.close()
