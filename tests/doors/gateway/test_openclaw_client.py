"""The original's own client, from its package, against our gateway: what its users would type."""

import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Self

import pytest

from support.doors.gateway_live import WAIT
from support.doors.scripted_endpoint import Endpoint, scripted_endpoint
from support.doors.served_gateway import Served, config_for, token_of
from support.openclaw.client import OpenClaw, install, npm

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.timeout(1_500),
    pytest.mark.skipif(npm() is None, reason="npm is needed to install the client"),
]

MAIN = "agent:main:main"
OPS = "agent:ops:main"


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the client, installed for this run or before."""
    named = os.environ.get("OPENCLAW_CLIENT")
    return install(Path(named) if named else tmp_path_factory.mktemp("openclaw-client"))


class World(NamedTuple):
    """A gateway of agents that ask a scripted model, and the client. `restart` gives the next gateway on the log."""

    client: OpenClaw
    restart: Callable[[], None]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, installed: Path) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("gateway")
    running: list[Served] = []
    with scripted_endpoint() as endpoint:
        config = config_for(folder, endpoint)

        def serve() -> str:
            running.append(Served("--store", folder / "log.db", "--config", config))
            return running[-1].address

        client = OpenClaw(installed, folder / "home", serve(), token_of(config))

        def restart() -> None:
            running[-1].signal()
            code, said = running[-1].end()
            assert code == 0, said
            client.url = serve().replace("http", "ws", 1)
            client.use(client.url, client.token)

        yield World(client, restart)
        for served in running:
            if served.child.poll() is None:
                served.child.kill()
                served.child.communicate(timeout=WAIT)


@pytest.fixture
def client(world: World) -> OpenClaw:
    return world.client


def said(client: OpenClaw, text: str, key: str, **fields: Any) -> Any:
    """Let an agent answer, and return the last answer of `agent`."""
    return client.payload("agent", {"message": text, "idempotencyKey": key, **fields}, "--expect-final")


# --- gateway call


@pytest.mark.clause("GATE-1")
def test_health_and_status_come_through(client: OpenClaw) -> None:
    health, status = client.payload("health"), client.payload("status")

    assert health["ok"] is True
    assert {agent["agentId"] for agent in health["agents"]} == {"main", "research", "ops"}
    assert status["position"] >= health["position"]
    assert status["sessions"]["defaults"]["model"] == "fake/fake-1"


@pytest.mark.clause("GATE-1")
def test_agents_and_models_are_listed(client: OpenClaw) -> None:
    agents, models = client.payload("agents.list"), client.payload("models.list")
    identity = client.payload("agent.identity.get", {"agentId": "ops"})

    assert (agents["defaultId"], [each["id"] for each in agents["agents"]]) == (
        "main",
        ["main", "ops", "research"],
    )
    assert models["models"] == [{"id": "fake-1", "name": "fake-1", "provider": "fake"}]
    assert identity == {"agentId": "ops", "name": "Ops"}


@pytest.mark.clause("GATE-1", "GATE-3", "O7")
def test_an_agents_last_answer_is_waited_for_and_asked_for_again_after_a_restart(world: World) -> None:
    client = world.client
    last = said(client, "good morning", "first-run", sessionKey=MAIN)
    before = client.payload("agent.wait", {"runId": "first-run", "timeoutMs": 20_000})
    world.restart()
    after = client.payload("agent.wait", {"runId": "first-run", "timeoutMs": 20_000})
    again = said(client, "good morning", "first-run", sessionKey=MAIN)
    unknown = client.call("agent.wait", {"runId": "no such run"})

    assert (last["runId"], last["status"]) == ("first-run", "ok")
    assert last["result"]["payloads"] == [{"text": "model says: good morning", "mediaUrl": None}]
    assert last["result"]["meta"]["agentMeta"]["usage"]["totalTokens"] == 7
    assert before["reply"] == "model says: good morning"
    assert after == before
    assert again["result"]["payloads"] == last["result"]["payloads"]
    assert unknown.exit_code == 1
    assert "there is no run 'no such run'" in unknown.err


@pytest.mark.clause("GATE-1", "GATE-3")
def test_without_expect_final_the_accepted_run_comes_and_is_waited_for(client: OpenClaw) -> None:
    accepted = client.payload(
        "agent", {"message": "and now?", "agentId": "research", "idempotencyKey": "second-run"}
    )
    waited = client.payload("agent.wait", {"runId": accepted["runId"], "timeoutMs": 20_000})

    assert (accepted["runId"], accepted["status"]) == ("second-run", "accepted")
    assert (waited["status"], waited["reply"]) == ("ok", "model says: and now?")


@pytest.mark.clause("GATE-2")
def test_settings_of_a_session_are_set_cleared_and_refused(client: OpenClaw) -> None:
    key = "agent:main:patched"
    put = client.payload("sessions.patch", {"key": key, "sendPolicy": "deny", "label": "The desk"})
    denied = client.call("agent", {"message": "hi", "sessionKey": key, "idempotencyKey": "denied"})
    cleared = client.payload("sessions.patch", {"key": key, "sendPolicy": None})
    model = client.payload("sessions.patch", {"key": key, "model": "fake/fake-1", "thinkingLevel": "low"})
    lineage = client.call("sessions.patch", {"key": key, "spawnedBy": OPS})
    level = client.call("sessions.patch", {"key": key, "thinkingLevel": "much"})

    assert (put["key"], put["entry"]["sendPolicy"], put["entry"]["label"]) == (key, "deny", "The desk")
    assert denied.exit_code == 1
    assert "sendPolicy" in denied.err or "send policy" in denied.err.lower(), denied.err
    assert "sendPolicy" not in cleared["entry"]
    assert model["resolved"] == {"modelProvider": "fake", "model": "fake-1"}
    assert model["entry"]["thinkingLevel"] == "low"
    assert (lineage.exit_code, level.exit_code) == (1, 1)
    assert "spawnedBy: unknown field" in lineage.err
    assert "thinkingLevel: there is no such level" in level.err


@pytest.mark.clause("GATE-1", "GATE-2", "HIST-3")
def test_a_chat_is_sent_read_listed_found_reset_and_deleted(client: OpenClaw) -> None:
    key = "agent:ops:room"
    started = client.payload("chat.send", {"sessionKey": key, "message": "hello", "idempotencyKey": "chat"})
    client.payload("agent.wait", {"runId": "chat", "timeoutMs": 20_000})
    client.payload("chat.inject", {"sessionKey": key, "message": "by hand"})
    history = client.payload("chat.history", {"sessionKey": key, "limit": 10})
    client.payload("sessions.patch", {"key": key, "label": "Room"})
    listed = client.payload("sessions.list", {"agentId": "ops", "includeLastMessage": True})
    found = client.payload("sessions.resolve", {"label": "Room"})
    preview = client.payload("sessions.preview", {"keys": [key, "agent:ops:nothing"]})
    reset = client.payload("sessions.reset", {"key": key})
    empty = client.payload("chat.history", {"sessionKey": key})
    deleted = client.payload("sessions.delete", {"key": key})
    main = client.call("sessions.delete", {"key": MAIN})  # whether it is there or not

    assert started == {"runId": "chat", "status": "started", "sessionKey": key}
    assert [message["role"] for message in history["messages"]] == ["user", "assistant", "assistant"]
    row = next(row for row in listed["sessions"] if row["key"] == key)
    assert (row["label"], row["lastMessagePreview"]) == ("Room", "by hand")
    assert found == {"ok": True, "key": key}
    assert [each["status"] for each in preview["previews"]] == ["ok", "missing"]
    assert reset["entry"]["sessionId"] != history["sessionId"]
    assert empty["messages"] == []
    assert (deleted["ok"], deleted["deleted"]) == (True, True)
    assert main.exit_code == 1


@pytest.mark.clause("GATE-5")
def test_a_run_is_aborted(client: OpenClaw) -> None:
    key = "agent:research:long"
    Endpoint.reached.clear()
    client.payload("chat.send", {"sessionKey": key, "message": "hold on", "idempotencyKey": "long"})
    assert Endpoint.reached.wait(WAIT)
    aborted = client.payload("chat.abort", {"sessionKey": key, "runId": "long"})
    waited = client.payload("agent.wait", {"runId": "long", "timeoutMs": 20_000})
    Endpoint.go_on.set()

    assert aborted == {"ok": True, "aborted": True, "runIds": ["long"]}
    assert waited["status"] == "aborted"


@pytest.mark.clause("GATE-1", "POL-3")
def test_a_text_is_put_out_to_a_channel(client: OpenClaw) -> None:
    answer = client.payload(
        "send",
        {"channel": "testchan", "to": "room", "message": "to whom it may concern", "idempotencyKey": "out"},
    )

    assert (answer["runId"], answer["channel"]) == ("out", "testchan")
    assert answer["messageId"]


@pytest.mark.clause("GATE-1")
def test_a_wrong_token_and_an_unknown_method_are_told_apart(client: OpenClaw) -> None:
    wrong = client.call("health", token="wrong")
    unknown = client.call("no.such.method")
    surplus = client.call("agents.list", {"surprise": 1})

    assert (wrong.exit_code, unknown.exit_code, surplus.exit_code) == (1, 1, 1)
    assert "unauthorized: gateway token mismatch" in wrong.err
    assert "unknown method: 'no.such.method'" in unknown.err
    assert "surprise: unknown field" in surplus.err


# --- the commands above it


@pytest.mark.clause("GATE-1")
def test_its_own_health_command_reads_ours(client: OpenClaw) -> None:
    done = client.run("health")
    short = client.run("gateway", "health")

    assert (done.exit_code, short.exit_code) == (0, 0), (done, short)
    assert "Agents: main (default)" in done.out
    assert "Session store (main): log " in done.out
    assert "OK" in short.out


@pytest.mark.clause("GATE-1")
def test_its_agent_command_asks_our_agent(client: OpenClaw) -> None:
    session_id = said(client, "hello", "for-its-id", sessionKey=OPS)["result"]["meta"]["agentMeta"][
        "sessionId"
    ]

    text = client.run("agent", "--agent", "ops", "--message", "what is new?")
    whole = client.run("agent", "--agent", "ops", "--message", "and now?", "--json", "--timeout", 60)
    by_id = client.run("agent", "--agent", "ops", "--session-id", session_id, "--message", "by id", "--json")

    assert (text.exit_code, text.out.strip()) == (0, "model says: what is new?"), text
    assert whole.json["result"]["payloads"][0]["text"] == "model says: and now?"
    assert by_id.json["result"]["meta"]["agentMeta"]["sessionId"] == session_id


@pytest.mark.clause("GATE-1")
def test_it_finds_the_gateway_well(client: OpenClaw) -> None:
    named = ("--json", "--url", client.url, "--token", client.token)
    status = client.run("gateway", "status", *named)
    # Elsewhere: a gateway in its configuration it also tries to reach by ssh.
    probe = client.run("gateway", "probe", *named, OPENCLAW_STATE_DIR=str(client.home / "elsewhere"))

    assert status.exit_code == 0, status
    assert status.json["rpc"] == {"ok": True, "url": client.url}
    target = next(each for each in probe.json["targets"] if each["url"] == client.url)
    assert target["connect"]["ok"], probe
    assert target["config"]["gateway"]["authTokenConfigured"]
    assert target["summary"]["ok"]


@pytest.mark.clause("GATE-1")
def test_its_editor_bridge_holds_a_conversation(client: OpenClaw) -> None:
    """`openclaw acp`: JSON-RPC over standard input and output; it hears of a run by its own name for it."""
    with Bridge(client) as bridge:
        bridge.ask("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        opened = bridge.ask(
            "session/new", {"cwd": str(client.home), "mcpServers": [], "_meta": {"sessionKey": OPS}}
        )
        prompt = {"sessionId": opened["sessionId"], "prompt": [{"type": "text", "text": "from an editor"}]}
        ended = bridge.ask("session/prompt", prompt)
        listed = bridge.ask("session/list", {})

    assert ended == {"stopReason": "end_turn"}
    assert [text for text in bridge.chunks if "from an editor" in text]
    assert OPS in [row["sessionId"] for row in listed["sessions"]]


class Terminal:
    """The client's `tui` in a terminal of its own: what is typed goes in, what it showed is kept."""

    def __init__(self, client: OpenClaw, *words: str) -> None:
        self.shown = ""
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 140, 0, 0))
        self._child = subprocess.Popen(
            client.command("tui", *words),
            env=client.environment(TERM="xterm"),
            cwd=client.home,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self._limit = threading.Timer(90, os.killpg, (self._child.pid, signal.SIGKILL))
        self._limit.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._limit.cancel()
        os.killpg(self._child.pid, signal.SIGKILL)
        self._child.wait(WAIT)
        os.close(self._ours)

    def shows(self, text: str) -> None:
        """Wait until it has shown a text since the last call; what it showed up to then is `shown`."""
        self.shown = ""
        try:
            while text not in self.shown:
                self.shown += os.read(self._ours, 65_536).decode(errors="replace")
        except OSError as gone:  # its end of the terminal is closed
            raise AssertionError(f"it ended before it showed {text!r}: {self.shown[-2000:]!r}") from gone

    def types(self, text: str) -> None:
        """Type a line, a key at a time: what comes at once is taken for something that was pasted.

        The first Enter after a command may only take what the terminal proposes to complete it with.
        """
        for key in (*text, "\r", *(["\r"] if text.startswith("/") else [])):
            os.write(self._ours, key.encode())
            time.sleep(0.5 if key == "\r" else 0.05)


@pytest.mark.clause("GATE-1")
def test_its_terminal_client_shows_the_answer(client: OpenClaw) -> None:
    """`openclaw tui`: it hears of a run by its own name for it, and finds its session by the whole key."""
    words = ("--session", "agent:research:terminal", "--message", "from a terminal")
    with Terminal(client, *words) as terminal:
        terminal.shows("model says: from a terminal")


@pytest.mark.clause("GATE-1", "GATE-2")
def test_its_terminal_client_begins_on_a_fresh_gateway(tmp_path: Path, installed: Path) -> None:
    """Before: no session is there yet, `/agent` goes to another one, `/reasoning` sets a level."""
    with scripted_endpoint() as endpoint:
        config = config_for(tmp_path, endpoint)
        served = Served("--store", tmp_path / "log.db", "--config", config)
        fresh = OpenClaw(installed, tmp_path / "home", served.address, token_of(config))
        try:
            with Terminal(fresh) as terminal:
                terminal.shows("connected")
                began = terminal.shown
                terminal.types("/agent ops")
                terminal.shows("agent:ops:main")
                began += terminal.shown
                terminal.types("/reasoning on")
                terminal.shows("reasoning set to on")
                began += terminal.shown
                terminal.types("hello ops")
                terminal.shows("model says: hello ops")
            [row] = fresh.payload("sessions.list")["sessions"]
        finally:
            served.signal()
            served.end()

    assert "history failed" not in began
    assert "failed" not in began
    assert (row["key"], row["reasoningLevel"]) == (OPS, "on")


class Bridge:
    """A conversation with `openclaw acp`; it is ended when it does not answer in time."""

    def __init__(self, client: OpenClaw) -> None:
        self._child = subprocess.Popen(
            client.command("acp"),
            env=client.environment(),
            cwd=client.home,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        self._limit = threading.Timer(90, self._end)
        self._number = 0
        self.chunks: list[str] = []

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._number += 1
        frame = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        self._child.stdin.write(json.dumps(frame) + "\n")
        self._child.stdin.flush()
        for line in self._child.stdout:
            told = json.loads(line)
            if told.get("id") == self._number:
                assert "result" in told, told
                return told["result"]
            update = told.get("params", {}).get("update", {})
            if update.get("sessionUpdate") == "agent_message_chunk":
                self.chunks.append(update["content"]["text"])
        raise AssertionError(f"the bridge ended before it answered {method}")

    def __enter__(self) -> Self:
        self._limit.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._limit.cancel()
        self._end()
        self._child.communicate()

    def _end(self) -> None:
        # The client starts itself once more, with other options: both are of one group.
        os.killpg(self._child.pid, signal.SIGKILL)
