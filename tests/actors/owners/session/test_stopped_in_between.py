"""A system that stops between a commit and the answer to its caller."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from intersession import echo
from intersession_events.facts import SessionPatched
from support.running import WAIT, Booth


@pytest.mark.clause("L7")
def test_a_caller_whose_commit_is_not_told_yet_is_not_kept_by_a_stop(booth: Booth) -> None:
    """Before: its actor had stopped when the commit was told, and the caller waited until its 30 s were over."""
    system = booth.start({"main": echo()})
    system.gateway.call("sessions.patch", {"key": "main", "label": "a"})
    stored, told = threading.Event(), threading.Event()

    def hear(_: Any) -> None:
        stored.set()
        told.wait(WAIT)

    system.log.on_committed(hear, SessionPatched, first=True)
    with ThreadPoolExecutor(2) as threads:
        try:
            asked = threads.submit(system.gateway.call, "sessions.patch", {"key": "main", "label": "b"})
            assert stored.wait(WAIT)
            stopped = threads.submit(system.close, 0)
            answer = asked.result(WAIT / 2)
        finally:
            told.set()
        stopped.result(WAIT)

    assert answer["code"] == "unavailable"
    assert "not known whether this is recorded" in answer["error"]
