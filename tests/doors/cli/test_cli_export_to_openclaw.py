"""The original, from its package, on a directory that we exported: it lists the sessions, and goes on with one."""

import json
import os
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from support.doors.command_line import ran
from support.golden_logs import GoldenLog
from support.loopback import JsonHandler
from support.openclaw.client import OpenClaw, install, npm
from support.paths import DATA

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.timeout(1_500),
    pytest.mark.skipif(npm() is None, reason="npm is needed to install the original"),
]

MAIN = "agent:main:main"
RESEARCH = "agent:research:main"


class Streaming(JsonHandler):
    """An OpenAI-compatible endpoint that streams one answer, as the original asks for."""

    asked: ClassVar[list[dict[str, Any]]] = []

    def asked_for(self, request: Any) -> None:
        self.asked.append(request)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for delta, finish in (({"role": "assistant", "content": "it went on"}, None), ({}, "stop")):
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            chunk = {
                "id": "c",
                "object": "chat.completion.chunk",
                "created": 1,
                "model": request["model"],
                "choices": [choice],
            }
            self.wfile.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
        self.wfile.write(b"data: [DONE]\n\n")


@contextmanager
def streaming() -> Generator[str]:
    Streaming.asked.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Streaming)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    server.shutdown()
    server.server_close()


@pytest.mark.clause("EXP-1", "EXP-3")
def test_the_original_lists_an_export_goes_on_with_a_session_and_we_read_that_back(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Before: a state directory could not be exported."""
    named = os.environ.get("OPENCLAW_CLIENT")
    installed = install(Path(named) if named else tmp_path_factory.mktemp("openclaw-client"))
    store = GoldenLog("0.1.0", "demo").unpack(tmp_path)
    state = tmp_path / "state"
    original = OpenClaw(installed, tmp_path / "home", "http://127.0.0.1:9", "none")
    exported = ran("export", "openclaw", state, "--store", store, "--json").json
    before = ran("history", "main", "--store", store, "--raw", "--json").json["messages"]
    path = state / "openclaw.json"

    with streaming() as address:
        given = json.loads(path.read_text(encoding="utf-8"))
        base = json.loads((DATA / "openclaw_configs" / "base.json").read_text(encoding="utf-8"))
        base["models"]["providers"]["fake"]["baseUrl"] = address
        given["models"] = base["models"]
        given["agents"]["defaults"] = {
            "model": {"primary": "fake/fake-1"},
            "workspace": str(tmp_path / "workspace"),
            "skipBootstrap": True,
        }
        path.write_text(json.dumps(given), encoding="utf-8")
        listed = original.run("sessions", "--all-agents", "--json", OPENCLAW_STATE_DIR=str(state))
        went_on = original.run(
            *("agent", "--local", "--agent", "main", "--message", "and now?", "--json"),
            OPENCLAW_STATE_DIR=str(state),
        )

    assert exported["sessions"] == listed.json["count"]
    assert {MAIN, RESEARCH} <= {row["key"] for row in listed.json["sessions"]}
    assert went_on.exit_code == 0, went_on
    [asked] = Streaming.asked
    told = json.dumps(asked["messages"])
    for message in before:
        if message["role"] == "assistant" and message["content"][0]["type"] == "text":
            assert json.dumps(message["content"][0]["text"])[1:-1] in told

    again = tmp_path / "again.db"
    ran("import", "openclaw", state, "--store", again)
    after = ran("history", "main", "--store", again, "--raw", "--json").json["messages"]
    assert [row["id"] for row in after[: len(before)]] == [row["id"] for row in before]
    assert [row["role"] for row in after[len(before) :]] == ["user", "assistant"]
    assert after[-1]["content"][0]["text"] == "it went on"
