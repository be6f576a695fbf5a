"""Views that follow the log in databases of their own, by the library's projection and runner."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from eventsourcing.projection import BaseProjectionRunner

from intersession_events.basics.errors import StoreUnavailable
from intersession_events.facts import Message, MessageRecorded, SessionOpened, topics_of
from intersession_events.log.recorded import Draft, Recorded, StreamAppend
from intersession_events.log.sql import Sql
from intersession_events.stores.sqlite.log import SqliteLog
from intersession_events.stores.tailing.file import ViewFile
from intersession_events.stores.tailing.tail import Tail, Tails
from intersession_events.stores.tailing.view import QueryableView, place_of
from support.rows import edited

STREAM = "session:agent:main:main"


class Words:
    """Counts the words of each stream; chokes on `poison`."""

    name = "words"

    def __init__(self, shape: int = 1) -> None:
        self.shape = shape

    def create(self, sql: Sql) -> None:
        sql.execute("CREATE TABLE IF NOT EXISTS words (position INTEGER PRIMARY KEY, words TEXT)")

    def drop(self, sql: Sql) -> None:
        sql.execute("DROP TABLE IF EXISTS words")

    def apply(self, sql: Sql, events: Sequence[Recorded]) -> None:
        for recorded in events:
            assert isinstance(recorded.event, MessageRecorded)
            text = str(recorded.event.message.content)
            sql.execute("INSERT INTO words VALUES (?, ?)", (recorded.position, text))
            if text == "poison":
                raise ValueError("it chokes")


def say(log: SqliteLog, *texts: str) -> None:
    first = log.head() + 1
    drafts = tuple(
        Draft(
            event=MessageRecorded(
                session_id="s", message=Message(id=f"m{number}", role="user", content=text, timestamp=1)
            ),
            id=f"e{number}",
            time=1,
        )
        for number, text in enumerate(texts, start=first)
    )
    log.append_now([StreamAppend(stream=STREAM, expected=first - 1, drafts=drafts)])


def words(view: ViewFile) -> list[str]:
    return [text for (text,) in view.query("SELECT words FROM words ORDER BY position")]


def kept(log: SqliteLog, shape: int = 1) -> list[str]:
    """Return what a view says that was opened, brought up to date and closed."""
    tail = Tail(log, ViewFile(Words(shape), log))
    tail.catch_up()
    found = words(tail.view)
    tail.stop()
    return found


@pytest.mark.parametrize("patient", [False, True])
@pytest.mark.parametrize("path", ["log.db", ":memory:"])
def test_a_view_follows_the_log_from_where_it_was(tmp_path: Path, path: str, *, patient: bool) -> None:
    """Issue 9: views that are not inline run on the library's projection, runner and tracking recorder."""
    place = path if path == ":memory:" else str(tmp_path / path)
    with SqliteLog(place) as log:
        say(log, "one", "two")
        tail = Tail(log, ViewFile(Words(), log), patient=patient)
        tail.start()
        assert isinstance(tail._runner, BaseProjectionRunner)
        tail.wait(2, timeout=20)
        say(log, "three")
        tail.wait(3, timeout=20)
        assert words(tail.view) == ["one", "two", "three"]
        say(log, "four")
        tail.stop()
        assert tail.view.position == 4  # what was committed before the stop is in it

    if place != ":memory:":
        with edited(place_of(place, "words")) as connection:
            tracked = connection.execute("SELECT * FROM tracking WHERE application_name='intersession'")
            assert tracked.fetchall() == [("intersession", 4)]


class Sessions(Words):
    """Chokes on whatever is no opening of a session."""

    name = "sessions"
    topics = topics_of(SessionOpened)

    def apply(self, sql: Sql, events: Sequence[Recorded]) -> None:
        for recorded in events:
            assert isinstance(recorded.event, SessionOpened)
            sql.execute("INSERT INTO words VALUES (?, ?)", (recorded.position, recorded.topic))


def test_a_view_of_few_kinds_of_events_reads_no_others_and_comes_as_far_as_the_log(tmp_path: Path) -> None:
    """The view of usage read each event of a log to find the ends of runs."""
    with SqliteLog(tmp_path / "log.db") as log:
        tail = Tail(log, ViewFile(Sessions(), log))
        assert tail.catch_up() == 0
        say(log, *map(str, range(3)))
        assert tail.catch_up() == 3
        session = SessionOpened(key="agent:ops:main", session_id="s2", agent_id="ops", opened_by="send")
        opened = Draft(event=session, id="opened", time=1)
        log.append_now([StreamAppend(stream="session:agent:ops:main", expected=0, drafts=(opened,))])
        assert tail.catch_up() == 4
        assert words(tail.view) == ["session_opened.1"]
        tail.stop()


def test_views_that_begin_late_are_opened_then_and_are_closed_with_all_that_was_committed(
    tmp_path: Path,
) -> None:
    with SqliteLog(tmp_path / "log.db") as log:
        never = Tails(lambda: [Tail(log, ViewFile(Words(), log))])
        never.stop()
        never.begin()
        assert not list(tmp_path.glob("*.views"))
        say(log, "one")
        opened: list[ViewFile] = []

        def open_it() -> list[Tail[QueryableView]]:
            opened.append(ViewFile(Words(), log))
            return [Tail(log, opened[0], patient=True)]

        late = Tails(open_it)
        late.begin()
        say(log, "two")
        late.stop()
        assert [view.position for view in opened] == [2]


def test_what_is_not_of_this_log_and_shape_or_is_damaged_is_built_anew(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    place = Path(place_of(str(path), "words"))
    with SqliteLog(path) as log:
        say(log, "one", "two")
        assert kept(log) == ["one", "two"]
        with edited(place) as rows:
            rows.execute("UPDATE words SET words='mine'")
        assert kept(log) == ["one", "two"]  # it says that it was touched
        assert kept(log, shape=2) == ["one", "two"]
        with edited(place) as rows:
            rows.execute("UPDATE tracking SET notification_id=7 WHERE application_name='intersession'")
        assert kept(log, shape=2) == ["one", "two"]  # it was ahead of the log
        place.write_bytes(b"no database at all, but long enough for one to be looked for in it")
        assert kept(log, shape=2) == ["one", "two"]
    path.unlink()
    with SqliteLog(path) as log:
        say(log, "other")
        assert kept(log, shape=2) == ["other"]


def test_an_event_that_a_view_chokes_on_is_left_out_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with SqliteLog(tmp_path / "log.db") as log:
        say(log, "one", "poison", "three")
        assert kept(log) == ["one", "three"]
    assert "leaves out position 2" in caplog.text


def test_a_row_that_cannot_be_read_does_not_hold_up_the_others(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with SqliteLog(path) as log:
        say(log, "one", "two", "three")
    with edited(path) as rows:
        rows.execute("UPDATE stored_events SET state=CAST('{}' AS BLOB) WHERE rowid IN (2, 3)")
    with SqliteLog(path, read_only=True) as log:
        tail = Tail(log, ViewFile(Words(), log))
        assert tail.catch_up() == 3
        assert words(tail.view) == ["one"]
        tail.stop()


def test_two_that_keep_the_same_file_count_each_event_once(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log.db") as log:
        say(log, *map(str, range(1_200)))
        one, other = (Tail(log, ViewFile(Words(), log)) for _ in range(2))
        one.start()
        other.start()
        say(log, "last")
        one.wait(log.head(), timeout=30)
        other.wait(log.head(), timeout=30)
        assert words(one.view) == [*map(str, range(1_200)), "last"]
        one.stop()
        other.stop()


def test_whoever_brings_a_view_up_to_date_is_told_that_the_log_is_away(tmp_path: Path) -> None:
    """`usage` added up what it had read by then, and said nothing else than that with exit code 0."""
    log = SqliteLog(tmp_path / "log.db")
    say(log, *map(str, range(1_200)))
    tail = Tail(log, ViewFile(Words(), log))
    with pytest.raises(StoreUnavailable, match="closed"):
        tail.catch_up(lambda reached, _of: log.close() if reached else None)
    assert words(tail.view)[-1] == "499"
    tail.stop()


def test_a_view_that_cannot_be_written_goes_on_when_it_can(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with SqliteLog(tmp_path / "log.db") as log:
        tail = Tail(log, ViewFile(Words(), log))
        tail.view.query("SELECT 1")
        with edited(Path(place_of(log.path, "words"))) as rows:
            rows.execute("ALTER TABLE words RENAME TO away")
        say(log, "one")
        assert tail.catch_up() == 0
        assert "still at position 0" in caplog.text
        with edited(Path(place_of(log.path, "words"))) as rows:
            rows.execute("ALTER TABLE away RENAME TO words")
        assert tail.catch_up() == 1
        assert words(tail.view) == ["one"]
        tail.stop()
