"""Make the golden logs of the running version: the command `intersession demo` and imports, and what is read out of them.

    OPENCLAW_STATE_SAMPLES=STATES python tests/golden/make_golden.py 0.1.0 tests/golden/0.1.0

STATES is a folder of OpenClaw state directories; each becomes a log of its name. Run once for each release, by that release;
what a release made is never made again. Until the first one, delete the folder and run it when what is stored changes.

A demo's log names the place of its transcripts, so all logs are made in one folder that is called the same on all machines,
`intersession-golden` in the folder for temporary files. The script refuses to keep a log that names another place of this machine.
"""

import argparse
import os
import shutil
import sqlite3
import sys
import tempfile
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

from support.doors.command_line import ran_as_process  # noqa: E402 - found by the line above
from support.golden_logs import pack, read  # noqa: E402

PLACE = Path(tempfile.gettempdir()) / "intersession-golden"


def main() -> None:
    """Make the logs, read them, keep both."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("version", help="the version that runs; another one is refused")
    parser.add_argument("out", type=Path, help="the folder to make")
    given = parser.parse_args()
    if given.version != (running := version("intersession")):
        parser.error(f"{running} runs here, not {given.version}")
    if "OPENCLAW_STATE_SAMPLES" not in os.environ:
        parser.error("OPENCLAW_STATE_SAMPLES names no folder of state directories")
    states = Path(os.environ["OPENCLAW_STATE_SAMPLES"]).resolve()
    given.out.mkdir(parents=True)
    PLACE.mkdir()
    try:
        for path in [made("demo", "demo", "--store", "demo.db", cwd=PLACE), *imported(states)]:
            refuse_traces(path, states)
            folder = PLACE / "copies" / path.stem
            folder.mkdir(parents=True)
            pack(path, read(path, folder), given.out)
    finally:
        shutil.rmtree(PLACE)


def imported(states: Path) -> list[Path]:
    """Import each state by its name alone, so that the log does not say where it lay."""
    return [
        made(state.name, "import", "openclaw", state.name, "--store", PLACE / f"{state.name}.db", cwd=states)
        for state in sorted(states.iterdir())
    ]


def made(name: str, *tokens: object, cwd: Path) -> Path:
    """Run a command that makes a log, and return the database with everything in its one file."""
    done = ran_as_process(*tokens, cwd=cwd, variables={"HOME": str(PLACE)})
    if done.exit_code != 0:
        raise SystemExit(f"{name}: {done.err or done.out}")
    path = PLACE / f"{name}.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    if left := [other.name for other in PLACE.glob(f"{name}.db-*")]:
        raise SystemExit(f"{name}: not closed, beside it lie {left}")
    return path


def refuse_traces(path: Path, states: Path) -> None:
    """See that nothing in a log tells of the machine on which it was made."""
    content = path.read_bytes()
    for place in (states, Path.home(), TESTS.parent):
        if f"{place}/".encode() in content:
            raise SystemExit(f"{path.name}: {place} stands in it")


if __name__ == "__main__":
    main()
