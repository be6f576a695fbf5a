"""What a chain of causes begins with, and in whose words. Pure."""

from collections.abc import Iterable
from typing import Literal

from intersession_events import facts
from intersession_events.log.recorded import Recorded
from intersession_projections.basics.wording.of_flows import asker_of
from intersession_projections.basics.wording.of_sessions import caller_of, writer_of
from intersession_projections.basics.wording.openclaw import is_openclaws

RootKind = Literal["person", "operator", "timer", "start", "import", "system"]
"""What it began with: a person's words, a call by a door (of the operator, or of code of the host's), time that came, a
start of the system, an import that shows no more, or the system's own accounts of itself."""


def begins(recorded: Recorded) -> bool:
    """Whether an event begins a chain of causes by itself, though others of its append stand before it."""
    message = facts.message_in(recorded.event)
    provenance = None if message is None else message.provenance
    return provenance is not None and provenance.kind == "external_user"


def root_kind(recorded: Recorded) -> RootKind:
    """Return what begins with an event that nothing recorded led to."""
    event = recorded.event
    match event:
        case facts.MessageRecorded() | facts.RunQueued():
            return _kind_of_message(recorded) or "operator"
        case facts.SessionOpened(opened_by="person") | facts.RouteChanged() | facts.InboundTaken():
            return "person"
        case facts.SessionOpened(opened_by="import") | facts.SessionImported() | facts.LineImported():
            return "import"
        case facts.ImportReported():
            return "import"
        case facts.ExchangeAccepted(inferred=True) | facts.SpawnAccepted(inferred=True):
            return "import"
        case facts.LogOpened() | facts.ConfigLoaded():
            return "start"
        case facts.ThreadUnbound(reason="idle" | "max_age") | facts.SessionArchived(reason="expired"):
            return "timer"
        case facts.ChildArchived(reason="expired"):
            return "timer"
        case (
            facts.CheckpointTaken()
            | facts.CheckpointPublished()
            | facts.ClockStepped()
            | facts.SessionArchived(reason="cleanup")
        ):
            return "system"
        case _:
            return "operator"


def doer(event: facts.Event) -> str | None:
    """Return who called for an event: `operator`, a credential, a session; None where nobody did, or it does not say who."""
    match event:
        case facts.MessageRecorded(message=message):
            return writer_of(message)
        case facts.RunQueued():
            return caller_of(event)
        case facts.ExchangeAccepted() | facts.SpawnAccepted() as accepted:
            return None if accepted.inferred else asker_of(accepted)
        case facts.AccessRecorded(requester=who) | facts.SendRefused(requester=who) as asked:
            return who or (f"credential:{asked.credential}" if asked.credential else "operator")
        case (
            facts.SessionOpened()
            | facts.SessionPatched()
            | facts.SessionReset()
            | facts.SessionArchived()
            | facts.ThreadUnbound()
            | facts.RunAborted()
            | facts.HoldRequested()
            | facts.HoldWithdrawn()
            | facts.ExchangeReleased()
            | facts.DeliveryDecided()
            | facts.DeliveryRetried()
            | facts.NotePinned()
            | facts.Erased()
            | facts.ForkedFrom()
            | facts.ForkEdited() as deed
        ):
            return deed.by
        case _:
            return None


def words_beside(first: Recorded, behind: Iterable[Recorded]) -> Recorded | None:
    """Return the person's message that opened a session or moved its route: it stands behind that in the same append."""
    if not isinstance(first.event, facts.SessionOpened | facts.RouteChanged):
        return None
    for recorded in behind:
        if recorded.time != first.time or recorded.correlation != first.correlation:
            return None
        if facts.message_in(recorded.event) is not None:
            return recorded
    return None


def _kind_of_message(recorded: Recorded) -> RootKind | None:
    """Return what a message begins; None for one that is no beginning, or not by what it says itself."""
    message, is_imported = facts.message_in(recorded.event), facts.is_imported(recorded.event)
    if message is None or message.role != "user":
        return "import" if is_imported else None
    provenance = message.provenance
    if provenance is not None and provenance.kind == "external_user":
        return "timer" if _is_of_a_timer(recorded.stream) else "person"
    if provenance is None and is_imported:
        if _is_of_a_timer(recorded.stream):
            return "timer"
        return "import" if is_openclaws(message) else "person"
    return None


def _is_of_a_timer(stream: str) -> bool:
    """Whether a session is one that a schedule speaks to."""
    _, _, key = stream.partition(":")
    return ":cron:" in key or key.startswith("cron:")
