"""What differs between a recorded scenario and the same one here, after a small normalisation that has a name for each step."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, Final

from intersession_events.facts import Message, SpawnAccepted, ToolCallBlock, text_of
from support.recordings.compact import parsed
from support.recordings.scenarios import ANNOUNCED, Performance, Row

STAMP = re.compile(r"\[[A-Z][a-z]{2} \d{4}-\d\d-\d\d \d\d:\d\d UTC\] ?")
UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
SUBAGENT = re.compile(rf"subagent:({UUID.pattern})")
CALL_ID = re.compile(r"call_[0-9a-f_-]+")
HANDED = re.compile(r"\[handed back: (?P<status>[^\]]*)\] (?P<result>.*)", re.DOTALL)

ANNOUNCE_STEP: Final = "<announce step>"
"""How the turn is asked for that says something to the outside: each has its own words."""

ADDED: Final = frozenset(
    {
        *("code", "position", "asOf", "nextCursor", "runState", "systemSent", "abortedLastRun", "spawnedBy"),
        *("before", "id", "runId", "provenance"),
    }
)
"""Fields that the protocol adds: left out where the original has none."""

UNKNOWN_IS_NULL: Final = frozenset({"thinkingLevel", "verboseLevel", "model", "contextTokens", "totalTokens"})
"""Fields of a row that are always there, null while not known (LIST-5): null is absent."""

OF_THE_MODEL: Final = frozenset({"api", "provider", "model", "stopReason", "usage"})
"""What the recordings' model tells of itself in what it says during a scenario; ours tells nothing."""

LEFT_OUT: Final = frozenset({"transcriptPath", "bytes"})
"""A path in another directory, and a size that counts ids and all."""


# --- the normalisation


class Ids:
    """Names ids by what they are: sub-agents by their order, those that were there before by themselves."""

    def __init__(self, row: Row, children: Sequence[str]) -> None:
        self._kept = set(UUID.findall(json.dumps([row["prepared"], row["steps"]])))
        self._children = {child: f"child {number}" for number, child in enumerate(children, 1)}
        self._at = row["at"]
        self._keys = {before["entry"]["sessionId"]: key for key, before in row["prepared"].items()}

    def text(self, text: str) -> str:
        """Return a text with its ids named, and without the stamps that the original writes before what users say."""
        return UUID.sub(lambda match: self._named(match[0]), CALL_ID.sub("<call>", STAMP.sub("", text)))

    def _named(self, found: str) -> str:
        return found if found in self._kept else f"<{self._children.get(found, 'id')}>"

    def value(self, value: Any, name: str = "") -> Any:
        """Return a result of a tool, or a part of one, normalised."""
        if isinstance(value, str):
            if name == "error":
                return "<why>"
            return self.text(value)
        if isinstance(value, int) and not isinstance(value, bool) and name in {"timestamp", "updatedAt"}:
            return value if value < self._at else "<now>"
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if isinstance(value, dict):
            return self._object(value)
        return value

    def _object(self, value: Row) -> Row:
        found = {
            name: self.value(item, name)
            for name, item in value.items()
            if name not in LEFT_OUT and not (item is None and name in UNKNOWN_IS_NULL)
        }
        if isinstance(found.get("error"), str):
            found.pop("tool", None)
        if isinstance(found.get("sessions"), list):
            rows = found.pop("sessions")
            found["order"] = [self._who(row) for row in rows]
            found["rows"] = {self._who(row): row for row in rows}
        if "role" in found and "timestamp" in found:
            if isinstance(found["content"], str):
                found["content"] = [{"type": "text", "text": found["content"]}]
            if found["timestamp"] == "<now>":
                found = {name: item for name, item in found.items() if name not in OF_THE_MODEL}
        return found

    def _who(self, row: Row) -> str:
        """Return the session that a row is about, whatever key it is shown by."""
        return str(self._keys.get(row["sessionId"], row["key"]))


def children_there(row: Row) -> list[str]:
    """Return the ids of the original's sub-agents in the order in which they appear."""
    text = json.dumps([row["theirs"]["results"], row["theirs"]["transcripts"]])
    before = set(SUBAGENT.findall(json.dumps(row["prepared"])))
    return [child for child in dict.fromkeys(SUBAGENT.findall(text)) if child not in before]


def theirs(row: Row) -> Row:
    """Return what came of a scenario in the original, normalised."""
    ids = Ids(row, children_there(row))
    found = row["theirs"]
    return {
        "results": [ids.value(result) for result in found["results"]],
        "transcripts": {
            ids.text(key): [
                _handed({name: ids.value(item) for name, item in said.items()})
                for said in _one_by_one(transcript)
            ]
            for key, transcript in found["transcripts"].items()
        },
        "sends": [ids.value(sent) for sent in found["sends"]],
        "sessions": {ids.text(key): ids.value(entry) for key, entry in found["sessions"].items()},
    }


def ours(row: Row, played: Performance) -> Row:
    """Return what came of a scenario here, normalised."""
    children = [
        SUBAGENT.findall(item.event.child)[0]
        for item in played.events
        if isinstance(item.event, SpawnAccepted)
    ]
    ids = Ids(row, children)
    requester = played.key_of(row["requester"])
    shown = {requester: row["requester"]}
    transcripts = {
        ids.text(shown.get(key, key)): [told(message, ids, own=key == requester) for message in said]
        for key, said in played.transcripts().items()
        if key in played.sessions
    }
    sends = [
        {"to": ids.text(sent.to), "text": ids.text(sent.text), "threadId": sent.thread}
        for sent in played.channel.delivered
    ]
    return {
        "results": [ids.value(result) for result in played.results],
        "transcripts": transcripts,
        "sends": sends,
        "sessions": {
            ids.text(shown.get(key, key)): ids.value(change) for key, change in played.changes().items()
        },
    }


def told(message: Message, ids: Ids, *, own: bool) -> Row:
    """Return a message as the recordings have it: who, what, from where."""
    text = text_of(message)
    said: Row = {"role": message.role}
    if message.role == "toolResult":
        said["tool"] = message.tool_name
        if not own:
            said["result"] = ids.value(parsed(text))
        return said
    announced = ANNOUNCED.match(text)
    if announced is not None and message.role == "user":
        text = f"[handed back: {announced[1]}] {announced[2]}"
    if text:
        said["text"] = ANNOUNCE_STEP if text.startswith("Announce step: ") else ids.text(text)
    blocks = message.content if not isinstance(message.content, str) else ()
    calls = [
        [block.name, ids.value(json.loads(block.arguments))]
        for block in blocks
        if isinstance(block, ToolCallBlock)
    ]
    if calls:
        said["calls"] = calls
    if message.provenance is not None and message.provenance.kind != "external_user":
        said["kind"] = message.provenance.kind
        if message.provenance.source_session_key is not None:
            said["from"] = ids.text(message.provenance.source_session_key)
    if message.stop_reason in {"error", "aborted"}:
        said["stop"] = message.stop_reason
    return said


def _one_by_one(said: Sequence[Row]) -> list[Row]:
    """Return a transcript in which each call is a message of its own, and what it gave comes right after it."""
    found: list[Row] = []
    waiting: list[Row] = []
    for message in said:
        if message["role"] == "toolResult" and waiting:
            found += [waiting.pop(0), message]
        elif "calls" in message:
            if "text" in message:
                found.append({name: item for name, item in message.items() if name != "calls"})
            waiting += [{"role": "assistant", "calls": [call]} for call in message["calls"]]
        else:
            found.append(message)
    return found + waiting


def _handed(said: Row) -> Row:
    match = HANDED.match(said.get("text", ""))
    if match is None:
        return said | ({"text": ANNOUNCE_STEP} if said.get("text") == "Agent-to-agent announce step." else {})
    status = {"completed successfully": "success", "timed out": "timeout"}.get(
        match["status"], match["status"].split(":")[0]
    )
    status = {"failed": "error"}.get(status, status)
    return said | {"text": f"[handed back: {status}] {match['result']}"}


# --- the differences

Difference = dict[str, Any]
"""`at`, and `original` and `here` where there is something."""


def differences(there: Any, here: Any, at: str = "") -> Iterator[Difference]:
    """Say where two normalised values differ."""
    if isinstance(there, dict) and isinstance(here, dict):
        for name in sorted({*there, *here}):
            if name in ADDED and name not in there:
                continue
            if name not in there:
                yield {"at": f"{at}.{name}", "here": short(here[name])}
            elif name not in here:
                yield {"at": f"{at}.{name}", "original": short(there[name])}
            else:
                yield from differences(there[name], here[name], f"{at}.{name}")
    elif isinstance(there, list) and isinstance(here, list):
        yield from _of_lists(there, here, at)
    elif there != here or type(there) is not type(here):
        yield {"at": at, "original": short(there), "here": short(here)}


def _of_lists(there: list[Any], here: list[Any], at: str) -> Iterator[Difference]:
    keys = [[json.dumps(_gist(item), sort_keys=True) for item in items] for items in (there, here)]
    for tag, a, b, c, d in SequenceMatcher(None, keys[0], keys[1], autojunk=False).get_opcodes():
        if tag == "equal" or (tag == "replace" and _alike(there[a:b], here[c:d])):
            for number, (one, other) in enumerate(zip(there[a:b], here[c:d], strict=True), a):
                yield from differences(one, other, f"{at}[{number}]")
            continue
        yield from ({"at": f"{at}[{number}]", "original": short(there[number])} for number in range(a, b))
        yield from ({"at": f"{at}[+{number}]", "here": short(here[number])} for number in range(c, d))


def _alike(there: list[Any], here: list[Any]) -> bool:
    """Say whether the elements of two lists stand for each other, one by one."""
    return len(there) == len(here) and all(
        type(one) is type(other) and (not isinstance(one, dict) or one.get("role") == other.get("role"))
        for one, other in zip(there, here, strict=True)
    )


def _gist(item: Any) -> Any:
    """Return what tells one element of a list from another."""
    if isinstance(item, dict):
        return [item.get(name) for name in ("role", "text", "content", "calls", "tool", "key", "to")]
    return item


def short(value: Any) -> Any:
    """Return a value as the table shows it: long texts cut."""
    if isinstance(value, str):
        return value if len(value) <= 120 else f"{value[:100]}… ({len(value)} characters)"
    if isinstance(value, list | dict):
        text = json.dumps(value, ensure_ascii=False)
        return value if len(text) <= 160 else f"{text[:140]}… ({len(text)} characters)"
    return value


def found(row: Row, folder: Path) -> tuple[list[Difference], list[str]]:
    """Play a scenario; return what differs, and the codes of the refusals that its requester got here."""
    performance = Performance(row, folder)
    codes = [result["code"] for result in performance.results if "code" in result]
    return list(differences(theirs(row), ours(row, performance))), codes


def in_order(found: Iterable[Difference]) -> list[Difference]:
    """Return differences in the order in which two lists of them are compared."""
    return sorted(found, key=lambda difference: json.dumps(difference, sort_keys=True))
