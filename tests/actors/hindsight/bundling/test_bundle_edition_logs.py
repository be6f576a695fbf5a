"""The log of a redacted bundle: it opens and is verified, and no other log may do as it does."""

import json
import lzma
import sqlite3
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest

from intersession_actors.hindsight.bundling.editions import Edition
from intersession_actors.hindsight.bundling.wanted import Redact
from intersession_events.basics.plain_json import JsonObject
from intersession_events.copies.bundles.part import PartWanted, take_part
from intersession_events.facts import Erased, Message, MessageRecorded, encode, text_of
from intersession_events.log.verifying.verification import verify_log
from intersession_events.proofs.signatures import Trusted
from intersession_events.stores.sqlite.log import SqliteLog
from support.forged_erasures import put_in_place, say_erased
from support.forked import CUT, KEY, A, B, say, source_log
from support.golden_logs import GOLDEN

SECRET = "sk-proj-abcdefghijklmnopqrstuvwx1234567890"
REDACTED: tuple[Redact, ...] = ("secrets", "words", "people")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Make a log whose stream `A` says a secret."""
    path = source_log(tmp_path / "log.db")
    with SqliteLog(path) as log:
        say(log, A, f"the key is {SECRET}", "unmistakable")
    return path


def taken(source: Path, folder: Path, redacted: Redact | None, at: int) -> list[JsonObject]:
    """Take `A` and `B` into a folder; return the lines of their events."""
    folder.mkdir()
    edition = None if redacted is None else Edition(redacted)
    with SqliteLog(source, read_only=True) as log, log.stored() as seen:
        take_part(log.lineage, seen, PartWanted({A, B}, at, b"{}"), folder, edition=edition)
    return [json.loads(line) for line in (folder / "events.jsonl").read_bytes().splitlines()]


def last_of(source: Path) -> int:
    with SqliteLog(source, read_only=True) as log:
        return log.positions_given()


@pytest.mark.clause("BUNDLE-24")
@pytest.mark.parametrize("redacted", ["secrets", "words"])
def test_the_log_of_an_edition_opens_is_true_and_counts_what_is_withheld(
    source: Path, tmp_path: Path, redacted: Redact
) -> None:
    lines = taken(source, tmp_path / "part", redacted, last_of(source))
    path = tmp_path / "part" / "log.db"

    with SqliteLog(path, read_only=True) as log:
        report = verify_log(log, trusted=Trusted([KEY.public]))
        said = [text_of(one.event.message) for one in log.all() if isinstance(one.event, MessageRecorded)]

    assert report.findings == ()
    withheld = sum(1 for line in lines if "withheld" in line)
    counted = sum(one.rows for one in report.erasures if one.edition is not None)
    assert withheld > 0
    assert counted == withheld
    assert any("this edition withholds" in one for one in report.unproven)
    assert ("unmistakable" in said) == (redacted == "secrets")
    for file in (tmp_path / "part").iterdir():
        assert SECRET.encode() not in file.read_bytes(), file.name


@pytest.mark.ci
@pytest.mark.clause("BUNDLE-24")
@pytest.mark.parametrize(("name", "redacted"), [("base", "words"), ("restricted", "secrets")])
def test_editions_of_imports_and_all_kinds_of_flows_are_true(
    tmp_path: Path, name: str, redacted: Redact
) -> None:
    (golden,) = GOLDEN.glob(f"*/{name}.db.xz")
    path = tmp_path / "log.db"
    path.write_bytes(lzma.decompress(golden.read_bytes()))
    part = tmp_path / "part"
    part.mkdir()
    with SqliteLog(path, read_only=True) as log, log.stored() as seen:
        last = log.positions_given()
        take_part(log.lineage, seen, PartWanted(None, last, b"{}"), part, edition=Edition(redacted))

    with SqliteLog(part / "log.db", read_only=True) as log:
        assert verify_log(log).findings == ()
        assert sum(1 for _ in log.all()) > 100


@pytest.mark.clause("BUNDLE-20")
def test_each_edition_has_the_hashes_and_the_proof_of_the_whole(source: Path, tmp_path: Path) -> None:
    at = last_of(source)
    whole = taken(source, tmp_path / "whole", None, at)
    root = json.loads((tmp_path / "whole" / "proof.json").read_bytes())["checkpoint"]

    for redacted in REDACTED:
        lines = taken(source, tmp_path / redacted, redacted, at)

        assert [(one["position"], one["index"], one["hash"]) for one in lines] == [
            (one["position"], one["index"], one["hash"]) for one in whole
        ]
        proof = json.loads((tmp_path / redacted / "proof.json").read_bytes())
        assert proof["checkpoint"] == root
        # In that of people neither could be proven, and streams' names could be guessed by their heads.
        files = {file.name for file in (tmp_path / redacted).iterdir()}
        assert files & {"heads.jsonl", "log.db"} == (
            set() if redacted == "people" else {"heads.jsonl", "log.db"}
        )
        assert all(
            one["digest"] == known["digest"] for one, known in zip(lines, whole, strict=True) if one["digest"]
        )
        assert not any(one.get("salt") for one in lines if "withheld" in one)


@pytest.mark.clause("BUNDLE-24")
def test_secrets_are_masked_in_place_of_a_payload_in_an_edition_alone(source: Path) -> None:
    """Else words could be put in the place of others, by an event that says that secrets were masked in them."""
    other = encode(
        MessageRecorded(session_id="s", message=Message(id="x", role="user", content="forged", timestamp=5))
    )
    put_in_place(source, A, 1, other)
    say_erased(
        source, Erased(stream=A, rows=((1, sha256(other).hexdigest()),), by="bundle", edition="secrets")
    )

    with SqliteLog(source, read_only=True) as log:
        report = verify_log(log)

    assert [finding.code for finding in report.findings if finding.stream == A] == ["erased"]


@pytest.mark.clause("BUNDLE-24")
def test_what_stands_in_an_edition_can_not_be_changed(source: Path, tmp_path: Path) -> None:
    taken(source, tmp_path / "part", "words", CUT)
    path = tmp_path / "part" / "log.db"
    with closing(sqlite3.connect(path)) as rows:
        ((version,),) = rows.execute(
            "SELECT MIN(originator_version) FROM stored_events WHERE originator_id=?", (A,)
        )
    put_in_place(path, A, version, encode(MessageRecorded(
        session_id="s", message=Message(id="x", role="user", content="[erased]", timestamp=6)
    )))  # fmt: skip

    with SqliteLog(path, read_only=True) as log:
        report = verify_log(log)

    assert [finding.code for finding in report.findings] == ["erased"]


@pytest.mark.clause("BUNDLE-20")
@pytest.mark.parametrize("redacted", REDACTED)
def test_the_same_edition_is_the_same_bit_for_bit(source: Path, tmp_path: Path, redacted: Redact) -> None:
    for name in ("one", "two"):
        taken(source, tmp_path / name, redacted, CUT)

    for file in (tmp_path / "one").iterdir():
        assert file.read_bytes() == (tmp_path / "two" / file.name).read_bytes(), file.name


@pytest.mark.clause("BUNDLE-21")
def test_what_is_left_without_words_is_proven_where_all_of_a_checkpoints_stretch_is_there(
    source: Path, tmp_path: Path
) -> None:
    with SqliteLog(source, read_only=True) as log:
        streams = frozenset(log.streams(""))

    for name, some in (("all", streams), ("two", {A, B})):
        (tmp_path / name).mkdir()
        with SqliteLog(source, read_only=True) as log, log.stored() as seen:
            part = PartWanted(some, CUT + 1, b"{}")
            take_part(log.lineage, seen, part, tmp_path / name, edition=Edition("words"))

    proof = json.loads((tmp_path / "all" / "proof.json").read_bytes())
    before = 0
    for checkpoint in map(json.loads, (tmp_path / "all" / "checkpoints.jsonl").read_bytes().splitlines()):
        stretch = [one for one in proof["unsaid"] if before < one[0] <= checkpoint["position"]]
        lines = "".join(f"{position} {stands}\n" for position, stands in stretch)
        assert sha256(lines.encode()).hexdigest() == checkpoint["unsaid"]
        before = checkpoint["position"]
    rows = map(json.loads, (tmp_path / "all" / "events.jsonl").read_bytes().splitlines())
    stands = dict(map(tuple, proof["unsaid"]))
    withheld = [row for row in rows if row.get("withheld") == "words"]
    assert len(withheld) > 5
    for row in withheld:
        assert (
            sha256(json.dumps(row["data"], separators=(",", ":")).encode()).hexdigest()
            == stands[row["position"]]
        )
    # What others said is not told, not even as a hash that a guess could be held against.
    assert "unsaid" not in json.loads((tmp_path / "two" / "proof.json").read_bytes())
