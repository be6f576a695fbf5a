"""What a verification reports: findings, the head to keep elsewhere, and in words what could not be proven."""

import hmac
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Final, Literal

import msgspec

from intersession_events.facts import ready
from intersession_events.log.verifying.erased_rows import ErasureSeen
from intersession_events.log.verifying.prefix import PrefixSeen, prefix_unproven
from intersession_events.proofs.walk import CheckpointsSeen

KEPT: Final = 1000
"""At most this many findings are described; all are counted."""

VIEWS_UNPROVEN: Final = "That the views hold what the events say: only the events were looked at."
"""Said until the views were folded anew (`VerifyReport.with_views`)."""

SNAPSHOTS_UNPROVEN: Final = "That the snapshots of states are what the events say: they were not compared."
"""Said of a log that has some, until they were folded anew (`VerifyReport.with_snapshots`)."""

Code = Literal[
    "unreadable",
    "unknown_topic",
    "unknown_word",
    "undecodable",
    "changed",
    "erased",
    "not_erased",
    "erasure_unproven",
    "missing",
    "out_of_order",
    "chain_broken",
    "position_missing",
    "position_below_one",
    "table_altered",
    "view_differs",
    "epoch_backwards",
    "id_differs",
    "id_repeated",
    "tail_cut",
    "head_mismatch",
    "after_head",
    "head_forged",
    "other_log",
    "checkpoint_mismatch",
    "checkpoint_forged",
    "checkpoint_unsigned",
    "prefix_mismatch",
    "file_missing",
    "file_altered",
]


@ready
class LogHead(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The hashes of a log up to a position. `signature` is the HMAC-SHA256 of the other fields under a key, if it was signed."""

    log_id: str
    position: int
    hash: str
    signature: str | None = None

    def signed(self, key: bytes) -> "LogHead":
        """Return the head with the signature it has under a key."""
        text = msgspec.json.encode({"hash": self.hash, "logId": self.log_id, "position": self.position})
        return msgspec.structs.replace(self, signature=hmac.new(key, text, sha256).hexdigest())


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A difference from what was written. The position is None where no row is left to have one."""

    code: Code
    problem: str
    position: int | None = None
    stream: str | None = None
    version: int | None = None
    view: str | None = None
    """The view that does not hold what the events say; then `table` and `key` say where in it."""
    table: str | None = None
    key: str | None = None


class VerifyReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a verification. `unproven` says in words what it could not check."""

    log_id: str
    events: int
    streams: int
    erased: int
    """Payloads that were erased. Their places in the chain are proven; where no event authorises it, it is a finding."""
    encrypted: int
    """Payloads that are encrypted and could not be seen (CRYPT-6). Their places in the chain are proven."""
    erasures: tuple[ErasureSeen, ...]
    """The events that erased something, with what covers each: the first thousand."""
    counts: dict[str, int]
    """How many findings there are of each code; `findings` describes the first thousand."""
    findings: tuple[Finding, ...]
    unproven: tuple[str, ...]
    head: LogHead
    """The head as of now: export it, to be able to prove more the next time."""
    checkpoints: CheckpointsSeen = CheckpointsSeen()
    """The checkpoints that the events were compared with, and how far they prove them."""

    prefix: tuple[PrefixSeen, ...] = ()
    """Of a fork, the part of another log that it began as; of a fork of a fork, also that one's."""

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.counts

    @property
    def found(self) -> str:
        """The codes of the findings, and how often each was found."""
        return ", ".join(f"{code} ({number})" for code, number in sorted(self.counts.items()))

    def with_views(self, findings: Sequence[Finding], unproven: Sequence[str]) -> "VerifyReport":
        """Return the report with the findings and open questions of a comparison of the views."""
        return self._with(VIEWS_UNPROVEN, findings, unproven)

    def with_snapshots(self, findings: Sequence[Finding], unproven: Sequence[str]) -> "VerifyReport":
        """Return the report with the findings and open questions of a comparison of the snapshots."""
        return self._with(SNAPSHOTS_UNPROVEN, findings, unproven)

    def with_files(self, findings: Sequence[Finding]) -> "VerifyReport":
        """Return the report with the findings of a comparison of files' contents with the events that name them."""
        return self._with("", findings, ())

    def with_source(
        self, findings: Sequence[Finding], source: "VerifyReport | None" = None
    ) -> "VerifyReport":
        """Return the report of a fork with the findings of a comparison with its source log.

        `source` is that log's own report, needed where the fork `has_erased_prefix`: what was erased of it there is proven there,
        or nowhere.
        """
        found = [*findings, *(() if source is None else _doubts(source))]
        open_to_it = {*prefix_unproven(self.prefix)}
        left = tuple(said for said in self.unproven if found or said not in open_to_it)
        report = msgspec.structs.replace(self, unproven=left)
        if not found:
            there = {one.position for one in self.erasures if self._is_of_prefix(one)}
            kept = [
                one for one in self.findings if one.code != "erasure_unproven" or one.position not in there
            ]
            counts = Counter(self.counts)
            counts["erasure_unproven"] -= len(self.findings) - len(kept)
            report = msgspec.structs.replace(report, findings=tuple(kept), counts=dict(+counts))
        return report._with("", found, ())  # noqa: SLF001 - its own

    @property
    def has_erased_prefix(self) -> bool:
        """Whether texts are erased in the beginning of a fork."""
        return any(map(self._is_of_prefix, self.erasures))

    def _is_of_prefix(self, one: ErasureSeen) -> bool:
        return bool(self.prefix) and 0 < one.last <= self.prefix[0].position

    def _with(self, said: str, findings: Sequence[Finding], unproven: Sequence[str]) -> "VerifyReport":
        counts = Counter(self.counts)
        counts.update(finding.code for finding in findings)
        return msgspec.structs.replace(
            self,
            counts=dict(counts),
            findings=(*self.findings, *findings)[:KEPT],
            unproven=(*(one for one in self.unproven if one != said), *unproven),
        )


_OF_ERASURES: Final = frozenset(
    {"erased", "erasure_unproven", "checkpoint_mismatch", "checkpoint_forged", "head_mismatch"}
)


def _doubts(source: VerifyReport) -> Iterator[Finding]:
    """Yield the open questions of a log's report about erasures there."""
    codes = ", ".join(
        f"{code} ({source.counts[code]})" for code in sorted(source.counts.keys() & _OF_ERASURES)
    )
    if codes:
        problem = f"what was erased in the log that the fork was made of is not proven there: {codes}"
        yield Finding(code="prefix_mismatch", problem=problem)
