"""A host whose sub-agent needs a file and perhaps a thread before it starts, to be killed and started again.

Arguments: its directory, the URL of its log, and whether its channel knows a key that it has seen (`keyed`)
or has no threads to give (`none`).

It asks for the same sub-agent at each start, as a client does that has had no answer, and ends once nothing is left to do.
"""

import hashlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from intersession import Channel, Outbound, Reply, SessionSystem, Turn
from intersession_actors.outside.channels.channels import ThreadWanted
from intersession_events.facts import SpawnAccepted

MAIN = "agent:main:main"
CONTENT = "the words of the file"
PATIENCE_S = 30.0
CONFIG: dict[str, Any] = {
    "tools": {"sessions_spawn": {"attachments": {"enabled": True}}},
    "runs": {"shutdownGraceSeconds": 1},
}


class Lines:
    """A file of JSON lines; each is on the disk before `add` returns."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def add(self, **line: Any) -> None:
        os.write(self._file, (json.dumps(line) + "\n").encode())
        os.fsync(self._file)


def main(directory: str, url: str, threads: str) -> None:
    root = Path(directory)
    notes = Lines(root / "notes")

    def place() -> Path:
        accepted = next(item.event for item in system.log.all() if isinstance(item.event, SpawnAccepted))
        files = accepted.attachments
        assert files is not None
        return Path(files.root) / ".openclaw" / "attachments" / files.directory

    def agent(turn: Turn) -> str | Reply:
        if turn.step == "message":
            found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in place().iterdir()}
            notes.add(what="turn", session=turn.session_key, attempt=turn.attempt, files=found)
        return "done"

    def deliver(outbound: Outbound) -> None:
        notes.add(what="delivery", key=outbound.key, thread=outbound.thread)

    def open_thread(wanted: ThreadWanted) -> str:
        notes.add(what="thread", key=wanted.key)
        return f"thread-{wanted.key}"

    channel = Channel(deliver=deliver, idempotent=True, threads=open_thread if threads == "keyed" else None)
    system = SessionSystem(url, agents={"main": agent}, channels={"chat": channel}, config=CONFIG)
    system.inbound(channel="chat", chat_id="7", text="hi", sender="bob", message_id="m", deliver=False)
    given: dict[str, Any] = {
        "task": "read it",
        "idempotencyKey": "k",
        "cleanup": "delete",
        "mode": "run",
        "thread": threads == "keyed",
        "attachments": [{"name": "notes.txt", "content": CONTENT}],
    }
    notes.add(what="answer", answer=system.tools(MAIN).call("sessions_spawn", given))
    until = time.monotonic() + PATIENCE_S
    while left(system):
        if time.monotonic() > until:
            raise TimeoutError(f"still to do: {left(system)}")
        system.log.wait_for(system.log.head() + 1, timeout=0.1)
    system.close()


def left(system: SessionSystem) -> list[str]:
    """Return what is still to be done."""
    flows = system.service.flows
    return [
        *flows.open_spawns(),
        *flows.open_deliveries(),
        *(run.run_id for run in system.service.runs.open_runs()),
        *(pending.child for pending in flows.pending_archives()),
        *(spawn.child for spawn in flows.spawns_with_files()),
    ]


if __name__ == "__main__":
    main(*sys.argv[1:])
