"""A list that gives less than it was asked for says so."""

from pathlib import Path

from intersession import SessionSystem
from support.doors.command_line import ran


def test_sessions_says_that_a_page_is_smaller_than_asked_for(tmp_path: Path) -> None:
    """Finding D5: `--limit 1000` gave 200 in silence."""
    store = tmp_path / "s.db"
    with SessionSystem(store, agents={"main": lambda turn: turn.message}) as system:
        for number in range(201):
            system.gateway.perform("sessions.patch", {"key": f"agent:main:n{number}", "label": f"n{number}"})

    asked = ran("sessions", "--limit", 1000, "--store", store, "--json").json
    told = ran("sessions", "--limit", 1000, "--store", store)
    enough = ran("sessions", "--limit", 200, "--store", store, "--json").json

    assert (asked["count"], asked["limitedTo"]) == (200, 200)
    assert "at most 200 sessions, and there are more" in told.err
    assert "limitedTo" not in enough
