"""`runs` and `replay` show what became of each text that went outside, and whether anybody works on what is open."""

import re
from typing import Any, Final

import pytest

from intersession import MemoryChannel, Turn
from intersession_events.facts import DeliveryDone, DeliveryFailed, DeliveryUnknown, RunQueued, SpawnClosed
from support.doors.command_line import shown
from support.hosts_code import doubts, fails, parrot, refuses
from support.running import Booth, Gate, speak, wait_for

MAIN = "agent:main:main"


_TIME: Final = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"


def opened(booth: Booth) -> tuple[dict[str, Any], dict[str, str]]:
    """Return what is not over, by id: as programs read it, and the line that people read."""
    rows = {row["id"]: row for row in shown(booth, "runs", "--open", "--json").json["runs"]}
    lines = {line.split(" ")[0]: line for line in shown(booth, "runs", "--open").out.splitlines()}
    return rows, {name: lines[name] for name in rows}


@pytest.mark.parametrize(
    ("channel", "event", "state", "words"),
    [
        (MemoryChannel(), DeliveryDone, "done", "answered; delivered to telegram:42"),
        (
            refuses,
            DeliveryFailed,
            "failed",
            "answered; NOT delivered to telegram:42: DeliveryRefused: no such chat",
        ),
        (
            doubts,
            DeliveryUnknown,
            "unknown",
            "answered; may not have been delivered to telegram:42: DeliveryInDoubt: the line went dead",
        ),
    ],
)
def test_runs_says_what_became_of_a_text(
    booth: Booth, channel: Any, event: Any, state: str, words: str
) -> None:
    """Before: `runs` said `answered` of a text that nobody got."""
    system = booth.start({"main": parrot}, {"telegram": channel})
    run_id = speak(system)["runId"]
    wait_for(system, event)

    (row,) = shown(booth, "runs", "--json").json["runs"]

    assert row["id"] == run_id
    assert words in shown(booth, "runs").out
    assert words in shown(booth, "replay", run_id).out
    (delivery,) = row["deliveries"]
    assert (delivery["channel"], delivery["to"], delivery["attempt"]) == ("telegram", "42", 1)
    assert delivery["state"] == state


def test_runs_says_when_a_text_is_tried_again_and_that_nobody_does_it_after_a_stop(booth: Booth) -> None:
    """Before: failed deliveries were invisible."""
    system = booth.start({"main": parrot}, {"telegram": fails})
    speak(system)
    wait_for(system, DeliveryFailed)
    while_it_runs, (row,) = shown(booth, "runs").out, shown(booth, "runs", "--json").json["runs"]
    system.close(grace=0)
    after = shown(booth, "runs").out

    assert "not delivered to telegram:42 yet, tried again at" in while_it_runs
    (delivery,) = row["deliveries"]
    assert delivery["retryAt"] > 0
    assert (delivery["state"], delivery["error"]) == ("retrying", "ConnectionError: down")
    assert "not delivered to telegram:42 yet, the next start tries again: ConnectionError: down" in after


def test_a_text_for_a_channel_nobody_registered_is_shown_where_it_waits(booth: Booth) -> None:
    """Before: an unregistered channel showed up nowhere."""
    system = booth.start({"main": parrot})
    run_id = speak(system)["runId"]
    status = system.status()
    run, session = shown(booth, "replay", run_id).out, shown(booth, "replay", MAIN).out
    listed = shown(booth, "runs").out

    for text in (run, session, listed):
        assert "waits to be delivered to telegram:42" in text
    assert status["deliveries"]["waiting"] == {"telegram": 1}
    assert shown(booth, "replay", MAIN, "--json").json["undelivered"][0]["state"] == "decided"


@pytest.mark.parametrize(
    ("channel", "event", "words"),
    [
        (MemoryChannel(), DeliveryDone, "Delivered to telegram:42."),
        (refuses, DeliveryFailed, "Not delivered to telegram:42, given up: DeliveryRefused: no such chat"),
        (
            doubts,
            DeliveryUnknown,
            "It is not known whether telegram:42 got it; it is not sent again. DeliveryInDoubt: the line went dead",
        ),
    ],
)
def test_replay_of_a_session_tells_its_deliveries(booth: Booth, channel: Any, event: Any, words: str) -> None:
    """Before: session replay had no delivery line."""
    system = booth.start({"main": parrot}, {"telegram": channel})
    speak(system)
    wait_for(system, event)

    assert words in shown(booth, "replay", MAIN).out


def test_replay_tells_a_failed_run_with_its_traceback_and_what_the_person_was_told(booth: Booth) -> None:
    """Before: the traceback is kept for the operator with the run."""

    def broken(_turn: Turn) -> str:
        raise ValueError("no model")

    system = booth.start({"main": broken}, {"telegram": MemoryChannel()})
    run_id = speak(system)["runId"]
    wait_for(system, DeliveryDone)
    system.close()

    for told in (shown(booth, "replay", run_id).out, shown(booth, "replay", MAIN).out):
        assert "backend: ValueError: no model" in told
        assert "in broken" in told
        assert "tells that there is no answer" in told
        assert "Delivered to telegram:42." in told


# --- D10: who is at work


def test_after_a_stop_nobody_is_at_work_on_a_run(booth: Booth) -> None:
    """Before: `runs --open` said "at work" of a run whose process was gone."""
    gate = Gate()
    hangs = gate.saying("late")
    system = booth.start({"main": hangs})
    first = speak(system, wait=None)["runId"]
    gate.reached()
    speak(system, text="next", wait=None)
    wait_for(system, RunQueued, lambda event: event.run_id != first)
    during, told_then = opened(booth)
    system.close(grace=0)
    after, told_now = opened(booth)
    gate.open()

    (second,) = set(after) - {first}
    codes = ("status", "attempt", "atWork")
    assert [during[first].get(code) for code in codes] == ["running", 1, True]
    assert re.search(rf"  at work since {_TIME}$", told_then[first])
    assert re.search(rf"  waits for another run of its session since {_TIME}$", told_then[second])
    nobody = "and nobody is at work on it: the next start goes on"
    assert [after[first].get(code) for code in codes] == ["running", 1, False]
    assert [after[second].get(code) for code in codes] == ["queued", None, False]
    assert told_now[first].endswith(f"cut off in attempt 1, {nobody}")
    assert told_now[second].endswith(f"waiting, {nobody}")
    assert nobody in shown(booth, "replay", first).out


def test_after_a_stop_nobody_is_at_work_on_an_exchange_or_a_spawn(booth: Booth) -> None:
    """Before: after a stop `runs --open` said "at work"."""
    gate = Gate()
    hangs = gate.saying("late")
    system = booth.start({"main": hangs, "ops": hangs})
    tools = system.tools(MAIN)
    tools.call("sessions_send", {"agentId": "ops", "message": "a", "timeoutSeconds": 0})
    tools.call("sessions_spawn", {"task": "count"})
    gate.reached()
    system.close(grace=0)
    after, told = opened(booth)
    gate.open()

    words = {row["kind"]: told[name] for name, row in after.items() if row["atWork"] is False}
    nobody = "and nobody is at work on it: the next start goes on"
    assert re.search(
        rf"  ops was cut off at the primary reply, begun at {_TIME}, {nobody}$", words["exchange"]
    )
    assert re.search(
        rf"  main/subagent:\w+ was cut off at its task, begun at {_TIME}, {nobody}$", words["spawn"]
    )


@pytest.mark.clause("FIND-2", "WHY-2")
def test_the_list_says_what_an_open_exchange_waits_for_as_why_does(booth: Booth) -> None:
    """It said `not over yet`: whose turn it was stood in `why` alone."""
    gate = Gate()
    system = booth.start({"main": parrot, "ops": gate.saying("late")})
    asked = system.tools(MAIN).call("sessions_send", {"agentId": "ops", "message": "a", "timeoutSeconds": 0})
    gate.reached()
    rows, told = opened(booth)
    (exchange,) = (row for row in rows.values() if row["kind"] == "exchange")
    why = shown(booth, "why", exchange["id"], "--json").json["waits"]
    gate.open()

    assert exchange["waits"] == why
    assert (why["code"], why["who"], why["runId"]) == ("under_way", "agent:ops:main", asked["runId"])
    assert re.search(rf"  ops is at the primary reply since {_TIME}$", told[exchange["id"]])


@pytest.mark.clause("FIND-2", "WHY-2")
def test_the_list_says_that_an_exchange_waits_for_an_agent_that_is_not_there(booth: Booth) -> None:
    system = booth.start({"main": parrot})
    system.tools(MAIN).call("sessions_spawn", {"task": "count", "label": "kid"})
    wait_for(system, SpawnClosed)
    asked = {"label": "kid", "message": "again", "timeoutSeconds": 0}
    system.close()
    system = booth.start({"ops": parrot})
    system.tools(MAIN).call("sessions_send", asked)
    rows, told = opened(booth)

    (row,) = rows.values()
    assert row["waits"]["code"] == "waits_for_agent"
    assert re.search(
        rf"  main/kid is asked for the primary reply, and has not begun it since {_TIME}$", told[row["id"]]
    )


def test_a_command_names_a_channel_that_it_has_not_once_and_counts_the_texts_that_wait(booth: Booth) -> None:
    with booth.start({"main": parrot}) as system:
        for number in range(3):
            speak(system, text=str(number))
        speak(system, channel="chat")

    def waiting() -> list[str]:
        return [line for line in shown(booth, "checkpoint").err.splitlines() if line.startswith("warning")]

    # A command that ends at once may end before it has looked at all that waits.
    more = "warning: 2 more for telegram; `intersession deliveries --pending` lists what waits"
    told = next(told for told in iter(waiting, None) if more in told)

    assert told[2:] == [more]
    assert sorted(line.rpartition("channel=")[2].partition(":")[0] for line in told[:2]) == [
        "chat",
        "telegram",
    ]


def test_texts_that_are_given_up_are_counted_and_not_told_one_by_one(booth: Booth) -> None:
    """`forget --give-up-unsent` printed an error for each."""
    with booth.start({"main": parrot}) as system:
        for number in range(3):
            speak(system, text=str(number))

    told = shown(booth, "erase", MAIN, "--give-up-unsent", "--yes").err.splitlines()

    assert "note: given up for telegram, unsent: 3" in told
    assert not any("failed for good" in line for line in told)
