"""The transcript that an agent sees in a run, folded from the session's stream, and its hash (PROV-4).

Pure: the same stream up to the same version gives the same context, so that it can be rebuilt from the log.
The message that a run answers stands where the run *started*: a message that waited while another run was still
talking is not shown in the middle of that talk.

The hash is over what an erasure leaves of each message: over its words it would let a guess of an erased one be tested, in
each run after it. The words are proven by the rows of the messages; the hash tells whether they were erased.
"""

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from intersession_actors.rules.prompt.fitting import (
    NotAtHand,
    Summary,
    fit,
    summarised,
    to_compact,
    tokens_of,
    tokens_used,
)
from intersession_actors.rules.prompt.instructions import compaction_asked, told_by
from intersession_actors.rules.prompt.window import Earlier, Transcript, Window, nothing_earlier
from intersession_events import facts
from intersession_events.basics.errors import CorruptEvent
from intersession_events.log.recorded import Recorded

_ENCODER = msgspec.json.Encoder(order="sorted")


class RunContext(msgspec.Struct, frozen=True, kw_only=True):
    """The input of one attempt: the earlier transcript, the message, and earlier attempts' messages.

    `version` is that of the session's stream: read again up to there, the log gives the same context (PROV-4). `used` is how
    many tokens all of it has at most; `fit` is what of it is left out, once that is decided (CTX-2). `summary` stands for the
    oldest messages of the transcript, and `open_tokens` is the most tokens that those behind it have. `compacts`: it is that
    of a compaction, which is given the messages that the next summary is made of; `covers` is what its answer will stand for,
    None if there is nothing to summarise (CTX-5).
    """

    message: facts.Message
    transcript: Sequence[facts.Message]
    partial: tuple[facts.Message, ...]
    system_context: str
    hash: str
    version: int
    used: int = 0
    fit: facts.Fit | None = None
    summary: Summary | None = None
    open_tokens: int = 0
    compacts: bool = False
    covers: facts.Covers | None = None

    def fitted(self, room: int | None, *, may_read: bool, keep: int = 0) -> "RunContext | None":
        """Return it fitted into a number of tokens; None is no limit. A compaction leaves the newest `keep` tokens alone.

        None is returned where messages have to be read from the log for that, and may not be.
        """
        if self.compacts:
            return self._to_compact(room, keep, may_read=may_read)
        summary = self.summary
        if room is None or self.used <= room:
            return self if summary is None else self._with(summarised(summary))
        transcript = self.transcript
        try:
            left_out = fit(
                transcript,
                self.message,
                self.partial,
                self.system_context,
                room=room,
                at_hand=transcript.tokens_at_hand() if isinstance(transcript, Transcript) else None,
                may_read=may_read,
                summary=summary,
            )
        except NotAtHand:
            return None
        return self._with(left_out)

    def _to_compact(self, room: int | None, keep: int, *, may_read: bool) -> "RunContext | None":
        transcript = self.transcript
        needed = tokens_used(self.system_context, 0, self.message, self.partial)
        tokens = transcript.tokens_at_hand() if isinstance(transcript, Transcript) else _tokens(transcript)
        while True:
            try:
                part = to_compact(
                    transcript,
                    tokens,
                    room=self.used if room is None else room,
                    keep=keep,
                    summary=self.summary,
                    needed=needed,
                )
            except NotAtHand:
                if not may_read:
                    return None
                tokens = _tokens(transcript)
                continue
            return self if part is None else self._with(part)

    def _with(self, fitted: facts.Fit) -> "RunContext":
        # Here, while all messages are at hand: a context behind events that come next outlives them.
        return msgspec.structs.replace(
            self, fit=fitted, hash=given_hash(self, fitted), covers=self._covers(fitted)
        )

    def _covers(self, part: facts.Fit) -> facts.Covers | None:
        summary = self.summary
        if not self.compacts or not part.until:
            return None
        return facts.Covers(
            messages=part.until,
            through=self.transcript[part.until - 1].id,
            since=part.left_out,
            earlier=None if summary is None else summary.run_id,
            tokens=(0 if summary is None else summary.tokens)
            + sum(map(tokens_of, self.transcript[0 if summary is None else summary.messages : part.until])),
        )


def _tokens(transcript: Sequence[facts.Message]) -> tuple[int, list[int]]:
    return 0, [tokens_of(one) for one in transcript]


class RunInput(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The request to an agent: the run, the message to answer, and the instructions."""

    run_id: str
    message: facts.Message
    system_context: str = ""
    instructions: facts.Instructions | None = None
    turn: int | None = None
    compacts: bool = False
    done: tuple[facts.Message, ...] = ()
    """What the attempts of a compaction have recorded: it is no part of the transcript."""


class TranscriptState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The state of a fold, without the messages that are in the transcript already.

    `chain` (hex) stands for these, `count`, `size` and `tokens` say how many they are, and how many bytes (as JSON) and tokens
    (at most) they have. `began` is the version of the event with which the session id began. `summary` stands for the oldest
    of them.
    """

    session_id: str = ""
    began: int = 0
    count: int = 0
    size: int = 0
    tokens: int = 0
    chain: str = ""
    last: facts.Message | None = None
    waiting: tuple[RunInput, ...] = ()
    started: tuple[RunInput, tuple[facts.Message, ...]] | None = None
    summary: Summary | None = None


class TranscriptFold:
    """Folds the transcript for the next run, event by event.

    `version` is how far it has come, `size` how many bytes its messages have as JSON, `tokens` how many tokens at most, those of
    the run under way left out.
    It begins with the stream, or goes on from a state. Of the messages it keeps the last ones, `room` bytes of them as
    JSON (None: all that it has seen); `earlier` reads those before.
    """

    __slots__ = (
        "_chain",
        "_compactions",
        "_earlier",
        "_last",
        "_room",
        "_session_id",
        "_started",
        "_summary",
        "_waiting",
        "size",
        "tokens",
        "version",
        "window",
    )

    def __init__(
        self,
        state: TranscriptState | None = None,
        *,
        version: int = 0,
        room: int | None = None,
        earlier: Earlier = nothing_earlier,
    ) -> None:
        state = state or TranscriptState()
        self.version: int = version
        self.size: int = state.size
        self.tokens: int = state.tokens
        self._room = room
        self._earlier = earlier
        self._session_id: str = state.session_id
        self.window: Window = Window(state.began, start=state.count, room=room, earlier=earlier)
        self._chain: bytes = bytes.fromhex(state.chain)
        self._waiting = {asked.run_id: asked for asked in state.waiting}
        self._compactions: dict[str, list[facts.Message]] = {
            asked.run_id: [*asked.done] for asked in state.waiting if asked.compacts
        }
        """What the agents of those of them have done that are no part of the transcript."""
        self._last: facts.Message | None = state.last
        self._summary: Summary | None = state.summary
        self._started: tuple[RunInput, list[facts.Message]] | None = None
        if state.started is not None:
            self._started = (state.started[0], list(state.started[1]))

    def state(self) -> TranscriptState:
        """Return the state from which another fold can continue at this version."""
        started = self._started
        return TranscriptState(
            session_id=self._session_id,
            began=self.window.began,
            count=self.window.end,
            size=self.size,
            tokens=self.tokens,
            chain=self._chain.hex(),
            last=self._last,
            waiting=tuple(
                msgspec.structs.replace(one, done=tuple(self._compactions[one.run_id]))
                if one.compacts
                else one
                for one in self._waiting.values()
            ),
            started=None if started is None else (started[0], tuple(started[1])),
            summary=self._summary,
        )

    def apply(self, recorded: Recorded) -> None:  # noqa: C901, PLR0912 - one case an event
        """Take in the stream's next event."""
        self.version = recorded.version
        match recorded.event:
            case facts.SessionOpened(session_id=session_id) | facts.SessionReset(session_id=session_id):
                self._begin(session_id)
            case facts.TranscriptGiven(given=given, session_id=of) if of == self._session_id:
                for message in given:
                    self._take(message)
                self._settle()
            case facts.MessageRecorded(message=message, session_id=of) if of == self._session_id:
                if message.run_id in self._compactions:
                    self._compactions[message.run_id].append(message)
                else:
                    self._take(message)
            case facts.RunQueued(session_id=of) as queued if of == self._session_id:
                self._queue(queued)
            case facts.RunStarted(run_id=run_id):
                self._start(run_id)
            case facts.RunAborted(run_id=run_id) | facts.RunFailed(run_id=run_id):
                self._give_up(run_id)
                self._end(run_id)
            case facts.RunCompleted(run_id=run_id) as completed if run_id in self._compactions:
                self._give_up(run_id)
                if completed.covers is not None and completed.session_id == self._session_id:
                    self._summarise(completed, completed.covers)
            case facts.RunCompleted(run_id=run_id, message=message, session_id=of):
                if message is not None and of == self._session_id:
                    self._take(message)
                self._end(run_id)
            case _:
                pass

    def has(self, run_id: str) -> bool:
        """Whether a run waits here, or will be retried."""
        return run_id in self._waiting or (self._started is not None and self._started[0].run_id == run_id)

    def so_far(self) -> tuple[Sequence[facts.Message], tuple[facts.Message, ...], Summary | None]:
        """Return the transcript as it is now: what it has, what the run under way has added, and the summary of the oldest."""
        self._settle()
        started = self._started
        added = () if started is None else (started[0].message, *started[1])
        return self.window.transcript(), added, self._summary

    def context(self, run_id: str, *, may_read: bool = True) -> RunContext:
        """Return the context of a run that waits, or will be retried.

        Raises:
            CorruptEvent: no such run waits in this stream, or its message is not there: each run that is queued has one. Or a text
                that it quotes is not in the transcript.
            NotAtHand: what it quotes has to be read from the log, and may not be.
        """
        self._settle()
        started = self._started
        if run_id in self._waiting:
            if started is not None and run_id not in self._compactions:
                self._close()
            done = tuple(self._compactions.get(run_id, ()))
            return self._context(self._waiting[run_id], done, self.version, may_read=may_read)
        if started is not None and started[0].run_id == run_id:
            partial = tuple(said for said in started[1] if said.run_id == run_id and _is_of_run(said))
            return self._context(started[0], partial, self.version, may_read=may_read)
        raise CorruptEvent(f"run {run_id} has no message in this stream")

    def context_behind(
        self, fresh: Sequence[Recorded], run_id: str, room: int | None, keep: int = 0
    ) -> RunContext | None:
        """Return the context of a run after events that come next, fitted into a number of tokens; reads nothing.

        The events may come to nothing: so the transcript is afterwards as it was. Only what there is no room for at hand is
        let go of for good. Without events it is as of now. None is returned where messages have to be read to fit it.

        Raises:
            CorruptEvent: as `context` does.
            NotAtHand: what it quotes has to be read from the log.
        """
        kept = (self.version, self.size, self.tokens, self._chain, self._session_id, self.window, self._last)
        end, started, waiting = self.window.end, self._started, self._waiting
        said = None if started is None else (started[0], list(started[1]))
        summary, self._waiting = self._summary, dict(waiting)
        compactions = self._compactions
        self._compactions = {run_id: [*done] for run_id, done in compactions.items()}
        try:
            for one in fresh:
                self.apply(one)
            return self.context(run_id, may_read=False).fitted(room, may_read=False, keep=keep)
        finally:
            self._summary, self._compactions = summary, compactions
            version, self.size, self.tokens, self._chain, self._session_id, self.window, self._last = kept
            self.version, self._waiting, self._started = version, waiting, said
            self.window.end_at(end)

    def _context(
        self, asked: RunInput, partial: tuple[facts.Message, ...], version: int, *, may_read: bool
    ) -> RunContext:
        message = asked.message
        context = asked.system_context or told_by(
            asked.instructions,
            asked.run_id,
            asked.turn,
            lambda quote: self._text_of(quote, may_read=may_read),
        )
        summary, tokens = self._summary, self.tokens
        if summary is not None:
            tokens -= summary.tokens
        return RunContext(
            message=message,
            transcript=self.window.transcript(),
            partial=partial,
            system_context=context,
            hash=_hash(self._chain, context, message, partial),
            version=version,
            used=tokens_used(
                context, tokens if summary is None else tokens + summary.most_tokens, message, partial
            ),
            summary=summary,
            open_tokens=tokens,
            compacts=asked.compacts,
        )

    def _text_of(self, quote: facts.Quote, *, may_read: bool) -> str:
        """Return a text that the transcript has, which is near its end in most cases."""
        start, at_hand = self.window.at_hand(self.window.end)
        for said in itertools.chain(reversed(at_hand), self._before(start, may_read=may_read)):
            if quote.message_id == said.id or (quote.run_id is not None and quote.run_id == said.run_id):
                return facts.text_of(said)
        raise CorruptEvent(
            f"the transcript has no {f'message {quote.message_id}' if quote.run_id is None else f'answer of run {quote.run_id}'}, which a run quotes"
        )

    def _before(self, start: int, *, may_read: bool) -> Iterator[facts.Message]:
        """Yield the messages before those at hand, the last first."""
        if start and not may_read:
            raise NotAtHand
        transcript = self.window.transcript()
        yield from (transcript[number] for number in reversed(range(start)))

    def _begin(self, session_id: str) -> None:
        self._session_id = session_id
        self.window = Window(self.version, room=self._room, earlier=self._earlier)
        self.size = 0
        self.tokens = 0
        self._chain = b""
        self._last = self._started = self._summary = None

    def _take(self, message: facts.Message) -> None:
        self._settle()
        self._last = message

    def _summarise(self, completed: facts.RunCompleted, covers: facts.Covers) -> None:
        """Let a summary stand for the messages that it covers; one that was erased says nothing of them any more."""
        text = completed.reply
        self._summary = None
        if text and text != facts.ERASED:
            self._summary = Summary(
                run_id=completed.run_id, messages=covers.messages, tokens=covers.tokens, text=text
            )

    def _queue(self, queued: facts.RunQueued) -> None:
        message = queued.message
        if queued.step == "compaction":
            self._compactions[queued.run_id] = []
            self._waiting[queued.run_id] = RunInput(
                run_id=queued.run_id,
                message=compaction_asked(queued.run_id),
                instructions=queued.instructions,
                compacts=True,
            )
            return
        if message is not None:
            self._settle()
        elif self._last is not None and self._last.id == queued.answers:
            message, self._last = self._last, None  # a fork has a run answer what was imported before
        if message is not None:
            self._waiting[queued.run_id] = RunInput(
                run_id=queued.run_id,
                message=message,
                system_context=queued.system_context,
                instructions=queued.instructions,
                turn=queued.turn,
            )

    def _start(self, run_id: str) -> None:
        """Put the message in its place; a retried run keeps its earlier messages. A compaction has no place in the transcript."""
        if run_id in self._compactions:
            return
        self._settle()
        if self._started is not None and self._started[0].run_id == run_id:
            return
        self._close()
        waiting = self._waiting.pop(run_id, None)
        if waiting is not None:
            self._started = (waiting, [])

    def _settle(self) -> None:
        """Keep a message that no run answers where it stands: with the run that is under way, if one is."""
        said, self._last = self._last, None
        if said is None:
            return
        if self._started is not None:
            self._started[1].append(said)
        else:
            self._add(said)

    def _give_up(self, run_id: str) -> None:
        """Keep the message of a run that ended before it began: it is part of the transcript."""
        waiting = self._waiting.pop(run_id, None)
        if run_id in self._compactions:
            del self._compactions[run_id]
        elif waiting is not None:
            self._take(waiting.message)
            self._settle()

    def _end(self, run_id: str) -> None:
        """Move an ended run into the transcript: later messages would follow it in any case."""
        if self._started is not None and self._started[0].run_id == run_id:
            self._settle()
            self._close()

    def _close(self) -> None:
        """Move the run that was started last, with its messages, into the transcript."""
        if self._started is not None:
            asked, done = self._started
            self._started = None
            for said in (asked.message, *done):
                self._add(said)

    def _add(self, message: facts.Message) -> None:
        encoded = _ENCODER.encode(message)
        tokens = tokens_of(message)
        self.window.add(message, len(encoded), tokens)
        self.size += len(encoded)
        self.tokens += tokens
        self._chain = hashlib.sha256(self._chain + _left_of(message, encoded)).digest()


def _is_of_run(said: facts.Message) -> bool:
    """Whether a message of a run is its agent's, or steers it (CHILD-3)."""
    origin = said.provenance
    return said.role != "user" or (origin is not None and origin.source_tool == "subagents")


_ERASED: Final = facts.ERASED.encode()


def _left_of(message: facts.Message, encoded: bytes) -> bytes:
    """Return what an erasure leaves of a message in canonical JSON, from its id on, and whether there was one."""
    mark, origin = b"1" if _ERASED in encoded else b"0", message.provenance
    if origin is not None and origin.sender_name is not None:
        unnamed = msgspec.structs.replace(origin, sender_name=None)
        encoded = _ENCODER.encode(msgspec.structs.replace(message, provenance=unnamed))
    # Only words stand before the id, and no field behind it has one.
    return mark + encoded[encoded.rindex(b'"id":') :]


def _hash(chain: bytes, context: str, message: facts.Message, partial: tuple[facts.Message, ...]) -> str:
    """SHA-256 over the chain of the transcript's messages and what is left of the rest, one a line."""
    beside = b"erased" if facts.ERASED in context else b"told" if context else b""
    lines = [chain, beside, _left_of(message, _ENCODER.encode(message))]
    if partial:
        lines += [_left_of(one, _ENCODER.encode(one)) for one in partial]
    return hashlib.sha256(b"\n".join(lines)).hexdigest()


def context_hash(
    transcript: Sequence[facts.Message],
    message: facts.Message,
    partial: tuple[facts.Message, ...],
    context: str,
) -> str:
    """Return the hash of an existing context, such as a turn's (PROV-4)."""
    chain = b""
    for said in transcript:
        chain = hashlib.sha256(chain + _left_of(said, _ENCODER.encode(said))).digest()
    return _hash(chain, context, message, partial)


def first_context_hash(
    transcript: Sequence[facts.Message],
    message: facts.Message,
    partial: tuple[facts.Message, ...],
    context: str,
) -> str:
    """Return the same as the first logs had it: over the canonical JSON of all words."""
    chain = b""
    for said in transcript:
        chain = hashlib.sha256(chain + _ENCODER.encode(said)).digest()
    rest = {"context": context, "message": message, "partial": partial}
    return hashlib.sha256(chain + _ENCODER.encode(rest)).hexdigest()


def hash_as_recorded(context: RunContext, started: facts.RunStarted) -> str:
    """Return the hash of what an attempt is given of a whole context, in the form of the recorded one."""
    found = given_hash(context, started.fit)
    if found == started.context_hash:
        return found
    whole = first_context_hash(context.transcript, context.message, context.partial, context.system_context)
    summary = None if context.summary is None else context.summary.text
    first = fitted_hash(whole, started.fit, summary, words=True)
    return first if first == started.context_hash else found


def given_hash(context: RunContext, left_out: facts.Fit | None) -> str:
    """Return the hash of what an agent is given of a whole context."""
    return fitted_hash(context.hash, left_out, None if context.summary is None else context.summary.text)


def fitted_hash(
    context: str, left_out: facts.Fit | None, summary: str | None = None, *, words: bool = False
) -> str:
    """Return the hash of a shortened context: the same messages are another context then (CTX-2), and so with a summary.

    `words`: as the first logs had it, over the summary's text.
    """
    if left_out is None:
        return context
    said = b"" if summary is None else _ENCODER.encode(summary if words else facts.ERASED in summary)
    return hashlib.sha256(context.encode() + _ENCODER.encode(left_out) + said).hexdigest()
