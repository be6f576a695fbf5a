"""A recording in a file says in its first line what follows: one that was cut, added to or changed is refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from intersession import CorruptEvent, MemoryChannel, SessionSystem, replay_file
from intersession_actors.hindsight.replaying.recordings import Recordings
from intersession_actors.outside.agents.turn import Turn
from intersession_actors.running.simulation.simulated import SimulatedRuntime
from intersession_events import facts
from support.resealed import read_lines, write_resealed
from support.simulated_runs import CONFIG

pytestmark = pytest.mark.clause("SEAL-3")


def asks(turn: Turn) -> str:
    """Sends once, and waits for the answer."""
    if turn.step == "message":
        sent = {"sessionKey": "agent:b:main", "message": "how is it?", "timeoutSeconds": 30}
        return f"b says {turn.tools.call('sessions_send', sent).get('reply')}"
    return "told"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return the recording of an exchange, as it was written."""
    folder, runtime = tmp_path_factory.mktemp("recorded"), SimulatedRuntime(3)
    system = SessionSystem(
        folder / "log.db",
        runtime=runtime,
        agents={"a": asks, "b": lambda _: "well"},
        channels={"chat": MemoryChannel()},
        config=CONFIG,
    )
    with system:
        for who in ("b", "a"):
            system.inbound(channel="chat", chat_id=who, sender="u", agent_id=who, text="hello")
            runtime.run_for(60)
        run = next(
            one.event.run_id for one in system.log.all() if isinstance(one.event, facts.ExchangeAccepted)
        )
        Recordings(system.log).write(system.debug.view.flow(run), folder / "kept.jsonl")
    return (folder / "kept.jsonl").read_bytes()


@pytest.fixture
def file(tmp_path: Path, written: bytes) -> Path:
    kept = tmp_path / "kept.jsonl"
    kept.write_bytes(written)
    return kept


def with_each(lines: list[bytes], change: Callable[[dict[str, Any]], dict[str, Any]]) -> list[bytes]:
    """Return a recording with each of its events changed."""
    return [lines[0], *(msgspec.json.encode(change(msgspec.json.decode(line))) for line in lines[1:])]


def with_first(lines: list[bytes], **fields: Any) -> list[bytes]:
    """Return a recording with another first line; a field that is None is taken out of it."""
    first = msgspec.json.decode(lines[0]) | fields
    kept = {name: value for name, value in first.items() if value is not None}
    return [msgspec.json.encode(kept), *lines[1:]]


def test_the_first_line_says_how_many_events_follow(file: Path) -> None:
    lines = read_lines(file)

    assert lines[0]["events"] == len(lines) - 1 > 20
    found = replay_file(file)
    assert found["same"]
    assert found["events"] > 10


@pytest.mark.parametrize(
    "cut",
    [
        pytest.param(lambda lines: lines[:-1], id="its last line"),
        pytest.param(lambda lines: lines[:-5], id="its last five lines"),
        pytest.param(lambda lines: lines[:1], id="all but the first line"),
        pytest.param(lambda lines: [*lines, lines[-1]], id="a line added"),
    ],
)
def test_a_recording_with_another_number_of_lines_is_refused(
    file: Path, cut: Callable[[list[bytes]], list[bytes]]
) -> None:
    lines = file.read_bytes().splitlines()
    now = cut(lines)
    file.write_bytes(b"\n".join(now) + b"\n")

    with pytest.raises(CorruptEvent, match=f"says {len(lines) - 1} events, and {len(now) - 1} follow"):
        replay_file(file)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(
            lambda lines: with_each(lines, lambda line: line | {"time": line["time"] + 3_600_000}),
            id="times moved",
        ),
        pytest.param(lambda lines: [*lines[:-2], lines[-1], lines[-2]], id="two lines changed about"),
        pytest.param(
            lambda lines: with_first(lines[:-1], events=len(lines) - 2), id="cut, with the number that fits"
        ),
        pytest.param(lambda lines: with_first(lines, begins=1_000_000), id="all of it has happened already"),
        pytest.param(lambda lines: with_first(lines, sha256=None), id="no hash in the first line"),
        pytest.param(lambda lines: with_first(lines, sha256=""), id="an empty hash in the first line"),
    ],
)
def test_a_recording_with_other_content_is_refused(
    file: Path, change: Callable[[list[bytes]], list[bytes]]
) -> None:
    lines = file.read_bytes().splitlines()
    file.write_bytes(b"\n".join(change(lines)) + b"\n")

    with pytest.raises(CorruptEvent, match="its first line says the SHA-256"):
        replay_file(file)


def test_a_recording_with_a_hash_and_no_number_is_refused(file: Path) -> None:
    file.write_bytes(b"\n".join(with_first(file.read_bytes().splitlines(), events=None)))

    with pytest.raises(CorruptEvent, match="says 0 events"):
        replay_file(file)


def test_a_checkout_with_other_line_ends_is_the_same_recording(file: Path) -> None:
    there = replay_file(file)
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))

    assert replay_file(file) == there


def test_a_recording_whose_first_line_was_made_to_fit_is_replayed(file: Path) -> None:
    there = replay_file(file)
    write_resealed(file, read_lines(file))

    assert replay_file(file) == there


@pytest.mark.parametrize(
    ("first", "told"),
    [
        ({"run": "5f125c73-a07d-42ea-b44c-000000000000"}, "and no event is of that"),
        ({"begins": 1_000_000}, "all up to position 1000000 had happened before run"),
        ({"begins": 30}, "all up to position 30 had happened before run"),
    ],
)
def test_a_first_line_that_fits_and_names_another_run_or_a_later_beginning_is_refused(
    file: Path, first: dict[str, Any], told: str
) -> None:
    lines = read_lines(file)
    assert lines[0]["begins"] < 30 < lines[-1]["position"]
    write_resealed(file, [lines[0] | first, *lines[1:]])

    with pytest.raises(CorruptEvent, match=told):
        replay_file(file)


def test_what_was_cut_before_its_run_begins_is_refused(file: Path) -> None:
    write_resealed(file, read_lines(file)[:4])

    with pytest.raises(CorruptEvent, match="and no event is of that"):
        replay_file(file)


def test_an_empty_file_is_told_in_words(file: Path) -> None:
    file.write_bytes(b"")

    with pytest.raises(CorruptEvent, match="it is empty"):
        replay_file(file)


def test_what_was_cut_between_two_steps_is_a_run_that_was_under_way(file: Path) -> None:
    lines = read_lines(file)
    replied = next(number for number, line in enumerate(lines) if line.get("topic") == "turn_ended.1")
    for cut in (replied, replied + 1):
        write_resealed(file, lines[:cut])
        assert replay_file(file)["firstDifference"] is None
