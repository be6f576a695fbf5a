"""Holds the contents of files against the events that name them (FILE-7)."""

from collections import Counter
from typing import Protocol

import msgspec

from intersession_events.basics.errors import LogError
from intersession_events.facts import Erased, ForkedFrom, decode, ready
from intersession_events.log.files import Files, FileState, HasRows, named_files
from intersession_events.log.row_state import payload_in
from intersession_events.log.verifying.report import Finding

_ERASED = "erased.1"
_PAGE = 1000


@ready
class FilesSeen(msgspec.Struct, frozen=True, kw_only=True):
    """How many contents of files are there as they were written, and how many are not.

    Of a fork `elsewhere` counts those that it has of its source, and that are not there any more.
    """

    right: int = 0
    altered: int = 0
    missing: int = 0
    elsewhere: int = 0
    erased: int = 0


class HasFiles(HasRows, Protocol):
    """A log with files."""

    @property
    def files(self) -> Files:
        """The contents of its files."""
        ...

    @property
    def forked(self) -> ForkedFrom | None:
        """What it was forked from."""
        ...


def files_compared(log: HasFiles, *, after: int = 0) -> tuple[FilesSeen, list[Finding]]:
    """Return what is there of the files that events behind a position name, and a finding for each that is not."""
    states: dict[str, FileState] = {}
    counts = Counter[str]()
    findings: list[Finding] = []
    cut = 0 if log.forked is None else log.forked.position
    erased, gone = _erased(log, after)
    for file, position, stream, version in named_files(log, after=after):
        if file.sha256 in states:
            continue
        state = _state(log.files, file.sha256)
        if state == "missing" and gone.get(file.sha256, 0) > position:
            continue  # a later event may name it anew
        states[file.sha256] = state
        if state == "missing" and position <= cut:
            counts["elsewhere"] += 1
            continue
        counts[state] += 1
        if state != "right":
            how = "is not there" if state == "missing" else "is not what was written"
            findings.append(
                Finding(
                    code="file_missing" if state == "missing" else "file_altered",
                    problem=f"the content of {file.name} ({file.sha256}) {how}",
                    position=position,
                    stream=stream,
                    version=version,
                )
            )
    return FilesSeen(**counts, erased=erased), findings


def _state(files: Files, sha256: str) -> FileState:
    try:
        return files.state(sha256)
    except LogError:
        return "missing"


def _erased(log: HasRows, after: int) -> tuple[int, dict[str, int]]:
    """Return how many contents were erased; of those that went by their age, the positions of the last events that say so."""
    number, by_age = 0, dict[str, int]()
    while rows := log.rows(after=after, limit=_PAGE):
        for position, _, _, topic, state in rows:
            payload = payload_in(state) if topic == _ERASED else None
            event = None if payload is None else decode(topic, payload)
            if isinstance(event, Erased):
                number += event.files
                by_age.update((sha256, position) for sha256 in event.contents)
        after = rows[-1][0]
    return number, by_age
