"""Proofs: Merkle trees, checkpoints as they are hashed, signed and published, and the walk that compares them with a log."""

from typing import TYPE_CHECKING

from intersession_events.basics.faces import on_demand

if TYPE_CHECKING:
    from intersession_events.proofs.proof import check_proof
    from intersession_events.proofs.published import published_in
    from intersession_events.proofs.signatures import Trusted, new_private, write_private

on_demand(globals())

__all__ = ["Trusted", "check_proof", "new_private", "published_in", "write_private"]
