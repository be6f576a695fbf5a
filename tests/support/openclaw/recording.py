"""Records a state directory of the original: its gateway, run on a scripted model, and what it keeps in SQLite as text.

    OPENCLAW_TODAY=~/openclaw-today python tests/support/openclaw/recording.py --write

The folder gets `openclaw@2026.9.6` and its Node.js, 840 MB, unless they are there. `tests/data/openclaw_sqlite/garden` is
written anew: each database as the statements that make it, with the whole schema and the rows of the tables that an
import reads, without the list of skills. Nothing in it is anybody's.
"""

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # as a script, it is not found otherwise

from support.loopback import free_port
from support.openclaw.client import npm
from support.openclaw.sqlite_state import KEPT, RECORDED

VERSION: Final = "2026.9.6"
STATE: Final = Path(tempfile.gettempdir()) / "garden"  # a name of nobody, as compressed texts have it in them
MODELS: Final = {"primary": "fake/fake-1"}
LONG: Final = "The catalogue. " + " ".join(
    f"Bed {bed} has carrots, beans, peas and leeks." for bed in range(80)
)


class Model(BaseHTTPRequestHandler):
    """Does what the newest message says: `CALL tool {…}`, `SAY words`, `HOLD`; a tool's result is acknowledged."""

    protocol_version = "HTTP/1.1"
    answers = 0
    held = threading.Event()

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        type(self).answers += 1
        text, call = scripted(request)
        if text == "HOLD":
            type(self).held.set()
            threading.Event().wait(600)
        name = f"call_{self.answers}"
        delta: dict[str, Any] = {"role": "assistant", "content": text}
        if call is not None:
            function = {"name": call[0], "arguments": call[1]}
            delta = {
                "role": "assistant",
                "tool_calls": [{"index": 0, "id": name, "type": "function", "function": function}],
            }
        head = {"id": name, "object": "chat.completion.chunk", "created": 1, "model": request["model"]}
        usage = {"prompt_tokens": 30, "completion_tokens": 5, "total_tokens": 35}
        end = {"index": 0, "delta": {}, "finish_reason": "stop" if call is None else "tool_calls"}
        chunks = (
            {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
            {**head, "choices": [end], "usage": usage},
        )
        body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        """Say nothing."""


def scripted(request: dict[str, Any]) -> tuple[str | None, tuple[str, str] | None]:
    """Return the model's text, or its call."""
    said = [(message["role"], words(message)) for message in request["messages"]]
    if "context summarization" in said[0][1]:
        return "## Goal\nKeep the garden.\n## Progress\nIt was watered.", None
    role, text = next(
        (role, text)
        for role, text in reversed(said)
        if not (text.startswith("<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>") and "Conversation data" in text)
    )
    text = re.sub(r"\n\nRuntime: .*", "", text)
    if role == "tool":
        return "It is done.", None
    if "announce step" in text:
        return "To all: the beds are dry.", None
    if call := re.search(r"CALL (\w+) (\{.*\})", text):
        return None, (call[1], call[2])
    said_so = re.search(r"SAY (.*)|(HOLD)", text)
    return (said_so[1] or said_so[2]) if said_so else "Heard you.", None


def words(message: dict[str, Any]) -> str:
    """Return the text of a message."""
    content = message.get("content") or ""
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


class Original:
    """The original's gateway on a state directory, and its command line."""

    def __init__(self, installed: Path, state: Path, model: int) -> None:
        modules = installed / "node_modules"
        self._node = modules / "node" / "bin" / "node"
        self._script = modules / "openclaw" / "openclaw.mjs"
        self.state = state
        self.port = free_port()
        (state / "home").mkdir(parents=True)
        (state / "openclaw.json").write_text(json.dumps(settings(state, self.port, model)), encoding="utf-8")
        self.process = self._started()

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": f"{self._node.parent}{os.pathsep}{os.defpath}",
            "HOME": str(self.state / "home"),
            "OPENCLAW_STATE_DIR": str(self.state),
            "NO_COLOR": "1",
        }

    def _started(self) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [self._node, self._script, "gateway", "run"],
            env=self._environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert process.stdout is not None
        for line in process.stdout:
            if "[gateway] ready" in line:
                break
        threading.Thread(target=process.stdout.read, daemon=True).start()
        return process

    def call(self, method: str, **params: Any) -> Any:
        """Call a method, and wait for its end."""
        done = subprocess.run(
            self._call(method, params), env=self._environment(), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (method, params, done.stdout, done.stderr)
        return json.loads(done.stdout[done.stdout.index("{") :])

    def begin(self, method: str, **params: Any) -> None:
        """Call a method, and wait for nothing."""
        subprocess.Popen(self._call(method, params), env=self._environment(), stdout=subprocess.DEVNULL)

    def _call(self, method: str, params: dict[str, Any]) -> list[Any]:
        where = ("--url", f"ws://127.0.0.1:{self.port}", "--token", "a-token", "--json", "--timeout", "60000")
        final = ("--expect-final",) if method == "agent" else ()
        command = (self._node, self._script, "gateway", "call", method)
        return [*command, "--params", json.dumps(params), *where, *final]

    def say(self, key: str, message: str) -> None:
        """Send a message to a session as its user, and wait until its agent is quiet."""
        self.call("agent", **self._said(key, message))
        time.sleep(6)  # the loop, its announce and a child's result come by themselves

    def begin_saying(self, key: str, message: str) -> None:
        """Send a message, and wait for nothing."""
        self.begin("agent", **self._said(key, message))

    def _said(self, key: str, message: str) -> dict[str, str]:
        agent = key.split(":")[1]
        return {"message": message, "sessionKey": key, "agentId": agent, "idempotencyKey": str(uuid.uuid4())}


def settings(state: Path, port: int, model: int) -> dict[str, Any]:
    """Return the configuration: three agents that may reach one another."""
    cost = dict.fromkeys(("input", "output", "cacheRead", "cacheWrite"), 0)
    fake = {"id": "fake-1", "name": "Fake 1", "input": ["text"], "cost": cost, "contextWindow": 200_000}
    entries = {name: {"workspace": f"{state}/workspace-{name}"} for name in ("main", "research", "ops")}
    entries["main"]["subagents"] = {"allowAgents": ["research"]}  # type: ignore[assignment]
    return {
        "gateway": {"mode": "local", "port": port, "auth": {"mode": "token", "token": "a-token"}},
        "models": {
            "mode": "replace",
            "providers": {
                "fake": {
                    "baseUrl": f"http://127.0.0.1:{model}/v1",
                    "apiKey": "a-key",
                    "api": "openai-completions",
                    "models": [{**fake, "maxTokens": 8192}],
                }
            },
        },
        "agents": {
            "ownership": "explicit",
            "defaults": {
                "model": MODELS,
                "skipBootstrap": True,
                "heartbeat": {"every": "0m"},
                "compaction": {"keepRecentTokens": 100, "qualityGuard": {"enabled": False}},
                "systemAgent": {"agentId": "main"},
            },
            "entries": entries,
        },
        "tools": {
            "toolSearch": False,
            "agentToAgent": {"enabled": True, "allow": ["main", "research", "ops"]},
            "sessions": {"visibility": "all"},
        },
        "plugins": {"enabled": True, "allow": [], "slots": {"memory": "none"}},
        "discovery": {"mdns": {"mode": "off"}},
    }


def perform(garden: Original) -> None:
    """Do in it what a state can show."""
    main, research, ops = "agent:main:main", "agent:research:main", "agent:ops:main"
    garden.say(main, "good morning")
    send = {"sessionKey": research, "message": "SAY The beds are dry.", "timeoutSeconds": 20}
    garden.say(main, f"CALL sessions_send {json.dumps(send)}")
    garden.say(main, 'CALL sessions_send {"sessionKey": "nobody", "message": "hello", "timeoutSeconds": 5}')
    garden.say("agent:main:telegram:group:42", "hello group")
    garden.say("agent:main:telegram:group:42:thread:7", "hello thread")
    spawn = {"task": "SAY There are 12 carrots.", "label": "counter", "agentId": "research"}
    garden.say(main, f"CALL sessions_spawn {json.dumps({**spawn, 'context': 'isolated'})}")
    forked = {"task": "SAY The fork is done.", "context": "fork", "cleanup": "delete"}
    garden.say(main, f"CALL sessions_spawn {json.dumps(forked)}")
    garden.call("sessions.reset", key=research)
    garden.say(research, "after the reset")
    rewound = next(row for row in events(garden.state, "research") if "after the reset" in row)
    garden.call("sessions.rewind", sessionKey=research, entryId=json.loads(rewound)["id"])
    garden.say(research, "said instead")
    garden.say(ops, LONG)
    garden.say("agent:ops:dashboard:old", "to be deleted")
    garden.call("sessions.delete", key="agent:ops:dashboard:old", deleteTranscript=True)
    compacted = garden.call("sessions.compact", key=main)
    assert compacted["compacted"], compacted
    job = garden.call(
        "cron.add",
        name="water",
        agentId="main",
        schedule={"kind": "cron", "expr": "0 7 * * *", "tz": "Europe/Berlin"},
        sessionTarget="isolated",
        payload={"kind": "agentTurn", "message": "SAY The garden is watered."},
        wakeMode="now",
    )
    garden.call("cron.run", id=job["id"], mode="force")
    time.sleep(8)
    garden.begin_saying(ops, "HOLD")
    Model.held.wait(60)
    send = {"sessionKey": ops, "message": "one more thing", "timeoutSeconds": 0}
    garden.say(main, f"CALL sessions_send {json.dumps(send)}")
    garden.process.send_signal(signal.SIGKILL)
    garden.process.wait()


def events(state: Path, agent: str) -> list[str]:
    """Return the events of an agent's transcripts that are kept as text."""
    path = state / "agents" / agent / "agent" / "openclaw-agent.sqlite"
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
        rows = database.execute("SELECT event_json FROM transcript_events WHERE event_json IS NOT NULL")
        return [text for (text,) in rows]


def statements(path: Path, clean: Any) -> Iterator[str]:
    """Yield the statements that make a database: its schema, and the rows of the tables that an import reads."""
    database = sqlite3.connect(path)
    yield f"PRAGMA user_version = {database.execute('PRAGMA user_version').fetchone()[0]};"
    tables = database.execute(
        "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '%fts%' AND name NOT LIKE 'sqlite%'"
    ).fetchall()
    for name, sql in tables:
        yield f"{sql};"
        columns = [row[1] for row in database.execute(f'PRAGMA table_info("{name}")')]
        values = " || ',' || ".join(f'quote("{column}")' for column in columns)
        rows = database.execute(f'SELECT {values} FROM "{name}"') if name in KEPT else ()  # noqa: S608 - names of its own schema
        for (row,) in rows:
            yield f"INSERT INTO {name} VALUES({clean(row)});"


def keep(state: Path, target: Path) -> None:
    """Write a state into the tests' data."""
    shutil.rmtree(target, ignore_errors=True)

    def clean(text: str) -> str:
        return re.sub(r'"(skillsSnapshot|systemPromptReport)":(\{.*?\}\})(?=,"|\})', r'"\1":{}', text)

    for path in [*state.glob("agents/*/agent/openclaw-agent.sqlite"), state / "state" / "openclaw.sqlite"]:
        kept = target / path.relative_to(state).with_suffix(".sql")
        kept.parent.mkdir(parents=True)
        kept.write_text("\n".join(statements(path, clean)) + "\n", encoding="utf-8")
    for path in state.glob("agents/*/sessions/*"):
        kept = target / path.relative_to(state)
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(path.read_bytes())
    (target / "openclaw.json").write_text(clean((state / "openclaw.json").read_text()), encoding="utf-8")


def installed(folder: Path) -> Path:
    """Install the original and its Node.js, where that is not done; return the folder."""
    if not (folder / "node_modules" / "openclaw").exists():
        folder.mkdir(parents=True, exist_ok=True)
        package = {
            "name": "openclaw-today",
            "private": True,
            "dependencies": {"openclaw": VERSION, "node": "24"},
        }
        (folder / "package.json").write_text(json.dumps(package), encoding="utf-8")
        subprocess.run(
            [npm() or "npm", "install", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=folder, check=True
        )
        subprocess.run([npm() or "npm", "rebuild", "node"], cwd=folder, check=True)
    return folder


def main() -> None:
    """Record it, and write it with `--write`."""
    with tempfile.TemporaryDirectory() as name:
        model = ThreadingHTTPServer(("127.0.0.1", 0), Model)
        model.daemon_threads = True
        threading.Thread(target=model.serve_forever, daemon=True).start()
        garden = Original(installed(Path(os.environ["OPENCLAW_TODAY"])), STATE, model.server_address[1])
        try:
            perform(garden)
        finally:
            garden.process.kill()
        keep(STATE, RECORDED / "garden" if "--write" in sys.argv else Path(name) / "kept")


if __name__ == "__main__":
    main()
