"""A host is killed, for real, at each point of the crash matrix and started again: nothing is lost, nothing doubled."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

from intersession_events.facts import (
    ChildArchived,
    DeliveryDecided,
    DeliveryDone,
    DeliveryFailed,
    DeliveryStarted,
    DeliveryUnknown,
    Event,
    ExchangeClosed,
    ExchangeHeld,
    ExchangeReleased,
    Message,
    RunCompleted,
    RunFailed,
    RunQueued,
    SpawnClosed,
    message_in,
    text_of,
)
from intersession_events.log.recorded import Recorded
from support.any_log import Logs
from support.every_day import every_day
from support.paths import DOCS
from support.processes.killed import Host, interrupted, of, story, streams

RELIABILITY = DOCS / "reliability.md"

TURN = " turn_requested turn_ended"
HELD = "exchange_accepted turn_ended exchange_held hold_requested exchange_released"
ANNOUNCED = " loop_ended announce_requested announce_decided exchange_closed"
CHILD = "spawn_accepted child_ended announce_requested announce_decided"

FLOWS = {
    "talk": [
        f"exchange_accepted turn_ended{TURN * 5}{ANNOUNCED}",
        f"exchange_accepted turn_ended{TURN * 2}{ANNOUNCED}",
    ],
    "counted": [
        f"exchange_accepted turn_ended{TURN * 5}{ANNOUNCED}",
        f"exchange_accepted turn_ended{TURN * 2}{ANNOUNCED}",
    ],
    "held": [
        f"{HELD}{TURN} loop_ended announce_requested exchange_held exchange_released announce_decided exchange_closed",
        "exchange_accepted hold_requested hold_withdrawn turn_ended exchange_held exchange_released exchange_closed",
    ],
    "ask": [],
    "spawn": [f"{CHILD} spawn_closed child_archived"],
    "files": [f"{CHILD} spawn_closed child_archived"],
    "hand": [f"{CHILD} result_handed spawn_closed child_archived"],
    "late": ["spawn_accepted child_ended announce_decided spawn_closed"],
    "keep": [f"{CHILD} spawn_closed child_archived"],
}
"""What the flows of a scenario come to, whatever happens on the way."""

RUNS = {
    "talk": 11,
    "counted": 11,
    "held": 4,
    "ask": 1,
    "spawn": 2,
    "files": 2,
    "hand": 4,
    "late": 1,
    "keep": 2,
}
MESSAGES = {
    "talk": 28,
    "counted": 28,
    "held": 14,
    "ask": 4,
    "spawn": 7,
    "files": 7,
    "hand": 12,
    "late": 2,
    "keep": 7,
}
DELIVERIES = {
    "talk": 1,
    "counted": 1,
    "held": 1,
    "ask": 1,
    "spawn": 1,
    "files": 1,
    "hand": 0,
    "late": 1,
    "keep": 1,
}


ENDS: dict[tuple[str, type[Event]], list[str]] = {
    ("talk", DeliveryDone): ["announced", "silent"],
    ("talk", DeliveryFailed): ["announce_failed", "silent"],
    ("talk", DeliveryUnknown): ["delivery_unknown", "silent"],
    ("counted", DeliveryDone): ["announced", "silent"],
    ("held", DeliveryDone): ["announced", "dropped"],
    ("ask", DeliveryDone): [],
    ("ask", DeliveryUnknown): [],
    ("spawn", DeliveryDone): ["announced"],
    ("spawn", DeliveryUnknown): ["delivery_unknown"],
    ("files", DeliveryDone): ["announced"],
    ("hand", DeliveryDone): ["handed_over"],
    ("late", DeliveryDone): ["announced"],
    ("keep", DeliveryDone): ["announced"],
}
"""How they end, by how their delivery does."""

NOTES: dict[type[Event], str] = {
    DeliveryFailed: "DeliveryRefused: no such room",
    DeliveryUnknown: "delivery_unknown",
}


@dataclass(frozen=True)
class Case:
    """One death. `left` is the last event at that moment, `asked` and `called` how often agents and channels had been.

    `again` is the step that is tried a second time after it, `end` how the first delivery ends.
    """

    point: str
    scenario: str = "talk"
    channel: str = "keyed"
    left: str = ""
    asked: int | None = 0
    called: int = 0
    again: str | None = None
    end: type[Event] = DeliveryDone
    nightly: bool = False

    def __str__(self) -> str:
        return f"{self.point}-{self.scenario}-{self.channel}"


UNSHARED = "{} run_completed"
"""A result waits a moment for the step that shares its commit; under load it may have been stored without it."""

CASES = [
    # One send, waited for.
    Case("S0", left="inbound_taken"),
    Case("S1", left="inbound_taken"),
    Case("S2", left="run_started", asked=None, again="message"),
    Case("S2", "counted", left="run_queued"),
    Case("S3", "counted", left="run_queued"),
    Case("S4", left="run_started", again="message"),
    Case("S5", left="run_started", asked=None, again="message"),
    Case("S6", left="message_recorded", asked=1, again="message"),
    Case("S7", left="run_started", asked=None, again="reply"),
    # Who comes late to wait is told by the step that follows.
    Case("S7", "counted", left="run_completed run_queued", asked=1, nightly=True),
    Case("S8", "counted", left="run_completed", asked=1),
    # Its loop. The points of a turn are passed before and after its agent is asked.
    Case("K1", left=UNSHARED.format("message_recorded"), asked=1, again="message"),
    Case("K1:5", left=UNSHARED.format("run_started"), asked=5, again="reply"),
    Case("K1", "counted", left="run_completed", asked=1),
    Case("K1:5", "counted", left="run_completed", asked=5, nightly=True),
    Case("K2", left="run_started", asked=1, again="reply"),
    Case("K2:2", left="run_started", asked=None, again="reply"),
    Case("K2:9", left="run_started", asked=5, again="reply", nightly=True),
    Case("K3", left="run_started", asked=2, again="reply"),
    Case("K3:2", left="run_started", asked=3, again="reply", nightly=True),
    Case("K4", "counted", left="run_completed", asked=2),
    Case("K4:5", "counted", left="run_completed", asked=6, nightly=True),
    Case("K5", left=UNSHARED.format("message_recorded"), asked=1, again="message"),
    Case("K5:6", left=UNSHARED.format("run_started"), asked=6, again="reply", nightly=True),
    Case("K5", "counted", left="run_completed", asked=1),
    Case("K6", left="run_started", asked=None, again="announce"),
    Case("K6", "counted", left="run_queued", asked=6),
    # Texts of it are held, let go on, dropped; a hold is withdrawn.
    Case("H1", "held", left="exchange_held", asked=1),
    Case("H1:2", "held", left="run_started", asked=None, called=1, again="message", nightly=True),
    Case("H2", "held", left="hold_requested", asked=1),
    Case("H2:2", "held", left="hold_requested", asked=None, called=1, again="message", nightly=True),
    Case("H3", "held", left=UNSHARED.format("message_recorded"), asked=1, again="message"),
    Case("H3:2", "held", left=UNSHARED.format("run_started"), asked=3, again="announce"),
    Case("H4", "held", left="exchange_held", asked=1),
    Case("H4:2", "held", left="exchange_held", asked=3),
    Case("H5", "held", left="hold_requested", asked=1),
    Case("H5:2", "held", left="exchange_held", asked=3),
    Case("H5:3", "held", left="exchange_held", asked=4, called=1, nightly=True),
    Case("H6", "held", left="run_started", asked=1, again="reply"),
    Case("H6:2", "held", left="delivery_decided", asked=3),
    Case("H6:3", "held", left="exchange_closed", asked=4, called=1),
    Case("H7", "held", left="hold_requested", asked=None, called=1, again="message"),
    Case("H8", "held", left="hold_withdrawn", asked=None, called=1, again="message"),
    # Its announce.
    Case("A1", left="run_started", asked=6, again="announce"),
    Case("A1:2", left="run_started", asked=None, again="announce"),
    Case("A2", left="run_started", asked=7, again="announce"),
    Case("A3", left="delivery_decided", asked=7),
    Case("A4", left="exchange_closed", asked=11, called=1),
    Case("A5", left="delivery_started", asked=7),
    Case("A5", channel="plain", left="delivery_started", asked=7, end=DeliveryUnknown),
    Case("A6", left="delivery_started", asked=7, called=1),
    Case("A6", channel="plain", left="delivery_started", asked=7, called=1, end=DeliveryUnknown),
    Case("A7", left="delivery_done", asked=7, called=1),
    Case("A7", channel="plain", left="delivery_done", asked=7, called=1, nightly=True),
    Case("A7", channel="keyed-wall", left="delivery_failed", asked=7, called=1, end=DeliveryFailed),
    Case("A8", channel="keyed-wall", left="delivery_started", asked=7, called=1, end=DeliveryFailed),
    Case("A8", channel="plain-wall", left="delivery_started", asked=7, called=1, end=DeliveryUnknown),
    # A person asks, and is answered on a channel.
    Case("S4", "ask", left="run_started", again="message", nightly=True),
    Case("S6", "ask", left="message_recorded", asked=1, again="message"),
    Case("A3", "ask", left="delivery_decided", asked=1, nightly=True),
    Case("A5", "ask", left="delivery_started", asked=1, nightly=True),
    Case("A6", "ask", left="delivery_started", asked=1, called=1),
    Case("A6", "ask", "plain", left="delivery_started", asked=1, called=1, end=DeliveryUnknown),
    Case("A7", "ask", left="delivery_done", asked=1, called=1, nightly=True),
    # A sub-agent, its announce on a channel, its end.
    Case("P1", "spawn", left="inbound_taken"),
    Case("P2", "spawn", left="spawn_accepted run_started", asked=None),  # the child may be at work already
    Case("P5", "spawn", left="run_started", again="message"),
    Case("P5:2", "spawn", left="run_started", asked=None, again="message"),
    Case("S6", "spawn", left="message_recorded", asked=1, again="message"),
    Case("P6", "spawn", left="run_completed", asked=1),
    Case("P6:2", "spawn", left="run_completed", asked=2),
    Case("P6:3", "spawn", left="delivery_done", asked=2, called=1),
    # The start of the announce shares the commit that asks for it, where the child's transcript is at hand.
    Case("A2", "spawn", left="announce_requested run_started", asked=2, again="announce", nightly=True),
    Case("A6", "spawn", left="delivery_started", asked=2, called=1),
    Case("A6", "spawn", "plain", left="delivery_started", asked=2, called=1, end=DeliveryUnknown),
    Case("P8", "spawn", left="spawn_closed", asked=2, called=1),
    # A sub-agent that is given a file.
    Case("P1", "files", left="inbound_taken", nightly=True),
    Case("P2", "files", left="spawn_accepted"),
    Case("P3", "files", left="spawn_accepted"),
    Case("P4", "files", left="attachments_ready run_started", asked=None),  # as above
    Case("P5", "files", left="run_started", again="message", nightly=True),
    Case("P6:3", "files", left="delivery_done", asked=2, called=1, nightly=True),
    # A sub-agent whose result is handed to its requester.
    Case("P5", "hand", left="run_started", asked=1, again="message"),
    Case("S6:2", "hand", left="message_recorded", asked=2, again="message"),
    Case("P6", "hand", left="run_completed", asked=2),
    Case("P6:2", "hand", left="run_completed", asked=3, nightly=True),
    # The child is archived while its requester already works on the result: which of the two is last is open.
    Case("P8", "hand", left="spawn_closed run_started message_recorded run_completed", asked=None),
    # A sub-agent that does not come back in its time.
    Case("P7", "late", left="run_started", asked=1),
]


EVERY_DAY = {
    *(
        next(str(case) for case in CASES if case.point[:2] == point)
        for point in {case.point[:2] for case in CASES}
    ),
    *("A5-talk-plain", "S6:2-hand-keyed"),
}
"""One death at each point of the matrix, and a few more of other kinds."""


def _marks(case: Case) -> list[pytest.MarkDecorator]:
    if case.nightly:
        return [pytest.mark.nightly]
    return [] if str(case) in EVERY_DAY else [pytest.mark.ci]


@pytest.mark.clause("O3", "O6", "O7")
@pytest.mark.clause("S0", "S1", "S2", "S3", "S4", "S5", "S6", "S7", "S8", "K1", "K2", "K3", "K4", "K5", "K6")
@pytest.mark.clause("H1", "H2", "H3", "H4", "H5", "H6", "H7", "H8", "LIVE-1")
@pytest.mark.clause(
    "A1", "A2", "A3", "A4", "A5", "A6", "A7", "A8", "P1", "P2", "P3", "P4", "P5", "P6", "P7", "P8"
)
@pytest.mark.sampled("S4-talk-keyed", "K2-talk-keyed", "A4-talk-keyed", "P4-files-keyed", "H2-held-keyed")
@pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=str(case), marks=_marks(case)) for case in CASES],
)
def test_a_host_that_dies_at_a_crash_point_goes_on_as_the_matrix_says(
    logs: Logs, tmp_path: Path, case: Case
) -> None:
    host = Host(logs, tmp_path, case.scenario, case.channel)

    host.dies_at(case.point)
    before = host.events()
    assert story(before[-1:]).split()[-1] in case.left.split()
    assert case.asked in {None, len(host.lines("turns"))}
    assert len(host.lines("calls")) == case.called

    host.finishes()
    after = host.events()
    assert after[: len(before)] == before
    expected = [[case.again] if case.again else []]
    if " " in case.left:
        expected += [["message"], []]
    assert interrupted(after) in expected
    check_scenario(after, case.scenario, case.end)
    at_start = {line["holdId"] for line in host.lines("held")}
    assert at_start & {*of(before, ExchangeHeld, "hold_id")} == holding(before)
    assert list(tmp_path.rglob("note.txt")) == []
    if case.left == "delivery_started":
        attempts = len(of(streams(after, "delivery:")[0], DeliveryStarted, "attempt"))
        assert attempts == (1 if case.end is DeliveryUnknown else 2)
    host.check_all()


@pytest.mark.clause("O6", "P9", "SPAWN-11")
def test_a_child_whose_hour_came_while_the_host_was_down_is_archived_once_at_its_start(
    logs: Logs,
    tmp_path: Path,
) -> None:
    host = Host(logs, tmp_path, "keep")
    host.finishes()
    before = host.events()
    assert story(before[-1:]).split()[-1] == "spawn_closed"

    host.dies_at("P9", hours=2)
    assert host.events() == before

    host.finishes(hours=2)
    after = host.events()
    assert of(after, ChildArchived, "reason") == ["expired"]
    check_scenario(after, "keep", DeliveryDone)
    host.check_all()


@pytest.mark.clause("O6", "B1")
@pytest.mark.sampled("8")
@pytest.mark.parametrize("passing", every_day([1, 8, 20], 8))
def test_a_view_is_never_ahead_of_its_events_nor_behind(logs: Logs, tmp_path: Path, passing: int) -> None:
    host = Host(logs, tmp_path, "talk")

    host.dies_at(f"B1:{passing}")
    host.check_views()

    host.finishes()
    host.check_all()


def test_every_point_of_the_matrix_is_died_at() -> None:
    elsewhere = {"E1", "E2"} | {
        "B2",
        "B3",
        "B4",
    }  # tests/events/log/test_erasing.py, tests/doors/cli/test_cli_backup.py
    elsewhere |= {"M1", "M2", "M3"}  # tests/events/stores/test_migrating.py
    elsewhere |= {"F1", "F2"}  # tests/system/test_files.py
    elsewhere |= {"Y1", "Y2", "Y3"}  # tests/system/test_encrypted_log.py
    elsewhere |= {"G1"}  # tests/system/test_forgetting_people.py
    died_at = {case.point[:2] for case in CASES} | {"B1", "P9"} | elsewhere
    rows = (line.split(" | ") for line in RELIABILITY.read_text(encoding="utf-8").splitlines())

    assert died_at == {row[0].strip("| ") for row in rows if len(row) > 2 and row[2] == "named"}


@pytest.mark.nightly
@pytest.mark.clause("O6")
@pytest.mark.parametrize(
    ("scenario", "point"),
    sorted({(case.scenario, case.point[:2]) for case in CASES if "-" not in case.channel}),
)
def test_a_host_goes_on_from_every_passing_of_a_point(
    logs: Logs, tmp_path: Path, scenario: str, point: str
) -> None:
    for passing in count(1):
        directory = tmp_path / str(passing)
        directory.mkdir()
        host = Host(logs, directory, scenario)
        if not host.dies_at(f"{point}:{passing}", surely=passing == 1):
            break
        host.finishes()
        assert len(interrupted(host.events())) <= 1
        check_scenario(host.events(), scenario, DeliveryDone)
        host.check_all()


def check_scenario(events: Sequence[Recorded], scenario: str, end: type[Event]) -> None:
    """Check that all of a scenario has happened, each thing once; `end` is that of its delivery."""
    flows = [story(stream) for prefix in ("exchange:", "spawn:") for stream in streams(events, prefix)]
    files = (" attachments_ready", " attachments_removed") if scenario == "files" else ()
    assert all(flow.count(event) == 1 for flow in flows for event in files)
    assert [_without(flow, files) for flow in flows] == FLOWS[scenario]
    assert len(of(events, RunQueued, "run_id")) == RUNS[scenario]
    assert len(all_messages(events)) == MESSAGES[scenario]
    assert of(events, RunFailed, "code") == (["timeout"] if scenario == "late" else [])
    deliveries = streams(events, "delivery:")
    assert len(deliveries) == DELIVERIES[scenario]
    for delivery in deliveries:
        assert type(delivery[-1].event) is end
    reasons = [*of(events, ExchangeClosed, "reason"), *of(events, SpawnClosed, "reason")]
    notes = [*of(events, ExchangeClosed, "note"), *of(events, SpawnClosed, "note")]
    assert reasons == ENDS[scenario, end]
    assert notes[:1] == [NOTES.get(end)][: len(notes)]
    match scenario:
        case "hand":  # it said nothing, so its last tool result stands for it (SPAWN-10)
            messages = all_messages(events)
            (told,) = [
                text_of(item) for item in messages if item.role == "user" and "Status:" in text_of(item)
            ]
            assert told.startswith("Status: success\nResult: found nothing\nNotes: (none)\nStats: ")
        case "files":
            assert of(events, RunCompleted, "reply")[0] == "it says ['forty-two']"
        case "held":
            assert len(set(of(events, ExchangeHeld, "hold_id"))) == 3
            assert of(events, ExchangeReleased, "hold_id") == of(events, ExchangeHeld, "hold_id")
            assert of(events, ExchangeReleased, "action") == ["edit", "go_on", "drop"]
            messages = all_messages(events)
            assert sum(text_of(item) == "what a person wrote" for item in messages) == 1
        case "late":
            (said,) = of(events, DeliveryDecided, "text")
            assert said == "Status: timeout\nResult: (no output)\nNotes: timeout: the run had 0.3 s"
        case _:
            pass


def all_messages(events: Sequence[Recorded]) -> list[Message]:
    return [message for item in events if (message := message_in(item.event)) is not None]


def holding(events: Sequence[Recorded]) -> set[str]:
    """Return what is held, by the ids of the holds."""
    return {*of(events, ExchangeHeld, "hold_id")} - {*of(events, ExchangeReleased, "hold_id")}


def _without(flow: str, events: Sequence[str]) -> str:
    for event in events:
        flow = flow.replace(event, "")
    return flow
