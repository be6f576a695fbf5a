"""What the spawner is told, beside what every process manager is."""

from intersession_actors.streams import Answer, Command, Refused
from intersession_events.facts import Route, SpawnAccepted


class OpenSpawn(Command, frozen=True, kw_only=True):
    """A spawn was allowed: accept it (SPAWN-6).

    `answer` hears that it is accepted, `started` that its child is there, or why it never will be.
    """

    accepted: SpawnAccepted
    started: Answer | None = None
    causation: str | None = None
    correlation: str | None = None
    answer: Answer | None = None


class AskStarted(Command, frozen=True, kw_only=True):
    """Somebody asks again whether the child of a spawn is there; `started` hears as in `OpenSpawn`."""

    stream: str
    started: Answer


class Prepared(Command, frozen=True, kw_only=True):
    """What a child needs is there, its files and its thread; or it can't be had, and why."""

    stream: str
    manifest_sha256: str | None = None
    thread: Route | None = None
    refused: Refused | None = None


class FilesRemoved(Command, frozen=True, kw_only=True):
    """A child's files are gone, or could not be removed."""

    stream: str
    error: str | None = None


class ArchiveDue(Command, frozen=True, kw_only=True):
    """It is time to archive a child (SPAWN-11)."""

    stream: str
