"""What recordings of the original tell of the sessions that there were before each scenario: for `compact.py`."""

import json
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

Row = dict[str, Any]

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

PRESUPPOSED: dict[str, Row] = {
    "sessions_spawn.ok_from_direct_delivers_to_channel": {
        "agent:main:testchan:direct:alice": {
            "lastTo": "alice",
            "deliveryContext": {"channel": "testchan", "to": "alice"},
        }
    }
}
"""What the recording shows only by its effect: this chat's text reached alice."""


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
