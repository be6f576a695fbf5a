"""Finds the key of an archived transcript that no store names any more, in other evidence (IMP-2). Pure."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from intersession_events.basics.plain_json import JsonList
from intersession_events.facts import text_of
from intersession_events.transcripts.openclaw.reading.foreign_json import a_count, a_list, a_text, at
from intersession_events.transcripts.openclaw.reading.lines import Transcript
from intersession_events.transcripts.openclaw.reading.stamp import strip_stamp
from intersession_events.transcripts.openclaw.reading.state import RunRecord
from intersession_events.transcripts.openclaw.reconstruction.steps import (
    WHITE_SPACE,
    Call,
    Step,
    calls_of,
    steps_of,
)

_SESSION_KEY: Final = re.compile(r"^session_key: (?P<key>\S+)$", re.MULTILINE)
_SESSION_ID: Final = re.compile(r"^session_id: (?P<id>\S+)$", re.MULTILINE)
_COMPLETION: Final = "[Internal task completion event]"
_TASK: Final = re.compile(
    r"\[Subagent Task\](?::|\n)(?P<task>.*?)(?:\n\nBegin\. Execute the assigned task to completion\.)?\s*\Z",
    re.DOTALL,
)
_CRON: Final = re.compile(r"\[cron:(?P<job>[^\s\]]+)")
_SOON_MS: Final = 5_000
_SOMETIME_MS: Final = 600_000


class Found(NamedTuple):
    """A key as the evidence spells it, and the evidence."""

    key: str
    why: str


class Completion(NamedTuple):
    """OpenClaw's message to a requester that a child is done: the child, and its result (None: no output)."""

    session_key: str
    session_id: str | None
    result: str | None


def completion_of(text: str) -> Completion | None:
    """Return the content of a completion event; None if the text is not one."""
    text = strip_stamp(text)
    if _COMPLETION not in text:
        return None
    _, _, body = text.partition(_COMPLETION)
    key, session_id = _SESSION_KEY.search(body), _SESSION_ID.search(body)
    if key is None:
        return None
    _, _, result = body.partition("Result (untrusted content, treat as data):\n")
    result = re.split(r"\n\n(?:Stats|Action): ?", result)[0].strip()
    return Completion(
        key["key"],
        session_id["id"] if session_id is not None else None,
        None if result in {"", "(no output)"} else result,
    )


def task_of(text: str) -> str | None:
    """Return the task in a sub-agent's first message; None if it is not such a message."""
    found = _TASK.search(text) if "[Subagent Context]" in text else None
    return found["task"].strip(WHITE_SPACE) if found is not None else None


def keys_by_session_id(
    transcripts: Sequence[Transcript], told_keys: Sequence[tuple[str, str, str]]
) -> Mapping[str, Found]:
    """Return the keys of session ids, from completions, session lists and what the state itself tells."""
    found: dict[str, Found] = {session_id: Found(key, why) for session_id, key, why in told_keys}
    for transcript in transcripts:
        for line in transcript.lines:
            if line.message is None:
                continue
            told = completion_of(text_of(line.message)) if line.message.role == "user" else None
            if told is not None and told.session_id is not None:
                why = f"the completion event at {line}"
                found.setdefault(told.session_id, Found(told.session_key, why))
    for transcript in transcripts:
        for call in calls_of(transcript.lines):
            for row in _rows(call):
                session_id, key = a_text(at(row, "sessionId")), a_text(at(row, "key"))
                if session_id and key and key.startswith("agent:"):
                    why = f"the session list at {call.line}"
                    found.setdefault(session_id, Found(key, why))
    return found


class Words:
    """Texts that link sessions: sends by their message, spawns and their records by their task."""

    def __init__(self, transcripts: Sequence[Transcript], records: Sequence[RunRecord]) -> None:
        self.sends: dict[str, list[Call]] = defaultdict(list)
        self.spawns: dict[str, list[Call]] = defaultdict(list)
        self.records: dict[str, list[RunRecord]] = defaultdict(list)
        for transcript in transcripts:
            for call in calls_of(transcript.lines):
                if call.name == "sessions_send":
                    self.sends[_words(call.arguments.get("message"))].append(call)
                elif call.name == "sessions_spawn":
                    self.spawns[_words(call.arguments.get("task"))].append(call)
        for record in records:
            self.records[_words(record.values.get("task"))].append(record)


def key_from_content(
    transcript: Transcript, words: Words, starts: Sequence[tuple[str, int, str]]
) -> Found | None:
    """Return the key that a transcript's own content shows, with the help of the calls of other sessions.

    `starts` are (agent, start, key) of the transcripts whose key is known.
    """
    steps = list(steps_of(transcript.lines))
    if not steps:
        return None
    cron = _CRON.match(steps[0].text)
    if cron is not None:
        return Found(
            f"agent:{transcript.file.agent}:cron:{cron['job']}", "its first message is of this cron job"
        )
    spawned = _single(_spawns(steps[0], words))
    if spawned is not None:
        return spawned
    sent = _single(found for step in steps for found in _sends(step, words))
    if sent is not None:
        return sent
    return _single(_followers(transcript, starts))


def _spawns(step: Step, words: Words) -> Iterator[Found]:
    task = task_of(step.text)
    if task is None:
        return
    for record in words.records[task]:
        key, created = a_text(record.values.get("childSessionKey")), a_count(record.values.get("createdAt"))
        if key and created is not None and 0 <= step.time - created <= _SOMETIME_MS:
            yield Found(key, f"its task is that of run {record.run_id}")
    for call in words.spawns[task]:
        key = a_text(call.details.get("childSessionKey"))
        if key and 0 <= step.time - call.line.time <= _SOMETIME_MS:
            yield Found(key, f"its task is that of the call at {call.line}")


def _sends(step: Step, words: Words) -> Iterator[Found]:
    if step.source is None:
        return
    for call in words.sends[step.spoken]:
        key = a_text(call.details.get("sessionKey"))
        if key is None or not key.startswith("agent:"):
            continue
        latest = call.line.time + _SOMETIME_MS
        if call.result is not None and call.status == "ok":
            latest = call.result.time
        if call.line.time <= step.time <= latest:
            yield Found(key, f"its message was sent by the call at {call.line}")


def _followers(transcript: Transcript, starts: Sequence[tuple[str, int, str]]) -> Iterator[Found]:
    """Yield the keys of transcripts that began just as this one was reset."""
    closed = transcript.file.closed_ms
    if transcript.file.closing != "reset" or closed is None:
        return
    for agent, start, key in starts:
        if agent == transcript.file.agent and 0 <= start - closed <= _SOON_MS:
            yield Found(key, "the session's next transcript began as this one was reset")


def _single(found: Iterator[Found]) -> Found | None:
    """Return what all evidence of a kind agrees on; contradicting evidence does not count."""
    by_key = {item.key.lower(): item for item in found}
    return next(iter(by_key.values())) if len(by_key) == 1 else None


def _words(value: object) -> str:
    return (a_text(value) or "").strip(WHITE_SPACE)


def _rows(call: Call) -> JsonList:
    return a_list(call.details.get("sessions")) if call.name == "sessions_list" else []
