"""What led to an event of a spawn: its call, what it had to wait for, its archiving."""

from intersession_actors.errors import REFUSAL_CODES, RefusalCode
from intersession_actors.policy import budget_of
from intersession_actors.replaying.feeding.fed import ToFlow
from intersession_actors.replaying.recording import Recording
from intersession_actors.spawn import ArchiveDue, FilesRemoved, OpenSpawn, Prepared
from intersession_actors.streams import Refused
from intersession_events import facts
from intersession_events.log import Recorded


def to_spawn(recorded: Recorded, recording: Recording) -> ToFlow | None:
    """Return what led to the next event of a spawn."""
    stream = recorded.stream
    match recorded.event:
        case facts.SpawnAccepted() as accepted:
            budget = budget_of(accepted, recorded.correlation, recorded.time)
            return ToFlow(stream, OpenSpawn(budget=budget, accepted=accepted, causation=recorded.causation))
        case facts.ThreadOpened() | facts.AttachmentsReady():
            ahead = [item.event for item in recording.append_ahead(stream)]
            thread = next((one for one in ahead if isinstance(one, facts.ThreadOpened)), None)
            files = next((one for one in ahead if isinstance(one, facts.AttachmentsReady)), None)
            command = Prepared(
                stream=stream,
                manifest_sha256=None if files is None else files.manifest_sha256,
                files_withheld=files is not None and files.withheld,
                thread=None if thread is None else thread.route,
                thread_withheld=thread is not None and thread.withheld,
            )
            return ToFlow(stream, command)
        case facts.SpawnClosed(reason="not_started", note=note, code=code):
            known: RefusalCode | None = next((one for one in REFUSAL_CODES if one == code), None)
            if known is None:
                return None  # a code that today's rules don't have comes of nothing that could be fed
            return ToFlow(stream, Prepared(stream=stream, refused=Refused(code=known, error=note or "")))
        case facts.ChildArchived(reason="deleted"):
            return None
        case facts.ChildArchived():
            return ToFlow(stream, ArchiveDue(stream=stream))
        case facts.AttachmentsRemoved():
            return ToFlow(stream, FilesRemoved(stream=stream))
        case facts.AttachmentRemovalFailed(error=error):
            return ToFlow(stream, FilesRemoved(stream=stream, error=error))
        case _:
            return None
