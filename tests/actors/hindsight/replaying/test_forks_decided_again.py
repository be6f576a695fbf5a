"""What a fork recorded is decided again from its decision records: before the cut as in its source, behind it as in the fork."""

import pytest

from intersession import SessionSystem
from intersession_actors.hindsight.explaining.explained import Explaining
from intersession_actors.hindsight.forking.overlay import set_in
from intersession_actors.hindsight.replaying.redeciding.deciding_again import Redecided, redecided_all
from intersession_actors.hindsight.replaying.redeciding.sources import Sources
from intersession_actors.owners.exchange.exchange import fixed_by
from intersession_actors.rules.config.config import load_config
from intersession_events.facts import ExchangeClosed, ForkEdit, LoopEnded, parts_of
from intersession_events.log.recorded import parts_in
from intersession_events.stores.sqlite.log import SqliteLog
from support.forks_played import CONFIG, Conversation, conversation, play

TURNS = "session.agentToAgent.maxPingPongTurns"
ALIVE = {"main": "asks", "desk": "answers"}
HOSTS = {"main": "main", "desk": "desk"}


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> Conversation:
    return conversation(tmp_path_factory.mktemp("talk"))


def decided(path: str, *, with_edits: bool = True) -> list[Redecided]:
    with SqliteLog(path, read_only=True) as log:
        edits = set_in(log)
        settings = load_config({**CONFIG, "session": {"agentToAgent": {"maxPingPongTurns": 2}}}).config
        sources = Sources(
            log.log_id,
            log.all(),
            lineage=log.lineage,
            accepted_as=(lambda accepted, _: fixed_by(settings, edits, accepted)) if with_edits else None,
        )
        return [*redecided_all(sources)]


@pytest.mark.clause("C7", "FORK-3")
@pytest.mark.parametrize("at", ["turn:1", "turn:2", "reply"])
def test_a_fork_is_decided_as_it_was_before_the_cut_and_behind_it(talk: Conversation, at: str) -> None:
    found = decided(play(talk, talk.exchange, at, agents=ALIVE).made.path)

    assert [one for one in found if not one.is_same] == []
    assert any(
        isinstance(event, ExchangeClosed) for one in found for own in one.recorded for event in parts_of(own)
    )


@pytest.mark.clause("C7", "FORK-4")
def test_what_was_set_in_a_fork_holds_behind_the_cut_alone(talk: Conversation) -> None:
    path = play(
        talk, talk.exchange, "turn:1", ForkEdit(kind="set", key=TURNS, value="2"), agents=ALIVE
    ).made.path

    assert [one for one in decided(path) if not one.is_same] == []
    other = [one for one in decided(path, with_edits=False) if not one.is_same]
    assert [
        type(event)
        for one in other
        for own in one.recorded
        for event in parts_of(own)
        if isinstance(event, LoopEnded)
    ] == [LoopEnded]


@pytest.mark.clause("WHY-2")
def test_why_the_loop_of_a_source_ended_is_said_in_forks_of_forks_as_in_the_source(
    talk: Conversation,
) -> None:
    def decided_so(system: SessionSystem) -> list[bool | None]:
        explaining = Explaining(system.service.reader)
        ends = [one for one in parts_in(system.log.all()) if isinstance(one.event, LoopEnded)]
        return [told.as_decided for one in ends for told in explaining.of(one)]

    with (
        talk.system.fork(talk.exchange, at="end", agents=HOSTS) as fork,
        fork.fork(talk.exchange, at="end", agents=HOSTS) as second,
    ):
        assert decided_so(fork) == decided_so(second) == decided_so(talk.system) == [True]
