"""A fork has an id of its own: what comes of it behind the cut can be mistaken for nothing of the log that it is of."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from intersession import MemoryChannel, SessionSystem, Turn
from intersession_actors.hindsight.forking.carrying import carry_on
from intersession_events.log.recorded import Recorded
from intersession_events.proofs.hashed import Hashed
from support.forks_played import Conversation


def derived(events: Sequence[Recorded]) -> set[str]:
    """Return what events give a name to: themselves, runs, messages, deliveries, children."""
    fields = ("run_id", "message_id", "delivery_id", "child", "child_session_id", "spawn_id")
    named = (getattr(one.event, field, None) for one in events for field in fields)
    return {one.id for one in events} | {name for name in named if name}


def hash_under(log_id: str, one: Recorded) -> str:
    return Hashed(
        causation=one.causation,
        correlation=one.correlation,
        epoch=one.epoch,
        event_id=one.id,
        log_id=log_id,
        payload_digest=one.digest,
        prev=one.prev,
        stream=one.stream,
        time_ms=one.time,
        topic=one.topic,
        version=one.version,
    ).hash


@pytest.mark.clause("FORK-3")
@pytest.mark.parametrize("mark", ["start", "reply", "turn:1", "turn:3", "announce"])
def test_what_is_derived_behind_the_cut_has_other_ids(talk: Conversation, mark: str) -> None:
    """Though each agent says the same again, and the same follows from it."""
    source = talk.log
    with talk.system.fork(talk.exchange, at=mark, agents={"*": "recorded"}) as fork:
        assert fork.log.forked is not None
        cut = fork.log.forked.position
        carry_on(fork.service, talk.exchange, timeout=20)
        known = derived(list(source.all(to=cut)))
        here = derived(list(fork.log.all(after=cut))) - known
        there = derived(list(source.all(after=cut))) - known
        assert fork.log.log_id != source.log_id
        assert derived(list(fork.log.all(to=cut))) <= known
    assert len(here) > 3
    assert not here & there


@pytest.mark.clause("FORK-3")
def test_events_are_hashed_under_the_id_of_the_log_that_they_were_written_in(talk: Conversation) -> None:
    with talk.system.fork(talk.exchange, at="turn:2", agents={"*": "recorded"}) as fork:
        carry_on(fork.service, talk.exchange, timeout=20)
        assert fork.log.forked is not None
        cut = fork.log.forked.position
        under = {
            (recorded.position <= cut, name)
            for recorded in fork.log.all()
            for name, log_id in (("source", talk.log.log_id), ("fork", fork.log.log_id))
            if recorded.hash == hash_under(log_id, recorded)
        }
    assert under == {(True, "source"), (False, "fork")}


@pytest.mark.clause("FORK-3")
def test_a_child_that_is_started_anew_is_another_child(tmp_path: Path) -> None:
    def main(turn: Turn) -> str:
        if turn.step == "message" and ":subagent:" not in turn.session_key:
            turn.tools.call("sessions_spawn", {"task": "count"})
        return "done"

    with SessionSystem(tmp_path / "log.db", agents={"main": main}, channels={"x": MemoryChannel()}) as system:
        run = system.inbound(channel="x", chat_id="1", sender="ann", text="go", wait=20)["runId"]
        carry_on(system.service, "", timeout=20)
        with system.fork(run, at="start", agents={"main": "main"}) as fork:
            carry_on(fork.service, run, timeout=20)
            children = [
                {stream for stream in log.streams("session:") if ":subagent:" in stream}
                for log in (system.log, fork.log)
            ]
    assert [len(each) for each in children] == [1, 1]
    assert not children[0] & children[1]
