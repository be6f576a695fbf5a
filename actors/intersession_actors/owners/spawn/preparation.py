"""Prepares a child before it starts: files in place, thread opened (SPAWN-12, ATT-3).

All of it happens outside of any actor, after the spawn was accepted; one command comes back. Done again after a crash it
comes to the same, or says that it can't be known.
"""

from collections.abc import Callable

import msgspec

from intersession_actors.outside.attachments.files import Place, claim_files, manifest_sha256, remove_claimed
from intersession_actors.outside.channels.channels import ThreadWanted
from intersession_actors.outside.channels.outcomes import NotDelivered, ThreadOpened
from intersession_actors.outside.channels.turns import CallState
from intersession_actors.owners.spawn.commands import FilesRemoved, Prepared
from intersession_actors.owners.streams.commands import Refused
from intersession_actors.owners.streams.world import World
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.running.failures.failure import described
from intersession_actors.running.host.calls import Inside
from intersession_events.basics import ids
from intersession_events.facts import Attachments, Route, SpawnAccepted, ThreadAsked
from intersession_events.log.log import ActorsLog


def prepare(
    world: World, accepted: SpawnAccepted, done: Callable[[Prepared], None], *, inside: Inside, again: bool
) -> None:
    """Put the files in place, then have the thread opened. `again`: a crash may have interrupted this.

    What the channel's code does when it is asked for a thread goes on with the spawn's chain, which it is called `inside`.
    A thread that this process is asking for right now is not asked for again: its answer comes by the first call.
    In a fork the files of the log that it was made of stay where they are, and a sealed channel is asked for nothing.
    """
    stream = ids.spawn_stream(accepted.spawn_id)
    attachments = accepted.attachments
    withheld = attachments is not None and (attachments.withheld or not is_own(world.log, accepted))

    def claimed(result: str | Exception | None) -> None:
        if isinstance(result, Exception):
            done(Prepared(stream=stream, refused=_refused(result)))
            return
        ready = Prepared(stream=stream, manifest_sha256=result, files_withheld=withheld)
        thread = accepted.thread
        if thread is None:
            done(ready)
        elif not isinstance(asked := world.channels.threads.of(thread.key, 1), CallState):
            done(_with_thread(ready, thread, asked))
        elif asked is CallState.UNDER_WAY:
            pass
        elif again and asked is CallState.NEVER and not _can_be_asked_again(world, thread.channel):
            error = (
                "thread: the channel may have opened one before a crash and can't be asked twice, spawn again"
            )
            done(Prepared(stream=stream, refused=Refused(code="no_threads", error=error)))
        else:
            wanted = msgspec.convert(thread, ThreadWanted, from_attributes=True)
            world.channels.open_thread(
                thread.channel,
                wanted,
                lambda opened: done(_with_thread(ready, thread, opened)),
                inside=inside,
                stream=stream,
            )

    if attachments is None:
        claimed(None)
        return
    place = place_of(world.log.log_id, accepted.spawn_id, attachments)
    world.mail.on_disk(
        lambda: manifest_sha256(attachments) if withheld else claim_files(place, attachments), claimed
    )


def is_own(log: ActorsLog, accepted: SpawnAccepted) -> bool:
    """Whether a spawn began in this log: a fork has spawns of its source, whose files belong to that."""
    return log.forked is None or ids.derive(log.log_id, "spawn", accepted.run_id) == accepted.spawn_id


def remove_files(
    world: World, spawn_id: str, attachments: Attachments, done: Callable[[FilesRemoved], None]
) -> None:
    """Remove a child's files, once; a failure is reported and hides nothing else (ATT-5)."""
    stream = ids.spawn_stream(spawn_id)
    place = place_of(world.log.log_id, spawn_id, attachments)

    def removed(result: Exception | None) -> None:
        done(FilesRemoved(stream=stream, error=None if result is None else described(result)))

    world.mail.on_disk(lambda: remove_claimed(place, attachments.directory), removed)


def place_of(log_id: str, spawn_id: str, attachments: Attachments) -> Place:
    """Return where a spawn's files are."""
    return Place(root=attachments.root, log_id=log_id, spawn_id=spawn_id)


def _can_be_asked_again(world: World, channel: str) -> bool:
    return world.channels.idempotent(channel) or world.fork.sealed(channel)


def _with_thread(ready: Prepared, asked: ThreadAsked, result: ThreadOpened | NotDelivered) -> Prepared:
    match result:
        case ThreadOpened(thread=thread, withheld=withheld):
            route = Route(channel=asked.channel, to=asked.to, account=asked.account, thread=thread)
            return msgspec.structs.replace(ready, thread=route, thread_withheld=withheld)
        case NotDelivered(error=error):
            why = f"thread: none was opened ({error}), spawn without one"
            return Prepared(stream=ready.stream, refused=Refused(code="no_threads", error=why))


def _refused(error: Exception) -> Refused:
    """Return why there is no child. It is final: `unavailable` would have the caller try the same key for ever."""
    if isinstance(error, ToolRefused) and error.code != "unavailable":
        return Refused(code=error.code, error=error.error)
    said = error.error if isinstance(error, ToolRefused) else f"attachments: {described(error)}"
    why = said.removesuffix(" and try again")
    return Refused(
        code="not_started", error=f"{why}; this spawn is over, begin another with a key of its own"
    )
