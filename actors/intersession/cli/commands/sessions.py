"""`intersession sessions` and `history`: the sessions of a log, and the transcript of one."""

from typing import Annotated

from cyclopts import Parameter

from intersession.cli.host.reading import acting_as, reader_of
from intersession.cli.shell.answer import READING, ActingAs, Answer, AsOf, Cursor, Reading, UsageError
from intersession.cli.shell.terminal import Screen, safe
from intersession.cli.shell.times import moment
from intersession.cli.story.printing import show_message
from intersession.cli.story.unknown import tell_unknown, unknown_names
from intersession_actors.calls.service.reader import Reader
from intersession_actors.calls.service.resolve import resolve_target
from intersession_actors.calls.tools.sessions_history import read_history
from intersession_actors.calls.tools.sessions_list import list_sessions
from intersession_actors.hindsight.debugger.named import as_key
from intersession_actors.rules.errors import ToolRefused
from intersession_events.basics.keys.key import Kind
from intersession_events.basics.plain_json import JsonMapping, JsonObject
from intersession_events.facts import Message, raw_message
from intersession_events.facts.reasons import counted


def sessions(
    *,
    kind: Annotated[tuple[Kind, ...], Parameter(help="Only this kind; may be given several times.")] = (),
    limit: Annotated[int | None, Parameter(help="At most this many, 1 to 200. Default: 50.")] = None,
    active_minutes: Annotated[
        float | None, Parameter(help="Only what was updated in this many minutes up to the time asked for.")
    ] = None,
    search: Annotated[str | None, Parameter(help="A part of the key, label or name, in any case.")] = None,
    label: Annotated[str | None, Parameter(help="Only sessions with exactly this label.")] = None,
    agent: Annotated[str | None, Parameter(help="Only sessions of this agent.")] = None,
    messages: Annotated[int, Parameter(help="Show the last messages of each, 0 to 20.")] = 0,
    as_of: AsOf = None,
    cursor: Cursor = None,
    acting: ActingAs = None,
    reading: Reading = READING,
) -> Answer:
    """List the sessions of a log, most recently active first.

    The list is what `sessions_list` answers: of the operator, who sees all, or with --as of a session.
    """
    arguments = {
        "kinds": list(kind) or None,
        "limit": limit,
        "activeMinutes": active_minutes,
        "messageLimit": messages,
        "search": search,
        "label": label,
        "agentId": agent,
        "asOf": as_of,
        "cursor": cursor,
    }
    with reader_of(reading) as reader:
        found, _ = list_sessions(reader, acting_as(reader, acting), arguments)
        named = {"--agent": agent, "--label": label}
        # A caller that acts as a session hears of no name that it does not see.
        unknown = [] if found["count"] or acting is not None else unknown_names(reader, named)
    if unknown:
        found["unknown"] = [each.as_value() for each in unknown]

    def told(screen: Screen) -> None:
        _show(screen, found)
        tell_unknown(screen, unknown)
        if "note" in found and not unknown:
            screen.note(f"note: {found['note']}")

    return Answer(found, told)


def _show(screen: Screen, found: JsonMapping) -> None:
    rows: list[JsonObject] = found["sessions"]
    if any("messages" in row for row in rows):
        for row in rows:
            screen.line(safe(row["key"], "bold"), "  ", safe(_about(row), "dim"))
            for message in row["messages"]:
                show_message(screen, message, indent=2)
            screen.line()
    elif rows:
        screen.table(
            ["key", "kind", "channel", "updated (UTC)", "state", "about"],
            [
                (
                    row["key"],
                    row["kind"],
                    str(row.get("channel", row.get("provider", ""))),
                    _updated(row),
                    row["runState"],
                    _names(row),
                )
                for row in rows
            ],
        )
    count = counted(found["count"], "session") if rows else "no sessions"
    screen.dim(f"{count} as of position {found['asOf']}")
    screen.tell_limit(found, "limitApplied", "--limit")
    screen.tell_limit(found, "messageLimitApplied", "--messages")
    screen.more(found.get("nextCursor"))


def _updated(row: JsonMapping) -> str:
    """Return when a session was written to last; an import may not show it."""
    return moment(row["updatedAt"]) if row["updatedAt"] else "not recorded"


def _about(row: JsonMapping) -> str:
    parts = (row["kind"], _updated(row), row["runState"], _names(row))
    return "  ".join(part for part in parts if part)


def _names(row: JsonMapping) -> str:
    """Return what else is worth knowing of a row, in words."""
    route = row.get("deliveryContext", {})
    parts = [
        row.get("displayName"),
        row.get("label"),
        f"talks to {route['channel']}:{route['to']}" if route else None,
        f"spawned by {row['spawnedBy']}" if "spawnedBy" in row else None,
        f"send policy {row['sendPolicy']}" if "sendPolicy" in row else None,
        "last run aborted" if row["abortedLastRun"] else None,
    ]
    return ", ".join(part for part in parts if part)


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
    return Answer(found, lambda screen: _show_history(screen, found))


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


def _show_history(screen: Screen, found: JsonMapping) -> None:
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
    screen.dim("; ".join(notes))
    screen.tell_limit(found, "limitApplied", "--limit (without --raw)")
    if "before" in found:
        screen.to_copy(safe(f"older: --before {found['before']}", "dim"))
