"""The index of words finds what a look at every event finds, whoever asks, and forgets what was erased."""

import sqlite3
import tracemalloc
import zlib
from collections.abc import Sequence
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from intersession import MemoryChannel, SessionSystem, echo
from intersession_actors.rules.disclosure.redaction import redact_raw
from intersession_events.basics.ids import session_stream
from intersession_events.facts import Event, Message, MessageRecorded, SessionOpened, ToolCallBlock
from intersession_events.stores.opened import open_log
from intersession_events.stores.tailing.places import kept_to
from intersession_events.stores.tailing.view import place_of
from intersession_events.stores.view_proof import views_proven
from intersession_projections.views.full_text import view as packing
from intersession_projections.views.full_text.found import Found, Wanted
from intersession_projections.views.full_text.index import FullText
from intersession_projections.views.full_text.scan import Scan
from intersession_projections.views.full_text.searched_texts import (
    message_of,
    texts_of_event,
    texts_of_message,
)
from intersession_projections.views.full_text.tokens import holds, snippet, terms, terms_asked
from intersession_projections.views.full_text.view import (
    FullTextView,
    events_of,
    private_of,
    restored,
    shown_of,
)
from support.log_drafts import anywhere, draft
from support.log_drafts import said as said_in_log
from support.plain_log import PlainLog
from support.rows import edited
from support.running import WAIT
from support.vocabulary import logs

Entry = tuple[str, Event, int]

WORDS = "SELECT position, words FROM said_at ORDER BY position"


def said(key: str, number: int, text: str) -> Entry:
    message = Message(id=f"{key}-{number}", role="user", content=text, timestamp=number)
    return f"session:{key}", MessageRecorded(session_id="one", message=message), number


def called(key: str, number: int, arguments: str) -> Entry:
    blocks = (ToolCallBlock(id="call-1", name="look", arguments=arguments),)
    message = Message(id=f"{key}-{number}", role="assistant", content=blocks, timestamp=number)
    return f"session:{key}", MessageRecorded(session_id="one", message=message), number


def everywhere(found: Found) -> list[str]:
    agents = found.names("agent").values()
    return [*shown_of(agents, ()), *private_of(agents, ()), *events_of(agents, ())]


def found_in(log: PlainLog, text: str, *, indexed: bool | None = None) -> list[int]:
    with FullText(log, redact_raw, indexed=indexed).up_to_date() as found:
        return list(found.positions(Wanted(terms_asked(text), everywhere(found))))


def looked_at(log: PlainLog, text: str) -> list[int]:
    """Return the positions where all words stand, without any view."""
    found: list[int] = []
    for recorded in reversed(log.events):
        raw = message_of(recorded)
        texts = texts_of_event(recorded) if raw is None else texts_of_message(raw)
        if holds(terms(texts), terms_asked(text)):
            found.append(recorded.position)
    return found


TOLD = (
    *(
        "lake",
        "Lake's",
        "ferry",
        "fer*",
        "ferr",
        "日本",
        "日",
        "İstanbul",
        "x_y",
        "\nlake",
        "\x1blake",
        "ﬁn",
        "fin",
    ),
    *("content", "main", "w" * 70, "w" * 64 + "*", '"lake\\nferry"', "\\u0041", "\u0301lake"),
)
FEW_WORDS = st.lists(
    st.sampled_from(TOLD),
    min_size=1,
    max_size=3,
)


@pytest.mark.clause("FIND-1")
@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.builds(
            said,
            st.sampled_from(["agent:main:main", "agent:ops:main", "global"]),
            st.integers(0, 9),
            FEW_WORDS.map(" ".join),
        ),
        max_size=8,
    ),
    logs(max_size=8),
    FEW_WORDS.map(" ".join),
)
@example([said("agent:main:main", 1, "東京へ行く日")], [], "日")
@example([said("agent:main:main", 1, "the\nlake")], [], "lake")
@example([said("agent:main:main", 1, "the\x1blake, the lakes")], [], "lake")
@example([said("agent:main:main", 1, "\uff4c\uff41\uff4b\uff45")], [], "lake")
@example([called("agent:main:main", 1, r'{"text": "caf\u00e9"}')], [], "café")
@example([called("agent:main:main", 1, r'{"text": "a\nlake"}')], [], "lake")
@example([said("agent:main:main", 1, "w" * 70)], [], "w" * 70)
@example([said("agent:main:main", 1, "w" * 70)], [], "w" * 69)
def test_index_scans_and_a_look_at_every_event_find_the_same(
    messages: Sequence[Entry], others: Sequence[Entry], asked: str
) -> None:
    log = PlainLog()
    for stream, event, time in (*messages, *others):
        log.put(stream, event, time=time)
    expected = [position for position in looked_at(log, asked) if terms_asked(asked)]
    assert found_in(log, asked, indexed=True) == expected
    assert found_in(log, asked, indexed=False) == expected
    through = Scan(log)
    assert list(through.positions(Wanted(terms_asked(asked), everywhere(through)))) == expected


@pytest.mark.clause("FIND-1", "HIST-5")
@given(
    st.sampled_from(
        ["sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789", "ghp_0123456789abcdefghijABCDEFGHIJ012345"]
    )
)
@settings(max_examples=4, deadline=None)
def test_a_secret_stands_in_no_group_that_a_stranger_asks(secret: str) -> None:
    log = PlainLog()
    stream, event, _ = said("agent:main:main", 1, f"the key is {secret}, keep it")
    log.put(stream, event)
    for indexed in (True, False):
        with FullText(log, redact_raw, indexed=indexed).up_to_date() as found:
            agents, sessions = found.names("agent").values(), found.names("session").values()

            def positions(text: str, groups: list[str]) -> list[int]:
                return list(found.positions(Wanted(terms_asked(text), groups)))

            assert positions("the key is", shown_of(agents, ())) == [1]
            assert positions(secret, shown_of(agents, sessions)) == []
            assert positions(secret, private_of((), sessions)) == [1]


def test_a_snippet_shows_the_words_on_one_line_and_says_where_it_was_cut() -> None:
    shown = snippet(["word " * 50 + "the\nFerry runs " + "later " * 50], terms_asked("ferry"))
    assert "the Ferry runs later" in shown
    assert (shown[0], shown[-1], "\n" in shown) == ("…", "…", False)
    assert snippet(["all of it"], terms_asked("it")) == "all of it"


@pytest.mark.clause("FIND-1", "ERASE-1")
@pytest.mark.parametrize("kept", [True, False])
def test_what_was_erased_is_gone_from_the_index_and_from_its_files(tmp_path: Path, *, kept: bool) -> None:
    path = tmp_path / "log.db"
    view = Path(place_of(str(path), "search"))
    config = {"views": {"keep": ["search"] if kept else [], "afterSeconds": 0}}
    channels = {"telegram": MemoryChannel()}
    with SessionSystem(path, agents={"main": echo()}, channels=channels, config=config) as system:
        for number, text in enumerate(("zanzibar at noon", "nothing more")):
            system.inbound(
                channel="telegram", chat_id="1", text=text, sender="ann", message_id=str(number), wait=WAIT
            )
        for _ in system.follow(0, timeout=WAIT):
            if not system.service.flows.open_deliveries() and not system.service.runs.open_runs():
                break
        assert system.debug.search("zanzibar")["hits"]
        assert any(b"zanzibar" in file.read_bytes() for file in view.parent.iterdir())
        assert system.erase("main")["erased"] > 0
        assert not any(b"zanzibar" in file.read_bytes() for file in view.parent.iterdir())
        assert system.debug.search("zanzibar")["hits"] == []
        assert system.debug.search("erased")["hits"] == []  # nobody said it
    with edited(view) as sql:
        grown = [(at, restored(words)) for at, words in sql.execute(WORDS)]
    view.unlink()
    with SessionSystem(path, agents={"main": echo()}) as system:
        assert system.debug.search("zanzibar")["hits"] == []
        with system.service.reader.full_text.up_to_date():
            pass
    with edited(view) as sql:
        rebuilt = [(at, restored(words)) for at, words in sql.execute(WORDS)]
    assert rebuilt[: len(grown)] == grown


@pytest.mark.clause("ERASE-1")
def test_nothing_is_left_in_unused_parts_of_the_index_once_something_is_erased(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    view = Path(place_of(str(path), "search"))
    with SessionSystem(path, agents={"main": echo()}, config={"views": {"keep": []}}) as system:
        system.inbound(channel="telegram", chat_id="1", text="zanzibar", sender="ann", deliver=False)
        assert system.debug.search("zanzibar")["hits"]
        # As SQLite leaves parts of rows when it moves them between pages: no table leads there.
        with edited(view) as sql:
            sql.execute("PRAGMA secure_delete=OFF")
            sql.execute("CREATE TABLE moved (words TEXT)")
            sql.execute("INSERT INTO moved VALUES ('wallaby')")
            sql.execute("DROP TABLE moved")
        assert any(b"wallaby" in file.read_bytes() for file in view.parent.iterdir())
        system.erase("main")
        assert not any(b"wallaby" in file.read_bytes() for file in view.parent.iterdir())


@pytest.mark.clause("FIND-1")
def test_who_reads_everything_waits_for_no_index_and_finds_the_same(log_url: str) -> None:
    key = "agent:main:main"
    with open_log(log_url) as log:
        opened = SessionOpened(key=key, session_id="s", agent_id="main", opened_by="operator")
        log.append_now([anywhere(session_stream(key), draft(opened, "opened"))], timeout=WAIT)
        texts = {f"m{number}": f"n{number} the ferry" if number % 7 else "no" for number in range(2_500)}
        drafts = [said_in_log(name, text) for name, text in texts.items()]
        for at in range(0, len(drafts), 500):
            log.append_now([anywhere(session_stream(key), *drafts[at : at + 500])], timeout=WAIT)

        def asked(text: str, *, for_all: bool) -> tuple[bool, list[int]]:
            with FullText(log, redact_raw).up_to_date(for_all=for_all) as found:
                return found.indexed, list(found.positions(Wanted(terms_asked(text), everywhere(found))))

        words = ("ferry", "n7*", "ferr", "user")
        through = [asked(text, for_all=True) for text in words]
        assert kept_to(FullTextView(redact_raw), log) == 0  # nothing was begun
        by_index = [asked(text, for_all=False) for text in words]
        assert [positions for _, positions in through] == [positions for _, positions in by_index]
        assert {indexed for indexed, _ in through} == {False}
        assert {indexed for indexed, _ in by_index} == {True}
        assert asked("ferry", for_all=True) == by_index[0]


def test_few_words_are_packed_in_little_memory() -> None:
    """To get and clear what long texts can use took longer than all else that is done for a message."""
    tracemalloc.start()
    try:
        packed = packing._stored({"ferry", "noon"})
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert restored(packed) == ["ferry", "noon"]
    assert most < 100_000


@pytest.mark.clause("J1")
def test_what_another_build_of_zlib_has_packed_is_the_same_and_other_words_are_not(
    log_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its bytes differ from build to build: a log that one machine has kept is proven on another."""
    search = FullTextView(redact_raw)
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(
            packing, "_stored", lambda words: zlib.compress(" ".join(sorted(words)).encode(), 9)
        )
        with open_log(log_url, inline=[search]) as log:
            log.append_now(
                [anywhere("session:agent:main:main", said_in_log("a", "the ferry leaves at noon"))]
            )
    with open_log(log_url, inline=[search], read_only=True) as log:
        assert views_proven(log, [search]) == ([], [])

    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(packing, "_stored", lambda _words: zlib.compress(b"other words"))
        with open_log(log_url, inline=[search]) as log:
            log.append_now([anywhere("session:agent:main:main", said_in_log("b", "another ferry leaves"))])
    with open_log(log_url, inline=[search], read_only=True) as log:
        findings, _ = views_proven(log, [search])
    assert [(finding.table, finding.key) for finding in findings] == [("said_at", "position=2")]


TAMPERED = (
    "DELETE FROM said_at",
    "DELETE FROM said_names",
    "INSERT INTO said_words (said_words) VALUES ('delete-all')",
    "DELETE FROM said_words_data",
    "DROP TABLE said_words_data",
    "DROP TABLE said_words",
    "DROP TABLE said_at",
    "DROP INDEX said_in",
    "DROP TRIGGER touched_said_at_delete; DELETE FROM said_at",
    "DROP TABLE view_touched",
    "DELETE FROM view_touched",
    "DROP TABLE view_of",
    "DELETE FROM tracking",
    "DROP TABLE tracking",
    "DROP TABLE said_at; CREATE VIEW said_at AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT i AS position FROM n",
    "DROP TABLE view_of; CREATE VIEW view_of AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT i AS log_id FROM n",
)


@pytest.mark.clause("J1", "FIND-1")
@pytest.mark.sqlite("changes the file of the view")
def test_an_index_of_several_parts_whose_list_of_them_was_emptied_is_built_anew(tmp_path: Path) -> None:
    with open_log(str(tmp_path / "log.db")) as log:
        text = FullText(log, redact_raw)

        def hits() -> list[int]:
            with text.up_to_date() as found:
                return list(found.positions(Wanted(terms_asked("bridge"), everywhere(found))))

        wanted: list[int] = []
        for version in range(40):
            words = " ".join(sha256(f"{version} {no}".encode()).hexdigest() for no in range(20))
            log.append_now(
                [
                    anywhere(
                        f"session:agent:main:{version}",
                        said_in_log(f"{version}", f"under the bridge {words}"),
                    )
                ]
            )
            wanted = hits()
        with closing(sqlite3.connect(place_of(log.place, "search"))) as rows:
            rows.executescript("DELETE FROM said_words_idx")

        assert len(wanted) == 40
        assert hits() == wanted


@pytest.mark.clause("J1", "FIND-1")
@pytest.mark.sqlite("changes the file of the view")
@pytest.mark.parametrize("statement", TAMPERED)
def test_an_index_beside_the_log_that_somebody_has_written_into_is_built_anew(
    tmp_path: Path, statement: str
) -> None:
    with open_log(str(tmp_path / "log.db")) as log:
        key = "session:agent:main:main"
        log.append_now([anywhere(key, said_in_log("a", "under the bridge"), said_in_log("b"))])
        text = FullText(log, redact_raw)

        def hits() -> list[int]:
            with text.up_to_date() as found:
                return list(found.positions(Wanted(terms_asked("bridge"), everywhere(found))))

        wanted = hits()
        with closing(sqlite3.connect(place_of(log.place, "search"))) as rows:
            rows.executescript(statement)

        assert wanted == [1]
        assert hits() == wanted
