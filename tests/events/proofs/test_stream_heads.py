"""The root over all heads is a function of the heads alone, however they came to be known, and proves each of them."""

from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st

from intersession_events.proofs.merkle import EMPTY, leaf_hash, root_of
from intersession_events.proofs.stream_heads import HeadPath, StreamHeads, root_over_heads

heads = st.dictionaries(
    st.text(min_size=1, max_size=5), st.tuples(st.integers(1, 9), st.text("0123", min_size=1))
)
Heads = dict[str, tuple[int, str]]


def told(known: Heads) -> StreamHeads:
    tree = StreamHeads()
    for stream, (version, hashed) in known.items():
        tree.tell(stream, version, hashed)
    return tree


def written_out(known: Heads) -> bytes:
    """The root as docs/howto/read-the-log.md says it, without any of the shortcuts."""
    parts: list[list[bytes]] = [[] for _ in range(65_536)]
    for key, stream in sorted((sha256(stream.encode()).digest(), stream) for stream in known):
        version, hashed = known[stream]
        text = f'{{"hash":"{hashed}","stream":{_quoted(stream)},"version":{version}}}'
        parts[int.from_bytes(key[:2])].append(leaf_hash(text.encode()))
    return root_of([leaf_hash(root_of(part)) for part in parts])


def _quoted(text: str) -> str:
    plain = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
    return '"' + "".join(plain.get(c, f"\\u{ord(c):04x}" if ord(c) < 32 else c) for c in text) + '"'


def test_the_root_is_the_one_that_the_definition_gives() -> None:
    known = {f"session:agent:main:{number}": (number, "ab") for number in range(1, 1200)}

    assert told(known).root == written_out(known)
    assert told({}).root == root_of([leaf_hash(EMPTY)] * 65_536)


@given(heads, heads)
def test_it_does_not_matter_in_which_order_heads_were_told(first: Heads, second: Heads) -> None:
    at_once = told(first | second)
    bit_by_bit = told(dict(reversed(first.items())))
    assert bit_by_bit.streams == len(first)
    for stream, (version, hashed) in second.items():
        bit_by_bit.tell(stream, version, hashed)
        assert bit_by_bit.root

    assert bit_by_bit.root == at_once.root
    assert bit_by_bit.streams == at_once.streams == len(first | second)


@given(heads)
def test_a_path_proves_the_head_of_its_stream_and_no_other(known: Heads) -> None:
    tree = told(known)
    assert tree.path("none of them") is None
    for stream, (version, hashed) in known.items():
        path = tree.path(stream)
        assert path is not None
        assert root_over_heads(stream, version, hashed, path) == tree.root
        assert root_over_heads(stream, version + 1, hashed, path) != tree.root
        assert root_over_heads(stream + "x", version, hashed, path) != tree.root


def test_what_is_no_path_proves_nothing() -> None:
    for bad in (
        HeadPath(index=0, size=1, part=("no hex",), parts=("00",)),
        HeadPath(index=3, size=1, part=(), parts=()),
        HeadPath(index=0, size=1, part=(), parts=()),
    ):
        assert root_over_heads("s", 1, "ab", bad) is None
