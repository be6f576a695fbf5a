"""Writes edits into a fork before it is opened: each with its own event, in one append (FORK-4)."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from intersession_actors.calls.tools.made_before import asked_anew
from intersession_actors.hindsight.forking.edits import Replaced
from intersession_actors.hindsight.forking.imports import Step, answer_of
from intersession_actors.outside.agents.result import Answered
from intersession_actors.owners.session.answers import decide_returned
from intersession_actors.owners.session.commands import RunReturned
from intersession_actors.owners.session.state import Session, evolve
from intersession_actors.owners.streams.drafting import append_of
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.prompt.silence import ANNOUNCE_SKIP, NO_REPLY, REPLY_SKIP
from intersession_actors.rules.prompt.transcript import TranscriptFold
from intersession_events import facts
from intersession_events.basics import ids
from intersession_events.log.log import HostLog, Log
from intersession_events.log.recorded import ANY_VERSION, Draft, StreamAppend

_LOG: Final = "log"
_SKIPS: Final[Mapping[facts.Step, str]] = {
    "message": NO_REPLY,
    "reply": REPLY_SKIP,
    "announce": ANNOUNCE_SKIP,
    "compaction": NO_REPLY,
}


class Writing(NamedTuple):
    """The inputs for writing edits: the fork, the caller, and the time."""

    log: HostLog
    by: str
    now_ms: int

    def adding(self, edit: facts.ForkEdit) -> None:
        """Write an edit that changes no event: another agent, a setting, a further message.

        Raises:
            ToolRefused: the message is for a session that the fork does not have.
        """
        draft = self._said(edit)
        appends = [_of_log(draft)]
        if edit.kind == "inject":
            appends.append(self._injected(edit, draft.id))
        self.log.append_now(appends)

    def adding_run(self, step: Step, replaced: Replaced | None, *, is_answered: bool) -> None:
        """Write the run of an imported step, in the form in which it would have been queued here.

        With what was imported as its answer where that `is_answered`; where another is to be written (`replaced`), it is under way.
        """
        stream, queued = step.message.stream, step.queued
        # A fork that is forked again may have queued it above the cut, with its message or behind it, and begun it.
        there = [
            one
            for one in self.log.stream(stream, after=step.message.version - 1)
            if isinstance(one.event, facts.RunQueued | facts.RunStarted) and one.event.run_id == queued.run_id
        ]
        last = (
            there[-1].id
            if there
            else self._follow(stream, (queued,), cause=step.asked.id, correlation=step.asked.correlation)
        )
        if not is_answered and replaced is None:
            return  # its agent is asked
        fold = TranscriptFold()
        for recorded in self.log.stream(stream):
            fold.apply(recorded)
        begun: list[facts.Event] = [
            facts.RunStarted(run_id=queued.run_id, context_hash=fold.context(queued.run_id).hash, tools=None)
        ]
        if any(isinstance(one.event, facts.RunStarted) for one in there):
            begun = []
        follows = [*begun, *(answer_of(step) if replaced is None else ())]
        if follows:
            self._follow(stream, follows, cause=last, correlation=step.asked.correlation)

    def _follow(
        self, stream: str, events: Sequence[facts.Event], *, cause: str, correlation: str | None
    ) -> str:
        """Write events of one stream, and return the id of the last one."""
        append = append_of(
            self.log.log_id,
            stream,
            _version(self.log, stream),
            events,
            time=self.now_ms,
            causation=cause,
            correlation=correlation,
        )
        self.log.append_now([append])
        return append.drafts[-1].id

    def answering(self, edit: facts.ForkEdit, replaced: Replaced) -> None:
        """Write another answer of a run, in place of its agent's.

        Raises:
            ToolRefused: the run is not under way at the cut.
        """
        key = replaced.session_key
        state = session_of(self.log, key)
        running = state.running
        if running is None or running.waiting.queued.run_id != replaced.run_id:
            raise ToolRefused(
                "invalid_request",
                f"--{edit.kind}: run {replaced.run_id} was not under way there, nothing to answer",
            )
        text = {"reply": edit.value, "skip": _SKIPS[running.waiting.queued.step], "drop": None}[edit.kind]
        draft = self._said(edit, replaced)
        events, carried = decide_returned(
            state,
            RunReturned(run_id=replaced.run_id, attempt=running.attempt, result=Answered(text=text)),
            key=key,
            log_id=self.log.log_id,
            now_ms=self.now_ms,
        )
        own = append_of(
            self.log.log_id,
            ids.session_stream(key),
            _version(self.log, ids.session_stream(key)),
            events,
            time=self.now_ms,
            causation=draft.id,
            correlation=running.waiting.correlation,
        )
        self.log.append_now([_of_log(draft), own, *carried])

    def asking(self, edit: facts.ForkEdit, replaced: Replaced, names: Mapping[str, str]) -> None:
        """Write another message, with the run and the flow that it begins; `names` are their ids here, by those in the source."""
        draft = self._said(edit, replaced)
        streams: dict[str, list[facts.Event]] = {}
        causes: dict[str, str | None] = {}
        correlations: dict[str, str | None] = {}
        for recorded in replaced.events:
            event = _with_words(recorded.event, edit.value)
            stream = _renamed(recorded.stream, names)
            if stream not in streams:
                causes[stream] = recorded.causation
                correlations[stream] = _renamed(recorded.correlation or "", names) or None
            streams.setdefault(stream, []).append(_anew(event, names))
        own = {recorded.id for recorded in replaced.events}
        appends: list[StreamAppend] = []
        # The flow's own events first: those of sessions name the last of them as their cause.
        for stream in sorted(streams, key=lambda name: name.startswith("session:")):
            cause = causes[stream]
            before = appends[-1].drafts[-1].id if appends else draft.id
            appends.append(
                append_of(
                    self.log.log_id,
                    stream,
                    _version(self.log, stream),
                    streams[stream],
                    time=self.now_ms,
                    causation=before if cause is None or cause in own else cause,
                    correlation=correlations[stream],
                )
            )
        self.log.append_now([_of_log(draft), *appends])

    def _said(self, edit: facts.ForkEdit, replaced: Replaced | None = None) -> Draft:
        event = facts.ForkEdited(
            edit=edit,
            by=self.by,
            replaces=None if replaced is None else replaced.events[0].position,
            run_id=None if replaced is None else replaced.run_id,
        )
        # Each edit is appended before the next one is made: the end of the log says which it is, and nothing of its words.
        event_id = ids.derive(self.log.log_id, "edit", self.log.head())
        return Draft(event=event, id=event_id, time=self.now_ms)

    def _injected(self, edit: facts.ForkEdit, cause: str) -> StreamAppend:
        stream = ids.session_stream(edit.key)
        state = session_of(self.log, edit.key)
        if not state.exists:
            known = ", ".join(name.partition(":")[2] for name in self.log.streams("session:"))
            raise ToolRefused(
                "invalid_request", f"--inject: no session {edit.key!r} in the fork; it has {known}"
            )
        message = facts.Message(
            id=ids.derive(self.log.log_id, "message", cause),
            role="user",
            content=edit.value,
            timestamp=self.now_ms,
            provenance=facts.Provenance(kind="external_user", sender=self.by),
        )
        said = facts.MessageRecorded(session_id=state.session_id, message=message)
        return append_of(
            self.log.log_id,
            stream,
            _version(self.log, stream),
            (said,),
            time=self.now_ms,
            causation=cause,
            correlation=None,
        )


def names_anew(source: Log, log_id: str, source_ids: Sequence[str], replaced: Replaced) -> dict[str, str]:
    """Return new ids for the work that a replaced message begins: different from the source's (FORK-3).

    A run that called a tool to send it finds it again: its id is the one that the tool derives here.
    """
    names: dict[str, str] = {}
    for recorded in replaced.events:
        message = facts.message_in(recorded.event)
        if message is not None and message.role == "user":
            names[message.id] = ids.derive(log_id, "message", "asked", message.id)
        match recorded.event:
            case facts.RunQueued(run_id=run_id):
                names.setdefault(run_id, ids.derive(log_id, "run", "asked", run_id))
            case facts.FlowAccepted() as accepted:
                kind, _, own = accepted.stream.partition(":")
                run_id = _called_anew(source, log_id, source_ids, accepted) or ids.derive(
                    log_id, "run", "asked", accepted.run_id
                )
                names[accepted.run_id] = run_id
                names[own] = ids.derive(log_id, kind, run_id)
            case _:
                pass
    return names


def _called_anew(
    source: Log,
    log_id: str,
    source_ids: Sequence[str],
    accepted: facts.FlowAccepted,
) -> str | None:
    calling, requester = accepted.requester_run_id, accepted.requester
    if calling is None or requester is None:
        return None
    said: list[facts.Message] = []
    for recorded in source.stream(ids.session_stream(requester), backwards=True):
        event, message = recorded.event, facts.message_in(recorded.event)
        if isinstance(event, facts.RunQueued) and event.run_id == calling:
            break
        if message is not None and message.run_id == calling:
            said.append(message)
    return asked_anew(log_id, source_ids, calling, reversed(said), accepted.run_id)


def session_of(log: Log, key: str) -> Session:
    """Return a session's state, folded from its whole stream."""
    state = Session()
    for recorded in log.stream(ids.session_stream(key)):
        state = evolve(state, recorded)
    return state


def _version(log: Log, stream: str) -> int:
    return next((recorded.version for recorded in log.stream(stream, backwards=True, limit=1)), 0)


def _of_log(draft: Draft) -> StreamAppend:
    return StreamAppend(stream=_LOG, expected=ANY_VERSION, drafts=(draft,))


def _with_words(event: facts.Event, text: str) -> facts.Event:
    match event:
        case facts.ExchangeAccepted():
            return msgspec.structs.replace(
                event,
                message=text,
                idempotency_key=None,
                request_digest=None,
                request_digests=(),
                asked_digest=None,
            )
        case facts.SpawnAccepted():
            files = event.attachments and msgspec.structs.replace(event.attachments, withheld=True)
            return msgspec.structs.replace(
                event,
                task=text,
                attachments=files,
                idempotency_key=None,
                request_digest=None,
                request_digests=(),
            )
        case facts.RunQueued(message=message):
            said = None if message is None else msgspec.structs.replace(message, content=text)
            return msgspec.structs.replace(
                event, message=said, idempotency_key=None, request_digest=None, request_digests=()
            )
        case _:
            return event


def _anew(event: facts.Event, names: Mapping[str, str]) -> facts.Event:
    """Return an event with the ids that it has here, wherever they stand in it."""
    topic = facts.topic_of(event)
    return facts.decode(topic, _renamed(facts.encode(event).decode(), names).encode())


def _renamed(text: str, names: Mapping[str, str]) -> str:
    for there, here in names.items():
        text = text.replace(there, here)
    return text
