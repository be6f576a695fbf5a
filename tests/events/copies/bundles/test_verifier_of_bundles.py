"""The one file that checks a bundle: what it runs on, and its signatures and trees, held against those of others."""

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from hypothesis import given
from hypothesis import strategies as st

from intersession_events.copies.bundles import verify
from intersession_events.log.tables import LOG_TABLES
from intersession_events.proofs import merkle
from support.bundled import outside
from support.paths import ROOT

FILE = Path(verify.__file__)
VECTORS = ROOT / "tests" / "data" / "wycheproof" / "ed25519_test.json"
ORDER = 7237005577332262213973186563042994240857116359379907606001950938285454250989
SMALL = [
    "0100000000000000000000000000000000000000000000000000000000000000",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "0000000000000000000000000000000000000000000000000000000000000000",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
]
"""Keys whose point has a small order: 1, 2, 4, 8 and 8."""


def accepts(key: bytes, text: bytes, signature: bytes) -> bool:
    """Return what the library says that the log's own checks use."""
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, text)
    except (InvalidSignature, ValueError):
        return False
    return True


@pytest.mark.clause("BUNDLE-10")
def test_the_verifier_is_one_file_of_python_3_8_and_its_standard_library() -> None:
    tree = ast.parse(FILE.read_text(encoding="utf-8"), feature_version=(3, 8))

    names = [
        name
        for node in ast.walk(tree)
        for name in (
            [one.name for one in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    ]
    assert {name.partition(".")[0] for name in names} <= sys.stdlib_module_names


@pytest.mark.clause("BUNDLE-24")
def test_the_tables_that_it_wants_are_those_of_a_log() -> None:
    assert {name: verify.TABLES[name] for name in LOG_TABLES} == LOG_TABLES


@pytest.mark.clause("BUNDLE-10")
def test_it_runs_on_python_3_8(tmp_path: Path) -> None:
    installed = Path.home().glob(".pyenv/versions/3.8.*/bin/python3.8")
    oldest = os.environ.get("PYTHON38") or next(installed, None)
    if oldest is None:
        pytest.skip("no Python 3.8 here: PYTHON38 names one")
    shutil.copy(FILE, tmp_path)

    ran = subprocess.run(
        [oldest, "-I", "verify.py", "nothing.zip"], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == "nothing.zip can't be read: No such file or directory\n"


@pytest.mark.ci
@pytest.mark.clause("BUNDLE-11")
def test_its_signatures_are_those_of_wycheproof() -> None:
    groups = json.loads(VECTORS.read_bytes())["testGroups"]
    wrong = []
    for group in groups:
        key = bytes.fromhex(group["publicKey"]["pk"])
        for case in group["tests"]:
            text, signature = bytes.fromhex(case["msg"]), bytes.fromhex(case["sig"])
            right = {"valid": True, "invalid": False}.get(case["result"])
            if verify.has_signed(key, text, signature) is not (
                # On keys that have a part of a small order verifiers may differ.
                accepts(key, text, signature) if right is None else right
            ):
                wrong.append(case["tcId"])

    assert sum(len(group["tests"]) for group in groups) > 200
    assert wrong == []


@pytest.mark.clause("BUNDLE-11")
@given(st.binary(min_size=32, max_size=32), st.binary(max_size=80), st.integers(0, 8 * 96 - 1))
def test_its_signatures_are_those_of_cryptography(seed: bytes, text: bytes, at: int) -> None:
    private = Ed25519PrivateKey.from_private_bytes(seed)
    key, signature = private.public_key().public_bytes_raw(), private.sign(text)
    assert verify.has_signed(key, text, signature)

    both = bytearray(key + signature)
    both[at // 8] ^= 1 << at % 8
    flipped, other = bytes(both[:32]), bytes(both[32:])
    assert verify.has_signed(flipped, text, other) == accepts(flipped, text, other)
    assert not verify.has_signed(key, text + b"!", signature)
    higher = signature[:32] + (int.from_bytes(signature[32:], "little") + ORDER).to_bytes(33, "little")
    assert not verify.has_signed(key, text, higher[:64])


@pytest.mark.ci
@pytest.mark.clause("BUNDLE-11")
@pytest.mark.parametrize("small", SMALL)
def test_keys_of_a_small_order_are_taken_as_cryptography_takes_them(small: str) -> None:
    key = bytes.fromhex(small)
    seen = 0
    for text in (b"", b"a", b"bc", b"def", b"ghij", b"klmno", b"pqrstu", b"vwxyz12"):
        for point in SMALL:
            signature = bytes.fromhex(point) + bytes(32)
            seen += verify.has_signed(key, text, signature)
            assert verify.has_signed(key, text, signature) == accepts(key, text, signature)
    assert seen


@pytest.mark.clause("BUNDLE-11")
@pytest.mark.parametrize(
    "key", [b"\xff" * 32, (2**255 - 19).to_bytes(32, "little"), b"\1" + bytes(30) + b"\x80"]
)
def test_a_key_that_is_not_written_as_keys_are_has_signed_nothing(key: bytes) -> None:
    assert not verify.has_signed(key, b"", bytes.fromhex(SMALL[0]) + bytes(32))


@given(st.lists(st.binary(max_size=4), min_size=1, max_size=40), st.data())
def test_the_root_over_some_leaves_and_the_rest_of_the_tree_is_that_over_all(
    texts: list[bytes], data: st.DataObject
) -> None:
    leaves = [merkle.leaf_hash(text) for text in texts]
    here = data.draw(st.sets(st.integers(0, len(leaves) - 1)))
    nodes = [(*part, merkle.root_of(leaves[slice(*part)])) for part in outside(here, 0, len(leaves))]
    own = [(at, at + 1, leaves[at]) for at in here]
    parts = sorted(nodes + own)
    assert verify.root_over(len(leaves), parts) == merkle.root_of(leaves)
    for less in range(len(parts)):
        with pytest.raises(ValueError, match="leaf"):
            verify.root_over(len(leaves), parts[:less] + parts[less + 1 :])
    for more in (parts[0], (len(leaves), len(leaves) + 1, bytes(32))):
        with pytest.raises(ValueError, match=r"leaf|no place"):
            verify.root_over(len(leaves), sorted([*parts, more]))
    for start in range(len(leaves)):
        assert verify.root_by_path(start, len(leaves), leaves[start], merkle.path_in(leaves, start)) == (
            merkle.root_of(leaves)
        )


@given(st.integers(1, 40), st.integers(1, 40))
def test_growth_is_proven_as_the_log_proves_it(old: int, new: int) -> None:
    leaves = [merkle.leaf_hash(bytes([at])) for at in range(max(old, new))]
    old, new = min(old, new), max(old, new)
    roots = merkle.root_of(leaves[:old]), merkle.root_of(leaves[:new])
    path = [merkle.root_of(leaves[one.start : one.stop]) for one in merkle.consistency_ranges(old, new)]

    assert verify.is_beginning(old, roots[0], new, roots[1], path)
    for other in (path[1:], [*path, bytes(32)], [bytes(32), *path[1:]]):
        if other != path:
            assert not verify.is_beginning(old, roots[0], new, roots[1], other)


@pytest.mark.clause("BUNDLE-10")
def test_what_is_no_file_is_not_read_for_ever(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    for name in ("/dev/zero", str(tmp_path / "pipe")):
        with pytest.raises(verify.Unusable, match="it is no file"):
            verify.trusted_of([name])
        with pytest.raises(verify.Unusable, match="it is no file"):
            verify.published_of([name])
