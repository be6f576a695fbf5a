"""Forks in the web debugger: asked like the log itself, and compared with it."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from intersession import SessionSystem
from intersession_events.facts import ForkEdit
from support.doors.gateway_live import READER, TOKEN, LiveGateway
from support.doors.web_log import played


class Forked(NamedTuple):
    system: SessionSystem
    gateway: LiveGateway
    run: str
    fork: str

    def ask(self, question: str, *, token: str = TOKEN, **given: Any) -> Any:
        with self.gateway.http(token) as client:
            answer = client.get(f"/debug/api/{question}", params=given)
        return answer.json() if answer.status_code == 200 else answer


@pytest.fixture(scope="module")
def forked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forked]:
    with played(store=tmp_path_factory.mktemp("web") / "demo.db") as (system, gateway):
        with gateway.http() as client:
            run = client.get("/debug/api/runs", params={"kind": "exchange"}).json()["runs"][0]["id"]
        edits = [ForkEdit(kind="reply", value="Only up to 2.8 tonnes this week.")]
        fork = system.fork(run, at="turn:2", edits=edits, agents={"*": "recorded"})
        try:
            fork.carried_on(timeout=20)
        finally:
            fork.close(grace=0)
        yield Forked(system, gateway, run, fork.log.log_id)


def test_a_fork_is_asked_like_the_log_that_it_was_made_of(forked: Forked) -> None:
    (told,) = forked.ask("forks", run=forked.run)["forks"]
    whole = forked.ask("run", run=forked.run, fork=told["id"][:8])
    steps = forked.ask("steps", run=forked.run, fork=forked.fork)["steps"]
    proven = forked.ask("integrity", fork=forked.fork, verify="true")

    assert told["id"] == forked.fork
    assert whole["steps"] == len(steps)
    assert any("2.8 tonnes" in step.get("text", "") for step in steps)
    assert not any("2.8" in step.get("text", "") for step in forked.ask("steps", run=forked.run)["steps"])
    assert proven["ok"] is True


def test_a_run_and_its_fork_are_compared_from_the_cut_on(forked: Forked) -> None:
    found = forked.ask("compare", a=forked.run, b=forked.run, other=forked.fork)

    assert found["firstDivergence"]["turn"] == "turn:2"
    assert found["cut"]["edits"][0]["value"] == "Only up to 2.8 tonnes this week."
    assert found["cut"]["position"] < found["firstDivergence"]["place"]["position"]
    assert forked.ask("compare", a=forked.run, b=forked.run)["same"] is True


def test_a_fork_that_is_none_or_not_within_reach_is_refused(forked: Forked) -> None:
    unknown = forked.ask("run", run=forked.run, fork="00000000")
    limited = forked.ask("run", token=READER, run=forked.run, fork=forked.fork)

    assert (unknown.status_code, limited.status_code) == (400, 403)
    assert "no fork of this log" in unknown.json()["error"]["message"]
