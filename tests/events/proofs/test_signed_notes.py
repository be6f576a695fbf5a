"""Checkpoints as signed notes: made, read and refused as C2SP's specifications say, with keys of Go's as vectors."""

import base64
from hashlib import sha256

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from hypothesis import example, given
from hypothesis import strategies as st

from intersession_events.basics.errors import BadCheckpoint, BadKey
from intersession_events.proofs.notes import (
    PublishedNote,
    TreeNote,
    cosigned_note,
    note_of,
    noted,
    read_note,
    signed_note,
)
from intersession_events.proofs.published import published_in
from intersession_events.proofs.signatures import NamedKey, is_key_name, named_key, public_keys, trusted_keys
from intersession_events.proofs.statement import Checkpoint
from support.checkpointed import key_of

LOG_KEY, WITNESS_KEY = key_of(1), key_of(2)
ORIGIN, WITNESS_NAME = "acme.example/assistant", "witness.example/w1"


def checkpoint(position: int, *, root: str = "ab") -> Checkpoint:
    bare = Checkpoint(log_id="l", position=position, count=position, rolling="r", events_root=root * 32)
    line = signed_note(note_of(bare, ORIGIN).text, LOG_KEY, ORIGIN).line
    return msgspec.structs.replace(bare, note=line)


def note(position: int) -> TreeNote:
    found = noted(checkpoint(position))
    assert found is not None
    return found


@pytest.mark.clause("TLOG-1")
def test_a_note_is_what_the_specifications_say_byte_for_byte() -> None:
    """Checked from their text alone: the key's four bytes, the text that is signed, the signature of a witness with its time."""
    one = checkpoint(7)
    whole = str(note(7)) + cosigned_note(note(7).text, WITNESS_KEY, WITNESS_NAME, time=1_700_000_000).line
    body, _, below = whole.partition("\n\n")
    log_line, witness_line = below.splitlines()

    root = base64.b64encode(bytes.fromhex(one.events_root)).decode()
    assert body == f"{ORIGIN}\n7\n{root}\nintersession l 7 {one.hash}"
    raw = base64.b64decode(log_line.removeprefix(f"— {ORIGIN} "))
    assert raw[:4] == sha256(f"{ORIGIN}\n\x01".encode() + LOG_KEY.public.raw).digest()[:4]
    Ed25519PublicKey.from_public_bytes(LOG_KEY.public.raw).verify(raw[4:], f"{body}\n".encode())
    raw = base64.b64decode(witness_line.removeprefix(f"— {WITNESS_NAME} "))
    assert raw[:4] == sha256(f"{WITNESS_NAME}\n\x04".encode() + WITNESS_KEY.public.raw).digest()[:4]
    assert int.from_bytes(raw[4:12]) == 1_700_000_000
    Ed25519PublicKey.from_public_bytes(WITNESS_KEY.public.raw).verify(
        raw[12:], f"cosignature/v1\ntime 1700000000\n{body}\n".encode()
    )

    read = read_note(whole.encode())
    assert str(read) == whole
    assert read.signed_by(NamedKey(ORIGIN, LOG_KEY.public)) == 0
    assert read.signed_by(NamedKey(WITNESS_NAME, WITNESS_KEY.public, is_witness=True)) == 1_700_000_000
    assert read.signed_by(NamedKey("another.example", LOG_KEY.public)) is None


@pytest.mark.clause("TLOG-1")
def test_keys_of_go_are_read_and_their_signatures_hold() -> None:
    key = named_key("PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW")
    text = "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n"
    line = "x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM="
    raw = base64.b64decode(line)

    assert (key.is_witness, raw[:4]) == (False, key.hash)
    assert key.key.has_signed(text.encode(), base64.b64encode(raw[4:]).decode())
    assert not key.key.has_signed(text.upper().encode(), base64.b64encode(raw[4:]).decode())
    database = "sum.golang.org+033de0ae+Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8"
    assert str(named_key(database)) == database


@pytest.mark.parametrize(
    ("vkey", "said"),
    [
        ("PeterNeumann+c74f20a4+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW", "has the hash c74f20a4"),
        ("PeterNeumann+c74f20a3+AhpC2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW", "kind 02"),
        ("PeterNeumann+c74f20a3+ARpc2Q", "no vkey"),
        ("Peter Neumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW", "no vkey"),
    ],
)
def test_what_is_no_vkey_is_refused_in_words(vkey: str, said: str) -> None:
    with pytest.raises(BadKey, match=said):
        named_key(vkey)
    with pytest.raises(BadKey, match=said):
        public_keys(vkey)


@pytest.mark.clause("TLOG-4")
def test_a_quorum_takes_as_many_keys_and_a_key_with_two_names_is_one() -> None:
    twice = [str(NamedKey(name, WITNESS_KEY.public, is_witness=True)) for name in ("a", "b")]

    assert len(trusted_keys(twice).witnesses) == 1
    with pytest.raises(BadKey, match="a quorum of 2"):
        trusted_keys(twice, quorum=2)
    assert trusted_keys([str(NamedKey("log", LOG_KEY.public))]).of(LOG_KEY.public.id) == LOG_KEY.public


GOOD = str(note(14)).encode()


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\n\n",
        GOOD.partition("— ".encode())[0],
        GOOD[:-1],
        GOOD.replace(b"\n14\n", b"\n014\n"),
        GOOD.replace(b"\n14\n", b"\n-14\n"),
        GOOD.replace(b"\n14\n", b"\n99999999999999999999\n"),
        GOOD.replace(b"q6ur", b"q6u", 1),
        GOOD.replace(b"\n14\n", b"\n14\r\n"),
        GOOD.replace(b"acme", b"ac\xffme", 1),
        GOOD.replace("— acme".encode(), b"- acme"),
        GOOD + b"\xe2\x80\x94 w AAAA\n" * 200,
        b"x" * 70_000,
    ],
)
def test_what_is_no_note_is_refused(text: bytes) -> None:
    with pytest.raises(BadCheckpoint):
        read_note(text)


def test_a_signature_of_a_known_key_that_does_not_fit_makes_the_note_worth_nothing() -> None:
    forged = read_note(GOOD.replace(b"\n14\n", b"\n15\n"))

    with pytest.raises(BadCheckpoint, match="was not signed by acme"):
        forged.signed_by(NamedKey(ORIGIN, LOG_KEY.public))


NOTES = [str(note(position)).encode() for position in (3, 14, 15)]


def positions(text: bytes) -> list[int]:
    found = published_in(text)
    assert all(isinstance(one, PublishedNote) for one in found)
    return [one.position for one in found]


@pytest.mark.clause("TLOG-2")
@given(cut=st.integers(1, len(NOTES[1]) - 1))
@example(cut=156)
@example(cut=157)
@example(cut=158)
def test_notes_are_read_as_they_lie_also_where_a_write_was_cut_off(cut: int) -> None:
    torn = NOTES[1][:cut]

    assert positions(b"\n".join(NOTES)) == positions(b"".join(NOTES)) == [3, 14, 15]
    assert positions(NOTES[0] + b"\n" + torn + b"\n\n" + NOTES[1] + b"\n" + NOTES[2]) == [3, 14, 15]
    assert positions(NOTES[0] + b"\n" + torn.rstrip(b"\n")) == [3]
    assert positions(NOTES[0].rstrip(b"\n")) == [3]


@pytest.mark.parametrize(
    "text",
    [
        b"\n".join([NOTES[0], b"something else\n", NOTES[1]]),
        str(note(3)).replace("intersession l 3", "another l 3").encode(),
        b"\xff\n",
    ],
)
def test_what_is_no_published_note_is_refused(text: bytes) -> None:
    with pytest.raises(BadCheckpoint):
        published_in(text)


def test_names_of_keys_have_neither_spaces_nor_plus() -> None:
    assert is_key_name("acme.example/log")
    assert not any(map(is_key_name, ("", "a b", "a+b", "a\nb", "a\u2003b", "x" * 201)))
