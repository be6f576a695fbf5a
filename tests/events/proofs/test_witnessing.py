"""What a witness cosigns, and what it answers to everything else, as C2SP's `tlog-witness` says."""

import base64
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intersession_events.basics.errors import BadKey
from intersession_events.proofs.merkle import consistency_ranges, leaf_hash, root_of
from intersession_events.proofs.notes import TreeNote, signed_note
from intersession_events.proofs.signatures import NamedKey
from intersession_events.proofs.witnessing import judged, known_logs, split_view
from support.checkpointed import key_of

ORIGIN = "acme.example/assistant"
KEY = NamedKey(ORIGIN, key_of(1).public)
LOGS = {ORIGIN: [KEY]}


def leaves(size: int, history: str = "a") -> list[bytes]:
    return [leaf_hash(f"{history if at >= 3 else 'common'} {at}".encode()) for at in range(size)]


def note(size: int, history: str = "a", *, seed: int = 1, origin: str = ORIGIN) -> TreeNote:
    bare = TreeNote(origin=origin, size=size, root=root_of(leaves(size, history)))
    return TreeNote(
        origin=origin, size=size, root=bare.root, signatures=(signed_note(bare.text, key_of(seed), origin),)
    )


def request(old: int, new: TreeNote, history: str = "a", proof: list[bytes] | None = None) -> bytes:
    if proof is None:
        ranges = consistency_ranges(old, new.size) if old else []
        proof = [root_of(leaves(new.size, history)[part.start : part.stop]) for part in ranges]
    return (
        f"old {old}\n{''.join(base64.b64encode(node).decode() + chr(10) for node in proof)}\n{new}".encode()
    )


@pytest.mark.clause("TLOG-5")
def test_it_cosigns_what_goes_on_from_what_it_saw_last_and_nothing_else() -> None:
    seen = {ORIGIN: note(5)}

    assert judged(request(0, note(5)), LOGS, {})[:3] == (200, "", note(5))
    assert judged(request(5, note(9)), LOGS, seen).note == note(9)
    assert judged(request(5, note(5)), LOGS, seen).note == note(5)
    assert judged(request(0, note(9)), LOGS, seen)[:2] == (409, "5")
    assert judged(request(3, note(4)), LOGS, seen)[:2] == (409, "5")
    assert judged(request(5, note(9, "b"), "b"), LOGS, seen).status == 422
    assert judged(request(5, note(9), proof=[]), LOGS, seen).status == 422
    assert judged(request(0, note(5), proof=[b"x" * 32]), LOGS, {}).status == 422
    assert judged(request(6, note(5), proof=[]), LOGS, seen).status == 400
    assert judged(request(0, note(5, origin="other.example")), LOGS, {}).status == 404
    assert judged(request(0, note(5, seed=2)), LOGS, {}).status == 403


@pytest.mark.clause("TLOG-5")
@pytest.mark.parametrize("old", [0, 3, 5])
def test_two_roots_of_one_size_are_never_cosigned_and_kept_as_evidence(old: int) -> None:
    first, second = note(5), note(5, "b")

    found = judged(request(old, second, "b"), LOGS, {ORIGIN: first})

    assert (found.status, found.note, found.evidence) == (409, None, (first, second))
    assert split_view(first, second, [KEY]) is None
    assert split_view(first, first, [KEY]) == "they have the same root of 5 leaves"
    assert "two sizes" in (split_view(first, note(6, "b"), [KEY]) or "")
    assert "no trusted key" in (split_view(first, note(5, "b", seed=2), [KEY]) or "")


def test_an_empty_tree_has_one_root() -> None:
    forged = TreeNote(origin=ORIGIN, size=0, root=b"x" * 32)
    signed = TreeNote(
        origin=ORIGIN, size=0, root=forged.root, signatures=(signed_note(forged.text, key_of(1), ORIGIN),)
    )

    assert note(0).root == sha256(b"").digest()
    assert judged(request(0, note(0)), LOGS, {}).status == 200
    assert judged(request(0, signed), LOGS, {}).status == 422


@pytest.mark.clause("TLOG-5")
@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12), st.sampled_from("ab")), max_size=30),
)
def test_whatever_it_is_asked_it_cosigns_one_history(asked: list[tuple[int, int, str]]) -> None:
    seen: dict[str, TreeNote] = {}
    cosigned: dict[int, bytes] = {}
    for old, new, history in asked:
        found = judged(request(min(old, new), note(new, history), history), LOGS, seen)
        if found.note is not None:
            seen[ORIGIN] = found.note
            assert cosigned.setdefault(new, found.note.root) == found.note.root

    histories = [{size: note(size, history).root for size in cosigned} for history in "ab"]
    assert cosigned in histories


@given(st.binary(max_size=400))
def test_what_is_no_request_is_refused(body: bytes) -> None:
    assert judged(body, LOGS, {}).status == 400


@pytest.mark.parametrize(
    "body",
    [
        request(0, note(5)).replace(b"old 0", b"old 00"),
        request(0, note(5)).replace(b"old 0", b"old -1"),
        request(0, note(5)).replace(b"old 0\n", b"old 0\r\n"),
        request(0, note(9), proof=[b"x" * 32] * 64),
        request(0, note(9), proof=[b"x" * 31]),
        request(0, note(5)) + b"\n" * 140_000,
        b"old 0\n\n",
    ],
)
def test_a_request_out_of_shape_is_refused(body: bytes) -> None:
    assert judged(body, LOGS, {}).status == 400


def test_logs_are_named_by_their_vkeys() -> None:
    found = known_logs(f"# ours\n{KEY}\n\nother.example/log {KEY}\n")

    assert found == {ORIGIN: [KEY], "other.example/log": [KEY]}
    for text in ("", "nothing", f"a b {KEY}", str(NamedKey("w", KEY.key, is_witness=True))):
        with pytest.raises(BadKey):
            known_logs(text)
