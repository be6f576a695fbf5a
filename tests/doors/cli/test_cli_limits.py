"""A number that no list can have is a usage error, not a fault of this software (finding A16, at the command line)."""

from pathlib import Path

import pytest

from intersession import SessionSystem, echo
from support.doors.command_line import ran


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("limits") / "log.db"
    with SessionSystem(path, agents={"main": echo()}) as system:
        system.inbound(channel="webchat", chat_id="1", text="hi", sender="ann", deliver=False)
    return path


@pytest.mark.parametrize("command", [("runs",), ("audit", "access")], ids=" ".join)
@pytest.mark.parametrize("limit", ["0", "-1", "100001", "9" * 30, "nan"])
def test_a_limit_out_of_range_is_a_usage_error(log: Path, command: tuple[str, ...], limit: str) -> None:
    done = ran(*command, "--limit", limit, "--store", log, "--json")

    assert (done.exit_code, done.json["code"]) == (2, "usage")


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (("sessions", "--search", "x" * 100_000), "invalid_request"),
        (("sessions", "--as", "x" * 100_000), "invalid_key"),
        (("history", "main", "--as-of", "x" * 100_000), "invalid_request"),
        (("history", "x" * 100_000), "invalid_key"),
        (("replay", "x" * 100_000), "not_visible"),
    ],
    ids=lambda given: str(given)[:20],
)
def test_what_is_too_long_or_no_number_is_refused(log: Path, command: tuple[str, ...], code: str) -> None:
    done = ran(*command, "--store", log, "--json")

    assert done.json["code"] == code
    assert len(done.json["error"]) < 300
