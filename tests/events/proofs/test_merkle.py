"""Merkle trees are those of RFC 6962: its known answers, and its definitions written out as oracles."""

from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st

from intersession_events.proofs.merkle import (
    EMPTY,
    GrowingTree,
    RangeRoots,
    consistency_ranges,
    inclusion_ranges,
    is_beginning,
    leaf_hash,
    path_in,
    root_by_path,
    root_of,
)

INPUTS = [
    bytes.fromhex(data)
    for data in (
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    )
]
ROOTS = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
"""The tree heads of the reference implementation of Certificate Transparency, of the first one to eight inputs."""

LEAVES = [leaf_hash(data) for data in INPUTS]


def mth(data: list[bytes]) -> bytes:
    """The definition of RFC 6962, 2.1."""
    if not data:
        return sha256(b"").digest()
    if len(data) == 1:
        return sha256(b"\0" + data[0]).digest()
    k = 1
    while 2 * k < len(data):
        k *= 2
    return sha256(b"\1" + mth(data[:k]) + mth(data[k:])).digest()


def grown(leaves: list[bytes]) -> GrowingTree:
    tree = GrowingTree()
    for leaf in leaves:
        tree.add(leaf)
    return tree


def collected(ranges: list[range], leaves: list[bytes]) -> list[bytes]:
    roots = RangeRoots(ranges)
    for index, leaf in enumerate(leaves):
        roots.take(index, leaf)
    return roots.roots


def test_the_known_answers_of_certificate_transparency() -> None:
    assert GrowingTree().root == EMPTY == sha256(b"").digest()
    assert [grown(LEAVES[:size]).root.hex() for size in range(1, 9)] == ROOTS
    assert [root_of(LEAVES[:size]).hex() for size in range(1, 9)] == ROOTS


def test_the_known_paths_of_certificate_transparency() -> None:
    assert [node.hex() for node in path_in(LEAVES, 0)] == [
        "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
    ]
    assert [node.hex() for node in collected(consistency_ranges(6, 8), LEAVES)] == [
        "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    ]


datas = st.lists(st.binary(max_size=4), max_size=70)


@given(datas)
def test_a_tree_that_grows_is_the_tree_of_the_definition(data: list[bytes]) -> None:
    leaves = [leaf_hash(one) for one in data]

    assert grown(leaves).root == root_of(leaves) == mth(data)


@given(datas, st.data())
def test_a_tree_goes_on_from_its_peaks(data: list[bytes], draw: st.DataObject) -> None:
    leaves = [leaf_hash(one) for one in data]
    cut = draw.draw(st.integers(0, len(leaves)))
    before = grown(leaves[:cut])
    after = GrowingTree(before.size, before.peaks)
    for leaf in leaves[cut:]:
        after.add(leaf)

    assert (after.root, after.size) == (mth(data), len(data))


@given(st.lists(st.binary(max_size=4), min_size=1, max_size=70), st.data())
def test_a_path_proves_its_leaf_at_its_place_and_nothing_else(data: list[bytes], draw: st.DataObject) -> None:
    leaves, size = [leaf_hash(one) for one in data], len(data)
    index = draw.draw(st.integers(0, size - 1))
    path = path_in(leaves, index)

    assert path == collected(inclusion_ranges(index, size), leaves)
    assert root_by_path(index, size, leaves[index], path) == mth(data)
    assert root_by_path(index, size, leaf_hash(b"another leaf"), path) != mth(data)
    assert root_by_path(index, size, leaves[index], [*path, EMPTY]) is None
    if path:
        assert root_by_path(index, size, leaves[index], path[:-1]) is None
        spoilt = draw.draw(st.integers(0, len(path) - 1))
        changed = [*path[:spoilt], leaf_hash(path[spoilt]), *path[spoilt + 1 :]]
        assert root_by_path(index, size, leaves[index], changed) != mth(data)
    for other in {0, index + 1, size, -1} - {index}:
        if root_by_path(other, size, leaves[index], path) == mth(data):
            assert data[other] == data[index]


@given(datas, st.data())
def test_a_beginning_is_proven_and_no_other_tree_is_one(data: list[bytes], draw: st.DataObject) -> None:
    leaves, new = [leaf_hash(one) for one in data], len(data)
    old = draw.draw(st.integers(0, new))
    path = collected(consistency_ranges(old, new), leaves) if old else []
    root, before = mth(data), mth(data[:old])

    assert is_beginning(old, before, new, root, path)
    assert not is_beginning(old, leaf_hash(before), new, root, path)
    assert not is_beginning(old, before, new, leaf_hash(root), path) or old == 0
    assert not is_beginning(old, before, new, root, [*path, EMPTY])
    assert not is_beginning(new + 1, before, new, root, path)
    if path:
        assert not is_beginning(old, before, new, root, path[:-1])
        forged = [data[0] + b"!", *data[1:]]
        assert not is_beginning(old, mth(forged[:old]), new, root, path)
