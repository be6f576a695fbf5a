"""What runs have used, added up by a view that follows the log."""

from pathlib import Path

from intersession import Reply, SessionSystem, Turn, Usage
from intersession_actors.rules.config.config import Config
from intersession_actors.rules.config.host import Views
from intersession_events.stores.tailing.view import place_of
from support.doors.command_line import ran
from support.fakes import ManualClock
from support.running import WAIT
from support.soaking import until


def costly(turn: Turn) -> Reply:
    return Reply("yes", model="large", usage=Usage(input=10, output=len(turn.message), cost_micros=7))


def test_usage_is_kept_while_the_system_runs_and_added_up_on_demand(tmp_path: Path) -> None:
    """Issue 9: usage is a projection that follows the log."""
    path = tmp_path / "log.db"
    agents = {"main": costly, "ops": costly}
    config = Config(views=Views(keep=("usage",), after_seconds=0))
    # All on one day, by a clock that stands still.
    with SessionSystem(f"sqlite:///{path}", agents=agents, config=config, clock=ManualClock()) as system:
        for number in range(3):
            system.inbound(
                channel="telegram", chat_id="1", text="ab", sender="ann", message_id=str(number), wait=WAIT
            )
        until(Path(place_of(str(path), "usage")).exists)
    assert not Path(place_of(str(path), "search")).exists()

    def told(*tokens: str) -> list[dict[str, object]]:
        found: list[dict[str, object]] = ran("usage", *tokens, "--store", path, "--json").json["usage"]
        return found

    (row,) = told()
    assert (row["agent"], row["runs"], row["input"], row["costMicros"]) == ("main", 3, 30, 21)
    assert [found["model"] for found in told("--by", "model")] == ["large"]
    assert [found["runs"] for found in told("--by", "session")] == [3]
    assert [found["runs"] for found in told("--by", "day")] == [3]
    assert told("--until", "2001-01-01") == []
    Path(place_of(str(path), "usage")).unlink()
    assert told() == [row]  # it is built anew from the log
    assert "3 runs with known usage" in ran("usage", "--store", path).out
