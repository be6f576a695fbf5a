"""`intersession serve` as a process of a test, with one of the original's configurations."""

import json
import os
import signal
import subprocess
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx

from support.doors.command_line import environment, process
from support.doors.gateway_live import WAIT
from support.paths import DATA
from support.processes.forked import ForkedCommand

CONFIGS = DATA / "openclaw_configs"


class Served:
    """A gateway in another process. Each start takes seconds: see `ForkedGateway`."""

    def __init__(self, *arguments: object, port: int = 0, **variables: str) -> None:
        self.child = self._started(
            ["serve", "--port", str(port), *map(str, arguments)], environment() | variables
        )
        assert self.child.stdout is not None
        line = self.child.stdout.readline()
        if not line.startswith("serving "):
            raise AssertionError(f"it did not start: {line} {self.child.communicate(timeout=WAIT)}")
        self.agents, _, self.address = line.removeprefix("serving ").strip().rpartition(" at ")

    def _started(
        self, tokens: list[str], variables: dict[str, str]
    ) -> "subprocess.Popen[str] | ForkedCommand":
        return subprocess.Popen(
            process(*tokens), env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def invoke(self, token: str, tool: str, arguments: dict[str, Any], **fields: Any) -> httpx.Response:
        return httpx.post(
            f"{self.address}/tools/invoke",
            json={"tool": tool, "args": arguments, **fields},
            headers={"authorization": f"Bearer {token}"},
            timeout=WAIT,
            trust_env=False,
            verify=False,  # noqa: S501 - there is no TLS here
        )

    def signal(self, number: int = signal.SIGTERM) -> None:
        os.kill(self.child.pid, number)

    def end(self) -> tuple[int, str]:
        """Wait until it is gone; return its exit code and what it said."""
        said = "".join(self.child.communicate(timeout=WAIT))
        assert self.child.returncode is not None
        return self.child.returncode, said


class ForkedGateway(Served):
    """A gateway in another process that is forked, in a fraction of a second, from one that has imported it."""

    def _started(self, tokens: list[str], variables: dict[str, str]) -> ForkedCommand:
        return ForkedCommand(tokens, variables)


def config_for(tmp_path: Path, endpoint: ThreadingHTTPServer, name: str = "base", **gateway: Any) -> Path:
    """Return one of the original's configurations, with its endpoint where this test has one."""
    given = json.loads((CONFIGS / f"{name}.json").read_text(encoding="utf-8"))
    for provider in given["models"]["providers"].values():
        provider["baseUrl"] = f"http://127.0.0.1:{endpoint.server_address[1]}/v1"
    given["gateway"] |= gateway
    path = tmp_path / "openclaw.json"
    path.write_text(json.dumps(given), encoding="utf-8")
    return path


def token_of(path: Path) -> str:
    return str(json.loads(path.read_text(encoding="utf-8"))["gateway"]["auth"]["token"])
