"""Proves the beginning of a fork, the part of another log that its `ForkedFrom` names, in one pass over all events (FORK-2)."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from intersession_events.facts import ForkedFrom, HeadProof, SourceCheckpoint
from intersession_events.log.lineage import STREAM, Lineage
from intersession_events.proofs.merkle import leaf_hash, root_by_path
from intersession_events.proofs.published import Published
from intersession_events.proofs.signatures import Trusted
from intersession_events.proofs.statement import Checkpoint, line_of


class PrefixSeen(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a verification found out about the beginning of a fork."""

    log_id: str
    """The log that it was made of."""
    position: int
    """The place there: what comes behind it is the fork's own."""
    streams: int
    proven: int
    """How many of the streams' last events checkpoints of that log prove to be part of it."""
    signed: int
    """How many of them by a checkpoint that was signed, with a trusted key, or published."""


class _Last(NamedTuple):
    position: int
    version: int
    hash: str | None


class _Part:
    """What one `ForkedFrom` is about: the events up to its position. That of a fork of a fork is about fewer."""

    def __init__(self, fork: ForkedFrom, *, own: bool) -> None:
        self.fork = fork
        self._own = own
        self._last: dict[str, _Last] = {}
        self._picked: dict[int, _Last] = {}
        self._sure: set[str] = set()
        self.seen = PrefixSeen(
            log_id=fork.log_id, position=fork.position, streams=len(fork.heads), proven=0, signed=0
        )

    def take(self, position: int, stream: str, version: int, hashed: str | None) -> None:
        last = _Last(position, version, hashed)
        if stream == STREAM:
            self._picked[version] = last
        else:
            self._last[stream] = last

    def problems(self, trusted: Trusted, published: Sequence[Published]) -> Iterator[str]:
        named = {(stream, version): hashed for stream, version, hashed in self.fork.heads}
        found = {(stream, last.version): last for stream, last in self._last.items()}
        found |= {(STREAM, version): last for version, last in self._picked.items()}
        for stream, version in sorted(found.keys() - named.keys()):
            yield f"it ends {stream!r} at version {version}, which is no head that the fork names"
        for stream, version in sorted(named.keys() - found.keys()):
            # A fork of a fork need not have all streams; of those that it has, it has all events.
            if self._own:
                yield f"it does not end {stream!r} at version {version}, as the fork says: events were taken away or added"
        for (stream, version), hashed in named.items():
            if (stream, version) in found and found[stream, version].hash != hashed:
                yield f"version {version} of {stream!r} is not the event that the fork names"
        yield from self._unproven_heads(found, trusted, published)

    def _unproven_heads(
        self, found: dict[tuple[str, int], _Last], trusted: Trusted, published: Sequence[Published]
    ) -> Iterator[str]:
        fork = self.fork
        known = {one.hash for one in published}
        checkpoints = [_checkpoint(fork.log_id, one) for one in fork.checkpoints]
        sure: list[bool] = []
        for one in checkpoints:
            key = trusted.of(one.key_id)
            is_signed = key is not None and key.has_signed(one.text, one.signature or "")
            if key is not None and not is_signed:
                yield f"the checkpoint of position {one.position} that it names was not signed by the key {key.id}"
            sure.append(is_signed or one.hash in known)
        proven: set[int] = set()
        signed: set[int] = set()
        for proof in fork.proofs:
            if not (0 <= proof.head < len(fork.heads) and 0 <= proof.checkpoint < len(checkpoints)):
                yield "a proof names a head or a checkpoint that is not there"
                continue
            stream, version, _ = fork.heads[proof.head]
            last = found.get((stream, version))
            if last is None:
                continue  # told already, or not part of a fork of a fork
            checkpoint = checkpoints[proof.checkpoint]
            if not _leads(proof, last, checkpoint):
                yield (
                    f"no proof leads from version {version} of {stream!r} to the checkpoint of position {checkpoint.position}"
                )
                continue
            proven.add(proof.head)
            if sure[proof.checkpoint]:
                signed.add(proof.head)
                if stream != STREAM:
                    self._sure.add(stream)
        self.seen = msgspec.structs.replace(self.seen, proven=len(proven), signed=len(signed))

    def is_sure(self, stream: str, position: int) -> bool:
        return position <= self.fork.position and stream in self._sure


class PrefixWalk:
    """Takes every event of a log in order, and says what is wrong with the part that it began with. Most logs have no such part."""

    def __init__(self, lineage: Lineage, *, trusted: Trusted, published: Sequence[Published]) -> None:
        self._parts = [_Part(fork, own=number == 0) for number, fork in enumerate(lineage.forks)]
        self._trusted = trusted
        self._published = published

    def take(self, position: int, stream: str, version: int, hashed: str | None) -> None:
        """Take the next event; `hashed` is None for one that can't be read."""
        for part in self._parts:
            if position > part.fork.position:
                break
            part.take(position, stream, version, hashed)

    def end(self) -> Iterator[str]:
        """Yield all that is wrong."""
        for part in self._parts:
            for problem in part.problems(self._trusted, self._published):
                yield f"what was taken of the log {part.fork.log_id} up to position {part.fork.position}: {problem}"

    def is_sure(self, stream: str, position: int) -> bool:
        """Whether an event is part of another log by that log's checkpoints, signed with a trusted key or published."""
        return any(part.is_sure(stream, position) for part in self._parts)

    @property
    def seen(self) -> tuple[PrefixSeen, ...]:
        """What was checked, the fork's own beginning first."""
        return tuple(part.seen for part in self._parts)


def prefix_unproven(seen: Sequence[PrefixSeen]) -> Iterator[str]:
    """Say what is unproven about the origin of a fork's beginning."""
    for one in seen:
        what = f"That what lies before position {one.position} is of the log {one.log_id}"
        given = "`verify --source` with that log proves it."
        if one.proven < one.streams:
            yield f"{what}, for {one.streams - one.proven} of {one.streams} streams: no checkpoint of it proves that here. {given}"
        if one.signed < one.proven:
            yield (
                f"{what}, for {one.proven - one.signed} of {one.streams} streams, against an attacker who can hash: the "
                f"checkpoints that prove it are neither signed with a key that is trusted (`--trust`) nor published. {given}"
            )


def _checkpoint(log_id: str, one: SourceCheckpoint) -> Checkpoint:
    return Checkpoint(
        log_id=log_id, **{name: getattr(one, name) for name in SourceCheckpoint.__struct_fields__}
    )


def _leads(proof: HeadProof, last: _Last, checkpoint: Checkpoint) -> bool:
    if last.position > checkpoint.position:
        return False
    try:
        path = [bytes.fromhex(node) for node in proof.path]
    except ValueError:
        return False
    leaf = leaf_hash(line_of(last.position, last.hash))
    root = root_by_path(proof.index, checkpoint.count, leaf, path)
    return root is not None and root.hex() == checkpoint.events_root
