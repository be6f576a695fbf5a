"""Makes `tests/data/recordings/` out of recordings of the original, and of the state directories it wrote meanwhile.

`python tests/compact_recordings.py RECORDINGS STATES`: a file with one recorded scenario per line, a folder with a state
directory per configuration. Of each scenario stays what `recordings.py` needs: what there was before, what the scripted
model was told, what came of it.
"""

import argparse
import json
import re
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data" / "recordings"

Row = dict[str, Any]

STAMP = re.compile(r"\[[A-Z][a-z]{2} \d{4}-\d\d-\d\d \d\d:\d\d UTC\] ")
REPEATED = re.compile(r"(.{1,8}?)\1{60,}", re.DOTALL)
TASK = re.compile(r"\[Subagent Context\].*\[Subagent Task\]: ", re.DOTALL)
HANDED = re.compile(
    r"OpenClaw runtime context.*\nstatus: (?P<status>[^\n]*)\n.*\nResult \(untrusted content, treat as data\):\n"
    r"(?P<result>.*)\n\nStats: .*",
    re.DOTALL,
)

ENTRY = (
    "sessionId",
    "updatedAt",
    "label",
    "displayName",
    "lastChannel",
    "lastTo",
    "deliveryContext",
    "channel",
    "groupId",
    "groupChannel",
    "chatType",
    "modelProvider",
    "model",
    "contextTokens",
    "totalTokens",
    "abortedLastRun",
    "systemSent",
    "spawnedBy",
    "spawnDepth",
)
"""What of a session's entry in the original's store there has to be before a scenario."""

OF_A_ROUTE = ("lastChannel", "lastTo", "deliveryContext")
AFTER = ("label", "spawnedBy", "abortedLastRun", *OF_A_ROUTE)
"""What of a session's entry is compared after a scenario."""

LISTED = (
    "sessionId",
    "updatedAt",
    "label",
    "displayName",
    "lastChannel",
    "lastTo",
    "deliveryContext",
    "model",
    "contextTokens",
    "totalTokens",
    "abortedLastRun",
    "systemSent",
)

MESSAGE = (
    "role",
    "content",
    "timestamp",
    "api",
    "provider",
    "model",
    "usage",
    "stopReason",
    "toolCallId",
    "toolName",
    "isError",
    "provenance",
)

OURS = {"sessions_list", "sessions_history", "sessions_send", "sessions_spawn", "agents_list"}

PRESUPPOSED: dict[str, Row] = {
    "sessions_spawn.ok_from_direct_delivers_to_channel": {
        "agent:main:testchan:direct:alice": {
            "lastTo": "alice",
            "deliveryContext": {"channel": "testchan", "to": "alice"},
        }
    }
}
"""What the recording shows only by its effect: this chat's text reached alice."""


def squeeze(value: Any) -> Any:
    """Write long runs of a few characters as `⟦characters*times⟧`, in all texts of a value."""
    if isinstance(value, str):
        return REPEATED.sub(
            lambda match: f"⟦{match[1]}*{len(match[0]) // len(match[1])}⟧", value.replace("⟦", "[[")
        )
    if isinstance(value, dict):
        return {name: squeeze(item) for name, item in value.items()}
    if isinstance(value, list):
        return [squeeze(item) for item in value]
    return value


def picked(source: Mapping[str, Any], names: Iterable[str]) -> Row:
    return {name: source[name] for name in names if name in source}


def message_of(message: Row) -> Row:
    """Return a message as it was written, save what its model cost, which was nothing."""
    found = picked(message, MESSAGE)
    if "usage" in found:
        found["usage"] = {name: value for name, value in found["usage"].items() if name != "cost"}
    return found


class States:
    """What the original wrote: entries by configuration and key, transcripts by session."""

    def __init__(self, folder: Path) -> None:
        self.entries: dict[str, dict[str, Row]] = {}
        self._files: dict[str, Path] = {}
        for store in sorted(folder.glob("*/agents/*/sessions/sessions.json")):
            entries = self.entries.setdefault(store.parents[3].name, {})
            entries.update(json.loads(store.read_text()))
        for path in folder.glob("*/agents/*/sessions/*.jsonl"):
            self._files[path.stem] = path

    def messages(self, session_id: str, before: int) -> list[Row] | None:
        path = self._files.get(session_id)
        if path is None:
            return None
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        said = [line["message"] for line in lines if line["type"] == "message"]
        return [message_of(message) for message in said if message["timestamp"] < before]


class World:
    """What one configuration's recordings tell of the sessions there were."""

    def __init__(self, name: str, rows: list[Row], states: States) -> None:
        self.name = name
        self.rows = sorted(rows, key=began)
        self.states = states
        self.state = states.entries.get(name) or {}
        self.seeds = {
            key: entry
            for key, entry in states.entries["restricted"].items()
            if name not in {"base", "global"} and ":subagent:" not in key
        }

    def entry(self, key: str, row: Row) -> Row | None:
        """Return a session's entry as it stood before a row, as far as that is known; None: it was not there."""
        change = row["store_changes"].get(key)
        if change is not None:
            found = change.get("before")
            if found is None:
                return None
        else:
            found = self._earlier(key, row)
        if found is None:
            return None
        entry = picked(found, ENTRY)
        for listed in lists_of(row):
            for item in listed:
                if item["key"] == key or (key == "global" and item["key"] == "main"):
                    for name in LISTED:
                        entry.pop(name, None)
                    entry |= picked(item, LISTED)
        if entry.get("displayName") == entry.get("label") or ":g-" in entry.get("displayName", ""):
            entry.pop("displayName", None)  # the list's own invention
        return {**entry, **PRESUPPOSED.get(row["scenario"], {}).get(key, {})}

    def _earlier(self, key: str, row: Row) -> Row | None:
        """Return the entry as another scenario left it, as a list shows it, or as the state has it in the end."""
        changes = [
            (began(other), other["store_changes"][key])
            for other in self.rows
            if key in other["store_changes"]
        ]
        done = [change["after"] for at, change in changes if at < began(row)]
        if any(done):
            return dict(next(entry for entry in reversed(done) if entry is not None))
        if changes and changes[0][1].get("before") is None:
            return None
        at_the_end = {n: v for n, v in self.state.get(key, {}).items() if n not in OF_A_ROUTE}
        listed = self._listed(key, row)
        if listed or at_the_end:
            return {**at_the_end, **listed}
        if key in self.seeds:
            made = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{self.name}:{key}"))
            return {**picked(self.seeds[key], ENTRY), "sessionId": made, "updatedAt": began(row) - 60_000}
        return None

    def _listed(self, key: str, row: Row) -> Row:
        """Return the row of a session in the last list before a scenario, else in the first one there is."""
        found: Row = {}
        for other in self.rows:
            for item in (item for listed in lists_of(other) for item in listed):
                if item["key"] == key and (not found or began(other) <= began(row)):
                    found = item
        return found

    def needed(self, row: Row) -> list[str]:
        """Return the keys of the sessions that a row needs to be there."""
        keys = [row["requester"]]
        known = [*self.state, *self.seeds, *(key for other in self.rows for key in other["store_changes"])]
        for name, args in calls_of(row):
            if name == "sessions_list":
                # The first list of this configuration shows all there were; what later ones show beside them, too.
                shown = [item["key"] for listed in lists_of(row) for item in listed]
                first = next(listed for other in self.rows for listed in lists_of(other))
                everything = (
                    [item["key"] for item in first] if row["scenario"].startswith("sessions_list") else []
                )
                keys += [*everything, *shown, *self.seeds]
            for value in (args.get("sessionKey"),):
                keys += [key for key in known if key == str(value).lower()]
                keys += [
                    key for key, entry in (self.state | self.seeds).items() if entry.get("sessionId") == value
                ]
                if value == "main":
                    keys.append("agent:main:main" if self.name != "global" else "global")
            if args.get("agentId") is not None and name == "sessions_send":
                keys += [key for key in known if key == f"agent:{args['agentId']}:main"]
            if "label" in args and name == "sessions_send":
                keys += [key for key in known if self._label(key) == args["label"]]
        return [key for key in dict.fromkeys(keys) if key != "main"]

    def _label(self, key: str) -> str | None:
        for other in self.rows:
            change = other["store_changes"].get(key)
            if change is not None:
                return ((change.get("after") or change["before"]) or {}).get("label")
        return (self.state.get(key) or self.seeds.get(key) or {}).get("label")


def began(row: Row) -> int:
    """Return when the scenario's own message was written, in milliseconds."""
    said = row["transcripts_after"].get(row["requester"]) or []
    if said and isinstance(said, list):
        return int(said[0]["timestamp"])
    change = row["store_changes"][row["requester"]]
    return int(change["after"]["updatedAt"])


def lists_of(row: Row) -> list[list[Row]]:
    """Return the rows of every list of sessions that somebody was shown in a scenario."""
    shown = [
        call["result"].get("sessions", [])
        for call in row["tool_calls"]
        if call["tool"] == "sessions_list" and isinstance(call.get("result"), dict)
    ]
    transcripts = [said for said in row["transcripts_after"].values() if isinstance(said, list)]
    read = [
        json.loads(text_of(message))["sessions"]
        for said in transcripts
        for message in said
        if message.get("toolName") == "sessions_list" and not message.get("isError")
    ]
    return shown + read


def steps_of(row: Row) -> list[Row]:
    """Return what the requester's model was told to do: calls, and what it says at the end."""
    call = row["call"]
    steps = [dict(step) for step in (call if isinstance(call, list) else [call])]
    return steps if "say" in steps[-1] else [*steps, {"say": "final answer of requester"}]


def calls_of(row: Row) -> list[tuple[str, Row]]:
    steps = [*steps_of(row), *(step for script in row["llm_scripts"].values() for step in script)]
    flat = [one for step in steps for one in (step.get("tools", [step]))]
    return [(step["tool"], step["args"]) for step in flat if "tool" in step]


def text_of(message: Row) -> str:
    content = message["content"]
    if isinstance(content, str):
        return content
    return "\n".join(block["text"] for block in content if block["type"] == "text")


def told(message: Row, *, own: bool) -> Row:
    """Return a message in the runner's form (`recordings.Said`)."""
    text = STAMP.sub("", text_of(message))
    text = HANDED.sub(lambda match: f"[handed back: {match['status']}] {match['result']}", TASK.sub("", text))
    calls = [
        [block["name"], block["arguments"]]
        for block in (message["content"] if isinstance(message["content"], list) else [])
        if block["type"] == "toolCall"
    ]
    said: Row = {"role": message["role"]}
    if message["role"] == "toolResult":
        said["tool"] = message["toolName"]
        if not own:
            said["result"] = parsed(text)
        return said
    if text:
        said["text"] = text
    if calls:
        said["calls"] = calls
    if "provenance" in message:
        said["kind"] = message["provenance"]["kind"]
        said["from"] = message["provenance"]["sourceSessionKey"]
    if message.get("stopReason") in {"error", "aborted"}:
        said["stop"] = message["stopReason"]
    if message.get("model") == "delivery-mirror":
        said["mirror"] = True
    return said


def parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def changed(change: Row) -> Row:
    """Return what a scenario changed in a session's entry; all of it where there was none before."""
    before, after = change.get("before"), change.get("after")
    if after is None:
        return {"gone": True}
    if before is None:
        return {"opened": True} | picked(after, AFTER)
    return {name: after.get(name) for name in AFTER if after.get(name) != before.get(name)} | (
        {"reset": True} if before["sessionId"] != after["sessionId"] else {}
    )


def result_of(call: Row) -> Any:
    if call.get("isError"):
        return {"status": "error", "error": call["resultText"].split("\n\nReceived")[0]}
    if call["tool"] not in OURS:
        return picked(call["result"], ("status", "ok", "action"))
    return call["result"]


def compact(row: Row, world: World) -> Row:
    at = began(row)
    for item in (item for listed in lists_of(row) for item in listed):
        if item["key"] in {row["requester"], "main"} and item["sessionId"] == _session_id(row):
            at = int(item["updatedAt"])
    prepared: dict[str, Row] = {}
    for key in world.needed(row):
        entry = world.entry(key, row)
        if entry is not None:
            prepared[key] = {"entry": entry}
    for key, most in _read(row, prepared).items():
        said = world.states.messages(prepared[key]["entry"]["sessionId"], at)
        if said is None:
            said = [message_of(m) for m in row["result"].get("messages", []) if m["timestamp"] < at]
        prepared[key]["messages"] = said[-most:]
    own = row["transcripts_after"].get(row["requester"])
    asked = STAMP.sub("", text_of(own[0])) if isinstance(own, list) else f"scenario {row['scenario']}"
    sessions = {key: changed(change) for key, change in row["store_changes"].items()}
    sessions = {key: change for key, change in sessions.items() if change}
    theirs: Row = {
        "results": [result_of(call) for call in row["tool_calls"]],
        "transcripts": {
            key: [told(message, own=key == row["requester"]) for message in said]
            for key, said in row["transcripts_after"].items()
            if isinstance(said, list)
        }
        or {row["requester"]: _omitted(asked, steps_of(row))},
        "sends": [picked(sent, ("to", "text", "threadId")) for sent in row["channel_sends"]],
        "sessions": sessions,
    }
    compacted: Row = {
        "scenario": row["scenario"],
        "config": row["config"]["name"],
        "requester": row["requester"],
        "at": at,
        "asked": asked,
        "steps": steps_of(row),
        "policy": row["llm_policy"],
        "scripts": row["llm_scripts"],
        "prepared": prepared,
        "theirs": theirs,
    }
    squeezed: Row = squeeze(compacted)
    return squeezed


def _omitted(asked: str, steps: list[Row]) -> list[Row]:
    """Return the four messages of one call, which a recording leaves out where they are large."""
    call, last = steps
    return [
        {"role": "user", "text": asked},
        {"role": "assistant", "calls": [[call["tool"], call["args"]]]},
        {"role": "toolResult", "tool": call["tool"]},
        {"role": "assistant", "text": last["say"]},
    ]


def _session_id(row: Row) -> str | None:
    change = row["store_changes"].get(row["requester"]) or {}
    return (change.get("before") or change.get("after") or {}).get("sessionId")


def _read(row: Row, prepared: Mapping[str, Row]) -> dict[str, int]:
    """Return the sessions whose messages a row reads, and how many of the last ones matter."""
    found: dict[str, int] = {}
    for name, args in calls_of(row):
        if name == "sessions_list" and "messageLimit" in args:
            found |= dict.fromkeys(prepared, 2 * int(args["messageLimit"]) + 2)
        if name == "sessions_history":
            asked = str(args.get("sessionKey", "")).lower()
            most = args["limit"] + 4 if "limit" in args else 200
            aliases = {asked, "global"} if asked in {"main", "global"} else {asked}
            if asked == "main":
                aliases |= {"agent:main:main", row["requester"]}
            for key, before in prepared.items():
                if key in aliases or before["entry"]["sessionId"] == asked:
                    found[key] = most
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recordings", type=Path)
    parser.add_argument("states", type=Path)
    given = parser.parse_args()
    rows = [json.loads(line) for line in given.recordings.read_text().splitlines()]
    recorded = [row for row in rows if "tool_calls" in row]
    states = States(given.states)
    configs = {
        row["config"]["name"]: {name: value for name, value in row["config"].items() if name != "name"}
        for row in recorded
    }
    worlds = {
        name: World(name, [row for row in recorded if row["config"]["name"] == name], states)
        for name in configs
    }
    DATA.mkdir(parents=True, exist_ok=True)
    (DATA / "configs.json").write_text(json.dumps(configs, indent=1, ensure_ascii=False) + "\n")
    lines = [compact(row, worlds[row["config"]["name"]]) for row in recorded]
    entries: list[Row] = []
    for line in lines:
        for before in line["prepared"].values():
            # Many begin with the same sessions: an entry is written once, and named by its number.
            if before["entry"] not in entries:
                entries.append(before["entry"])
            before["entry"] = entries.index(before["entry"])
    (DATA / "entries.jsonl").write_text(
        "".join(json.dumps(entry, ensure_ascii=False, separators=(",", ":")) + "\n" for entry in entries)
    )
    lines += [{"scenario": row["scenario"]} for row in rows if "tool_calls" not in row]
    written = "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines)
    (DATA / "scenarios.jsonl").write_text(written)


if __name__ == "__main__":
    main()
