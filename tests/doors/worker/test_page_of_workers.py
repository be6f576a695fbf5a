"""The page of workers is run as it stands: its files, and its three terminals."""

import re
import signal
import subprocess
from pathlib import Path

import pytest

from support.doors.command_line import environment, process
from support.loopback import free_port
from support.paths import DOCS
from support.running import WAIT

PAGE = (DOCS / "howto" / "workers.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    """Return the first block of a language."""
    found = re.search(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def commands() -> list[list[str]]:
    """Return the commands of the three terminals."""
    lines = re.findall(r"^\$ (?:\S+=\S+ )?intersession (.+)$", block("console"), re.MULTILINE)
    return [[text.strip('"') for text in re.findall(r'"[^"]*"|\S+', line)] for line in lines]


@pytest.mark.ci
@pytest.mark.clause("WORK-10")
def test_the_page_works_from_zero(tmp_path: Path) -> None:
    (tmp_path / "host.json5").write_text(block("json5"))
    (tmp_path / "bots.py").write_text(block("python"))
    port = str(free_port())
    serve, work, send = ([token.replace("18789", port) for token in command] for command in commands())
    variables = environment(
        GATEWAY_TOKEN="the host's", WORKER_TOKEN="the worker's", INTERSESSION_WORKER_TOKEN="the worker's"
    )
    children: list[subprocess.Popen[str]] = []
    try:
        for command in ([*serve, "--port", port], work):
            child = subprocess.Popen(
                process(*command), cwd=tmp_path, env=variables, stdout=subprocess.PIPE, text=True
            )
            children.append(child)
            assert child.stdout is not None
            said = child.stdout.readline()
            assert said.startswith("serving") or " calls research, 8 at once" in said
        asked = subprocess.run(
            process(*send),
            cwd=tmp_path,
            env=variables,
            capture_output=True,
            text=True,
            timeout=WAIT * 2,
            check=False,
        )
    finally:
        for child in reversed(children):
            child.send_signal(signal.SIGTERM)
        codes = [child.wait(WAIT) for child in children]
        for child in children:
            assert child.stdout is not None
            child.stdout.close()

    assert "What is there? 1 sessions." in asked.stdout, asked
    assert codes == [0, 0]
