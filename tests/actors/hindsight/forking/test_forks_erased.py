"""ERASE-1 in forks: what somebody is made to say there goes with the words of their session, and all is as provable as before."""

from pathlib import Path

import pytest

from intersession_events.facts import ERASED, ForkedFrom, ForkEdit, ForkEdited
from intersession_events.log.verifying.verification import verify_log
from intersession_events.stores.opened import open_log
from support.forks_played import DESK, WAIT, conversation

ANSWER, FURTHER = "the train was cancelled for good", "nobody may ever hear of this"


@pytest.mark.clause("ERASE-1", "FORK-4")
def test_the_words_of_edits_are_erased_with_those_of_their_session_in_forks_of_forks_too(
    tmp_path: Path,
) -> None:
    talk = conversation(tmp_path)
    edits = [
        ForkEdit(kind="reply", value=ANSWER),
        ForkEdit(kind="inject", key="agent:main:main", value=FURTHER),
        ForkEdit(kind="set", key="session.agentToAgent.maxPingPongTurns", value="2"),
    ]
    with talk.system.fork(
        talk.exchange, at="turn:2", edits=edits, agents={"main": "main", "desk": "desk"}
    ) as fork:
        fork.carried_on(WAIT)
        report = fork.erase(DESK)
        assert "log" in report["streams"]
        said = [one.event.edit for one in fork.log.stream("log") if isinstance(one.event, ForkEdited)]
        assert {(edit.kind, edit.value) for edit in said if edit.kind != "agent"} == {
            ("reply", ERASED),
            ("inject", FURTHER),
            ("set", "2"),
        }
        fork.erase("agent:main:main")
        with fork.fork(talk.exchange, at="turn:2", agents={"*": "recorded"}) as second:
            second.carried_on(WAIT)
    talk.system.close(grace=0)

    for path in (fork.log.path, second.log.path):
        assert not any(word.encode() in Path(path).read_bytes() for word in (ANSWER, FURTHER))
        with open_log(path, read_only=True) as log:
            verified = verify_log(log)
            assert verified.ok, verified.findings
            assert log.forked is not None
            began = [one.event for one in log.stream("log") if isinstance(one.event, ForkedFrom)]
            assert {edit.value for event in began for edit in event.edits if edit.kind == "set"} == {"2"}
            assert ANSWER not in str(began)


@pytest.mark.clause("ERASE-1", "FORK-7")
def test_a_call_whose_words_were_erased_is_where_a_what_if_ends(tmp_path: Path) -> None:
    talk = conversation(tmp_path)
    talk.system.erase("agent:main:main")
    with talk.system.fork(talk.run, at="start", agents={"*": "recorded"}) as fork:
        carried = fork.carried_on(WAIT)
    talk.system.close(grace=0)

    left = carried.divergence
    assert left is not None
    assert left.kind == "tool"
    assert (
        left.now
        == "nothing: what sessions_send was called with was erased from the log, so it can't be called again"
    )
