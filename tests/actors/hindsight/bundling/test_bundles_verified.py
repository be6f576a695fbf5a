"""What `verify.py` says of bundles that nobody touched: of each place and selection, of forks and of imports, on both stores."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from intersession import Reply, SessionSystem, Turn
from intersession_actors.hindsight.bundling.bundle import make_bundle
from intersession_actors.hindsight.bundling.wanted import BundleWanted
from intersession_events.copies.bundles.verifying import check_bundle

pytestmark = [pytest.mark.ci, pytest.mark.clause("BUNDLE-10")]


def speak(turn: Turn) -> str | Reply:
    if turn.step == "message" and "ask" in turn.message:
        turn.tools.call(
            "sessions_send", {"sessionKey": "agent:ops:main", "message": "well?", "timeoutSeconds": 20}
        )
    return f"you said {turn.message}" if turn.step == "message" else Reply.skip()


@pytest.fixture
def system(log_url: str) -> Iterator[SessionSystem]:
    with SessionSystem(log_url, agents={"main": speak, "ops": speak}) as host:
        for number, text in enumerate(("hello", "ask them", "once more")):
            for key in ("agent:main:main", "agent:main:other"):
                sent = {"sessionKey": key, "message": f"{text} of {key}", "idempotencyKey": f"{number}{key}"}
                run = host.gateway.perform("chat.send", sent)
                host.gateway.perform("agent.wait", {"runId": run["runId"]})
            if number == 0:
                host.checkpoint()
            if number == 1:
                host.erase("agent:main:other", unsent="giveUp")
        yield host


def wrong(system: SessionSystem, folder: Path, **wanted: Any) -> tuple[list[tuple[str, str]], list[str]]:
    """Return what is wrong with a bundle, and what is not proven of it."""
    name = "-".join(f"{key}-{value}" for key, value in wanted.items()).replace(":", "_")
    made = make_bundle(system.debug.view, BundleWanted(**wanted), folder / f"{name}.zip")
    found = check_bundle(made.path)
    return found.wrong, found.unproven


def test_bundles_of_every_place_are_verified(system: SessionSystem, tmp_path: Path) -> None:
    head = system.log.head()
    behind = 0
    for at in range(4, head + 1, 5):
        for selection in ({"everything": True}, {"session": "agent:main:other"}):
            if "session" in selection and at < 12:
                continue
            found, unproven = wrong(system, tmp_path, at=at, **selection)
            assert found == [], (at, selection)
            behind += any("only log.db says it" in said for said in unproven)
    assert behind > 1, "words that were erased behind the place are named"


@pytest.mark.parametrize("redact", ["secrets", "words", "people"])
def test_editions_of_places_are_verified(system: SessionSystem, tmp_path: Path, redact: str) -> None:
    head = system.log.head()
    for at in (head // 2, head):
        assert wrong(system, tmp_path, everything=True, redact=redact, at=at)[0] == []
        assert wrong(system, tmp_path, session="agent:main:main", redact=redact, at=at)[0] == []


def test_bundles_of_a_fork_and_of_its_fork_are_verified(system: SessionSystem, tmp_path: Path) -> None:
    run = system.gateway.perform(
        "chat.send", {"sessionKey": "agent:main:main", "message": "last", "idempotencyKey": "last"}
    )["runId"]
    system.gateway.perform("agent.wait", {"runId": run})
    system.checkpoint()
    with system.fork(run, at="end", agents={"*": speak}) as fork:
        again = fork.gateway.perform(
            "chat.send", {"sessionKey": "agent:main:main", "message": "here", "idempotencyKey": "here"}
        )["runId"]
        fork.gateway.perform("agent.wait", {"runId": again})
        assert wrong(fork, tmp_path, everything=True)[0] == []
        fork.checkpoint()
        assert wrong(fork, tmp_path, everything=True, redact="words")[0] == []
        assert wrong(fork, tmp_path, session="agent:main:main")[0] == []
        with fork.fork(again, at="end", agents={"*": speak}) as second:
            second.checkpoint()
            assert wrong(second, tmp_path, everything=True, at=second.log.head())[0] == []
            assert wrong(second, tmp_path, session="agent:main:main", at=second.log.head() - 1)[0] == []
