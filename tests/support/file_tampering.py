# ruff: noqa: S608 - statements are put together here, and each kind is a line
"""What somebody can do to the file of a log, its pages and its schema, and to what lies beside it; and by what each is found.

For the test that does it, and the page that says it. Here, too, the log is that of a system which stopped in order.
"""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from intersession_events.facts import NotePinned
from intersession_events.log.recorded import ANY_VERSION, Draft, StreamAppend
from intersession_events.stores.sqlite.log import SqliteLog
from intersession_projections.views.inline_views import inline_views
from support.checkpointed import checkpoint, key_of
from support.tampering import END, LAST, NO_SNAPSHOTS_YET, SAID, Kind, close_gaps, hashed_again, schema

_PAGE = 2048
_NO_TEXT = "CAST(X'2d2dff' AS TEXT)"
"""A comment of a byte that is no text."""
_NOTHING = "UPDATE sqlite_master SET sql=replace(sql, 'state BLOB NOT NULL', 'state BLOB') WHERE name='stored_events'"
_SOMETHING = "UPDATE sqlite_master SET sql=replace(sql, 'state BLOB', 'state BLOB NOT NULL') WHERE name='stored_events'"


def _path(rows: sqlite3.Connection) -> Path:
    ((_, _, path),) = rows.execute("PRAGMA database_list").fetchall()
    return Path(path)


def _bytes(change: Callable[[bytearray], None]) -> Callable[[sqlite3.Connection], None]:
    """Change the bytes of the file."""

    def do(rows: sqlite3.Connection) -> None:
        path = _path(rows)
        rows.close()
        raw = bytearray(path.read_bytes())
        change(raw)
        path.write_bytes(raw)

    return do


def _page_of_events(raw: bytearray) -> int:
    """Return where a page begins that holds events, and neither the first ones nor the last."""
    return raw.index(b'"ask ops"') // _PAGE * _PAGE


def _emptied(raw: bytearray) -> None:
    at = _page_of_events(raw)
    raw[at : at + _PAGE] = bytes(_PAGE)


def _cells_exchanged(raw: bytearray) -> None:
    at = _page_of_events(raw) + 8
    raw[at : at + 4] = raw[at + 2 : at + 4] + raw[at : at + 2]


def _one_page_less(raw: bytearray) -> None:
    del raw[-_PAGE:]


def _fewer_pages_said(raw: bytearray) -> None:
    raw[28:32] = (len(raw) // _PAGE + 9).to_bytes(4, "big")


def _beside(suffix: str, statement: str, *, mode: str) -> Callable[[sqlite3.Connection], None]:
    """Put the file beside the log that SQLite makes while a copy of it is written to."""

    def do(rows: sqlite3.Connection) -> None:
        path = _path(rows)
        rows.close()
        copy = path.with_name("copy.db")
        shutil.copy(path, copy)
        with closing(sqlite3.connect(copy, isolation_level=None)) as other:
            other.executescript(f"PRAGMA journal_mode={mode}; PRAGMA cache_size=2; BEGIN; {statement}")
            if mode == "WAL":
                other.execute("COMMIT")
            shutil.copy(f"{copy}{suffix}", f"{path}{suffix}")

    return do


def _in_utf_16(rows: sqlite3.Connection) -> None:
    """Lay all rows into a file that keeps text in another way."""
    path = _path(rows)
    other = path.with_name("other.db")
    made = rows.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    index = [sql for _, name, sql in made if name == "session_search"]
    ((mark,),) = rows.execute("PRAGMA application_id").fetchall()
    with closing(sqlite3.connect(other, isolation_level=None)) as copy:
        copy.executescript(f"PRAGMA encoding='UTF-16le'; PRAGMA application_id={mark}")
        for kind, name, sql in made:
            if kind == "table" and not name.startswith(("sqlite_", "session_search")):
                copy.execute(sql)
                columns = len(rows.execute(f"PRAGMA table_info({name})").fetchall())
                places = ", ".join("?" * columns)
                copy.executemany(
                    f"INSERT INTO {name} VALUES ({places})", rows.execute(f"SELECT * FROM {name}")
                )
        for sql in (*index, *(sql for kind, _, sql in made if kind in {"index", "trigger"})):
            copy.execute(sql)
        copy.execute(END)
    rows.close()
    other.replace(path)


def without_index(change: str) -> Callable[[sqlite3.Connection], None]:
    """Change the events while their index of streams and versions is left out of the schema."""

    def do(rows: sqlite3.Connection) -> None:
        where = "WHERE name IN ('stored_events', 'sqlite_autoindex_stored_events_1')"
        kept = rows.execute(f"SELECT name, rootpage, sql FROM sqlite_master {where}").fetchall()
        (made,) = (sql for _, _, sql in kept if sql)
        ((name, root),) = ((name, root) for name, root, sql in kept if not sql)
        unique = ", UNIQUE (originator_id, originator_version)"
        taken = f"UPDATE sqlite_master SET sql='{made.replace(unique, '')}' WHERE name='stored_events'"
        rows.executescript(schema(f"DELETE FROM sqlite_master WHERE name='{name}'; {taken}"))
        rows.executescript(change)
        back = f"INSERT INTO sqlite_master VALUES ('index', '{name}', 'stored_events', {root}, NULL)"
        rows.executescript(
            schema(f"UPDATE sqlite_master SET sql='{made}' WHERE name='stored_events'; {back}")
        )

    return do


def _behind(rows: sqlite3.Connection) -> None:
    """Say of the views that they are behind, with the triggers that would tell of it away for that long."""
    marks = rows.execute("SELECT name, sql FROM sqlite_master WHERE type='trigger'").fetchall()
    for name, _ in marks:
        rows.execute(f"DROP TRIGGER {name}")
    rows.execute("UPDATE inline_views SET position=position-4")
    for _, made in marks:
        rows.execute(made)


def _set_back(rows: sqlite3.Connection) -> None:
    """Take away all that came after the first checkpoint that was signed, so that it is as it was then."""
    signed = "SELECT rowid FROM stored_events WHERE topic LIKE 'checkpoint%' ORDER BY rowid LIMIT 1 OFFSET 1"
    rows.execute(f"DELETE FROM stored_events WHERE rowid>({signed})")
    rows.execute("DELETE FROM log_topics WHERE topic NOT IN (SELECT topic FROM stored_events)")
    rows.execute(END)


def _gone_on_with(path: Path) -> None:
    note = NotePinned(flow="r", position=1, text="as if nothing had been", by="operator")
    draft = Draft(event=note, id="9", time=3_000)
    with SqliteLog(path, inline=inline_views()) as log:
        log.append_now((StreamAppend(stream="notes:r", expected=ANY_VERSION, drafts=(draft,)),))
        checkpoint(log, key_of(7))


def _set_back_and_gone_on(rows: sqlite3.Connection) -> None:
    _set_back(rows)
    _gone_on_with(_path(rows))


def _another(rows: sqlite3.Connection) -> None:
    """Put another log of the same host in its place: of the same key."""
    path = _path(rows)
    rows.close()
    other = path.with_name("other.db")
    _gone_on_with(other)
    other.replace(path)


def _merged(rows: sqlite3.Connection) -> None:
    other = _path(rows).with_name("other.db")
    _gone_on_with(other)
    rows.execute("ATTACH ? AS other", (str(other),))
    rows.execute(
        f"INSERT INTO main.stored_events SELECT {LAST.replace('FROM ', 'FROM main.')}+rowid, originator_id, "
        "originator_version, topic, state FROM other.stored_events WHERE originator_id LIKE 'notes:%'"
    )
    rows.execute(
        "INSERT OR IGNORE INTO main.log_topics SELECT topic FROM other.log_topics WHERE topic LIKE 'note%'"
    )


def _hashed_with(field: str, value: str) -> Callable[[sqlite3.Connection], None]:
    """Say something else in the last event that is no checkpoint, and compute each hash again."""

    def do(rows: sqlite3.Connection) -> None:
        last = "(SELECT MAX(rowid) FROM stored_events WHERE topic NOT LIKE 'checkpoint%')"
        rows.execute(
            f"UPDATE stored_events SET state=stated(json_set(said(state), '$.{field}', {value})) WHERE rowid={last}"
        )
        hashed_again(rows, ids=False)

    return do


def _erasure_gone(rows: sqlite3.Connection) -> None:
    rows.execute("DELETE FROM stored_events WHERE topic LIKE 'erased%'")
    close_gaps(rows)


def _fork_beside(rows: sqlite3.Connection) -> None:
    folder = Path(f"{_path(rows)}.forks")
    folder.mkdir()
    (folder / "11111111-1111-4111-8111-111111111111.db").write_bytes(b"no fork")


FILES: tuple[Kind, ...] = (
    Kind("a page of events filled with nothing", "verify", "table_altered", _bytes(_emptied)),
    Kind("two rows of a page in each other's place", "verify", "table_altered", _bytes(_cells_exchanged)),
    Kind("the file cut short by a page", "opening", "", _bytes(_one_page_less)),
    Kind("more pages said in its first bytes than it has", "opening", "", _bytes(_fewer_pages_said)),
    Kind(
        "a page more behind its last one",
        "unproven",
        "What else is in the file",
        _bytes(lambda raw: raw.extend(b"x" * _PAGE)),
    ),
    Kind(
        "a write-ahead log put beside it that takes events away",
        "verify",
        "tail_cut",
        _beside("-wal", f"DELETE FROM stored_events WHERE rowid>{LAST}-3", mode="WAL"),
    ),
    Kind(
        "a rollback journal put beside it",
        "opening",
        "",
        _beside("-journal", "CREATE TABLE mine AS SELECT * FROM stored_events", mode="DELETE"),
    ),
    Kind("all rows laid into a file that keeps text as UTF-16", "opening", "table_altered", _in_utf_16),
    Kind(
        "words in a trigger that are no text",
        "opening",
        "table_altered",
        schema(f"UPDATE sqlite_master SET sql=sql || {_NO_TEXT} WHERE name='touched_flows_update'"),
    ),
    Kind(
        "words in the table of a view that are no text",
        "repaired",
        "view_differs",
        schema(f"UPDATE sqlite_master SET sql=sql || {_NO_TEXT} WHERE name='flow_runs'"),
    ),
    Kind(
        "a schema that SQLite refuses, in words that are no text",
        "opening",
        "",
        "CREATE TABLE mine (x); PRAGMA writable_schema=ON; "
        "UPDATE sqlite_master SET sql=CAST(X'43524541ff' AS TEXT) WHERE name='mine'",
    ),
    Kind(
        "a trigger that swallows events, and says that it is a table",
        "opening",
        "",
        "CREATE TRIGGER gone AFTER INSERT ON stored_events BEGIN DELETE FROM stored_events WHERE rowid=NEW.rowid; END; "
        + schema("UPDATE sqlite_master SET type='table' WHERE name='gone'"),
    ),
    Kind(
        "an index that refuses, without the words that made it",
        "opening",
        "",
        "CREATE UNIQUE INDEX one ON stored_events (topic, originator_id, originator_version); "
        + schema("UPDATE sqlite_master SET sql=NULL WHERE name='one'"),
    ),
    Kind(
        "the events' table renamed in capitals",
        "opening",
        "table_altered",
        "ALTER TABLE stored_events RENAME TO away; ALTER TABLE away RENAME TO Stored_Events",
    ),
    Kind(
        "an event taken out of the index of its stream",
        "verify",
        "table_altered",
        without_index(
            f"UPDATE stored_events SET originator_version=originator_version+0 WHERE rowid={SAID}; "
            f"UPDATE stored_events SET originator_id='session:agent:x:main' WHERE rowid={SAID}"
        ),
    ),
    Kind(
        "two events of one version",
        "verify",
        "out_of_order",
        without_index(
            f"INSERT INTO stored_events SELECT {LAST}+1, originator_id, originator_version, topic, state "
            f"FROM stored_events WHERE rowid={SAID}"
        ),
    ),
    Kind(
        "a state of nothing, let in by the schema for that long",
        "verify",
        "unreadable",
        f"{schema(_NOTHING)}; UPDATE stored_events SET state=NULL WHERE rowid={SAID}; {schema(_SOMETHING)}",
    ),
    Kind(
        "a sequence in capitals, and a table whose rows would go with events",
        "unproven",
        "What else is in the file",
        "INSERT INTO sqlite_sequence VALUES ('STORED_EVENTS', 9000); "
        "CREATE TABLE mine (x REFERENCES stored_events(rowid) ON DELETE CASCADE)",
    ),
    Kind(
        "an index on the snapshots that takes others away",
        "verify",
        "view_differs",
        f"{NO_SNAPSHOTS_YET}; CREATE UNIQUE INDEX one ON stored_snapshots (topic)",
    ),
    Kind(
        "how much the index of names says is in it",
        "verify",
        "view_differs",
        "UPDATE session_search_data SET block=X'0102' WHERE id=1",
    ),
    Kind(
        "views said to be behind, the triggers dropped and made again",
        "verify",
        "view_differs",
        _behind,
    ),
    Kind("a log id of nothing", "verify", "changed", "UPDATE log_identity SET log_id=''"),
    Kind("events of another log put behind the last", "verify", "changed", _merged),
    Kind(
        "an earlier epoch, each hash computed again",
        "verify",
        "epoch_backwards",
        _hashed_with("epoch", "1"),
    ),
    Kind(
        "the id of another event, each hash computed again",
        "verify",
        "id_repeated",
        _hashed_with(
            "id", f"(SELECT json_extract(said(state), '$.id') FROM stored_events WHERE rowid={SAID})"
        ),
    ),
    Kind(
        "the log set back to an earlier checkpoint",
        "head",
        "tail_cut",
        _set_back,
        signed=False,
        named="That the log was not set back",
    ),
    Kind(
        "the log set back to an earlier checkpoint, and gone on with by a host",
        "head",
        "tail_cut",
        _set_back_and_gone_on,
        signed=False,
        named="That the log was not set back",
    ),
    Kind(
        "another log of the same host put in its place",
        "head",
        "other_log",
        _another,
        signed=False,
        named="Which log this is",
    ),
    Kind("a fork put beside the file", "unproven", "What is kept beside the file", _fork_beside),
)
"""What is done to the file, its pages and its schema, and to what lies beside it."""

KEPT: tuple[Kind, ...] = (
    Kind(
        "other words in the place of erased ones",
        "verify",
        "erased",
        "UPDATE stored_events SET state=stated(replace(said(state), '[erased]', 'I confess'))",
    ),
    Kind(
        "an erasure taken away, the rest renumbered",
        "verify",
        "erased",
        _erasure_gone,
    ),
    Kind(
        "the words of another erased under the same erasure",
        "verify",
        "erased",
        "UPDATE stored_events SET state=stated(json_set(said(state), '$.data', json('null'), '$.salt', '')) WHERE "
        "rowid=(SELECT MIN(rowid) FROM stored_events WHERE topic LIKE 'note%')",
    ),
    Kind(
        "what an erasure says that it erased",
        "verify",
        "changed",
        "UPDATE stored_events SET state=stated(json_remove(said(state), '$.data.rows[0]')) WHERE topic LIKE 'erased%'",
    ),
    Kind(
        "a note in another's name",
        "verify",
        "changed",
        "UPDATE stored_events SET state=stated(replace(said(state), 'operator', 'operatrix')) WHERE topic LIKE 'note%'",
    ),
    Kind(
        "a note moved to another run",
        "verify",
        "changed",
        "UPDATE stored_events SET originator_id='notes:another' WHERE originator_id LIKE 'notes:%'",
    ),
)
"""What is done to what was erased, and to notes."""
