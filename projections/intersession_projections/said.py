"""Who said what to which session, over the whole log and newest first: for `intersession messages` (FIND-2)."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from intersession_events.facts import Message, MessageRecorded, Provenance
from intersession_events.ids import session_stream
from intersession_events.log import Log, Recorded
from intersession_projections.flows import DeliverySummary, Flows
from intersession_projections.positions import Span, backwards
from intersession_projections.run_outcomes import RunOutcome, Runs

_STREAM: Final = "session:"


class SaidWanted(NamedTuple):
    """Which messages are asked for: all that are set hold.

    `sender` and `target` are keys of sessions. `person` is whoever it was said for, by the id or the name that the channel
    gave.
    """

    inter_session: bool = False
    sender: str | None = None
    target: str | None = None
    person: str | None = None
    span: Span = Span()


class Said(NamedTuple):
    """A message that came into a session from outside of it. `message` has its provenance, `time_ms` is when it was recorded.

    `run` is the run that answered it; None where nobody was to. `began` is the message that the causal chain began with,
    itself too; None where an import does not show it. On whose behalf it was said is what that one's provenance says.
    """

    position: int
    time_ms: int
    target: str
    message: Message
    run: RunOutcome | None
    began: "tuple[int, str, Message] | None"

    @property
    def person(self) -> Provenance | None:
        """Where the person speaks that it was said for; None where none did."""
        if self.began is None:
            return None
        found = self.began[2].provenance
        return found if found is not None and found.kind == "external_user" else None


class Messages:
    """Queries on what was said to sessions. Those of one session are read from its own stream, else from the whole log."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._runs = Runs(log)
        self._flows = Flows(log)

    def said(self, wanted: SaidWanted) -> Iterator[Said]:
        """Yield the messages that are wanted, newest first, reading as far as somebody asks for more."""
        for recorded in self._recorded(wanted):
            event = recorded.event
            if not isinstance(event, MessageRecorded) or not _may_be(event.message, wanted):
                continue
            found = self._said(recorded, event.message)
            if wanted.person is None or _is(found.person, wanted.person):
                yield found

    def deliveries(self, said: Said) -> list[DeliverySummary]:
        """Return the texts that went outside for a message: of its run, and of the exchange or spawn that this is of."""
        if said.run is None:
            return []
        flow = self._flows.flow_of_run(said.run.run_id)
        of_flow = [] if flow is None else self._flows.deliveries_of(flow)
        found = {row.delivery_id: row for row in (*self._flows.deliveries_of_run(said.run.run_id), *of_flow)}
        return sorted(found.values(), key=lambda row: row.accepted)

    def _said(self, recorded: Recorded, message: Message) -> Said:
        target = recorded.stream.removeprefix(_STREAM)
        run = self._runs.next_of_session(target, recorded.position)
        if run is not None and run.message_id != message.id:
            run = None
        began: tuple[int, str, Message] | None = (recorded.position, target, message)
        if message.provenance is not None and message.provenance.kind != "external_user":
            began = self.began(recorded.correlation)
        return Said(recorded.position, recorded.time, target, message, run, began)

    def began_by(self, root: str | None, name: str) -> bool:
        """Whether a causal chain began with words of a person, by the id or the name that the channel gave."""
        asked = self.began(root)
        return asked is not None and _is(asked[2].provenance, name)

    def began(self, root: str | None) -> tuple[int, str, Message] | None:
        """Return the message that a causal chain began with: its root is the run that answered it."""
        run = None if root is None else self._runs.get(root)
        return None if run is None else self.of_run(run)

    def of_run(self, run: RunOutcome) -> tuple[int, str, Message] | None:
        """Return the message that a run answers, with its position and its session."""
        stream = session_stream(run.session_key)
        # It is recorded in one append with its run, or a little before.
        first = max(0, run.first_version - _NEAR)
        for recorded in self._log.stream(stream, after=first, to=run.first_version, backwards=True):
            if isinstance(recorded.event, MessageRecorded) and recorded.event.message.id == run.message_id:
                return (recorded.position, run.session_key, recorded.event.message)
        return None

    def _recorded(self, wanted: SaidWanted) -> Iterator[Recorded]:
        if wanted.target is not None:
            # Where in the stream the part ends, the next run behind it tells.
            later = self._runs.next_of_session(wanted.target, wanted.span.last(self._log.head()))
            to = None if later is None else later.first_version
            yield from backwards(self._log, wanted.span, session_stream(wanted.target), to_version=to)
            return
        for recorded in backwards(self._log, wanted.span):
            if recorded.stream.startswith(_STREAM):
                yield recorded


_NEAR: Final = 16


def _may_be(message: Message, wanted: SaidWanted) -> bool:
    """Whether a message can be one that is wanted, as far as it says itself."""
    if message.role != "user":
        return False
    provenance = message.provenance
    kind = None if provenance is None else provenance.kind
    source = None if provenance is None else provenance.source_session_key
    if wanted.inter_session and kind != "inter_session":
        return False
    return wanted.sender is None or source == wanted.sender


def _is(person: Provenance | None, name: str) -> bool:
    if person is None:
        return False
    return name.casefold() in {
        text.casefold() for text in (person.sender, person.sender_name) if text is not None
    }
