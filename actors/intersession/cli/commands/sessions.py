"""`intersession sessions`: the sessions of a log, most recently active first."""

from typing import Annotated

from cyclopts import Parameter

from intersession.cli.host import acting_as, reader_of
from intersession.cli.shell import READING, ActingAs, Answer, AsOf, Cursor, Reading, Screen, moment, safe
from intersession.cli.story import show_message, tell_unknown, unknown_names
from intersession_actors.tools import list_sessions
from intersession_events.keys import Kind
from intersession_events.plain_json import JsonMapping, JsonObject
from intersession_projections.wording import counted


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
        # Who acts as a session hears of no name that it does not see.
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
    screen.line(safe(f"{count} as of position {found['asOf']}", "dim"))
    screen.tell_limit(found, "limitApplied", "--limit")
    screen.tell_limit(found, "messageLimitApplied", "--messages")
    if "nextCursor" in found:
        screen.to_copy(safe(f"more: --cursor {found['nextCursor']}", "dim"))


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
