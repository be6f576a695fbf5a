"""docs/events.md is what the vocabulary says, and remembers since when."""

import re

from intersession_actors.hindsight.debugger.lists.events import STREAMS
from intersession_events.facts import TOPICS
from support.pages import events_catalogue


def test_the_catalogue_of_events_is_current() -> None:
    assert events_catalogue.PAGE.read_text(encoding="utf-8") == events_catalogue.current_page(), (
        f"docs/events.md is not what the vocabulary says; run: {events_catalogue.COMMAND}"
    )


def test_every_topic_is_in_the_catalogue_with_a_version() -> None:
    since = events_catalogue.since_of(events_catalogue.PAGE.read_text(encoding="utf-8"))

    assert set(since.topics) == set(TOPICS)
    assert all(since.topics.values())


def test_the_catalogue_keeps_what_it_said_of_older_versions() -> None:
    page = events_catalogue.PAGE.read_text(encoding="utf-8")
    older = page.replace(" | 0.1.0 |", " | 0.0.9 |")

    again = events_catalogue.page(older)

    assert " | 0.0.9 |" in again
    assert again == older


def test_a_new_field_of_an_old_event_is_marked() -> None:
    page = events_catalogue.PAGE.read_text(encoding="utf-8")
    older = page.replace(" | 0.1.0 |", " | 0.0.9 |").replace(
        "`attempt?` integer = 1; `by`", "`attempt?` integer = 1"
    )

    assert f"`by` (since {events_catalogue.version()})" in events_catalogue.page(older)


def test_the_streams_of_every_event_can_be_asked_for() -> None:
    written = {named for *_, streams in events_catalogue.STREAMS for named in re.findall(r"`(.+?)`", streams)}
    written |= {stream.strip("`") for stream in events_catalogue.STREAM_OF.values()}

    assert {re.match(r"\w+:?", stream)[0] for stream in written} == set(STREAMS)  # type: ignore[index]
