"""The spawner's messages."""

from intersession_actors.owners.flows.led import Begins
from intersession_actors.owners.streams.commands import (
    ChildGone,
    DeliveryEnded,
    FlowCommand,
    FlowRequest,
    OnAnswer,
    Refused,
    Resume,
    RunEnded,
)
from intersession_events.basics import ids
from intersession_events.facts import Route, SpawnAccepted


class OpenSpawn(Begins, frozen=True, kw_only=True):
    """Accept an allowed spawn (SPAWN-6).

    `answer` hears that it is accepted, `started` that its child is there, or why it never will be.
    """

    accepted: SpawnAccepted
    started: OnAnswer | None = None

    @property
    def stream(self) -> str:
        """The name of the spawn's stream."""
        return ids.spawn_stream(self.accepted.spawn_id)


class ClaimResult(FlowRequest, frozen=True, kw_only=True):
    """Have the result handed to the requester's session, which ended its run `run_id` to wait for it (CHILD-4)."""

    run_id: str
    by: str


class AskStarted(FlowCommand, frozen=True, kw_only=True):
    """Ask again whether a spawn's child is there; `started` is called as in `OpenSpawn`."""

    started: OnAnswer


class Prepared(FlowCommand, frozen=True, kw_only=True):
    """A child's files and thread are ready, or can't be had, and why.

    In a fork either can be `withheld`: the child goes on as if it were there (FORK-5).
    """

    manifest_sha256: str | None = None
    files_withheld: bool = False
    thread: Route | None = None
    thread_withheld: bool = False
    refused: Refused | None = None


class FilesRemoved(FlowCommand, frozen=True, kw_only=True):
    """A child's files are gone, or could not be removed."""

    error: str | None = None


class ArchiveDue(FlowCommand, frozen=True, kw_only=True):
    """It is time to archive a child (SPAWN-11)."""


SpawnCommand = (
    OpenSpawn
    | RunEnded
    | DeliveryEnded
    | Resume
    | ArchiveDue
    | AskStarted
    | ClaimResult
    | Prepared
    | FilesRemoved
    | ChildGone
)
