"""Checkpoints of a running system: when they are taken, what stops them, and where they are published."""

import base64
import http.server
import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from intersession import ConfigError, SessionSystem, echo
from intersession_events.facts import CheckpointTaken
from intersession_events.log.recorded import Recorded
from intersession_events.proofs.published import published_in
from intersession_events.proofs.signatures import Trusted, write_private
from support.checkpointed import key_of, published, told, verified
from support.fakes import ManualClock, look_at_clock
from support.running import Booth, Heard, wait_until
from support.soaking import until

AGENTS = {"main": echo()}


def checkpoints(system: SessionSystem) -> list[Recorded]:
    return [one for one in system.log.stream("log") if isinstance(one.event, CheckpointTaken)]


def of(settings: dict[str, Any]) -> dict[str, Any]:
    return {"checkpoints": settings}


@pytest.mark.clause("CHECK-1")
def test_a_checkpoint_is_taken_after_so_many_new_events(booth: Booth) -> None:
    with booth.start(AGENTS, {}, of({"everyEvents": 5, "everySeconds": 0, "atStop": False})) as system:
        told(system)
        wait_until(system, lambda: bool(checkpoints(system)))
        first = checkpoints(system)[0].event
        assert isinstance(first, CheckpointTaken)
        assert first.position >= 5
        assert verified(system).ok
        # Others can read it just before its taker hears that it is in the log.
        until(lambda: (system.status()["checkpoints"]["position"] or 0) >= first.position)


@pytest.mark.clause("CHECK-1")
def test_something_new_waits_only_so_many_seconds_for_one(booth: Booth) -> None:
    clock = ManualClock()
    settings = of({"everyEvents": 0, "everySeconds": 60, "atStop": False})
    with booth.start(AGENTS, {}, settings, clock=clock) as system:
        told(system)
        assert checkpoints(system) == []
        clock.advance(61_000)
        look_at_clock(system._parts.timers)
        wait_until(system, lambda: len(checkpoints(system)) == 1)


@pytest.mark.clause("CHECK-1")
def test_a_clean_stop_takes_one_and_the_next_start_goes_on_from_it(booth: Booth) -> None:
    settings = of({"everyEvents": 0, "everySeconds": 0})
    for number in range(1, 4):
        with booth.start(AGENTS, {}, settings) as system:
            assert len(checkpoints(system)) == number - 1
            told(system)

    with booth.start(AGENTS, {}, of({"atStop": False, "everySeconds": 0})) as system:
        report = verified(system)
        assert (report.ok, report.checkpoints.taken) == (True, 3)
        counts = [one.event.count for one in checkpoints(system)]  # type: ignore[union-attr]
        assert counts == sorted(counts)


@pytest.mark.clause("CHECK-1")
def test_on_demand_it_is_taken_at_once_and_only_if_something_is_new(booth: Booth) -> None:
    with booth.start(AGENTS, {}, of({"everyEvents": 0, "everySeconds": 0, "atStop": False})) as system:
        told(system)
        first = system.checkpoint()
        again = system.gateway.call("checkpoints.take")
        told(system, "More")
        more = system.checkpoint()

        assert first["position"] == first["at"] - 1 == first["count"]
        assert again == first
        assert (more["position"] > first["at"], more["previous"]) == (True, first["hash"])
        assert more["headsRoot"] != first["headsRoot"]
        assert [one.position for one in checkpoints(system)] == [first["at"], more["at"]]


def test_checkpoints_are_no_reason_for_checkpoints(booth: Booth, tmp_path: Path) -> None:
    clock = ManualClock()
    settings = of({"everySeconds": 60, "publish": {"file": str(tmp_path / "published")}})
    with booth.start(AGENTS, {}, settings, clock=clock) as system:
        told(system)
        system.checkpoint()
        wait_until(system, lambda: bool(published(system)))
        head = system.log.head()
        for _ in range(3):
            clock.advance(3_600_000)
            look_at_clock(system._parts.timers)
        assert system.checkpoint()["at"] == checkpoints(system)[0].position
        assert system.log.head() == head


@pytest.mark.clause("CHECK-2")
def test_a_configured_key_signs_and_shows_nowhere(booth: Booth, tmp_path: Path) -> None:
    key, file = key_of(7), tmp_path / "key.pem"
    write_private(key, file)
    with booth.start(AGENTS, {}, of({"keyFile": str(file)})) as system:
        told(system)
        taken, status = system.checkpoint(), json.dumps(system.status())
        rows = b"".join(state for *_, state in system.log.rows(after=0))
        report = verified(system, trusted=Trusted((key.public,)))

    secret = file.read_bytes().splitlines()[1]
    assert taken["keyId"] == key.public.id
    assert report.checkpoints.signed_up_to == taken["position"]
    assert key.public.id in status
    assert secret.decode() not in status
    assert secret not in rows
    assert base64.b64decode(secret)[-32:].hex().encode() not in rows


@pytest.mark.clause("CHECK-2")
@pytest.mark.parametrize("trouble", ["missing", "readable", "no key"])
def test_a_key_that_can_not_be_used_is_refused_before_anything_starts(
    log_url: str, tmp_path: Path, trouble: str
) -> None:
    file = tmp_path / "key.pem"
    if trouble == "readable":
        write_private(key_of(1), file)
        file.chmod(0o644)
    elif trouble == "no key":
        file.write_text("nothing")
        file.chmod(0o600)

    with pytest.raises(ConfigError, match=r"checkpoints\.keyFile"):
        SessionSystem(log_url, agents=AGENTS, config=of({"keyFile": str(file)}))
    assert not (tmp_path / "log.db").exists()


@pytest.mark.parametrize(
    ("publish", "path"),
    [
        ({"file": "/nowhere/at/all/checkpoints"}, "publish.file"),
        ({"webhook": "ftp://example.com/x"}, "publish.webhook"),
        ({"webhook": "https://example.com/{to}"}, "publish.webhook"),
        ({"webhook": "http://127.0.0.1/x"}, "publish.webhook"),
        ({"file": "x", "allowHosts": ["a b"]}, "publish.allowHosts"),
        ({"command": [""]}, "publish.command"),
    ],
)
def test_a_place_that_can_not_be_published_to_is_refused(publish: dict[str, Any], path: str) -> None:
    with pytest.raises(ConfigError, match=path.replace(".", r"\.")):
        SessionSystem(":memory:", agents=AGENTS, config=of({"publish": publish}))


@pytest.mark.clause("CHECK-3")
def test_each_checkpoint_is_appended_to_the_file_and_that_is_recorded(booth: Booth, tmp_path: Path) -> None:
    file = tmp_path / "published.jsonl"
    settings = of({"everyEvents": 0, "everySeconds": 0, "publish": {"file": str(file)}})
    with booth.start(AGENTS, {}, settings) as system:
        taken = []
        for text in ("one", "two"):
            told(system, text)
            taken.append(system.checkpoint())
            wait_until(system, lambda: len(published(system)) == len(taken))
        told(system, "three")
        assert system.status()["checkpoints"]["unpublished"] == {"file": 0}

    lines = published_in(file.read_bytes())
    assert [one.position for one in lines][:2] == [one["position"] for one in taken]
    assert len(lines) == 3  # the last one was taken, and published, at the stop
    with booth.start(AGENTS) as system:
        assert [event.position for event in published(system)] == [one.position for one in lines]
        assert verified(system, published=lines).ok


class Receiver:
    """A web server on the loopback that refuses so many posts and keeps the rest."""

    def __init__(self, refuse: int) -> None:
        self.got: list[tuple[str, bytes]] = []
        self.refused = 0
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if receiver.refused < refuse:
                    receiver.refused += 1
                    self.send_error(503)
                    return
                receiver.got.append((self.headers["Idempotency-Key"], body))
                self.send_response(204)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
                """Stay quiet."""

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/checkpoints"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver(refuse=2)
    yield found
    found.server.shutdown()
    found.server.server_close()


@pytest.mark.clause("CHECK-3")
def test_what_a_webhook_refuses_is_told_and_tried_again_and_the_log_goes_on(
    booth: Booth, receiver: Receiver
) -> None:
    clock, heard = ManualClock(), Heard()
    settings = of(
        {
            "everyEvents": 0,
            "everySeconds": 0,
            "atStop": False,
            "publish": {"webhook": receiver.url, "allowHosts": ["127.0.0.1"]},
        }
    )
    with booth.start(AGENTS, {}, settings, clock=clock, on_failure=heard) as system:
        told(system)
        first = system.checkpoint()
        for _ in range(2):
            heard.next("checkpoint_unpublished")
            told(system, "the log goes on")
            assert system.status()["checkpoints"]["unpublished"] == {"webhook": 1}
            assert "503" in system.status()["checkpoints"]["publishErrors"]["webhook"]
            clock.advance(300_000)
            look_at_clock(system._parts.timers)
        wait_until(system, lambda: bool(published(system)))

        assert heard.kinds.count("checkpoint_unpublished") == 2
        (key, body) = receiver.got[0]
        assert (key, published_in(body)[0].hash) == (first["hash"], first["hash"])
        assert system.status()["checkpoints"]["publishErrors"] == {}


@pytest.mark.clause("CHECK-3")
def test_what_was_not_published_before_a_stop_is_published_by_the_next_start(
    booth: Booth, tmp_path: Path
) -> None:
    file = tmp_path / "away" / "published"
    file.parent.mkdir()
    settings = of({"everyEvents": 0, "everySeconds": 0, "publish": {"file": str(file)}})
    with booth.start(AGENTS, {}, settings) as system:
        told(system)
        system.checkpoint()
        wait_until(system, lambda: len(published(system)) == 1)
        file.unlink()
        file.mkdir()  # in its way
        told(system, "two")
        system.checkpoint()
        told(system, "three")
    file.rmdir()

    with booth.start(AGENTS, {}, settings) as system:
        wait_until(system, lambda: len(published(system)) == 2)
        positions = [one.position for one in checkpoints(system)]

    lines = published_in(file.read_bytes())
    assert len(lines) >= 2
    assert len(positions) >= 3


@pytest.mark.clause("CHECK-3")
def test_a_command_gets_each_as_a_line_without_a_shell(booth: Booth, tmp_path: Path) -> None:
    got = tmp_path / "got; touch x"
    program = "import pathlib, sys; pathlib.Path(sys.argv[1]).open('ab').write(sys.stdin.buffer.read())"
    settings = of(
        {
            "everyEvents": 0,
            "everySeconds": 0,
            "publish": {"command": [sys.executable, "-c", program, str(got)]},
        }
    )
    with booth.start(AGENTS, {}, settings) as system:
        told(system)
        taken = system.checkpoint()
        wait_until(system, lambda: bool(published(system)))

    assert published_in(got.read_bytes())[0].hash == taken["hash"]
    assert not (tmp_path / "x").exists()


def test_a_command_that_fails_says_why(booth: Booth) -> None:
    heard = Heard()
    program = "import sys; sys.exit('no space in the vault')"
    settings = of({"publish": {"command": [sys.executable, "-c", program]}})
    with booth.start(AGENTS, {}, settings, on_failure=heard) as system:
        told(system)
        system.checkpoint()
        failure = heard.next("checkpoint_unpublished")

    assert "no space in the vault" in (failure.error or "")
