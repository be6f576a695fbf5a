"""Bundles under test: of a log with all that can be in one, taken apart, and put together again as somebody can who knows how."""

import base64
import io
import json
import sqlite3
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from intersession import Reply, SessionSystem, Turn
from intersession_actors.hindsight.bundling.bundle import make_bundle
from intersession_actors.hindsight.bundling.wanted import BundleWanted
from intersession_events.copies.bundles import verify
from intersession_events.log.row_state import Envelope, as_state
from intersession_events.proofs.apart import Apart
from intersession_events.proofs.hashed import Hashed
from intersession_events.proofs.merkle import GrowingTree, consistency_ranges, leaf_hash, root_of
from intersession_events.proofs.signatures import PrivateKey, write_private
from intersession_events.proofs.statement import Checkpoint, line_of
from support.checkpointed import key_of
from support.running import SEES_ALL, closed_exchange

KEY, OTHER_KEY = key_of(7), key_of(8)
MAIN, OPS, GONE = "agent:main:main", "agent:ops:main", "agent:ops:gone"
SECRET = " TOKEN=sk-1234567890abcdef1234"
PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
Parts = dict[str, bytes]


class Bundled(NamedTuple):
    """The bundles of one log, and what was kept of it elsewhere. `whole` has all of it, `session` one session.

    The others are redacted editions of the whole.
    """

    log: Path
    whole: Path
    session: Path
    secrets: Path
    words: Path
    people: Path
    published: bytes


def speak(turn: Turn) -> str | Reply:
    if turn.step == "message" and "ask" in turn.message:
        turn.tools.call("sessions_send", {"sessionKey": OPS, "message": "how are you", "timeoutSeconds": 20})
    return f"you said {turn.message}" if turn.step == "message" else Reply.skip()


def bundles_of_a_log(folder: Path) -> Bundled:
    """Run a system that speaks, shows a picture, asks another session and forgets words, and bundle its log."""
    write_private(KEY, folder / "key.pem")
    published = folder / "published.jsonl"
    config = {
        **SEES_ALL,
        "checkpoints": {"keyFile": str(folder / "key.pem"), "publish": {"file": str(published)}},
    }
    for text in ("hello", "ask ops"):
        with SessionSystem(
            f"sqlite:///{folder}/log.db", agents={"main": speak, "ops": speak}, config=config
        ) as system:
            for key in (MAIN, GONE):
                shown = {
                    "mimeType": "image/png",
                    "fileName": "dot.png",
                    "content": base64.b64encode(PICTURE).decode(),
                }
                sent = {
                    "sessionKey": key,
                    "message": f"{text} é{SECRET * (key == MAIN)}",
                    "idempotencyKey": text + key,
                }
                run = system.gateway.call(
                    "chat.send", sent | {"attachments": [shown]} if key == MAIN else sent
                )
                system.gateway.call("agent.wait", {"runId": run["runId"]})
            for ran in system.service.runs.recent(20):
                if ran.exchange_id and ran.session_key == OPS and ran.step == "message":
                    closed_exchange(system, ran.run_id)
            if text == "hello":
                system.gateway.call(
                    "sessions.erase", {"key": GONE, "reason": "asked for", "unsent": "giveUp"}
                )
    with SessionSystem(
        f"sqlite:///{folder}/log.db", agents={"main": speak, "ops": speak}, config=config
    ) as system:
        system.checkpoint()
        view = system.debug.view

        def made(name: str, **wanted: Any) -> Path:  # the fields of a `BundleWanted`
            return make_bundle(view, BundleWanted(**wanted), folder / f"{name}.zip", key=KEY).path

        whole, session = made("whole", everything=True), made("session", session=GONE)
        editions = {name: made(name, everything=True, redact=name) for name in ("secrets", "words", "people")}
    return Bundled(folder / "log.db", whole, session, published=published.read_bytes(), **editions)


def parts_of(bundle: Path) -> Parts:
    """Return the entries of a bundle."""
    with zipfile.ZipFile(bundle) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(parts: Mapping[str, bytes]) -> bytes:
    """Return entries as a zip with the hash at its end."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in parts.items():
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), body, zipfile.ZIP_DEFLATED)
    return hashed_again(whole.getvalue())


def hashed_again(archive: bytes) -> bytes:
    """Return a zip with the hash at its end that its bytes have."""
    before = archive[: archive.rindex(b"PK\5\6")]
    end = archive[len(before) :][:20]
    return before + end + (71).to_bytes(2, "little") + b"sha256:" + sha256(before).hexdigest().encode()


def sealed(parts: Parts, key: PrivateKey | None = None, **said: Any) -> Parts:
    """Return entries with a manifest that fits them, signed with a key or not at all."""
    manifest = json.loads(parts["manifest.json"]) | said
    manifest["key"] = None if key is None else str(key.public)
    manifest["files"] = [
        {"name": name, "bytes": len(body), "sha256": sha256(body).hexdigest()}
        for name, body in parts.items()
        if name not in {"manifest.json", "manifest.sig"}
    ]
    text = json.dumps(manifest).encode()
    made = {name: body for name, body in parts.items() if name != "manifest.sig"} | {"manifest.json": text}
    if key is not None:
        made["manifest.sig"] = key.sign(b"intersession bundle 1\n" + text).encode()
    return made


class Line(NamedTuple):
    """A line of events.jsonl: its fields, and its data as they stand."""

    said: dict[str, Any]
    data: bytes


def lines_of(parts: Parts) -> list[Line]:
    found = []
    for line in parts["events.jsonl"].splitlines():
        head, _, rest = line.partition(b',"data":')
        found.append(Line(json.loads(head + b"}"), rest[:-1]))
    return found


def with_lines(parts: Parts, lines: list[Line], *, log: bool = True) -> Parts:
    """Return entries with these events, in log.db too, at the positions that they say."""
    events = b"".join(
        json.dumps(line.said, separators=(",", ":"), ensure_ascii=False).encode()[:-1]
        + b',"data":'
        + line.data
        + b"}\n"
        for line in lines
    )
    made = parts | {"events.jsonl": events}
    return made | {"log.db": _log_with(parts, lines)} if log else made


def _log_with(parts: Parts, lines: list[Line]) -> bytes:
    position = json.loads(parts["manifest.json"])["position"]

    def change(rows: sqlite3.Connection) -> None:
        rows.execute("DELETE FROM stored_events WHERE rowid<=?", (position,))
        rows.executemany(
            "INSERT INTO stored_events (rowid, originator_id, originator_version, topic, state) VALUES (?, ?, ?, ?, ?)",
            [
                (
                    line.said["position"],
                    line.said["stream"],
                    line.said["version"],
                    line.said["topic"],
                    _state(line),
                )
                for line in {line.said["position"]: line for line in lines}.values()
            ],
        )

    return with_rows(parts["log.db"], change)


def with_rows(log: bytes, change: Callable[[sqlite3.Connection], object]) -> bytes:
    """Return a log's file after somebody wrote into it."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as rows:
        rows.deserialize(log)
        rows.execute("PRAGMA journal_mode=MEMORY")
        change(rows)
        return rows.serialize()


def _state(line: Line) -> bytes:
    names = ("causation", "correlation", "digest", "epoch", "hash", "id", "prev", "time")
    said = {name: line.said[name] for name in names}
    return as_state(
        Envelope(
            **said,
            salt=line.said.get("salt", ""),
            decision=line.said.get("decision", ""),
            apart=msgspec.convert(line.said.get("apart"), Apart | None),
            data=msgspec.Raw(line.data),
        )
    )


def rehashed(parts: Parts, lines: list[Line]) -> list[Line]:
    """Return events with each digest, hash and link computed again, as somebody can who knows how."""
    log_id = json.loads(parts["manifest.json"])["logId"]
    ends: dict[str, str] = {}
    made = []
    for line in lines:
        said = dict(line.said)
        if "salt" in said:
            said["digest"] = sha256(bytes.fromhex(said["salt"]) + line.data).hexdigest()
        if said["stream"] in ends or said["version"] == 1:
            said["prev"] = ends.get(said["stream"], "0" * 64)
        said["hash"] = Hashed(
            causation=said["causation"],
            correlation=said["correlation"],
            decision=said.get("decision", ""),
            epoch=said["epoch"],
            event_id=said["id"],
            log_id=log_id,
            payload_digest=said["digest"],
            prev=said["prev"],
            stream=said["stream"],
            time_ms=said["time"],
            topic=said["topic"],
            version=said["version"],
        ).hash
        ends[said["stream"]] = said["hash"]
        made.append(Line(said, line.data))
    return made


def made_anew(parts: Parts, lines: list[Line], key: PrivateKey | None) -> Parts:
    """Return a whole log's bundle of other events, with all checkpoints taken of those, and signed with a key or not at all."""
    log_id = json.loads(parts["manifest.json"])["logId"]
    leaves: list[bytes] = []
    rolling, previous, last = sha256(), None, 0
    taken: list[Checkpoint] = []
    made: list[Line] = []
    for index, line in enumerate(lines):
        data = line.data
        if line.said["topic"] == "checkpoint_taken.1":
            tree = GrowingTree()
            for leaf in leaves:
                tree.add(leaf)
            one = Checkpoint(
                log_id=log_id,
                position=last,
                count=len(leaves),
                rolling=rolling.hexdigest(),
                events_root=tree.root.hex(),
                previous=previous,
            )
            if key is not None:
                one = msgspec.structs.replace(one, key_id=key.public.id, signature=key.sign(one.text))
            fields = {name: value for name, value in json.loads(one.line).items() if name != "logId"}
            data = json.dumps(
                fields | {"peaks": [peak.hex() for peak in tree.peaks]}, sort_keys=True, separators=(",", ":")
            ).encode()
            taken.append(one)
            previous, rolling = one.hash, sha256()
        placed = Line(line.said | {"index": index, "position": index + 1}, data)
        made.append(rehashed(parts, [*made, placed])[-1])
        last = index + 1
        text = line_of(last, made[-1].said["hash"])
        rolling.update(text)
        leaves.append(leaf_hash(text))
    return _proven(parts, made, leaves, taken)


def _proven(parts: Parts, lines: list[Line], leaves: list[bytes], taken: list[Checkpoint]) -> Parts:
    end = taken[-1]
    proof = {
        "checkpoint": json.loads(end.line),
        "nodes": [],
        "growth": [
            {
                "kind": "growth",
                "since": json.loads(one.line),
                "checkpoint": json.loads(end.line),
                "path": [
                    root_of(leaves[part.start : part.stop]).hex()
                    for part in consistency_ranges(one.count, end.count)
                ],
            }
            for one in taken[:-1]
        ],
    }
    at = [
        Line(line.said | {"index": line.said["index"] if line.said["index"] < end.count else None}, line.data)
        for line in lines
    ]
    manifest = json.loads(parts["manifest.json"]) | {
        "checkpoint": end.hash,
        "events": len(at),
        "streams": len({line.said["stream"] for line in at}),
    }
    unsaid = {
        name: body for name, body in parts.items() if name != "checkpoints.txt"
    }  # its notes are of others
    return with_lines(unsaid, at) | {
        "proof.json": json.dumps(proof).encode(),
        "checkpoints.jsonl": b"".join(one.line for one in taken),
        "manifest.json": json.dumps(manifest).encode(),
    }


def part_behind(parts: Parts, lines: list[Line], without: str, key: PrivateKey) -> Parts:
    """Return a bundle without some streams of other events, proven by a signed checkpoint that follows the genuine ones."""
    taken = [json.loads(line) for line in parts["checkpoints.jsonl"].splitlines()]
    leaves = [leaf_hash(line_of(line.said["position"], line.said["hash"])) for line in lines]
    here = {at for at, line in enumerate(lines) if not line.said["stream"].startswith(without)}
    end = Checkpoint(
        log_id=taken[0]["logId"],
        position=lines[-1].said["position"],
        count=len(lines),
        rolling="0" * 64,
        events_root=root_of(leaves).hex(),
        previous=verify.checkpoint_of(taken[-1]).hash,
    )
    end = msgspec.structs.replace(end, key_id=key.public.id, signature=key.sign(end.text))
    proof = {
        "checkpoint": json.loads(end.line),
        "nodes": [(*part, root_of(leaves[slice(*part)]).hex()) for part in outside(here, 0, len(leaves))],
        "growth": [],
    }
    unsaid = {name: body for name, body in parts.items() if name != "checkpoints.txt"}
    some = [Line(lines[at].said | {"index": at}, lines[at].data) for at in sorted(here)]
    manifest = json.loads(parts["manifest.json"]) | {"checkpoint": end.hash}
    return with_lines(unsaid, some) | {
        "proof.json": json.dumps(proof).encode(),
        "checkpoints.jsonl": parts["checkpoints.jsonl"] + end.line,
        "manifest.json": json.dumps(manifest).encode(),
    }


def outside(here: set[int], start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Yield the largest ranges of a tree that have no leaf of some."""
    if not here.intersection(range(start, stop)):
        yield start, stop
    elif stop - start > 1:
        middle = start + (1 << (stop - start - 1).bit_length() - 1)
        yield from outside(here, start, middle)
        yield from outside(here, middle, stop)


def checked(
    folder: Path,
    bundle: bytes | Parts,
    *,
    trusted: PrivateKey | None = None,
    published: bytes = b"",
) -> verify.Check:
    """Return what `verify.py` says of a zip, or of entries in a folder."""
    path = folder / "bundle"
    if isinstance(bundle, bytes):
        path.write_bytes(bundle)
    else:
        for name, body in bundle.items():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_bytes(body)
    keys = {} if trusted is None else {trusted.public.id: trusted.public.raw}
    return verify.Check(path, keys, verify.published_in(published) if published else ()).run()
