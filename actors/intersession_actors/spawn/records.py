"""What the record of a spawn's decision says of its command and of what was known, and how both are read again. Pure."""

from msgspec.structs import asdict

from intersession_actors.policy import age_s, time_at_age
from intersession_actors.spawn.commands import ArchiveDue, FilesRemoved, Prepared, SpawnCommand
from intersession_actors.spawn.rules import Circumstances
from intersession_actors.streams import (
    ChildGone,
    Record,
    Refused,
    Words,
    digest_of,
    present,
    refused_in,
    refused_of,
    spent_in,
    spent_of,
)
from intersession_events import facts
from intersession_events.plain_json import JsonMapping, JsonObject


def inputs_of(command: SpawnCommand) -> JsonObject:
    """Return what a record says of a command beside its name: nothing, where events say it."""
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
            return {"code": refused.code, "error": digest_of(refused.error)}
        case FilesRemoved():
            return present({"error": command.error})
        case _:
            return {}


def knew_of(now: Circumstances) -> JsonObject:
    """Return what a record says of circumstances: what is not as it nearly always is."""
    return present(
        {
            "age": age_s(now.budget, now.now_ms) if now.now_ms else 0,
            "hasRoute": now.has_route,
            "refused": refused_of(now.refused),
            "spent": spent_of(now.spent),
            "transcriptPath": now.transcript_path,
        }
    )


def command_in(
    record: Record, stream: str, words: Words
) -> Prepared | FilesRemoved | ChildGone | ArchiveDue | None:
    """Return the command of a record, where the record says all of it; None where events do."""
    inputs = record.inputs
    match record.asked:
        case "Prepared" if "code" in inputs:
            refused = Refused(code=inputs["code"], error=words(inputs["error"]))
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
        case "ArchiveDue":
            return ArchiveDue(stream=stream)
        case _:
            return None


def circumstances_in(
    record: Record, budget: facts.Budget, *, log_id: str, stream: str, words: Words
) -> Circumstances:
    """Return the circumstances that a record tells of; `budget` is the chain's."""
    knew = record.knew
    return Circumstances(
        log_id=log_id,
        now_ms=time_at_age(budget, knew.get("age", 0)),
        has_route=knew.get("hasRoute", False),
        budget=budget,
        spent=spent_in(knew),
        transcript_path=knew.get("transcriptPath"),
        refused=refused_in(knew, stream, words),
    )
