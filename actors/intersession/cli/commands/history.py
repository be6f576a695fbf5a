"""`intersession history`: the transcript of one session."""

from typing import Annotated

from cyclopts import Parameter

from intersession.cli.host import acting_as, reader_of
from intersession.cli.shell import READING, ActingAs, Answer, AsOf, Reading, Screen, UsageError, safe
from intersession.cli.story import show_message
from intersession_actors.debugger import as_key
from intersession_actors.errors import ToolRefused
from intersession_actors.service import Reader, resolve_target
from intersession_actors.tools import read_history
from intersession_events.facts import Message, raw_message
from intersession_events.plain_json import JsonMapping, JsonObject


def history(
    session: Annotated[str, Parameter(help="The session: its key in any form, or a session id.")],
    /,
    *,
    limit: Annotated[
        int | None, Parameter(help="At most this many messages, 1 to 1000. Default: 200.")
    ] = None,
    before: Annotated[str | None, Parameter(help="Only messages before the one with this id.")] = None,
    as_of: AsOf = None,
    tools: Annotated[bool, Parameter(help="Also what tools gave.")] = False,
    raw: Annotated[
        bool, Parameter(help="Uncut, exactly as recorded, tools too; any --limit. The operator's alone.")
    ] = False,
    acting: ActingAs = None,
    reading: Reading = READING,
) -> Answer:
    """Print the transcript of a session, oldest first.

    It is what `sessions_history` answers: long texts are cut, and with --as secrets of others are hidden.
    """
    if raw and acting is not None:
        raise UsageError("--raw: only the operator reads uncut, leave out --raw or --as")
    if raw and limit is not None and limit < 1:
        raise UsageError(f"--limit: {limit} is below 1, give how many messages, or leave it out for all")
    with reader_of(reading) as reader:
        session = as_key(reader, session)
        if raw:
            found = _uncut(reader, session, limit=limit, before=before, as_of=as_of)
        else:
            arguments = {
                "sessionKey": session,
                "limit": limit,
                "includeTools": tools,
                "asOf": as_of,
                "before": before,
            }
            found, _ = read_history(reader, acting_as(reader, acting), arguments)
    return Answer(found, lambda screen: _show(screen, found))


def _uncut(
    reader: Reader, session: str, *, limit: int | None, before: str | None, as_of: str | None
) -> JsonObject:
    position = reader.log.head() if as_of is None else reader.place(as_of).position
    target = resolve_target(reader, reader.requester(None), session, "history", as_of=position)
    if target.row is None or target.session_id is None:
        raise ToolRefused("not_visible", f"sessionKey: session not visible: {session}")
    wanted = None if before is not None else limit
    messages = reader.history.operator_messages(
        target.row.key, target.session_id, as_of=position, limit=wanted
    )
    if before is not None:
        messages = _up_to(messages, before)[-limit if limit else 0 :]
    return {
        "sessionKey": target.shown,
        "sessionId": target.session_id,
        "messages": [raw_message(message) for message in messages],
        "position": position,
    }


def _up_to(messages: list[Message], before: str) -> list[Message]:
    for index, message in enumerate(messages):
        if message.id == before:
            return messages[:index]
    raise ToolRefused("invalid_request", f"before: no message {before!a} in this session, give the id of one")


def _show(screen: Screen, found: JsonMapping) -> None:
    messages: list[JsonObject] = found["messages"]
    for message in messages:
        show_message(screen, message)
    notes = [f"{len(messages)} messages of {found['sessionKey']} as of position {found['position']}"]
    if found.get("droppedMessages"):
        notes.append(f"{found['droppedMessages']} older ones left out for their size")
    if found.get("contentTruncated"):
        notes.append("long texts were cut (--raw shows all)")
    if found.get("contentRedacted"):
        notes.append("secrets were hidden")
    screen.line(safe("; ".join(notes), "dim"))
    screen.tell_limit(found, "limitApplied", "--limit (without --raw)")
    if "before" in found:
        screen.to_copy(safe(f"older: --before {found['before']}", "dim"))
