"""What a chain of causes begins with, and in whose words. Pure."""

from collections.abc import Iterable

from intersession_events import facts
from intersession_events.log.recorded import Recorded
from intersession_projections.basics.speakers import is_openclaws


def begins(recorded: Recorded) -> bool:
    """Whether an event begins a chain of causes by itself, though others of its append stand before it."""
    message = facts.message_in(recorded.event)
    provenance = None if message is None else message.provenance
    return provenance is not None and provenance.kind == "external_user"


def root_kind(recorded: Recorded) -> facts.Root:
    """Return what begins with an event that nothing recorded led to."""
    if facts.message_in(recorded.event) is None:
        return recorded.event.begun_by
    return _kind_of_message(recorded) or "operator"


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


def _kind_of_message(recorded: Recorded) -> facts.Root | None:
    """Return what a message begins; None for one that is no beginning, or not by what it says itself."""
    message, is_imported = facts.message_in(recorded.event), facts.is_imported(recorded.event)
    if message is None or message.role != "user":
        return "import" if is_imported else None
    provenance = message.provenance
    if provenance is not None and provenance.source_channel == "cron":
        return "timer"
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
