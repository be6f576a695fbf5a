"""Commands that must write go through the gateway of the log's host, and are followed as at home."""

import json
import signal
import subprocess
import threading
from collections.abc import Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from intersession import SessionSystem, echo
from intersession.cli.commands.demo_agents import AGENTS, CONFIG
from intersession_actors.outside.agents.turn import Turn
from intersession_actors.outside.channels.channels import MemoryChannel
from intersession_events.facts import ExchangeClosed, TurnEnded
from intersession_events.stores.portable.log import PortableLog
from intersession_projections.views.flows.rows import Position
from support.doors.command_line import DemoLog, Ran, environment, hear_ctrl_c, process, ran
from support.doors.gateway_live import GATEWAY, WAIT, LiveGateway
from support.paths import DATA
from support.running import closed_exchange, merged, one

SERVED = merged(CONFIG, GATEWAY)
DEMO = "intersession.cli.commands.demo_agents:host"
STATE = DATA / "openclaw" / "household"


class Hosted(NamedTuple):
    """A host with a gateway, and what a command has to be given to find and use it."""

    system: SessionSystem
    live: LiveGateway
    store: Path
    options: tuple[str, ...]


@contextmanager
def serving(system: SessionSystem, folder: Path) -> Generator[Hosted]:
    """Serve a system with a gateway that its log's lock names, for as long as it is there."""
    log = system.log
    assert isinstance(log, PortableLog)
    config = folder / "config.json5"
    config.write_text(json.dumps(SERVED), encoding="utf-8")
    options = (f"--store={log.path}", f"--config={config}", "--json")
    with LiveGateway(system) as live:
        log.announce_gateway(live.address)
        yield Hosted(system, live, Path(log.path), options)
    log.announce_gateway(None)


@contextmanager
def hosting(folder: Path, agents: Mapping[str, Any], **given: Any) -> Generator[Hosted]:
    """Host a log with a gateway."""
    store = given.pop("store", folder / "s.db")
    with (
        SessionSystem(store, agents=agents, config=SERVED, **given) as system,
        serving(system, folder) as hosted,
    ):
        yield hosted


class Slow:
    """An agent that answers when it may."""

    def __init__(self) -> None:
        self.asked, self.go_on = threading.Event(), threading.Event()

    def __call__(self, turn: Turn) -> str:
        self.asked.set()
        self.go_on.wait(WAIT)
        return turn.message


@pytest.fixture
def beside(demo_log: DemoLog, tmp_path: Path) -> Iterator[Hosted]:
    """A host of a demo's log, with all of its agents and channels."""
    channel = MemoryChannel(idempotent=True)
    channels = {"telegram": channel, "discord": channel}
    with hosting(tmp_path, AGENTS, store=demo_log.copy(tmp_path), channels=channels) as hosted:
        yield hosted


SUNDAY = ("send", "And on Sunday?", "--as", "main", "--agent", "research")


def test_an_exchange_is_followed_through_a_gateway_as_it_is_at_home(
    beside: Hosted, demo_log: DemoLog, tmp_path: Path
) -> None:
    (tmp_path / "home").mkdir()
    at_home = ran(*SUNDAY, "--agents", DEMO, "--store", demo_log.copy(tmp_path / "home"), "--json").json

    value = ran(*SUNDAY, *beside.options).json

    assert value.keys() == at_home.keys()
    assert [_told(beat) for beat in value["beats"]] == [_told(beat) for beat in at_home["beats"]]
    assert (value["status"], value["reply"]) == ("ok", at_home["reply"])
    assert (value["exchange"]["loopEnd"], value["exchange"]["closeReason"]) == ("turn_limit", "announced")
    assert "pending" not in value


def test_the_text_is_the_same_too(beside: Hosted) -> None:
    done = ran(*SUNDAY, *beside.options[:2])

    assert (done.exit_code, done.err) == (0, "")
    assert "main → research · turn 5 of 5" in done.out
    assert "research → discord:lab · announces" in done.out
    assert "The exchange is over: announced." in done.out
    assert "\nok  run " in done.out


@pytest.mark.ci
@pytest.mark.clause("SEND-11", "VIS-6")
def test_refusals_and_repetitions_come_through_the_gateway(beside: Hosted) -> None:
    again = ("send", "hi", "--agent", "main", "--idempotency-key", "k", *beside.options)
    first, second = ran(*again), ran(*again)
    others = ran("send", "other", "--agent", "main", "--idempotency-key", "k", *beside.options)
    nobody = ran("send", "hi", "--agent", "main", "--as", "agent:main:nobody", *beside.options)

    assert first.json["runId"] == second.json["runId"]
    assert first.json["exchange"] == second.json["exchange"]
    assert "beats" not in second.json
    assert (others.exit_code, others.json["code"]) == (1, "idempotency_conflict")
    assert (nobody.exit_code, nobody.json["code"]) == (1, "not_visible")


def test_no_follow_comes_back_with_the_reply_and_the_gateway_goes_on(beside: Hosted) -> None:
    value = ran(*SUNDAY, "--no-follow", *beside.options).json

    assert value["status"] == "ok"
    assert "beats" not in value
    assert one(closed_exchange(beside.system, value["runId"]), ExchangeClosed).reason == "announced"


@pytest.mark.clause("KEY-9")
def test_what_nobody_at_the_gateway_can_do_is_pending(tmp_path: Path) -> None:
    with hosting(tmp_path, {"main": echo()}) as hosted:
        done = ran("send", "hi", "--agent", "research", *hosted.options)

    assert (done.exit_code, done.json["status"]) == (0, "accepted")
    assert done.json["pending"] == "no_agent"


def test_a_gateway_that_goes_away_meanwhile_leaves_what_was_accepted(tmp_path: Path) -> None:
    slow = Slow()
    sent: list[Ran] = []
    # Else its control socket would be asked in the gateway's place.
    config = merged(SERVED, {"gateway": {"controlSocket": False}})
    with SessionSystem(tmp_path / "s.db", agents={"main": slow}, config=config) as system:
        with serving(system, tmp_path) as hosted:
            tokens = ("send", "hi", "--agent", "main", *hosted.options)
            sending = threading.Thread(target=lambda: sent.append(ran(*tokens)))
            sending.start()
            assert slow.asked.wait(WAIT)
        sending.join(WAIT)
        slow.go_on.set()

    assert (sent[0].exit_code, sent[0].json["status"]) == (0, "accepted")
    assert sent[0].json["pending"] == "no_host"


@pytest.mark.ci
def test_ctrl_c_leaves_the_exchange_to_the_gateway(tmp_path: Path) -> None:
    slow = Slow()
    with hosting(tmp_path, {"main": slow}) as hosted:
        with subprocess.Popen(
            process("send", "hi", "--agent", "main", *hosted.options),
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=hear_ctrl_c,  # noqa: PLW1509 - it only sets a signal
        ) as child:
            assert slow.asked.wait(WAIT)
            child.send_signal(signal.SIGINT)
            out, err = child.communicate(timeout=WAIT)
        slow.go_on.set()
        [exchange] = hosted.system.service.flows.exchanges_at(Position(0, hosted.system.log.head()), 2)
        closed = closed_exchange(hosted.system, exchange.run_id)

    assert (child.returncode, out, err) == (130, "", "")
    assert one(closed, TurnEnded).status == "ok"


def _told(beat: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(beat.get(name) for name in ("kind", "who", "to", "how", "text"))


@pytest.mark.clause("STREAM-4")
def test_a_reply_is_shown_while_the_agent_of_the_gateway_says_it(tmp_path: Path) -> None:
    heard = threading.Event()

    def talking(turn: Turn) -> Iterator[str]:
        if turn.step == "message":
            yield "Good "
            heard.wait(WAIT)
            yield "morning."

    with hosting(tmp_path, {"main": talking}) as hosted:
        options = [option for option in hosted.options if option != "--json"]
        with subprocess.Popen(
            process("send", "Hello", "--agent", "main", "--stream", *options),
            env=environment(),
            stdout=subprocess.PIPE,
            text=True,
        ) as child:
            assert child.stdout is not None
            first = child.stdout.read(len("Good "))
            heard.set()
            rest, _ = child.communicate(timeout=30)

    assert (first, child.returncode) == ("Good ", 0)
    assert rest.startswith("morning.\n\nok  run ")


def test_a_refusal_is_told_also_while_others_write_without_a_pause(beside: Hosted) -> None:
    over = threading.Event()

    def write() -> bool:
        """Return whether it was told to end, before it had written for long."""
        for number in range(200):
            if over.wait(0.05):
                return True
            beside.system.inbound(channel="telegram", chat_id="9", sender="mia", text=f"hello {number}")
        return False

    with ThreadPoolExecutor(1) as other:
        writing = other.submit(write)
        done = ran("send", "hi", "--to", "agent:zoe:main", *beside.options)
        over.set()

    assert (done.exit_code, done.json["code"]) == (1, "not_visible")
    assert writing.result()
