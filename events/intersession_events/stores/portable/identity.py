"""The identity of a log, its format and its writer."""

from collections.abc import Collection, Sequence

import msgspec

from intersession_events.basics.errors import AlteredLog, LogTooNew, NotALog, StoreUnavailable
from intersession_events.basics.machine import VERSION
from intersession_events.facts import TOPICS, ready
from intersession_events.log.lineage import FORKED, Lineage, lineage_of
from intersession_events.log.sql import Query, Row
from intersession_events.log.tables import FORMAT


@ready
class Holder(msgspec.Struct, frozen=True):
    """The writer of a log as it announces itself to other processes: its epoch, the address of its gateway."""

    pid: int
    epoch: int = 0
    gateway: str | None = None
    host: str | None = None
    """The machine, where that need not be this one."""


class Identity(msgspec.Struct, frozen=True):
    """The identity of a log, and its last writer."""

    log_id: str
    epoch: int
    lineage: Lineage
    unknown_topics: tuple[str, ...] = ()
    """Topics in it that this version does not know: a newer one wrote them."""
    problems: tuple[str, ...] = ()
    """How the tables differ from those that a log of this format is made with: somebody else has changed them."""
    waits_for: str | None = None
    """The role that alone can make the server's functions as this version has them; None where that is done, or can be done."""

    def check_writable(self, path: str) -> None:
        """Check that this version may write to it.

        Raises:
            LogTooNew: a newer version wrote events of it.
            AlteredLog: its tables are not as they were made, so that what is written could get lost.
            StoreUnavailable: its owner has yet to open it with this version.
        """
        if self.unknown_topics:
            raise LogTooNew(
                f"{path} holds {', '.join(self.unknown_topics)}, unknown to this version ({VERSION}): read it, or take a newer one"
            )
        if self.problems:
            raise AlteredLog(
                f"{path} was altered from outside: {'; '.join(self.problems)}. Nothing was written to it: "
                "`intersession verify` looks at all of it"
            )
        if self.waits_for is not None:
            raise StoreUnavailable(
                f"another version has made the functions of {path}, and only their owner, {self.waits_for}, can make those of this "
                f"version ({VERSION}): let a host that connects as {self.waits_for} take the log over once"
            )


def only_one(found: Sequence[Row], path: str) -> tuple[str, int]:
    """Return the id and the epoch of a log, from the rows of its identity. An invalid format is a problem of its tables.

    Raises:
        NotALog: there are several, or none.
        LogTooNew: the log has a later format, so that whatever would be read of it here would be wrong.
    """
    if len(found) != 1:
        raise NotALog(f"{path} has {len(found)} identities instead of one; nothing was written to it")
    log_id, form, epoch = found[0]
    if isinstance(form, int) and form > FORMAT:
        raise LogTooNew(
            f"{path} has format {form}, and this version ({VERSION}) reads and writes format {FORMAT} alone: use the version that "
            "wrote it, or a later one. If none did, `log_identity` was altered: go back to a backup"
        )
    return log_id, epoch


def identity_of(
    found: tuple[str, int],
    topics: Collection[str],
    query: Query,
    problems: Sequence[str] = (),
    waits_for: str | None = None,
) -> Identity:
    """Return the identity of a log with this id, epoch and topics, including topics of a newer version."""
    log_id, epoch = found
    problems = [*problems]
    unknown = sorted(topics - TOPICS.keys())
    # A topic that no event has was not written by a newer version. Looking for it takes long, and only then.
    asked = "SELECT 1 FROM stored_events WHERE topic=? LIMIT 1"
    planted = [topic for topic in unknown if not problems and not query(asked, (topic,))]
    problems += [
        f"log_topics names {topic!r}, which no event has (DELETE it from there)" for topic in planted
    ]
    # Few logs are forks; whoever took the topic away from its table is told of at the first event that is not read.
    lineage = lineage_of(log_id, query) if FORKED in topics else Lineage(log_id)
    if lineage.problem is not None:
        problems.append(lineage.problem)
    return Identity(
        log_id=log_id,
        epoch=epoch,
        lineage=lineage,
        unknown_topics=tuple(topic for topic in unknown if topic not in planted),
        problems=tuple(problems),
        waits_for=waits_for,
    )
