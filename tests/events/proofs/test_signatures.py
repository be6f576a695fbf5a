"""Keys and signatures: Ed25519 as RFC 8032 has it, keys in files that only their owner reads, a missing library told as one."""

import base64
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, x25519

from intersession_events.basics.errors import BadKey, MissingExtra
from intersession_events.proofs.signatures import (
    PublicKey,
    new_private,
    public_keys,
    read_private,
    trusted_keys,
    write_private,
)

# RFC 8032, 7.1, TEST 1: the message is empty.
SEED = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
PUBLIC = bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
SIGNATURE = bytes.fromhex(
    "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"
)


def test_the_known_answer_of_rfc_8032() -> None:
    key = new_private(lambda _size: SEED)

    assert key.public == PublicKey(PUBLIC)
    assert base64.b64decode(key.sign(b"")) == SIGNATURE
    assert PublicKey(PUBLIC).has_signed(b"", base64.b64encode(SIGNATURE).decode())


@pytest.mark.parametrize("signature", ["", "no base64!", "AAAA", base64.b64encode(b"\0" * 64).decode()])
def test_what_is_no_signature_proves_nothing(signature: str) -> None:
    assert not PublicKey(PUBLIC).has_signed(b"", signature)
    assert not PublicKey(b"\xff" * 32).has_signed(b"", signature)


@pytest.mark.clause("CHECK-2")
def test_a_key_goes_into_a_file_and_comes_back_and_shows_itself_nowhere(tmp_path: Path) -> None:
    key, file = new_private(lambda _size: SEED), tmp_path / "key.pem"
    write_private(key, file)

    back = read_private(file)

    assert (back.public, back.sign(b"")) == (key.public, key.sign(b""))
    assert SEED.hex() not in repr(back) + str(back)
    assert base64.b64encode(SEED).decode() not in repr(vars(back))
    with pytest.raises(FileExistsError):
        write_private(key, file)


def test_a_private_key_of_another_kind_is_refused(tmp_path: Path) -> None:
    other = x25519.X25519PrivateKey.generate()
    plain = serialization.NoEncryption()
    pem = other.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    public = other.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    file, half = tmp_path / "key.pem", tmp_path / "public.pem"
    file.write_bytes(pem)
    file.chmod(0o600)
    half.write_bytes(public)

    with pytest.raises(BadKey, match="X25519PrivateKey"):
        read_private(file)
    with pytest.raises(BadKey, match="X25519PublicKey"):
        public_keys(str(half))


def test_public_keys_are_read_from_lines_and_from_pem(tmp_path: Path) -> None:
    pem = ed25519.Ed25519PublicKey.from_public_bytes(PUBLIC).public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    (tmp_path / "one.pem").write_bytes(pem)
    another = PublicKey(b"\1" * 32)
    (tmp_path / "many").write_text(f"# ours\n\n{PublicKey(PUBLIC)}  of 2026\n{another}\n")

    assert public_keys(str(tmp_path / "one.pem")) == [PublicKey(PUBLIC)]
    assert public_keys(str(tmp_path / "many")) == [PublicKey(PUBLIC), another]
    assert trusted_keys([str(tmp_path / "many")]).of(another.id) == another


def test_a_missing_library_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.asymmetric.ed25519", None)

    with pytest.raises(MissingExtra, match=r"cryptography: pip install 'intersession\[sign\]'"):
        PublicKey(PUBLIC).has_signed(b"", "")
    assert public_keys(str(PublicKey(PUBLIC))) == [PublicKey(PUBLIC)]
