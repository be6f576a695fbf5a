"""The tree over a part: the nodes for what is outside make the root with the leaves inside."""

from collections.abc import Mapping
from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st

from intersession_events.copies.bundles.tree import PartTree
from intersession_events.proofs.merkle import consistency_ranges, is_beginning, root_of


def _root(
    start: int, stop: int, nodes: Mapping[tuple[int, int], bytes], inside: Mapping[int, bytes]
) -> bytes:
    """The root over a range as an auditor makes it, who has some leaves and some nodes."""
    if (start, stop) in nodes:
        return nodes[start, stop]
    if stop - start == 1:
        return inside[start]
    middle = start + (1 << (stop - start - 1).bit_length() - 1)
    return sha256(b"\1" + _root(start, middle, nodes, inside) + _root(middle, stop, nodes, inside)).digest()


@given(st.lists(st.booleans(), min_size=1, max_size=70), st.data())
def test_nodes_outside_and_leaves_inside_make_the_root_and_each_earlier_tree_is_its_beginning(
    chosen: list[bool], data: st.DataObject
) -> None:
    leaves = [sha256(str(number).encode()).digest() for number in range(len(chosen))]
    old = data.draw(st.integers(1, len(chosen)))
    ranges = consistency_ranges(old, len(chosen))
    tree = PartTree([(one.start, one.stop) for one in ranges])

    for leaf, is_inside in zip(leaves, chosen, strict=True):
        tree.add(leaf, is_inside=is_inside)
    tree.end()

    assert tree.root == root_of(leaves)
    nodes = {(node.start, node.stop): node.hash for node in tree.outside}
    inside = {number: leaves[number] for number, is_inside in enumerate(chosen) if is_inside}
    assert _root(0, len(chosen), nodes, inside) == tree.root
    assert not any(start <= number < stop for start, stop in nodes for number in inside)
    path = [tree.known[one.start, one.stop] for one in ranges]
    assert is_beginning(old, root_of(leaves[:old]), len(leaves), tree.root, path)
