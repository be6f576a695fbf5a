"""The commands that remove words from a log for good: `erase` those of a session, `forget` those of a person."""

from typing import Final

from intersession.cli.changes.sessions import changed
from intersession.cli.shell.answer import READING, Answer, Reading, UsageError
from intersession_actors.calls.service.reader import Reader
from intersession_actors.hindsight.debugger.named import session_named
from intersession_events.basics.plain_json import JsonMapping, JsonObject
from intersession_events.facts.reasons import counted


def erase(
    session: str,
    /,
    *,
    message: list[str] | None = None,
    reason: str = "",
    give_up_unsent: bool = False,
    dry_run: bool = False,
    yes: bool = False,
    reading: Reading = READING,
) -> Answer:
    """Erase what was said in a session from the log, for good.

    The copies of it in other sessions and in forks, too. That it was erased stays provable.

    Args:
        session: The session, also an archived one: its key, its short name, or a session id.
        message: The id of a message, to erase that alone; may be given several times.
        reason: Why; it is recorded with the erasure.
        give_up_unsent: Give up texts of it that are still to be delivered; else they keep it from being erased.
        dry_run: Only count what would be erased, and name what would not be reached.
        yes: Really do it: what is erased can't be had back.
    """
    _check_meant(yes=yes, dry_run=dry_run)

    def params(reader: Reader) -> JsonObject:
        return {
            "key": session_named(reader, session, field="session", by_label=False),
            "messageIds": message or [],
            "reason": reason,
            "unsent": "giveUp" if give_up_unsent else "refuse",
            "dryRun": dry_run,
        }

    return changed(reading, "sessions.erase", params, lambda answer: _told(answer, answer["key"]))


def forget(
    *,
    person: str | None = None,
    retention: bool = False,
    reason: str = "",
    mentions: bool = False,
    give_up_unsent: bool = False,
    dry_run: bool = False,
    yes: bool = False,
    reading: Reading = READING,
) -> Answer:
    """Erase what a person said and was told from the log, for good.

    Of a person: all of their direct chats; elsewhere what they said, and all that came of it: answers, tool calls,
    sub-agents, copies. With --retention: what is older than the settings allow.

    Args:
        person: The person's address, as channel:id.
        retention: Erase what is too old by the rules of the configuration (retention), without waiting for the daily pass.
        reason: Why; it is recorded with the erasure of a person.
        mentions: Erase also what others said, where it names the person; else the places are named.
        give_up_unsent: Give up texts that are still to be delivered; else they keep it all from being erased.
        dry_run: Only count what would be erased, and name what would not be reached.
        yes: Really do it: what is erased can't be had back.
    """
    if retention is (person is not None):
        raise UsageError("say what is to be forgotten: --person CHANNEL:ID, or --retention")
    if retention and (reason or mentions or give_up_unsent):
        raise UsageError("--reason, --mentions and --give-up-unsent are for --person, leave them out")
    _check_meant(yes=yes, dry_run=dry_run)
    if retention:
        given: JsonObject = {"dryRun": dry_run}
        return changed(reading, "retention.apply", lambda _: given, lambda answer: _told(answer, "the log"))
    asked: JsonObject = {
        "person": person,
        "reason": reason,
        "mentions": mentions,
        "unsent": "giveUp" if give_up_unsent else "refuse",
        "dryRun": dry_run,
    }
    return changed(reading, "people.forget", lambda _: asked, lambda answer: _told(answer, answer["person"]))


def _check_meant(*, yes: bool, dry_run: bool) -> None:
    if not (yes or dry_run):
        raise UsageError(
            "what is erased can't be had back: look with --dry-run, and say --yes if you mean it"
        )


def _told(answer: JsonMapping, whose: str) -> list[str]:
    be = "would be" if answer["dryRun"] else "is" if answer["erased"] == 1 else "are"
    events, streams = counted(answer["erased"], "event"), counted(len(answer["streams"]), "stream")
    lines = [f"{events} in {streams} of {whose} {be} erased"]
    lines += [
        f"  {count:>6} {_NAMES.get(name, (name, name))[count != 1]}"
        for name, count in answer["counts"].items()
        if count
    ]
    lines += [f"  {number:>6} by {rule}" for rule, number in answer.get("rules", {}).items()]
    if answer["waiting"]:
        some, more = answer["waiting"][:_NAMED], len(answer["waiting"]) - _NAMED
        rest = f" and {more} more (--json)" if more > 0 else ""
        lines.append(f"Still under way, to be ended first: {', '.join(some)}{rest}")
    if answer["notReached"]:
        lines.append("Not reached:")
    lines += [f"  {said}" for said in answer["notReached"]]
    return lines


_NAMED: Final = 5
"""How many flows are named that have to end first."""
_NAMES: Final = {
    "sessions": ("session", "sessions"),
    "messages": ("message", "messages"),
    "deliveries": ("delivery", "deliveries"),
    "toolResults": ("result of a tool", "results of tools"),
    "thinking": ("thought of a model, whose answer stays", "thoughts of models, whose answers stay"),
    "receipts": ("receipt of a question", "receipts of questions"),
    "imported": ("imported line", "imported lines"),
    "other": (
        "other event (start, error, step of an exchange)",
        "other events (starts, errors, steps of exchanges)",
    ),
    "copies": ("of these is a copy elsewhere", "of these are copies elsewhere"),
    "files": ("file", "files"),
    "attachments": ("directory of attachments", "directories of attachments"),
    "forks": ("fork", "forks"),
    "keys": ("key, without which backups forget it, too", "keys, without which backups forget it, too"),
}
"""What each count is of: of one, and of more."""
