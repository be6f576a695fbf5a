"""Hands out the one file that checks bundles, and checks one with it."""

from collections.abc import Sequence
from pathlib import Path

from intersession_events.basics.errors import BundleFailed
from intersession_events.copies.bundles import verify
from intersession_events.proofs.published import Published
from intersession_events.proofs.signatures import Trusted
from intersession_events.proofs.statement import Checkpoint


def verifier() -> bytes:
    """Return `verify.py`: a program of one file, for Python 3.8 or later and nothing else (BUNDLE-10)."""
    return Path(verify.__file__).read_bytes()


def write_verifier(path: Path) -> None:
    """Write `verify.py` to a new file.

    Raises:
        BundleFailed: something has the name, or it can't be written.
    """
    try:
        with path.open("xb") as file:
            file.write(verifier())
    except OSError as error:
        raise BundleFailed(f"{path} can't be written: {error.strerror or error}; name a new file") from error


def check_bundle(
    path: Path, *, trusted: Trusted | None = None, published: Sequence[Published] = ()
) -> verify.Check:
    """Check a bundle, a zip or the folder that it was unpacked into, as its own `verify.py` does.

    Raises:
        BundleFailed: it can't be read.
    """
    trusted = trusted or Trusted()
    keys = {key.id: key.raw for key in trusted.keys}
    witnesses = [verify.Vkey(one.name, one.hash, one.key.raw, is_witness=True) for one in trusted.witnesses]
    try:
        known = [one for each in published for one in verify.published_in(_text_of(each))]
        return verify.Check(path, keys, known, witnesses, trusted.quorum).run()
    except verify.Unusable as error:
        raise BundleFailed(str(error)) from error


def _text_of(published: Published) -> bytes:
    return published.line if isinstance(published, Checkpoint) else str(published.note).encode()
