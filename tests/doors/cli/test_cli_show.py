"""`intersession show` draws a run in the terminal, as SVG and in Mermaid's language."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from support.doors.command_line import DemoLog, ran


@pytest.mark.clause("SHOW-1", "PLACE-5")
def test_it_says_where_it_is_looked_at_from_and_draws_every_message(demo_log: DemoLog) -> None:
    run = demo_log.exchange

    shown = ran("show", run[:8], "--store", demo_log.path, "--at", f"{run[:8]}@turn:2")

    assert shown.exit_code == 0, shown.err
    lines = shown.out.splitlines()
    assert lines[0].startswith("after turn 2: research has answered, main has not yet")
    assert lines[1].startswith("next: ")
    assert lines[3].split() == ["ada", "(telegram)", "main", "research", "discord:lab"]
    assert sum("▶" in line or "◀" in line for line in lines) == 9
    assert max(map(len, lines)) <= 100


@pytest.mark.clause("SHOW-1")
def test_it_is_as_wide_as_asked_and_wider_where_the_lanes_need_it(demo_log: DemoLog) -> None:
    wide = ran("show", demo_log.exchange, "--store", demo_log.path, "--width", 140).out.splitlines()
    narrow = ran("show", demo_log.exchange, "--store", demo_log.path, "--width", 40).out.splitlines()
    assert 120 < max(map(len, wide)) <= 140
    assert max(map(len, narrow)) > 40


@pytest.mark.clause("SHOW-1")
def test_it_is_written_as_svg_and_as_mermaid(demo_log: DemoLog, tmp_path: Path) -> None:
    file = tmp_path / "run.svg"

    shown = ran("show", demo_log.spawn, "--store", demo_log.path, "--svg", file, "--mermaid")

    assert ET.fromstring(file.read_text(encoding="utf-8")).tag.endswith("svg")  # noqa: S314 - ours
    assert shown.out.startswith("sequenceDiagram\n    actor L0 as ada (telegram)\n    participant L1 as main")


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        (["nothing"], 1, "no exchange, spawn or run is called 'nothing'"),
        (["nothing@2"], 1, "RUN@start, RUN@reply, RUN@turn:3"),
        (["--width", "7"], 2, "--width: 7 is not between 40 and 1000"),
        (["--at", "noon"], 1, "at: 'noon'"),
        (["--svg", "/no/such/place.svg"], 2, "can't be written: No such file or directory"),
    ],
)
def test_what_it_can_not_do_is_said(demo_log: DemoLog, given: list[str], code: int, said: str) -> None:
    run = [] if given[0].startswith("nothing") else [demo_log.exchange]
    shown = ran("show", *run, *given, "--store", demo_log.path)
    assert (shown.exit_code, shown.out) == (code, "")
    assert said in shown.err
