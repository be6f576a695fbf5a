"""Erases words for good wherever we can reach them: in a running system's log, its forks, and what lies beside it (ERASE-1, FORGET)."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from intersession_actors.assembly.forgetting.in_log import InLog, Order
from intersession_actors.assembly.forgetting.reach import beyond_reach
from intersession_actors.calls.service.pending import Result
from intersession_actors.calls.service.service import Service
from intersession_actors.outside.attachments.checks import relative_directory
from intersession_actors.outside.attachments.files import Place, remove_claimed
from intersession_events.basics import ids
from intersession_events.basics.crash_points import crash_point
from intersession_events.basics.errors import LogError
from intersession_events.basics.plain_json import JsonObject
from intersession_events.copies.forks.files import forks_beside
from intersession_events.facts import AttachmentsReady, SpawnAccepted
from intersession_events.log.erasing import ERASURES
from intersession_events.log.log import HostLog
from intersession_events.stores.opened import open_log
from intersession_projections.copies.found_words import Words
from intersession_projections.copies.transcripts.files import mirror_directory
from intersession_projections.copies.words_to_erase import Erasable
from intersession_projections.views.inline_views import inline_views

_SESSION: Final = "session:"
_SPAWN: Final = "spawn:"
_MIRROR_S: Final = 10.0

if TYPE_CHECKING:  # few hosts mirror transcripts
    from intersession_events.stores.tailing.tail import Tail
    from intersession_projections.copies.transcripts.mirror import Transcripts

Find = Callable[[Erasable], list[Words]]
"""Finds the same words in a log, and in a fork of it."""


Planned = tuple[list[tuple[Order, list[Words]]], list[str]]
"""What is to be erased in a fork, by orders, and what is named there."""
Plan = Callable[[HostLog], Planned]


class Covers(Protocol):
    """Takes checkpoints over erasures."""

    def cover(self, position: int) -> int | None:
        """Take one over an event of the host's log, and return its position; None if there was none within some seconds."""
        ...

    def cover_fork(self, fork: HostLog) -> None:
        """Take one in a fork that nobody runs."""
        ...


class Eraser:
    """Erases in the log of a running system. `forget` drops a session's transcript from memory, `mirror` writes transcripts."""

    def __init__(
        self,
        service: Service,
        forget: Callable[[str], None],
        checkpoints: Covers,
        mirror: "Tail[Transcripts] | None",
    ) -> None:
        self._service = service
        self._forget = forget
        self._checkpoints = checkpoints
        self._mirror = mirror
        self._log = InLog(service.log, new_id=service.new_id, now_ms=service.clock.now_ms)

    def erase(
        self,
        find: Find | None,
        erasable: Erasable,
        found: list[Words],
        order: Order,
        *,
        dry_run: bool = False,
    ) -> Result:
        """Erase what was found, copies first; with `dry_run` only count it. What it did not reach is named, and recorded with it.

        `find` finds the same in forks, which go before; None leaves them out, and the rest for `let_go` to the caller.
        Returns what all that erase answer: `{erased, streams, counts, position, checkpoint, notReached}`.
        """
        service = self._service
        files = self._log.files_going(found)
        streams = {one.stream for one in found}
        forks: list[JsonObject] = []
        left: list[str] = []
        if find is not None:
            forks, left = self.in_forks(partial(_planned, find, erasable, order), dry_run=dry_run)
        attachments, kept = self._attachments({*streams, *erasable.spawns}, dry_run=dry_run)
        keys, in_copies = service.log.keys_without(
            (one.stream, one.version) for one in found if one.kind != "thinking"
        )
        if service.log.is_encrypted:  # the key of a row stays, for what else it says
            thinking = {one.stream for one in found if one.kind == "thinking"}
            in_copies = sorted({*in_copies, *thinking})
        not_reached = (
            *erasable.named,
            *left,
            *kept,
            *beyond_reach(service, erasable.told_to, in_copies),
        )
        position = None
        if not dry_run:
            crash_point("G1")
            # What workers were given, or said too late: nobody waits for it, and it comes into no event any more. Before the
            # commit, which empties the write-ahead log of it as well.
            if over := [one.call for one in service.log.work.standing() if one.is_over]:
                service.log.work.drop(over)
            position = self._log.erase(found, files, order._replace(not_reached=not_reached), self._erased)
            if find is not None:
                not_reached = (*not_reached, *self.let_go())
        return {
            "erased": len(found),
            "streams": sorted(streams),
            "counts": {
                **_counts(found),
                "files": len(files),
                "attachments": attachments,
                "forks": len(forks),
                **({"keys": keys if dry_run else self._log.destroyed} if service.log.is_encrypted else {}),
            },
            "forks": forks,
            "position": position,
            "checkpoint": None if position is None else self._checkpoints.cover(position),
            "notReached": [*not_reached],
            **({"files": len(files)} if files else {}),
        }

    def let_go(self) -> list[str]:
        """Have databases let go of the rows in which the words stood; return in words what they could not.

        It is looked at once everything is erased, so no event says it.
        """
        self._write_mirror(self._service.log.head())
        return [*self._service.reader.full_text.forget(), *self._service.log.let_go()]

    def erase_files(self, contents: Mapping[str, Sequence[str]], order: Order) -> tuple[int, int | None]:
        """Remove contents of files that stay named; return the position of the last event, and of the checkpoint over it."""
        reach = (*beyond_reach(self._service, ()),)
        position = self._log.erase_files(contents, order._replace(not_reached=reach))
        return position, self._checkpoints.cover(position)

    def _write_mirror(self, position: int) -> None:
        """Have transcripts beside the log written anew, and wait for it; those that nobody keeps any more, too."""
        if self._mirror is None:
            _write_transcripts(self._service.log)
            return
        with suppress(TimeoutError):  # it is behind, and comes in time
            self._mirror.wait(position, _MIRROR_S)

    def _erased(self, stream: str) -> None:
        if stream.startswith(_SESSION):
            self._forget(stream.removeprefix(_SESSION))

    def in_forks(self, plan: Plan, *, dry_run: bool) -> tuple[list[JsonObject], list[str]]:
        """Erase in each fork of the log beside it; return what was erased there, and in words where that was not possible."""
        log = self._service.log
        done: list[JsonObject] = []
        left: list[str] = []
        for file in forks_beside(log.place):
            if file.stem == log.log_id:
                continue
            try:
                erased, named = self._in_fork(file, plan, dry_run=dry_run)
            except (LogError, OSError) as error:
                left.append(f"fork {file.stem}, erase it there or delete it: {error}")
                continue
            left += [f"in fork {file.stem}: {said}" for said in named]
            if erased:
                done.append({"fork": file.stem, "erased": erased})
        return done, left

    def _in_fork(self, file: Path, plan: Plan, *, dry_run: bool) -> tuple[int, list[str]]:
        with open_log(str(file), inline=inline_views(), read_only=True) as seen:
            if self._service.log.log_id not in seen.log_ids:
                return 0, []  # it lies there too, and was not made of this log
            found, named = plan(seen)
            number = sum(len(words) for _, words in found)
            if dry_run or not (found or seen.streams(ERASURES)):
                return number, named
        with open_log(str(file), inline=inline_views()) as log:
            in_fork = InLog(log, new_id=self._service.new_id, now_ms=self._service.clock.now_ms)
            for order, words in found:
                in_fork.erase(words, in_fork.files_going(words), order, _nothing)
            if found:
                self._checkpoints.cover_fork(log)
            in_fork.settle()  # also what a call that was cut off has left
            _write_transcripts(log)
        for view in file.parent.glob(f"{file.name}.views*"):  # they are made anew when they are asked
            _remove(view)
        return number, named

    def _attachments(self, streams: Collection[str], *, dry_run: bool) -> tuple[int, list[str]]:
        """Remove the attachments of sub-agents; return how many directories there were, and in words which are left."""
        there, left = 0, list[str]()
        for stream in sorted(stream for stream in streams if stream.startswith(_SPAWN)):
            for place, directory, shown in self._handed(stream):
                there += 1
                if dry_run:
                    continue
                try:
                    remove_claimed(place, directory)
                except OSError as error:
                    left.append(f"attachments of a sub-agent in {shown}, delete them: {error}")
        return there, left

    def _handed(self, stream: str) -> Iterator[tuple[Place, str, Path]]:
        """Yield where a spawn's files are, if they are there."""
        log, accepted = self._service.log, None
        for recorded in log.stream(stream):
            event = recorded.event
            if isinstance(event, SpawnAccepted):
                accepted = event
            if not isinstance(event, AttachmentsReady) or accepted is None or accepted.attachments is None:
                continue
            files = accepted.attachments
            shown = Path(files.root) / relative_directory(files.directory)
            is_own = (
                log.forked is None or ids.derive(log.log_id, "spawn", accepted.run_id) == accepted.spawn_id
            )
            if is_own and shown.exists():
                yield Place(files.root, log.log_id, accepted.spawn_id), files.directory, shown


def _planned(find: Find, source: Erasable, order: Order, fork: HostLog) -> Planned:
    erasable = Erasable(fork, source)
    words = find(erasable)
    named = [said for said in erasable.named if said not in source.named]
    return ([(order, words)] if words else []), named


def _counts(found: Sequence[Words]) -> JsonObject:
    kinds = Counter(one.kind for one in found)
    sessions = {one.stream for one in found if one.stream.startswith(_SESSION)}
    return {
        "sessions": len(sessions),
        **dict(sorted(kinds.items())),
        "copies": sum(one.is_copy for one in found),
    }


def _remove(path: Path) -> None:
    if path.is_dir():
        for inner in path.iterdir():
            _remove(inner)
        with suppress(OSError):
            path.rmdir()
    else:
        path.unlink(missing_ok=True)


def _write_transcripts(log: HostLog) -> None:
    """Write transcripts that nobody keeps any more anew, if there are some beside a log."""
    directory = mirror_directory(log, wanted=True)
    if directory is None or not directory.exists() or log.is_encrypted:
        return
    from intersession_projections.copies.transcripts.mirror import (  # noqa: PLC0415 - few logs have some
        transcript_mirror,
    )

    tail = transcript_mirror(log, directory)
    tail.catch_up()
    tail.stop()


def _nothing(stream: str) -> None:
    """Do nothing: a fork that nobody runs keeps nothing in memory."""
