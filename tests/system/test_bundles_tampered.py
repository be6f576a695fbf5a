"""Whatever is done to a bundle is found by the one file that checks it, or named as not proven before."""

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intersession_events.copies.bundles import verify
from support.bundle_tampering import EDITED, HASHED, MADE_UP, REDACTED, SIGNED, BundleKind
from support.bundled import (
    KEY,
    Bundled,
    Line,
    bundles_of_a_log,
    checked,
    hashed_again,
    lines_of,
    parts_of,
    rehashed,
    sealed,
    with_lines,
    zipped,
)
from support.every_day import every_day


@pytest.fixture(scope="module")
def genuine(tmp_path_factory: pytest.TempPathFactory) -> Bundled:
    return bundles_of_a_log(tmp_path_factory.mktemp("bundled"))


@pytest.mark.clause("BUNDLE-12")
@pytest.mark.parametrize(
    "of", every_day(["whole", "session", "secrets", "words", "people"], "whole", "words")
)
def test_what_nobody_touched_is_verified(genuine: Bundled, tmp_path: Path, of: str) -> None:
    bundle = genuine._asdict()[of]
    assert verify.Check(bundle).run().wrong == []
    found = verify.Check(
        bundle, {KEY.public.id: KEY.public.raw}, verify.published_in(genuine.published)
    ).run()
    assert found.wrong == []
    covered = max(one.position for one in found.proven.values())
    assert found.said["signedUpTo"] == found.said["publishedUpTo"] == min(covered, found.position)
    assert checked(tmp_path, parts_of(bundle)).wrong == []


@pytest.mark.clause("BUNDLE-22", "BUNDLE-24")
def test_the_page_to_read_first_says_what_can_be_looked_at_of_an_edition(genuine: Bundled) -> None:
    """Before: an edition without people had a log.db of which nothing was proven."""
    words, people = parts_of(genuine.words), parts_of(genuine.people)
    read = {"words": words["README.txt"].decode(), "people": people["README.txt"].decode()}
    assert "[erased] stands there for withheld words" in read["words"]
    assert "intersession debug log.db" in read["words"]
    assert "as it was hashed, unless a row says that something is `withheld`" in read["people"]
    assert "report.html; there is no log.db" in read["people"]
    assert {"log.db", "heads.jsonl"} - set(words) == set()
    assert {"log.db", "heads.jsonl", "run.svg"} & set(people) == set()


KINDS = {kind.what: (kind,) for kind in (*EDITED, *HASHED, *REDACTED, *SIGNED)}


@pytest.mark.clause("BUNDLE-12", "BUNDLE-13", "BUNDLE-14", "BUNDLE-27")
@pytest.mark.parametrize("kind", every_day(KINDS, *list(KINDS)[::10]))
def test_what_is_done_to_a_bundle_is_found_or_named_as_not_proven(
    genuine: Bundled, tmp_path: Path, kind: BundleKind
) -> None:
    bundle = genuine._asdict()[kind.of]
    tampered = kind.do(parts_of(bundle))

    def found(name: str, **against: Any) -> verify.Check:  # what `checked` takes
        (tmp_path / name).mkdir()
        return checked(tmp_path / name, tampered, **against)

    alone = found("alone")
    if kind.by == "alone":
        assert kind.finds in {code for code, _ in alone.wrong}, alone.wrong
        return
    assert alone.wrong == [], "the page says less than is found"
    trusted = found("trusted", trusted=KEY)
    published = found("published", published=genuine.published)
    if kind.by == "trusted":
        assert any(said.startswith(kind.named) for said in verify.Check(bundle).run().unproven)
        assert kind.finds in {code for code, _ in trusted.wrong}, trusted.wrong
        assert published.wrong or kind.named != MADE_UP
        return
    assert trusted.wrong == [], "the page says less than is found"
    both = found("both", trusted=KEY, published=genuine.published)
    if kind.by == "published":
        by_key = verify.Check(bundle, {KEY.public.id: KEY.public.raw}).run()
        assert any(said.startswith(kind.named) for said in by_key.unproven), by_key.unproven
        assert kind.finds in {code for code, _ in both.wrong}, both.wrong
    else:
        assert both.wrong == [], "the page says less than is found"
        assert any(said.startswith(kind.finds) for said in both.unproven), both.unproven


class FirstFinding(verify.Check):
    """Stops at what is found first, for many checks in a row."""

    def find(self, code: str, problem: str) -> None:
        raise verify.Wrong(code, problem)

    def run(self) -> verify.Check:
        try:
            return super().run()
        except verify.Wrong as wrong:
            self.wrong.append((wrong.code, wrong.problem))
            return self


@pytest.mark.ci
@pytest.mark.clause("BUNDLE-13")
def test_one_byte_flipped_anywhere_is_found(genuine: Bundled, tmp_path: Path) -> None:
    chance = random.Random(32)  # noqa: S311 - the same places each time
    zipped_, parts = genuine.session.read_bytes(), parts_of(genuine.session)
    assert checked(tmp_path, parts).wrong == []
    unseen = []
    for _ in range(1_000):
        name = chance.choice(["zip", *parts])
        path = tmp_path / "flipped.zip" if name == "zip" else tmp_path / "bundle"
        body = zipped_ if name == "zip" else parts[name]
        flipped, at = _flipped(body, chance)
        (path if name == "zip" else path / name).write_bytes(flipped)
        if FirstFinding(path).run().ok:
            unseen.append((name, at))
        if name != "zip":
            (path / name).write_bytes(body)
    assert unseen == []


@pytest.mark.ci
@pytest.mark.clause("BUNDLE-14")
def test_one_byte_flipped_in_events_or_checkpoints_is_found_or_named_though_the_manifest_fits(
    genuine: Bundled, tmp_path: Path
) -> None:
    chance = random.Random(33)  # noqa: S311 - the same places each time
    parts = parts_of(genuine.session)
    (tmp_path / "flipped.zip").write_bytes(zipped(sealed(parts)))
    unproven = FirstFinding(tmp_path / "flipped.zip").run().unproven
    unseen = []
    for _ in range(200):
        name = chance.choice(["events.jsonl", "checkpoints.jsonl"])
        flipped, at = _flipped(parts[name], chance)
        (tmp_path / "flipped.zip").write_bytes(zipped(sealed(parts | {name: flipped})))
        found = FirstFinding(tmp_path / "flipped.zip").run()
        if found.ok and found.unproven == unproven:  # the id of a key is named, if no key has it
            unseen.append((name, at))
    assert unseen == []


def _flipped(body: bytes, chance: random.Random) -> tuple[bytes, int]:
    at = chance.randrange(len(body))
    return body[:at] + bytes([body[at] ^ 1 << chance.randrange(8)]) + body[at + 1 :], at


CHANGES = ("dropped", "doubled", "swapped", "moved", "changed", "of another")


@pytest.mark.ci
@pytest.mark.clause("BUNDLE-14")
@given(
    st.lists(st.tuples(st.sampled_from(CHANGES), st.integers(0), st.integers(0)), min_size=1, max_size=3),
    st.sampled_from(["whole", "session"]),
    st.booleans(),
)
def test_however_events_are_moved_or_changed_and_hashed_again_it_is_found(
    genuine: Bundled,
    tmp_path_factory: pytest.TempPathFactory,
    changes: list[tuple[str, int, int]],
    of: str,
    again: bool,
) -> None:
    parts, other = parts_of(genuine._asdict()[of]), parts_of(genuine.session)
    before = lines = lines_of(parts)
    for change, one, two in changes:
        lines = _after(change, lines, one % len(lines), two % len(lines), lines_of(other))
    lines = rehashed(parts, lines) if again else lines
    if lines == before:
        return
    streams = len({line.said["stream"] for line in lines})
    made = sealed(with_lines(parts, lines, log=False), events=len(lines), streams=streams)
    path = tmp_path_factory.mktemp("moved") / "bundle.zip"
    path.write_bytes(zipped(made))
    assert not FirstFinding(path).run().ok


def _after(change: str, lines: list[Line], one: int, two: int, other: list[Line]) -> list[Line]:
    made = list(lines)
    match change:
        case "dropped":
            del made[one]
        case "doubled":
            made.insert(two, made[one])
        case "swapped":
            made[one], made[two] = made[two], made[one]
        case "moved":
            made.insert(two, made.pop(one))
        case "changed":
            made[one] = Line(made[one].said | {"time": made[one].said["time"] + 1}, made[one].data)
        case _:
            made[one] = other[two % len(other)]
    return made or lines


@pytest.mark.clause("BUNDLE-12")
@pytest.mark.parametrize(
    "name", every_day(["events.jsonl", "proof.json", "checkpoints.jsonl", "keys.txt", "log.db"], "log.db")
)
def test_parts_of_another_bundle_are_found(genuine: Bundled, tmp_path: Path, name: str) -> None:
    parts, other = parts_of(genuine.whole), parts_of(genuine.session)
    body = b"ed25519:AAAA\n" if name == "keys.txt" else other[name]
    if body == parts[name]:
        body = body.splitlines(keepends=True)[0]
    assert not checked(tmp_path, zipped(sealed(parts | {name: body}))).ok


HOSTILE = [
    b"[" * 100_000,
    b'{"position":1e400}',
    b'{"position":' + b"9" * 5_000 + b"}",
    b'{"position":1,"position":2}',
    b"\xff\xfe",
    b"null",
    b'{"a":NaN}',
]


@pytest.mark.ci
@pytest.mark.clause("BUNDLE-12")
@pytest.mark.parametrize("name", ["events.jsonl", "proof.json", "checkpoints.jsonl", "manifest.json"])
def test_hostile_json_is_a_finding_and_nothing_else(genuine: Bundled, tmp_path: Path, name: str) -> None:
    parts = parts_of(genuine.session)
    for number, text in enumerate(HOSTILE):
        body = text + b"\n"
        made = parts | {name: body} if name == "manifest.json" else sealed(parts | {name: body})
        folder = tmp_path / str(number)
        folder.mkdir()
        found = checked(folder, zipped(made))
        assert not found.ok
        assert all(line.isprintable() for line in found.lines())


@pytest.mark.ci
@pytest.mark.clause("BUNDLE-12")
def test_a_bomb_is_unpacked_no_further_than_it_says(genuine: Bundled, tmp_path: Path) -> None:
    bomb = zipped(sealed(parts_of(genuine.session) | {"notes.json": bytes(40_000_000)}))
    size = (40_000_000).to_bytes(4, "little")
    assert bomb.count(size) == 2
    found = checked(tmp_path, hashed_again(bomb.replace(size, (18).to_bytes(4, "little"))))
    assert found.wrong == [("archive", "notes.json does not unpack to what the archive says")]


@pytest.mark.clause("BUNDLE-12")
def test_texts_of_the_bundle_do_nothing_to_a_terminal(genuine: Bundled, tmp_path: Path) -> None:
    parts = parts_of(genuine.session)
    lines = [Line(line.said | {"stream": "session:\x1b[31m\u202e"}, line.data) for line in lines_of(parts)]
    found = checked(tmp_path, zipped(sealed(with_lines(parts, lines, log=False))))
    assert not found.ok
    assert all(line.isprintable() for line in found.lines())


def test_the_page_says_what_the_table_says_of_bundles() -> None:
    kinds = [*EDITED, *HASHED, *REDACTED, *SIGNED]
    assert len(kinds) >= 60
    assert len({kind.what for kind in kinds}) == len(kinds)
