"""`intersession migrate` moves a host's log, and what it did can be read there as before."""

from pathlib import Path

import pytest

from intersession import SessionSystem, echo
from support.doors.command_line import DemoLog, ran
from support.running import WAIT


def test_a_host_goes_on_in_the_file_that_its_log_was_moved_to(tmp_path: Path) -> None:
    """Issue 13: the same store either way; PostgreSQL is tried by `pytest -m postgres`."""
    source, target = tmp_path / "s.db", tmp_path / "moved.db"
    with SessionSystem(source, agents={"main": echo("heard: ")}) as system:
        system.inbound(channel="telegram", chat_id="1", sender="ada", text="one", wait=WAIT)
        refused = ran("migrate", source, target, "--json")
        log_id = system.log.log_id
    assert (refused.exit_code, refused.json["code"]) == (3, "store_locked")

    done = ran("migrate", source, target, "--json").json

    assert (done["logId"], done["from"], done["to"]) == (log_id, str(source), str(target))
    assert done["events"] == done["position"] > 0
    assert "session_list" in done["views"]
    with SessionSystem(target, agents={"main": echo("heard: ")}) as system:
        system.inbound(channel="telegram", chat_id="1", sender="ada", text="two", wait=WAIT)
    assert "heard: one" in (told := ran("history", "main", "--store", target).out)
    assert "heard: two" in told
    assert ran("verify", "--store", target).exit_code == 0


def test_people_are_told_what_was_moved_and_that_there_are_two_now(demo_log: DemoLog, tmp_path: Path) -> None:
    source = demo_log.copy(tmp_path)
    told = ran("migrate", source, tmp_path / "moved.db").out

    assert told.startswith(f"moved: {demo_log.value['position']} events up to position")
    assert "Write to one of the two" in told


@pytest.mark.parametrize(
    ("source", "target", "refusal"),
    [
        ("none.db", "to.db", (3, "no_store")),
        ("from.db", "there.db", (1, "migration_failed")),
        ("from.db", "postgresql://postgres:s3cr3t@127.0.0.1:1/postgres", (3, "unavailable")),
        ("from.db", "mysql://somebody@host/base", (3, "no_store")),
        ("from.db", ":memory:", (3, "no_store")),
    ],
)
def test_what_can_not_be_moved_is_refused(
    demo_log: DemoLog, tmp_path: Path, source: str, target: str, refusal: tuple[int, str]
) -> None:
    demo_log.copy(tmp_path).rename(tmp_path / "from.db")
    (tmp_path / "there.db").write_text("mine", encoding="utf-8")

    refused = ran("migrate", tmp_path / source, target if ":" in target else tmp_path / target, "--json")

    assert (refused.exit_code, refused.json["code"]) == refusal
    assert "s3cr3t" not in refused.out + refused.err
