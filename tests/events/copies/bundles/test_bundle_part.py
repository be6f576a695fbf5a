"""The events of a bundle, its proof and its log, taken from a log in one pass."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest

from intersession_events.basics.errors import CorruptEvent
from intersession_events.basics.ids import derive
from intersession_events.basics.plain_json import JsonObject
from intersession_events.copies.bundles.part import PartTaken, PartWanted, take_part
from intersession_events.copies.bundles.rows import line_of_row
from intersession_events.facts import Erased
from intersession_events.log.erasing import erased_stream, left_of
from intersession_events.log.recorded import ANY_VERSION, Draft, StreamAppend
from intersession_events.log.verifying.verification import verify_log
from intersession_events.proofs.merkle import leaf_hash
from intersession_events.proofs.stream_heads import HeadPath, root_over_heads
from intersession_events.stores.portable.filling import Moved
from intersession_events.stores.sqlite.filling import FileFilling
from intersession_events.stores.sqlite.log import SqliteLog
from support.forged_erasures import payload_of_row
from support.forked import CUT, OTHER, A, B, source_log


def taken(source: Path, folder: Path, *streams: str, at: int = CUT) -> PartTaken:
    """Take some streams of a log, or all of it, into a folder."""
    folder.mkdir()
    with SqliteLog(source, read_only=True) as log, log.stored() as seen:
        return take_part(log.lineage, seen, PartWanted(streams or None, at, b"{}"), folder)


def lines_in(folder: Path) -> list[tuple[JsonObject, bytes]]:
    """Return each event of a folder, and the bytes of its payload."""
    lines = (folder / "events.jsonl").read_bytes().splitlines()
    return [(json.loads(line), line.partition(b',"data":')[2][:-1]) for line in lines]


@pytest.mark.clause("BUNDLE-2")
def test_each_line_has_the_row_and_the_payload_as_it_was_hashed(tmp_path: Path) -> None:
    source = source_log(tmp_path / "log.db")

    taken(source, tmp_path / "part", A, B)

    lines = lines_in(tmp_path / "part")
    assert {line["stream"] for line, _ in lines} == {A, B, "log"}
    assert [line["position"] for line, _ in lines] == sorted(line["position"] for line, _ in lines)
    with SqliteLog(source, read_only=True) as log:
        rows = {row[0]: row for row in log.rows(after=0, limit=100)}
    for line, data in lines:
        assert data == payload_of_row(source, line["stream"], line["version"])
        assert sha256(bytes.fromhex(line["salt"]) + data).hexdigest() == line["digest"]
        assert line_of_row(rows[line["position"]], line["index"]).endswith(data + b"}\n")


@pytest.mark.clause("BUNDLE-3")
def test_the_proof_leads_to_the_first_checkpoint_over_the_place_and_says_how_each_stream_ended(
    tmp_path: Path,
) -> None:
    source = source_log(tmp_path / "log.db")

    part = taken(source, tmp_path / "part", A, B)

    proof = json.loads((tmp_path / "part" / "proof.json").read_text())
    nodes = {(start, stop): bytes.fromhex(node) for start, stop, node in proof["nodes"]}
    leaves = {
        line["index"]: leaf_hash(f"{line['position']} {line['hash']}\n".encode())
        for line, _ in lines_in(tmp_path / "part")
    }

    def root(start: int, stop: int) -> bytes:
        if (start, stop) in nodes:
            return nodes[start, stop]
        if stop - start == 1:
            return leaves[start]
        middle = start + (1 << (stop - start - 1).bit_length() - 1)
        return sha256(b"\1" + root(start, middle) + root(middle, stop)).digest()

    assert root(0, proof["checkpoint"]["count"]).hex() == proof["checkpoint"]["eventsRoot"]
    assert part.checkpoint is not None
    assert part.checkpoint.position == proof["checkpoint"]["position"] == CUT + 1
    assert part.unproven == 0
    heads = {
        head["stream"]: head
        for head in map(json.loads, (tmp_path / "part" / "heads.jsonl").read_bytes().splitlines())
    }
    last = {line["stream"]: line["version"] for line, _ in lines_in(tmp_path / "part")}
    for stream in (A, B):
        head = heads[stream]
        path = HeadPath(**{name: head["path"][name] for name in HeadPath.__struct_fields__})
        found = root_over_heads(stream, head["version"], head["hash"], path)
        assert found is not None
        assert found.hex() == proof["checkpoint"]["headsRoot"]
    assert heads[B]["version"] == last[B]
    assert heads[A]["version"] == last[A] + 1  # it goes on behind the place
    assert len(proof["growth"]) == 1


@pytest.mark.clause("BUNDLE-2")
@pytest.mark.clause("BUNDLE-4")
@pytest.mark.parametrize("streams", [(A, B), ()])
def test_the_log_of_a_bundle_opens_and_verifies_and_is_the_same_each_time(
    tmp_path: Path, streams: tuple[str, ...]
) -> None:
    source = source_log(tmp_path / "log.db")

    for name in ("one", "two"):
        taken(source, tmp_path / name, *streams)

    for file in (tmp_path / "one").iterdir():
        assert file.read_bytes() == (tmp_path / "two" / file.name).read_bytes()
    with SqliteLog(tmp_path / "one" / "log.db", read_only=True) as log:
        assert verify_log(log).ok
        with SqliteLog(source, read_only=True) as origin:
            assert (log.log_id == origin.log_id) is (not streams)


@pytest.mark.clause("BUNDLE-3")
@pytest.mark.clause("BUNDLE-6")
@pytest.mark.parametrize("streams", [(A, B), ()])
def test_words_that_were_erased_behind_the_place_are_gone_and_its_log_says_who_wanted_it(
    tmp_path: Path, streams: tuple[str, ...]
) -> None:
    source = source_log(tmp_path / "log.db")
    with SqliteLog(source) as log:
        four = next(one for one in log.stream(B) if "four" in str(one.event))
        erased = Erased(stream=B, rows=((four.version, left_of(four) or ""),), by="operator", reason="asked")
        draft = Draft(event=erased, id=derive(log.log_id, "erased"), time=9_000)
        log.append_now([StreamAppend(stream=erased_stream(B), expected=ANY_VERSION, drafts=(draft,))])

    part = taken(source, tmp_path / "part", *streams)

    (line,) = (line for line, _ in lines_in(tmp_path / "part") if line["position"] == four.position)
    assert "salt" not in line
    for file in ("events.jsonl", "log.db"):
        assert b'"content":"four"' not in (tmp_path / "part" / file).read_bytes()
    assert [row[1] for row in part.erased] == [erased_stream(B)]
    with SqliteLog(tmp_path / "part" / "log.db", read_only=True) as log:
        report = verify_log(log)
        assert (report.ok, [one.reason for one in report.erasures]) == (True, ["asked"])


@pytest.mark.clause("BUNDLE-5")
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (None, "position {} is missing"),
        (lambda _: bytes(200), "position {}"),
        (lambda state: state[:1] + bytes(32) + state[33:], "not what the checkpoint"),
    ],
)
def test_a_log_that_is_damaged_outside_of_the_bundle_makes_none(
    tmp_path: Path, change: Callable[[bytes], bytes] | None, said: str
) -> None:
    source = source_log(tmp_path / "log.db")
    with closing(sqlite3.connect(source)) as rows, rows:
        ((outside, state),) = rows.execute(
            "SELECT max(rowid), state FROM stored_events WHERE originator_id=?", (OTHER,)
        )
        if change is None:
            rows.execute("DELETE FROM stored_events WHERE rowid=?", (outside,))
        else:
            rows.execute("UPDATE stored_events SET state=? WHERE rowid=?", (change(state), outside))

    with pytest.raises(CorruptEvent, match=said.format(outside)):
        taken(source, tmp_path / "part", A, B)


@pytest.mark.clause("BUNDLE-5")
def test_a_changed_row_is_not_bundled_and_is_named(tmp_path: Path) -> None:
    source = source_log(tmp_path / "log.db")
    with closing(sqlite3.connect(source)) as rows, rows:
        ((inside,),) = rows.execute(
            "SELECT max(rowid) FROM stored_events WHERE originator_id=? AND rowid<=?", (B, CUT)
        )
        rows.execute(
            "UPDATE stored_events SET state=CAST(replace(CAST(state AS TEXT), 'long', 'slow') AS BLOB) WHERE rowid=?",
            (inside,),
        )

    with pytest.raises(CorruptEvent, match=f"position {inside}.*no bundle is made") as refused:
        taken(source, tmp_path / "part", A, B)

    assert refused.value.position == inside


def test_the_log_of_a_bundle_that_is_written_takes_few_pages_of_memory(tmp_path: Path) -> None:
    with closing(FileFilling(tmp_path / "log.db", anew=True)) as filling:
        filling.begin(Moved("a log", 0, 0, 0, ()))
        with filling.writing() as made:
            ((cache,),) = made.execute("PRAGMA cache_size")

    assert -16 * 1024 <= cache < 0  # below zero it is in KiB
