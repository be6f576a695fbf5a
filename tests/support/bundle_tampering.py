"""What somebody can do to a bundle, and by what each is found: for the test that does it, and the page that says it.

The bundle is that of a whole log with two signed checkpoints, or of one session of it whose words were erased.
"""

import json
import sqlite3
import stat
import tempfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from intersession_events.copies.forks.forking import OwnRows
from intersession_events.facts import Erased, Message, MessageRecorded, left_of_payload
from intersession_events.log.row_state import opened
from intersession_events.proofs.signatures import PrivateKey
from support.bundled import (
    KEY,
    OTHER_KEY,
    Line,
    Parts,
    hashed_again,
    lines_of,
    made_anew,
    part_behind,
    rehashed,
    sealed,
    with_lines,
    with_rows,
    zipped,
)
from support.file_tampering import without_index
from support.forged_erasures import say_erased
from support.tampering import schema

MADE_UP: Final = "That nobody with the means to compute hashes"
BY_THE_HOST: Final = "That the host made this bundle"
ANOTHER_HISTORY: Final = "That the owner of the key signed no other history"


BundleBy = Literal["alone", "trusted", "published", "unproven"]
"""Found by `verify.py` alone; with the key that signed the log's checkpoints, and named before that; with what was published,
and named before that; named as not proven."""


class BundleKind(NamedTuple):
    """One way to tamper with a bundle: `do` gets its entries, and returns a zip, or entries that lie in a folder.

    `finds` is the code of the finding, or what the words begin with that name it as not proven; `named` what those begin with
    that name it before it is tried.
    """

    what: str
    by: BundleBy
    finds: str
    do: Callable[[Parts], bytes | Parts]
    named: str = MADE_UP
    of: Literal["whole", "session", "secrets", "words", "people"] = "whole"


def _in_zip(change: Callable[[bytes], bytes]) -> Callable[[Parts], bytes]:
    return lambda parts: change(zipped(parts))


def _other(name: str, change: Callable[[bytes], bytes]) -> Callable[[Parts], Parts]:
    return lambda parts: parts | {name: change(parts[name])}


def _sealed(
    change: Callable[[Parts], Parts], key: PrivateKey | None = None, **said: Any
) -> Callable[[Parts], bytes]:
    """Make a manifest that fits, and a zip with its hash."""
    return lambda parts: zipped(sealed(change(parts), key, **said))


def _without(name: str) -> Callable[[Parts], Parts]:
    return lambda parts: {other: body for other, body in parts.items() if other != name}


def _lines(change: Callable[[list[Line]], list[Line]], *, log: bool = True) -> Callable[[Parts], bytes]:
    """Change the events, in log.db too, and say how many there are."""

    def do(parts: Parts) -> Parts:
        lines = change(lines_of(parts))
        return with_lines(parts, lines, log=log)

    return lambda parts: _counted(do(parts))


def _counted(parts: Parts, key: PrivateKey | None = None) -> bytes:
    lines = lines_of(parts)
    return zipped(sealed(parts, key, events=len(lines), streams=len({line.said["stream"] for line in lines})))


def _rehashed(change: Callable[[list[Line]], list[Line]]) -> Callable[[Parts], bytes]:
    def do(parts: Parts) -> bytes:
        return _counted(with_lines(parts, rehashed(parts, change(lines_of(parts)))))

    return do


def _anew(change: Callable[[list[Line]], list[Line]], key: PrivateKey | None) -> Callable[[Parts], bytes]:
    """Make all of it anew, checkpoints and proof too, and sign it with a key or not."""
    return lambda parts: zipped(sealed(made_anew(parts, change(lines_of(parts)), key), key))


def _said(lines: list[Line]) -> int:
    return next(at for at, line in enumerate(lines) if b"hello" in line.data)


def _words(lines: list[Line]) -> list[Line]:
    at = _said(lines)
    return [*lines[:at], Line(lines[at].said, lines[at].data.replace(b"hello", b"adieu")), *lines[at + 1 :]]


def _field(**fields: Any) -> Callable[[list[Line]], list[Line]]:
    def change(lines: list[Line]) -> list[Line]:
        at = _said(lines)
        return [*lines[:at], Line(lines[at].said | fields, lines[at].data), *lines[at + 1 :]]

    return change


def _one_less(lines: list[Line]) -> list[Line]:
    at = _said(lines)
    return [*lines[:at], *lines[at + 1 :]]


def _end_less(lines: list[Line]) -> list[Line]:
    at = max(at for at, line in enumerate(lines) if line.said["stream"].startswith("session:"))
    return [*lines[:at], *lines[at + 1 :]]


def _stream_less(lines: list[Line]) -> list[Line]:
    return [line for line in lines if not line.said["stream"].startswith("exchange:")]


def _twice(lines: list[Line]) -> list[Line]:
    at = _said(lines)
    return [*lines[: at + 1], lines[at], *lines[at + 1 :]]


def _twice_data(lines: list[Line]) -> list[Line]:
    at = _said(lines)
    return [
        *lines[:at],
        Line(lines[at].said, lines[at].data + b',"data":' + lines[at].data.replace(b"hello", b"adieu")),
        *lines[at + 1 :],
    ]


def _pair(lines: list[Line]) -> int:
    return next(at for at in range(2, len(lines)) if lines[at].said["stream"] != lines[at + 1].said["stream"])


def _swapped(lines: list[Line]) -> list[Line]:
    at = _pair(lines)
    return [*lines[:at], lines[at + 1], lines[at], *lines[at + 2 :]]


def _places_swapped(lines: list[Line]) -> list[Line]:
    """Exchange the places of two events, which their hashes do not cover."""
    at = _pair(lines)
    places = ("position", "index")
    one, other = lines[at], lines[at + 1]
    first = Line(other.said | {name: one.said[name] for name in places}, other.data)
    second = Line(one.said | {name: other.said[name] for name in places}, one.data)
    return [*lines[:at], first, second, *lines[at + 2 :]]


def _renumbered(lines: list[Line]) -> list[Line]:
    return [Line(line.said | {"index": None}, line.data) for line in lines]


def _blanked(lines: list[Line]) -> list[Line]:
    """Blank words as an erasure does."""
    at = _said(lines)
    said = {name: value for name, value in lines[at].said.items() if name != "salt"}
    left = left_of_payload(said["topic"], lines[at].data) or b""
    return [*lines[:at], Line(said, left), *lines[at + 1 :]]


def _erased(lines: list[Line]) -> int:
    return next(at for at, line in enumerate(lines) if "salt" not in line.said)


def _other_left(lines: list[Line]) -> list[Line]:
    at = _erased(lines)
    return [
        *lines[:at],
        Line(lines[at].said, lines[at].data.replace(b"[erased]", b"I did it")),
        *lines[at + 1 :],
    ]


def _erasure_less(lines: list[Line]) -> list[Line]:
    return [line for line in lines if line.said["topic"] != "erased.1"]


def _forged_erasure(lines: list[Line], words: bytes) -> list[Line]:
    """Blank words, or put others in their place, and say behind all else that they were erased."""
    made, at = _blanked(lines), _said(lines)
    gone = made[at] = Line(made[at].said, made[at].data.replace(b"[erased]", words))
    stream = f"erased:{gone.said['stream']}"
    rows = [[gone.said["version"], sha256(gone.data).hexdigest()]]
    event = {"by": "operator", "files": 0, "reason": "", "rows": rows, "stream": gone.said["stream"]}
    last = made[-1].said
    said = {
        "position": last["position"],
        "index": None,
        "stream": stream,
        "version": 1,
        "topic": "erased.1",
        "id": "00000000-0000-4000-8000-000000000000",
        "causation": None,
        "correlation": None,
        "epoch": last["epoch"],
        "time": last["time"],
        "prev": "0" * 64,
        "hash": "",
        "digest": "",
        "salt": "0" * 32,
    }
    # The last event lies behind the last checkpoint, so that nothing is missing where it stood.
    return [*made[:-1], Line(said, json.dumps(event, sort_keys=True, separators=(",", ":")).encode())]


def _with_forged_erasure(words: bytes) -> Callable[[Parts], bytes]:
    def do(parts: Parts) -> bytes:
        lines = _forged_erasure(lines_of(parts), words)
        return _counted(with_lines(parts, [*lines[:-1], *rehashed(parts, lines[-1:])]))

    return do


def _erased_in_log(parts: Parts) -> bytes:
    """Blank words, and have log.db say that they were erased behind the place of the bundle."""
    lines = _blanked(lines_of(parts))
    gone = lines[_said(lines_of(parts))]
    rows = ((gone.said["version"], sha256(gone.data).hexdigest()),)
    made = with_lines(parts, lines)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "log.db")
        path.write_bytes(made["log.db"])
        say_erased(path, Erased(stream=gone.said["stream"], rows=rows, by="operator"))
        return _counted(made | {"log.db": path.read_bytes()})


def _proof(change: Callable[[dict[str, Any]], Any]) -> Callable[[Parts], Parts]:
    def do(parts: Parts) -> Parts:
        proof = json.loads(parts["proof.json"])
        change(proof)
        return parts | {"proof.json": json.dumps(proof).encode()}

    return do


def _in_lines(name: str, change: Callable[[list[dict[str, Any]]], Any]) -> Callable[[Parts], Parts]:
    """Change the objects of an entry that has one a line."""

    def do(parts: Parts) -> Parts:
        lines = [json.loads(line) for line in parts[name].splitlines()]
        change(lines)
        return parts | {name: b"".join(json.dumps(one).encode() + b"\n" for one in lines)}

    return do


def _in_log(statement: str) -> Callable[[Parts], Parts]:
    return lambda parts: (
        parts | {"log.db": with_rows(parts["log.db"], lambda rows: rows.executescript(statement))}
    )


def _not_in_index(rows: sqlite3.Connection) -> None:
    """Have the index of streams and versions say another version of an event than its row."""
    ((version,),) = rows.execute("SELECT originator_version FROM stored_events WHERE rowid=5")
    rows.execute("UPDATE stored_events SET originator_version=999 WHERE rowid=5")
    back = "UPDATE stored_events SET originator_version=%d WHERE rowid=5"
    without_index(back % version)(rows)


def _own_message(parts: Parts) -> Parts:
    """Put a message behind what log.db says that it is a part of."""

    def change(rows: sqlite3.Connection) -> None:
        ((log_id,),) = rows.execute("SELECT log_id FROM log_identity")
        (last, state), *_ = rows.execute("SELECT rowid, state FROM stored_events ORDER BY rowid DESC")
        end = opened(state, where="the last row")
        own = OwnRows(log_id, epoch=end.epoch, time=end.time, entropy=bytes)
        said = Message(id="m", role="user", content="I did it", timestamp=end.time)
        row = own.row("session:mine", MessageRecorded(session_id="s", message=said), at=last + 1)
        rows.execute("INSERT INTO stored_events VALUES (?, ?, ?, ?, ?)", row)
        rows.execute("INSERT INTO log_topics VALUES (?) ON CONFLICT DO NOTHING", (row[3],))

    return parts | {"log.db": with_rows(parts["log.db"], change)}


def _of_another_log(parts: Parts) -> Parts:
    """Put an event of another log in the place of one."""
    lines = lines_of(parts)
    other = parts | {"manifest.json": json.dumps({"logId": "11111111-1111-4111-8111-111111111111"}).encode()}
    at = _said(lines)
    return with_lines(parts, [*lines[:at], rehashed(other, lines)[at], *lines[at + 1 :]])


def _outside(parts: Parts) -> Parts:
    return parts | {"../outside.txt": b"out"}


def _first_as(zip_: bytes, mode: int) -> bytes:
    """Return a zip whose first entry is unpacked as something else."""
    at = zip_.index(b"PK\1\2") + _ATTRIBUTES
    return zip_[:at] + (mode << 16).to_bytes(4, "little") + zip_[at + 4 :]


_ATTRIBUTES: Final = 38
"""Where the kind of an entry lies in its part of the directory."""
_FIRST_NAME: Final = 30
"""Where the name of the first entry of a zip begins."""

EDITED: tuple[BundleKind, ...] = (
    BundleKind(
        "a byte of the zip",
        "alone",
        "archive",
        _in_zip(lambda zip_: zip_[:500] + bytes([zip_[500] ^ 1]) + zip_[501:]),
    ),
    BundleKind("a byte behind the zip", "alone", "archive", _in_zip(lambda zip_: zip_ + b"\n")),
    BundleKind("a byte before the zip", "alone", "archive", _in_zip(lambda zip_: b"\n" + zip_)),
    BundleKind("the zip cut short", "alone", "archive", _in_zip(lambda zip_: zip_[:-200])),
    BundleKind(
        "the hash at the end of the zip", "alone", "archive", _in_zip(lambda zip_: zip_[:-64] + b"0" * 64)
    ),
    BundleKind(
        "bytes between the entries of the zip, its hash made again",
        "alone",
        "archive",
        _in_zip(
            lambda zip_: hashed_again(
                zip_[: zip_.index(b"PK\1\2")] + b"hidden" + zip_[zip_.index(b"PK\1\2") :]
            )
        ),
    ),
    BundleKind(
        "the name of an entry in one of the two places where the zip has it, its hash made again",
        "alone",
        "archive",
        _in_zip(lambda zip_: hashed_again(zip_[:_FIRST_NAME] + b"X" + zip_[_FIRST_NAME + 1 :])),
    ),
    BundleKind(
        "an entry that is packed anew as another text",
        "alone",
        "entry",
        lambda parts: zipped(_other("settings.json", lambda _: b"{}")(parts)),
    ),
    BundleKind("an entry put in", "alone", "entry", lambda parts: zipped(parts | {"answer.json": b"{}"})),
    BundleKind(
        "an entry whose case alone differs",
        "alone",
        "archive",
        lambda parts: zipped(sealed(parts | {"Report.html": b"more"})),
    ),
    BundleKind(
        "an entry made a link",
        "alone",
        "archive",
        _in_zip(lambda zip_: hashed_again(_first_as(zip_, stat.S_IFLNK | 0o777))),
    ),
    BundleKind(
        "an entry that would be unpacked elsewhere", "alone", "archive", lambda parts: zipped(_outside(parts))
    ),
    BundleKind("an entry taken out", "alone", "entry", lambda parts: zipped(_without("notes.json")(parts))),
    BundleKind("a text in a folder", "alone", "entry", _other("README.txt", lambda text: text + b"!")),
    BundleKind("a file put into a folder", "alone", "entry", lambda parts: parts | {"answer.json": b"{}"}),
    BundleKind("a file taken out of a folder", "alone", "entry", _without("checkpoints.jsonl")),
    BundleKind(
        "the manifest in a folder",
        "alone",
        "signature",
        _other("manifest.json", lambda text: text.replace(b"everything", b"everyThing")),
    ),
    BundleKind(
        "the signature in a folder",
        "alone",
        "signature",
        _other("manifest.sig", lambda _: b"A" * 86 + b"==\n"),
    ),
    BundleKind("the signature taken out of a folder", "alone", "entry", _without("manifest.sig")),
)
"""With an editor, or an archiver."""

HASHED: tuple[BundleKind, ...] = (
    BundleKind("other words", "alone", "row", _lines(_words)),
    BundleKind("another time", "alone", "row", _lines(_field(time=1))),
    BundleKind("another session", "alone", "row", _lines(_field(stream="session:agent:main:other"))),
    BundleKind("another decision record", "alone", "row", _lines(_field(decision="{}"))),
    BundleKind("other words, each hash computed again", "alone", "proof", _rehashed(_words)),
    BundleKind(
        "another sender, each hash computed again",
        "alone",
        "proof",
        _rehashed(_field(causation="00000000-0000-4000-8000-000000000009")),
    ),
    BundleKind("an event left out", "alone", "chain", _lines(_one_less)),
    BundleKind("the last event of a session left out", "alone", "proof", _lines(_end_less)),
    BundleKind(
        "the last event of a session left out of a part of the log",
        "alone",
        "proof",
        _lines(_end_less),
        of="session",
    ),
    BundleKind("an exchange left out", "alone", "proof", _lines(_stream_less)),
    BundleKind("an event there twice", "alone", "order", _lines(_twice)),
    BundleKind("two events in each other's line", "alone", "order", _lines(_swapped)),
    BundleKind("two events at each other's position", "alone", "proof", _lines(_places_swapped)),
    BundleKind("all events said to be behind the checkpoint", "alone", "proof", _lines(_renumbered)),
    BundleKind("an event of another log in the place of one", "alone", "row", _sealed(_of_another_log)),
    BundleKind("another place", "alone", "order", _sealed(lambda parts: parts, position=9)),
    BundleKind(
        "another log's id",
        "alone",
        "row",
        _sealed(lambda parts: parts, logId="11111111-1111-4111-8111-111111111111"),
    ),
    BundleKind("fewer events said", "alone", "order", _sealed(lambda parts: parts, events=3)),
    BundleKind("no checkpoint said", "alone", "proof", _sealed(lambda parts: parts, checkpoint=None)),
    BundleKind(
        "another node of the proof",
        "alone",
        "proof",
        _sealed(_proof(lambda proof: proof["nodes"][0].__setitem__(2, "0" * 64))),
        of="session",
    ),
    BundleKind(
        "a node more in the proof",
        "alone",
        "proof",
        _sealed(_proof(lambda proof: proof["nodes"].append([900, 901, "0" * 64]))),
        of="session",
    ),
    BundleKind(
        "the proof that a stream ended there taken out",
        "alone",
        "head",
        _sealed(_in_lines("heads.jsonl", lambda heads: heads.pop())),
        of="session",
    ),
    BundleKind(
        "another end of a stream",
        "alone",
        "head",
        _sealed(_in_lines("heads.jsonl", lambda heads: heads[0].update(version=99))),
        of="session",
    ),
    BundleKind(
        "another path between checkpoints",
        "alone",
        "growth",
        _sealed(_proof(lambda proof: proof["growth"][0].update(path=["0" * 64]))),
    ),
    BundleKind(
        "an earlier checkpoint taken out",
        "alone",
        "checkpoint",
        _sealed(_in_lines("checkpoints.jsonl", lambda taken: taken.pop(0))),
    ),
    BundleKind(
        "another root in a checkpoint",
        "alone",
        "checkpoint",
        _sealed(_in_lines("checkpoints.jsonl", lambda taken: taken[0].update(eventsRoot="0" * 64))),
    ),
    BundleKind(
        "another signature of a checkpoint",
        "alone",
        "checkpoint",
        _sealed(_in_lines("checkpoints.jsonl", lambda taken: taken[0].update(signature="A" * 86 + "=="))),
        of="session",
    ),
    BundleKind("words blanked as if erased", "alone", "erased", _lines(_blanked)),
    BundleKind("other words in the place of erased ones", "alone", "erased", _lines(_other_left)),
    BundleKind(
        "an erasure left out of a part of the log", "alone", "proof", _lines(_erasure_less), of="session"
    ),
    BundleKind(
        "other words in log.db",
        "alone",
        "log",
        _sealed(
            _in_log(
                "UPDATE stored_events SET state=CAST(replace(CAST(state AS TEXT), 'hello', 'adieu') AS BLOB)"
            )
        ),
    ),
    BundleKind(
        "an event taken out of log.db",
        "alone",
        "log",
        _sealed(_in_log("DELETE FROM stored_events WHERE rowid=5")),
    ),
    BundleKind(
        "what log.db says that it is of",
        "alone",
        "log",
        _sealed(_in_log("UPDATE log_identity SET log_id='11111111-1111-4111-8111-111111111111'")),
        of="session",
    ),
    BundleKind(
        "an event taken out of the index of log.db",
        "alone",
        "log",
        _sealed(lambda parts: parts | {"log.db": with_rows(parts["log.db"], _not_in_index)}),
    ),
    BundleKind(
        "the stream of an event in log.db no text",
        "alone",
        "log",
        _sealed(_in_log("UPDATE stored_events SET originator_id=CAST(originator_id AS BLOB) WHERE rowid=5")),
    ),
    BundleKind(
        "a kind of event taken off the list of log.db",
        "alone",
        "log",
        _sealed(_in_log("DELETE FROM log_topics WHERE topic='run_started.1'")),
    ),
    BundleKind(
        "streams of log.db compared otherwise",
        "alone",
        "log",
        _sealed(
            _in_log(
                schema(
                    "UPDATE sqlite_master SET sql=replace(sql, 'originator_id TEXT', 'originator_id TEXT COLLATE NOCASE')"
                )
            )
        ),
    ),
    BundleKind("a message put behind the events of log.db", "alone", "log", _sealed(_own_message)),
    BundleKind(
        "a message put behind the events of log.db, of a part of the log",
        "alone",
        "log",
        _sealed(_own_message),
        of="session",
    ),
    BundleKind(
        "another place of a part of the log",
        "alone",
        "log",
        lambda parts: zipped(sealed(parts, position=json.loads(parts["manifest.json"])["position"] + 1)),
        of="session",
    ),
    BundleKind(
        "data there twice in an event, each hash computed again", "alone", "row", _rehashed(_twice_data)
    ),
    BundleKind(
        "a list of sessions put into log.db",
        "alone",
        "log",
        _sealed(_in_log("CREATE TABLE session_list (key TEXT)")),
    ),
    BundleKind(
        "a trigger put into log.db",
        "alone",
        "log",
        _sealed(
            _in_log("CREATE TRIGGER t AFTER INSERT ON stored_events BEGIN DELETE FROM stored_events; END")
        ),
    ),
    BundleKind(
        "views in log.db said to be done",
        "alone",
        "log",
        _sealed(_in_log("INSERT INTO inline_views VALUES ('sessions', 1, 5)")),
    ),
    BundleKind(
        "a query in the place of the events of log.db",
        "alone",
        "log",
        _sealed(
            _in_log(
                "ALTER TABLE stored_events RENAME TO e; CREATE VIEW stored_events AS SELECT rowid, * FROM e"
            )
        ),
    ),
    BundleKind(
        "a picture",
        "alone",
        "file",
        _sealed(
            lambda parts: {
                name: body + b"!" if name.startswith("files/") else body for name, body in parts.items()
            }
        ),
    ),
    BundleKind(
        "a picture that nobody sent",
        "alone",
        "file",
        _sealed(lambda parts: parts | {f"files/{sha256(b'x').hexdigest()}": b"x"}),
    ),
    BundleKind(
        "other words put in the place of words, and an erasure of them forged behind the checkpoint",
        "alone",
        "erased",
        _with_forged_erasure(b"adieu"),
    ),
    BundleKind(
        "words blanked, and an erasure of them forged behind the checkpoint",
        "trusted",
        "erased",
        _with_forged_erasure(b"[erased]"),
    ),
    BundleKind(
        "words blanked, and an erasure of them forged in log.db",
        "trusted",
        "signature",
        _erased_in_log,
        named=BY_THE_HOST,
        of="session",
    ),
    BundleKind("other words, all made anew", "trusted", "signature", _anew(_words, None)),
    BundleKind(
        "other words, all made anew and signed with another key",
        "trusted",
        "signature",
        _anew(_words, OTHER_KEY),
    ),
    BundleKind("an event left out, all made anew", "trusted", "signature", _anew(_end_less, None)),
    BundleKind(
        "the signature left out", "trusted", "signature", _sealed(lambda parts: parts), named=BY_THE_HOST
    ),
    BundleKind(
        "signed with another key",
        "trusted",
        "signature",
        _sealed(lambda parts: parts, OTHER_KEY),
        named=BY_THE_HOST,
    ),
    BundleKind(
        "other settings",
        "trusted",
        "signature",
        _sealed(_other("settings.json", lambda _: b"{}")),
        named=BY_THE_HOST,
    ),
    BundleKind(
        "another question",
        "trusted",
        "signature",
        _sealed(lambda parts: parts, question={"run": "another"}),
        named=BY_THE_HOST,
    ),
    BundleKind(
        "a verify.py that always says OK",
        "trusted",
        "signature",
        _sealed(_other("verify.py", lambda _: b"print('OK')\n")),
        named=BY_THE_HOST,
    ),
)
"""By whoever can hash, and has no key; the manifest fits."""


def _behind_the_published(key: PrivateKey) -> Callable[[Parts], bytes]:
    """Change words, and put a checkpoint of that behind the genuine ones; of the log give a part, so that these can't be made anew."""
    return lambda parts: _counted(
        part_behind(parts, rehashed(parts, _words(lines_of(parts))), "exchange:", key), key
    )


def _withheld(lines: list[Line]) -> int:
    return next(at for at, line in enumerate(lines) if line.said.get("withheld") and b"content" in line.data)


def _in_withheld(was: bytes, now: bytes) -> Callable[[list[Line]], list[Line]]:
    def change(lines: list[Line]) -> list[Line]:
        at = _withheld(lines)
        assert was in lines[at].data
        return [*lines[:at], Line(lines[at].said, lines[at].data.replace(was, now)), *lines[at + 1 :]]

    return change


def _of_withheld(**fields: Any) -> Callable[[list[Line]], list[Line]]:
    def change(lines: list[Line]) -> list[Line]:
        at = _withheld(lines)
        return [*lines[:at], Line(lines[at].said | fields, lines[at].data), *lines[at + 1 :]]

    return change


def _withheld_less(lines: list[Line]) -> list[Line]:
    at = _withheld(lines)
    return [*lines[:at], *lines[at + 1 :]]


def _salted(lines: list[Line]) -> list[Line]:
    at = _withheld(lines)
    fields = {name: value for name, value in lines[at].said.items() if name != "withheld"}
    return [*lines[:at], Line(fields | {"salt": "0" * 32}, lines[at].data), *lines[at + 1 :]]


def _withheld_more(lines: list[Line]) -> list[Line]:
    """Pass words off as masked, in an event in which nothing was."""
    at = next(at for at, line in enumerate(lines) if "salt" in line.said and b"ask ops" in line.data)
    fields = {name: value for name, value in lines[at].said.items() if name != "salt"}
    said = Line(fields | {"withheld": "secrets"}, lines[at].data.replace(b"ask ops", b"ask not"))
    return [*lines[:at], said, *lines[at + 1 :]]


def _erasure_withheld(lines: list[Line]) -> list[Line]:
    """Withhold what authorises an erasure, so that it may say anything."""
    at = next(at for at, line in enumerate(lines) if line.said["topic"] == "erased.1")
    fields = {name: value for name, value in lines[at].said.items() if name != "salt"}
    return [*lines[:at], Line(fields | {"withheld": "secrets"}, lines[at].data), *lines[at + 1 :]]


REDACTED: tuple[BundleKind, ...] = (
    BundleKind(
        "an erasure withheld, so that it may say anything",
        "alone",
        "erased",
        _lines(_erasure_withheld, log=False),
        of="words",
    ),
    BundleKind(
        "an event that hides a person, where words alone are withheld",
        "alone",
        "row",
        _lines(_of_withheld(withheld="person", digest=None), log=False),
        of="words",
    ),
    BundleKind(
        "a log.db put into an edition without people",
        "alone",
        "log",
        _sealed(lambda parts: parts | {"log.db": b""}),
        of="people",
    ),
    BundleKind(
        "other words in the place of withheld ones",
        "alone",
        "erased",
        _lines(_in_withheld(b"[erased]", b"I did it")),
        of="words",
    ),
    BundleKind("a salt for what is withheld", "alone", "row", _lines(_salted), of="words"),
    BundleKind(
        "an edition of another name",
        "alone",
        "manifest",
        _sealed(lambda parts: parts, redacted="names"),
        of="words",
    ),
    BundleKind(
        "an edition passed off as whole",
        "alone",
        "row",
        _sealed(lambda parts: parts, redacted=None),
        of="words",
    ),
    BundleKind("an event left out of an edition", "alone", "proof", _lines(_withheld_less), of="words"),
    BundleKind(
        "another time of an event whose words are withheld",
        "alone",
        "row",
        _lines(_of_withheld(time=1)),
        of="words",
    ),
    BundleKind(
        "an event of a person left out", "alone", "proof", _lines(_withheld_less, log=False), of="people"
    ),
    BundleKind(
        "another hash of an event that hides a person",
        "alone",
        "proof",
        _lines(_of_withheld(hash="0" * 64), log=False),
        of="people",
    ),
    BundleKind(
        "an event that hides a person at another position",
        "alone",
        "order",
        _lines(_of_withheld(position=3), log=False),
        of="people",
    ),
    BundleKind(
        "another session in an event that hides a person",
        "alone",
        "chain",
        _lines(_of_withheld(stream="session:agent:main:other"), log=False),
        of="people",
    ),
    BundleKind(
        "words that were said passed off as masked",
        "trusted",
        "signature",
        _lines(_withheld_more),
        named=BY_THE_HOST,
        of="secrets",
    ),
)
"""Done to redacted editions, by whoever can hash."""

SIGNED: tuple[BundleKind, ...] = (
    BundleKind(
        "other words, in a part of the log, with a checkpoint of that signed behind those that were published",
        "published",
        "growth",
        _behind_the_published(KEY),
        named=ANOTHER_HISTORY,
    ),
    BundleKind(
        "words that were said passed off as masked, signed",
        "unproven",
        "That no more than secrets was changed",
        lambda parts: _counted(with_lines(parts, _withheld_more(lines_of(parts))), KEY),
        of="secrets",
    ),
    BundleKind(
        "other words, all made anew and signed",
        "published",
        "published",
        _anew(_words, KEY),
        named=ANOTHER_HISTORY,
    ),
    BundleKind(
        "an event left out, all made anew and signed",
        "published",
        "published",
        _anew(_end_less, KEY),
        named=ANOTHER_HISTORY,
    ),
    BundleKind(
        "an exchange left out, all made anew and signed",
        "published",
        "published",
        _anew(_stream_less, KEY),
        named=ANOTHER_HISTORY,
    ),
    BundleKind(
        "other settings, signed",
        "unproven",
        "That report.html, settings.json",
        _sealed(_other("settings.json", lambda _: b"{}"), KEY),
    ),
    BundleKind(
        "another question, signed",
        "unproven",
        "That no other stream belongs to the question",
        _sealed(lambda parts: parts, KEY, question={"run": "another"}),
    ),
    BundleKind(
        "a verify.py that always says OK, signed",
        "unproven",
        "That the verify.py in the bundle would say the same",
        _sealed(_other("verify.py", lambda _: b"print('OK')\n"), KEY),
    ),
    BundleKind(
        "a picture taken out, signed",
        "unproven",
        "That 1 file that events name",
        _sealed(
            lambda parts: {name: body for name, body in parts.items() if not name.startswith("files/")}, KEY
        ),
    ),
)
"""By whoever has the key that signs the log's checkpoints."""
