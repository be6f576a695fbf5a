"""The tables of docs/scaling.md and docs/howto/fleet.md are what the model makes of the inputs that the page states."""

import re

import pytest

from benchmarks.scaling_model import ASSUMED, MEASURED, load, most_turns, of_a_fleet, of_one_writer, rows
from support.paths import DOCS

SCALING = (DOCS / "scaling.md").read_text(encoding="utf-8")
FLEET = (DOCS / "howto" / "fleet.md").read_text(encoding="utf-8")


def test_the_tables_are_the_models() -> None:
    assert rows(of_one_writer()) in SCALING
    assert rows(of_a_fleet()) in FLEET


def test_the_inputs_are_on_the_page() -> None:
    words = " ".join(SCALING.split())
    for stated in (
        f"has {ASSUMED.text_kib:.0f} KiB",
        f"thinks for {ASSUMED.model_s:.0f} seconds",
        f"{ASSUMED.most:.0%}".replace("%", " %"),
        f"has {ASSUMED.turns_a_session} turns a day",
        f"| {MEASURED.kib_a_turn} KiB |",
        f"{MEASURED.verify_us_an_event:.0f} µs an event",
        f"{MEASURED.view_us_an_event:.0f} µs",
        f"{MEASURED.kib_awake} KiB of memory",
        f"{MEASURED.kib_a_session:.0f} KiB on disk",
        f"{MEASURED.empty_log_kib:.0f} KiB as a schema",
        f"{MEASURED.serve_mib:.0f} MiB; {MEASURED.host_mib} MiB",
        f"| {MEASURED.open_ms:.0f} ms |",
        f"about {most_turns():.0f} turns a second",
    ):
        assert stated in words, stated


@pytest.mark.parametrize("turns", [1_000, 1_000_000])
def test_twice_the_turns_are_twice_the_work(turns: int) -> None:
    once, twice = load(turns), load(2 * turns)

    assert twice[1:] == pytest.approx([2 * value for value in once[1:]])


def test_a_busier_hour_makes_the_processor_give_out_and_nothing_else() -> None:
    calm, busy = load(1_000_000), load(1_000_000, assumed=ASSUMED._replace(peak=80))

    assert (calm.gives_out, busy.gives_out) == ("disk", "processor")
    assert calm.gib_a_day == busy.gib_a_day
    assert re.search(r"^\| 1,000,000 \|.*\| disk \|$", SCALING, re.MULTILINE)
