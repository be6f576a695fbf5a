"""Agents of a worker in a process of its own, which files in the folder `$AT_WORK` steer and hear of."""

import os
import threading
from pathlib import Path

from intersession import Turn

_NEVER = threading.Event()


def main(turn: Turn) -> str:
    """Do what the message says: wait for a file, or work in steps."""
    folder = Path(os.environ["AT_WORK"])
    _note(folder / "calls", f"{turn.run_id} {turn.attempt}")
    what, _, name = turn.message.partition(" for ")
    if what == "wait":
        (folder / "began").touch()
        while not (folder / name).exists():
            _NEVER.wait(0.01)
        return "went"
    for _ in range(3):
        _NEVER.wait(0.05)
        answer = turn.tools.call("sessions_list", {"limit": 1})
        if "error" in answer:
            _note(folder / "refused", f"{turn.run_id} {turn.attempt} {answer['error']}")
    return f"did {turn.message}"


def _note(file: Path, line: str) -> None:
    opened = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(opened, f"{line}\n".encode())
    finally:
        os.close(opened)


AGENTS = {"main": main}
