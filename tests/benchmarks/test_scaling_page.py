"""The tables of docs/scaling.md and docs/howto/fleet.md are what the model makes of the inputs that the page states."""

import pytest

from benchmarks.scaling_model import (
    ASSUMED,
    MEASURED,
    MOST,
    load,
    most_turns,
    of_a_fleet,
    of_one_writer,
    rows,
)
from support.paths import DOCS

SCALING = (DOCS / "scaling.md").read_text(encoding="utf-8")
FLEET = (DOCS / "howto" / "fleet.md").read_text(encoding="utf-8")


def test_the_tables_are_the_models() -> None:
    assert rows(of_one_writer()) in SCALING
    assert rows(of_a_fleet()) in FLEET


def test_the_inputs_are_on_the_page() -> None:
    words = " ".join(SCALING.split())
    for stated in (
        "half of the turns answer a person",
        f"has {ASSUMED.text_kib:.0f} KiB",
        f"thinks for {ASSUMED.model_s:.0f} seconds",
        "four times the average",
        f"has {ASSUMED.turns_a_session} turns a day",
        f"above {MOST.processor * 100:.0f} %",
        f"above {MOST.disk_tib:.0f} TiB, memory above {MOST.memory_gib:.0f} GiB, and views above {MOST.views_h:.0f} hours",
        f"| {MEASURED.writer_ms[0]} ms |",
        f"| {MEASURED.writer_ms[1]} ms and {MEASURED.kib[1]} KiB: {MEASURED.events[1]:.0f} events",
        f"a turn between agents is {MEASURED.events[0]} events",
        f"| {MEASURED.kib[0]} KiB |",
        f"{MEASURED.stream_bytes} bytes of the writer's memory",
        f"{MEASURED.moved_us:.0f} µs, and {MEASURED.moved_us_a_million} µs more",
        f"{MEASURED.verify_us_an_event:.0f} µs an event",
        f"{MEASURED.view_us_an_event:.0f} µs",
        f"{MEASURED.kib_awake} KiB of memory",
        f"{MEASURED.empty_log_kib:.0f} KiB as a schema",
        f"{MEASURED.serve_mib:.0f} MiB; {MEASURED.host_mib} MiB",
        f"| {MEASURED.open_ms:.0f} ms |",
        f"about {most_turns():.0f} turns a second",
        f"{most_turns(assumed=ASSUMED._replace(people=0)):.0f} if they are between agents",
    ):
        assert stated in words, stated


@pytest.mark.parametrize("turns", [1_000, 1_000_000])
def test_twice_the_turns_are_twice_the_work(turns: int) -> None:
    once, twice = load(turns), load(2 * turns)

    of_a_young_log = {"a_second", "processor", "at_once", "gib_a_day", "tib_a_year", "memory_gib", "views_h"}
    for field in of_a_young_log:
        assert getattr(twice, field) == pytest.approx(2 * getattr(once, field))
    assert twice.processor_year > 2 * once.processor_year  # there are more streams by then as well


def test_a_busier_hour_makes_the_processor_give_out_and_nothing_else() -> None:
    calm, busy = load(300_000), load(300_000, assumed=ASSUMED._replace(peak=80))

    assert (calm.gives_out, busy.gives_out) == ("views", "views, processor")
    assert calm.gib_a_day == busy.gib_a_day
