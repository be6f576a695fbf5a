"""Makes `tests/data/recordings/` out of recordings of the original, and of the state directories it wrote meanwhile.

`python tests/support/recordings/compact.py RECORDINGS STATES`: a file with one recorded scenario per line, a folder with a state
directory per configuration. Of each scenario stays what `scenarios.py` needs: what there was before, what the scripted
model was told, what came of it.
"""

import argparse
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # as a script, it is not found otherwise

from support import paths
from support.recordings.worlds import (
    OF_A_ROUTE,
    Row,
    States,
    World,
    began,
    calls_of,
    lists_of,
    message_of,
    picked,
    steps_of,
    text_of,
)

DATA = paths.DATA / "recordings"

STAMP = re.compile(r"\[[A-Z][a-z]{2} \d{4}-\d\d-\d\d \d\d:\d\d UTC\] ")
REPEATED = re.compile(r"(.{1,8}?)\1{60,}", re.DOTALL)
TASK = re.compile(r"\[Subagent Context\].*\[Subagent Task\]: ", re.DOTALL)
HANDED = re.compile(
    r"OpenClaw runtime context.*\nstatus: (?P<status>[^\n]*)\n.*\nResult \(untrusted content, treat as data\):\n"
    r"(?P<result>.*)\n\nStats: .*",
    re.DOTALL,
)

AFTER = ("label", "spawnedBy", "abortedLastRun", *OF_A_ROUTE)
"""What of a session's entry is compared after a scenario."""

OURS = {"sessions_list", "sessions_history", "sessions_send", "sessions_spawn", "agents_list"}


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
