"""Decision records of spawns: how commands and circumstances are written, and read again. Pure."""

from typing import Final

from msgspec.structs import asdict

from intersession_actors.owners.flows import led
from intersession_actors.owners.flows.rules import RecordRead, Rules
from intersession_actors.owners.spawn.commands import (
    ArchiveDue,
    ClaimResult,
    FilesRemoved,
    Prepared,
    SpawnCommand,
)
from intersession_actors.owners.spawn.effects import effects
from intersession_actors.owners.spawn.rules import Circumstances, Spawn, decide, fold
from intersession_actors.owners.streams.commands import ChildGone, Refused, RunEnded
from intersession_actors.owners.streams.records import Wording, present
from intersession_events import facts
from intersession_events.basics.plain_json import JsonMapping, JsonObject


def inputs_of(command: SpawnCommand) -> JsonObject:
    """Return a command's fields in a record, beside its name: none that events tell."""
    match command:
        case Prepared(refused=None):
            return present(
                {
                    "filesWithheld": command.files_withheld,
                    "manifestSha256": command.manifest_sha256,
                    "thread": None if command.thread is None else present(asdict(command.thread)),
                    "threadWithheld": command.thread_withheld,
                }
            )
        case Prepared(refused=Refused() as refused):
            return {"code": refused.code, "error": Wording(refused.error)}
        case RunEnded(thread=facts.Route() as thread):
            return {"thread": present(asdict(thread))}
        case FilesRemoved():
            return present({"error": command.error})
        case ClaimResult():
            return {"runId": command.run_id, "by": command.by}
        case _:
            return {}


def knew_of(state: Spawn, now: Circumstances) -> JsonObject:
    """Return the circumstances in a record: only values that differ from the usual ones."""
    return present(led.knew_of(state.budget, now) | {"transcriptPath": now.transcript_path})


def command_in(read: RecordRead) -> Prepared | FilesRemoved | ChildGone | ArchiveDue | ClaimResult | None:
    """Return the command of a record that is complete by itself; None if events tell it."""
    stream, inputs = read.stream, read.record.inputs
    match read.record.asked:
        case "Prepared" if "code" in inputs:
            refused = Refused(code=inputs["code"], error=read.words(inputs["error"]))
            return Prepared(stream=stream, refused=refused)
        case "Prepared":
            thread: JsonMapping | None = inputs.get("thread")
            return Prepared(
                stream=stream,
                manifest_sha256=inputs.get("manifestSha256"),
                files_withheld=inputs.get("filesWithheld", False),
                thread=None if thread is None else facts.Route(**thread),
                thread_withheld=inputs.get("threadWithheld", False),
            )
        case "FilesRemoved":
            return FilesRemoved(stream=stream, error=inputs.get("error"))
        case "ChildGone":
            return ChildGone(stream=stream)
        case "ClaimResult":
            return ClaimResult(stream=stream, run_id=inputs["runId"], by=inputs["by"])
        case "ArchiveDue":
            return ArchiveDue(stream=stream)
        case _:
            return None


def circumstances_in(read: RecordRead, state: Spawn) -> Circumstances:
    """Return the circumstances from a record."""
    alike = led.circumstances_in(read, state.budget)
    return Circumstances(**asdict(alike), transcript_path=read.record.knew.get("transcriptPath"))


RULES: Final = Rules[Spawn, SpawnCommand, Circumstances](
    commands=SpawnCommand,
    events=facts.SpawnEvent,
    begins=facts.SpawnAccepted,
    fold=fold,
    decide=decide,
    effects=effects,
    inputs_of=inputs_of,
    knew_of=knew_of,
    command_in=command_in,
    circumstances_in=circumstances_in,
)
