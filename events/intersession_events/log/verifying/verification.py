"""Verifies that a log was not changed: hashes each row again, walks each chain, and says what it cannot prove.

A head, exported to where nobody can reach it who can reach the log, proves the rest: nothing before it was cut off or
rewritten since. It is the SHA-256 of one line, "<position> <hash>", for each event up to a position, as this gives it:

    SELECT rowid || ' ' ||
        iif(substr(state, 1, 1) = X'01', lower(hex(substr(state, 2, 32))), json_extract(state, '$.hash'))
    FROM stored_events ORDER BY rowid
"""

import hmac
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from hashlib import sha256
from typing import Final

from intersession_events.basics.errors import CorruptEvent, UnknownWord
from intersession_events.basics.progress import Progress
from intersession_events.facts import TOPICS, Event, decode, encode, has_words, unsaid
from intersession_events.log.envelope import FIRST, damage_of
from intersession_events.log.held_checkpoints import checkpoints_of, cosignatures_of
from intersession_events.log.lineage import FORKED, Lineage, lineage_of
from intersession_events.log.row_state import Envelope, as_state, is_short
from intersession_events.log.sql import Row
from intersession_events.log.tables import (
    topic_problems,
)
from intersession_events.log.verifying.encrypted_rows import EncryptedRows
from intersession_events.log.verifying.erased_rows import ErasedRows, Sure
from intersession_events.log.verifying.own_ids import OwnIds
from intersession_events.log.verifying.prefix import PrefixWalk, prefix_unproven
from intersession_events.log.verifying.report import KEPT, Code, Finding, LogHead, VerifyReport
from intersession_events.log.verifying.rows import PAGE, RawLog, envelope_in, heard_before, read_or, rows_of
from intersession_events.log.verifying.spilled import End, Repeats, StreamEnds
from intersession_events.log.verifying.unproven import unproven
from intersession_events.proofs.published import Published
from intersession_events.proofs.signatures import Trusted
from intersession_events.proofs.statement import STREAM, line_of
from intersession_events.proofs.walk import CheckpointWalk


def head(log: RawLog, *, key: bytes | None = None) -> LogHead:
    """Return the head of a log as it is, to keep elsewhere. It is not verified; `verify` returns one that is."""
    lines, position = sha256(), 0
    for row in rows_of(log):
        position = row[0]
        envelope = envelope_in(row)
        lines.update(line_of(position, None if isinstance(envelope, str) else envelope.hash))
    found = LogHead(log_id=log.log_id, position=position, hash=lines.hexdigest())
    return found if key is None else found.signed(key)


def verify_log(
    log: RawLog,
    *,
    head: LogHead | None = None,
    key: bytes | None = None,
    final: bool = False,
    published: Sequence[Published] = (),
    trusted: Trusted | None = None,
    progress: Progress | None = None,
) -> VerifyReport:
    """Check all rows and report what is wrong with them, past damaged rows and damaged pages.

    `published` are checkpoints that were kept elsewhere, `trusted` the keys whose signatures prove checkpoints.
    `head` is one that was exported earlier, `key` the one it was signed with. With `final` the log is to end at the
    head: whatever comes after it was added by somebody else. `progress` gets the position reached and the last one.
    """
    given = read_or(log.positions_given, 0)
    lineage = read_or(lambda: lineage_of(log.log_id, log.query), Lineage(log.log_id))
    # Those of the log that a fork was made of prove how it began; they say nothing of what came then.
    sources = {fork.log_id for fork in lineage.forks}
    checkpoints = CheckpointWalk(
        log.log_id,
        read_or(lambda: checkpoints_of(log.log_id, log.query), ()),
        published=[one for one in published if one.log_id not in sources],
        trusted=trusted,
        cosignatures=read_or(lambda: cosignatures_of(log.query), {}) if trusted and trusted.witnesses else {},
    )
    prefix = PrefixWalk(lineage, trusted=trusted or Trusted(), published=published)
    with closing(_Walk(lineage, head, checkpoints, prefix, EncryptedRows(log.encrypted))) as walk:
        for count, row in enumerate(rows_of(log, walk.lose)):
            walk.take(row)
            if progress is not None and count % PAGE == 0:
                progress(row[0], given)
        walk.end(log, given, key, final=final)
        if progress is not None:
            progress(walk.position, given)
        return walk.report()


_BEGINNING: Final = End(0, FIRST)


class _Walk:
    """One pass over the rows, in the order of positions."""

    def __init__(
        self,
        lineage: Lineage,
        known: LogHead | None,
        checkpoints: CheckpointWalk,
        prefix: PrefixWalk,
        encrypted: EncryptedRows,
    ) -> None:
        self.position = 0
        self._checkpoints = checkpoints
        self._prefix = prefix
        self._lineage = lineage
        self._log_id = lineage.log_id
        self._cut = 0 if lineage.forked is None else lineage.forked.position
        """Up to here the events of a fork are those of another log, and not all of them."""
        self._is_fork = lineage.forked is not None
        self._known = known
        self._known_hash: str | None = None  # what the known head's would be of this log
        self._lines = sha256()
        self._ends = StreamEnds()
        self._epoch = 0
        self._events = 0
        self._erased = ErasedRows(self._cut)
        self._encrypted = encrypted
        self._own_ids = OwnIds()
        self._spelt_out: Row | None = None
        """The first row with a state in JSON that the short form could say."""
        self._topics: set[str] = set()
        self._true_topics: set[str] = set()
        self._signature_checked = False
        self._has_snapshots = False
        self._unread: Sequence[str] = ()
        self._ids = Repeats()
        self._twice: set[int] = set()
        self._counts: Counter[str] = Counter()
        self._findings: list[Finding] = []

    def close(self) -> None:
        """Forget everything."""
        self._ends.close()
        self._ids.close()

    def take(self, row: Row) -> None:
        position, stream, version = row[:3]
        if position < 1:
            self._find("position_below_one", "positions begin at 1: no writer put a row there", row)
            return
        self._events += 1
        last = max(self.position, self._cut)
        if position > last + 1:
            gone = f"{last + 1}" if position == last + 2 else f"{last + 1} to {position - 1}"
            self._find(
                "position_missing", f"position {gone} is missing: a row was taken away", position=position
            )
        self._pass_known(position)
        self.position = position
        self._topics.add(str(row[3]))
        envelope = envelope_in(row)
        hashed = None if isinstance(envelope, str) else envelope.hash
        self._lines.update(line_of(position, hashed))
        self._checkpoints.take(position, stream, version, hashed)
        self._prefix.take(position, stream, version, hashed)
        if isinstance(envelope, str):
            self._find("unreadable", envelope, row)
            if isinstance(version, int) and isinstance(stream, str):
                self._ends.put(stream, End(version, None))
            return
        if position == self._cut + 1 and self._is_fork and row[3] != FORKED:
            self._find("prefix_mismatch", "stands where the event should that says how this fork began", row)
        if self._spelt_out is None and not is_short(row[4]) and is_short(as_state(envelope)):
            self._spelt_out = row
        event = self._check_row(row, envelope)
        if self._checkpoints.wants_left:
            left = encode(unsaid(event)) if event is not None and has_words(row[3]) else None
            self._checkpoints.leave(position, left, is_known=event is not None)
        self._check_place(row, envelope)
        if envelope.epoch < self._epoch:
            self._find(
                "epoch_backwards", f"epoch {envelope.epoch} after {self._epoch}: a writer that was over", row
            )
        self._epoch = max(self._epoch, envelope.epoch)
        # Hashes of ids, not ids: a tenth of the memory. What meets by chance is told apart at the end.
        self._ids.tell(hash(envelope.id))

    def lose(self, after: int, error: CorruptEvent) -> None:
        """Take note that rows that follow on a position can't be read."""
        self._find("unreadable", f"rows behind position {after} can't be read: {error}", position=after + 1)

    def end(self, log: RawLog, given: int, key: bytes | None, *, final: bool) -> None:
        self._pass_known(self.position + 1)
        self._check_tables(log)
        self._unread = log.unread()
        self._has_snapshots = bool(log.query("SELECT 1 FROM sqlite_master WHERE name='stored_snapshots'"))
        for code, problem, where in self._erased.problems(log):
            self._find(code, problem, where)
        for problem in self._prefix.end():
            self._find("prefix_mismatch", problem)
        if given > max(self.position, self._cut):
            self._find("tail_cut", f"positions up to {given} were given, the last row has {self.position}")
        self._twice = self._ids.twice()
        if self._twice:
            self._find_repeated(log)
        for found in self._checkpoints.end():
            if found.code == "checkpoint_unsigned" and any(one.signed for one in self._prefix.seen):
                continue
            self._find(found.code, found.said, (found.position, found.position and STREAM, found.version))
        if self._known is not None:
            self._check_known(self._known, key)
            if final and self.position > self._known.position:
                added = self.position - self._known.position
                self._find("after_head", f"{added} positions come after the head, which was to be the end")
        for problem, where in self._erased.unproven(self._sure()):
            self._find("erasure_unproven", problem, where)

    def _sure(self) -> Sure:
        """Return the position up to which the log is proven against an attacker who can hash."""
        seen, known = self._checkpoints.seen, self._known
        is_head = known is not None and known.log_id == self._log_id and known.hash == self._known_hash
        kept = known.position if known is not None and is_head else 0
        return Sure(
            max(seen.signed_up_to, seen.cosigned_up_to), max(seen.published_up_to, kept), self._prefix.is_sure
        )

    def report(self) -> VerifyReport:
        erasures = tuple(self._erased.seen(self._sure(), self._checkpoints))
        return VerifyReport(
            log_id=self._log_id,
            events=self._events,
            streams=len(self._ends),
            erased=len(self._erased),
            encrypted=len(self._encrypted),
            erasures=erasures[:KEPT],
            counts=dict(self._counts),
            findings=tuple(self._findings),
            unproven=(
                *prefix_unproven(self._prefix.seen),
                *self._own_ids.unproven(),
                *self._encrypted.unproven(),
                *unproven(
                    self._log_id,
                    self._known,
                    self._checkpoints,
                    position=self.position,
                    signature_checked=self._signature_checked,
                    unread=self._unread,
                    has_snapshots=self._has_snapshots,
                    erased=len(self._erased),
                    erasures=erasures,
                ),
            ),
            head=LogHead(log_id=self._log_id, position=self.position, hash=self._lines.hexdigest()),
            checkpoints=self._checkpoints.seen,
            prefix=self._prefix.seen,
        )

    def _check_row(self, row: Row, envelope: Envelope) -> Event | None:
        """Prove a row, and return its event, if it can be read."""
        topic: str = row[3]
        damage = damage_of(row, envelope, self._lineage.log_id_at(row[0]))
        if damage is not None:
            self._find("changed", damage, row)
        else:
            self._true_topics.add(topic)
        if topic not in TOPICS:
            self._find("unknown_topic", f"the topic {topic!r} is in no registry of this version", row)
        elif damage is None and envelope.is_erased:
            return self._left_of(row, envelope)
        elif damage is None:
            try:
                event = decode(topic, envelope.payload)
            except UnknownWord as error:
                self._find("unknown_word", str(error), row)
            except CorruptEvent as error:
                self._find("undecodable", str(error), row)
            else:
                if problem := self._erased.take(row, envelope, event):
                    self._find("not_erased", problem, row)
                log_id = self._lineage.log_id_at(row[0])
                if other := self._own_ids.problem(row, envelope, event, log_id=log_id):
                    self._find("id_differs", other, row)
                return event
        return None

    def _left_of(self, row: Row, envelope: Envelope) -> Event | None:
        """Return the event that is left of a row whose words are erased, or encrypted."""
        left = (self._encrypted if envelope.sealed else self._erased).found(row, envelope)
        if isinstance(left, str):
            self._find("changed", left, row)
            return None
        self._own_ids.note(row[1], left)
        return left

    def _check_tables(self, log: RawLog) -> None:
        problems = [*log.table_problems()]
        # Of tables that are not what they should be, nothing is to be expected; of pages that are damaged neither.
        if not any(problem.startswith("the table") for problem in problems):
            with suppress(CorruptEvent):
                problems += self._small_table_problems(log)
        for problem in problems:
            self._find("table_altered", problem)

    def _small_table_problems(self, log: RawLog) -> Iterator[str]:
        yield from topic_problems(log.query, self._topics, self._true_topics, head=self.position)
        if self._spelt_out is not None:
            said = "is written in JSON, though it fits the short form: no writer did that"
            self._find("unreadable", said, self._spelt_out)
        ((epoch,),) = log.query("SELECT MAX(epoch) FROM log_identity")
        if isinstance(epoch, int) and epoch < self._epoch:
            yield f"log_identity says epoch {epoch}, but events have {self._epoch}"

    def _check_place(self, row: Row, envelope: Envelope) -> None:
        _, stream, version, _, _ = row
        last, hashed = self._ends.get(stream) or _BEGINNING
        if version > last and self._lineage.is_picked(stream, version, envelope.hash):
            self._ends.put(stream, End(version, envelope.hash))
            return
        if version > last + 1:
            gone = (
                f"version {last + 1} is"
                if version == last + 2
                else f"versions {last + 1} to {version - 1} are"
            )
            self._find("missing", f"{gone} missing before it", row)
        elif version <= last:
            self._find("out_of_order", f"comes after version {last} of its stream", row)
        elif hashed is not None and envelope.prev != hashed:
            self._find("chain_broken", "does not follow the event before it in its stream", row)
        if version > last:
            self._ends.put(stream, End(version, envelope.hash))

    def _pass_known(self, position: int) -> None:
        if self._known is not None and self._known_hash is None and position > self._known.position:
            self._known_hash = self._lines.hexdigest()

    def _check_known(self, known: LogHead, key: bytes | None) -> None:
        if key is not None and not hmac.compare_digest(
            (known.signed(key).signature or "").encode(), (known.signature or "").encode()
        ):
            self._find("head_forged", "the head was not signed with this key")
        self._signature_checked = key is not None
        if known.log_id != self._log_id:
            self._find("other_log", f"the head is of the log {known.log_id}")
        elif known.position > self.position:
            self._find(
                "tail_cut", f"the head is at position {known.position}, the log ends at {self.position}"
            )
        elif known.hash != self._known_hash:
            self._find(
                "head_mismatch",
                f"what lies before position {known.position} is not what the head was made of",
            )

    def _find_repeated(self, log: RawLog) -> None:
        first: dict[str, int] = {}
        for row in rows_of(log, heard_before):
            envelope = envelope_in(row)
            if isinstance(envelope, str) or hash(envelope.id) not in self._twice or row[0] > self.position:
                continue
            before = first.setdefault(envelope.id, row[0])
            if before != row[0]:
                self._find("id_repeated", f"has the id of the event at position {before}", row)

    def _find(
        self, code: Code, problem: str, row: Row = (None, None, None), *, position: int | None = None
    ) -> None:
        self._counts[code] += 1
        if len(self._findings) < KEPT:
            at, stream, version = row[:3]
            self._findings.append(
                Finding(
                    code=code,
                    problem=problem,
                    position=at if position is None else position,
                    stream=stream,
                    version=version,
                )
            )
