"""Forks of imported runs: carried on at each answer, with each edit, by agents that are given (FORK-10, IMP-4)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from intersession import SessionSystem, ToolRefused, Turn, echo
from intersession_actors.hindsight.forking.carrying import Carried
from intersession_events import facts
from intersession_events.basics.ids import exchange_stream, session_stream, spawn_stream
from intersession_events.facts import ForkEdit
from intersession_events.log.verifying.verification import verify_log
from intersession_events.stores.portable.log import PortableLog
from intersession_projections.views.flows.rows import ExchangeSummary, Position, SpawnSummary
from intersession_projections.views.run_outcomes.replies import told_in
from support.golden_logs import golden_logs
from support.running import SEES_ALL, WAIT
from support.told_steps import steps_told

pytestmark = pytest.mark.clause("FORK-10", "IMP-4")


@pytest.fixture
def imported(tmp_path: Path) -> Iterator[SessionSystem]:
    """Yield a host on a log into which another host's state was imported: one spawn, and one exchange of one turn."""
    (golden,) = [one for one in golden_logs() if one.name == "restricted"]
    with SessionSystem(golden.unpack(tmp_path), agents={}, config=SEES_ALL) as system:
        yield system


def exchange_in(system: SessionSystem) -> ExchangeSummary:
    (found,) = system.service.flows.exchanges_at(Position(0, system.log.head()), 50)
    assert found.inferred
    return found


def spawn_in(system: SessionSystem) -> SpawnSummary:
    (found,) = system.service.flows.spawns_at(Position(0, system.log.head()), 50)
    assert found.inferred
    return found


def says(turn: Turn) -> str:
    """Answer with the step, and with the message."""
    return f"{turn.step}: {turn.message}"


def of(kind: str, value: str = "") -> list[ForkEdit]:
    return [ForkEdit(kind=kind, value=value)]  # type: ignore[arg-type] # the parameters of a test


def turns_in(fork: SessionSystem, stream: str) -> list[tuple[int, str | None]]:
    events = [one.event for one in told_in(fork.log, fork.log.stream(stream))]
    return [(one.turn, one.text) for one in events if isinstance(one, facts.TurnEnded) and one.turn]


def ended(fork: SessionSystem) -> Carried:
    carried = fork.carried_on(WAIT)
    assert (carried.state, carried.set_aside, carried.imported) == ("ended", (), ())
    assert isinstance(fork.log, PortableLog)
    assert verify_log(fork.log).ok
    assert fork.log.set_aside() == []
    return carried


def test_an_imported_exchange_goes_on_behind_each_of_its_answers(imported: SessionSystem) -> None:
    exchange = exchange_in(imported)
    with imported.fork(exchange.exchange_id, at="reply", agents={"*": says}) as fork:
        assert ended(fork).outcome.end == "turn_limit"
        turns = turns_in(fork, exchange.stream)
        assert [number for number, _ in turns] == [1, 2, 3, 4, 5]
        first = next(
            one.event
            for one in imported.log.stream(exchange.stream)
            if isinstance(one.event, facts.TurnEnded)
        )
        assert turns[0][1] == f"reply: {first.text}"  # what was answered by the place is taken over
    # Its one turn had nothing to add, and so the rules end the loop again.
    with imported.fork(exchange.exchange_id, at="turn:1", agents={"*": says}) as fork:
        assert ended(fork).outcome.end == "reply_skip"
        assert turns_in(fork, exchange.stream) == [(1, "REPLY_SKIP")]
    with imported.fork(exchange.exchange_id, at="start", agents={"*": says}) as fork:
        carried = ended(fork)
        assert str(carried.outcome.announced).startswith("announce: ")
    with imported.fork(exchange.exchange_id, at="end", agents={"*": says}) as fork:
        assert ended(fork).outcome.end == exchange.end_reason
        asked = {"sessionKey": exchange.target, "message": "and now?", "timeoutSeconds": 20}
        assert "and now?" in str(fork.tools().call("sessions_send", asked)["reply"])


@pytest.mark.parametrize("at", ["reply", "turn:1"])
def test_all_of_an_imported_exchange_that_lies_above_the_cut_is_told_of_its_fork_as_well(
    imported: SessionSystem, at: str
) -> None:
    """A run that began in the fork answers a message that was imported, long before it: that is of the exchange, too."""
    exchange = exchange_in(imported)
    timeline = steps_told(imported.log, exchange.exchange_id)
    with imported.fork(
        exchange.exchange_id, at=at, edits=of("reply", "no, five"), agents={"*": says}
    ) as fork:
        ended(fork)
        assert fork.log.forked is not None
        cut = fork.log.forked.position
        told = steps_told(fork.log, exchange.exchange_id)

    assert [step.position for step in told if step.position <= cut] == [
        step.position for step in timeline if step.position <= cut
    ]


@pytest.mark.parametrize(
    ("at", "edit", "end", "first"),
    [
        ("reply", of("reply", "no, five"), "turn_limit", "reply: no, five"),
        ("reply", of("skip"), "no_reply", None),
        ("reply", of("drop"), "no_reply", None),
        ("turn:1", of("reply", "no, five"), "turn_limit", "no, five"),
        ("turn:1", of("skip"), "reply_skip", "REPLY_SKIP"),
        ("turn:1", of("drop"), "no_text", None),
        ("start", of("message", "how many?"), "turn_limit", "reply: message: how many?"),
    ],
)
def test_another_answer_or_message_of_an_imported_exchange_leads_on(
    imported: SessionSystem, at: str, edit: list[ForkEdit], end: str, first: str | None
) -> None:
    exchange = exchange_in(imported)
    with imported.fork(exchange.exchange_id, at=at, edits=edit, agents={"*": says}) as fork:
        assert ended(fork).outcome.end == end
        (edited,) = [one.event for one in fork.log.stream("log") if isinstance(one.event, facts.ForkEdited)][
            :1
        ]
        assert edited.edit.kind == edit[0].kind
        forked = fork.log.forked
        assert forked is not None
        turns = turns_in(fork, exchange_stream(forked.flow))
        assert (turns[0][1] if turns else None) == first
        # Another message begins another exchange (FORK-3), which nobody has imported.
        found = fork.service.flows.exchange(forked.flow)
        assert found is not None
        assert found.inferred == (edit[0].kind != "message")


def test_another_announce_of_an_imported_exchange_stands_in_its_place(imported: SessionSystem) -> None:
    exchange = exchange_in(imported)
    with imported.fork(
        exchange.exchange_id, at="announce", edits=of("reply", "It is five."), agents={"*": says}
    ) as fork:
        assert ended(fork).outcome.announced == "It is five."


def test_an_imported_spawn_goes_on_from_its_task_and_from_what_its_child_did(imported: SessionSystem) -> None:
    spawn = spawn_in(imported)
    for at, edit, told in (
        ("start", [], "announce: "),
        ("start", of("message", "count them"), "announce: "),
        ("reply", [], "announce: "),
        ("reply", of("reply", "seven"), "announce: "),
        ("reply", of("drop"), "announce: "),
    ):
        with imported.fork(spawn.spawn_id, at=at, edits=edit, agents={"*": says}) as fork:
            carried = ended(fork)
            assert carried.outcome.end == "handed_over"
            assert told in str(carried.outcome.announced)
            if edit and edit[0].value:
                forked = fork.log.forked
                assert forked is not None
                (done,) = [
                    one.event
                    for one in told_in(fork.log, fork.log.stream(spawn_stream(forked.flow)))
                    if isinstance(one.event, facts.ChildEnded)
                ]
                assert edit[0].value in str(done.text)
    with pytest.raises(
        ToolRefused, match=r"of .* which was imported, the log has none at .*@announce; give RUN@reply"
    ):
        imported.fork(spawn.spawn_id, at="announce", edits=of("reply", "x"))


def test_a_further_message_stands_behind_the_one_that_asked(imported: SessionSystem) -> None:
    exchange = exchange_in(imported)
    edit = [ForkEdit(kind="inject", key=exchange.target, value="be brief")]
    with imported.fork(exchange.exchange_id, at="start", edits=edit, agents={"*": echo()}) as fork:
        ended(fork)
        stream = fork.log.stream(session_stream(exchange.target))
        said = [
            facts.text_of(one.event.message) for one in stream if isinstance(one.event, facts.MessageRecorded)
        ]
        assert "be brief" in said


def test_recorded_agents_of_an_import_answer_where_it_is_cut_and_by_their_place(
    imported: SessionSystem,
) -> None:
    exchange = exchange_in(imported)
    with imported.fork(exchange.exchange_id, at="start", agents={"*": "recorded"}) as fork:
        left = fork.carried_on(WAIT)
        assert left.state == "diverged"
        assert left.divergence is not None
        assert (left.divergence.kind, left.divergence.recorded) == ("context", "REPLY_SKIP")
    for at in ("start", "reply", "turn:1", "announce"):
        with imported.fork(exchange.exchange_id, at=at, agents={"*": "recorded"}, loose=True) as fork:
            ended(fork)
            forked = fork.log.forked
            assert forked is not None
            diff = imported.debug.diff(exchange.exchange_id, fork.log.log_id)
            assert [row for row in diff["turns"] if row["kind"] != "same"] == []


def test_a_fork_of_an_import_without_agents_says_whom_it_waits_for(imported: SessionSystem) -> None:
    exchange = exchange_in(imported)
    with imported.fork(exchange.exchange_id, at="start") as fork:
        carried = fork.carried_on(WAIT)
        assert (carried.state, carried.missing) == ("waits", ("main",))
