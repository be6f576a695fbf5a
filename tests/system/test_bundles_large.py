"""A bundle of 100,000 events is checked in a memory that any machine has, whatever it withholds."""

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from benchmarks.logs import open_sessions, session_key
from intersession import SessionSystem, echo
from intersession_actors.hindsight.bundling.bundle import make_bundle
from intersession_actors.hindsight.bundling.wanted import BundleWanted
from intersession_events.copies.bundles import verify
from intersession_events.stores.sqlite.log import SqliteLog

_SESSIONS: Final = 10_000
_MESSAGES: Final = 9
_MOST: Final = 200 * 1024
"""In KiB, as Linux has it."""
_CHECK: Final = """
import re, runpy, sys
del sys.argv[0]
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
finally:  # not `ru_maxrss`: that counts what the process was that started this one
    print(re.search("VmHWM:\\\\s+([0-9]+)", open("/proc/self/status").read())[1])
"""


@pytest.mark.nightly
@pytest.mark.sqlite("the verifier reads the bundle alone, whatever store it is of")
@pytest.mark.clause("BUNDLE-10")
def test_each_edition_of_a_hundred_thousand_events_is_checked_in_200_mb(tmp_path: Path) -> None:
    """Before: 320 MB, since each event lay there as an object, and the ends of all streams as one."""
    with SqliteLog(tmp_path / "log.db") as log:
        open_sessions(log, [session_key(number) for number in range(_SESSIONS)], messages=_MESSAGES)
    with SessionSystem(f"sqlite:///{tmp_path}/log.db", agents={"main": echo()}) as system:
        system.checkpoint()
        for redact in (None, "secrets", "words", "people"):
            wanted = BundleWanted(everything=True, redact=redact)
            made = make_bundle(system.debug.view, wanted, tmp_path / f"{redact}.zip")
            assert made.events >= _SESSIONS * (_MESSAGES + 1)

            said = subprocess.run(
                [sys.executable, "-I", "-c", _CHECK, verify.__file__, str(made.path)],
                capture_output=True,
                text=True,
                check=True,
            ).stdout.splitlines()

            assert said[0].startswith("OK:")
            assert int(said[-1]) < _MOST, redact
