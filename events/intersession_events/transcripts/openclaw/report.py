"""The report of an OpenClaw import: what was found, made and left out, and why (IMP-1)."""

from collections.abc import Iterable

import msgspec

from intersession_events.facts import ready


class Skipped(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Lines of a file that could not be read in the expected form.

    `line` to `last_line` are consecutive lines with one reason. `kept` says whether their text is in the log all
    the same (`LineImported`, kind `unreadable` or `duplicate`); bytes that are no text can't be.
    """

    file: str
    line: int
    last_line: int
    reason: str
    kept: bool = False

    @property
    def lines(self) -> int:
        """How many lines these are."""
        return self.last_line - self.line + 1


class Note(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A remark on a file, a key or a record for an auditor of the import."""

    subject: str
    what: str


class Renamed(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A session whose key here differs from that in the source, and why."""

    original: str
    key: str
    reason: str


class Unattributed(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A trace of an exchange or a spawn that fits none (IMP-4). `where` is `file:line`."""

    what: str
    where: str
    reason: str


class Refused(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A call that the other system refused, and that had no effect. `where` is `file:line`, `reason` is its answer."""

    what: str
    where: str
    reason: str


@ready
class ImportReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The report of one import; `msgspec.to_builtins` gives what `--json` prints.

    Counts are of the whole state, whatever of it was in the log before; `appended` are the events that this import
    added. `lines` counts the lines that are no messages, by kind; `attributed` the inter-session messages that
    belong to a reconstructed exchange. Times in milliseconds. `refused` names the calls that the other system refused; the report
    of an import of before has their number alone.
    """

    import_id: str
    source: str
    sessions: int = 0
    generations: int = 0
    messages: int = 0
    inter_session: int = 0
    attributed: int = 0
    exchanges: int = 0
    exchanges_without_call: int = 0
    turns: int = 0
    announces: int = 0
    refused_sends: int = 0
    spawns: int = 0
    refused_spawns: int = 0
    events: int = 0
    appended: int = 0
    already_imported: bool = False
    first_ms: int | None = None
    last_ms: int | None = None
    lines: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    renamed: tuple[Renamed, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    unattributed: tuple[Unattributed, ...] = ()
    notes: tuple[Note, ...] = ()
    refused: tuple[Refused, ...] = ()

    @property
    def skipped_lines(self) -> int:
        """How many lines were skipped."""
        return sum(skipped.lines for skipped in self.skipped)


def folded(skipped: Iterable[Skipped]) -> tuple[Skipped, ...]:
    """Join neighbouring lines of one file that were skipped for one reason, so that a rotten file gives one line."""
    joined: list[Skipped] = []
    for item in sorted(skipped, key=lambda item: (item.file, item.line)):
        last = joined[-1] if joined else None
        if (
            last is not None
            and (last.file, last.reason, last.kept) == (item.file, item.reason, item.kept)
            and last.last_line + 1 == item.line
        ):
            joined[-1] = msgspec.structs.replace(last, last_line=item.last_line)
        else:
            joined.append(item)
    return tuple(joined)
