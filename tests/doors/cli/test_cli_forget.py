"""`intersession forget`, with a host of the log and without: a person, and what is too old; what is asked wrongly is refused."""

import json
import re
from pathlib import Path

import pytest

from intersession import SessionSystem
from intersession_events.facts import DeliveryDone
from support.doors.command_line import Ran, ran
from support.running import Booth, wait_for_number

PEERS = {"session": {"dmScope": "per-channel-peer"}, "retention": {"messages": "400d"}}


def shown(booth: Booth, *tokens: object) -> Ran:
    return ran(*tokens, "--store", booth.url, "--json")


def opened(booth: Booth) -> SessionSystem:
    system = booth.start({"main": lambda turn: f"noted {turn.message}"}, None, PEERS)
    system.inbound(channel="telegram", chat_id="ada", sender="ada", text="zqx1", deliver=False)
    return system


@pytest.mark.ci
@pytest.mark.clause("FORGET-1", "FORGET-3")
@pytest.mark.parametrize("hosted", [True, False])
def test_a_person_is_forgotten_by_a_command(booth: Booth, tmp_path: Path, *, hosted: bool) -> None:
    config = tmp_path / "config.json5"
    config.write_text(json.dumps(PEERS), encoding="utf-8")
    system = opened(booth)
    if not hosted:
        system.close()
    given = ("forget", "--person", "telegram:ada", "--config", config)

    unsure = shown(booth, *given)
    dry = shown(booth, *given, "--dry-run")
    meant = ran(*given, "--dry-run", "--store", booth.url)
    done = shown(booth, *given, "--reason", "asked for", "--yes")
    again = shown(booth, *given, "--yes")
    told = ran(*given, "--dry-run", "--store", booth.url)

    assert (unsure.exit_code, dry.exit_code, done.exit_code, again.exit_code) == (2, 0, 0, 0)
    assert (dry.json["counts"], dry.json["position"]) == (done.json["counts"], None)
    assert (done.json["erased"], again.json["erased"]) == (1, 0)
    assert "1 event in 1 stream of telegram:ada would be erased" in meant.out
    assert "1 message\n" in meant.out
    assert "0 events in 0 streams of telegram:ada would be erased" in told.out
    (erasure,) = shown(booth, "erasures").json["erasures"]
    assert (erasure["rule"], erasure["reason"]) == ("person", "asked for")
    assert erasure["notReached"] == done.json["notReached"]
    aged = shown(booth, "forget", "--retention", "--dry-run", "--config", config)
    assert (aged.exit_code, aged.json["erased"]) == (0, 0)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ([], "say what is to be forgotten"),
        (["--person", "telegram:ada", "--retention"], "say what is to be forgotten"),
        (["--retention", "--reason", "x"], "are for --person"),
        (["telegram:ada"], "no place for 'telegram:ada': --help lists what this command takes"),
    ],
)
def test_a_command_that_does_not_say_what_is_refused(booth: Booth, asked: list[str], said: str) -> None:
    opened(booth).close()
    refused = ran("forget", *asked, "--yes", "--store", booth.url)
    assert refused.exit_code == 2
    assert said in refused.err


@pytest.mark.ci
@pytest.mark.clause("FORGET-1")
def test_verify_tells_one_forgetting_as_one_and_a_dry_run_names_the_first_that_are_under_way(
    booth: Booth,
) -> None:
    """Before: a line for each stream with words of the person, and one line with the ids of all that was under way."""
    with booth.start(
        {"main": lambda turn: f"noted {turn.message}"}, {"telegram": lambda _: "r1"}, PEERS
    ) as system:
        for number in range(7):
            system.inbound(channel="telegram", chat_id="ada", sender="ada", text=f"zqx{number}", wait=20)
        wait_for_number(system, DeliveryDone, 7)
        system.forget("telegram:ada", reason="asked for")

    told = [
        line for line in ran("verify", "--store", booth.url).out.splitlines() if "operator erased" in line
    ]

    assert len(told) == 1
    assert "of 8 streams by the rule person" in told[0]
    with booth.start({"main": lambda turn: f"noted {turn.message}"}, None, PEERS) as system:
        for number in range(7):
            system.inbound(channel="telegram", chat_id="bo", sender="bo", text=f"zqx{number}", wait=20)
    dry = ran("forget", "--person", "telegram:bo", "--dry-run", "--store", booth.url)
    assert re.search(
        r"ended first: (delivery:\S+, ){4}delivery:\S+ and 2 more \(--json\)$", dry.out, re.MULTILINE
    )
