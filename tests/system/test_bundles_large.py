"""A bundle of 100,000 events is checked in a memory that any machine has, whatever it withholds."""

import os
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

            checking = [sys.executable, "-I", verify.__file__, str(made.path)]
            with subprocess.Popen(checking, stdout=subprocess.PIPE) as child:
                assert child.stdout is not None
                said = child.stdout.read()
                _, status, used = os.wait4(child.pid, 0)

            assert (status, said[:3]) == (0, b"OK:"), said
            assert used.ru_maxrss < _MOST, redact
