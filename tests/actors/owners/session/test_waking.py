"""A session that wakes from a snapshot is the session of its whole stream; what does not fit the log is not believed."""

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
from eventsourcing.persistence import StoredEvent
from hypothesis import given as for_all
from hypothesis import strategies as st

from intersession_actors.owners.session.context_cache import ContextCache
from intersession_actors.owners.session.folding import SHAPE, Awake, SessionFolding
from intersession_actors.owners.session.state import Session, evolve
from intersession_actors.rules.prompt.transcript import RunContext, TranscriptFold
from intersession_actors.rules.prompt.window import nothing_earlier
from intersession_events import facts
from intersession_events.copies.migrating import migrate
from intersession_events.log.recorded import Recorded
from intersession_events.log.sql import Question, Row
from intersession_events.log.states import Folded, Snapshot
from intersession_events.stores.library.mapper import ChainedMapper
from intersession_events.stores.opened import located
from intersession_events.stores.sqlite.log import SqliteLog
from support.any_log import Logs, changed_behind, log_at
from support.bare_events import bare
from support.busy_session import STEPS, Busy
from support.every_day import every_day
from support.log_drafts import anywhere, draft

EVERY = 250
"""After so many events of a stream its state is kept (docs/explanation/design.md)."""

KEY = "agent:main:main"
STREAM = f"session:{KEY}"
OPENED = facts.SessionOpened(key=KEY, session_id="s", agent_id="main", opened_by="person")
ROOM = 1_000_000


def folding(room: int = ROOM) -> SessionFolding:
    return SessionFolding(room=room, earlier=lambda *_: iter(()))


def naive(recorded: Sequence[Recorded]) -> tuple[Session, TranscriptFold]:
    session, transcript = Session(), TranscriptFold()
    for item in recorded:
        session = evolve(session, item)
        transcript.apply(item)
    return session, transcript


def shown(awake: tuple[Session, TranscriptFold]) -> object:
    session, transcript = awake
    return session, transcript.version, transcript.state()


def said(number: int, role: str = "user", session_id: str = "s") -> facts.MessageRecorded:
    message = facts.Message(
        id=f"m{number}",
        role="user" if role == "user" else "assistant",
        content=f"word {number}",
        timestamp=number,
    )
    return facts.MessageRecorded(session_id=session_id, message=message)


def recorded_of(events: Sequence[facts.Event]) -> list[Recorded]:
    return [
        bare(STREAM, version, event, time=version, correlation="root")
        for version, event in enumerate(events, start=1)
    ]


@for_all(steps=st.lists(st.sampled_from(STEPS), max_size=30), data=st.data())
@pytest.mark.clause("PROV-4")
def test_a_state_that_was_kept_at_any_version_goes_on_to_the_state_of_the_whole_stream(
    steps: Sequence[Callable[[Busy], None]], data: st.DataObject
) -> None:
    """A snapshot and what is behind it are the fold of all of it, at every position."""
    busy = Busy()
    for step in steps:
        step(busy)
    whole = recorded_of([OPENED, *busy.events])
    at = data.draw(st.integers(0, len(whole)))
    to = data.draw(st.integers(at, len(whole)))
    kept = folding().encode(folding().apply(folding().begin(), whole[:at]))

    woken = folding().apply(folding().decode(kept, at), whole[at:to])

    assert shown(woken) == shown(naive(whole[:to]))


class Written:
    """A session of which much is said, with snapshots, in a log whose readers and writer go step by step."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.log = log_at(url, threads=False)
        self.append(OPENED)
        for number in range(0, EVERY * 5 // 2, 25):
            self.append(*(said(each) for each in range(number, number + 25)))

    def append(self, *events: facts.Event) -> None:
        name = self.log.head()
        drafts = (draft(event, f"{name}-{number}") for number, event in enumerate(events))
        self.log.append_now((anywhere(STREAM, *drafts),))

    def fold(self) -> Folded[Awake]:
        folded = self.log.states.fold(STREAM, folding())
        while self.log.step():
            pass
        return folded

    def ask(self, number: int) -> str:
        asked = said(number)
        queued = facts.RunQueued(run_id=f"r{number}", session_id="s", step="message", message=asked.message)
        self.append(queued)
        return queued.run_id

    def context(self, run_id: str) -> RunContext:
        found: list[RunContext | Exception] = []
        version = self.log.stream(STREAM, backwards=True, limit=1)[0].version
        ContextCache(self.log).read(KEY, run_id, found.append, version=version)
        while self.log.step():
            pass
        (context,) = found
        assert isinstance(context, RunContext)
        return context


@pytest.fixture
def written(passing_url: str) -> Iterator[Written]:
    made = Written(passing_url)
    with closing(made.log):
        yield made


@pytest.fixture
def filed(log_url: str) -> Iterator[Written]:
    made = Written(log_url)
    with closing(made.log):
        yield made


def test_a_long_stream_gets_snapshots_and_is_read_from_the_last_one(
    written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before: 200,000 messages were folded each time that the session woke."""
    first = written.fold()
    read: list[int] = []
    event_of = ChainedMapper.to_domain_event

    def watched(mapper: ChainedMapper, row: StoredEvent) -> Recorded:
        event = event_of(mapper, row)
        read.append(event.version)
        return event

    with monkeypatch.context() as patched:
        patched.setattr(ChainedMapper, "to_domain_event", watched)
        second = written.fold()

    assert (first.kept, second.kept) == (2 * EVERY, 2 * EVERY)
    assert list(written.log.states.versions(STREAM, SHAPE)) == [EVERY, 2 * EVERY]
    assert read == list(range(2 * EVERY, first.version + 1))
    assert shown(second.state) == shown(first.state) == shown(naive(written.log.stream(STREAM)))
    assert second.last == first.last


def test_a_snapshot_holds_no_transcript(filed: Written) -> None:
    filed.fold()
    kept = list(filed.log.states.kept(STREAM))

    assert len(kept) == 2
    assert max(len(one.data) for one in kept if isinstance(one, Snapshot)) < 8_000


def test_a_session_that_is_not_long_has_no_snapshot_and_its_log_no_table_for_one(tmp_path: Path) -> None:
    with SqliteLog(tmp_path / "log.db", threads=False) as log:
        log.append_now((anywhere(STREAM, *(draft(said(n), str(n)) for n in range(EVERY - 1))),))
        log.states.fold(STREAM, folding())
        log.step()
        tables = log.query("SELECT name FROM sqlite_master WHERE name='stored_snapshots'")

    assert tables == []


@pytest.mark.clause("PROV-4")
def test_what_an_agent_gets_is_the_same_with_snapshots_and_without(written: Written) -> None:
    run_id = written.ask(9_000)
    without = written.context(run_id)
    assert list(written.log.states.versions(STREAM, SHAPE))
    with_them = written.context(run_id)
    fold = TranscriptFold()
    for item in written.log.stream(STREAM):
        fold.apply(item)
    naively = fold.context(run_id)

    assert with_them.hash == without.hash == naively.hash
    assert (with_them.message, with_them.partial) == (naively.message, naively.partial)
    assert with_them.transcript == without.transcript == naively.transcript


@pytest.mark.parametrize(
    "look",
    [
        list,
        lambda transcript: transcript[-1],
        lambda transcript: transcript[0],
        lambda transcript: transcript[400],
        lambda transcript: [transcript[at] for at in range(0, len(transcript), 97)],
        lambda transcript: transcript[-50:],
        lambda transcript: transcript[300:320],
        lambda transcript: transcript[::-111],
        lambda transcript: list(reversed(transcript)),
        lambda transcript: transcript[5:5],
        len,
    ],
)
def test_a_long_transcript_is_a_sequence_like_any_other(
    written: Written, look: Callable[[Sequence[facts.Message]], object]
) -> None:
    run_id = written.ask(9_000)
    written.fold()
    transcript = written.context(run_id).transcript
    whole = [
        message
        for item in written.log.stream(STREAM)
        if (message := facts.message_in(item.event)) is not None
    ][:-1]

    found, expected = look(transcript), look(tuple(whole))

    assert found == expected
    assert repr(transcript) == f"<Transcript of {len(whole)} messages>"
    with pytest.raises(IndexError):
        transcript[len(whole)]


def test_a_transcript_stays_what_it_was_when_more_is_said_or_the_session_is_reset(written: Written) -> None:
    run_id = written.ask(9_000)
    written.fold()
    cache = ContextCache(written.log)
    found: list[RunContext | Exception] = []
    head = written.log.stream(STREAM, backwards=True, limit=1)[0].version
    cache.read(KEY, run_id, found.append, version=head)
    written.log.step()
    context = found[0]
    assert isinstance(context, RunContext)
    before = written.log.head()

    written.append(
        facts.RunAborted(run_id=run_id, attempt=0, by="me"),
        said(9_001),
        facts.SessionReset(session_id="s2", previous_session_id="s", reason="reset"),
        *(said(number, session_id="s2") for number in range(10_000, 10_000 + EVERY)),
    )
    cache.take(KEY, written.log.stream(STREAM, after=before))
    written.fold()

    assert [message.id for message in context.transcript] == [f"m{n}" for n in range(EVERY * 5 // 2)]


TAMPERINGS = {
    "another state": "UPDATE stored_snapshots SET state=replace(state, '\"archived\":false', '\"archived\":true')",
    "another hash": 'UPDATE stored_snapshots SET state=replace(state, \'"hash":"\', \'"hash":"0\')',
    "another digest": 'UPDATE stored_snapshots SET state=replace(state, \'"digest":"\', \'"digest":"0\')',
    "no state": "UPDATE stored_snapshots SET state=NULL",
    "no JSON": "UPDATE stored_snapshots SET state=x'00ff'",
    "another version": "UPDATE stored_snapshots SET originator_version=originator_version+100",
    "a version below all": "UPDATE stored_snapshots SET originator_version=250-originator_version",
    "a version that is none": "UPDATE stored_snapshots SET originator_version='x'||originator_version",
    "an earlier state as a later one": (
        "UPDATE stored_snapshots SET state=(SELECT state FROM stored_snapshots ORDER BY originator_version LIMIT 1)"
    ),
    "a foreign shape": "UPDATE stored_snapshots SET topic='session_state.99'",
    "another table": "DROP TABLE stored_snapshots",
    "another column": "ALTER TABLE stored_snapshots ADD COLUMN more BIGINT",
}
_ON_A_SERVER = {
    "a version that is none": (
        "ALTER TABLE stored_snapshots ALTER COLUMN originator_version TYPE text USING 'x'||originator_version"
    ),
    "no state": "ALTER TABLE stored_snapshots ALTER COLUMN state DROP NOT NULL; UPDATE stored_snapshots SET state=NULL",
    "no JSON": "UPDATE stored_snapshots SET state='\\x00ff'",
    **{
        how: re.sub(
            r"replace\(state, (.*)\)$",
            r"convert_to(replace(convert_from(state,'UTF8'), \1),'UTF8')",
            statement,
        )
        for how, statement in TAMPERINGS.items()
        if "replace" in statement
    },
}


@pytest.mark.parametrize("how", every_day(sorted(TAMPERINGS), *sorted(TAMPERINGS)[::3]))
def test_a_snapshot_that_was_changed_is_not_believed(
    filed: Written, how: str, logs: Logs, caplog: pytest.LogCaptureFixture
) -> None:
    expected = shown(filed.fold().state)
    changed_behind(filed.url, TAMPERINGS[how] if logs.are_files else _ON_A_SERVER.get(how, TAMPERINGS[how]))
    if how == "another table":
        changed_behind(filed.url, "CREATE TABLE stored_snapshots (something BIGINT)")

    with caplog.at_level(logging.WARNING, logger="intersession.store"):
        again = filed.fold()
        after = filed.fold()

    assert shown(again.state) == shown(after.state) == expected
    assert how == "another column" or any("snapshot" in record.message for record in caplog.records)


def test_a_snapshot_of_another_stream_or_log_is_not_believed(
    filed: Written, logs: Logs, tmp_path: Path
) -> None:
    filed.fold()
    url = logs.at(tmp_path, "other")
    with closing(Written(url).log) as other:
        rows = changed_behind(filed.url, "SELECT * FROM stored_snapshots")
        other.states.fold(STREAM, folding())
        other.step()
        expected = shown(naive(other.stream(STREAM)))
        _kept_instead(url, rows)

        assert shown(other.states.fold(STREAM, folding()).state) == expected


def test_a_snapshot_of_another_past_of_the_same_stream_is_not_believed(logs: Logs, tmp_path: Path) -> None:
    """A backup that went on, say: its stream and its versions are the same, its events are not."""
    url, backup = logs.at(tmp_path), logs.at(tmp_path, "backup")

    def goes_on(url: str, first: int) -> object:
        with log_at(url, threads=False) as log:
            drafts = (draft(said(number), f"{number}") for number in range(first, first + 20))
            log.append_now((anywhere(STREAM, *drafts),))
            log.states.fold(STREAM, folding())
            log.step()
            return shown(log.states.fold(STREAM, folding()).state)

    with log_at(url, threads=False) as log:
        drafts = (draft(said(number), f"{number}") for number in range(EVERY - 10))
        log.append_now((anywhere(STREAM, *drafts),))
    if logs.are_files:
        changed_behind(url, "VACUUM INTO ?", located(backup).place)
    else:
        between = str(tmp_path / "between.db")
        migrate(url, between)
        migrate(between, backup)
    goes_on(url, 10_000)
    expected = goes_on(backup, 20_000)
    rows = changed_behind(url, "SELECT * FROM stored_snapshots")
    _kept_instead(backup, rows)

    with log_at(backup, threads=False) as log:
        assert [row[1] for row in rows] == list(log.states.versions(STREAM, SHAPE)) == [EVERY]
        assert shown(log.states.fold(STREAM, folding()).state) == expected


def test_a_snapshot_that_is_taken_while_a_session_wakes_is_no_reason_to_doubt_it(
    filed: Written, logs: Logs, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The snapshot and what is behind it are asked for together, on a server, but not at one moment."""
    expected = shown(filed.fold().state)
    rows = changed_behind(filed.url, "SELECT * FROM stored_snapshots ORDER BY originator_version")
    recorder = filed.log._recorder
    each = recorder.each

    def others_between(first: Sequence[Question], between: Callable[[], object]) -> list[list[Row]]:
        found: list[list[Row]] = []
        for number, question in enumerate(first):
            if number == 1:
                between()
            found += each([question])
        return found

    for before, after in ((rows[:1], rows), (rows, rows[:1]), ([], rows), (rows, [])):
        _kept_instead(filed.url, before)
        with monkeypatch.context() as patched:
            between = partial(_kept_instead, filed.url, after)
            patched.setattr(
                recorder, "each", lambda first, between=between: others_between(list(first), between)
            )
            assert shown(filed.log.states.fold(STREAM, folding()).state) == expected
    assert not [record for record in caplog.records if record.name.startswith("intersession")]
    assert changed_behind(filed.url, "SELECT COUNT(*) FROM stored_snapshots") == [
        (2 if logs.are_files else 0,)
    ]


def _kept_instead(url: str, rows: Sequence[tuple[object, ...]]) -> None:
    changed_behind(url, "DELETE FROM stored_snapshots")
    for row in rows:
        changed_behind(url, "INSERT INTO stored_snapshots VALUES (?,?,?,?)", *row)


def test_a_snapshot_of_another_shape_is_not_read_as_one_of_this(
    written: Written, caplog: pytest.LogCaptureFixture
) -> None:
    class Later(SessionFolding):
        topic = "session_state.99"

        def encode(self, state: Awake) -> bytes:
            return super().encode(state).replace(b'"archived":false', b'"archived":true')

    written.log.states.fold(STREAM, Later(room=ROOM, earlier=nothing_earlier))
    while written.log.step():
        pass
    foreign = list(written.log.states.versions(STREAM, Later.topic))

    with caplog.at_level(logging.INFO, logger="intersession.store"):
        folded = written.fold()

    assert foreign == [EVERY, 2 * EVERY]
    told = {one.levelname for one in caplog.records if "its shape is" in one.getMessage()}
    assert told == {"INFO"}  # behind an upgrade each long session has one
    assert shown(folded.state) == shown(naive(written.log.stream(STREAM)))
    assert list(written.log.states.versions(STREAM, Later.topic)) == []
    assert list(written.log.states.versions(STREAM, SHAPE)) == [EVERY, 2 * EVERY]


def test_a_snapshot_of_what_the_log_has_lost_is_dropped(filed: Written) -> None:
    """The log is the truth: a copy of it that is older than its snapshots, say."""
    filed.fold()
    filed.log.close()
    changed_behind(filed.url, "DELETE FROM stored_events WHERE originator_version>=?", 2 * EVERY)
    filed.log = log_at(filed.url, threads=False)

    folded = filed.fold()

    assert folded.version == 2 * EVERY - 1
    assert shown(folded.state) == shown(naive(filed.log.stream(STREAM)))
    assert list(filed.log.states.versions(STREAM, SHAPE)) == [EVERY]


def test_a_crash_between_events_and_their_snapshot_loses_the_snapshot_alone(log_url: str) -> None:
    written = Written(log_url)
    written.log.states.fold(STREAM, folding())  # what it keeps is on its way to the next commit
    lost = list(written.log.states.versions(STREAM, SHAPE))
    expected = shown(naive(written.log.stream(STREAM)))
    again = shown(written.log.states.fold(STREAM, folding()).state)
    written.log.close()

    assert lost == []
    assert again == expected


def test_a_log_that_is_open_for_reading_uses_the_snapshots_and_takes_none(log_url: str) -> None:
    written = Written(log_url)
    first = written.fold()
    written.append(*(said(number) for number in range(50_000, 50_000 + EVERY)))
    written.log.close()

    with log_at(log_url, read_only=True) as log:
        folded = log.states.fold(STREAM, folding())

        assert folded.kept == first.kept
        assert shown(folded.state) == shown(naive(log.stream(STREAM)))
        assert list(log.states.versions(STREAM, SHAPE)) == [EVERY, 2 * EVERY]


def test_the_state_as_of_any_version_is_read_from_the_snapshot_before_it(written: Written) -> None:
    written.fold()
    whole = written.log.stream(STREAM)

    for to in (0, 1, EVERY - 1, EVERY, EVERY + 1, 2 * EVERY, len(whole)):
        assert shown(written.log.states.fold(STREAM, folding(), to=to or None if to else 0).state) == shown(
            naive(whole[:to])
        )


def test_states_are_walked_from_a_snapshot_on(written: Written) -> None:
    written.fold()
    versions = [folded.version for folded in written.log.states.walk(STREAM, folding(), since=EVERY)]

    assert versions[0] == EVERY
    assert versions[-1] == written.log.stream(STREAM, backwards=True, limit=1)[0].version
    assert all(one < other <= one + EVERY for one, other in pairwise(versions))


def test_dropped_snapshots_are_taken_again(filed: Written) -> None:
    filed.fold()

    dropped = filed.log.states.drop()
    none = list(filed.log.states.versions(STREAM, SHAPE))
    filed.fold()

    assert (dropped, none) == (2, [])
    assert list(filed.log.states.versions(STREAM, SHAPE)) == [EVERY, 2 * EVERY]
    assert filed.log.states.drop() == 2
    assert filed.log.states.drop() == 0
