"""The method `sessions.erase`: removes the texts of a session from the log for good (ERASE-1)."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from intersession_actors.assembly.methods.params import EraseParams
from intersession_actors.assembly.methods.targets import Targets
from intersession_actors.calls.service.arguments import read_arguments
from intersession_actors.calls.service.asking import ask_flow
from intersession_actors.calls.service.callers import Call
from intersession_actors.calls.service.pending import Result
from intersession_actors.calls.service.service import Service
from intersession_actors.outside.attachments.contents import named_in
from intersession_actors.owners.delivery.commands import GiveUpDelivery
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.policy.access import not_visible
from intersession_events.basics.crash_points import crash_point
from intersession_events.basics.errors import InvalidKey, LogError
from intersession_events.basics.ids import delivery_stream
from intersession_events.basics.keys.references import KeyReference
from intersession_events.basics.plain_json import JsonMapping
from intersession_events.copies.forks.files import forks_beside
from intersession_events.facts import AttachmentsReady, Erased
from intersession_events.log.erasing import erased_stream
from intersession_events.log.files import named_files
from intersession_events.log.recorded import ANY_VERSION, Draft, StreamAppend
from intersession_events.stores.opened import open_log
from intersession_projections.copies.transcripts.files import mirror_directory
from intersession_projections.copies.words_to_erase import Erasable, Words

_TOGETHER: Final = 1_000
"""The most events erased in one append, with one event for each of their streams."""
_SESSION: Final = "session:"
_SPAWN: Final = "spawn:"
_ENDS_S: Final = 2.0
_LOOK_S: Final = 0.05


class GatewayErase:
    """Erases the texts of a session, and all copies of them.

    `forget` drops a session's transcript from memory. `cover` takes a checkpoint over a position, and returns its own.
    """

    def __init__(
        self,
        service: Service,
        targets: Targets,
        forget: Callable[[str], None],
        cover: Callable[[int], int | None],
    ) -> None:
        self._service = service
        self._targets = targets
        self._forget = forget
        self._cover = cover

    def erase(self, call: Call, params: JsonMapping) -> Result:
        """Erase the texts of a session, or of some of its messages. This can't be undone.

        Each append is whole, and copies go first: after a crash in between, the same call erases what is left.

        Raises:
            ToolRefused: something is still under way in the session, or where a copy is (`busy`), or an id is of no message of it (`invalid_request`).
        """
        given = read_arguments(EraseParams, params)
        key = self._key(call, given.key)
        erasable = Erasable(self._service.log)
        if given.unsent == "giveUp":
            self._give_up(key, by=call.caller.name)
        under_way = erasable.open_work(key)
        if under_way:
            raise ToolRefused(
                "busy", f"key: {under_way[0]} is still under way in {key}, {_what_to_do(under_way[0])}"
            )
        try:
            found = erasable.of_session(key, given.message_ids)
        except LookupError as missing:
            raise ToolRefused(
                "invalid_request", f"messageIds: {missing} is no message of {key}, give ids of its own"
            ) from None
        if erasable.waiting:
            stream = erasable.waiting[0]
            raise ToolRefused(
                "busy", f"key: {stream} has copies of it and is still under way, {_what_to_do(stream)}"
            )
        files = self._files_going(found)
        going = len(files)
        self._service.log.files.doubt(files)
        position = None
        for first in range(0, len(found), _TOGETHER):
            batch = found[first : first + _TOGETHER]
            position = self._append(batch, files, by=call.caller.name, reason=given.reason)
        if going:
            crash_point("F2")
            self._service.log.files.settle(partial(named_in, self._service.log))
        streams = {one.stream for one in found}
        self._service.reader.full_text.forget()
        return {
            "ok": True,
            "key": key,
            "erased": len(found),
            "streams": sorted(streams),
            "position": position,
            "checkpoint": None if position is None else self._cover(position),
            "notReached": [*erasable.named, *self._not_reached(streams)],
            **({"files": going} if going else {}),
        }

    def _give_up(self, key: str, *, by: str) -> None:
        """Give up undelivered texts, and wait a moment for the flows that waited for them to end."""
        service = self._service
        for delivery in service.flows.deliveries_of_session(key):
            if delivery.is_open:
                try:
                    ask_flow(service, GiveUpDelivery(stream=delivery_stream(delivery.delivery_id), by=by))
                except ToolRefused as refused:
                    if refused.code not in {
                        "busy",
                        "invalid_request",
                    }:  # it is under way, or over: that is looked at next
                        raise
        until = service.clock.monotonic() + _ENDS_S
        while Erasable(service.log).open_work(key) and service.clock.monotonic() < until:
            service.log.wait_for(service.log.head() + 1, timeout=_LOOK_S)

    def _files_going(self, found: Sequence[Words]) -> set[str]:
        """Return the contents of files that nothing else names (FILE-7)."""
        going = {sha256 for words in found for sha256 in words.files}
        if not going:
            return set()
        places = {(words.stream, words.version) for words in found}
        for named in named_files(self._service.log):
            if (named.stream, named.version) not in places:
                going.discard(named.file.sha256)
        return going

    def _append(self, batch: Sequence[Words], files: set[str], *, by: str, reason: str) -> int:
        service = self._service
        rows: dict[str, list[tuple[int, str]]] = {}
        gone = Counter[str]()
        for stream, version, left, named in batch:
            rows.setdefault(stream, []).append((version, left))
            fresh = files.intersection(named)  # each counts once
            gone[stream] += len(fresh)
            files -= fresh
        now = service.clock.now_ms()
        appended = service.log.append_now(
            [
                StreamAppend(
                    stream=erased_stream(stream),
                    expected=ANY_VERSION,
                    drafts=(
                        Draft(
                            event=Erased(
                                stream=stream,
                                rows=tuple(named),
                                by=by,
                                reason=reason,
                                files=gone[stream],
                            ),
                            id=service.new_id(),
                            time=now,
                        ),
                    ),
                )
                for stream, named in rows.items()
            ]
        )
        for stream in rows:
            if stream.startswith(_SESSION):
                self._forget(stream.removeprefix(_SESSION))
        return appended.position

    def _not_reached(self, streams: Collection[str]) -> Iterator[str]:
        yield "backups, exports and copies of the log"
        forks = [file.stem for file in forks_beside(self._service.log.place) if _has_any(file, streams)]
        if forks:
            yield f"forks of the log that have some of it, erase it there or delete them: {', '.join(forks)}"
        if files := [*self._attachments(streams)]:
            yield f"attachments of sub-agents, delete them: {', '.join(files)}"
        kept = mirror_directory(self._service.log, wanted=True)
        if kept is not None and not self._service.config.transcripts.mirror and Path(kept).exists():
            yield f"transcripts in {kept}, which are not kept any more: delete them"

    def _attachments(self, streams: Collection[str]) -> Iterator[str]:
        """Yield the directories of attachments that are still there."""
        for stream in sorted(stream for stream in streams if stream.startswith(_SPAWN)):
            for recorded in self._service.log.stream(stream):
                event = recorded.event
                if isinstance(event, AttachmentsReady) and Path(event.directory).exists():
                    yield event.directory

    def _key(self, call: Call, text: str) -> str:
        """Return the session that is meant; an archived one can be meant as well."""
        try:
            return str(self._targets.seen(call, text, "history", field="key").key)
        except ToolRefused as refused:
            if refused.code != "not_visible":
                raise
        try:
            reference = self._service.reader.config.refer(text)
        except InvalidKey:
            reference = None
        if isinstance(reference, KeyReference) and self._service.sessions.get(str(reference.key)) is not None:
            call.check(reference.key, text)
            return str(reference.key)
        raise ToolRefused("not_visible", not_visible(text))


def _has_any(file: Path, streams: Collection[str]) -> bool:
    """Whether a fork has one of some streams; also if that can't be found out."""
    try:
        with open_log(str(file), read_only=True) as fork:
            return any(fork.stream(stream, limit=1) for stream in streams)
    except LogError:
        return True


def _what_to_do(stream: str) -> str:
    if stream.startswith("delivery:"):
        return "wait for its end, or give `unsent` as `giveUp`"
    return "wait for its end or abort it first"
