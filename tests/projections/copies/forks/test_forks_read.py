"""A fork has not all positions, and ids in it were derived from two logs: questions are answered all the same."""

from pathlib import Path

import pytest

from intersession import SessionSystem, Turn
from intersession_events.stores.opened import open_log
from intersession_projections.copies.forks.closure import closed_streams
from intersession_projections.questions.places.described import PlaceWords
from intersession_projections.questions.places.grammar import UnknownPlace, parse_place
from intersession_projections.questions.places.located import Places
from intersession_projections.views.inline_views import inline_views
from intersession_projections.views.run_outcomes.runs import Runs
from support.forked import fork_of, forked, source_log


@pytest.mark.clause("PLACE-1", "FORK-9")
def test_steps_in_a_fork_go_from_event_to_event(tmp_path: Path) -> None:
    made = fork_of(source_log(tmp_path / "log.db"))

    with open_log(str(made), inline=inline_views()) as fork:
        there = [one.position for one in fork.all()]
        places = Places(fork, now_ms=10**15)

        def at(text: str) -> int:
            return places.find(parse_place(text, field="at"), field="at").position

        assert there != list(range(1, there[-1] + 1))
        assert [at(f"{there[0]}+{steps}") for steps in range(len(there))] == there
        assert [at(f"-{steps}") for steps in range(1, len(there))] == there[-2::-1]
        assert at(f"-{len(there)}") == 0
        for beyond in ("head+1", f"-{len(there) + 1}"):
            with pytest.raises(UnknownPlace):
                at(beyond)
        gap = next(position for position in range(1, there[-1]) if position not in there)
        words = PlaceWords(fork)
        place = places.find(parse_place(str(gap), field="at"), field="at")
        following = words.next(place)
        assert words.say(place).position == max((one for one in there if one < gap), default=gap)
        assert following is not None
        assert following.position == min(one for one in there if one > gap)


@pytest.mark.clause("GATE-6", "FORK-3")
def test_a_run_that_was_tried_again_before_the_cut_is_known_to_be_in_a_fork(tmp_path: Path) -> None:
    fails = [True]

    def speak(turn: Turn) -> str:
        if fails.pop() if fails else False:
            raise ValueError("not today")
        return f"said {turn.message}"

    with SessionSystem(f"sqlite:///{tmp_path / 'log.db'}", agents={"main": speak}) as system:
        sent = {"sessionKey": "main", "message": "hello", "idempotencyKey": "k"}
        failed = system.gateway.call("chat.send", sent)["runId"]
        system.gateway.call("agent.wait", {"runId": failed})
        again = system.gateway.call("runs.retry", {"runId": failed})["runId"]
        system.gateway.call("agent.wait", {"runId": again})
    with open_log(str(tmp_path / "log.db"), read_only=True, inline=inline_views()) as log:
        streams = closed_streams(log, ["session:agent:main:main"], log.head())
        made = forked(log, streams, at=log.head(), flow=failed)

    with SessionSystem(f"sqlite:///{made.path}", agents={"main": speak}) as fork:
        runs = Runs(fork.log)
        tried = runs.retry_of(failed)
        assert tried is not None
        assert tried.run_id == again
        assert failed not in {run.run_id for run in runs.failed_lately(50)}
        assert fork.gateway.call("runs.retry", {"runId": failed})["runId"] == again
