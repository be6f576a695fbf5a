"""The catalogue of events, made from the vocabulary itself.

    python tests/support/pages/events_catalogue.py            prints what would be written
    python tests/support/pages/events_catalogue.py --write    writes docs/events.md

What the page says of "since" is kept: an event or a field that is new on the page has been there since this version.
"""

import inspect
import json
import re
import sys
import tomllib
import types
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # as a script, it is not found otherwise

from intersession_events.facts import (
    TOPICS,
    Fact,
    Remark,
    Said,
    Source,
    Whole,
    access,
    delivery,
    exchange,
    log,
    message,
    parts,
    run,
    schedule,
    session,
    spawn,
)
from support.pages.prose import wrapped

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "events.md"
COMMAND = "python tests/support/pages/events_catalogue.py --write"

# Vocabulary, heading, the streams its events are in.
STREAMS: tuple[tuple[types.ModuleType, object, str, str], ...] = (
    (session, session.SessionEvent, "Sessions", "`session:<key>`"),
    (run, run.RunEvent, "Runs", "`session:<key>`"),
    (exchange, exchange.ExchangeEvent, "Exchanges", "`exchange:<id>`"),
    (spawn, spawn.SpawnEvent, "Spawns", "`spawn:<id>`"),
    (delivery, delivery.DeliveryEvent, "Deliveries", "`delivery:<id>`"),
    (
        access,
        access.AccessEvent,
        "Access",
        "`access:<requester key>`, `access:operator`, `access:credential:<name>`",
    ),
    (schedule, schedule.ScheduleEvent, "Schedules", "`schedule:<job id>`"),
    (log, log.SystemEvent, "The log", "`log`, `clock`, `import:<id>`, `inbound:<id>`"),
)
STREAM_OF: Mapping[type, str] = {
    log.LogOpened: "`log`",
    log.ClockStepped: "`clock`",
    log.ConfigLoaded: "`log`",
    log.CheckpointTaken: "`log`",
    log.CheckpointPublished: "`log`",
    log.ImportReported: "`import:<id>`",
    log.InboundTaken: "`inbound:<id>`",
    log.NotePinned: "`notes:<run>`",
    log.Erased: "`erased:<stream>`",
    log.ForkedFrom: "`log`",
    log.ForkEdited: "`log`",
    log.RecordingLeft: "`log`",
}

HEAD = f"""# Events

Made by `{COMMAND}` from the vocabulary; not to be edited, save the versions under "since".

What can have happened. An event is stored under a topic, `<name>.<version>`, that is frozen for ever and says nothing of where a
class lives; a topic that is not in this list is a typed error on reading, never an import.

The stored payload is canonical JSON (RFC 8785) with the names below. A field of which nothing else is said is a text. A field
with `?` may be left out: it then has the value after `=`, else none, 0, false or nothing in it. Times are milliseconds since 1970 in
UTC, lengths of time are milliseconds, money is millionths; no number is a fraction or above 2^53. JSON that is not ours (tool arguments, unknown fields
of an import) is a text: its source. Ids are UUIDs; most are derived (UUIDv5), so that doing a step again can't do it twice.

What one decision says of one stream is one event. What follows in an event of an exchange or a spawn, such as the next turn after
the end of a turn, is in its `then`, and an event of its own only where nothing else begins the decision, and in what an import
infers.

The envelope around a payload, and how to hash both again: [read the log with sqlite3 and jq](howto/read-the-log.md).

| each event also has | |
| --- | --- |
| `position` | its place in the whole log, from 1; the row's `rowid` |
| stream, version | its stream (`originator_id`) and its place in it, from 1 (`originator_version`) |
| `id`, `time` | its own UUID, and when it was recorded |
| `causation`, `correlation` | the id of the event that led to it; the run that the whole chain began with |
| `decision` | the decision record: what the decision that led to the append was asked, and what it knew; empty for none |
| `epoch` | which writer: the number goes up each time a process takes the log |
| `prev`, `digest`, `hash`, `salt` | the chain, see [reliability](reliability.md) |

## Decision records

What a decision of a session, an exchange, a spawn, a delivery or a schedule led to has its record at the first event of the append:
canonical JSON, in which is left out what is nothing, false or zero. What a door judged has its record at the receipt of
the call, at the event of a guard's refusal, and at the answer that a tool gave an agent.

| field | says |
| --- | --- |
| `asked` | the command that was decided upon, by its name |
| `with` | the command's inputs, as far as no event says them: what was said and done stands in the events of the append, and how a run or a delivery ended in the one that `causation` names |
| `knew` | what the decision knew of the world |

No record holds words, for no erasure reaches it. Where a command or the world brought words, they stand in an event of
the append, and the record has their SHA-256.

| in `knew` | of | says |
| --- | --- | --- |
| `nowMs` | sessions | the clock, where a deadline or the time of a message is reckoned from it |
| `spent` | sessions | what the chain of a run that is started had used, where that is limited |
| `withheld` | sessions | how many tools there was no room for |
| `retries`, `notCalled` | sessions | how often an attempt that was cut off may be made again; that its agent had not been called |
| `ageMs` | sessions | for how long the attempt of a sub-agent had gone on that a start found |
| `failureText` | sessions | what a person is told whose message found no answer (its SHA-256) |
| `threadLeft` | sessions | for how long a bound thread was still the session's: `ms`, and `why` no longer |
| `age` | exchanges, spawns | for how many seconds the causal chain had gone on, holds left out; only where that is limited |
| `spent` | exchanges, spawns | what the chain had used: `runs`, `tokens`, `costMicros` |
| `hasRoute` | exchanges, spawns | that there was somewhere to announce to |
| `refused` | exchanges, spawns | steps that a session would not take, by the run that they would have queued: `code`, `error` (its SHA-256) |
| `noAgent` | exchanges | that no agent ran the requester's session here |
| `gone` | exchanges | which of the two sessions had been reset or deleted |
| `orders` | exchanges | who wanted texts held, beside the exchange's own settings |
| `heldMs`, `wallMs` | exchanges | how long the hold had lasted that is let go on; the time that a hold begins with |
| `transcriptPath` | spawns | where the child's transcript is mirrored |
| `sealed`, `noChannel` | deliveries | that the channel is one of a fork; that nobody delivers for it here |
| `tooOldS` | deliveries | how old a text may get, in seconds, where this one was older |
| `cutOff`, `idempotent` | deliveries | that nobody made the attempt any more; that the channel takes the same key twice |
| `nowMs` | deliveries | when an attempt came back that may be made again |
| `nowMs`, `catchUp`, `busy` | schedules | the clock; what becomes of missed times; that the last run was not over |
| `door` | exchanges, spawns | the judgements by which a door let the call in, as below; `age` is in that of the chain |

A judgement at a door leaves out each field that has its usual value, and each that its event says (the caller, the tool,
the target as it was given, the chain). It has no label and no text of the caller. A list of the settings that takes more
than 80 bytes is there by the SHA-256 of its canonical JSON; a `ConfigLoaded` of the log has it. At a tool's answer, and at
the denial of a delivery, it stands in `with`, as `judged`.

| `asked` | `with` | `knew` |
| --- | --- | --- |
| `SeeSession` | `operation`, `key` (what was resolved, null for nothing), `byKey`, `other` (not the caller's own) | the caller: `requester`, `agentId`, `sandboxed`, `within` (the globs of its credential); the settings: `visibility`, `agentToAgent`, `allow`, `sandboxedSee`; the session: `exists`, `earlier` (a generation that is over), `inTree` (the caller spawned it), `labelled` (how many have the label) |
| `ListSessions` | `operation` | the same of the caller and the settings |
| `Speak` | `key` | the session: `channel`, `chatType`, `override`; the policy: `default`, `rules` |
| `CarryOn` | `target`, `runs` (a run is asked for) | the chain: `path`, `hops`, `spent`, `age`; its `limits` |
| `Spend` | `target` | `counted`: the limits that hold, each with `setting`, `of` (whose), `allowed`, `used` |
| `WaitFor` | `requester`, `target` | `waits`: who waited for whom |
| `StartSubagent` | `agentId`, `sandbox`, `mode`, `thread`, `cleanup`, `context` | the caller: `requester`, `own` (its agent), `sandboxed`, `spawnDepth`, `within`, `running` (its sub-agents at work); the settings: `maxSpawnDepth`, `maxChildren`, `requireAgentId`, `allow`, `ownSandboxed`; what is asked for: `configured`, `childSandboxed`, `noModel`, `noThinking`, `closed` (what keeps the transcript from that agent) |
| `UseTool` | `tool` | the session: `subagent`, `spawnDepth`; the settings: `everyone`, `own`, `sandbox`, `ownSandbox`, `provider` (of its model), `sender` (of the person whose message led to it), `subagents`, `withheld`, `deepest`; `missing` (there is no such tool) |
"""


KINDS: Mapping[object, str] = {
    value: name
    for module in (message, session, run, parts, exchange, spawn, delivery, access, log)
    for name, value in vars(module).items()
    if typing.get_origin(value) is typing.Literal
}
"""The kinds of fields that hold one of a few words, by their names in the vocabulary."""


class Since(typing.NamedTuple):
    """What the page says of the versions in which topics and their fields came."""

    topics: Mapping[str, str]
    fields: Mapping[tuple[str, str], str]


def since_of(text: str) -> Since:
    """Read the versions back from a page."""
    topics: dict[str, str] = {}
    fields: dict[tuple[str, str], str] = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if len(cells) >= 3 and (topic := re.search(r"`(\w+\.\d+)`", cells[0])):
            topics[topic[1]] = cells[-1]
            for name, given in re.findall(r"(?:^|; )`(\w+)\??`(?: \(since ([\w.]+)\))?", cells[-2]):
                fields[topic[1], name] = given or cells[-1]
    return Since(topics, fields)


def version() -> str:
    """Return the version of this project."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["version"])


def page(before: str) -> str:
    """Return docs/events.md, given what it was."""
    since, now = since_of(before), version()
    lines = [HEAD]
    listed: set[str] = set()
    for module, union, title, streams in STREAMS:
        several = any(event in STREAM_OF for event in typing.get_args(union))
        about = (module.__doc__ or "").split("\n", 1)[0]
        lines += [
            f"## {title}",
            "",
            about if several or streams in about else f"{about} Stream {streams}.",
            "",
        ]
        lines += ["| event | stream | fields | since |" if several else "| event | fields | since |"]
        lines += ["| --- | --- | --- | --- |" if several else "| --- | --- | --- |"]
        notes: list[str] = []
        for event in typing.get_args(union):
            topic = next(name for name, cls in TOPICS.items() if cls is event)
            stream = f" {STREAM_OF.get(event, streams)} |" if several else ""
            if topic in listed:
                lines.append(f"| {event.__name__} |{stream} as above | |")
                continue
            listed.add(topic)
            came = since.topics.get(topic, now)
            fields = "; ".join(_fields(event, topic, came, since, now)) or "none"
            lines.append(f"| {event.__name__} `{topic}` |{stream} {fields} | {came} |")
            notes.append(f"- **{event.__name__}**: {_said(event)}")
        lines += ["", *notes, ""]
    lines += ["## Parts", "", "What events are made of.", "", "| part | fields |", "| --- | --- |"]
    parts = list(_parts())
    for part in parts:
        fields = "; ".join(f"{_name(each)}{_holds(each)}" for each in _of(part))
        lines.append(f"| {part.__name__} | {fields} |")
    lines += ["", *(f"- **{part.__name__}**: {_said(part)}" for part in parts), ""]
    lines += [
        "## Values",
        "",
        "What a field of such a kind can hold.",
        "",
        "| kind | values |",
        "| --- | --- |",
    ]
    lines += [
        f"| {name} | {_values(values)} |" for values, name in sorted(KINDS.items(), key=lambda each: each[1])
    ]
    lines.append("")
    return wrapped("\n".join(lines))


def current_page() -> str:
    """Return docs/events.md as it should be now."""
    return page(PAGE.read_text(encoding="utf-8") if PAGE.exists() else "")


def _of(shape: type) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(shape)


def _fields(event: type, topic: str, came: str, since: Since, now: str) -> Iterator[str]:
    known = topic in since.topics
    for each in _of(event):
        given = since.fields.get((topic, each.encode_name), now if known else came)
        later = f" (since {given})" if given != came else ""
        yield f"{_name(each)}{later}{_holds(each)}"


def _name(field: msgspec.structs.FieldInfo) -> str:
    required = field.default is msgspec.NODEFAULT and field.default_factory is msgspec.NODEFAULT
    return f"`{field.encode_name}`" if required else f"`{field.encode_name}?`"


def _kind(hint: object) -> str:
    """Say in a word what a field holds."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return KINDS.get(hint) or _values(hint)
    if origin in {typing.Union, types.UnionType}:
        return " or ".join(_kind(each) for each in arguments if each is not types.NoneType)
    if origin is tuple:
        if Ellipsis in arguments:
            return f"list of {_kind(arguments[0])}"
        kinds = list(map(_kind, arguments))
        return f"pair of {kinds[0]}" if kinds == kinds[:1] * 2 else f"({', '.join(kinds)})"
    if origin is dict:
        return "map of text"
    return {str: "text", Said: "text", Remark: "text", Source: "text", Whole: "integer", bool: "boolean"}.get(
        typing.cast("type", hint)
    ) or str(getattr(hint, "__name__", hint))


def _holds(field: msgspec.structs.FieldInfo) -> str:
    """Say what a field holds, unless that is a text, and its default."""
    kind = _kind(field.type)
    return f"{'' if kind == 'text' else f' {kind}'}{_default(field)}"


def _values(hint: object) -> str:
    return ", ".join(f'"{value}"' for value in typing.get_args(hint))


def _default(field: msgspec.structs.FieldInfo) -> str:
    """Say which value a field has that is not there, where it is no plain nothing."""
    match field.default:
        case _ if field.default is msgspec.NODEFAULT and types.NoneType in typing.get_args(field.type):
            return " or null"
        case bool() | int() | str() as value if value:
            return f" = {json.dumps(value)}"
        case _:
            return ""


def _said(shape: type) -> str:
    """Return the docstring in one line, with the names that fields have on disk."""
    stored = {each.name: each.encode_name for each in _of(shape)}
    text = " ".join((inspect.getdoc(shape) or "").split())
    return re.sub(r"`(\w+)`", lambda name: f"`{stored.get(name[1], name[1])}`", text)


def _parts() -> Iterator[type[Fact]]:
    """Yield the shapes that are no events, in the order of their modules."""
    events = set(TOPICS.values())
    for module in (message, session, exchange, parts, log):
        for shape in vars(module).values():
            if (
                inspect.isclass(shape)
                and issubclass(shape, Fact)
                and shape.__module__ == module.__name__
                and shape not in events
                and shape is not parts.Deciding
            ):
                yield shape


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        PAGE.write_text(current_page(), encoding="utf-8")
    else:
        sys.stdout.write(current_page())
